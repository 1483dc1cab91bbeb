"""Interrupts of long loops in machine code.

Enters: signals, as Python has noted them. Leaves: ``functions``, the addresses of those that machine code calls now and
then, and ``heard``, which tells of what a signal's handler has raised there. Exists so that Ctrl-C ends a loop that
has no Python in it: the loop returns at once, and none of its effects has happened.
"""

from __future__ import annotations

import ctypes
import sys
import time
from functools import cache
from types import TracebackType
from typing import Any

from tcompile.backends.llvm.native import abi, target
from tcompile.backends.replay import Interrupted, Replay
from tcompile.backends.status import INTERRUPTED, ONLY_NUMPY
from tcompile.callers import mark

_FUNCTIONS = ("tc_late", "tc_due", "tc_now")


@cache
def _code() -> target.Code:
    state = "PyThreadState_GetUnchecked" if sys.version_info >= (3, 13) else "_PyThreadState_UncheckedGet"
    ir = target.source("poll.ll", {"MONOTONIC": time.CLOCK_MONOTONIC, "THREAD_STATE": state})
    return target.keep_forever(target.load(ir, [*_FUNCTIONS, "raised"], abi.symbols(ir), opt=0))


def functions() -> dict[str, int]:
    """The addresses of ``i32 tc_late(i64 *last)`` and ``i32 tc_due(i64 *clock)``, which say whether the loop is to end,
    and of ``i64 tc_now()``.
    """
    code = _code()
    return {name: code[name] for name in _FUNCTIONS}


def _raised() -> BaseException:
    """What the handler has raised; KeyboardInterrupt where that is not known any more."""
    words = (ctypes.c_void_p * 3).from_address(_code()["raised"])
    found = [ctypes.cast(word, ctypes.py_object).value if word else None for word in words]
    drop = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_DecRef", ctypes.pythonapi))
    owned = list(words)
    words[:] = [None] * 3
    kind: Any = found[0]
    value, traceback = found[1:]
    for word in owned:
        if word:
            drop(word)
    if not isinstance(value, BaseException):
        made = isinstance(kind, type) and issubclass(kind, BaseException)
        value = (kind() if value is None else kind(value)) if made else KeyboardInterrupt()
    return mark(value.with_traceback(traceback if isinstance(traceback, TracebackType) else None))


def heard(status: int) -> int:
    """The status of a loop that has come to its end.

    Raises Interrupted where a handler has raised something, and Replay where only plain Python goes on: loops that
    come later would start from anything.
    """
    if status & INTERRUPTED:
        raise Interrupted(_raised())
    if status & ONLY_NUMPY:
        raise Replay("a loop over elements comes to what only Python knows how to treat")
    return status


__all__ = ["functions", "heard"]
