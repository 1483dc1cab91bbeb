"""Boxes: the elements that accesses reach, as products of intervals.

Input: accesses, the axes of their iteration space, and the types of arrays.
Output: for each a ``Box``, by the array's axes in memory order, where sizes are known and the elements fill one;
intersections and differences of boxes.
Why: the edges of a grid interleave in memory; only along its axes they are disjoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tcompile.backends.schedule.kernel import Access, static_elements
from tcompile.graph import Size, TensorType

Box: TypeAlias = "tuple[tuple[int, int], ...]"  # the first index and the one after the last along each axis
Extents: TypeAlias = "list[tuple[int, int]]"  # of axes, outermost in memory first: length and stride


def extents_of(type: TensorType) -> Extents | None:
    """The axes of an array that are longer than one; None where sizes or strides are unknown."""
    strides = type.strides()
    if strides is None:
        return None
    found = []
    for size, stride in zip(type.shape, strides, strict=True):
        if not isinstance(size, int) or not isinstance(stride, int) or size == 0:
            return None
        if size > 1:
            found.append((size, stride))
    return sorted(found, key=lambda row: -row[1])


def box_of(access: Access, axes: Sequence[Size], extents: Extents) -> Box | None:
    """The elements at all points of an iteration space; None where they are no box, or unknown."""
    at = static_elements(access.offset)
    if at is None:
        return None
    rows: list[tuple[int, int]] = []
    for distance, size in zip(access.steps, axes, strict=True):
        step = static_elements(distance)
        if step is None or not isinstance(size, int) or size == 0:
            return None
        at += min(0, step * (size - 1))
        rows.append((abs(step), size))
    lows, sizes = [], [1] * len(extents)
    for _, far in extents:
        lows.append(at // far)
        at %= far
    numbers = {distance: number for number, (_, distance) in enumerate(extents)}
    for step, size in rows:
        number = numbers.get(step, -1)
        while step and size > 1:
            if number < 0 or sizes[number] > 1:
                return None
            extent = extents[number][0]
            if lows[number] + size <= extent:
                sizes[number] = size
                break
            if lows[number] or size % extent:
                return None
            sizes[number], size, number = extent, size // extent, number - 1  # contiguous rows
    return tuple((low, low + size) for low, size in zip(lows, sizes, strict=True))


def meet(one: Box, two: Box) -> bool:
    """Whether two boxes intersect."""
    return all(a < d and c < b for (a, b), (c, d) in zip(one, two, strict=True))


def common(one: Box, two: Box) -> Box:
    """The intersection of two boxes."""
    return tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, two, strict=True))


def without(boxes: Iterable[Box], taken: Box) -> list[Box]:
    """The boxes minus another one."""
    found: list[Box] = []
    for box in boxes:
        if not meet(box, taken):
            found.append(box)
            continue
        rest = list(box)
        for axis, ((low, high), (first, end)) in enumerate(zip(box, taken, strict=True)):
            if low < first:
                found.append((*rest[:axis], (low, first), *rest[axis + 1 :]))
            if end < high:
                found.append((*rest[:axis], (end, high), *rest[axis + 1 :]))
            rest[axis] = max(low, first), min(high, end)
    return found


__all__ = ["Box", "Extents", "box_of", "common", "extents_of", "meet", "without"]
