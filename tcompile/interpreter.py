"""The Python interpreters that tcompile supports.

Input: the interpreter of this process.
Output: ``refusal``, the reason why nothing is compiled in it, or None.
Why: bytecode, frames and object layouts differ between versions and builds of CPython. Any other interpreter runs every
function unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

OLDEST, NEWEST = (3, 11), (3, 15)  # versions of CPython whose bytecode and object layouts are known


def is_free_threaded() -> bool:
    """Whether this is CPython's free-threaded build, in which threads run Python code in parallel.

    Its object headers differ, and its frames hold uncounted references, even with the lock enabled.
    """
    is_locked: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return "free-threading build" in sys.version or not is_locked()  # sys.abiflags does not exist on every system


def _refusal() -> str | None:
    if sys.implementation.name != "cpython":
        return f"tcompile needs CPython, and this is {sys.implementation.name}"
    if sys.version_info[:2] > NEWEST:
        oldest, newest, this = (f"{major}.{minor}" for major, minor in (OLDEST, NEWEST, sys.version_info[:2]))
        return f"tcompile knows CPython {oldest} to {newest}, and this is {this}"
    if is_free_threaded():
        return "tcompile does not support the free-threaded build of CPython"
    return None


refusal = _refusal()

__all__ = ["NEWEST", "OLDEST", "is_free_threaded", "refusal"]
