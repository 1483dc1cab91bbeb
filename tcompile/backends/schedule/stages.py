"""Stages of a kernel: the pass over a row in which each value is computed.

Input: a kernel.
Output: for every value its level (once a row, or once an element) and the first pass that has it.
Why: a reduction is complete after the pass that accumulates it, so its users run in the next pass.

Softmax has three passes over each row, all in one kernel while the row is in the cache.
"""

from __future__ import annotations

from dataclasses import field

from tcompile.backends.schedule.kernel import Kernel, KernelValue, Store, needed
from tcompile.backends.schedule.kernel_ops import IOTA, LOAD, PAIR, PART, REDUCE
from tcompile.records import dataclass

KEEP_ABOVE = 8.0  # a value of higher cost is kept in a row buffer for later passes, not recomputed


@dataclass
class Stages:
    """``ready`` maps each value to the first pass that can have it (for row values: the pass before which it is
    complete).
    """

    kernel: Kernel
    row_axes: frozenset[int]
    ready: dict[KernelValue, int] = field(default_factory=dict)
    passes: int = 0

    def __post_init__(self) -> None:
        for value in self.kernel.values:
            if value.op is REDUCE:
                self.ready[value] = self.ready[value.values[0]] + 1
            else:
                self.ready[value] = max((self.ready[v] for v in value.values), default=0)
        self.passes = max(
            [self.ready[v] for v in self.kernel.values if v.op is REDUCE]
            + [self.ready[s.value] + 1 for s in self.kernel.stores if not self.row_store(s)],
            default=0,
        )

    def per_row(self, value: KernelValue) -> bool:
        """Whether the value is computed once a row, outside the innermost loops."""
        return value.op is REDUCE or value.axes <= self.row_axes

    def row_store(self, store: Store) -> bool:
        """Whether the store writes one element a row, of a value computed once a row.

        Along a reduced axis of size one the value may be an element's although the store has no step there.
        """
        return store.access.axes <= self.row_axes and self.per_row(store.value)

    def row_values(self, number: int) -> list[KernelValue]:
        """The row values that are complete before pass ``number`` and not earlier, in order; reductions left out."""
        return [v for v in self.kernel.values if v.op is not REDUCE and self.per_row(v) and self.ready[v] == number]

    def reductions(self, number: int) -> list[KernelValue]:
        """The reductions that pass ``number`` accumulates."""
        return [v for v in self.kernel.values if v.op is REDUCE and self.ready[v] == number + 1]

    def stores(self, number: int) -> list[Store]:
        """The element stores of pass ``number``."""
        return [s for s in self.kernel.stores if not self.row_store(s) and self.ready[s.value] == number]

    def row_stores(self, number: int) -> list[Store]:
        """The row stores that are possible before pass ``number`` and not earlier."""
        return [s for s in self.kernel.stores if self.row_store(s) and self.ready[s.value] == number]

    def needed(self, number: int, kept: dict[KernelValue, int]) -> list[KernelValue]:
        """The element values that pass ``number`` computes or reads again; ``kept`` are read after their own pass."""
        goals = [r.values[0] for r in self.reductions(number)] + [s.value for s in self.stores(number)]
        found: set[KernelValue] = set()
        while goals:
            value = goals.pop()
            if value in found or self.per_row(value):
                continue
            found.add(value)
            if not (value in kept and kept[value] < number):
                goals.extend(value.values)
        return [v for v in self.kernel.values if v in found]

    def worth_keeping(self) -> dict[KernelValue, int]:
        """The expensive element values that several passes need, and the first pass that computes them."""
        first: dict[KernelValue, int] = {}
        again: set[KernelValue] = set()
        for number in range(self.passes):
            for value in self.needed(number, {}):
                if value in first:
                    again.add(value)
                else:
                    first[value] = number
        expensive = {v for v in again if v.op not in (LOAD, IOTA, PAIR, PART) and v.cost >= KEEP_ABOVE}
        covered = {o for v in expensive for o in needed(self.kernel.values, v.values)}
        tops = expensive - covered
        return {v: first[v] for v in self.kernel.values if v in tops}
