"""Equality and near equality of arrays: ``isclose``, ``allclose``, ``array_equal``, ``array_equiv``.

Input: two arrays, or an array and a number.
Output: comparisons in NumPy's own steps; for functions that return a Python bool, the 0-d value from which it is read.
Why: the steps fuse into a kernel. Other cases stay a call, or break the graph.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Read, Traced
from tcompile.frontends.numpy import ufuncs
from tcompile.frontends.numpy.registry import function
from tcompile.frontends.numpy.values import array, cast, flag, operand, same_order, sizes_equal

_TAKEN = frozenset({"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64"})


@function("isclose")
def isclose(b: Builder, a: Any, b_: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Traced:
    """``np.isclose`` of real numbers, with tolerances that are known: a view of an array, as NumPy's."""
    near = _near(b, operand(b, a), operand(b, b_), rtol, atol, equal_nan)
    return Traced(b.whole_view(near.node)) if near.type.ndim else near


def _near(b: Builder, x: Any, y: Any, rtol: Any, atol: Any, equal_nan: Any) -> Traced:
    if not all(type(t) in (int, float) and math.isfinite(t) for t in (rtol, atol)):
        raise CannotCapture("unsupported-argument", "isclose with tolerances that are arrays, or not finite")
    y = _floating(b, y)
    arrays = [v for v in (x, y) if isinstance(v, Traced)]
    if not arrays or not all(type(v) in (int, float) for v in (x, y) if not isinstance(v, Traced)):
        raise CannotCapture("unsupported-argument", "isclose of numbers that are not arrays")
    if not all(v.type.dtype.name in _TAKEN for v in arrays):
        raise CannotCapture("unsupported-dtype", f"isclose of {arrays[0].type.dtype}")
    if len({v.type.ndim for v in arrays}) == 1 and not same_order(arrays[0].type, arrays[-1].type.layout):
        raise CannotCapture("memory-order", "isclose of arrays that lie in memory in different orders")
    if isinstance(y, Traced):
        # NumPy's difference of infinities is not observable; here none is computed, with the same result.
        finite = ufuncs.emit(b, np.isfinite, [y])
        at = Traced(b.op("where", finite.node, y.node, 0.0), y.scalar)
        share = ufuncs.emit(b, np.multiply, [rtol, ufuncs.emit(b, np.absolute, [at])])
        apart = ufuncs.emit(b, np.absolute, [ufuncs.emit(b, np.subtract, [x, at])])
        near = ufuncs.emit(b, np.less_equal, [apart, ufuncs.emit(b, np.add, [atol, share])])
        near = ufuncs.emit(b, np.bitwise_and, [near, finite])
    else:
        apart = ufuncs.emit(b, np.absolute, [ufuncs.emit(b, np.subtract, [x, y])])
        near = ufuncs.emit(b, np.less_equal, [apart, atol + rtol * abs(y)])
    near = ufuncs.emit(b, np.bitwise_or, [near, ufuncs.emit(b, np.equal, [x, y])])
    if flag(equal_nan, "equal_nan"):
        if not all(isinstance(v, Traced) and v.type.dtype.kind == "f" for v in (x, y)):
            raise CannotCapture("unsupported-argument", "isclose of NaNs beside something else than floats")
        both = [ufuncs.emit(b, np.isnan, [v]) for v in (x, y)]
        near = ufuncs.emit(b, np.bitwise_or, [near, ufuncs.emit(b, np.bitwise_and, both)])
    return near


def _floating(b: Builder, y: Any) -> Any:
    """Returns the second operand as floats, as in NumPy."""
    if isinstance(y, Traced):
        return Traced(cast(b, y, np.result_type(y.type.dtype, 1.0)), y.scalar)
    if type(y) in (bool, int):
        y = float(y)
    if type(y) is not float or not math.isfinite(y):
        raise CannotCapture("unsupported-argument", "isclose to a number that is not known to be finite")
    return y


@function("allclose")
def allclose(b: Builder, a: Any, b_: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: Any = False) -> Read:
    """``np.allclose``."""
    return _everywhere(b, _near(b, operand(b, a), operand(b, b_), rtol, atol, equal_nan))


@function("array_equal")
def array_equal(b: Builder, a1: Any, a2: Any, equal_nan: Any = False) -> Read | bool:
    """Builds ``np.array_equal`` with NaNs unequal to everything."""
    if flag(equal_nan, "equal_nan"):
        raise CannotCapture("data-dependent-value", "array_equal, to which NaNs may be equal")
    x, y = array(b, a1), array(b, a2)
    if x.type.ndim != y.type.ndim or not all(map(sizes_equal, x.type.shape, y.type.shape)):
        return False
    return _everywhere(b, ufuncs.emit(b, np.equal, [x, y]))


@function("array_equiv")
def array_equiv(b: Builder, a1: Any, a2: Any) -> Read:
    """``np.array_equiv`` of arrays that broadcast."""
    return _everywhere(b, ufuncs.emit(b, np.equal, [array(b, a1), array(b, a2)]))


def _everywhere(b: Builder, x: Traced) -> Read:
    if not x.type.ndim:
        return Read(x.node, bool)
    return Read(b.op("all", x.node, axis=tuple(range(x.type.ndim)), keepdims=False), bool)
