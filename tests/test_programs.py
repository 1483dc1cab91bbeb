"""Whole programs, compiled on every backend, give what plain Python gives; the benchmarks time the same programs."""

from __future__ import annotations

import numpy as np
import pytest
from differential import Run, assert_same_run, check

import tcompile
from benchmarks.everyday import EVERYDAY
from benchmarks.programs import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    program = PROGRAMS[name]
    check(program.function, lambda: program.inputs(program.small), ulp=program.ulp)


@pytest.mark.parametrize("name", EVERYDAY)
def test_program_at_several_sizes(name):
    program = EVERYDAY[name]
    compiled = tcompile.compile(program.function)
    for size in (program.small, program.small, 2 * program.small, 3 * program.small, program.small):
        for _ in range(2):
            got, want = (Run(call, program.inputs(size)) for call in (compiled, program.function))
            assert_same_run(got, want, ulp=program.ulp)


@pytest.mark.parametrize("name", PROGRAMS | EVERYDAY)
def test_inputs_do_not_depend_on_earlier_runs(name):
    program = (PROGRAMS | EVERYDAY)[name]
    first, second = program.inputs(program.small), program.inputs(program.small)
    for a, b in zip(first, second, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
            assert not np.shares_memory(a, b)
