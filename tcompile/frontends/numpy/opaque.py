"""Functions that stay one NumPy call: scans, sorts, gathers and repetitions of certain dtype, shape and
memory order.

Enters: arrays and plain arguments. Leaves: rows of kind ``opaque``, and ``call`` nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy.registry import function, method, refuse_unless
from tcompile.frontends.numpy.shape import flat
from tcompile.frontends.numpy.values import (
    INT,
    array,
    axis_in,
    call,
    cast,
    dtype_of,
    integer,
    kept_order,
    require_c,
    same_order,
    standin_dtype,
)
from tcompile.graph import TensorType
from tcompile.graph.ops import k_order
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.sizes import Size, SymInt


def _real(x: Traced, name: str) -> None:
    if x.type.dtype.kind == "c":
        raise CannotCapture("unsupported-dtype", f"{name} of complex numbers")


def _along(b: Builder, x: Traced, axis: Any, name: str) -> tuple[Traced, int]:
    """The array and axis that a scan or sort works on: None flattens."""
    if axis is None:
        return (flat(b, x) if x.type.ndim != 1 else x), 0
    if not x.type.ndim:
        raise CannotCapture("unsupported-argument", f"{name} of a rank-0 value along an axis")
    return x, axis_in(axis, x.type.ndim)


def _scan(b: Builder, op: str, a: Any, axis: Any, dtype: Any) -> Traced:
    x = array(b, a)
    _real(x, op)
    function = np.cumsum if op == "cumulative_sum" else np.cumprod
    into = standin_dtype(function, np.ones(1, x.type.dtype)) if dtype is None else dtype_of(dtype)
    if into.kind not in "iuf" or (x.type.dtype.kind == "f" and into.kind != "f"):
        raise CannotCapture("unsupported-argument", f"{op} of {x.type.dtype} with dtype {into}")
    x, place = _along(b, x, axis, op)
    node = b.op(op, cast(b, x, into), axis=place)
    if not same_order(node.tensor, k_order([x.type], x.type.shape)):
        raise CannotCapture("memory-order", f"{op} casts a broadcast operand")
    return Traced(node)


@function("cumsum", opaque=True)
@method("cumsum")
def cumsum(b: Builder, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
    """``np.cumsum``."""
    refuse_unless("cumsum", out=(out, (None,)))
    return _scan(b, "cumulative_sum", a, axis, dtype)


@function("cumprod", opaque=True)
@method("cumprod")
def cumprod(b: Builder, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
    """``np.cumprod``."""
    refuse_unless("cumprod", out=(out, (None,)))
    return _scan(b, "cumulative_prod", a, axis, dtype)


@function("sort", opaque=True)
def sort(
    b: Builder, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Traced:
    """``np.sort``: a sorted copy."""
    refuse_unless(
        "sort", kind=(kind, (None, "quicksort", "stable")), order=(order, (None,)), stable=(stable, (None,))
    )
    x = array(b, a)
    _real(x, "sort")
    x, place = _along(b, x, axis, "sort")
    return Traced(b.op("sort", x.node, axis=place))


@function("argsort", opaque=True)
@method("argsort")
def argsort(
    b: Builder, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Traced:
    """``np.argsort``. Which of equal elements comes first depends on the kind, so a kind stays with the call."""
    refuse_unless(
        "argsort",
        kind=(kind, (None, "quicksort", "stable")),
        order=(order, (None,)),
        stable=(stable, (None,)),
    )
    x = array(b, a)
    _real(x, "argsort")
    x, place = _along(b, x, axis, "argsort")
    if kind == "stable":
        return call(b, "numpy.argsort", [x], TensorType(INT, x.type.shape), axis=place, kind="stable")
    return Traced(b.op("argsort", x.node, axis=place))


@function("roll", opaque=True)
def roll(b: Builder, a: Any, shift: Any, axis: Any = None) -> Traced:
    """``np.roll``: a copy in the array's memory order."""
    x = array(b, a)
    if not x.type.ndim:
        raise CannotCapture("unsupported-argument", "roll of a rank-0 value")
    steps = (
        tuple(integer(s, "shift") for s in shift)
        if isinstance(shift, tuple | list)
        else integer(shift, "shift")
    )
    if axis is None:
        if x.type.ndim > 1:
            require_c("roll", x)
        return call(b, "numpy.roll", [x], TensorType(x.type.dtype, x.type.shape), Slot(0), steps)
    many = isinstance(axis, tuple | list)
    axes = tuple(axis_in(i, x.type.ndim) for i in axis) if many else axis_in(axis, x.type.ndim)
    if (
        isinstance(steps, tuple)
        and isinstance(axes, tuple)
        and 1 not in (len(steps), len(axes))
        and len(steps) != len(axes)
    ):
        raise CannotCapture("operation-raises", "roll: shift and axis do not fit")
    type = TensorType(x.type.dtype, x.type.shape, kept_order(x.type))
    return call(b, "numpy.roll", [x], type, Slot(0), steps, axis=axes)


@function("repeat", opaque=True)
@method("repeat")
def repeat(b: Builder, a: Any, repeats: Any, axis: Any = None) -> Traced:
    """``np.repeat`` with one count for all elements."""
    x = array(b, a)
    if isinstance(repeats, list | tuple):
        raise CannotCapture("unsupported-argument", "repeat with a count for each element")
    count = integer(repeats, "repeats")
    if count < 0:
        raise CannotCapture("operation-raises", "repeats may not contain negative values")
    shape: tuple[Size, ...] = x.type.shape
    if axis is None:
        shape = (x.type.size * count,)
    else:
        axis = axis_in(axis, x.type.ndim)
        shape = (*shape[:axis], shape[axis] * count, *shape[axis + 1 :])
    return call(
        b, "numpy.repeat", [x], TensorType(x.type.dtype, shape), Slot(0), count, axis=axis, scalar=False
    )


@function("tile", opaque=True)
def tile(b: Builder, A: Any, reps: Any) -> Traced:
    """``np.tile``."""
    x = array(b, A)
    require_c("tile", x)
    counts = [integer(r, "reps") for r in (reps if isinstance(reps, tuple | list) else (reps,))]
    if any(c < 0 for c in counts) or not x.type.ndim:
        raise CannotCapture("unsupported-argument", "tile of a rank-0 value or a negative number of times")
    ndim = max(len(counts), x.type.ndim)
    sizes = (*(1,) * (ndim - x.type.ndim), *x.type.shape)
    all_counts = (*(1,) * (ndim - len(counts)), *counts)
    shape = tuple(n * c for n, c in zip(sizes, all_counts, strict=True))
    return call(b, "numpy.tile", [x], TensorType(x.type.dtype, shape), Slot(0), tuple(counts))


@function("take", opaque=True)
@method("take")
def take(b: Builder, a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Traced:
    """``np.take``: gathers along one axis. An index out of range raises when the graph runs."""
    refuse_unless("take", out=(out, (None,)), mode=(mode, ("raise", "wrap", "clip")))
    x = array(b, a)
    if type(indices) is int or isinstance(indices, np.integer):
        raise CannotCapture("unsupported-argument", "take of one element")
    at = array(b, indices)
    if at.type.dtype.kind not in "iu" or at.type.dtype.name == "uint64" or not x.type.ndim:
        raise CannotCapture("unsupported-argument", f"take with indices of {at.type.dtype}")
    if axis is None:
        shape = at.type.shape
    else:
        axis = axis_in(axis, x.type.ndim)
        shape = (*x.type.shape[:axis], *at.type.shape, *x.type.shape[axis + 1 :])
    return call(b, "numpy.take", [x, at], TensorType(x.type.dtype, shape), axis=axis, mode=mode)


@function("searchsorted", opaque=True)
@method("searchsorted")
def searchsorted(b: Builder, a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Traced:
    """``np.searchsorted``."""
    refuse_unless("searchsorted", side=(side, ("left", "right")), sorter=(sorter, (None,)))
    x, at = array(b, a), array(b, v)
    _real(x, "searchsorted")
    _real(at, "searchsorted")
    if x.type.ndim != 1 or (isinstance(v, int | float | SymInt) and x.type.dtype != at.type.dtype):
        raise CannotCapture("unsupported-argument", "searchsorted of these arrays")
    return call(b, "numpy.searchsorted", [x, at], TensorType(INT, at.type.shape), side=side)


def _triangle(name: str) -> None:
    def handler(b: Builder, m: Any, k: Any = 0) -> Traced:
        x = array(b, m)
        require_c(name, x)
        if x.type.ndim < 2:
            raise CannotCapture("unsupported-argument", f"{name} of fewer than two dimensions")
        type = TensorType(x.type.dtype, x.type.shape)
        return call(b, f"numpy.{name}", [x], type, k=integer(k, "k"))

    function(name, opaque=True)(handler)


_triangle("tril")
_triangle("triu")


@function("convolve", opaque=True)
def convolve(b: Builder, a: Any, v: Any, mode: Any = "full") -> Traced:
    """``np.convolve`` of two one-dimensional arrays."""
    x, y = array(b, a), array(b, v)
    if x.type.ndim != 1 or y.type.ndim != 1 or mode not in ("full", "same", "valid"):
        raise CannotCapture("unsupported-argument", "convolve of these arrays")
    n, m = x.type.shape[0], y.type.shape[0]
    if n == 0 or m == 0:
        raise CannotCapture("operation-raises", "convolve of an empty array")
    n, m = (m, n) if m > n else (n, m)
    length = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
    dtype = standin_dtype(np.convolve, np.ones(1, x.type.dtype), np.ones(1, y.type.dtype))
    return call(b, "numpy.convolve", [x, y], TensorType(dtype, (length,)), mode=mode)


@function("linalg.norm", opaque=True)
def norm(b: Builder, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Traced:
    """``np.linalg.norm`` of the whole array, or along one axis."""
    value = array(b, x)
    refuse_unless("norm", keepdims=(keepdims, (False,)))
    known = ord is None or (ord in (1, 2, np.inf) and type(ord) in (int, float))
    if not known or value.type.dtype.kind not in "iuf" or not value.type.ndim:
        raise CannotCapture("unsupported-argument", "norm of this order or of these values")
    dtype = standin_dtype(np.linalg.norm, np.ones(1, value.type.dtype), ord)
    if axis is None:
        if ord is not None and value.type.ndim != 1:
            raise CannotCapture("unsupported-argument", "a matrix norm")
        return call(b, "numpy.linalg.norm", [value], TensorType(dtype, ()), Slot(0), ord)
    place = axis_in(axis, value.type.ndim)
    if value.type.ndim > 2:
        require_c("norm", value)
    shape = (*value.type.shape[:place], *value.type.shape[place + 1 :])
    return call(b, "numpy.linalg.norm", [value], TensorType(dtype, shape), Slot(0), ord, place)


def _fft(name: str) -> None:
    def handler(
        b: Builder, a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None
    ) -> Traced:
        refuse_unless(
            name, n=(n, (None,)), out=(out, (None,)), norm=(norm, (None, "backward", "ortho", "forward"))
        )
        x = array(b, a)
        require_c(name, x)
        if x.type.ndim < 1 or axis_in(axis, x.type.ndim) != x.type.ndim - 1 or x.type.shape[-1] == 0:
            raise CannotCapture("unsupported-argument", f"{name} along another axis than the last")
        if x.type.dtype.kind == "c" and name == "fft.rfft":
            raise CannotCapture("operation-raises", "rfft of complex numbers")
        dtype = standin_dtype(getattr(np.fft, name[4:]), np.ones(2, x.type.dtype))
        n_out = x.type.shape[-1] // 2 + 1 if name == "fft.rfft" else x.type.shape[-1]
        return call(b, f"numpy.{name}", [x], TensorType(dtype, (*x.type.shape[:-1], n_out)), norm=norm)

    function(name, opaque=True)(handler)


for _name in ("fft.fft", "fft.ifft", "fft.rfft"):
    _fft(_name)

_SHAPE_BY_DATA = (
    "nonzero", "flatnonzero", "argwhere", "unique", "unique_values", "compress", "extract", "union1d",
    "intersect1d",
    "setdiff1d", "trim_zeros", "bincount", "histogram",
)  # fmt: skip


@function(*_SHAPE_BY_DATA)
def by_data(b: Builder, *args: Any, **kwargs: Any) -> Traced:
    """Refused: how many results there are depends on the values."""
    raise CannotCapture("data-dependent-shape", "the result's size depends on the values")


@method("nonzero", "compress")
def _by_data(b: Builder, x: Traced, *args: Any, **kwargs: Any) -> Traced:
    raise CannotCapture("data-dependent-shape", "the result's size depends on the values")


@function("allclose", "array_equal", "array_equiv")
def by_value(b: Builder, *args: Any, **kwargs: Any) -> Traced:
    """Refused: the result is a Python bool computed from the values."""
    raise CannotCapture("data-dependent-value", "the result is a Python bool computed from the values")
