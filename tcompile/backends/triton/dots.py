"""Matrix products in kernels: each program computes a tile of the product, and iterates over the summed axis.

Input: a ``Kernel`` whose reductions are the sums that ``products`` has made of products of matrices.
Output: its function.
Why: operations on the factors (the prologue) and on the product (the epilogue) are fused with it.

Every iteration loads a tile of each factor, computes the prologue, and multiplies the tiles by ``tl.dot`` in full
precision; the epilogue follows the last iteration. Programs that run at the same time share rows and columns, so that
these stay in the GPU's cache (P. Tillet et al., "Triton", MAPL 2019).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from tcompile.backends.schedule import Access, Kernel, KernelValue
from tcompile.backends.schedule.complex_and_half import HALF
from tcompile.backends.schedule.kernel import needed
from tcompile.backends.schedule.kernel_ops import LOAD, REDUCE
from tcompile.backends.triton.configs import TilingConfig
from tcompile.backends.triton.names import type_of
from tcompile.backends.triton.text import Text, TritonFunction
from tcompile.graph import Node, ops

TOGETHER = 8  # rows of tiles that are traversed column by column


@dataclass(frozen=True)
class Axes:
    """The axes of a kernel that multiplies: of each factor (``tall`` of the left one), and the summed one."""

    tall: int
    wide: int
    deep: int

    @property
    def own(self) -> frozenset[int]:
        """The axes of a tile."""
        return frozenset((self.tall, self.wide))


def axes_of(kernel: Kernel, terms: Set[Node]) -> Axes | None:
    """The axes of a kernel that multiplies matrices, and computes nothing else for each pair of elements.

    ``terms`` are the ``multiply`` nodes of the products. None where it is no such kernel.
    """
    sums = [value for value in kernel.values if value.op is REDUCE]
    if len(kernel.reduced) != 1 or not sums or not all(s.values[0].node in terms for s in sums):
        return None
    found = {_axes_of_product(kernel, s.values[0]) for s in sums}
    axes = found.pop()
    if found or axes is None or any(axes.deep in store.access.axes for store in kernel.stores):
        return None
    products = {s.values[0] for s in sums}
    for value in kernel.values:
        if value in products or axes.deep not in value.axes:
            continue
        if axes.own <= value.axes or any(o in products for o in value.values):
            return None
    return axes


def _axes_of_product(kernel: Kernel, product: KernelValue) -> Axes | None:
    if product.op is not ops.MULTIPLY or len(product.values) != 2:
        return None
    (deep,), kept = kernel.reduced, set(kernel.kept)
    one, other = (value.axes for value in product.values)
    mine, theirs = (one - other) & kept, (other - one) & kept
    if not mine or not theirs or deep not in one & other:
        return None
    tall, wide = sorted((max(mine), max(theirs)))
    return Axes(tall, wide, deep)


class Dots(Text):
    """A tile per program."""

    def __init__(self, kernel: Kernel, signals: bool, taken: frozenset[str], config: TilingConfig, axes: Axes) -> None:
        super().__init__(kernel, signals, taken, config)
        assert config.tile is not None
        self.axes = axes
        self.sums = [value for value in kernel.values if value.op is REDUCE]
        self.side = ""  # the factor whose tile is being computed, "" outside of the iterations
        sides = zip(("TALL", "WIDE", "DEEP"), (axes.tall, axes.wide, axes.deep), config.tile, strict=True)
        self.blocks = [(name, block) for name, _, block in sides]
        self.lanes = {axes.tall: "in_tall", axes.wide: "in_wide", axes.deep: "in_deep"}
        for (_, block), axis in zip(self.blocks, tuple(self.lanes), strict=True):
            size = kernel.axes[axis].size
            if isinstance(size, int) and size % block == 0:  # blocks are full
                self.lanes[axis] = ""

    def mask(self, axes: frozenset[int]) -> str:
        """The mask by the axes along which an access moves."""
        found = [lanes for axis, lanes in self.lanes.items() if axis in axes and lanes]
        return " & ".join(f"{lanes}_{self.side}" if lanes == "in_deep" else lanes for lanes in found)

    def load(self, access: Access, extra: int = 0) -> str:
        """Emits a load; elements beyond a factor's end are zero."""
        text = super().load(access, extra)
        return text.replace(", mask=", ", other=0, mask=") if self.side else text

    def write(self) -> TritonFunction:
        """The function."""
        kernel, p = self.kernel, self.parameters
        axes, blocks = self.axes, dict(self.blocks)
        sizes = [axis.size for axis in kernel.axes]
        stack = [axis for axis in kernel.kept if axis not in axes.own]
        rectangle = (sizes[axes.tall], blocks["TALL"]), (sizes[axes.wide], blocks["WIDE"])
        grid = (*((sizes[axis], 1) for axis in stack), *rectangle)
        self._place(stack)
        before = self._before()
        started = len(self.lines)
        self.flagged = "found"
        for value in before:
            self.compute(value)
        for value in self.sums:
            name = self._sum(value)
            self.line(f"{name} = tl.full([TALL, WIDE], 0, {type_of(value.dtype)})")
        told = len(self.lines)
        self.line(f"for start in range(0, {p.size(sizes[axes.deep])}, DEEP):")
        self.indent += 1
        self._iteration()
        self.indent -= 1
        self._after()
        if self.any_flags:
            self.lines.insert(told, "    left_flags = tl.full([TALL, DEEP], 0, tl.int32)")
            self.lines.insert(told, "    right_flags = tl.full([DEEP, WIDE], 0, tl.int32)")
            self.lines.insert(started, "    found = tl.full([TALL, WIDE], 0, tl.int32)")
            inside = self.mask(self.axes.own)
            self.report([f"tl.where({inside}, found, 0)" if inside else "found", "left_flags", "right_flags"])
        return self.function(kernel.name, grid)

    def _place(self, stack: list[int]) -> None:
        """Emits the coordinates of this program's tile."""
        p, kernel = self.parameters, self.kernel
        tall, wide = self.axes.tall, self.axes.wide
        tall_size, wide_size = (p.size(kernel.axes[axis].size) for axis in (tall, wide))
        self.line(f"down = ({tall_size} + TALL - 1) // TALL")
        self.line(f"across = ({wide_size} + WIDE - 1) // WIDE")
        self.line("part = tl.program_id(0).to(INDEX)")
        if stack:
            self.line("point = part // (down * across)")
            self.line("part = part % (down * across)")
            self.split("point", stack)
        self.line(f"first = part // ({TOGETHER} * across) * {TOGETHER}")
        self.line(f"rows = tl.minimum(down - first, {TOGETHER})")
        self.line(f"part = part % ({TOGETHER} * across)")
        below, right = p.fresh(f"i{tall}"), p.fresh(f"i{wide}")
        self.line(f"{below} = ((first + part % rows) * TALL + tl.arange(0, TALL)[:, None]).to(INDEX)")
        self.line(f"{right} = (part // rows * WIDE + tl.arange(0, WIDE)[None, :]).to(INDEX)")
        self.indices |= {tall: below, wide: right}
        for axis, index, size in ((tall, below, tall_size), (wide, right, wide_size)):
            if self.lanes[axis]:
                self.line(f"{self.lanes[axis]} = {index} < {size}")

    def _before(self) -> list[KernelValue]:
        """The loop-invariant values of the iterations, in order."""
        found = needed(self.kernel.values, (s.values[0] for s in self.sums))
        return [value for value in found if self.axes.deep not in value.axes]

    def _iteration(self) -> None:
        """Emits a tile of each factor, and their product."""
        kernel, p, deep = self.kernel, self.parameters, self.axes.deep
        outside, size = dict(self.registers), p.size(kernel.axes[deep].size)
        pieces: dict[str, dict[KernelValue, str | tuple[str, str]]] = {}
        for side, own, spread in (("left", self.axes.tall, "[None, :]"), ("right", self.axes.wide, "[:, None]")):
            self.side, self.registers, self.flagged = side, dict(outside), f"{side}_found"
            index = p.fresh(f"i{deep}_{side}")
            self.line(f"{index} = (start + tl.arange(0, DEEP){spread}).to(INDEX)")
            self.indices[deep] = index
            if self.lanes[deep]:
                self.line(f"in_deep_{side} = {index} < {size}")
            at, before, self.any_flags = len(self.lines), self.any_flags, False
            for value in self._of_factors(own):
                self.compute(value)
            if self.any_flags:
                shape = "[TALL, DEEP]" if side == "left" else "[DEEP, WIDE]"
                self.lines.insert(at, "    " * self.indent + f"{side}_found = tl.full({shape}, 0, tl.int32)")
                inside = self.mask(frozenset((own, deep)))
                found = f"tl.where({inside}, {side}_found, 0)" if inside else f"{side}_found"
                self.line(f"{side}_flags |= {found}")
            self.any_flags |= before
            pieces[side] = self.registers
        for value in self.sums:
            self.note(value.node.location if value.node is not None else None)
            name, (left, right) = self._sum(value), self._factors(value)
            texts = [self._piece(left, "left", pieces), self._piece(right, "right", pieces)]
            exact = f'input_precision="ieee", out_dtype={type_of(value.dtype)}'
            self.line(f"{name} = tl.dot({', '.join(texts)}, {name}, {exact})")
        self.side, self.registers = "", outside

    def _factors(self, value: KernelValue) -> tuple[KernelValue, KernelValue]:
        """The factors of a sum's terms, the left one first; halves unconverted, since products of two are exact."""
        one, other = (
            factor.values[0] if factor.op is ops.ASTYPE and factor.attrs["operand_dtype"] == HALF else factor
            for factor in value.values[0].values
        )
        return (one, other) if self.axes.tall in one.axes else (other, one)

    def _of_factors(self, own: int) -> list[KernelValue]:
        """The values of the factors along an axis that are computed in each iteration, in order."""
        factors = (factor for s in self.sums for factor in self._factors(s) if own in factor.axes)
        return [value for value in needed(self.kernel.values, factors) if self.axes.deep in value.axes]

    def _piece(self, value: KernelValue, side: str, pieces: dict[str, dict[KernelValue, str | tuple[str, str]]]) -> str:
        """The text of a factor's tile, with zeros beyond its end."""
        register = pieces[side][value]
        assert isinstance(register, str)
        self.side = side
        own = self.axes.tall if side == "left" else self.axes.wide
        inside = self.mask(frozenset((own, self.axes.deep)))
        return f"tl.where({inside}, {register}, 0)" if inside and value.op is not LOAD else register

    def _after(self) -> None:
        """Emits the epilogue, and the stores."""
        self.flagged = "found"
        for value in self.kernel.values:
            if value.op is REDUCE:
                name = self._sum(value)
                self.registers[value] = name
                self.flag(f"flags_finite({name})")  # NumPy handles the others
            elif self.axes.deep not in value.axes:
                self.compute(value)
        for store in self.kernel.stores:
            self.store(store)

    def _sum(self, value: KernelValue) -> str:
        name = value.node.name if value.node is not None else "product"
        found = self.registers.get(value)
        if found is None:
            found = self.registers[value] = self.parameters.fresh(name)
        assert isinstance(found, str)
        return found


__all__ = ["Axes", "Dots", "axes_of"]
