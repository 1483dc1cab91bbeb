"""Derivatives of the user's own: ``custom_vjp`` and ``custom_jvp``."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile.errors import DerivativeError, InvalidType

X = np.array([0.3, -1.2, 2.5])


def clipped_with(rule):
    @tcompile.custom_vjp
    def clipped(x):
        """The docstring."""
        return np.clip(x, 0, 1)

    clipped.defvjp(lambda x: (np.clip(x, 0, 1), (x,)), rule)
    return clipped


def through(residuals, g):
    return (g * 2 + residuals[0],)


@tcompile.custom_jvp
def softplus(x):
    return np.logaddexp(x, 0.0)


@softplus.defjvp
def _softplus_rule(primals, tangents):
    (x,), (t,) = primals, tangents
    return softplus(x), 10 * t / (1 + np.exp(-x))


@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_reverse_rule(stance):
    clipped = clipped_with(through)
    gradient = tcompile.grad(lambda x: np.sum(clipped(x * 2) * x))
    with tcompile.set_stance(stance):
        np.testing.assert_allclose(clipped(X), np.clip(X, 0, 1))
        np.testing.assert_allclose(gradient(X), np.clip(2 * X, 0, 1) + 2 * (2 * X + 2 * X))
        np.testing.assert_allclose(tcompile.jvp(clipped, (X,), (X,))[1], 2 * X)
    assert clipped.__name__ == "clipped" and clipped.__doc__ == "The docstring."


@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_forward_rule(stance):
    want = 10 / (1 + np.exp(-X))
    with tcompile.set_stance(stance):
        np.testing.assert_allclose(tcompile.grad(lambda x: np.sum(softplus(x)))(X), want)
        np.testing.assert_allclose(tcompile.jvp(softplus, (X,), (X,))[1], want * X)
        np.testing.assert_allclose(tcompile.jacrev(softplus)(X), np.diag(want))
        np.testing.assert_allclose(tcompile.jacfwd(softplus)(X), np.diag(want))
        assert tcompile.grad(softplus)(0.0) == 5.0
        second = tcompile.hessian(lambda x: np.sum(softplus(x)))(X)
    slope = want * (1 - want / 10)
    np.testing.assert_allclose(second, np.diag(slope))


def test_trees_and_arguments_without_derivative():
    @tcompile.custom_vjp
    def both(x, n, pair):
        return {"product": x * pair[0] * n, "spectrum": np.fft.fft(x).real}

    def forward(x, n, pair):
        return both(x, n, pair), {"n": n, "pair": pair}

    def backward(residuals, g):
        a, _ = residuals["pair"]
        return g["product"] * a * residuals["n"] + g["spectrum"], None, (None, g["product"] * 0 + 7)

    both.defvjp(forward, backward)

    def total(x, pair):
        found = both(x, 2, pair)
        return np.sum(found["product"]) + 3 * np.sum(found["spectrum"])

    with pytest.raises(DerivativeError):
        tcompile.grad(total, (0, 1))(X, (X + 1, X))

    both.defvjp(forward, lambda residuals, g: (*backward(residuals, g)[:2], (g["product"], g["product"] * 0 + 7)))
    first, (second, third) = tcompile.grad(total, (0, 1))(X, (X + 1, X))
    np.testing.assert_allclose(first, 2 * (X + 1) + 3)
    np.testing.assert_allclose(second, np.ones(3))
    np.testing.assert_allclose(third, np.full(3, 7.0))


def test_loops_branches_and_batches():
    clipped = clipped_with(lambda residuals, g: (g * 2,))

    def looped(x):
        total = 0.0
        for i in range(5):
            total = total + np.sum(clipped(x * i))
        return total

    def branched(x):
        return np.sum(clipped(x)) if x.sum() > 0 else np.sum(x)

    np.testing.assert_allclose(tcompile.grad(looped)(X), np.full(3, 20.0))
    np.testing.assert_allclose(tcompile.grad(branched)(X), np.full(3, 2.0))
    batch = np.stack([X, -X])
    np.testing.assert_allclose(tcompile.vmap(clipped)(batch), np.clip(batch, 0, 1))
    inside = tcompile.vmap(tcompile.grad(lambda x: np.sum(clipped(x))))(batch)
    around = tcompile.grad(lambda xs: np.sum(tcompile.vmap(clipped)(xs)))(batch)
    np.testing.assert_allclose(inside, np.full((2, 3), 2.0))
    np.testing.assert_allclose(around, np.full((2, 3), 2.0))


@pytest.mark.parametrize("rule", [
    (lambda x: (x * x, x), lambda x, g: (g * x * 100,)),
    (lambda x: (x * x, (x, None)), lambda r, g: (g * r[0] * 100,)),
    (lambda x: (x * x, {"x": [x]}), lambda r, g: (g * r["x"][0] * 100,)),
])  # fmt: skip
def test_residuals_are_those_of_the_call(rule):
    @tcompile.custom_vjp
    def square(x):
        return x * x

    square.defvjp(*rule)

    def total(x):
        y = x * 1
        z = square(y)
        y[0] = 7.0
        return np.sum(z) + y[0]

    np.testing.assert_allclose(tcompile.grad(total)(X), 100 * X)


def test_the_second_derivative_is_that_of_the_rule():
    @tcompile.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, g: (g * 3 * x**2,))
    np.testing.assert_allclose(tcompile.grad(tcompile.grad(cube))(2.0), 12.0)
    np.testing.assert_allclose(tcompile.hvp(lambda x: np.sum(cube(x)))(X, X), 6 * X * X)


def test_what_has_no_derivative_otherwise():
    @tcompile.custom_vjp
    def power(x):
        return np.sum(np.abs(np.fft.rfft(x)) ** 2)

    power.defvjp(lambda x: (power(x), x), lambda x, g: (g * x,))
    np.testing.assert_allclose(tcompile.grad(lambda x: power(x) + x[0])(X), X + np.array([1, 0, 0]))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: tcompile.custom_vjp(3), InvalidType, "custom_vjp: fun must be callable, got int 3"),
    (lambda: clipped_with(3), InvalidType, "custom_vjp: backward must be callable, got int 3"),
    (lambda: softplus.defjvp("no"), InvalidType, "custom_jvp: rule must be callable, got str"),
    (lambda: tcompile.custom_vjp(np.sin)(X), DerivativeError, r"sin has no rule: call sin\.defvjp"),
    (lambda: tcompile.custom_jvp(np.sin)(X), DerivativeError, r"sin has no rule: call sin\.defjvp"),
    (lambda: tcompile.grad(lambda x: np.sum(clipped_with(lambda r, g: g)(x)))(X), DerivativeError, "not a tuple of 1"),
    (lambda: tcompile.grad(lambda x: np.sum(clipped_with(lambda r, g: (g, g))(x)))(X), DerivativeError, "2 cotangents"),
    (lambda: tcompile.grad(lambda x: np.sum(clipped_with(lambda r, g: ([None],))(x)))(X), DerivativeError, "structure"),
    (lambda: tcompile.grad(lambda x: np.sum(clipped_with(lambda r, g: (g[:2],))(x)))(X), DerivativeError, "the shape"),
])  # fmt: skip
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()
