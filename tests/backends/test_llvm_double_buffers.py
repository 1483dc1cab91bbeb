"""Double buffers: an array of which each iteration changes one part is copied once, and swapped with its copy."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm.loop_program import build
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


def leaves_after(u, n):
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


def part_of_the_iteration(u, n):
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


def changes_after_a_test(u, n):
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
    jacobi, borders_as_well, moved_twice, until, skips, leaves_after, other_parts, part_of_the_iteration,
    outside_is_read, two_arrays, inside,
    also_handed_to_a_loop, a_loop_inside_writes_first, changes_after_a_test,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_double_buffers(f):
    def make(n, turned=False):
        u = np.random.default_rng(0).random((9, 7))
        return (np.asfortranarray(u) if turned else u), n

    for n in (40, 41, 9, 8, 1):
        check(f, lambda n=n: make(n), backends=("llvm",), calls=3, ulp=64)
    check(f, lambda: make(40, turned=True), backends=("llvm",), ulp=64)
    check(f, lambda: (np.tile(make(40)[0], 2)[:, ::2], 40), backends=("llvm",), ulp=64)
    check(f, lambda: make(40), backends=("llvm",), dynamic=True, ulp=64)
    if f is not part_of_the_iteration:
        assert set(decided(f, *make(40))) == {("machine code", "")}


# -- several parts -----------------------------------------------------------------------------------------------------
def inside_and_edges(p, n):
    for _ in range(n):
        q = p.copy()
        p[1:-1, 1:-1] = 0.25 * (q[1:-1, 2:] + q[1:-1, :-2] + q[2:, 1:-1] + q[:-2, 1:-1])
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0
    return p


def inside_and_edges_in_three_dimensions(p, n):
    p = np.stack([p, p * 2, p * 3, p * 5])
    for _ in range(n):
        p[1:-1, 1:-1, 1:-1] = 0.5 * (p[2:, 1:-1, 1:-1] + p[1:-1, 1:-1, 2:])
        p[0], p[-1] = 1, 2
        p[:, 0] = p[:, -2]
        p[:, -1] = p[:, 1]
        p[:, :, 0] = p[:, :, -2]
        p[:, :, -1] = p[:, :, 1]
    return p


def edges_without_a_column(p, n):  # whose elements stay as they are: both arrays have them
    for _ in range(n):
        p[1:-1, 1:-1] = 0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1])
        p[0, 1:] = p[1, 1:]
        p[-1, 1:] = p[-2, 1:]
        p[:, -1] = p[:, -2]
    return p


def a_corner_is_seen(p, n):  # p[0, 0] is that of p[0, 1] in the iteration before
    for _ in range(n):
        p[1:-1, 1:-1] = 0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1])
        p[:, 0] = p[:, 1]
        p[0, 1:] = p[1, 1:]
        p[-1, 1:] = 0
        p[:, -1] = 0
    return p


def an_edge_is_computed(p, n):  # of what is written after it
    for _ in range(n):
        p[1:-1, 1:-1] = 0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1])
        p[:, -1] = 0.5 * p[:, -2]
        p[:, 0] = 1
        p[0], p[-1] = 0, 1
    return p


def may_end_between(p, n):
    for _ in range(n):
        p[1:-1] = 0.5 * (p[2:] + p[:-2])
        if p.sum() < 25:
            break
        p[0] = p[1]
        p[-1] = p[-2]
    return p


def may_end_before(p, n):
    for _ in range(n):
        if p.sum() < 25:
            break
        p[1:-1] = 0.5 * (p[2:] + p[:-2])
        p[0] = p[1]
        p[-1] = p[-2]
    return p


def backwards(p, n):
    for _ in range(n):
        p[1:-1] = 0.5 * (p[2:] + p[:-2])
        p[0] = p[1, ::-1]
        p[-1, ::-1] = p[-2, ::-1]
    return p


@pytest.fixture
def copies(monkeypatch):
    """For each array of which parts are written, whether it is copied once, in the order of the loops."""
    found = []
    original = build.Iterations.__init__

    def noted(self, *args):
        original(self, *args)
        found.extend(any(copy is once for once in self.copied_once) for copy, _ in self.copies)

    monkeypatch.setattr(build.Iterations, "__init__", noted)
    return found


def another_one_is_handed_on(p, n):
    q = p * 0.5
    for i in range(n):
        if i % 3 * q[2, 2] > 0.3:
            p = q
            continue
        p[1:-1] = 0.5 * (p[2:] + p[:-2]) + 0.1
        p[0] = p[1]
    return p, q


def test_another_array_is_handed_on():
    for n in (9, 40):
        check(another_one_is_handed_on, lambda n=n: (np.random.default_rng(0).random((9, 7)), n), backends=("llvm",))


PARTS = {
    inside_and_edges: True, inside_and_edges_in_three_dimensions: True, edges_without_a_column: True,
    a_corner_is_seen: False, an_edge_is_computed: False, may_end_between: False, may_end_before: True, backwards: True,
}  # fmt: skip


@pytest.mark.parametrize("f", PARTS, ids=lambda f: f.__name__)
def test_parts(f, copies):
    def make(n):
        return np.random.default_rng(0).random((9, 7)), n

    for n in (40, 9, 1):
        check(f, lambda n=n: make(n), backends=("llvm",), calls=3, ulp=64)
    check(f, lambda: (np.asfortranarray(make(40)[0]), 40), backends=("llvm",), ulp=64)
    check(f, lambda: make(40), backends=("llvm",), dynamic=True, ulp=64)
    copies.clear()
    tcompile.compile(f, backend="llvm")(*make(40))
    assert copies == [PARTS[f]]


def generated(seed):
    """A loop that writes some parts of a grid in some order, and the grid's shape."""
    chosen = random.Random(seed)
    shape = [chosen.randint(3, 6) for _ in range(chosen.choice([1, 2, 2, 2, 3]))]

    def box(lengths):
        parts = []
        for length, extent in zip(lengths, shape, strict=True):
            low = chosen.randint(0, extent - length)
            turned = low and chosen.random() < 0.15
            parts.append(f"{low + length - 1}:{low - 1}:-1" if turned else f"{low}:{low + length}")
        return f"[{', '.join(parts)}]"

    def edge(axis, place):
        return f"[{', '.join(str(place) if at == axis else ':' for at in range(len(shape)))}]"

    def line():
        axis, kind = chosen.randrange(len(shape)), chosen.random()
        one, two = chosen.sample(range(shape[axis]), 2)
        if kind < 0.5:
            value = chosen.choice(["p{0}", "p{0}", "q{0}", "p{0} * 0.5", "0.1 * t", "0"])
            return f"p{edge(axis, one - chosen.choice([0, shape[axis]]))} = {value.format(edge(axis, two))}"
        lengths = [chosen.choice([extent - 2, extent - 1, extent]) for extent in shape]
        if kind < 0.65:
            return f"p{box(lengths)} = p{box(lengths)}"
        return f"p{box(lengths)} = 0.4 * (q{box(lengths)} + {chosen.choice('pq')}{box(lengths)})"

    places = [(axis, place) for axis in range(len(shape)) for place in (0, -1)]
    chosen.shuffle(places)
    inner = [extent - 2 for extent in shape]
    lines = [f"p[{', '.join(['1:-1'] * len(shape))}] = 0.4 * (q{box(inner)} + q{box(inner)})"]
    for axis, place in places[: chosen.choice([0, 1, 9, 9, 9])]:
        near, far = (1, -2) if place == 0 else (-2, 1)
        lines.append(f"p{edge(axis, place)} = {chosen.choice([f'p{edge(axis, near)}', f'p{edge(axis, far)}', '0'])}")
    for _ in range(chosen.choice([0, 0, 1, 2])):
        lines.insert(chosen.randint(0, len(lines)), line())
    if chosen.random() < 0.4:
        lines.insert(chosen.randint(0, len(lines)), f"if p.sum() * t > 60: {chosen.choice(['break', 'continue'])}")
    body = "".join(f"        {text}\n" for text in ["q = p.copy()", *lines])
    return f"def f(p, n):\n    for t in range(n):\n{body}    return p\n", tuple(shape)


def run_generated(seed):
    """One program, compiled and not."""
    source, shape = generated(seed)
    space = {}
    exec(source, space)
    compiled = tcompile.compile(space["f"], backend="llvm")
    for n in (12, 31, 9):
        given = [np.random.default_rng(seed).random(shape) for _ in range(2)]
        got, want = compiled(given[0], n), space["f"](given[1], n)
        np.testing.assert_allclose(got, want, 1e-12, 0, err_msg=f"{seed}\n{source}")
        np.testing.assert_allclose(*given, 1e-12, 0, err_msg=f"{seed}\n{source}")


@pytest.mark.parametrize("first", range(0, 80, 40))
def test_generated(first, copies):
    for seed in range(first, first + 40):
        run_generated(seed)
    assert copies.count(True) > 5 < copies.count(False)
