"""One-pass variance: sums of squared deviations from a row's mean, without another pass.

Input: a ``Kernel`` whose rows would be read again, as for a variance.
Output: one that reads them once less where possible.
Why: a pass over long rows is bound by memory.

With ``e`` the distances to the row's first element, the sum over ``(x - m)**2`` is the sum of squared deviations of
``e`` from their mean, plus ``n * (m - first - mean(e))**2``. Where the first element is far from the others, its own
distance is among the squares, and dominates the rounding errors of ``e``.

For float32, in float64, the former is ``sum(e*e) - sum(e)**2 / n``, and ``sum(e)`` is ``sum(x) - n * first``: the
cancellation is at most ``n`` times the result, and invisible in float32. For float64 it would be visible: there ``e``
have ``Moments``, without cancellation.

An infinity makes the result a NaN, as it does with distances from the mean, which is infinite; distances from other
numbers are left unchanged. Only kernels that report no flags are rewritten: intermediate distances may overflow
float32.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tcompile.backends.schedule import Access, Kernel, KernelValue, Store
from tcompile.backends.schedule.kernel import needed, size_of
from tcompile.backends.schedule.kernel_ops import LOAD, PART, REDUCE, Operation
from tcompile.backends.schedule.stages import Stages
from tcompile.graph import Node, ops
from tcompile.graph.dtypes import DType

_BOOL, _FLOAT32, _FLOAT64 = np.dtype("bool"), np.dtype("float32"), np.dtype("float64")
_MOST = 1 << 24  # elements of a row; in longer ones cancellation may be visible in float32


def in_one_pass(kernel: Kernel) -> Kernel:
    """The kernel with fewer passes over its rows; itself where there are no fewer."""
    row = size_of([kernel.axes[a] for a in kernel.reduced])
    if not isinstance(row, int) or not 0 < row <= _MOST:
        return kernel
    turned = _Moments(kernel, row).kernel()
    fewer = Stages(turned, frozenset(kernel.kept)).passes < Stages(kernel, frozenset(kernel.kept)).passes
    return turned if fewer else kernel


class _Moments:
    """The kernel under construction. ``sums`` are those of loads, as float64."""

    def __init__(self, kernel: Kernel, row: int) -> None:
        self.given, self.row = kernel, row
        self.kept = frozenset(kernel.kept)
        self.values: list[KernelValue] = []
        self.sums: dict[KernelValue, tuple[KernelValue, KernelValue]] = {}
        self.node: Node | None = None

    def kernel(self) -> Kernel:
        """The rewritten kernel."""
        squared = {value: found for value in self.given.values if (found := self.distance(value)) is not None}
        elements = {element for element, _ in squared.values() if element.dtype == _FLOAT32}
        made: dict[KernelValue, KernelValue] = {}
        for value in self.given.values:
            self.node = value.node
            if value in squared:
                element, number = squared[value]
                of_dtype = self.narrow if element in elements else self.wide
                made[value] = of_dtype(element, made[number], self.first(element))
            elif self.is_sum(value) and value.values[0] in elements:
                made[value] = self.new(ops.ASTYPE, self.sum(value.values[0])[1], dtype=_FLOAT32)
            else:
                operands = tuple(made[o] if isinstance(o, KernelValue) else o for o in value.operands)
                made[value] = value if operands == value.operands else replace(value, operands=operands)
                self.values.append(made[value])
        stores = [Store(made[store.value], store.access) for store in self.given.stores]
        values = needed(self.values, (store.value for store in stores))
        return Kernel(self.given.name, self.given.form, self.given.axes, values, stores, self.given.nodes)

    def is_sum(self, value: KernelValue) -> bool:
        """Whether it is a sum of floats in their own precision."""
        return value.op is REDUCE and value.attrs["op"] == "sum" and value.dtype in (_FLOAT32, _FLOAT64)

    def distance(self, value: KernelValue) -> tuple[KernelValue, KernelValue] | None:
        """For a sum of squared distances: the load, and the number of its row that is subtracted."""
        if not self.is_sum(value):
            return None
        (squared,) = value.values[:1]
        if squared.op is ops.SQUARE or (squared.op is ops.MULTIPLY and squared.operands[0] is squared.operands[-1]):
            apart = squared.values[0]
            if apart.op is ops.SUBTRACT and len(apart.values) == 2:
                for element, number in (apart.values, apart.values[::-1]):
                    if element.op is LOAD and element.dtype == value.dtype and self.is_mean(number, element):
                        return element, number
        return None

    def is_mean(self, number: KernelValue, element: KernelValue) -> bool:
        """Whether a number is the mean of the elements of its row, or their sum divided by another one."""
        total = number.values[0] if number.op is ops.DIVIDE else None
        return total is not None and self.is_sum(total) and total.values[0] is element and number.axes <= self.kept

    def new(
        self,
        kind: Operation,
        /,
        *operands: KernelValue | float,
        dtype: DType = _FLOAT64,
        of: DType = _FLOAT64,
        **attrs: Any,
    ) -> KernelValue:
        """Adds a value; ``called`` names it in the kernel's text."""
        axes = frozenset[int]().union(*(o.axes for o in operands if isinstance(o, KernelValue)))
        axes = axes & self.kept if kind is REDUCE else axes
        made = KernelValue(kind, operands, dtype, axes, self.node, {"operand_dtype": of, **attrs})
        self.values.append(made)
        return made

    def sum(self, element: KernelValue) -> tuple[KernelValue, KernelValue]:
        """A load as float64, and its sum."""
        if element not in self.sums:
            wide = self.new(ops.ASTYPE, element, of=_FLOAT32, called="wide")
            self.sums[element] = wide, self.new(REDUCE, wide, op="sum", narrow=True, called="total")
        return self.sums[element]

    def first(self, element: KernelValue) -> KernelValue:
        """The first element of each row."""
        access = element.access
        assert access is not None
        steps = tuple(step if axis in self.kept else () for axis, step in enumerate(access.steps))
        place = Access(access.buffer, steps, access.offset)
        loaded = KernelValue(LOAD, (), element.dtype, element.axes & self.kept, element.node, access=place)
        self.values.append(loaded)
        return loaded

    def narrow(self, element: KernelValue, number: KernelValue, loaded: KernelValue) -> KernelValue:
        """The sum of squared distances of float32 from ``number``; ``loaded``: the row's first element."""
        new, n = self.new, float(self.row)
        wide, total = self.sum(element)
        first = new(ops.ASTYPE, loaded, of=_FLOAT32, called="from_first")
        apart = new(ops.SUBTRACT, wide, first, called="apart")
        square = new(ops.MULTIPLY, apart, apart, called="square")
        squares = new(REDUCE, square, op="sum", narrow=True, called="squares")
        distance = new(ops.SUBTRACT, total, new(ops.MULTIPLY, first, n, called="all_first"), called="distance")
        mean = new(ops.DIVIDE, distance, n, called="distance_mean")
        around = new(ops.SUBTRACT, squares, new(ops.MULTIPLY, distance, mean, called="shift"), called="around_mean")
        number = new(ops.ASTYPE, number, of=number.dtype, called="given")
        return new(ops.ASTYPE, self.moved(around, mean, number, first), dtype=_FLOAT32)

    def wide(self, element: KernelValue, number: KernelValue, first: KernelValue) -> KernelValue:
        """The same of float64. An intermediate overflow is infinite, as it is in two passes."""
        new = self.new
        apart = new(ops.SUBTRACT, element, first, called="apart")
        moments = new(REDUCE, apart, op="moments", called="moments")
        mean, around = (new(PART, moments, index=index) for index in range(2))
        squares = self.moved(around, mean, number, first)
        finite = new(ops.ISFINITE, number, dtype=_BOOL, called="is_finite")
        beyond = new(ops.LOGICAL_AND, new(ops.ISNAN, squares, dtype=_BOOL, called="is_lost"), finite, dtype=_BOOL,
                     of=_BOOL, called="is_beyond")  # fmt: skip
        return new(ops.WHERE, beyond, float("inf"), squares, called="squares")

    def moved(self, around: KernelValue, mean: KernelValue, number: KernelValue, first: KernelValue) -> KernelValue:
        """The squared distances from ``number``; ``around`` are those from the mean, ``mean`` beyond ``first``."""
        new = self.new
        left = new(ops.SUBTRACT, new(ops.SUBTRACT, number, first, called="given_apart"), mean, called="left")
        square = new(ops.MULTIPLY, left, left, called="left_square")
        more = new(ops.MULTIPLY, square, float(self.row), called="left_squares")
        return new(ops.ADD, around, more, called="around_given")


__all__ = ["in_one_pass"]
