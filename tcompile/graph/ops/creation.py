"""Arrays made from nothing: rows of the op table. Sizes and values may be symbolic ints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.graph.dtypes import as_dtype
from tcompile.graph.op import EVERYWHERE, QUIET, Op, TypeRule, define
from tcompile.graph.sizes import Size
from tcompile.graph.types import TensorType


def _shape_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    return TensorType(as_dtype(attrs["dtype"]), tuple(attrs["shape"]))


def _arange_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    return TensorType(as_dtype(attrs["dtype"]), (arange_length(attrs["start"], attrs["stop"], attrs["step"]),))


def arange_length(start: Any, stop: Any, step: Any) -> Size:
    """The number of elements of ``arange``; sizes may be symbolic where the step is a literal int."""
    if isinstance(start, float) or isinstance(stop, float) or isinstance(step, float):
        return max(0, int(np.ceil((stop - start) / step)))
    distance = stop - start if step > 0 else start - stop
    if distance < 0:  # as for slices, none at all is not told apart
        return 0
    length: Size = distance if abs(step) == 1 else (distance + abs(step) - 1) // abs(step)
    return length


def _eye_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    return TensorType(as_dtype(attrs["dtype"]), (attrs["n_rows"], attrs["n_cols"]))


def _linspace_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    return TensorType(as_dtype(attrs["dtype"]), (attrs["num"],))


def _empty(shape: Any, dtype: Any) -> Any:
    return np.empty(shape, as_dtype(dtype))


def _full(shape: Any, fill_value: Any, dtype: Any) -> Any:
    return np.full(shape, fill_value, as_dtype(dtype))


def _arange(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    return np.arange(start, stop, step, as_dtype(dtype))  # type: ignore[call-overload]


def _eye(n_rows: int, n_cols: int, k: int, dtype: Any) -> Any:
    return np.eye(n_rows, n_cols, k, as_dtype(dtype))


def _linspace(start: float, stop: float, num: int, endpoint: bool, dtype: Any) -> Any:
    return np.linspace(start, stop, num, endpoint=endpoint, dtype=as_dtype(dtype))


def _row(name: str, rule: TypeRule, function: Callable[..., Any], doc: str = "") -> Op:
    return define(Op(name, "creation", 0, rule, function, doc, QUIET, exact=EVERYWHERE))


EMPTY = _row("empty", _shape_rule, _empty, "``shape`` of undefined elements, all of which are assigned")
FULL = _row("full", _shape_rule, _full, "``shape`` filled with ``fill_value``")
ARANGE = _row("arange", _arange_rule, _arange)
EYE = _row("eye", _eye_rule, _eye)
LINSPACE = _row("linspace", _linspace_rule, _linspace)
