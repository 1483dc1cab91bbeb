"""Fused kernels, before any code generator has seen them.

Input: nothing; these are the records that ``lower`` fills in.
Output: ``Kernel``, a loop nest over an iteration space, with values in single-assignment form that are loaded,
computed, reduced and stored at affine places.
Why: all code generators take the same kernels.

The iteration space is a list of axes, outermost first: first the kept ones, then the reduced ones. A value whose
``axes`` hold no reduced axis is one number per row; other values are one number per element of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, Literal, TypeAlias

import numpy as np

from tcompile.backends.schedule.kernel_ops import NUMBER, Operation
from tcompile.graph import Node, Size, SymInt, TensorType
from tcompile.graph.dtypes import DType
from tcompile.graph.sizes import hint, same
from tcompile.records import dataclass

# A distance in memory: the sum of multiples of strides. ``(3, 1)`` is three times the stride of the buffer's axis 1,
# known at run time only; ``(3, None)`` is three elements.
Distance: TypeAlias = tuple[tuple[Size, int | None], ...]
Form: TypeAlias = Literal[
    "flat",
    "tiled",
    "rows",
    "small_rows",
    "columns",
    "blocks",
    "dots",
    "scan_rows",
    "scan_columns",
    "sort",
    "scatter",
    "routine",
]


@dataclass(frozen=True)
class Axis:
    """One axis of an iteration space."""

    size: Size
    reduced: bool = False


@dataclass(eq=False)
class Buffer:
    """An array at run time: a graph input, the result of a step, or a view of either."""

    node: Node
    name: str

    @property
    def type(self) -> TensorType:
        """The array's type."""
        return self.node.tensor


@dataclass(frozen=True)
class Access:
    """An affine access of ``buffer``: ``offset`` plus, for each axis of the iteration space, index times ``steps``."""

    buffer: Buffer
    steps: tuple[Distance, ...]
    offset: Distance = ()

    @property
    def axes(self) -> frozenset[int]:
        """The axes along which the access has a non-zero step."""
        return frozenset(i for i, step in enumerate(self.steps) if step)


@dataclass(eq=False)
class KernelValue:
    """One value of a kernel.

    ``op`` is a pointwise row of the op table (of ``finite``, the operand is left to NumPy where it is infinite or a
    NaN), or one of ``kernel_ops``: ``load`` (from ``access``), ``gather`` (from ``access`` displaced by the operands,
    each an index along an axis of the buffer: ``attrs["strides"]`` are the distances, ``attrs["sizes"]`` how many there
    are; with ``attrs["rolled"]`` the indices are counted, and in range), ``scatter`` (its first operand, which is only
    stored, at a place displaced by the others likewise; ``attrs["how"]`` names the universal function that combines it
    with what is there, None where it replaces that), ``size`` (a symbolic int, ``attrs["size"]``), ``number`` (a
    run-time Python float input, ``access`` unused, ``attrs["buffer"]``), ``iota`` (``attrs["offset"]`` plus index times
    ``attrs["steps"]``), ``reduce`` (``attrs["op"]`` over the reduced axes), ``along`` (``attrs["op"]``, a scan or a
    sort along the reduced axis: a value for each element), ``part`` (the real or imaginary part, ``attrs["index"]``, of
    a complex value), ``pair`` (the complex value of two parts), ``beside`` (the first operand; the second is computed
    for its flags), ``fma`` (a product plus a third operand, rounded once), ``regular`` (left to NumPy as ``finite`` is,
    and where it is not larger than the other operand), ``signalling_less`` and its relatives (which raise the invalid
    flag for NaN). Complex values are only loaded, stored, split and joined, half-precision ones also selected and
    converted. Operands are values or Python numbers. ``cost`` estimates the work of computing it from loads, in units
    of one addition.
    """

    op: Operation
    operands: tuple[KernelValue | bool | int | float, ...]
    dtype: DType
    axes: frozenset[int]
    node: Node | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    access: Access | None = None
    cost: float = 0.0

    @property
    def values(self) -> list[KernelValue]:
        """The operands that are values."""
        return [o for o in self.operands if isinstance(o, KernelValue)]


@dataclass(frozen=True)
class Store:
    """``value`` is stored at ``access``."""

    value: KernelValue
    access: Access


@dataclass(eq=False)
class Kernel:
    """A loop nest.

    ``form`` says how it runs: ``flat`` (no reduced axes), ``tiled`` (the same where some loads are contiguous along the
    last axis but one, which are read in square tiles), ``rows`` (the innermost reduced axis is vectorised, one row at a
    time), ``small_rows`` (the same for rows of a few elements: the innermost kept axis is vectorised, the reduced one
    unrolled), ``columns`` (the innermost kept axis is vectorised), ``blocks`` (no kept axes: blocks of the reduced
    space give partial results, which are combined afterwards), ``dots`` (the sums are products of matrices; a code
    generator asks for them, no schedule does), ``scan_rows`` and ``scan_columns`` (the one reduced axis is scanned in
    order, vectorised along it or along the innermost kept axis), ``sort`` (rows of a few elements each, as for
    ``small_rows``), ``scatter`` (stores go to computed places, in the order of the points), ``routine`` (the library's
    own loop: the last value is its result, the others load its operands, see ``routines``).
    """

    name: str
    form: Form
    axes: list[Axis]
    values: list[KernelValue]
    stores: list[Store]
    nodes: tuple[Node, ...]

    @property
    def kept(self) -> list[int]:
        """The numbers of the kept axes, outermost first."""
        return [i for i, axis in enumerate(self.axes) if not axis.reduced]

    @property
    def reduced(self) -> list[int]:
        """The numbers of the reduced axes, outermost first."""
        return [i for i, axis in enumerate(self.axes) if axis.reduced]

    @property
    def accesses(self) -> list[Access]:
        """All accesses of the kernel."""
        return [v.access for v in self.values if v.access is not None] + [s.access for s in self.stores]

    @property
    def buffers(self) -> list[Buffer]:
        """Every buffer that the kernel reads or writes, each once: first the read ones, then the written ones."""
        found: dict[Buffer, None] = {}
        for value in self.values:
            if value.access is not None:
                found[value.access.buffer] = None
            elif value.op is NUMBER:
                found[value.attrs["buffer"]] = None
        for store in self.stores:
            found[store.access.buffer] = None
        return list(found)

    @property
    def traffic(self) -> int:
        """The bytes that it reads and writes, by the sizes known when it was made: each element of a buffer once."""
        read, written = (
            [v.access for v in self.values if v.access is not None],
            [store.access for store in self.stores],
        )
        return self._bytes(read) + self._bytes(written)

    def _bytes(self, accesses: Iterable[Access]) -> int:
        touched: dict[Buffer, int] = {}
        for access in accesses:
            points = math.prod(hint(self.axes[axis].size) for axis in access.axes)
            touched[access.buffer] = max(points, touched.get(access.buffer, 0))
        return sum(min(n, hint(one.type.size)) * one.type.dtype.itemsize for one, n in touched.items())

    def describe(self) -> str:
        """One line for people: the form, the space and the operations."""
        space = " x ".join(str(a.size) + ("r" if a.reduced else "") for a in self.axes) or "1"
        return f"{self.form} over {space}: {', '.join(node.op.name for node in self.nodes)}"


def identity_element(op: str, dtype: DType) -> bool | int | float:
    """The identity element of the reduction ``op`` over ``dtype``: accumulators start from it."""
    if op in ("any", "all"):
        return op == "all"
    if op in ("sum", "prod"):
        return int(op == "prod")
    if dtype.kind == "b":
        return op == "min"
    if dtype.kind == "f":
        return float("-inf") if op == "max" else float("inf")
    info = np.iinfo(dtype)
    return int(info.min if op == "max" else info.max)


def needed(values: Sequence[KernelValue], goals: Iterable[KernelValue]) -> list[KernelValue]:
    """The ``values`` that the goals depend on, in order, the goals among them."""
    found: set[KernelValue] = set()
    stack = list(goals)
    while stack:
        value = stack.pop()
        if value not in found:
            found.add(value)
            stack += value.values
    return [value for value in values if value in found]


def size_of(axes: Sequence[Axis]) -> Size:
    """The number of points."""
    total: Size = 1
    for axis in axes:
        total = total * axis.size
    return total


def same_distance(a: Distance, b: Distance) -> bool:
    """Whether two distances are provably equal."""
    return len(a) == len(b) and all(x[1] == y[1] and same(x[0], y[0]) for x, y in zip(a, b, strict=True))


def add_distance(a: Distance, b: Distance) -> Distance:
    """The sum."""
    terms: dict[int | None, Size] = {}
    for multiple, axis in (*a, *b):
        terms[axis] = terms.get(axis, 0) + multiple
    return tuple((m, axis) for axis, m in terms.items() if not (isinstance(m, int) and m == 0))


def scale_distance(a: Distance, factor: Size) -> Distance:
    """The multiple by ``factor``."""
    if isinstance(factor, int) and factor == 0:
        return ()
    return tuple((m * factor, axis) for m, axis in a)


def static_elements(a: Distance) -> int | None:
    """The distance in elements where it is a literal; None otherwise."""
    if not a:
        return 0
    if len(a) == 1 and a[0][1] is None and isinstance(a[0][0], int):
        return a[0][0]
    return None


__all__ = [
    "Access",
    "Axis",
    "Buffer",
    "Distance",
    "Form",
    "Kernel",
    "KernelValue",
    "Size",
    "Store",
    "SymInt",
    "hint",
    "needed",
]
