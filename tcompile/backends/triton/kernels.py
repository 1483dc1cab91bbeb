"""A kernel of the schedule as the source of Triton functions.

Enters: a ``Kernel``. Leaves: its ``Function`` values: text with parameters, how many programs run, and the sizes of
blocks. What an element's value is never depends on how elements are divided among programs.
"""

from __future__ import annotations

from tcompile.backends.schedule import Kernel
from tcompile.backends.schedule.kernel import size_of
from tcompile.backends.schedule.stages import Stages
from tcompile.backends.triton.flat import Flat
from tcompile.backends.triton.rows import Merged, Parts, Rows
from tcompile.backends.triton.text import Function
from tcompile.graph.sizes import hint

FEW_ROWS, LONG_ROW = 256, 1 << 15  # fewer rows than that, each longer than that, are shared out


def write(kernel: Kernel, signals: bool = True, taken: frozenset[str] = frozenset()) -> list[Function]:
    """The functions of a kernel. ``signals``: whether they report what NumPy would; ``taken``: names of the library."""
    if not kernel.reduced:
        return [Flat(kernel, signals, taken).write()]
    row, rows = (hint(size_of([kernel.axes[a] for a in axes])) for axes in (kernel.reduced, kernel.kept))
    if row > LONG_ROW and rows < FEW_ROWS and Stages(kernel, frozenset(kernel.kept)).passes == 1:
        return [Parts(kernel, signals, taken).write(), Merged(kernel, signals, taken).write()]
    return [Rows(kernel, signals, taken).write()]


__all__ = ["write"]
