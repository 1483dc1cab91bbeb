"""Generated programs of all of the language, run plainly and with every frame passing through its resume points."""

from random import Random

import pytest
from capture.language_check import Plan, compare
from capture.language_programs import program

import tcompile
from bytecode.passing import Passing


@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_generated(seed, monkeypatch):
    rewrittens = []

    def passing(function, backend=None, dynamic=None):
        passed = Passing(random.choice(("same", "mixed")), random.random() < 0.5, seed=seed)
        rewrittens.append(passed)
        return passed(function)

    monkeypatch.setattr(tcompile, "compile", passing)
    for number in range(seed, seed + 5):
        random = Random(number)
        compare(program(Random(number)), Plan(number))
    assert sum(passed.passes for passed in rewrittens)
