"""Start-up costs of a process before its first compiled call.

Input: the number of runs, and a backend.
Output: times of importing tcompile (and llvmlite, which it loads when the first kernel is made), and of the first call,
with an empty disk cache and with a full one.
Why: each figure needs a fresh process of its own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile

IMPORTS = """
import json, sys, time
t0 = time.perf_counter()
import numpy
t1 = time.perf_counter()
import tcompile
t2 = time.perf_counter()
x = numpy.ones((64, 64), "float32")
f = tcompile.compile(lambda x: numpy.maximum(x + 1, 0) * 2, backend={backend!r})
t3 = time.perf_counter()
f(x)
t4 = time.perf_counter()
f(x)
print(json.dumps({{
    "numpy import": (t1 - t0) * 1e3, "tcompile import": (t2 - t1) * 1e3, "first call": (t4 - t3) * 1e3,
    "first call, compile": f.entries[0].compile_ms, "to the first result": (t4 - t1) * 1e3,
}}))
"""


def measure(runs: int, backend: str = "auto") -> dict[str, dict[str, float]]:
    """For each figure in ms: median, least and most of ``runs`` fresh processes.

    One more process runs before them, so that bytecode is cached and files are in memory. ``tcompile import`` is what
    importing tcompile adds once NumPy is there; ``first call`` is the whole first call of a compiled function,
    loading LLVM included, and ``to the first result`` all that comes after importing NumPy. ``from disk`` stands where
    the machine code was found in the cache on disk, which is empty otherwise. Raises RuntimeError with the process's
    own error where it fails.
    """
    seen: dict[str, list[float]] = {}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="bench-cache-") as kept:
        for run in range(runs + 1):
            with tempfile.TemporaryDirectory(prefix="bench-cache-") as empty:
                for folder, mark in ((empty, ""), (kept, ", from disk")):
                    found = _process(backend, {**environment, "TCOMPILE_CACHE_DIR": folder})
                    for name, value in found.items() if run else ():
                        if not mark or "import" not in name:
                            seen.setdefault(name + mark, []).append(value)
    return {
        name: {"median": statistics.median(values), "least": min(values), "most": max(values)}
        for name, values in seen.items()
    }


def _process(backend: str, environment: dict[str, str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS.format(backend=backend)], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
