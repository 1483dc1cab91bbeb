"""``np.isclose``, ``np.allclose`` and ``np.array_equal``."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tests.differential import check


def arguments():
    x = np.linspace(1, 2, 24).reshape(4, 6)
    return x, x * (1 + np.arange(6) * 3e-6), np.arange(24).reshape(4, 6)


FUSED = {
    "arrays": lambda x, y, i: np.isclose(x, y),
    "tolerances": lambda x, y, i: np.isclose(x, y, rtol=1e-7, atol=0) | np.isclose(y, x, 0, 1e-5),
    "a number": lambda x, y, i: np.isclose(x, 1.0) | np.isclose(1, y, atol=0.5) | np.isclose(i, True),
    "float32": lambda x, y, i: np.isclose(x.astype("f4"), y.astype("f4")),
    "two dtypes": lambda x, y, i: np.isclose(x.astype("f4"), y) | np.isclose(x, i) | np.isclose(i, y.astype("f4")),
    "integers": lambda x, y, i: np.isclose(i, i[::-1], rtol=0.5) | np.isclose(i.astype("u1"), i > 3),
    "broadcast": lambda x, y, i: np.isclose(x, y[0]) | np.isclose(x[:, :1], y),
    "scalars": lambda x, y, i: (np.isclose(x[0, 0], y[0, 0]), np.isclose(x.sum(), 3.0), np.isclose(x[0, 0, ...], 1)),
    "Fortran": lambda x, y, i: np.isclose(x.T, y.T),
    "NaNs": lambda x, y, i: np.isclose(x * 0 + np.nan, y * 0 + np.nan, equal_nan=True),
    "all": lambda x, y, i: (np.allclose(x, y), np.allclose(x, y, atol=0.1), np.allclose(x[:0], y[0])),
    "equal": lambda x, y, i: [np.array_equal(*two) for two in ((x, y), (x, x + 0), (i, i[0]), (i, x), (x[0, 0], 1.0))],
    "equal where broadcast": lambda x, y, i: (np.array_equiv(i, i[0]), np.array_equiv(i * 0, 0)),
}
OTHERS = {
    "no broadcasting": lambda x, y, i: np.array_equiv(x, x[:, :3]),
    "arrays as tolerances": lambda x, y, i: np.isclose(x, y, rtol=y * 1e-6),
    "no tolerance": lambda x, y, i: np.isclose(x, y, atol=np.inf),
    "infinite": lambda x, y, i: np.isclose(x, np.inf),
    "complex": lambda x, y, i: (np.isclose(x + 1j, y), np.allclose(x + 0j, y)),
    "two orders": lambda x, y, i: np.isclose(x[:, :4], y[:, :4].T),
    "equal NaNs": lambda x, y, i: np.array_equal(x, y, equal_nan=True),
    "other shapes": lambda x, y, i: np.isclose(x, y.T),
    "numbers": lambda x, y, i: (np.isclose(1.0, 2.0), np.allclose(1, 1.0)),
    "in a branch": lambda x, y, i: x if np.allclose(x, y) else y,
    "NaNs and integers": lambda x, y, i: np.isclose(i, y, equal_nan=True),
}


@pytest.mark.parametrize("name", FUSED)
def test_fused(name):
    compiled = check(FUSED[name], arguments)[-1]
    assert not compiled.breaks, [(str(b), b.detail) for b in compiled.breaks]
    assert all(node.op.name != "call" for graph in compiled.graphs for node in graph.nodes)


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    check(lambda x, y, i: OTHERS[name](x * 2, y * 2, i + 1), arguments)


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e308, -1e308, 5e-324])
def test_special_values(x):
    others = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e308, 1e-9])
    check(lambda x, y: (np.isclose(x, y), np.isclose(y, x), np.allclose(x, y), x == y), lambda: (np.full(7, x), others))


def test_a_loop_until_it_is_close():
    def f(x):
        for i in range(50):
            new = 0.5 * (x + 2 / x)
            if np.allclose(x, new, rtol=1e-9):
                return new, i
            x = new
        return x, -1

    check(f, lambda: (np.linspace(1, 9, 30),))


def test_one_kernel():
    compiled = tcompile.compile(lambda x, y: np.allclose(np.sqrt(x) ** 2, y))
    assert compiled(np.ones(9), np.ones(9)) is True
    assert compiled(np.ones(9), np.zeros(9)) is False
    assert not compiled.breaks
