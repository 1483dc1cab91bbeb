"""Adding operations to a graph.

Input: an operation, or its name, and its operands. Output: the node, with the type that the operation's rule works out.
Why: code that builds graphs states no types, and operands that do not fit are refused where they are given.
"""

from __future__ import annotations

from typing import Any

from tcompile.errors import GraphError
from tcompile.graph.ir import Graph, Location, Node, Operand
from tcompile.graph.op import Op, op_named
from tcompile.graph.types import TensorType

MOST_AXES = 64  # of NumPy's arrays


def operand_type(operand: Operand) -> TensorType | None:
    """The type that a type rule sees: a tensor type, or None for anything weakly typed."""
    if isinstance(operand, Node) and isinstance(operand.type, TensorType):
        return operand.type
    return None


def apply(
    graph: Graph,
    op: Op | str,
    *operands: Operand,
    location: Location | None = None,
    node_name: str | None = None,
    **attrs: Any,
) -> Node:
    """Adds the operation ``op`` on ``operands`` to ``graph`` and returns the node.

    Raises GraphError where the operation is unknown or the operand types do not fit it.
    """
    row = op_named(op) if isinstance(op, str) else op
    if row.arity is not None and len(operands) != row.arity:
        raise GraphError(f"{row.name} takes {row.arity} operands, got {len(operands)}")
    type = row.infer([operand_type(o) for o in operands], attrs)
    if isinstance(type, TensorType) and type.ndim > MOST_AXES:
        raise GraphError(f"{row.name} would give {type.ndim} axes; arrays have at most {MOST_AXES}")
    return graph.append(row, operands, attrs, type, name=node_name, location=location)


__all__ = ["MOST_AXES", "apply", "operand_type"]
