"""Generated programs of NumPy whose arrays have few elements or none, lie in any order, and vary from call to call.

Enters and leaves what ``numpy_check`` takes and gives. Why: it is there that a size which varies turns out
to be one or zero, and that what does not fit is an error in NumPy and must be one here.
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
