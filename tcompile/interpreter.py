"""Which interpreters tcompile compiles for.

Input: the interpreter of this process. Output: ``refusal``, the reason why nothing is compiled in it, or None. Why:
bytecode, frames and object layouts belong to one version and one build of CPython. Any other interpreter runs every
function as it is, which is never wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

OLDEST, NEWEST = (3, 11), (3, 15)  # the versions of CPython whose bytecode and objects are known


def is_free_threaded() -> bool:
    """Whether this is the build of CPython in which threads run Python code at the same time.

    Its objects have other heads, and its frames hold references that are not counted; with its lock switched on, too.
    """
    is_locked: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    return "free-threading build" in sys.version or not is_locked()  # sys.abiflags is not everywhere


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
