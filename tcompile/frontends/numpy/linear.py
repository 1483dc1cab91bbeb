"""Linear algebra: products, and shape rules of BLAS and LAPACK calls.

Input: arrays.
Output: ``matmul`` nodes, pointwise nodes for outer products, and shapes for ``library``.
Why: products fuse with their operands; decompositions stay calls.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy import ufuncs
from tcompile.frontends.numpy.library import (
    RULES,
    Shape,
    library,
    library_call,
    refuse,
    shape_of,
    together,
    total,
    without,
)
from tcompile.frontends.numpy.registry import NO_VALUE, function, method, refuse_unless
from tcompile.frontends.numpy.shape import reshape_to, row_of, transpose, transposed
from tcompile.frontends.numpy.values import INT, array, axis_in, cast, sizes_equal, standin_dtype
from tcompile.graph import TensorType
from tcompile.graph.dtypes import DType
from tcompile.graph.ops.view import address_direction
from tcompile.graph.sizes import Size, may_be_one, product


def _promote(function: Any, a: Traced, c: Traced) -> DType:
    return standin_dtype(function, np.ones(1, a.type.dtype), np.ones(1, c.type.dtype))


def matmul(b: Builder, left: Any, right: Any) -> Traced:
    """``left @ right``."""
    x, y = array(b, left), array(b, right)
    if not x.type.ndim or not y.type.ndim:
        raise CannotCapture("operation-raises", "matmul: an operand has no dimensions")
    dtype = _promote(np.matmul, x, y)
    casts = [v for v in (x, y) if v.type.dtype != dtype]
    if any(v.type.ndim > 2 and not v.type.c_contiguous for v in casts):
        raise CannotCapture("memory-order", "matmul casts an operand that is not in C order")
    if casts and dtype.kind in "fc":  # where NumPy casts, it may sum in another order than for what is cast already
        return library_call(b, RULES[np.matmul], [x, y], {})  # type: ignore[no-any-return]
    node = b.op("matmul", cast(b, x, dtype), cast(b, y, dtype))
    return Traced(node, scalar=not node.tensor.ndim)


@function("matmul", opaque=True)
def _matmul(b: Builder, x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Traced:
    refuse_unless("matmul", out=(out, (None,)), keyword=(tuple(kwargs), ((),)))
    return matmul(b, x1, x2)


@function("linalg.matmul", opaque=True)
def _linalg_matmul(b: Builder, x1: Any, x2: Any, /) -> Traced:
    return matmul(b, x1, x2)


@library("matmul", "linalg.matmul")
def _matmul_shape(x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None, casting: Any = None) -> Shape:
    return _product(shape_of(x1), shape_of(x2))


def _product(p: Shape, q: Shape) -> Shape:
    """The shape of a product of stacks of matrices, in which a row or a column may stand for a matrix."""
    if not p or not q:
        raise refuse("a matrix product of numbers", "operation-raises")
    stack = together(_stack(p), _stack(q))
    agree(p[-1], q[-2] if len(q) > 1 else q[0])
    return (*stack, *(p[-2:-1] if len(p) > 1 else ()), *(q[-1:] if len(q) > 1 else ()))


def _stack(shape: Shape) -> TensorType:
    return TensorType(INT, shape[:-2])


def agree(a: Size, b: Size) -> None:
    """Refuses sizes that have to be equal and are not."""
    if not sizes_equal(a, b):
        raise refuse(f"sizes {a} and {b} do not agree", "operation-raises")


def dot_product(b: Builder, x: Traced, y: Traced) -> Traced:
    """``x.dot(y)`` as a product of matrices, which has the same bits of rows and dense matrices."""
    dtype = _check_dtypes("dot", x, y)
    if dtype.kind in "fc" and all(map(may_be_one, (*x.type.shape, *y.type.shape))):
        # Of one product there is no sum: it may be a negative zero.
        return library_call(b, RULES[np.dot], [_row(b, x), _row(b, y)], {})  # type: ignore[no-any-return]
    x, y = (_row(b, v) if v.type.ndim == 1 else v for v in (x, y))
    if not all(v.type.ndim == 1 or (v.type.ndim == 2 and v.type.layout.dense) for v in (x, y)):
        raise CannotCapture("memory-order", "dot of such arrays copies, or multiplies other axes, than a product does")
    return matmul(b, x, y)


def _check_dtypes(name: str, x: Traced, y: Traced) -> DType:
    dtype = x.type.dtype
    if dtype != y.type.dtype or (dtype.kind not in "iu" and dtype.char not in "fdFD"):
        raise CannotCapture("unsupported-dtype", f"{name} of {dtype} and {y.type.dtype} is one call")
    return dtype


def _row(b: Builder, x: Traced) -> Traced:
    """A factor of a product of rows as ``dot`` reads it: it copies those that lead backwards, a product does not."""
    forward = x.type.ndim != 1 or address_direction(x.node, 0)
    if forward is None:
        raise CannotCapture("memory-order", "whether dot copies a row depends on how the array lies")
    return x if forward else Traced(b.op("copy_c", x.node))


@function("dot", opaque=True)
@method("dot")
def _dot(b: Builder, a: Any, b_: Any, out: Any = None) -> Traced:
    refuse_unless("dot", out=(out, (None,)))
    return dot_product(b, array(b, a), array(b, b_))


@function("inner", opaque=True)
def _inner(b: Builder, a: Any, b_: Any, /) -> Traced:
    x, y = array(b, a), array(b, b_)
    return dot_product(b, x, transposed(b, y) if y.type.ndim == 2 else y)


@function("vdot", opaque=True)
def _vdot(b: Builder, a: Any, b_: Any, /) -> Traced:
    x, y = array(b, a), array(b, b_)
    if x.type.dtype.kind == "c" or not x.type.ndim == y.type.ndim == 1:
        raise CannotCapture("unsupported-argument", "vdot of complex numbers or matrices is one call")
    _check_dtypes("vdot", x, y)
    return matmul(b, x, y)


@library("dot", method=True)
def dot(a: Any, b: Any, out: Any = None) -> Shape:
    """The last axis of one with the last but one of the other."""
    p, q = shape_of(a), shape_of(b)
    if not p or not q:
        return p or q
    agree(p[-1], q[-2] if len(q) > 1 else q[0])
    return (*p[:-1], *q[:-2], *q[-1:]) if len(q) > 1 else p[:-1]


@library("inner")
def inner(a: Any, b: Any, /) -> Shape:
    """The last axes of both."""
    p, q = shape_of(a), shape_of(b)
    if not p or not q:
        return p or q
    agree(p[-1], q[-1])
    return (*p[:-1], *q[:-1])


@library("vdot")
def vdot(a: Any, b: Any, /) -> Shape:
    """All elements of both."""
    agree(total(shape_of(a)), total(shape_of(b)))
    return ()


@library("vecdot")
def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: Any = -1) -> Shape:
    """One axis of both."""
    return _vecdot(shape_of(x1), shape_of(x2), axis)


@library("linalg.vecdot")
def _linalg_vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Shape:
    return _vecdot(shape_of(x1), shape_of(x2), axis)


def _vecdot(p: Shape, q: Shape, axis: Any) -> Shape:
    if not p or not q or axis != -1:
        raise refuse("vecdot along another axis than the last")
    agree(p[-1], q[-1])
    return together(TensorType(INT, p[:-1]), TensorType(INT, q[:-1]))


@library("matvec")
def matvec(x1: Any, x2: Any, /) -> Shape:
    """Matrices times columns."""
    p, q = shape_of(x1), shape_of(x2)
    agree(p[-1], q[-1])
    return (*together(_stack(p), TensorType(INT, q[:-1])), p[-2])


@library("vecmat")
def vecmat(x1: Any, x2: Any, /) -> Shape:
    """Rows times matrices."""
    p, q = shape_of(x1), shape_of(x2)
    agree(p[-1], q[-2])
    return (*together(TensorType(INT, p[:-1]), _stack(q)), q[-1])


@function("outer")
def outer(b: Builder, a: Any, b_: Any, out: Any = None) -> Traced:
    """``np.outer``: the product of a column and a row."""
    refuse_unless("outer", out=(out, (None,)))
    column, row = (row_of(b, array(b, x)) for x in (a, b_))
    left = Traced(b.op("index", column.node, key=(slice(None), None)))
    right = Traced(b.op("index", row.node, key=(None, slice(None))))
    return ufuncs.emit(b, np.multiply, [left, right])


@library("outer", "linalg.outer")
def _outer_shape(a: Any, b: Any, out: Any = None) -> Shape:
    return (total(shape_of(a)), total(shape_of(b)))


@library("kron")
def kron(a: Any, b: Any) -> Shape:
    """The products of the sizes."""
    p, q = shape_of(a), shape_of(b)
    ndim = max(len(p), len(q))
    p, q = ((*(1,) * (ndim - len(s)), *s) for s in (p, q))
    return tuple(n * m for n, m in zip(p, q, strict=True))


@function("tensordot", "linalg.tensordot", opaque=True)
def _tensordot(b: Builder, a: Any, b_: Any, axes: Any = 2) -> Traced:
    """The product of two matrices: what is left of one array, and what is summed of both."""
    x, y = array(b, a), array(b, b_)
    p, q = x.type.shape, y.type.shape
    left, right = _summed(p, q, axes)
    if not left:
        raise CannotCapture("unsupported-argument", "tensordot over no axes is one call")
    others = [i for i in range(len(p)) if i not in left], [i for i in range(len(q)) if i not in right]
    sizes = [product(p[i] for i in others[0]), product(p[i] for i in left), product(q[i] for i in others[1])]
    rows = reshape_to(b, _dense(b, transpose(b, x, (*others[0], *left))), (sizes[0], sizes[1]))
    columns = reshape_to(b, _dense(b, transpose(b, y, (*right, *others[1]))), (sizes[1], sizes[2]))
    return reshape_to(b, dot_product(b, rows, columns), tensordot(x.type, y.type, axes))


def _dense(b: Builder, x: Traced) -> Traced:
    """A factor whose elements follow one another: whether NumPy's reshape copies others is nothing to a product."""
    return x if x.type.layout.dense else Traced(b.op("copy_c", x.node))


@library("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Shape:
    """The axes that are left of both."""
    p, q = shape_of(a), shape_of(b)
    left, right = _summed(p, q, axes)
    return (*(n for i, n in enumerate(p) if i not in left), *(n for i, n in enumerate(q) if i not in right))


def _summed(p: Shape, q: Shape, axes: Any) -> tuple[list[int], list[int]]:
    """The axes of arrays of these shapes that ``tensordot`` sums over."""
    if isinstance(axes, tuple | list) and len(axes) == 2:
        first, second = axes
        left = [axis_in(i, len(p)) for i in (first if isinstance(first, tuple | list) else (first,))]
        right = [axis_in(i, len(q)) for i in (second if isinstance(second, tuple | list) else (second,))]
    elif type(axes) is int and 0 <= axes <= min(len(p), len(q)):
        left, right = list(range(len(p) - axes, len(p))), list(range(axes))
    else:
        raise refuse("tensordot over these axes")
    if len(left) != len(right):
        raise refuse("tensordot: axes do not fit", "operation-raises")
    for i, j in zip(left, right, strict=True):
        agree(p[i], q[j])
    return left, right


@library("linalg.multi_dot")
def multi_dot(arrays: Any, *, out: Any = None) -> Shape:
    """The product of all of them."""
    shapes = [shape_of(a) for a in arrays]
    result = shapes[0]
    for shape in shapes[1:]:
        result = _product(result, shape) if result else shape
    return result


@library("cross")
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Shape:
    """Vectors of three numbers along one axis."""
    if axis is not None:
        axisa = axisb = axisc = axis
    parts = []
    for value, place in ((a, axisa), (b, axisb)):
        shape = shape_of(value)
        at = axis_in(place, len(shape))
        agree(shape[at], 3)
        parts.append(TensorType(INT, (*shape[:at], *shape[at + 1 :])))
    rest = together(*parts)
    at = axis_in(axisc, len(rest) + 1)
    return (*rest[:at], 3, *rest[at:])


@library("linalg.cross")
def _linalg_cross(x1: Any, x2: Any, /, *, axis: Any = -1) -> Shape:
    return cross(x1, x2, axis=axis)


@library("trace", method=True)
def trace(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None) -> Shape:
    """The shape without both axes."""
    return without(shape_of(a), (axis1, axis2))


@library("linalg.trace")
def _linalg_trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Shape:
    return shape_of(x)[:-2]


# -- LAPACK --------------------------------------------------------------------------------------------------------

MATRIX = {"a": "eye", "x": "eye"}


def _square(a: Any) -> Shape:
    shape = shape_of(a)
    if len(shape) < 2:
        raise refuse("a matrix is needed", "operation-raises")
    agree(shape[-1], shape[-2])
    return shape


@library("linalg.inv", values=MATRIX)
def inv(a: Any) -> Shape:
    """The same shape."""
    return _square(a)


@library("linalg.cholesky", values=MATRIX)
def cholesky(a: Any, /, *, upper: Any = False) -> Shape:
    """The same shape."""
    return _square(a)


@library("linalg.matrix_power", values=MATRIX)
def matrix_power(a: Any, n: Any) -> Shape:
    """The same shape."""
    return _square(a)


@library("linalg.pinv", values=MATRIX)
def pinv(a: Any, rcond: Any = None, hermitian: Any = False, *, rtol: Any = NO_VALUE) -> Shape:
    """Rows and columns exchanged."""
    shape = shape_of(a)
    return (*shape[:-2], shape[-1], shape[-2])


@library("linalg.det", values=MATRIX)
def det(a: Any) -> Shape:
    """One number a matrix."""
    return _square(a)[:-2]


@library("linalg.slogdet", values=MATRIX)
def slogdet(a: Any) -> list[Shape]:
    """Two numbers a matrix."""
    return [_square(a)[:-2]] * 2


@library("linalg.solve", values=MATRIX)
def solve(a: Any, b: Any) -> Shape:
    """The shape of the right-hand sides, for each matrix."""
    shape, right = _square(a), shape_of(b)
    if len(right) == 1:
        agree(shape[-1], right[0])
        return shape[:-1]
    agree(shape[-1], right[-2])
    return (*together(_stack(shape), _stack(right)), *right[-2:])


def _eigenvalues_are_complex(a: Any) -> None:
    """Older NumPy gives real eigenvalues where none is complex, which only the values tell."""
    if np.linalg.eigvals(np.eye(1)).dtype.kind != "c" and getattr(a, "dtype", INT).kind != "c":
        raise refuse("the eigenvalues' dtype depends on the values", "data-dependent-value")


@library("linalg.eig", values=MATRIX)
def eig(a: Any) -> list[Shape]:
    """Values and vectors."""
    _eigenvalues_are_complex(a)
    return [_square(a)[:-1], _square(a)]


@library("linalg.eigvals", values=MATRIX)
def eigvals(a: Any) -> Shape:
    """Values."""
    _eigenvalues_are_complex(a)
    return _square(a)[:-1]


@library("linalg.eigh", values=MATRIX)
def eigh(a: Any, UPLO: Any = "L") -> list[Shape]:
    """Values and vectors."""
    return [_square(a)[:-1], _square(a)]


@library("linalg.eigvalsh", values=MATRIX)
def eigvalsh(a: Any, UPLO: Any = "L") -> Shape:
    """Values."""
    return _square(a)[:-1]


def _smaller(shape: Shape) -> Size:
    return shape[-1] if shape[-1] < shape[-2] else shape[-2]


@library("linalg.svd", values=MATRIX)
def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Shape | list[Shape]:
    """Left vectors, values, right vectors."""
    shape = shape_of(a)
    few = _smaller(shape)
    stack, (rows, columns) = shape[:-2], shape[-2:]
    if not compute_uv:
        return (*stack, few)
    left, right = (rows, columns) if full_matrices else (few, few)
    return [(*stack, rows, left), (*stack, few), (*stack, right, columns)]


@library("linalg.svdvals", values=MATRIX)
def svdvals(x: Any, /) -> Shape:
    """Values."""
    return (*shape_of(x)[:-2], _smaller(shape_of(x)))


@library("linalg.qr", values=MATRIX)
def qr(a: Any, mode: Any = "reduced") -> Shape | list[Shape]:
    """The factors that the mode asks for."""
    shape = shape_of(a)
    few = _smaller(shape)
    stack, (rows, columns) = shape[:-2], shape[-2:]
    if mode == "r":
        return (*stack, few, columns)
    if mode == "raw":
        return [(*stack, columns, rows), (*stack, few)]
    if mode not in ("reduced", "complete"):
        raise refuse("qr in this mode", "operation-raises")
    inside = few if mode == "reduced" else rows
    return [(*stack, rows, inside), (*stack, inside, columns)]


@library("linalg.matrix_rank", values={"A": "eye"})
def matrix_rank(A: Any, tol: Any = None, hermitian: Any = False, *, rtol: Any = None) -> Shape:
    """One number a matrix."""
    return shape_of(A)[:-2]


@library("linalg.cond", values=MATRIX)
def cond(x: Any, p: Any = None) -> Shape:
    """One number a matrix."""
    return shape_of(x)[:-2]


@library("linalg.norm", values=MATRIX)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Shape:
    """The shape without the axes of the vectors or matrices."""
    return without(shape_of(x), axis, keepdims)


@library("linalg.vector_norm")
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: Any = 2) -> Shape:
    """The shape without the axes of the vectors."""
    return without(shape_of(x), axis, keepdims)


@library("linalg.matrix_norm", values=MATRIX)
def matrix_norm(x: Any, /, *, keepdims: Any = False, ord: Any = "fro") -> Shape:
    """One number a matrix."""
    return without(shape_of(x), (-2, -1), keepdims)


@library("linalg.tensorinv", values=MATRIX, real=True)
def tensorinv(a: Any, ind: Any = 2) -> None:
    """As NumPy finds."""


@library("linalg.tensorsolve", values=MATRIX, real=True)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> None:
    """As NumPy finds."""
