"""Strided arrays of scalar loops: where the elements lie that a loop reads and writes.

Input: a ``scalar_loop`` node.
Output: for each array of its program a ``StridedArray``: a base array, with an offset and a stride per axis.
Why: a loop reads rows, slices and transposes without making the views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from tcompile.backends.schedule.kernel import Buffer, Distance, add_distance, scale_distance
from tcompile.backends.schedule.lower import access_of
from tcompile.backends.schedule.maps import ZERO, Map, identity, move
from tcompile.graph import Node, TensorType, ops
from tcompile.graph.op import OPS, Op
from tcompile.graph.ops.scalar_loop import written_roots
from tcompile.graph.ops.writing import path_types
from tcompile.graph.overlap import is_view
from tcompile.graph.sizes import UnprovableSizeError
from tcompile.records import dataclass

_SEEN: WeakKeyDictionary[Node, tuple[StridedArray, ...] | None] = WeakKeyDictionary()
Move: TypeAlias = "tuple[Op, Mapping[str, Any], TensorType, TensorType]"  # of elements of the one type to the other


@dataclass(frozen=True)
class StridedArray:
    """One array of a program, of this ``type``.

    Its elements lie in ``base``: ``offset`` plus, for each axis, index times ``steps``. ``written`` is the number of
    the operand of which the loop makes a new one, None where it only reads.
    """

    type: TensorType
    base: Node
    written: int | None
    steps: tuple[Distance, ...]
    offset: Distance


def roots(node: Node) -> tuple[Node, ...]:
    """The operands of a loop that are arrays."""
    return node.inputs[: len(node.operands) - len(node.attrs["program"][1])]


def seen(node: Node) -> Sequence[StridedArray] | None:
    """The arrays of a loop's program; None where a view cannot be described by strides."""
    try:
        return _SEEN[node]
    except KeyError:
        found = _SEEN[node] = _see(node)  # the node of a loop is immutable for backends
        return found


def _see(node: Node) -> tuple[StridedArray, ...] | None:
    found = []
    operands, shows = roots(node), node.attrs["shows"]
    written = written_roots(shows, node.attrs["program"])
    for number, path in shows:
        base = operands[number]
        types = path_types(base.tensor, path)
        steps: list[Move] = [
            (OPS[op], dict(attrs), source, target)
            for (op, attrs), source, target in zip(path, types, types[1:], strict=False)
        ]
        if number not in written:
            base, above = _beneath(base)
            steps = [*above, *steps]
        try:
            place = _place(base, steps, types[-1].ndim)
        except UnprovableSizeError:
            return None
        if place is None:
            return None
        found.append(StridedArray(types[-1], base, number if number in written else None, *place))
    return tuple(found)


def bases(node: Node) -> list[Node]:
    """The operands that a loop reads: base arrays in place of views, and its numbers."""
    found = seen(node)
    if found is None:
        return list(node.inputs)
    return list(dict.fromkeys([*(array.base for array in found), *node.inputs[len(roots(node)) :]]))


def _beneath(node: Node) -> tuple[Node, list[Move]]:
    """The base of a chain of view ops, and the view ops."""
    moves: list[Move] = []
    while is_view(node):
        step: Move = (node.op, node.attrs, node.inputs[0].tensor, node.tensor)
        try:
            if _place(node.inputs[0], [step], node.tensor.ndim) is None:
                break
        except UnprovableSizeError:
            break
        moves.insert(0, step)
        node = node.inputs[0]
    return node, moves


def _place(base: Node, moves: Sequence[Move], ndim: int) -> tuple[tuple[Distance, ...], Distance] | None:
    """The strides and the offset that view ops lead to; None where they are not uniform."""
    steps: list[Distance] = [()] * ndim
    offset: Distance = ()
    map: Map = identity(ndim)
    for op, attrs, source, target in reversed(moves):
        if op in (ops.REAL, ops.IMAG):  # whose elements are parts of those of their base
            return None
        inner = move(op, attrs, source, target, map)
        if inner is None:  # contiguous axes are merged
            strides = target.strides()
            merges = op in (ops.RESHAPE, ops.RAVEL) and source.c_contiguous and target.c_contiguous
            if not merges or strides is None:
                return None
            for index, stride in zip(map, strides, strict=True):
                for axis, multiple in index.terms:
                    steps[axis] = add_distance(steps[axis], scale_distance(((stride, None),), multiple))
                offset = add_distance(offset, scale_distance(((stride, None),), index.offset))
            inner = (ZERO,) * source.ndim
        map = inner
    access = access_of(Buffer(base, base.name), map, ndim)
    together = tuple(add_distance(one, two) for one, two in zip(steps, access.steps, strict=True))
    return together, add_distance(offset, access.offset)


__all__ = ["StridedArray", "bases", "roots", "seen"]
