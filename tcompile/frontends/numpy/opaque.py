"""Sorts that stay one NumPy call, with known dtype, shape and memory order.

Input: arrays and plain arguments.
Output: rows of kind ``opaque``, and ``call`` nodes.
Why: NumPy's sorts are fast, and code around them fuses.
"""

from __future__ import annotations

from typing import Any

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy.registry import function, method, refuse_unless
from tcompile.frontends.numpy.shape import flat
from tcompile.frontends.numpy.values import (
    INT,
    array,
    axis_in,
    call,
)
from tcompile.graph import TensorType


def refuse_complex(x: Traced, name: str) -> None:
    """Complex numbers have no order, and their sums are not made here."""
    if x.type.dtype.kind == "c":
        raise CannotCapture("unsupported-dtype", f"{name} of complex numbers")


def along(b: Builder, x: Traced, axis: Any, name: str) -> tuple[Traced, int]:
    """The array and axis that a scan or sort works on: None flattens."""
    if axis is None:
        return (flat(b, x) if x.type.ndim != 1 else x), 0
    if not x.type.ndim:
        raise CannotCapture("unsupported-argument", f"{name} of a rank-0 value along an axis")
    return x, axis_in(axis, x.type.ndim)


@function("sort", opaque=True)
def sort(b: Builder, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Traced:
    """``np.sort``: a sorted copy."""
    refuse_unless("sort", kind=(kind, (None, "quicksort", "stable")), order=(order, (None,)), stable=(stable, (None,)))
    x = array(b, a)
    refuse_complex(x, "sort")
    x, place = along(b, x, axis, "sort")
    return Traced(b.op("sort", x.node, axis=place))


@function("argsort", opaque=True)
@method("argsort")
def argsort(b: Builder, a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Traced:
    """``np.argsort``. Which of equal elements comes first depends on the kind, so a kind stays with the call."""
    refuse_unless(
        "argsort",
        kind=(kind, (None, "quicksort", "stable")),
        order=(order, (None,)),
        stable=(stable, (None,)),
    )
    x = array(b, a)
    refuse_complex(x, "argsort")
    x, place = along(b, x, axis, "argsort")
    if kind == "stable":
        return call(b, "numpy.argsort", [x], TensorType(INT, x.type.shape), axis=place, kind="stable")
    return Traced(b.op("argsort", x.node, axis=place))
