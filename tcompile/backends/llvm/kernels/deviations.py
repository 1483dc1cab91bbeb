"""One-pass variance: sums of squared deviations from the mean of a column.

Input: a kernel of form ``columns`` that sums elements, divides by their number, and sums the squared differences of the
elements from that mean.
Output: the same kernel with one reduction in place of the second sum, which does not depend on the first; and how that
reduction accumulates.
Why: two passes read the array twice, and a column of a large one has left the cache before the second pass begins.

The deviations are taken from the mean of the rows before (D. H. D. West, Communications of the ACM 22, 1979, page 532),
for some rows at once (T. F. Chan, G. H. Golub, R. J. LeVeque, The American Statistician 37, 1983, page 242). With ``n``
rows seen, their mean ``m`` and ``q``, the sum of squared deviations from it, ``k`` more rows with deviations ``d`` from
``m`` give

    m + sum(d) / (n + k)    and    q + sum(d * d) - sum(d) ** 2 / (n + k)

The subtraction cancels at most half of ``sum(d * d)`` where ``n`` is not below ``k``. The first rows' deviations are
taken from their own mean, so that it cancels nothing. For float64 the mean has a second part, with the rounding error
of the first. The error is as small as that of two passes.
"""

from __future__ import annotations

from dataclasses import replace

from tcompile.backends.llvm.kernels.reductions import two_sum
from tcompile.backends.llvm.vector.vectors import FLOAT32, FLOAT64, Vectors
from tcompile.backends.schedule import Kernel, KernelValue, Store
from tcompile.backends.schedule.kernel import size_of
from tcompile.backends.schedule.kernel_ops import REDUCE, SIZE
from tcompile.graph import SymInt, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.sizes import may_be_empty, same
from tcompile.records import dataclass


def in_one_pass(kernel: Kernel) -> Kernel:
    """The kernel, with reductions ``deviations`` of elements in place of sums of their squared deviations."""
    if may_be_empty(kernel.axes[axis].size for axis in kernel.reduced):
        return kernel
    known: dict[KernelValue, KernelValue] = {}
    for value in kernel.values:
        of = _deviating(kernel, value)
        if of is not None:
            known[value] = KernelValue(
                REDUCE, (known[of],), value.dtype, value.axes, value.node, {**value.attrs, "op": "deviations"},
                cost=value.cost,
            )  # fmt: skip
            continue
        operands = tuple(known[o] if isinstance(o, KernelValue) else o for o in value.operands)
        known[value] = value if operands == value.operands else replace(value, operands=operands)
    stores = [Store(known[store.value], store.access) for store in kernel.stores]
    needed: set[KernelValue] = set()
    goals = [store.value for store in stores]
    while goals:
        if (goal := goals.pop()) not in needed:
            needed.add(goal)
            goals += goal.values
    values = [known[value] for value in kernel.values if known[value] in needed]
    return kernel if len(values) == len(kernel.values) else replace(kernel, values=values, stores=stores)


def _deviating(kernel: Kernel, value: KernelValue) -> KernelValue | None:
    """The elements whose squared deviations from their mean ``value`` sums; None where it is another sum."""
    if value.op is not REDUCE or value.attrs["op"] != "sum" or value.dtype not in (FLOAT32, FLOAT64):
        return None
    square = value.values[0]
    factors = square.values
    if square.op not in (ops.SQUARE, ops.MULTIPLY) or any(x is not factors[0] for x in factors):
        return None
    difference = factors[0]
    if difference.op is not ops.SUBTRACT or len(difference.values) != 2 or len(square.operands) != len(factors):
        return None
    elements, mean = difference.values
    while mean.op is ops.ASTYPE and mean.values:
        mean = mean.values[0]
    if mean.op is not ops.DIVIDE or not mean.values:
        return None
    total = mean.values[0]
    while total.op is ops.ASTYPE and total.values:
        total = total.values[0]
    summed = total.op is REDUCE and total.attrs["op"] == "sum" and total.values[0] is elements
    return elements if summed and _is_count(kernel, mean.operands[1]) else None


def _is_count(kernel: Kernel, divisor: KernelValue | bool | int | float) -> bool:
    """Whether a divisor is the number of elements that the kernel reduces."""
    count = size_of([kernel.axes[axis] for axis in kernel.reduced])
    if not isinstance(divisor, KernelValue):
        return isinstance(count, int) and divisor == count
    while divisor.op is ops.ASTYPE and divisor.values:
        divisor = divisor.values[0]
    return divisor.op is SIZE and isinstance(count, SymInt) and same(divisor.attrs["size"], count)


@dataclass(frozen=True)
class Deviations:
    """The accumulators of one such reduction of elements of ``dtype``: all float64, also for float32."""

    dtype: DType

    @property
    def parts(self) -> tuple[DType, ...]:
        """The dtypes of the carried values: the mean (for float64 in two parts), and the sum of squares."""
        return (FLOAT64,) * (2 if self.dtype == FLOAT32 else 3)

    def summed(self, v: Vectors, total: str, element: str) -> str:
        """The sum of one more of the first rows."""
        return v.op("fadd", FLOAT64, total, self._wide(v, element))

    def start(self, v: Vectors, mean: str) -> list[str]:
        """The carried values before the first rows, whose mean is ``mean``, or is near to it."""
        zero = v.constant(FLOAT64, 0)
        return [mean, *([zero] * (len(self.parts) - 1))]

    def begin(self, v: Vectors, kept: list[str]) -> list[str]:
        """The accumulators before the first of some rows: the sums of the deviations and of their squares."""
        return [v.constant(FLOAT64, 0)] * 2

    def further(self, v: Vectors, kept: list[str], held: list[str], element: str) -> list[str]:
        """The accumulators of some rows after one more."""
        deviation = v.op("fsub", FLOAT64, self._wide(v, element), kept[0])
        if len(kept) == 3:
            deviation = v.op("fsub", FLOAT64, deviation, kept[1])
        return [v.op("fadd", FLOAT64, held[0], deviation), v.fma(FLOAT64, deviation, deviation, held[1])]

    def end(self, v: Vectors, kept: list[str], held: list[str], reciprocal: str) -> list[str]:
        """The carried values after some rows. ``reciprocal``: one divided by the number of all rows until then."""
        total, squares = held
        step = v.op("fmul", FLOAT64, total, reciprocal)
        further = v.op("fsub", FLOAT64, squares, v.op("fmul", FLOAT64, total, step))
        sum_of_squares = v.op("fadd", FLOAT64, kept[-1], further)
        if len(kept) == 2:
            return [v.op("fadd", FLOAT64, kept[0], step), sum_of_squares]
        mean, rest = two_sum(v, kept[0], step)
        return [mean, v.op("fadd", FLOAT64, kept[1], rest), sum_of_squares]

    def finish(self, v: Vectors, kept: list[str]) -> str:
        """The result's vector."""
        return kept[-1] if self.dtype == FLOAT64 else v.convert("fptrunc", kept[-1], FLOAT64, FLOAT32)

    def _wide(self, v: Vectors, element: str) -> str:
        return element if self.dtype == FLOAT64 else v.convert("fpext", element, FLOAT32, FLOAT64)
