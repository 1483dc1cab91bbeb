"""Whether there is memory enough to compile in.

Input: nothing; the limits of the process are read. Output: how many bytes they leave, or a MemoryError. Why: with too
little memory, C libraries end the process where Python would raise an error. A new thread that finds no memory for its
own variables does so, and LLVM does. So compiling begins only where it can end; else the call runs in plain Python.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Measured: the first compile of a process maps 240 MiB, most of it LLVM's library, and 30 more compiles 20 MiB.
FIRST = 256 << 20
FURTHER = 32 << 20


def left() -> int | None:
    """How many bytes RLIMIT_AS and RLIMIT_DATA leave to this process; None without a limit, or if it is unknown."""
    if sys.platform != "linux":
        return None
    import resource

    limits = [resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    if all(limit == resource.RLIM_INFINITY for limit in limits):
        return None
    try:
        pages = Path("/proc/self/statm").read_text().split()
    except OSError:
        return None
    used = [int(pages[field]) * os.sysconf("SC_PAGE_SIZE") for field in (0, 5)]  # all mappings; data and stacks
    rest = (limit - n for limit, n in zip(limits, used, strict=True) if limit != resource.RLIM_INFINITY)
    return max(0, min(rest))


def ensure(nbytes: int) -> None:
    """Raises MemoryError where the limits leave less, also when the pool has given back what it keeps."""
    rest = left()
    if rest is None or rest >= nbytes:
        return
    memory = sys.modules.get("tcompile.backends.llvm.native.memory")
    if memory is not None:
        memory.trim()
    if (left() or 0) < nbytes:
        raise MemoryError(f"compiling takes {nbytes >> 20} MiB, and the limits of this process leave {rest >> 20}")


__all__ = ["FIRST", "FURTHER", "ensure", "left"]
