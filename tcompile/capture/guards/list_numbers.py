"""Lists of numbers as arrays, before a graph runs and after it.

Input: a list.
Output: an array of its items, where they are numbers of one class; and the list with the numbers that have changed.
Why: loops over lists of numbers run in machine code, which reads arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcompile.backends.llvm.native import list_numbers
from tcompile.capture.guards.sources import ComputedSource, Source

_DTYPES: dict[type, str] = {float: "float64", int: "int64", bool: "bool"}
_FEW = 24  # items that take less time one by one


def numbers_in(items: list[Any]) -> np.ndarray[Any, Any] | None:
    """The items as an array, where all are floats, ints of 64 bits, or bools; None of any other list.

    >>> numbers_in([1, 2]), numbers_in([1, 2.0]), numbers_in([])
    (array([1, 2]), None, None)
    """
    dtype = _DTYPES.get(type(items[0])) if items else None
    if dtype is None:
        return None
    fill = list_numbers.filler(dtype) if len(items) > _FEW else None
    if fill is not None:
        made = np.empty(len(items), dtype)
        return made if fill(items, made) else None
    if len(set(map(type, items))) > 1:
        return None
    try:
        return np.fromiter(items, dtype, len(items))
    except OverflowError:
        return None


def has_numbers(items: Sequence[Any]) -> bool:
    """Whether the items are numbers of one class, of ints those of any size.

    >>> has_numbers([1.0, 2.5]), has_numbers([1, True]), has_numbers([])
    (True, False, False)
    """
    classes = set(map(type, items))
    return len(classes) == 1 and classes <= _DTYPES.keys()


def source_of_numbers(items: Source) -> ComputedSource:
    """Where the array of a list's numbers is found."""
    return ComputedSource("{1}({0})", (items,), (numbers_in,))


def is_of_list(source: Source) -> bool:
    """Whether an array from there is made of a list's numbers."""
    return isinstance(source, ComputedSource) and source.functions == (numbers_in,)


def replace_numbers(
    items: list[Any],
    before: np.ndarray[Any, Any],
    after: np.ndarray[Any, Any],
    tags: np.ndarray[Any, Any] | None = None,
    mixed: Sequence[Any] = (),
) -> None:
    """Replaces the items that a loop has changed, and keeps all other objects.

    Where ``tags`` are given, those other than 0 tell which items have become others of the ``mixed`` ones.

    >>> items = [1, 2, 3]
    >>> replace_numbers(items, np.array([1, 2, 3]), np.array([1, 5, 3]))
    >>> items
    [1, 5, 3]
    """
    bits = f"u{before.itemsize}"
    changes = before.view(bits) != after.view(bits)
    if tags is not None:
        for place in np.flatnonzero(changes | (tags != 0)).tolist():
            items[place] = mixed[place]
        return
    changed = np.flatnonzero(changes)
    if 2 * len(changed) > len(items) == len(after):  # most of them: all at once, with the others' own objects
        made = after.tolist()
        for place in np.flatnonzero(~changes).tolist():
            made[place] = items[place]
        items[:] = made
        return
    for place, value in zip(changed.tolist(), after[changed].tolist(), strict=True):
        items[place] = value


__all__ = ["has_numbers", "is_of_list", "numbers_in", "replace_numbers", "source_of_numbers"]
