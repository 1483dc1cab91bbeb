"""Generated scalar loops. ``python tools/fuzz.py --kind elements`` runs many of them."""

from __future__ import annotations

from random import Random

import pytest

from .scalar_loop_check import Plan, nodes_of, program


@pytest.mark.recompile_limit(100)  # lists of other kinds in each call, in some programs
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_generated_loops_over_elements(first):
    found = 0
    for seed in range(first, first + 10):
        source = program(Random(seed))
        for backend in ("eager", "llvm"):
            found += nodes_of(source, Plan(backend, seed)) or 0
    assert found
