"""Loops that write to an array and then bind its variable anew: carried where no other name sees the write."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from differential import assert_same

import tcompile

from .loop_cases import N, each, line, ops


class State:
    """An attribute."""

    def __init__(self, u):
        self.u = u


def variable(u, n):
    for _ in range(n):
        u[1:-1] += 0.25 * (u[2:] - u[:-2])
        u = u * 0.5 + 0.1
    return u


def attribute(u, n):
    state = State(u * 2)
    for i in range(n):
        state.u[0] = i
        state.u = state.u * 0.5 + state.u[::-1] * 0.25
    return state.u


def closure(u, n):
    def step():
        nonlocal u
        u[0] = u[-1] = 0.5
        u = u * 0.5 + 0.1

    for _ in range(n):
        step()
    return u


def keeps_the_last(u, n):
    kept = None
    for _ in range(n):
        kept = u
        u[0] += 1
        u = u * 0.5
        kept[1] += 1
    return u, kept, kept is u


def inside(u, n):
    for i in range(n):
        for _ in range(9):
            u[1:-1] += 0.25 * (u[2:] - u[:-2])
            u = u * 0.5 + 0.1
        u[0] += i
    return u


def until(u, n):
    u = u * 1
    for _ in range(n):
        u[0] += 1
        if u[8] < 0.001:
            break
        u = u * 0.75
        if u[5] < 0.1:
            continue
        u[1] = 0.0
    return u


ALONE = [variable, attribute, closure, keeps_the_last, inside, until]


@pytest.mark.parametrize("f", ALONE, ids=lambda f: f.__name__)
def test_one_name(f):
    for n in (N, N + 1, 2, 1, 0):
        for compiled in each(f, lambda n=n: (line(), n)):
            if n >= N:
                assert {"fori_loop", "exit_loop"} & {*ops(compiled)}
                assert not compiled.breaks


def test_what_others_hold_changes_as_long_as_it_is_theirs():
    def f(state, other, n):
        for _ in range(n):
            state.u[1:] += 0.25 * other[:-1]
            state.u = state.u * 0.5 + 0.1
        return state.u

    for backend in ("eager", "llvm"):
        tcompile.reset()
        compiled = tcompile.compile(f, backend=backend)
        for n in (N, 1, 0, N):
            seen = []
            for run in (compiled, f):
                u = line()
                state = State(u)
                seen.append((run(state, line() * 3, n), u, state.u is u, state.u))
            assert_same(seen[0], seen[1], ulp=64)
        assert any("fori_loop" in (node.op.name for node in graph.nodes) for graph in compiled.graphs)


def rows(u):
    while True:
        yield u.sum()


HOLDERS = {
    "variable": lambda u: u, "view": lambda u: u[2:5], "item": lambda u: [u], "attribute": lambda u: (State(u),),
    "iterator": lambda u: iter([u, 1]), "generator": rows, "method": lambda u: u.sum,
    "default": lambda u: lambda u=u: u, "closure": lambda u: lambda: u,
    "partial": lambda u: functools.partial(np.add, u, 1), "rows": iter,
}  # fmt: skip


def shown(held):
    """What a holder has of the array."""
    if isinstance(held, tuple):
        return held[0].u
    if callable(held):
        return held()
    return held if isinstance(held, list | np.ndarray) else next(held)


@pytest.mark.parametrize("how", HOLDERS)
def test_another_holder_sees_the_first_write(how):
    hold = HOLDERS[how]

    def f(u, n):
        u = u * 1
        held = hold(u)
        for _ in range(n):
            u[1:-1] += 0.25 * (u[2:] - u[:-2])
            u = u * 0.5 + 0.1
        return u, shown(held)

    for n in (N, 1, 0):
        for _ in each(f, lambda n=n: (line(), n)):
            pass


def test_an_array_that_is_handed_on_is_not_written_in_its_place():
    def f(a, n):
        b, c = a, a * 1
        for j in range(n):
            b, c = c, c.copy()
            c[1] = j + 5
        return b, c

    for n in (1, 2, N, 3):
        for compiled in each(f, lambda n=n: (line(), n)):
            assert not compiled.breaks


def test_changing_places_with_what_others_hold():
    def f(a, n):
        b = a.copy()
        for _ in range(n):
            b[1] = 1
            b = b * 1
            b, a = a, b
        return a, b

    for n in (1, 2, N):
        each(f, lambda n=n: (line(), n))
