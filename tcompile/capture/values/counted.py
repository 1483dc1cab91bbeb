"""Iterators with random access: ranges, an array's rows, a text's characters, and combinations of these.

Input: a range, an array, a str, or other such iterators.
Output: the item at an index that may be symbolic.
Why: a loop over such an iterator can be one node of the graph, whose induction variable is a symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, LazyValue, Value, settled
from tcompile.capture.values.callable import IteratorValue
from tcompile.capture.values.constant import Constant, IntegerValue, integer
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.slices import RangeValue, index_of
from tcompile.capture.values.span import MOST_READ
from tcompile.frontends.base import CannotCapture
from tcompile.graph.ops.creation import arange_length
from tcompile.graph.sizes import Size, same

if TYPE_CHECKING:
    from tcompile.capture.context.loop_plan import LoopPlan


class Counted(IteratorValue):
    """Such an iterator. What becomes of the loop over it is open until that is ``decided``."""

    is_symbolic = True  # whether an item is known whose number is a symbol

    def __init__(self, tx: Context, count: Size, decided: bool = False) -> None:
        super().__init__(tx, iter(()))
        self._count = count
        self.iterations: Size = 0  # those that are done
        self.plan: LoopPlan | None = None
        self.decided = decided
        self.scalar = False  # whether it has to be scalar code
        self.unknown = ""  # why its position is unknown, where it is: no further item is taken then

    @property
    def count(self) -> Size:
        """How many items there are."""
        return self._count

    def at(self, position: Size) -> Value:
        """The item with this number, from 0."""
        raise NotImplementedError

    def check_unrolled(self) -> None:
        """Called where the items are walked through. Raises CannotCapture where they are too many for that."""

    @property
    def left(self) -> Size:
        """How many items are left."""
        if self.unknown:
            raise CannotCapture("unknown-function", f"`next` of {self.describe()} that {self.unknown}")
        return self.count - self.iterations

    def number(self, position: Size) -> Value:
        """The item that comes after as many others."""
        return self.at(self.iterations + position)

    def skip(self, count: Size) -> None:
        """Leaves out so many items."""
        self.tx.touch()
        self.iterations = self.iterations + count

    def leave(self, early: bool) -> None:
        """A node of the graph has gone along it: to its end, or perhaps not that far."""
        self.skip(self.left)
        if early:
            self.unknown = "a loop may have left in the middle"

    def __next__(self) -> Value:
        self.tx.touch()
        self.taken += 1
        left = self.left
        if self.decided and not isinstance(left, int):
            left.specialise()
        if not left > 0:
            if self.plan is not None:
                self.plan.finished = True
            raise StopIteration
        self.check_unrolled()
        found = self.number(0)
        self.iterations = self.iterations + 1
        return found


class RangeIterator(Counted):
    """The iterator of a range, whose bounds may stay symbolic."""

    def __init__(self, tx: Context, values: RangeValue) -> None:
        if not isinstance(values.step, int):
            values.step = values.step.specialise()
        try:
            count = arange_length(values.start, values.stop, values.step)
        except OverflowError as error:
            raise CannotCapture("operation-raises", str(error)) from error
        super().__init__(tx, count, values.unrolled)
        self.values = values
        self.scalar = values.scalar

    def at(self, position: Size) -> Value:
        """The number."""
        return integer(self.values.start + self.values.step * position)


class RowIterator(Counted):
    """The rows of an array, or the elements of one of rank 1; from the last one where it goes ``backwards``."""

    def __init__(self, tx: Context, array: ArrayValue, backwards: bool = False) -> None:
        shape = array.traced.type.shape
        if not shape:
            raise CannotCapture("operation-raises", "iteration over a 0-d array")
        super().__init__(tx, shape[0])
        self.array, self.backwards = array, backwards

    def at(self, position: Size) -> Value:
        """The row, as it is now."""
        return self.array.item(self.tx, integer(self.count - 1 - position if self.backwards else position))

    def check_unrolled(self) -> None:
        """Many rows are not walked through in the graph."""
        if self.decided and not self.taken > 1:
            self.array.check_rows(self.tx)


class TextIterator(Counted):
    """The characters of a str, which may be unread."""

    is_symbolic = False

    def __init__(self, tx: Context, text: Constant | LazyValue) -> None:
        length = text.length(tx)
        super().__init__(tx, length.size if isinstance(length, IntegerValue) else constant_of(length, "a length"))
        self.text = text

    def at(self, position: Size) -> Value:
        """The character, of a text that becomes a constant. Python reads one that varies."""
        if isinstance(self.text, LazyValue):
            place, dynamic = f"the text of {self.text.source.text}", self.tx.options.dynamic
            if self.tx.profile.is_open(place, hash(self.text.value), dynamic):
                detail = f"{self.text.describe()}, which is gone through, is another text in each call"
                raise CannotCapture("unsupported-object", detail)
        return settled(self.tx, self.text).item(self.tx, integer(position))


class ListIterator(Counted):
    """The items of a list of many numbers, as they are when they are taken."""

    is_symbolic = False

    def __init__(self, tx: Context, items: SequenceValue) -> None:
        super().__init__(tx, 0)
        self.items = items

    @property
    def count(self) -> Size:
        """How many items there are now."""
        length = self.items.length(self.tx)
        return length.size if isinstance(length, IntegerValue) else index_of(length)

    def at(self, position: Size) -> Value:
        """The item."""
        return self.items.item(self.tx, integer(position))

    def check_unrolled(self) -> None:
        """Many items are not walked through in the graph."""
        if not self.taken > 1 and self.count > MOST_READ:
            raise CannotCapture("too-long", f"{self.count} items of a list are read one by one.")


class Enumerated(Counted):
    """``enumerate`` of such an iterator without another reference."""

    def __init__(self, tx: Context, items: Counted, start: int) -> None:
        super().__init__(tx, items.count)
        self.items, self.start, self.is_symbolic = items, start, items.is_symbolic

    def at(self, position: Size) -> Value:
        """The number and the item."""
        return SequenceValue([integer(self.start + position), self.items.at(position)], tuple)

    def check_unrolled(self) -> None:
        """As its items say."""
        self.items.taken, self.items.decided = self.taken, self.decided
        self.items.check_unrolled()


class Zipped(Counted):
    """``zip`` of such iterators, the shortest of which has ``count`` items, without other references."""

    def __init__(self, tx: Context, columns: Sequence[Counted], count: Size) -> None:
        super().__init__(tx, count)
        self.columns = columns
        self.is_symbolic = all(column.is_symbolic for column in columns)

    def at(self, position: Size) -> Value:
        """The items."""
        return SequenceValue([column.at(position) for column in self.columns], tuple)

    def check_unrolled(self) -> None:
        """As its columns say."""
        for column in self.columns:
            column.taken, column.decided = self.taken, self.decided
            column.check_unrolled()


def counted(tx: Context, value: Value) -> Counted | None:
    """A new iterator over a value whose items are known by their positions; None where they are not."""
    if isinstance(value, Constant | LazyValue) and type(value.value) is str:
        return TextIterator(tx, value)
    value = settled(tx, value)
    if isinstance(value, RangeValue):
        return RangeIterator(tx, value)
    if isinstance(value, ArrayValue):
        return RowIterator(tx, value)
    if _is_list(tx, value):
        assert isinstance(value, SequenceValue)
        return ListIterator(tx, value)
    if isinstance(value, Counted) and not value.unknown and same(value.iterations, 0):
        value.unknown = "something else goes along"
        return value
    return None


def _is_list(tx: Context, value: Value) -> bool:
    return isinstance(value, SequenceValue) and value.has_many_numbers(tx)


def zipped(tx: Context, values: Sequence[Value], strict: bool = False) -> Zipped | None:
    """``zip`` of such values; None where they are others, or where it raises."""
    values = [settled(tx, value) for value in values]
    if not values or not all(isinstance(value, RangeValue | ArrayValue) or _is_list(tx, value) for value in values):
        return None
    columns = [found for value in values if (found := counted(tx, value)) is not None]
    shortest = columns[0].count
    for column in columns[1:]:
        count = column.count
        if not same(count, shortest):
            if strict:
                return None
            shortest = count if count < shortest else shortest
    return Zipped(tx, columns, shortest)


__all__ = [
    "Counted",
    "Enumerated",
    "ListIterator",
    "RangeIterator",
    "RowIterator",
    "TextIterator",
    "Zipped",
    "counted",
    "zipped",
]
