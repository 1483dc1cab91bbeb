"""Reports about arrays that share memory: views, writes in place, arguments that overlap."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from reports.programs import Table

TABLE = Table()
GRID = lambda: np.arange(24.0).reshape(4, 6)
INTS = lambda: np.arange(-12, 12).reshape(4, 6)


@TABLE.calls(
    "numba-230",
    lambda: (np.arange(8.0), 1),
    lambda: (np.arange(8), 3),
    lambda: (np.arange(40, dtype="f4"), 5),
)
def shift_right(a, k):
    """A slice is assigned to a later, overlapping slice of the same array."""
    a[k:] = a[:-k]
    return a


@TABLE.calls("numba-1960", lambda: (np.zeros((5, 2)), 2), lambda: (GRID(), 1), lambda: (GRID(), 3))
def insert_row(best, pos):
    """Rows move down by one to make room for a new one."""
    row = best[0] + 0.5
    best[pos + 1 :, :] = best[pos:-1, :]
    best[pos, :] = row
    return best


@TABLE.calls("numba-148", lambda: (GRID(),), lambda: (GRID().T,), lambda: (INTS(),))
def first_row(x):
    """One index into a two-dimensional array gives a view of a row."""
    return x[0]


@TABLE.calls("pytorch-113793", lambda: (GRID(),), lambda: (np.ones((4, 6), "f4"),))
def scaled_part(x):
    """A view that was changed in place is an operand afterwards."""
    part = x[1:3]
    part *= 3
    return part + x[:2]


@TABLE.calls("pytorch-198102", lambda: (INTS(),), lambda: (GRID(),), lambda: (np.ones((3, 6), "f4"),))
def double_every_fifth(x):
    """A write goes through a strided view that leaves gaps; what lies in the gaps stays."""
    v = as_strided(x, (x.shape[0], 2), (x.strides[0], 5 * x.strides[1]))
    v += v
    return x


@TABLE.calls("pytorch-198101", lambda: (INTS(),), lambda: (INTS() + 2**40,))
def through_other_dtype(x):
    """A result computed from a view of another dtype is returned after its base was overwritten."""
    y = x.view(np.int32) * 2
    y -= -4
    x[:, 2:5] = 2
    return y.view(np.int64)


def maybe_drop(x, rate, training):
    return x * (np.ones_like(x) > rate) if training else x


@TABLE.calls(
    "pytorch-195422",
    lambda: (np.ones((2, 2)), False),
    lambda: (np.ones((2, 2)), True),
    lambda: (GRID(), False),
)
def doubled_by_helper(x, training):
    """A helper returns its argument itself, and the caller changes that in place."""
    y = maybe_drop(x, 0.5, training)
    y += y
    return y


@TABLE.calls("pytorch-165409", lambda: (np.arange(-4.0, 6),), lambda: (np.arange(-40, 60),))
def absolute_windows(x):
    """Overlapping windows of one array are changed in place."""
    t = x + x
    windows = as_strided(t, ((len(t) - 1) // 2, 3), (2 * t.strides[0], t.strides[0]))
    np.abs(windows, out=windows)
    return windows, t


@TABLE.calls(
    "pytorch-197829",
    lambda: (GRID(),),
    lambda: (np.random.default_rng(0).random((300, 400)),),
    lambda: (INTS(),),
)
def next_row(x):
    """Rows take the values of a copy of the rows before them."""
    x[1:] = x[:-1].copy()
    return x


@TABLE.calls("pytorch-198131", lambda: (np.zeros((4, 6)), GRID()), lambda: (np.zeros((4, 6), int), INTS()))
def copy_then_change(dst, src):
    """An array is copied into another one through full slices and then changed."""
    dst[0:, :] = src[0:, :]
    src += 1
    return src


@TABLE.calls("pytorch-198094", lambda: (INTS(), INTS() * 5), lambda: (GRID(), GRID() + 0.5))
def part_replaced(x, src):
    """A copy with some rows replaced is returned after the original was set to zero."""
    y = x.copy()
    y[1:3] = src[1:3]
    x[...] = 0
    return y


@TABLE.calls("pytorch-198270", lambda: (GRID(),), lambda: (np.random.default_rng(1).random((300, 200)),))
def places_then_mirror(x):
    """Rows are written by an index array, then the mirrored array is added in place."""
    x[np.arange(x.shape[0])] = x * 2.0
    x += x[::-1]
    return x


@TABLE.calls("pytorch-94693", lambda: (np.arange(64.0),), lambda: (np.arange(64, dtype="f4"),))
def several_slices(x):
    """Slices of an argument are moved within it, and the result is read from what they became."""
    x[2:11] = x[19:28] + 1
    y = x[1:10] * 2
    x[20:40] = x[1:21]
    return y + x[18:27]


@TABLE.calls("pytorch-93497", lambda: (np.arange(4.0),), lambda: (np.arange(1000, dtype="f4"),))
def changed_between_reads(a):
    """An argument is read, overwritten with a sum, and read again."""
    b = a + 1
    a[...] = b
    c = a + 2
    return a * b / c


@TABLE.calls("pytorch-175791", lambda: (np.random.default_rng(2).random((1, 2, 4)), np.ones((1, 4, 4))))
def product_before_write(x, y):
    """A matrix product is taken before a row of its operand is overwritten through a view."""
    z = x @ y
    expanded = x.reshape(1, 2, 4)
    expanded[0, 1] = 1
    return z


@TABLE.calls("pytorch-183986", lambda: (np.ones(8), [0, 2, 0]), lambda: (np.ones(8), [1]))
def write_to_broadcast(row, rows):
    """Rows of an array that was broadcast are written: NumPy calls it read-only."""
    wide = np.broadcast_to(row, (4, 8))
    wide[rows] = 2.0
    return wide


@TABLE.calls("numba-8370", lambda: (INTS(), 2), lambda: (GRID(), 3))
def unfold(x, y):
    """A flattened copy of a read-only broadcast array is written to."""
    r, c = x.shape
    flat = np.swapaxes(np.broadcast_to(x, (y, r, c)), 0, 1).flatten()
    d = np.reshape(flat, (-1, c))
    d[y - 1 :, :] = d[: 1 - y]
    return d


@TABLE.calls("numba-1418", lambda: (GRID().T[0],), lambda: (GRID()[:, 2],), lambda: (GRID()[::-1, ::2],))
def root_of_column(x):
    """A function is applied to an array that is not contiguous."""
    return np.sqrt(x)


@TABLE.calls("numba-4831", lambda: (GRID().T,), lambda: (GRID()[:, ::2],), lambda: (GRID(),))
def ravelled(x):
    """An array that is not contiguous is ravelled, and the result is written to."""
    flat = x.ravel()
    flat[0] = 100
    return flat


@TABLE.calls("numba-3353", lambda: (GRID()[:, ::2],), lambda: (GRID()[::-1],), lambda: (GRID(),), lambda: (GRID().T,))
def reshaped(x):
    """An array that is not contiguous is reshaped: a copy here, a view there."""
    y = x.reshape(-1, 2)
    y[0] = -1
    return y


@TABLE.calls("numba-4917", lambda: (np.arange(12.0).reshape(4, 3),), lambda: (np.arange(12).reshape(3, 4).T,))
def column_of_ions(ions):
    """A column of a table is made a row of a matrix, and the column is scaled in place."""
    q = ions[:, 1]
    table = q.reshape(2, -1) * 2
    q *= 3
    return table, q


@pytest.mark.parametrize("number", TABLE.numbers)
def test_report(number):
    TABLE.check(number)
