"""Lists of numbers as arrays, before a graph runs and after it.

Input: a list.
Output: an array of its items, where they are numbers of one class; and the list with the numbers that have changed.
Why: loops over lists of numbers run in machine code, which reads arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_DTYPES: dict[type, type] = {float: np.float64, int: np.int64, bool: np.bool_}


def numbers_in(items: list[Any]) -> np.ndarray[Any, Any] | None:
    """The items as an array, where all are floats, ints of 64 bits, or bools; None of any other list.

    >>> numbers_in([1, 2]), numbers_in([1, 2.0]), numbers_in([])
    (array([1, 2]), None, None)
    """
    classes = set(map(type, items))
    dtype = _DTYPES.get(classes.pop()) if len(classes) == 1 else None
    if dtype is None:
        return None
    try:
        return np.fromiter(items, dtype, len(items))
    except OverflowError:
        return None


def replace_numbers(items: list[Any], before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> None:
    """Replaces the items that a loop has changed, and keeps all other objects.

    >>> items = [1, 2, 3]
    >>> replace_numbers(items, np.array([1, 2, 3]), np.array([1, 5, 3]))
    >>> items
    [1, 5, 3]
    """
    bits = f"u{before.itemsize}"
    changed = np.flatnonzero(before.view(bits) != after.view(bits))
    for place, value in zip(changed.tolist(), after[changed].tolist(), strict=True):
        items[place] = value


__all__ = ["numbers_in", "replace_numbers"]
