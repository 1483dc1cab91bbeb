"""Lowering of a group of nodes to a kernel: loads at affine places, values, reductions, stores.

Input: a ``Group`` (the nodes of one loop nest, and those of them that are materialised).
Output: a ``Kernel`` whose axes are in memory order and collapsed wherever all accesses allow.
Why: fusion decides on nodes and never sees loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from tcompile.backends.schedule import inverses, products
from tcompile.backends.schedule.admission import FEW, WIDE
from tcompile.backends.schedule.complex_and_half import PARTS, ComplexHalfWriter, number_dtype
from tcompile.backends.schedule.costs import STORE_ABOVE, cost_of
from tcompile.backends.schedule.kernel import (
    Access,
    Axis,
    Buffer,
    Distance,
    Form,
    Kernel,
    KernelValue,
    Store,
    add_distance,
    needed,
    same_distance,
    scale_distance,
    static_elements,
)  # fmt: skip
from tcompile.backends.schedule.kernel_ops import ALONG, CONSTANT, GATHER, IOTA, LOAD, NUMBER, REDUCE, SCATTER, SIZE
from tcompile.backends.schedule.maps import (
    ANYWHERE,
    ZERO,
    Affine,
    Map,
    broadcast,
    identity,
    map_key,
    through,
    through_path,
)
from tcompile.graph import Node, Operand, ScalarType, Size, SymInt, TensorType, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.ops.gathering import IN_PLACE, gathered_shape
from tcompile.graph.ops.writing import part_of, path_types
from tcompile.graph.sizes import counters_in, hint, is_one, same, same_shape
from tcompile.records import dataclass

INDEX = np.dtype("int64")
FULL = 32  # bytes of a vector register
MOST_UNROLLED = 160  # values of a kernel whose rows are unrolled
SERIAL_FULL = 1 << 15  # a full reduction over fewer elements runs as one row, in as many stages as it needs


@dataclass(eq=False)
class Group:
    """Nodes that share one loop nest over ``shape``; the axes in ``reduced`` are reduced over.

    A group with ``along`` has one member, a scan or a sort along that axis. ``sources`` are the leaves of its members.
    """

    shape: tuple[Size, ...]
    reduced: tuple[int, ...] = ()
    members: list[Node] = field(default_factory=list)
    order: tuple[int, ...] = ()
    along: tuple[int, ...] = ()
    sources: set[Node] = field(default_factory=set)

    @property
    def kept_shape(self) -> tuple[Size, ...]:
        """The sizes of the axes that are not reduced."""
        return tuple(n for i, n in enumerate(self.shape) if i not in self.reduced)

    @property
    def is_full(self) -> bool:
        """Whether all axes are reduced, in blocks that are combined afterwards."""
        if not self.reduced or not all(is_one(n) for n in self.kept_shape):
            return False
        total: Size = 1
        for n in self.shape:
            total = total * n
        return hint(total) > SERIAL_FULL

    def row_map(self, type: TensorType) -> Map | None:
        """The map from this space to the axes of a value with one element per row; None where it does not fit."""
        if not self.reduced:
            return None
        kept = [i for i in range(len(self.shape)) if i not in self.reduced]
        if type.ndim == len(self.shape) and all(
            is_one(n) if i in self.reduced else same(n, self.shape[i]) for i, n in enumerate(type.shape)
        ):
            return tuple(Affine() if i in self.reduced else Affine(((i, 1),)) for i in range(type.ndim))
        if same_shape(type.shape, self.kept_shape):
            return tuple(Affine(((i, 1),)) for i in kept)
        return None

    def map_of(self, node: Node) -> Map | None:
        """The map from this space to the axes of a member's value."""
        if node.op.kind == "reduction":
            return self.row_map(node.tensor)
        type = computed_type(node)
        return identity(len(self.shape)) if same_shape(type.shape, self.shape) else self.row_map(type)

    def fits(self, member: Node, map: Map) -> bool:
        """Whether reading ``member`` through ``map`` reads just the element computed at this point of the space."""
        own = None if replaces_part(member) or map is ANYWHERE else self.map_of(member)
        return own is not None and all(
            is_one(size) or a.key() == b.key() for size, a, b in zip(member.tensor.shape, own, map, strict=True)
        )


def replaces_part(node: Node) -> bool:
    """Whether a node is an ``assign`` to a part of its base, or a scatter: a kernel stores into the base's memory."""
    return (node.op is ops.ASSIGN and bool(node.attrs["path"])) or node.op in IN_PLACE


ANYWHERE_IN = ops.GATHER, ops.ROLL
"""Operations whose first operand kernels read at computed places."""


def keeps_elements(node: Node) -> bool:
    """Whether a node that replaces a part keeps other elements; the base ``empty`` has none to keep."""
    return node.inputs[0].op is not ops.EMPTY or node.op in IN_PLACE


def computed_type(node: Node) -> TensorType:
    """The type of what a kernel computes for a node: of an ``assign``, the part that it replaces; of a ``scatter``, the
    value that it writes.
    """
    if node.op in IN_PLACE:
        indices = [index.tensor for index in places_of(node)]
        return TensorType(node.tensor.dtype, gathered_shape(part_of(node), indices, node.attrs["axes"]))
    return part_of(node) if replaces_part(node) else node.tensor


def computed_from(node: Node) -> tuple[Node, ...]:
    """The nodes whose elements a kernel reads one by one for a node: not its target, nor the base of a gather."""
    return node.inputs[1:] if node.op in (ops.ASSIGN, *ANYWHERE_IN, *IN_PLACE) else node.inputs


def places_of(node: Node) -> tuple[Node, ...]:
    """The arrays of indices of a ``gather``, a ``scatter`` or a ``combine``."""
    places = node.operands[1 if node.op is ops.GATHER else 2 :]
    return tuple(index for index in places if isinstance(index, Node))


def operand_map(node: Node, operand: Node, map: Map) -> Map:
    """The map of an operand that ``computed_from`` gives: broadcast to what is computed."""
    if not isinstance(operand.type, TensorType):
        return ()
    shape = computed_type(node).shape
    if node.op in (ops.GATHER, *IN_PLACE) and operand in places_of(node):  # whose axes come first
        rank = max(index.tensor.ndim for index in places_of(node))
        map, shape = map[:rank], shape[:rank]
    return broadcast(map, operand.type.shape, shape)


def target_map(node: Node, map: Map) -> Map | None:
    """Where in its result a member lies: of a node that replaces a part, in the base.

    The computed axes of a scatter are those that follow the axes of ``map``.
    """
    if node.op in IN_PLACE:
        rest = iter(map[max(index.tensor.ndim for index in places_of(node)) :])
        computed = {axis: Affine(((len(map) + number, 1),)) for number, axis in enumerate(node.attrs["axes"])}
        part = path_types(node.inputs[0].tensor, node.attrs["path"])[-1]
        map = tuple(computed[axis] if axis in computed else next(rest) for axis in range(part.ndim))
    return through_path(node, map) if replaces_part(node) else map


class NotAffine(Exception):
    """A view op that a kernel cannot express: the planner materialises its operand."""

    def __init__(self, node: Node) -> None:
        super().__init__(node.name)
        self.node = node


def operand_dtype(node: Node) -> DType:
    """The dtype to which bare-number operands of a pointwise node convert."""
    operands = node.operands[1:] if node.op is ops.WHERE else node.operands
    for operand in operands:
        if isinstance(operand, Node) and isinstance(operand.type, TensorType):
            return operand.type.dtype
    return node.tensor.dtype


_EXPENSIVE = 64.0  # additions: costs beyond it make no difference


class Lowering:
    """Builds the values of one kernel."""

    def __init__(self, group: Group, leaves: Callable[[Node], bool], buffer: Callable[[Node], Buffer]) -> None:
        self.group = group
        self.is_leaf = leaves
        self.buffer = buffer
        self.values: list[KernelValue] = []
        self.memo: dict[tuple[object, ...], KernelValue] = {}
        self.computed: dict[Node, KernelValue] = {}
        self.used: set[Node] = set()
        self.reduced = frozenset(group.reduced)
        self.parts = ComplexHalfWriter(self._add)

    def member(self, node: Node) -> KernelValue:
        """Computes a node that belongs to the group."""
        if node.op.kind == "reduction":
            operand = self.read(node.operands[0], identity(len(self.group.shape)), node.tensor.dtype)
            axes = frozenset(i for i in range(len(self.group.shape)) if i not in self.reduced)
            value = self.parts.reduce(node, operand, axes)
        elif self.group.along:
            operand = self.read(node.operands[0], identity(len(self.group.shape)), node.tensor.dtype)
            everywhere = frozenset(range(len(self.group.shape)))
            value = self._add(KernelValue(ALONG, (operand,), node.tensor.dtype, everywhere, node, {"op": node.op.name}))
        else:
            map = self.group.map_of(node)
            assert map is not None
            value = self._compute(node, map)
        if not replaces_part(node):
            self.computed[node] = value
        return value

    def read(self, operand: Operand, map: Map, dtype: DType) -> KernelValue:
        """The value of an operand at ``map``."""
        if isinstance(operand, SymInt):
            return self._once(("size", str(operand), dtype), lambda: KernelValue(
                SIZE, (), dtype, frozenset(), None, {"size": operand}))  # fmt: skip
        assert isinstance(operand, Node)
        if isinstance(operand.type, ScalarType):
            self.used.add(operand)
            return self._once(("number", operand, dtype), lambda: KernelValue(
                NUMBER, (), dtype, frozenset(), operand, {"buffer": self.buffer(operand)}))  # fmt: skip
        if operand in self.computed and self.group.fits(operand, map):
            return self.computed[operand]
        key = (operand, *map_key(map))
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._value(operand, map)
        return found

    def _once(self, key: tuple[object, ...], make: Callable[[], KernelValue]) -> KernelValue:
        if key not in self.memo:
            self.memo[key] = self._add(make())
        return self.memo[key]

    def _add(self, value: KernelValue) -> KernelValue:
        """Adds a value, or returns an equal one: nodes may differ in shape alone, as sums with ``keepdims`` do."""
        if value.op is not REDUCE and value.attrs.keys() != {"operand_dtype"}:
            return self._added(value)
        operands = [o if isinstance(o, KernelValue) else (type(o), repr(o)) for o in value.operands]
        key = (value.op, *operands, value.dtype, value.axes, *value.attrs.values())
        if key not in self.memo:
            self.memo[key] = self._added(value)
        return self.memo[key]

    def _added(self, value: KernelValue) -> KernelValue:
        value.attrs["own_cost"] = cost_of(value.node, value.op) if value.node is not None else 0.0
        seen: set[int] = set()
        left = [value]
        value.cost = max((operand.cost for operand in value.values if operand.cost >= _EXPENSIVE), default=0.0)
        while left and value.cost < _EXPENSIVE:
            found = left.pop()
            if id(found) not in seen and found.op not in (LOAD, REDUCE):
                seen.add(id(found))
                value.cost += found.attrs.get("own_cost", 0.0)
                left += found.values
        self.values.append(value)
        return value

    def _value(self, node: Node, map: Map) -> KernelValue:
        if self.is_leaf(node):
            self.used.add(node)
            return self._load(node, map)
        if node.op.kind != "view":
            return self._compute(node, map)
        taken: list[Node] = []  # parts of complex numbers, through any number of view ops
        while not self.is_leaf(node) and node.op.kind == "view":
            inner = through(node, map)
            if inner is None:
                raise NotAffine(node)
            if node.op in (ops.REAL, ops.IMAG):
                taken.append(node)
            node, map = node.inputs[0], inner
        value = self.read(node, map, node.tensor.dtype)
        for part in reversed(taken):
            found = self.parts.part_alone(value, part)
            value = found if isinstance(found, KernelValue) else self._number(part, found)
        return value

    def _number(self, node: Node, number: bool | int | float | complex) -> KernelValue:
        if node.tensor.dtype in PARTS:
            return self.parts.pair(node, complex(number).real, complex(number).imag, node.tensor.dtype)
        assert not isinstance(number, complex)
        return self._add(KernelValue(CONSTANT, (number,), node.tensor.dtype, frozenset(), node))

    def _compute(self, node: Node, map: Map) -> KernelValue:
        dtype = node.tensor.dtype
        if node.op in (ops.FULL, ops.EMPTY):
            fill = node.attrs.get("fill_value", 0)
            if isinstance(fill, SymInt):
                return self.read(fill, (), dtype)
            return self._number(node, fill)
        if node.op is ops.ARANGE:
            start, step = node.attrs["start"], node.attrs["step"]
            index = map[0].scaled(step, start)
            axes = frozenset(axis for axis, _ in index.terms)
            return self._add(KernelValue(IOTA, (), dtype, axes, node, {"index": index}))
        if node.op is ops.ASSIGN:
            (item,) = computed_from(node)
            return self.read(item, operand_map(node, item, map), dtype)
        if node.op is ops.GATHER:
            return self._gather(node, map)
        if node.op is ops.ROLL:
            return self._roll(node, map)
        if node.op in IN_PLACE:
            return self._scatter(node, map)
        if node.op is ops.MATMUL:
            return self._matmul(node, map)
        if node.op is ops.CALL:
            return self._inverse(node, map)
        weak = operand_dtype(node)
        operands: list[KernelValue | bool | int | float | complex] = []
        for operand in node.operands:
            if isinstance(operand, Node) and isinstance(operand.type, TensorType):
                inner = broadcast(map, operand.tensor.shape, node.tensor.shape)
                operands.append(self.read(operand, inner, operand.tensor.dtype))
            elif isinstance(operand, Node | SymInt):
                operands.append(self.read(operand, (), number_dtype(weak)))
            else:
                operands.append(operand)
        return self.parts.apply(node, node.op, operands, dtype, weak)

    def _matmul(self, node: Node, map: Map) -> KernelValue:
        """The sum of the products, starting from zero as BLAS does (which decides the signs of zeros).

        BLAS also computes elements outside the result, of which NumPy may warn. It does so only where an operand is
        infinite or a NaN, and then the result is, too.
        """
        dtype = node.tensor.dtype
        total: KernelValue | None = None
        for pair in products.places(node, map):
            factors = [self.read(operand, at, dtype) for operand, at in zip(node.inputs, pair, strict=True)]
            total = self.parts.product(node, factors, total, dtype, products.is_fused(node))
        assert total is not None
        return total if dtype.kind in "iu" else self.parts.finite(node, total)

    def _inverse(self, node: Node, map: Map) -> KernelValue:
        dtype = node.tensor.dtype
        apply = self.parts.arithmetic(node, dtype)

        def is_at(index: Affine) -> list[KernelValue]:
            """For each row of the matrix, whether ``index`` is its number."""
            axes = frozenset(axis for axis, _ in index.terms)
            iota = self._add(KernelValue(IOTA, (), INDEX, axes, node, {"index": index}))
            return [self.parts.arithmetic(node, INDEX)(ops.EQUAL, iota, i) for i in range(inverses.rows(node))]

        values = [self.read(operand, at, dtype) for operand, at in inverses.places(node, map)]
        column = is_at(map[-1]) if len(node.inputs) == 1 else []
        return inverses.element(node, values, is_at(inverses.index_of_row(node, map)), column, apply)

    def _gather(self, node: Node, map: Map) -> KernelValue:
        rest = iter(map[max(index.tensor.ndim for index in places_of(node)) :])
        axes = node.attrs["axes"]
        place = tuple(ZERO if axis in axes else next(rest) for axis in range(node.inputs[0].tensor.ndim))
        return self._gathered(node, place, axes, self._places(node, map))

    def _roll(self, node: Node, map: Map) -> KernelValue:
        """A gather at counted places: those before the first element count from the end."""
        axes = [axis for axis, shift in enumerate(node.attrs["shifts"]) if shift]
        indices = []
        for axis in axes:
            shift, size = node.attrs["shifts"][axis], node.tensor.shape[axis]
            ahead = shift % max(size, 1) if isinstance(size, int) else shift if shift > 0 else size + shift
            index = map[axis].scaled(1, -ahead)
            moves = frozenset(at for at, _ in index.terms)
            indices.append(self._add(KernelValue(IOTA, (), INDEX, moves, node, {"index": index})))
        place = tuple(ZERO if axis in axes else index for axis, index in enumerate(map))
        return self._gathered(node, place, axes, indices, rolled=True)

    def _gathered(
        self, node: Node, place: Map, axes: Sequence[int], indices: Sequence[KernelValue], **attrs: Any
    ) -> KernelValue:
        """The element of a node's first operand at ``place``, and at ``indices`` along ``axes``."""
        base = node.inputs[0]
        self.used.add(base)
        access = access_of(self.buffer(base), place, len(self.group.shape))
        known = base.tensor.strides()
        strides: list[Distance] = [((1, axis),) if known is None else ((known[axis], None),) for axis in axes]
        attrs |= {"strides": strides, "sizes": [base.tensor.shape[axis] for axis in axes]}
        moves = access.axes.union(*(index.axes for index in indices))
        return self._add(KernelValue(GATHER, tuple(indices), node.tensor.dtype, moves, node, attrs, access))

    def _scatter(self, node: Node, map: Map) -> KernelValue:
        dtype, value = node.tensor.dtype, node.operands[1]
        if isinstance(value, Node):
            written: KernelValue | bool | int | float = self.read(value, operand_map(node, value, map), dtype)
        else:
            assert isinstance(value, bool | int | float)
            written = value
        part = path_types(node.inputs[0].tensor, node.attrs["path"])[-1]
        attrs = {"sizes": [part.shape[axis] for axis in node.attrs["axes"]], "how": node.attrs.get("ufunc")}
        everywhere = frozenset(axis for index in map for axis, _ in index.terms)
        return self._add(KernelValue(SCATTER, (written, *self._places(node, map)), dtype, everywhere, node, attrs))

    def _places(self, node: Node, map: Map) -> list[KernelValue]:
        return [self.read(index, operand_map(node, index, map), index.tensor.dtype) for index in places_of(node)]

    def _load(self, node: Node, map: Map) -> KernelValue:
        access = access_of(self.buffer(node), map, len(self.group.shape))
        return self._add(KernelValue(LOAD, (), node.tensor.dtype, access.axes, node, {}, access))


def access_of(buffer: Buffer, map: Map, ndim: int, *, ones: bool = False) -> Access:
    """The access of ``map`` in a buffer; axes of size one have no step, unless ``ones`` is set."""
    type = buffer.type
    strides = type.strides()
    steps: list[Distance] = [()] * ndim
    offset: Distance = ()
    for axis, (size, index) in enumerate(zip(type.shape, map, strict=True)):
        if is_one(size) and not ones:
            continue
        unit: Distance = ((1, axis),) if strides is None else ((strides[axis], None),)
        for at, multiple in index.terms:
            steps[at] = add_distance(steps[at], scale_distance(unit, multiple))
        offset = add_distance(offset, scale_distance(unit, index.offset))
    return Access(buffer, tuple(steps), offset)


def lower(
    group: Group,
    name: str,
    leaves: Callable[[Node], bool],
    buffer: Callable[[Node], Buffer],
    outputs: Sequence[Node],
    old: Mapping[Node, Buffer],
) -> Kernel:
    """The kernel of ``group``; the members in ``outputs`` are stored into their buffers.

    The elements that the assignments in ``old`` replace are stored into those buffers. Raises NotAffine where a view op
    inside cannot be expressed.
    """
    lowering = Lowering(group, leaves, buffer)
    stores: list[Store] = []
    for node in group.members:
        value = lowering.member(node)
        if node in outputs:
            own, part = group.map_of(node), replaces_part(node)
            map = target_map(node, own) if own is not None else None
            assert own is not None and map is not None
            if node in old:  # read first
                replaced = lowering.read(node.inputs[0], map, node.tensor.dtype)
                stores.append(Store(replaced, access_of(old[node], own, len(group.shape))))
            # A part of an axis of size one may be empty: a store without a step would be done once all the same.
            rank, computed = len(group.shape), len(node.attrs["axes"]) if value.op is SCATTER else 0
            access = access_of(buffer(node), map, rank + computed, ones=part)
            if computed:
                value.attrs["strides"] = access.steps[rank:]
            stores.append(Store(value, Access(access.buffer, access.steps[:rank], access.offset)))
    walked = group.reduced or group.along
    axes = [Axis(size, i in walked) for i, size in enumerate(group.shape)]
    values = needed(lowering.values, (store.value for store in stores))
    kernel = Kernel(name, "flat", axes, values, stores, tuple(group.members))
    _arrange(kernel, group)
    return kernel


# -- the order of the axes ------------------------------------------------------------------------------------------


def _arrange(kernel: Kernel, group: Group) -> None:
    """Puts the axes in memory order, drops axes of size one, merges axes that behave as one, picks the form."""
    order = group.order or tuple(range(len(group.shape)))
    walked = group.reduced or group.along
    kept = [i for i in order if i not in walked and not is_one(group.shape[i])]
    reduced = [i for i in order if i in walked and not is_one(group.shape[i])]
    if walked and not reduced:
        reduced = [walked[0]]  # a reduction over axes of size one still is a row of one element
    form: Form = "flat"
    if group.along and group.members[0].op is ops.SORT:
        form = "sort"
    elif group.along:
        form = "scan_columns" if kept and _walks_columns(kernel, kept, reduced) else "scan_rows"
    elif group.reduced:
        if group.is_full:
            form = "blocks"
        elif kept and _walks_columns(kernel, kept, reduced):
            form = "columns"
        else:
            form = "rows"
    kernel.form = form
    _permute(kernel, [*kept, *reduced])
    for part in (kernel.reduced, kernel.kept):  # the later axes first, so that the earlier keep their numbers
        _collapse(kernel, part)
    if form in ("rows", "columns") and _has_small_rows(kernel):
        kernel.form = "small_rows"
    if any(value.op is SCATTER for value in kernel.values):
        kernel.form = "scatter"
    elif form == "flat" and _choose_tiles(kernel):
        kernel.form = "tiled"
    if kernel.form in ("flat", "scatter") and not kernel.axes:
        kernel.axes.append(Axis(1))
        _append_axis(kernel)


def _has_small_rows(kernel: Kernel) -> bool:
    """Whether many rows of a few elements each are best processed side by side."""
    if len(kernel.reduced) != 1 or not kernel.kept:
        return False
    few, last = kernel.axes[kernel.reduced[0]].size, kernel.kept[-1]
    if not isinstance(few, int) or not 1 <= few <= FEW or hint(kernel.axes[last].size) < WIDE:
        return False
    for value in kernel.values:
        if value.op is GATHER or value.dtype.kind == "c" or (value.op is IOTA and last in value.axes):
            return False
    return few * len(kernel.values) <= MOST_UNROLLED


def lies_across(value: KernelValue, across: int, last: int) -> bool:
    """Whether elements of a load are adjacent along ``across``, and far apart along the innermost axis."""
    if value.op is not LOAD or value.access is None or static_elements(value.access.steps[across]) != 1:
        return False
    apart = static_elements(value.access.steps[last])
    return apart is None or abs(apart) >= WIDE


def _choose_tiles(kernel: Kernel) -> bool:
    """Makes the axis along which most such loads are contiguous the last but one; returns whether there is one, and
    room for tiles.
    """
    last = len(kernel.axes) - 1
    if last < 1 or hint(kernel.axes[last].size) < WIDE:
        return False
    if any(value.dtype.kind == "c" for value in kernel.values) or not all(s.access.steps[last] for s in kernel.stores):
        return False
    votes = {a: sum(lies_across(v, a, last) for v in kernel.values) for a in range(last)}
    across = max(votes, key=lambda axis: votes[axis])
    if not votes[across] or hint(kernel.axes[across].size) < WIDE:
        return False
    once_a_row = [v for v in kernel.values if v.op is not LOAD and last not in v.axes]  # which a tile computes once
    if sum(v.attrs.get("own_cost", 0.0) for v in once_a_row) > STORE_ABOVE:
        return False
    _permute(kernel, [*(axis for axis in range(last) if axis != across), across, last])
    return True


def _append_axis(kernel: Kernel) -> None:
    for value in kernel.values:
        if value.access is not None:
            value.access = Access(value.access.buffer, (*value.access.steps, ()), value.access.offset)
    kernel.stores = [
        Store(s.value, Access(s.access.buffer, (*s.access.steps, ()), s.access.offset)) for s in kernel.stores
    ]


def _walks_columns(kernel: Kernel, kept: list[int], reduced: list[int]) -> bool:
    """Whether vectors should run along the innermost kept axis: most loads are contiguous along it."""
    votes = 0
    for value in kernel.values:
        if value.access is None or not value.access.axes & set(reduced):
            continue
        along_row = static_elements(value.access.steps[reduced[-1]])
        along_kept = static_elements(value.access.steps[kept[-1]])
        is_near = along_row is not None and abs(along_row) < WIDE
        if along_row == 1 or (is_near and _is_short(kernel.axes[kept[-1]], value.dtype)):
            votes -= 1
        elif along_kept == 1:
            votes += 1
        elif along_row is None and along_kept is None:
            ranks = value.access.buffer.type.layout.ranks
            row = [ranks[a] for _, a in value.access.steps[reduced[-1]] if a is not None]
            column = [ranks[a] for _, a in value.access.steps[kept[-1]] if a is not None]
            votes += 1 if row and column and max(row) > max(column) else -1
    return votes > 0


def _is_short(axis: Axis, dtype: DType) -> bool:
    """Whether vectors along the axis hold so few elements that strided ones along another axis are faster."""
    return isinstance(axis.size, int) and axis.size * dtype.itemsize < FULL


def _permute(kernel: Kernel, order: list[int]) -> None:
    place = {axis: position for position, axis in enumerate(order)}

    def move(access: Access) -> Access:
        return Access(access.buffer, tuple(access.steps[axis] for axis in order), access.offset)

    kernel.axes = [kernel.axes[axis] for axis in order]
    for value in kernel.values:
        value.axes = frozenset(place[a] for a in value.axes if a in place)
        if value.access is not None:
            value.access = move(value.access)
        if value.op is IOTA:
            index: Affine = value.attrs["index"]
            value.attrs["index"] = Affine(tuple((place[a], m) for a, m in index.terms if a in place), index.offset)
    kernel.stores = [Store(store.value, move(store.access)) for store in kernel.stores]


def _collapse(kernel: Kernel, part: list[int]) -> None:
    """Merges neighbouring axes, innermost first, wherever every access allows."""
    for outer, inner in zip(part[-2::-1], part[:0:-1], strict=True):
        size = kernel.axes[inner].size
        if counters_in(size) and counters_in(
            kernel.axes[outer].size
        ):  # their product is not linear in the induction variable
            continue
        if not all(
            same_distance(a.steps[outer], _times(a.steps[inner], size)) and not _runtime(a.steps[outer])
            for a in kernel.accesses
        ) or any(v.op is IOTA and v.axes & {outer, inner} for v in kernel.values):
            continue
        merged = Axis(kernel.axes[outer].size * size, kernel.axes[inner].reduced)
        keep = [i for i in range(len(kernel.axes)) if i != outer]
        for value in kernel.values:
            if outer in value.axes:
                value.axes = value.axes | {inner}
        kernel.axes[inner] = merged
        _permute(kernel, keep)


def _times(step: Distance, size: Size) -> Distance:
    return scale_distance(step, size)


def _runtime(step: Distance) -> bool:
    return any(axis is not None for _, axis in step)
