"""Loops beside NumPy and Numba: ``python -m benchmarks.loops [--seconds 3] [--only jacobi,heat] [--json FILE]``.

Enters: time steps over stencils, and loops over elements, as one writes them. Leaves: a table, and JSON: medians of
runs in turn on the same data, the first compile, and the compile for another number of rounds. Exists to see that
compile times do not depend on the rounds, and what a round costs. Results are checked before anything is timed. Numba
compiles the same source where it can (``numba.njit``); without Numba its columns are empty.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tcompile


def jacobi(u, steps):
    for _ in range(steps):
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2])
    return u


def heat(u, steps):
    for _ in range(steps):
        v = u.copy()
        c = v[1:-1, 1:-1, 1:-1]
        u[1:-1, 1:-1, 1:-1] = c + 0.1 * (
            v[2:, 1:-1, 1:-1] + v[:-2, 1:-1, 1:-1] + v[1:-1, 2:, 1:-1] + v[1:-1, :-2, 1:-1]
            + v[1:-1, 1:-1, 2:] + v[1:-1, 1:-1, :-2] - 6 * c
        )  # fmt: skip
    return u


def fdtd(h, steps):
    ex, ey, hz = h * 0, h * 0, h
    for _ in range(steps):
        ey[1:, :] = ey[1:, :] - 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] = ex[:, 1:] - 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] = hz[:-1, :-1] - 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return hz


def two_buffers(u, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = 0.5 * u[1:-1] + 0.25 * (u[2:] + u[:-2])
        u, v = v, u
    return u


def power_iteration(m, steps):
    x = m[0]
    for _ in range(steps):
        y = (m * x).sum(axis=1)
        x = y / np.sqrt((y * y).sum())
    return x


def shortest_paths(d, steps):
    n = d.shape[0]
    for k in range(steps):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def gauss_seidel(u, steps):
    n, m = u.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def thomas(a, steps):
    n = a.shape[1]
    b, c, d = a[0] + 4, a[1], a[2]
    for i in range(1, n):
        w = a[3, i] / b[i - 1]
        b[i] = b[i] - w * c[i - 1]
        d[i] = d[i] - w * d[i - 1]
    d[n - 1] = d[n - 1] / b[n - 1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]
    return d


@dataclass(frozen=True)
class Case:
    """A function of an array and a number of rounds."""

    function: Callable[[Any, int], Any]
    shape: tuple[int, ...]
    steps: int
    tiny: tuple[int, ...]

    def array(self, shape: tuple[int, ...]) -> Any:
        """Its argument."""
        return np.random.default_rng(0).random(shape)


CASES = [
    Case(jacobi, (500, 500), 1000, (6, 7)), Case(heat, (60, 60, 60), 1000, (5, 6, 5)),
    Case(fdtd, (400, 400), 1000, (6, 7)), Case(two_buffers, (10_000,), 1000, (9,)),
    Case(power_iteration, (64, 64), 1000, (6, 6)), Case(shortest_paths, (200, 200), 200, (7, 7)),
    Case(gauss_seidel, (200, 200), 100, (6, 7)), Case(thomas, (4, 100_000), 1, (4, 40)),
]  # fmt: skip


def clock(call: Callable[[], Any]) -> float:
    """The milliseconds that one call takes."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def measure(case: Case, shape: tuple[int, ...], steps: int, seconds: float) -> dict[str, Any]:
    """One row. Raises AssertionError where a contestant computes something else than NumPy."""
    tcompile.reset()
    ours = tcompile.compile(case.function)
    contestants: dict[str, Callable[[Any, int], Any]] = {"numpy": case.function, "tcompile": ours}
    try:
        import numba  # type: ignore[import-not-found]

        contestants["numba"] = numba.njit(case.function)
    except ImportError:
        pass
    row: dict[str, Any] = {"name": case.function.__name__, "shape": shape, "steps": steps}
    want = case.function(case.array(shape), steps)
    for name, function in list(contestants.items()):
        if name != "numpy":
            try:
                got: list[Any] = []
                row[f"{name} first, ms"] = clock(lambda f=function, g=got: g.append(f(case.array(shape), steps)))
            except Exception as error:  # Numba refuses what it does not know
                row[f"{name} refuses"] = str(error).splitlines()[0]
                del contestants[name]
                continue
            np.testing.assert_allclose(got[0], want, rtol=1e-9, err_msg=f"{name} on {row['name']}")
    times: dict[str, list[float]] = {name: [] for name in contestants}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["numpy"]) < 3:
        for name, function in contestants.items():
            given = case.array(shape)
            times[name].append(clock(lambda f=function, x=given: f(x, steps)))
    for name, found in times.items():
        row[f"{name}, ms"] = statistics.median(found)
    more = {"compile, ms": steps, "compile for 10 times as many rounds, ms": 10 * steps}
    for compiles, rounds in list(more.items())[: 1 if case.steps < 1000 else 2]:
        tcompile.reset()
        fresh = tcompile.compile(case.function, backend="llvm")
        fresh(case.array(case.tiny if rounds > steps else shape), rounds)
        row[compiles] = sum(entry.compile_ms for entry in fresh.entries)
    row["breaks"] = [broke.reason.id for broke in ours.breaks]
    return row


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each program")
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--tiny", action="store_true", help="small arrays, to see that it works")
    parser.add_argument("--json", default="", help="where the rows go")
    given = parser.parse_args(arguments)
    rows = []
    for case in CASES:
        if given.only and case.function.__name__ not in given.only.split(","):
            continue
        shape, steps = (case.tiny, 40 if case.steps > 1 else 1) if given.tiny else (case.shape, case.steps)
        if case.function is shortest_paths:
            steps = shape[0]
        row = measure(case, shape, steps, given.seconds)
        rows.append(row)
        ratio = row["numpy, ms"] / row["tcompile, ms"]
        numba = f"{row['numba, ms']:10.2f}" if "numba, ms" in row else " " * 10
        print(
            f"{row['name']:16} numpy {row['numpy, ms']:10.2f}  tcompile {row['tcompile, ms']:10.2f}  x{ratio:8.1f}  "
            f"numba {numba}  first {row['tcompile first, ms']:8.1f}  compile {row['compile, ms']:7.1f}",
            flush=True,
        )
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return rows


if __name__ == "__main__":
    main()
