"""Dynamic shapes: which sizes and numbers stay open under ``dynamic=None``.

Input: the shapes and Python numbers of each compile of a function.
Output: for each place, the axes (or the number itself) that have changed.
Why: the first compile is static, which makes the fastest code; the second knows what varies.

Sizes 0 and 1 are always specialised. Floats are open from the start, unless a graph needs the value. NumPy ints that
change are open, under the same condition. A value that is needed gets an entry of its own, up to a few; then a break is
better than another entry.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import field
from inspect import getattr_static
from typing import Any

from tcompile.annotations.marks import NO_MARKS, AxisMark
from tcompile.config import config
from tcompile.records import dataclass


@dataclass
class Profile:
    """The values seen at each place, by the place's text. ``whole``: a graph break is an error."""

    whole: bool = False
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    floats: dict[str, float] = field(default_factory=dict)
    open_axes: dict[str, set[int]] = field(default_factory=dict)
    open_numbers: set[str] = field(default_factory=set)
    ever_open: set[Any] = field(default_factory=set)  # the places, and their axes, that have ever been open
    needed: set[str] = field(default_factory=set)  # the places of floats and NumPy ints whose values captures need,
    fixed: dict[str, set[Any]] = field(default_factory=dict)  # and the values with entries of their own
    definitions: dict[str, tuple[int, types.CodeType]] = field(default_factory=dict)  # of functions that are globals
    results: dict[Any, tuple[Any, ...]] = field(default_factory=dict)  # of calls assumed constant, and their contents
    deep: weakref.WeakSet[types.CodeType] = field(
        default_factory=weakref.WeakSet
    )  # recursion that is not followed again

    def axes(
        self, place: str, shape: tuple[int, ...], dynamic: bool | None, marks: Mapping[int, AxisMark] = NO_MARKS
    ) -> set[int]:
        """Returns the axes of the array at ``place`` that become symbolic in this compile. The user's marks take
        precedence.
        """
        found = self._varying(place, shape, dynamic)
        if marks:
            found |= {axis for axis, mark in marks.items() if mark.kind != "static" and shape[axis] > 1}
            found -= {axis for axis, mark in marks.items() if mark.kind == "static"}
        return found

    def _varying(self, place: str, shape: tuple[int, ...], dynamic: bool | None) -> set[int]:
        if dynamic is False:
            return set()
        before = self.shapes.get(place)
        self.shapes[place] = shape
        if dynamic:
            return {axis for axis, size in enumerate(shape) if size > 1}
        opened = self.open_axes.setdefault(place, set())
        if before is not None and len(before) == len(shape):
            opened.update(axis for axis, (a, b) in enumerate(zip(before, shape, strict=True)) if a != b)
            self.ever_open.update((place, axis) for axis in opened)
        elif before is not None:
            opened.clear()
        return {axis for axis in opened if shape[axis] > 1}

    @property
    def stage(self) -> int:
        """Counts how often a size was opened. Entries from before may be useless, and do not count for the recompile
        limit.
        """
        return len(self.ever_open)

    def observe(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Records the arguments of a call in plain Python, so that changes in the next call count."""
        for name, value in zip(names, values, strict=False):
            shape = _shape(value)
            if shape is not None:
                self.shapes[name] = shape
            elif type(value) is int:
                self.numbers[name] = value

    def is_fixed(self, place: str, value: Any) -> bool:
        """Whether this compile is for one value of the number at ``place``."""
        if place not in self.needed:
            return False
        values = self.fixed.setdefault(place, set())
        if value not in values and not self.may_fix(place, type(value)):
            return False
        values.add(value)
        return True

    def may_fix(self, place: str, kind: type) -> bool:
        """Whether another value of the number at ``place`` may get an entry of its own."""
        most = config.recompile_limit - 1  # the last entry is for all other values
        return self.whole or len(self.fixed.get(place, ())) < (min(_FEW, most) if kind is int else most)

    def is_open(self, place: str, value: int, dynamic: bool | None, among: str = "") -> bool:
        """Whether the int at ``place`` stays open in this compile. The ints of a list, ``among``, vary together."""
        if dynamic is False:
            return False
        before = self.numbers.get(place)
        self.numbers[place] = value
        if dynamic:
            return True
        if before is not None and before != value:
            self.open_numbers.add(f"{among}[…]" if among else place)
            self.ever_open |= self.open_numbers
        return place in self.open_numbers or f"{among}[…]" in self.open_numbers

    def varies(self, place: str, value: float, dynamic: bool | None) -> bool:
        """Whether the float at ``place`` has had another value, for graphs in which a constant is faster."""
        before = self.floats.setdefault(place, value)
        if before != value and dynamic is not False:
            self.open_numbers.add(place)
            self.ever_open.add(place)
        return place in self.open_numbers

    def is_redefined(self, place: str, function: types.FunctionType) -> bool:
        """Whether the definition of the global function at ``place`` has run again, with the same code."""
        before = self.definitions.get(place)
        self.definitions[place] = id(function), function.__code__
        if before is not None and before[0] != id(function) and before[1] is function.__code__:
            self.ever_open.add(place)
        return place in self.ever_open


def _shape(value: Any) -> tuple[int, ...] | None:
    """Returns the shape of an array, whose class answers in C. User objects are not asked: that may run code."""
    found = getattr_static(type(value), "shape", None)
    if type(found) is not types.GetSetDescriptorType or not issubclass(type(value), found.__objclass__):
        return None
    shape = found.__get__(value)
    return shape if isinstance(shape, tuple) else None


_FEW = 3  # ints often are counters, with one value after the other
