"""Tuples and lists, and the base of all containers.

Input: items, or a container from outside.
Output: values with Python's container operations.
Why: a container made inside the function has no aliases outside, so it may be changed freely. One from outside is read
under guards, item by item; its changes are visible to later reads, and are done after the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tcompile.capture.guards.list_numbers import has_numbers, replace_numbers
from tcompile.capture.guards.sources import ItemSource, Source, VaryingItemSource
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Deferred, LazyValue, Rebuilder, Value, named, settled
from tcompile.capture.values.callable import BuiltinMethod
from tcompile.capture.values.classes import answers_in_python, class_attribute
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue, integer
from tcompile.capture.values.slices import SliceValue, count_of, index_of
from tcompile.capture.values.span import FEW_ITEMS, CountedSpan, ListSlice, MixedSpan, OutsideSpan, array_of_numbers
from tcompile.frontends.base import CannotCapture, Stacked, Traced


class SequenceValue(Value):
    """A tuple or list; ``cls`` says which. A named tuple keeps its class.

    What came in from outside holds its items unread until they are asked for. After a loop whose iterations appended to
    it, a list has ``spans`` among its items; in such an iteration, what is appended is ``collecting``, and nothing is
    read.
    """

    def __init__(self, items: list[Value], cls: type, source: Source | None = None) -> None:
        self._items = items
        self.cls = cls
        self.source = source
        self.original: tuple[Any, ...] | None = None  # the object itself, where it is a constant of the code
        self._tx: Context | None = None  # where items may be unread
        self.found: tuple[Value, ...] = ()
        self._loosen: Callable[[], Callable[[], None]] | None = None  # until anything depends on the length
        self._tighten: Callable[[], None] | None = None  # guards the length again
        self.spans = False
        self.before: Source | None = None  # of the array of the items from outside, before those that are now there
        self.collecting: list[Value] | None = None

    @staticmethod
    def outside(
        tx: Context, items: list[Value], cls: type, source: Source, loosen: Callable[[], Callable[[], None]]
    ) -> SequenceValue:
        """A container found at ``source``; ``items`` are read, and guarded, when they are asked for.

        ``loosen`` gives up the guard on the length, where a list was only appended to; it returns what guards it again.
        """
        value = SequenceValue(items, cls, source)
        value._tx, value.found, value._loosen = tx, tuple(items), loosen
        return value

    @staticmethod
    def of_numbers(tx: Context, values: list[Any], source: Source) -> SequenceValue:
        """A long list found at ``source``, whose items are numbers of one class."""
        value = SequenceValue([OutsideSpan(tx, values, source)], list, source)
        value.spans = True
        return value

    @staticmethod
    def holding(tx: Context, items: list[Value], cls: type) -> SequenceValue:
        """A container that is made of ``items``, which may be deferred."""
        value = SequenceValue(items, cls)
        value._tx = tx
        return value

    @property
    def items(self) -> list[Value]:
        """All items."""
        self._read()
        if self._tx is not None:
            for position in range(len(self._items)):
                self._settled_at(position)
            self._tx = None
        return self._items

    @property
    def held(self) -> list[Value]:
        """The items as they are held, spans and what is unread among them."""
        return self._items

    def _read(self) -> None:
        """Something depends on the items, or on how many there are."""
        self._loosen = None
        if self._tighten is not None:
            self._tighten()
            self._tighten = None
        if self.collecting is not None:
            raise CannotCapture("loop-mismatch", "a list is read in an iteration that appends to it")
        if self.spans:
            spans = [item for item in self._items if isinstance(item, ListSlice)]
            parts = [item.items() if isinstance(item, ListSlice) else [item] for item in self._items]
            spans[0].tx.touch()  # a step that has read items cannot be taken back
            self._items[:], self.spans = [item for part in parts for item in part], False

    def __len__(self) -> int:
        self._read()
        return len(self._items)

    def at(self, position: int) -> Value:
        """One item."""
        self._read()
        return self._settled_at(position)

    def unpacked(self) -> list[Value]:
        """All items; texts among them wait until they are asked for."""
        self._read()
        return [
            item if isinstance(item, Deferred) and item.is_text else self._settled_at(position)
            for position, item in enumerate(self._items)
        ]

    def _settled_at(self, position: int) -> Value:
        item = self._items[position]
        if isinstance(item, Deferred):
            assert self._tx is not None
            item = self._items[position] = settled_in(self, item, self._tx)
        return item

    @property
    def python_type(self) -> type:
        """tuple, list or a named tuple's class."""
        return self.cls

    def describe(self) -> str:
        """The kind and, where there is one, the user's name."""
        return named(self.source, f"a {self.cls.__name__}")

    def export(self, tx: Context) -> Any:
        """The same container of exported items."""
        if self.spans:
            parts = [item.rows if isinstance(item, ListSlice) else settled(tx, item).export(tx) for item in self._items]
            return Stacked(parts, tuple(isinstance(item, ListSlice) for item in self._items))
        items = [item.export(tx) for item in self.items]
        return self.cls(*items) if hasattr(self.cls, "_fields") else self.cls(items)

    def as_key(self, tx: Context) -> Any:
        """A tuple's parts are keys by themselves where the graph computes one of them."""
        if self.cls is not tuple:
            return super().as_key(tx)
        items = self.items
        nodes = [item.computed_int(tx) for item in items]
        if all(node is None for node in nodes):
            return self.export(tx)
        pairs = zip(items, nodes, strict=True)
        return tuple(item.export(tx) if node is None else Traced(node, scalar=True) for item, node in pairs)

    def attribute(self, tx: Context, name: str) -> Value:
        """A named tuple's field, or a built-in method."""
        fields = getattr(self.cls, "_fields", ())
        if name in fields:
            return self.at(fields.index(name))
        if fields:
            return class_attribute(tx, self, self.cls, name)
        if hasattr(self.cls, name):
            return BuiltinMethod(self, name)
        raise CannotCapture("operation-raises", f"{self.cls.__name__} has no attribute {name!r}")

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The list and tuple methods."""
        if self.collecting is not None and name == "append" and len(args) == 1 and not kwargs:
            self.collecting.append(settled(tx, args[0]))
            return Constant(None)
        run = _LIST_METHODS.get((name, len(args))) if self.cls is list else None
        if name == "sort" and self.cls is list and not args and kwargs.keys() <= {"key", "reverse"}:
            return self._sort(tx, kwargs)
        if kwargs:
            return super().method(tx, name, args, kwargs)
        if run is not None:
            return run(self, tx, *args)
        if name == "count" and len(args) == 1:
            return Constant(sum(tx.equal(item, args[0]) for item in list(self.items)))
        if name == "index" and 1 <= len(args) <= 3:
            start, stop = ([index_of(arg) for arg in args[1:]] + [0, len(self)][len(args) - 1 :])[:2]
            for position in range(*slice(start, stop).indices(len(self))):
                if tx.equal(self.at(position), args[0]):
                    return Constant(position)
            raise CannotCapture("operation-raises", f"{args[0].describe()} is not in {self.describe()}")
        return super().method(tx, name, args, kwargs)

    def _append(self, tx: Context, value: Value) -> Value:
        tx.mutate(self)
        self._tx = tx  # the value may be deferred
        self._items.append(value)
        return Constant(None)

    def _extend(self, tx: Context, values: Value) -> Value:
        more = list(values.items) if isinstance(values, SequenceValue) else values.collect(tx)
        tx.mutate(self)
        for value in more:  # one by one, as the iterator may look at the list
            self._items.append(value)
        return Constant(None)

    def _insert(self, tx: Context, position: Value, value: Value) -> Value:
        where = count_of(position)
        tx.mutate(self)
        self.items.insert(where, value)
        return Constant(None)

    def _pop(self, tx: Context, position: Value | None = None) -> Value:
        where = index_of(position) if position is not None else -1
        if not -len(self) <= where < len(self):
            raise CannotCapture("operation-raises", "pop index out of range")
        value = self.at(where)
        tx.mutate(self)
        del self._items[where]
        return value

    def _remove(self, tx: Context, value: Value) -> Value:
        position = self.method(tx, "index", [value], {})
        assert isinstance(position, Constant)
        tx.mutate(self)
        del self._items[position.value]
        return Constant(None)

    def _reverse(self, tx: Context) -> Value:
        tx.mutate(self)
        self.items.reverse()
        return Constant(None)

    def _clear(self, tx: Context) -> Value:
        tx.mutate(self)
        self.items.clear()
        return Constant(None)

    def _copy(self, tx: Context) -> Value:
        return SequenceValue(list(self.items), list)

    def _sort(self, tx: Context, kwargs: Mapping[str, Value]) -> Value:
        values = list(self.items)
        tx.mutate(self)
        self._items = []  # as the functions called by list.sort see it
        found = tx.ordered(values, kwargs.get("key"), kwargs.get("reverse"))
        if self._items:
            raise CannotCapture("operation-raises", "list modified during sort")
        self._items = found
        return Constant(None)

    def item(self, tx: Context, key: Value) -> Value:
        """One item, or a new container for a slice."""
        if isinstance(key, SliceValue):
            cut = self._cut(tx, key)
            if cut is not None:
                return cut
            items = self.items[key.constant()]
            if self.cls is tuple and len(items) == len(self) and key.constant().step in (None, 1):
                return self  # no new tuple
            return SequenceValue(items, list if self.cls is list else tuple)
        whole = self._whole_span()
        found = self._at_any_place(tx, key) if whole is None else whole.at(tx, key)
        if found is not None:
            return found
        position = index_of(key)
        found = self._of_any_length(tx, position)
        if found is not None:
            return found
        if not -len(self) <= position < len(self):
            raise CannotCapture("operation-raises", f"{self.cls.__name__} index out of range")
        return self.at(position)

    def _cut(self, tx: Context, key: SliceValue) -> Value | None:
        """A slice of many ints or bools that are held together, or of one number many times.

        None of other lists: a slice of floats has the very same objects, by which NaNs compare as equal.
        """
        whole = self._whole_span()
        if whole is None or not whole.has_equal_slices:
            return None
        made = SequenceValue([whole.cut(tx, key)], list)
        made.spans = True
        return made

    def _whole_span(self) -> ListSlice | None:
        """The span that all items are, if they are one."""
        whole = self._items[0] if self.spans and len(self._items) == 1 and self.collecting is None else None
        return whole if isinstance(whole, ListSlice) else None

    def has_many_numbers(self, tx: Context) -> bool:
        """Whether it is a list of more than a few numbers of a class, held together or from outside."""
        if self.cls is not list or self.collecting is not None:
            return False
        if self.spans:
            whole = self._whole_span()
            return whole is not None and whole.is_indexed and whole.kind is not type(None)
        return len(self.found) > FEW_ITEMS and self._values_outside(tx) is not None

    def numbers_outside(self, tx: Context) -> tuple[ArrayValue, type] | None:
        """The items of a list from outside as an array that plain Python makes before the graph runs, and their class.

        None where they are no numbers of one class, or have changed.
        """
        values = self._values_outside(tx)
        if values is None:
            return None
        assert self.source is not None
        array = array_of_numbers(tx, values, self.source)
        if array is None:
            return None
        self.loosen()
        return array, type(values[0])

    def _values_outside(self, tx: Context) -> list[Any] | None:
        """The items of a list from outside that has not changed, where they are numbers of one class."""
        if self.source is None or self.cls is not list or id(self) in tx.mutated:
            return None
        whole = self._whole_span()
        if isinstance(whole, OutsideSpan):
            return whole.values()
        values = [item.value for item in self.found if isinstance(item, LazyValue)]
        return values if len(values) == len(self.found) and has_numbers(values) else None

    def _at_any_place(self, tx: Context, key: Value) -> Value | None:
        """The item at an index that varies, of a list from outside as it was there; None of any other container."""
        if self.source is None or id(self) in tx.mutated or not isinstance(key, IntegerValue):
            return None
        place, position = tx.key_source(key), key.size.hint
        if place is None or not -len(self.found) <= position < len(self.found):
            return None
        item = self.found[position]
        assert isinstance(item, LazyValue) and self.source is not None
        return found_at(tx, item, VaryingItemSource(self.source, *place))

    def _of_any_length(self, tx: Context, position: int) -> Value | None:
        """The item at a position of a list from outside, as it has been appended to, whose length varies.

        None where all depends on its length: it is no such list, or is not long enough.
        """
        if self.cls is not list or self._loosen is None or self.spans:
            return None
        added = len(self._items) - len(self.found)
        if -added <= position < 0:
            return self._settled_at(position)
        after = -position - added  # items from outside that come after it, and itself
        if not -len(self.found) <= -after < 0 and not 0 <= position < len(self.found):
            return None
        assert self.source is not None
        size = tx.symbols.of_length(len(self.found), self.source)
        if size is None or not (size > position if position >= 0 else size >= after):
            return None
        if position >= 0:
            return self._settled_at(position)
        item = self.found[len(self.found) - after]
        assert isinstance(item, LazyValue)
        return found_at(tx, item, ItemSource(self.source, -after))

    def store_item(self, tx: Context, key: Value, value: Value) -> None:
        """Replaces items of a list."""
        if self.cls is not list:
            super().store_item(tx, key, value)
        if isinstance(key, SliceValue):
            where, values = key.constant(), list(through_iterator(tx, value))
            if where.step not in (None, 1) and len(range(*where.indices(len(self)))) != len(values):
                raise CannotCapture("operation-raises", "attempt to assign a sequence of another size to a slice")
            tx.mutate(self)
            self.items[where] = values
            return
        whole = self._whole_span()
        span = None if whole is None else whole.replaced(tx, key, value)
        if span is not None:
            tx.mutate(self)
            self._items[0] = span
            return
        position = index_of(key)
        if not -len(self) <= position < len(self):
            raise CannotCapture("operation-raises", "list assignment index out of range")
        tx.mutate(self)
        self._items[position] = value

    def delete_item(self, tx: Context, key: Value) -> None:
        """Deletes items of a list."""
        if self.cls is not list:
            super().delete_item(tx, key)
        where = key.constant() if isinstance(key, SliceValue) else index_of(key)
        if isinstance(where, int) and not -len(self) <= where < len(self):
            raise CannotCapture("operation-raises", "list assignment index out of range")
        tx.mutate(self)
        del self.items[where]

    def truth(self, tx: Context) -> bool:
        """Whether it has items."""
        return self.length(tx).truth(tx)

    def length(self, tx: Context) -> Value:
        """The number of items. That of a list from outside stays open where it varies and no item is read."""
        if self.spans:
            if len(self._items) == 1 and isinstance(self._items[0], CountedSpan):
                return self._items[0].count
            return integer(sum((item.size if isinstance(item, ListSlice) else 1 for item in self._items), 0))
        if self.cls is not list or self._loosen is None:
            return Constant(len(self))
        assert self.source is not None
        size = tx.symbols.of_length(len(self.found), self.source)
        if size is None:
            return Constant(len(self))
        return integer(size + (len(self._items) - len(self.found)))

    def loosen(self) -> None:
        """Gives up the guard on the length, where nothing has depended on it."""
        if self._loosen is not None:
            self._tighten = self._loosen()

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The items, as a list iterator sees them (items added meanwhile included)."""
        position = 0
        while position < len(self):
            yield self.at(position)
            position += 1

    def rebuild(self, program: Rebuilder) -> str:
        """A display, or the named tuple's constructor."""
        if self.source is not None:
            return program.load(self.source)
        if self.original is not None:
            return program.constant(self.original)
        items = self._display(program)
        if hasattr(self.cls, "_fields"):
            return f"{program.constant(self.cls)}({', '.join(items)})"
        if self.cls is list:
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def _display(self, program: Rebuilder) -> list[str]:
        """The items as a display has them."""
        if not self.spans:
            self._read()
            return [program.rebuild(item) for item in self._items]
        parts = [
            item.starred(program) if isinstance(item, ListSlice) else [program.rebuild(item)] for item in self._items
        ]
        return [code for part in parts for code in part]

    def shell(self, program: Rebuilder) -> str | None:
        """An empty list."""
        return "[]" if self.cls is list else None

    def fill(self, program: Rebuilder, name: str) -> list[str]:
        """The items."""
        return [f"{name}.extend([{', '.join(self._display(program))}])"]

    def commit(self, program: Rebuilder) -> list[str]:
        """As few changes as can be; the items that were not touched are not read."""
        assert self.source is not None
        self.loosen()
        name, old, new = program.load(self.source), self.found, self._items
        span = self._whole_span()
        if span is not None and self.before is not None:
            before, first, mixed = program.load(self.before), span.array, ""
            if isinstance(span, MixedSpan):
                mixed = f", {program.rebuild(first)}, {span.built(program)}"
                assert span.arrays[0] is not None
                first = span.arrays[0]
            return [f"{program.constant(replace_numbers)}({name}, {before}, {program.rebuild(first)}{mixed})"]
        if self.spans and isinstance(new[0], OutsideSpan):
            return [f"{name}.extend([{', '.join(self._display(program)[1:])}])"]
        if self.spans:
            return [f"{name}[:] = [{', '.join(self._display(program))}]"]
        changed = [i for i, (a, b) in enumerate(zip(old, new, strict=False)) if not same_object(a, b)]
        if changed and len(old) != len(new):
            return [f"{name}[:] = [{', '.join(program.rebuild(item) for item in new)}]"]
        lines = [f"{name}[{i}] = {program.rebuild(new[i])}" for i in changed]
        if len(new) > len(old):
            lines.append(f"{name}.extend([{', '.join(program.rebuild(item) for item in new[len(old) :])}])")
        elif len(new) < len(old):
            lines.append(f"del {name}[{len(new)}:]")
        return lines


_LIST_METHODS: dict[tuple[str, int], Callable[..., Value]] = {
    ("append", 1): SequenceValue._append, ("extend", 1): SequenceValue._extend, ("insert", 2): SequenceValue._insert,
    ("pop", 0): SequenceValue._pop, ("pop", 1): SequenceValue._pop, ("remove", 1): SequenceValue._remove,
    ("reverse", 0): SequenceValue._reverse, ("clear", 0): SequenceValue._clear, ("copy", 0): SequenceValue._copy,
}  # fmt: skip


def settled_in(container: Value, item: Deferred, tx: Context) -> Value:
    """What an item of a container is, which takes its place there.

    One that is made again, or is changed, is made of its items: the step that has read one, under guards, cannot be
    taken back.
    """
    if container.source is None or id(container) in tx.mutated:
        tx.touch()
    return item.settle(tx)


def found_at(tx: Context, item: LazyValue, source: Source) -> Value:
    """An item that is found at ``source``, too; a text is not read yet."""
    return LazyValue(item.value, source) if item.is_text else tx.wrap(item.value, source)


def through_iterator(tx: Context, value: Value) -> Iterator[Value]:
    """``list(iter(value))``, where Python first asks for the iterator: how many there are is asked of that alone."""
    return value.collect(tx) if isinstance(value, SequenceValue) else tx.iterator(value).collect(tx)


def same_object(found: Value, now: Value) -> bool:
    """Whether ``now`` is what was ``found`` at a place, read or not."""
    return found is now or (now.source is not None and now.source == found.source)


def constant_of(value: Value, role: str) -> Any:
    """The plain object after a constant value. Raises CannotCapture for anything computed."""
    if isinstance(value, Constant) and not answers_in_python(value.value):
        return value.value
    if isinstance(value, IntegerValue):
        return value.specialise()
    if isinstance(value, SequenceValue) and value.cls is tuple:
        return tuple(constant_of(item, role) for item in value.items)
    if isinstance(value, ArrayValue | FloatValue):
        raise CannotCapture("data-dependent-value", f"{value.describe()} as {role}")
    raise CannotCapture("unsupported-object", f"{value.describe()} is used as {role}.")
