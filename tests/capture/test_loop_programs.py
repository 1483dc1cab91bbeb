"""Generated programs with loops. ``python tools/fuzz.py --kind loops`` runs many of them."""

from __future__ import annotations

import textwrap
from random import Random

import pytest

from .loop_check import Plan, nodes_of, program


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_generated_loops(first):
    found = 0
    for seed in range(first, first + 8):
        random = Random(seed)
        source = program(random)
        for backend in ("eager", "llvm"):
            found += nodes_of(source, Plan.random(random, backend)) or 0
    assert found


FOUND = [  # by long runs of the generator
    # What one attempt at a capture has learned of a loop's limit is said in symbols that the next attempt calls alike.
    """
    def f(a, b, n):
        for i in range(n):
            a *= 1
            j = 0
            while n > j:
                j += 1
                a = 1
                b = b + i
            if np.all(1):
                pass
        return b
    """,
]


@pytest.mark.parametrize("source", FOUND)
def test_programs_that_showed_a_difference(source):
    for backend in ("eager", "llvm"):
        assert nodes_of(textwrap.dedent(source), Plan(backend, (7, 8, 1, 0))) is not None
