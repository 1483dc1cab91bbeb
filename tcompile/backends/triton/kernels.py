"""Code generation of a kernel: the source of its Triton functions.

Input: a ``Kernel``.
Output: its ``TritonFunction`` values: text with parameters, the number of programs, and the sizes of blocks.
Why: the forms know nothing of each other. The value of an element never depends on how elements are divided among
programs.
"""

from __future__ import annotations

from tcompile.backends.schedule import Kernel
from tcompile.backends.schedule.kernel_ops import ALONG
from tcompile.backends.triton import rows, scans
from tcompile.backends.triton.configs import USUAL, TilingConfig
from tcompile.backends.triton.dots import Axes, Dots
from tcompile.backends.triton.flat import Flat
from tcompile.backends.triton.small_reductions import SmallRows, has_small_rows
from tcompile.backends.triton.text import TritonFunction


def write(
    kernel: Kernel,
    signals: bool = True,
    taken: frozenset[str] = frozenset(),
    config: TilingConfig = USUAL,
    dots: Axes | None = None,
) -> list[TritonFunction]:
    """Writes the functions of a kernel. ``signals``: whether they report NumPy's flags; ``taken``: names of the
    library; ``dots``: the axes of one that multiplies matrices.
    """
    if dots is not None:
        return [Dots(kernel, signals, taken, config, dots).write()]
    if not kernel.reduced:
        return [Flat(kernel, signals, taken, config).write()]
    if any(value.op is ALONG for value in kernel.values):
        return scans.write(kernel, signals, taken, config)
    if has_small_rows(kernel):
        return [SmallRows(kernel, signals, taken, config).write()]
    return rows.write(kernel, signals, taken, config)


__all__ = ["write"]
