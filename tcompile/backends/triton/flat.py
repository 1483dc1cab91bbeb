"""Kernels without reduced axes: each program takes a block of points.

Enters: a ``Kernel`` of form ``flat`` or ``tiled``. Leaves: its function. A tiled one's programs each take a rectangle
along the two innermost axes, so that loads along either lie side by side.
"""

from __future__ import annotations

from tcompile.backends.triton.text import Function, Grid, Text, power_of_two
from tcompile.graph.sizes import product


class Flat(Text):
    """No reduced axes."""

    def write(self) -> Function:
        """The function."""
        kernel, p = self.kernel, self.parameters
        tiled = kernel.form == "tiled"
        self.unit = "[1, 1]" if tiled else "[1]"
        side = self.config.side
        sizes = [axis.size for axis in kernel.axes]
        if tiled:
            *outer, tall, wide = range(len(kernel.axes))
            self.blocks = [("TALL", side), ("WIDE", side)]
            across, down = (f"(({p.size(sizes[a])} + {side - 1}) // {side})" for a in (wide, tall))
            self.line("part = tl.program_id(0).to(INDEX)")
            right, below = p.fresh(f"i{wide}"), p.fresh(f"i{tall}")
            self.line(f"{right} = (part % {across}) * WIDE + tl.arange(0, WIDE)[None, :]")
            self.line(f"part = part // {across}")
            self.line(f"{below} = (part % {down}) * TALL + tl.arange(0, TALL)[:, None]")
            self.indices |= {wide: right, tall: below}
            if outer:
                self.line(f"point = part // {down}")
                self.split("point", outer)
            self.line(f"inside = ({below} < {p.size(sizes[tall])}) & ({right} < {p.size(sizes[wide])})")
            shape = "[TALL, WIDE]"
            grid = Grid((*((n, 1) for n in sizes[:-2]), (sizes[tall], side), (sizes[wide], side)))
        else:
            total = product(sizes)
            points = self.config.points
            block = min(points, power_of_two(total)) if isinstance(total, int) else points
            self.blocks = [("BLOCK", block)]
            self.line("point = tl.program_id(0).to(INDEX) * BLOCK + tl.arange(0, BLOCK)")
            self.line(f"inside = point < {p.size(total)}")
            self.split("point", range(len(sizes)))
            shape, grid = "[BLOCK]", Grid(((total, block),))
        self.flagged, started = "found", len(self.lines)
        for value in kernel.values:
            self.compute(value)
        for store in kernel.stores:
            self.store(store)
        if self.any_flags:
            self.lines.insert(started, f"    found = tl.full({shape}, 0, tl.int32)")
            self.tell(["tl.where(inside, found, 0)"])
        return self.function(kernel.name, grid)

    def mask(self, axes: frozenset[int]) -> str:
        """Everything that moves is a block of the same shape."""
        return "inside" if axes else ""


__all__ = ["Flat"]
