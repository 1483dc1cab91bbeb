"""Compiled functions under functools.wraps, copy and getattr: what is read or copied is what a function would have."""

import copy
import functools

import numpy as np

import tcompile


def test_wraps_takes_nothing_of_ours_along():
    def twice(function):
        @functools.wraps(function)
        @tcompile.compile
        def wrapper(x):
            return function(x) * 2

        return wrapper

    @twice
    @tcompile.compile
    def f(x):
        return x + 1

    for _ in range(3):
        assert f(np.ones(2)).tolist() == [4, 4]
    assert f.__name__ == "f"

    @functools.wraps(f)
    def plain(x):
        return f(x)

    assert all(name.startswith("__") for name in vars(plain))


def test_wraps_of_a_cached_compiled_function():
    base = functools.lru_cache(tcompile.compile(lambda x: x * 2))

    @functools.wraps(base)
    @tcompile.compile
    def top(x):
        return base(x) * 10

    assert [top(1.0) for _ in range(3)] == [20.0] * 3


def test_copies_are_the_function_itself():
    class Layer:
        def __init__(self):
            self.act = tcompile.compile(lambda v: v * 2)
            self.weight = np.ones(3)

    layer = Layer()
    other = copy.deepcopy(layer)
    assert other.act is layer.act and other.weight is not layer.weight
    assert copy.copy(layer.act) is layer.act


class Counting:
    """Counts how often it is asked."""

    def __init__(self):
        self.count = 0
        self.asked = []

    @property
    def p(self):
        self.count += 1
        return self.count

    def __getattr__(self, name):
        self.asked.append(name)
        return 7


def with_default(o, x):
    return getattr(o, "p", None), x + 1


def with_getattr(o, x):
    return getattr(o, "q", None), x + 1


def with_pattern(o, x):
    match o:
        case Counting(p=value, r=other):
            return value, other, x + 1


def test_attributes_are_read_once():
    for f in (with_default, with_getattr, with_pattern):
        compiled = tcompile.compile(f)
        for _ in range(3):
            ours, theirs = Counting(), Counting()
            got, want = compiled(ours, np.ones(2)), f(theirs, np.ones(2))
            assert got[:-1] == want[:-1] and got[-1].tolist() == want[-1].tolist(), f
            assert (ours.count, ours.asked) == (theirs.count, theirs.asked), f


def test_attributes_are_the_users_whatever_their_names():
    def count(x):
        if len(x) not in count.cache:
            count.cache[len(x)] = np.arange(len(x))
        count.function += 1
        count._count += 1
        return x + count.cache[len(x)]

    count.cache, count.entries, count.settings = {}, 5, "mine"
    count = tcompile.compile(count)
    count._count = count.function = 0
    for calls in (1, 2, 3):
        assert count(np.ones(2)).tolist() == [1, 2]
        assert (count.function, count._count, count.entries, count.settings) == (calls, calls, 5, "mine")
    assert list(count.cache) == [2]
    assert "entries" in repr(count) and tcompile.explain(count)(np.ones(2)) is not None
    assert tcompile.compile(count, backend="eager")(np.ones(2)).tolist() == [1, 2]


def test_defaults_are_the_functions():
    @tcompile.compile
    def f(x, k=2, *, m=3):
        return x * k + m

    assert f(np.ones(2)).tolist() == [5, 5]
    assert f.__defaults__ == (2,) and f.__kwdefaults__ == {"m": 3}
    f.__defaults__, f.__kwdefaults__ = (4,), {"m": 0}
    assert f(np.ones(2)).tolist() == [4, 4]
