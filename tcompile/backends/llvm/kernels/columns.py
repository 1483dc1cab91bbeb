"""Column reductions: along outer axes, a strip of columns at a time, with one accumulator per column.

Input: a kernel of form ``columns``.
Output: its function.
Why: rows are read contiguously, and the accumulators of a strip stay in the L1 cache.

Several rows are added before the accumulators are stored, so that loads of several rows are in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tcompile.backends.llvm import native
from tcompile.backends.llvm.kernels.deviations import Deviations, in_one_pass
from tcompile.backends.llvm.kernels.elements import VectorPosition
from tcompile.backends.llvm.kernels.nest import CHEAP, FEW_VALUES, SIDE_BY_SIDE, KernelFunction, Nest
from tcompile.backends.llvm.kernels.reductions import VectorReduction
from tcompile.backends.llvm.vector.text import literal
from tcompile.backends.llvm.vector.vectors import FLOAT64
from tcompile.backends.schedule import Kernel, KernelValue, Store
from tcompile.backends.schedule.kernel import size_of
from tcompile.backends.schedule.kernel_ops import LOAD, REDUCE
from tcompile.backends.schedule.stages import Stages
from tcompile.graph.dtypes import DType
from tcompile.graph.sizes import hint

STRIP_BYTES = 1 << 19  # bytes of a strip of columns that is read in several passes, to stay in the L2 cache
# Rows that a column reduction adds before it stores the accumulators. Rows whose length is a power of two have to fit
# into one set of the L1 cache, of 8 or 12 lines.
ROWS_AT_ONCE = 8
PAGE = 4096  # bytes: the hardware prefetches longer runs, and consecutive rows, by itself and better


def strip_of(kernel: Kernel, stages: Stages) -> int:
    """The number of columns per item of a column reduction: a multiple of 64, so that each thread has an item.

    Long runs are read faster, also where their accumulators no longer fit into the L1 cache.
    """
    width = hint(kernel.axes[kernel.kept[-1]].size)
    most = 2048
    if stages.passes > 1:
        rows = max(1, hint(size_of([kernel.axes[a] for a in kernel.reduced])))
        loads = [v.dtype.itemsize for v in kernel.values if v.op is LOAD and v.axes & set(kernel.reduced)]
        near = STRIP_BYTES // (rows * max(1, sum(loads)))
        most = min(most, near) if near >= 64 else most  # arrays that every pass reads again are best read in long runs
    return max(64, min(most, width // max(2, native.num_threads())) // 64 * 64)


def _widest(kernel: Kernel) -> int:
    """The bytes of the largest element that is read from an array."""
    return max((v.dtype.itemsize for v in kernel.values if v.op is LOAD), default=0)


class ColumnNest(Nest):
    """A nest that vectorises the innermost kept axis."""

    def columns(self) -> KernelFunction:
        """The function: a strip of columns at a time, accumulators in the L1 cache."""
        kernel, w = in_one_pass(self.kernel), self.w
        kept = kernel.kept
        axis = kept[-1]
        stages = Stages(kernel, frozenset(kept))
        self.begin()
        width = self.size(axis)
        columns = strip_of(kernel, stages)
        if columns < hint(kernel.axes[axis].size) and columns * _widest(kernel) < PAGE:
            self.prefetch_ahead(axis, self.rows_ahead(kernel.reduced[-1], ROWS_AT_ONCE))
        strips = w.at_entry(f"sdiv i64 {w.at_entry(f'add i64 {width}, {columns - 1}')}, {columns}")

        def strip(number: str, _: list[str]) -> list[str]:
            outer = w.get(f"sdiv i64 {number}, {strips}")
            which = w.get(f"srem i64 {number}, {strips}")
            start = w.get(f"mul i64 {which}, {columns}")
            limit = w.get(f"add i64 {start}, {columns}")
            over = w.get(f"icmp sgt i64 {limit}, {width}")
            stop = w.get(f"select i1 {over}, i64 {width}, i64 {limit}")
            self._strip(stages, self.split(outer, kept[:-1]), axis, start, stop, columns)
            return []

        w.loop("%begin", "%end", "1", [], strip)
        sizes = tuple(kernel.axes[a].size for a in kept)
        return self.finish(kernel.name, sizes, columns)

    def _strip(self, stages: Stages, counters: dict[int, str], axis: int, start: str, stop: str, columns: int) -> None:
        """All passes over one strip."""
        strip = _Strip(self, stages, counters, axis, start, stop, columns)
        for number in range(stages.passes + 1):
            strip.finish(number)
            if number < stages.passes:
                strip.walk(number)


class _Strip:
    """The code of the columns [start, stop).

    ``partial`` holds the slots of accumulators during a pass, ``held`` those of finished column values: one element for
    each column of the strip.
    """

    def __init__(
        self, nest: Nest, stages: Stages, counters: dict[int, str], axis: int, start: str, stop: str, columns: int
    ) -> None:
        self.nest, self.stages, self.counters, self.axis = nest, stages, counters, axis
        self.start, self.stop = start, stop
        self.w, self.v = nest.w, nest.v
        self.address = nest.addresses(counters)
        self.whole = nest.whole(nest.kernel.axes[axis].size)
        self.vectors = str(columns // nest.lanes)
        self.partial: dict[KernelValue, list[str]] = {}
        self.held: dict[KernelValue, str] = {}

    # -- slots ----------------------------------------------------------------------------------------------------
    def _sweep(self, body: Callable[[str], None]) -> None:
        self.nest.repeat(self.start, self.stop, str(self.nest.lanes), body)

    def _place(self, i: str, inner: dict[int, str]) -> VectorPosition:
        rest = self.w.get(f"sub i64 {self.stop}, {i}")
        reach = self.nest.further(self.address, inner)
        return VectorPosition(reach, {**self.counters, **inner}, self.axis, i, rest, self.whole)

    def _slot(self, dtype: DType) -> str:
        return self.w.slot(self.v.type(dtype), self.vectors)

    def _at(self, slot: str, dtype: DType, i: str) -> str:
        """The address of column ``i`` in a slot."""
        distance = self.w.get(f"sub i64 {i}, {self.start}")
        number = self.w.get(f"udiv i64 {distance}, {self.nest.lanes}")
        return self.w.get(f"getelementptr {self.v.type(dtype)}, ptr {slot}, i64 {number}")

    def _get(self, slot: str, dtype: DType, i: str) -> str:
        return self.w.get(f"load {self.v.type(dtype)}, ptr {self._at(slot, dtype, i)}, align 8")

    def _put(self, slot: str, dtype: DType, i: str, value: str) -> None:
        self.w.do(f"store {self.v.type(dtype)} {value}, ptr {self._at(slot, dtype, i)}, align 8")

    def _fetch(self, values: Sequence[KernelValue], i: str) -> dict[KernelValue, str]:
        return {x: self._get(self.held[x], x.dtype, i) for x in values if x in self.held}

    def _held(self, kinds: Mapping[KernelValue, VectorReduction | Deviations], i: str) -> dict[KernelValue, list[str]]:
        """The accumulators of column ``i``, and their auxiliary ones."""
        return {
            reduce: [self._get(slot, part, i) for slot, part in zip(self.partial[reduce], kind.parts, strict=True)]
            for reduce, kind in kinds.items()
        }

    # -- passes ---------------------------------------------------------------------------------------------------
    def finish(self, number: int) -> None:
        """Completes the reductions of the pass before, and computes the values of each column."""
        stages = self.stages
        arriving = [x for x in stages.kernel.values if x.op is REDUCE and stages.ready[x] == number]
        computed = [x for x in stages.row_values(number) if x.op is not LOAD]
        stores = stages.row_stores(number)
        fresh = {x: self._slot(x.dtype) for x in [*arriving, *computed]}
        if not fresh and not stores:
            return

        def column(i: str) -> None:
            known = self._fetch(list(self.held), i)
            for reduce in arriving:
                kind = _kind(reduce)
                known[reduce] = kind.finish(self.v, self._held({reduce: kind}, i)[reduce])
            loads = _loads_below([*computed, *(s.value for s in stores)], stages, known)
            registers, _ = self.nest.elements.write(self._place(i, {}), [*loads, *computed], known, stores)
            for value, slot in fresh.items():
                self._put(slot, value.dtype, i, registers[value])

        self._sweep(column)
        self.held.update(fresh)

    def walk(self, number: int) -> None:
        """One pass over the reduced space."""
        stages, nest, w = self.stages, self.nest, self.w
        wanted, stores, reductions = stages.needed(number, {}), stages.stores(number), stages.reductions(number)
        axes = stages.kernel.reduced
        rows = nest.size(axes[-1])
        kinds = {reduce: _kind(reduce) for reduce in reductions}
        read = {o for x in wanted for o in x.values} | {s.value for s in stores} | {r.values[0] for r in reductions}
        per_column = [x for x in stages.kernel.values if stages.per_row(x) and x in read]
        slots: list[tuple[str, DType]] = []
        for reduce, kind in kinds.items():
            self.partial[reduce] = [self._slot(part) for part in kind.parts]
            slots += zip(self.partial[reduce], kind.parts, strict=True)
        one_pass = [(reduce, kind) for reduce, kind in kinds.items() if isinstance(kind, Deviations)]

        def clear(i: str) -> None:
            means: dict[KernelValue, str] = {}
            if one_pass:
                fetched = self._fetch(per_column, i)
                outer = dict.fromkeys(axes[:-1], "0")

                def one_more(row: str, held: list[str]) -> list[str]:
                    registers = elements({**outer, axes[-1]: row}, i, fetched, False, [])
                    return [
                        kind.summed(self.v, total, registers[reduce.values[0]])
                        for (reduce, kind), total in zip(one_pass, held, strict=True)
                    ]

                zeros = [(self.v.type(FLOAT64), self.v.constant(FLOAT64, 0))] * len(one_pass)
                sums = w.loop("0", first_rows, "1", zeros, one_more)
                means = {r: self.v.op("fmul", FLOAT64, x, share) for (r, _), x in zip(one_pass, sums, strict=True)}
            first: list[str] = []
            for reduce, kind in kinds.items():
                first += kind.start(self.v, means[reduce]) if isinstance(kind, Deviations) else kind.start(self.v)
            for (slot, dtype), value in zip(slots, first, strict=True):
                self._put(slot, dtype, i, value)

        def elements(
            inner: dict[int, str], i: str, fetched: dict[KernelValue, str], whole: bool, stores: Sequence[Store]
        ) -> dict[KernelValue, str]:
            """The values of one vector at one point of the reduced space."""
            loads = [x for x in per_column if x not in fetched]
            place = self._place(i, inner)
            place.whole = place.whole or whole
            return nest.elements.write(place, [*loads, *wanted], fetched, stores)[0]

        cheap = sum(x.attrs.get("own_cost", 0.0) for x in wanted) <= CHEAP and len(wanted) <= FEW_VALUES
        width, stride = stages.kernel.axes[self.axis].size, SIDE_BY_SIDE * nest.lanes
        several = cheap and not one_pass and not (isinstance(width, int) and width < stride)
        single = not several or not (isinstance(width, int) and width % stride == 0)  # else strips have no remainder

        def reciprocal(count: str) -> str:
            number = w.get(f"sitofp i64 {count} to double")
            return self.v.spread("double", w.get(f"fdiv double {literal(FLOAT64, 1)}, {number}"))

        def level(depth: int, inner: dict[int, str], before: str) -> None:
            """Emits the loop at ``depth``. ``before``: the number of rows before these."""
            if depth < len(axes) - 1:

                def deeper(i: str) -> None:
                    further = w.get(f"mul i64 {w.get(f'add i64 {before}, {i}')}, {nest.size(axes[depth + 1])}")
                    level(depth + 1, {**inner, axes[depth]: i}, further)

                nest.repeat("0", nest.size(axes[depth]), "1", deeper)
                return

            def some_rows(first: str) -> None:
                limit = w.get(f"add i64 {first}, {ROWS_AT_ONCE}")
                over = w.get(f"icmp sgt i64 {limit}, {rows}")
                last = w.get(f"select i1 {over}, i64 {rows}, i64 {limit}")
                seen = reciprocal(w.get(f"add i64 {before}, {last}")) if one_pass else ""

                def vectors(i: str, count: int) -> None:
                    places = [i, *(w.get(f"add i64 {i}, {n * nest.lanes}") for n in range(1, count))]
                    fetched = [self._fetch(per_column, at) for at in places]
                    kept = [self._held(kinds, at) for at in places]
                    carried: list[tuple[str, str]] = []
                    for known in kept:
                        for reduce, kind in kinds.items():
                            values = kind.begin(self.v, known[reduce])
                            carried += zip(map(self.v.type, kind.parts[: len(values)]), values, strict=True)

                    def one_row(row: str, parts: list[str]) -> list[str]:
                        reached, following = {**inner, axes[-1]: row}, []
                        left = iter(parts)
                        for n, at in enumerate(places):
                            registers = elements(reached, at, fetched[n], count > 1, stores)
                            for reduce, kind in kinds.items():
                                before_it = kept[n][reduce]
                                held = [next(left) for _ in kind.begin(self.v, before_it)]
                                following += kind.further(self.v, before_it, held, registers[reduce.values[0]])
                        return following

                    left = iter(w.loop(first, last, "1", carried, one_row))
                    for n, at in enumerate(places):
                        for reduce, kind in kinds.items():
                            before_it = kept[n][reduce]
                            held = [next(left) for _ in kind.begin(self.v, before_it)]
                            after = kind.end(self.v, before_it, held, seen)
                            for slot, part, value in zip(self.partial[reduce], kind.parts, after, strict=True):
                                self._put(slot, part, at, value)

                rest = self.start
                if several:
                    length = w.get(f"sub i64 {self.stop}, {self.start}")
                    rest = w.get(f"add i64 {self.start}, {w.get(f'and i64 {length}, {-stride}')}")
                    nest.repeat(self.start, rest, str(stride), lambda i: vectors(i, SIDE_BY_SIDE))
                if single:
                    nest.repeat(rest, self.stop, str(nest.lanes), lambda i: vectors(i, 1))

            nest.repeat("0", rows, str(ROWS_AT_ONCE), some_rows)

        if one_pass:  # deviations are first taken from the mean of the first rows
            few = w.get(f"icmp slt i64 {rows}, {ROWS_AT_ONCE}")
            first_rows = w.get(f"select i1 {few}, i64 {rows}, i64 {ROWS_AT_ONCE}")
            share = reciprocal(first_rows)
        if slots:
            self._sweep(clear)
        level(0, {}, "0")


def _kind(reduce: KernelValue) -> VectorReduction | Deviations:
    op = reduce.attrs["op"]
    return Deviations(reduce.dtype) if op == "deviations" else VectorReduction(op, reduce.dtype)


def _loads_below(values: Sequence[KernelValue], stages: Stages, known: dict[KernelValue, str]) -> list[KernelValue]:
    """The loads with one element per column that ``values`` read directly."""
    found = {x for value in values for x in [value, *value.values] if x.op is LOAD and x not in known}
    return [x for x in stages.kernel.values if x in found]
