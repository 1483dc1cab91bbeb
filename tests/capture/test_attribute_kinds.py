"""Attributes that scalar loops set to other kinds of numbers than they hold before, or to None."""

from __future__ import annotations

import math
import types

import numpy as np

import tcompile


class Filter:
    """Starts with Python's numbers, or None, and then holds NumPy's."""

    def __init__(self, rate=0.1, level=0.0, best=None):
        self.rate, self.level, self.best, self.count = rate, level, best, 0

    def step(self, value):
        self.level += self.rate * (value - self.level)
        return self.level

    def keep_first(self, value):
        if self.best is None:
            self.best = value
        self.count += 1


def kinds_of(filter):
    return {name: (type(value), value) for name, value in vars(filter).items()}


def same_filters(f, make, *inputs):
    """Checks results and attributes, kinds included, of several calls on one object; returns the function compiled."""
    for backend in ("eager", "llvm"):
        tcompile.reset()
        compiled = tcompile.compile(f, backend=backend)
        for x in inputs:
            plain, ours = make(), make()
            for _ in range(2):
                assert repr(compiled(x, ours)) == repr(f(x, plain))
                assert kinds_of(ours) == kinds_of(plain)
    return compiled


X = np.random.default_rng(0).random(50)


def test_an_attribute_becomes_numpys():
    def f(x, filter):
        for i in range(len(x)):
            filter.step(x[i])
        return filter.level

    compiled = same_filters(f, Filter, X, X[:0], X[:1])
    assert not compiled.breaks


def test_an_attribute_is_none_until_a_value():
    def f(x, filter):
        for i in range(len(x)):
            if x[i] > 0.5:
                filter.keep_first(x[i])
        return filter.best, filter.count

    compiled = same_filters(f, Filter, X, X * 0.1, X[:0], -X)
    assert not compiled.breaks


def test_an_attribute_becomes_none_and_an_int():
    def f(x, filter):
        for i in range(len(x)):
            filter.level = None if x[i] < 0.3 else i
            if x[i] > 0.9:
                filter.level = x[i]
                if i > 20:
                    break
        return 0 if filter.level is None else filter.level

    same_filters(f, Filter, X, X * 0.1, X + 1, X[:20])


def test_objects_that_the_function_makes():
    def f(x, filter):
        own = Filter(0.2)
        return np.array([own.step(value) for value in x]), own.level

    compiled = same_filters(f, Filter, X, X[:30])
    assert not compiled.breaks


def test_two_objects_with_other_kinds():
    def f(x, filter):
        other = Filter(level=1)
        for i in range(len(x)):
            filter.level = x[i] if x[i] > 0.5 else 0.25
            other.level = other.level + filter.level
        return other.level, filter.level

    same_filters(f, Filter, X, X * 0.1)


def test_a_helper_returns_an_attribute_of_its_last_kind():
    """A helper's result is of one kind: that which the attribute has after the loop, not that from before it."""
    log = types.SimpleNamespace(last=0.0)

    def smoothed(x, limit):
        s, n = 1.0, 0
        while True:
            if n >= limit:
                break
            if n > 100_000:
                return 1, n, s, log.last
            s = math.sqrt(s + 1.5) / 1.25 + x[n % 8]
            log.last = s
            n += 1
        return 0, n, s, log.last

    @tcompile.compile
    def f(x, limit):
        found = smoothed(x, limit)
        return found

    x = np.arange(8.0)
    replays = []
    for _ in range(3):
        log.last = 0.0
        want = smoothed(x, 50)
        log.last = 0.0
        got = f(x, 50)
        assert got == want and [type(item) for item in got] == [type(item) for item in want]
        replays.append(sum(entry.replays for entry in f.entries))
    assert replays == [0, 0, 0]
