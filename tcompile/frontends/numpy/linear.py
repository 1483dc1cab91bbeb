"""Linear algebra: products, and what stays one call of LAPACK or BLAS.

Enters: arrays. Leaves: ``matmul`` nodes and ``call`` nodes whose dtype, shape and memory order are certain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy.registry import function, lookup, method, refuse_unless
from tcompile.frontends.numpy.values import array, call, cast, integer, layout_of, require_c, sizes_equal, standin_dtype
from tcompile.graph import TensorType
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.sizes import Size, is_one
from tcompile.graph.types import DType


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
    node = b.op("matmul", cast(b, x, dtype), cast(b, y, dtype))
    return Traced(node, scalar=not node.tensor.ndim)


@function("matmul")
def _matmul(b: Builder, x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Traced:
    refuse_unless("matmul", out=(out, (None,)), keyword=(tuple(kwargs), ((),)))
    return matmul(b, x1, x2)


@function("linalg.matmul")
def _linalg_matmul(b: Builder, x1: Any, x2: Any, /) -> Traced:
    return matmul(b, x1, x2)


@function("dot", opaque=True)
@method("dot")
def dot(b: Builder, a: Any, b_: Any, out: Any = None) -> Traced:
    """``np.dot``."""
    refuse_unless("dot", out=(out, (None,)))
    x, y = array(b, a), array(b, b_)
    dtype = _promote(np.dot, x, y)
    p, q = x.type.shape, y.type.shape
    if not p or not q:
        require_c("dot", x, y)
        return call(b, "numpy.dot", [x, y], TensorType(dtype, p or q))
    inner = q[-2] if len(q) > 1 else q[0]
    if not sizes_equal(p[-1], inner):
        raise CannotCapture("operation-raises", "dot: shapes are not aligned")
    shape = (*p[:-1], *q[:-2], *q[-1:]) if len(q) > 1 else p[:-1]
    return call(b, "numpy.dot", [x, y], TensorType(dtype, shape))


@function("inner", opaque=True)
def inner(b: Builder, a: Any, b_: Any, /) -> Traced:
    """``np.inner``."""
    x, y = array(b, a), array(b, b_)
    dtype = _promote(np.inner, x, y)
    p, q = x.type.shape, y.type.shape
    if not p or not q:
        require_c("inner", x, y)
        return call(b, "numpy.inner", [x, y], TensorType(dtype, p or q))
    if not sizes_equal(p[-1], q[-1]):
        raise CannotCapture("operation-raises", "inner: shapes are not aligned")
    return call(b, "numpy.inner", [x, y], TensorType(dtype, (*p[:-1], *q[:-1])))


@function("vdot", opaque=True)
def vdot(b: Builder, a: Any, b_: Any, /) -> Traced:
    """``np.vdot``: of the flattened operands."""
    x, y = array(b, a), array(b, b_)
    dtype = _promote(np.vdot, x, y)
    if not sizes_equal(x.type.size, y.type.size):
        raise CannotCapture("operation-raises", "vdot: sizes differ")
    return call(b, "numpy.vdot", [x, y], TensorType(dtype, ()))


@function("outer", opaque=True)
def outer(b: Builder, a: Any, b_: Any, out: Any = None) -> Traced:
    """``np.outer``: of the flattened operands."""
    refuse_unless("outer", out=(out, (None,)))
    x, y = array(b, a), array(b, b_)
    dtype = _promote(np.outer, x, y)
    return call(b, "numpy.outer", [x, y], TensorType(dtype, (x.type.size, y.type.size)))


@function("tensordot", opaque=True)
def tensordot(b: Builder, a: Any, b_: Any, axes: Any = 2) -> Traced:
    """``np.tensordot``."""
    x, y = array(b, a), array(b, b_)
    p, q = x.type, y.type
    if isinstance(axes, tuple | list):
        if len(axes) != 2:
            raise CannotCapture("operation-raises", "tensordot: axes has two parts")
        left, right = (
            [integer(i, "axis") for i in (s if isinstance(s, tuple | list) else (s,))] for s in axes
        )
        spec: Any = (tuple(left), tuple(right))
    else:
        count = spec = integer(axes, "axes")
        if count < 0:
            raise CannotCapture("unsupported-argument", "tensordot with negative axes")
        left, right = list(range(p.ndim - count, p.ndim)), list(range(count))
    if len(left) != len(right) or any(not -p.ndim <= i < p.ndim for i in left):
        raise CannotCapture("operation-raises", "tensordot: axes do not fit")
    if any(not -q.ndim <= i < q.ndim for i in right):
        raise CannotCapture("operation-raises", "tensordot: axes do not fit")
    left, right = [i % p.ndim for i in left], [i % q.ndim for i in right]
    if not all(sizes_equal(p.shape[i], q.shape[j]) for i, j in zip(left, right, strict=True)):
        raise CannotCapture("operation-raises", "tensordot: sizes differ")
    shape: tuple[Size, ...] = (
        *(n for i, n in enumerate(p.shape) if i not in left),
        *(n for i, n in enumerate(q.shape) if i not in right),
    )
    dtype = _promote(np.dot, x, y)
    return call(b, "numpy.tensordot", [x, y], TensorType(dtype, shape), axes=spec, scalar=False)


def _matrix(name: str, x: Traced, square: bool = True) -> TensorType:
    type = x.type
    if type.ndim < 2 or (square and not sizes_equal(type.shape[-1], type.shape[-2])):
        raise CannotCapture("operation-raises", f"{name} needs square matrices")
    if type.dtype.kind not in "iuf" or type.dtype.name == "float16":
        raise CannotCapture("unsupported-dtype", f"{name} of {type.dtype}")
    require_c(name, x)
    return type


def _square_function(name: str) -> None:
    def handler(b: Builder, a: Any) -> Traced:
        x = array(b, a)
        type = _matrix(name, x)
        dtype = standin_dtype(lookup(name), np.eye(1, dtype=type.dtype))
        return call(b, f"numpy.{name}", [x], TensorType(dtype, type.shape))

    function(name, opaque=True)(handler)


for _name in ("linalg.inv", "linalg.cholesky"):
    _square_function(_name)


@function("linalg.det", opaque=True)
def det(b: Builder, a: Any) -> Traced:
    """``np.linalg.det``."""
    x = array(b, a)
    type = _matrix("det", x)
    dtype = standin_dtype(np.linalg.det, np.eye(1, dtype=type.dtype))
    return call(b, "numpy.linalg.det", [x], TensorType(dtype, type.shape[:-2]))


@function("linalg.solve", opaque=True)
def solve(b: Builder, a: Any, b_: Any) -> Traced:
    """``np.linalg.solve`` of one matrix, or of equally many matrices and right-hand sides."""
    x, y = array(b, a), array(b, b_)
    type = _matrix("solve", x)
    require_c("solve", y)
    vector = y.type.ndim == 1
    fits = y.type.ndim in (1, 2) and type.ndim == 2
    if not fits or not sizes_equal(y.type.shape[0], type.shape[0]) or y.type.dtype.kind not in "iuf":
        raise CannotCapture("unsupported-argument", "solve of stacks of matrices")
    other = np.ones(1 if vector else (1, 1), y.type.dtype)
    dtype = standin_dtype(np.linalg.solve, np.eye(1, dtype=type.dtype), other)
    return call(b, "numpy.linalg.solve", [x, y], TensorType(dtype, y.type.shape))


@function("trace", opaque=True)
@method("trace")
def trace(
    b: Builder, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> Traced:
    """``np.trace`` of a matrix."""
    refuse_unless(
        "trace", axis1=(axis1, (0,)), axis2=(axis2, (1,)), dtype=(dtype, (None,)), out=(out, (None,))
    )
    x = array(b, a)
    if x.type.ndim != 2:
        raise CannotCapture("unsupported-argument", "trace of an array that is no matrix")
    result = standin_dtype(np.trace, np.ones((1, 1), x.type.dtype))
    return call(b, "numpy.trace", [x], TensorType(result, ()), offset=integer(offset, "offset"))


@function("einsum", opaque=True)
def einsum(b: Builder, subscripts: Any, /, *operands: Any, out: Any = None, optimize: Any = False) -> Traced:
    """``np.einsum`` with named subscripts, each at most once an operand.

    The order in which NumPy's iterator visits the axes decides the memory order of the result. It depends on
    the orders of the operands and not on their sizes, so it is asked of NumPy on small stand-ins.
    """
    refuse_unless("einsum", out=(out, (None,)), optimize=(optimize, (False,)))
    arrays = [array(b, x) for x in operands]
    terms, result = _subscripts(subscripts, [x.type.ndim for x in arrays])
    require_c("einsum", *arrays)
    sizes: dict[str, Size] = {}
    for term, x in zip(terms, arrays, strict=True):
        for letter, size in zip(term, x.type.shape, strict=True):
            if is_one(size) or not sizes_equal(sizes.setdefault(letter, size), size):
                raise CannotCapture("unsupported-argument", "einsum of sizes that are one or do not agree")
    if len(arrays) == 1 and len(result) == len(terms[0]):
        raise CannotCapture("unsupported-argument", "einsum that only moves axes")
    small = {letter: 2 + i for i, letter in enumerate(sizes)}
    stand_ins = [
        np.ones([small[c] for c in term], x.type.dtype) for term, x in zip(terms, arrays, strict=True)
    ]
    dtype = standin_dtype(np.einsum, subscripts, *stand_ins)
    layout = layout_of(np.asarray(np.einsum(subscripts, *stand_ins)))
    type = TensorType(dtype, tuple(sizes[c] for c in result), layout)
    return call(b, "numpy.einsum", arrays, type, subscripts, *(Slot(i) for i in range(len(arrays))))


def _subscripts(text: Any, ndims: list[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result."""
    if not isinstance(text, str):
        raise CannotCapture("unsupported-argument", "einsum without a subscript string")
    given, arrow, result = text.replace(" ", "").partition("->")
    terms = given.split(",")
    plain = all((t.isalpha() and t.isascii()) or not t for t in (*terms, result))
    if not plain or any(len(set(t)) != len(t) for t in (*terms, result)) or [len(t) for t in terms] != ndims:
        raise CannotCapture("unsupported-argument", f"einsum with the subscripts {text!r}")
    letters = "".join(terms)
    if not arrow:
        result = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if not set(result) <= set(letters):
        raise CannotCapture("operation-raises", f"einsum with the subscripts {text!r}")
    return terms, result
