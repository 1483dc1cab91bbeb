"""Functions of NumPy's that call one of the user's: both are followed."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tests.differential import check


def arguments():
    return (np.arange(1.0, 25.0).reshape(4, 6),)


seen = []


def note(row):
    seen.append(row[0] + 0)
    return row * 2


FOLLOWED = {
    "to numbers": lambda x: np.apply_along_axis(lambda row: row.sum() * 2, 1, x),
    "rows": lambda x: np.apply_along_axis(lambda row: row / row.sum(), -1, x) + 1,
    "columns": lambda x: np.apply_along_axis(lambda column: column / column.sum(), 0, x),
    "columns of a view": lambda x: np.apply_along_axis(lambda column: column[::-1], -2, x[::2, 1:]),
    "to matrices": lambda x: np.apply_along_axis(lambda row: np.outer(row, row), 1, x),
    "to matrices, columns": lambda x: np.apply_along_axis(lambda row: np.outer(row, row), 0, x),
    "to lists": lambda x: np.apply_along_axis(lambda row: [row[0], row[1]], 1, x),
    "with more arguments": lambda x: np.apply_along_axis(lambda row, p, q: row**p + q, 0, x, 3, q=1),
    "integers": lambda x: np.apply_along_axis(lambda row: row.argmax(), 0, -x),
    "narrow": lambda x: np.apply_along_axis(lambda row: row.astype("f4"), 0, x),
    "one row": lambda x: np.apply_along_axis(lambda row: row - row.mean(), 1, x[:1]),
    "many rows": lambda x: np.apply_along_axis(lambda row: row.max(), 1, np.ones((200, 1)) * x[0]),
    "over axes": lambda x: np.apply_over_axes(np.sum, x, [0, -1]),
    "over axes, the user's": lambda x: np.apply_over_axes(lambda a, axis: a.max(axis) + 1, x, (1, 0)),
    "pieces": lambda x: np.piecewise(x, [x < 5, x > 20], [lambda v: v - 5, lambda v: np.log(v) * 2, -1]),
    "pieces, the last wins": lambda x: np.piecewise(x, [x < 9, x > 3, x > 99], [1, lambda v: v * v, np.sqrt]),
    "pieces of one mask": lambda x: np.piecewise(x[0], x[0] > 3, [lambda v, p, q: v * p + q, 0], 3, q=1),
    "pieces of integers": lambda x: np.piecewise(x.astype(int).T, [x.T > 3], [lambda v: v / 2, 7.9]),
    "pieces with sums": lambda x: np.piecewise(x, [x > 3], [lambda v: v - v.mean()]),
    "indices": lambda x: np.fromfunction(lambda i, j: i + 2 * j * x[0, 0], (5, 6)),
    "indices that are integers": lambda x: np.fromfunction(lambda i, j, k: i == j - k, (3, 3), dtype=int, k=1),
}
NOT_FOLLOWED = {
    "a row": lambda x: np.apply_along_axis(lambda row: row.sum(), 0, x[0]),
    "three axes": lambda x: np.apply_along_axis(lambda row: row.sum(), 1, x.reshape(2, 2, 6)),
    "no such axis": lambda x: np.apply_along_axis(lambda row: row.sum(), 2, x),
    "no rows": lambda x: np.apply_along_axis(lambda row: row.sum(), 1, x[:0]),
    "empty rows": lambda x: np.apply_along_axis(lambda row: row.sum(), 1, x[:, :0]),
    "a function of NumPy's": lambda x: np.apply_along_axis(np.sort, 1, x),
    "printing": lambda x: np.apply_along_axis(lambda row: print(row), 1, x),
    "a branch": lambda x: np.apply_along_axis(lambda row: row if row[0] > 9 else -row, 1, x),
    "other shapes": lambda x: np.apply_along_axis(lambda row: row[: int(row[0])], 1, x),
    "an error": lambda x: np.apply_along_axis(lambda row: row @ x, 1, x),
    "over axes, another shape": lambda x: np.apply_over_axes(lambda a, axis: a[0], x, [0, 1]),
    "pieces of nothing": lambda x: np.piecewise(x, [x > 99], [lambda v: v.max()]),
    "pieces, an error": lambda x: np.piecewise(x, [x > 9, x < 3], [lambda v: 1 // 0, 1]),
    "pieces, too many": lambda x: np.piecewise(x, [x > 9], [1, 2, 3]),
    "pieces of rows": lambda x: np.piecewise(x[:2], x[:2] > 3, [1, 2]),
    "pieces of lists": lambda x: np.piecewise(x[0], [[True] * 6], [lambda v: v[::-1]]),
    "pieces of a number": lambda x: np.piecewise(x[0, 0], [x[0, 0] > 0], [lambda v: v * 2, 0]),
    "pieces, printing": lambda x: np.piecewise(x, [x > 99, x > 3], [lambda v: print(v) or 0, 3]),
    "like": lambda x: np.fromfunction(lambda i: i, (3,), like=x),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_followed(name):
    compiled = check(FOLLOWED[name], arguments)[-1]
    assert not compiled.breaks, [(str(b), b.detail) for b in compiled.breaks]


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_not_followed(name):
    check(lambda x: NOT_FOLLOWED[name](x * 2) + 1, arguments)


def test_effects_of_each_call():
    def f(x):
        found = []
        np.apply_along_axis(lambda row: found.append(row.shape) or row.sum(), 1, x)
        np.apply_along_axis(note, 1, x)
        return found, [float(n) for n in seen[-4:]]

    check(f, arguments)


@pytest.mark.parametrize("least", [0, 99])
def test_a_function_of_a_piece_without_elements_is_not_called(least):
    def f(x):
        found = []
        y = np.piecewise(x, [x > least], [lambda v: found.append(1) or note(v)])
        return y, found

    check(f, arguments)


def test_the_users_line():
    f = tcompile.compile(lambda x: np.apply_along_axis(lambda row: row * 2, 1, x))
    f(*arguments())
    (graph,) = f.graphs
    assert {node.location.file for node in graph.nodes if node.location} == {__file__}
