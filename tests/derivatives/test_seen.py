"""What is told of a gradient: operations and bytes by line, and where the first NaN is made.

Input: small functions. Output: none; the tests fail where a line or a number is wrong. Why: users look here first.
"""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile.errors import InvalidType


def model(w, x, y):
    h = np.tanh(x @ w)
    e = h - y
    return np.mean(e * e)


def test_a_table_by_lines():
    w, x, y = np.ones((4, 3)), np.ones((5, 4)), np.zeros((5, 3))
    told = tcompile.explain(tcompile.grad(model))(w, x, y)
    (table,) = told.derivatives.values()
    head, *rows = table.splitlines()
    assert head.split() == ["line", "forward", "backward", "recomputed", "stored"]
    product = next(row for row in rows if "np.tanh(x @ w)" in row)
    assert product.split()[-4:] == ["2", "4", "120", "B"] or product.split()[-2:] == ["120", "B"]
    assert "Derivative in graph 1" in str(told) and "derivative in graph 1" in told._repr_html_()
    assert not tcompile.explain(model)(w, x, y).derivatives


def test_rows_of_a_loop():
    """One row of 10 elements for each of 25 iterations."""

    def f(x):
        for _ in range(25):
            x = np.sin(x) * 1.1
        return np.sum(x)

    told = tcompile.explain(tcompile.grad(f))(np.linspace(0.0, 1.0, 10))
    (table,) = told.derivatives.values()
    assert "2 kB" in next(row for row in table.splitlines() if "np.sin(x)" in row)


def test_a_nan_of_the_derivative():
    def distance(x, y):
        d = x - y
        return np.sqrt(np.sum(d * d))

    found = tcompile.find_nan(distance)(np.ones(3), np.ones(3))
    assert found.backward and "np.sqrt(np.sum(d * d))" in found.where and found.operands == (np.inf, 0.0)
    assert "derivative of line" in str(found)
    assert tcompile.find_nan(distance)(np.ones(3), np.zeros(3)) is None


def test_a_nan_of_the_function():
    def f(x, n):
        for _ in range(n):
            x = np.sqrt(x) - 0.5
        return np.sum(x)

    found = tcompile.find_nan(f)(np.ones(3), 6)
    assert not found.backward and "np.sqrt(x)" in found.where


def test_a_nan_that_is_given():
    found = tcompile.find_nan(np.sum)(np.array([1.0, np.nan]))
    assert str(found) == "The function gets a NaN: argument 0."


def test_nothing_is_changed():
    """Arguments are copies, and later gradients are as before."""

    def f(x):
        x[0] = 0.0
        return np.sum(np.sqrt(x))

    x = np.array([1.0, 4.0])
    gradient = tcompile.grad(f)
    before = gradient(x.copy())
    tcompile.find_nan(f)(x)
    np.testing.assert_array_equal(x, [1.0, 4.0])
    np.testing.assert_array_equal(gradient(x), before)


def test_bad_input():
    with pytest.raises(InvalidType, match="find_nan: fun must be callable, got int 3"):
        tcompile.find_nan(3)
    with pytest.raises(InvalidType, match="no argument is a float"):
        tcompile.find_nan(np.sum)(3)
