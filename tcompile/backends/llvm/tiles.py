"""Pointwise kernels that read an array across the grain: tiles that are transposed in registers.

Enters: a kernel of form ``tiled``: its innermost axis is walked in vectors, and some loads lie contiguous along the
axis before it. Leaves: its function. A strip of rows is walked in square tiles: of each such load a tile is read along
the way it lies, transposed, and put in a buffer that stays in the first cache. So a cache line is read once, all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcompile.backends.llvm.elements import Place
from tcompile.backends.llvm.interleave import transposed
from tcompile.backends.llvm.nest import Function, Nest
from tcompile.backends.llvm.text import memory_type
from tcompile.backends.schedule import Access, Value
from tcompile.backends.schedule.lower import lies_across
from tcompile.backends.schedule.stages import Stages

AHEAD = 256  # bytes along each of a strip's rows, which are more than a processor keeps track of
NEAR = 1 << 15  # bytes of an array that are near enough without having been called for


class TiledNest(Nest):
    """The innermost axis is walked in vectors, and the one before it in as many rows as a vector has lanes."""

    def tiled(self) -> Function:
        """The function."""
        kernel, w, axes = self.kernel, self.w, self.kernel.axes
        self.across, self.last = len(axes) - 2, len(axes) - 1
        self.loads = [x for x in kernel.values if lies_across(x, self.across, self.last)]
        self.stages = Stages(kernel, frozenset(range(self.last)))
        self.wanted = self.stages.needed(0, {})
        height = max(self.lanes, self.variant.strip_bytes // min(x.dtype.itemsize for x in self.loads))
        self.begin()
        self.call_ahead(self.last, lambda access: str(AHEAD), NEAR)
        self.buffers = [w.slot(self._type(x), str(self.lanes)) for x in self.loads]
        rows = self.size(self.across)
        strips = w.at_entry(f"sdiv i64 {w.at_entry(f'add i64 {rows}, {height - 1}')}, {height}")

        def strip(number: str) -> None:
            outer = w.get(f"sdiv i64 {number}, {strips}")
            start = w.get(f"mul i64 {w.get(f'srem i64 {number}, {strips}')}, {height}")
            stop = self.least(w.get(f"add i64 {start}, {height}"), rows)
            self._strip(self.split(outer, range(self.across)), start, stop)

        self.repeat("%begin", "%end", "1", strip)
        return self.finish(kernel.name, tuple(axis.size for axis in axes[: self.last]), height)

    def _type(self, load: Value) -> str:
        return f"<{self.lanes} x {memory_type(load.dtype)}>"

    def _strip(self, counters: dict[int, str], start: str, stop: str) -> None:
        """The rows [start, stop), tile by tile."""
        address = self.addresses(counters)
        width, lanes = self.size(self.last), str(self.lanes)

        def tiles(i: str) -> None:
            self.repeat(start, stop, lanes, lambda row: self._tile(address, counters, row, stop, i))

        self.repeat("0", width, lanes, tiles)

    def _tile(self, address: Callable[[Access], str], counters: dict[int, str], row: str, stop: str, i: str) -> None:
        """The rows from ``row`` on, as many as there are lanes, and no further than ``stop``; one vector of each."""
        w = self.w
        whole = all(self.whole(self.kernel.axes[axis].size) for axis in (self.across, self.last))
        rows = str(self.lanes) if whole else self.least(w.get(f"sub i64 {stop}, {row}"), str(self.lanes))
        rest = w.get(f"sub i64 {self.size(self.last)}, {i}")
        if whole:
            self._fill(address, row, i)
        else:
            self._fill_some(address, row, rows, i, rest)

        def one(r: str) -> None:
            inner = {self.across: w.get(f"add i64 {row}, {r}")}
            base = self.reached(address, inner)
            at = {**counters, **inner}
            known: dict[Value, str] = {}
            for load, buffer in zip(self.loads, self.buffers, strict=True):
                place = w.get(f"getelementptr {self._type(load)}, ptr {buffer}, i64 {r}")
                known[load] = w.get(f"load {self._type(load)}, ptr {place}, align 64")
            known = {load: self.elements.truth(load.dtype, register) for load, register in known.items()}
            self.row_values(self.stages.row_values(0), Place(base, at), known)
            self.prepare_nontemporal(base)
            place_of_row = Place(base, at, self.last, i, rest, self.whole(self.kernel.axes[self.last].size))
            self.elements.write(place_of_row, self.wanted, known, self.stages.stores(0))

        self.repeat("0", rows, "1", one)

    def _fill(self, address: Callable[[Access], str], row: str, i: str) -> None:
        """Puts a whole tile of each load into its buffer, a vector of each row."""
        w = self.w
        for load, buffer in zip(self.loads, self.buffers, strict=True):
            lines = self._lines(address, load, row, i)
            for r, register in enumerate(transposed(self.v, memory_type(load.dtype), lines)):
                place = w.get(f"getelementptr {self._type(load)}, ptr {buffer}, i64 {r}")
                w.do(f"store {self._type(load)} {register}, ptr {place}, align 64")

    def _fill_some(self, address: Callable[[Access], str], row: str, rows: str, i: str, rest: str) -> None:
        """The same for a tile that may have fewer rows, or rows of fewer elements."""
        w, lanes = self.w, self.lanes
        full, edge, on = w.label("full"), w.label("edge"), w.label("on")
        high, wide = w.get(f"icmp sge i64 {rows}, {lanes}"), w.get(f"icmp sge i64 {rest}, {lanes}")
        w.branch(w.get(f"and i1 {high}, {wide}"), full, edge)
        w.place(full)
        self._fill(address, row, i)
        w.jump(on)
        w.place(edge)
        offsets = ", ".join(f"i64 {lane}" for lane in range(lanes))
        inside = w.get(f"icmp slt <{lanes} x i64> <{offsets}>, {self.v.spread('i64', rest)}")
        clamped = w.get(f"select <{lanes} x i1> {inside}, <{lanes} x i64> <{offsets}>, <{lanes} x i64> zeroinitializer")
        self.repeat("0", rows, "1", lambda r: self._gathered(address, w.get(f"add i64 {row}, {r}"), r, i, clamped))
        w.jump(on)
        w.place(on)

    def _lines(self, address: Callable[[Access], str], load: Value, row: str, i: str) -> Sequence[str]:
        """What lies along the rows' axis, for each place along the innermost one."""
        w, access = self.w, load.access
        assert access is not None
        found = []
        start = self.address(address(access), access, {self.across: row, self.last: i})
        step = self.parameters.bytes(w, access.steps[self.last], access.buffer)
        following = w.get(f"mul i64 {step}, {self.lanes}")  # from this tile's line to the next tile's
        for lane in range(self.lanes):
            at = w.get(f"getelementptr i8, ptr {start}, i64 {w.get(f'mul i64 {step}, {lane}')}")
            next_line = w.get(f"getelementptr i8, ptr {at}, i64 {following}")
            self.elements.prefetch(next_line, load.dtype.itemsize * self.lanes)
            found.append(w.get(f"load {self._type(load)}, ptr {at}, align 1"))
        return found

    def _gathered(self, address: Callable[[Access], str], row: str, r: str, i: str, offsets: str) -> None:
        w = self.w
        for load, buffer in zip(self.loads, self.buffers, strict=True):
            access = load.access
            assert access is not None
            start = self.address(address(access), access, {self.across: row, self.last: i})
            step = self.parameters.bytes(w, access.steps[self.last], access.buffer)
            register = self.elements.gather(load.dtype, start, step, offsets)
            place = w.get(f"getelementptr {self._type(load)}, ptr {buffer}, i64 {r}")
            w.do(f"store {self._type(load)} {register}, ptr {place}, align 64")
