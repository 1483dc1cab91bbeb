"""NumPy functions that warn in words, made to raise instead.

Input: the function's own arguments.
Output: its result, or ``Worded``.
Why: a warning must come from the user's own line, so code that raises is replayed in plain Python. Floating-point flags
need none of this: NumPy can raise for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Worded(Exception):
    """NumPy would warn here in words."""


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _refuse_all_nan(a: Any, axis: Any, least: float = 0) -> None:
    """Raises if a slice has at most ``least`` elements that are not NaN."""
    x = np.asarray(a)
    if x.dtype.kind not in "fc":
        count: Any = x.size if axis is None else np.sum(np.ones(x.shape, np.int64), axis=_axes(axis))
    else:
        count = np.sum(~np.isnan(x), axis=_axes(axis), dtype=np.int64)
    if np.any(count <= least):
        raise Worded("a slice without numbers")


def refuse_if_any(flags: Any) -> Any:
    """Raises if a flag is set: graphs call it where NumPy would warn in words."""
    if np.any(flags):
        raise Worded("a slice without numbers")
    return np.False_


def as_item(value: Any, dtype: Any) -> Any:
    """``value``, a scalar or an array of rank 0, as a scalar becomes an item of an array of integers."""
    made = np.zeros((), dtype)
    made[()] = np.asarray(value)[()]
    return made[()]


def array_of_scalars(value: Any, dtype: Any) -> Any:
    """Returns ``np.array`` of nested tuples, in which arrays of rank 0 replace scalars."""

    def scalars(item: Any) -> Any:
        return [scalars(part) for part in item] if isinstance(item, tuple) else np.asarray(item)[()]

    return np.array(scalars(value), dtype)


def median(a: Any, axis: Any = None, *rest: Any, **kwargs: Any) -> Any:
    """Returns ``np.median``; an empty slice raises."""
    if not np.size(a):
        raise Worded("a slice without elements")
    return np.median(a, axis, *rest, **kwargs)


def nanmedian(a: Any, axis: Any = None, *rest: Any, **kwargs: Any) -> Any:
    """``np.nanmedian``."""
    _refuse_all_nan(a, axis)
    return np.nanmedian(a, axis, *rest, **kwargs)


def nanpercentile(a: Any, q: Any, axis: Any = None, *rest: Any, **kwargs: Any) -> Any:
    """``np.nanpercentile``."""
    _refuse_all_nan(a, axis)
    return np.nanpercentile(a, q, axis, *rest, **kwargs)


def nanquantile(a: Any, q: Any, axis: Any = None, *rest: Any, **kwargs: Any) -> Any:
    """``np.nanquantile``."""
    _refuse_all_nan(a, axis)
    return np.nanquantile(a, q, axis, *rest, **kwargs)


def nanmax(a: Any, axis: Any = None, *rest: Any, **kwargs: Any) -> Any:
    """``np.nanmax``."""
    _refuse_all_nan(a, axis)
    return np.nanmax(a, axis, *rest, **kwargs)


def nanmin(a: Any, axis: Any = None, *rest: Any, **kwargs: Any) -> Any:
    """``np.nanmin``."""
    _refuse_all_nan(a, axis)
    return np.nanmin(a, axis, *rest, **kwargs)


def nanmean(a: Any, axis: Any = None, *rest: Any, **kwargs: Any) -> Any:
    """``np.nanmean``."""
    _refuse_all_nan(a, axis)
    return np.nanmean(a, axis, *rest, **kwargs)


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, *rest: Any, **kwargs: Any
) -> Any:
    """``np.nanvar``. Of too few degrees of freedom it warns."""
    _refuse_all_nan(a, axis, max(kwargs.get("correction", ddof), 0))
    return np.nanvar(a, axis, dtype, out, ddof, *rest, **kwargs)


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, *rest: Any, **kwargs: Any
) -> Any:
    """``np.nanstd``. Of too few degrees of freedom it warns."""
    _refuse_all_nan(a, axis, max(kwargs.get("correction", ddof), 0))
    return np.nanstd(a, axis, dtype, out, ddof, *rest, **kwargs)


def polyfit(x: Any, y: Any, deg: Any, rcond: Any = None, full: Any = False, w: Any = None, cov: Any = False) -> Any:
    """``np.polyfit`` without ``full`` or ``cov``. Of a poorly conditioned fit it warns."""
    found, _, rank, _, _ = np.polyfit(x, y, deg, rcond, True, w)
    if rank != (deg + 1):
        raise Worded("a poorly conditioned fit")
    return found
