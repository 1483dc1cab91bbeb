"""Status bits that kernels of all code generators return.

Input: nothing.
Output: the bits: NumPy's floating-point conditions, the overflow of NumPy's integer scalars, and one for inputs that
only NumPy can handle.
Why: ``helpers`` reads the status of any kernel alike.
"""

from __future__ import annotations

DIVIDE = 1
OVERFLOW = 2
UNDERFLOW = 4
INVALID = 8
INTEGER_OVERFLOW = 16
ONLY_NUMPY = 32  # always replayed
INTERRUPTED = 64  # a signal handler has raised in the middle of a loop
PAUSED = 128  # a value that was read has changed: the loop ended after a whole iteration, and its values are valid
PAUSED_SHIFT = 16  # for a scalar loop that ended so, the bits from here on number the row of its held registers
CHANGED = 256  # the same, in the middle of an iteration: the loop's values are void

__all__ = [
    "CHANGED", "DIVIDE", "INTEGER_OVERFLOW", "INTERRUPTED", "INVALID", "ONLY_NUMPY", "OVERFLOW", "PAUSED",
    "PAUSED_SHIFT", "UNDERFLOW",
]  # fmt: skip
