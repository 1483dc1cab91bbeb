"""Liveness of array elements across iterations, for double buffers.

Input: the steps of an iteration, and an array that is swapped with another one in each.
Output: whether the old elements in it are dead, so that the iteration need not begin with a copy of the other array.
Why: copying small grids took as long as half of the work on them. A boundary condition writes the edges of a grid after
its inside: together they overwrite everything.

Outside of what an iteration writes, both arrays are equal if they were so before the first one. Old elements of a
written part may be read by a step that only moves them to where a later step writes: as with corners, where one edge is
made of another. The live elements are propagated from the end of the iteration to its beginning: a step that writes
some needs its operands instead (liveness, for elements in place of variables: P. Feautrier, Dataflow analysis of array
and scalar references, 1991). Parts of arrays are boxes, so that sizes have to be known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tcompile.backends.llvm.loop_program.ir import CopyStep, ExitTest, InnerLoopStep, KernelStep, LoopArray, Slabs
from tcompile.backends.schedule.boxes import Box, Extents, box_of, common, extents_of, meet, without

_MOST = 64  # boxes that are propagated


def old_elements_are_dead(
    steps: Sequence[KernelStep | CopyStep | InnerLoopStep | ExitTest],
    number: int,
    array: LoopArray,
    ends: Collection[int],
) -> bool:
    """Whether an iteration computes the same whatever elements array ``number`` holds before it.

    Before the steps that ``ends`` counts to, the iteration may be over, with the array as it is then. False where that
    is unknown. Only writes of ``steps`` to the array matter here.
    """
    extents = None if array.node is None else extents_of(array.node.tensor)
    if extents is None:
        return False
    whole: Box = tuple((0, extent) for extent, _ in extents)
    needed, written = [whole], list[Box]()
    for place in range(len(steps) - 1, -1, -1):
        step = steps[place]
        if place + 1 in ends:
            needed = [whole]
        if isinstance(step, CopyStep) and step.to == number:
            continue  # the copy to be proved unnecessary
        if not _has(step, number):
            continue
        if not isinstance(step, KernelStep) or step.slabs is None:
            return False
        stored, loaded = _boxes(step.slabs, number, extents)
        if None in (*stored, *loaded):
            return False
        moved = _moved(step.slabs, number, stored, loaded, needed)
        for box in stored:
            assert box is not None
            written.append(box)
            needed = without(needed, box)
        needed += moved
        if len(needed) > _MOST:
            return False
    return not any(meet(one, two) for one in needed for two in written)


def _has(step: KernelStep | CopyStep | InnerLoopStep | ExitTest, number: int) -> bool:
    """Whether a step reads or writes an array."""
    if isinstance(step, KernelStep):
        return any(char == "a" and argument == number for char, argument in step.arguments)
    if isinstance(step, CopyStep):
        return step.source == number
    if isinstance(step, InnerLoopStep):
        return number in (*step.given, *step.reported_words, *(to for to, _ in step.results))
    return step.flag == number


def _boxes(slabs: Slabs, number: int, extents: Extents) -> tuple[list[Box | None], list[Box | None]]:
    """The boxes that a kernel stores to an array and loads from it."""
    rows = [(is_written, access) for at, is_written, access in slabs.places if at == number]
    stored = [box_of(access, slabs.axes, extents) for is_written, access in rows if is_written]
    return stored, [box_of(access, slabs.axes, extents) for is_written, access in rows if not is_written]


def _moved(
    slabs: Slabs, number: int, stored: Sequence[Box | None], loaded: Sequence[Box | None], needed: Sequence[Box]
) -> list[Box]:
    """The elements that a kernel needs: all that it loads, or, where it only moves them, the needed ones' sources."""
    found = [box for box in loaded if box is not None]
    steps = [access.steps for at, _, access in slabs.places if at == number]
    if not slabs.moves or len(slabs.places) != 2 or len(steps) != 2 or steps[0] != steps[1]:
        return found
    (to,), (source,) = stored, loaded
    assert to is not None and source is not None
    far = [one[0] - two[0] for one, two in zip(source, to, strict=True)]
    parts = [common(box, to) for box in needed if meet(box, to)]
    return [tuple((low + by, high + by) for (low, high), by in zip(part, far, strict=True)) for part in parts]


__all__ = ["old_elements_are_dead"]
