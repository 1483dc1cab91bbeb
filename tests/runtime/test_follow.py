"""Functions that are called at a graph break are compiled by themselves, where that cannot be told."""

from __future__ import annotations

import gc
import logging
import random
import sys
import traceback
import warnings
import weakref

import numpy as np
import pytest

import tcompile
from tcompile.runtime import cache as caches

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


def by_place(x):
    warnings.warn("look", DeprecationWarning, 2)
    return x * 2


def by_two_names(x):
    warnings.warn("look", category=DeprecationWarning, stacklevel=2)
    return x * 2


def by_another_name(x):
    told("look", UserWarning, 2)
    return x * 2


told = warnings.warn


def logged(x):
    logging.getLogger(__name__).warning("look", extra={}, stacklevel=2)
    return x * 2


def extracted(x):
    print(traceback.extract_stack()[-2].name, frame().f_back.f_code.co_name)
    return x * 2


frame = sys._getframe


@pytest.mark.parametrize("helper", [by_place, by_two_names, by_another_name, logged, extracted])
def test_places_of_callers_are_told_as_plain_python_tells_them(helper, caplog, capsys):
    def f(x):
        return helper(x + 1) - 1

    def seen(called):
        caplog.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            called(X)
        records = [(record.funcName, record.lineno) for record in caplog.records]
        return [(w.filename, w.lineno) for w in caught], records, capsys.readouterr().out

    compiled = tcompile.compile(f, backend="eager")
    expected = seen(f)
    assert any(expected)
    for _ in range(3):
        assert seen(compiled) == expected


def test_recursion_through_a_break():
    def f(x, n):
        if n == 0:
            return x
        print(end="")
        return f(x + n, n - 1) * 2

    np.testing.assert_array_equal(tcompile.compile(f, backend="eager")(X, 5), f(X, 5))


def jumps(x):
    return random.triangular() * 0 + x * 2 + 1


def steps(x, n):
    total = 0.0
    for _ in range(n):
        total = jumps(x) + total
    return total


def test_functions_with_nothing_to_compile_are_called_as_they_are_and_looked_at_again():
    tcompile.reset()
    compiled = tcompile.compile(steps)
    for _ in range(2):
        assert compiled(1.5, 1000) == steps(1.5, 1000)
    inner = caches.followed[jumps]
    assert inner.cache.is_quiet and compiled.cache.asleep
    for _ in range(12):
        np.testing.assert_array_equal(compiled(X, 3), steps(X, 3))
    assert any(graph.op_count for graph in inner.graphs)  # what the function computes of arrays is compiled after all
    tcompile.reset()
    assert not caches.followed


def test_a_loop_that_calls_a_library_alone_is_soon_plain():
    def f(n):
        return [random.triangular(1, 2) for _ in range(n)]

    tcompile.reset()
    compiled = tcompile.compile(f)
    for seed in range(3):
        random.seed(seed)
        want = f(1000)
        random.seed(seed)
        assert compiled(1000) == want
    nested = [compiled.cache, *(cache for cache in caches.caches() if "listcomp" in cache.name)]
    assert all(cache.asleep for cache in nested[-1:])


def encloses(x):
    def inner(y):
        print(end="")
        return y + x

    return inner(x)


def has_defaults(x):
    return (lambda y, more=x: [print(end=""), y + more][1])(x)


@pytest.mark.parametrize("function", [encloses, has_defaults])
def test_functions_made_by_a_call_are_not_kept(function):
    tcompile.reset()
    compiled = tcompile.compile(function, backend="eager")
    x = np.ones(3)
    held = weakref.ref(x)
    np.testing.assert_array_equal(compiled(x), [2, 2, 2])
    del x
    gc.collect()
    assert held() is None and not caches.followed


@pytest.mark.at_recompile_limit
def test_calls_that_never_fit_end_in_the_function_itself():
    def count(names):
        def inner(name):
            print(end="")
            return len(names) + len(name)

        total = 0
        for k in range(2000):
            names.append(str(k))
            total += inner(names[-1])
        return total

    compiled = tcompile.compile(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [compiled([]) for _ in range(3)] == [count([])] * 3


def tree(depth, x):
    if depth < 0:
        return x
    random.random()
    return max(tree(depth - 1, x + 0.5), tree(depth - 2, x - 0.5), key=np.sum)


def test_recursion_without_array_work_is_soon_plain_and_with_it_is_not():
    tcompile.reset()
    compiled = tcompile.compile(tree)
    for _ in range(12):
        assert compiled(10, 1.5) == tree(10, 1.5)
    assert compiled.cache.is_quiet
    for _ in range(4):
        np.testing.assert_array_equal(compiled(10, X), tree(10, X))
    assert any(graph.op_count for graph in compiled.graphs)
    assert not compiled.cache.is_quiet


def doubled(x):
    y = x * 2 + 1
    random.random()
    return y


def test_who_calls_a_function_with_arrays_after_many_numbers_gets_a_graph_at_once():
    tcompile.reset()
    compiled = tcompile.compile(doubled)
    for _ in range(1000):
        assert compiled(1.5) == 4.0
    np.testing.assert_array_equal(compiled(X), doubled(X))
    assert any(graph.op_count for graph in compiled.graphs)
