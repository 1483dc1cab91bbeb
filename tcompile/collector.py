"""No cycle collection while something is compiled.

Enters and leaves nothing: ``no_collection`` is a ``with`` block. Why: compiling makes objects by the
thousand, so that the collector would start in the midst of it, look through all that the process holds (30 ms where
large libraries are loaded, several times what the compile takes), and find next to nothing. What is new it would look
through right after the block: who waits in it for something else has that done meanwhile (``catch_up``).

Generation 0 is what is new in all versions: also in the first releases of CPython 3.14, whose collector took the old
objects in increments. Later ones, and 3.15, have three generations again, as 3.13 does.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

_stopped = False  # by a block


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """A block in which the cycle collector does not run by itself; afterwards it is as it was.

    Where several threads are in such blocks, the collector is back when the thread that has stopped it leaves.
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
    """In a forked child, where no thread is left that would leave its block."""
    global _stopped
    if _stopped:
        _stopped = False
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)


def catch_up() -> None:
    """Collects what is new, where a block has stopped the collector and it would do so after the block."""
    if _stopped and 0 < gc.get_threshold()[0] < gc.get_count()[0]:
        gc.collect(0)


__all__ = ["catch_up", "no_collection"]
