"""Scans: cumulative sums and products, in NumPy's order.

Input: a kernel of form ``scan_rows`` or ``scan_columns``, with one value ``along``.
Output: its function.
Why: float additions are dependent, so independent rows or columns have to fill the processor's pipeline.

Where the scanned axis is not the contiguous one, vectors of columns are added row by row. Along the contiguous axis, a
vector's elements are added one after the other, for several rows at a time. Integers, whose sums do not depend on the
order, are added in all lanes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcompile.backends.llvm.kernels.elements import VectorPosition
from tcompile.backends.llvm.kernels.nest import SIDE_BY_SIDE, KernelFunction, Nest
from tcompile.backends.llvm.vector.text import scalar_type
from tcompile.backends.llvm.vector.vectors import Vectors
from tcompile.backends.schedule import Access, KernelValue
from tcompile.backends.schedule.kernel import size_of
from tcompile.backends.schedule.kernel_ops import ALONG
from tcompile.graph import Size
from tcompile.graph.sizes import hint

ROWS_AHEAD = 8  # how many rows a column scan prefetches ahead
ROWS_AT_ONCE = 4  # rows that are scanned side by side, where there are as many
STEPS = {"cumulative_sum": ("add", -0.0), "cumulative_prod": ("mul", 1.0)}  # and the identity element


class ScanNest(Nest):
    """A nest whose reduced axis is scanned."""

    def scan(self) -> KernelFunction:
        """The function."""
        kernel = self.kernel
        (self.axis,) = kernel.reduced
        (self.value,) = (value for value in kernel.values if value.op is ALONG)
        self.begin()
        return self._columns() if kernel.form == "scan_columns" else self._rows()

    def _next(self, v: Vectors, total: str, element: str) -> str:
        name, dtype = STEPS[self.value.attrs["op"]][0], self.value.dtype
        return v.op("f" + name if dtype.kind == "f" else name, dtype, total, element)

    def _first(self, v: Vectors) -> str:
        number, dtype = STEPS[self.value.attrs["op"]][1], self.value.dtype
        return v.constant(dtype, number if dtype.kind == "f" else int(number))

    def _read(self, place: VectorPosition, known: dict[KernelValue, str]) -> tuple[dict[KernelValue, str], str]:
        """All values but the scan, and its elements: identity elements beyond the end of a row."""
        wanted = [value for value in self.kernel.values if value is not self.value and value not in known]
        registers, mask = self.elements.write(place, wanted, known)
        elements = registers[self.value.values[0]]
        if mask is not None and place.axis == self.axis:
            elements = self.v.pick(mask, self.value.dtype, elements, self._first(self.v))
        return registers, elements

    def _write(self, place: VectorPosition, registers: dict[KernelValue, str], scanned: str) -> None:
        self.elements.write(place, (), {**registers, self.value: scanned}, self.kernel.stores)

    def _same_for(self, place: VectorPosition, axes: Sequence[int]) -> dict[KernelValue, str]:
        """Hoists values that change along ``axes`` at most."""
        known: dict[KernelValue, str] = {}
        still = [value for value in self.kernel.values if value is not self.value and value.axes <= frozenset(axes)]
        self.row_values(still, place, known)
        return known

    # -- vectors of columns ---------------------------------------------------------------------------------------
    def _columns(self) -> KernelFunction:
        kernel, w = self.kernel, self.w
        *outer, last = kernel.kept
        self.prefetch_ahead(last, self.rows_ahead(self.axis, ROWS_AHEAD))
        width, stride = self.size(last), SIDE_BY_SIDE * self.lanes
        strips = w.at_entry(f"sdiv i64 {w.at_entry(f'add i64 {width}, {stride - 1}')}, {stride}")

        def strip(number: str) -> None:
            counters = self.split(w.get(f"sdiv i64 {number}, {strips}"), outer)
            start = w.get(f"mul i64 {w.get(f'srem i64 {number}, {strips}')}, {stride}")
            stop = self.least(w.get(f"add i64 {start}, {stride}"), width)
            whole, part, on = w.label("whole"), w.label("part"), w.label("on")
            address = self.addresses(counters)
            known = self._same_for(VectorPosition(address, counters), outer)
            w.branch(w.get(f"icmp eq i64 {w.get(f'sub i64 {stop}, {start}')}, {stride}"), whole, part)
            w.place(whole)
            starts = [start, *(w.get(f"add i64 {start}, {n * self.lanes}") for n in range(1, SIDE_BY_SIDE))]
            self._walk_down(address, counters, known, starts, stop, True)
            w.jump(on)
            w.place(part)
            one = self.whole(kernel.axes[last].size)
            lanes = str(self.lanes)
            self.repeat(start, stop, lanes, lambda i: self._walk_down(address, counters, known, [i], stop, one))
            w.jump(on)
            w.place(on)

        self.repeat("%begin", "%end", "1", strip)
        return self.finish(kernel.name, tuple(kernel.axes[axis].size for axis in kernel.kept), stride)

    def _walk_down(
        self,
        address: Callable[[Access], str],
        counters: dict[int, str],
        known: dict[KernelValue, str],
        starts: Sequence[str],
        stop: str,
        whole: bool,
    ) -> None:
        """Vectors of columns that begin at ``starts``, from the first row to the last."""
        w, last = self.w, self.kernel.kept[-1]

        def row(number: str, totals: list[str]) -> list[str]:
            inner = {self.axis: number}
            reach = self.reached(address, inner)
            self.prepare_nontemporal(reach)
            following = []
            for at, total in zip(starts, totals, strict=True):
                rest = w.get(f"sub i64 {stop}, {at}")
                place = VectorPosition(reach, {**counters, **inner}, last, at, rest, whole)
                registers, elements = self._read(place, known)
                following.append(self._next(self.v, total, elements))
                self._write(place, registers, following[-1])
            return following

        first = (self.v.type(self.value.dtype), self._first(self.v))
        w.loop("0", self.size(self.axis), "1", [first] * len(starts), row)

    # -- elements of rows -----------------------------------------------------------------------------------------
    def _rows(self) -> KernelFunction:
        kernel, w = self.kernel, self.w
        kept = kernel.kept
        self.prefetch_ahead(self.axis)
        start = "%begin"
        if hint(size_of([kernel.axes[axis] for axis in kept])) >= ROWS_AT_ONCE:
            count = w.get("sub i64 %end, %begin")
            start = w.get(f"add i64 %begin, {w.get(f'and i64 {count}, {-ROWS_AT_ONCE}')}")

            def several(number: str) -> None:
                others = (w.get(f"add i64 {number}, {n}") for n in range(1, ROWS_AT_ONCE))
                self._walk_along([number, *others])

            self.repeat("%begin", start, str(ROWS_AT_ONCE), several)
        self.repeat(start, "%end", "1", lambda number: self._walk_along([number]))
        sizes: tuple[Size, ...] = tuple(kernel.axes[axis].size for axis in kept) or (1,)
        return self.finish(kernel.name, sizes)

    def _walk_along(self, numbers: Sequence[str]) -> None:
        """Rows side by side, from their first vectors to their last."""
        w, kept = self.w, self.kernel.kept
        whole, end = self.whole(self.kernel.axes[self.axis].size), self.size(self.axis)
        rows = []
        for number in numbers:
            counters = self.split(number, kept)
            address = self.addresses(counters)
            self.prepare_nontemporal(address)
            aligned = dict(self.elements.nontemporal)
            rows.append((address, counters, self._same_for(VectorPosition(address, counters), kept), aligned))

        one = self._single()

        def vector(i: str, totals: list[str]) -> list[str]:
            rest = w.get(f"sub i64 {end}, {i}")
            following = []
            for (address, counters, known, aligned), total in zip(rows, totals, strict=True):
                place = VectorPosition(address, counters, self.axis, i, rest, whole)
                registers, elements = self._read(place, known)
                scanned, after = self._sums(elements, total)
                self.elements.nontemporal.update(aligned)
                self._write(place, registers, scanned)
                following.append(after)
            return following

        first = (one.type(self.value.dtype), self._first(one))
        w.loop("0", end, str(self.lanes), [first] * len(rows), vector)

    def _single(self) -> Vectors:
        return Vectors(self.w, 1, self.status)

    def _sums(self, elements: str, total: str) -> tuple[str, str]:
        """The inclusive scan of a vector, starting from ``total``, and its last element."""
        return (self._one_by_one if self.value.dtype.kind == "f" else self._doubling)(elements, total)

    def _one_by_one(self, elements: str, total: str) -> tuple[str, str]:
        """Adds in order, on which the rounding of floats depends."""
        w, one, dtype = self.w, self._single(), self.value.dtype
        type, cell = self.v.type(dtype), scalar_type(dtype)
        scanned = "poison"
        for lane in range(self.lanes):
            total = self._next(one, total, self._lane(elements, lane))
            number = w.get(f"extractelement {one.type(dtype)} {total}, i64 0")
            scanned = w.get(f"insertelement {type} {scanned}, {cell} {number}, i64 {lane}")
        return scanned, total

    def _doubling(self, elements: str, total: str) -> tuple[str, str]:
        """All lanes at once: sums of one element, of two, of four, … (W. D. Hillis and G. L. Steele, CACM 29, 1986)."""
        v, dtype = self.v, self.value.dtype
        cell, nothing = scalar_type(dtype), self._first(v)
        step = 1
        while step < self.lanes:
            lanes = [lane - step if lane >= step else self.lanes for lane in range(self.lanes)]
            elements = self._next(v, v.shuffle(cell, elements, lanes, nothing), elements)
            step *= 2
        number = self.w.get(f"extractelement {self._single().type(dtype)} {total}, i64 0")
        last = self._lane(elements, self.lanes - 1)
        return self._next(v, v.spread(cell, number), elements), self._next(self._single(), total, last)

    def _lane(self, vector: str, lane: int) -> str:
        type = self.v.type(self.value.dtype)
        return self.w.get(f"shufflevector {type} {vector}, {type} poison, <1 x i32> <i32 {lane}>")


__all__ = ["ScanNest"]
