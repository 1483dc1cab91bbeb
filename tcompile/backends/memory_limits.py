"""The check that a compile has enough memory.

Input: nothing; the limits of the process are read.
Output: how many bytes they leave, or a MemoryError.
Why: with too little memory, C libraries end the process where Python would raise an error.

A new thread without memory for its thread-local variables ends the process, and LLVM does. So a compile begins only
where it can finish; else the call runs in plain Python.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Measured: the first compile of a process maps 240 MiB, most of it LLVM's library, and 30 more compiles 20 MiB.
FIRST = 256 << 20
FURTHER = 32 << 20


def available() -> int | None:
    """The bytes that RLIMIT_AS and RLIMIT_DATA leave to this process; None without a limit, or if it is unknown."""
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
    """Raises MemoryError where the limits leave less, also when the pool has freed its cached blocks."""
    rest = available()
    if rest is None or rest >= nbytes:
        return
    memory = sys.modules.get("tcompile.backends.llvm.native.memory")
    if memory is not None:
        memory.trim()
    if (available() or 0) < nbytes:
        raise MemoryError(f"compiling takes {nbytes >> 20} MiB, and the limits of this process leave {rest >> 20}")


__all__ = ["FIRST", "FURTHER", "available", "ensure"]
