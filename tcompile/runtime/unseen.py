"""Hides tcompile's frames from debuggers.

Input: functions of tcompile's that call user functions; a thread whose tracing is to pause.
Output: the same functions, which begin, for CPython's tracing, near their end or never; the pause.
Why: a debugger that steps into a compiled function must land in the user's function, and return to the user's caller.
For CPython a function begins at its RESUME instruction; earlier instructions count as frame setup. Nothing traces them,
and ``f_back``, tracebacks and ``sys._getframe`` skip the frame.
"""

from __future__ import annotations

import ctypes
import dis
import functools
import sys
import types
from collections.abc import Callable
from itertools import pairwise
from sys import getprofile, gettrace
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# Packages whose trace functions are C code, and match each return with the last call that they have seen.
COUNTERS = frozenset({"coverage", "line_profiler", "scalene"})
_RESUME, _NOP = dis.opmap["RESUME"], dis.opmap["NOP"]
_ASSERTS = hasattr(sys, "gettotalrefcount")  # a debug build of CPython, which asserts that it sees every frame


def never_begins(function: F) -> F:
    """Returns the function without its RESUME: on CPython 3.11 only for calls that are not counted (``is_counted``).

    >>> import sys
    >>> def caller():
    ...     return sys._getframe(1).f_code.co_name
    >>> @never_begins
    ... def inner():
    ...     return caller()
    >>> def outer():
    ...     return inner()
    >>> outer()
    'outer'
    """
    return _with_resume_at(function, None)


def begins_at_pass(function: F) -> F:
    """Returns the function with its RESUME at its last ``pass``; code before it returns unless ``is_counted``."""
    return _with_resume_at(function, _NOP)


# Functions that begin by themselves where calls are counted. CPython 3.12 and later report nothing for a function
# without a RESUME, whereas 3.12 reports returns before one.
unseen = begins_at_pass if sys.version_info < (3, 12) else never_begins


def _with_resume_at(function: F, place: int | None) -> F:
    """Returns a copy whose RESUME replaces the last instruction of a kind, or that has none."""
    assert isinstance(function, types.FunctionType)
    code = function.__code__
    raw = bytearray(code.co_code)
    listed = list(dis.get_instructions(code))
    for i, following in pairwise(listed):
        if i.opcode == _RESUME:  # from CPython 3.15 on an inline cache follows it, which would run as instructions
            raw[i.offset : following.offset] = bytes((_NOP, 0)) * ((following.offset - i.offset) // 2)
    for at in [i.offset for i in listed if i.opcode == place][-1:]:
        raw[at] = _RESUME
    shown = code if _ASSERTS else code.replace(co_code=bytes(raw))
    made = types.FunctionType(shown, function.__globals__, function.__name__, None, function.__closure__)
    copied: Any = functools.update_wrapper(made, function)
    del copied.__wrapped__
    return copied  # type: ignore[no-any-return]


def is_counted() -> bool:
    """Whether a tool counts calls and returns, and matches a return with the last call that it has seen.

    CPython 3.11 also reports returns from frames that have not begun.
    """
    if sys.version_info >= (3, 12):
        return False
    return getprofile() is not None or type(gettrace()).__module__.partition(".")[0] in COUNTERS


def _function(name: str, result: Any, *arguments: Any) -> Any:
    found = ctypes.pythonapi[name]  # not through an attribute, to which other code may have given other types
    found.restype, found.argtypes = result, arguments
    return found


# All three are C functions, so no trace function sees their calls: ``pause(thread())``, ``resume_tracing(thread())``.
thread: Callable[[], int] = _function("PyThreadState_Get", ctypes.c_void_p)
pause: Callable[[int], None] = _function("PyThreadState_EnterTracing", None, ctypes.c_void_p)
resume_tracing: Callable[[int], None] = _function("PyThreadState_LeaveTracing", None, ctypes.c_void_p)

__all__ = ["COUNTERS", "is_counted", "never_begins", "pause", "resume_tracing", "thread", "unseen"]
