"""Operations whose results in kernels have NumPy's bits, whatever the operands.

Input: a node that kernels can compute.
Output: whether its results have NumPy's bits.
Why: under the option ``exact``, all other nodes are NumPy calls.

The others are within the bounds of docs/numerics.md. Rows of the op table state the exact dtypes of an operation
(``Op.exact``); this module adds rules that depend on the node.
"""

from __future__ import annotations

from tcompile.graph import Graph, Node, TensorType, ops
from tcompile.graph.op import EVERYWHERE


def is_exact(node: Node) -> bool:
    """Whether a kernel computes ``node`` with NumPy's bits."""
    if node.op.exact == EVERYWHERE:
        return True
    types = [operand.type for operand in node.inputs]
    kinds = {t.dtype.kind for t in (*types, node.type) if isinstance(t, TensorType)}
    if kinds <= set("biu"):
        return True
    return node.op.kind == "pointwise" and ("c" if "c" in kinds else "f") in node.op.exact


def is_exact_throughout(graph: Graph) -> bool:
    """Whether everything that a graph computes has NumPy's bits without the option: in kernels, loops and calls."""
    return all(_stays_exact(node) and all(map(is_exact_throughout, node.regions)) for node in graph.nodes)


def _stays_exact(node: Node) -> bool:
    if node.op.kind == "opaque":
        return node.op is not ops.MATMUL  # small ones are sums in kernels
    if node.op in (ops.MAXIMUM, ops.MINIMUM) and any(map(_is_not_zero, node.operands)):
        return True  # as where a Python float becomes an array, beside infinity
    if node.op.kind == "reduction" and node.op.exact:
        return True
    return node.op.kind in ("control", "view") or is_exact(node)


def _is_not_zero(operand: object) -> bool:
    if isinstance(operand, Node):
        return operand.op is ops.FULL and _is_not_zero(operand.attrs["fill_value"])
    return isinstance(operand, int | float) and operand != 0
