"""Rolls of one array become slices of one copy, where that changes nothing that can be seen."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile

X = np.arange(42.0).reshape(6, 7)


def ops(compiled):
    graph = compiled.entries[0].compiled_graph.schedule.graph
    rolls = [n for n in graph.nodes if n.op.name == "call" and n.attrs["target"] == "numpy.roll"]
    return len([n for n in graph.nodes if n.op.name == "wrap"]), len(rolls)


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


@pytest.mark.parametrize("function", [around, nested, several_axes, with_views, of_a_value, line])
@pytest.mark.parametrize("dtype", ["f8", "f4", "u1", "?", "c16"])
def test_merged(function, dtype):
    if dtype == "?" and function is not nested:
        pytest.skip("booleans have no subtraction")
    (*_, compiled) = check(function, lambda: (X.astype(dtype),), exact=True)
    if dtype in ("f8", "f4", "u1"):
        assert ops(compiled) == (1, 0)


@pytest.mark.parametrize(
    ("function", "wraps", "rolls"),
    [
        (lambda x: np.roll(x, 1, 0) * 2, 0, 1),  # one alone: nothing is saved
        (lambda x: (np.roll(x, 1, 0), np.roll(x, 2, 0) + np.roll(x, 3, 0)), 1, 1),  # a result is an array of its own
        (lambda x: np.roll(x, 1, 0) @ np.roll(x, 1, 1).T, 0, 2),  # NumPy reads both
        (lambda x: np.roll(np.roll(x, 1, 0), 1, 1) @ x.T, 0, 2),
        (lambda x: np.roll(x, 1) + np.roll(x, 2), 1, 0),  # both of one flattened array, which is a row
        (lambda x: np.roll(x, 7, 0) + np.roll(x, 1, 0), 0, 2),  # farther than the axis is long
        (lambda x: np.roll(x.T, 1, 0) + np.roll(x.T, 1, 1), 0, 2),  # in another memory order
        (lambda x: np.roll(x, 1, 0) + np.roll(x, 0, 0), 1, 0),
    ],
)
def test_what_is_merged(function, wraps, rolls):
    (*_, compiled) = check(function, lambda: (X.copy(),), exact=True)
    assert ops(compiled) == (wraps, rolls)


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
