"""Indexing with basic keys and with arrays.

Enters: an array and a key of ints, slices, None, Ellipsis, and integer arrays or lists. Leaves: one ``index`` node, a
view as in NumPy, or a scalar where ints use up every axis; for arrays among the items, a ``gather`` of that view, whose
new axes ``permute_dims`` puts where NumPy puts them. Keys of booleans are refused.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced, TracedNumber
from tcompile.frontends.numpy.registry import method
from tcompile.frontends.numpy.values import INT, as_ndarray, nested, strong
from tcompile.graph import Node
from tcompile.graph.sizes import SymInt


def getitem(b: Builder, x: Traced, key: Any) -> Traced:
    """``x[key]``."""
    items = items_of(b, x, key)
    used = [k for k in items if k is not None and k is not Ellipsis]
    element = len(used) == x.type.ndim and all(
        k is not None and k is not Ellipsis and not isinstance(k, slice) for k in items
    )
    if any(isinstance(k, Traced) for k in items):
        return _gathered(b, x, items, element)
    if x.scalar:
        return x if element else Traced(b.op("index", as_ndarray(b, x).node, key=items))
    return Traced(b.op("index", x.node, key=items), scalar=element)


def _gathered(b: Builder, x: Traced, items: tuple[Any, ...], element: bool) -> Traced:
    """``x[items]`` where arrays are among the items: ints are then arrays too, of rank 0."""
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
    """The order of axes that NumPy gives to what is gathered: None where the axes of the indices come first.

    Indices side by side stay in their place.
    """
    rank = max(index.tensor.ndim for index in indices)
    if not rank or not axes[0] or axes != tuple(range(axes[0], axes[0] + len(axes))):
        return None
    return (*range(rank, rank + axes[0]), *range(rank), *range(rank + axes[0], ndim))


def items_of(b: Builder, x: Traced, key: Any) -> tuple[Any, ...]:
    """The items of a key for ``x``: ints, slices, None, Ellipsis, and traced arrays of integers."""
    items = tuple(_item(b, k) for k in (key if isinstance(key, tuple) else (key,)))
    if sum(k is not None and k is not Ellipsis for k in items) > x.type.ndim or sum(k is Ellipsis for k in items) > 1:
        raise CannotCapture("operation-raises", "too many indices for array")
    return items


def spread(b: Builder, x: Traced, items: tuple[Any, ...]) -> tuple[Node, tuple[int, ...], list[Node]]:
    """The basic items of a key done: a view of ``x``, its axes that arrays index, and these arrays."""
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
    return (b.op("index", x.node, key=basic) if changes else x.node), tuple(advanced), indices


def _item(b: Builder, item: Any) -> Any:
    """An item of a key: an int, a slice, None, Ellipsis, or a traced array of integers."""
    if item is None or item is Ellipsis or isinstance(item, SymInt) or type(item) is int:
        return item
    if isinstance(item, slice):
        return slice(_bound(item.start), _bound(item.stop), _bound(item.step))
    if isinstance(item, list | tuple):
        item = _places(b, item)
    if isinstance(item, Traced):
        kind = item.type.dtype.kind
        if kind in "iu":
            return item
        if kind == "b":
            raise CannotCapture("advanced-indexing", "an array of booleans as an index")
        raise CannotCapture("operation-raises", f"an index of dtype {item.type.dtype}")
    if isinstance(item, TracedNumber):
        raise CannotCapture("operation-raises", "a float as an index")
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
    """Whether nested lists hold anything."""
    return any(map(_holds_any, item)) if isinstance(item, list | tuple) else True


def _bound(value: Any) -> Any:
    if value is None or isinstance(value, SymInt):
        return value
    if isinstance(value, Traced | TracedNumber):
        raise CannotCapture("data-dependent-value", "a slice bound computed by the captured code")
    try:
        return operator.index(value)
    except TypeError as error:
        raise CannotCapture("operation-raises", f"a slice bound of type {type(value).__name__}") from error


@method("__getitem__")
def _getitem(b: Builder, x: Traced, key: Any) -> Traced:
    return getitem(b, x, key)
