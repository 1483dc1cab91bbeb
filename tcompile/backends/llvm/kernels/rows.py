"""Pointwise kernels, and reductions along the innermost axis.

Input: a kernel of form ``flat`` or ``rows``.
Output: its function.
Why: the passes of a row reduction run while the row is in the cache.

There are as many passes over a row as its reductions depend on one another. Values that are expensive to recompute are
kept in a row buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tcompile.backends.llvm.kernels.elements import VectorPosition
from tcompile.backends.llvm.kernels.nest import KernelFunction, Nest
from tcompile.backends.llvm.kernels.reductions import VectorReduction
from tcompile.backends.llvm.vector.text import memory_type
from tcompile.backends.llvm.vector.vectors import BOOL
from tcompile.backends.schedule import KernelValue
from tcompile.backends.schedule.kernel_ops import GATHER
from tcompile.backends.schedule.stages import Stages
from tcompile.graph import Size

ROW_BUFFER_BYTES = 1 << 16  # the most stack that row buffers of one kernel may take


class FlatNest(Nest):
    """A nest without reduced axes."""

    def flat(self, noalias: bool = False) -> KernelFunction:
        """The function. ``noalias``: it reads nothing that it writes, so that elements may be computed twice."""
        self.twice = noalias and len(self.kernel.axes) > 1 and self.ends_with_whole_vectors()
        axes = self.kernel.axes
        w, last = self.w, len(axes) - 1
        self.begin()
        self.prefetch_ahead(last)
        stages = Stages(self.kernel, frozenset(range(last)))
        wanted = stages.needed(0, {})
        if last == 0:
            self._scalar_loop(stages, wanted, {}, "%begin", "%end", self.whole(axes[0].size))
            return self.finish(self.kernel.name, (axes[0].size,))

        def rows() -> None:
            first = self._same_in_all_rows(wanted, axes[last].size)

            def row(number: str, _: list[str]) -> list[str]:
                counters = self.split(number, range(last))
                self._scalar_loop(stages, wanted, counters, "0", self.size(last), self.whole(axes[last].size), first)
                return []

            w.loop("%begin", "%end", "1", [], row)

        self._if_any("%begin", "%end", rows)
        return self.finish(self.kernel.name, tuple(axis.size for axis in axes[:last]))

    def _if_any(self, start: str, stop: str, body: Callable[[], None]) -> None:
        """Runs the body unless the range is empty."""
        w = self.w
        some, none = w.label("some"), w.label("none")
        w.branch(w.get(f"icmp slt i64 {start}, {stop}"), some, none)
        w.place(some)
        body()
        w.jump(none)
        w.place(none)

    def _same_in_all_rows(self, wanted: Sequence[KernelValue], size: Size) -> dict[KernelValue, str]:
        """Loop-invariant values of rows of one vector: computed once for all rows."""
        if not isinstance(size, int) or not 0 < size <= self.lanes:
            return {}
        last = len(self.kernel.axes) - 1
        same: set[KernelValue] = set()
        for value in wanted:
            if value.axes == {last} and value.op is not GATHER and same.issuperset(value.values):
                same.add(value)
        place = VectorPosition(self.addresses({}), {}, last, "0", str(size), self.whole(size))
        registers, _ = self.elements.write(place, [value for value in wanted if value in same], {})
        return registers

    def _scalar_loop(
        self,
        stages: Stages,
        wanted: Sequence[KernelValue],
        counters: dict[int, str],
        start: str,
        stop: str,
        whole: bool,
        known: Mapping[KernelValue, str] | None = None,
    ) -> None:
        """Computes a row's elements; of an empty row nothing is read or stored, row values included."""
        self._if_any(
            start, stop, lambda: self._elements(stages, wanted, counters, start, stop, whole, dict(known or {}))
        )

    def _elements(
        self,
        stages: Stages,
        wanted: Sequence[KernelValue],
        counters: dict[int, str],
        start: str,
        stop: str,
        whole: bool,
        known: dict[KernelValue, str],
    ) -> None:
        last = len(self.kernel.axes) - 1
        address = self.addresses(counters)
        row_place = VectorPosition(address, counters)
        lead = "0" if known else self.lead(address, last, start)  # a hoisted value is a vector from the row's start on
        self.row_values(stages.row_values(0), row_place, known)
        self.prepare_nontemporal(address, lead)
        if stages.row_stores(0):
            self.elements.write(row_place, (), known, stages.row_stores(0))
        stores = stages.stores(0)
        if not stores:
            return

        def vector(i: str, rest: str, _: list[str]) -> list[str]:
            if self.twice:
                i = self.within(i, stop)
            place = VectorPosition(address, counters, last, i, rest, (whole and lead == "0") or self.twice)
            self.elements.write(place, wanted, known, stores)
            return []

        self.vectors(start, stop, lead, [], vector)


class RowNest(Nest):
    """A nest that vectorises the innermost reduced axis, one row at a time."""

    def rows(self, noalias: bool = False) -> KernelFunction:
        """The function, in as many passes over a row as its reductions depend on one another."""
        kernel, w = self.kernel, self.w
        self.twice = noalias and self.ends_with_whole_vectors()
        kept = kernel.kept
        self.begin()
        self.prefetch_ahead(kernel.reduced[-1])

        def row(number: str, _: list[str]) -> list[str]:
            counters = self.split(number, kept)
            self._row(counters, Stages(kernel, frozenset(kept)))
            return []

        w.loop("%begin", "%end", "1", [], row)
        return self.finish(kernel.name, tuple(kernel.axes[axis].size for axis in kept) or (1,))

    def _row(self, counters: dict[int, str], stages: Stages) -> None:
        address = self.addresses(counters)
        lead = "0"
        if len(self.kernel.reduced) == 1:  # else parts of a row may begin anywhere
            lead = self.lead(address, self.kernel.reduced[0], "0")
            self.prepare_nontemporal(address, lead)
        known: dict[KernelValue, str] = {}
        kept = self._row_buffers(stages)
        for number in range(stages.passes + 1):
            place = VectorPosition(address, counters)
            self.row_values(stages.row_values(number), place, known)
            for store in stages.row_stores(number):
                self.elements.write(place, (), known, [store])
            if number < stages.passes:
                reduced = self.kernel.reduced
                totals = self.run_pass(stages, number, reduced, counters, address, known, kept, lead=lead)
                for reduce, parts in totals.items():
                    known[reduce] = self._total(reduce, parts)

    def _total(self, reduce: KernelValue, parts: list[str]) -> str:
        reduction = VectorReduction(reduce.attrs["op"], reduce.dtype)
        v = self.v
        return v.widened(reduction.dtype, reduction.finish(v.of(1), reduction.across(v, parts)))

    def _row_buffers(self, stages: Stages) -> dict[KernelValue, tuple[int, str]]:
        """Stack memory for values that several passes need: the first pass that has them, and the address."""
        reduced = self.kernel.reduced
        size = self.kernel.axes[reduced[-1]].size
        if len(reduced) > 1 or not isinstance(size, int):
            return {}
        padded = -(-size // self.lanes) * self.lanes
        padded += self.lanes if self.nontemporal else 0  # a row's first vector may be shorter, all others reach further
        buffers: dict[KernelValue, tuple[int, str]] = {}
        room = ROW_BUFFER_BYTES
        for value, first in stages.worth_keeping().items():
            need = padded * value.dtype.itemsize
            if need <= room and value.dtype != BOOL:
                room -= need
                buffers[value] = first, self.w.slot(memory_type(value.dtype), str(padded))
        return buffers
