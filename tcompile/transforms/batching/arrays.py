"""Batches of views, writes, reads at computed places, products and joins.

Input: a node with the operands of all examples.
Output: the same operation on arrays with one more axis.
Why: these name axes, shapes and places, all of which move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.graph import ops
from tcompile.graph.ir import Node
from tcompile.graph.op import Op
from tcompile.graph.ops.writing import Path, part_of, path_types
from tcompile.graph.sizes import Size
from tcompile.transforms.batching.table import Batched, batching, each
from tcompile.transforms.emit import Emit

each("it makes an array of no other", ops.EMPTY, ops.FULL, ops.ARANGE, ops.EYE, ops.LINSPACE)


# -- views -------------------------------------------------------------------------------------------------------------
@batching(ops.RESHAPE, ops.RAVEL)
def _reshape(b: Batched) -> Node:
    return b.e.reshape(b.given(0), (b.count, *b.node.tensor.shape))


@batching(ops.BROADCAST_TO)
def _broadcast(b: Batched) -> Node:
    shape = b.node.attrs["shape"]
    operand = b.aligned(0, len(shape))
    assert isinstance(operand, Node)
    return b.e.broadcast(operand, (b.count, *shape))


@batching(ops.WINDOWS, ops.REAL, ops.IMAG, ops.EXPAND_DIMS, ops.SQUEEZE, ops.FLIP, ops.PERMUTE_DIMS, ops.INDEX)
def _view(b: Batched) -> Node:
    return b.e(b.node.op, b.given(0), **_moved(b.node.op, b.node.attrs, b.count))


@batching(ops.DIAGONAL)
def _diagonal(b: Batched) -> Node:
    x = b.given(0)
    x = x if x.tensor.c_contiguous else b.e(ops.COPY_C, x)
    return b.e(ops.DIAGONAL, x, **_moved(ops.DIAGONAL, b.node.attrs, b.count))


def _moved(op: Op, attrs: dict[str, Any], count: Size) -> dict[str, Any]:
    """The attributes of a view op on an array that has another axis in front."""
    match op.name:
        case "reshape":
            return {"shape": (count, *attrs["shape"])}
        case "permute_dims":
            return {"axes": (0, *(axis + 1 for axis in attrs["axes"]))}
        case "index":
            return {"key": (slice(None), *attrs["key"])}
        case "diagonal":
            return {**attrs, "axis1": attrs["axis1"] + 1, "axis2": attrs["axis2"] + 1}
        case "expand_dims" | "squeeze" | "flip" | "windows":
            name = "axes" if op is ops.WINDOWS else "axis"
            axis = attrs[name]
            return {**attrs, name: tuple(a + 1 for a in axis) if isinstance(axis, tuple) else axis + 1}
    return attrs


# -- copies and writes -------------------------------------------------------------------------------------------------
@batching(ops.COPY, ops.COPY_C)
def _copy(b: Batched) -> Node:
    return b.e(b.node.op, b.given(0))


def _base(b: Batched) -> Node:
    """The array that is written to, in an order in which all view ops of a path are views."""
    base = b.whole(0)
    return base if base.tensor.c_contiguous else b.e(ops.COPY_C, base)


def _path(b: Batched) -> Path:
    path = b.node.attrs["path"]
    steps = []
    for (name, attrs), shown in zip(path, path_types(b.own(0).tensor, path)[1:], strict=True):
        op, named = ops.op_named(name), dict(attrs)
        if op is ops.RAVEL:
            op, named = ops.RESHAPE, {"shape": shown.shape}
        steps.append((op.name, tuple(_moved(op, named, b.count).items())))
    return tuple(steps)


@batching(ops.ASSIGN)
def _assign(b: Batched) -> Node:
    return b.e(ops.ASSIGN, _base(b), b.aligned(1, part_of(b.node).ndim), path=_path(b))


@batching(ops.GATHER)
def _gather(b: Batched) -> Node:
    axes = b.node.attrs["axes"]
    ndim = max(b.own(i).tensor.ndim for i in range(1, len(b.operands)))
    if not any(b.flags[1:]):
        found = b.e(ops.GATHER, *b.operands, axes=tuple(axis + 1 for axis in axes))
        return b.e.permute(found, [ndim, *(i for i in range(found.tensor.ndim) if i != ndim)])
    indices = [b.aligned(i, ndim) for i in range(1, len(b.operands))]
    if not b.flags[0]:
        return b.e(ops.GATHER, b.given(0), *indices, axes=axes)
    return b.e(ops.GATHER, b.given(0), _numbers(b, ndim), *indices, axes=(0, *(axis + 1 for axis in axes)))


def _numbers(b: Batched, ndim: int) -> Node:
    """The number of each example, for indices of ``ndim`` axes."""
    numbers = b.e(ops.ARANGE, start=0, stop=b.count, step=1, dtype="int64")
    return b.e.reshape(numbers, (b.count, *(1,) * ndim))


@batching(ops.SCATTER, ops.COMBINE)
def _scatter(b: Batched) -> Node:
    attrs = b.node.attrs
    ndim = max(b.own(i).tensor.ndim for i in range(2, len(b.operands)))
    rest = part_of(b.node).ndim - len(attrs["axes"])
    indices = [b.aligned(i, ndim) for i in range(2, len(b.operands))]
    value = b.aligned(1, ndim + rest)
    axes = (0, *(axis + 1 for axis in attrs["axes"]))
    return b.e(b.node.op, _base(b), value, _numbers(b, ndim), *indices, **{**attrs, "axes": axes, "path": _path(b)})


@batching(ops.CONCAT)
def _concat(b: Batched) -> Node:
    return b.e(ops.CONCAT, *(b.whole(i) for i in range(len(b.operands))), axis=b.node.attrs["axis"] + 1)


@batching(ops.ROLL)
def _roll(b: Batched) -> Node:
    return b.e(ops.ROLL, b.given(0), shifts=(0, *b.node.attrs["shifts"]))


# -- products ----------------------------------------------------------------------------------------------------------
@batching(ops.MATMUL)
def _matmul(b: Batched) -> Node:
    e, (x, y), (over_x, over_y) = b.e, (b.given(0), b.given(1)), b.flags
    p, q = b.own(0).tensor.ndim, b.own(1).tensor.ndim
    if p == q == 1 and over_x and over_y:
        return e(ops.SUM, e.multiply(x, y), axis=(1,), keepdims=False)
    if not over_y and q <= 2 and (p == 2 or q == 2):
        return _one_product(e, x, y)
    if not over_x and p == 2 and q == 1:
        return e(ops.MATMUL, y, e.permute(x, [1, 0]))
    if (not over_x and p == 1) or (not over_y and q == 1):
        return e(ops.MATMUL, x, y)
    outer = max(p, q, 2)
    left, right = b.aligned(0, p), b.aligned(1, q)
    assert isinstance(left, Node) and isinstance(right, Node)
    if p == 1:
        left = e.reshape(left, (*left.tensor.shape[:-1], 1, left.tensor.shape[-1]))
    if q == 1:
        right = e.reshape(right, (*right.tensor.shape, 1))
    left, right = (_stacked(e, n, over, outer) for n, over in ((left, over_x), (right, over_y)))
    found = e(ops.MATMUL, left, right)
    return e.reshape(found, (b.count, *b.node.tensor.shape))


def _stacked(e: Emit, x: Node, over: bool, ndim: int) -> Node:
    """A stack of matrices whose axis of examples comes before ``ndim`` further axes."""
    shape = x.tensor.shape
    return e.reshape(x, (shape[0], *(1,) * (ndim + 1 - len(shape)), *shape[1:])) if over else x


def _one_product(e: Emit, x: Node, y: Node) -> Node:
    """All rows of all examples times one matrix or vector."""
    shape: Sequence[Size] = x.tensor.shape
    if len(shape) <= 2:
        return e(ops.MATMUL, x, y)
    rows: Size = 1
    for size in shape[:-1]:
        rows = rows * size
    found = e(ops.MATMUL, e.reshape(x, (rows, shape[-1])), y)
    return e.reshape(found, (*shape[:-1], *y.tensor.shape[1:]))
