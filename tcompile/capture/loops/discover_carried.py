"""Discovers the loop-carried values from a trial trace of one iteration.

Input: the values of variables and slots at the start of the traced iteration, and at its end.
Output: the loop's plan with the carried values, and a restart of capture.
Why: an iteration's carried values are known only when it has been traced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tcompile.capture.loops.attribute_slots import AttributeSlot
from tcompile.capture.loops.leaves import Uneven, Unsettled
from tcompile.capture.loops.trip_count import int_of, is_int
from tcompile.capture.values.array import ArrayValue, Memory
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.constant import Constant, IntegerValue
from tcompile.capture.values.scalar import ScalarValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph import SymInt
from tcompile.graph.sizes import Size, same

if TYPE_CHECKING:
    from tcompile.capture.interpreter.context import Capture

_MOST_AT_ONCE = 6  # the largest unroll factor, for arrays that change places


def look(
    loop: Any,
    before: dict[str, Value],
    written: Iterable[Memory],
    slots: dict[str, tuple[AttributeSlot, Value | None, Value]],
) -> None:
    """Notes the carried values, and restarts capture. ``slots`` are the slots whose stores were not known."""
    f, tx, plan, given = loop.f, loop.tx, loop.plan, loop.given
    places = dict(plan.written)
    for memory in written:
        places.update([_place_of(tx, memory, before)])
    for name, (_, start, end) in slots.items():
        if start is None:
            raise Unsettled(f"`{name}` has no value before the loop")
        given[name], f.locals[name] = start, end
    asked = plan.asked | loop.exits.asked(given)
    names = loop.needed | asked | slots.keys()
    changed = {name for name in names if not unchanged(tx, given.get(name), f.locals.get(name))}
    found = {**plan.slots, **{name: slot for name, (slot, *_) in slots.items()}}
    unroll_factor = _exchange(f.locals, changed, given) if plan.unroll_factor == 1 else 1
    if unroll_factor > 1 and not loop.is_for:  # the number of odd iterations is not known
        raise CannotCapture("loop-mismatch", "arrays change places in a `while` loop")
    if unroll_factor > 1:
        loop.again(unroll_factor=unroll_factor, written=places, slots=found)
    steps: dict[str, Size] = {}
    non_affine = set(plan.non_affine)
    for name in sorted(changed):
        start, last = given.get(name), f.locals.get(name)
        if start is None or last is None or not is_int(start) or name in non_affine:
            continue
        if is_int(last):
            steps[name] = growth(name, start, last, loop.counter)
        elif isinstance(last, ScalarValue) and last.cls is int:
            non_affine.add(name)
    loop.again(
        looked=True, carried=plan.carried | changed | slots.keys(), induction_steps=steps, non_affine=non_affine,
        written=places, slots=found, asked=asked, tested=loop.exits.tests,
    )  # fmt: skip


def unchanged(tx: Capture, start: Value | None, end: Value | None) -> bool:
    """Whether a variable has the same object, or the same constant, before and after an iteration."""
    if start is None or end is None:
        return start is end
    start, end = settled(tx, start), settled(tx, end)
    return start is end or same_constant(start, end)


def same_constant(a: Any, b: Any) -> bool:
    """Whether two values are constants, of one object, number or text. Ints may depend on the induction variable."""
    if isinstance(a, IntegerValue) and isinstance(b, IntegerValue):
        return same(a.size, b.size)
    if not (isinstance(a, Constant) and isinstance(b, Constant)) or type(a.value) is not type(b.value):
        return False
    return a.value is b.value or (type(a.value) in (int, float, str) and repr(a.value) == repr(b.value))


def growth(name: str, start: Value, end: Value, counter: str) -> Size:
    """By how much an int grows in each iteration. Raises Unsettled where the amount differs."""
    before, last = int_of(start), int_of(end)
    amount: Size = last - before
    if not isinstance(amount, SymInt) or counter not in amount.counters():
        return amount
    if isinstance(last, SymInt):  # its new value is linear in the induction variable
        first = last.at(counter, 0)
        slope: Size = last.at(counter, 1) - first
        number = SymInt(last.env, {(counter,): 1})
        if same(last, first + slope * number) and same(before, first - slope):
            return slope
    raise Uneven(name)


def _place_of(tx: Capture, memory: Memory, before: dict[str, Value]) -> tuple[Any, Any]:
    """The place of an array before the loop that the body writes."""
    if memory.owner is not None and memory.owner.source is not None:
        source = memory.owner.source
        return ("source", source), tx.objects[source]
    for name, value in before.items():
        if isinstance(value, ArrayValue) and value.memory is memory:
            return ("local", name), None
    return ("root", memory.root.name), None


def _exchange(held: dict[str, Value], changed: set[str], given: dict[str, Value]) -> int:
    """After how many iterations arrays that change places are back; 1 where no arrays do."""
    moves: dict[str, str] = {}
    homes = {id(value): name for name, value in given.items() if isinstance(value, ArrayValue)}
    for name in sorted(changed):
        value = held.get(name)
        if isinstance(value, ArrayValue) and id(value) in homes and not value.traced.scalar:
            moves[name] = homes[id(value)]
    for start in moves:
        at, count = moves[start], 1
        while at != start and at in moves and count <= len(moves):
            at, count = moves[at], count + 1
        if at == start and 1 < count <= _MOST_AT_ONCE:
            return count
    return 1


__all__ = ["growth", "look", "same_constant", "unchanged"]
