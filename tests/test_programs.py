"""Whole programs, compiled on every backend, give what plain Python gives; the benchmarks time the same programs."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

from benchmarks.programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    program = PROGRAMS[name]
    check(program.function, lambda: program.inputs(program.small), ulp=program.ulp)


@pytest.mark.parametrize("name", PROGRAMS)
def test_inputs_do_not_depend_on_earlier_runs(name):
    program = PROGRAMS[name]
    first, second = program.inputs(program.small), program.inputs(program.small)
    for a, b in zip(first, second, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
            assert not np.shares_memory(a, b)
