"""Values known at capture: attributes of arrays, and functions of dtypes and shapes.

Input: traced values and plain arguments.
Output: plain Python values (ints, tuples, dtypes), or refusals with the reason why a graph cannot know the value.
Why: shapes and dtypes are constants of an entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Stacked, Traced, TracedNumber
from tcompile.frontends.numpy.registry import attribute, function, method
from tcompile.frontends.numpy.values import array, axis_in
from tcompile.graph.dtypes import DType
from tcompile.graph.sizes import Size, SymInt


@attribute("shape")
def shape(b: Builder, x: Traced) -> tuple[Size, ...]:
    """``x.shape``."""
    return x.type.shape


@attribute("ndim")
def ndim(b: Builder, x: Traced) -> int:
    """``x.ndim``."""
    return x.type.ndim


@attribute("size")
def size(b: Builder, x: Traced) -> Size:
    """``x.size``."""
    return x.type.size


@attribute("dtype")
def dtype(b: Builder, x: Traced) -> DType:
    """``x.dtype``."""
    return x.type.dtype


@attribute("itemsize")
def itemsize(b: Builder, x: Traced) -> int:
    """``x.itemsize``, in bytes."""
    return x.type.dtype.itemsize


@attribute("nbytes")
def nbytes(b: Builder, x: Traced) -> Size:
    """``x.nbytes``."""
    return x.type.size * x.type.dtype.itemsize


@attribute("device")
def device(b: Builder, x: Traced) -> str:
    """``x.device``."""
    return "cpu"


@function("shape")
def _shape(b: Builder, a: Any) -> tuple[Size, ...]:
    return array(b, a).type.shape


@function("ndim")
def _ndim(b: Builder, a: Any) -> int:
    return array(b, a).type.ndim


@function("size")
def _size(b: Builder, a: Any, axis: Any = None) -> Size:
    x = array(b, a)
    if isinstance(axis, tuple):
        raise CannotCapture("unsupported-argument", "size over several axes")
    return x.type.size if axis is None else x.type.shape[axis_in(axis, x.type.ndim)]


@method("__len__")
def length(b: Builder, x: Traced) -> Size:
    """``len(x)``."""
    if not x.type.ndim:
        raise CannotCapture("operation-raises", "len() of unsized object")
    return x.type.shape[0]


@function("isscalar")
def isscalar(b: Builder, element: Any) -> bool:
    """``np.isscalar``."""
    if isinstance(element, Traced):
        return element.scalar
    return isinstance(element, SymInt | TracedNumber) or np.isscalar(element)


@function("result_type")
def result_type(b: Builder, *args: Any) -> DType:
    """``np.result_type``."""
    plain = [_stand_in(a) for a in args]
    try:
        return np.result_type(*plain)
    except Exception as error:
        raise CannotCapture("operation-raises", str(error)) from error


def _stand_in(value: Any) -> Any:
    if isinstance(value, Traced):
        return value.type.dtype
    if isinstance(value, SymInt):
        return 0
    return 0.0 if isinstance(value, TracedNumber) else value


def of_dtypes(known: Any, args: Any, kwargs: Any) -> Any:
    """Runs a NumPy function of dtypes and plain values."""
    values = [*args, *kwargs.values()]
    if known is np.can_cast and values and isinstance(values[0], Traced):
        args = (values[0].type.dtype, *args[1:])
        values = [*args, *kwargs.values()]
    if known in (np.finfo, np.iinfo) and len(args) == 1 and isinstance(args[0], Traced):
        args = values = [args[0].type.dtype]
    if any(isinstance(v, Traced | TracedNumber | SymInt) for v in values):
        raise CannotCapture("data-dependent-value", "a function of dtypes that looks at a value")
    try:
        return known(*args, **kwargs)
    except Exception as error:
        raise CannotCapture("operation-raises", str(error)) from error


OF_DTYPES = {
    np.promote_types,
    np.can_cast,
    np.min_scalar_type,
    np.dtype,
    np.finfo,
    np.iinfo,
    np.issubdtype,
    np.isdtype,
}


@function("iterable")
def iterable(b: Builder, y: Any) -> bool:
    """``np.iterable``."""
    if isinstance(y, Traced):
        return bool(y.type.ndim)
    return isinstance(y, Stacked) or (not isinstance(y, SymInt | TracedNumber) and bool(np.iterable(y)))


@function("common_type")
def common_type(b: Builder, *arrays: Any) -> Any:
    """``np.common_type``: the scalar type of floating computations with all of them."""
    if not all(isinstance(a, Traced) for a in arrays):
        raise CannotCapture("unsupported-argument", "common_type of something else than arrays")
    try:
        return np.common_type(*(np.ones(1, a.type.dtype) for a in arrays))
    except TypeError as error:
        raise CannotCapture("operation-raises", str(error)) from error
