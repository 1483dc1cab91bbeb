"""Which rows give NumPy's very bits in a kernel, whatever the operands.

Enters: a node that kernels can compute. Leaves: whether its results have NumPy's bits. The others are within the bounds
of docs/numerics.md; under the option ``exact`` they are NumPy calls. Exists so that this promise is one list.
"""

from __future__ import annotations

from tcompile.graph import Graph, Node, TensorType
from tcompile.graph.ops import OPS

# Correctly rounded, or nothing to round, on floats. Not here: vector functions; ``maximum`` and its relatives, where
# the sign of a zero depends in NumPy on the position of the element.
_FLOATS = frozenset({
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "negative", "ordered", "positive",
    "square", "python_sqrt", "python_divide", "finite",
    "reciprocal", "sqrt", "abs", "sign", "floor", "ceil", "trunc", "round", "copysign", "nextafter",
    "isnan", "isinf", "isfinite", "signbit", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor", "logical_not", "where", "astype",
})  # fmt: skip
# Complex products are not here either: whether NumPy fuses them depends on the strides.
_COMPLEX = _FLOATS - {"multiply", "square", "abs"} | {"conj"}
# What moves elements, or goes through them in NumPy's order.
_EXACT = ("assign", "gather", "scatter", "combine", "cumulative_sum", "cumulative_prod")
_SCALARS = frozenset(f"scalar_{name}" for name in (*_FLOATS, "pow"))  # both sides call libm's pow


def is_exact(node: Node) -> bool:
    """Whether a kernel computes ``node`` with NumPy's bits."""
    if OPS[node.op].kind == "creation" or node.op in _EXACT:
        return True
    types = [operand.type for operand in node.inputs]
    kinds = {t.dtype.kind for t in (*types, node.type) if isinstance(t, TensorType)}
    if kinds <= set("biu"):
        return True
    if OPS[node.op].kind != "pointwise":
        return False
    return node.op in (_COMPLEX if "c" in kinds else _FLOATS | _SCALARS)


def is_exact_throughout(graph: Graph) -> bool:
    """Whether all that a graph computes has NumPy's bits, without the option: in kernels, in loops, and beside them."""
    return all(_stays_exact(node) and all(map(is_exact_throughout, node.regions)) for node in graph.nodes)


def _stays_exact(node: Node) -> bool:
    if OPS[node.op].kind == "opaque":
        return node.op != "matmul"  # of which small ones are sums in kernels
    if node.op in ("maximum", "minimum") and any(map(_is_not_zero, node.operands)):
        return True  # as where a Python float becomes an array, beside infinity
    return OPS[node.op].kind in ("control", "movement") or node.op in _POSITIONS or is_exact(node)


def _is_not_zero(operand: object) -> bool:
    if isinstance(operand, Node):
        return operand.op == "full" and _is_not_zero(operand.attrs["fill_value"])
    return isinstance(operand, int | float) and operand != 0


_POSITIONS = ("argmax", "argmin", "any", "all")  # which no order of the elements and no sign of a zero changes
