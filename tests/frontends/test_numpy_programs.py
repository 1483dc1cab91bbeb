"""Generated programs of NumPy: a run of some seconds (``tools/fuzz.py --kind numpy`` makes long ones), and what they
have found."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from differential import check as compare

from .numpy_check import Plan, check, difference, program, shrink, unequal

SEED, PROGRAMS = 20_261_122, 80


@pytest.mark.parametrize("part", range(4))
def test_programs(part):
    count = PROGRAMS // 4
    print(f"seeds from {SEED + part * count}, {count} programs")
    passed_over = sum(not check(SEED + part * count + i) for i in range(count))
    assert passed_over < count / 4


def test_same_seed_same_program():
    assert program(Random(5)) == program(Random(5))


def test_a_difference_is_found_and_made_small(monkeypatch):
    source = """\
def inputs(k):
    x = np.arange(3.0)
    return [x, 2]

def f(x, y):
    v0 = x * y
    v1 = np.sin(v0)
    x[1:] = v0[1:]
    v2 = v1[::-1]
    return v1, v2
"""
    assert difference(source, Plan(1)) is None

    def forgetting(f, **_):
        """A compiler whose functions forget to write to their arguments."""
        return lambda *args: f(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))

    monkeypatch.setattr("tcompile.compile", forgetting)
    small = shrink(source, lambda text: difference(text, Plan(1)) is not None)
    assert difference(small, Plan(1)) is not None
    assert len(small.splitlines()) < 8


@pytest.mark.parametrize("by, excused", [(4, True), (400, False)])
def test_only_what_moves_may_differ(by, excused):
    want = np.array([1.0, 2.0])
    moved = [np.array([1.0 + 8 * 2**-52, 2.0]), np.array([1.0 - 8 * 2**-52, 2.0])]
    assert not unequal(want + np.array([by * 2**-52, 0]), want, moved) == excused
    assert unequal(np.array([1.0, 3.0]), want, moved)
    assert unequal(want + np.array([2**-52, 0]), want, [])


# -- what generated programs have found --------------------------------------------------------------------------------
def test_an_empty_key_between_kernels():
    compare(lambda x: (np.full((4, 2), 3)[::-1][()], x + 1), lambda: [np.ones(3)])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_position_with_kept_axes_owns_its_data(name):
    compare(lambda x: getattr(x, name)(keepdims=True), lambda: [np.array([[1.0, 3.0], [2.0, 0.0]])])
