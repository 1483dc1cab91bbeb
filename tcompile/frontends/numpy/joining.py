"""Joining arrays: concatenate, stack and their relatives.

Input: sequences of arrays.
Output: casts to the common dtype and one ``concat`` node.
Why: the parts are computed directly into the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Stacked, Traced
from tcompile.frontends.numpy.registry import function, refuse_unless
from tcompile.frontends.numpy.shape import at_least, flat, row_of, transpose
from tcompile.frontends.numpy.values import (
    array,
    as_ndarray,
    axis_in,
    cast,
    dtype_of,
    is_weak,
    same_order,
    stacked,
    takes_dtype,
)
from tcompile.graph.ops.opaque import concat_layout
from tcompile.graph.sizes import same_shape


def _arrays(b: Builder, arrays: Any) -> list[Traced]:
    if not isinstance(arrays, tuple | list) or not arrays:
        raise CannotCapture("unsupported-argument", "joining needs a tuple or list of arrays")
    return [array(b, a) for a in arrays]


def _rows(b: Builder, x: Traced) -> Traced:
    """The first two axes as one, in a new array."""
    n, m, *others = x.type.shape
    return Traced(b.op("copy", b.op("reshape", x.node, shape=(n * m, *others))))


def _column(b: Builder, x: Traced) -> Traced:
    """A row as a column, in a new array."""
    return Traced(b.op("copy", b.op("reshape", x.node, shape=(x.type.shape[0], 1))))


def _concat(b: Builder, parts: list[Traced], axis: Any, dtype: Any = None, casting: Any = "same_kind") -> Traced:
    if axis is None:
        parts = [flat(b, p) if p.type.ndim != 1 else p for p in parts]
        axis = 0
    if any(not p.type.ndim for p in parts):
        raise CannotCapture("operation-raises", "zero-dimensional arrays cannot be concatenated")
    place = axis_in(axis, parts[0].type.ndim)
    into = np.result_type(*(p.type.dtype for p in parts)) if dtype is None else dtype_of(dtype)
    if not takes_dtype(into) or not all(np.can_cast(p.type.dtype, into, casting) for p in parts):
        raise CannotCapture("operation-raises", f"cannot join as {into}")
    node = b.op("concat", *(cast(b, p, into) for p in parts), axis=place)
    if not same_order(node.tensor, concat_layout([p.type for p in parts])):
        raise CannotCapture("memory-order", "joining casts a broadcast array")
    return Traced(node)


@function("concatenate", "concat", opaque=True)
def concatenate(
    b: Builder,
    arrays: Any,
    /,
    axis: Any = 0,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Traced:
    """``np.concatenate``."""
    refuse_unless("concatenate", out=(out, (None,)), casting=(casting, ("same_kind",)))
    if isinstance(arrays, Stacked):
        made = stacked(b, arrays)
        refuse_unless("concatenate", axis=(axis, (0,)), dtype=(dtype, (None,)))
        if made.type.ndim < 2:
            raise CannotCapture("operation-raises", "zero-dimensional arrays cannot be concatenated")
        return _rows(b, made)
    if axis is None and isinstance(arrays, tuple | list) and any(map(is_weak, arrays)):
        raise CannotCapture("unsupported-argument", "concatenate of Python numbers")  # which do not promote there
    return _concat(b, _arrays(b, arrays), axis, dtype)


@function("append", opaque=True)
def append(b: Builder, arr: Any, values: Any, axis: Any = None) -> Traced:
    """``np.append``: one after the other, flattened unless there is an axis."""
    parts = [array(b, arr), array(b, values)]
    if axis is None:
        parts = [row_of(b, p) for p in parts]
        axis = 0
    return _concat(b, parts, axis)


@function("stack", opaque=True)
def stack(
    b: Builder, arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Traced:
    """``np.stack``."""
    refuse_unless("stack", out=(out, (None,)), casting=(casting, ("same_kind",)))
    if isinstance(arrays, Stacked):
        made = stacked(b, arrays)
        refuse_unless("stack", dtype=(dtype, (None,)))
        place = axis_in(axis, made.type.ndim)
        axes = (*range(1, place + 1), 0, *range(place + 1, made.type.ndim))
        return made if not place else Traced(b.op("copy_c", b.op("permute_dims", made.node, axes=axes)))
    parts = _arrays(b, arrays)
    if not all(same_shape(p.type.shape, parts[0].type.shape) or p.type.shape == parts[0].type.shape for p in parts):
        raise CannotCapture("operation-raises", "all input arrays must have the same shape")
    place = axis_in(axis, parts[0].type.ndim + 1)
    key = (*(slice(None),) * place, None, Ellipsis)
    return _concat(b, [Traced(b.op("index", as_ndarray(b, p).node, key=key)) for p in parts], place, dtype)


@function("vstack", opaque=True)
def vstack(b: Builder, tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Traced:
    """``np.vstack``."""
    refuse_unless("vstack", casting=(casting, ("same_kind",)))
    if isinstance(tup, Stacked):
        refuse_unless("vstack", dtype=(dtype, (None,)))
        made = stacked(b, tup)
        return made if made.type.ndim == 2 else _rows(b, made) if made.type.ndim > 2 else _column(b, made)
    return _concat(b, [at_least(b, p, 2) for p in _arrays(b, tup)], 0, dtype)


@function("hstack", opaque=True)
def hstack(b: Builder, tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Traced:
    """``np.hstack``."""
    refuse_unless("hstack", casting=(casting, ("same_kind",)))
    parts = [at_least(b, p, 1) for p in _arrays(b, tup)]
    return _concat(b, parts, 0 if parts[0].type.ndim == 1 else 1, dtype)


@function("dstack", opaque=True)
def dstack(b: Builder, tup: Any) -> Traced:
    """``np.dstack``."""
    return _concat(b, [at_least(b, p, 3) for p in _arrays(b, tup)], 2)


@function("column_stack", opaque=True)
def column_stack(b: Builder, tup: Any) -> Traced:
    """``np.column_stack``: one-dimensional arrays become columns."""
    parts = _arrays(b, tup)
    return _concat(b, [p if p.type.ndim > 1 else transpose(b, at_least(b, p, 2)) for p in parts], 1)
