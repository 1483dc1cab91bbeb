"""Opaque operations: each stays one NumPy call.

Input: nothing.
Output: rows of the op table.
Why: the compiler fuses the operations around them.

``call`` is the general form: the attribute ``target`` names a function (``numpy.linalg.inv``), ``args`` and ``kwargs``
hold its arguments with ``Slot(i)`` standing for operand ``i``, and the frontend that builds it states the type.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph.dtypes import INT64
from tcompile.graph.op import EVERYWHERE, INEXACT, QUIET, Aliasing, Op, OverNamespace, TypeRule, define
from tcompile.graph.ops.rules import (
    broadcast_shapes,
    common_dtype,
    has_no_order,
    k_order,
    like_order,
    only,
    tensors,
)
from tcompile.graph.sizes import Size
from tcompile.graph.types import Layout, TensorType
from tcompile.records import dataclass


@dataclass(frozen=True)
class Slot:
    """Stands for operand ``index`` in the arguments of a ``call``.

    Kernels give arrays; ``seen`` is the Python object for one of rank 0: an "array", a "scalar" (np.float64) or a
    "number" (float).
    """

    index: int
    seen: str = "array"


@dataclass(frozen=True)
class Name:
    """Stands for the object of a dotted name in the arguments of a call, such as ``torch.float32``."""

    path: str


AS_SEEN = {"array": "", "scalar": "[()]", "number": ".item()"}  # conversions from an array, as Python's text


def _matmul_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    a, b = tensors(types)
    dtype = common_dtype("matmul", types)
    if not a.ndim or not b.ndim:
        raise GraphError("matmul: operands of rank 0")
    m = a.shape[-2:-1]
    n = b.shape[-1:] if b.ndim > 1 else ()
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise GraphError(f"matmul: {a} and {b} do not fit")
    batch = broadcast_shapes([a.shape[:-2], b.shape[:-2]])
    outer = k_order([_batch(t) for t in (a, b)], batch).order
    core = tuple(range(len(batch), len(batch) + len(m) + len(n)))
    return TensorType(dtype, (*batch, *m, *n), Layout.of_order((*outer, *core)))


def _batch(type: TensorType) -> TensorType:
    """The type of a stack of matrices without the matrices: the axes whose memory order a product keeps."""
    count = max(0, type.ndim - 2)
    return TensorType(type.dtype, type.shape[:count], Layout(type.layout.ranks[:count], dense=False))


def _concat_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    parts = tensors(types)
    axis = attrs["axis"]
    first = parts[0]
    total: Size = 0
    for part in parts:
        if part.ndim != first.ndim or any(part.shape[i] != first.shape[i] for i in range(first.ndim) if i != axis):
            raise GraphError(f"concat: {first} and {part} do not fit along axis {axis}")
        total = total + part.shape[axis]
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    return TensorType(common_dtype("concat", types), shape, concat_layout(parts))


def concat_layout(parts: Sequence[TensorType]) -> Layout:
    """The memory order NumPy gives to joined arrays.

    Axes are insertion-sorted by stride, outermost first. The first part that can tell (neither axis has size one) says
    that an axis moves outwards, and any other part may object. Unlike in ``k_order``, broadcast axes do tell.
    """
    ndim = parts[0].ndim
    ordered = list(range(ndim))
    cannot_tell = has_no_order(parts)
    for start in range(1, ndim):
        axis, position = ordered[start], start
        for place in range(start - 1, -1, -1):
            other = ordered[place]
            ranks = [
                (p.layout.ranks[axis], p.layout.ranks[other])
                for p in parts
                if not cannot_tell(p.shape[axis]) and not cannot_tell(p.shape[other])
            ]
            if ranks and not all(mine > theirs for mine, theirs in ranks):
                break
            if ranks:
                position = place
        ordered.insert(position, ordered.pop(start))
    return Layout.of_order(tuple(ordered))


def _same_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("operation", types)
    return TensorType(type.dtype, type.shape)


def _keep_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("operation", types)
    return TensorType(type.dtype, type.shape, like_order(type))


def _scan_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("scan", types)
    return TensorType(type.dtype, type.shape, k_order([type], type.shape))


def _indices_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    return TensorType(INT64, only("argsort", types).shape)


def _roll_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("roll", types)
    if len(attrs["shifts"]) != type.ndim:
        raise GraphError(f"roll: {len(attrs['shifts'])} shifts for {type}")
    return _keep_rule(types, attrs)


def fill(template: Any, operands: Sequence[Any]) -> Any:
    """The arguments of a call: a template with each ``Slot(i)`` in it replaced by operand ``i``."""
    if isinstance(template, Slot):
        value = operands[template.index]
        return value if template.seen == "array" else value[()] if template.seen == "scalar" else value.item()
    if isinstance(template, tuple | list):
        return type(template)(fill(item, operands) for item in template)
    return resolve(template.path) if isinstance(template, Name) else template


@cache
def resolve(target: str) -> Any:
    """The object of a dotted name."""
    module, _, name = target.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError:
        return getattr(resolve(module), name)


def _call(*operands: Any, target: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> Any:
    return resolve(target)(*fill(args, operands), **{k: fill(v, operands) for k, v in kwargs})


def _tensor_call(*operands: Any, target: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> Any:
    result = resolve(target)(*fill(args, operands), **{k: fill(v, operands) for k, v in kwargs})
    return flat(result) if isinstance(result, tuple | list) else result


def flat(result: Any) -> tuple[Any, ...]:
    """The items of nested tuples and lists, as ``get`` numbers the results of a ``tensor_call``."""
    if isinstance(result, tuple | list):
        return tuple(leaf for item in result for leaf in flat(item))
    return (result,)


def short_name(target: str) -> str:
    """The name of a call's function without its module.

    >>> short_name("torch.nn.functional.linear"), short_name("torch.ops.aten.add.Tensor")
    ('linear', 'add')
    """
    return target.split(".")[3] if target.startswith("torch.ops.") else target.rpartition(".")[2]


def _scan(name: str, function: Callable[..., Any]) -> Op:
    return define(
        Op(name, "opaque", 1, _scan_rule, lambda x, axis: function(x, axis=axis, dtype=x.dtype), effects=INEXACT,
           exact=EVERYWHERE, fusion="scan")
    )  # fmt: skip


def _copied(name: str, rule: TypeRule, meaning: Callable[..., Any] | OverNamespace, doc: str = "", **facts: Any) -> Op:
    return define(Op(name, "opaque", 1, rule, meaning, doc, QUIET, **facts))


MATMUL = define(Op("matmul", "opaque", 2, _matmul_rule, np.matmul, effects=INEXACT))
CONCAT = define(Op("concat", "opaque", None, _concat_rule, lambda *parts, axis: np.concatenate(parts, axis=axis),
                   effects=QUIET))  # fmt: skip
COPY = _copied("copy", _keep_rule, lambda x: np.copy(x, order="K"), "a new array, memory order kept")
COPY_C = _copied("copy_c", _same_rule, OverNamespace(lambda xp, x: xp.array(x, order="C")), "a new array in C order")
SORT = _copied("sort", _keep_rule, lambda x, axis: np.sort(x, axis=axis), fusion="sort")
ARGSORT = _copied("argsort", _indices_rule, lambda x, axis: np.argsort(x, axis=axis))
CUMULATIVE_SUM = _scan("cumulative_sum", np.cumsum)
CUMULATIVE_PROD = _scan("cumulative_prod", np.cumprod)
ROLL = _copied("roll", _roll_rule, lambda x, shifts: np.roll(x, shifts, axis=tuple(range(len(shifts)))),
               "elements moved along each axis, around its ends", exact=EVERYWHERE, cost=2)  # fmt: skip
# Targets of calls that compute on threads of their own. These spin for a while afterwards, so that threads of kernels
# would have to wait for a processor.
THREADED: set[str] = set()
CALL = define(Op("call", "opaque", None, None, _call, memory=Aliasing.MAY_ALIAS))
# A call of PyTorch's on tensors. It may write to its operands, so calls stay in their order, and none is dead.
TENSOR_CALL = define(Op("tensor_call", "opaque", None, None, _tensor_call, memory=Aliasing.MAY_ALIAS))
