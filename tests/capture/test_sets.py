"""Sets and frozensets: made, changed, combined, iterated over in their own order; from outside and on their way out."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile

from .helpers import X, whole


def makes(a):
    s = {1, 2, "k"}
    s.add(3)
    s |= {4, 5}
    s -= {1}
    s.discard(99)
    s.remove(2)
    t = set(range(5, 8)) & s
    u = frozenset((1, 2)) | {3}
    total = a
    for item in sorted({3, 1, 2}):
        total = total + item
    return s, t, u, {i % 3 for i in range(10)}, 3 in s, None in s, len(s), total, type(u), {*range(3), 9}


def asks(a):
    s, t = {1, 2, 3}, {2, 3}
    return (
        s > t, s == {3, 2, 1}, s != t, s == [1], t.issubset(s), s.isdisjoint({7}), s.union([9], (10,)), s.difference(t),
        s ^ {1, 7}, s.copy() is s, bool(set()), {"a": 1, "b": 2}.keys() & {"a"}, {"a": 1}.keys() == {"a"},
        [i + 0 for i in {8, 1, 16}], 2 in frozenset([2]),
    )  # fmt: skip


def pops(a):
    s = {10, 20, 30}
    first = s.pop()
    s.add(40)
    return first, s, list(s), a + first


def from_outside(a, s, f):
    total = a
    if "b" in s:
        total = total + len(s)
    for name in s:
        total = total + len(name)
    return total, s, sorted(s | f), f - s, sorted(f), f


@pytest.mark.parametrize("f", [makes, asks, pops], ids=lambda f: f.__name__)
def test_inside(f):
    whole(f)


def test_as_arguments():
    whole(from_outside, lambda: (X, {"a", "b", "ccc"}, frozenset({"b", "z"})))
    compiled = tcompile.compile(from_outside, backend="eager", fullgraph=True)
    for s in ({"a"}, {"b"}, {"a", "b"}, {"b", "a"}, set()):
        got, want = compiled(X, s, frozenset()), from_outside(X, s, frozenset())
        np.testing.assert_array_equal(got[0], want[0])
        assert got[1] is s and got[2:] == want[2:]


def test_equal_items_of_other_types():
    compiled = tcompile.compile(lambda s: ([type(i) for i in s], X + 1), backend="eager", fullgraph=True)
    for s in ({1}, {True}, {1}, {0, None}):
        assert compiled(s)[0] == [type(i) for i in s]


@pytest.mark.parametrize("change", [
    lambda s: s.add("new"), lambda s: s.clear(), lambda s: s.update("xy", {"z"}), lambda s: s.discard("a"),
])  # fmt: skip
def test_sets_from_outside_are_changed(change):
    def f(a, s):
        change(s)
        return a + len(s), "new" in s

    whole(f, lambda: (X, {"a", "b"}))
    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    got, want = {"a", "b"}, {"a", "b"}
    compiled(X, got), f(X, want)
    assert got == want


def test_other_items_are_left_to_python():
    nan = float("nan")

    class Key:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            return True

    for f in (lambda a, k: ({k}, a + 1), lambda a, k: (k in {1}, a + 1), lambda a, k: ({k: 1}, a + 1)):
        for key in (Key(), nan, X):
            compiled = tcompile.compile(f, backend="eager")
            try:
                want = f(X, key)
            except TypeError:
                with pytest.raises(TypeError):
                    compiled(X, key)
            else:
                assert compiled(X, key)[0] == want[0]


def test_changes_while_iterating_raise():
    def f(a):
        s = {1, 2}
        for i in s:
            s.add(i + 10)
        return a

    with pytest.raises(RuntimeError, match="changed size"):
        tcompile.compile(f, backend="eager")(X)
