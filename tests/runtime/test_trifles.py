"""Stretches inside a function that cost less than entering them run plainly, and are soon not looked at any more."""

from __future__ import annotations

from collections import deque

import numpy as np
from differential import check

import tcompile

X = np.arange(200.0)


@tcompile.disable
def opaque():
    pass


def numbers_between_breaks(items):
    total = 0
    for item in items:
        opaque()
        total = total + item * 2
    return total


def inside(compiled):
    """The entries of stretches that hold operations, but for the one at the function's start."""
    others = [entry for entry in compiled.entries if entry not in compiled.cache.first.entries]
    return [entry for entry in others if entry.graph is not None and entry.graph.nodes]


def test_a_few_numbers_run_plainly_and_arrays_do_not():
    (*_, compiled) = check(numbers_between_breaks, lambda: (list(X[:5]),))
    assert inside(compiled)
    assert all(entry.captured.graph is None for entry in inside(compiled))
    (*_, compiled) = check(numbers_between_breaks, lambda: ([X, X, X],))
    assert inside(compiled)
    assert all(entry.captured.graph is not None for entry in inside(compiled))


def test_operations_on_numbers_that_are_worth_it():
    def f(items):
        total = items[0]
        for item in items:
            opaque()
            for _ in range(30):
                total = total * 0.5 + item
        return total

    (*_, compiled) = check(f, lambda: (list(X[:5]),))
    assert any(entry.captured.graph is not None for entry in inside(compiled))


def test_resume_points_sleep_and_wake():
    tcompile.reset()
    compiled = tcompile.compile(numbers_between_breaks)
    for _ in range(3):
        assert compiled(list(X)) == numbers_between_breaks(X)
    assert compiled.cache.asleep
    for _ in range(3):  # the sixth call looks again
        np.testing.assert_array_equal(compiled([X, X + 1]), numbers_between_breaks([X, X + 1]))
    assert not compiled.cache.asleep  # for something was compiled
    assert any(entry.captured.graph is not None for entry in inside(compiled))


def test_resume_points_that_sleep_are_left_out_when_calls_have_settled():
    tcompile.reset()
    compiled = tcompile.compile(numbers_between_breaks)
    for _ in range(70):
        assert compiled(list(X[:20])) == numbers_between_breaks(X[:20])
    cache = compiled.cache
    assert cache.asleep and cache.rewritten is not cache.built
    for _ in range(30):
        np.testing.assert_array_equal(compiled([X, X + 1]), numbers_between_breaks([X, X + 1]))
    assert cache.rewritten is cache.built
    assert any(entry.captured.graph is not None for entry in inside(compiled))


def kept_in_a_list(x):
    waiting, out = deque(), []
    for i in range(len(x)):
        waiting.append(i)
        if i > 2:
            out.append(x[waiting.popleft()])
    return np.array(out)


def test_a_trifle_before_a_call_of_what_is_not_compiled_sleeps():
    tcompile.reset()
    compiled = tcompile.compile(kept_in_a_list)
    for _ in range(8):
        np.testing.assert_array_equal(compiled(X), X[: len(X) - 3])
    before = {entry: entry.hits for entry in inside(compiled)}
    np.testing.assert_array_equal(compiled(X), X[: len(X) - 3])
    assert before and sum(entry.hits - hits for entry, hits in before.items()) < 10


def test_a_long_list_of_numbers_becomes_an_array_in_plain_python():
    items = list(X * 0.5)
    (*_, compiled) = check(lambda items: np.array(items) * 2 + 1, lambda: (items,))
    assert [broke.reason.id for broke in compiled.breaks] == ["array-conversion"]
    assert all(len(entry.captured.guards) < 100 for entry in compiled.entries)
    (*_, compiled) = check(lambda items: np.array(items) * 2 + 1, lambda: (items[:9],))
    assert not compiled.breaks
    whole = tcompile.compile(lambda items: np.array(items) * 2 + 1, fullgraph=True)
    np.testing.assert_array_equal(whole(items), X + 1)


def test_plain_python_has_few_guards():
    """Those of each item took longer than the loop."""

    def f(keys, values):
        found = {}
        for key, value in zip(keys, values, strict=True):
            found[key] = found.get(key, 0.0) + value
        return found

    keys = [f"k{i % 5}" for i in range(300)]
    values = [float(i) for i in range(300)]
    (*_, compiled) = check(f, lambda: (keys, values))
    (entry, *_) = compiled.entries
    assert entry.captured.graph is None and len(entry.captured.guards) <= 64
