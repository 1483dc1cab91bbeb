"""Which sizes and numbers stay open: the memory behind ``dynamic=None``.

Enters: the shapes and Python numbers that each compile of a function sees. Leaves: for each place, the axes (or the
number itself) that have been seen to change. Exists because the first compile is static, which makes the fastest
code, and the second knows what varies. Sizes 0 and 1 are always specialised.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Profile:
    """What has been seen at each place, by the place's text."""

    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    numbers: dict[str, int | float] = field(default_factory=dict)
    open_axes: dict[str, set[int]] = field(default_factory=dict)
    open_numbers: set[str] = field(default_factory=set)

    def axes(self, place: str, shape: tuple[int, ...], dynamic: bool | None) -> set[int]:
        """The axes of the array at ``place`` that become symbolic in this compile."""
        if dynamic is False:
            return set()
        before = self.shapes.get(place)
        self.shapes[place] = shape
        if dynamic:
            return {axis for axis, size in enumerate(shape) if size > 1}
        opened = self.open_axes.setdefault(place, set())
        if before is not None and len(before) == len(shape):
            opened.update(axis for axis, (a, b) in enumerate(zip(before, shape, strict=True)) if a != b)
        elif before is not None:
            opened.clear()
        return {axis for axis in opened if shape[axis] > 1}

    def is_open(self, place: str, value: int | float, dynamic: bool | None) -> bool:
        """Whether the Python number at ``place`` becomes symbolic in this compile."""
        if dynamic is False:
            return False
        before = self.numbers.get(place)
        self.numbers[place] = value
        if dynamic:
            return True
        if before is not None and (type(before) is not type(value) or before != value):
            self.open_numbers.add(place)
        return place in self.open_numbers
