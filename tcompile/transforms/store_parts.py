"""Joined arrays in loop bodies, rewritten as in-place stores of their parts.

Input: a graph.
Output: one in whose loop bodies ``concat``, ``wrap``, ``copy_c`` and ``np.roll`` are an array with undefined elements
(``empty``) and one ``assign`` for each part.
Why: kernels store parts directly, also those that they have just computed. So an iteration with a periodic or a padded
stencil needs no library call, and the loop runs without Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from tcompile.errors import GraphError
from tcompile.graph import Graph, Node, Operand, Size, ops
from tcompile.graph.ops import apply
from tcompile.graph.sizes import UnprovableSizeError
from tcompile.transforms.rewrite import rewrite, same_type
from tcompile.transforms.rolls import at_least, shifts

_MOST_PARTS = 9  # each of which is a kernel


def store_parts(graph: Graph) -> Graph:
    """Stores the parts of joined, wrapped and rolled arrays in loop bodies."""

    def has_parts(node: Node) -> bool:
        return graph.scratch and (node.op in (ops.CONCAT, ops.WRAP, ops.COPY_C) or shifts(node) is not None)

    def rule(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
        if not has_parts(node):
            return None
        dtype = node.tensor.dtype
        if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
            return None
        given = [operand for operand in operands if isinstance(operand, Node)]
        draft = Graph(result.name, result.env)
        try:
            made = _build(draft, node, [draft.input("x", operand.tensor) for operand in given])
        except (GraphError, UnprovableSizeError):
            return None
        return _build(result, node, given) if made is not None and same_type(made.type, node.type) else None

    return rewrite(graph, rule, store_parts, has_parts)


def _build(graph: Graph, node: Node, operands: Sequence[Node]) -> Node | None:
    if node.op is ops.CONCAT:
        return _joined(graph, node, operands, node.attrs["axis"])
    if node.op is ops.WRAP:
        return _wrapped(graph, node, operands[0])
    if node.op is ops.COPY_C:
        return apply(graph, "assign", _empty(graph, node, node.tensor.shape), operands[0], path=())
    (rolled,) = operands
    for axis, shift in enumerate(shifts(node) or ()):
        if shift:
            size = rolled.tensor.shape[axis]
            if not at_least(size, abs(shift)):
                return None
            split = size - shift if shift > 0 else -shift
            parts = [_part(graph, node, rolled, axis, *ends) for ends in ((split, size), (0, split))]
            rolled = _joined(graph, node, parts, axis)
    return rolled if rolled is not operands[0] else None


def _joined(graph: Graph, node: Node, parts: Sequence[Node], axis: int) -> Node:
    if len(parts) > _MOST_PARTS:
        raise GraphError("too many parts")
    shape = list(parts[0].tensor.shape)
    ends: list[Size] = [0]
    for part in parts:
        ends.append(ends[-1] + part.tensor.shape[axis])
    shape[axis] = ends[-1]
    made = _empty(graph, node, shape)
    for part, start, stop in zip(parts, ends, ends[1:], strict=False):
        made = _stored(graph, node, made, part, [(axis, start, stop)])
    return made


def _wrapped(graph: Graph, node: Node, x: Node) -> Node | None:
    """The array in the middle, and around it the parts that continue each axis periodically, corners included."""
    columns = []  # for each axis: the target and the source of a part
    for axis, (size, (before, after)) in enumerate(zip(x.tensor.shape, node.attrs["widths"], strict=True)):
        if not at_least(size, max(before, after)):
            return None
        column = [((axis, before, before + size), (axis, 0, size))]
        if before:
            column.append(((axis, 0, before), (axis, size - before, size)))
        if after:
            column.append(((axis, before + size, before + size + after), (axis, 0, after)))
        columns.append(column)
    pairs = [list(zip(*row, strict=True)) for row in itertools.product(*columns)]
    if len(pairs) > _MOST_PARTS:
        return None
    made = _empty(graph, node, node.tensor.shape)
    for to, source in pairs:
        part = apply(graph, "index", x, key=_key(x, source), location=node.location)
        made = _stored(graph, node, made, part, to)
    return made


def _empty(graph: Graph, node: Node, shape: Sequence[Size]) -> Node:
    return apply(graph, "empty", shape=tuple(shape), dtype=node.tensor.dtype.name, location=node.location)


def _part(graph: Graph, node: Node, x: Node, axis: int, start: Size, stop: Size) -> Node:
    return apply(graph, "index", x, key=_key(x, [(axis, start, stop)]), location=node.location)


def _stored(graph: Graph, node: Node, base: Node, value: Node, ends: Sequence[tuple[int, Size, Size]]) -> Node:
    path = (("index", (("key", _key(base, ends)),)),)
    return apply(graph, "assign", base, value, path=path, location=node.location)


def _key(x: Node, ends: Sequence[tuple[int, Size, Size]]) -> tuple[Any, ...]:
    """The key of the part between these ends, each along an axis."""
    key: list[Any] = [slice(None)] * x.tensor.ndim
    for axis, start, stop in ends:
        key[axis] = slice(start, stop)
    return tuple(key)


__all__ = ["store_parts"]
