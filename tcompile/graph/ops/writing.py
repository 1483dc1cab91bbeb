"""Writes to parts of arrays, as pure operations.

Input: nothing.
Output: rows of the op table.
Why: graphs stay pure; code generators store in place wherever the base's old elements are dead.

``assign(base, value, path=…)`` is ``base`` with ``value``, broadcast, in place of the elements of the view that the
view ops of ``path``, one after the other, lead to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph.ir import Node
from tcompile.graph.op import EVERYWHERE, OPS, QUIET, Aliasing, Op, define
from tcompile.graph.ops.rules import broadcast_shapes
from tcompile.graph.ops.view import BROADCAST_TO, DIAGONAL, INDEX, WINDOWS, is_view_of_operand
from tcompile.graph.types import TensorType

Step: TypeAlias = tuple[str, tuple[tuple[str, Any], ...]]
Path: TypeAlias = tuple[Step, ...]
_PARTS: WeakKeyDictionary[Node, tuple[TensorType, Path, TensorType]] = WeakKeyDictionary()
_READ_ONLY = (BROADCAST_TO, DIAGONAL, WINDOWS)  # several elements at one address, or a view that NumPy protects


def path_types(base: TensorType, path: Path) -> list[TensorType]:
    """The types along a path, ``base`` first. Raises GraphError where a step is not a writeable view op."""
    types = [base]
    for op, attrs in path:
        row = OPS.get(op)
        if row is None or row.memory is not Aliasing.VIEW or row in _READ_ONLY:
            raise GraphError(f"assign: {op} shows no elements that can be written to")
        types.append(row.infer([types[-1]], dict(attrs)))
        if not is_view_of_operand(row, types[-2], types[-1]):
            raise GraphError(f"assign: {op} of {types[-2]} may be a copy")
    return types


def part_of(node: Node) -> TensorType:
    """The type of the part that a node with a path replaces or indexes; cached, since it is frequent."""
    base, path = node.inputs[0].tensor, node.attrs["path"]
    known = _PARTS.get(node)
    if known is None or known[0] is not base or known[1] is not path:
        known = _PARTS[node] = base, path, path_types(base, path)[-1]
    return known[2]


def step_of(op: Op, attrs: dict[str, Any]) -> Step:
    """A view op as one step of a path."""
    return op.name, tuple(attrs.items())


def _assign_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    base, value = types
    if base is None or value is None:
        raise GraphError("assign needs two tensor operands")
    part = path_types(base, attrs["path"])[-1]
    if value.dtype != part.dtype:
        raise GraphError(f"assign: {value} goes to elements of {part.dtype}")
    if len(broadcast_shapes([value.shape, part.shape])) != part.ndim:
        raise GraphError(f"assign: {value} does not fit into {part}")
    return base


def _assign(base: Any, value: Any, path: Path) -> Any:
    new = np.copy(base, order="K") if path else np.empty_like(base)
    shown(new, path)[...] = value
    return new


def shown(base: Any, path: Path) -> Any:
    """The view of an array that a path of known numbers leads to."""
    part = base
    for op, attrs in path:
        named = dict(attrs)
        if op == INDEX.name and Ellipsis not in named["key"]:  # an index of ints alone would give a scalar
            named["key"] = (*named["key"], Ellipsis)
        part = OPS[op].reference(np)(part, **named)
    return part


ASSIGN = define(Op("assign", "opaque", 2, _assign_rule, _assign,
                   "``base`` with the elements that ``path`` shows replaced", QUIET, Aliasing.WRITES,
                   EVERYWHERE))  # fmt: skip

__all__ = ["ASSIGN", "Path", "part_of", "path_types", "shown", "step_of"]
