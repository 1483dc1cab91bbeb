"""Errors of finite differences by their step.

Input: small functions, right and wrong gradients. Output: none; the tests fail where a verdict is wrong. Why: one step
alone may agree, or differ, by chance.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import tcompile
from tcompile.errors import InvalidType
from tcompile.gradient_checks import STEPS


def test_arguments_of_all_kinds():
    def f(x, p, n=3, *, s):
        return np.sum(np.sin(x) ** n) * p["a"] + s * s + np.sum(p["b"][0])

    x, p = np.linspace(0.0, 1.0, 5), {"a": 2.0, "b": [np.ones(2), 3.0]}
    found = tcompile.gradient_errors(f)(x, p, 2, s=2.0)
    assert [errors.argument for errors in found] == ["x", "p", "s"]
    assert all(errors.agrees and errors.steps == STEPS and len(errors.errors) == len(STEPS) for errors in found)
    assert found[2].gradient == 4.0 and found[1].gradient["b"][1] == 0.0
    np.testing.assert_array_equal(x, np.linspace(0.0, 1.0, 5))
    assert str(found[0]).startswith("the gradient by x agrees to ")
    assert [errors.argument for errors in tcompile.gradient_errors(np.add)(1.0, 2.0)] == ["x1", "x2"]


def test_the_error_falls_with_the_square_of_the_step():
    (found,) = tcompile.gradient_errors(lambda x: np.exp(np.sum(x)))(np.full(3, 0.1))
    first, third = found.errors[0], found.errors[2]
    assert 50 < first / third < 200 and found.best < 1e-8


def test_other_directions():
    f = tcompile.gradient_errors(lambda x: np.sum(x**3), seed=1)
    (one,), (other,) = f(np.ones(4)), tcompile.gradient_errors(lambda x: np.sum(x**3), seed=2)(np.ones(4))
    assert one.errors != other.errors and f(np.ones(4))[0].errors == one.errors


def times(factor, dtype, constant=0.0):
    """The sum of squares, and this multiple of its gradient."""

    @tcompile.custom_vjp
    def f(x):
        return np.sum(x**2) + np.asarray(constant, dtype)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * np.asarray(2 * factor, dtype) * x,))
    return f


@pytest.mark.parametrize("factor", [0.0, 0.5, 2.0, -1.0])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_wrong_gradient_differs_at_all_steps(dtype, factor):
    for seed in range(20):
        (wrong,) = tcompile.gradient_errors(times(factor, dtype), seed)(np.ones(3, dtype))
        (right,) = tcompile.gradient_errors(times(1.0, dtype), seed)(np.ones(3, dtype))
        assert not wrong.agrees and not right.differs
        if dtype != "float16":  # in which rounding may hide all changes
            assert wrong.differs and "DIFFERS" in str(wrong) and right.agrees


@pytest.mark.parametrize("constant", [1e6, 1e8])
def test_a_large_constant_hides_no_wrong_gradient(constant):
    """Small steps change the last places of the value alone; they are left out."""
    for seed in range(20):
        (wrong,) = tcompile.gradient_errors(times(0.0, "float64", constant), seed)(np.ones(3))
        (right,) = tcompile.gradient_errors(times(1.0, "float64", constant), seed)(np.ones(3))
        assert wrong.differs and right.agrees and np.isnan(right.errors[-1])


def test_no_value_beside_the_arguments():
    """There are steps at which the function has no value; the smaller ones still confirm the gradient."""
    (found,) = tcompile.gradient_errors(lambda x: np.sum(np.log(x)))(np.array([1e-6, 1.0]))
    assert np.isnan(found.errors[0]) and found.agrees


def test_at_a_minimum():
    """The derivative is zero, so errors are relative to the slope of a secant."""
    a = np.random.default_rng(0).standard_normal((20, 3))
    b = np.arange(20.0)
    w = np.linalg.lstsq(a, b, rcond=None)[0]
    (found,) = tcompile.gradient_errors(lambda w: np.mean((a @ w - b) ** 2))(w)
    assert found.agrees
    (found,) = tcompile.gradient_errors(lambda x: (x - 0.1) ** 2 * (1 + x))(0.1)
    assert found.agrees
    (found,) = tcompile.gradient_errors(lambda x: 1e-9 * x)(0.1)
    assert found.agrees and found.best < 1e-9
    twice = times(2.0, "float64")
    (found,) = tcompile.gradient_errors(lambda x: twice(x) * 1e-9)(np.full(3, 0.1))
    assert found.differs


@pytest.mark.filterwarnings("ignore")
def test_exceptions_beside_the_domain():
    (found,) = tcompile.gradient_errors(lambda x: math.log(x))(1e-3)
    assert np.isnan(found.errors[0]) and found.agrees
    (found,) = tcompile.gradient_errors(np.linalg.norm)(np.zeros(2))
    assert "is NaN; tcompile.find_nan tells" in str(found) and not found.differs
    (found,) = tcompile.gradient_errors(np.sqrt)(0.0)
    assert str(found).endswith("is infinite")
    (found,) = tcompile.gradient_errors(lambda x: np.sum(np.log(x)))(-np.ones(2))
    assert not found.agrees and not found.differs


def test_arguments_are_not_changed():
    class Model:
        w = 1.0

    def f(x, p, y):
        p.w += 1.0
        y[...] = y * 2
        return np.sum(x * y) + 0.0 * p.w

    p, y = Model(), np.array(2.0)
    assert all(errors.agrees for errors in tcompile.gradient_errors(f)(np.ones(2), p, y))
    assert p.w == 1.0 and y == 2.0


def test_dtypes_and_scales_of_several_arguments():
    x = np.linspace(0.1, 1.0, 4, dtype=np.float32)
    assert all(errors.agrees for errors in tcompile.gradient_errors(lambda a, w: np.sum(np.exp(w * a)))(1.5, x))
    far = {"a": np.array([1.0, 1e6]), "b": np.float64(1e6)}
    (found,) = tcompile.gradient_errors(lambda p: np.sum(np.log(p["a"])) + np.log(p["b"]))(far)
    assert found.agrees


def test_names_of_arguments():
    def f(a, *rest, k=1.0):
        return a * rest[0] * rest[1] * k

    found = tcompile.gradient_errors(f)(1.0, 2.0, 3.0)
    assert [errors.argument for errors in found] == ["a", "1", "2"]


def test_what_cannot_be_checked():
    with pytest.raises(InvalidType, match="no argument is a float"):
        tcompile.gradient_errors(lambda n: n)(3)
    with pytest.raises(InvalidType, match="fun must be callable, got int 3"):
        tcompile.gradient_errors(3)
