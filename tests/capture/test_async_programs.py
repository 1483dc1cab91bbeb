"""Generated loops that others change while they run. ``python tools/fuzz.py --kind async`` runs many of them.

Input: seeds of programs. Output: none; a test fails where a program's result is none that plain Python could give. Why:
how late a loop sees a change depends on what else the machine does, so long runs look at that, and these tests do not.
"""

from __future__ import annotations

import signal
from random import Random

import pytest

from .async_check import Plan, difference, program

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such signals")
WRONG = ("never seen", "values", "afterwards", "raised", "died")


@pytest.mark.parametrize("seed", range(8))
def test_generated_loops_that_others_change(seed):
    random = Random(seed)
    source = program(random)
    found = difference(source, Plan.random(random, "llvm"))
    assert found is None or not found.startswith(WRONG), f"{found}\n{source}"
