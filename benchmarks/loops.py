"""Loops beside NumPy and Numba: ``python -m benchmarks.loops [--seconds 3] [--only jacobi,heat] [--out FOLDER]``.

Input: time steps over stencils, iterations until convergence, and scalar loops, as users write them.
Output: a table, and with ``--out`` JSON, a page and a picture: medians of runs in turn on the same data, the time of a
cold compile, and of the compile for another trip count.
Why: compile times must not depend on the trip count, and iterations must be fast.

Results are checked before anything is timed. Numba compiles the same source where it can (``numba.njit``), and for
large stencils loops written for it (``loop_forms``), on one thread and on all; without Numba its columns are empty.

A cold compile is the first call of a new function, less a later call, in a process that has compiled before, without a
disk cache: the median of several, in processor time and by the clock.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import random
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tcompile
from benchmarks.peers import fresh

FEW_ITERATIONS = 10  # the trip count for compiles
SLOW_MS = 500.0  # NumPy's time, from which on it is timed once; from a tenth of it on, three times
FEWEST = 9  # repetitions of the others
COLD, COLD_NUMBA = 15, 3  # compiles of each function


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


def wave(u, steps):
    p = u.copy()
    for _ in range(steps):
        q = 2 * u - p
        q[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        p, u = u, q
    return u


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


def cavity(a, steps):
    u, v, p = a[0] * 0, a[1] * 0, a[2] * 0
    for _ in range(steps):
        b = 10 * ((u[1:-1, 2:] - u[1:-1, :-2]) + (v[2:, 1:-1] - v[:-2, 1:-1])) - (u[1:-1, 2:] - u[1:-1, :-2]) ** 2
        for _ in range(10):
            q = p.copy()
            p[1:-1, 1:-1] = 0.25 * (q[1:-1, 2:] + q[1:-1, :-2] + q[2:, 1:-1] + q[:-2, 1:-1]) - 0.01 * b
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        x, y = u.copy(), v.copy()
        cx, cy = x[1:-1, 1:-1], y[1:-1, 1:-1]
        along = 0.01 * cx * (cx - x[1:-1, :-2]) + 0.01 * cy * (cx - x[:-2, 1:-1])
        across = 0.01 * cx * (cy - y[1:-1, :-2]) + 0.01 * cy * (cy - y[:-2, 1:-1])
        u[1:-1, 1:-1] = cx - along - 0.01 * (p[1:-1, 2:] - p[1:-1, :-2])
        v[1:-1, 1:-1] = cy - across - 0.01 * (p[2:, 1:-1] - p[:-2, 1:-1])
        u[0, :], u[:, 0], u[-1, :] = 0, 0, 1
        v[0, :], v[:, 0] = 0, 0
    return u


def edit_distance(a, m):
    n = len(a)
    d = np.zeros((n + 1, m + 1), np.int64)
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = 0 if a[i - 1] == a[j // 2] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d


def alignment(a, m):
    n = len(a)
    s = np.zeros((n + 1, m + 1), np.int64)
    for i in range(1, n + 1):
        s[i, 0] = -2 * i
    for j in range(1, m + 1):
        s[0, j] = -2 * j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            pair = s[i - 1, j - 1] + (2 if a[i - 1] == a[-j] else -1)
            s[i, j] = max(pair, s[i - 1, j] - 2, s[i, j - 1] - 2)
    return s


def mandelbrot(a, limit):
    n, m = a.shape
    out = np.zeros((n, m), np.int64)
    for i in range(n):
        for j in range(m):
            cx, cy = 3.0 * j / m - 2.0, 2.0 * i / n - 1.0
            x = y = 0.0
            k = 0
            while x * x + y * y <= 4.0 and k < limit:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                k += 1
            out[i, j] = k
    return out


def sieve(a, steps):
    n = len(a)
    prime = np.ones(n, np.bool_)
    for i in range(2, n):
        if prime[i]:
            for j in range(i * i, n, i):
                prime[j] = False
    return prime


def nussinov(a, pair):
    n = len(a)
    t = np.zeros((n, n), np.int64)
    for i in range(n - 2, -1, -1):
        for j in range(i + 1, n):
            best = max(t[i, j - 1], t[i + 1, j])
            if j > i + 1 and a[i] + a[j] == pair:
                best = max(best, t[i + 1, j - 1] + 1)
            for k in range(i + 1, j):
                best = max(best, t[i, k] + t[k + 1, j])
            t[i, j] = best
    return t


def crc32(a, steps):
    table = np.zeros(256, np.int64)
    for i in range(256):
        c = i
        for _ in range(8):
            c = 0xEDB88320 ^ (c >> 1) if c & 1 else c >> 1
        table[i] = c
    crc = np.int64(0xFFFFFFFF)
    for k in range(len(a)):
        crc = table[(crc ^ a[k]) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def nearest_centres(a, centres):
    n, d = a.shape
    out = np.zeros(n, np.int64)
    for i in range(n):
        best = np.inf
        for k in range(centres):
            s = 0.0
            for j in range(d):
                t = a[i, j] - a[k, j]
                s += t * t
            if s < best:
                best = s
                out[i] = k
    return out


def power_method(a, steps):
    x = a[0]
    for _ in range(steps):
        y = a @ x
        x = y / np.linalg.norm(y)
    return x


def conjugate_gradient(a, steps):
    b = a[0] + 1
    x = np.zeros(len(a))
    r = p = b - a @ x
    rs = r @ r
    for _ in range(steps):
        q = a @ p
        alpha = rs / (p @ q)
        x = x + alpha * p
        r = r - alpha * q
        new = r @ r
        if np.sqrt(new) < 1e-10:
            break
        p = r + (new / rs) * p
        rs = new
    return x


def newton(a, steps):
    c = 1e6 * a[0] + 1
    x = c
    for _ in range(steps):
        f = x * x * x - c
        if np.abs(f).max() < 1e-8:
            break
        x = x - f / (3 * x * x)
    return x


def newton_for_equations(a, steps):
    x = np.ones(len(a))
    for _ in range(steps):
        step = np.linalg.solve(a + np.diag(3 * x * x), a @ x + x**3 - 1)
        x = x - step
    return x


def value_iteration(a, steps):
    p = a / a.sum(axis=2, keepdims=True)
    r = a[:, :, 0]
    v = np.zeros(a.shape[1])
    for _ in range(steps):
        w = (r + 0.95 * (p @ v)).max(axis=0)
        if np.abs(w - v).max() < 1e-10:
            break
        v = w
    return v


def adaptive_steps(a, steps):
    y, t, h, taken = a * 1.0, 0.0, 0.1, 0
    while taken < steps:
        k1 = np.sin(t) - y
        k2 = np.sin(t + h) - (y + h * k1)
        if np.abs(h * (k2 - k1) / 2).max() < 1e-4:
            y = y + h * (k1 + k2) / 2
            t = t + h
            taken += 1
            h = h * 1.5
        else:
            h = h * 0.5
    return y


def clipped_descent(a, steps):
    w = a * 1.0
    for i in range(steps):
        g = 4 * w * (w * w - 1) + 0.1 * np.sin(3 * w)
        norm = np.sqrt((g * g).sum())
        if norm > 0.5:
            g = g * (0.5 / norm)
        w = w - 0.05 * g
        if i % 50 == 49:
            w = w * 0.99
    return w


def page_rank(a, steps):
    m = a / a.sum(axis=0)
    n = len(a)
    x = np.ones(n) / n
    while True:
        y = 0.85 * (m @ x) + 0.15 / n
        if np.abs(y - x).sum() < 1e-14:
            return y
        x = y


def logistic_regression(a, steps):
    x, y = a[:, 1:], np.where(a[:, 0] > 0.5, 1.0, 0.0)
    w = np.zeros(x.shape[1])
    for _ in range(steps):
        w = w - 0.1 * (x.T @ (1 / (1 + np.exp(-(x @ w))) - y)) / len(y)
    return w


def kalman_filter(a, steps):
    f, h = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.1], [0.0, 0.0, 0.9]]), np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    x, p = np.zeros(3), np.eye(3)
    for t in range(steps):
        x, p = f @ x, f @ p @ f.T + 0.01 * np.eye(3)
        gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + np.eye(2))
        x, p = x + gain @ (a[t] - h @ x), p - gain @ h @ p
    return x


def stochastic_descent(a, steps):
    order = np.argsort(a[:, 0])
    w = np.zeros(a.shape[1])
    for k in range(steps):
        row = a[order[k % len(a)]]
        w = w - 0.05 * (row @ w - row[0]) * row
    return w


def adam(a, steps):
    w = np.zeros(a.shape[1])
    m, v = np.zeros(a.shape[1]), np.zeros(a.shape[1])
    for t in range(1, steps + 1):
        g = a.T @ (a @ w - 1) / len(a)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        w = w - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w


def perceptron(a, steps):
    w = np.zeros(a.shape[1])
    sign = np.where(a[:, 0] > 0.5, 1.0, -1.0)
    for _ in range(steps):
        for i in range(len(a)):
            row = a[i]
            if sign[i] * (row @ w) <= 0:
                w = w + sign[i] * row
    return w


def metropolis(a, steps, rng):
    x = 0.0
    for i in range(steps):
        y = x + rng.normal(0.0, 0.5)
        if rng.random() < np.exp(0.5 * (x * x - y * y)):
            x = y
        a[i % len(a)] = x
    return a


def ising(a, steps, rng):
    n = a.shape[0]
    for _ in range(steps):
        i, j = rng.integers(0, n), rng.integers(0, n)
        change = 2 * a[i, j] * (a[(i + 1) % n, j] + a[(i - 1) % n, j] + a[i, (j + 1) % n] + a[i, (j - 1) % n])
        if change <= 0 or rng.random() < np.exp(-0.4 * change):
            a[i, j] = -a[i, j]
    return a


def brownian(a, steps, rng):
    for _ in range(steps):
        a = a * np.exp(-0.0002 + 0.02 * rng.standard_normal(a.shape[0]))
    return a


@dataclass(frozen=True)
class Case:
    """A function of an array and a trip count, or another int. ``letters``: the array has so many, as ints, or as a str
    where it is a ``text``.

    ``stiff``: the array is the matrix of a string of springs. ``draws``: a random generator is passed, too.
    """

    function: Callable[..., Any]
    shape: tuple[int, ...]
    steps: int
    tiny: tuple[int, ...]
    letters: int = 0
    stiff: bool = False
    draws: bool = False
    text: bool = False

    def given(self, shape: tuple[int, ...], steps: int) -> tuple[Any, ...]:
        """All its arguments."""
        return (self.array(shape), steps, *([np.random.default_rng(0)] if self.draws else []))

    def array(self, shape: tuple[int, ...]) -> Any:
        """Its argument."""
        if self.stiff:
            return 2.01 * np.eye(*shape) - np.eye(*shape, 1) - np.eye(*shape, -1)
        if self.letters:
            found = np.random.default_rng(0).integers(0, self.letters, shape)
            return "".join(map(chr, found + ord("a"))) if self.text else found
        return np.random.default_rng(0).random(shape)


CASES = [
    Case(jacobi, (500, 500), 1000, (6, 7)), Case(heat, (60, 60, 60), 1000, (5, 6, 5)),
    Case(fdtd, (400, 400), 1000, (6, 7)), Case(wave, (2000, 2000), 40, (6, 7)),
    Case(two_buffers, (10_000,), 1000, (9,)),
    Case(power_iteration, (64, 64), 1000, (6, 6)), Case(shortest_paths, (200, 200), 200, (7, 7)),
    Case(gauss_seidel, (200, 200), 100, (6, 7)), Case(thomas, (4, 100_000), 1, (4, 40)),
    Case(cavity, (3, 41, 41), 1000, (3, 7, 7)), Case(edit_distance, (600,), 600, (40,), 4),
    Case(alignment, (600,), 600, (40,), 4, text=True),
    Case(mandelbrot, (150, 200), 100, (6, 7)), Case(sieve, (500_000,), 1, (60,)),
    Case(nussinov, (200,), 3, (12,), 4), Case(crc32, (300_000,), 1, (40,), 256),
    Case(nearest_centres, (5000, 4), 8, (30, 4)), Case(power_method, (32, 32), 1000, (6, 6)),
    Case(conjugate_gradient, (32, 32), 100, (6, 6), stiff=True), Case(newton, (1, 32), 100, (1, 6)),
    Case(newton_for_equations, (12, 12), 100, (6, 6), stiff=True), Case(value_iteration, (3, 20, 20), 500, (2, 5, 5)),
    Case(page_rank, (32, 32), 100, (6, 6)), Case(logistic_regression, (60, 5), 500, (20, 3)),
    Case(kalman_filter, (500, 2), 500, (40, 2)), Case(adaptive_steps, (32,), 1000, (6,)),
    Case(clipped_descent, (32,), 1000, (6,)), Case(stochastic_descent, (500, 8), 1000, (20, 3)),
    Case(perceptron, (500, 8), 10, (20, 3)), Case(adam, (60, 5), 1000, (20, 3)),
    Case(metropolis, (10_000,), 10_000, (40,), draws=True), Case(ising, (32, 32), 10_000, (6, 6), 2, draws=True),
    Case(brownian, (100,), 1000, (9,), draws=True),
]  # fmt: skip


def clock(call: Callable[[], Any]) -> float:
    """The milliseconds of one call."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


@contextmanager
def no_disk_cache() -> Iterator[None]:
    """Turns the disk cache off within."""
    before, tcompile.cache.directory = tcompile.cache.directory, None
    try:
        yield
    finally:
        tcompile.cache.directory = before


def cold(compile: Callable[[Any], Any], case: Case, shape: tuple[int, ...], steps: int, times: int) -> dict[str, float]:
    """The compile time of a function of its own: medians of the first call less a later one, in milliseconds.

    ``cpu`` is the time of all processors together, ``wall`` that of the clock.
    """
    found: dict[str, list[float]] = {"cpu": [], "wall": []}
    iterations = min(steps, FEW_ITERATIONS)
    for _ in range(times):
        function = compile(fresh(case.function))
        both = []
        for _ in range(2):
            given = case.given(shape, iterations)
            wall, cpu = time.perf_counter(), time.process_time()
            function(*given)
            both.append(((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3))
        for place, name in enumerate(found):
            found[name].append(max(0.0, both[0][place] - both[1][place]))
    return {name: statistics.median(values) for name, values in found.items()}


def _numba() -> Any:
    try:
        return importlib.import_module("numba")
    except ImportError:
        return None


def by_hand(name: str) -> dict[str, Callable[[Any, int], Any]]:
    """The loops written for Numba, for some of the stencils."""
    numba = _numba()
    form = getattr(importlib.import_module("benchmarks.loop_forms"), name, None) if numba is not None else None
    if form is None:
        return {}
    return {"numba loops": numba.njit(form), "numba loops, parallel": numba.njit(form, parallel=True)}


def measure(case: Case, shape: tuple[int, ...], steps: int, seconds: float) -> dict[str, Any]:
    """One row. Raises AssertionError where a contestant computes another result than NumPy."""
    tcompile.reset()
    name = case.function.__name__
    contestants: dict[str, Callable[..., Any]] = {"numpy": case.function}
    contestants["tcompile"] = ours = tcompile.compile(case.function)
    numba = _numba()
    if numba is not None:
        contestants |= {"numba": numba.njit(case.function), **by_hand(name)}
    row: dict[str, Any] = {"name": name, "shape": shape, "steps": steps}
    checked: list[Any] = []
    given = case.given(shape, steps)
    first = clock(lambda: checked.append(case.function(*given)))
    (want,) = checked
    for who, function in list(contestants.items()):
        if who != "numpy":
            try:
                got = function(*case.given(shape, steps))
            except Exception as error:  # Numba refuses unknown functions
                row[f"{who} refuses"] = str(error).splitlines()[0]
                del contestants[who]
                continue
            np.testing.assert_allclose(got, want, rtol=1e-9, err_msg=f"{who} on {name}")
    times: dict[str, list[float]] = {who: [] for who in contestants}
    if first > SLOW_MS:  # once is enough
        times["numpy"].append(first)
        del contestants["numpy"]
    end = time.perf_counter() + seconds
    turn, order = 0, random.Random(0)
    while time.perf_counter() < end or turn < FEWEST:
        turn += 1
        for who in order.sample(list(contestants), len(contestants)):  # earlier runs leave their traces
            if who == "numpy" and turn > 3 and first > SLOW_MS / 10:
                continue
            function, given = contestants[who], case.given(shape, steps)
            times[who].append(clock(lambda f=function, x=given: f(*x)))
    for who, found in times.items():
        row[f"{who}, ms"] = statistics.median(found)
    with no_disk_cache():
        compile = tcompile.compile
        row["compile, ms"] = cold(lambda f: compile(f, backend="llvm"), case, shape, steps, COLD)
        if "numba" in contestants:
            row["numba compile, ms"] = cold(numba.njit, case, shape, steps, COLD_NUMBA)
        if case.steps >= 1000:
            more = cold(lambda f: compile(f, backend="llvm"), case, case.tiny, FEW_ITERATIONS, COLD)
            row["compile for other arrays, ms"] = more
            fresh_one = tcompile.compile(fresh(case.function), backend="llvm")
            fresh_one(*case.given(case.tiny, 10 * steps))
            row["compile for 10 times the trip count, ms"] = sum(entry.compile_ms for entry in fresh_one.entries)
    row["breaks"] = [broke.reason.id for broke in ours.breaks]
    return row


def _warm_up() -> None:
    """Compiles a function, so that no row pays for modules loaded at the first compile."""

    def first(x, n):
        for i in range(n):
            x[i] = x[i] * 2 + 1
        return x + 1

    tcompile.compile(first)(np.ones(9), 9)
    numba = _numba()
    if numba is not None:
        numba.njit(first)(np.ones(9), 9)


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """The command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each program")
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--tiny", action="store_true", help="small arrays, to see that it works")
    parser.add_argument("--json", default="", help="where the rows go")
    parser.add_argument("--out", type=Path, default=None, help="a folder for JSON, a page and a picture")
    given = parser.parse_args(arguments)
    from benchmarks import loops_report
    from benchmarks.harness import load_average
    from benchmarks.run import machine

    numba = _numba()
    load = load_average()
    about = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": "python -m benchmarks.loops " + shlex.join(arguments),
        "machine": machine(), "threads": tcompile.get_num_threads(), "load average before": load,
        "versions": {"numpy": np.__version__, "tcompile": tcompile.__version__}
        | ({"numba": numba.__version__} if numba is not None else {}),
    }  # fmt: skip
    if load is not None and load > 0.5:
        about["noise"] = f"Other programs were running (load average {load} before the start): expect noise."
    rows = []
    _warm_up()
    for case in CASES:
        if given.only and case.function.__name__ not in given.only.split(","):
            continue
        shape, steps = (case.tiny, 40 if case.steps > 1 else 1) if given.tiny else (case.shape, case.steps)
        if case.function is shortest_paths:
            steps = shape[0]
        elif case.function in (nearest_centres, metropolis):
            steps = min(steps, shape[0])
        row = measure(case, shape, steps, given.seconds)
        rows.append(row)
        print(loops_report.line(row), flush=True)
    data = {"suite": "loops", "about": about, "rows": rows}
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if given.out is not None:
        print("\n".join(loops_report.write(data, given.out, f"{about['date'][:10]}-loops")))
    return rows


if __name__ == "__main__":
    main()
