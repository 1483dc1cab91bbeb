"""Functions that are called at a graph break are compiled by themselves, where that cannot be told."""

from __future__ import annotations

import sys
import warnings

import numpy as np

import tcompile

X = np.linspace(-1.0, 2.0, 5)


def halves(x, log):
    log.append("a")
    y = x * 0.5
    print(end="")
    return y + 1


def test_a_callee_that_breaks_has_graphs_of_its_own():
    def f(x, log):
        return halves(x + 1, log) * 3

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(3):
        log: list[str] = []
        np.testing.assert_array_equal(compiled(X, log), f(X, []))
        assert log == ["a"]
    assert [graph.op_count for graph in compiled.graphs] == [1, 1]
    inner = tcompile.compile(halves, backend="eager")  # the entries that the calls above have made
    assert [graph.op_count for graph in inner.graphs] == [1, 1]
    assert [broke.reason.id for broke in compiled.breaks] == ["input-output"]


def test_methods_closures_and_lambdas_are_followed():
    class Scale:
        def __init__(self, k):
            self.k = k

        def apply(self, x):
            print(end="")
            return x * self.k

    def f(x, scale):
        def inner(y):
            print(end="")
            return y + x

        return scale.apply(inner(x)) + (lambda z: [print(end=""), z - 1][1])(x)

    compiled = tcompile.compile(f, backend="eager")
    for k in (2.0, 3.0):
        np.testing.assert_array_equal(compiled(X, Scale(k)), f(X, Scale(k)))


def test_who_looks_at_its_caller_finds_it():
    def who():
        return sys._getframe(1).f_code.co_name

    def warns(x):
        warnings.warn("look", stacklevel=2)
        return x

    def f(x):
        y = x * 2
        name = who()
        return warns(y) + 1, name

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value, name = tcompile.compile(f, backend="eager")(X)
    assert name == "f" and [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(value, X * 2 + 1)


def test_recursion_through_a_break():
    def f(x, n):
        if n == 0:
            return x
        print(end="")
        return f(x + n, n - 1) * 2

    np.testing.assert_array_equal(tcompile.compile(f, backend="eager")(X, 5), f(X, 5))
