"""Stores that an iteration takes back after a test, what helpers return unchanged, attributes that come and go."""

from __future__ import annotations

import contextlib
from unittest import mock

import numpy as np
import pytest
from differential import Picture

import tcompile

from .loop_check import all_loops

N = 9


def picture(value):
    """All that can be seen of a value, as text."""
    return repr(Picture(value).rows)


class Box:
    """An object for attributes."""


class Slotted:
    """One with places of its own."""

    __slots__ = ("s", "w")


def attribute(x, n):
    o = Box()
    o.b = x
    for i in range(n):
        o.b = x * 0.5
        if i == 3:
            o.b = x
    return o.b


def item(x, n):
    d = {"a": x}
    for i in range(n):
        d["a"] = x * i
        if x[i % 4] > 0:
            break
        d["a"] = x
    return d


def swapped(x, n):
    held = [x, x + 1]
    for i in range(n):
        held[0], held[1] = held[1], held[0]
        if x[i % 4] > 0:
            continue
        held[0], held[1] = held[1], held[0]
    return held


def popped(x, n):
    found = []
    for i in range(n):
        found.append(i)
        if i == 3:
            found.pop()
    return found


def popped_after_a_test(x, n):
    found = []
    for i in range(n):
        found.append(x[0] + i)
        if x[i % 4] > 0:
            continue
        found.pop()
    return found


def closure(x, n):
    kept = x

    def put(value):
        nonlocal kept
        kept = value

    for i in range(n):
        put(x * i)
        if x[i % 4] > 0.5:
            continue
        put(x)
    return kept


def global_name(x, n):
    global kept_here
    kept_here = x
    for i in range(n):
        kept_here = x * 0.5 + i
        if i > 5:
            kept_here = x
    return kept_here


def attribute_that_goes(x, n):
    o = Box()
    o.b = 0.0
    for i in range(n):
        o.z = i
        if x[i % 4] > 0:
            continue
        o.b += 1
        del o.z
    return vars(o)


def number(x, n):
    o = Box()
    o.k = 0
    for i in range(n):
        o.k += 2
        if x[i % 4] > 0:
            continue
        o.k -= 2
    return o.k


def may_be_aliased(a):
    if a.max() > 1:
        return a
    return a * 0.5 + 1


def handed_back(x, n):
    z = x
    for _ in range(n):
        x = may_be_aliased(x)
    x[0] = 55
    return x, z, x is z


def stores_and_returns(o, x, i):
    if x[0] > i - 5:
        o.a = x * 3
        return 1
    o.a = x * 2
    o.k += 1
    return 2


def helper_that_stores(x, n):
    o = Box()
    o.a, o.k, total = x, 0, 0
    for i in range(n):
        total += stores_and_returns(o, x, i)
    return vars(o), total


LOOPS = [
    attribute, item, swapped, popped, popped_after_a_test, closure, global_name, attribute_that_goes, number,
    handed_back, helper_that_stores,
]  # fmt: skip


@pytest.mark.parametrize("small", [False, True], ids=["as they come", "all nodes"])
@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("f", LOOPS)
@pytest.mark.recompile_limit(40)
def test_what_an_iteration_takes_back(f, backend, small):
    compiled = tcompile.compile(f, backend=backend)
    with all_loops() if small else contextlib.nullcontext():
        for n in (N, N, 0, 1, 4, 40):
            for x in (np.arange(4.0) - 2, np.arange(4.0)[::-1] * 0.5, np.zeros(4)):
                ours, theirs = x.copy(), x.copy()
                got, want = compiled(ours, n), f(theirs, n)
                assert picture([got, ours]) == picture([want, theirs]), n
    assert all(b.reason.id != "internal-error" for b in compiled.breaks)


def own_for_a_while(y, o):
    y += 1
    o.w = 1
    del o.w
    return y


def kept_in_finally(y, o):
    try:
        o.w = True
        y *= 2
    finally:
        del o.w
    return y


def by_name(y, o):
    setattr(o, "w", y * 2)
    y += o.w
    delattr(o, "w")
    return y


def again(y, o):
    o.w = 1
    del o.w
    y += 1
    o.w = y[0]
    return y


def twice(y, o):
    y += 1
    o.w = 1
    del o.w
    del o.w
    return y


def made_inside(y, o):
    p = Box()
    p.w = y * 2
    print(end="")
    del p.w
    y += 1
    return y, vars(p)


GOES = [own_for_a_while, kept_in_finally, by_name, again, twice, made_inside]


@pytest.mark.parametrize("f", GOES)
@pytest.mark.parametrize("cls", [Box, Slotted])
def test_attributes_that_were_not_there(f, cls):
    compiled = tcompile.compile(f)
    for had in (False, False, False, True, False, True, True):
        told = []
        for function in (f, compiled):
            y, o, error = np.zeros(3), cls(), ""
            if had:
                o.w = 5
            try:
                result = function(y, o)
            except AttributeError as raised:
                result, error = None, str(raised)
            told.append(picture([result, y, getattr(o, "w", "nothing"), error]))
        assert told[0] == told[1], had


def test_a_call_is_not_run_again_when_its_effects_have_begun():
    """They cannot fail, but for a mistake of ours: then the caller hears of it, and nothing is done twice."""
    found = []

    @tcompile.compile
    def f(y, held):
        y += 1
        held.append(2)
        return y

    commit = "tcompile.capture.values.container.SequenceValue.commit"
    with mock.patch(commit, lambda self, program: ["raise KeyError('ours')"]):
        for calls in (1, 2, 3):
            y = np.zeros(3)
            with pytest.raises(KeyError, match="ours"):
                f(y, found)
            assert y.tolist() == [1, 1, 1], calls
    assert found == []
