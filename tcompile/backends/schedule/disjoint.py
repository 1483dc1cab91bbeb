"""Disjoint accesses: a proof that two accesses of one array share no element, as in ``p[:, -1] = p[:, -2]``.

Input: two accesses, and the axes of their iteration space; or a step.
Output: True where no element belongs to both, whatever the sizes are; for a step, where it reads none of the arrays
that it writes.
Why: the edges of a grid can be stored in place, and elements can be computed twice where that is simpler.

Along each axis of the array, or along its memory as a whole, an access reaches its offset plus multiples of its steps.
Two accesses are disjoint where one ends before the other begins, or where all steps are multiples of one number and the
distance of the offsets is not. (These are the bounds test and the GCD test in U. Banerjee, Dependence Analysis for
Supercomputing, 1988.) So are two that fill boxes without intersection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from tcompile.backends.schedule.boxes import box_of, extents_of, meet
from tcompile.backends.schedule.kernel import Access, Axis, Distance
from tcompile.backends.schedule.plan import Step
from tcompile.graph import Node, Size, SymInt, ops

_Reach: TypeAlias = "tuple[Size, list[Size]]"  # the first index of an access along an axis, and its steps


def disjoint(one: Access, two: Access, axes: Sequence[Axis]) -> bool:
    """Whether two accesses of one buffer share no element."""
    if any(_apart(_along(one, axis), _along(two, axis), axes) for axis in _axes(one) | _axes(two)):
        return True
    extents = extents_of(one.buffer.type)
    if extents is None:
        return False
    sizes = [axis.size for axis in axes]
    first, second = box_of(one, sizes, extents), box_of(two, sizes, extents)
    return first is not None and second is not None and not meet(first, second)


def reads_other_arrays(step: Step, steps: Sequence[Step]) -> bool:
    """Whether a kernel's step, one of ``steps``, surely reads nothing of the arrays that it writes."""
    made = {node: other for other in steps if other.kernel is not None for node in other.writes}

    def memory(node: Node) -> Node:
        while node.op is not ops.INPUT:
            if node.op.kind != "view" and (node not in made or made[node].onto.get(node) != "base"):
                break
            node = node.inputs[0]
        return node

    assert step.kernel is not None
    written = {memory(store.access.buffer.node) for store in step.kernel.stores} - set(step.writes)
    read = {memory(value.access.buffer.node) for value in step.kernel.values if value.access is not None}
    # Arrays of the caller, and results of the library, may alias each other.
    return not written or (not read & written and read <= made.keys())


def _axes(access: Access) -> set[int | None]:
    """The axes of the array along which distances are counted; None: in elements of its memory."""
    return {axis for distance in (*access.steps, access.offset) for _, axis in distance}


def _along(access: Access, axis: int | None) -> _Reach:
    return _part(access.offset, axis), [_part(step, axis) for step in access.steps]


def _part(distance: Distance, axis: int | None) -> Size:
    total: Size = 0
    for multiple, at in distance:
        total = total + (multiple if at == axis else 0)
    return total


def _apart(one: _Reach, two: _Reach, axes: Sequence[Axis]) -> bool:
    first, second = _ends(one, axes), _ends(two, axes)
    if (
        first is not None
        and second is not None
        and (_is_positive(first[0] - second[1]) or _is_positive(second[0] - first[1]))
    ):
        return True
    between = one[0] - two[0]
    steps = [step for step in (*one[1], *two[1]) if isinstance(step, SymInt) or step]
    if isinstance(between, SymInt) and steps:
        between = _without_multiples(between, steps[0])
    if not isinstance(between, int) or not between:
        return False
    whole = [step for step in steps if isinstance(step, int)]
    if len(whole) == len(steps):
        return between % math.gcd(*whole) != 0 if whole else True
    return len({str(step) for step in steps}) == 1 and _is_positive(steps[0] - abs(between))


def _without_multiples(distance: SymInt, step: Size) -> Size:
    """A distance less so many whole steps that its first term of the step's vanishes."""
    if isinstance(step, SymInt):
        for monomial, count in step.terms.items():
            multiple, rest = divmod(distance.terms.get(monomial, 0), count)
            if monomial and not rest:
                return distance - step * multiple
    return distance


def _ends(reach: _Reach, axes: Sequence[Axis]) -> tuple[Size, Size] | None:
    """The first index and the last one; None where the direction of a step is unknown."""
    low = high = reach[0]
    for step, axis in zip(reach[1], axes, strict=True):
        far = step * (axis.size - 1)
        if isinstance(step, int) and step < 0:
            low = low + far
        elif isinstance(step, int) or _is_positive(step):
            high = high + far
        else:
            return None
    return low, high


def _is_positive(size: Size) -> bool:
    """Whether a size is known to be positive. Adds no guard."""
    least = size.bounds()[0] if isinstance(size, SymInt) else size
    return least is not None and least > 0


__all__ = ["disjoint", "reads_other_arrays"]
