"""Indexing with basic keys and with arrays.

Input: an array and a key of ints, slices, None, Ellipsis, and arrays or lists.
Output: one ``index`` node, a view as in NumPy, or a scalar if ints use up every axis. With arrays among the items, a
``gather`` of that view, whose new axes ``permute_dims`` moves to NumPy's position. For a mask, the elements under it
(see ``masks``).
Why: views and gathers fuse into kernels.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Selected, Traced, TracedNumber
from tcompile.frontends.numpy import masks
from tcompile.frontends.numpy.elementwise import where
from tcompile.frontends.numpy.registry import NO_VALUE, function, method, refuse_unless
from tcompile.frontends.numpy.shape import ravel
from tcompile.frontends.numpy.values import (
    BOOL,
    INT,
    array,
    as_ndarray,
    axis_in,
    cast,
    nested,
    refuse_list,
    sizes_equal,
    strong,
)
from tcompile.graph import Node
from tcompile.graph.sizes import Size, SymInt


def getitem(b: Builder, x: Traced, key: Any) -> Traced | Selected:
    """``x[key]``."""
    items = items_of(b, x, key)
    found = under_mask(b, x, items)
    if found is not None:
        view, mask, lead = found
        return Selected(view.node, mask, lead=lead)
    if any(isinstance(k, Traced) for k in items):
        return _gathered(b, x, items)
    return basic(b, x, items)


def basic(b: Builder, x: Traced, items: tuple[Any, ...]) -> Traced:
    """``x[items]`` without arrays among the items."""
    element = _is_element(x, items)
    if x.scalar:
        return x if element else Traced(b.op("index", as_ndarray(b, x).node, key=items))
    return Traced(b.op("index", x.node, key=items), scalar=element)


def _is_element(x: Traced, items: tuple[Any, ...]) -> bool:
    """Whether each axis has an int, or an array of rank 0."""
    used = [k for k in items if k is not None and k is not Ellipsis]
    return len(used) == x.type.ndim and all(
        k is not None and k is not Ellipsis and not isinstance(k, slice) for k in items
    )


def _gathered(b: Builder, x: Traced, items: tuple[Any, ...]) -> Traced:
    """``x[items]`` where arrays are among the items: ints are then arrays too, of rank 0."""
    element = _is_element(x, items)
    computed = [k for k in items if isinstance(k, Traced)]
    if x.scalar:
        raise CannotCapture("advanced-indexing", "an array as an index of a scalar")
    if not element and all(k.scalar for k in computed):
        raise CannotCapture("data-dependent-value", "an index computed by the captured code")
    view, axes, indices = spread(b, x, items)
    node = b.op("gather", view, *indices, axes=axes)
    order = arrangement(axes, indices, node.tensor.ndim)
    if order is not None:
        node = b.op("permute_dims", node, axes=order)
    return Traced(node, scalar=element and not node.tensor.ndim)


def arrangement(axes: tuple[int, ...], indices: Sequence[Node], ndim: int) -> tuple[int, ...] | None:
    """Returns the order of axes of a gather's result: None if the axes of the indices come first.

    Adjacent indices stay in their place.
    """
    rank = max(index.tensor.ndim for index in indices)
    if not rank or not axes[0] or axes != tuple(range(axes[0], axes[0] + len(axes))):
        return None
    return (*range(rank, rank + axes[0]), *range(rank), *range(rank + axes[0], ndim))


def items_of(b: Builder, x: Traced, key: Any) -> tuple[Any, ...]:
    """The items of a key for ``x``: ints, slices, None, Ellipsis, and traced arrays of integers or booleans."""
    given = _masks_for_indices(key if isinstance(key, tuple) else (key,))
    items = tuple(_item(b, k) for k in given)
    if any(map(is_mask, items)):  # a list of one int broadcasts against the selected elements, like the int
        items = tuple(
            k[0] if isinstance(k, list) and len(k) == 1 and type(k[0]) is int else item
            for k, item in zip(given, items, strict=True)
        )
    axes = sum(k.type.ndim if is_mask(k) else k is not None and k is not Ellipsis for k in items)
    if axes > x.type.ndim or sum(k is Ellipsis for k in items) > 1:
        raise CannotCapture("operation-raises", "too many indices for array")
    return items


def _masks_for_indices(items: Sequence[Any]) -> list[Any]:
    """The items of a key, with one mask instead of the indices, along all its axes, of what it selects."""
    found: list[Any] = []
    rest = list(items)
    while rest:
        first = rest.pop(0)
        if isinstance(first, Selected) and first.axis == 0:
            more = first.mask.tensor.ndim - 1
            along = [k.axis for k in rest[:more] if isinstance(k, Selected) and masks.same_value(k.mask, first.mask)]
            if along == list(range(1, more + 1)):
                first = Traced(first.mask)
                del rest[:more]
        found.append(first)
    return found


def is_mask(item: Any) -> bool:
    """Whether an item of a key is an array of booleans."""
    return isinstance(item, Traced) and item.type.dtype.kind == "b"


def under_mask(b: Builder, x: Traced, items: tuple[Any, ...]) -> tuple[Traced, Node, int] | None:
    """The view of ``x`` that a key with one mask picks from, the mask, and how many axes of the view come before the
    mask's; None where there is no mask in the key.
    """
    masked = [place for place, k in enumerate(items) if is_mask(k)]
    if not masked:
        return None
    mask, missing = items[masked[0]], x.type.ndim
    if len(masked) > 1 or any(isinstance(k, Traced) for k in items if k is not mask):
        raise CannotCapture("advanced-indexing", "a mask beside other arrays as an index")
    if x.scalar or mask.scalar or not mask.type.ndim:
        raise CannotCapture("advanced-indexing", "a boolean as an index")
    missing -= mask.type.ndim + sum(k is not None and k is not Ellipsis for k in items) - 1
    if not missing and any(k is Ellipsis for k in items):
        raise CannotCapture("advanced-indexing", "a mask beside an ellipsis that stands for nothing")
    key: list[Any] = []
    for item in items if any(k is Ellipsis for k in items) else (*items, Ellipsis):
        key += [slice(None)] * missing if item is Ellipsis else [item]
    place = next(i for i, k in enumerate(key) if k is mask)
    before, after = key[:place], key[place + 1 :]
    _refuse_apart(before, after)
    lead = sum(k is None or isinstance(k, slice) for k in before)
    whole = (*before, *(slice(None),) * mask.type.ndim, *after)
    plain = all(isinstance(k, slice) and k == slice(None) for k in whole)
    view = x if plain else Traced(b.op("index", x.node, key=whole))
    if not all(map(sizes_equal, mask.type.shape, view.type.shape[lead:])):
        raise CannotCapture("operation-raises", "boolean index did not match indexed array")
    return view, mask.node, lead


def _refuse_apart(before: Sequence[Any], after: Sequence[Any]) -> None:
    """Ints count as arrays beside a mask: where slices lie between them, what they pick comes first in the result."""
    ints, more = ([k is not None and not isinstance(k, slice) for k in part] for part in (before, after))
    if not all(ints) and (ints != sorted(ints) or more != sorted(more, reverse=True)):
        raise CannotCapture("advanced-indexing", "a mask apart from the ints of an index")


def spread(b: Builder, x: Traced, items: tuple[Any, ...]) -> tuple[Node, tuple[int, ...], list[Node]]:
    """Applies the basic items of a key: returns a view of ``x``, its axes that arrays index, and these arrays."""
    missing = x.type.ndim - sum(k is not None and k is not Ellipsis for k in items)
    key: list[Any] = []
    for item in items:
        key += [slice(None)] * missing if item is Ellipsis else [item]
    if not any(k is Ellipsis for k in items):
        key += [slice(None)] * missing
    advanced = [place for place, k in enumerate(key) if isinstance(k, Traced | SymInt) or type(k) is int]
    indices = [strong(b, key[place]).node for place in advanced]
    basic = tuple(slice(None) if place in advanced else k for place, k in enumerate(key))
    changes = any(k is None or k != slice(None) for k in basic)
    view = b.op("index", x.node, key=basic) if changes else x.node
    _check_unasked(view, {place: key[place] for place in advanced}, indices)
    return view, tuple(advanced), indices


def _check_unasked(view: Node, given: Mapping[int, Any], indices: Sequence[Node]) -> None:
    """Checks indices, by axes, that kernels would not check, because no element is read.

    NumPy checks all indices if there are any, and a single one beside arrays even if these are empty.
    """
    shapes = [index.tensor.shape for index in indices]
    if not _is_empty([n for shape in shapes for n in shape]):
        if _is_empty([n for axis, n in enumerate(view.tensor.shape) if axis not in given]):
            raise CannotCapture("unsupported-argument", "an index into an array that is empty along another axis")
        return
    for (axis, item), shape in zip(given.items(), shapes, strict=True):
        if shape:
            continue
        if isinstance(item, Traced):
            raise CannotCapture("unsupported-argument", "a computed index beside an empty array of indices")
        size = view.tensor.shape[axis]
        if not -size <= item < size:
            raise CannotCapture("operation-raises", f"index {item} is out of bounds for axis {axis} with size {size}")


def _is_empty(sizes: Sequence[Size]) -> bool:
    return any(isinstance(n, int) and n == 0 for n in sizes)


def _item(b: Builder, item: Any) -> Any:
    """An item of a key: an int, a slice, None, Ellipsis, or a traced array of integers or booleans."""
    if item is None or item is Ellipsis or isinstance(item, SymInt):
        return item
    if type(item) is int:
        if abs(item) > sys.maxsize:
            raise CannotCapture("operation-raises", "an index of more than 64 bits")
        return item
    if isinstance(item, slice):
        return slice(_bound(item.start), _bound(item.stop), _bound(item.step))
    if isinstance(item, list | tuple):
        item = _places(b, item)
    if isinstance(item, Traced):
        if item.type.dtype.kind in "biu":
            return item
        raise CannotCapture("operation-raises", f"an index of dtype {item.type.dtype}")
    if isinstance(item, TracedNumber):
        raise CannotCapture("operation-raises", "a float as an index")
    if isinstance(item, Selected):
        raise masks.refused("as an index")
    if isinstance(item, bool | np.bool_):
        raise CannotCapture("advanced-indexing", f"a {type(item).__name__} as an index")
    try:
        return operator.index(item)
    except TypeError as error:
        raise CannotCapture("operation-raises", f"an index of type {type(item).__name__}") from error


def _places(b: Builder, item: Any) -> Traced:
    """A list as an index: the array that NumPy makes of it, of integers where it is empty."""
    return nested(b, item, None if _holds_any(item) else INT)


def _holds_any(item: Any) -> bool:
    """Whether nested lists have any element."""
    return any(map(_holds_any, item)) if isinstance(item, list | tuple) else True


def _bound(value: Any) -> Any:
    if value is None or isinstance(value, SymInt):
        return value
    if isinstance(value, Traced | TracedNumber):
        raise CannotCapture("data-dependent-value", "a slice bound computed by the captured code")
    try:
        return max(-sys.maxsize, min(operator.index(value), sys.maxsize))  # as Python itself takes larger ones
    except TypeError as error:
        raise CannotCapture("operation-raises", f"a slice bound of type {type(value).__name__}") from error


def through(b: Builder, x: Traced, axis: int) -> Traced:
    """The numbers 0, 1, 2, … along one axis of an array, with as many axes as it has."""
    size = x.type.shape[axis]
    node = b.op("arange", start=0, stop=size, step=1, dtype=INT.name)
    shape = tuple(size if i == axis else 1 for i in range(x.type.ndim))
    return Traced(b.op("reshape", node, shape=shape))


@function("nonzero")
@method("nonzero")
def nonzero(b: Builder, a: Any) -> tuple[Selected, ...]:
    """``np.nonzero``: along each axis, the indices under the mask of what is not zero."""
    x = array(b, a)
    if not x.type.ndim:
        raise CannotCapture("operation-raises", "nonzero of a number")
    mask = cast(b, x, BOOL)
    axes = range(x.type.ndim)
    return tuple(
        Selected(b.op("broadcast_to", through(b, x, axis).node, shape=x.type.shape), mask, axis=axis) for axis in axes
    )


@function("flatnonzero")
def flatnonzero(b: Builder, a: Any) -> Selected:
    """``np.flatnonzero``: ``np.nonzero`` of all elements in C order."""
    (indices,) = nonzero(b, ravel(b, a))
    return indices


def _places_of(b: Builder, name: str, value: Any) -> Traced:
    """Returns a function's indices as an array of integers in C order."""
    places = Traced(nested(b, value).node) if isinstance(value, list | tuple) else strong(b, value)
    dtype = places.type.dtype
    if dtype.kind not in "iu" or dtype.name == "uint64" or not places.type.c_contiguous:
        raise CannotCapture("unsupported-argument", f"{name} at these places")
    return places


@function("take")
@method("take")
def take(b: Builder, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Traced:
    """``np.take`` along the first axis, or through the whole array: what it gives lies in C order."""
    refuse_unless("take", mode=(mode, ("raise",)), out=(out, (None,)))
    x, places = array(b, a), _places_of(b, "take", indices)
    if x.scalar or not x.type.ndim or not x.type.c_contiguous:
        raise CannotCapture("memory-order", "take from an array that is not in C order")
    if axis is None:
        x = x if x.type.ndim == 1 else Traced(b.op("reshape", x.node, shape=(x.type.size,)))
    elif axis_in(axis, x.type.ndim):
        raise CannotCapture("memory-order", "take along an inner axis")
    node = b.op("gather", x.node, places.node, axes=(0,))
    return Traced(node, scalar=not node.tensor.ndim)


@function("take_along_axis")
def take_along_axis(b: Builder, arr: Any, indices: Any, axis: Any = -1) -> Traced:
    """Builds ``np.take_along_axis``: one array of indices along an axis, all other axes enumerated."""
    if not isinstance(indices, Traced):
        raise CannotCapture("operation-raises", "places that are no array")
    refuse_list(arr)
    x, places = array(b, arr), indices
    if axis is None or not x.type.ndim or places.type.ndim != x.type.ndim or places.type.dtype.kind not in "iu":
        raise CannotCapture("unsupported-argument", "take_along_axis of these arguments")
    place = axis_in(axis, x.type.ndim)
    found = [through(b, x, i) if i != place else places for i in range(x.type.ndim)]
    return Traced(b.op("gather", x.node, *(index.node for index in found), axes=tuple(range(x.type.ndim))))


@method("__getitem__")
def _getitem(b: Builder, x: Traced, key: Any) -> Traced | Selected:
    return getitem(b, x, key)


@function("where")
def _where(b: Builder, condition: Any, x: Any = NO_VALUE, y: Any = NO_VALUE, /) -> Any:
    """``np.where`` with three arguments, or with one, when it is ``np.nonzero``."""
    if x is NO_VALUE and y is NO_VALUE:
        return nonzero(b, condition)
    if x is NO_VALUE or y is NO_VALUE:
        raise CannotCapture("operation-raises", "either both or neither of x and y should be given")
    return where(b, condition, x, y)
