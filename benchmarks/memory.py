"""Peak memory of one call, NumPy's and tcompile's.

Input: names of kernels, a shape.
Output: for each kernel and dtype the growth of the process beyond its inputs, in MB, at the call's peak: the result and
all temporary arrays.
Why: only the system knows what a process really holds, and only while nothing else runs in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

CHILD = """
import json, sys
import numpy as np
from benchmarks.kernels import KERNELS

def held(what):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what)) / 1024

who, names, shape, backend = json.loads(sys.argv[1])
if who == "tcompile":
    import tcompile
found = {}
for name in names:
    for dtype in ("float32", "float64"):
        kernel = KERNELS[name]
        function = kernel.numpy
        if who == "tcompile":
            function = tcompile.compile(function, backend=backend)
        inputs = kernel.inputs(tuple(shape), dtype)
        for _ in range(2):  # compiles, and touches the pages of code
            function(*inputs)
        if who == "tcompile":
            tcompile.memory.trim()
        before = held("VmRSS")
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
        result = function(*inputs)
        found[name + " " + dtype] = held("VmHWM") - before
        del result
print(json.dumps(found))
"""


def measure(names: Sequence[str], shape: tuple[int, int], backend: str) -> list[dict[str, Any]]:
    """MB for each kernel and dtype. Empty where the system does not report it (Linux does).

    Raises RuntimeError with the process's own error where it fails.
    """
    if sys.platform != "linux":
        return []
    seen: dict[str, dict[str, float]] = {}
    for who in ("numpy", "tcompile"):
        done = subprocess.run(
            [sys.executable, "-c", CHILD, json.dumps([who, list(names), list(shape), backend])],
            capture_output=True, text=True,
            env={**os.environ, "TCOMPILE_CACHE_DIR": ""},  # nothing is kept for later compiles, which must be cold
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        seen[who] = json.loads(done.stdout.splitlines()[-1])
    return [
        {"kernel": key.split()[0], "dtype": key.split()[1], "numpy_mb": seen["numpy"][key], "tcompile_mb": ours}
        for key, ours in seen["tcompile"].items()
    ]
