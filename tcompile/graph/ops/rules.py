"""Type rules: broadcasting, memory order, dtypes.

Input: operand types.
Output: the shape, the layout or the dtype of a result, or a GraphError where they do not fit.
Why: NumPy derives a result's memory order from its operands' strides; all operations share these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcompile.errors import GraphError
from tcompile.graph.dtypes import DType
from tcompile.graph.sizes import Size, SymInt, guarded_one, is_one, same
from tcompile.graph.types import Layout, TensorType


class UnknownOrder(GraphError):
    """The memory order of an operation's result is unknown."""


def broadcast_shapes(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    """NumPy's broadcasting. Raises GraphError where sizes do not fit."""
    ndim = max((len(shape) for shape in shapes), default=0)
    result: list[Size] = [1] * ndim
    for shape in shapes:
        for axis, size in enumerate(shape, start=ndim - len(shape)):
            have = result[axis]
            if is_one(have):
                result[axis] = size
            elif not (is_one(size) or same(size, have) or size == have):
                raise GraphError(f"shapes {' and '.join(map(str, shapes))} do not broadcast")
            elif isinstance(have, SymInt) and isinstance(size, int) and not is_one(size):
                result[axis] = size
    return tuple(result)


def k_order(operands: Sequence[TensorType], shape: tuple[Size, ...]) -> Layout:
    """The layout NumPy's iterator gives a new array of ``shape`` computed from ``operands`` (order="K").

    An empty array has no strides for later comparisons.
    """
    return Layout.c(len(shape)) if _is_empty(shape) else walked_order(operands, shape)


def _is_empty(shape: Sequence[Size]) -> bool:
    return any(isinstance(size, int) and not size for size in shape)


def walked_order(operands: Sequence[TensorType], shape: tuple[Size, ...]) -> Layout:
    """The order in which NumPy's iterator traverses ``operands``, broadcast to ``shape``.

    Axes are insertion-sorted by stride, innermost first. An axis moves outward past another where every operand that
    can tell (both strides non-zero) does not object, the first operand that can tell deciding.
    """
    ndim = len(shape)
    cannot_tell = is_one if len({operand.layout.ranks for operand in operands}) == 1 else has_no_order(operands)

    def rank(operand: TensorType, axis: int) -> float:
        own = axis - (ndim - operand.ndim)
        return 0 if own < 0 or cannot_tell(operand.shape[own]) else operand.layout.ranks[own]

    ordered = list(range(ndim - 1, -1, -1))  # innermost first
    for start in range(1, ndim):
        position = start
        for other in range(start - 1, -1, -1):
            ambiguous, swap = True, False
            for operand in operands:
                outer, inner = rank(operand, ordered[start]), rank(operand, ordered[other])
                if outer and inner:
                    swap = inner > outer and (swap or ambiguous)
                    ambiguous = False
            if not ambiguous:
                if not swap:
                    break
                position = other
        ordered.insert(position, ordered.pop(start))
    return Layout.of_order(tuple(reversed(ordered)))


def has_no_order(operands: Sequence[TensorType]) -> Callable[[Size], bool]:
    """Whether an axis has no place in memory order, since it has one element.

    A size that may equal one (``n - 1``) is compared, and so guarded, unless all operands are in C order: then nothing
    depends on it.
    """
    return is_one if all(operand.in_c_order for operand in operands) else guarded_one


def like_order(type: TensorType) -> Layout:
    """The layout of a copy in order="K": axes sorted by stride, so that broadcast axes (stride 0) come innermost."""
    return Layout.c(type.ndim) if _is_empty(type.shape) else Layout.of_order(type.layout.order)


def common_dtype(name: str, types: Sequence[TensorType | None]) -> DType:
    """The one dtype of all tensor operands. Raises GraphError where they differ (casts are explicit)."""
    dtypes = {t.dtype for t in types if t is not None}
    if len(dtypes) != 1:
        raise GraphError(f"{name} needs operands of one dtype, got {sorted(map(str, dtypes)) or 'only numbers'}")
    return dtypes.pop()


def tensors(types: Sequence[TensorType | None]) -> list[TensorType]:
    """The operand types that are tensors."""
    return [t for t in types if t is not None]


def only(name: str, types: Sequence[TensorType | None]) -> TensorType:
    """The single tensor operand's type."""
    (type,) = types
    if type is None:
        raise GraphError(f"{name} needs a tensor operand")
    return type


__all__ = [
    "UnknownOrder",
    "broadcast_shapes",
    "common_dtype",
    "has_no_order",
    "k_order",
    "like_order",
    "only",
    "tensors",
    "walked_order",
]
