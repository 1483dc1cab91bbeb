"""Small reductions, over a few elements each: a vector has as many rows as lanes, all in registers.

Input: a kernel of form ``small_rows``: one reduced axis of a few elements, a compile-time constant.
Output: its function.
Why: horizontal reductions of short rows would waste most lanes.

The innermost kept axis is vectorised, the reduced axis is unrolled. Where rows are contiguous, as in an array of
points, their elements are deinterleaved in registers (``interleave``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from tcompile.backends.llvm.kernels.elements import VectorPosition
from tcompile.backends.llvm.kernels.nest import KernelFunction, Nest
from tcompile.backends.llvm.kernels.reductions import VectorReduction
from tcompile.backends.llvm.vector import interleave
from tcompile.backends.llvm.vector.interleave import LONGEST, every, interleaved
from tcompile.backends.llvm.vector.text import cells, memory_type
from tcompile.backends.schedule import Access, KernelValue, Store
from tcompile.backends.schedule.kernel import static_elements
from tcompile.backends.schedule.kernel_ops import LOAD
from tcompile.backends.schedule.stages import Stages
from tcompile.graph import Size
from tcompile.graph.dtypes import DType
from tcompile.records import dataclass


def longest_deinterleaved(dtype: DType) -> int:
    """The most elements of a row for which whole vectors are read and deinterleaved; longer rows are transposed."""
    return 4 if dtype.itemsize == 1 else 3


@dataclass
class Vector:
    """As many rows as there are lanes: their first one, and how many remain."""

    address: Callable[[Access], str]
    counters: dict[int, str]
    index: str
    rest: str
    rows: list[str] = field(default_factory=list)  # the number of each lane's row; lanes without one repeat the first
    known: dict[KernelValue, str] = field(default_factory=dict)  # one for each row
    elements: list[dict[KernelValue, str]] = field(default_factory=list)  # for each element of a row


class SmallRowsNest(Nest):
    """A nest that vectorises the innermost kept axis and unrolls the reduced one."""

    transposes = True

    def small_rows(self) -> KernelFunction:
        """The function."""
        kernel, w = self.kernel, self.w
        kept = kernel.kept
        (self.reduced,), self.last = kernel.reduced, kept[-1]
        size = kernel.axes[self.reduced].size
        assert isinstance(size, int)
        self.count = size
        self.stages = Stages(kernel, frozenset(kept))
        self.begin()
        sizes: tuple[Size, ...] = tuple(kernel.axes[axis].size for axis in kept)
        if len(kept) == 1:
            self._walk({}, "%begin", "%end")
            return self.finish(kernel.name, sizes)

        def row(number: str, _: list[str]) -> list[str]:
            self._walk(self.split(number, kept[:-1]), "0", self.size(self.last))
            return []

        w.loop("%begin", "%end", "1", [], row)
        return self.finish(kernel.name, sizes[:-1])

    def _walk(self, counters: dict[int, str], start: str, stop: str) -> None:
        """The rows [start, stop) along the innermost kept axis."""
        w = self.w
        address = self.addresses(counters)

        def vector(i: str) -> None:
            self._turn(Vector(address, counters, i, w.get(f"sub i64 {stop}, {i}")))

        self.repeat(start, stop, str(self.lanes), vector)

    def _turn(self, vector: Vector) -> None:
        vector.elements = [{} for _ in range(self.count)]
        self._load(vector)
        self.rows_of(vector)

    def rows_of(self, vector: Vector) -> None:
        """All passes over as many rows as there are lanes."""
        stages, v = self.stages, self.v
        rows = VectorPosition(vector.address, vector.counters, self.last, vector.index, vector.rest)
        for number in range(stages.passes + 1):
            vector.known, _ = self.elements.write(rows, stages.row_values(number), vector.known)
            self._store_rows(vector, stages.row_stores(number))
            if number == stages.passes:
                break
            reductions = stages.reductions(number)
            wanted = stages.needed(number, {})
            for r, registers in enumerate(vector.elements):
                place = self.place(vector, r)
                vector.elements[r], _ = self.elements.write(place, wanted, {**vector.known, **registers})
            for reduce in reductions:
                elements = [registers[reduce.values[0]] for registers in vector.elements]
                vector.known[reduce] = VectorReduction(reduce.attrs["op"], reduce.dtype).of_few(v, elements)
            self.store_elements(vector, stages.stores(number))

    def place(self, vector: Vector, r: int, whole: bool = True) -> VectorPosition:
        """The position of the rows' element number ``r``."""
        inner = {self.reduced: str(r)}
        counters = {**vector.counters, **inner}
        reach = self.further(vector.address, inner)
        return VectorPosition(reach, counters, self.last, vector.index, vector.rest, whole)

    # -- loads ----------------------------------------------------------------------------------------------------
    def _load(self, vector: Vector) -> None:
        """Emits all loads. Where another row follows the last lane's, whole vectors are read; else lanes one by one."""
        w, n = self.w, self.lanes
        loads = [x for x in self.kernel.values if x.op is LOAD and x.access is not None and self._moves(x.access)]
        along = [x for x in loads if self._turns(x) > 1 and self._lies_along(x.access)]
        deinterleaved = [x for x in along if self._is_deinterleaved(x.access)]
        stores = [store for store in self.kernel.stores if self._lies_along(store.access)]
        if len(deinterleaved) < len(along) or not all(map(self._is_packed, stores)):
            vector.rows = [self._within(vector, i) for i in range(n)]
        if deinterleaved:
            self._deinterleave(vector, deinterleaved)
        for x in along:
            if x not in deinterleaved:
                self._found(x, vector, self._transposed_loads(x, vector))
        loads = [x for x in loads if x not in along]
        if not loads:
            return
        rows, end, on = w.label("rows"), w.label("end"), w.label("on")
        w.branch(w.get(f"icmp sgt i64 {vector.rest}, {n}"), rows, end)
        offsets = ", ".join(f"i64 {i}" for i in range(n))
        w.place(rows)
        fast = [self._many(x, vector, f"<{offsets}>") for x in loads]
        first = w.block
        w.jump(on)
        w.place(end)
        inside = w.get(f"icmp slt <{n} x i64> <{offsets}>, {self.v.spread('i64', vector.rest)}")
        clamped = w.get(f"select <{n} x i1> {inside}, <{n} x i64> <{offsets}>, <{n} x i64> zeroinitializer")
        slow = [self._few(x, vector, inside, clamped) for x in loads]
        second = w.block
        w.jump(on)
        w.place(on)
        joined: list[list[str]] = []
        for x, whole, parts in zip(loads, fast, slow, strict=True):
            type, ways = self.elements.memory(x.dtype), zip(whole, parts, strict=True)
            joined.append([w.select_phi(type, [(one, first), (other, second)]) for one, other in ways])
        for x, registers in zip(loads, joined, strict=True):  # after all of these, which come first in a block
            self._found(x, vector, registers)

    def _is_deinterleaved(self, access: Access | None) -> bool:
        """Whether rows of a few elements are contiguous, so that whole vectors can be read and deinterleaved."""
        assert access is not None
        few = self.count <= longest_deinterleaved(access.buffer.type.dtype)
        return few and self._period(access, self.count) is not None

    def _deinterleave(self, vector: Vector, loads: list[KernelValue]) -> None:
        """Loads whole vectors of contiguous rows; the last few rows are copied to a buffer first.

        Lanes without a row have the first one's elements, so that they raise no flag of their own.
        """
        w, n = self.w, self.lanes
        few, on = w.label("few"), w.label("on")
        places = [(self._at(x, vector, 0), memory_type(x.dtype), self._period_of(x)) for x in loads]
        enough = n if all(period == self.count for _, _, period in places) else n + 1
        first = w.block
        w.branch(w.get(f"icmp sge i64 {vector.rest}, {enough}"), on, few)
        w.place(few)
        copies = []
        for start, cell, period in places:
            copies.append(w.slot(cell, str(n * period)))

            def copy(lane: str, at: str = start, to: str = copies[-1], cell: str = cell, period: int = period) -> None:
                inside = w.get(f"icmp slt i64 {lane}, {vector.rest}")
                self._copy_row(cell, period, at, w.get(f"select i1 {inside}, i64 {lane}, i64 0"), to, lane)

            self.repeat("0", str(n), "1", copy)
        second = w.block
        w.jump(on)
        w.place(on)
        starts = [w.select_phi("ptr", [(at[0], first), (to, second)]) for at, to in zip(places, copies, strict=True)]
        for x, at, (_, cell, period) in zip(loads, starts, places, strict=True):
            parts = self._in_a_row(cell, at, period)
            self._found(x, vector, [every(self.v, cell, parts, r) for r in range(self.count)])

    def _in_a_row(self, cell: str, at: str, count: int) -> list[str]:
        """Loads so many consecutive vectors."""
        w, n, parts = self.w, self.lanes, []
        for number in range(count):
            part = w.get(f"getelementptr {cell}, ptr {at}, i64 {number * n}")
            parts.append(w.get(f"load <{n} x {cell}>, ptr {part}, align 1"))
        return parts

    def _copy_row(self, cell: str, period: int, source: str, at: str, target: str, to: str) -> None:
        """Copies a row's elements, where the rows' stride is so many cells."""
        w, row = self.w, f"<{self.count} x {cell}>"
        found = w.get(f"getelementptr [{period} x {cell}], ptr {source}, i64 {at}")
        place = w.get(f"getelementptr [{period} x {cell}], ptr {target}, i64 {to}")
        w.do(f"store {row} {w.get(f'load {row}, ptr {found}, align 1')}, ptr {place}, align 1")

    def _period_of(self, value: KernelValue) -> int:
        assert value.access is not None
        period = self._period(value.access, self.count)
        assert period is not None
        return period

    def _within(self, vector: Vector, lane: int) -> str:
        """The number of a lane's row from the first one on; the first one where there is none."""
        inside = self.w.get(f"icmp sgt i64 {vector.rest}, {lane}")
        return self.w.get(f"select i1 {inside}, i64 {lane}, i64 0") if lane else "0"

    def _found(self, value: KernelValue, vector: Vector, registers: list[str]) -> None:
        """Records loaded registers, for each element of a row or once."""
        for r, register in enumerate(registers):
            found = vector.known if self.stages.per_row(value) else vector.elements[r]
            found[value] = self.elements.truth(value.dtype, register)

    def _moves(self, access: Access) -> bool:
        """Whether an access differs from row to row; where it does not, one element is broadcast."""
        return bool(access.steps[self.last])

    def _turns(self, value: KernelValue) -> int:
        return 1 if self.stages.per_row(value) else self.count

    def _period(self, access: Access, turns: int) -> int | None:
        """The stride of rows in cells, where the first ``turns`` of these are a row's elements."""
        period, along = static_elements(access.steps[self.last]), static_elements(access.steps[self.reduced])
        if period is None or not 1 <= period <= LONGEST or turns > period or (turns > 1 and along != 1):
            return None
        return period

    def _many(self, value: KernelValue, vector: Vector, offsets: str) -> list[str]:
        """The vector of each element, where all lanes are rows and one more row follows."""
        access, turns = value.access, self._turns(value)
        assert access is not None
        period = self._period(access, 1) if turns == 1 and cells(value.dtype) == 1 else None
        if period is not None and period > 1:  # one element of each row, a few cells apart
            cell = memory_type(value.dtype)
            return [every(self.v, cell, self._in_a_row(cell, self._at(value, vector, 0), period), 0)]
        unit = static_elements(access.steps[self.last]) == 1
        return [
            self._straight(value, vector, r) if unit else self._gather(value, vector, r, offsets) for r in range(turns)
        ]  # fmt: skip

    def _lies_along(self, access: Access | None) -> bool:
        """Whether the elements of each row are contiguous."""
        assert access is not None
        return static_elements(access.steps[self.reduced]) == 1 and cells(access.buffer.type.dtype) == 1

    def _transposed_loads(self, value: KernelValue, vector: Vector) -> list[str]:
        """Loads parts of rows contiguously, and transposes them in square tiles."""
        w, access, cell = self.w, value.access, memory_type(value.dtype)
        assert access is not None
        rows = self._rows(access, vector)

        def row(number: int, at: int, size: int) -> str:
            place = w.get(f"getelementptr {cell}, ptr {rows[number]}, i64 {at}")
            return w.get(f"load <{size} x {cell}>, ptr {place}, align 1")

        return interleave.columns(self.v, cell, self.count, row)

    def _rows(self, access: Access, vector: Vector) -> list[str]:
        """The address of each lane's row."""
        w = self.w
        start = self.address(vector.address(access), access, {self.last: vector.index})
        step = self.parameters.bytes(w, access.steps[self.last], access.buffer)
        return [w.get(f"getelementptr i8, ptr {start}, i64 {w.get(f'mul i64 {step}, {n}')}") for n in vector.rows]

    def _few(self, value: KernelValue, vector: Vector, inside: str, offsets: str) -> list[str]:
        assert value.access is not None
        turns = range(self._turns(value))
        if static_elements(value.access.steps[self.last]) == 1:
            return [self.elements.masked_load(value.dtype, self._at(value, vector, r), inside) for r in turns]
        return [self._gather(value, vector, r, offsets) for r in turns]

    def _at(self, value: KernelValue, vector: Vector, r: int) -> str:
        """The address of a row's element."""
        assert value.access is not None
        return self.address(vector.address(value.access), value.access, {self.last: vector.index, self.reduced: str(r)})

    def _straight(self, value: KernelValue, vector: Vector, r: int) -> str:
        type = self.elements.memory(value.dtype)
        return self.w.get(f"load {type}, ptr {self._at(value, vector, r)}, align 1")

    def _gather(self, value: KernelValue, vector: Vector, r: int, offsets: str) -> str:
        access = value.access
        assert access is not None
        step = self.parameters.bytes(self.w, access.steps[self.last], access.buffer)
        return self.elements.gather(value.dtype, self._at(value, vector, r), step, offsets)

    # -- stores ---------------------------------------------------------------------------------------------------
    def _store_rows(self, vector: Vector, stores: list[Store]) -> None:
        """Stores values with one element per row."""
        if stores:
            place = VectorPosition(vector.address, vector.counters, self.last, vector.index, vector.rest, whole=False)
            self.prepare_nontemporal(place.address)
            self.elements.write(place, (), vector.known, stores)

    def store_elements(self, vector: Vector, stores: list[Store]) -> None:
        """Stores values with one element per element of a row."""
        w = self.w
        along = [store for store in stores if self.count > 1 and self._lies_along(store.access)]
        packed = [store for store in along if self._is_packed(store)]
        if packed:
            few, on = w.label("few"), w.label("on")
            whole = w.get(f"icmp sge i64 {vector.rest}, {self.lanes}")
            places = [self._store_interleaved(vector, store, whole) for store in packed]
            w.branch(whole, on, few)
            w.place(few)
            for cell, at, copy in places:

                def back(lane: str, at: str = at, copy: str = copy, cell: str = cell) -> None:
                    self._copy_row(cell, self.count, copy, lane, at, lane)

                self.repeat("0", vector.rest, "1", back)
            w.jump(on)
            w.place(on)
        for store in along:
            if store not in packed:
                self._transposed_stores(vector, store)
        self._scatter(vector, [store for store in stores if store not in along])

    def _is_packed(self, store: Store) -> bool:
        """Whether rows of a few elements are contiguous, so that whole vectors can be stored."""
        few = self.count <= longest_deinterleaved(store.value.dtype)
        return few and self._period(store.access, self.count) == self.count

    def _columns(self, vector: Vector, store: Store) -> list[str]:
        """The stored values in their form in memory."""
        return [self.elements.bytes_of(store.value.dtype, known[store.value]) for known in vector.elements]

    def _store_interleaved(self, vector: Vector, store: Store, whole: str) -> tuple[str, str, str]:
        """Stores whole vectors of rows: to a buffer where there are fewer rows than lanes. Returns the cell type and
        both addresses.
        """
        w, cell = self.w, memory_type(store.value.dtype)
        at = self.address(vector.address(store.access), store.access, {self.last: vector.index})
        copy = w.slot(cell, str(self.lanes * self.count))
        start = w.get(f"select i1 {whole}, ptr {at}, ptr {copy}")
        for number, part in enumerate(interleaved(self.v, cell, self._columns(vector, store))):
            place = w.get(f"getelementptr {cell}, ptr {start}, i64 {number * self.lanes}")
            w.do(f"store <{self.lanes} x {cell}> {part}, ptr {place}, align 1")
        return cell, at, copy

    def _transposed_stores(self, vector: Vector, store: Store) -> None:
        """Stores rows one by one. Lanes without a row store the first one's elements, which they hold, again."""
        w, cell = self.w, memory_type(store.value.dtype)
        rows = self._rows(store.access, vector)

        def write(number: int, start: int, size: int, part: str) -> None:
            place = w.get(f"getelementptr {cell}, ptr {rows[number]}, i64 {start}")
            w.do(f"store <{size} x {cell}> {part}, ptr {place}, align 1")

        interleave.rows(self.v, cell, self._columns(vector, store), write)

    def _scatter(self, vector: Vector, stores: list[Store]) -> None:
        if stores:
            for r, known in enumerate(vector.elements):
                place = self.place(vector, r, whole=False)
                self.prepare_nontemporal(place.address)
                self.elements.write(place, (), {**vector.known, **known}, stores)
