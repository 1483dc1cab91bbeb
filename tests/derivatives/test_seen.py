"""What is told of a gradient: operations and bytes by line, and where the first NaN is made.

Input: small functions. Output: none; the tests fail where a line or a number is wrong. Why: users look here first.
"""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile.errors import DerivativeError, InvalidType


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


def test_a_nan_that_reaches_nothing():
    def masked(x):
        return np.sum(np.where(x > 0.0, np.sqrt(np.abs(x)), np.log(x)) * (x > 0.0))

    def overwritten(x):
        y = np.log(x)
        y[x < 0.0] = 0.0
        return np.sum(y)

    x = np.array([1.0, -1.0])
    assert tcompile.find_nan(overwritten)(x) is None
    assert tcompile.find_nan(masked)(np.abs(x)) is None
    found = tcompile.find_nan(masked)(x)
    assert not found.backward and "np.log(x)" in found.where and found.operands == (-1.0,)


def test_memory_that_is_not_written():
    """There is room for 4096 rows, of which a loop that ends early writes few."""

    def f(x):
        for _ in range(5000):
            x = np.cos(x)
            if np.max(np.abs(np.cos(x) - x)) < 1e-3:
                break
        return np.sum(x)

    rubbish = [np.full(1 << 18, np.nan) for _ in range(8)]
    del rubbish
    for _ in range(3):
        assert tcompile.find_nan(f)(np.linspace(0.0, 1.0, 30)) is None


def test_a_nan_of_a_loop_is_told_by_its_line():
    def f(x, most):
        scale = 1.0
        for _ in range(most):
            y = np.log(x)
            x = np.sin(x) - 0.2
            scale = scale * 0.5
            if np.sum(y) > 10.0:
                break
            x = x + scale * y
        return np.sum(x)

    found = tcompile.find_nan(f)(np.ones(3), 5)
    assert found.where.endswith("y = np.log(x)") and found.operation == "log" and found.operands[0] < 0.0
    assert not found.backward

    def derivative(x):
        for _ in range(3):
            x = np.sqrt(x * x)
        return np.sum(x)

    found = tcompile.find_nan(derivative)(np.array([0.0, 1.0]))
    assert found.where.endswith("x = np.sqrt(x * x)") and found.backward and found.operation == "multiply"


def test_a_nan_of_an_array_that_the_function_holds():
    held = np.array([np.nan, 1.0])
    found = tcompile.find_nan(lambda x: np.sum(x * held))(np.ones(2))
    assert str(found) == "The function gets a NaN: `held`."


def test_arguments_of_all_kinds():
    assert "derivative of the function" in str(tcompile.find_nan(np.linalg.norm)(np.zeros(2)))

    def f(p, *, q, z=0j):
        return np.sum(np.sqrt(p["a"])) + q * abs(z)

    found = tcompile.find_nan(f)({"a": np.array([-1.0])}, q=2.0, z=1j)
    assert "np.sqrt(p" in found.where
    assert str(tcompile.find_nan(f)({"a": np.ones(1)}, q=float("nan"))) == "The function gets a NaN: argument 'q'."
    with pytest.raises(DerivativeError, match="int 3"):
        tcompile.find_nan(f)({"a": np.ones(1), "b": 3}, q=1.0)


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
