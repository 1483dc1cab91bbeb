"""Pointwise kernels whose innermost axis is short, such as coordinates or colours: rows side by side.

Input: a kernel of form ``flat``.
Output: the same kernel with the innermost axis unrolled (form ``small_rows``), where that is faster.
Why: a vector along an axis of three elements wastes most lanes, and each row costs a masked load and store.
"""

from __future__ import annotations

import dataclasses

from tcompile.backends.llvm.kernels.nest import lanes_of
from tcompile.backends.llvm.kernels.small_reductions import longest_deinterleaved
from tcompile.backends.schedule import Kernel
from tcompile.backends.schedule.admission import WIDE
from tcompile.backends.schedule.kernel import static_elements
from tcompile.backends.schedule.kernel_ops import GATHER, IOTA
from tcompile.backends.schedule.lower import MOST_UNROLLED
from tcompile.graph.sizes import hint


def with_rows_side_by_side(kernel: Kernel) -> Kernel:
    """The kernel with a short innermost axis as the rows of form ``small_rows``; else the kernel itself."""
    if kernel.form != "flat" or len(kernel.axes) < 2:
        return kernel
    across, along = len(kernel.axes) - 2, len(kernel.axes) - 1
    few = kernel.axes[along].size
    if not isinstance(few, int) or not 2 <= few <= _most(kernel) or hint(kernel.axes[across].size) < WIDE:
        return kernel
    for value in kernel.values:
        if value.op is GATHER or value.dtype.kind == "c" or (value.op is IOTA and across in value.axes):
            return kernel
    if any(static_elements(store.access.steps[along]) != 1 for store in kernel.stores):
        return kernel
    if few * len(kernel.values) > MOST_UNROLLED:
        return kernel
    axes = [*kernel.axes[:-1], dataclasses.replace(kernel.axes[along], reduced=True)]
    return Kernel(kernel.name, "small_rows", axes, kernel.values, kernel.stores, kernel.nodes)


def _most(kernel: Kernel) -> int:
    """The most elements of an axis that is unrolled: fewer than a vector's, and of bytes those that deinterleave."""
    dtypes = [access.buffer.type.dtype for access in kernel.accesses]
    least = min(dtypes, key=lambda dtype: dtype.itemsize)
    return longest_deinterleaved(least) if least.itemsize == 1 else lanes_of(kernel) - 1


__all__ = ["with_rows_side_by_side"]
