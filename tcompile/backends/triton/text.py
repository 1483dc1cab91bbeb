"""Triton source text: parameters, indices, values, memory accesses and status bits of all forms of kernels.

Input: a ``Kernel``.
Output: ``Text``, the base class of all forms, and ``TritonFunction``, their result.
Why: the forms differ only in how elements are divided among programs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tcompile.backends.schedule import Access, Kernel, KernelValue, Store
from tcompile.backends.schedule.complex_and_half import PARTS
from tcompile.backends.schedule.kernel_ops import (
    BESIDE,
    CONSTANT,
    GATHER,
    IOTA,
    LOAD,
    NUMBER,
    PAIR,
    PART,
    REDUCE,
    SCATTER,
    SIZE,
)
from tcompile.backends.schedule.maps import Affine
from tcompile.backends.triton import pointwise
from tcompile.backends.triton.configs import USUAL, TilingConfig
from tcompile.backends.triton.names import BOOL, full, literal, type_of
from tcompile.backends.triton.parameters import Parameter, TritonParameters
from tcompile.backends.triton.reductions import Moments, reduction_of
from tcompile.graph import Location, Size, ops
from tcompile.graph.dtypes import DType

_INT64 = np.dtype("int64")
_RESERVED = {"tl", "libdevice", "status", "INDEX", "found", "flags_found", "row_found", "inside", "in_rows", "point",
             "row", "column", "start", "begin", "first", "part", "parts", "piece", "bits", "range", "float", "down",
             "across", "rows", "in_tall", "in_wide", "in_deep_left", "in_deep_right", "left_found", "right_found",
             "left_flags", "right_flags", "program"}  # fmt: skip


# The number of programs: the product of sizes, each divided by a block, rounding up; None: of the parts of a row.
Grid: TypeAlias = tuple[tuple[Size, int] | None, ...]


@dataclass(frozen=True)
class Partial:
    """An array of partial results: its dtype and how many rows it has."""

    dtype: DType
    rows: Size


@dataclass(frozen=True)
class TritonFunction:
    """One function of a kernel."""

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    blocks: tuple[tuple[str, int], ...]
    grid: Grid
    partials: tuple[Partial, ...] = ()
    signals: bool = False
    row: Size = 0  # the length of a row, where there are reduced axes
    config: TilingConfig = USUAL
    per_warp: int = 256  # elements

    @property
    def warps(self) -> int:
        """The number of warps that share a program's elements."""
        blocks = dict(self.blocks)
        elements = math.prod(block for name, block in blocks.items() if name not in ("CHUNK", "DEEP", "PIECES"))
        if "BLOCK" in blocks and isinstance(self.row, int):
            elements *= power_of_two(self.row)  # each point is a row, whose elements are unrolled
        elif "COLUMNS" not in blocks:
            elements *= blocks.get("PIECES", 1)
        elif not isinstance(self.row, int) or self.row > blocks["COLUMNS"]:  # it is processed block by block
            elements //= 2
        most = 2048 // self.per_warp
        return max(1, min(16, int(max(1, min(most, elements // self.per_warp)) * self.config.warps)))

    @property
    def points(self) -> int:
        """The number of points of a program, at least those that have indices at once."""
        blocks = dict(self.blocks)
        if "CHUNK" in blocks:
            del blocks["COLUMNS"]
        return math.prod(block for name, block in blocks.items() if name not in ("DEEP", "PIECES"))


def power_of_two(n: int) -> int:
    """The least power of two that is not less."""
    return 1 << max(0, n - 1).bit_length()


class Text:
    """A function under construction. ``unit`` is the shape of a block of one element."""

    unit = "[1, 1]"

    def __init__(self, kernel: Kernel, signals: bool, taken: frozenset[str], config: TilingConfig = USUAL) -> None:
        self.kernel = kernel
        self.config = config
        self.signals = signals
        self.lines: list[str] = []
        self.indent = 1
        self.parameters = TritonParameters({*_RESERVED, *taken, kernel.name})
        self.registers: dict[KernelValue, str | tuple[str, str]] = {}
        self.indices: dict[int, str | int] = {}  # a number where an element is unrolled
        self.suffix = ""  # of the names for that element
        self.kinds = {v: reduction_of(v, signals) for v in kernel.values if v.op is REDUCE}
        self.accumulators: dict[KernelValue, str] = {}
        self.blocks: list[tuple[str, int]] = []
        self.flagged: str | None = None  # the variable of status bits
        self.any_flags = False
        self.location: Location | None = None

    @property
    def words(self) -> int:
        """The size of the widest value in words of 4 bytes; half of it for a complex one."""
        return max(1, *(PARTS.get(value.dtype, value.dtype).itemsize // 4 for value in self.kernel.values))

    # -- text -----------------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        """One more line."""
        self.lines.append("    " * self.indent + text)

    def function(
        self, name: str, grid: Grid, partials: Sequence[Partial] = (), row: Size = 0, per_warp: int = 256
    ) -> TritonFunction:
        """The finished function."""
        names = [parameter.name for parameter in self.parameters.found.values()]
        signals = self.any_flags
        names += ["status"] if signals else []
        names += [f"{block}: tl.constexpr" for block, _ in self.blocks] + ["INDEX: tl.constexpr"]
        head = [f"def {name}({', '.join(names)}):", f"    # {self.kernel.describe()}"]
        text = "\n".join([*head, *self.lines]) + "\n"
        found = tuple(self.parameters.found.values())
        blocks, arrays = tuple(self.blocks), tuple(partials)
        return TritonFunction(name, text, found, blocks, grid, arrays, signals, row, self.config, per_warp)

    def note(self, location: Location | None) -> None:
        """Emits a comment with the user's line, where it has changed."""
        if location is not None and location != self.location:
            self.location = location
            where = f"{location.file.rpartition('/')[2]}:{location.line}" if location.line else location.file
            self.line(f"# {where}  {location.text.strip()}".rstrip())

    def called(self, value: KernelValue, otherwise: str = "value") -> str:
        """The name of a value, as far as it is free: its node's, or the one given by the pass that made it."""
        name: str = value.attrs.get("called") or (value.node.name if value.node is not None else otherwise)
        return name

    # -- indices --------------------------------------------------------------------------------------------------
    def split(self, name: str, axes: Sequence[int]) -> None:
        """Emits the indices of ``axes`` from a linear index."""
        if len(axes) == 1:
            self.indices[axes[0]] = name
            return
        rest = name
        for axis in reversed(axes[1:]):
            size = self.parameters.size(self.kernel.axes[axis].size)
            index = self.parameters.fresh(f"i{axis}")
            self.line(f"{index} = {rest} % {size}")
            self.indices[axis] = index
            if axis != axes[1]:
                following = self.parameters.fresh(f"{name}_{axis}")
                self.line(f"{following} = {rest} // {size}")
                rest = following
            else:
                index = self.parameters.fresh(f"i{axes[0]}")
                self.line(f"{index} = {rest} // {size}")
                self.indices[axes[0]] = index

    def count(self, size: Size, block: int) -> str:
        """The number of blocks that cover a size."""
        if isinstance(size, int):
            return str(-(-size // block))
        text = self.parameters.size(size)
        return text if block == 1 else f"(({text} + {block - 1}) // {block})"

    def offset(self, access: Access, extra: int = 0) -> str:
        """The offset of an access, in cells."""
        p = self.parameters
        total, texts = p.distance(access.offset, access.buffer)
        total += extra
        terms = list(texts)
        for axis, step in enumerate(access.steps):
            number, factors = p.distance(step, access.buffer)
            index = self.indices.get(axis, 0)
            if isinstance(index, int):
                total += number * index
                factors = factors if index else []
            elif number == 1:
                terms.append(index)
            elif number:
                terms.append(f"{index} * {number}" if number > 0 else f"{index} * ({number})")
            terms += [f"{index} * ({factor})" if "*" in factor else f"{index} * {factor}" for factor in factors]
        if total or not terms:
            terms.append(str(total) if total >= 0 else f"({total})")
        text = " + ".join(terms)
        moves = any(isinstance(self.indices.get(axis), str) for axis in access.axes)
        return text if moves else f"tl.full({self.unit}, {text}, INDEX)"

    def mask(self, axes: frozenset[int]) -> str:
        """The name of the mask for accesses along these axes, "" where they do not move."""
        raise NotImplementedError

    # -- values ---------------------------------------------------------------------------------------------------
    def real(self, value: KernelValue | bool | int | float) -> str | bool | int | float:
        """The register of a value that is not complex, or a number."""
        if not isinstance(value, KernelValue):
            return value
        register = self.registers[value]
        assert isinstance(register, str)
        return register

    def compute(self, value: KernelValue) -> None:
        """Emits a value's lines, unless it has a register."""
        if value in self.registers or value.op in (REDUCE, SCATTER):
            return
        if value.op is PART:
            both = self.registers[value.values[0]]
            assert isinstance(both, tuple)
            self.registers[value] = both[value.attrs["index"]]
            return
        if value.op is BESIDE:  # a GPU has no flags
            self.registers[value] = self.registers[value.values[0]]
            return
        if value.op is PAIR:
            cells = [o if isinstance(o, str) else full(o, PARTS[value.dtype]) for o in map(self.real, value.operands)]
            self.registers[value] = cells[0], cells[1]
            return
        if value.op is not LOAD:
            self.note(value.node.location if value.node is not None else None)
        name = self.parameters.fresh(self.called(value) + self.suffix)
        if value.op is LOAD:
            assert value.access is not None
            if value.dtype in PARTS:
                both = (name, self.parameters.fresh(f"{name}_imag"))
                for extra, cell in enumerate(both):
                    self.line(f"{cell} = {self.load(value.access, extra)}")
                self.registers[value] = both
                return
            text = self.load(value.access)
            self.line(f"{name} = {text} != 0" if value.dtype == BOOL else f"{name} = {text}")
        elif value.op is GATHER:
            self.gather(value, name)
        else:
            written = self.written(value)
            self.line(f"{name} = {written.value}")
            self.flag(written.flags.replace("{r}", name))
        self.registers[value] = name

    def written(self, value: KernelValue) -> pointwise.Written:
        """The text of a value that is computed from registers."""
        if value.op is CONSTANT:
            (number,) = value.operands
            assert not isinstance(number, KernelValue)
            return pointwise.Written(full(number, value.dtype))
        if value.op is SIZE:
            given = self.parameters.value(value.attrs["size"])
            return pointwise.Written(f"tl.broadcast_to({given}.to(tl.int64), [1]).to({type_of(value.dtype)})")
        if value.op is NUMBER:
            bits = self.parameters.number(value.attrs["buffer"])
            wide = f"tl.broadcast_to({bits}.to(tl.int64), [1]).to(tl.float64, bitcast=True)"
            return pointwise.cast(np.dtype("float64"), value.dtype, wide)  # NumPy warns where one overflows
        if value.op is IOTA:
            return pointwise.Written(self.iota(value.attrs["index"], value.dtype))
        operands = [self.real(o) for o in value.operands]
        dtype = value.attrs["operand_dtype"]
        if value.op is ops.WHERE:
            return pointwise.Written(pointwise.where(operands[0], dtype, operands[1], operands[2]))
        if value.op is ops.ASTYPE:
            return pointwise.cast(dtype, value.dtype, operands[0])
        return pointwise.write(value.op, dtype, operands)

    def iota(self, index: Affine, dtype: DType) -> str:
        """An affine index as a number."""
        p = self.parameters
        terms = []
        for axis, multiple in index.terms:
            place = self.indices.get(axis)
            if place is None:
                continue
            factor = str(multiple) if isinstance(multiple, int) else p.value(multiple)
            at = full(place, _INT64) if isinstance(place, int) else f"{place}.to(tl.int64)"
            terms.append(at + ("" if factor == "1" else f" * {factor}"))
        offset = full(index.offset, _INT64) if isinstance(index.offset, int) else p.value(index.offset)
        text = " + ".join([*terms, offset])
        return f"({text}).to(tl.int64).to({type_of(dtype)})"

    def flag(self, flags: str) -> None:
        """Adds status bits to those found here."""
        if flags and self.signals:
            assert self.flagged is not None
            self.any_flags = True
            self.line(f"{self.flagged} |= {flags}")

    # -- reductions -----------------------------------------------------------------------------------------------
    def accumulator(self, reduce: KernelValue) -> str:
        """The name of a reduction's accumulators."""
        if reduce not in self.accumulators:
            self.accumulators[reduce] = self.parameters.fresh(f"{self.called(reduce, 'total')}_so_far")
        return self.accumulators[reduce]

    def clear(self, reduce: KernelValue, shape: str) -> None:
        """Emits its accumulators before the first element."""
        for part in self.kinds[reduce].parts:
            start = f"tl.full({shape}, {literal(part.start, part.dtype)}, {type_of(part.dtype)})"
            self.line(f"{self.accumulator(reduce)}{part.suffix} = {start}")

    def finish(self, reduce: KernelValue, errors: bool) -> None:
        """The result of a reduction, from its accumulators; ``errors``: whether rounding errors have been carried."""
        self.note(reduce.node.location if reduce.node is not None else None)
        name, kind = self.accumulator(reduce), self.kinds[reduce]
        if isinstance(kind, Moments):
            self.registers[reduce] = kind.results(name)
            return
        made = self.parameters.fresh(self.called(reduce))
        self.line(f"{made} = {kind.finish(name, errors)}")
        self.registers[reduce] = made
        self.flag(kind.flags(name, made))

    # -- memory ---------------------------------------------------------------------------------------------------
    def load(self, access: Access, extra: int = 0) -> str:
        """The text of a load."""
        pointer = self.parameters.array(access.buffer)
        mask = self.mask(access.axes)
        ending = f", mask={mask}" if mask else ""
        ending += ', eviction_policy="evict_first"' if self.reads_once(access) else ""
        return f"tl.load({pointer} + ({self.offset(access, extra)}){ending})"

    def reads_once(self, access: Access) -> bool:
        """Whether an access should bypass the GPU's cache."""
        return False

    def gather(self, value: KernelValue, name: str) -> None:
        """Emits a gather. Indices out of range are reported, and not read."""
        access = value.access
        assert access is not None
        mask = self.mask(access.axes.union(*(index.axes for index in value.values)))
        pointer, both = self.places(value, value.operands, access, name, mask)
        self.line(f"{name} = tl.load({pointer}, mask={both}, other=0)")
        if value.dtype == BOOL:
            self.line(f"{name} = {name} != 0")

    def places(
        self,
        value: KernelValue,
        indices: Sequence[KernelValue | bool | int | float],
        access: Access,
        name: str,
        mask: str,
    ) -> tuple[str, str]:
        """The pointers to computed places, and the mask of those that are within the array and ``mask``."""
        p = self.parameters
        valid, moved = [], []
        for number, index in enumerate(indices):
            size = p.size(value.attrs["sizes"][number])
            place = p.fresh(f"{name}_at")
            self.line(f"{place} = {self.real(index)}.to(tl.int64)")
            self.line(f"{place} = tl.where({place} < 0, {place} + {size}, {place})")
            valid.append(f"({place} >= 0) & ({place} < {size})")
            total, texts = p.distance(value.attrs["strides"][number], access.buffer)
            steps = [*([str(total)] if total else []), *texts]
            moved += [f"{place} * ({step})" for step in steps]
        moved = moved or [f"{place} * 0"]  # of an axis of one element: as many pointers as masks
        within = p.fresh(f"{name}_within")
        self.line(f"{within} = {' & '.join(valid)}")
        if self.signals:
            self.flag(f"tl.where({within}, 0, ONLY_NUMPY)")
        else:
            self.any_flags = True  # an index out of range is an error everywhere
            self.line(f"{self.flagged} |= tl.where({within}, 0, ONLY_NUMPY)")
        pointer = " + ".join([p.array(access.buffer), f"({self.offset(access)})", *moved])
        return pointer, f"{within} & {mask}" if mask else within

    def store(self, store: Store) -> None:
        """Writes a value to memory."""
        if store.value.op is SCATTER:
            self.scatter(store)
            return
        pointer, register = self.parameters.array(store.access.buffer), self.registers[store.value]
        mask = self.mask(store.access.axes)
        ending = f", mask={mask}" if mask else ""
        for extra, cell in enumerate(register if isinstance(register, tuple) else (register,)):
            text = f"{cell}.to(tl.int8)" if store.value.dtype == BOOL else cell
            self.line(f"tl.store({pointer} + ({self.offset(store.access, extra)}), {text}{ending})")

    def scatter(self, store: Store) -> None:
        """Emits a scatter."""
        value = store.value
        written, *indices = value.operands
        name = self.parameters.fresh(self.called(value))
        self.note(value.node.location if value.node is not None else None)
        pointer, mask = self.places(value, indices, store.access, name, self.mask(value.axes))
        text = self.real(written)
        text = text if isinstance(text, str) else full(text, value.dtype)
        text = f"{text}.to(tl.int8)" if value.dtype == BOOL else text
        if value.attrs["how"] is not None:  # Triton 3.6's interpreter adds elements after one broadcast number
            text = f"tl.where({mask}, {text}, 0)"
        self.line(f"{pointwise.STORES[value.attrs['how']]}({pointer}, {text}, mask={mask})")

    def report(self, texts: Sequence[str]) -> None:
        """Stores status bits, where some are set."""
        if self.any_flags:
            self.line(f"bits = {' | '.join(f'all_bits({text})' for text in texts)}")
            self.line("tl.atomic_or(status, bits, mask=bits != 0)")


__all__ = ["Grid", "Partial", "Text", "TritonFunction", "power_of_two"]
