"""CuPy's own routines as calls in the graph, and integer arrays as indices into CuPy's arrays.

Input: a NumPy function that CuPy has under the same name, and its arguments.
Output: one ``call`` of CuPy's function (implemented by cuBLAS, cuSOLVER and Thrust), or a ``gather``.
Why: separate from ``cupy``, which describes kernels. Here CuPy computes, and only the result's type is stated.

Shapes and dtypes are NumPy's; every result is in C order. The running graph compares them, and plain CuPy takes over on
a difference or an exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy import NumPyFrontend
from tcompile.frontends.numpy.library import RULES, library_call
from tcompile.frontends.numpy.values import axis_in
from tcompile.graph import TensorType, ops
from tcompile.graph.sizes import Size, SymInt

_PRODUCTS = ("matmul", "dot", "inner", "outer", "vdot", "tensordot")  # in C order, whatever the layout of the factors
_OTHERS = ("sort", "argsort", "searchsorted", "take_along_axis", "roll", "tile", "repeat", "einsum", "kron")
_LINEAR = ("norm", "det", "cholesky", "inv", "solve")  # floats only, as in CuPy
ROUTINES: dict[Any, str] = {
    **{getattr(np, name): f"cupy.{name}" for name in (*_PRODUCTS, *_OTHERS)},
    **{getattr(np.linalg, name): f"cupy.linalg.{name}" for name in _LINEAR},
}
METHODS = {name: getattr(np, name) for name in ("dot", "argsort", "searchsorted", "repeat")}


def routine(b: Builder, known: Any, args: Sequence[Any], kwargs: Mapping[str, Any], device: str) -> Traced:
    """Builds a call of CuPy's function with the name of ``known`` in NumPy, on arrays of ``device``."""
    target = ROUTINES[known]
    for x in (*args, *kwargs.values()):
        if not isinstance(x, Traced):
            continue
        if x.type.dtype.kind not in ("fc" if known.__name__ in _LINEAR else "biuf" if "sort" in target else "biufc"):
            raise CannotCapture("unsupported-dtype", f"{target} of {x.type.dtype}")
        if known.__name__ not in _PRODUCTS and not x.type.c_contiguous:
            raise CannotCapture("memory-order", f"{target} of an array that is not in C order")
    if known is np.linalg.solve and any(isinstance(x, Traced) and x.type.ndim != 2 - n for n, x in enumerate(args)):
        raise CannotCapture("memory-order", f"{target} for other than one vector")  # matrices are columns, one by one
    first = len(b.graph.nodes)
    library_call(b, RULES[known], args, kwargs)
    node, *shown = b.graph.nodes[first:]
    del b.graph.nodes[first + 1 :]  # NumPy returns its result as these views
    if node.op is not ops.CALL or isinstance(node.type, tuple) or any(n.op is ops.CALL for n in shown):
        raise CannotCapture("unsupported-argument", f"{target} of lists, or with several results")
    node.attrs["target"] = target
    node.type = TensorType(node.tensor.dtype, node.tensor.shape, device=device)
    return Traced(node)


def wrapped(b: Builder, numpy: NumPyFrontend, x: Traced, key: Any) -> tuple[Any, ...]:
    """Builds a key with integer arrays: an index out of bounds wraps around, as in CuPy."""
    items = key if type(key) is tuple else (key,)
    missing = x.type.ndim - sum(item is not None and item is not Ellipsis for item in items)
    found: list[Any] = []
    axis = 0
    for item in items:
        if isinstance(item, Traced):
            found.append(_within(b, numpy, item, x, axis))
        elif item is None or item is Ellipsis or type(item) is slice or _holds(x.type.shape[axis:], item):
            found.append(item)
        else:
            raise CannotCapture("advanced-indexing", f"{type(item).__name__} beside arrays as indices")
        axis += missing if item is Ellipsis else item is not None
    return tuple(found)


def _holds(shape: Sequence[Size], index: Any) -> bool:
    """Whether the first axis certainly has an element of this index."""
    size = shape[0] if shape else 0
    return type(index) is int and isinstance(size, int) and -size <= index < size


def _within(b: Builder, numpy: NumPyFrontend, index: Traced, x: Traced, axis: int) -> Traced:
    if index.type.dtype.kind not in "iu" or index.type.dtype.name == "uint64":
        raise CannotCapture("advanced-indexing", f"indices of dtype {index.type.dtype}")
    if axis >= x.type.ndim:
        raise CannotCapture("operation-raises", "too many indices for array")
    size = x.type.shape[axis]
    if not isinstance(size, SymInt) and not size:
        raise CannotCapture("operation-raises", "indices along an axis without elements")
    if x.type.dtype.name in ("complex64", "complex128", "float16"):
        raise CannotCapture("unsupported-dtype", f"arrays as indices into {x.type.dtype}")
    int64 = np.dtype("int64")
    wide = index if index.type.dtype == int64 else numpy.method(b, index, "astype", (int64,), {})
    rest: Traced = numpy.call(b, np.remainder, (wide, size), {})
    return rest


def taken(x: Traced, indices: Any, axis: Any) -> tuple[Any, ...]:
    """Returns the key of ``take`` along an axis."""
    if not isinstance(indices, Traced) or (axis is None and x.type.ndim != 1):
        raise CannotCapture("unsupported-argument", "cupy.take of other than arrays, or through all axes")
    return (*(slice(None),) * (axis_in(axis, x.type.ndim) if axis is not None else 0), indices)


__all__ = ["METHODS", "ROUTINES", "routine", "taken", "wrapped"]
