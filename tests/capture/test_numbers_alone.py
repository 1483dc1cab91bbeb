"""Loops along the elements of an array, and loops of numbers alone: scalar code, with Python's results and errors."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from differential import check

import tcompile

from .test_exits import ops


def histogram(x, n):
    h = np.zeros(10, np.int64)
    for v in x:
        h[int(v * 10)] += 1
    return h


def first_beyond(x, n):
    at = 0
    for v in x:
        if v > 0.75:
            break
        at += 1
    else:
        at = -1
    return at, v


def writes_ahead(x, n):
    k = 0
    for v in x:
        if k < len(x) - 1:
            x[k + 1] = x[k + 1] * 0.5 + v * 0.5
        k += 1
    return x


def within(x, n):
    total = 0.0
    for v in x:
        for w in x[::3]:
            if w < v:
                total += w
    return total


def changes_the_name(x, n):
    s = 0.0
    for v in x:
        x = x if v < 2 else x * 2
        s += v
    return s, x


def of_ints(x, n):
    total, odd = 0, 0
    for v in (x * 100).astype(np.uint8):
        total += int(v)
        odd += v & 1
    return total, odd


def longest(x, n):
    most = at = 0
    for start in range(1, n):
        k, steps = start, 0
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            steps += 1
        if steps > most:
            most, at = steps, start
    return most, at


def series(x, n):
    s, sign = 0.0, 1.0
    for k in range(n):
        s += sign / (2 * k + 1)
        sign = -sign
    return 4 * s


def powers(x, n):
    s = 0.0
    for k in range(n):
        s += (-1.0) ** k / (2 * k + 1)
    return x * s


def triangle(x, n):
    total = 0
    for i in range(n):
        for j in range(i):
            total += i * j % 7
    return total


ALONG = [histogram, first_beyond, writes_ahead, within, changes_the_name, of_ints]
ALONE = [longest, series, powers]


@pytest.mark.parametrize("n", [1000, 600, 3])
@pytest.mark.parametrize("f", ALONG + ALONE, ids=lambda f: f.__name__)
def test_scalar_code(f, n):
    made = check(f, lambda: (np.random.default_rng(1).random(50), n), ulp=0)
    if f not in (changes_the_name, first_beyond):  # of which the last value of a variable may be of two kinds, or none
        assert not any(compiled.breaks for compiled in made)
        assert n < 1000 or any("scalar_loop" in ops(compiled) for compiled in made)


@pytest.mark.parametrize("values", [[], [0.5], [0.1, 3.0, 0.2], [np.nan, 0.5], [np.inf]])
@pytest.mark.parametrize("f", ALONG, ids=lambda f: f.__name__)
def test_any_elements(f, values):
    """NaNs are no ints, 3.0 is beyond the histogram, and without elements there is no `v`."""
    check(f, lambda: (np.array(values), 3), ulp=0)


def test_ints_beyond_64_bits_are_pythons():
    def f(x, n):
        a, b = 0, 1
        for _ in range(n):
            if a >= 0:
                a, b = b, a + b
        return a

    check(f, lambda: (np.ones(3), 600))


def runs_plainly(function, compiled, *arguments):
    """Whether plain Python has gone on in the function where the compiled call has ended."""
    seen = []
    sys.setprofile(lambda frame, event, argument: seen.append(frame.f_code))
    try:
        compiled(*arguments)
    finally:
        sys.setprofile(None)
    return function.__code__ in seen


def test_what_is_bound_in_some_iterations_only_is_bound_in_the_end():
    """As `top`, where a stack is worked off: with all variables bound, the loop is left as it mostly is."""

    def regions(g, n):
        found, stack, count = np.zeros_like(g), np.zeros((500, 2), np.int64), 0
        for i in range(g.shape[0]):
            for j in range(g.shape[1]):
                if g[i, j] and not found[i, j]:
                    count += 1
                    top, found[i, j], stack[0, 0], stack[0, 1] = 1, count, i, j
                    while top > 0:
                        top -= 1
                        a, b = stack[top, 0], stack[top, 1]
                        for d in range(4):
                            p, q = a + (d == 0) - (d == 1), b + (d == 2) - (d == 3)
                            if 0 <= p < len(g) and 0 <= q < len(g) and g[p, q] and not found[p, q]:
                                found[p, q], stack[top, 0], stack[top, 1] = count, p, q
                                top += 1
        return found, count

    g = (np.random.default_rng(0).random((12, 12)) > 0.4).astype(np.int64)
    check(regions, lambda: (g, 3))
    compiled = tcompile.compile(regions, backend="llvm")
    compiled(g, 3)
    assert not runs_plainly(regions, compiled, g, 3)


def test_what_is_read_after_the_loop_may_be_bound_in_some_iterations_only():
    def last(g, n):
        for i in range(len(g)):
            for v in g:
                if v > i:
                    at, found = i, v
        return at, found

    g = np.array([3.5, 1.25, 7.0, 0.5, 2.0])
    check(last, lambda: (g, 3))
    compiled = tcompile.compile(last, backend="llvm")
    compiled(g, 3)
    assert not runs_plainly(last, compiled, g, 3)


def trajectory(n):
    out = np.empty((n, 3))
    x, y, z = 1.0, 1.0, 1.0
    for t in range(n):
        dx, dy, dz = 10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z
        x, y, z = x + 0.005 * dx, y + 0.005 * dy, z + 0.005 * dz
        out[t] = x, y, z
    return out


def turned(x, n):
    for k in range(n):
        angle = 0.001 * k
        x = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ x
    return x


def test_arrays_of_a_few_numbers_are_made_in_the_loop():
    for compiled in check(trajectory, lambda: (300,), ulp=0):
        assert not compiled.breaks and "call" not in ops(compiled)
    for compiled in check(turned, lambda: (np.array([1.0, 2.0]), 300), ulp=4000):
        assert not compiled.breaks and "call" not in ops(compiled)


@pytest.mark.parametrize("x", [[0.5, -1.5, np.nan], [1.0, -0.0, 2.0]])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: np.array([x.sum(), y, 1]), lambda x, y: np.array([[x[0], -x[1]], [x[1], x[0]]]),
        lambda x, y: np.array((float(x[0]), np.float32(2.5), y)), lambda x, y: np.array([x[0], np.nan, np.inf, -0.0]),
        lambda x, y: np.array([x[0], 1j]), lambda x, y: np.array([x[0] > 0, 2.0]), lambda x, y: np.array([x.max()]),
        lambda x, y: np.array([[x[0]], [y]]), lambda x, y: np.asarray([x[k % 3] * y for k in range(12)]),
    ],
)  # fmt: skip
def test_arrays_of_numbers(f, x):
    check(f, lambda: (np.array(x), 2.5))
    compiled = tcompile.compile(f)
    for y in (2.5, 3.5, -0.0):
        got, want = compiled(np.array(x), y), f(np.array(x), y)
        assert repr(got) == repr(want) and (got.dtype, got.strides) == (want.dtype, want.strides)


@pytest.mark.parametrize("f", [longest, triangle])
def test_iterations_with_loops_inside_are_soon_too_many_to_be_followed(f):
    for n, are_many in ((60, True), (20, True), (5, False)):
        compiled = check(f, lambda n=n: (np.ones(2), n), ulp=0, dynamic=False)[-1]
        assert ("scalar_loop" in ops(compiled)) == are_many
        assert not compiled.breaks


def test_what_depends_on_nothing_else_is_followed():
    """So that a number that it counts may be a size; what a value of the caller's decides is computed in the graph."""

    def counted(x, n):
        size = 0
        for k in range(20):
            if k % 3:
                size += 1
        return x[:size] * np.ones(size)

    def asked(x, n):
        size = 0
        for k in range(20):
            if k < n:
                size += 1
        return x + size

    x = np.arange(50.0)
    compiled = tcompile.compile(counted)
    np.testing.assert_array_equal(compiled(x, 3), counted(x, 3))
    assert not compiled.breaks and not {"exit_loop", "fori_loop"} & set(ops(compiled))
    compiled = tcompile.compile(asked, dynamic=True)
    for n in range(3, 20):
        np.testing.assert_array_equal(compiled(x, n), asked(x, n))
    assert len(compiled.entries) == 1


def test_what_is_computed_of_arrays_is_not_followed():
    def counted(x, n):
        t = 0
        for k in range(200):
            if np.arange(5).sum() > k:
                t += 1
        return x + t

    compiled = tcompile.compile(counted)
    np.testing.assert_array_equal(compiled(np.ones(3), 3), counted(np.ones(3), 3))
    assert "exit_loop" in ops(compiled) or "fori_loop" in ops(compiled)
    assert not compiled.breaks
