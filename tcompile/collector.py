"""Suspends the cycle collector during compilation.

Input: a ``with`` block.
Output: no collection by itself until the block ends; then the collector is as before.
Why: compiling allocates thousands of objects, which would start a full collection. That takes 30 ms in a process with
large libraries, several times the compile, and frees next to nothing.

After the block the collector would traverse the new objects; call `catch_up()` while blocked, to collect generation 0.

Generation 0 holds the new objects in all versions. The first releases of CPython 3.14 collected old objects in
increments; later ones and 3.15 have three generations, as 3.13.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

_stopped = False  # whether a block has stopped it


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Returns a block in which the cycle collector does not start by itself; afterwards it is as before.

    If several threads are in such blocks, the collector restarts when the thread that stopped it leaves.
    """
    global _stopped
    collecting = gc.isenabled()
    try:
        _stopped = _stopped or collecting
        gc.disable()
        yield
    finally:
        if collecting:
            _stopped = False
            gc.enable()


def _start_again() -> None:
    """Restarts the collector in a forked child, where the thread that stopped it does not exist."""
    global _stopped
    if _stopped:
        _stopped = False
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)


def catch_up() -> None:
    """Collects generation 0 now, if a block has stopped the collector."""
    if _stopped and 0 < gc.get_threshold()[0] < gc.get_count()[0]:
        gc.collect(0)


__all__ = ["catch_up", "no_collection"]
