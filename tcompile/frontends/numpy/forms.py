"""Functions of NumPy's that call a function of the user's: written in Python, so that capture follows both.

Enters: such a function. Leaves: its form, a Python function that makes the same calls in the same order and builds the
same result. What a form does not cover it raises ``NotImplementedError`` for, and the call is NumPy's own.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

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
    """The rows or columns of a matrix, one after the other: a loop. NumPy's own functions are not called faster so."""
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
