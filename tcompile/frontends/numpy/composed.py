"""Functions that NumPy itself composes of few array operations: the same operations in the graph.

Enters: arrays and plain arguments. Leaves: nodes that kernels compute, with NumPy's own steps and dtypes. What is
composed in another way than these (another norm, a row made a square) stays a call by its rule in ``library``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy import reductions, ufuncs
from tcompile.frontends.numpy.creation import arange
from tcompile.frontends.numpy.elementwise import where
from tcompile.frontends.numpy.library import RULES, library_call
from tcompile.frontends.numpy.registry import function
from tcompile.frontends.numpy.shape import ravel
from tcompile.frontends.numpy.values import FLOAT, array, array_object, cast, flag, integer


@function("roll", opaque=True)
def roll(b: Builder, a: Any, shift: Any, axis: Any = None) -> Traced:
    """``np.roll`` of all elements in C order: a view of a rolled row, as NumPy gives. Along an axis it is one call."""
    if axis is not None:
        raise CannotCapture("unsupported-argument", "roll along an axis")
    x = array_object(b, a)
    flat = x if x.type.ndim == 1 else ravel(b, x)
    row = library_call(b, RULES[np.roll], [flat, shift], {"axis": 0})
    return Traced(b.op("reshape", row.node, shape=x.type.shape))


@function("linalg.norm")
def norm(b: Builder, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Traced:
    """``np.linalg.norm`` of vectors along one axis: the root of the sum of squares, or the sum of sizes."""
    value = array(b, x)
    if value.type.dtype.kind in "biu":
        value = Traced(cast(b, value, FLOAT))
    if value.type.dtype.name not in ("float32", "float64"):
        raise CannotCapture("unsupported-dtype", f"norm of {value.type.dtype}")
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    if type(axis) is not int or not (ord is None or (type(ord) in (int, float) and ord in (1, 2))):
        raise CannotCapture("unsupported-argument", "norm of matrices, of all elements, or of this order")
    keep = flag(keepdims, "keepdims")
    if ord == 1:
        return reductions.sum(b, ufuncs.emit(b, np.absolute, [value]), axis, keepdims=keep)
    squares = ufuncs.emit(b, np.multiply, [value, value])
    return ufuncs.emit(b, np.sqrt, [reductions.sum(b, squares, axis, keepdims=keep)])


def _below(b: Builder, x: Traced, k: int) -> Traced:
    """The mask of the elements of the last two axes on and below the diagonal ``k``, as ``np.tri`` gives it."""
    if x.type.ndim < 2:
        raise CannotCapture("unsupported-argument", "a triangle of an array of fewer than two dimensions")
    rows, columns = (arange(b, size) for size in x.type.shape[-2:])
    from_row = ufuncs.emit(b, np.add, [Traced(b.op("expand_dims", rows.node, axis=1)), k])
    return ufuncs.emit(b, np.greater_equal, [from_row, columns])


def _zero(b: Builder, x: Traced) -> Traced:
    return Traced(b.op("full", shape=(1,), fill_value=x.type.dtype.type(0).item(), dtype=x.type.dtype.name))


@function("tril")
def tril(b: Builder, m: Any, k: Any = 0) -> Traced:
    """``np.tril``: a selection."""
    x = array(b, m)
    return where(b, _below(b, x, integer(k, "k")), x, _zero(b, x))


@function("triu")
def triu(b: Builder, m: Any, k: Any = 0) -> Traced:
    """``np.triu``: a selection."""
    x = array(b, m)
    return where(b, _below(b, x, integer(k, "k") - 1), _zero(b, x), x)
