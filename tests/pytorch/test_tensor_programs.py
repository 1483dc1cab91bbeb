"""Generated programs of tensors: a run of some seconds. tools/fuzz.py makes long ones."""

from __future__ import annotations

from random import Random

import pytest

from .tensor_check import Plan, check, difference, program

SEED, PROGRAMS = 8000, 160


@pytest.mark.parametrize("part", range(4))
def test_programs(part: int) -> None:
    count = PROGRAMS // 4
    for seed in range(SEED + part * count, SEED + (part + 1) * count):
        check(seed)


def test_same_seed_same_program() -> None:
    assert program(Random(5)) == program(Random(5))


def test_a_difference_is_found() -> None:
    plan = Plan(1, "auto")
    assert difference("def f(x, w, n, s):\n    return x + n\n", plan) is None
    told = difference("def f(x, w, n, s):\n    return x, id(x)\n", plan)
    assert told is not None and "instead of" in told
