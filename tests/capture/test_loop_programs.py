"""Generated programs with loops. ``python tools/fuzz.py --kind loops`` runs many of them."""

from __future__ import annotations

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
