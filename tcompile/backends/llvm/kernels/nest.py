"""Loop nests: the function around the loops, sizes, addresses, one pass over a row.

Input: a ``Kernel``.
Output: ``Nest``, the base class of all forms, and ``KernelFunction``, their result.
Why: the forms differ only in the order of loops.

A function covers the items [begin, end) of its kernel. An item is one element (``flat`` with one axis), one row
(``flat`` with more, ``rows``), one strip of columns (``columns``) or one block of the reduced space (``blocks``). The
value of an element never depends on how items are divided among calls.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from tcompile.backends.llvm import native
from tcompile.backends.llvm.kernels.elements import Elements, VectorPosition
from tcompile.backends.llvm.kernels.parameters import WordParameters
from tcompile.backends.llvm.kernels.reductions import VectorReduction
from tcompile.backends.llvm.kernels.variants import USUAL, KernelVariant
from tcompile.backends.llvm.vector.interleave import LONGEST
from tcompile.backends.llvm.vector.text import Module, Writer, cells
from tcompile.backends.llvm.vector.vectors import Vectors
from tcompile.backends.schedule import Access, Kernel, KernelValue, Store
from tcompile.backends.schedule.kernel import Distance, static_elements
from tcompile.backends.schedule.kernel_ops import CONSTANT, GATHER, IOTA, LOAD, NUMBER, REDUCE, SIZE
from tcompile.backends.schedule.stages import Stages
from tcompile.backends.status import ONLY_NUMPY, OVERFLOW, UNDERFLOW
from tcompile.graph import Size, ops
from tcompile.graph.sizes import hint
from tcompile.records import dataclass

SIDE_BY_SIDE = 4  # independent accumulators of a reduction, where its elements are cheap: a power of two
FEW_VALUES, CHEAP, FEW_TURNS = 8, 6.0, 8
CACHE_LINE = 64  # bytes
AHEAD = 4096  # bytes: the hardware prefetches sequential reads, but not beyond the end of a page
NEAR = 1 << 23  # bytes of an array that stay in caches, where prefetches only cost time


@dataclass
class KernelFunction:
    """One function of a kernel: its text, its parameters, and the number of items as sizes to multiply or divide.

    ``items`` is the product of sizes; where ``per_item`` is not 1, the last factor is divided by it, rounding up.
    Without a text it is one that all modules share (``native.shared``).
    """

    name: str
    text: str
    parameters: WordParameters
    items: tuple[Size, ...]
    per_item: int = 1
    partial_words: int = 0


_NEEDS_PASSES = re.compile(r"\.with\.overflow\.|[su]itofp <\d+ x i(8|16)>")


def without_passes(text: str) -> str:
    """Marks a function so that LLVM runs no passes on it, where possible.

    Otherwise LLVM's passes abort the process at vector additions with overflow checks, where it halves vectors (AVX2),
    and at floats converted from computed integers of one or two bytes.
    """
    return text if _NEEDS_PASSES.search(text) else text.replace(") nounwind", ") noinline optnone nounwind", 1)


def lanes_of(kernel: Kernel) -> int:
    """The vector width: 8 lanes where cells of 8 bytes take part, else 16.

    A full register of bytes, where no cell is larger and the processor masks byte vectors. One where a column goes to a
    column, as at an edge: gathering and scattering lanes is slower than single elements.
    """
    if _from_column_to_column(kernel):
        return 1
    counted = {index for v in kernel.values if v.attrs.get("rolled") for index in v.values}  # not in lanes
    values = [v for v in kernel.values if v not in counted]
    dtypes = {v.dtype for v in values}
    dtypes |= {v.attrs["operand_dtype"] for v in values if "operand_dtype" in v.attrs}
    largest = max(d.itemsize // cells(d) for d in dtypes)
    is_wide = any(v.op in _WIDE and not v.attrs.get("rolled") for v in values)
    if largest == 1 and not is_wide and native.machine().masks_bytes:
        return 64
    return 8 if largest == 8 else 16


def _from_column_to_column(kernel: Kernel) -> bool:
    """Whether all accesses along the last axis are strided, and the computation is cheap."""
    if kernel.form != "flat" or not kernel.axes or any(v.op not in _AS_FAST_ALONE for v in kernel.values):
        return False
    steps = [static_elements(access.steps[-1]) for access in kernel.accesses if access.steps[-1]]
    return bool(steps) and all(step is not None and abs(step) > LONGEST for step in steps)


def element_ns(values: Sequence[KernelValue], stores: Sequence[Store]) -> float:
    """A rough estimate of the time for one element, in nanoseconds: memory traffic and arithmetic."""
    traffic = sum(v.dtype.itemsize for v in values if v.op is LOAD and v.axes)
    traffic += sum(s.value.dtype.itemsize for s in stores if s.access.axes)
    arithmetic: float = sum(v.attrs.get("own_cost", 0.0) for v in values)
    return 0.05 + 0.04 * traffic + 0.03 * arithmetic


def _reach(offset: Distance) -> list[int]:
    """The steps of an access: outer axes first, where strides are known only at run time."""
    return [hint(multiple) for multiple, axis in sorted(offset, key=lambda term: -1 if term[1] is None else term[1])]


_AS_FAST_ALONE = (LOAD, CONSTANT, ops.ORDERED, ops.ADD, ops.SUBTRACT, ops.MULTIPLY, ops.NEGATIVE)
_WIDE = (GATHER, IOTA, SIZE, NUMBER)  # operations whose lanes are computed in larger cells


class Nest:
    """One kernel's function under construction. ``transposes``: it transposes square tiles in registers."""

    transposes = False

    def __init__(
        self,
        module: Module,
        kernel: Kernel,
        nontemporal: Sequence[Store],
        variant: KernelVariant = USUAL,
    ) -> None:
        self.kernel = kernel
        self.variant = variant
        self.module = module
        self.w = Writer(module)
        self.lanes = lanes_of(kernel)
        self.status = self.w.slot("i32", align=4)
        self.w.entry.append(f"  store i32 0, ptr {self.status}")
        self.v = Vectors(self.w, self.lanes, self.status)
        self.parameters = WordParameters()
        self.elements = Elements(self.w, self.v, self.parameters)
        self.nontemporal = nontemporal
        self.twice = False  # whether a row's last vector overlaps the one before

    # -- common parts ---------------------------------------------------------------------------------------------
    def finish(
        self, name: str, items: tuple[Size, ...], per_item: int = 1, partial_words: int = 0, brief: bool = False
    ) -> KernelFunction:
        """The finished function. A ``brief`` one is compiled without LLVM's passes, which would take longer than it
        runs.
        """
        w = self.w
        end = w.label("end")
        w.jump(end)
        w.place(end)
        if self.nontemporal and native.machine().fences_streams:
            self.module.declare("@llvm.x86.sse.sfence", "declare void @llvm.x86.sse.sfence()")
            w.do("call void @llvm.x86.sse.sfence()")
        flags = w.get("call i32 @tc_read_flags()") if self._reads_flags() else ""
        status = w.get(f"load i32, ptr {self.status}")
        if self._has_float_products():
            # Overflow of a product depends on the order of its factors: it is left to NumPy.
            left = w.get(f"icmp ne i32 {w.get(f'and i32 {flags}, {OVERFLOW | UNDERFLOW}')}, 0")
            status = w.get(f"or i32 {status}, {w.get(f'select i1 {left}, i32 {ONLY_NUMPY}, i32 0')}")
        if not self._is_silent():
            status = w.get(f"or i32 {flags}, {status}")
        if flags:
            # First of all: conversions in the entry block may raise flags too.
            w.entry.insert(0, "  call void @tc_clear_flags()")
        w.do(f"ret i32 {status}")
        w.entry.append("  br label %start")
        # Vectors on the stack are aligned to cache lines: a load that crosses two lines and was just stored stalls
        # until the store has left the core, which doubles the time of kernels with calls in them.
        attributes = f'nounwind "stackrealign"{self._registers()}'
        text = w.text(f"i32 @{name}(ptr noalias %words, i64 %begin, i64 %end)", attributes)
        text = without_passes(text) if brief else text
        return KernelFunction(name, text, self.parameters, items, per_item, partial_words)

    def _is_silent(self) -> bool:
        """Whether no condition of the kernel is reported, as of a derivative's."""
        computed = [v.node for v in self.kernel.values if v.op not in (LOAD, CONSTANT, NUMBER, SIZE)]
        return bool(computed) and all(node is not None and node.silent for node in computed)

    def _has_float_products(self) -> bool:
        return any(v.op is REDUCE and v.attrs["op"] == "prod" and v.dtype.kind == "f" for v in self.kernel.values)

    def _reads_flags(self) -> bool:
        """Whether something depends on the processor's flags; to clear and read them takes 20 ns."""
        return not self._is_silent() or self._has_float_products() or self.kernel.form == "scatter"

    def _registers(self) -> str:
        """The attribute that restricts LLVM to NEON instead of SVE for transposed tiles, since SVE's shuffles are
        expensive.
        """
        machine = native.machine()
        if not machine.scales_registers or self.transposes:
            return ""
        times = machine.scalable_bits // 128
        return f" vscale_range({times},{times})"

    def begin(self) -> None:
        """Starts the code after the entry block."""
        self.w.place("start")

    def size(self, axis: int) -> str:
        """The size of an axis: a literal or a register."""
        return self.parameters.size(self.w, self.kernel.axes[axis].size)

    def base(self, access: Access) -> str:
        """The address of the access where all indices are zero."""
        p, w = self.parameters, self.w
        pointer = p.pointer(w, access.buffer)
        offset = p.bytes(w, access.offset, access.buffer)
        if offset.startswith("%"):
            return w.at_entry(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return w.displaced(pointer, int(offset), at_entry=True)

    def address(self, base: str, access: Access, counters: dict[int, str]) -> str:
        """``base`` displaced by the counters."""
        w = self.w
        for axis, counter in counters.items():
            step = self.parameters.bytes(w, access.steps[axis], access.buffer)
            if step != "0":
                base = w.reach(base, "i8", w.in_block(f"mul i64 {counter}, {step}"))
        return base

    def addresses(self, counters: dict[int, str]) -> Callable[[Access], str]:
        """Addresses for fixed counters, each computed once (all here, where they dominate every later block)."""
        return self.reached(self.base, counters)

    def reached(self, outer: Callable[[Access], str], counters: dict[int, str]) -> Callable[[Access], str]:
        """Addresses inside an outer loop, each computed once, here, where they dominate all blocks that follow."""
        found = {id(access): self.address(outer(access), access, counters) for access in self.kernel.accesses}
        return lambda access: found[id(access)]

    def further(self, outer: Callable[[Access], str], counters: dict[int, str]) -> Callable[[Access], str]:
        """Addresses inside inner loops: computed where they are used."""
        if not counters:
            return outer
        return lambda access: self.address(outer(access), access, counters)

    def prefetch_ahead(
        self, axis: int, distance: Callable[[Access], str] = lambda access: str(AHEAD), near: int = NEAR
    ) -> None:
        """Prefetches arrays that are read in vectors along ``axis``, each only at its furthest access.

        Other accesses of an array, as in a stencil, were prefetched before; arrays of ``near`` bytes stay in caches.
        """
        furthest: dict[tuple[object, ...], KernelValue] = {}
        for value in self.kernel.values:
            access = value.access
            if value.op is not LOAD or access is None or static_elements(access.steps[axis]) != 1:
                continue
            if value.dtype.itemsize * self.lanes < CACHE_LINE:
                continue  # several prefetches per cache line would cost more than they gain
            size = math.prod(hint(self.kernel.axes[axis].size) for axis in access.axes)
            if size * value.dtype.itemsize <= near:
                continue
            other = furthest.setdefault((access.buffer, *access.steps), value)
            assert other.access is not None
            if _reach(access.offset) > _reach(other.access.offset):
                furthest[access.buffer, *access.steps] = value
        for value in furthest.values():
            assert value.access is not None
            self.elements.ahead[value] = distance(value.access)

    def rows_ahead(self, axis: int, count: int) -> Callable[[Access], str]:
        """Returns how many bytes further an array is read ``count`` steps along ``axis`` later."""

        def distance(access: Access) -> str:
            step = self.parameters.bytes(self.w, access.steps[axis], access.buffer)
            return self.w.at_entry(f"mul i64 {step}, {count}")

        return distance

    def split(self, item: str, axes: Sequence[int]) -> dict[int, str]:
        """The indices of ``axes`` (outermost first) from a linear index."""
        w = self.w
        counters: dict[int, str] = {}
        rest = item
        for axis in reversed(axes[1:]):
            size = self.size(axis)
            counters[axis] = w.get(f"urem i64 {rest}, {size}")
            rest = w.get(f"udiv i64 {rest}, {size}")
        if axes:
            counters[axes[0]] = rest
        return {axis: counters[axis] for axis in axes}

    def whole(self, size: Size) -> bool:
        """Whether vectors along an axis of this size never extend beyond its end."""
        return self.lanes == 1 or (isinstance(size, int) and size % self.lanes == 0)

    def ends_with_whole_vectors(self) -> bool:
        """Whether a row's last vector may overlap the one before, where elements may be computed twice.

        Masked stores are slow on AVX2, some 20 cycles on AMD's processors, and take more code.
        """
        size = self.kernel.axes[-1].size
        return isinstance(size, int) and size > self.lanes and not self.whole(size) and not self._past_the_cache()

    def within(self, i: str, stop: str) -> str:
        """The start of a vector that ends at ``stop`` at the latest."""
        return self.least(i, self.w.at_entry(f"add i64 {stop}, -{self.lanes}"))

    def row_values(self, values: Sequence[KernelValue], place: VectorPosition, known: dict[KernelValue, str]) -> None:
        """Computes values that are the same in all lanes."""
        registers, _ = self.elements.write(place, values, known)
        known.update(registers)

    def prepare_nontemporal(self, address: Callable[[Access], str], lead: str = "0") -> None:
        """Computes once per row whether whole cache lines can be stored past the cache, from ``lead`` elements on."""
        for store in self._past_the_cache():
            number = self.w.get(f"ptrtoint ptr {address(store.access)} to i64")
            if lead != "0":
                skipped = self.w.get(f"mul i64 {lead}, {store.value.dtype.itemsize}")
                number = self.w.get(f"add i64 {number}, {skipped}")
            low = self.w.get(f"and i64 {number}, 63")
            self.elements.nontemporal[store] = self.w.get(f"icmp eq i64 {low}, 0")

    def _past_the_cache(self) -> list[Store]:
        return [store for store in self.nontemporal if store.value.dtype.itemsize * self.lanes % 64 == 0]

    def lead(self, address: Callable[[Access], str], axis: int, start: str) -> str:
        """The number of elements of a row before the first cache line that can be stored past the cache.

        None where vectors along the axis never extend beyond the end: such rows all begin as their array does, and new
        arrays begin with a cache line. An assigned array may be the caller's.
        """
        w, stores = self.w, self._past_the_cache()
        are_new = all(store.access.buffer.node.op is not ops.ASSIGN for store in stores)
        if not stores or (are_new and self.whole(self.kernel.axes[axis].size)):
            return "0"
        itemsize = stores[0].value.dtype.itemsize
        number = w.get(f"ptrtoint ptr {address(stores[0].access)} to i64")
        at = w.get(f"add i64 {number}, {w.get(f'mul i64 {start}, {itemsize}')}")
        missing = w.get(f"and i64 {w.get(f'sub i64 0, {at}')}, 63")
        return w.get(f"udiv i64 {missing}, {itemsize}")

    def vectors(
        self,
        start: str,
        stop: str,
        lead: str,
        carried: Sequence[tuple[str, str]],
        body: Callable[[str, str, list[str]], Sequence[str]],
    ) -> list[str]:
        """The loop over the vectors of [start, stop); the first ``lead`` elements, if any, are peeled.

        ``body`` gets the start of a vector, the number of elements from there on (of the first vector, ``lead``), and
        the carried values.
        """
        w, lanes = self.w, str(self.lanes)
        if lead == "0":
            if self.variant.unroll > 1 and not carried:
                start = self._several_an_iteration(start, stop, body)
            return w.loop(start, stop, lanes, carried, lambda i, now: body(i, w.get(f"sub i64 {stop}, {i}"), now))
        after = w.get(f"add i64 {start}, {lead}")
        some = w.get(f"icmp ne i64 {lead}, 0")
        begin = w.get(f"select i1 {some}, i64 {w.get(f'sub i64 {after}, {lanes}')}, i64 {start}")
        near = w.get(f"select i1 {w.get(f'icmp slt i64 {after}, {stop}')}, i64 {after}, i64 {stop}")
        first = w.get(f"sub i64 {near}, {start}")

        def vector(i: str, now: list[str]) -> Sequence[str]:
            early = w.get(f"icmp slt i64 {i}, {start}")
            at = w.get(f"select i1 {early}, i64 {start}, i64 {i}")
            rest = w.get(f"select i1 {early}, i64 {first}, i64 {w.get(f'sub i64 {stop}, {i}')}")
            return body(at, rest, now)

        return w.loop(begin, stop, lanes, carried, vector)

    def _several_an_iteration(self, start: str, stop: str, body: Callable[[str, str, list[str]], Sequence[str]]) -> str:
        """Emits the unrolled loop over [start, stop), as far as whole iterations go; returns where the remainder
        starts.
        """
        w = self.w
        stride = self.lanes * self.variant.unroll
        covered = w.get(f"and i64 {w.get(f'sub i64 {stop}, {start}')}, {-stride}")
        near = w.get(f"add i64 {start}, {covered}")

        def together(i: str, now: list[str]) -> list[str]:
            for k in range(self.variant.unroll):
                at = w.get(f"add i64 {i}, {k * self.lanes}")
                body(at, w.get(f"sub i64 {stop}, {at}"), now)
            return now

        w.loop(start, near, str(stride), [], together)
        return near

    def least(self, a: str, b: str) -> str:
        """The smaller one of two numbers."""
        return self.w.get(f"select i1 {self.w.get(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def most(self, a: str, b: str) -> str:
        """The larger one of two numbers."""
        return self.w.get(f"select i1 {self.w.get(f'icmp sgt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def repeat(self, start: str, stop: str, step: str, body: Callable[[str], None]) -> None:
        """A counted loop that carries nothing."""

        def turn(i: str, _: list[str]) -> list[str]:
            body(i)
            return []

        self.w.loop(start, stop, step, [], turn)

    def run_pass(
        self,
        stages: Stages,
        number: int,
        axes: Sequence[int],
        counters: dict[int, str],
        address: Callable[[Access], str],
        known: dict[KernelValue, str],
        kept: dict[KernelValue, tuple[int, str]],
        start: str = "0",
        stop: str | None = None,
        lead: str = "0",
    ) -> dict[KernelValue, list[str]]:
        """One pass over the reduced space; returns the accumulators of the pass' reductions.

        Where it stores, the first ``lead`` elements of a row are peeled.
        """
        w, v = self.w, self.v
        reductions = stages.reductions(number)
        first_pass = {value: first for value, (first, _) in kept.items()}
        wanted = stages.needed(number, first_pass)
        stores = stages.stores(number)
        lead = lead if stores else "0"
        reread = {x: kept[x][1] for x in wanted if x in kept and kept[x][0] < number}
        keep = {x: kept[x][1] for x in wanted if x in kept and kept[x][0] == number}
        kinds = [VectorReduction(r.attrs["op"], r.dtype) for r in reductions]
        carried = [(v.type(part), first) for k in kinds for part, first in zip(k.parts, k.start(v), strict=True)]
        last = axes[-1]
        end = stop if stop is not None else self.size(last)
        size = self.kernel.axes[last].size
        whole = self.whole(size) and lead == "0"
        several = (
            bool(kinds) and not stores and len(wanted) <= FEW_VALUES and all(x.cost <= CHEAP for x in wanted)
            and hint(size) >= 2 * SIDE_BY_SIDE * self.lanes
        )  # fmt: skip

        def level(depth: int, inner: dict[int, str], held: list[str]) -> list[str]:
            if depth < len(axes) - 1:
                return w.loop(
                    "0", self.size(axes[depth]), "1",
                    [(type, value) for (type, _), value in zip(carried, held, strict=True)],
                    lambda i, now: level(depth + 1, {**inner, axes[depth]: i}, now),
                )  # fmt: skip

            reach = self.further(address, inner)

            def read(i: str, rest: str, whole: bool) -> tuple[dict[KernelValue, str], str | None]:
                place = VectorPosition(reach, {**counters, **inner}, last, i, rest, whole)
                return self.elements.write(place, wanted, known, stores, reread, keep)

            def vector(i: str, rest: str, now: list[str]) -> list[str]:
                again = self.twice and not kinds
                registers, mask = read(self.within(i, end) if again else i, rest, whole or again)
                following: list[str] = []
                at = 0
                for reduce, kind in zip(reductions, kinds, strict=True):
                    parts = now[at : at + len(kind.parts)]
                    at += len(kind.parts)
                    following += self.elements.accumulate(reduce, registers, mask, parts)
                return following

            def elements(i: str) -> list[str]:
                """The elements of one whole vector that the reductions accumulate."""
                registers, _ = read(i, str(self.lanes), True)
                return [registers[reduce.values[0]] for reduce in reductions]

            begin = start if depth == 0 else "0"
            types = [type for type, _ in carried]
            if several:
                begin, held = self._side_by_side(begin, end, [f for _, f in carried], held, kinds, elements)
                if isinstance(size, int) and size % (SIDE_BY_SIDE * self.lanes) == 0:
                    return held  # parts of a row, which begin at multiples of more than that, have no remainder either
            return self.vectors(begin, end, lead, list(zip(types, held, strict=True)), vector)

        results = level(0, {}, [first for _, first in carried])
        totals: dict[KernelValue, list[str]] = {}
        for reduce, kind in zip(reductions, kinds, strict=True):
            totals[reduce], results = results[: len(kind.parts)], results[len(kind.parts) :]
        return totals

    def _side_by_side(
        self,
        start: str,
        stop: str,
        first: Sequence[str],
        held: Sequence[str],
        kinds: Sequence[VectorReduction],
        elements: Callable[[str], list[str]],
    ) -> tuple[str, list[str]]:
        """Emits the loop over [start, stop) unrolled, each vector with its own accumulators; leaves a remainder.

        One accumulator would make every vector depend on the one before. Returns where the remainder starts, and the
        merged accumulators.
        """
        w, v, lanes = self.w, self.v, self.lanes
        stride = lanes * SIDE_BY_SIDE

        def by_kind(parts: Sequence[str]) -> list[list[str]]:
            left = iter(parts)
            return [[next(left) for _ in kind.parts] for kind in kinds]

        sets = [
            kind.side_by_side(now, before, SIDE_BY_SIDE)
            for kind, now, before in zip(kinds, by_kind(held), by_kind(first), strict=True)
        ]
        turns = (int(stop) - int(start)) // stride if start.isdigit() and stop.isdigit() else 0
        if 0 < turns <= FEW_TURNS and held == first:  # worth unrolling fully: nothing has been accumulated before
            found = [elements(str(int(start) + number * lanes)) for number in range(SIDE_BY_SIDE)]
            each = [list(row) for row in zip(*found, strict=True)]
            sets = [kind.first_of_all(v, row) for kind, row in zip(kinds, each, strict=True)]
            start = str(int(start) + stride)
        length = w.get(f"sub i64 {stop}, {start}")
        covered = w.get(f"and i64 {length}, {-stride}")
        until = w.get(f"add i64 {start}, {covered}")

        def vectors(i: str, now: list[str]) -> list[str]:
            places = [w.get(f"add i64 {i}, {number * lanes}") if number else i for number in range(SIDE_BY_SIDE)]
            found, left = [elements(at) for at in places], iter(now)
            following: list[str] = []
            for which, (kind, before) in enumerate(zip(kinds, sets, strict=True)):
                current = [[next(left) for _ in kind.parts] for _ in before]
                for after in kind.update_all(v, current, [each[which] for each in found]):
                    following += after
            return following

        carried = [
            (v.type(part), register) for kind, before in zip(kinds, sets, strict=True)
            for one in before for part, register in zip(kind.parts, one, strict=True)
        ]  # fmt: skip
        left = iter(w.loop(start, until, str(stride), carried, vectors))
        merged: list[str] = []
        for kind, before in zip(kinds, sets, strict=True):
            after = [[next(left) for _ in kind.parts] for _ in before]
            while len(after) > 1:
                after = [kind.merge(v, a, b) for a, b in zip(after[::2], after[1::2], strict=True)]
            merged += after[0]
        return until, merged
