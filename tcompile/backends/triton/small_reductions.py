"""Small reductions, over a few elements each: a thread takes rows whole, with their elements unrolled.

Input: a ``Kernel`` with reduced axes that ``has_small_rows``.
Output: its function.
Why: a row spread over threads needs an exchange, which for a few elements takes longer than their sum: distances
between points, sums of colours. Each element's values stay in registers, so that later passes recompute nothing.
"""

from __future__ import annotations

import itertools

from tcompile.backends.schedule import Kernel, KernelValue
from tcompile.backends.schedule.kernel import size_of, static_elements
from tcompile.backends.schedule.stages import Stages
from tcompile.backends.triton.configs import MOST_LINES, UNROLLED, UNROLLED_STRIDED, USUAL, TilingConfig
from tcompile.backends.triton.flat import Flat
from tcompile.backends.triton.reductions import BlockReduction
from tcompile.backends.triton.text import Grid, TritonFunction, power_of_two
from tcompile.graph.sizes import hint

NUMPYS_ORDER = 8  # elements of an axis; NumPy also adds fewer one after the other, in any layout


def has_small_rows(kernel: Kernel) -> bool:
    """Whether rows are so short that their elements are unrolled."""
    row = size_of([kernel.axes[a] for a in kernel.reduced])
    if not kernel.kept or not isinstance(row, int) or not 1 <= row <= UNROLLED or kernel.form == "scatter":
        return False
    if row * len(kernel.values) > MOST_LINES:
        return False
    return row <= UNROLLED_STRIDED or not any(_lies_along(kernel, value) for value in kernel.values)


def _lies_along(kernel: Kernel, value: KernelValue) -> bool:
    """Whether a load reads rows that are contiguous in memory."""
    access = value.access
    if access is None or not access.axes.issuperset(range(len(kernel.axes))):
        return False
    return static_elements(access.steps[kernel.reduced[-1]]) in (1, -1)


class SmallRows(Flat):
    """One or more rows a thread."""

    def __init__(self, kernel: Kernel, signals: bool, taken: frozenset[str], config: TilingConfig = USUAL) -> None:
        super().__init__(kernel, signals, taken, config)
        self.stages = Stages(kernel, frozenset(kernel.kept))
        row = size_of([kernel.axes[a] for a in kernel.reduced])
        assert isinstance(row, int)
        self.row = row
        if row < NUMPYS_ORDER and len(kernel.reduced) == 1:
            self.kinds = {value: BlockReduction(value, signals, in_order=True) for value in self.kinds}
        self.held: dict[tuple[KernelValue, tuple[int, ...]], str | tuple[str, str]] = {}

    def write(self) -> TritonFunction:
        """The function."""
        grid = self.place()
        self.flagged, started = "found", len(self.lines)
        for number in range(self.stages.passes + 1):
            for value in self.stages.row_values(number):
                self.compute(value)
            for store in self.stages.row_stores(number):
                self.store(store)
            if number < self.stages.passes:
                self.one_pass(number)
        self.report_found(started)
        return self.function(self.kernel.name, grid, row=self.row)

    def place(self) -> Grid:
        """Emits the rows of this program: a rectangle of them where some loads are invariant along one of its sides.

        A thread takes several rows of it, and issues their loads together.
        """
        kept, config, kernel = self.kernel.kept, self.config, self.kernel
        broad, elements = 2 * config.side, config.elements // self.words
        high = max(1, elements // broad)
        if self.stages.passes == 1 and len(kept) > 1:
            tall, wide = (hint(kernel.axes[axis].size) for axis in kept[-2:])
            sides = frozenset(kept[-2:])
            shared = any(v.access is not None and len(v.access.axes & sides) == 1 for v in kernel.values)
            if shared and tall >= high and wide >= broad and all(s.access.axes >= sides for s in kernel.stores):
                return self.place_tile(kept, high, broad)
        return self.place_points(kept, max(1, min(config.points, elements // power_of_two(self.row))))

    def one_pass(self, number: int) -> None:
        """Emits the elements of the rows, one after the other."""
        reductions, values = self.stages.reductions(number), self.stages.needed(number, {})
        for reduce in reductions:
            self.clear(reduce, self.shape)
        once, reduced = self.registers, self.kernel.reduced
        sizes = [self.kernel.axes[axis].size for axis in reduced]
        for count, places in enumerate(itertools.product(*(range(n) for n in sizes if isinstance(n, int)))):
            self.indices |= dict(zip(reduced, places, strict=True))
            self.registers, self.suffix = dict(once), f"_{count}"
            for value in values:
                key = value, tuple(place for axis, place in zip(reduced, places, strict=True) if axis in value.axes)
                if key in self.held:
                    self.registers[value] = self.held[key]
                self.compute(value)
                self.held[key] = self.registers[value]
            for store in self.stages.stores(number):
                self.store(store)
            for reduce in reductions:
                kind = self.kinds[reduce]
                for line in kind.merge(self.accumulator(reduce), kind.lift(str(self.real(reduce.values[0])))):
                    self.line(line)
        self.registers, self.suffix = once, ""
        for reduce in reductions:
            self.finish(reduce, errors=True)


__all__ = ["SmallRows", "has_small_rows"]
