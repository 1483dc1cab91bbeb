"""Items of a list that are held together: the rows of an array, or one number many times.

Input: the array, and what its rows are to Python; or the number.
Output: ``ListSlice``, which represents the items until they are read one by one, ``CountedSpan`` for a number of
items known only at run time, ``RepeatedSpan`` for ``[0.0] * n``, ``MixedSpan`` for items of several kinds, and
``OutsideSpan`` for a long list from outside.
Why: a list may have thousands of items, and most lists are made into an array, returned, or indexed by loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcompile.capture.guards.kinds import sized
from tcompile.capture.guards.list_numbers import numbers_in, source_of_numbers
from tcompile.capture.guards.sources import ItemSource, Source
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import MAX_ITEMS, Context, LazyValue, Rebuilder, Value, settled
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue
from tcompile.capture.values.scalar import ScalarValue, number_value, of_kind
from tcompile.capture.values.slices import SliceValue
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Node
from tcompile.graph.ops.scalar_loop import DTYPES, is_numpy
from tcompile.graph.ops.view import slice_bounds, slice_length
from tcompile.graph.sizes import Size

MOST_READ = 1024  # items that are read one by one
FEW_ITEMS = 16  # of a list of numbers: up to this number each is a value of its own


class ListSlice(Value):
    """Items of a list that are the rows of ``array``, appended by a loop's iterations. The array has no alias.

    ``kind`` is the kind of the items: an ``array``, a ``scalar`` of the library, or a number's class. ``last`` is the
    array object that is the last item, where a variable holds it as well.
    """

    def __init__(self, tx: Context, array: ArrayValue, kind: Any, last: ArrayValue | None) -> None:
        self.tx, self.array, self.kind, self.final = tx, array, kind, last
        self._version = last.memory.version if last is not None and last.memory is not None else 0

    @property
    def size(self) -> Size:
        """How many items there are."""
        return self.array.traced.type.shape[0]

    @property
    def rows(self) -> Traced:
        """The array. Raises CannotCapture where the last item was written to since."""
        if self.final is not None and self.final.memory is not None and self.final.memory.version != self._version:
            raise CannotCapture("loop-mismatch", "an item of a list was written to")
        return self.array.traced

    @property
    def is_indexed(self) -> bool:
        """Whether an array has the items, which are numbers, one by one."""
        return self.kind != "array" and self.final is None

    @property
    def has_equal_slices(self) -> bool:
        """Whether a slice may have other objects than the list: equal ints are alike, and NaNs are not."""
        return self.is_indexed and self.kind in (bool, int)

    def items(self) -> list[Value]:
        """Each item as a value of its own; an open number of them is fixed with a guard."""
        size = self.size
        count = size if isinstance(size, int) else size.specialise()
        if count > MOST_READ:
            raise CannotCapture("too-long", f"{count} items of a list are read one by one.")
        return [self._item(i) for i in range(count - (self.final is not None))] + (
            [] if self.final is None else [self.final]
        )

    def _item(self, position: int) -> Value:
        node = self.tx.builder.op("index", self.array.traced.node, key=(position,))
        return of_kind(self.tx, self.kind, self.tx.builder.op("copy_c", node) if self.kind == "array" else node)

    def at(self, tx: Context, key: Value) -> Value | None:
        """The item at an int; None where the items have to be read one by one."""
        if not self.is_indexed or not _is_place(key):
            return None
        found = self.array.item(tx, key)
        assert isinstance(found, ArrayValue)
        return found if self.kind == "scalar" else number_value(tx, found.traced.node, self.kind)

    def replaced(self, tx: Context, key: Value, value: Value) -> ListSlice | None:
        """The same items but for the one at ``key``; None where they have to be read one by one."""
        if tx.open_loops or not self.is_indexed or not _is_place(key) or number_kind(value) is not self.kind:
            return None
        array = _new_array(tx, tx.builder.op("copy_c", self.array.traced.node))
        array.store_item(tx, key, value)
        return ListSlice(tx, array, self.kind, None)

    def cut(self, tx: Context, key: SliceValue) -> ListSlice:
        """The items of a slice."""
        rows = self.rows
        array = tx.new_array(rows)
        assert isinstance(array, ArrayValue)
        found = array.item(tx, key)
        assert isinstance(found, ArrayValue)
        return ListSlice(tx, _new_array(tx, tx.builder.op("copy_c", found.traced.node)), self.kind, None)

    def starred(self, program: Rebuilder) -> list[str]:
        """The items in a list's display."""
        return self.displayed(program, program.rebuild(self.array))

    def displayed(self, program: Rebuilder, rows: str) -> list[str]:
        """The items that are so many rows of the array, in a list's display."""
        if self.kind == "array":
            copy_of = getattr(self.array.python_type, "copy")  # noqa: B009  # of the array's class
            copies = f"*map({program.constant(copy_of)}, {rows}{'' if self.final is None else '[:-1]'})"
            return [copies, *([] if self.final is None else [program.rebuild(self.final)])]
        return [f"*{rows}" if self.kind == "scalar" else f"*{rows}.tolist()"]


class OutsideSpan(ListSlice):
    """All items of a long list from outside, which are numbers of the class ``kind``.

    An array has them where a loop goes along them or indexes them. One that is read by a known index is loaded alone.
    """

    def __init__(self, tx: Context, values: list[Any], source: Source) -> None:
        self.tx, self.place, self.kind, self.final = tx, source, type(values[0]), None
        self.values: Callable[[], list[Any]] = lambda: values  # in a function: what looks for values passes it over
        self._length: Size | None = None

    @property
    def array(self) -> ArrayValue:  # type: ignore[override]  # made when it is asked for
        """The items."""
        found = array_of_numbers(self.tx, self.values(), self.place)
        if found is None:
            raise CannotCapture("unsupported-object", "a list of ints of more than 64 bits")
        return found

    @property
    def size(self) -> Size:
        """How many items there are. The number is guarded, or open where it has been seen to vary."""
        if self._length is None:
            values, source = self.values(), self.place
            self._length = self.tx.symbols.of_length(len(values), source)
            if self._length is None:
                words, self._length = sized(values), len(values)
                code = f"len({{}}) == {len(values)}"
                self.tx.prologue.guard(source, code, f"{source.text} is {words}", words, "length")
        return self._length

    @property
    def has_equal_slices(self) -> bool:
        """A slice has the same objects."""
        return False

    def items(self) -> list[Value]:
        """They are too many."""
        raise CannotCapture("too-long", f"{len(self.values())} items of a list are read one by one.")

    def at(self, tx: Context, key: Value) -> Value | None:
        """The item at a known place."""
        place, values = key.value if isinstance(key, Constant) else None, self.values()
        if type(place) is not int or not -len(values) <= place < len(values):
            return None
        return settled(tx, LazyValue(values[place], ItemSource(self.place, place)))

    def replaced(self, tx: Context, key: Value, value: Value) -> ListSlice | None:
        """Python replaces one item without the others."""
        return None

    def starred(self, program: Rebuilder) -> list[str]:
        """The items in a list's display."""
        return [f"*{program.load(self.place)}"]


def array_of_numbers(tx: Context, values: list[Any], source: Source) -> ArrayValue | None:
    """The array that plain Python makes of the list at ``source`` before the graph runs, under guards.

    ``values`` are its items, numbers of one class. None where they have too many bits.
    """
    made = numbers_in(values)
    if made is None:
        return None
    place, words = source_of_numbers(source), f"a list of {type(values[0]).__name__}s"
    code = f"{{}} is not None and {{}}.dtype is {tx.prologue.constant(made.dtype)}"
    tx.prologue.guard(place, code, f"{source.text} is {words}", words, "numbers")
    array = tx.wrap(made, place)
    assert isinstance(array, ArrayValue)
    return array


class CountedSpan(ListSlice):
    """The first ``count`` elements of arrays as items of a list, appended by some of a loop's iterations.

    ``kinds`` are those of an element of each array (``graph.ops.scalar_loop``). There are several where the items are
    tuples.
    """

    def __init__(
        self, tx: Context, arrays: Sequence[ArrayValue], kinds: Sequence[str], is_tuple: bool, count: ScalarValue
    ) -> None:
        super().__init__(tx, arrays[0], None, None)
        self.arrays, self.kinds, self.is_tuple, self.count = arrays, kinds, is_tuple, count

    @property
    def size(self) -> Size:
        """Unknown: raises CannotCapture."""
        raise self._refusal("the length of")

    @property
    def rows(self) -> Traced:
        """No array of a known size."""
        raise self._refusal("an array of")

    @property
    def is_indexed(self) -> bool:
        """The number of items is not known."""
        return False

    def items(self) -> list[Value]:
        """They are Python's to read."""
        raise self._refusal("the items of")

    def at(self, tx: Context, key: Value) -> Value | None:
        """They are Python's to read."""
        return None

    def replaced(self, tx: Context, key: Value, value: Value) -> ListSlice | None:
        """They are Python's to write."""
        return None

    @staticmethod
    def _refusal(what: str) -> CannotCapture:
        return CannotCapture(
            "data-dependent-shape", f"{what} a list that a loop has appended to in some iterations only"
        )

    def starred(self, program: Rebuilder) -> list[str]:
        """The items in a list's display."""
        count = program.rebuild(self.count)
        columns = [
            f"{program.rebuild(array)}[:{count}]{'' if is_numpy(kind) else '.tolist()'}"
            for array, kind in zip(self.arrays, self.kinds, strict=True)
        ]
        return [f"*{program.constant(zip)}({', '.join(columns)})" if self.is_tuple else f"*{columns[0]}"]


class MixedSpan(ListSlice):
    """Items of several ``kinds`` (``graph.ops.scalar_loop``, and None): ``tags`` tells for each which one it has.

    There is an array for each kind but None, and all have the list's length.
    """

    def __init__(
        self, tx: Context, kinds: Sequence[str], arrays: Sequence[ArrayValue | None], tags: ArrayValue
    ) -> None:
        super().__init__(tx, tags, None, None)
        self.kinds, self.arrays = kinds, arrays

    @property
    def is_indexed(self) -> bool:
        """An item may be of several kinds."""
        return False

    @property
    def rows(self) -> Traced:
        """The array, where all kinds have the same."""
        first = self.arrays[0]
        if first is None or any(array is not first for array in self.arrays):
            raise self._refusal()
        return first.traced

    def items(self) -> list[Value]:
        """They are Python's to read."""
        raise self._refusal()

    def at(self, tx: Context, key: Value) -> Value | None:
        """They are Python's to read."""
        return None

    def replaced(self, tx: Context, key: Value, value: Value) -> ListSlice | None:
        """They are Python's to write."""
        return None

    @staticmethod
    def _refusal() -> CannotCapture:
        return CannotCapture("loop-mismatch", "a loop has given a list items of several kinds, which are read")

    def built(self, program: Rebuilder) -> str:
        """Code for a list of the items."""
        columns = [
            "None" if array is None else f"{program.rebuild(array)}{'' if is_numpy(kind) else '.tolist()'}"
            for array, kind in zip(self.arrays, self.kinds, strict=True)
        ]
        return f"{program.constant(_mixed)}({program.rebuild(self.array)}, ({', '.join(columns)},))"

    def starred(self, program: Rebuilder) -> list[str]:
        """The items in a list's display."""
        return [f"*{self.built(program)}"]


def _mixed(tags: Any, columns: Sequence[Any]) -> list[Any]:
    """The items whose columns ``tags`` tells.

    >>> import numpy as np
    >>> _mixed(np.array([1, 0]), ([1, 2], None))
    [None, 2]
    """
    counts = [int((tags == number).sum()) for number in range(len(columns))]
    most = counts.index(max(counts))
    column = columns[most]
    items = [None] * len(tags) if column is None else list(column)
    for number, column in enumerate(columns):
        if number != most and counts[number]:
            for place in (tags == number).nonzero()[0].tolist():
                items[place] = None if column is None else column[place]
    return items


class RepeatedSpan(ListSlice):
    """The items of ``[value] * count``; those that were ``others`` since are numbers of the same class.

    The value is a number, or None.
    """

    def __init__(self, tx: Context, value: Constant, count: Size, others: Mapping[int, Value]) -> None:
        self.tx, self.value, self.count, self.others = tx, value, count, others
        self.kind, self.final = type(value.value), None

    @property
    def size(self) -> Size:
        """How many items there are."""
        return self.count

    @property
    def rows(self) -> Traced:
        """A new array of them."""
        tx, fill = self.tx, self.value.value
        if fill is None:
            raise CannotCapture("unsupported-object", "an array of a list of None")
        node = tx.builder.op("full", shape=(self.count,), fill_value=fill, dtype=DTYPES[self.kind.__name__])
        array = _new_array(tx, node)
        for position, other in self.others.items():
            array.store_item(tx, Constant(position), other)
        rows: Traced = array.traced
        return rows

    @property
    def has_equal_slices(self) -> bool:
        """A slice has the same number, where all are it."""
        return not self.others or self.kind in (bool, int)

    def items(self) -> list[Value]:
        """Each item as a value of its own."""
        count = self.count if isinstance(self.count, int) else self.count.specialise()
        if count > MAX_ITEMS:
            raise CannotCapture("too-long", f"{count} items of a list are read one by one.")
        return [self.others.get(i, self.value) for i in range(count)]

    def at(self, tx: Context, key: Value) -> Value | None:
        """The item at a known place."""
        place = self._place(key)
        return None if place is None else self.others.get(place, self.value)

    def replaced(self, tx: Context, key: Value, value: Value) -> ListSlice | None:
        """The same items but for the one at a known place."""
        place = self._place(key)
        if place is None or number_kind(value) is not self.kind:
            return None
        return RepeatedSpan(tx, self.value, self.count, {**self.others, place: value})

    def _place(self, key: Value) -> int | None:
        """The position of a known index from the start; None of any other index, or outside of the list."""
        if not isinstance(key, Constant) or type(key.value) is not int:
            return None
        place: int = key.value
        if place < 0:
            if not isinstance(self.count, int):
                return None
            place += self.count
        return place if place >= 0 and bool(self.count > place) else None

    def cut(self, tx: Context, key: SliceValue) -> ListSlice:
        """The items of a slice: the same number, where all are it."""
        if self.others:
            return super().cut(tx, key)
        return RepeatedSpan(tx, self.value, slice_length(*slice_bounds(key.constant(), self.count)), {})

    def starred(self, program: Rebuilder) -> list[str]:
        """The items in a list's display."""
        value, count = program.rebuild(self.value), f"({self.count})"
        if not self.others:
            return [f"*([{value}] * {count})"]
        others = ", ".join(f"{place}: {program.rebuild(other)}" for place, other in self.others.items())
        return [f"*{program.constant(_repeated)}({value}, {count}, {{{others}}})"]


def _repeated(value: Any, count: int, others: Mapping[int, Any]) -> list[Any]:
    """``[value] * count`` with some other items.

    >>> _repeated(0, 3, {1: 5})
    [0, 5, 0]
    """
    made = [value] * count
    for place, other in others.items():
        made[place] = other
    return made


def number_kind(value: Value) -> type | None:
    """The class of one of Python's numbers, whether known or computed; None of any other value."""
    kind = type(value.value) if isinstance(value, Constant) else None
    if isinstance(value, FloatValue | IntegerValue | ScalarValue):
        kind = value.python_type
    return kind if kind in (bool, int, float) else None


def _new_array(tx: Context, node: Node) -> ArrayValue:
    made = tx.new_array(Traced(node))
    assert isinstance(made, ArrayValue)
    return made


def _is_place(key: Value) -> bool:
    return isinstance(key, IntegerValue) or number_kind(key) is int


__all__ = [
    "FEW_ITEMS", "MOST_READ", "CountedSpan", "ListSlice", "MixedSpan", "OutsideSpan", "RepeatedSpan",
    "array_of_numbers", "number_kind",
]  # fmt: skip
