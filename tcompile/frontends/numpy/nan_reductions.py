"""Reductions and scans that skip NaNs, built from selected elements.

Input: an array and a reduction's arguments.
Output: a selection, ordinary reductions, and one call that raises where NumPy warns of a slice without numbers (the
function then runs in plain Python).
Why: they fuse. The order of the arithmetic and the dtype of each step are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy import reductions, scans
from tcompile.frontends.numpy.registry import NO_VALUE, function, refuse_unless
from tcompile.frontends.numpy.values import BOOL, FLOAT, array, axes_in, call, cast
from tcompile.graph import Node, TensorType
from tcompile.graph.ops.rules import k_order, like_order

_ABSENT = (None, NO_VALUE)
_FUSED = ("float32", "float64")


def _floats(b: Builder, name: str, a: Any) -> Traced | None:
    """The array where it may hold NaNs, None where it holds integers; refuses what kernels do not compute."""
    x = array(b, a)
    if x.type.dtype.kind in "biu":
        return None
    if x.type.dtype.name not in _FUSED:
        raise CannotCapture("unsupported-dtype", f"{name} of {x.type.dtype}")
    if k_order([x.type], x.type.shape) != like_order(x.type):
        raise CannotCapture("memory-order", f"{name} of a broadcast array")
    return x


def _selected(b: Builder, x: Traced, number: float) -> tuple[Node, Traced]:
    """Where the NaNs are, and the array with ``number`` in their places."""
    mask = b.op("isnan", x.node)
    return mask, Traced(b.op("where", mask, number, x.node))


def refuse_if_any(b: Builder, flags: Node) -> None:
    """One call that raises where a flag is set."""
    call(b, "tcompile.frontends.numpy.quiet.refuse_if_any", [Traced(flags)], TensorType(BOOL, ()))


def _count(b: Builder, mask: Node, axis: tuple[int, ...], keepdims: bool) -> Node:
    """How many elements of each slice are numbers."""
    return b.op("sum", b.op("astype", b.op("logical_not", mask), dtype="int64"), axis=axis, keepdims=keepdims)


def divided(b: Builder, total: Node, count: Node) -> Node:
    """``total / count`` in float64, rounded to the dtype of ``total``."""
    quotient = b.op("divide", cast(b, Traced(total), FLOAT), cast(b, Traced(count), FLOAT))
    return cast(b, Traced(quotient), total.tensor.dtype)


def _extremum(name: str, op: str, least: float) -> None:
    @function(name)
    def handler(
        b: Builder,
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = NO_VALUE,
        initial: Any = NO_VALUE,
        where: Any = NO_VALUE,
    ) -> Traced:
        """The largest or smallest number."""
        refuse_unless(name, out=(out, _ABSENT), initial=(initial, (NO_VALUE,)), where=(where, (NO_VALUE,)))
        x = _floats(b, name, a)
        if x is None:
            return reductions.extremum(b, op, a, axis, keepdims)
        mask, numbers = _selected(b, x, least)
        result = reductions.extremum(b, op, numbers, axis, keepdims)
        refuse_if_any(b, b.op("all", mask, axis=axes_in(axis, x.type.ndim), keepdims=False))
        return result


_extremum("nanmax", "max", -math.inf)
_extremum("nanmin", "min", math.inf)


@function("nanprod")
def nanprod(
    b: Builder,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Traced:
    """``np.nanprod``: NaNs count as one."""
    refuse_unless("nanprod", out=(out, _ABSENT), initial=(initial, (NO_VALUE,)), where=(where, (NO_VALUE,)))
    x = _floats(b, "nanprod", a)
    return reductions.prod(b, array(b, a) if x is None else _selected(b, x, 1.0)[1], axis, dtype, keepdims=keepdims)


@function("nanmean")
def nanmean(
    b: Builder,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Traced:
    """``np.nanmean``: the sum of the numbers, divided by their count."""
    refuse_unless("nanmean", out=(out, _ABSENT), where=(where, (NO_VALUE,)), dtype=(dtype, _ABSENT))
    x = _floats(b, "nanmean", a)
    if x is None:
        return reductions.mean(b, a, axis, keepdims=keepdims)
    axes, keep = axes_in(axis, x.type.ndim), reductions.keep(keepdims)
    mask, numbers = _selected(b, x, 0.0)
    count = _count(b, mask, axes, keep)
    refuse_if_any(b, b.op("equal", count, 0))
    node = divided(b, b.op("sum", numbers.node, axis=axes, keepdims=keep), count)
    return Traced(node, scalar=not node.tensor.ndim)


def _spread(name: str) -> None:
    @function(f"nan{name}")
    def handler(
        b: Builder,
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = NO_VALUE,
        *,
        where: Any = NO_VALUE,
        mean: Any = NO_VALUE,
        correction: Any = NO_VALUE,
    ) -> Traced:
        """The mean square of what the numbers differ from their mean."""
        refuse_unless(
            name, out=(out, _ABSENT), where=(where, (NO_VALUE,)), mean=(mean, (NO_VALUE,)), dtype=(dtype, _ABSENT),
            correction=(correction, (NO_VALUE,)),
        )  # fmt: skip
        x = _floats(b, f"nan{name}", a)
        if x is None:
            plain = reductions.var if name == "var" else reductions.std
            return plain(b, a, axis, ddof=ddof, keepdims=keepdims)
        if type(ddof) is not int or ddof < 0:
            raise CannotCapture("unsupported-argument", f"nan{name} with ddof={ddof!r}")
        axes, keep = axes_in(axis, x.type.ndim), reductions.keep(keepdims)
        mask, numbers = _selected(b, x, 0.0)
        count = _count(b, mask, axes, True)
        average = divided(b, b.op("sum", numbers.node, axis=axes, keepdims=True), count)
        apart = b.op("where", mask, 0.0, b.op("subtract", numbers.node, average))
        total = b.op("sum", b.op("multiply", apart, apart), axis=axes, keepdims=keep)
        freedom = b.op("subtract", count if keep else _count(b, mask, axes, False), ddof)
        refuse_if_any(b, b.op("less_equal", freedom, 0))
        node = divided(b, total, freedom)
        node = b.op("sqrt", node) if name == "std" else node
        return Traced(node, scalar=not node.tensor.ndim)


_spread("var")
_spread("std")


def _scan(name: str, op: str, function_: Callable[..., Any], number: float) -> None:
    @function(name)
    def handler(b: Builder, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
        """The scan of the numbers: a NaN changes nothing."""
        refuse_unless(name, out=(out, _ABSENT))
        x = _floats(b, name, a)
        numbers = a if x is None else _selected(b, x, number)[1]
        return scans.scan(b, op, function_, numbers, axis, dtype)


_scan("nancumsum", "cumulative_sum", np.cumsum, 0.0)
_scan("nancumprod", "cumulative_prod", np.cumprod, 1.0)
