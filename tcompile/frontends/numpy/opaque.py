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
    same_order,
    standin_dtype,
)
from tcompile.graph import TensorType
from tcompile.graph.ops import k_order


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
