"""The bounds of a thread's stack: calls of compiled functions raise RecursionError before it overflows.

Input: the calling thread.
Output: the addresses between which a call may begin, as words that machine code compares with its stack pointer; and a
function for calls from Python.
Why: every call of a compiled function takes some of the C stack, as calls of all callables but plain functions do.
CPython 3.11 only counts them: beyond a raised recursion limit the process would crash.
"""

from __future__ import annotations

import array
from collections.abc import Callable

from tcompile import system

_RESERVE = 1 << 20  # bytes reserved for callees: compilers, libraries
_SHARE = 3  # the reserved share of a small stack
_ANYWHERE = (0, (1 << 64) - 1, 0)
# For the thread that called last: the addresses between which calls may begin, and the end of its stack. Coroutines of
# other languages, whose stack is not the thread's own, may call from anywhere else.
room = array.array("Q", [1, 0, 0])


def _unchecked() -> None:
    """Does nothing: nothing has been compiled."""


check: Callable[[], None] = _unchecked  # raises RecursionError: ``check_stack`` in call.ll, as soon as that is loaded


def measure() -> None:
    """Sets ``room`` for this thread. If the platform does not report its stack, calls may begin anywhere."""
    lowest, size = system.stack_bounds()
    bounds = (lowest + min(_RESERVE, size // _SHARE), lowest + size, lowest) if size else _ANYWHERE
    room[:] = array.array("Q", bounds)  # in one assignment: other threads measure as well


__all__ = ["check", "measure", "room"]
