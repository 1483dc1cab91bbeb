"""Generated programs of NumPy whose arrays are small or empty, of any memory order, and vary from call to call.

Input: as in ``numpy_check``.
Output: as in ``numpy_check``.
Why: a varying size may become one or zero, and operands that then do not fit are errors in NumPy.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from random import Random

from capture.language_check import Difference, checks

from . import numpy_check, numpy_programs
from .numpy_check import compare, shrink


class Plan(numpy_check.Plan):
    """Half of the plans have symbolic sizes from the first call on."""

    @classmethod
    def random(cls, random: Random, backend: str | None = None, stress: bool = False) -> numpy_check.Plan:
        """A plan of the usual kind otherwise."""
        return replace(super().random(random, backend, stress), dynamic=random.choice((None, True)))


program = functools.partial(numpy_programs.program, few=True)
check, difference = checks(program, Plan.random, compare)

__all__ = ["Difference", "Plan", "check", "compare", "difference", "program", "shrink"]
