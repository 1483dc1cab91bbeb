"""Derivatives of functions whose control flow depends on values, beside finite differences."""

from __future__ import annotations

import functools
import gc
import math
import warnings
import weakref

import numpy as np
import pytest

import tcompile
from tcompile.errors import DerivativeError

from .gradient_check import assert_modes_agree

X = np.array([0.3, -1.2, 2.5, 0.9])


def two_sides(x):
    if np.sum(x) > 0:
        return np.sum(x * x)
    return np.sum(np.sin(x))


def chain(x):
    if x[0] > 1 and x[1] < 0:
        y = x * 3
    elif not x[2] > 0 or x[3] > 5:
        y = np.exp(x)
    else:
        y = x**2
    return np.sum(y * (1 if x[0] > x[1] else -2))


def until_small(x):
    count = 0
    while np.sum(x * x) > 0.5:
        x = x * 0.7
        count += 1
    return np.sum(np.sin(x)) * count


def newton(x):
    a = np.sum(x * x) + 1
    root = a
    for _ in range(60):
        step = (root * root - a) / (2 * root)
        root = root - step
        if abs(step) < 1e-13:
            break
    return root


def by_elements(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            total += x[i] ** 2
        elif x[i] < -0.5:
            total -= math.sin(x[i])
        else:
            continue
        total *= 1.5
    return total


def written(x):
    out = np.zeros(4)
    for i in range(4):
        if x[i] > 0:
            out[i] = x[i] * x[i - 1]
        else:
            out[:i] += x[i]
    return np.sum(out * out)


def largest(x):
    k = int(np.argmax(x))
    return x[k] ** 3 + np.sum(x[: k + 1])


def masked(x):
    return np.sum(x[x > 0.5] ** 2)


def grown(x):
    values = []
    v = np.sum(np.abs(x))
    while v > 0.2:
        values.append(v)
        v = v * 0.6
    return np.sum(np.array(values) ** 2)


def recursive(x, depth=6):
    v = x.max()
    if depth == 0 or v < 0.5:
        return np.sum(x * x)
    return recursive(x * 0.8, depth - 1) + v


def sorted_by_value(x):
    order = sorted(range(4), key=lambda i: -x[i])
    return x[order[0]] * x[order[-1]] + max(x[1], x[2]) ** 2


def counted_inside(x):
    y = x.copy()
    for i in range(30):
        y[1:] += 0.1 * np.sin(y[:-1])
    if y[-1] > 0:
        y = y * 2
    return np.sum(y)


def interpolated(x):
    t = x[0]
    i = int(t * 4)
    return (t - i / 4) ** 2 + float(x[1]) ** 2


FUNCTIONS = [
    two_sides, chain, until_small, newton, by_elements, written, largest, masked, grown, recursive, sorted_by_value,
    counted_inside, interpolated,
]  # fmt: skip
ARGUMENTS = [X, -X, X[::-1].copy(), X * 0.3, X + 1, np.abs(X), X * 4]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_against_differences(function, stance):
    with tcompile.set_stance(stance):
        for _ in range(2):
            for x in ARGUMENTS:
                tcompile.check_grads(function)(x)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_second_derivatives(function):
    for x in ARGUMENTS[:3]:
        tcompile.check_grads(function, order=2)(x)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_forward_and_reverse_agree(function):
    for x in ARGUMENTS:
        assert_modes_agree(function, x)


@pytest.mark.parametrize("function", [two_sides, until_small, newton])
def test_inside_of_other_functions(function):
    @tcompile.compile
    def step(x):
        return x - 0.1 * tcompile.grad(function)(x)

    batch = np.stack(ARGUMENTS)
    want = np.stack([tcompile.grad(function)(x) for x in ARGUMENTS])
    for x, gradient in zip(ARGUMENTS, want, strict=True):
        np.testing.assert_allclose(step(x), x - 0.1 * gradient)
    np.testing.assert_allclose(tcompile.vmap(tcompile.grad(function))(batch), want)
    around = tcompile.grad(lambda xs: np.sum(tcompile.vmap(function)(xs)))
    np.testing.assert_allclose(around(batch), want)


def test_dtypes_and_sizes():
    gradient = tcompile.grad(two_sides)
    for x in (X.astype(np.float32), X[:2], X.reshape(2, 2), X, np.float64(2.0), 3.0, -3.0, X[:1]):
        found = gradient(x)
        want = 2 * x if np.sum(x) > 0 else np.cos(x)
        np.testing.assert_allclose(found, want, rtol=1e-6)
        assert type(found) is type(x) and np.asarray(found).dtype == np.asarray(x).dtype


def test_more_paths_than_are_kept():
    def function(x):
        count = 0
        while x[0] > count:
            count += 1
        return np.sum(x) * count

    gradient = tcompile.grad(function)
    for _ in range(2):
        for n in range(12):
            np.testing.assert_array_equal(gradient(np.array([n - 0.5, 2.0])), [n, n])


def test_a_path_that_is_known_is_not_compiled_again():
    from tcompile.observe import bus
    from tcompile.observe.events import CompileStarted

    gradient = tcompile.grad(two_sides)
    for x in (X, -X, X, -X):
        gradient(x)
    seen = []
    off = bus.subscribe(lambda event: seen.append(event) if isinstance(event, CompileStarted) else None)
    try:
        for x in ARGUMENTS:
            gradient(x)
        for k in range(3):
            tcompile.grad(functools.partial(lambda x, k: two_sides(x) * k, k=k))(X)
    finally:
        off()
    assert not [event for event in seen if "two_sides" in event.function]


def test_draws_happen_once():
    def function(x, random):
        z = random.standard_normal(4)
        if x.sum() > 0:
            return np.sum(x * z)
        return np.sum(np.sin(x) * z)

    random, other = np.random.default_rng(0), np.random.default_rng(0)
    gradient = tcompile.grad(function)
    for x in (X, -X, X, -X, X):
        z = other.standard_normal(4)
        np.testing.assert_allclose(gradient(x, random), z if x.sum() > 0 else np.cos(x) * z)


def test_effects_happen_once():
    seen = []

    def function(x):
        seen.append(len(seen))
        if x.sum() > 0:
            return np.sum(x * x)
        return np.sum(x)

    gradient = tcompile.grad(function)
    for n, x in enumerate((X, -X, X, -X), 1):
        gradient(x)
        assert len(seen) == n


def test_the_functions_own_exceptions_and_conditions():
    def function(x):
        if x[0] > 1:
            raise KeyError("large")
        if x[0] < 0:
            return np.sum(x @ np.linalg.inv(np.zeros((4, 4))))
        return np.sum(np.log(x - x[0]))

    gradient = tcompile.grad(function)
    with pytest.raises(KeyError, match="large"):
        gradient(X * 10)
    with pytest.raises(np.linalg.LinAlgError):
        gradient(-X)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gradient(np.array([0.5, 1.0, 2.0, 3.0]))
        assert ["divide by zero" in str(one.message) for one in caught] == [True]
        assert caught[0].filename == __file__


@pytest.mark.parametrize("most_ops", [0, 4000])
def test_other_paths_neither_raise_nor_warn(monkeypatch, most_ops):
    """What a graph computes on another path than the call's is not the call's."""
    monkeypatch.setattr("tcompile.derivatives._MOST_OPS", most_ops)

    def function(x):
        if x[0] > 0:
            return np.sum(np.log(x)) + np.sum(np.linalg.inv(np.diag(x)))
        return np.sum(x * x) + x[int(x[1])]

    gradient = tcompile.grad(function)
    positive, other = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            np.testing.assert_allclose(gradient(positive), 1 / positive - 1 / positive**2)
            np.testing.assert_allclose(gradient(other), 2 * other + [1, 0, 0])
            np.testing.assert_allclose(gradient(np.array([-1.0, 2.0, 5.0])), [-2, 4, 11])


def test_a_break_is_an_error_with_its_line():
    def function(x):
        if x.sum() > 0:
            open("positive")
        return np.sum(x * x)

    with pytest.raises(DerivativeError, match=r'open\("positive"\)'):
        tcompile.grad(function)(X)
    np.testing.assert_array_equal(tcompile.grad(function)(-X), -2 * X)


@pytest.mark.parametrize("derive", [
    lambda f, x: tcompile.grad(f)(x),
    lambda f, x: tcompile.jvp(f, (x,), (x,)),
    lambda f, x: tcompile.vmap(f)(np.stack([x, -x])),
    lambda f, x: tcompile.vjp(f, x)[1](1.0),
    lambda f, x: tcompile.hessian(f)(x),
])  # fmt: skip
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_a_function_and_what_it_holds_is_let_go(derive, stance):
    """A function that a training loop makes for each batch must not keep the batch."""
    gone = []
    with tcompile.set_stance(stance):
        for _ in range(3):
            held = np.ones(4)
            function = lambda x, held=held: np.sum(x * held) if x[0] > 0 else np.sum(x)
            gone.append(weakref.ref(function))
            derive(function, X)
            del function
    gc.collect()
    assert [reference() for reference in gone] == [None] * 3
