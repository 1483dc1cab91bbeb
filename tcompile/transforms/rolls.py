"""Fusion of rolls: rolls of one array become slices of one copy with wrapped edges.

Input: a graph.
Output: one in which several ``np.roll`` of the same array by a few places are slices of a single ``wrap`` of it,
wherever only kernels read them.
Why: periodic stencils (waves, the Game of Life) roll one array in every direction. Each roll is a copy made by NumPy,
while slices are read inside the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from tcompile.graph import Graph, Node, Operand, Size, ops
from tcompile.graph.ops import apply
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.sizes import SymInt
from tcompile.records import dataclass
from tcompile.transforms.rewrite import rewrite

FARTHEST = 16  # places; for larger shifts the copy would have wide edges
_FUSED = ("pointwise", "reduction")


@dataclass
class _Rolled:
    """An array and its rolls: ``shifts`` has the places along each axis for each roll."""

    source: Node
    shifts: dict[Node, tuple[int, ...]] = field(default_factory=dict)

    def widths(self) -> tuple[tuple[int, int], ...]:
        """The widths of the copy's edges along each axis, before and after."""
        columns = list(zip(*self.shifts.values(), strict=True))
        return tuple((max(0, *column), max(0, *(-shift for shift in column))) for column in columns)


def merge_rolls(graph: Graph) -> Graph:
    """Makes rolls of one array slices of one copy."""
    groups = _groups(graph)
    copies: dict[int, Node] = {}

    def rule(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
        group = groups.get(node)
        if group is None:
            before, after = (getattr(o[0], "type", None) if o else None for o in (node.operands, operands))
            if node.op.kind == "view" and before != after:  # its operand is no dense array now
                return apply(result, node.op, *operands, location=node.location, **node.attrs)
            return None
        widths = group.widths()
        if id(group) not in copies:  # the first roll of a group is of the array itself
            copies[id(group)] = apply(result, "wrap", operands[0], widths=widths, location=node.location)
        key = []
        for (before, after), shift, size in zip(widths, group.shifts[node], node.tensor.shape, strict=True):
            start = before - shift
            key.append(slice(None) if not before and not after else slice(start, size + start))
        return apply(result, "index", copies[id(group)], key=tuple(key), location=node.location)

    return rewrite(graph, rule, merge_rolls, groups.__contains__)


def _groups(graph: Graph) -> dict[Node, _Rolled]:
    """The rolls that become slices, each with its group."""
    users: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for operand in dict.fromkeys(node.inputs):
            users.setdefault(operand, []).append(node)
    outputs = set(graph.outputs)
    rolled = {node: found for node in graph.nodes if (found := shifts(node)) is not None}

    def fused(node: Node) -> bool:
        """Whether only kernels read the node, and rolls, which are checked themselves."""
        return node not in outputs and all(
            user in good if user in rolled
            else user.op.kind in _FUSED or (user.op.kind == "view" and fused(user))
            for user in users.get(node, ())
        )  # fmt: skip

    good: set[Node] = set()
    for node in reversed(graph.nodes):
        if node in rolled and fused(node):
            good.add(node)
    groups: dict[Node, _Rolled] = {}
    of_source: dict[Node, _Rolled] = {}
    for node in graph.nodes:
        if node not in good:
            continue
        operand = node.inputs[0]
        inner = groups.get(operand)
        total = rolled[node]
        if inner is not None:
            total = tuple(a + b for a, b in zip(total, inner.shifts[operand], strict=True))
        group = inner or of_source.setdefault(operand, _Rolled(operand))
        group.shifts[node] = total
        groups[node] = group
    return {node: group for node, group in groups.items() if _pays(group)}


def _pays(group: _Rolled) -> bool:
    if len(group.shifts) < 2:
        return False
    return all(
        before + after <= FARTHEST and at_least(size, max(before, after))
        for (before, after), size in zip(group.widths(), group.source.tensor.shape, strict=True)
    )


def at_least(size: Size, least: int) -> bool:
    """Whether a size is known to be no less."""
    low = size.bounds()[0] if isinstance(size, SymInt) else size
    return low is not None and low >= least


def shifts(node: Node) -> tuple[int, ...] | None:
    """The places along each axis, where ``node`` rolls a C-ordered array by literal numbers; else None."""
    if node.op is not ops.CALL or node.attrs["target"] != "numpy.roll":
        return None
    given = dict(zip(("a", "shift", "axis"), node.attrs["args"], strict=False)) | dict(node.attrs["kwargs"])
    type = node.tensor
    if given.get("a") != Slot(0) or len(node.inputs) != 1 or type.layout.order != tuple(range(type.ndim)):
        return None
    if node.inputs[0].tensor.layout.order != type.layout.order or node.inputs[0].tensor.shape != type.shape:
        return None
    shift, axis = given.get("shift"), given.get("axis")
    if axis is None:
        if type.ndim != 1:
            return None
        axis = 0
    several = [v for v in (shift, axis) if isinstance(v, Sequence)]
    count = len(several[0]) if several else 1
    places = [shift] * count if _is_int(shift) else shift
    axes = [axis] * count if _is_int(axis) else axis
    if not isinstance(places, Sequence) or not isinstance(axes, Sequence) or len(places) != len(axes):
        return None
    if not all(map(_is_int, (*places, *axes))):
        return None
    total = [0] * type.ndim
    for place, at in zip(places, axes, strict=True):
        total[at] += place
    return tuple(total)


def _is_int(value: object) -> bool:
    return type(value) is int


__all__ = ["at_least", "merge_rolls", "shifts"]
