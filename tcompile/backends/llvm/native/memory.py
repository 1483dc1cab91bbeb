"""Output arrays, and scratch memory for kernels.

Enters: shape, dtype, and the order of the axes in memory. Leaves: arrays with undefined contents.
"""

from __future__ import annotations

import numpy as np


def empty(shape: tuple[int, ...], dtype: np.dtype, order: tuple[int, ...] | None = None) -> np.ndarray:
    """A new array that owns its memory. ``order`` lists the axes outermost first, None means C order."""
    ndim = len(shape)
    if order is None or order == tuple(range(ndim)):
        return np.empty(shape, dtype)
    if order == tuple(range(ndim))[::-1]:
        return np.empty(shape, dtype, "F")
    prototype = np.empty((2,) * ndim, np.int8).transpose(np.argsort(order))
    return np.empty_like(prototype, dtype=dtype, order="K", shape=shape)


def scratch(nbytes: int) -> np.ndarray:
    """Uninitialised memory for one launch: a one-dimensional uint8 array of ``nbytes`` bytes."""
    return empty((nbytes,), np.dtype(np.uint8))


def set_limit(nbytes: int) -> None:
    """Bytes that the pool may keep for reuse."""


def stats() -> dict[str, int]:
    """Figures of the pool."""
    return {}


def trim() -> None:
    """Gives all cached memory back."""
