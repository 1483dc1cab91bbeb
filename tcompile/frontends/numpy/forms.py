"""NumPy functions that call user functions, rewritten in Python.

Input: such a function.
Output: its form, a Python function that makes the same calls in the same order and builds the same result.
Why: capture inlines the form and the user's function. For uncovered cases a form raises ``NotImplementedError``, and
the call stays NumPy's.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from tcompile.frontends.base import scalar_iterations, without_effects

F = TypeVar("F", bound=Callable[..., Any])

FORMS: dict[Any, types.FunctionType] = {}


def _form(function: Any) -> Callable[[F], F]:
    def register(form: F) -> F:
        assert isinstance(form, types.FunctionType)
        FORMS[function] = form
        return form

    return register


@_form(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Loops over the rows or columns of a matrix. It is not faster for NumPy's own functions."""
    if not isinstance(func1d, types.FunctionType) or arr.ndim != 2 or axis not in (0, 1, -1, -2) or not arr.size:
        raise NotImplementedError
    rows = arr if axis in (1, -1) else arr.T
    first = np.asanyarray(func1d(rows[0], *args, **kwargs))
    made = np.zeros(rows.shape[:1] + first.shape, first.dtype)
    made[0] = first
    for i in range(1, rows.shape[0]):
        made[i] = np.asanyarray(func1d(rows[i], *args, **kwargs))
    if axis in (1, -1):
        return made[...]
    return made.transpose(*range(1, made.ndim), 0)


@_form(np.apply_over_axes)
def apply_over_axes(func: Any, a: Any, axes: Iterable[int]) -> Any:
    """One axis after the other."""
    value = np.asarray(a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        place = axis + a.ndim if axis < 0 else axis
        result = func(value, place)
        value = result if result.ndim == value.ndim else np.expand_dims(result, place)
        if value.ndim != a.ndim:
            raise NotImplementedError
    return value


@_form(np.fromfunction)
def fromfunction(function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any) -> Any:
    """One call, on arrays of all indices."""
    if like is not None:
        raise NotImplementedError
    return function(*np.indices(shape, dtype=dtype), **kwargs)


def _itself(value: Any) -> Any:
    return value


@_form(np.vectorize.__call__)
def vectorize(self: Any, *args: Any, **kwargs: Any) -> Any:
    """One element after the other, each as a number of Python's own, but for scalars of NumPy's that are given as such.

    Where no dtype is asked for, NumPy first calls the function for the first element, as a scalar of its own, and takes
    the dtype of what that gives.
    """
    pyfunc, otypes = self.pyfunc, self.otypes
    if kwargs or self.excluded or self.signature is not None or self.cache:
        raise NotImplementedError
    if not isinstance(pyfunc, types.FunctionType):
        raise NotImplementedError
    if not 1 <= len(args) <= 3 or (otypes is not None and len(otypes) != 1):
        raise NotImplementedError
    whole = np.array(args[0])  # NumPy makes arrays of objects of the arguments, in their memory order
    for a in args[1:]:
        whole = np.logical_and(whole, np.array(a))  # of the shape and the memory order that a ufunc's result has
    if whole.ndim not in (1, 2):
        raise NotImplementedError
    rows: list[Any] = []
    as_python: list[Any] = []
    for a in args:
        if isinstance(a, (list, tuple)) and not all(type(part) in (bool, int, float) for part in a):
            raise NotImplementedError  # NumPy scalars are not converted
        x = np.asarray(a)
        rows.append(np.atleast_2d(np.broadcast_to(x, whole.shape)))
        if isinstance(a, np.generic):
            as_python.append(_itself)
            continue
        as_python.append(float if x.dtype.kind == "f" else int if x.dtype.kind in "iu" else bool)
    x, take_x = rows[0], as_python[0]
    y, take_y = rows[1 % len(rows)], as_python[1 % len(rows)]
    z, take_z = rows[2 % len(rows)], as_python[2 % len(rows)]
    if otypes is not None:
        dtype: Any = otypes[0]
    elif not whole.size:
        raise NotImplementedError
    else:
        first: Any = None
        for i in scalar_iterations(range(1)):
            if len(args) == 1:
                first = pyfunc(x[i, 0])
            elif len(args) == 2:
                first = pyfunc(x[i, 0], y[i, 0])
            else:
                first = pyfunc(x[i, 0], y[i, 0], z[i, 0])
        if not isinstance(first, (bool, int, float, np.generic)):
            raise NotImplementedError
        dtype = np.asarray(first).dtype
    made = np.empty_like(whole, dtype=dtype)
    places = np.atleast_2d(made)
    count = len(args)
    for i in scalar_iterations(range(x.shape[0])):
        for j in range(x.shape[1]):
            if count == 1:
                places[i, j] = pyfunc(take_x(x[i, j]))
            elif count == 2:
                places[i, j] = pyfunc(take_x(x[i, j]), take_y(y[i, j]))
            else:
                places[i, j] = pyfunc(take_x(x[i, j]), take_y(y[i, j]), take_z(z[i, j]))
    return made


@_form(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Writes under each mask the values of its function, which NumPy calls only if the mask has a true element."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        raise NotImplementedError
    masks = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    if masks[0] is condlist and x.ndim != 1:  # the rows of an array of several dimensions are conditions
        raise NotImplementedError
    for mask in masks:
        if not isinstance(mask, np.ndarray) or mask.shape != x.shape or mask.dtype != np.bool_:
            raise NotImplementedError
    if len(funclist) == len(masks) + 1:
        others = masks[0]
        for mask in masks[1:]:
            others = others | mask
        masks.append(~others)
    if len(funclist) != len(masks):
        raise NotImplementedError
    made = np.zeros_like(x)
    for mask, function in zip(masks, funclist, strict=True):
        if isinstance(function, types.FunctionType):
            made[mask] = without_effects(function, x[mask], *args, **kw)
        elif isinstance(function, np.ufunc):
            made[mask] = function(x[mask], *args, **kw)
        elif isinstance(function, int | float):
            made[mask] = function
        else:
            raise NotImplementedError
    return made
