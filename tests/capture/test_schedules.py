"""Rates and temperatures: Python's floats that a loop computes from the induction variable."""

from __future__ import annotations

import math

import numpy as np
import pytest
from differential import check

import tcompile


def decay(x, n):
    for t in range(1, n + 1):
        x = x - x * (0.5 / (1 + 0.125 * t)) * 0.9**t
    return x


def adam(x, n):
    w, m, v = x * 0, x * 0, x * 0
    for t in range(1, n + 1):
        g = w - x
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - 0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w


def halves(x, n):
    for t in range(n):
        x = x * (1 - 0.25 * 0.5 ** (t // 10))
    return x


def anneals(x, n):
    temperature = 10.0
    for t in range(n):
        temperature = temperature * 0.95
        x = np.where(x > temperature, x - 1, x + math.exp(-1 / temperature))
    return x, temperature


def of_the_iteration(x, n):
    for t in range(1, n + 1):
        x = x + math.exp(-t / 10) + math.sqrt(t) * 0.125 + math.sin(0.1 * t) + math.log(t) + t**0.5 + 1 / t
    return x


def adapts(x, n):
    h = 0.5
    for _ in range(n):
        error = float(np.abs(x).max()) + 0.125
        h = h * (0.5 / error) ** 2 + 2 ** (-error)
        x = x * 0.75 + h
    return x, h


def of_numbers(x, n):
    return math.exp(x[0]) + math.cos(x[1]) * math.tanh(x.sum()) + math.fabs(x[2]) / float(x[0])


LOOPS = [decay, adam, halves, anneals, of_the_iteration, adapts]


@pytest.mark.parametrize("n", [40, 1])
@pytest.mark.parametrize("f", [*LOOPS, of_numbers], ids=lambda f: f.__name__)
def test_floats_of_the_iteration(f, n):
    compiled = check(f, lambda: (np.array([0.5, -1.25, 2.0]), n), ulp=400)
    assert not any(made.breaks for made in compiled)


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_many_iterations_are_one_node(f):
    compiled = tcompile.compile(f)
    x = np.array([0.5, -1.25, 2.0])
    got, want = compiled(x, 3000), f(x, 3000)
    np.testing.assert_allclose(np.hstack(got), np.hstack(want), rtol=1e-12)
    (graph,) = compiled.graphs
    assert [node.op.name for node in graph.nodes if node.regions] == ["fori_loop"] and not compiled.breaks


def divides_by_zero(x, n):
    for t in range(n):
        x = x + 1 / (t - 20)
    return x


def overflows(x, n):
    for t in range(n):
        x = x + 1e20**t
    return x


def out_of_domain(x, n):
    for t in range(n):
        x = x + math.log(20 - t)
    return x


def no_root(x, n):
    for t in range(n):
        x = x + (20 - t) ** 0.5
    return x


def grows(x, n):
    h = 2.0
    for _ in range(n):
        h = h**2
        x = x + h
    return x


@pytest.mark.parametrize("n", [15, 40])
@pytest.mark.parametrize("f", [divides_by_zero, overflows, out_of_domain, no_root, grows], ids=lambda f: f.__name__)
def test_what_python_makes_of_errors(f, n):
    """Only Python knows the words, and some of these are no errors: a root may be complex."""
    check(f, lambda: (np.array([0.5, -1.25, 2.0]), n), ulp=400)


ANY = [(0.0, 1.0), (1e300, 1e-300), (1e-300, 1e300), (np.inf, 2.0), (np.nan, 0.5), (-2.0, 0.0)]


@pytest.mark.parametrize("values", ANY)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: float(x[0]) / float(x[1]), lambda x: float(x[0]) ** 2, lambda x: 0.5 ** float(x[0]),
        lambda x: math.exp(x[0]), lambda x: math.log(x[0]), lambda x: math.cos(x[0]), lambda x: math.tanh(x[0]),
        lambda x: math.fabs(x[0]) + 1,
    ],
)  # fmt: skip
def test_any_floats(f, values):
    check(f, lambda: (np.array(values),), ulp=4)
    with np.errstate(all="raise"):
        check(f, lambda: (np.array(values),), ulp=4)


def large(x, n):
    for t in range(n):
        x = x + math.sqrt(t * 10**16) * 1e-9
    return x


def of_uneven_ints(x, n):
    k = 1
    for _ in range(n):
        k = k * 3 % 7
        x = x + math.sqrt(k) + math.log(k + 1)
    return x


def alternates(x, n):
    for t in range(n):
        x = x + (-1) ** t
    return x


@pytest.mark.parametrize("f", [large, of_uneven_ints, alternates], ids=lambda f: f.__name__)
def test_functions_and_powers_of_ints(f):
    check(f, lambda: (np.array([0.5, -1.25, 2.0]), 70), ulp=400)


def test_powers_of_ints_are_said_to_be_pythons():
    (loop,) = tcompile.explain(alternates)(np.ones(3), 70).loops
    assert "Python itself computes `-1` ** a" in str(loop)


def test_exact_leaves_powers_to_python():
    compiled = tcompile.compile(decay, options={"exact": True})
    x = np.array([0.5, -1.25, 2.0])
    assert compiled(x, 40).tolist() == decay(x, 40).tolist()
