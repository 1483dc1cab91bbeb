"""Our own code out of the sight of debuggers.

Input: functions of ours that call the user's functions; a thread whose tracing is to pause.
Output: the same functions, which begin, as CPython's tracing knows it, near their end or never; the pause.
Why: a debugger that steps into a compiled function is to land in the user's function, and to come from there back to
the user's caller. CPython says that a function begins where its RESUME instruction stands. What runs before it counts
as the making of a frame: nothing traces it, and ``f_back``, tracebacks and ``sys._getframe`` leave the frame out.
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

# Packages whose trace functions are C's, and take each return for one of a call that they have seen.
COUNTERS = frozenset({"coverage", "line_profiler", "scalene"})
_RESUME, _NOP = dis.opmap["RESUME"], dis.opmap["NOP"]
_ASSERTS = hasattr(sys, "gettotalrefcount")  # a debug build of CPython, which asserts that it sees every frame


def never_begins(function: F) -> F:
    """The function without its RESUME: on CPython 3.11 only for calls that are not counted (``is_counted``).

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
    """The function with its RESUME at its last ``pass``; what is before it returns unless ``is_counted``."""
    return _with_resume_at(function, _NOP)


# Functions that see to it themselves that they begin where calls are counted. CPython 3.12 and later say nothing of a
# function without a RESUME, whereas 3.12 reports returns before one.
unseen = begins_at_pass if sys.version_info < (3, 12) else never_begins


def _with_resume_at(function: F, place: int | None) -> F:
    """A copy whose RESUME stands in place of the last instruction of a kind, or nowhere."""
    assert isinstance(function, types.FunctionType)
    code = function.__code__
    raw = bytearray(code.co_code)
    listed = list(dis.get_instructions(code))
    for i, following in pairwise(listed):
        if i.opcode == _RESUME:  # since CPython 3.15 a cache follows it, which would run as instructions
            raw[i.offset : following.offset] = bytes((_NOP, 0)) * ((following.offset - i.offset) // 2)
    for at in [i.offset for i in listed if i.opcode == place][-1:]:
        raw[at] = _RESUME
    shown = code if _ASSERTS else code.replace(co_code=bytes(raw))
    made = types.FunctionType(shown, function.__globals__, function.__name__, None, function.__closure__)
    copied: Any = functools.update_wrapper(made, function)
    del copied.__wrapped__
    return copied  # type: ignore[no-any-return]


def is_counted() -> bool:
    """Whether calls and returns are counted by what takes a return for that of the last call that it has seen.

    CPython 3.11 tells of returns also from frames that have not begun.
    """
    if sys.version_info >= (3, 12):
        return False
    return getprofile() is not None or type(gettrace()).__module__.partition(".")[0] in COUNTERS


def _function(name: str, result: Any, *arguments: Any) -> Any:
    found = ctypes.pythonapi[name]  # not the attribute, which other code may have given other types
    found.restype, found.argtypes = result, arguments
    return found


# All three are C functions, so no trace function sees a call of them: ``pause(thread())`` and ``go_on(thread())``.
thread: Callable[[], int] = _function("PyThreadState_Get", ctypes.c_void_p)
pause: Callable[[int], None] = _function("PyThreadState_EnterTracing", None, ctypes.c_void_p)
go_on: Callable[[int], None] = _function("PyThreadState_LeaveTracing", None, ctypes.c_void_p)

__all__ = ["COUNTERS", "go_on", "is_counted", "never_begins", "pause", "thread", "unseen"]
