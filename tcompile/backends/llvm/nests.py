"""The loops of a kernel: which index runs where, in each of the four forms.

Enters: a ``Kernel``. Leaves: the text of its function (two functions for ``blocks``: the second combines the partial
results), the launch parameters, and how the work is divided into items.

A function covers the items [begin, end) of its kernel. An item is one element (``flat`` with one axis), one row (``flat``
with more, ``rows``), one strip of columns (``columns``) or one block of the reduced space (``blocks``). What an element's
value is never depends on how items are divided among calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tcompile.backends.llvm import vmath
from tcompile.backends.llvm.elements import Elements, Place
from tcompile.backends.llvm.parameters import Parameters
from tcompile.backends.llvm.reductions import Reduction
from tcompile.backends.llvm.stages import Stages
from tcompile.backends.llvm.text import Module, Writer, memory_type, scalar_type
from tcompile.backends.llvm.vectors import BOOL, Vectors
from tcompile.backends.schedule import Access, Kernel, Store, Value
from tcompile.backends.schedule.kernel import size_of
from tcompile.graph import Size
from tcompile.graph.sizes import hint
from tcompile.graph.types import DType

BLOCK = 16384  # elements of a full reduction that one item covers
STRIP_BYTES = 1 << 19  # what a strip of columns that is walked more than once may cover, to stay in the second cache
ROWS_AT_ONCE = 8  # rows whose elements a column reduction adds before it puts the accumulators back
ROW_BUFFER_BYTES = 1 << 16  # the most stack that row buffers of one kernel may take


@dataclass
class Function:
    """One function of a kernel: its text, its parameters, and the number of items as sizes to multiply or divide.

    ``items`` is the product of sizes; where ``per_item`` is not 1, the last factor is divided by it, rounding up.
    """

    name: str
    text: str
    parameters: Parameters
    items: tuple[Size, ...]
    per_item: int = 1
    partial_words: int = 0


@dataclass
class Code:
    """All functions of one kernel."""

    kernel: Kernel
    functions: list[Function] = field(default_factory=list)


def write(
    module: Module, kernel: Kernel, has_symbol: vmath.HasSymbol, nontemporal: Sequence[Store] = ()
) -> Code:
    """Writes the functions of ``kernel`` into ``module``."""
    code = Code(kernel)
    nest = _Nest(module, kernel, has_symbol, nontemporal)
    if kernel.form == "flat":
        code.functions.append(nest.flat())
    elif kernel.form == "rows":
        code.functions.append(nest.rows())
    elif kernel.form == "columns":
        code.functions.append(nest.columns())
    else:
        code.functions.append(nest.blocks())
        combine = _Nest(module, kernel, has_symbol, ())
        code.functions.append(combine.combine())
    module.functions.extend(function.text for function in code.functions)
    return code


def lanes_of(kernel: Kernel) -> int:
    """The vector width: 8 lanes where 8-byte elements take part, else 16."""
    dtypes = {v.dtype for v in kernel.values}
    dtypes |= {v.attrs["operand_dtype"] for v in kernel.values if "operand_dtype" in v.attrs}
    return 8 if any(d.itemsize == 8 for d in dtypes) else 16


def strip_of(kernel: Kernel, stages: Stages) -> int:
    """How many columns one item of a column reduction covers: a multiple of 64."""
    width = hint(kernel.axes[kernel.kept[-1]].size)
    most = 1024
    if stages.passes > 1:
        rows = max(1, hint(size_of([kernel.axes[a] for a in kernel.reduced])))
        loads = [v.dtype.itemsize for v in kernel.values if v.op == "load" and v.axes & set(kernel.reduced)]
        most = min(most, STRIP_BYTES // (rows * max(1, sum(loads))))
    return max(64, min(most, width // 4) // 64 * 64)


class _Nest:
    def __init__(
        self, module: Module, kernel: Kernel, has_symbol: vmath.HasSymbol, nontemporal: Sequence[Store]
    ) -> None:
        self.kernel = kernel
        self.module = module
        self.w = Writer(module)
        self.lanes = lanes_of(kernel)
        self.status = self.w.slot("i32", align=4)
        self.w.entry.append(f"  store i32 0, ptr {self.status}")
        self.v = Vectors(self.w, self.lanes, self.status)
        self.parameters = Parameters()
        self.elements = Elements(self.w, self.v, self.parameters, has_symbol)
        self.nontemporal = nontemporal

    # -- common parts ---------------------------------------------------------------------------------------------
    def _finish(self, name: str, items: tuple[Size, ...], per_item: int = 1, partial_words: int = 0) -> Function:
        w = self.w
        end = w.label("end")
        w.jump(end)
        w.place(end)
        if self.nontemporal:
            self.module.declare("@llvm.x86.sse.sfence", "declare void @llvm.x86.sse.sfence()")
            w.do("call void @llvm.x86.sse.sfence()")
        flags = w.get("call i32 @tc_read_flags()")
        status = w.get(f"load i32, ptr {self.status}")
        w.do(f"ret i32 {w.get(f'or i32 {flags}, {status}')}")
        # First of all: what the entry block converts may raise flags too.
        w.entry.insert(0, "  call void @tc_clear_flags()")
        w.entry.append("  br label %start")
        text = w.text(f"i32 @{name}(ptr noalias %words, i64 %begin, i64 %end)", "nounwind")
        return Function(name, text, self.parameters, items, per_item, partial_words)

    def _begin(self) -> None:
        self.w.place("start")

    def _size(self, axis: int) -> str:
        return self.parameters.size(self.w, self.kernel.axes[axis].size)

    def _base(self, access: Access) -> str:
        """The address of the access where all indices are zero."""
        p, w = self.parameters, self.w
        pointer = p.pointer(w, access.buffer)
        offset = p.bytes(w, access.offset, access.buffer)
        return pointer if offset == "0" else w.at_entry(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def _address(self, base: str, access: Access, counters: dict[int, str]) -> str:
        """``base`` moved by the counters."""
        w = self.w
        for axis, counter in counters.items():
            step = self.parameters.bytes(w, access.steps[axis], access.buffer)
            if step != "0":
                base = w.get(f"getelementptr i8, ptr {base}, i64 {w.get(f'mul i64 {counter}, {step}')}")
        return base

    def _addresses(self, counters: dict[int, str]) -> Callable[[Access], str]:
        """Addresses for fixed counters, each computed once (all here, where every later block can use them)."""
        found: dict[int, str] = {}
        for access in self._accesses():
            found[id(access)] = self._address(self._base(access), access, counters)
        return lambda access: found[id(access)]

    def _further(
        self, outer: Callable[[Access], str], counters: dict[int, str]
    ) -> Callable[[Access], str]:
        """Addresses inside inner loops: computed where they are used."""
        if not counters:
            return outer
        return lambda access: self._address(outer(access), access, counters)

    def _accesses(self) -> list[Access]:
        return [v.access for v in self.kernel.values if v.access is not None] + [
            s.access for s in self.kernel.stores
        ]

    def _split(self, item: str, axes: Sequence[int]) -> dict[int, str]:
        """The indices of ``axes`` (outermost first) from a running number."""
        w = self.w
        counters: dict[int, str] = {}
        rest = item
        for axis in reversed(axes[1:]):
            size = self._size(axis)
            counters[axis] = w.get(f"urem i64 {rest}, {size}")
            rest = w.get(f"udiv i64 {rest}, {size}")
        if axes:
            counters[axes[0]] = rest
        return {axis: counters[axis] for axis in axes}

    def _whole(self, size: Size) -> bool:
        return isinstance(size, int) and size % self.lanes == 0

    def _row_values(
        self, values: Sequence[Value], place: Place, known: dict[Value, str]
    ) -> None:
        """Computes values that are the same in all lanes."""
        registers, _ = self.elements.write(place, values, known)
        known.update(registers)

    def _prepare_nontemporal(self, address: Callable[[Access], str]) -> None:
        """Finds out, once a row, whether whole cache lines can be written past the cache."""
        for store in self.nontemporal:
            if store.value.dtype.itemsize * self.lanes != 64:
                continue
            number = self.w.get(f"ptrtoint ptr {address(store.access)} to i64")
            low = self.w.get(f"and i64 {number}, 63")
            self.elements.nontemporal[store] = self.w.get(f"icmp eq i64 {low}, 0")

    # -- flat -----------------------------------------------------------------------------------------------------
    def flat(self) -> Function:
        """Pointwise work."""
        axes = self.kernel.axes
        w, last = self.w, len(axes) - 1
        self._begin()
        stages = Stages(self.kernel, frozenset(range(last)))
        wanted = stages.needed(0, {})
        if last == 0:
            self._element_loop(stages, wanted, {}, "%begin", "%end", self._whole(axes[0].size))
            return self._finish(self.kernel.name, (axes[0].size,))

        def row(number: str, _: list[str]) -> list[str]:
            counters = self._split(number, range(last))
            self._element_loop(stages, wanted, counters, "0", self._size(last), self._whole(axes[last].size))
            return []

        w.loop("%begin", "%end", "1", [], row)
        return self._finish(self.kernel.name, tuple(axis.size for axis in axes[:last]))

    def _element_loop(
        self, stages: Stages, wanted: Sequence[Value], counters: dict[int, str], start: str, stop: str, whole: bool
    ) -> None:
        w = self.w
        last = len(self.kernel.axes) - 1
        address = self._addresses(counters)
        known: dict[Value, str] = {}
        row_place = Place(address, counters)
        self._row_values(stages.row_values(0), row_place, known)
        self._prepare_nontemporal(address)
        if stages.row_stores(0):
            self.elements.write(row_place, (), known, stages.row_stores(0))
        stores = stages.stores(0)
        if not stores:
            return

        def vector(i: str, _: list[str]) -> list[str]:
            rest = w.get(f"sub i64 {stop}, {i}")
            place = Place(address, counters, last, i, rest, whole)
            self.elements.write(place, wanted, known, stores)
            return []

        w.loop(start, stop, str(self.lanes), [], vector)

    # -- rows -----------------------------------------------------------------------------------------------------
    def rows(self) -> Function:
        """Reductions along the innermost axis, in as many passes over the row as they depend on one another."""
        kernel, w = self.kernel, self.w
        kept = kernel.kept
        self._begin()

        def row(number: str, _: list[str]) -> list[str]:
            counters = self._split(number, kept)
            self._row(counters, Stages(kernel, frozenset(kept)))
            return []

        w.loop("%begin", "%end", "1", [], row)
        return self._finish(kernel.name, tuple(kernel.axes[axis].size for axis in kept) or (1,))

    def _row(self, counters: dict[int, str], stages: Stages) -> None:
        address = self._addresses(counters)
        self._prepare_nontemporal(address)
        known: dict[Value, str] = {}
        kept = self._row_buffers(stages)
        for number in range(stages.passes + 1):
            place = Place(address, counters)
            self._row_values(stages.row_values(number), place, known)
            for store in stages.row_stores(number):
                self.elements.write(place, (), known, [store])
            if number < stages.passes:
                reduced = self.kernel.reduced
                totals = self._pass(stages, number, reduced, counters, address, known, kept)
                for reduce, parts in totals.items():
                    known[reduce] = self._total(reduce, parts)

    def _total(self, reduce: Value, parts: list[str]) -> str:
        reduction = Reduction(reduce.attrs["op"], reduce.dtype)
        return reduction.finish(self.v, reduction.across(self.v, parts))

    def _row_buffers(self, stages: Stages) -> dict[Value, tuple[int, str]]:
        """Stack memory for values that several passes need: the first pass that has them, and the address."""
        reduced = self.kernel.reduced
        size = self.kernel.axes[reduced[-1]].size
        if len(reduced) > 1 or not isinstance(size, int):
            return {}
        padded = -(-size // self.lanes) * self.lanes
        buffers: dict[Value, tuple[int, str]] = {}
        room = ROW_BUFFER_BYTES
        for value, first in stages.worth_keeping().items():
            need = padded * value.dtype.itemsize
            if need <= room and value.dtype != BOOL:
                room -= need
                buffers[value] = first, self.w.slot(memory_type(value.dtype), str(padded))
        return buffers

    def _pass(
        self,
        stages: Stages,
        number: int,
        axes: Sequence[int],
        counters: dict[int, str],
        address: Callable[[Access], str],
        known: dict[Value, str],
        kept: dict[Value, tuple[int, str]],
        start: str = "0",
        stop: str | None = None,
    ) -> dict[Value, list[str]]:
        """One pass over the reduced space; returns the accumulators of the pass' reductions."""
        w, v = self.w, self.v
        reductions = stages.reductions(number)
        first_pass = {value: first for value, (first, _) in kept.items()}
        wanted = stages.needed(number, first_pass)
        stores = stages.stores(number)
        reread = {x: kept[x][1] for x in wanted if x in kept and kept[x][0] < number}
        keep = {x: kept[x][1] for x in wanted if x in kept and kept[x][0] == number}
        kinds = [Reduction(r.attrs["op"], r.dtype) for r in reductions]
        carried = [(v.type(part), first) for k in kinds for part, first in zip(k.parts, k.start(v), strict=True)]
        last = axes[-1]
        end = stop if stop is not None else self._size(last)
        whole = self._whole(self.kernel.axes[last].size)

        def level(depth: int, inner: dict[int, str], held: list[str]) -> list[str]:
            if depth < len(axes) - 1:
                return w.loop(
                    "0", self._size(axes[depth]), "1",
                    [(type, value) for (type, _), value in zip(carried, held, strict=True)],
                    lambda i, now: level(depth + 1, {**inner, axes[depth]: i}, now),
                )  # fmt: skip

            def vector(i: str, now: list[str]) -> list[str]:
                place = Place(
                    self._further(address, inner), {**counters, **inner}, last, i,
                    w.get(f"sub i64 {end}, {i}"), whole,
                )  # fmt: skip
                registers, mask = self.elements.write(place, wanted, known, stores, reread, keep)
                following: list[str] = []
                at = 0
                for reduce, kind in zip(reductions, kinds, strict=True):
                    parts = now[at : at + len(kind.parts)]
                    at += len(kind.parts)
                    following += self.elements.accumulate(reduce, registers, mask, parts)
                return following

            return w.loop(
                start if depth == 0 else "0", end, str(self.lanes),
                [(type, value) for (type, _), value in zip(carried, held, strict=True)], vector,
            )  # fmt: skip

        results = level(0, {}, [first for _, first in carried])
        totals: dict[Value, list[str]] = {}
        for reduce, kind in zip(reductions, kinds, strict=True):
            totals[reduce], results = results[: len(kind.parts)], results[len(kind.parts) :]
        return totals

    # -- columns --------------------------------------------------------------------------------------------------
    def columns(self) -> Function:
        """Reductions along outer axes: a strip of columns at a time, accumulators in the first cache."""
        kernel, w = self.kernel, self.w
        kept = kernel.kept
        axis = kept[-1]
        stages = Stages(kernel, frozenset(kept))
        self._begin()
        width = self._size(axis)
        columns = strip_of(kernel, stages)
        strips = w.at_entry(f"sdiv i64 {w.at_entry(f'add i64 {width}, {columns - 1}')}, {columns}")

        def strip(number: str, _: list[str]) -> list[str]:
            outer = w.get(f"sdiv i64 {number}, {strips}")
            which = w.get(f"srem i64 {number}, {strips}")
            start = w.get(f"mul i64 {which}, {columns}")
            limit = w.get(f"add i64 {start}, {columns}")
            over = w.get(f"icmp sgt i64 {limit}, {width}")
            stop = w.get(f"select i1 {over}, i64 {width}, i64 {limit}")
            self._strip(stages, self._split(outer, kept[:-1]), axis, start, stop, columns)
            return []

        w.loop("%begin", "%end", "1", [], strip)
        sizes = tuple(kernel.axes[a].size for a in kept)
        return self._finish(kernel.name, sizes, columns)

    def _strip(
        self, stages: Stages, counters: dict[int, str], axis: int, start: str, stop: str, strip: int
    ) -> None:
        w, v, kernel = self.w, self.v, self.kernel
        address = self._addresses(counters)
        whole = self._whole(kernel.axes[axis].size)
        slots: dict[Value, list[str]] = {}  # accumulators while a pass runs
        held: dict[Value, str] = {}  # column values, one for each column of the strip

        def column_place(i: str, reach: Callable[[Access], str], inner: dict[int, str]) -> Place:
            return Place(reach, {**counters, **inner}, axis, i, w.get(f"sub i64 {stop}, {i}"), whole)

        def at(slot: str, type: str, i: str) -> str:
            distance = w.get(f"sub i64 {i}, {start}")
            number = w.get(f"udiv i64 {distance}, {self.lanes}")
            return w.get(f"getelementptr {type}, ptr {slot}, i64 {number}")

        def fetch(values: Sequence[Value], i: str) -> dict[Value, str]:
            known: dict[Value, str] = {}
            for value in values:
                if value in held:
                    type = v.type(value.dtype)
                    known[value] = w.get(f"load {type}, ptr {at(held[value], type, i)}, align 8")
            return known

        def sweep(body: Callable[[str], None]) -> None:
            self._repeat(start, stop, str(self.lanes), body)

        count = strip // self.lanes
        for number in range(stages.passes + 1):
            computed = [x for x in stages.row_values(number) if x.op != "load"]
            arriving = [x for x in kernel.values if x.op == "reduce" and stages.ready[x] == number]
            row_stores = stages.row_stores(number)
            if computed or arriving or row_stores:
                fresh = [*arriving, *computed]
                new_slots = {x: w.slot(v.type(x.dtype), str(count)) for x in fresh}

                def finish(i: str) -> None:
                    known = fetch([x for x in kernel.values if x in held], i)
                    for reduce in arriving:
                        kind = Reduction(reduce.attrs["op"], reduce.dtype)
                        parts = [
                            w.get(f"load {v.type(p)}, ptr {at(s, v.type(p), i)}, align 8")
                            for p, s in zip(kind.parts, slots[reduce], strict=True)
                        ]
                        known[reduce] = kind.finish(v, parts)
                    loads = _loads_below([*computed, *(s.value for s in row_stores)], stages, known)
                    place = column_place(i, address, {})
                    registers, _ = self.elements.write(place, [*loads, *computed], known, row_stores)
                    for value in fresh:
                        type = v.type(value.dtype)
                        w.do(f"store {type} {registers[value]}, ptr {at(new_slots[value], type, i)}, align 8")

                sweep(finish)
                held.update(new_slots)
            if number == stages.passes:
                break
            reductions = stages.reductions(number)
            kinds = {r: Reduction(r.attrs["op"], r.dtype) for r in reductions}
            for reduce, kind in kinds.items():
                slots[reduce] = [w.slot(v.type(part), str(count)) for part in kind.parts]

            def clear(i: str) -> None:
                for reduce, kind in kinds.items():
                    for part, slot, first in zip(kind.parts, slots[reduce], kind.start(v), strict=True):
                        type = v.type(part)
                        w.do(f"store {type} {first}, ptr {at(slot, type, i)}, align 8")

            if reductions:
                sweep(clear)
            wanted = stages.needed(number, {})
            stores = stages.stores(number)
            per_column = [
                x
                for x in kernel.values
                if stages.per_row(x)
                and (
                    any(x in y.values for y in wanted)
                    or any(x is s.value for s in stores)
                    or any(x is r.values[0] for r in reductions)
                )
            ]

            def elements(inner: dict[int, str], i: str, fetched: dict[Value, str], parts: list[str]) -> list[str]:
                """One vector at one place of the reduced space; returns the accumulators after it."""
                loads = [x for x in per_column if x not in fetched]
                place = column_place(i, self._further(address, inner), inner)
                registers, _ = self.elements.write(place, [*loads, *wanted], fetched, stores)
                following: list[str] = []
                for reduce, kind in kinds.items():
                    held_parts = parts[len(following) : len(following) + len(kind.parts)]
                    following += self.elements.accumulate(reduce, registers, None, held_parts)
                return following

            def level(depth: int, inner: dict[int, str]) -> None:
                axes = kernel.reduced
                if depth < len(axes) - 1:
                    self._repeat("0", self._size(axes[depth]), "1", lambda i: level(depth + 1, {**inner, axes[depth]: i}))
                    return
                rows = self._size(axes[-1])

                def some_rows(first: str) -> None:
                    limit = w.get(f"add i64 {first}, {ROWS_AT_ONCE}")
                    over = w.get(f"icmp sgt i64 {limit}, {rows}")
                    last = w.get(f"select i1 {over}, i64 {rows}, i64 {limit}")

                    def vector(i: str) -> None:
                        fetched = fetch(per_column, i)
                        types = [v.type(part) for kind in kinds.values() for part in kind.parts]
                        places = [
                            at(slot, type, i)
                            for type, slot in zip(types, (s for r in kinds for s in slots[r]), strict=True)
                        ]
                        carried = [
                            (type, w.get(f"load {type}, ptr {p}, align 8"))
                            for type, p in zip(types, places, strict=True)
                        ]
                        after = w.loop(
                            first, last, "1", carried,
                            lambda row, parts: elements({**inner, axes[-1]: row}, i, fetched, parts),
                        )  # fmt: skip
                        for type, p, value in zip(types, places, after, strict=True):
                            w.do(f"store {type} {value}, ptr {p}, align 8")

                    sweep(vector)

                self._repeat("0", rows, str(ROWS_AT_ONCE), some_rows)

            level(0, {})

    def _repeat(self, start: str, stop: str, step: str, body: Callable[[str], None]) -> None:
        """A counted loop that carries nothing."""

        def turn(i: str, _: list[str]) -> list[str]:
            body(i)
            return []

        self.w.loop(start, stop, step, [], turn)

    # -- blocks ---------------------------------------------------------------------------------------------------
    def _parts(self) -> list[tuple[Value, DType]]:
        return [
            (reduce, part)
            for reduce in self.kernel.values
            if reduce.op == "reduce"
            for part in Reduction(reduce.attrs["op"], reduce.dtype).parts
        ]

    def blocks(self) -> Function:
        """Full reductions: every item leaves its accumulators in the array of partial results."""
        kernel, w = self.kernel, self.w
        axes = kernel.reduced
        stages = Stages(kernel, frozenset())
        words = len(self._parts())
        self._begin()
        partials = self.parameters.named_pointer(w, "partials") if words else ""

        def item(number: str, _: list[str]) -> list[str]:
            known: dict[Value, str] = {}
            if len(axes) == 1:
                counters: dict[int, str] = {}
                start = w.get(f"mul i64 {number}, {BLOCK}")
                limit = w.get(f"add i64 {start}, {BLOCK}")
                size = self._size(axes[0])
                over = w.get(f"icmp sgt i64 {limit}, {size}")
                stop: str | None = w.get(f"select i1 {over}, i64 {size}, i64 {limit}")
                inner = axes
            else:
                counters, start, stop, inner = {axes[0]: number}, "0", None, axes[1:]
            address = self._addresses(counters)
            self._prepare_nontemporal(address)
            self._row_values(stages.row_values(0), Place(address, counters), known)
            totals = self._pass(stages, 0, inner, counters, address, known, {}, start, stop)
            at = 0
            for reduce, parts in totals.items():
                kind = Reduction(reduce.attrs["op"], reduce.dtype)
                for part, register in zip(kind.parts, kind.across(self.v, parts), strict=True):
                    one = w.get(f"extractelement {self.v.type(part)} {register}, i64 0")
                    place = w.get(f"add i64 {w.get(f'mul i64 {number}, {words}')}, {at}")
                    address_of = w.get(f"getelementptr i64, ptr {partials}, i64 {place}")
                    w.do(f"store {scalar_type(part)} {one}, ptr {address_of}, align 8")
                    at += 1
            return []

        w.loop("%begin", "%end", "1", [], item)
        sizes: tuple[Size, ...] = (kernel.axes[axes[0]].size,)
        return self._finish(kernel.name, sizes, BLOCK if len(axes) == 1 else 1, words)

    def combine(self) -> Function:
        """Merges the partial results in their order, and computes what depends on the totals."""
        kernel, w, v = self.kernel, self.w, self.v
        stages = Stages(kernel, frozenset())
        self._begin()
        parts = self._parts()
        partials = self.parameters.named_pointer(w, "partials")
        kinds = {r: Reduction(r.attrs["op"], r.dtype) for r in dict.fromkeys(r for r, _ in parts)}
        carried = [
            (v.type(part), first)
            for kind in kinds.values()
            for part, first in zip(kind.parts, kind.start(v), strict=True)
        ]

        def step(i: str, held: list[str]) -> list[str]:
            following: list[str] = []
            at = 0
            for kind in kinds.values():
                found = []
                for part in kind.parts:
                    place = w.get(f"add i64 {w.get(f'mul i64 {i}, {len(parts)}')}, {at + len(found)}")
                    address_of = w.get(f"getelementptr i64, ptr {partials}, i64 {place}")
                    one = w.get(f"load {scalar_type(part)}, ptr {address_of}, align 8")
                    found.append(v.spread(scalar_type(part), one))
                following += kind.merge(v, held[at : at + len(found)], found)
                at += len(found)
            return following

        results = w.loop("%begin", "%end", "1", carried, step)
        known: dict[Value, str] = {}
        at = 0
        for reduce, kind in kinds.items():
            known[reduce] = kind.finish(v, results[at : at + len(kind.parts)])
            at += len(kind.parts)
        address = self._addresses({})
        place = Place(address, {})
        for number in range(2):
            self._row_values(stages.row_values(number), place, known)
            for store in stages.row_stores(number):
                self.elements.write(place, (), known, [store])
        return self._finish(f"{kernel.name}_combine", (1,))


def _loads_below(values: Sequence[Value], stages: Stages, known: dict[Value, str]) -> list[Value]:
    """The loads with one element a column that ``values`` read directly."""
    found = {x for value in values for x in [value, *value.values] if x.op == "load" and x not in known}
    return [x for x in stages.kernel.values if x in found]

