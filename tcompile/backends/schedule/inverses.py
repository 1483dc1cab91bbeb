"""Inverses and linear solves of small matrices, unrolled in kernels.

Input: a call of ``numpy.linalg.inv`` or ``numpy.linalg.solve``.
Output: whether kernels compute it, what they read, and the arithmetic of one element.
Why: LAPACK takes a hundred times as long for such a matrix as its few operations do, and prevents fusion with the code
before and after it.

It is LAPACK's own elimination with partial pivoting, unrolled row by row in OpenBLAS's order of operations. This gives
its very bits for float64 (on processors where OpenBLAS has this order). Each element of the result is computed by
itself. Matrices that are singular, or so nearly singular that another order of operations might differ, are left to
NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tcompile.backends.schedule.complex_and_half import fused_products
from tcompile.backends.schedule.kernel import KernelValue
from tcompile.backends.schedule.kernel_ops import FMA, REGULAR, Operation
from tcompile.backends.schedule.maps import Affine, Map, broadcast
from tcompile.graph import Node, TensorType, ops
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.sizes import is_one

MOST_ROWS = 3
_INV, _SOLVE = "numpy.linalg.inv", "numpy.linalg.solve"
_FLOATS = ("float32", "float64")
_SINGULAR = 16.0  # units of rounding by which a pivot has to exceed what rounding could make of zero


class Apply(Protocol):
    """An operation and its operands; its value."""

    def __call__(self, op: Operation, *operands: Any) -> KernelValue: ...


def is_small(node: Node) -> bool:
    """Whether kernels should compute the call."""
    if node.op is not ops.CALL or node.attrs["target"] not in (_INV, _SOLVE) or node.attrs["kwargs"]:
        return False
    if node.attrs["args"] != tuple(map(Slot, range(len(node.inputs)))) or not isinstance(node.type, TensorType):
        return False
    types = [operand.tensor for operand in node.inputs]
    dtype = node.tensor.dtype
    if any(type.dtype != dtype for type in types) or dtype.name not in _FLOATS or not dtype.isnative:
        return False
    if types[0].ndim < 2 or len(types) != 1 + (node.attrs["target"] == _SOLVE):
        return False
    rows = types[0].shape[-1]
    return isinstance(rows, int) and 0 < rows <= MOST_ROWS


def rows(node: Node) -> int:
    """How many rows the matrix has."""
    size = node.inputs[0].tensor.shape[-1]
    assert isinstance(size, int)
    return size


def _is_one_column(node: Node) -> bool:
    """Whether the right-hand side is one vector, not a stack of matrices."""
    return len(node.inputs) > 1 and node.inputs[1].tensor.ndim == 1


def places(node: Node, map: Map) -> list[tuple[Node, Map]]:
    """The operands of one element: the matrix's elements, row by row, and a column of the right-hand side."""
    core = 1 if _is_one_column(node) else 2
    outer, column = map[: len(map) - core], map[len(map) - core + 1 :]
    stack, count = node.tensor.shape[: len(map) - core], range(rows(node))
    a = node.inputs[0]
    batch = broadcast(outer, a.tensor.shape[:-2], stack)
    found: list[tuple[Node, Map]] = [(a, (*batch, Affine((), i), Affine((), k))) for i in count for k in count]
    for b in node.inputs[1:]:
        batch = broadcast(outer, b.tensor.shape[: b.tensor.ndim - core], stack)
        found += [(b, (*batch, Affine((), i), *column)) for i in count]
    return found


def index_of_row(node: Node, map: Map) -> Affine:
    """The row of the result that an element is in."""
    return map[-1] if _is_one_column(node) else map[-2]


def element(
    node: Node, values: Sequence[KernelValue], row: Sequence[KernelValue], column: Sequence[KernelValue], apply: Apply
) -> KernelValue:
    """One element of the result, from the values at ``places``.

    ``row`` and ``column`` say for each row, and for each column, of the matrix whether the element is in it.
    """
    n = rows(node)
    a: list[list[Any]] = [list(values[i * n : i * n + n]) for i in range(n)]
    right: list[Any] = list(values[n * n :]) or [apply(ops.WHERE, here, 1.0, 0.0) for here in column]
    single = len(node.inputs) > 1 and (_is_one_column(node) or is_one(node.inputs[1].tensor.shape[-1]))
    for k in range(n):
        _eliminate(a, right, k, apply)
    for i in range(1, n):
        if i == 2 and not single and fused_products():  # one product of matrices for all columns
            total = apply(FMA, a[i][1], right[1], apply(ops.MULTIPLY, a[i][0], right[0]))
            right[i] = apply(ops.SUBTRACT, right[i], total)
        else:
            for k in range(i):
                right[i] = apply(ops.SUBTRACT, right[i], apply(ops.MULTIPLY, a[i][k], right[k]))
    for i in reversed(range(n)):
        for k in range(n - 1, i, -1):
            right[i] = apply(ops.SUBTRACT, right[i], apply(ops.MULTIPLY, a[i][k], right[k]))
        if single or node.tensor.dtype.itemsize == 4:
            right[i] = apply(ops.DIVIDE, right[i], a[i][i])
        else:
            right[i] = apply(ops.MULTIPLY, right[i], apply(ops.DIVIDE, 1.0, a[i][i]))
    result = right[-1]
    for here, value in zip(row, right[:-1], strict=False):
        result = apply(ops.WHERE, here, value, result)
    if len(node.inputs) > 1:  # the sign of a zero depends on how LAPACK's blocks add
        return apply(REGULAR, result, 0.0)
    return apply(ops.FINITE, result)


def _eliminate(a: list[list[Any]], right: list[Any], k: int, apply: Apply) -> None:
    """Column ``k`` of the triangular factors, which replace the matrix; rows are swapped in all of it."""
    n = len(a)
    least: list[Any] = [0.0] * n
    for i in range(1, n):
        terms = [apply(ops.MULTIPLY, a[i][m], a[m][k]) for m in range(min(i, k))]
        if terms:
            total = terms[0]
            for term in terms[1:]:
                total = apply(ops.ADD, total, term)
            size = apply(ops.ADD, apply(ops.ABS, a[i][k]), apply(ops.ABS, total))
            least[i] = apply(ops.MULTIPLY, size, _SINGULAR * float(np.finfo(total.dtype).eps))
            a[i][k] = apply(ops.SUBTRACT, a[i][k], total)
    best, larger = apply(ops.ABS, a[k][k]), []
    for i in range(k + 1, n):
        size = apply(ops.ABS, a[i][k])
        larger.append(apply(ops.GREATER, size, best))
        best = apply(ops.WHERE, larger[-1], size, best)
    taken: Any = None
    for i in range(n - 1, k, -1):  # the last row that is larger than all before it is swapped with row k
        here = larger[i - k - 1]
        last = here if taken is None else apply(ops.LOGICAL_AND, here, apply(ops.LOGICAL_NOT, taken))
        taken = here if taken is None else apply(ops.LOGICAL_OR, taken, here)
        for column in range(n):
            a[k][column], a[i][column] = _exchanged(last, a[k][column], a[i][column], apply)
        right[k], right[i] = _exchanged(last, right[k], right[i], apply)
        least[k], least[i] = _exchanged(last, least[k], least[i], apply)
    a[k][k] = apply(REGULAR, a[k][k], least[k])
    for i in range(k + 1, n):
        a[i][k] = apply(ops.MULTIPLY, a[i][k], apply(ops.DIVIDE, 1.0, a[k][k]))


def _exchanged(condition: Any, first: Any, second: Any, apply: Apply) -> tuple[Any, Any]:
    if first is second:
        return first, second
    return apply(ops.WHERE, condition, second, first), apply(ops.WHERE, condition, first, second)


__all__ = ["MOST_ROWS", "element", "index_of_row", "is_small", "places", "rows"]
