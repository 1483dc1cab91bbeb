"""Admission of nodes to kernels, by rules that hold for every code generator.

Input: a node, and a predicate of the code generator: has it this operation on operands of this dtype?
Output: whether a kernel computes the node with NumPy's result; other nodes are library calls.
Why: NumPy's rules (how bare numbers convert, which reductions wrap, which casts emit a warning) are in one place.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tcompile.backends.schedule import inverses, products
from tcompile.backends.schedule.complex_and_half import COMPLEX, HALF, PARTS, SINGLE
from tcompile.graph import Node, Operand, ScalarType, SymInt, TensorType, ops
from tcompile.graph.dtypes import DType
from tcompile.graph.op import Op
from tcompile.graph.sizes import hint, may_be_empty, product

COMPUTED = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
})  # fmt: skip
ALONG = ("scan", "sort")  # kinds of fusion that give a value for each element of an axis
FEW, WIDE = 16, 16  # rows of at most so many elements are processed side by side, where there are at least so many rows
SHORT = 8  # elements of an axis: vectors along a shorter one are not full
# Elements that a sorting network sorts: in rows side by side, and in contiguous rows, which NumPy sorts in vectors
# unless the elements are small.
SORT_ACROSS, SORT_ALONG, SORTED_IN_VECTORS = 25, 9, 4
REDUCTIONS = frozenset({ops.SUM, ops.PROD, ops.MAX, ops.MIN, ops.ANY, ops.ALL})


def admits(node: Node, has_operation: Callable[[Op, DType], bool]) -> bool:
    """Whether kernels can compute this node. ``has_operation`` is asked about machine dtypes only."""
    if node.op is ops.GATHER:
        return _admits_gather(node)
    if node.op is ops.ROLL:
        return _can_gather(node.tensor.dtype)
    if node.op is ops.MATMUL:
        return products.is_small(node)
    if node.op.fusion in ALONG:
        return _admits_along(node) and has_operation(node.op, node.tensor.dtype)
    if node.op is ops.CALL:
        return inverses.is_small(node)
    if node.op is ops.ASSIGN:
        return node.tensor.dtype.name in COMPUTED
    kind = node.op.kind
    if node.op is ops.SCALAR_LOOP:
        return False
    if kind == "reduction":
        return _admits_reduction(node)
    if kind == "pointwise":
        return _admits_pointwise(node, has_operation)
    return _admits_creation(node)


def _admits_along(node: Node) -> bool:
    """Whether it is a scan of numbers, or a sort of few elements per row."""
    dtype, shape = node.tensor.dtype, node.tensor.shape
    if dtype.kind not in "iuf" or dtype.name not in COMPUTED or not dtype.isnative or dtype == HALF:
        return False
    if node.op is not ops.SORT:
        return True
    axis = node.attrs["axis"]
    count, rows = shape[axis], product(n for i, n in enumerate(shape) if i != axis)
    in_one_piece = node.inputs[0].tensor.layout.order[-1] == axis and dtype.itemsize >= SORTED_IN_VECTORS
    most = SORT_ALONG if in_one_piece else SORT_ACROSS
    return isinstance(count, int) and 1 < count <= most and hint(rows) >= WIDE


def _admits_gather(node: Node) -> bool:
    """Whether the indices fit 64 signed bits and are checked even where another axis is empty."""
    dtype = node.tensor.dtype
    x, axes = node.inputs[0].tensor, node.attrs["axes"]
    if may_be_empty([size for axis, size in enumerate(x.shape) if axis not in axes]):
        return False
    kinds = {index.tensor.dtype.name for index in node.inputs[1:]}
    return _can_gather(dtype) and "uint64" not in kinds


def _can_gather(dtype: DType) -> bool:
    """Whether kernels can load single elements of this dtype from anywhere."""
    return dtype.name in COMPUTED and dtype != HALF


def _admits_creation(node: Node) -> bool:
    dtype = node.tensor.dtype
    if dtype.name not in COMPUTED:
        return False
    if node.op is ops.EMPTY:
        return True
    if node.op is ops.FULL:
        return number_fits(node.attrs["fill_value"], dtype)
    if node.op is ops.ARANGE:
        ends = [node.attrs[key] for key in ("start", "stop", "step")]
        return dtype.kind in "iu" and dtype.itemsize >= 4 and all(isinstance(n, int | SymInt) for n in ends)
    return False


def _admits_reduction(node: Node) -> bool:
    operand = node.operands[0]
    if node.op not in REDUCTIONS or not isinstance(operand, Node):
        return False
    type = operand.tensor
    if type.dtype.name not in COMPUTED or not type.dtype.isnative or node.tensor.dtype != type.dtype:
        return False
    if type.dtype.kind == "b" and node.op in (ops.SUM, ops.PROD):
        return False
    if type.dtype.kind == "c" and node.op is not ops.SUM:
        return False
    if type.dtype == HALF and node.op in (ops.SUM, ops.PROD):  # NumPy rounds each step, far from exact
        return False
    if not node.attrs["axis"]:
        return False
    if node.op in (ops.MAX, ops.MIN):  # NumPy raises where there is no element, and wraps at none otherwise
        return not may_be_empty([type.shape[axis] for axis in node.attrs["axis"]])
    return True


def _admits_pointwise(node: Node, has_operation: Callable[[Op, DType], bool]) -> bool:
    types = [o.type for o in node.operands if isinstance(o, Node)]
    dtypes = [t.dtype for t in types if isinstance(t, TensorType)]
    result = node.tensor.dtype
    if not dtypes or any(d.name not in COMPUTED or not d.isnative for d in [*dtypes, result]):
        return False
    if node.op is ops.ASTYPE:
        return dtypes[0].kind != "c" or result.kind in "cb"  # NumPy emits a warning where it discards imaginary parts
    operand = dtypes[-1] if node.op is ops.WHERE else dtypes[0]
    if node.op is ops.WHERE and not isinstance(node.operands[1], Node) and not isinstance(node.operands[2], Node):
        return False
    numbers = node.operands[1:] if node.op is ops.WHERE else node.operands
    weak = [o for o in numbers if not (isinstance(o, Node) and isinstance(o.type, TensorType))]
    if not all(number_fits(o, operand) for o in weak):
        return False
    if node.op is ops.WHERE:
        return True
    if operand in PARTS:
        return node.op in COMPLEX
    if operand == HALF:  # computed in float32; nextafter is a step of another size
        return node.op is not ops.NEXTAFTER and has_operation(node.op, SINGLE)
    return has_operation(node.op, operand)


def number_fits(operand: Operand, dtype: DType) -> bool:
    """Whether a bare number takes part in ``dtype`` exactly as NumPy converts it."""
    if dtype in PARTS:
        parts = (operand.real, operand.imag) if isinstance(operand, complex) else (operand,)
        return all(number_fits(part, PARTS[dtype]) for part in parts)
    if isinstance(operand, Node):
        return isinstance(operand.type, ScalarType) and operand.type.kind == "float" and dtype.kind == "f"
    if isinstance(operand, complex):
        return False
    if isinstance(operand, bool):
        return True
    if isinstance(operand, SymInt):
        return dtype.kind == "f" or dtype.name == "int64"
    if isinstance(operand, int):
        if dtype.kind == "b":
            return False
        if dtype.kind == "f":
            return abs(operand) < 2**1000 and bool(np.isfinite(dtype.type(operand))) if abs(operand) < 2**128 else False
        info = np.iinfo(dtype)
        return info.min <= operand <= info.max
    if dtype.kind != "f":
        return False
    return not math.isfinite(operand) or abs(operand) <= float(np.finfo(dtype).max)


__all__ = ["ALONG", "COMPUTED", "admits", "number_fits"]
