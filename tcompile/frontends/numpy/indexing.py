"""Basic indexing.

Enters: an array and a key of ints, slices, None and Ellipsis. Leaves: one ``index`` node, a view as in NumPy,
or a scalar where ints use up every axis. Keys that gather (arrays, lists, booleans) are refused.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced, TracedNumber
from tcompile.frontends.numpy.registry import method
from tcompile.frontends.numpy.values import as_ndarray
from tcompile.graph.sizes import SymInt


def getitem(b: Builder, x: Traced, key: Any) -> Traced:
    """``x[key]``."""
    items = tuple(_item(k) for k in (key if isinstance(key, tuple) else (key,)))
    used = [k for k in items if k is not None and k is not Ellipsis]
    if len(used) > x.type.ndim:
        raise CannotCapture("operation-raises", "too many indices for array")
    element = len(used) == x.type.ndim and all(
        k is not None and k is not Ellipsis and not isinstance(k, slice) for k in items
    )
    if x.scalar:
        return x if element else Traced(b.op("index", as_ndarray(b, x).node, key=items))
    return Traced(b.op("index", x.node, key=items), scalar=element)


def _item(item: Any) -> Any:
    if item is None or item is Ellipsis or isinstance(item, SymInt) or type(item) is int:
        return item
    if isinstance(item, slice):
        return slice(_bound(item.start), _bound(item.stop), _bound(item.step))
    if isinstance(item, Traced | TracedNumber):
        if isinstance(item, Traced) and not item.type.ndim and item.type.dtype.kind in "iu":
            raise CannotCapture("data-dependent-value", "an index computed by the captured code")
        raise CannotCapture("advanced-indexing", "an array as an index")
    if isinstance(item, bool | np.bool_ | list | tuple):
        raise CannotCapture("advanced-indexing", f"a {type(item).__name__} as an index")
    try:
        return operator.index(item)
    except TypeError as error:
        raise CannotCapture("operation-raises", f"an index of type {type(item).__name__}") from error


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
