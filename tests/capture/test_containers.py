# ruff: noqa: C400, C416, E501, PLE0643, RUF005, RUF017, RUF059
"""Tuples, lists, dicts, slices, ranges, comprehensions: made inside, taken in, handed out."""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict, deque, namedtuple
from typing import NamedTuple

import numpy as np
import pytest
from differential import assert_same, check

import tcompile

from .helpers import X, broken, guards, whole, x, xy

Pair = namedtuple("Pair", ["left", "right"], defaults=[2])


class Layer(NamedTuple):
    w: np.ndarray
    b: float = 1.0

    def apply(self, v):
        return v * self.w + self.b

    @property
    def double(self):
        return self.w * 2

    @staticmethod
    def twice(v):
        return v * 2


def displays(a, b):
    return (a, [b, 1, (a, 2.5)], {"x": a, 3: b, None: "s", (1, 2): [True]}, (), [], {})


def unpacking(a, b):
    p, (q, *r), s = a, (b, 1, 2, a), 4
    *u, v = r
    m, n = [a, b]
    return p + q * s, r, u, v, m - n


def rows(a, b):
    first, second, third = a
    return first + third * second, [row.sum() for row in b]


def shared(a, b):
    inner = [a + 1]
    return inner, [inner, inner], {"i": inner}


def swaps(a, b):
    a, b = b, a
    pair = [a, b]
    pair[0], pair[1] = pair[1], pair[0]
    return pair


def list_methods(a, b):
    items = [a]
    items.append(b)
    items.extend([1, 2])
    items.insert(1, "s")
    last = items.pop()
    items += [last, last]
    items += items
    items.reverse()
    del items[0]
    items[-1] = 9
    other = items.copy()
    other.clear()
    return items, other, len(items), [1, 2, 2].count(2), [5, 6].index(6), items[1:3], items[::-2]


def dict_methods(a, b):
    d = {"a": a}
    d["b"] = b
    d.update({"c": 1}, e=2)
    d.setdefault("f", []).append(a)
    c = d.pop("c")
    d |= {"g": 3}
    del d["e"]
    keys = [k for k in d]
    return d, c, keys, d.get("zz"), d.get("zz", 4), "a" in d, "q" not in d, {**d, "h": 1}, d.copy() | {"a": 0}


def dict_views(a, b):
    d = {"a": a, "b": b}
    items, keys, values = d.items(), d.keys(), d.values()
    d["c"] = 3
    total = sum(v for v in values)
    return total, [k for k, _ in items], list(keys), len(values), "c" in keys


def views_returned(a, b):
    d = {"a": 1, "b": 2}
    return list(d.items()), dict(d.items()), [*d.keys()], bool({}.values())


def comprehensions(a, b):
    squares = [a * i for i in range(3)]
    nested = [[i * j for j in range(i)] for i in range(3)]
    table = {k: v * 2 for k, v in {"p": a, "q": b}.items() if k != "q"}
    filtered = [v for v in squares if v.ndim == 2 if len(squares)]
    return (
        squares,
        nested,
        table,
        filtered,
        sum(v for v in squares),
        max(i for i in range(4)),
        list(v + 1 for v in squares),
    )


def loops(a, b):
    total, seen = a, []
    for i in range(10):
        if i % 2:
            continue
        if i == 6:
            break
        total = total + i
        seen.append(i)
    else:
        total = total * 100
    for _ in range(2):
        pass
    else:
        total = total - b
    n = 5
    while n:
        n -= 1
        if n == 2:
            continue
        total = total + n
    while True:
        break
    return total, seen, i, n


def iterators(a, b):
    out = []
    for i, (p, q) in enumerate(zip([a, b], (1, 2, 3)), 5):
        out.append(p * q + i)
    out += map(lambda v, w: v * w, [a, b], [2, 3])
    out += filter(None, [0, 1, "", 2])
    out += filter(lambda v: v > 1, [0, 1, 2])
    out += reversed([a, 1, 2])
    out += reversed(range(3))
    out += sorted((3, 1, 2)), sorted("hello", reverse=True)
    return out, any([0, 1]), all(()), min(3, 1), max([2, 5, 4]), sum([1, 2]), sum([[1], [2]], []), next(iter((a,)))


def mutated_while_iterated(a, b):
    items = [1, 2]
    for v in items:
        if len(items) < 5:
            items.append(v + 2)
    back = [1, 2, 3]
    seen = []
    for v in reversed(back):
        back[0] = 10
        seen.append(v)
    return a * len(items), items, seen


def slices(a, b):
    s = slice(1, None)
    items = list(range(6))
    return a[s], a[0:2, ::2], items[s], items[-2:], s.start, (1, 2, 3)[:2], "hello"[1:3], range(10)[2:8:2], range(5)[-1]


def ranges(a, b):
    r = range(2, 9, 3)
    return a * len(r), r, [i for i in r], 5 in r, 6 in r, r.start, r.stop, bool(range(0))


def comparisons(a, b):
    return (1, 2) == (1, 2), [1] != [1, 2], (1, "a") < (1, "b"), [a] == [a], {"a": 1} == {"a": 1}, () == [], (1,) == 1


def arithmetic(a, b):
    return [a] + [b], (1,) * 3, 2 * [a], (1, 2) + (a,), [1, 2] * 0


@pytest.mark.parametrize("f", [
    displays, unpacking, rows, shared, swaps, list_methods, dict_methods, dict_views, views_returned, comprehensions, loops,
    iterators, mutated_while_iterated, slices, ranges, comparisons, arithmetic,
], ids=lambda f: f.__name__)  # fmt: skip
def test_captured_whole(f):
    whole(f, xy)


def test_named_tuples():
    def f(a, b):
        p = Pair(a, right=b)
        q = Pair(1)
        left, right = p
        return p, q, p.left + p[1], left - right, q == Pair(1, 2), isinstance(p, tuple)

    whole(f, xy)


def test_named_tuples_are_ordered():
    def f(a):
        low, high = Pair(1, 3), Pair(2, 1)
        return low < high, low >= (1, 2), [1] < [2], min(high, low), max(high, low), sorted([high, low]), a + 1

    whole(f)


def test_constant_tuples_are_one_object():
    def f(a, given, default=(1, (2, 3))):
        held, again = (1, (2, 3)), a.ndim and (1, (2, 3))
        return held is again, held is default, held is given, held[1] is default[1], held, a + 1

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    constant = f(X, None)[-2]
    for given in (constant, constant, (*constant,)):
        want, got = f(X, given), compiled(X, given)
        assert got[:4] == want[:4] and got[4] is want[4]


def test_named_tuples_taken_in():
    def f(layer, a):
        return layer.apply(a), layer.double, Layer.twice(a), layer[0], layer

    whole(f, lambda: (Layer(X, 2.0), X), exact=True)


def test_a_method_of_a_named_tuple_that_is_replaced():
    class Local(NamedTuple):
        v: int

        def f(self, a):
            return a + self.v

    compiled = tcompile.compile(lambda p, a: p.f(a), backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(Local(1), X), X + 1)
    Local.f = lambda self, a: a - self.v
    np.testing.assert_array_equal(compiled(Local(1), X), X - 1)


def test_arrays_in_arguments_of_every_shape():
    def f(tree, row):
        total = 0
        for name in tree:
            for v in tree[name]:
                total = total + v * row[-1]
        return total, tree, row[0]

    whole(f, lambda: ({"p": [X, X * 2], "q": (X,)}, (None, "s", 3.0)))


def test_items_are_the_objects_themselves():
    def f(items, table):
        return items[0], items, table["k"], table, items[1:]

    compiled = whole(f, lambda: ([X, [1]], {"k": {}}))
    items, table = [X, [1]], {"k": {}}
    first, same, value, again, rest = compiled(items, table)
    assert first is X and same is items and value is table["k"] and again is table and rest[0] is items[1]


def test_one_made_object_is_one_object():
    compiled = whole(shared, xy)
    inner, pair, table = compiled(X, X)
    assert pair[0] is inner and pair[1] is inner and table["i"] is inner


def test_results_are_not_shared_between_calls():
    def f(a):
        return [1, 2], {"k": []}, a + 1

    compiled = whole(f, x)
    first, second = compiled(X), compiled(X)
    first[0].append(3), first[1]["k"].append(1)
    assert second[:2] == ([1, 2], {"k": []}) == compiled(X)[:2]


def test_ranges_and_slices_as_arguments():
    def f(a, r, s, k):
        total = a
        for i in r:
            total = total + i
        return total[s], r, s, r.step, {"k": k}

    whole(f, lambda: (X, range(1, 6, 2), slice(1, 3), frozenset("ab")))
    compiled = tcompile.compile(lambda r: [r.stop, X * 2], backend="eager", fullgraph=True)
    assert compiled(range(0, 3, 2))[0] == 3
    assert compiled(range(0, 4, 2))[0] == 4


def test_dict_keys_of_equal_value_and_other_type():
    compiled = tcompile.compile(lambda d: ([k for k in d], X + 1), backend="eager", fullgraph=True)
    assert [type(compiled({key: 0})[0][0]) for key in (1, True, 1)] == [int, bool, int]


def test_a_container_that_contains_itself():
    def f(a):
        items = [a]
        items.append(items)
        return items

    broken_result = tcompile.compile(f, backend="eager")(X)
    assert broken_result[1] is broken_result


def test_errors_of_containers_are_python_s():
    for f in (lambda a: [1, 2][5], lambda a: {"k": 1}["q"], lambda a: (1, 2)[a]):
        compiled = tcompile.compile(f, backend="eager")
        with pytest.raises((IndexError, KeyError, TypeError)) as plain:
            f(X)
        with pytest.raises(type(plain.value)) as caught:
            compiled(X)
        assert str(caught.value) == str(plain.value)


def test_unpacking_of_the_wrong_length():
    def f(a):
        p, q = a
        return p

    broken(f, x, "operation-raises", "p, q = a")


@pytest.mark.parametrize("reverse", [None, "a", "", 2.5, 1 << 40, 2, True, np.int64(1)])
def test_what_sorts_backwards(reverse):
    def f(a):
        items = [3, 1, 2]
        try:
            return sorted(items, reverse=reverse), items.sort(reverse=reverse), items, a + 1
        except (TypeError, OverflowError) as error:
            return str(error), items, a + 1

    check(f, x, backends=("eager",))


class HugeLength:
    def __iter__(self):
        return iter([1])

    def __len__(self):
        return 1 << 70


def test_what_python_does_not_copy():
    def f(t, s):
        return (
            t * 1 is t,
            1 * t is t,
            t + () is t,
            () + t is t,
            t[:] is t,
            t[0:] is t,
            s.copy() is s,
            tuple(t) is t,
            t[::1] is t,
        )

    with tcompile.config.patch(stress_capture=True):
        made = tcompile.compile(f, backend="eager")
        for args in [((1, 2), frozenset("ab")), ((), frozenset())]:
            assert made(*args) == f(*args) == (True,) * 9
            assert tcompile.compile(lambda t: [t[:]], backend="eager")(args[0])[0] is args[0]


@pytest.mark.parametrize(
    "f",
    [
        lambda: len(range(1 << 70)), lambda: len(range(0, 1 << 70, 3)), lambda: sum([], bytearray()),
        lambda: len(HugeLength()), lambda: bool(HugeLength()), lambda: isinstance(3, "int"), lambda: issubclass(int, ["x"]),
        lambda: list(itertools.combinations("abc", None)), lambda: list(itertools.combinations_with_replacement("abc")),
        lambda: list(HugeLength()), lambda: [1].insert(10**30, 1), lambda: [] * 10**30, lambda: -(10**30) * (), lambda: [1][::0],
        lambda: (1,)[::0], lambda: range(5)[::0], lambda: operator.setitem([1], slice(None, None, 0), []), lambda: "a"[::0],
        lambda: operator.delitem([1], slice(None, None, 0)), lambda: {1}.issubset(), lambda: {1}.isdisjoint([1], [2]),
        lambda: {1}.symmetric_difference(), lambda: {1}.copy(1), lambda: getattr([], 1), lambda: hasattr([], 1),
        lambda: getattr(Layer(1, 2), 1, 3), lambda: object.__setattr__(HugeLength(), 1, 2), lambda: object.__delattr__(HugeLength(), 1),
        lambda: object.__getattribute__(HugeLength(), 1), lambda: operator.attrgetter(5), lambda: operator.methodcaller(5),
        lambda: tuple.__new__(5), lambda: itertools.islice([1], 10**30), lambda: itertools.repeat(1, 10**30),
        lambda: itertools.product([1], repeat=10**30),
    ],
)  # fmt: skip
def test_what_python_refuses(f):
    with pytest.raises((TypeError, ValueError, OverflowError)) as want:
        f()
    compiled = tcompile.compile(f, backend="eager")
    with tcompile.config.patch(stress_capture=True, verify=True), pytest.raises(want.type) as got:
        compiled()
    assert compiled.breaks  # it was not tcompile itself that raised
    assert str(got.value) == str(want.value)


def test_lists_that_change_while_they_are_compared():
    class Clears:
        def __init__(self):
            self.target = []

        def __eq__(self, other):
            self.target.clear()
            return NotImplemented

        __hash__ = None

    def f(p, q):
        first, second = [p], [q]
        p.target, q.target = second, first
        return first == second, len(first), len(second), [p] == [1]

    with tcompile.config.patch(stress_capture=True, verify=True):
        assert tcompile.compile(f, backend="eager")(Clears(), Clears()) == f(Clears(), Clears())


def test_containers_that_only_grow_explain_another_class():
    class Own(dict):
        pass

    def add(d, k):
        d["key"] = k
        return len(d)

    def append(d, k):
        d.append(k)
        return len(d)

    for f, makes in [(add, (dict, Own, OrderedDict)), (append, (list, deque))]:
        with tcompile.config.patch(stress_capture=True, verify=True):
            made = tcompile.compile(f, backend="eager")
            for make in (makes[0], *makes):
                assert made(make(), 3) == 1


@pytest.mark.parametrize("f", [lambda d: dict(**d), lambda d: dict(a=1, **d), lambda d: (lambda **k: k)(**d)])
def test_keywords_must_be_strings(f):
    with (
        tcompile.config.patch(stress_capture=True, verify=True),
        pytest.raises(TypeError, match="keywords must be str"),
    ):
        tcompile.compile(f, backend="eager")({1: 2})


def test_the_length_of_a_list_that_grows_stays_open():
    log = []

    def f(x):
        log.append(1)
        if len(log) > 5:
            return x * len(log)
        return x + 1

    compiled = tcompile.compile(f, backend="eager")
    for n in range(1, 20):
        assert_same(compiled(X), X * n if n > 5 else X + 1)
    assert len(log) == 19
    assert len(compiled.entries) == 3 and "len(log) - 4 > 0" in guards(compiled)


def test_lengths_of_lists_that_vary():
    def f(x, values, read):
        if not values:
            return x
        if read:
            x = x + values[-1]
        return x + len(values), np.zeros(len(values))

    for read in (False, True):
        compiled = tcompile.compile(f, backend="eager")
        for n in (3, 4, 0, 1, 7, 2, 3):
            assert_same(compiled(X, list(range(n)), read), f(X, list(range(n)), read))
        assert read or len(compiled.entries) <= 4
