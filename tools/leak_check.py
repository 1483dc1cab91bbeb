"""Compiles and resets repeatedly, and checks that memory stays flat.

Input: a number of cycles.
Output: memory in use along the way, as text and as JSON; the exit status is 0 if it stayed flat.
Why: notebooks redefine functions for days. A short run is among the tests; the long one is run by hand:

    python tools/leak_check.py --cycles 10000 --json leaks.json

A cycle of ``reset`` compiles a function, calls it and calls ``tcompile.reset``. One of ``redefine`` runs a cell that
defines a function anew, with another body, and calls it; one of ``helper`` does so with a callee of a compiled
function. Each cycle calls the function four times, so that the last calls run in machine code.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tcompile

X = np.linspace(-1.0, 1.0, 8)
CELL = """\
@tcompile.compile(backend={backend!r})
def f(x, k={number}):
    y = np.maximum(x * 2.{number} + k, 0)
    {extra}
    return (y - x).sum() + {number}
for _ in range(4):
    f(X)
"""
HELPER = """\
def helper(x):
    return x * {number} + {number}.5
for _ in range(4):
    f(X)
"""
MAIN = """\
def helper(x):
    return x

@tcompile.compile(backend={backend!r})
def f(x):
    y = helper(x)
    {extra}
    return y + 1
"""
EXTRA = {"whole": "pass", "broken": "tcompile.graph_break()"}
SAMPLES = 20
BLOCK = 64  # estimated bytes of a Python memory block: tracing would keep the name of each cell's file
FLAT = 32.0  # bytes per cycle that do not count: the granularity of the allocators, spread over the cycles


def cycle(name: str, backend: str, kind: str) -> Callable[[int], None]:
    """One cycle, by its number."""
    names: dict[str, Any] = {"np": np, "tcompile": tcompile, "X": X}
    extra = EXTRA[kind]

    def execute(source: str, number: int) -> None:
        text = source.format(backend=backend, number=number, extra=extra)
        exec(compile(text, f"<cell {number}>", "exec"), names)

    if name == "redefine":
        return lambda number: execute(CELL, number)
    if name == "helper":
        execute(MAIN, 0)
        return lambda number: execute(HELPER, number)
    execute(CELL, 0)

    def reset(number: int) -> None:
        for _ in range(4):
            names["f"](X)
        tcompile.reset()

    return reset


def resident() -> int:
    """Returns the bytes of this process in memory; 0 if the system does not report them."""
    try:
        import resource

        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def measure(name: str, backend: str, kind: str, cycles: int, warm_up: int) -> dict[str, Any]:
    """Returns memory along ``cycles`` cycles, and the growth per cycle in their second half."""
    run = cycle(name, backend, kind)
    for number in range(1, 1 + warm_up):
        run(number)
    gc.collect()
    samples, started = [], time.perf_counter()
    for number in range(cycles + 1):
        if number % max(1, cycles // SAMPLES) == 0:
            gc.collect()
            samples.append((number, resident(), sys.getallocatedblocks() * BLOCK))
        run(1 + warm_up + number)
    milliseconds = (time.perf_counter() - started) * 1e3 / cycles
    late = np.array(samples[len(samples) // 2 :], float)
    growth = {
        what: float(np.polyfit(late[:, 0], late[:, column], 1)[0])
        for column, what in ((1, "resident"), (2, "python"))
    }  # fmt: skip
    return {
        "name": name, "backend": backend, "program": kind, "cycles": cycles, "milliseconds": round(milliseconds, 3),
        "bytes_a_cycle": {what: round(value, 1) for what, value in growth.items()},
        "flat": all(value < FLAT for value in growth.values()), "samples": samples,
    }  # fmt: skip


def main() -> int:
    """Runs as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cycles", type=int, default=10_000)
    parser.add_argument("--warm-up", type=int, default=600)
    parser.add_argument("--only", choices=["reset", "redefine", "helper"])
    parser.add_argument("--backend", choices=["eager", "llvm"])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # the recompile limit is reached
    results = []
    for name in [given.only] if given.only else ["reset", "redefine", "helper"]:
        for backend in [given.backend] if given.backend else ["eager", "llvm"]:
            for kind in EXTRA:
                result = measure(name, backend, kind, given.cycles, given.warm_up)
                results.append(result)
                shown = {key: value for key, value in result.items() if key != "samples"}
                print(json.dumps(shown), flush=True)
    if given.json:
        about = {"python": platform.python_version(), "machine": platform.machine(), "results": results}
        given.json.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return 0 if all(result["flat"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
