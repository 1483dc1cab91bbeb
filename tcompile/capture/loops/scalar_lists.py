"""Lists in scalar loops: arrays hold their items until the loop ends.

Input: a list that a loop reads, whose items it replaces, or that it appends to.
Output: the arrays for the items, and the array with the count of those appended; after the loop, the list with its
items.
Why: dynamic programming and simulations without NumPy keep their numbers in lists (``best = [0] * n``), and a loop may
append thousands, in some iterations only.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tcompile.bytecode.dialect import D
from tcompile.capture.guards.sources import Source
from tcompile.capture.loops.continuation import LateIterator, LateSpan
from tcompile.capture.loops.list_accumulators import is_own_list
from tcompile.capture.loops.scalar_code import Changes, LoopCode
from tcompile.capture.loops.scalar_values import Values
from tcompile.capture.scalar_loops.node import number_of
from tcompile.capture.scalar_loops.translator import NONE, Cells, Refused, Room, Translator, V, is_number
from tcompile.capture.values.base import settled
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.scalar import ScalarValue
from tcompile.capture.values.span import CountedSpan, ListSlice, MixedSpan, OutsideSpan, RepeatedSpan
from tcompile.frontends.base import Traced
from tcompile.graph.ops.scalar_loop import PYTHON, dtype_of, is_numpy

# The most items of a list in a loop without a trip count, and in a loop where only some iterations append. If there
# are more, plain Python goes on.
ROOM, MOST_ROOM = 1 << 18, 1 << 22
MOST_READ = 256  # items of a list that a loop reads: each is guarded
FEW_READ = 8  # the same where an array could hold them: up to this number, guards take less time


def _is_of_list(what: Any) -> bool:
    """Whether a change is that of a list, told by its identity and a kind: those of attributes have a name."""
    return isinstance(what, tuple) and isinstance(what[0], int)


class Lists:
    """The lists of one loop; ``changed`` has the identities of those that get items, and the items' kinds.

    Attributes:
        rooms: the arrays of lists that it appends to, by the lists' numbers.
        cells_of: the arrays of lists whose length stays, where their items are in arrays.
        read: the items of other lists, which it does not change.
        before: where the arrays of lists from outside are found.
    """

    def __init__(self, values: Values, code: LoopCode, changed: Collection[Any]) -> None:
        self.values, self.tx, self.code, self.changed = values, values.tx, code, changed
        self.rooms: dict[int, Room] = {}
        self.cells_of: dict[int, Cells] = {}
        self.read: dict[int, list[V]] = {}
        self.before: dict[int, Source] = {}

    def below(self, depth: int) -> V:
        """The list of a comprehension whose loop this is."""
        found = self.code.f.stack[-D.iterator_items - depth] if self.code.items is not None and depth > 0 else None
        value = None if found is None else self.values.value(self.values.top, settled(self.tx, found))
        if value is None or value.kind[0] != "list":
            raise Refused("it appends to something else than a list")
        return value

    def items(self, number: int) -> list[V]:
        """The items of a list, which the loop then may not change."""
        found = self.values.lists[number]
        if number in self.rooms or found.spans:
            raise Refused("an item of a list that changes, or has items of an array")
        if number not in self.read:
            if len(found.items) > MOST_READ:
                raise Refused("an item of a long list")
            top = self.values.top
            block, top.block = top.block, top.entry
            try:
                self.read[number] = [self.values.value(top, settled(self.tx, item)) for item in found.items]
            finally:
                top.block = block
        return self.read[number]

    def cells(self, number: int, gets: str | None) -> Cells | None:
        """The arrays of a list's items, which may get one of a kind; None if there are none.

        Raises Changes where it was not known that it gets such items.
        """
        found = self.values.lists[number]
        if gets is not None and self.tx.builder.graph is not self.tx.graph:
            raise Refused("an item of a list is replaced inside a loop over arrays")
        if gets is not None and (id(found), gets) not in self.changed:
            raise Changes((id(found), gets))
        if number not in self.cells_of:
            if number in self.rooms:
                return None
            kinds = [kind for what, kind in filter(_is_of_list, self.changed) if what == id(found)]
            made = self._cells_of_span(found, kinds) or self._cells_from_outside(number, kinds)
            made = made or (self._cells_of_items(number) if kinds else None)
            if made is None:
                return None
            self.cells_of[number] = self.values.with_kinds(made, kinds)
        return self.cells_of[number]

    def _cells_of_span(self, found: SequenceValue, changes: Collection[str]) -> Cells | None:
        """The arrays of a list that the function has made of many equal items, or of an array."""
        span = found.held[0] if found.spans and len(found.held) == 1 else None
        if not isinstance(span, ListSlice) or not span.is_indexed or isinstance(span, OutsideSpan):
            return None
        if isinstance(span, RepeatedSpan) and span.value.value is None:
            return Cells((NONE,), (-1,), self.values.new_array("full", span.count, "int8", fill_value=0))
        rows = span.rows if isinstance(span, RepeatedSpan) else self._own(span.rows, changes)
        kind = f"np.{rows.type.dtype.name}" if span.kind == "scalar" else span.kind.__name__
        return Cells((kind,), (self._number_of(rows),))

    def _cells_from_outside(self, number: int, changes: Collection[str]) -> Cells | None:
        """The array that plain Python makes of a list's items before the graph runs."""
        found = self.values.lists[number]
        few = len(found.found) <= FEW_READ and not found.spans
        if few and not changes and found.source not in self.tx.symbols.measured:
            return None
        outside = found.numbers_outside(self.tx)
        if outside is None:
            return None
        array, kind = outside
        assert array.source is not None
        self.before[number] = array.source
        return Cells((kind.__name__,), (self._number_of(self._own(array.traced, changes)),))

    def _cells_of_items(self, number: int) -> Cells | None:
        """An array that the program fills before the loop."""
        items = self.items(number)
        del self.read[number]
        if not items or not is_number(items[0]) or any(item.kind != items[0].kind for item in items):
            return None
        return Cells((items[0].kind,), (self.values.filled(items),))

    def _own(self, rows: Traced, changes: Collection[str]) -> Traced:
        """A copy, where the loop changes it."""
        return Traced(self.tx.builder.op("copy_c", rows.node)) if changes else rows

    def _number_of(self, rows: Traced) -> int:
        self.values.arrays.append(self.tx.new_array(rows))
        return len(self.values.arrays) - 1

    def keep(self) -> None:
        """Gives lists the items that have replaced theirs."""
        changed = {what for what, _ in filter(_is_of_list, self.changed)}
        for number, cells in self.cells_of.items():
            found = self.values.lists[number]
            if id(found) in changed:
                self.tx.mutate(found)
                found.before = self.before.get(number, found.before)
                found.held[:] = [self._span(cells)]
                found.spans = True

    def _span(self, cells: Cells) -> ListSlice:
        """The items after the loop."""
        arrays = [None if number < 0 else self.values.arrays[number] for number in cells.arrays]
        if cells.tags >= 0:
            return MixedSpan(self.tx, cells.kinds, arrays, self.values.arrays[cells.tags])
        ((kind,), (array,)) = cells.kinds, arrays
        assert array is not None
        return ListSlice(self.tx, array, "scalar" if is_numpy(kind) else PYTHON[kind], None)

    def _room_of(self, number: int) -> Room:
        if number in self.read or number in self.cells_of or not is_own_list(self.values.lists[number]):
            raise Refused("a list that it reads, or that others have, changes")
        if number not in self.rooms:
            self.rooms[number] = Room(self.values.new_array("full", 1, "int64", fill_value=0))
        return self.rooms[number]

    def length(self, number: int) -> Room | int:
        """The length of a list, or the arrays of one that the loop appends to."""
        return len(self.items(number)) if self.values.lists[number].held else self._room_of(number)

    def room(self, t: Translator, number: int, item: V) -> Room:
        """The arrays for such items of a list."""
        room = self._room_of(number)
        always = self._is_always(t)
        if item.kind != room.kind:
            parts = item.kind[1] if item.kind[0] == "tuple" else (item.kind,)
            numbers = len(parts) > 0 and all(isinstance(part, str) for part in parts)
            if room.kind is not None or not numbers:
                raise Refused("a list of other items than numbers, or tuples of them, of one kind")
            room.kind = item.kind
            self.space(t, number)
            # Uninitialised: filling a large array before the first iteration would take long.
            room.arrays = [self.values.new_array("empty", room.size, dtype_of(part).name) for part in parts]
        room.places.add(t.at)
        room.counts |= not always
        return room

    def space(self, t: Translator, number: int) -> tuple[Room, V] | None:
        """The arrays of a list, and how many items they hold, before an append; None where all have room."""
        room = self._room_of(number)
        if room.size is None:
            room.size, room.may_be_full = self._most_items(self._is_always(t))
        return (room, self.values.size(t, room.size)) if room.may_be_full else None

    def _is_always(self, t: Translator) -> bool:
        """Whether each iteration executes the instruction that is translated."""
        return t is self.values.top and self.code.is_in_each_iteration(t.at)

    def fill(self, so_far: LateIterator | None = None, in_an_iteration: bool = False) -> None:
        """Gives the lists the items of all iterations, or those of the iterations before the next one.

        ``in_an_iteration``: those up to the middle of one.
        """
        for number, room in self.rooms.items():
            room.counts |= in_an_iteration
            if room.kind is not None:
                self._fill(self.values.lists[number], room, so_far)

    def _fill(self, found: SequenceValue, room: Room, so_far: LateIterator | None) -> None:
        tx = self.tx
        tx.mutate(found)
        found.spans = True
        if not room.counts and self.code.items is not None:
            kind = PYTHON.get(room.kind, "scalar")
            if so_far is not None:
                whole = ListSlice(tx, self.values.arrays[room.arrays[0]], kind, None)
                found.held.append(LateSpan(whole, len(room.places), so_far))
                return
            node = self.values.arrays[room.arrays[0]].traced.node
            rows = tx.builder.op("index", node, key=(slice(0, self.code.items.left * len(room.places)),))
            found.held.append(ListSlice(tx, tx.new_array(Traced(rows)), kind, None))
            return
        count = number_of(tx, "int", tx.builder.op("index", self.values.arrays[room.count].traced.node, key=(0,)))
        assert isinstance(count, ScalarValue)
        kinds = room.kind[1] if room.is_tuple else (room.kind,)
        found.held.append(CountedSpan(tx, [self.values.arrays[n] for n in room.arrays], kinds, room.is_tuple, count))

    def _most_items(self, always: bool) -> tuple[Any, bool]:
        """The items that a list has room for, to which ``always`` each iteration appends; and whether more may come."""
        code, appends = self.code, self.code.appends()
        most = ROOM if code.is_left_early() else MOST_ROOM
        if code.items is None or not appends or (code.has_loops_inside() and not always):
            return ROOM, True  # an iteration may append any number
        fits = always or bool(code.items.left * appends <= most)
        return (code.items.left * appends, False) if fits else (most, True)


__all__ = ["Lists"]
