"""Batches of element-by-element operations, reductions and scans along an axis.

Input: a node with the operands of all examples.
Output: the same operation on arrays with one more axis.
Why: their rules need nothing but the places of axes.
"""

from __future__ import annotations

from tcompile.graph import ops
from tcompile.graph.ir import Node
from tcompile.graph.op import OPS
from tcompile.transforms.batching.table import Batched, OneByOne, batching, each

# Operations of NumPy's scalars, and those of arrays that give the same floats. Those of ints report overflow.
_OF_ARRAYS = {
    ops.SCALAR_ADD: ops.ADD, ops.SCALAR_SUBTRACT: ops.SUBTRACT, ops.SCALAR_MULTIPLY: ops.MULTIPLY,
    ops.SCALAR_NEGATIVE: ops.NEGATIVE, ops.SCALAR_ABS: ops.ABS, ops.SCALAR_POW: ops.POW,
    ops.SCALAR_FLOOR_DIVIDE: ops.FLOOR_DIVIDE, ops.SCALAR_REMAINDER: ops.REMAINDER,
}  # fmt: skip
_RAISE = (
    ops.PYTHON_ADD, ops.PYTHON_SUBTRACT, ops.PYTHON_MULTIPLY, ops.PYTHON_SQRT, ops.PYTHON_DIVIDE, ops.FINITE,
)  # fmt: skip

each("an operation of Python's numbers may raise", *_RAISE)


@batching(*(op for op in OPS.values() if op.kind == "pointwise" and op not in (*_RAISE, ops.ORDERED)))
def _pointwise(b: Batched) -> Node:
    op, ndim = b.node.op, b.node.tensor.ndim
    if op in _OF_ARRAYS and b.node.tensor.dtype.kind not in "fc":
        raise OneByOne
    operands = (b.aligned(i, ndim) for i in range(len(b.operands)))
    return b.e(_OF_ARRAYS.get(op, op), *operands, **b.node.attrs)


@batching(ops.ORDERED)
def _ordered(b: Batched) -> Node:
    return b.e(ops.ORDERED, b.given(0), axes=(0, *(axis + 1 for axis in b.node.attrs["axes"])))


@batching(*(op for op in OPS.values() if op.kind == "reduction"))
def _reduction(b: Batched) -> Node:
    axis = b.node.attrs["axis"]
    moved = tuple(a + 1 for a in axis) if isinstance(axis, tuple) else axis + 1
    return b.e(b.node.op, b.given(0), **{**b.node.attrs, "axis": moved})


@batching(ops.SORT, ops.ARGSORT, ops.CUMULATIVE_SUM, ops.CUMULATIVE_PROD)
def _along(b: Batched) -> Node:
    axis = b.node.attrs["axis"]
    return b.e(b.node.op, b.given(0), axis=axis + 1 if axis >= 0 else axis)
