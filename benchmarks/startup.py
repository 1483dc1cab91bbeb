"""What a process pays before its first compiled call.

Leaves: times of importing tcompile (and llvmlite, which it loads when the first kernel is made) in fresh processes,
and the first call in a fresh process. Exists apart from harness.py because each figure needs a process of its own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

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
    "first call, compile": f.entries[0].compile_ms,
}}))
"""


def measure(runs: int, backend: str = "auto") -> dict[str, dict[str, float]]:
    """For each figure in ms: median, least and most of ``runs`` fresh processes.

    One more process runs before them, so that bytecode is cached and files are in memory. ``tcompile import`` is what
    importing tcompile adds once NumPy is there; ``first call`` is the whole first call of a compiled function,
    loading LLVM included. Raises RuntimeError with the process's own error where it fails.
    """
    seen: dict[str, list[float]] = {}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for run in range(runs + 1):
        done = subprocess.run(
            [sys.executable, "-c", IMPORTS.format(backend=backend)], capture_output=True, text=True, env=environment
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        if run:
            for name, value in json.loads(done.stdout.splitlines()[-1]).items():
                seen.setdefault(name, []).append(value)
    return {
        name: {"median": statistics.median(values), "least": min(values), "most": max(values)}
        for name, values in seen.items()
    }
