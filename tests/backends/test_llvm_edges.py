"""Edges of grids are written where they are, from elements that the same kernel does not write."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from tcompile.backends.schedule.boxes import box_of, common, extents_of, meet, without
from tcompile.backends.schedule.disjoint import disjoint
from tcompile.backends.schedule.kernel import Access, Axis, Buffer
from tcompile.graph import Graph, TensorType
from tcompile.graph.sizes import ShapeEnv
from tests.backends.test_llvm_nested_loops import decided
from tests.differential import check


def reached(access, axes, sizes, lengths):
    """The elements of an access, as numbers or tuples of indices."""
    value = lambda size: size if isinstance(size, int) else size.evaluate(sizes)
    found = set()
    for point in itertools.product(*(range(value(axis.size)) for axis in axes)):
        place = dict.fromkeys(range(-1, lengths), 0)
        for distance, times in [(access.offset, 1), *zip(access.steps, point, strict=True)]:
            for multiple, at in distance:
                place[-1 if at is None else at] += value(multiple) * times
        found.add(tuple(place.values()))
    return found


def buffer(shape):
    """An array of float64."""
    return Buffer(Graph("g").input("x", TensorType(np.dtype("float64"), shape)), "x")


@pytest.mark.parametrize("seed", range(4))
def test_apart_is_never_wrong(seed):
    draw, proven, meeting = random.Random(seed), 0, 0
    env = ShapeEnv()
    n = env.symbol(7, minimum=2)
    buffers = [buffer(shape) for shape in ((9, 7), (4, 2, 7), (n, 7))]
    for _ in range(400):
        axes = [Axis(draw.choice((1, 2, 3, 5, n - 1, n))) for _ in range(draw.choice((1, 2)))]
        strided = draw.random() < 0.3
        accesses = []
        for _ in range(2):
            steps = [((draw.choice((-2, -1, 1, 2, 7, n, n)), at if strided else None),) for at in range(len(axes))]
            steps = [step if draw.random() < 0.8 else () for step in steps]
            offset = tuple((draw.choice((0, 1, 2, 6, 9, n, n - 1)), at) for at in (range(2) if strided else (None,)))
            accesses.append((tuple(steps), offset))
        held = draw.choice(buffers)
        accesses = [Access(held, *access) for access in accesses]
        answer = disjoint(*accesses, axes)
        meets = any(
            reached(accesses[0], axes, {str(n): size}, 2) & reached(accesses[1], axes, {str(n): size}, 2)
            for size in (2, 3, 7, 8)
        )
        assert not (answer and meets)
        proven, meeting = proven + answer, meeting + meets
    assert proven > 30
    assert meeting > 30


def test_boxes():
    """A box has exactly the elements that an access reaches; and what is done with boxes is right for each place."""
    draw, found, whole = random.Random(0), [], (4, 3, 6)
    places = set(itertools.product(*map(range, whole)))
    within = lambda box: {place for place in places if all(a <= at < b for at, (a, b) in zip(place, box, strict=True))}
    array = buffer(whole)
    extents = extents_of(array.type)
    for _ in range(1000):
        axes = [Axis(draw.choice((1, 2, 3, 4, 6, 9, 12, 18))) for _ in range(draw.choice((1, 2)))]
        steps = tuple(((draw.choice((-18, -6, -1, 1, 2, 6, 18)), None),) for _ in axes)
        access = Access(array, steps, ((draw.randrange(72), None),))
        elements = {at for at, *_ in reached(access, axes, {}, 2)}
        box = box_of(access, [axis.size for axis in axes], extents)
        if box is not None and elements <= set(range(72)):
            assert within(box) == {tuple(map(int, np.unravel_index(at, whole))) for at in elements}
            found.append(box)
    assert len(found) > 50
    for one, two in itertools.pairwise(found):
        assert meet(one, two) == bool(within(one) & within(two))
        if meet(one, two):
            assert within(common(one, two)) == within(one) & within(two)
        rest = [within(box) for box in without([one], two)]
        assert set().union(*rest) == within(one) - within(two)
        assert sum(map(len, rest)) == len(set().union(*rest))


def edges(p, n):
    for _ in range(n):
        p[1:-1, 1:-1] = 0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1])
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = 2 * p[:, 1] - p[:, 2]
        p[-1] = p[-2] * 0.5
    return p


def ghosts(p, n):
    for _ in range(n):
        p[0], p[-1] = p[-2], p[1]
        p[:, 0] = p[:, -2]
        p[:, -1] = p[:, 1]
        p[1:-1, 1:-1] *= 0.9
    return p


def colours(p, n):
    for _ in range(n):
        p[::2] = 0.5 * p[1::2] + 0.1
        p[1::2, ::2] = p[1::2, 1::2] - 0.1
    return p


def halves(p, n):
    for _ in range(n):
        p[:4] = p[4:] * 0.5
        p[4:, :3] = p[:4, 3:] + 1
        p[0] = p[1:].max(axis=0) * 0.1
    return p


FUNCTIONS = [edges, ghosts, colours, halves]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_edges(f):
    def make(n, turned=False):
        p = np.random.default_rng(0).random((8, 6))
        return (np.asfortranarray(p) if turned else p), n

    for n in (40, 1):
        check(f, lambda n=n: make(n), backends=("aot_eager", "llvm"))
    check(f, lambda: make(40, turned=True), backends=("llvm",))
    check(f, lambda: (np.tile(make(40)[0], 2)[:, ::2], 40), backends=("llvm",))
    check(f, lambda: make(40), backends=("llvm",), dynamic=True)
    if f is not ghosts:
        assert set(decided(f, *make(40))) == {("machine code", "")}


def test_what_meets_is_read_first():
    def f(p, n):
        for _ in range(n):
            p[1:] = p[:-1] * 0.5
            p[:, ::-1] = p * 0.9
            p[:, 1] = p[:, 1:3].max(axis=1)
        return p

    check(f, lambda: (np.random.default_rng(0).random((8, 6)), 20), backends=("llvm",))
    check(f, lambda: (np.random.default_rng(0).random((8, 6)), 20), backends=("llvm",), dynamic=True)
