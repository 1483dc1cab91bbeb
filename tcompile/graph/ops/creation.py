"""Creation operations: arrays without array operands.

Input: nothing.
Output: rows of the op table.
Why: kernels fill arrays as they compute others. Sizes and values may be symbolic ints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcompile.graph.dtypes import as_dtype
from tcompile.graph.op import EVERYWHERE, QUIET, Op, OverNamespace, TypeRule, define
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
    if distance < 0:  # as for slices, all negative lengths are zero
        return 0
    length: Size = distance if abs(step) == 1 else (distance + abs(step) - 1) // abs(step)
    return length


def _eye_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    return TensorType(as_dtype(attrs["dtype"]), (attrs["n_rows"], attrs["n_cols"]))


def _linspace_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    return TensorType(as_dtype(attrs["dtype"]), (attrs["num"],))


@OverNamespace
def _empty(xp: Any, shape: Any, dtype: Any) -> Any:
    return xp.zeros(shape, as_dtype(dtype))  # zeros: the meaning of a graph is the same in each run


@OverNamespace
def _full(xp: Any, shape: Any, fill_value: Any, dtype: Any) -> Any:
    return xp.full(shape, fill_value, as_dtype(dtype))


@OverNamespace
def _arange(xp: Any, start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    return xp.arange(start, stop, step, as_dtype(dtype))


@OverNamespace
def _eye(xp: Any, n_rows: int, n_cols: int, k: int, dtype: Any) -> Any:
    return xp.eye(n_rows, n_cols, k, as_dtype(dtype))


@OverNamespace
def _linspace(xp: Any, start: float, stop: float, num: int, endpoint: bool, dtype: Any) -> Any:
    return xp.linspace(start, stop, num, endpoint=endpoint, dtype=as_dtype(dtype))


def _row(name: str, rule: TypeRule, meaning: OverNamespace, doc: str = "") -> Op:
    return define(Op(name, "creation", 0, rule, meaning, doc, QUIET, exact=EVERYWHERE))


EMPTY = _row("empty", _shape_rule, _empty, "``shape`` of undefined elements, all of which are assigned")
FULL = _row("full", _shape_rule, _full, "``shape`` filled with ``fill_value``")
ARANGE = _row("arange", _arange_rule, _arange)
EYE = _row("eye", _eye_rule, _eye)
LINSPACE = _row("linspace", _linspace_rule, _linspace)
