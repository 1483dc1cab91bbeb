# ruff: noqa: E501
"""with, match, generators and ``yield from`` followed inside; unpacking, the walrus, assertions that hold, f-strings."""

from __future__ import annotations

import dataclasses
import enum

import numpy as np
import pytest

import tcompile

from .helpers import X, whole


class Scaled:
    """A context manager in Python."""

    def __init__(self, log, factor):
        self.log, self.factor = log, factor

    def __enter__(self):
        self.log.append("enter")
        return self.factor

    def __exit__(self, kind, error, trace):
        self.log.append(kind is None and error is None and trace is None)
        return False


@dataclasses.dataclass
class Point:
    x: object
    y: object = 0


class Kind(enum.Enum):
    A = 1
    B = 2


def managers(a):
    log = []
    with Scaled(log, 2) as two, Scaled(log, two + 1) as three:
        a = a * two + three
    for k in range(3):
        with Scaled(log, k) as s:
            if s == 1:
                continue
            a = a + s
    with Scaled(log, 5):
        return a, log


def counting(n):
    got = []
    for i in range(n):
        got.append((yield i))
    return got


def outer(n, a):
    first = yield from counting(n)
    yield first
    yield from [a, a + 1]
    return "end"


def delegating(a):
    result = yield from outer(2, a)
    yield result


def generators(a):
    g = counting(3)
    sent = [next(g), g.send("one"), g.send(a)]
    h = outer(1, a)
    values = list(h)
    total = a
    for value in (a * i for i in range(3) if i != 1):
        total = total + value
    closed = counting(2)
    next(closed)
    closed.close()
    return (
        sent,
        values,
        total,
        list(delegating(a)),
        next(closed, "over"),
        iter(g) is g,
        [*counting(2)],
        sum(counting(4)),
    )


def tell(subject):
    match subject:
        case 0 | -1:
            return "zero"
        case int(n) if n > 100:
            return "large", n
        case int() | float():
            return "number"
        case "s" | None | True:
            return "constant"
        case str() as text:
            return "text", text
        case []:
            return "empty"
        case [first, *_, last]:
            return "ends", first, last
        case (one,):
            return "one", one
        case {"k": value, "kind": Kind.A, **rest}:
            return "mapping", value, rest
        case {"k": value}:
            return "k", value
        case Point(x=0):
            return "at zero"
        case Point(x, Point(y=y)):
            return "nested", x, y
        case Point(x, y):
            return "point", x, y
        case Kind.B:
            return "B"
        case _:
            return "other"


def matches(a):
    return [tell(s) for s in (
        0, -1, 500, 7, 2.5, "s", None, True, "text", [], [a, 2, a + 1], (a,), {"k": a, "kind": Kind.A, "z": 1}, {"k": 3},
        {"kind": Kind.A}, Point(0), Point(5, Point(1, a)), Point(1, 2), Kind.B, Kind.A, range(3), {1, 2}, b"xy",
    )]  # fmt: skip


def _table(a):
    return {"k": a}


def unpacks(a):
    first, *middle, last = [a, 1, 2, 3]
    (p, (q, r)), *_ = ((1, (2, 3)), 4)
    *init, tail = "abc"
    if (n := len(middle)) > 1 and (m := n + 1):
        a = a + m
    x = y = [a]
    [first, last] = last, first
    (head,) = [1]
    assert n == 2, "which holds"
    return first, middle, last, p, q, r, init, tail, n, x is y, head, {**_table(a), "l": 1}, [*init, *middle], (*init,)


def formats(a):
    k, s, f = 12, "text", 2.5
    name = f"{k}{s!r:>8}{f:.3f}{k:#x}{s}{k!s}{a.ndim}"
    old = "%s %05d" % (s, k)  # noqa: UP031
    return f"{name}{'nested ' + str(k)}", old, s.upper().split("E"), f"{k=}", "ab".join(["1", "2"])


def loops(a):
    total = a
    for i in range(10):
        if i == 2:
            continue
        if i == 5:
            break
        total = total + i
    else:
        total = total * 100
    while True:
        total = total - 1
        i -= 1
        if i < 3:
            break
    else:
        total = None
    for _ in ():
        pass
    else:
        total = total * 2
    return total, i


@pytest.mark.parametrize("f", [managers, generators, matches, unpacks, formats, loops], ids=lambda f: f.__name__)
def test_followed(f):
    whole(f)


def test_match_arguments_are_guarded():
    class Pair:
        __match_args__ = ("p", "q")

        def __init__(self, p, q):
            self.p, self.q = p, q

    def f(s, a):
        match s:
            case Pair(p, q):
                return p, q, a + 1
            case _:
                return None

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    pair = Pair(1, 2)
    for change in (lambda: None, lambda: setattr(Pair, "__match_args__", ("q", "p")), lambda: delattr(pair, "q")):
        change()
        got, want = compiled(pair, X), f(pair, X)
        assert (got is None) == (want is None) and (got is None or got[:2] == want[:2])


def test_a_manager_that_takes_part_in_errors():
    class Quiet:
        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            self.seen = kind
            return True

    def f(a):
        with Quiet() as q:
            a = a + 1
            raise KeyError("k")
        return a * 2, q.seen

    got, seen = tcompile.compile(f, backend="eager")(X)
    np.testing.assert_array_equal(got, (X + 1) * 2)
    assert seen is KeyError


def test_generators_that_clean_up_are_left_to_python():
    log = []

    def cleans():
        try:
            yield 1
        finally:
            log.append("cleaned")

    def f(a):
        for k in cleans():
            return a + k

    np.testing.assert_array_equal(tcompile.compile(f, backend="eager")(X), X + 1)
    assert log == ["cleaned"]
