"""Kernels without reduced axes: each program takes a block of points.

Input: a ``Kernel`` of form ``flat`` or ``tiled``.
Output: its function.
Why: a tiled one's programs each take a rectangle along the two innermost axes, so that loads along either are
coalesced.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcompile.backends.triton.pointwise import FUNCTIONS, OF_ANGLES
from tcompile.backends.triton.text import Grid, Text, TritonFunction, power_of_two
from tcompile.graph.sizes import product


class Flat(Text):
    """A kernel without reduced axes. ``shape`` is that of a block of points; ``sides`` are the masks along those of a
    rectangle.
    """

    shape = "[BLOCK]"
    unit = "[1]"

    def write(self) -> TritonFunction:
        """The function."""
        kernel, axes = self.kernel, range(len(self.kernel.axes))
        if kernel.form == "tiled":
            grid, per_warp = self.place_tile(axes, self.config.side, self.config.side), 256
        else:
            grid, per_warp = self.place_points(axes, self.config.points // self.words), self.per_warp
        self.flagged, started = "found", len(self.lines)
        for value in kernel.values:
            self.compute(value)
        for store in kernel.stores:
            self.store(store)
        self.report_found(started)
        return self.function(kernel.name, grid, per_warp=per_warp)

    @property
    def per_warp(self) -> int:
        """The number of points of a warp: two loads of 16 bytes for each thread, or, of numbers of 8 bytes, one.

        Two of these as well where functions are computed, which a thread interleaves. Trigonometric functions take so
        many registers that few threads would fit.
        """
        if self.words == 1:
            return 256
        functions = FUNCTIONS.intersection(value.op for value in self.kernel.values)
        return 128 if functions and functions.isdisjoint(OF_ANGLES) else 64

    def place_points(self, axes: Sequence[int], most: int) -> Grid:
        """The points of this program, ``most`` at most."""
        self.placed, self.sides = frozenset(axes), dict[int, str]()
        total = product(self.kernel.axes[axis].size for axis in axes)
        block = min(most, power_of_two(total)) if isinstance(total, int) else most
        self.blocks.append(("BLOCK", block))
        self.line("point = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)")
        self.line(f"inside = point < {self.parameters.size(total)}")
        self.split("point", axes)
        return ((total, block),)

    def place_tile(self, axes: Sequence[int], high: int, broad: int) -> Grid:
        """The rectangle of this program, along the last two of ``axes``."""
        p, (*outer, tall, wide) = self.parameters, axes
        self.placed, self.sides = frozenset(axes), {tall: "in_tall", wide: "in_wide"}
        self.shape, self.unit = "[TALL, WIDE]", "[1, 1]"
        self.blocks += [("TALL", high), ("WIDE", broad)]
        sizes = {axis: self.kernel.axes[axis].size for axis in axes}
        across, down = self.count(sizes[wide], broad), self.count(sizes[tall], high)
        self.line("part = tl.program_id(0).to(INDEX)")
        right, below = p.fresh(f"i{wide}"), p.fresh(f"i{tall}")
        self.line(f"{right} = (part % {across}) * WIDE + tl.arange(0, WIDE)[None, :]")
        self.line(f"part = part // {across}")
        self.line(f"{below} = (part % {down}) * TALL + tl.arange(0, TALL)[:, None]")
        self.indices |= {wide: right, tall: below}
        if outer:
            self.line(f"point = tl.full([1, 1], 0, INDEX) + part // {down}")
            self.split("point", outer)
        self.line(f"in_tall = {below} < {p.size(sizes[tall])}")
        self.line(f"in_wide = {right} < {p.size(sizes[wide])}")
        self.line("inside = in_tall & in_wide")
        return *((sizes[axis], 1) for axis in outer), (sizes[tall], high), (sizes[wide], broad)

    def report_found(self, started: int) -> None:
        """Emits the report of flags found after line ``started``."""
        if self.any_flags:
            self.lines.insert(started, f"    found = tl.full({self.shape}, 0, tl.int32)")
            self.report(["tl.where(inside, found, 0)"])

    def mask(self, axes: frozenset[int]) -> str:
        """The mask of an access: along one side of a rectangle, that side's."""
        if not self.sides:
            return "inside" if axes & self.placed else ""
        moved = [name for axis, name in self.sides.items() if axis in axes]
        return "inside" if len(moved) == 2 else "".join(moved)


__all__ = ["Flat"]
