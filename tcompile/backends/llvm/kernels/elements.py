"""One vector of elements: loads, arithmetic, accumulation and stores at one position of the innermost loop.

Input: the position (a counter along the vector axis, byte addresses of the row), and the wanted values.
Output: their registers, new accumulators, and stores.
Why: all loop nests share it.

The last vector of a row may extend beyond its end. Lanes beyond the end repeat the vector's first element, so that they
never raise a flag of their own, and are never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from tcompile.backends.llvm.kernels import pointwise
from tcompile.backends.llvm.kernels.parameters import WordParameters
from tcompile.backends.llvm.kernels.reductions import VectorReduction
from tcompile.backends.llvm.vector.interleave import LONGEST, collect
from tcompile.backends.llvm.vector.text import Writer, cells, element_type, memory_type, scalar_type, splat, suffix
from tcompile.backends.llvm.vector.vectors import BOOL, FLOAT32, FLOAT64, INT64, Vectors
from tcompile.backends.schedule import Access, KernelValue, Store
from tcompile.backends.schedule.costs import small_power
from tcompile.backends.schedule.kernel import static_elements
from tcompile.backends.schedule.kernel_ops import BESIDE, CONSTANT, GATHER, IOTA, LOAD, NUMBER, PAIR, PART, SIZE
from tcompile.backends.schedule.maps import Affine
from tcompile.backends.status import ONLY_NUMPY
from tcompile.graph import ops
from tcompile.graph.dtypes import DType
from tcompile.records import dataclass


@dataclass
class VectorPosition:
    """The position of a vector: ``index`` along ``axis`` (both may be absent for row values), ``rest`` elements to the
    end.

    ``address(access)`` is the byte address without the vector axis' part; ``counters`` are the other axes' indices.
    ``whole``: no vector extends beyond the end.
    """

    address: Callable[[Access], str]
    counters: dict[int, str]
    axis: int | None = None
    index: str = "0"
    rest: str = "0"
    whole: bool = True


@dataclass
class Elements:
    """Emits vectors of a kernel's values."""

    w: Writer
    v: Vectors
    parameters: WordParameters
    nontemporal: dict[Store, str] = field(default_factory=dict)
    ahead: dict[KernelValue, str] = field(
        default_factory=dict
    )  # loads, and how many bytes further something is soon wanted

    def write(
        self,
        place: VectorPosition,
        wanted: Sequence[KernelValue],
        known: dict[KernelValue, str],
        stores: Sequence[Store] = (),
        reread: dict[KernelValue, str] | None = None,
        keep: dict[KernelValue, str] | None = None,
    ) -> tuple[dict[KernelValue, str], str | None]:
        """Computes ``wanted`` (in order) and emits ``stores``.

        ``reread`` maps values to row buffers that hold them already, ``keep`` to row buffers to fill. Returns the
        registers and the mask of lanes inside the row (None: all are).
        """
        reread, keep = reread or {}, keep or {}
        registers = dict(known)
        loads = [v for v in wanted if v.op is LOAD and v not in known]
        straight = [v for v in loads if self._step(v.access, place) == 1]
        mask, lanes = self._load_straight(straight, place, registers)
        for value in wanted:
            if value in registers:
                continue
            if value in reread:
                type = self.v.type(value.dtype)
                at = self._at(reread[value], place.index, value.dtype)
                register = self.w.get(f"load {type}, ptr {at}, align {value.dtype.itemsize}")
                if mask is not None and self.nontemporal:  # the buffer was filled by vectors that began elsewhere
                    first = self.v.shuffle(scalar_type(value.dtype), register, [0] * self.v.lanes)
                    register = self.v.pick(mask, value.dtype, register, first)
                registers[value] = register
            else:
                registers[value] = self._value(value, place, registers, lanes)
        self._compute_for_flags(wanted, registers)
        for value, buffer in keep.items():
            at = self._at(buffer, place.index, value.dtype)
            self.w.do(f"store {self.v.type(value.dtype)} {registers[value]}, ptr {at}, align {value.dtype.itemsize}")
        if stores:
            self._store(stores, place, registers, mask)
        return registers, mask

    def _compute_for_flags(self, wanted: Sequence[KernelValue], registers: Mapping[KernelValue, str]) -> None:
        """Makes LLVM compute values that are wanted for their floating-point flags alone."""
        beside = dict.fromkeys(value.values[1] for value in wanted if value.op is BESIDE)
        if not beside:
            return
        used = {operand for value in wanted if value.op is not BESIDE for operand in value.values}
        for value in beside:
            if value not in used:
                type = self.v.type(value.dtype)
                self.w.do(f"store volatile {type} {registers[value]}, ptr {self.w.slot(type)}")

    # -- addresses ------------------------------------------------------------------------------------------------
    def _step(self, access: Access | None, place: VectorPosition) -> int | None:
        assert access is not None
        return 0 if place.axis is None else static_elements(access.steps[place.axis])

    def _at(self, base: str, index: str, dtype: DType) -> str:
        return self.w.reach(base, element_type(dtype), index)

    # -- lanes and cells: a complex element has two cells in a vector of twice as many --------------------------------
    def _each_cell(self, type: str, lanes: str, dtype: DType) -> str:
        """Repeats each ``type`` lane of a vector for all cells of its element."""
        if cells(dtype) == 1:
            return lanes
        return self.v.shuffle(type, lanes, [i // cells(dtype) for i in range(self.v.lanes * cells(dtype))])

    def _one_for_all(self, dtype: DType, address: str) -> str:
        """Broadcasts the element at ``address`` to all lanes."""
        cell, count = memory_type(dtype), cells(dtype)
        if count == 1:
            return self.v.spread(cell, self.w.get(f"load {cell}, ptr {address}, align 1"))
        element = self.w.get(f"load <{count} x {cell}>, ptr {address}, align 1")
        return self.v.shuffle(cell, element, [i % count for i in range(self.v.lanes * count)], count=count)

    def _pointers(self, dtype: DType, start: str, step: str, lanes: str) -> str:
        """The address of every cell of the elements ``step`` bytes apart."""
        w, n, count = self.w, self.v.lanes, cells(dtype)
        distances = w.get(f"mul <{n} x i64> {lanes}, {self._spread_size(step)}")
        if count > 1:
            inside = ", ".join(f"i64 {i % count * dtype.itemsize // count}" for i in range(n * count))
            distances = w.get(f"add <{n * count} x i64> {self._each_cell('i64', distances, dtype)}, <{inside}>")
        return w.get(f"getelementptr i8, ptr {start}, <{n * count} x i64> {distances}")

    def _cell_pointers(self, dtype: DType, pointers: str) -> str:
        """The address of every cell of the elements at ``pointers``."""
        if cells(dtype) == 1:
            return pointers
        n, count = self.v.lanes * cells(dtype), cells(dtype)
        inside = ", ".join(f"i64 {i % count * dtype.itemsize // count}" for i in range(n))
        return self.w.get(
            f"getelementptr i8, <{n} x ptr> {self._each_cell('ptr', pointers, dtype)}, <{n} x i64> <{inside}>"
        )

    def _cells_of(self, value: KernelValue, operands: Sequence[str]) -> str:
        """A part of a complex value, or the complex value of two parts."""
        n = self.v.lanes
        if value.op is PAIR:
            order = [i // 2 + i % 2 * n for i in range(2 * n)]
            return self.v.shuffle(scalar_type(value.dtype), operands[0], order, operands[1])
        first = value.attrs["index"]
        return self.v.shuffle(scalar_type(value.dtype), operands[0], list(range(first, 2 * n, 2)), count=2 * n)

    # -- loads ----------------------------------------------------------------------------------------------------
    def _load_straight(
        self, loads: Sequence[KernelValue], place: VectorPosition, registers: dict[KernelValue, str]
    ) -> tuple[str | None, str]:
        """Emits contiguous loads. Returns the mask of lanes inside, and the lanes' offsets (the last repeat)."""
        w, v = self.w, self.v
        offsets = "<" + ", ".join(f"i64 {i}" for i in range(v.lanes)) + ">"
        addresses = {}
        for value in loads:
            assert value.access is not None
            addresses[value] = self._at(place.address(value.access), place.index, value.dtype)
        if place.whole or place.axis is None:
            self._prefetch_loads(loads, addresses)
            for value in loads:
                registers[value] = self.truth(
                    value.dtype, w.get(f"load {self.memory(value.dtype)}, ptr {addresses[value]}, align 1")
                )
            return None, offsets
        if place.rest.isdecimal():
            return self._load_few(loads, addresses, int(place.rest), registers)
        full = w.get(f"icmp sge i64 {place.rest}, {v.lanes}")
        all_of_it, part, on = w.label("full"), w.label("part"), w.label("on")
        w.branch(full, all_of_it, part)
        w.place(all_of_it)
        self._prefetch_loads(loads, addresses)
        whole = {x: w.get(f"load {self.memory(x.dtype)}, ptr {addresses[x]}, align 1") for x in loads}
        w.jump(on)
        w.place(part)
        mask_type = f"<{v.lanes} x i1>"
        limit = v.spread("i64", place.rest)
        inside = w.get(f"icmp slt <{v.lanes} x i64> {offsets}, {limit}")
        first = splat(v.lanes, "i64", "0")
        clamped = w.get(f"select {mask_type} {inside}, <{v.lanes} x i64> {offsets}, <{v.lanes} x i64> {first}")
        partial = {x: self.masked_load(x.dtype, addresses[x], inside) for x in loads}
        w.jump(on)
        w.place(on)
        mask = w.select_phi(mask_type, [(splat(v.lanes, "i1", "true"), all_of_it), (inside, part)])
        lanes = w.select_phi(f"<{v.lanes} x i64>", [(offsets, all_of_it), (clamped, part)])
        for x in loads:
            joined = w.select_phi(self.memory(x.dtype), [(whole[x], all_of_it), (partial[x], part)])
            registers[x] = joined
        for x in loads:
            registers[x] = self.truth(x.dtype, registers[x])
        return mask, lanes

    def _load_few(
        self,
        loads: Sequence[KernelValue],
        addresses: Mapping[KernelValue, str],
        count: int,
        registers: dict[KernelValue, str],
    ) -> tuple[str, str]:
        """Emits ``_load_straight`` of a known number of elements; the lanes outside repeat the first one.

        It emits no masked load: with a known mask, LLVM makes one that reads memory outside of it where vectors are
        halved (AVX2).
        """
        for value in loads:
            cell, size = memory_type(value.dtype), cells(value.dtype)
            few = self.w.get(f"load <{count * size} x {cell}>, ptr {addresses[value]}, align 1")
            wanted = [i if i < count * size else i % size for i in range(self.v.lanes * size)]
            registers[value] = self.truth(value.dtype, self.v.shuffle(cell, few, wanted, count=count * size))
        lanes = range(self.v.lanes)
        inside = ", ".join(f"i1 {'true' if i < count else 'false'}" for i in lanes)
        return f"<{inside}>", "<" + ", ".join(f"i64 {i if i < count else 0}" for i in lanes) + ">"

    def _prefetch_loads(self, loads: Sequence[KernelValue], addresses: dict[KernelValue, str]) -> None:
        """Prefetches the cache lines of a later vector, ``ahead`` of this one."""
        for value in loads:
            if value in self.ahead:
                far = self.w.get(f"getelementptr i8, ptr {addresses[value]}, i64 {self.ahead[value]}")
                self.prefetch(far, value.dtype.itemsize * self.v.lanes)

    def prefetch(self, address: str, count: int) -> None:
        """Prefetches the cache lines of ``count`` bytes; the address may be anything."""
        self.w.module.declare("@llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for skipped in range(0, count, 64):
            at = self.w.get(f"getelementptr i8, ptr {address}, i64 {skipped}") if skipped else address
            self.w.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")

    def memory(self, dtype: DType) -> str:
        """The type of a vector of elements in memory."""
        return f"<{self.v.lanes * cells(dtype)} x {memory_type(dtype)}>"

    def truth(self, dtype: DType, register: str) -> str:
        """Converts a loaded vector to its form in registers."""
        if dtype != BOOL:
            return register
        return self.w.get(f"icmp ne {self.memory(dtype)} {register}, zeroinitializer")

    def masked_store(self, dtype: DType, register: str, address: str, mask: str) -> None:
        """Stores the masked lanes of a vector, which is in its form in memory."""
        type, n = self.memory(dtype), self.v.lanes * cells(dtype)
        name = f"@llvm.masked.store.{suffix(n, memory_type(dtype))}.p0"
        self.w.module.declare(name, f"declare void {name}({type}, ptr, i32, <{n} x i1>)")
        inside = self._each_cell("i1", mask, dtype)
        self.w.do(f"call void {name}({type} {register}, ptr {address}, i32 1, <{n} x i1> {inside})")

    def masked_load(self, dtype: DType, address: str, mask: str) -> str:
        """Loads the masked elements from an address on; the other lanes repeat the first one."""
        return self._load_some(dtype, address, mask, self._one_for_all(dtype, address))

    def _load(self, value: KernelValue, place: VectorPosition, lanes: str) -> str:
        """Emits a load that is not contiguous: a broadcast of one element, or strided elements."""
        w, v, access = self.w, self.v, value.access
        assert access is not None
        base = place.address(access)
        if place.axis is None or not access.steps[place.axis]:
            return self.truth(value.dtype, self._one_for_all(value.dtype, base))
        step = self.parameters.bytes(w, access.steps[place.axis], access.buffer)
        start = w.get(f"getelementptr i8, ptr {base}, i64 {w.get(f'mul i64 {place.index}, {step}')}")
        distance = static_elements(access.steps[place.axis])
        if distance is not None and (abs(distance) > LONGEST or cells(value.dtype) > 1):
            return self.truth(value.dtype, self.gather(value.dtype, start, step, lanes))
        if place.whole and distance is not None:
            return self.truth(value.dtype, self._deinterleaved(value.dtype, start, distance))
        straight, apart, on = w.label("near"), w.label("apart"), w.label("on")
        inside = w.get(f"icmp sge i64 {place.rest}, {v.lanes}")
        if distance is not None:
            near = inside
        else:  # the step is known at run time only: very often it is one element
            unit = w.at_entry(f"icmp eq i64 {step}, {value.dtype.itemsize}")
            near = unit if place.whole else w.get(f"and i1 {unit}, {inside}")
        w.branch(near, straight, apart)
        w.place(straight)
        if distance is not None:
            one = self._deinterleaved(value.dtype, start, distance)
        else:
            one = w.get(f"load {self.memory(value.dtype)}, ptr {start}, align 1")
        w.jump(on)
        w.place(apart)
        other = self.gather(value.dtype, start, step, lanes)
        origin = w.block
        w.jump(on)
        w.place(on)
        joined = w.select_phi(self.memory(value.dtype), [(one, straight), (other, origin)])
        return self.truth(value.dtype, joined)

    def _deinterleaved(self, dtype: DType, start: str, distance: int) -> str:
        """Loads elements ``distance`` apart as whole vectors, and deinterleaves them."""
        lanes, cell, count = self.v.lanes, memory_type(dtype), abs(distance)
        low = min(0, (lanes - 1) * distance)
        # The last vector ends with the last element, since after that the memory may belong to somebody else.
        starts = [low + i * lanes for i in range(count - 1)] + [low + (lanes - 1) * (count - 1)]
        vectors = [
            self.w.get(f"load {self.memory(dtype)}, ptr {self._at(start, str(at), dtype)}, align 1") for at in starts
        ]
        wanted = []
        for i in range(lanes):
            number = (i * distance - low) // lanes
            wanted.append((number, i * distance - starts[number]))
        return collect(self.v, cell, vectors, wanted)

    def gather(self, dtype: DType, start: str, step: str, lanes: str) -> str:
        """Gathers elements ``step`` bytes apart; ``lanes`` has the number of steps of each from ``start``."""
        all_lanes = splat(self.v.lanes * cells(dtype), "i1", "true")
        return self.masked_gather(dtype, self._pointers(dtype, start, step, lanes), all_lanes, "poison")

    def masked_gather(self, dtype: DType, pointers: str, lanes: str, other: str) -> str:
        """Gathers the cells at ``pointers`` in masked lanes, and takes ``other`` in the rest."""
        w, n, type = self.w, self.v.lanes * cells(dtype), self.memory(dtype)
        name = f"@llvm.masked.gather.{suffix(n, memory_type(dtype))}.v{n}p0"
        w.module.declare(name, f"declare {type} {name}(<{n} x ptr>, i32, <{n} x i1>, {type})")
        return w.get(f"call {type} {name}(<{n} x ptr> {pointers}, i32 1, <{n} x i1> {lanes}, {type} {other})")

    def _gathered(
        self, value: KernelValue, place: VectorPosition, registers: Mapping[KernelValue, str], lanes: str
    ) -> str:
        """Gathers elements at computed indices. Indices out of range are reported, and not read."""
        w, v, access = self.w, self.v, value.access
        assert access is not None
        if value.attrs.get("rolled") and self._lies_side_by_side(value, place):
            return self._rolled(value, place)
        wide = f"<{v.lanes} x i64>"
        distances, valid = self.places(value, value.values, access, registers)
        v.report(v.negate(valid), ONLY_NUMPY)
        start = place.address(access)
        along = () if place.axis is None else access.steps[place.axis]
        if along and not any(place.axis in index.axes for index in value.values) and static_elements(along) == 1:
            # One place for the whole vector, whose elements lie side by side from there on.
            distance = w.get(f"extractelement {wide} {distances}, i64 0")
            row = self._at(w.get(f"getelementptr i8, ptr {start}, i64 {distance}"), place.index, value.dtype)
            inside = v.mask("and", valid, self.inside(place))
            found = self._load_some(value.dtype, row, inside, "zeroinitializer")  # the first one may be out of range
            return self.truth(value.dtype, self._first_elsewhere(value.dtype, found, inside))
        pointers = self._cell_pointers(value.dtype, self.moved(place, access, distances, lanes))
        inside = self._each_cell("i1", valid, value.dtype)
        return self.truth(value.dtype, self.masked_gather(value.dtype, pointers, inside, "zeroinitializer"))

    def _load_some(self, dtype: DType, address: str, mask: str, other: str) -> str:
        """Loads the masked elements from an address on, and takes ``other`` in the rest."""
        type, n = self.memory(dtype), self.v.lanes * cells(dtype)
        name = f"@llvm.masked.load.{suffix(n, memory_type(dtype))}.p0"
        self.w.module.declare(name, f"declare {type} {name}(ptr, i32, <{n} x i1>, {type})")
        inside = self._each_cell("i1", mask, dtype)
        return self.w.get(f"call {type} {name}(ptr {address}, i32 1, <{n} x i1> {inside}, {type} {other})")

    def _first_elsewhere(self, dtype: DType, register: str, mask: str) -> str:
        """The masked elements of a vector in its form in memory, and the first one in the other lanes."""
        count, n = cells(dtype), self.v.lanes * cells(dtype)
        first = self.v.shuffle(memory_type(dtype), register, [i % count for i in range(n)], count=n)
        inside, type = self._each_cell("i1", mask, dtype), self.memory(dtype)
        return self.w.get(f"select <{n} x i1> {inside}, {type} {register}, {type} {first}")

    def _lies_side_by_side(self, value: KernelValue, place: VectorPosition) -> bool:
        """Whether vectors of a rolled array lie side by side in memory, but for the one around its end."""
        access = value.access
        assert access is not None
        if place.axis is None:
            return False
        pairs = zip(value.values, value.attrs["strides"], strict=True)
        varying = [(index, stride) for index, stride in pairs if place.axis in index.axes]
        if not varying:
            return static_elements(access.steps[place.axis]) == 1
        if len(varying) > 1 or access.steps[place.axis]:
            return False
        ((index, stride),) = varying
        return static_elements(stride) == 1 and (place.axis, 1) in index.attrs["index"].terms

    def _rolled(self, value: KernelValue, place: VectorPosition) -> str:
        """Loads a vector of a rolled array: in one piece, or in two masked ones around its end.

        An index counts from the end where it is negative. Along an axis, a vector has no more elements than the array.
        """
        w, n, access, dtype = self.w, self.v.lanes, value.access, value.dtype
        assert access is not None and place.axis is not None
        address, cut, back = place.address(access), str(n), ""
        if access.steps[place.axis]:
            address = self._at(address, place.index, dtype)
        for index, stride, size in zip(value.values, value.attrs["strides"], value.attrs["sizes"], strict=True):
            given, length = self._counted(index, place)[0], self.parameters.size(w, size)
            negative = w.get(f"icmp slt i64 {given}, 0")
            at = w.get(f"add i64 {given}, {w.get(f'select i1 {negative}, i64 {length}, i64 0')}")
            unit = self.parameters.bytes(w, stride, access.buffer)
            address = w.get(f"getelementptr i8, ptr {address}, i64 {w.get(f'mul i64 {at}, {unit}')}")
            if place.axis in index.axes:
                before = w.get(f"sub i64 0, {given}")
                crosses = w.get(f"and i1 {negative}, {w.get(f'icmp slt i64 {before}, {n}')}")
                cut = w.get(f"select i1 {crosses}, i64 {before}, i64 {n}")
                back = w.get(f"mul i64 {w.get(f'sub i64 0, {length}')}, {unit}")
        near = w.get(f"icmp eq i64 {cut}, {n}")
        if not place.whole:
            near = w.get(f"and i1 {near}, {w.get(f'icmp sge i64 {place.rest}, {n}')}")
        straight, split, on = w.label("near"), w.label("apart"), w.label("on")
        w.branch(near, straight, split)
        w.place(straight)
        one = w.get(f"load {self.memory(dtype)}, ptr {address}, align 1")
        w.jump(on)
        w.place(split)
        inside = self.inside(place)
        other = self._load_some(dtype, address, self.v.mask("and", inside, self._lanes_before(cut)), "zeroinitializer")
        if back:
            after = self.v.mask("and", inside, self.v.negate(self._lanes_before(cut)))
            other = self._load_some(dtype, w.get(f"getelementptr i8, ptr {address}, i64 {back}"), after, other)
        other = self._first_elsewhere(dtype, other, inside)
        origin = w.block
        w.jump(on)
        w.place(on)
        return self.truth(dtype, w.select_phi(self.memory(dtype), [(one, straight), (other, origin)]))

    def _lanes_before(self, count: str) -> str:
        """The mask of the first ``count`` lanes, of which there are no more than 127."""
        offsets, n = "<" + ", ".join(f"i8 {i}" for i in range(self.v.lanes)) + ">", self.v.lanes
        least = self.w.get(f"call i64 @llvm.smin.i64(i64 {count}, i64 {n})")
        self.w.module.declare("@llvm.smin.i64", "declare i64 @llvm.smin.i64(i64, i64)")
        narrow = self.w.get(f"trunc i64 {least} to i8")
        return self.w.get(f"icmp slt <{n} x i8> {offsets}, {self.v.spread('i8', narrow)}")

    def moved(self, place: VectorPosition, access: Access, distances: str, lanes: str | None = None) -> str:
        """The address of the element in each lane of a vector, displaced by so many bytes."""
        w, wide, start = self.w, f"<{self.v.lanes} x i64>", place.address(access)
        if place.axis is not None and access.steps[place.axis]:
            lanes = lanes or "<" + ", ".join(f"i64 {i}" for i in range(self.v.lanes)) + ">"
            step = self.parameters.bytes(w, access.steps[place.axis], access.buffer)
            start = w.get(f"getelementptr i8, ptr {start}, i64 {w.get(f'mul i64 {place.index}, {step}')}")
            further = w.get(f"mul {wide} {lanes}, {self._spread_size(step)}")
            distances = w.get(f"add {wide} {distances}, {further}")
        return w.get(f"getelementptr i8, ptr {start}, {wide} {distances}")

    def places(
        self, value: KernelValue, indices: Sequence[KernelValue], access: Access, registers: Mapping[KernelValue, str]
    ) -> tuple[str, str]:
        """The displacements of computed indices from the first element, in bytes, and the mask of those in range."""
        w, v, p = self.w, self.v, self.parameters
        n, wide = v.lanes, f"<{v.lanes} x i64>"
        distances, valid = splat(n, "i64", "0"), splat(n, "i1", "true")
        for index, stride, size in zip(indices, value.attrs["strides"], value.attrs["sizes"], strict=True):
            count = self._spread_size(p.size(w, size))
            given = pointwise.cast(v, index.dtype, INT64, registers[index])
            negative = w.get(f"icmp slt {wide} {given}, zeroinitializer")
            from_end = w.get(f"add {wide} {given}, {count}")
            at = w.get(f"select <{n} x i1> {negative}, {wide} {from_end}, {wide} {given}")
            valid = v.mask("and", valid, w.get(f"icmp ult {wide} {at}, {count}"))
            unit = self._spread_size(p.bytes(w, stride, access.buffer))
            distances = w.get(f"add {wide} {distances}, {w.get(f'mul {wide} {at}, {unit}')}")
        return distances, valid

    def inside(self, place: VectorPosition) -> str:
        """The mask of lanes inside the row."""
        return splat(self.v.lanes, "i1", "true") if place.whole else self._lanes_before(place.rest)

    def _spread_size(self, size: str) -> str:
        return splat(self.v.lanes, "i64", size) if not size.startswith("%") else self.v.spread("i64", size)

    # -- values ---------------------------------------------------------------------------------------------------
    def _value(self, value: KernelValue, place: VectorPosition, registers: dict[KernelValue, str], lanes: str) -> str:
        v, w, p = self.v, self.w, self.parameters
        if value.op is LOAD:
            return self._load(value, place, lanes)
        if value.op is GATHER:
            return self._gathered(value, place, registers, lanes)
        if value.op is CONSTANT:
            (number,) = value.operands
            assert not isinstance(number, KernelValue)
            return v.constant(value.dtype, number)
        if value.op is SIZE:
            whole = v.spread("i64", p.size(w, value.attrs["size"]))
            if value.dtype == FLOAT32:  # as NumPy converts a Python int: by way of a double
                return v.convert("fptrunc", v.convert("sitofp", whole, INT64, FLOAT64), FLOAT64, FLOAT32)
            return pointwise.cast(v, INT64, value.dtype, whole)
        if value.op is NUMBER:
            double = v.spread("double", p.number(w, value.attrs["buffer"]))
            return pointwise.cast(v, FLOAT64, value.dtype, double)
        if value.op is IOTA:
            return self._iota(value, place, lanes)
        if value.op is BESIDE:
            return registers[value.values[0]]
        if value.op is PART:
            return self._cells_of(value, [registers[x] for x in value.values])
        operand: DType = value.attrs["operand_dtype"]
        power = small_power(value.operands[1]) if value.op is ops.POW and operand.kind == "f" else None
        if power is not None and isinstance(value.operands[0], KernelValue):
            return pointwise.small_power(v, operand, registers[value.operands[0]], power)
        operands = [registers[o] if isinstance(o, KernelValue) else v.constant(operand, o) for o in value.operands]
        if value.op is PAIR:
            return self._cells_of(value, operands)
        return pointwise.emit(v, value.op, operand, value.dtype, operands)

    def _iota(self, value: KernelValue, place: VectorPosition, lanes: str) -> str:
        v, w = self.v, self.w
        base, along = self._counted(value, place)
        result = v.spread("i64", base)
        if along is not None:
            steps = w.get(f"mul <{v.lanes} x i64> {lanes}, {self._spread_size(along)}")
            result = v.op("add", INT64, result, steps)
        return pointwise.cast(v, INT64, value.dtype, result)

    def _counted(self, value: KernelValue, place: VectorPosition) -> tuple[str, str | None]:
        """The first lane's element of an iota, and the step from lane to lane."""
        w, p = self.w, self.parameters
        index: Affine = value.attrs["index"]
        base, along = p.size(w, index.offset), None
        for axis, multiple in index.terms:
            counter = place.index if axis == place.axis else place.counters[axis]
            term = w.get(f"mul i64 {counter}, {p.size(w, multiple)}")
            base = w.get(f"add i64 {base}, {term}")
            if axis == place.axis:
                along = p.size(w, multiple)
        return base, along

    # -- stores ---------------------------------------------------------------------------------------------------
    def _store(
        self, stores: Sequence[Store], place: VectorPosition, registers: dict[KernelValue, str], mask: str | None
    ) -> None:
        w, v = self.w, self.v
        straight: list[tuple[Store, str, str]] = []
        for store in stores:
            dtype = store.value.dtype
            register = self.bytes_of(dtype, registers[store.value])
            base = place.address(store.access)
            if place.axis is None or not store.access.steps[place.axis]:
                count = cells(dtype)
                one = v.shuffle(memory_type(dtype), register, list(range(count)), count=v.lanes * count)
                w.do(f"store <{count} x {memory_type(dtype)}> {one}, ptr {base}, align 1")
            elif static_elements(store.access.steps[place.axis]) == 1:
                straight.append((store, register, self._at(base, place.index, dtype)))
            else:
                self._scatter(store, register, base, place, mask)
        if straight:
            self.store_straight(straight, place, mask)

    def store_straight(
        self, straight: Sequence[tuple[Store, str, str]], place: VectorPosition, mask: str | None
    ) -> None:
        """Stores vectors, in their form in memory, contiguously from their addresses on."""
        w, v = self.w, self.v
        if mask is None:
            for store, register, address in straight:
                self._store_whole(store, register, address)
            return
        full = w.get(f"icmp sge i64 {place.rest}, {v.lanes}")
        all_of_it, part, on = w.label("full"), w.label("part"), w.label("on")
        w.branch(full, all_of_it, part)
        w.place(all_of_it)
        for store, register, address in straight:
            self._store_whole(store, register, address)
        w.jump(on)
        w.place(part)
        for store, register, address in straight:
            self.masked_store(store.value.dtype, register, address, mask)
        w.jump(on)
        w.place(on)

    def bytes_of(self, dtype: DType, register: str) -> str:
        """Converts a register to its form in memory."""
        if dtype != BOOL:
            return register
        return self.w.get(f"zext <{self.v.lanes} x i1> {register} to {self.memory(dtype)}")

    def _store_whole(self, store: Store, register: str, address: str) -> None:
        w, type = self.w, self.memory(store.value.dtype)
        aligned = self.nontemporal.get(store)
        if aligned is None:
            w.do(f"store {type} {register}, ptr {address}, align 1")
            return
        around, through, on = w.label("around"), w.label("through"), w.label("on")
        w.branch(aligned, around, through)
        w.place(around)
        w.do(f"store {type} {register}, ptr {address}, align 64, !nontemporal !0")
        w.jump(on)
        w.place(through)
        w.do(f"store {type} {register}, ptr {address}, align 1")
        w.jump(on)
        w.place(on)

    def _scatter(self, store: Store, register: str, base: str, place: VectorPosition, mask: str | None) -> None:
        w, dtype = self.w, store.value.dtype
        n = self.v.lanes * cells(dtype)
        assert place.axis is not None
        type = self.memory(dtype)
        step = self.parameters.bytes(w, store.access.steps[place.axis], store.access.buffer)
        start = w.get(f"getelementptr i8, ptr {base}, i64 {w.get(f'mul i64 {place.index}, {step}')}")
        offsets = "<" + ", ".join(f"i64 {i}" for i in range(self.v.lanes)) + ">"
        pointers = self._pointers(dtype, start, step, offsets)
        name = f"@llvm.masked.scatter.{suffix(n, memory_type(dtype))}.v{n}p0"
        w.module.declare(name, f"declare void {name}({type}, <{n} x ptr>, i32, <{n} x i1>)")
        lanes = self._each_cell("i1", mask, dtype) if mask else splat(n, "i1", "true")
        w.do(f"call void {name}({type} {register}, <{n} x ptr> {pointers}, i32 1, <{n} x i1> {lanes})")

    # -- reductions -----------------------------------------------------------------------------------------------
    def accumulate(
        self, reduce: KernelValue, registers: dict[KernelValue, str], mask: str | None, held: list[str]
    ) -> list[str]:
        """The accumulators of ``reduce`` after this vector."""
        reduction = VectorReduction(reduce.attrs["op"], reduce.dtype)
        element = registers[reduce.values[0]]
        if mask is not None:
            nothing = self.v.constant(reduce.dtype, reduction.identity())
            element = self.v.pick(mask, reduce.dtype, element, nothing)
        return reduction.update(self.v, held, element)
