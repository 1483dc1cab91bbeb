"""Gather and scatter: elements at computed places, read and written.

Input: nothing.
Output: rows of the op table.
Why: fancy indexing is fused like other operations.

``gather(x, *indices, axes=…)`` is ``x`` indexed by integer arrays along ``axes``: the axes of the indices, broadcast
together, come first, and the other axes of ``x`` follow. Negative indices count from the end; those out of range raise
IndexError. ``scatter(x, value, *indices, axes=…, path=…)`` is ``x`` with ``value``, broadcast, where ``gather`` would
read from the view of ``x`` that the view ops of ``path`` show (``writing``); the last of several values for one place
stays. ``combine`` (with ``ufunc``, the name of one of NumPy's) combines each value with the current element at its
place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph.build import MOST_AXES
from tcompile.graph.dtypes import kind_of
from tcompile.graph.op import EVERYWHERE, Aliasing, Op, OverNamespace, define
from tcompile.graph.ops.rules import UnknownOrder, broadcast_shapes, has_no_order, tensors
from tcompile.graph.ops.writing import Path, path_types, shown
from tcompile.graph.sizes import Size, hint
from tcompile.graph.types import Layout, TensorType
from tcompile.numpy_versions import INDICES_CHECKED_BESIDE_EMPTY

_KEPT_SIZES = 3  # smaller sizes are kept
_MOST_ELEMENTS = 1 << 20  # of arrays that are made to probe a memory order


def gathered_shape(x: TensorType, indices: Sequence[TensorType | None], axes: tuple[int, ...]) -> tuple[Size, ...]:
    """The shape of the indexed elements. Raises GraphError where the indices do not fit."""
    if len(indices) != len(axes) or not axes:
        raise GraphError(f"the axes {axes} take {len(axes)} arrays of indices")
    if len(set(axes)) != len(axes) or not all(0 <= axis < x.ndim for axis in axes):
        raise GraphError(f"the axes {axes} do not fit {x}")
    if not all(index is not None and kind_of(index.dtype) in "iu" for index in indices):
        raise GraphError("indices are arrays of integers")
    shape = broadcast_shapes([index.shape for index in tensors(indices)])
    return (*shape, *(n for axis, n in enumerate(x.shape) if axis not in axes))


def _gather_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    x, *indices = tensors(types)
    axes = attrs["axes"]
    result = gathered_shape(x, types[1:], axes)
    cannot_tell = has_no_order([x, *indices])
    for size in (n for t in (x, *indices) for n in t.shape):
        cannot_tell(size)  # the answer holds for the small arrays, too
    small = _small([x, *indices])
    if len(result) > MOST_AXES:
        raise GraphError(f"gather would give {len(result)} axes")
    return TensorType(x.dtype, result, _layout(small[0], tuple(small[1:]), tuple(axes)))


def _small(types: Sequence[TensorType]) -> list[TensorType]:
    """The same types with small sizes, which are equal where the sizes are."""
    seen = sorted({hint(n) for t in types for n in t.shape if hint(n) >= _KEPT_SIZES})
    sizes = {n: _KEPT_SIZES + i for i, n in enumerate(seen)}
    return [
        TensorType(t.dtype, tuple(sizes.get(hint(n), hint(n)) for n in t.shape), t.layout) for t in types
    ]  # fmt: skip


@lru_cache(maxsize=1024)
def _layout(x: TensorType, indices: tuple[TensorType, ...], axes: tuple[int, ...]) -> Layout:
    """The memory order of the result, as NumPy chooses it for small arrays. Raises UnknownOrder for too many axes."""
    made = [math.prod(map(hint, t.shape)) * _step(t) ** t.ndim for t in (x, *indices)]
    if max(*made, math.prod(map(hint, gathered_shape(x, indices, axes)))) > _MOST_ELEMENTS:
        raise UnknownOrder(f"an array of {x.ndim} axes under indices, whose order no small array shows")
    base = _stand_in(x)
    if not base.size:
        base = np.ones_like(base, shape=tuple(max(n, 1) for n in base.shape))
    result = np.asarray(_gather.of(np)(base, *map(_stand_in, indices), axes=axes))
    return Layout.of_order(tuple(sorted(range(result.ndim), key=lambda axis: -result.strides[axis])))


def _step(type: TensorType) -> int:
    return 1 if type.layout.dense else 2


def _stand_in(type: TensorType) -> np.ndarray[Any, Any]:
    """A small array of zeros of this type, in its memory order."""
    order = type.layout.order
    step = _step(type)
    sizes = [int(hint(type.shape[axis])) if type.layout.ranks[axis] else 1 for axis in order]
    array = np.zeros([n * step for n in sizes], type.dtype)[tuple(slice(None, None, step) for _ in sizes)]
    array = array.transpose(np.argsort(order)) if order else array
    return np.broadcast_to(array, tuple(hint(n) for n in type.shape))


def _scatter_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    x, value, *indices = types
    if x is None or ((value is None or x.dtype != value.dtype) and "ufunc" not in attrs):
        raise GraphError(f"{value} is scattered over {x}")
    shape = gathered_shape(path_types(x, attrs["path"])[-1], indices, attrs["axes"])
    if value is not None:
        whole = broadcast_shapes([value.shape, shape])
        if len(whole) != len(shape) or any(n != m for n, m in zip(whole, shape, strict=True)):
            raise GraphError(f"{value} does not fit into {shape}")
    return x


def _turned(x: Any, axes: tuple[int, ...]) -> Any:
    """A view of ``x`` whose first axes are ``axes``."""
    rest = [axis for axis in range(np.ndim(x)) if axis not in axes]
    return np.transpose(x, (*axes, *rest))


def _indexed(x: Any, indices: tuple[Any, ...], axes: tuple[int, ...]) -> Any:
    """A view of ``x`` with ``axes`` first, which the indices index.

    Raises IndexError where there are no elements and an index is out of range, if this NumPy does not.
    """
    turned = _turned(x, axes)
    if not INDICES_CHECKED_BESIDE_EMPTY and np.size(x) == 0 and np.broadcast(*indices).size:
        for size, index in zip(turned.shape, indices, strict=False):
            if not np.all((index >= -size) & (index < size)):
                raise IndexError(f"an index is out of bounds for an axis with size {size}")
    return turned


@OverNamespace
def _gather(xp: Any, x: Any, *indices: Any, axes: tuple[int, ...]) -> Any:
    return _indexed(x, indices, axes)[tuple(map(xp.asarray, indices))]  # a NumPy scalar would give a view


def _scatter_into(x: Any, value: Any, *indices: Any, axes: tuple[int, ...], path: Path) -> Any:
    _indexed(shown(x, path), indices, axes)[indices] = value
    return x


def _combine_into(x: Any, value: Any, *indices: Any, axes: tuple[int, ...], path: Path, ufunc: str) -> Any:
    getattr(np, ufunc).at(_indexed(shown(x, path), indices, axes), indices, value)
    return x


def _on_a_copy(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, *operands: Any, **attrs: Any) -> Any:
        return function(np.copy(x, order="K"), *operands, **attrs)

    return run


def _writes(name: str, function: Callable[..., Any], doc: str) -> Op:
    return define(Op(name, "opaque", None, _scatter_rule, _on_a_copy(function), doc, memory=Aliasing.WRITES,
                     exact=EVERYWHERE))  # fmt: skip


GATHER = define(Op("gather", "opaque", None, _gather_rule, _gather, "``x`` at the places that arrays of indices name",
                   memory=Aliasing.COPY, exact=EVERYWHERE, cost=6))  # fmt: skip
SCATTER = _writes("scatter", _scatter_into, "``x`` with other elements at places that arrays name")
COMBINE = _writes("combine", _combine_into, "``x`` with values combined, one by one, with elements")

# The same, in place: for operands whose old elements are dead.
IN_PLACE: dict[Op, Callable[..., Any]] = {SCATTER: _scatter_into, COMBINE: _combine_into}

__all__ = ["COMBINE", "GATHER", "IN_PLACE", "SCATTER", "gathered_shape"]
