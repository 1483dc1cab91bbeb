"""Functions that write through index arrays: put and its relatives, partition, and ``ufunc.at``.

Input: an array, indices, values.
Output: writes that the builder records, as for ``a[indices] = values``.
Why: scattered writes fuse with the computation of the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Selected, Traced
from tcompile.frontends.numpy import masks
from tcompile.frontends.numpy.indexing import is_mask, items_of, through
from tcompile.frontends.numpy.library import RULES, library_call
from tcompile.frontends.numpy.registry import function, lookup, method, refuse_unless
from tcompile.frontends.numpy.values import INT, array, axis_in, is_weak, sizes_equal
from tcompile.frontends.numpy.writing import Places, fitted, refuse_own, scattered, store, target_of
from tcompile.graph import Node, Operand
from tcompile.graph.sizes import SymInt, is_one, product


def _flat(b: Builder, x: Traced) -> Traced:
    """All elements of an array in a row, as a view that can be written to."""
    if not x.type.c_contiguous:
        raise CannotCapture("memory-order", "elements are counted through an array that is not in C order")
    return _row(b, x)


def _row(b: Builder, x: Traced) -> Traced:
    """All elements in C order, along one axis."""
    return Traced(x.node if x.type.ndim == 1 else b.op("reshape", x.node, shape=(x.type.size,)))


def _one_or_as_many(value: Traced, count: Any) -> bool:
    size = product(value.type.shape)
    return is_one(size) or sizes_equal(size, count)


@function("put")
@method("put")
def put(b: Builder, a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    """Builds ``np.put``: indices into the flattened array."""
    refuse_unless("put", mode=(mode, ("raise",)))
    x, places = target_of(a), array(b, ind)
    if places.type.dtype.kind not in "iu" or places.type.dtype.name == "uint64":
        raise CannotCapture("unsupported-argument", f"put at places of {places.type.dtype}")
    places = _row(b, places)
    if isinstance(v, Traced | list | tuple):
        v = array(b, v)
        if not _one_or_as_many(v, places.type.size):
            raise CannotCapture("unsupported-argument", "put of another number of values")
        v = Traced(b.op("reshape", v.node, shape=())) if is_one(v.type.size) else _row(b, v)
    scattered(b, _flat(b, x), (places,), v)


@function("put_along_axis")
def put_along_axis(b: Builder, arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Builds ``np.put_along_axis``: one array of indices along an axis, all other axes enumerated."""
    if not isinstance(indices, Traced):
        raise CannotCapture("operation-raises", "places that are no array")
    x, places = target_of(arr), indices
    if axis is None or places.type.ndim != x.type.ndim or places.type.dtype.kind not in "iu":
        raise CannotCapture("unsupported-argument", "put_along_axis of these arguments")
    place = axis_in(axis, x.type.ndim)
    scattered(b, x, tuple(through(b, x, i) if i != place else places for i in range(x.type.ndim)), values)


@function("fill_diagonal")
def fill_diagonal(b: Builder, a: Any, val: Any, wrap: Any = False) -> None:
    """``np.fill_diagonal`` with one number."""
    refuse_unless("fill_diagonal", wrap=(wrap, (False,)))
    x = target_of(a)
    sizes = [n.specialise() if isinstance(n, SymInt) else n for n in x.type.shape]
    if len(sizes) < 2 or (len(sizes) > 2 and len(set(sizes)) > 1):
        raise CannotCapture("operation-raises", "an array that has no such diagonal")
    if not is_weak(val) and not (isinstance(val, Traced) and not val.type.ndim):
        raise CannotCapture("unsupported-argument", "fill_diagonal with several numbers")
    places = Traced(b.op("arange", start=0, stop=min(sizes), step=1, dtype=INT.name))
    scattered(b, x, (places,) * len(sizes), val)


@function("place")
def place(b: Builder, arr: Any, mask: Any, vals: Any) -> None:
    """``np.place`` with one number for all places."""
    x, where = target_of(arr), array(b, mask)
    if isinstance(vals, list | tuple) and len(vals) == 1:
        (vals,) = vals
    if not is_weak(vals) and not (isinstance(vals, Traced) and is_one(vals.type.size)):
        raise CannotCapture("data-dependent-shape", "place with several values")
    if isinstance(vals, Traced) and not vals.scalar and not np.can_cast(vals.type.dtype, x.type.dtype, "safe"):
        raise CannotCapture("operation-raises", f"place does not cast an array of {vals.type.dtype}")
    refuse_own(x, where.node)
    _put_under_mask(b, x, where, vals)


@function("putmask")
def putmask(b: Builder, a: Any, mask: Any, values: Any) -> None:
    """``np.putmask`` with one number, or with values for all elements."""
    x, where = target_of(a), array(b, mask)
    if isinstance(values, list | tuple):
        values = array(b, values)
    kind = x.type.dtype.kind
    if isinstance(values, Traced):
        whole = len(values.type.shape) == x.type.ndim and all(map(sizes_equal, values.type.shape, x.type.shape))
        if not (whole or is_one(values.type.size)) or not np.can_cast(values.type.dtype, x.type.dtype, "safe"):
            raise CannotCapture("unsupported-argument", "putmask of these values")
        if whole:
            mask_node = _mask_for(b, x, where)
            b.write(x, b.op("where", mask_node, fitted(b, x.type, values, "safe"), x.node))
            return
    elif not is_weak(values) or (type(values) is not int and type(values) is not bool and kind not in "fc"):
        raise CannotCapture("unsupported-argument", "putmask of these values")
    _put_under_mask(b, x, where, values)


def _mask_for(b: Builder, x: Traced, mask: Traced) -> Node:
    if not is_mask(mask) or mask.scalar or len(mask.type.shape) != x.type.ndim:
        raise CannotCapture("unsupported-argument", "a mask of another shape or dtype")
    if not x.type.ndim or not all(map(sizes_equal, mask.type.shape, x.type.shape)):
        raise CannotCapture("unsupported-argument", "a mask of another shape")
    return mask.node


def _put_under_mask(b: Builder, x: Traced, mask: Traced, value: Any) -> None:
    """One number where a mask of the array's shape holds."""
    if isinstance(value, Traced) and value.type.ndim:
        value = Traced(b.op("reshape", value.node, shape=()))
    target = Selected(x.node, _mask_for(b, x, mask))
    node = masks.replaced(b, target, value, lambda t, v: fitted(b, t, v, "unsafe"))
    b.write(x, node)


@method("partition")
def partition(b: Builder, x: Traced, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> None:
    """``x.partition()``: in place."""
    if axis is None:
        raise CannotCapture("operation-raises", "partition in place along no axis")
    result = library_call(b, RULES[lookup("partition")], [target_of(x), kth, axis, kind, order], {})
    store(b, x, result, "no")


def combine_at(b: Builder, ufunc: np.ufunc, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Builds ``ufunc.at(a, indices, values)``: unlike ``a[indices] op= values``, repeated indices accumulate."""
    if len(args) != 3 or kwargs or ufunc.nin != 2 or ufunc.nout != 1 or lookup(ufunc.__name__) is not ufunc:
        raise CannotCapture("unsupported-argument", f"{ufunc.__name__}.at with {len(args)} arguments")
    x, key, value = target_of(args[0]), args[1], args[2]
    items = items_of(b, x, key)
    if any(map(is_mask, items)):
        raise CannotCapture("advanced-indexing", f"{ufunc.__name__}.at under a mask")
    places = Places.of(b, x, items)
    operand: Operand
    if isinstance(value, list | tuple):
        value = array(b, value)
    if isinstance(value, Traced):
        if value.type.dtype.kind == "c" and x.type.dtype.kind != "c":  # a warning in words, at the user's line
            raise CannotCapture("unsupported-argument", f"{ufunc.__name__}.at that drops imaginary parts")
        operand = places.value(b, value.node)
    elif type(value) in (bool, int, float):
        operand = value
    else:
        raise CannotCapture("unsupported-argument", f"{ufunc.__name__}.at with a {type(value).__name__}")
    view, axes = places.view, places.axes
    b.write(view, b.op("combine", view.node, operand, *places.indices, axes=axes, path=(), ufunc=ufunc.__name__))
