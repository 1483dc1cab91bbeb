"""Marks on the sizes of arrays: dynamic, maybe dynamic, or static.

Input: arrays and axes from the user.
Output: for a captured array, the marks of its axes.
Why: an ndarray takes no attributes, so marks are kept in a table of weak references. They belong to the array object,
not to its views or copies.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tcompile.errors import InvalidArgument, InvalidType
from tcompile.observe.source_location import UserLine, format_stack
from tcompile.records import dataclass


@dataclass(frozen=True)
class AxisMark:
    """The mark of one axis: ``dynamic`` (varies, or it is an error), ``maybe`` (varies if possible) or ``static``
    (never).
    """

    kind: Literal["dynamic", "maybe", "static"]
    minimum: int | None = None
    maximum: int | None = None


NO_MARKS: Mapping[int, AxisMark] = {}
_table: dict[int, tuple[weakref.ref[Any], dict[int, AxisMark]]] = {}


def marks_of(array: Any) -> Mapping[int, AxisMark]:
    """Returns the marks of an array's axes."""
    found = _table.get(id(array)) if _table else None
    return found[1] if found is not None and found[0]() is array else NO_MARKS


def mark_dynamic(
    array: np.ndarray[Any, Any], axis: int | Sequence[int], *, min: int | None = None, max: int | None = None
) -> None:
    """Marks the size of ``array`` along ``axis`` as varying: code compiled for this array leaves it open at once.

    Code that needs one certain size along a marked axis is an error, which names the guard. Sizes 0 and 1 are always
    compiled by themselves. Marks count where code is compiled: an entry that already fits the call is used as it is.

    Parameters
    ----------
    array : ndarray
        The array object that is marked.
    axis : int or sequence of int
        One axis or several.
    min, max : int, optional
        Bounds of the size, both included. A size outside of them is compiled by itself.

    Raises
    ------
    InvalidType, InvalidArgument
        Where an argument is not valid.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> f = tcompile.compile(lambda x: x * 2)
    >>> for size in (3, 4, 5):
    ...     x = np.ones(size)
    ...     tcompile.mark_dynamic(x, 0)
    ...     y = f(x)
    >>> len(f.graphs)
    1
    """
    _check_array("mark_dynamic", array)
    for name, bound in (("min", min), ("max", max)):
        if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
            raise InvalidType(f"mark_dynamic: {name} must be an int or None, got {type(bound).__name__} {bound!r}")
        if bound is not None and bound < 0:
            raise InvalidArgument(f"mark_dynamic: {name} must be at least 0, got {bound}")
    if min is not None and max is not None and min > max:
        raise InvalidArgument(f"mark_dynamic: min must be at most max, got min={min} and max={max}")
    axes = _axes("mark_dynamic", array, axis)
    for one in axes:
        size = array.shape[one]
        if (min is not None and size < min) or (max is not None and size > max):
            raise InvalidArgument(f"mark_dynamic: axis {one} has size {size}, outside of min={min} and max={max}")
    _put(array, axes, AxisMark("dynamic", min, max))


def maybe_mark_dynamic(array: np.ndarray[Any, Any], axis: int | Sequence[int]) -> None:
    """Marks like ``mark_dynamic``, but code that needs one certain size is compiled for that size, without an error.

    Parameters
    ----------
    array : ndarray
        The array object that is marked.
    axis : int or sequence of int
        One axis or several.

    Raises
    ------
    InvalidType, InvalidArgument
        Where an argument is not valid.
    """
    _check_array("maybe_mark_dynamic", array)
    _put(array, _axes("maybe_mark_dynamic", array, axis), AxisMark("maybe"))


def mark_static(array: np.ndarray[Any, Any], axis: int | Sequence[int] | None = None) -> None:
    """Says that the size of ``array`` along ``axis`` is never left open.

    This holds under ``dynamic=True`` too, and where the size has been seen to change.

    Parameters
    ----------
    array : ndarray
        The array object that is marked.
    axis : int or sequence of int, optional
        One axis or several; by default all.

    Raises
    ------
    InvalidType, InvalidArgument
        Where an argument is not valid.
    """
    _check_array("mark_static", array)
    axes = list(range(array.ndim)) if axis is None else _axes("mark_static", array, axis)
    _put(array, axes, AxisMark("static"))


def not_dynamic(axis: str, guard: str, stack: Sequence[UserLine]) -> InvalidArgument:
    """Returns the error for a marked axis that is compiled for one size. ``axis`` is the user's text for it."""
    return InvalidArgument(
        f"{axis} is marked by mark_dynamic, but the code is made for one size, under the guard {guard}.\n\n"
        f"{format_stack(stack)}\n\n"
        "Write the code so that it fits every size, or use maybe_mark_dynamic, which allows one size too.\n"
        "Sizes 0 and 1 are always compiled by themselves."
    )


def _put(array: Any, axes: Sequence[int], mark: AxisMark) -> None:
    found = _table.get(id(array))
    key, table = id(array), _table  # bound here: at exit the module's globals are cleared first
    if found is None or found[0]() is not array:

        def forget(reference: weakref.ref[Any]) -> None:
            held = table.get(key)
            if held is not None and held[0] is reference:
                del table[key]

        found = _table[key] = (weakref.ref(array, forget), {})
    found[1].update(dict.fromkeys(axes, mark))


def _check_array(name: str, array: Any) -> None:
    if not isinstance(array, np.ndarray):
        raise InvalidType(f"{name}: array must be a NumPy array, got {type(array).__name__} {array!r:.60}")


def _axes(name: str, array: np.ndarray[Any, Any], axis: Any) -> list[int]:
    axes = []
    for one in axis if isinstance(axis, tuple | list) else (axis,):
        try:
            number = operator.index(one)
        except TypeError:
            raise InvalidType(
                f"{name}: axis must be an int or a sequence of ints, got {type(one).__name__} {one!r}"
            ) from None
        if not -array.ndim <= number < array.ndim:
            raise InvalidArgument(f"{name}: axis {number} is out of bounds for an array of {array.ndim} dimensions")
        axes.append(number % array.ndim)
    return axes


__all__ = ["NO_MARKS", "AxisMark", "mark_dynamic", "mark_static", "marks_of", "maybe_mark_dynamic"]
