"""Our own code out of the sight of debuggers, profilers and coverage tools.

Input: a function of ours with a line ``pass`` in it; a thread whose tracing is to pause.
Output: the same function, which begins, as CPython's tracing knows it, at that line; the pause, by its begin and its end.
Why: a debugger that steps into a compiled function is to land in the user's function, and not in ours. CPython says that
a function begins where its RESUME instruction stands. What runs before it counts as the making of a frame: nothing
traces it, and tracebacks and ``sys._getframe`` leave the frame out until then.
"""

from __future__ import annotations

import ctypes
import dis
import types
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_RESUME, _NOP = dis.opmap["RESUME"], dis.opmap["NOP"]
_PASS = len("pass")


def begins_at_pass(function: F) -> F:
    """Moves the function's RESUME to its line ``pass``. Where that is not found, as without columns, nothing changes.

    >>> import sys
    >>> @begins_at_pass
    ... def inner():
    ...     early = sys._getframe().f_code.co_name
    ...     pass  # begins here
    ...     return early, sys._getframe().f_code.co_name
    >>> def outer():
    ...     return inner()
    >>> outer()
    ('outer', 'inner')
    """
    assert isinstance(function, types.FunctionType)
    code = function.__code__
    listed = list(dis.get_instructions(code))
    starts = [i.offset for i in listed if i.opcode == _RESUME]
    marks = [i.offset for i in listed if i.opcode == _NOP and _is_pass(i.positions)]
    if len(starts) == len(marks) == 1:
        raw = bytearray(code.co_code)
        raw[starts[0]], raw[marks[0]] = _NOP, _RESUME
        function.__code__ = code.replace(co_code=bytes(raw))
    return function


def _is_pass(place: dis.Positions | None) -> bool:
    if place is None or place.col_offset is None or place.end_col_offset is None:
        return False
    return place.lineno == place.end_lineno and place.end_col_offset - place.col_offset == _PASS


def _function(name: str, result: Any, *arguments: Any) -> Any:
    found = ctypes.pythonapi[name]  # not the attribute, which other code may have given other types
    found.restype, found.argtypes = result, arguments
    return found


# All three are functions of C, so that calling them is seen by nobody: ``pause(thread())`` and ``go_on(thread())``.
thread: Callable[[], int] = _function("PyThreadState_Get", ctypes.c_void_p)
pause: Callable[[int], None] = _function("PyThreadState_EnterTracing", None, ctypes.c_void_p)
go_on: Callable[[int], None] = _function("PyThreadState_LeaveTracing", None, ctypes.c_void_p)

__all__ = ["begins_at_pass", "go_on", "pause", "thread"]
