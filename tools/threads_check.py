"""Threads that call one compiled function with arrays of different sizes; checks every result and the memory.

Input: a number of threads and of seconds.
Output: the number of calls, wrong results, and memory in use along the way, as text and as JSON. The exit status is 0
if all were right and memory stayed flat.
Why: a race shows only under load. A short run is among the tests; the long one is run by hand:

    python tools/threads_check.py --threads 8 --seconds 60 --json threads.json

One function is captured whole, the other has a graph break. So all paths of a call are covered: entries in machine
code, regions, kernels on the pool's threads, recompiles for new sizes, and, on request, ``tcompile.reset`` during
calls.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tcompile

SIZES = (1, 2, 3, 7, 16, 33, 100, 255, 256, 1000, 4097, 30_000, 200_000)
SAMPLES = 40
# bytes by which memory may differ between the two halves of a run: the granularity of pools and allocators
FLAT = 2 << 20


def whole(x: Any, k: Any) -> Any:
    """Captured as one graph."""
    y = np.maximum(x * 2 + k, 0) - x
    return y, y.sum(), (y * y).max()


def broken(x: Any, k: Any) -> Any:
    """Has a graph break in the middle."""
    y = np.maximum(x * 2 + k, 0)
    tcompile.graph_break()
    return y - x, y.sum()


FUNCTIONS: dict[str, Callable[..., Any]] = {"whole": whole, "broken": broken}


def right(seen: Any, wanted: Any) -> bool:
    """Whether these results are equal: elements bit by bit, sums up to rounding."""
    return all(
        type(a) is type(b) and np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-12, atol=1e-9)
        for a, b in zip(seen, wanted, strict=True)
    )


def resident() -> int:
    """Returns the bytes of this process in memory; 0 if the system does not report them."""
    try:
        import resource

        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def measure(name: str, threads: int, seconds: float, reset_every: float = 0.0) -> dict[str, Any]:
    """Runs ``threads`` threads that call one function for ``seconds``; every ``reset_every`` all code is discarded."""
    function = FUNCTIONS[name]
    compiled = tcompile.compile(function)
    inputs = [np.random.default_rng(size).standard_normal(size) for size in SIZES]
    wanted = {(i, k): function(x, k) for i, x in enumerate(inputs) for k in (1, 2.5)}
    wrong: list[str] = []
    calls = [0] * threads
    ends = time.monotonic() + seconds

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        while time.monotonic() < ends and not wrong:
            for at in rng.integers(0, len(SIZES), 10).tolist():
                k = (1, 2.5)[calls[number] % 2]
                try:
                    seen = compiled(inputs[at], k)
                    if not right(seen, wanted[at, k]):
                        wrong.append(f"size {SIZES[at]}, k {k}: {seen!r}"[:500])
                except Exception as error:
                    wrong.append(f"size {SIZES[at]}, k {k}: {type(error).__name__}: {error}")
                calls[number] += 1

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    samples: list[int] = []
    forget = time.monotonic() + reset_every
    while any(thread.is_alive() for thread in running):
        time.sleep(seconds / SAMPLES)
        samples.append(resident())
        if reset_every and time.monotonic() > forget:
            forget = time.monotonic() + reset_every
            tcompile.reset()
    for thread in running:
        thread.join()
    gc.collect()
    half = samples[len(samples) // 4 : len(samples) // 2], samples[-(len(samples) // 4) :]
    grown = int(np.median(half[1]) - np.median(half[0])) if all(half) else 0
    return {
        "function": name, "threads": threads, "seconds": seconds, "reset_every": reset_every, "calls": sum(calls),
        "wrong": wrong[:5], "entries": len(compiled.entries), "grown_bytes": grown, "flat": grown < FLAT,
        "samples": samples,
    }  # fmt: skip


def main() -> int:
    """Runs as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", choices=list(FUNCTIONS))
    parser.add_argument("--reset-every", type=float, default=0.0, help="seconds after which all code is forgotten")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    results = []
    for name in [given.only] if given.only else list(FUNCTIONS):
        result = measure(name, given.threads, given.seconds, given.reset_every)
        results.append(result)
        print(json.dumps({key: value for key, value in result.items() if key != "samples"}), flush=True)
    if given.json:
        about = {"python": platform.python_version(), "machine": platform.machine(), "results": results}
        given.json.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return 0 if all(result["flat"] and not result["wrong"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
