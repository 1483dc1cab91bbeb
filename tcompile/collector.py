"""No cycle collection while something is compiled.

Enters and leaves nothing: ``no_collection`` is a ``with`` block. Exists because compiling makes objects by the
thousand, so that the collector would start in the midst of it, look through all that the process holds (30 ms where
large libraries are loaded, several times what the compile takes), and find next to nothing.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """A block in which the cycle collector does not run by itself; afterwards it is as it was.

    Where several threads are in such blocks, the collector is back when the thread that has stopped it leaves.
    """
    collecting = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collecting:
            gc.enable()


__all__ = ["no_collection"]
