# ruff: noqa: E501, C4, RUF005
"""itertools, operator, functools, math and the built-ins that take functions, followed inside."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
import sys

import numpy as np
import pytest

import tcompile

from .helpers import X, whole

HAS_BATCHED = sys.version_info >= (3, 12)
Row = collections.namedtuple("Row", "name value")
second, named, shouted = (
    operator.itemgetter(1),
    operator.attrgetter("value.ndim", "name"),
    operator.methodcaller("upper"),
)


def iterates(a):
    i = itertools
    b = [a, a + 1, a + 2]
    found = [
        list(i.chain(b, (1,), "ab")), list(i.chain.from_iterable([b, [2]])), list(i.islice(i.count(3, 2), 4)),
        list(i.repeat(a, 2)), list(i.islice(i.cycle([1, a]), 1, 6, 2)), list(i.accumulate(b)), list(i.accumulate([1, 2, 3], lambda p, q: p * q, initial=5)),
        list(i.takewhile(lambda v: v < 3, [1, 2, 5, 1])), list(i.dropwhile(lambda v: v < 3, [1, 2, 5, 1])),
        list(i.filterfalse(lambda v: v % 2, range(5))), list(i.filterfalse(None, [0, 1, ""])), list(i.starmap(operator.add, [(a, 1), (1, 2)])),
        list(i.compress(b, [1, 0, True])), list(i.zip_longest(b, [1], fillvalue=0)), list(i.pairwise(b)), list(i.product(b[:2], [1, 2])),
        list(i.product([0, 1], repeat=2)), list(i.combinations(b, 2)), list(i.permutations([1, 2, 3], 2)), list(i.combinations_with_replacement("ab", 2)),
        list(map(lambda p, q: p + q, b, [1, 2])), list(filter(None, [0, 3])), list(zip(b, range(2))), list(enumerate(b, 5)), list(reversed(b)),
    ]  # fmt: skip
    if HAS_BATCHED:
        found.append(list(i.batched(range(5), 2)))
    total = a
    for p, q in i.product(range(2), repeat=2):
        total = total + p * q
    for k in i.count():
        if k > 3:
            break
        total = total * 2
    shared = iter(b)
    first = next(shared)
    return found, total, first, list(shared), next(shared, "none")


def sorts(a):
    rows = [Row("b", a), Row("a", a + 1), Row("c", 2)]
    by_name = sorted(rows, key=lambda r: r.name)
    rows.sort(key=operator.attrgetter("name"), reverse=True)
    return (
        by_name, rows, max([3, 1, 2], key=lambda v: -v), min([], default=a), max("abc", key=ord), min(4, 2, key=lambda v: v),
        sorted([(2, "b"), (1, "z"), (2, "a")]), sorted("banana", reverse=True), [1, 2] < [1, 3], (1, a.ndim) > (1, 1),
    )  # fmt: skip


def operators(a):
    t = [1, 2, 3]
    operator.setitem(t, 0, a)
    operator.delitem(t, 2)
    return (
        second((1, a)), operator.itemgetter(0, 1)([a, 2]), named(Row("n", a)), shouted("x"), t, operator.is_not(a, None),
        operator.add(a, 1), operator.countOf([1, 2, 1], 1), functools.reduce(operator.mul, [a, 2, 3]), callable(len), callable(a), callable(operators),
        functools.partial(operator.sub, a)(1), operator.truth([]), operator.contains([1], 1), list(map(operator.itemgetter(0), [(1, 2)])),
    )  # fmt: skip


def numbers(a):
    return (
        math.prod(a.shape), math.prod([1.5, 2]), math.fsum([0.1] * 10), a * math.sqrt(2.0), math.floor(2.5), math.pi, divmod(7, 2),
        sum([a, a]), sum(range(5), 10), abs(-3), round(2.567, 1), pow(2, 5), int("12"), float("1.5"), bin(5), hash("k") == hash("k"),
        math.gcd(12, 18), math.isclose(1.0, 1.0), math.inf > 1, any([0, 1]), all([]), len("abc"), ord("a"), chr(98), str(12), repr("s"),
    )  # fmt: skip


def collected(a):
    d = dict([("a", a), ("b", 1)], c=2)
    row = Row("n", a)
    e = dict.fromkeys("xy", 0)
    e["x"] += 1
    return (
        d, row._replace(value=3), row._asdict(), Row._make([1, a]), row._fields, e, list(d), [*d.values()], {**e, "z": a}, d | e, next(iter(d.items())),
        "b" in d.keys(), d.pop("b"), d.popitem(), dict(zip("ab", [a, 2])), tuple(i for i in (1, 2)), list("ab"), [[]] * 2, [1] + [a], (1,) * 2,
    )  # fmt: skip


@pytest.mark.parametrize("f", [iterates, sorts, operators, numbers, collected], ids=lambda f: f.__name__)
def test_inside(f):
    whole(f, backends=("eager", "llvm"))


class Noisy:
    log: list = []

    def __iter__(self):
        self.log.append("iter")
        return iter([1, 2])


def test_iterators_start_when_python_starts_them():
    def f(a):
        log = Noisy.log
        n = Noisy()
        lazy, started = itertools.chain(n), itertools.accumulate(n)
        before = len(log)
        return before, list(lazy), list(started), len(log), a + 1

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    want = f(X)[:4]
    Noisy.log.clear()
    got = compiled(X)[:4]
    assert got == want
    Noisy.log.clear()


def test_errors_come_where_python_has_them():
    for f in (
        lambda a: [itertools.count("x"), a][1:],
        lambda a: max([]),
        lambda a: sorted([1, "a"]),
        lambda a: max(1, 2, default=3),
        lambda a: dict([1]),
        lambda a: list(itertools.islice([1], -1)),
        lambda a: second([1]),
        lambda a: {a: 1},
    ):
        with pytest.raises((TypeError, ValueError, IndexError)) as want:
            f(X)
        with pytest.raises(type(want.value)) as got:
            tcompile.compile(f, backend="eager")(X)
        assert str(got.value) == str(want.value)


def test_arrays_are_compared_by_python_s_rules():
    with pytest.raises(ValueError, match="ambiguous"):
        tcompile.compile(lambda a: max([a, a + 1]), backend="eager")(X)
    got = tcompile.compile(lambda a: max([a], key=id) + 1, backend="eager")(X)
    np.testing.assert_array_equal(got, X + 1)
