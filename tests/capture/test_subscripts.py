"""``np.r_``, ``np.c_``, ``np.mgrid``, ``np.ogrid``, ``np.s_``: objects of NumPy's that are subscripted."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tests.differential import check


def arguments():
    return np.arange(4.0), np.arange(8.0).reshape(4, 2), 2.5


CALLED = {
    "rows": lambda v, x, s: np.r_[v, v],
    "numbers": lambda v, x, s: np.r_[v, 1, 2.5, v * 2] + 1,
    "scalars": lambda v, x, s: np.r_[v[0], v.sum(), v],
    "a float": lambda v, x, s: np.r_[v.astype("f4"), s],
    "ranges": lambda v, x, s: np.r_[0:5, v, 9:0:-2, -1:1:6j],
    "a size": lambda v, x, s: np.r_[0 : len(v), v],
    "lists": lambda v, x, s: np.r_[[1, 2], v],
    "masks": lambda v, x, s: np.r_[v > 1, True],
    "matrices": lambda v, x, s: np.r_[x, x],
    "one": lambda v, x, s: (np.r_[v], np.c_[v]),
    "columns": lambda v, x, s: np.c_[v, v * 2] + 1,
    "columns of a matrix": lambda v, x, s: np.c_[np.ones(4), x, 0:4],
    "a grid": lambda v, x, s: np.mgrid[0:5, 0:3] * v[0],
    "a grid of floats": lambda v, x, s: np.mgrid[0:1:5j, -1:1:0.5],
    "one axis": lambda v, x, s: (np.mgrid[0:5] * 2, np.ogrid[: len(v)] * v),
    "an empty grid": lambda v, x, s: np.mgrid[0:0, 0:2],
    "an open grid": lambda v, x, s: [g + 1 for g in np.ogrid[0:5, -1:1:3j]],
    "keys": lambda v, x, s: (v[np.s_[1:3]] + 1, x[np.index_exp[1:3, 0]] + 1, np.s_[..., None]),
}
OTHERS = {
    "directives": lambda v, x, s: np.r_["0,2", v, v],
    "unequal": lambda v, x, s: np.r_[v, x],
    "called": lambda v, x, s: np.r_(v),
    "a computed range": lambda v, x, s: np.mgrid[v[0] : 3],
    "an array as a key": lambda v, x, s: np.s_[v],
    "under a mask": lambda v, x, s: np.r_[v[v > 1], v],
    "nothing": lambda v, x, s: np.c_[()],
}


@pytest.mark.parametrize("name", CALLED)
def test_called(name):
    compiled = check(CALLED[name], arguments)[-1]
    assert not compiled.breaks, [(str(b), b.detail) for b in compiled.breaks]


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_plain_pythons(name):
    check(lambda v, x, s: OTHERS[name](v + 1, x, s), arguments)


def test_sizes_that_vary():
    f = tcompile.compile(lambda v: np.c_[v, np.r_[v[1:], 0]].sum(axis=1), dynamic=True)
    for n in (3, 5, 8):
        v = np.arange(float(n))
        np.testing.assert_array_equal(f(v), v + np.r_[v[1:], 0])
    assert not f.breaks
