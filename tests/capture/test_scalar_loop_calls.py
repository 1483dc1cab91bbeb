"""Functions that scalar loops call, and `np.vectorize`, which is such a loop: beside plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tcompile
from tests.differential import check

SCALE = 3.0


def bent(v, slope=2.0):
    if v > 0:
        return math.sqrt(v) * slope * SCALE
    return -v


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def nested(v):
    return bent(v, 0.5) + bent(float(v)) - abs(v)


def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def is_scalar_loop(compiled):
    return any(node.op.name == "scalar_loop" for graph in compiled.graphs for node in graph.nodes)


@pytest.mark.parametrize("function", [bent, nested])
def test_call_of_a_function(function):
    def f(x):
        made = np.zeros(len(x))
        for i in range(len(x)):
            made[i] = function(x[i]) + 1
        return made

    compiled = check(f, lambda: [np.linspace(-2, 2, 9)])
    assert is_scalar_loop(compiled[-1])


def test_call_with_a_loop_in_it():
    def f(x):
        longest = 0
        for i in range(len(x)):
            longest = max(longest, collatz(int(x[i])))
        return longest

    assert is_scalar_loop(check(f, lambda: [np.arange(1, 40)])[-1])


def test_call_that_writes_and_returns_nothing_else():
    def f(x, counts):
        def count(v):
            counts[v % 3] += 1
            return v

        total = 0
        for i in range(len(x)):
            total += count(x[i])
        return total

    check(f, lambda: [np.arange(10), np.zeros(3, int)])


def test_call_that_raises():
    def inverse(v):
        return 1 / v

    def f(x):
        made = np.zeros(len(x))
        for i in range(len(x)):
            made[i] = inverse(float(x[i]))
        return made

    check(f, lambda: [np.array([1.0, 0.0])])


def test_recursion_is_left_to_python():
    def f(x):
        total = 0
        for i in range(len(x)):
            total += factorial(int(x[i]))
        return total

    check(f, lambda: [np.arange(8)])


def test_function_that_is_defined_anew():
    def f(x):
        total = 0.0
        for i in range(len(x)):
            total += bent(x[i])
        return total

    global bent
    compiled, first = tcompile.compile(f), bent
    x = np.linspace(-1, 1, 9)
    try:
        assert compiled(x) == f(x)
        bent = abs
        assert compiled(x) == f(x)
    finally:
        bent = first


@np.vectorize
def halved(v):
    return v / 2 if v > 1 else v


def squared(v):
    return v * v


def mixed(v):
    return 0 if v < 1 else v * 0.5


def between(low, v, high=1.0):
    return min(max(low, v), high)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1", "?"])
@pytest.mark.parametrize("function", [squared, mixed, halved.pyfunc])
def test_vectorize(function, dtype):
    vectorized = np.vectorize(function)

    def f(x):
        return vectorized(x) + 1

    (compiled,) = check(f, lambda: [np.array([3, 1, 0, 1, 2]).astype(dtype)], backends=["llvm"])
    assert not compiled.breaks or dtype in ("?", "u1")  # whose halves are of half precision


@pytest.mark.parametrize("otypes", [[float], "i", [np.float32], [bool]])
def test_vectorize_with_a_dtype(otypes):
    vectorized = np.vectorize(mixed, otypes=otypes)

    def f(x):
        return vectorized(x)

    check(f, lambda: [np.linspace(-2, 4, 12).reshape(3, 4)], backends=["llvm"])
    check(f, lambda: [np.zeros((0, 4))], backends=["llvm"])


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, np.linspace(-1, 2, 7), 1.5), (np.zeros(7), np.linspace(-1, 2, 7)), (0, np.arange(5), 3),
        (np.zeros((3, 1)), np.arange(4.0), 2.0), (np.zeros(()), np.ones(())), (np.zeros(2), np.zeros(3)), (1.0, 2.0),
        (np.zeros((2, 2, 2)), np.ones(2)), ([1, 2], np.arange(2)), (np.ones(2),), (np.ones(0), 1.0),
        (np.asfortranarray(np.arange(6.0).reshape(2, 3)), 1.0), (np.arange(12.0)[::-2], 3.0),
        (1.0, np.broadcast_to(np.arange(2.0), (3, 2))),
    ],
)  # fmt: skip
def test_vectorize_of_several_arguments(arguments):
    vectorized = np.vectorize(between)
    check(lambda *given: vectorized(*given), lambda: list(arguments), backends=["llvm"])


def test_vectorize_calls_first_with_numpys_scalar():
    vectorized = np.vectorize(lambda v: v * v)
    big = np.array([1e200, 1.0])  # of which NumPy warns once, and Python's own floats never
    check(lambda x: vectorized(x), lambda: [big], backends=["llvm"])
    check(lambda x: vectorized(x), lambda: [big[::-1]], backends=["llvm"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.vectorize(bent, excluded=[1]), lambda: np.vectorize(bent, excluded={"slope"}),
        lambda: np.vectorize(np.sum, signature="(n)->()"), lambda: np.vectorize(lambda v: (v, -v)),
        lambda: np.vectorize(math.floor), lambda: np.vectorize(lambda v: str(v)),
        lambda: np.vectorize(bent, cache=True), lambda: np.vectorize(lambda v: None),
        lambda: np.vectorize(lambda v: 1 / v),
    ],
)  # fmt: skip
def test_vectorize_that_is_numpys_own(make):
    vectorized = make()
    check(lambda x: vectorized(x), lambda: [np.array([0.5, 2.0, 0.0])], backends=["llvm"])


def test_vectorize_made_inside():
    def f(x):
        return np.vectorize(lambda v: v * 2 if v > 0 else -v)(x) + 1

    check(f, lambda: [np.linspace(-1, 1, 5)], backends=["llvm"])


def test_vectorize_prints_as_often():
    def told(v):
        print(v)
        return v

    vectorized = np.vectorize(told)
    check(lambda x: vectorized(x), lambda: [np.arange(3)], backends=["llvm"])


@pytest.mark.parametrize("function", [lambda v: v > 1, lambda v: v * 1e308, lambda v: v - v, lambda v: v + 1])
def test_vectorize_warns_of_what_python_computes(function):
    """Python's floats leave flags, also where two are compared, and at the end a ufunc looks at them."""
    vectorized = np.vectorize(function)
    for given in ([1.0, np.nan, 3.0], [1.0, 1e300, np.inf], [np.nan, 2.0]):
        check(lambda x: vectorized(x), lambda given=given: [np.array(given)])


@pytest.mark.parametrize("make", [np.vectorize, lambda function: np.vectorize(function, otypes=[float])])
@pytest.mark.parametrize("limit", [0.5, math.nan])
def test_vectorize_warns_of_compared_nans(limit, make):
    for function in (lambda v: v > limit, lambda v: max(v, limit), lambda v: v == limit, lambda v: between(v, limit)):
        vectorized = make(function)
        for given in ([3.0, math.nan, 1.0], [3.0, 1.0]):
            check(lambda x: vectorized(x), lambda given=given: [np.array(given)], backends=["llvm"])


def test_vectorize_hands_nans_through():
    vectorized = np.vectorize(lambda v: v * 2)
    (compiled,) = check(lambda x: vectorized(x), lambda: [np.array([1.0, math.nan])], backends=["llvm"])
    assert not compiled.breaks and not any(entry.replays for entry in compiled.entries)
