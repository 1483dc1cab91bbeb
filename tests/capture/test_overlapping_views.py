"""Writes to one view of an array of what another view of it shows: NumPy may read what it has just written."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile

BITS = np.array([1, 0, 0, 0, 1, 1, 0, 1], bool)


def function(lines, parameters="x"):
    space = {"np": np}
    body = "".join(f"    {line}\n" for line in lines.split("; "))
    exec(f"def f({parameters}):\n{body}", space)
    return space["f"]


MASKS = [
    "m[1:][m[:-1]] = True; return m",
    "m[m[::-1]] = False; return m",
    "m[1:][m[:-1]] ^= True; return m",
    "np.copyto(m[1:], True, where=m[:-1]); return m",
    "np.place(m[1:], m[:-1], True); return m",
    "np.putmask(m[1:], m[:-1], True); return m",
    "n = m.reshape(2, 4); n[1:][n[:-1]] = True; return m, n",
    "y = m * 2.0; m = y > 0; m[1:][m[:-1]] = True; y[m] = 7; return y, m",
    "np.logical_not(m[1:], out=m[1:], where=m[:-1]); return m",
]


@pytest.mark.parametrize("lines", MASKS)
def test_masks_that_share_memory_with_what_is_written(lines):
    check(function(lines, "m"), lambda: [BITS.copy()])


def test_a_mask_may_be_the_very_array():
    def f(m):
        m[m] = False
        return ~m

    check(f, lambda: [BITS.copy()])
    compiled = tcompile.compile(f)
    assert compiled(BITS.copy()).all() and not compiled.breaks


COPIES = [
    "x[::2] = x[:8]", "x[::3] = x[:6]", "x[::2] = x[4:12]", "x[::4] = x[::2][:4]", "np.copyto(x[::2], x[:8])",
    "np.copyto(x[::2], x[:8], where=x[:8] > 2)", "x.reshape(2, 8)[0, ::2] = x[:4]",
    "h = len(x) // 2; x[::2], x[1::2] = x[:h], x[h:]", "x[::2] = x[1::2]",
    "x[:8] = x[::2]", "x[8:] = x[::2]", "x[8:0:-1] = x[:8]", "x[::-2] = x[::-1][:8]", "x[1:] = x[:-1]",
    "x[:-1] = x[1:]", "x[::-1] = x", "x[2:] = x[2:3]", "x[::2] += x[:8]", "x[3:11] = x[::2]",
]  # fmt: skip


@pytest.mark.parametrize("lines", COPIES)
@pytest.mark.parametrize("before", ["x", "x * 2", "x.astype('u1')", "np.concatenate([x, x])[::2]"])
def test_copies_within_one_array(lines, before):
    check(function(f"x = {before}; y = x.sum(); {lines}; x += 1; return x, x.sum(), y"), lambda: [np.arange(16.0)])


ROWS = [
    "x[:, 3] = x[2]", "x[2] = x[:, 3]", "x[0, 1:] = x[1:, 0]", "x[3, :3] = x[:3, 3]", "x[:, 1] = x[:, 2]",
    "x[0] = x[-1]", "x[:, 0], x[:, -1] = x[:, 1], x[:, -2]", "x[1, ::2] = x[1, :2]", "x[1, ::2] = x[2, :2]",
    "x.T[1] = x[:, 1][::-1]", "for i in range(1, 4): x[i, :i] = x[:i, i]", "for i in range(4): x[:, i] = x[2]",
    "for i in range(3): x[i + 1] = x[i]",
]  # fmt: skip


@pytest.mark.parametrize("lines", ROWS)
def test_rows_and_columns(lines):
    check(function(f"{lines}; x *= 2; return x, x.sum()"), lambda: [np.arange(16.0).reshape(4, 4)])
    check(function(f"x = x + 1; {lines}; return x, x.sum()"), lambda: [np.arange(16.0).reshape(4, 4)])


@pytest.mark.parametrize("lines", ["x[1:] = x[:-1]", "x[0] = x[-2]", "x[:, 0] = x[:, -2]", "x[2] = x[1, ::-1]"])
def test_what_leads_the_same_way_is_captured(lines):
    compiled = tcompile.compile(function(f"{lines}; x *= 2; return x"))
    compiled(np.arange(30.0).reshape(6, 5))
    assert not compiled.breaks


OUTPUTS = [
    "np.divmod(x, 3, out=(x, x))", "np.modf(x, out=(x[::-1], x))", "np.divmod(x, y, out=(z[1:-1], z[2:]))",
    "np.divmod(3, y, out=(y, y))", "np.divmod(x, y, out=(x, y))", "np.divmod(x, y, out=(z[:-2], None))",
]  # fmt: skip


@pytest.mark.parametrize("line", OUTPUTS)
def test_two_outputs_that_share_memory(line):
    def arguments():
        return [np.arange(8.0), np.arange(1.0, 9.0), np.zeros(10)]

    check(function(f"{line}; return x, y, z", "x, y, z"), arguments)
