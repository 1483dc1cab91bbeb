"""Generated programs of all of the language: a run of some seconds. tools/fuzz.py makes long ones."""

from __future__ import annotations

import sys
from random import Random

import numpy as np
import pytest

from .language_check import Plan, check, difference, shrink
from .language_programs import program

SEED, PROGRAMS = 20_261_121, 400


@pytest.mark.parametrize("part", range(4))
def test_programs(part, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # put back afterwards
    count = PROGRAMS // 4
    print(f"seeds from {SEED + part * count}, {count} programs")
    passed_over = sum(not check(SEED + part * count + i) for i in range(count))
    assert passed_over < count / 20


def test_same_seed_same_program():
    assert program(Random(5)) == program(Random(5))


def test_a_difference_is_found_and_made_small(monkeypatch):
    source = """\
def f(x, *rest, **more):
    a = [v + 1 for v in (1, 2)]
    if a:
        LOG.append(a)
        print('out')
    return x
"""
    plan = Plan(1)
    assert difference(source, plan) is None

    def copying(f, **_):
        """A compiler whose functions hand out copies of arrays."""

        def run(*args, **more):
            result = f(*args, **more)
            return result.copy() if isinstance(result, np.ndarray) else result

        return run

    monkeypatch.setattr("tcompile.compile", copying)
    assert shrink(source, lambda text: difference(text, plan) is not None) == "def f(x, *rest, **more):\n    return x\n"
