"""Derivatives of scalar loops: each is a loop that records its path, and one that goes back."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tcompile
from tcompile.graph.ops.scalar_loop import LIBRARY, LIBRARY_OF_TWO, UFUNCS
from tcompile.transforms.autodiff import scalar_loops
from tcompile.transforms.autodiff.program_rules import RULES

from .gradient_check import assert_modes_agree

pytestmark = pytest.mark.filterwarnings("error::UserWarning")  # of a function that runs in plain Python


def recurrence(x: Any) -> Any:
    h = np.zeros(len(x))
    h[0] = 1.0
    for t in range(1, len(x)):
        h[t] = 0.1 + 0.3 * x[t - 1] ** 2 + 0.5 * h[t - 1]
    return np.sum(np.log(h) + x * x / h)


def branches(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            total += x[i] * x[i]
        elif x[i] > 0:
            total -= math.sin(x[i])
        else:
            total = total * 1.01 + x[i]
    return total


def leaves_early(x: Any) -> Any:
    total = 0.1
    for i in range(len(x)):
        total += x[i] * total
        if total > 0.4:
            break
    return total * total


def returns_early(x: Any) -> Any:
    total = 1.0
    for i in range(len(x)):
        total *= math.exp(x[i])
        if total > 2.0:
            return total * x[i]
    return total


def until_small(x: Any) -> Any:
    root = 1.0 + x[0] * x[0]
    a = 2.0 + x[1] * x[1]
    while abs(root * root - a) > 1e-12:
        root = root - (root * root - a) / (2 * root)
    return root


def nested(x: Any) -> Any:
    y = np.zeros((len(x), len(x)))
    for i in range(len(x)):
        for j in range(i, len(x)):
            y[i, j] = x[i] * x[j]
            if j > 0:
                y[i, j] += 0.5 * y[i, j - 1] * x[j]
    return np.sum(y * y)


def in_place(x: Any) -> Any:
    y = x * 1.0
    for i in range(1, len(y)):
        y[i] += 0.9 * y[i - 1] * y[i]
        y[i - 1] = y[i] - 0.3
        y[i] *= y[i - 1]
    return np.sum(y)


def repeated_indices(x: Any) -> Any:
    bins = np.zeros(3)
    for i in range(len(x)):
        bins[i % 3] = bins[i % 3] * 0.5 + x[i]
    return bins[0] * bins[1] + bins[2] ** 2


def largest(x: Any) -> Any:
    best, where = x[0], 0
    for i in range(1, len(x)):
        if x[i] > best:
            best, where = x[i], i
    return best * where + np.minimum(best, x[0] * 0.5)


def calls(x: Any) -> Any:
    def smooth(a: Any, b: Any) -> Any:
        return a * 0.9 + math.tanh(b) if a < b else a

    total = 0.0
    for i in range(len(x)):
        total = smooth(total, x[i])
    return total


def viewed(x: Any) -> Any:
    m = np.zeros((7, 3))
    column = m[:, 1]
    for i in range(7):
        column[i] = x[i] * x[0]
        m[i, 2] = column[i] ** 2
    return np.sum(m) + m[2, 1]


def appends(x: Any) -> Any:
    found = []
    for i in range(len(x)):
        if x[i] > 0:
            found.append(x[i] * x[i])
    total = 0.0
    for value in found:
        total += value
    return total


def counts(x: Any) -> Any:
    k, s = 27, x[0]
    while k != 1:
        if k % 2:
            k, s = 3 * k + 1, s * 1.01
        else:
            k, s = k // 2, s + x[1]
    return s


def swaps(x: Any) -> Any:
    a, b = 1.0, 0.5
    for i in range(len(x)):
        a, b = b * x[i], a + 1.0
    return a * b


def product_with_zero(x: Any) -> Any:
    p = 1.0
    for i in range(len(x)):
        p = p * (x[i] if i != 2 else 0.0) + x[0]
    return p


FUNCTIONS = (
    recurrence, branches, leaves_early, returns_early, until_small, nested, in_place, repeated_indices, largest, calls,
    viewed, counts, swaps, product_with_zero,
)  # fmt: skip
ARGUMENTS = [np.random.default_rng(seed).standard_normal(7) for seed in range(4)]


def loops_in(function: Any) -> int:
    return sum(node.op.name == "scalar_loop" for graph in function.graphs for node in graph.nodes)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_against_differences(function, stance):
    with tcompile.set_stance(stance):
        for x in ARGUMENTS:
            tcompile.check_grads(function, order=2)(x)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_forward_and_reverse_agree(function):
    for x in ARGUMENTS:
        assert_modes_agree(function, x)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_graph_for_all_paths(function):
    """The loop and its backward loop stay loops, whichever way a call takes."""
    gradient = tcompile.grad(function)
    for x in ARGUMENTS:
        gradient(x)
    (graph,) = gradient.graphs
    assert loops_in(gradient) == 2
    assert len(graph.nodes) < 80


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_batches(function):
    batch = np.stack(ARGUMENTS)
    gradients = tcompile.vmap(tcompile.grad(function))(batch)
    np.testing.assert_allclose(gradients, [tcompile.grad(function)(x) for x in ARGUMENTS], rtol=1e-9)
    hessian = tcompile.hessian(function)(ARGUMENTS[0])
    columns = [tcompile.hvp(function)(ARGUMENTS[0], row) for row in np.eye(7)]
    np.testing.assert_allclose(hessian, columns, rtol=1e-9, atol=1e-12)


def test_a_list_that_grows():
    for x in ARGUMENTS:
        np.testing.assert_allclose(tcompile.grad(appends)(x), np.where(x > 0, 2 * x, 0))


def test_numbers_are_differentiated_too():
    def compound(rate: Any, years: Any) -> Any:
        value = 1.0
        for _ in range(years):
            value = value * (1.0 + rate) if value < 3.0 else value + rate
        return value

    for rate in (0.05, 0.2, np.float64(0.1)):
        got = tcompile.grad(compound)(rate, 30)
        difference = (compound(rate + 1e-6, 30) - compound(rate - 1e-6, 30)) / 2e-6
        assert type(got) is type(rate)
        np.testing.assert_allclose(got, difference, rtol=1e-5)


def test_single_precision():
    x = ARGUMENTS[0].astype(np.float32)
    got = tcompile.grad(branches)(x)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, tcompile.grad(branches)(x.astype(float)), rtol=1e-5, atol=1e-6)


def test_arrays_of_single_precision_that_the_loop_writes():
    def function(x: Any) -> Any:
        kept = np.zeros((2, 3), np.float32)
        total = 0.0
        for i in range(len(x)):
            kept[i % 2, i % 3] += x[i] * x[i]
            total = total + kept[1, 1] * 0.5
            kept[0, 1] = kept[0, 1] ** 1.5
        return total + kept[0, 0] + kept[0, 1]

    for x in ARGUMENTS:
        with mock.patch.object(np, "float32", np.float64):
            exact = tcompile.grad(function)(x)
        np.testing.assert_allclose(tcompile.grad(function)(x), exact, rtol=1e-5, atol=1e-6)


def test_an_array_of_ints_has_no_cotangent():
    def function(x: Any) -> Any:
        steps = np.zeros(3, np.int32)
        total = 0.0
        for i in range(len(x)):
            steps[i % 3] = x[i] * 3
            total += steps[i % 3] * x[i]
        return total

    for x in ARGUMENTS:
        np.testing.assert_array_equal(tcompile.grad(function)(x), (x * 3).astype(np.int32))


def test_sizes_that_vary():
    gradient = tcompile.grad(nested, 0)
    for size in (3, 5, 8, 1, 0, 12):
        x = np.random.default_rng(size).standard_normal(size)
        tcompile.check_grads(nested)(x)
        assert gradient(x).shape == (size,)
    assert len(gradient.graphs) <= 4


def test_draws_are_constants():
    def price(volatility: Any, steps: Any, rng: Any) -> Any:
        total, s = 0.0, 1.0
        for _ in range(steps):
            s = s * math.exp(volatility * rng.standard_normal())
            if s > 1.0:
                total += s - 1.0
        return total

    def at(volatility: Any) -> Any:
        return price(volatility, 50, np.random.default_rng(3))

    gradient = tcompile.grad(price)
    got = gradient(0.1, 50, np.random.default_rng(3))
    np.testing.assert_allclose(got, (at(0.1 + 1e-6) - at(0.1 - 1e-6)) / 2e-6, rtol=1e-5)


def test_a_tape_that_is_too_short():
    """The derivative then follows the path of the call."""
    with mock.patch.object(scalar_loops, "_ROOM", 3):
        tcompile.reset()
        for x in ARGUMENTS:
            np.testing.assert_allclose(tcompile.grad(until_small)(x), exact_root(x), rtol=1e-9, atol=1e-15)
    tcompile.reset()


def exact_root(x: Any) -> Any:
    gradient = np.zeros(len(x))
    gradient[1] = x[1] / math.sqrt(2.0 + x[1] * x[1])
    return gradient


def test_a_pole_that_matters_to_nothing():
    def root(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            if x[i] > 0:
                total += math.sqrt(x[i])
        return total

    assert tcompile.grad(root)(np.array([0.0, 4.0, -1.0])).tolist() == [0.0, 0.25, 0.0]


def test_a_pole_is_infinite():
    def root(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            total += np.sqrt(x[i])
        return total

    assert tcompile.grad(root)(np.array([0.0, 4.0])).tolist() == [math.inf, 0.25]


def test_an_exception_is_the_functions_own():
    def checked(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            if x[i] < 0:
                raise ValueError(f"negative: {i}")
            total += x[i] ** 1.5
        return total

    gradient = tcompile.grad(checked)
    np.testing.assert_allclose(gradient(np.array([1.0, 4.0])), [1.5, 3.0])
    with pytest.raises(ValueError, match="negative: 1"):
        gradient(np.array([1.0, -4.0]))
    np.testing.assert_allclose(gradient(np.array([9.0, 4.0])), [4.5, 3.0])


CALLED = [f"math.{name}" for name in (*LIBRARY, "sqrt", "fabs")] + [f"np.{name}" for name in (*UFUNCS, "sqrt")]


def test_each_function_has_a_rule():
    assert {*CALLED, *(f"math.{name}" for name in (*LIBRARY_OF_TWO, "hypot"))} <= set(RULES)


@pytest.mark.parametrize("name", CALLED)
def test_a_function_of_a_number(name):
    library, _, short = name.partition(".")
    function = getattr(math if library == "math" else np, short)
    two = short in ("arctan2", "maximum", "minimum", "power")
    above = short in ("acosh", "arccosh")

    def total(x: Any) -> Any:
        s = 0.0
        for i in range(len(x)):
            s = s * 0.5 + (function(x[i], s) if two else function(x[i]))
        return s

    x = np.array([0.3, 0.7, 0.2, 0.85]) + (1.1 if above else 0.0)
    tcompile.check_grads(total, order=1 if short in ("floor", "ceil", "trunc", "rint") else 2)(x)


def test_a_loop_of_iterations_that_each_run_one():
    weights = np.random.default_rng(5).standard_normal((7, 7)) * 0.5

    def steps(x: Any) -> Any:
        y = x.copy()
        for _ in range(40):
            y = np.tanh(y @ weights)
            for i in range(1, 7):
                if y[i] > y[i - 1]:
                    y[i] = y[i] * y[i - 1] + x[i]
        return np.sum(y)

    for x in ARGUMENTS:
        tcompile.check_grads(steps)(x)
