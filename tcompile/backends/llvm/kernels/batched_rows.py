"""Batched row reductions: as many rows at a time as a vector has lanes.

Input: a kernel of form ``rows`` that only reduces.
Output: its function.
Why: the horizontal sums of many rows become vector additions.

The accumulators of the rows form a square, whose rows are added into one vector with a lane for each row. So operations
on the totals are vectorised over rows, and stored contiguously.
"""

from __future__ import annotations

from collections.abc import Callable

from tcompile.backends.llvm.kernels.elements import VectorPosition
from tcompile.backends.llvm.kernels.nest import KernelFunction, Nest
from tcompile.backends.llvm.kernels.reductions import VectorReduction
from tcompile.backends.schedule import Access, Kernel, KernelValue
from tcompile.backends.schedule.kernel import size_of
from tcompile.backends.schedule.kernel_ops import REDUCE
from tcompile.backends.schedule.stages import Stages
from tcompile.graph.sizes import hint

MOST = 1 << 10  # elements of a row: longer ones gain nothing
LEAST = 64  # rows: fewer are best reduced one by one


def has_batched_rows(kernel: Kernel) -> bool:
    """Whether this kernel of form ``rows`` is best computed in batches of rows."""
    if not kernel.kept or any(value.dtype.kind == "c" for value in kernel.values):
        return False
    stages = Stages(kernel, frozenset(kernel.kept))
    if stages.passes != 1 or not all(stages.row_store(store) for store in kernel.stores):
        return False
    rows = hint(kernel.axes[kernel.kept[-1]].size)
    return rows >= LEAST and hint(size_of([kernel.axes[a] for a in kernel.reduced])) <= MOST


class BatchedRowsNest(Nest):
    """Rows along the innermost kept axis, a batch at a time."""

    transposes = True

    def rows(self) -> KernelFunction:
        """The function."""
        kernel, w = self.kernel, self.w
        self.kept, self.last = kernel.kept[:-1], kernel.kept[-1]
        self.stages = Stages(kernel, frozenset(kernel.kept))
        self.kinds = {r: VectorReduction(r.attrs["op"], r.dtype) for r in kernel.values if r.op is REDUCE}
        self.begin()
        self.squares = {
            reduce: [w.slot(self.v.type(part), str(self.lanes)) for part in kind.parts]
            for reduce, kind in self.kinds.items()
        }
        count = self.size(self.last)
        blocks = w.at_entry(f"sdiv i64 {w.at_entry(f'add i64 {count}, {self.lanes - 1}')}, {self.lanes}")

        def block(number: str) -> None:
            counters = self.split(w.get(f"sdiv i64 {number}, {blocks}"), self.kept)
            start = w.get(f"mul i64 {w.get(f'srem i64 {number}, {blocks}')}, {self.lanes}")
            end = w.get(f"add i64 {start}, {self.lanes}")
            over = w.get(f"icmp sgt i64 {end}, {count}")
            self._block(counters, start, w.get(f"select i1 {over}, i64 {count}, i64 {end}"))

        self.repeat("%begin", "%end", "1", block)
        return self.finish(kernel.name, tuple(kernel.axes[axis].size for axis in kernel.kept), self.lanes)

    def _block(self, counters: dict[int, str], start: str, stop: str) -> None:
        """The rows [start, stop), at most as many as there are lanes."""
        w, stages = self.w, self.stages
        address = self.addresses(counters)

        def row(number: str) -> None:
            self._row(address, {**counters, self.last: number}, w.get(f"sub i64 {number}, {start}"))

        self.repeat(start, stop, "1", row)
        rest = w.get(f"sub i64 {stop}, {start}")
        self.repeat(rest, str(self.lanes), "1", self._again)
        known = {reduce: self._totals(reduce, kind) for reduce, kind in self.kinds.items()}
        place = VectorPosition(address, counters, self.last, start, rest, whole=False)
        wanted = [x for x in self.kernel.values if x.op is not REDUCE and stages.per_row(x)]
        for store in self.kernel.stores:
            assert stages.row_store(store)
        self.elements.write(place, wanted, known, self.kernel.stores)

    def _row(self, address: Callable[[Access], str], counters: dict[int, str], number: str) -> None:
        """Reduces one row; its accumulators are stored in the squares."""
        inner = {self.last: counters[self.last]}
        found = {id(access): self.address(address(access), access, inner) for access in self.kernel.accesses}

        def reach(access: Access) -> str:
            return found[id(access)]

        known: dict[KernelValue, str] = {}
        self.row_values(self.stages.row_values(0), VectorPosition(reach, counters), known)
        totals = self.run_pass(self.stages, 0, self.kernel.reduced, counters, reach, known, {})
        for reduce, parts in totals.items():
            self._put(reduce, number, parts)

    def _again(self, number: str) -> None:
        """Repeats the first row in lanes without one, so that these raise no flag of their own."""
        for reduce in self.kinds:
            self._put(reduce, number, self._row_of(reduce, "0"))

    def _put(self, reduce: KernelValue, number: str, parts: list[str]) -> None:
        w = self.w
        for slot, part, register in zip(self.squares[reduce], self.kinds[reduce].parts, parts, strict=True):
            place = w.get(f"getelementptr {self.v.type(part)}, ptr {slot}, i64 {number}")
            w.do(f"store {self.v.type(part)} {register}, ptr {place}, align 8")

    def _row_of(self, reduce: KernelValue, number: str) -> list[str]:
        found = []
        for slot, part in zip(self.squares[reduce], self.kinds[reduce].parts, strict=True):
            place = self.w.get(f"getelementptr {self.v.type(part)}, ptr {slot}, i64 {number}")
            found.append(self.w.get(f"load {self.v.type(part)}, ptr {place}, align 8"))
        return found

    def _totals(self, reduce: KernelValue, kind: VectorReduction) -> str:
        """The totals of all rows, one in each lane: halves of two rows are added side by side, then quarters, …"""
        v, lanes = self.v, self.lanes
        rows = [self._row_of(reduce, str(number)) for number in range(lanes)]
        half = lanes // 2
        while half:
            low = [i if not i & half else lanes + i - half for i in range(lanes)]
            high = [i + half if not i & half else lanes + i for i in range(lanes)]
            rows = [kind.joined(v, a, b, low, high) for a, b in zip(rows[:half], rows[half:], strict=True)]
            half //= 2
        return kind.finish(v, rows[0])
