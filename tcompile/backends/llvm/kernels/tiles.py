"""Tiled pointwise kernels: transposed operands are read in square tiles, which are transposed in registers.

Input: a kernel of form ``tiled``: its innermost axis is vectorised, and some loads are contiguous along the axis before
it.
Output: its function.
Why: every array is read and written in runs of some cache lines, at memory's full speed.

A strip of rows is computed block by block. For each transposed load, a block is read contiguously, transposed tile by
tile in registers, and stored in a buffer that fits a cache; then the block's rows are computed. Prefetches cover the
next rows' runs and the cache line in which each ends: the hardware prefetches neither.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tcompile.backends.llvm.kernels.elements import VectorPosition
from tcompile.backends.llvm.kernels.nest import CACHE_LINE, KernelFunction, Nest
from tcompile.backends.llvm.vector.interleave import transposed
from tcompile.backends.llvm.vector.text import memory_type
from tcompile.backends.schedule import Access, KernelValue
from tcompile.backends.schedule.lower import lies_across
from tcompile.backends.schedule.stages import Stages
from tcompile.graph.sizes import hint

STRETCH = 1 << 9  # bytes of a row in a block: as many are read and written one after another
NEAR_ROWS = 16  # in a strip of arrays that stay in caches: buffers then fit the L1 cache
FEW = 8  # transposed operands, with which blocks have as many columns as a run
ITEMS = 64  # for threads to share: where there are fewer strips, each is cut up
ROWS_AHEAD = 6  # prefetch distance in rows
NEAR = 1 << 22  # bytes of an array that stay in caches

Bounds = tuple[str, str]  # where something begins and ends


class TiledNest(Nest):
    """A nest that vectorises the innermost axis, and walks the one before it in strips of rows."""

    transposes = True

    def tiled(self) -> KernelFunction:
        """The function."""
        kernel, w, lanes, axes = self.kernel, self.w, self.lanes, self.kernel.axes
        self.across, self.last = len(axes) - 2, len(axes) - 1
        self.loads = [x for x in kernel.values if lies_across(x, self.across, self.last)]
        self.stages = Stages(kernel, frozenset(range(self.last)))
        self.wanted = self.stages.needed(0, {})
        height, pieces = self._shape()
        self.begin()
        self.prefetch_ahead(self.last, near=NEAR)
        room = (height + lanes) * self.stride
        self.buffers = [w.slot(memory_type(x.dtype), str(room)) for x in self.loads]
        rows, width = self.size(self.across), self.size(self.last)
        strips = w.at_entry(f"sdiv i64 {w.at_entry(f'add i64 {rows}, {height - 1}')}, {height}")
        blocks = self.breadth * pieces
        piece = w.at_entry(f"sdiv i64 {w.at_entry(f'add i64 {width}, {blocks - 1}')}, {blocks}")
        piece = w.at_entry(f"mul i64 {piece}, {self.breadth}")

        def item(number: str) -> None:
            strip, which = w.get(f"sdiv i64 {number}, {pieces}"), w.get(f"srem i64 {number}, {pieces}")
            outer, place = w.get(f"sdiv i64 {strip}, {strips}"), w.get(f"srem i64 {strip}, {strips}")
            counters = self.split(outer, range(self.across))
            address = self.addresses(counters)
            # Strips begin where vectors of transposed operands are aligned: the first is lower for it, the last is
            # higher.
            first = w.get(f"sub i64 {w.get(f'mul i64 {place}, {height}')}, {self._past_a_line(address)}")
            after = w.get(f"add i64 {first}, {height}")
            is_last = w.get(f"icmp eq i64 {w.get(f'add i64 {place}, 1')}, {strips}")
            stop = w.get(f"select i1 {is_last}, i64 {rows}, i64 {after}")
            begin = w.get(f"mul i64 {which}, {piece}")
            end = self.least(w.get(f"add i64 {begin}, {piece}"), width)
            self._strip(address, counters, (self.most(first, "0"), stop), (begin, end))

        self.repeat("%begin", "%end", "1", item)
        return self.finish(kernel.name, (pieces, *(axis.size for axis in axes[: self.last])), height)

    def _shape(self) -> tuple[int, int]:
        """The number of rows of a strip, its number of pieces, and the number of columns of a block."""
        lanes, count, sizes = self.lanes, len(self.loads), [hint(axis.size) for axis in self.kernel.axes]
        itemsize = max(x.dtype.itemsize for x in self.loads)
        is_near = itemsize * math.prod(sizes) <= NEAR
        rows = min(self.variant.strip_rows, NEAR_ROWS) if is_near else self.variant.strip_rows
        height = max(lanes, rows // count // lanes * lanes)
        self.breadth = max(lanes, STRETCH // itemsize // -(-count // FEW) // lanes * lanes)
        self.stride = self.breadth + lanes  # of a buffer: a power of two would map all rows to few cache sets
        *outer, across, last = sizes
        strips = max(1, math.prod(outer) * -(-across // height))
        return height, max(1, min(-(-ITEMS // strips), -(-last // self.breadth)))

    def _past_a_line(self, address: Callable[[Access], str]) -> str:
        """The number of elements of a transposed operand before its first one in a cache line, or half a vector."""
        w, load = self.w, self.loads[0]
        assert load.access is not None
        whole = min(CACHE_LINE, load.dtype.itemsize * self.lanes)
        low = w.get(f"and i64 {w.get(f'ptrtoint ptr {address(load.access)} to i64')}, {whole - 1}")
        return w.get(f"udiv i64 {low}, {load.dtype.itemsize}")

    def _strip(self, address: Callable[[Access], str], counters: dict[int, str], rows: Bounds, piece: Bounds) -> None:
        """Emits a piece of some rows, block by block."""
        w = self.w

        def block(start: str) -> None:
            columns = start, self.least(w.get(f"add i64 {start}, {self.breadth}"), piece[1])
            # Tiles that would extend beyond the end begin earlier: the buffer then holds some elements twice, or before
            # its start.
            origins = [self._within(*bounds) for bounds in (rows, columns)]
            buffers = [self._origin(*one, origins) for one in zip(self.loads, self.buffers, strict=True)]
            self._fill(address, rows, columns, buffers)
            if not self.whole(self.kernel.axes[self.last].size):
                self._repeat_last(rows, columns[1], buffers)
            self.repeat(*rows, "1", lambda row: self._row(address, counters, row, rows, columns, buffers))

        self.repeat(*piece, str(self.breadth), block)

    def _within(self, i: str, stop: str) -> str:
        """The start of a tile that ends at ``stop`` at the latest, where possible."""
        return self.most(self.least(i, self.w.get(f"sub i64 {stop}, {self.lanes}")), "0")

    def _origin(self, load: KernelValue, buffer: str, origins: Sequence[str]) -> str:
        """The address of row 0 and column 0 in a buffer that begins with other ones."""
        return self._place(load, buffer, *(self.w.get(f"sub i64 0, {origin}") for origin in origins))

    def _place(self, load: KernelValue, buffer: str, row: str, column: str) -> str:
        """The address of an element in a buffer."""
        w = self.w
        at = w.get(f"add i64 {w.get(f'mul i64 {row}, {self.stride}')}, {column}")
        return w.get(f"getelementptr {memory_type(load.dtype)}, ptr {buffer}, i64 {at}")

    def _vector(self, load: KernelValue) -> str:
        return f"<{self.lanes} x {memory_type(load.dtype)}>"

    # -- buffers --------------------------------------------------------------------------------------------------
    def _fill(self, address: Callable[[Access], str], rows: Bounds, columns: Bounds, buffers: Sequence[str]) -> None:
        """Loads a block of each transposed operand into its buffer."""
        w, sizes = self.w, [self.kernel.axes[axis].size for axis in (self.across, self.last)]
        if all(isinstance(size, int) and size >= self.lanes for size in sizes):
            self._fill_by_tiles(address, rows, columns, buffers)
            return
        high, wide = (w.get(f"icmp sge i64 {self.size(axis)}, {self.lanes}") for axis in (self.across, self.last))
        tiles, narrow, on = w.label("tiles"), w.label("narrow"), w.label("on")
        w.branch(w.get(f"and i1 {high}, {wide}"), tiles, narrow)
        w.place(tiles)
        self._fill_by_tiles(address, rows, columns, buffers)
        w.jump(on)
        w.place(narrow)
        self.repeat(*rows, "1", lambda row: self._gather(address, row, columns, buffers))
        w.jump(on)
        w.place(on)

    def _fill_by_tiles(
        self, address: Callable[[Access], str], rows: Bounds, columns: Bounds, buffers: Sequence[str]
    ) -> None:
        lanes = str(self.lanes)

        def tiles(column: str) -> None:
            column = self._within(column, self.size(self.last))
            self.repeat(*rows, lanes, lambda row: self._tile(address, self._within(row, rows[1]), column, buffers))

        self.repeat(*columns, lanes, tiles)

    def _tile(self, address: Callable[[Access], str], row: str, column: str, buffers: Sequence[str]) -> None:
        """Emits a tile of as many rows and columns as there are lanes."""
        w = self.w
        for load, buffer in zip(self.loads, buffers, strict=True):
            access, lines = load.access, []
            assert access is not None
            start = self.address(address(access), access, {self.across: row, self.last: column})
            step = self.parameters.bytes(w, access.steps[self.last], access.buffer)
            for lane in range(self.lanes):
                at = w.get(f"getelementptr i8, ptr {start}, i64 {w.at_entry(f'mul i64 {step}, {lane}')}")
                lines.append(w.get(f"load {self._vector(load)}, ptr {at}, align 1"))
            to = self._place(load, buffer, row, column)
            for r, register in enumerate(transposed(self.v, memory_type(load.dtype), lines)):
                at = w.displaced(to, r * self.stride * load.dtype.itemsize)
                w.do(f"store {self._vector(load)} {register}, ptr {at}, align {load.dtype.itemsize}")

    def _gather(self, address: Callable[[Access], str], row: str, columns: Bounds, buffers: Sequence[str]) -> None:
        """Gathers one row of arrays that have too few rows or columns for a tile; beyond its end, a vector's first
        element.
        """
        w, v, lanes = self.w, self.v, self.lanes
        offsets = "<" + ", ".join(f"i64 {lane}" for lane in range(lanes)) + ">"

        def vector(i: str) -> None:
            rest = v.spread("i64", w.get(f"sub i64 {columns[1]}, {i}"))
            inside = w.get(f"icmp slt <{lanes} x i64> {offsets}, {rest}")
            near = w.get(f"select <{lanes} x i1> {inside}, <{lanes} x i64> {offsets}, <{lanes} x i64> zeroinitializer")
            for load, buffer in zip(self.loads, buffers, strict=True):
                access = load.access
                assert access is not None
                start = self.address(address(access), access, {self.across: row, self.last: i})
                step = self.parameters.bytes(w, access.steps[self.last], access.buffer)
                register = self.elements.gather(load.dtype, start, step, near)
                to = self._place(load, buffer, row, i)
                w.do(f"store {self._vector(load)} {register}, ptr {to}, align {load.dtype.itemsize}")

        self.repeat(*columns, str(lanes), vector)

    def _repeat_last(self, rows: Bounds, stop: str, buffers: Sequence[str]) -> None:
        """Repeats the last element after the end of each row: a vector that extends beyond it raises no flag of its
        own.
        """
        w, v = self.w, self.v
        ends = w.get(f"add i64 {stop}, -1")

        def row(number: str) -> None:
            for load, buffer in zip(self.loads, buffers, strict=True):
                cell, at = memory_type(load.dtype), self._place(load, buffer, number, ends)
                register = v.spread(cell, w.get(f"load {cell}, ptr {at}, align {load.dtype.itemsize}"))
                w.do(f"store {self._vector(load)} {register}, ptr {at}, align {load.dtype.itemsize}")

        self.repeat(*rows, "1", row)

    # -- rows -----------------------------------------------------------------------------------------------------
    def _row(
        self,
        outer: Callable[[Access], str],
        counters: dict[int, str],
        row: str,
        rows: Bounds,
        columns: Bounds,
        buffers: Sequence[str],
    ) -> None:
        """Emits one row of a block, with the elements that the buffers hold of it."""
        w, at = self.w, {**counters, self.across: row}
        address = self.reached(outer, {self.across: row})
        of_row: dict[KernelValue, str] = {}
        self.row_values(self.stages.row_values(0), VectorPosition(address, at), of_row)
        self.prepare_nontemporal(address)
        self._prefetch_ahead(address, row, rows, columns[1])
        whole = self.whole(self.kernel.axes[self.last].size)
        starts = [self._place(load, buffer, row, "0") for load, buffer in zip(self.loads, buffers, strict=True)]

        def vector(i: str, rest: str, now: list[str]) -> list[str]:
            known = dict(of_row)
            for load, start in zip(self.loads, starts, strict=True):
                place = w.reach(start, memory_type(load.dtype), i)
                found = w.get(f"load {self._vector(load)}, ptr {place}, align {load.dtype.itemsize}")
                known[load] = self.elements.truth(load.dtype, found)
            self.elements.write(
                VectorPosition(address, at, self.last, i, rest, whole), self.wanted, known, self.stages.stores(0)
            )
            return now

        self.vectors(*columns, "0", [], vector)

    def _prefetch_ahead(self, address: Callable[[Access], str], row: str, rows: Bounds, stop: str) -> None:
        """Sets the distance to a block's next rows for prefetches; at its last rows, to the first ones of the next
        block.

        Vectors prefetch the line in which they begin; the line in which the row's last one ends is prefetched here.
        """
        w = self.w
        further = w.get(f"add i64 {row}, {ROWS_AHEAD}")
        inside = w.get(f"icmp slt i64 {further}, {rows[1]}")
        from_next = w.get(f"sub i64 {w.get(f'add i64 {rows[0]}, {ROWS_AHEAD}')}, {rows[1]}")
        count = w.get(f"select i1 {inside}, i64 {ROWS_AHEAD}, i64 {from_next}")
        aside = w.get(f"select i1 {inside}, i64 0, i64 {self.breadth}")
        for load in self.elements.ahead:
            access = load.access
            assert access is not None
            step = self.parameters.bytes(w, access.steps[self.across], access.buffer)
            distance = w.get(f"mul i64 {count}, {step}")
            distance = w.get(f"add i64 {distance}, {w.get(f'mul i64 {aside}, {load.dtype.itemsize}')}")
            self.elements.ahead[load] = distance
            end = self.address(address(access), access, {self.last: stop})
            self.elements.prefetch(w.get(f"getelementptr i8, ptr {end}, i64 {w.get(f'add i64 {distance}, -1')}"), 1)
