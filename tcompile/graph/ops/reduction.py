"""Reductions over axes.

Input: nothing.
Output: rows of the op table.
Why: kernels fuse them with pointwise operations.

Attributes: ``axis``, a sorted tuple of non-negative ints (for ``argmax`` and ``argmin`` one int), and ``keepdims``.
Sums and products keep the operand's dtype: widening is an ``astype`` before them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph.dtypes import BOOL, DType, named
from tcompile.graph.op import INEXACT, QUIET, SIGNALS, Effects, Op, TypeRule, define
from tcompile.graph.ops.rules import only, walked_order
from tcompile.graph.sizes import Size
from tcompile.graph.types import Layout, TensorType


def reduced_type(type: TensorType, axis: Sequence[int], keepdims: bool, dtype: DType) -> TensorType:
    """The type left when the axes ``axis`` of ``type`` are reduced; the kept axes keep their memory order."""
    order = walked_order([type], type.shape).order
    if keepdims:
        shape: tuple[Size, ...] = tuple(1 if i in axis else n for i, n in enumerate(type.shape))
        return TensorType(dtype, shape, Layout.of_order(order))
    kept = [i for i in range(type.ndim) if i not in axis]
    new_order = tuple(kept.index(i) for i in order if i in kept)
    return TensorType(dtype, tuple(type.shape[i] for i in kept), Layout.of_order(new_order))


def _rule(name: str, dtype: str | None = None) -> TypeRule:
    def rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
        type = only(name, types)
        axis = attrs["axis"] if isinstance(attrs["axis"], tuple) else (attrs["axis"],)
        if not all(isinstance(a, int) and 0 <= a < type.ndim for a in axis):
            raise GraphError(f"{name}: axis {attrs['axis']} does not fit {type}")
        return reduced_type(type, axis, attrs["keepdims"], named(dtype) if dtype else type.dtype)

    return rule


def _position_rule(name: str) -> TypeRule:
    def rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
        # NumPy searches a copy with the axis moved to the end, and makes the result in C order.
        type = _rule(name, "int64")(types, attrs)
        return TensorType(type.dtype, type.shape)

    return rule


def _bool_only(rule: TypeRule) -> TypeRule:
    def checked(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
        result = rule(types, attrs)
        if result.dtype != BOOL:
            raise GraphError(f"any and all take bool operands, got {result.dtype}")
        return result

    return checked


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, *, axis: Any, keepdims: bool) -> Any:
        return function(x, axis=axis, keepdims=keepdims)

    return run


def _exact_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any, *, axis: Any, keepdims: bool) -> Any:
        return function(x, axis=axis, keepdims=keepdims, dtype=x.dtype)

    return run


def _var(x: Any, *, axis: Any, keepdims: Any, correction: float) -> Any:
    return np.var(x, axis=axis, keepdims=keepdims, ddof=correction)


def _std(x: Any, *, axis: Any, keepdims: Any, correction: float) -> Any:
    return np.std(x, axis=axis, keepdims=keepdims, ddof=correction)


def _row(
    name: str, rule: TypeRule, function: Callable[..., Any], effects: Effects, doc: str = "", exact: str = ""
) -> Op:
    return define(Op(name, "reduction", 1, rule, function, doc, effects, exact=exact))


# Exact are those whose result depends neither on the order of the elements nor on the sign of a zero.
SUM = _row("sum", _rule("sum"), _exact_dtype(np.sum), INEXACT)
PROD = _row("prod", _rule("prod"), _exact_dtype(np.prod), INEXACT)
MAX = _row("max", _rule("max"), _plain(np.max), QUIET, "NaN wins; a size-0 axis raises")
MIN = _row("min", _rule("min"), _plain(np.min), QUIET, "NaN wins; a size-0 axis raises")
ANY = _row("any", _bool_only(_rule("any")), _plain(np.any), QUIET, exact="fc")
ALL = _row("all", _bool_only(_rule("all")), _plain(np.all), QUIET, exact="fc")
ARGMAX = _row("argmax", _position_rule("argmax"), _plain(np.argmax), QUIET, "first of the largest; NaN wins", "fc")
ARGMIN = _row("argmin", _position_rule("argmin"), _plain(np.argmin), QUIET, "first of the smallest; NaN wins", "fc")
MEAN = _row("mean", _rule("mean"), _plain(np.mean), SIGNALS, "of a floating operand")
VAR = _row("var", _rule("var"), _var, SIGNALS, "of a floating operand; divides by N - correction")
STD = _row("std", _rule("std"), _std, SIGNALS, "of a floating operand; divides by N - correction")
