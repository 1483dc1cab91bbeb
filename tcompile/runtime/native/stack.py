"""Where the stack of a thread ends, so that calls of compiled functions end in RecursionError before it does.

Input: the thread that calls. Output: the addresses between which a call may begin, as words that machine code compares
with its own place, and the same as a function for calls that are Python's. Why: every call of a compiled
function takes some of C's stack, as calls of all callables but plain functions do, and CPython 3.11 counts only how
many there are: beyond a raised recursion limit the process would end.
"""

from __future__ import annotations

import array
from collections.abc import Callable

from tcompile import system

_RESERVE = 1 << 20  # bytes for what a call may lead to: compilers, libraries
_SHARE = 3  # the part of a small stack that is reserved
_ANYWHERE = (0, (1 << 64) - 1, 0)
# Of the thread that called last: between which addresses calls may begin, and where its stack ends. Who has a stack
# that is not the thread's own, as coroutines of other languages do, may call from anywhere else.
room = array.array("Q", [1, 0, 0])


def _unchecked() -> None:
    """Nothing has been compiled."""


check: Callable[[], None] = _unchecked  # raises RecursionError: ``check_stack`` in call.ll, as soon as that is loaded


def measure() -> None:
    """Sets ``room`` for this thread. Where the platform does not tell, calls may begin anywhere."""
    lowest, size = system.stack_bounds()
    bounds = (lowest + min(_RESERVE, size // _SHARE), lowest + size, lowest) if size else _ANYWHERE
    room[:] = array.array("Q", bounds)  # at once: other threads measure as well


__all__ = ["check", "measure", "room"]
