"""A kernel of the schedule as the source of Triton functions.

Input: a ``Kernel``. Output: its ``TritonFunction`` values: text with parameters, how many programs run, and the sizes
of blocks. What an element's value is never depends on how elements are divided among programs.
"""

from __future__ import annotations

from tcompile.backends.schedule import Kernel
from tcompile.backends.schedule.kernel_ops import ALONG
from tcompile.backends.triton import rows, scans
from tcompile.backends.triton.configs import USUAL, Config
from tcompile.backends.triton.dots import Axes, Dots
from tcompile.backends.triton.flat import Flat
from tcompile.backends.triton.text import TritonFunction
from tcompile.backends.triton.thin import Thin, is_thin


def write(
    kernel: Kernel,
    signals: bool = True,
    taken: frozenset[str] = frozenset(),
    config: Config = USUAL,
    dots: Axes | None = None,
) -> list[TritonFunction]:
    """The functions of a kernel. ``signals``: whether they report what NumPy would; ``taken``: names of the library;
    ``dots``: the axes of one that multiplies matrices.
    """
    if dots is not None:
        return [Dots(kernel, signals, taken, config, dots).write()]
    if not kernel.reduced:
        return [Flat(kernel, signals, taken, config).write()]
    if any(value.op is ALONG for value in kernel.values):
        return scans.write(kernel, signals, taken, config)
    if is_thin(kernel):
        return [Thin(kernel, signals, taken, config).write()]
    return rows.write(kernel, signals, taken, config)


__all__ = ["write"]
