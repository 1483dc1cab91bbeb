"""The names of ``torch.func``."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile import func
from tcompile.errors import InvalidArgument

X = np.array([0.3, -1.2, 2.5])


def test_the_names():
    for name in ("jvp", "linearize", "vjp"):
        assert getattr(func, name) is getattr(tcompile, name)
    np.testing.assert_array_equal(func.grad(lambda x: (np.sum(x * x), x), 0, True)(X)[0], 2 * X)
    np.testing.assert_array_equal(func.jacrev(lambda x: x * x)(X), np.diag(2 * X))
    np.testing.assert_array_equal(func.jacfwd(lambda x: (x * x, 1.0), 0, True)(X)[0], np.diag(2 * X))
    np.testing.assert_array_equal(func.hessian(lambda x, y: np.sum(x * x) * y, (0,))(X, 2.0)[0][0], 4 * np.eye(3))


def test_gradient_and_value():
    gradient, value = func.grad_and_value(lambda x: np.sum(x * x))(X)
    np.testing.assert_array_equal(gradient, 2 * X)
    assert value == np.sum(X * X)
    gradient, (value, more) = func.grad_and_value(lambda x: (np.sum(x * x), x + 1), has_aux=True)(X)
    np.testing.assert_array_equal(more, X + 1)


def test_inside_of_a_compiled_function():
    @tcompile.compile(fullgraph=True)
    def step(x):
        gradient, value = func.grad_and_value(lambda x: np.sum(x * x))(x)
        return x - 0.1 * gradient, value

    np.testing.assert_allclose(step(X)[0], 0.8 * X)


def test_batches():
    batch = np.stack([X, X + 1])
    np.testing.assert_allclose(func.vmap(np.sum, in_dims=1)(batch), batch.sum(axis=0))
    got = func.vmap(lambda x: x * 2, out_dims=1, chunk_size=1)(batch)
    np.testing.assert_array_equal(got, 2 * batch.T)
    with pytest.raises(InvalidArgument, match="randomness must be 'different', got 'same'"):
        func.vmap(np.sum, randomness="same")
