"""Shape rules of sorting, searching, choosing and taking.

Input: arguments in which types replace arrays.
Output: shapes.
Why: these functions stay one call of NumPy; ``library`` makes a node of a rule.
"""

from __future__ import annotations

from typing import Any

from tcompile.frontends.numpy.library import Shape, along, array_method, library, refuse, shape_of, together, total
from tcompile.frontends.numpy.values import INT, axis_in
from tcompile.graph import TensorType


def _flat_or_same(a: Any, axis: Any) -> Shape:
    return (total(shape_of(a)),) if axis is None else shape_of(a)


@library("sort")
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Shape:
    """The same shape, or all elements in a row."""
    return _flat_or_same(a, axis)


@library("argsort", method=True)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Shape:
    """The same shape, or all elements in a row."""
    return _flat_or_same(a, axis)


@library("partition", example={"kth": 0})
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Shape:
    """The same shape, or all elements in a row."""
    return _flat_or_same(a, axis)


@library("argpartition", example={"kth": 0}, method=True)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Shape:
    """The same shape, or all elements in a row."""
    return _flat_or_same(a, axis)


@library("lexsort")
def lexsort(keys: Any, axis: Any = -1) -> Shape:
    """The shape of one key."""
    shape = shape_of(keys[0]) if isinstance(keys, tuple | list) else shape_of(keys)[1:]
    if not shape:
        raise refuse("lexsort of numbers")
    return shape


@library("sort_complex")
def sort_complex(a: Any) -> Shape:
    """The same shape."""
    return shape_of(a)


@library("searchsorted", method=True)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Shape:
    """The shape of what is searched."""
    return shape_of(v)


@library("take", method=True, values={"indices": "zeros"}, example={"mode": "clip"})
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Shape:
    """The indices in the place of the axis."""
    if axis is None:
        return shape_of(indices)
    shape = shape_of(a)
    place = axis_in(axis, len(shape))
    return (*shape[:place], *shape_of(indices), *shape[place + 1 :])


@library("take_along_axis", values={"indices": "zeros"})
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Shape:
    """The common shape, with as many elements along the axis as there are indices."""
    shape, at = shape_of(arr), shape_of(indices)
    if axis is None:
        return at
    if len(shape) != len(at):
        raise refuse("take_along_axis of different numbers of dimensions", "operation-raises")
    place = axis_in(axis, len(shape))
    return together(TensorType(INT, along(shape, place, 1)), TensorType(INT, at))


@library("choose", values={"a": "zeros"})
def choose(a: Any, choices: Any, out: Any = None, mode: Any = "raise") -> Shape:
    """The common shape."""
    rows = choices if isinstance(choices, tuple | list) else [TensorType(INT, shape_of(choices)[1:])]
    return together(a, *rows)


@array_method("choose", values={"a": "zeros"})
def _choose(a: Any, choices: Any, /, *, out: Any = None, mode: Any = "raise") -> Shape:
    return choose(a, choices)  # several choices, one by one, are left to NumPy


@library("select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Shape:
    """The common shape."""
    if not all(isinstance(part, tuple | list) for part in (condlist, choicelist)):
        raise refuse("select of arrays that are not in lists")
    return together(*condlist, *choicelist, default)


@library("packbits")
def packbits(a: Any, /, axis: Any = None, bitorder: Any = "big") -> Shape:
    """An eighth as long."""
    shape = shape_of(a)
    if axis is None:
        return ((total(shape) + 7) // 8,)
    return along(shape, axis, (shape[axis_in(axis, len(shape))] + 7) // 8)


@library("unpackbits")
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: Any = "big") -> Shape:
    """Eight times as long, or ``count``."""
    shape = shape_of(a)
    size = total(shape) if axis is None else shape[axis_in(axis, len(shape))]
    if not size > 0:
        raise refuse("unpackbits of nothing, which NumPy leaves undefined", "undefined-contents")
    long = size * 8
    if count is not None:
        long = count if count >= 0 else long + count
    return (long,) if axis is None else along(shape, axis, long)


@library("unravel_index", values={"indices": "zeros"})
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> list[Shape]:
    """The shape of the indices, once for each dimension."""
    return [shape_of(indices)] * (len(shape) if isinstance(shape, tuple | list) else 1)


@library("ravel_multi_index", values={"multi_index": "zeros"})
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Shape:
    """The common shape."""
    rows = multi_index if isinstance(multi_index, tuple | list) else [TensorType(INT, shape_of(multi_index)[1:])]
    return together(*rows)
