"""Rolls by literal numbers are read in kernels; all others are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile

X = np.arange(42.0).reshape(6, 7)


def ops(compiled):
    """The number of rolls in the graph, of NumPy's calls, and of kernels."""
    graph = compiled.entries[0].compiled_graph.schedule.graph
    calls = [n for n in graph.nodes if n.op.name == "call" and n.attrs["target"] == "numpy.roll"]
    return len([n for n in graph.nodes if n.op.name == "roll"]), len(calls), len(compiled.entries[0].kernels)


def around(x):
    return np.roll(x, 1, axis=0) + np.roll(x, -1, 0) * 2 + np.roll(x, 1, axis=1) - np.roll(x, -2, axis=-1) - 4 * x


def nested(x):
    return sum(np.roll(np.roll(x, i, axis=0), j, 1) * (3 * i + j + 5) for i in (-1, 0, 1) for j in (-1, 0, 1))


def several_axes(x):
    return np.roll(x, (1, -2), axis=(0, 1)) - np.roll(x, 2, axis=(1, 0)) + np.roll(x, (1, 1, 1), (0, 1, 0))


def with_views(x):
    return (np.roll(x, 1, 0)[1:, ::2] + np.roll(x, -1, 0)[:-1, ::2]).sum(axis=0), np.roll(x, 2, 1).T.max()


def of_a_value(x):
    y = x * 2 + 1
    return np.roll(y, 1, 1) * np.roll(y, -1, 1) + y


def line(x):
    v = x[0] * 1.5
    return np.roll(v, 1) - np.roll(v, -1)


def alone(x):
    return np.roll(x, 3, axis=1), np.roll(x, -2, 0) * 2


def of_views(x):
    return np.roll(x.T, 1, 0) + 1, np.roll(x[::2, 1:], 2, 1) * 2, np.roll(x[:, None], 1, axis=2), np.roll(x[::-1], 1)


@pytest.mark.parametrize("function", [around, nested, several_axes, with_views, of_a_value, line, alone, of_views])
@pytest.mark.parametrize("dtype", ["f8", "f4", "u1", "?", "c16", "f2"])
def test_values(function, dtype):
    if dtype == "?" and function is not nested:
        pytest.skip("booleans have no subtraction")
    (*_, compiled) = check(function, lambda: (X.astype(dtype),), exact=True)
    assert ops(compiled)[1] == 0


@pytest.mark.parametrize(
    ("function", "rolls", "calls", "kernels"),
    [
        (lambda x: np.roll(x, 1, 0) * 2, 1, 0, 1),
        (lambda x: (np.roll(x, 1, 0), np.roll(x, 2, 0) + np.roll(x, 3, 0)), 3, 0, 1),
        (lambda x: np.roll(x, 1, 0) @ np.roll(x, 1, 1).T, 2, 0, 2),  # both are written for NumPy
        (lambda x: np.roll(np.roll(x, 1, 0), 1, 1) * 2, 1, 0, 1),
        (lambda x: np.roll(x, 1) + np.roll(x, 2), 2, 0, 1),
        (lambda x: np.roll(x, 70, 0) + np.roll(x, -71, 0), 2, 0, 1),
        (lambda x: np.roll(x.T, 1, 0) + np.roll(x.T, 1, 1), 2, 0, 1),
        (lambda x: np.roll(x, np.array([1, 2]), axis=(0, 1)) + 1, 0, 1, 1),
        (lambda x: np.roll(x * 2, 1, 0) + 1, 1, 0, 2),  # what is rolled is stored
    ],
)
def test_what_is_a_kernel(function, rolls, calls, kernels):
    (*_, compiled) = check(function, lambda: (X.copy(),), exact=True)
    assert ops(compiled) == (rolls, calls, kernels)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 15, 16, 17, 31, 100])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i2", "u1"])
def test_ends_of_vectors(size, dtype):
    x = np.arange(3 * size).reshape(3, size).astype(dtype)
    check(lambda x: [np.roll(x, k, 1) + x for k in (-1, 1, 3, size - 1, size, size + 1)], lambda: (x,), exact=True)


@pytest.mark.parametrize("function", [lambda x: np.roll(x, 1, 2), lambda x: np.roll(x, (1, 2, 3), (0, 1))])
def test_errors(function):
    check(function, lambda: (X.copy(),))


def test_in_loops():
    def wave(x, steps):
        old = x.copy()
        for _ in range(steps):
            x, old = 2 * x - old + 0.1 * (np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) - 3 * x), x
        return x

    check(wave, lambda: (X.copy(), 30), exact=True)


def test_written_after_it_is_rolled():
    def shifted(x):
        x[:] = np.roll(x, 1, 0) * 2
        x[1:] += np.roll(x, 1, 1)[:-1]
        return x

    check(shifted, lambda: (X.copy(),), exact=True)


def test_gathers_at_counted_places():
    def around(x, n):
        return x[np.arange(-3, n - 3)] + x[:, np.arange(-2, x.shape[1] - 2)]

    check(around, lambda: (np.arange(400.0).reshape(20, 20), 20), exact=True)
    check(lambda x, n: x[np.arange(n)], lambda: (np.arange(20.0), 21))  # out of range


@pytest.mark.parametrize("shape", [(1, 1), (0, 3), (2, 1), (1, 5), (3, 0)])
def test_short_axes(shape):
    check(nested, lambda: (np.arange(float(np.prod(shape))).reshape(shape),), exact=True)


def test_sizes_that_vary():
    compiled = tcompile.compile(nested)
    for n in (5, 6, 9, 3, 2, 1, 12):
        x = np.random.default_rng(n).random((n, n + 1))
        np.testing.assert_array_equal(compiled(x), nested(x))


def test_special_values():
    special = np.array([[0.0, -0.0, np.nan], [np.inf, -np.inf, 1e-310]])
    check(lambda x: np.copysign(np.roll(x, 1, 0), np.roll(x, 1, 1)), lambda: (special.copy(),), exact=True)
