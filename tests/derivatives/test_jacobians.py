"""``jacrev``, ``jacfwd``, ``hessian`` and ``linearize``, beside finite differences and one another."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile.errors import DerivativeError

from .test_rules import CASES

X = np.array([0.3, -1.2, 2.5, 0.9])
A = np.random.default_rng(0).standard_normal((3, 4))


def differences(function, x, step=1e-6):
    """The Jacobian of a function of one array, by central differences."""
    columns = []
    for unit in np.eye(x.size).reshape(x.size, *x.shape):
        columns.append((function(x + step * unit) - function(x - step * unit)) / (2 * step))
    last = np.moveaxis(np.stack(columns), 0, -1)
    return last.reshape(*last.shape[:-1], *x.shape)


@pytest.mark.parametrize("name", CASES)
def test_each_operation(name):
    function, *args = CASES[name]
    numbers = tuple(range(len(args)))
    by_rows, by_columns = (jacobian(function, numbers)(*args) for jacobian in (tcompile.jacrev, tcompile.jacfwd))
    for number, (rows, columns) in enumerate(zip(by_rows, by_columns, strict=True)):
        if np.ndim(args[number]):
            want = differences(lambda x, n=number: function(*args[:n], x, *args[n + 1 :]), args[number])
            np.testing.assert_allclose(rows, want, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(rows, columns, rtol=1e-12, atol=1e-12)
        assert np.shape(rows) == np.shape(function(*args)) + np.shape(args[number])


@pytest.mark.parametrize("name", CASES)
def test_hessian_of_each_operation(name):
    function, *args = CASES[name]
    numbers = tuple(range(len(args)))

    def total(*given):
        return np.sum(np.sin(function(*given)))

    found = tcompile.hessian(total, numbers)(*args)
    gradient = tcompile.grad(total, numbers)
    for i, row in enumerate(found):
        for j, block in enumerate(row):
            assert np.shape(block) == np.shape(args[i]) + np.shape(args[j])
            if np.ndim(args[j]):
                want = differences(lambda x, n=j, m=i: np.asarray(gradient(*args[:n], x, *args[n + 1 :])[m]), args[j])
                np.testing.assert_allclose(block, want, rtol=2e-5, atol=2e-5)


def relaxed(x):
    y = x.copy()
    for _ in range(30):
        y[1:] += 0.1 * np.sin(y[:-1])
    return y


@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_loops(stance):
    with tcompile.set_stance(stance):
        np.testing.assert_allclose(tcompile.jacrev(relaxed)(X), differences(relaxed, X), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(tcompile.jacfwd(relaxed)(X), differences(relaxed, X), rtol=1e-6, atol=1e-8)
        second = tcompile.hessian(lambda x: np.sum(relaxed(x) ** 2))(X)
    np.testing.assert_allclose(second, second.T, rtol=1e-10)


@pytest.mark.parametrize("stance", ["default", "force_eager"])
@pytest.mark.parametrize("jacobian", [tcompile.jacrev, tcompile.jacfwd])
def test_trees_and_kinds(jacobian, stance):
    def function(p, scale):
        return {"double": p["w"] * 2, "more": (p["w"] @ p["v"] * scale,)}

    with tcompile.set_stance(stance):
        found = jacobian(function)({"w": X, "v": X * 3}, 2.0)
        both = jacobian(function, (0, 1))({"w": X, "v": X * 3}, 2.0)
        number = jacobian(lambda t: t * t)(3.0)
        vector = jacobian(lambda t: X * t)(np.float64(3.0))
        single = jacobian(np.sin)(X.astype(np.float32))
        named = jacobian(lambda x, *, by: x * by, (), "by")(X, by=2.0)
    np.testing.assert_array_equal(found["double"]["w"], 2 * np.eye(4))
    np.testing.assert_array_equal(found["double"]["v"], np.zeros((4, 4)))
    np.testing.assert_array_equal(found["more"][0]["v"], 2 * X)
    np.testing.assert_array_equal(both["double"][1], np.zeros(4))
    np.testing.assert_allclose(both["more"][0][1], 3 * X @ X)
    assert number == 6.0
    np.testing.assert_array_equal(vector, X)
    assert single.dtype == np.float32 and single.shape == (4, 4)
    np.testing.assert_array_equal(named[0], X)


@pytest.mark.parametrize("jacobian", [tcompile.jacrev, tcompile.jacfwd, tcompile.hessian])
def test_what_is_returned_besides(jacobian):
    found, more = jacobian(lambda x: (np.sum(x * x), {"x": x + 1}), has_aux=True)(X)
    np.testing.assert_array_equal(found, 2 * np.eye(4) if jacobian is tcompile.hessian else 2 * X)
    np.testing.assert_array_equal(more["x"], X + 1)


def test_jacobians_of_a_batch():
    batch = np.stack([X, X + 1, X - 2])
    want = np.stack([(1 - np.tanh(A @ x) ** 2)[:, None] * A for x in batch])
    for jacobian in (tcompile.jacrev, tcompile.jacfwd):
        np.testing.assert_allclose(tcompile.vmap(jacobian(lambda x: np.tanh(A @ x)))(batch), want)


def test_linearize():
    value, push = tcompile.linearize(lambda x, y: np.sin(x) * y, X, 2.0)
    np.testing.assert_allclose(value, 2 * np.sin(X))
    np.testing.assert_allclose(push(X, 1.0), 2 * np.cos(X) * X + np.sin(X))
    np.testing.assert_allclose(push(np.zeros(4), 3.0), 3 * np.sin(X))


@pytest.mark.parametrize(("call", "text"), [
    (lambda jacobian: jacobian(np.sin)(2), r"argument 0 is the int 2, .*: pass 2\.0"),
    (lambda jacobian: jacobian(np.sin, 1)(X), "no argument 1"),
    (lambda jacobian: jacobian(lambda x: x * 1j)(X), "returns a complex number"),
    (lambda jacobian: jacobian(lambda x: np.partition(x, 2))(X), "numpy.partition has no derivative rule"),
    (lambda jacobian: jacobian(lambda x: "no")(X), "str"),
])  # fmt: skip
@pytest.mark.parametrize("jacobian", [tcompile.jacrev, tcompile.jacfwd, tcompile.hessian])
def test_bad_input(call, text, jacobian):
    with pytest.raises(DerivativeError, match=text):
        call(jacobian)
