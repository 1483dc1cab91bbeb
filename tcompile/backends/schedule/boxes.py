"""Parts of arrays as boxes: which elements an access reaches, and which of them others reach, too.

Input: accesses, the axes of the space that they walk through, and the types of arrays. Output: for each a ``Box``, by
the array's axes in the order in which they lie in memory, where sizes are known and the places fill one; what two boxes
have in common, and what is in one alone. Why: in memory the edges of a grid lie between one another, and only
along its axes they are seen to be apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tcompile.backends.schedule.kernel import Access, static_elements
from tcompile.graph import Size, TensorType

Box: TypeAlias = "tuple[tuple[int, int], ...]"  # the first place and the one after the last along each axis
Extents: TypeAlias = "list[tuple[int, int]]"  # of axes, outermost in memory first: how many places, how far apart


def extents_of(type: TensorType) -> Extents | None:
    """An array's axes with more than one place; None where sizes are not known, or strides."""
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
    """The elements at all points of an iteration space; None where they are no box, or not known."""
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
            sizes[number], size, number = extent, size // extent, number - 1  # rows that lie one after the other
    return tuple((low, low + size) for low, size in zip(lows, sizes, strict=True))


def meet(one: Box, two: Box) -> bool:
    """Whether two boxes have a place in common."""
    return all(a < d and c < b for (a, b), (c, d) in zip(one, two, strict=True))


def common(one: Box, two: Box) -> Box:
    """The places in two boxes that meet."""
    return tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, two, strict=True))


def without(boxes: Iterable[Box], taken: Box) -> list[Box]:
    """The places in boxes that are not in another one."""
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
