"""Code generation of a kernel: picks the loop nest for its form.

Input: a ``Kernel``.
Output: ``Code``, the functions' text with their launch parameters and their division of work.
Why: no form of loop nest knows another one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

from tcompile.backends.llvm.kernels import fills, routines
from tcompile.backends.llvm.kernels.batched_rows import BatchedRowsNest, has_batched_rows
from tcompile.backends.llvm.kernels.blocks import BlockNest
from tcompile.backends.llvm.kernels.columns import ColumnNest
from tcompile.backends.llvm.kernels.nest import KernelFunction, without_passes
from tcompile.backends.llvm.kernels.rows import FlatNest, RowNest
from tcompile.backends.llvm.kernels.scans import ScanNest
from tcompile.backends.llvm.kernels.scatter import ScatterNest
from tcompile.backends.llvm.kernels.short_axes import with_rows_side_by_side
from tcompile.backends.llvm.kernels.small_reductions import SmallRowsNest
from tcompile.backends.llvm.kernels.sorts import SortNest
from tcompile.backends.llvm.kernels.tiles import TiledNest
from tcompile.backends.llvm.kernels.variants import USUAL, KernelVariant
from tcompile.backends.llvm.vector.text import Module
from tcompile.backends.schedule import Kernel, Store
from tcompile.backends.schedule.kernel_ops import CONSTANT
from tcompile.graph import ops
from tcompile.graph.sizes import hint
from tcompile.records import dataclass

_FEW_ELEMENTS = 64


@dataclass
class Code:
    """All functions of one kernel; none for memory that is only allocated."""

    kernel: Kernel
    functions: list[KernelFunction] = field(default_factory=list)


def write(
    module: Module,
    kernel: Kernel,
    nontemporal: Sequence[Store] = (),
    variant: KernelVariant = USUAL,
    brief: bool = False,
    noalias: bool = False,
) -> Code:
    """Emits the functions of ``kernel`` into ``module``.

    ``brief``: the graph has more work than small kernels and fills, so that these are compiled without optimisation.
    ``noalias``: the kernel reads nothing that it writes.
    """
    code = Code(kernel)
    if all(value.node is not None and value.node.op is ops.EMPTY for value in kernel.values):
        return code  # assignments store all of it
    if (filled := fills.write(kernel, nontemporal)) is not None:
        code.functions.append(filled)
        return code
    kernel = with_rows_side_by_side(kernel)
    if kernel.form == "flat":
        code.functions.append(FlatNest(module, kernel, nontemporal, variant).flat(noalias))
    elif kernel.form == "tiled":
        code.functions.append(TiledNest(module, kernel, nontemporal, variant).tiled())
    elif kernel.form == "rows" and has_batched_rows(kernel):
        code.functions.append(BatchedRowsNest(module, kernel, nontemporal).rows())
    elif kernel.form == "rows":
        code.functions.append(RowNest(module, kernel, nontemporal).rows(noalias))
    elif kernel.form == "sort":
        code.functions.append(SortNest(module, kernel, nontemporal).small_rows())
    elif kernel.form == "small_rows":
        code.functions.append(SmallRowsNest(module, kernel, nontemporal).small_rows())
    elif kernel.form == "columns":
        code.functions.append(ColumnNest(module, kernel, nontemporal).columns())
    elif kernel.form == "scatter":
        code.functions.append(ScatterNest(module, kernel).places())
    elif kernel.form == "routine":
        code.functions.append(routines.write(module, kernel))
    elif kernel.form in ("scan_rows", "scan_columns"):
        code.functions.append(ScanNest(module, kernel, nontemporal).scan())
    else:
        code.functions.append(BlockNest(module, kernel, nontemporal).blocks())
        code.functions.append(BlockNest(module, kernel, ()).combine())
    for function in code.functions:
        if brief and _is_small(kernel):
            function.text = without_passes(function.text)
        function.name = module.add(function.name, function.text)
    return code


def _is_small(kernel: Kernel) -> bool:
    """Whether a kernel has few elements, or only fills arrays with numbers."""
    sizes = [axis.size for axis in kernel.axes]
    few = all(isinstance(size, int) for size in sizes) and math.prod(map(hint, sizes)) <= _FEW_ELEMENTS
    return kernel.form == "flat" and (few or all(value.op is CONSTANT for value in kernel.values))
