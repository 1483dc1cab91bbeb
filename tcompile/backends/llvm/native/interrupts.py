"""Interrupts of long loops in machine code.

Input: signals, as Python has recorded them, and changes to values that compiled code has read.
Output: ``functions``, the addresses of poll functions for machine code, and ``check_status``, which raises the error of
a signal handler.
Why: Ctrl-C ends a loop without Python in it. The loop returns at once, and none of its effects has happened.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from tcompile import system
from tcompile.backends.helpers import floating_point_report
from tcompile.backends.llvm.native import abi, target
from tcompile.backends.replay import Interrupted, Replay
from tcompile.backends.status import CHANGED, INTERRUPTED, ONLY_NUMPY, PAUSED, PAUSED_SHIFT
from tcompile.callers import mark
from tcompile.polls import Changed, has_changed

_FUNCTIONS = ("tc_late", "tc_due", "tc_now", "tc_wait")
HELD, HELD_ROWS = 64, 64  # words a row, and rows: hardly more loops are left at the same time
T = TypeVar("T")
_held, _count = np.zeros((HELD_ROWS, HELD), np.int64), np.zeros((), np.int64)
_PATIENCE = (
    30_000_000  # ns that a loop has from a change to the end of an iteration, before it is left in the middle of it
)


@cache
def _code() -> target.MachineCode:
    state = "PyThreadState_GetUnchecked" if sys.version_info >= (3, 13) else "_PyThreadState_UncheckedGet"
    ir = target.source("poll.ll", {"PATIENCE": _PATIENCE, "THREAD_STATE": state}) + system.text("clock")
    symbols = {"yes": id(target.immortal(True)), "reread": id(target.immortal(has_changed))}
    return target.keep_forever(target.load(ir, [*_FUNCTIONS, "raised"], abi.symbols(ir) | symbols, opt=0))


def functions() -> dict[str, int]:
    """The addresses of ``i32 tc_late(i64 *last)`` and ``i32 tc_due(i64 *clock)``, which say whether the loop is to end,
    of ``i64 tc_now()``, and of the registers that scalar loops hold for the next iteration where they are left early:
    ``tc_held``, so many rows, and ``tc_held_count``, the number of rows that were used.
    """
    code = _code()
    held = {"tc_held": _held.ctypes.data, "tc_held_count": _count.ctypes.data}
    return {name: code[name] for name in _FUNCTIONS} | held


def undisturbed(run: Callable[[], T]) -> T:
    """Returns the result of ``run``. Meanwhile no signal handler runs, and other Python code hardly ever."""
    if target.unsupported() is not None:
        return target.uninterrupted(run)
    code = _code()
    now, wait_until = (
        ctypes.CFUNCTYPE(ctypes.c_int64)(code["tc_now"]),
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)(code["tc_wait"]),
    )

    def wait(address: int, seconds: float) -> int:
        return int(wait_until(address, now() + int(seconds * 1e9)))

    return target.undisturbed(run, wait)


def _raised() -> BaseException:
    """The exception of the handler; KeyboardInterrupt where it is unknown by now."""
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


def with_results(changed: Changed, loop: str, results: Sequence[Any]) -> Changed:
    """The same exception, with the name of the scalar loop that was left, and copies of its node's results."""
    if len(changed.variables):
        changed.loop, changed.results = loop, results
    return changed


def check_status(status: int, before: int = 0) -> int:
    """Returns the status of a loop that has ended, with that of the kernels before it.

    Raises Interrupted where a handler has raised an exception, Changed where a value that was read has changed, with
    the registers that a scalar loop holds for its next iteration, and Replay where only plain Python goes on: later
    loops would start from undefined values. A loop that has met floating-point conditions does not go on elsewhere.
    """
    if status & INTERRUPTED:
        raise Interrupted(_raised())
    if status & CHANGED:
        raise Changed
    if status & PAUSED:
        floating_point_report(status | before)
        raise Changed(variables=_held[status >> PAUSED_SHIFT].copy())
    if status & ONLY_NUMPY:
        raise Replay("a scalar loop comes to what only Python knows how to treat")
    return status | before


__all__ = ["HELD", "HELD_ROWS", "check_status", "functions", "undisturbed", "with_results"]
