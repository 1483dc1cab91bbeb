"""The status bits that kernels of all code generators return.

Input: nothing. Output: the bits: NumPy's floating-point conditions, the overflow of NumPy's integer scalars, and one
for inputs of which only NumPy itself can say the result. Exists so that ``helpers`` reads the status of any kernel
alike.
"""

from __future__ import annotations

DIVIDE = 1
OVERFLOW = 2
UNDERFLOW = 4
INVALID = 8
INTEGER_OVERFLOW = 16
ONLY_NUMPY = 32  # always replayed
INTERRUPTED = 64  # a signal's handler has raised in the middle of a loop
PAUSED = 128  # something that was read has changed: a loop has ended with fewer iterations, and what it holds is right
PAUSED_SHIFT = 16  # of a scalar loop that is left so, the bits from here on number the row of what it holds
CHANGED = 256  # the same, in the middle of an iteration: what the loop holds is void

__all__ = [
    "CHANGED", "DIVIDE", "INTEGER_OVERFLOW", "INTERRUPTED", "INVALID", "ONLY_NUMPY", "OVERFLOW", "PAUSED",
    "PAUSED_SHIFT", "UNDERFLOW",
]  # fmt: skip
