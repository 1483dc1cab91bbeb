"""Reports about indices: arrays of indices with duplicates, masks, negative and missing places."""

from __future__ import annotations

import numpy as np
import pytest

from reports.programs import Table

TABLE = Table()
GRID = lambda: np.arange(24.0).reshape(4, 6)


@TABLE.calls("numba-123", lambda: (np.arange(5), -1), lambda: (np.arange(5), -6), lambda: (np.arange(5), 5))
def wrapped_index(a, i):
    """Negative indices count from the end, those out of bounds are errors."""
    return a[i], a[i : i + 2]


@TABLE.calls(
    "numba-9829",
    lambda: (np.array([3, 5, 9]), np.array([0, 1, 2]), 9),
    lambda: (np.array([0]), np.array([4]), 3),
)
def numbered(index, values, last):
    """Places are written by an index array, the others get new numbers one after the other."""
    missing = np.iinfo(np.uint32).max
    out = np.ones(last + 1, np.uint32) * missing
    for i in range(len(index)):
        out[index[i]] = values[i]
    highest = values.max()
    for i in range(len(out)):
        if out[i] == missing:
            out[i] = highest + 1
            highest += 1
    return out


@TABLE.calls(
    "numba-7676",
    lambda: (np.arange(12.0), np.array([[1, 0.5], [2, 3], [3, 5]]), 4),
    lambda: (np.ones(7), np.ones((2, 1)), 3),
)
def chunks(x, par, parts):
    """Columns of a result are written chunk by chunk, the last one shorter."""
    out = np.zeros((par.shape[0], len(x)))
    size = (len(x) + parts - 1) // parts
    for i in range(parts):
        out[:, i * size : (i + 1) * size] = x[i * size : (i + 1) * size] * par[:, 0:1]
    return out


@TABLE.calls("numba-3681", lambda: (np.random.default_rng(0).standard_normal((9, 9)),), lambda: (np.ones((3, 3)),))
def one_place(x):
    """All iterations of two loops add to one element of a matrix."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            if i == j:
                continue
            y[0, 1] += x[i, j]
    return y


@TABLE.calls("pytorch-174074", lambda: (np.array([[-0.8716, 0.1114]]),), lambda: (GRID(),))
def doubled_twice(x):
    """A row named twice in an index list is added to in place once."""
    x[[0, 0]] += x[[0, 0]]
    return x


@TABLE.calls("pytorch-197582", lambda: (np.array([[1.0, 2], [3, 4]]),), lambda: (GRID(),))
def alternating(x):
    """Places computed as a remainder repeat, and what is added to them is read before."""
    v = x.reshape(-1)
    idx = np.arange(v.size) % 2
    v[idx] = v[idx] + 1.0
    return x


@TABLE.calls("pytorch-138908", lambda: (np.zeros(3), np.array([1, 1])), lambda: (GRID(), np.array([0, 2, 0, -4])))
def last_wins(y, idx):
    """Repeated places get several values: the last one stays, and np.add.at counts all."""
    y[idx] += 1
    np.add.at(y, idx, 10)
    y[idx[:2]] = np.arange(2.0).reshape((2,) + (1,) * (y.ndim - 1))
    return y


@TABLE.calls("pytorch-184542", lambda: (np.zeros((4, 6), "u1"), np.ones(5, "u1"), np.arange(5)))
def flat_places(buffer, values, places):
    """A flat view of a buffer is written by an index array, and the buffer is returned."""
    buffer.reshape(-1)[places] = values
    return buffer


@TABLE.calls("jax-28998", *[lambda i=i: (np.ones(4), i) for i in (-10, -5, -4, -1, 0, 3, 4, 9)])
def within(p, i):
    """An index out of bounds is caught and replaced by a value."""
    try:
        return p[i]
    except IndexError:
        return -10.0


@TABLE.calls("jax-5766", lambda: (np.array([[1, 2], [3, 4], [5, 6]]),), lambda: (GRID(),))
def taken_from_end(a):
    """The method and the function take get negative indices."""
    return a.take([0, -1], axis=0), np.take(a, [0, -1], axis=0), a[-1]


@TABLE.calls("jax-4795", lambda: (np.arange(10), -2), lambda: (np.arange(10), 3), lambda: (GRID(), -1))
def take_one(a, i):
    """take gets one negative index."""
    return np.take(a, i), a[i]


@TABLE.calls("jax-3774", lambda: (np.arange(9).reshape(3, 3), [4]), lambda: (np.arange(9).reshape(3, 3), [2, 0]))
def take_missing(x, rows):
    """take gets an index out of bounds: an error."""
    return x.take(rows, axis=0), x.take(rows, axis=0, mode="clip")


@TABLE.calls("jax-11277", lambda: (np.ones(3), 10), lambda: (np.ones(3), 2), lambda: (np.ones(3), np.array([0, 3])))
def beyond(r, i):
    """Elements beyond the end are read, by a number and by an array: an error."""
    return r[i] * 2


@TABLE.calls("jax-4383", lambda: (GRID(), 4), lambda: (GRID(), 3), lambda: (GRID(), -5))
def row_beyond(a, i):
    """A row beyond the last one is read: an error."""
    return a[i, :] + 1


@TABLE.calls("jax-278", lambda: (np.arange(5.0), 5), lambda: (np.arange(5.0), -5), lambda: (np.arange(5.0), 1))
def write_beyond(x, i):
    """What was written before an index out of bounds stays written."""
    x[0] = 10
    x[i] = 20
    return x


@TABLE.calls("jax-3989", lambda: (np.ones((9, 9)), np.ones((5, 3))), lambda: (np.ones((3, 2)), np.ones((5, 3))))
def larger_grid(data, u):
    """A grid of indices is larger than the array that it indexes: an error."""
    ii, jj = np.mgrid[: data.shape[0], : data.shape[1]]
    return ii - u[ii, jj]


@pytest.mark.parametrize("number", TABLE.numbers)
def test_report(number):
    TABLE.check(number)
