"""Functions that NumPy composes of few array operations: the same operations in the graph.

Input: arrays and plain arguments.
Output: nodes that kernels compute, with NumPy's own steps and dtypes.
Why: the operations fuse. Other forms (another norm, a row made a square) stay a call by their rule in ``library``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy import reductions, ufuncs
from tcompile.frontends.numpy.creation import arange, empty, empty_like
from tcompile.frontends.numpy.elementwise import where
from tcompile.frontends.numpy.library import RULES, library_call
from tcompile.frontends.numpy.linear import dot_product
from tcompile.frontends.numpy.registry import function
from tcompile.frontends.numpy.shape import diagonal, moveaxis, row_of
from tcompile.frontends.numpy.values import (
    FLOAT,
    array,
    array_object,
    axis_in,
    broadcast,
    cast,
    diagonal_in,
    flag,
    sizes_equal,
)
from tcompile.graph.sizes import Size

_FEW_PLACES = 16  # the usual shift of an array with unknown sizes


@function("roll", opaque=True)
def roll(b: Builder, a: Any, shift: Any, axis: Any = None) -> Traced:
    """``np.roll`` by literal numbers. Others, and those beyond a size that is not known, are left to NumPy."""
    x = array_object(b, a)
    if axis is None:
        row = row_of(b, x)
        if type(shift) is int and _can_roll(row.type.shape[0], shift):
            rolled = b.op("roll", row.node, shifts=(shift,))
        else:
            rolled = library_call(b, RULES[np.roll], [row, shift], {"axis": 0}).node
        return Traced(b.op("reshape", rolled, shape=x.type.shape))
    several = next((part for part in (shift, axis) if isinstance(part, tuple)), (0,))
    places, axes = (part if isinstance(part, tuple) else (part,) * len(several) for part in (shift, axis))
    if len(places) != len(axes) or not all(type(one) is int for one in (*places, *axes)):
        raise CannotCapture("unsupported-argument", "roll by numbers that are not literal")
    shifts = [0] * x.type.ndim
    for place, at in zip(places, axes, strict=True):
        shifts[axis_in(at, x.type.ndim)] += place
    if not all(map(_can_roll, x.type.shape, shifts)):
        raise CannotCapture("unsupported-argument", "roll by more places than the axis may have")
    return Traced(b.op("roll", x.node, shifts=tuple(shifts)))


def _can_roll(size: Size, shift: int) -> bool:
    """Whether an axis is no shorter than a shift; a usual shift is guarded for."""
    if isinstance(size, int) or not shift:
        return True
    if not size.counters() and abs(shift) <= _FEW_PLACES:
        return bool(size >= max(abs(shift), 2))
    least = size.bounds()[0]
    return least is not None and least >= abs(shift)


@function("linalg.norm")
def norm(b: Builder, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Traced:
    """``np.linalg.norm``: of all elements the root of their product with themselves, of vectors along one axis the root
    of the sum of squares, the sum of sizes, or the largest size.
    """
    value = array(b, x)
    if value.type.dtype.kind in "biu":
        value = Traced(cast(b, value, FLOAT))
    if value.type.dtype.name not in ("float32", "float64"):
        raise CannotCapture("unsupported-dtype", f"norm of {value.type.dtype}")
    keep, ndim = flag(keepdims, "keepdims"), value.type.ndim
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    is_number = type(ord) in (int, float)
    if (
        axis is None
        and not keep
        and (ord is None or (ndim == 2 and ord in ("fro", "f")) or (ndim == 1 and is_number and ord == 2))
    ):
        return ufuncs.emit(b, np.sqrt, [_squared(b, value)])
    if axis is None and ndim == 1:
        axis = 0
    if type(axis) is not int or not (ord is None or (is_number and ord in (1, 2, np.inf))):
        raise CannotCapture("unsupported-argument", "norm of matrices, or of this order")
    if ord == np.inf:
        return reductions.max(b, ufuncs.emit(b, np.absolute, [value]), axis, keepdims=keep, initial=0)
    if ord == 1:
        return reductions.sum(b, ufuncs.emit(b, np.absolute, [value]), axis, keepdims=keep)
    squares = ufuncs.emit(b, np.multiply, [value, value])
    return ufuncs.emit(b, np.sqrt, [reductions.sum(b, squares, axis, keepdims=keep)])


def _squared(b: Builder, x: Traced) -> Traced:
    """Builds the dot product of all elements, in memory order, with themselves."""
    if x.type.ndim == 1 and not x.type.layout.dense:
        x = Traced(b.op("ordered", x.node, axes=(0,)))
    if not x.type.ndim or not x.type.layout.dense:
        raise CannotCapture("memory-order", "norm of all elements of an array that is not dense")
    order = x.type.layout.order
    node = x.node if x.type.c_contiguous else b.op("permute_dims", x.node, axes=order)
    flat = node if x.type.ndim == 1 else b.op("reshape", node, shape=(x.type.size,))
    return dot_product(b, Traced(flat), Traced(flat))


@function("gradient")
def gradient(b: Builder, f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """``np.gradient`` of evenly spaced samples: central differences, and one-sided ones at both ends."""
    x = array(b, f)
    axes = range(x.type.ndim) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    places = [axis_in(a, x.type.ndim) for a in axes]
    steps = list(varargs or (1.0,))
    steps = steps * len(places) if len(steps) == 1 else steps
    plain = len(steps) == len(places) and all(type(s) is float or (type(s) is int and abs(s) < 1 << 53) for s in steps)
    known = type(edge_order) is int and edge_order in (1, 2)
    if not places or len(set(places)) < len(places) or not plain or not known or not all(steps):
        raise CannotCapture("unsupported-argument", "gradient of samples that are not evenly spaced, or with this edge")
    if x.type.dtype.kind in "iu":
        x = Traced(cast(b, x, FLOAT))
    if x.type.dtype.name not in ("float32", "float64", "complex128"):
        raise CannotCapture("unsupported-dtype", f"gradient of {x.type.dtype}")
    found = [_gradient(b, x, place, step, edge_order) for place, step in zip(places, steps, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _gradient(b: Builder, x: Traced, axis: int, step: float, edge_order: int) -> Traced:
    """Along one axis the differences over twice the step; at the ends the difference over the step, or the slope of the
    parabola through three samples.
    """
    if x.type.shape[axis] < edge_order + 1:
        raise CannotCapture("operation-raises", "too few samples for a gradient")
    made = empty_like(b, x).node
    lead = (slice(None),) * axis

    def samples(*keys: Any) -> list[Traced]:
        return [Traced(b.op("index", x.node, key=(*lead, key))) for key in keys]

    def slope(after: Any, before: Any, width: float) -> Traced:
        return ufuncs.emit(b, np.true_divide, [ufuncs.emit(b, np.subtract, samples(after, before)), width])

    def parabola(weights: tuple[float, ...], *keys: int) -> Traced:
        first, second, third = (
            ufuncs.emit(b, np.multiply, [weight, sample])
            for weight, sample in zip(weights, samples(*keys), strict=True)
        )
        return ufuncs.emit(b, np.add, [ufuncs.emit(b, np.add, [first, second]), third])

    parts: list[tuple[Any, Traced]] = [(slice(1, -1), slope(slice(2, None), slice(None, -2), 2.0 * step))]
    if edge_order == 1:
        parts += [(0, slope(1, 0, step)), (-1, slope(-1, -2, step))]
    else:
        parts += [(0, parabola((-1.5 / step, 2.0 / step, -0.5 / step), 0, 1, 2))]
        parts += [(-1, parabola((0.5 / step, -2.0 / step, 1.5 / step), -3, -2, -1))]
    for at, value in parts:
        made = b.op("assign", made, value.node, path=(("index", (("key", (*lead, at)),)),))
    return Traced(made)


@function("cross")
def cross(b: Builder, a: Any, b_: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Traced:
    """``np.cross`` of vectors of three numbers: the differences of products, in the order in which NumPy takes them."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (array_object(b, v) for v in (a, b_))
    if not x.type.ndim or not y.type.ndim:
        raise CannotCapture("operation-raises", "cross of a number")
    x = moveaxis(b, x, axis_in(axisa, x.type.ndim, "axisa"), -1)
    y = moveaxis(b, y, axis_in(axisb, y.type.ndim, "axisb"), -1)
    dtype = np.promote_types(x.type.dtype, y.type.dtype)
    if not sizes_equal(x.type.shape[-1], 3) or not sizes_equal(y.type.shape[-1], 3) or dtype.kind == "b":
        raise CannotCapture("operation-raises", "cross of other vectors than those of three numbers")
    p, q = ([_item(b, v, k, dtype) for k in range(3)] for v in (x, y))
    made = empty(b, (*broadcast([p[0].type.shape, q[0].type.shape]), 3), dtype).node
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        left, right = (ufuncs.emit(b, np.multiply, pair) for pair in ((p[i], q[j]), (p[j], q[i])))
        difference = ufuncs.emit(b, np.subtract, (left, right))
        made = b.op("assign", made, difference.node, path=(("index", (("key", (Ellipsis, k)),)),))
    return moveaxis(b, Traced(made), -1, axis_in(axisc, made.tensor.ndim, "axisc"))


def _item(b: Builder, x: Traced, k: int, dtype: np.dtype[Any]) -> Traced:
    """``x[..., k]`` in a dtype."""
    return Traced(cast(b, Traced(b.op("index", x.node, key=(Ellipsis, k))), dtype))


@function("linalg.cross")
def _linalg_cross(b: Builder, x1: Any, x2: Any, /, *, axis: Any = -1) -> Traced:
    return cross(b, x1, x2, axis=axis)


@function("kron")
def kron(b: Builder, a: Any, b_: Any) -> Traced:
    """``np.kron``: every element of one array with every element of the other, seen with half as many axes."""
    x, y = (array_object(b, v) for v in (a, b_))
    if not x.type.ndim or not y.type.ndim or not x.type.c_contiguous or not y.type.c_contiguous:
        raise CannotCapture("memory-order", "kron of a number, or of an array that is not in C order")
    ndim = max(x.type.ndim, y.type.ndim)
    p, q = ((*(1,) * (ndim - v.type.ndim), *v.type.shape) for v in (x, y))
    each = [
        Traced(b.op("reshape", v.node, shape=tuple(n for m in shape for n in ((m, 1) if first else (1, m)))))
        for v, shape, first in ((x, p, True), (y, q, False))
    ]
    product = ufuncs.emit(b, np.multiply, each)
    return Traced(b.op("reshape", product.node, shape=tuple(n * m for n, m in zip(p, q, strict=True))))


def _below(b: Builder, x: Traced, k: int) -> Traced:
    """The mask of the elements of the last two axes on and below the diagonal ``k``, as ``np.tri`` gives it."""
    if x.type.ndim < 2:
        raise CannotCapture("unsupported-argument", "a triangle of an array of fewer than two dimensions")
    rows, columns = (arange(b, size) for size in x.type.shape[-2:])
    from_row = ufuncs.emit(b, np.add, [Traced(b.op("expand_dims", rows.node, axis=1)), k])
    return ufuncs.emit(b, np.greater_equal, [from_row, columns])


def _zero(b: Builder, x: Traced) -> Traced:
    return Traced(b.op("full", shape=(1,), fill_value=x.type.dtype.type(0).item(), dtype=x.type.dtype.name))


@function("diag")
def diag(b: Builder, v: Any, k: Any = 0) -> Traced:
    """``np.diag`` of a matrix: its diagonal. Of a row: the matrix that has it there, a selection."""
    x = array(b, v)
    if x.type.ndim == 2:
        return diagonal(b, x, k)
    if x.type.ndim != 1 or type(k) is not int or k != 0:
        raise CannotCapture("unsupported-argument", "diag of a row beside the diagonal")
    numbers = arange(b, x.type.size)
    is_here = ufuncs.emit(b, np.equal, [Traced(b.op("expand_dims", numbers.node, axis=1)), numbers])
    return where(b, is_here, x, _zero(b, x))


@function("tril")
def tril(b: Builder, m: Any, k: Any = 0) -> Traced:
    """``np.tril``: a selection."""
    x = array(b, m)
    return where(b, _below(b, x, _diagonal(k)), x, _zero(b, x))


@function("triu")
def triu(b: Builder, m: Any, k: Any = 0) -> Traced:
    """``np.triu``: a selection."""
    x = array(b, m)
    return where(b, _below(b, x, _diagonal(k) - 1), _zero(b, x), x)


def _diagonal(k: Any) -> int:
    """Returns the index of a diagonal, on which NumPy computes in the index's own dtype."""
    if isinstance(k, Traced | np.generic):
        raise CannotCapture("unsupported-argument", "a diagonal that a NumPy scalar names")
    return diagonal_in(k, "k")
