"""An array of which each round changes one part has a twin: both change places, and are copied once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.test_llvm_nested_loops import decided
from tests.differential import check


def jacobi(u, n):
    for _ in range(n):
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2])
    return u


def until(u, n):
    err = 1.0
    while err > 0.2 / (n + 1):
        old = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2])
        err = np.abs(u - old).max()
    return u, err


def skips(u, n):
    for i in range(n):
        if i * u[2, 2] > 6:
            continue
        u[1:-1] = 0.5 * (u[2:] + u[:-2]) + 0.1
    return u


def leaves_behind(u, n):
    for i in range(n):
        u[:, 1:] = 0.5 * u[:, :-1] + 0.3
        if u.sum() * i > 200:
            break
    return u


def other_parts(u, n):
    for i in range(n):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
        u[0] += 0.1
    return u


def part_of_the_round(u, n):
    for i in range(min(n, 5)):
        u[i + 1 :] = 0.5 * u[: -i - 1]
    for i in range(n):
        u[1 : i % 3 + 2] = u[: i % 3 + 1] * 0.5
    return u


def outside_is_read(u, n):
    total = 0.0
    for i in range(n):
        u[2:] = 0.5 * u[:-2] + 0.2
        total = total + u[:2].sum() + u[-1].sum()
    return u, total


def two_arrays(u, n):
    v = u + 1
    for _ in range(n):
        u[1:] = 0.5 * (u[:-1] + v[1:])
        v[:-1] = 0.5 * (v[1:] + u[:-1])
    return u, v


def inside(u, n):
    for i in range(n):
        for _ in range(9):
            u[1:-1] = 0.5 * (u[2:] + u[:-2])
        u[0] += 0.1
        u *= 0.99
    return u


def also_handed_to_a_loop(u, n):
    for i in range(n):
        w = u
        for _ in range(9):
            w = w * 0.9 + 0.01
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
        u[1:-1] += 0.1 * w[1:-1]
    return u


def a_loop_inside_writes_first(u, n):
    for i in range(n):
        for _ in range(i):
            u *= 0.5
            u += 0.25
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
    return u


def changes_behind_a_test(u, n):
    for i in range(n):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
        if u[1, 1] * i > 70:
            break
        u += 0.1
    return u


def borders_as_well(u, n):
    for _ in range(n):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u[:, -1] = u[:, -2]
        u[0, :] = u[1, :]
        u[-1, :] = 0
    return u


def moved_twice(u, n):
    for i in range(n):
        u[1:] = 0.5 * u[:-1] + 0.1 * i
        u[:, :-1] = 0.5 * u[:, 1:]
        u[2] *= 0.9
    return u


FUNCTIONS = [
    jacobi, borders_as_well, moved_twice, until, skips, leaves_behind, other_parts, part_of_the_round, outside_is_read,
    two_arrays, inside,
    also_handed_to_a_loop, a_loop_inside_writes_first, changes_behind_a_test,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_twins(f):
    def make(n, turned=False):
        u = np.random.default_rng(0).random((9, 7))
        return (np.asfortranarray(u) if turned else u), n

    for n in (40, 41, 9, 8, 1):
        check(f, lambda n=n: make(n), backends=("llvm",), calls=3, ulp=64)
    check(f, lambda: make(40, turned=True), backends=("llvm",), ulp=64)
    check(f, lambda: (np.tile(make(40)[0], 2)[:, ::2], 40), backends=("llvm",), ulp=64)
    check(f, lambda: make(40), backends=("llvm",), dynamic=True, ulp=64)
    if f is not part_of_the_round:
        assert set(decided(f, *make(40))) == {("machine code", "")}
