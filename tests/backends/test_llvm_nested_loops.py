"""Loops that are left where their values say so, inside loops that run in machine code."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm.loop_program import encoding
from tcompile.observe import bus
from tcompile.observe.events import LoopDecided
from tests.capture.loop_cases import line, until_inside
from tests.differential import check


def decided(f, *args, **settings):
    """Who runs the iterations of each loop: what the backend says of them, in order."""
    events = []
    tcompile.reset()
    with bus.listening(events.append):
        tcompile.compile(f, backend="llvm", **settings)(*args)
    told = [event for event in events if isinstance(event, LoopDecided)]
    return [(event.outcome, event.reason) for event in told if event.outcome in ("machine code", "python iterations")]


def breaks(x, n):
    for i in range(n):
        y = x + i
        for j in range(50):
            z = y * 0.8
            if np.abs(z - y).max() < 0.1:
                break
            y = z
        x = 0.5 * x + 0.1 * y
    return x, y


def results_by_way(x, n):
    """What the inner loop hands on is in another array for each way out."""
    for i in range(n):
        y = x + i
        z = y
        for j in range(12):
            z = y * 0.8
            if z.max() < 1.0:
                break
            y = z * 0.9
            if y.max() < 1.2:
                break
        x = 0.5 * y + 0.1 * z
    return x


def with_else(x, n):
    for i in range(n):
        y = x + i
        for j in range(9):
            y = y * 0.8
            if y.max() < 1.0:
                break
        else:
            y = y * 0.5
        x = 0.5 * x + 0.1 * y
    return x


def numbers_of_iterations(x, n):
    for i in range(n):
        y = x + i
        for j in range(50):
            y = y * 0.8
            if y.max() < 1.0:
                break
        x = 0.5 * x + 0.01 * j
    return x, j


def continues(x, n):
    for i in range(n):
        total = np.zeros_like(x)
        for j in range(9):
            x = 0.9 * x + 0.01 * i
            if x.sum() > 3:
                continue
            total = total + x
        x = 0.9 * x + 0.1 * total
    return x


def in_place(u, n):
    for i in range(n):
        err = 1.0
        while err > 0.01:
            old = u.copy()
            u[1:-1] = 0.5 * (old[2:] + old[:-2])
            err = np.abs(u - old).max()
        u[3] += i
        u[0] -= 0.5
    return u


def reads_what_was(u, n):
    """The inner loop writes to an array of which the outer one reads the old elements."""
    for i in range(n):
        v = u.copy()
        for j in range(20):
            v[1:] = 0.5 * (v[:-1] + u[1:])
            if v[-1] > 1.0:
                break
        u = 0.5 * u + 0.5 * v + 0.01
    return u


def three_deep(x, n):
    for i in range(n):
        y = x + i
        while y.max() > 1.5:
            z = y.copy()
            for j in range(9):
                z = np.sqrt(np.abs(z)) * 0.9
                if z.min() > 0.5:
                    break
            y = y * 0.7 + 0.01 * z
        x = 0.5 * x + 0.1 * y
    return x


def elements_inside(x, n):
    for i in range(n):
        y = x + i
        while y.max() > 1.5:
            for j in range(1, len(y)):
                y[j] = 0.5 * (y[j] + y[j - 1])
            y[0] *= 0.9
        x = 0.5 * x + 0.1 * y
    return x


def exit_around_exit(x, n):
    err = 10.0
    while err > 1e-6:
        y = x * 0.5
        while y.max() > 0.1:
            y = y * 0.9
        err = np.abs(y - x).max()
        x = 0.5 * (x + y)
    return x, err


FUNCTIONS = [
    until_inside, breaks, results_by_way, with_else, numbers_of_iterations, continues, in_place, reads_what_was,
    three_deep, elements_inside, exit_around_exit,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_all_iterations_are_machine_code(f):
    for n in (30, 31, 8, 1, 0):
        check(f, lambda n=n: (line(), n), backends=("llvm",), calls=3)
    found = decided(f, line(), 30)
    assert len(found) > 1
    assert set(found) == {("machine code", "")}


def test_a_way_that_only_python_knows():
    """An inner loop that raises where it is not left early is plain Python's from the start."""

    def f(x, n):
        for i in range(n):
            y = x + i
            for j in range(9):
                y = y * 0.8
                if y.max() < 4.0:
                    break
            else:
                raise RuntimeError(f"no convergence in iteration {i}")
            x = 0.5 * x + 0.1 * y
        return x

    for n in (9, 20, 90):
        check(f, lambda n=n: (line(), n), backends=("llvm",), calls=3)


def test_another_variable_s_array_is_handed_on():
    def f(x, y, n):
        for i in range(n):
            x = y
            if i * x.sum() > 30:
                break
            y = np.sin(y)
        return x, y

    for n in (2, 30):
        check(f, lambda n=n: (line(), line() + 1, n), backends=("llvm",), calls=3)


# -- scalar loops that see parts of arrays ----------------------------------------------------------------------


def row_of_the_iteration(a, n):
    s = 0.0
    for i in range(n):
        a *= 0.9
        row = a[i]
        for j in range(1, len(row)):
            row[j] = row[j] + 0.5 * row[j - 1]
        a[0, 0] += 1
        s = s + a.sum()
    return a, s


def rows_are_read(a, n):
    total = np.zeros(a.shape[1])
    for i in range(n):
        b = a * (0.5 + i)
        column, row = b[:, 2], a[i]
        for j in range(len(column)):
            total[j % 3] += column[j] * row[-1 - j % 3]
        total *= 0.5
    return total


def slices(a, n):
    for _ in range(n):
        inner, left = a[1:-1, 1:-1], a[::-1, ::2]
        a = a * 0.5
        for i in range(inner.shape[0]):
            for j in range(inner.shape[1]):
                a[i, j] += inner[i, j] - left[i, j % left.shape[1]]
    return a


def writes_to_slices(a, n):
    for _ in range(n):
        a *= 0.5
        inner, turned = a[1:-1, ::-1], a.T
        for i in range(inner.shape[0]):
            for j in range(inner.shape[1]):
                inner[i, j] += turned[j, i] + 1
    return a


def flat(a, n):
    for k in range(n):
        a *= 0.5
        every, some = a.reshape(-1), a[1:3].reshape(-1)
        for i in range(1, len(some)):
            every[i] += some[i - 1]
            some[i] -= k
    return a


def reads_old_elements(a, n):
    """The scalar loop writes to an array that it also sees as it was."""
    for _ in range(n):
        b = a * 0.5
        old = b[1:] + 0
        new = np.zeros_like(b)
        for i in range(old.shape[0]):
            for j in range(old.shape[1]):
                new[i, j] = old[i, j] + b[i, j]
        a = new + b
    return a


VIEWS = [row_of_the_iteration, rows_are_read, slices, writes_to_slices, flat, reads_old_elements]


@pytest.mark.parametrize("f", VIEWS, ids=lambda f: f.__name__)
def test_parts_of_arrays(f, monkeypatch):
    monkeypatch.setattr("tcompile.capture.loops.trace_loop.FEW_OPERATIONS", 0)

    def make(n, turned=False):
        a = np.random.default_rng(1).random((32, 5)) + 0.5
        return (np.asfortranarray(a) if turned else a), n

    for n in (30, 1, 0):
        check(f, lambda n=n: make(n), backends=("eager", "llvm"), calls=3)
    check(f, lambda: make(30, turned=True), backends=("llvm",))
    check(f, lambda: make(30), backends=("llvm",), dynamic=True)
    found = decided(f, *make(30))
    assert set(found) == {("machine code", "")}


def test_elements_of_views_of_the_caller_s():
    def f(a, b, n):
        part, other = a[1::2, ::-1], b.T[1:]
        for i in range(n):
            for j in range(part.shape[1]):
                part[i, j] += other[j % other.shape[0], i]
        return a, part

    def make(n, step=1):
        a, b = np.arange(24.0).reshape(6, 4), np.arange(40.0).reshape(10, 4)[::step]
        return a, b, n

    for dynamic in (None, True):
        check(f, lambda: make(3), backends=("eager", "llvm"), calls=3, dynamic=dynamic)
        check(f, lambda: make(3, 2), backends=("eager", "llvm"), calls=3, dynamic=dynamic)
        check(f, lambda: make(4), backends=("llvm",), dynamic=dynamic)


def test_programs_of_loops_with_other_sizes_are_kept(monkeypatch):
    """Elimination goes through as many sizes as there are columns; later calls find them written."""

    def eliminated(a, n):
        for k in range(n):
            p = np.argsort(np.abs(a[k:, k]))[-1] + k  # which leaves the iterations to Python
            if p != k:
                a[[k, p]] = a[[p, k]]
            for i in range(k + 1, n):
                a[i, k:] -= a[i, k] / a[k, k] * a[k, k:]
        return a

    made = []
    written = encoding.Level._write
    monkeypatch.setattr(encoding.Level, "_write", lambda level: made.append(level) or written(level))
    compiled = tcompile.compile(eliminated, backend="llvm")
    a = np.random.default_rng(0).normal(size=(40, 40))
    counts = []
    for _ in range(3):
        np.testing.assert_allclose(compiled(a.copy(), 40), eliminated(a.copy(), 40), rtol=1e-9, atol=1e-12)
        counts.append(len(made))
    assert counts[0] > 20 and counts[2] == counts[1] and not compiled.breaks
    for iterations in {level.iterations for level in made}:
        assert iterations.spare_bytes == sum(level.size for level in iterations.spare.values()) < 1 << 22
