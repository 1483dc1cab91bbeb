"""Constant folding, and composition of casts and of views.

Input: a graph.
Output: one in which rank-0 constants stand as bare numbers beside their users, arithmetic of constants is folded,
operations read what a broadcast repeats, casts of casts are one cast, and views of views are one view.
Why: later passes and kernels see fewer nodes.

Every rewrite preserves each bit, each floating-point condition, and aliasing: an output stays an array object of its
own.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph import Graph, Node, Operand, SymInt, TensorType, ops
from tcompile.graph.build import operand_type
from tcompile.graph.dtypes import exact_cast
from tcompile.graph.ops import apply
from tcompile.graph.sizes import UnprovableSizeError
from tcompile.strict import strict
from tcompile.transforms.cse import escaping_nodes
from tcompile.transforms.rewrite import keep, rewrite, same_type


def fold(graph: Graph) -> Graph:
    """Folds constants, casts and views."""
    outputs = set(graph.outputs)
    escaping = escaping_nodes(graph) if graph.scratch else set()

    def rule(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
        kind = node.op.kind
        if kind == "pointwise":
            return _pointwise(result, node, operands)
        if kind == "view":
            return _view(result, node, operands, node in outputs)
        if node.op is ops.ROLL:
            return _roll(result, node, operands)
        if graph.scratch and node.op in (ops.COPY, ops.COPY_C) and node not in escaping:
            (source,) = operands  # the identity of an array that an iteration reads is not observable
            return source if isinstance(source, Node) and same_type(source.type, node.type) else None
        return None

    return rewrite(graph, rule, fold)


# -- constants -----------------------------------------------------------------------------------------------


def _number(operand: Operand) -> Any:
    """The value of a constant operand of rank 0, or None."""
    if isinstance(operand, SymInt):
        return None
    if not isinstance(operand, Node):
        return operand
    if operand.op is not ops.FULL or not isinstance(operand.type, TensorType) or operand.type.ndim:
        return None
    value = operand.attrs["fill_value"]
    return None if isinstance(value, SymInt) else value


def _pointwise(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
    numbers = [_number(o) for o in operands]
    if not node.tensor.ndim and all(n is not None for n in numbers):
        return _computed(result, node, operands)
    if node.op is ops.ASTYPE:
        return _cast(result, node, operands)
    bare = tuple(o if n is None else n for o, n in zip(operands, numbers, strict=True))
    for others in (tuple(map(_unrepeated, bare)), bare):
        made = None if all(map(operator.is_, others, operands)) else _on(result, node, others)
        if made is not None:
            return made
    return None


def _on(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
    """The same operation on other operands; None where they give another type."""
    try:
        type = node.op.infer([operand_type(o) for o in operands], node.attrs)
    except (GraphError, UnprovableSizeError):
        return None  # the constant determines the dtype, or the condition of a selection; or the sizes are not proved
    return keep(result, node, operands) if same_type(type, node.type) else None


def _unrepeated(operand: Operand) -> Operand:
    """What a broadcast repeats: an operation on it broadcasts by itself."""
    return operand.operands[0] if isinstance(operand, Node) and operand.op is ops.BROADCAST_TO else operand


def _computed(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
    """Folds an operation on constants, unless computing it warns."""
    values = [np.full((), _number(o), o.tensor.dtype)[()] if isinstance(o, Node) else o for o in operands]
    try:
        with strict():
            value = np.asarray(node.op.reference(np)(*values, **node.attrs))
    except Exception:
        return None
    if value.dtype != node.tensor.dtype or np.isnan(value).any():
        return None
    return _full(result, node, value.item())


def _full(result: Graph, node: Node, value: Any) -> Node:
    type = node.tensor
    return apply(
        result, "full", location=node.location, node_name=node.name, shape=type.shape, fill_value=value,
        dtype=type.dtype.name,
    )  # fmt: skip


def _cast(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
    (operand,) = operands
    if not isinstance(operand, Node) or operand.op is not ops.ASTYPE:
        return None
    source = operand.inputs[0]
    first, middle, last = source.tensor.dtype, operand.tensor.dtype, node.tensor.dtype
    # Through a dtype that holds every value of the first, the detour changes nothing. Floats are left alone:
    # a
    # signalling NaN is quieted on the way.
    if first.kind not in "biu" or not exact_cast(first, middle) or last == first:
        return None
    made = ops.ASTYPE.infer([source.tensor], node.attrs)
    return keep(result, node, (source,)) if same_type(made, node.type) else None


# -- views ---------------------------------------------------------------------------------------------------


def _view(result: Graph, node: Node, operands: tuple[Operand, ...], output: bool) -> Node | None:
    (operand,) = operands
    if not isinstance(operand, Node) or not isinstance(operand.type, TensorType):
        return None
    if not output and same_type(operand.type, node.type) and _is_identity(node, operand.type):
        return operand
    if operand.op is not node.op:
        return None
    source = operand.inputs[0]
    attrs: dict[str, Any] | None = None
    if node.op is ops.PERMUTE_DIMS:
        inner = operand.attrs["axes"]
        attrs = {"axes": tuple(inner[a] for a in node.attrs["axes"])}
        if not output and attrs["axes"] == tuple(range(source.tensor.ndim)):
            return source
    elif node.op is ops.RESHAPE and source.tensor.c_contiguous:
        attrs = node.attrs
    if attrs is None:
        return None
    try:
        made = node.op.infer([source.tensor], attrs)
    except (GraphError, UnprovableSizeError):  # both together do not prove the size that the inner one states
        return None
    if not same_type(made, node.type):
        return None
    return result.append(node.op, (source,), attrs, node.type, name=node.name, location=node.location)


def _roll(result: Graph, node: Node, operands: tuple[Operand, ...]) -> Node | None:
    """One roll instead of two, where an axis is no shorter than both together."""
    (inner,) = operands
    if not isinstance(inner, Node) or inner.op is not ops.ROLL:
        return None
    shifts = tuple(a + b for a, b in zip(node.attrs["shifts"], inner.attrs["shifts"], strict=True))
    for size, shift in zip(node.tensor.shape, shifts, strict=True):
        if isinstance(size, SymInt) and not (size.bounds()[0] or 0) >= abs(shift):
            return None
    return apply(result, ops.ROLL, inner.inputs[0], shifts=shifts, location=node.location)


def _is_identity(node: Node, type: TensorType) -> bool:
    """Whether a view shows all elements, in order. The types are already known to be equal."""
    if node.op is ops.PERMUTE_DIMS:
        return tuple(node.attrs["axes"]) == tuple(range(type.ndim))
    if node.op is ops.RESHAPE:
        return type.c_contiguous
    # A broadcast is never one: NumPy makes it, and every view of it, read-only.
    if node.op is ops.INDEX:
        return all(k is Ellipsis or (isinstance(k, slice) and k == slice(None)) for k in node.attrs["key"])
    return False
