"""Construction of graphs: operations with inferred types.

Input: an operation, or its name, and its operands.
Output: the node, with the type that the operation's rule infers.
Why: code that builds graphs states no types, and ill-typed operands are refused at once.
"""

from __future__ import annotations

from typing import Any

from tcompile.errors import GraphError
from tcompile.graph.ir import Graph, Location, Node, Operand
from tcompile.graph.op import Op, op_named
from tcompile.graph.types import TensorType

MOST_AXES = 64  # the limit of NumPy's arrays


def operand_type(operand: Operand) -> TensorType | None:
    """The operand's type for type rules: a tensor type, or None for a weakly typed number."""
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
