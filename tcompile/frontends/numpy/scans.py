"""Cumulative sums and products.

Input: an array, an axis and a dtype, as in functions, methods and ``accumulate`` of ufuncs.
Output: a scan, whose operand already has the result's dtype.
Why: scans fuse with their operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy.opaque import along, refuse_complex
from tcompile.frontends.numpy.registry import function, method, refuse_unless
from tcompile.frontends.numpy.values import array, cast, dtype_of, same_order, standin_dtype
from tcompile.graph.ops import k_order

_UFUNCS = {np.add: "cumulative_sum", np.multiply: "cumulative_prod"}


def scan(b: Builder, op: str, function: Callable[..., Any], a: Any, axis: Any, dtype: Any) -> Traced:
    """Builds the scan ``op``, with the dtype of ``function`` by default. None for ``axis`` flattens."""
    x = array(b, a)
    refuse_complex(x, op)
    into = standin_dtype(function, np.ones(1, x.type.dtype)) if dtype is None else dtype_of(dtype)
    if into.kind not in "iuf" or (x.type.dtype.kind == "f" and into.kind != "f"):
        raise CannotCapture("unsupported-argument", f"{op} of {x.type.dtype} with dtype {into}")
    x, place = along(b, x, axis, op)
    node = b.op(op, cast(b, x, into), axis=place)
    if not same_order(node.tensor, k_order([x.type], x.type.shape)):
        raise CannotCapture("memory-order", f"{op} casts a broadcast operand")
    return Traced(node)


def accumulate(b: Builder, ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Traced:
    """``ufunc.accumulate``: all partial results."""
    refuse_unless("accumulate", out=(out, (None,)))
    if ufunc not in _UFUNCS or axis is None:
        raise CannotCapture("unsupported-argument", f"{ufunc.__name__}.accumulate along {axis}")
    return scan(b, _UFUNCS[ufunc], ufunc.accumulate, array, axis, dtype)


@function("cumsum")
@method("cumsum")
def cumsum(b: Builder, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
    """``np.cumsum``."""
    refuse_unless("cumsum", out=(out, (None,)))
    return scan(b, "cumulative_sum", np.cumsum, a, axis, dtype)


@function("cumprod")
@method("cumprod")
def cumprod(b: Builder, a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Traced:
    """``np.cumprod``."""
    refuse_unless("cumprod", out=(out, (None,)))
    return scan(b, "cumulative_prod", np.cumprod, a, axis, dtype)


def _of_the_standard(name: str, function_: Callable[..., Any]) -> None:
    @function(name)
    def handler(
        b: Builder, x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: Any = False
    ) -> Traced:
        """Builds the Array API's scan, without an initial value."""
        refuse_unless(name, out=(out, (None,)), include_initial=(include_initial, (False,)))
        if axis is None and array(b, x).type.ndim != 1:
            raise CannotCapture("operation-raises", f"{name} without an axis")
        return scan(b, name, function_, x, axis, dtype)


_of_the_standard("cumulative_sum", np.cumsum)
_of_the_standard("cumulative_prod", np.cumprod)
