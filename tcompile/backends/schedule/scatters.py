"""Scatters in kernels, and the order in which they write.

Input: a ``scatter`` or ``combine`` node.
Output: whether kernels can do it (``admits``), and the required order: none (``is_in_any_order``), or that of the
indices (``is_in_their_order``).
Why: where several values go to one place, NumPy iterates over the arrays in memory order.
"""

from __future__ import annotations

from collections.abc import Set

from tcompile.backends.schedule.admission import COMPUTED, number_fits
from tcompile.backends.schedule.complex_and_half import DOUBLE, HALF
from tcompile.backends.schedule.lower import computed_type, places_of
from tcompile.graph import Node, Size, TensorType
from tcompile.graph.sizes import is_one, may_be_empty

# The functions that combine elements, by kind of dtype. NumPy's extrema of floats report NaNs here.
COMBINED: dict[str, frozenset[str | None]] = {
    "f": frozenset({None, "add", "subtract", "multiply", "divide"}),
    **dict.fromkeys("iu", frozenset({
        None, "add", "subtract", "multiply", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor",
    })),
}  # fmt: skip


def admits(node: Node, combines: Set[str | None]) -> bool:
    """Whether a kernel can do these writes, apart from their order. ``combines``: the functions that can combine
    elements.
    """
    base, value, places, how = node.tensor, node.operands[1], places_of(node), node.attrs.get("ufunc")
    if base.dtype.name not in COMPUTED or not base.dtype.isnative:
        return False
    if any(index.tensor.dtype.name == "uint64" or not index.tensor.dtype.isnative for index in places):
        return False
    if may_be_empty(_rest(node)) or value in places:
        return False
    if how is not None and (how not in combines or base.dtype.kind not in "iuf" or base.dtype == HALF):
        return False
    if isinstance(value, Node):
        return isinstance(value.type, TensorType) and value.type.dtype == base.dtype
    # ``ufunc.at`` takes a number for an array of int64 or float64: NumPy combines it in the base's dtype, or in a wider
    # one whose upper bits are lost.
    if base.dtype.kind == "f":
        return base.dtype == DOUBLE and number_fits(value, base.dtype)
    return type(value) is int and base.dtype.name != "uint64" and number_fits(value, base.dtype)


def _rest(node: Node) -> tuple[Size, ...]:
    """The sizes of the axes of what is written that are not the indices'."""
    return computed_type(node).shape[max(index.tensor.ndim for index in places_of(node)) :]


def is_in_their_order(node: Node) -> bool:
    """Whether NumPy iterates over indices and values in C order."""
    return all(operand.tensor.c_contiguous for operand in node.inputs[1:])


def is_in_any_order(node: Node) -> bool:
    """Whether the order of values for one place makes no difference."""
    how, value = node.attrs.get("ufunc"), node.operands[1]
    if how is not None:
        return node.tensor.dtype.kind in "iu"
    if not isinstance(value, Node):
        return True
    return all(is_one(size) for size in value.tensor.shape[: max(0, value.tensor.ndim - len(_rest(node)))])


__all__ = ["COMBINED", "admits", "is_in_any_order", "is_in_their_order"]
