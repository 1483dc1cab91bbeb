"""Joined arrays in loop bodies, rewritten as in-place stores of their parts.

Input: a graph.
Output: one in whose loop bodies ``concat`` and ``copy_c`` are an array with undefined elements (``empty``) and one
``assign`` for each part. A part of an array that is rolled becomes an array, too.
Why: kernels store parts directly, also those that they have just computed. So an iteration with a padded stencil needs
no library call, and the loop runs without Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.errors import GraphError
from tcompile.graph import Graph, Node, Operand, Size, ops
from tcompile.graph.ops import apply
from tcompile.graph.sizes import UnprovableSizeError
from tcompile.transforms.rewrite import rewrite, same_type

_MOST_PARTS = 9  # each of which is a kernel


def store_parts(graph: Graph) -> Graph:
    """Stores the parts of joined arrays in loop bodies."""

    def has_parts(node: Node) -> bool:
        return graph.scratch and (node.op in (ops.CONCAT, ops.COPY_C) or _rolls_part(node))

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
        if not same_type(made.type, node.type):
            return None
        if node.op is not ops.ROLL:
            return _build(result, node, given)
        (part,) = given
        if part not in copies:  # several rolls read one copy
            copies[part] = _copied(result, node, part)
        return apply(result, node.op, copies[part], location=node.location, **node.attrs)

    copies: dict[Node, Node] = {}
    return rewrite(graph, rule, store_parts, has_parts)


def _build(graph: Graph, node: Node, operands: Sequence[Node]) -> Node:
    if node.op is ops.CONCAT:
        return _joined(graph, node, operands, node.attrs["axis"])
    return _copied(graph, node, operands[0])


def _copied(graph: Graph, node: Node, x: Node) -> Node:
    return apply(graph, "assign", _empty(graph, node, node.tensor.shape), x, path=())


def _rolls_part(node: Node) -> bool:
    """Whether a kernel would read a part of an array at places of its own, which loops in machine code cannot."""
    if node.op is not ops.ROLL:
        return False
    (operand,) = node.inputs
    return operand.op.kind == "view" and operand.op not in (ops.RESHAPE, ops.RAVEL)


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


def _empty(graph: Graph, node: Node, shape: Sequence[Size]) -> Node:
    return apply(graph, "empty", shape=tuple(shape), dtype=node.tensor.dtype.name, location=node.location)


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
