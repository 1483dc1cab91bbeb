"""Reductions.

Input: an array, ``axis``, ``keepdims``, ``dtype``.
Output: a cast if NumPy accumulates in another dtype, then one reduction node.
Why: reductions fuse with their operands. Cases of warnings or errors (empty slices, too few degrees of freedom) are
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Read, Traced
from tcompile.frontends.numpy import operators, ufuncs
from tcompile.frontends.numpy.elementwise import diff
from tcompile.frontends.numpy.registry import NO_VALUE, function, method, refuse_unless
from tcompile.frontends.numpy.shape import diagonal, reshape_to
from tcompile.frontends.numpy.shape import flat as ravelled
from tcompile.frontends.numpy.values import (
    BOOL,
    FLOAT,
    INT,
    array,
    axes_in,
    axis_in,
    broadcast,
    cast,
    dtype_of,
    flag,
    same_order,
    standin_dtype,
    weak_as,
)
from tcompile.graph.dtypes import DType
from tcompile.graph.ops.reduction import reduced_type
from tcompile.graph.ops.rules import k_order, like_order
from tcompile.graph.sizes import is_one, product
from tcompile.numpy_versions import COUNTS_ARE_NUMPYS

_NONE = (None, NO_VALUE)
_TRUE = (True, NO_VALUE)


def _reduced(b: Builder, op: str, x: Traced, into: DType, axis: Any, keepdims: bool, **attrs: Any) -> Traced:
    """The reduction ``op`` of ``x`` in the dtype ``into``."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    kept = [n for i, n in enumerate(x.type.shape) if i not in axes and not is_one(n)]
    if len(kept) > 1 and any(x.type.shape[i] == 0 for i in axes):
        # Any array without elements counts as contiguous, but the strides decide the layout of the result.
        raise CannotCapture("memory-order", f"{op} of an array without elements")
    if b.exact and into.kind in "fc" and _is_summed_otherwise(op, x, into):
        raise CannotCapture("unsupported-argument", f"{op} of a cast or broadcast operand under the option exact")
    node = b.op(op, cast(b, x, into), axis=axis, keepdims=keepdims, **attrs)
    if into != x.type.dtype and op not in ("argmax", "argmin"):
        plain = reduced_type(x.type, axis, keepdims, into)
        if not same_order(node.tensor, plain.layout):
            raise CannotCapture("memory-order", f"{op} casts a broadcast operand")
    return Traced(node, scalar=not node.tensor.ndim)


def _is_summed_otherwise(op: str, x: Traced, into: DType) -> bool:
    """Whether NumPy adds in another order than in a reduction of the cast array.

    NumPy casts some thousands of elements at a time, and adds each chunk separately. The temporaries of a variance have
    the operand's memory layout, which the types of broadcast arrays do not determine.
    """
    return into != x.type.dtype or (op in ("var", "std") and k_order([x.type], x.type.shape) != like_order(x.type))


def keep(keepdims: Any) -> bool:
    """A ``keepdims`` argument."""
    return False if keepdims is NO_VALUE else flag(keepdims, "keepdims")


def _float_or_int(x: Traced, name: str) -> None:
    if x.type.dtype.kind == "c":
        raise CannotCapture("unsupported-dtype", f"{name} of complex numbers")


def _sum(b: Builder, op: str, a: Any, axis: Any, dtype: Any, keepdims: Any) -> Traced:
    x = array(b, a)
    if op != "sum":
        _float_or_int(x, op)
    axes = axes_in(axis, x.type.ndim)
    if dtype is None or dtype is NO_VALUE:
        # NumPy widens integers to the platform's int before it adds or multiplies them.
        stand_in = np.ones(1, x.type.dtype)
        into = standin_dtype(np.sum if op == "sum" else np.prod, stand_in)
    else:
        into = dtype_of(dtype)
        if "c" in (into.kind, x.type.dtype.kind) or into == BOOL or (x.type.dtype.kind == "f" and into.kind != "f"):
            raise CannotCapture("unsupported-argument", f"{op} of {x.type.dtype} with dtype {into}")
    return _reduced(b, op, x, into, axes, keep(keepdims))


def _where(b: Builder, name: str, a: Any, where: Any, otherwise: Any) -> Any:
    """Returns ``a`` with ``otherwise`` at the elements that ``where=`` excludes."""
    if where is NO_VALUE or where is True:
        return a
    x, mask = array(b, a), array(b, where)
    if mask.type.dtype != BOOL or broadcast([x.type.shape, mask.type.shape]) != x.type.shape or not x.type.c_contiguous:
        raise CannotCapture("unsupported-argument", f"{name} with this where=")
    if b.exact and name in ("sum", "prod") and x.type.dtype.kind in "fc":
        # NumPy adds each run of selected elements separately: another order than that of the whole row.
        raise CannotCapture("unsupported-argument", f"{name} with where= under the option exact")
    node = b.op("where", mask.node, x.node, bool(otherwise) if x.type.dtype == BOOL else otherwise)
    return Traced(node, x.scalar)


@function("sum")
@method("sum")
def sum(
    b: Builder,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Traced:
    """``np.sum``."""
    refuse_unless("sum", out=(out, _NONE), initial=(initial, (NO_VALUE,)))
    return _sum(b, "sum", _where(b, "sum", a, where, 0), axis, dtype, keepdims)


@function("prod")
@method("prod")
def prod(
    b: Builder,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Traced:
    """``np.prod``."""
    refuse_unless("prod", out=(out, _NONE), initial=(initial, (NO_VALUE,)))
    return _sum(b, "prod", _where(b, "prod", a, where, 1), axis, dtype, keepdims)


@function("nansum")
def nansum(
    b: Builder, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = NO_VALUE
) -> Traced:
    """``np.nansum``: NaNs count as zero."""
    refuse_unless("nansum", out=(out, _NONE))
    x = array(b, a)
    if x.type.dtype.kind in "fc":
        if k_order([x.type], x.type.shape) != like_order(x.type):
            raise CannotCapture("memory-order", "nansum of a broadcast array")
        x = Traced(b.op("where", b.op("isnan", x.node), 0.0, x.node))
    return _sum(b, "sum", x, axis, dtype, keepdims)


def extremum(b: Builder, op: str, a: Any, axis: Any, keepdims: Any) -> Traced:
    """The largest or smallest elements (``op`` is ``max`` or ``min``)."""
    x = array(b, a)
    _float_or_int(x, op)
    axes = axes_in(axis, x.type.ndim)
    _nonempty(op, x, axes)
    if x.type.dtype == BOOL:
        op = "any" if op == "max" else "all"
    return _reduced(b, op, x, x.type.dtype, axes, keep(keepdims))


def _nonempty(name: str, x: Traced, axes: tuple[int, ...]) -> None:
    if any(x.type.shape[i] == 0 for i in axes):
        raise CannotCapture("operation-raises", f"{name} over an axis of size zero")


def _with_initial(
    b: Builder, op: str, ufunc: np.ufunc, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any
) -> Traced:
    """Returns the extremum of the elements and ``initial``, which replaces those that ``where=`` excludes."""
    x = array(b, a)
    if type(initial) not in (int, float) or x.type.dtype.kind not in "iuf":
        raise CannotCapture("unsupported-argument", f"{op} with initial=")
    number = weak_as(initial, x.type.dtype)
    if x.type.dtype.kind in "iu" and type(initial) is not int:
        raise CannotCapture("unsupported-argument", f"{op} with initial=")
    found = extremum(b, op, _where(b, op, x, where, number), axis, keepdims)
    return ufuncs.emit(b, ufunc, [found, number])  # type: ignore[list-item]


@function("max", "amax")
@method("max")
def max(
    b: Builder,
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Traced:
    """``np.max``."""
    refuse_unless("max", out=(out, _NONE))
    if initial is NO_VALUE:
        refuse_unless("max", where=(where, _TRUE))
        return extremum(b, "max", a, axis, keepdims)
    return _with_initial(b, "max", np.maximum, a, axis, keepdims, initial, where)


@function("min", "amin")
@method("min")
def min(
    b: Builder,
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    initial: Any = NO_VALUE,
    where: Any = NO_VALUE,
) -> Traced:
    """``np.min``."""
    refuse_unless("min", out=(out, _NONE))
    if initial is NO_VALUE:
        refuse_unless("min", where=(where, _TRUE))
        return extremum(b, "min", a, axis, keepdims)
    return _with_initial(b, "min", np.minimum, a, axis, keepdims, initial, where)


@function("ptp")
def ptp(b: Builder, a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE) -> Traced:
    """``np.ptp``: maximum minus minimum."""
    refuse_unless("ptp", out=(out, _NONE))
    if array(b, a).type.dtype == BOOL:
        raise CannotCapture("operation-raises", "ptp of booleans")
    high, low = extremum(b, "max", a, axis, keepdims), extremum(b, "min", a, axis, keepdims)
    return ufuncs.emit(b, np.subtract, [high, low])


def _logical(b: Builder, op: str, a: Any, axis: Any, keepdims: Any) -> Traced:
    x = array(b, a)
    return _reduced(b, op, x, BOOL, axes_in(axis, x.type.ndim), keep(keepdims))


@function("any")
def any_(
    b: Builder, a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE
) -> Traced:
    """``np.any``."""
    refuse_unless("any", out=(out, _NONE))
    return _logical(b, "any", _where(b, "any", a, where, False), axis, keepdims)


@method("any")
def _any_method(
    b: Builder,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = NO_VALUE,
) -> Traced:
    refuse_unless("any", dtype=(dtype, _NONE))  # which only the method has, by its place
    return any_(b, a, axis, out, keepdims, where=where)


@function("all")
def all_(
    b: Builder, a: Any, axis: Any = None, out: Any = None, keepdims: Any = NO_VALUE, *, where: Any = NO_VALUE
) -> Traced:
    """``np.all``."""
    refuse_unless("all", out=(out, _NONE))
    return _logical(b, "all", _where(b, "all", a, where, True), axis, keepdims)


@method("all")
def _all_method(
    b: Builder,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = NO_VALUE,
) -> Traced:
    refuse_unless("all", dtype=(dtype, _NONE))
    return all_(b, a, axis, out, keepdims, where=where)


@function("count_nonzero")
def count_nonzero(b: Builder, a: Any, axis: Any = None, *, keepdims: Any = False) -> Traced | Read:
    """``np.count_nonzero``."""
    x = array(b, a)
    counted = _reduced(b, "sum", Traced(cast(b, x, BOOL)), INT, axes_in(axis, x.type.ndim), keep(keepdims))
    return Read(counted.node, int) if axis is None and not keep(keepdims) and not COUNTS_ARE_NUMPYS else counted


def _arg(b: Builder, op: str, a: Any, axis: Any, keepdims: Any) -> Traced:
    x = array(b, a)
    _float_or_int(x, op)
    kept = keep(keepdims)
    if axis is None:
        if x.type.ndim != 1:
            flat = b.op("reshape", x.node, shape=(x.type.size,)) if x.type.c_contiguous else ravelled(b, x).node
            _nonempty(op, Traced(flat), (0,))
            result = b.op(op, flat, axis=0, keepdims=False)
            if kept and x.type.ndim:
                result = b.op("copy", b.op("reshape", result, shape=(1,) * x.type.ndim))
            return Traced(result, scalar=not kept or not x.type.ndim)
        axis = 0
    if not x.type.ndim:
        raise CannotCapture("unsupported-argument", f"{op} of a rank-0 value along an axis")
    number = axis_in(axis, x.type.ndim)
    _nonempty(op, x, (number,))
    return _reduced(b, op, x, x.type.dtype, number, kept)


@function("argmax")
@method("argmax")
def argmax(b: Builder, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Traced:
    """``np.argmax``."""
    refuse_unless("argmax", out=(out, _NONE))
    return _arg(b, "argmax", a, axis, keepdims)


@function("argmin")
@method("argmin")
def argmin(b: Builder, a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = NO_VALUE) -> Traced:
    """``np.argmin``."""
    refuse_unless("argmin", out=(out, _NONE))
    return _arg(b, "argmin", a, axis, keepdims)


def _accumulator(x: Traced, dtype: Any, name: str) -> DType:
    """The floating dtype in which a mean or variance is computed."""
    if x.type.dtype.kind == "c" and (name != "mean" or dtype not in _NONE):
        raise CannotCapture("unsupported-dtype", f"{name} of complex numbers")
    if dtype is None or dtype is NO_VALUE:
        return x.type.dtype if x.type.dtype.kind in "fc" else FLOAT
    into = dtype_of(dtype)
    if into.kind != "f" or into.name == "float16" or not np.can_cast(x.type.dtype, into, "safe"):
        raise CannotCapture("unsupported-argument", f"{name} of {x.type.dtype} with dtype {into}")
    return into


@function("mean")
@method("mean")
def mean(
    b: Builder,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = NO_VALUE,
    *,
    where: Any = NO_VALUE,
) -> Traced:
    """``np.mean``. Of an empty slice it warns, and is refused."""
    refuse_unless("mean", out=(out, _NONE), where=(where, _TRUE))
    x = array(b, a)
    into = _accumulator(x, dtype, "mean")
    axes = axes_in(axis, x.type.ndim)
    _nonempty("mean", x, axes)
    return _reduced(b, "mean", x, into, axes, keep(keepdims))


@function("average")
def average(
    b: Builder,
    a: Any,
    axis: Any = None,
    weights: Any = None,
    returned: Any = False,
    *,
    keepdims: Any = NO_VALUE,
) -> Traced:
    """``np.average`` without weights."""
    refuse_unless("average", weights=(weights, (None,)), returned=(returned, (False,)))
    x = array(b, a)
    _nonempty("average", x, tuple(range(x.type.ndim)))
    return mean(b, x, axis, keepdims=keepdims)


def _spread(
    b: Builder, op: str, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, mean: Any, correction: Any
) -> Traced:
    x = array(b, a)
    into = _accumulator(x, dtype, op)
    if correction is not NO_VALUE:
        refuse_unless(op, ddof=(ddof, (0,)))
        ddof = correction
    if type(ddof) not in (int, float):
        raise CannotCapture("unsupported-argument", f"{op} with ddof={ddof!r}")
    refuse_unless(op, mean=(mean, (NO_VALUE,)))
    axes = axes_in(axis, x.type.ndim)
    if not product(x.type.shape[i] for i in axes) > (ddof if type(ddof) is int else int(np.floor(ddof))):
        raise CannotCapture("operation-raises", f"{op} warns of too few degrees of freedom")
    if x.type.dtype != into and op in ("var", "std") and into != FLOAT and x.type.dtype.kind != "f":
        raise CannotCapture("unsupported-argument", f"{op} of integers with a dtype")
    return _reduced(b, op, x, into, axes, keep(keepdims), correction=ddof)


def _define_spread(name: str) -> Callable[..., Traced]:
    @function(name)
    @method(name)
    def handler(
        b: Builder,
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: Any = 0,
        keepdims: Any = NO_VALUE,
        *,
        where: Any = NO_VALUE,
        mean: Any = NO_VALUE,
        correction: Any = NO_VALUE,
    ) -> Traced:
        """``np.var`` and ``np.std``. With too few degrees of freedom they warn, and are refused."""
        refuse_unless(name, out=(out, _NONE), where=(where, _TRUE))
        return _spread(b, name, a, axis, dtype, ddof, keepdims, mean, correction)

    return handler


var, std = _define_spread("var"), _define_spread("std")


@function("trace")
@method("trace")
def trace(
    b: Builder, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None, out: Any = None
) -> Traced:
    """``np.trace``: the sum of a diagonal."""
    refuse_unless("trace", out=(out, _NONE))
    return _sum(b, "sum", diagonal(b, a, offset, axis1, axis2), -1, dtype, False)


@function("linalg.trace")
def _matrix_trace(b: Builder, x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Traced:
    return trace(b, x, offset, -2, -1, dtype)


@function("trapezoid")
def trapezoid(b: Builder, y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Traced:
    """``np.trapezoid``: the sum of the mean heights times the steps."""
    heights = array(b, y)
    place = axis_in(axis, heights.type.ndim)
    step: Any = dx
    if x is not None:
        points = array(b, x)
        if points.type.ndim != 1:
            raise CannotCapture("unsupported-argument", "trapezoid along a grid of several dimensions")
        step = diff(b, points)
        step = reshape_to(b, step, tuple(-1 if i == place else 1 for i in range(heights.type.ndim)))
    elif type(dx) not in (int, float):
        raise CannotCapture("unsupported-argument", "trapezoid with a computed step")
    lead = (slice(None),) * place
    ahead = Traced(b.op("index", heights.node, key=(*lead, slice(1, None))))
    after = Traced(b.op("index", heights.node, key=(*lead, slice(None, -1))))
    both = operators.binary(b, "*", step, operators.binary(b, "+", ahead, after))
    return sum(b, operators.binary(b, "/", both, 2.0), place)


_REDUCED_BY: dict[np.ufunc, str] = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min", np.logical_or: "any",
    np.logical_and: "all",
}  # fmt: skip


def reduce_method(
    b: Builder,
    ufunc: np.ufunc,
    array_: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NO_VALUE,
    where: Any = True,
) -> Traced:
    """``ufunc.reduce``, for the ufuncs whose reductions are rows of the op table."""
    refuse_unless(f"{ufunc.__name__}.reduce", out=(out, _NONE), initial=(initial, (NO_VALUE,)), where=(where, _TRUE))
    name = _REDUCED_BY.get(ufunc)
    if name is None or (dtype is not None and name not in ("sum", "prod")):
        raise CannotCapture("unknown-function", f"{ufunc.__name__}.reduce")
    if name in ("sum", "prod"):
        return _sum(b, name, array_, axis, dtype, keepdims)
    return (extremum if name in ("max", "min") else _logical)(b, name, array_, axis, keepdims)
