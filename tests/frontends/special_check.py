"""Generated programs of NumPy whose arrays hold special numbers: infinities, NaNs, the largest and the smallest.

Input: as in ``numpy_check``.
Output: as in ``numpy_check``.
Why: most differences concern them, and only one program in nine has them otherwise.
"""

from __future__ import annotations

import functools

from capture.language_check import Difference, checks

from . import numpy_programs
from .numpy_check import Plan, compare, shrink

program = functools.partial(numpy_programs.program, how="special")
check, difference = checks(program, Plan.random, compare)

__all__ = ["Difference", "Plan", "check", "compare", "difference", "program", "shrink"]
