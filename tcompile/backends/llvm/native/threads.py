"""The thread pool that runs the chunks of one kernel launch.

Input: a kernel's address, its words, the number of items, and the grain.
Output: the OR of the statuses of all chunks.
Why: a region has to start and end within a microsecond, on threads that Python never sees.

A launch is one *region* of chunks. A thread finds work in one 64-bit ticket (generation, end, next): the thread that
takes the chunk at ``next`` or the one before ``end`` by compare-and-swap owns it, the calling thread included. The
caller and every other worker begin at the start, the rest at the end. So in launch after launch over the same arrays a
thread finds them in its own caches: three stencils took 0.75 to 0.9 of the time. The region is over when its chunks are
done, not when all workers have arrived: a worker that wakes up late finds no chunk and goes back to sleep. The
description of the region is read only after a chunk was claimed, and a region cannot end while a claimed chunk is
unfinished. So it always belongs to the chunk, even if the ticket's generation has wrapped around.

A second thread that launches while a region runs does all its chunks itself. Results never depend on which thread runs
a chunk: chunk boundaries are multiples of the grain, and workers take over the caller's rounding mode.

Threads start, sleep and wake by functions of the operating system's layer (``tcompile/system``). On Linux, the caller
first sends the workers that it wakes to other processors than its own. Linux may put them on that one, since idle
virtual processors look busy, and there they would wait while the caller does all the work.

Workers are started by the first region that wants them. They spin for a tenth of a millisecond or two after their last
chunk, then wait in the kernel. They are never joined: the end of the process ends them, and their code is never
unloaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import platform
from functools import cache
from pathlib import Path

from tcompile import system
from tcompile.backends.llvm.native import target


def _ir() -> str:
    processor = platform.machine()
    part = target.source("pool_x86.ll" if processor in ("x86_64", "AMD64") else "pool_arm.ll")
    return target.source("grains.ll") + part + target.source("pool.ll") + system.text("threads", processor)


def _default_threads() -> int:
    for variable in ("TCOMPILE_NUM_THREADS", "OMP_NUM_THREADS"):
        # OMP_NUM_THREADS may be a list, one number a nesting level.
        text = os.environ.get(variable, "").split(",")[0].strip()
        if text.isdecimal() and int(text) > 0:
            return min(int(text), _MOST)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # A container may have all processors, but only so many seconds of them in every second.
    with contextlib.suppress(OSError, ValueError):  # no such file, or no quota: "max 100000"
        quota, period = map(int, Path("/sys/fs/cgroup/cpu.max").read_text().split())
        allowed = min(allowed, max(1, math.ceil(quota / period)))
    return min(allowed, _MOST)


_MOST = 1024
_chosen: int | None = None


@cache
def code() -> target.MachineCode:
    """The pool's machine code; ``tc_parallel`` has the signature i32(kernel, words, items, grain)."""
    loaded = target.keep_forever(target.load(_ir(), ["tc_parallel", "tc_set_workers", "tc_reset_threads"], opt=0))
    reset = ctypes.PYFUNCTYPE(None)(loaded["tc_reset_threads"])
    reset()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reset)
    _set_workers(loaded, num_threads() - 1)
    return loaded


def _set_workers(loaded: target.MachineCode, n: int) -> None:
    ctypes.PYFUNCTYPE(None, ctypes.c_int)(loaded["tc_set_workers"])(n)


def num_threads() -> int:
    """The number of threads that a kernel may use, the calling one included.

    The argument of ``set_num_threads``, else TCOMPILE_NUM_THREADS, else OMP_NUM_THREADS, else the number of processors
    that this process may use.
    """
    global _chosen
    if _chosen is None:
        _chosen = _default_threads()
    return _chosen


def set_num_threads(n: int) -> None:
    """Lets kernels use ``n`` threads, the calling one included, from the next launch on, process-wide.

    Raises ValueError where ``n`` is not in 1 .. 1024.
    """
    global _chosen
    if not isinstance(n, int) or not 1 <= n <= _MOST:
        raise ValueError(f"the number of threads is an int from 1 to {_MOST}, not {n!r}")
    _chosen = n
    if code.cache_info().currsize:
        _set_workers(code(), n - 1)
