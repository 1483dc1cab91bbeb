"""What waits for the graph, or is asked without being looked at, does so where nobody can tell."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tests.differential import Run, assert_same_run

NAN = float("nan")


class Loud(str):
    heard: list[int] = []

    def __hash__(self):
        self.heard.append(1)
        return str.__hash__(self)


class Raising(str):
    def __hash__(self):
        raise TypeError("no hash")


class Key:
    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return hash(self.number)

    def __eq__(self, other):
        return self.number == other.number


def nans(v, x):
    n = 0
    for i in range(len(x)):
        u = v[i]
        if u in (u, 1.0):
            n += 1
        x[i] += 1
    return n


def kept_in_a_while(d, k, x):
    d[k] = 1
    while x.sum() < 100:
        d["z"] = x.sum()
        x = x * 2
    return x


def kept_in_a_for(d, k, x):
    d[k] = x
    for i in range(100):
        x = x * 2
        d["z"] = x
        d["i"] = i
    return x


def kept_again(d, k, x):
    d[k] = x
    for _ in range(100):
        x = x * 2
        d[k] = x
    return x


def changed_while_iterated(d, k, x):
    for _ in d:
        d[k] = x


def unhashable(d, n, x):
    d[n] = 1
    x += 1
    d[[]] = 2


def keys_of_their_own(d, n, x):
    key = Key(n)
    d[n] = 1
    d[key] = 3
    key.number = n + 1
    return x * 2


def computed_twice(d, n, x):
    d[n * 2.0] = 1
    d[n * 2.0] = 2
    return len(d), x * 2


def asked(d, k, x):
    return x * 2 if k in d else x + 1


def put_first(d, k, x):
    d[k] = x.sum()
    x[0] = 5


def keys_of(kept):
    return [({"a": 1, "c": 2}, k, np.ones(3)) for k in kept]


CALLS = {
    nans: lambda: [(np.full(40, NAN), np.zeros(40))] * 2,
    kept_in_a_while: lambda: keys_of(["a", "b", "z"]),
    kept_in_a_for: lambda: keys_of(["a", "b", "z", "i"]),
    kept_again: lambda: keys_of(["a", "b", "z"]),
    changed_while_iterated: lambda: keys_of(["a", "b", "c"]),
    unhashable: lambda: keys_of([1, 2, 3]),
    asked: lambda: keys_of(["a", "b", "c", Loud("a")]),
    put_first: lambda: keys_of(["a", "b", "c", Raising("q")]),
}


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("function", CALLS)
def test_what_varies(function, backend):
    tcompile.reset()
    compiled = tcompile.compile(function, backend=backend)
    for plain, ours in zip(CALLS[function](), CALLS[function](), strict=True):
        Loud.heard.clear()
        want = Run(function, plain)
        count = len(Loud.heard)
        with tcompile.config.patch(verify=True):
            got = Run(compiled, ours)
        assert len(Loud.heard) == 2 * count
        assert_same_run(got, want)


def test_keys_of_classes_are_put_at_their_place():
    tcompile.reset()
    compiled, tables = tcompile.compile(keys_of_their_own, backend="eager"), ({}, {})
    for n in (1, 2, 3):
        runs = [Run(f, (d, n, np.ones(2))) for f, d in zip((compiled, keys_of_their_own), tables, strict=True)]
        assert type(runs[0].error) is type(runs[1].error)
        assert len(tables[0]) == len(tables[1])


def test_nans_that_are_computed_are_keys_of_their_own():
    tcompile.reset()
    compiled = tcompile.compile(computed_twice, backend="eager")
    for n in (1.0, 2.0, 3.0, NAN, NAN):
        ours, theirs = {}, {}
        assert compiled(ours, n, np.ones(2))[0] == computed_twice(theirs, n, np.ones(2))[0] == len(ours)
