"""Differences between versions of NumPy, as one table.

Input: the NumPy that runs.
Output: one fact for each row, true where this NumPy has it.
Why: compiled code must match the installed NumPy, so code that depends on its version reads a named row here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tcompile.versions import numbers

VERSION = numbers(np.__version__)
NEWEST = (2, 5)  # the newest version that was tested


class Since(NamedTuple):
    """A difference between versions: true from a version on.

    Attributes
    ----------
    version : tuple of int
        The first version of NumPy for which ``what`` holds.
    what : str
        The behaviour from then on, and the behaviour before.
    asked_by : str
        The files that read the row, relative to the repository.
    """

    version: tuple[int, int]
    what: str
    asked_by: str

    def __bool__(self) -> bool:
        return self.version <= VERSION


HAS_MATVEC = Since(
    (2, 2), "there are `matvec` and `vecmat`", "tests/frontends/test_library.py, tests/frontends/test_symbolic.py"
)
POWER_LOOKS_AT_TYPES = Since(
    (2, 3), "`x ** e` is a square, a root or a reciprocal for some Python numbers only; before, for all scalars and "
    "arrays without axes of certain values, in the dtype of `x`", "tcompile/frontends/numpy/operators.py",
)  # fmt: skip
DOT_WARNS = Since(
    (2, 3), "`dot`, `inner` and `tensordot` warn of overflow and invalid values, as `matmul` does; before, they do not",
    "tests/frontends/test_library.py",
)  # fmt: skip
INDICES_CHECKED_BESIDE_EMPTY = Since(
    (2, 3), "an index out of bounds raises where another axis is empty, too; before, it warns",
    "tcompile/graph/ops/gathering.py",
)  # fmt: skip
COUNTS_ARE_NUMPYS = Since(
    (2, 3), "`count_nonzero` without an axis is an `np.intp`; before, a Python int",
    "tcompile/frontends/numpy/reductions.py",
)  # fmt: skip
ROUND_COPIES_INTEGERS = Since(
    (2, 4), "`round` of integers is a copy; before, the array itself", "tcompile/frontends/numpy/elementwise.py"
)
TYPES_KEEP_ONE_ELEMENT = Since(
    (2, 4), "`np.float64(x)` of an array of one element and one axis or more is an array; before, a scalar, with a "
    "warning", "tcompile/frontends/numpy/creation.py",
)  # fmt: skip
SIGNATURES_IN_C_STATED = Since(
    (2, 4), "functions and methods in C state their signatures; before, our own table has those that matter",
    "tcompile/frontends/numpy/registry.py",
)  # fmt: skip
NEGATES_RIGHTLY = Since(
    (2, 5), "arrays whose elements lie 16 or 32 bytes apart are negated rightly; before, not on processors without "
    "AVX-512", "tests/frontends/numpy_programs.py",
)  # fmt: skip

ROWS = {name: row for name, row in list(globals().items()) if isinstance(row, Since)}

__all__ = ["NEWEST", "ROWS", "VERSION", "Since"]
