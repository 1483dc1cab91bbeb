"""Tuples, lists, dicts and their views, slices and ranges.

A container made inside the function may be changed freely: nobody else sees it. A container that came in from outside
is read under guards, item by item as they are used; a change of it is seen by later reads, and done after the graph.
"""

from __future__ import annotations

import enum
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.sources import ItemSource, Source, VaryingItemSource
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Deferred, Unread, Value, named, settled
from tcompile.capture.values.classes import answers_in_python, class_attribute, lookup
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue, integer
from tcompile.capture.values.span import Span
from tcompile.frontends.base import CannotCapture, Stacked

if TYPE_CHECKING:
    from tcompile.capture.program import Rebuilder
    from tcompile.capture.state import Capture


def index_of(key: Value) -> int:
    """A constant int from an index value, fixing a symbolic one. Raises CannotCapture for anything else."""
    if isinstance(key, IntegerValue):
        return key.specialise()
    if isinstance(key, Constant) and not answers_in_python(key.value):
        try:
            return operator.index(key.value)
        except TypeError as error:
            raise CannotCapture("operation-raises", str(error)) from error
    raise CannotCapture("data-dependent-value", f"{key.describe()} as an index")


class SequenceValue(Value):
    """A tuple or list; ``cls`` says which. A named tuple keeps its class.

    What came in from outside holds its items unread until they are asked for. Behind a loop whose rounds appended to
    it, a list has ``spans`` among its items; in such a round, what is appended is ``collecting``, and nothing is read.
    """

    def __init__(self, items: list[Value], cls: type, source: Source | None = None) -> None:
        self._items = items
        self.cls = cls
        self.source = source
        self._tx: Capture | None = None  # where items may be unread
        self.found: tuple[Value, ...] = ()
        self._loosen: Callable[[], None] | None = None  # until anything depends on the length
        self.spans = False
        self.collecting: list[Value] | None = None

    @staticmethod
    def outside(
        tx: Capture, items: list[Value], cls: type, source: Source, loosen: Callable[[], None]
    ) -> SequenceValue:
        """A container found at ``source``; ``items`` are read, and guarded, when they are asked for.

        ``loosen`` gives up the guard on the length, where a list was only appended to.
        """
        value = SequenceValue(items, cls, source)
        value._tx, value.found, value._loosen = tx, tuple(items), loosen
        return value

    @staticmethod
    def holding(tx: Capture, items: list[Value], cls: type) -> SequenceValue:
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
        if self.collecting is not None:
            raise CannotCapture("loop-mismatch", "a list is read in a round that appends to it")
        if self.spans:
            items: list[Value] = []
            for item in self._items:
                if type(item) is Span:
                    item.tx.touch()  # a step that reads items cannot be taken back
                    items += item.items()
                else:
                    items.append(item)
            self._items[:], self.spans = items, False

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
            item = self._items[position] = _settled_in(self, item, self._tx)
        return item

    @property
    def python_type(self) -> type:
        """tuple, list or a named tuple's class."""
        return self.cls

    def describe(self) -> str:
        """The kind and, where there is one, the user's name."""
        return named(self.source, f"a {self.cls.__name__}")

    def export(self, tx: Capture) -> Any:
        """The same container of exported items."""
        if self.spans:
            parts = [item.rows if type(item) is Span else settled(tx, item).export(tx) for item in self._items]
            return Stacked(parts, tuple(type(item) is Span for item in self._items))
        items = [item.export(tx) for item in self.items]
        return self.cls(*items) if hasattr(self.cls, "_fields") else self.cls(items)

    def attribute(self, tx: Capture, name: str) -> Value:
        """A named tuple's field, or a built-in method."""
        fields = getattr(self.cls, "_fields", ())
        if name in fields:
            return self.at(fields.index(name))
        if fields:
            return class_attribute(tx, self, self.cls, name)
        if hasattr(self.cls, name):
            return BuiltinMethod(self, name)
        raise CannotCapture("operation-raises", f"{self.cls.__name__} has no attribute {name!r}")

    def method(self, tx: Capture, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
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
            return Constant(sum(self._equal(tx, item, args[0]) for item in list(self.items)))
        if name == "index" and 1 <= len(args) <= 3:
            start, stop = ([index_of(arg) for arg in args[1:]] + [0, len(self)][len(args) - 1 :])[:2]
            for position in range(*slice(start, stop).indices(len(self))):
                if self._equal(tx, self.at(position), args[0]):
                    return Constant(position)
            raise CannotCapture("operation-raises", f"{args[0].describe()} is not in {self.describe()}")
        return super().method(tx, name, args, kwargs)

    @staticmethod
    def _equal(tx: Capture, item: Value, other: Value) -> bool:
        from tcompile.capture.operators import equal

        return equal(tx, item, other)

    def _append(self, tx: Capture, value: Value) -> Value:
        tx.mutate(self)
        self._tx = tx  # the value may be deferred
        self._items.append(value)
        return Constant(None)

    def _extend(self, tx: Capture, values: Value) -> Value:
        more = list(values.items) if isinstance(values, SequenceValue) else values.collect(tx)
        tx.mutate(self)
        for value in more:  # one by one, as the iterator may look at the list
            self._items.append(value)
        return Constant(None)

    def _insert(self, tx: Capture, position: Value, value: Value) -> Value:
        where = index_of(position)
        tx.mutate(self)
        self.items.insert(where, value)
        return Constant(None)

    def _pop(self, tx: Capture, position: Value | None = None) -> Value:
        where = index_of(position) if position is not None else -1
        if not -len(self) <= where < len(self):
            raise CannotCapture("operation-raises", "pop index out of range")
        value = self.at(where)
        tx.mutate(self)
        del self._items[where]
        return value

    def _remove(self, tx: Capture, value: Value) -> Value:
        position = self.method(tx, "index", [value], {})
        assert isinstance(position, Constant)
        tx.mutate(self)
        del self._items[position.value]
        return Constant(None)

    def _reverse(self, tx: Capture) -> Value:
        tx.mutate(self)
        self.items.reverse()
        return Constant(None)

    def _clear(self, tx: Capture) -> Value:
        tx.mutate(self)
        self.items.clear()
        return Constant(None)

    def _copy(self, tx: Capture) -> Value:
        return SequenceValue(list(self.items), list)

    def _sort(self, tx: Capture, kwargs: Mapping[str, Value]) -> Value:
        from tcompile.capture.operators import ordered

        values = list(self.items)
        tx.mutate(self)
        self._items = []  # as the functions called by list.sort see it
        found = ordered(tx, values, kwargs.get("key"), kwargs.get("reverse"))
        if self._items:
            raise CannotCapture("operation-raises", "list modified during sort")
        self._items = found
        return Constant(None)

    def item(self, tx: Capture, key: Value) -> Value:
        """One item, or a new container for a slice."""
        if isinstance(key, SliceValue):
            items = self.items[key.constant()]
            if self.cls is tuple and len(items) == len(self) and key.constant().step in (None, 1):
                return self  # no new tuple
            return SequenceValue(items, list if self.cls is list else tuple)
        found = self._at_any_place(tx, key)
        if found is not None:
            return found
        position = index_of(key)
        found = self._of_any_length(tx, position)
        if found is not None:
            return found
        if not -len(self) <= position < len(self):
            raise CannotCapture("operation-raises", f"{self.cls.__name__} index out of range")
        return self.at(position)

    def _at_any_place(self, tx: Capture, key: Value) -> Value | None:
        """The item at an index that varies, of a list from outside as it was there; None of any other container."""
        if self.source is None or id(self) in tx.mutated or not isinstance(key, IntegerValue):
            return None
        place, position = tx.key_source(key), key.size.hint
        if place is None or not -len(self.found) <= position < len(self.found):
            return None
        item = self.found[position]
        assert isinstance(item, Unread) and self.source is not None
        return _found_at(tx, item, VaryingItemSource(self.source, *place))

    def _of_any_length(self, tx: Capture, position: int) -> Value | None:
        """The item at a position of a list from outside, as it has been appended to, whose length varies.

        None where all depends on its length: it is no such list, or is not long enough.
        """
        if self.cls is not list or self._loosen is None:
            return None
        added = len(self._items) - len(self.found)
        if -added <= position < 0:
            return self._settled_at(position)
        behind = -position - added  # items from outside that come after it, and itself
        if not -len(self.found) <= -behind < 0 and not 0 <= position < len(self.found):
            return None
        assert self.source is not None
        size = tx.length_symbol(len(self.found), self.source)
        if size is None or not (size > position if position >= 0 else size >= behind):
            return None
        if position >= 0:
            return self._settled_at(position)
        item = self.found[len(self.found) - behind]
        assert isinstance(item, Unread)
        return _found_at(tx, item, ItemSource(self.source, -behind))

    def store_item(self, tx: Capture, key: Value, value: Value) -> None:
        """Replaces items of a list."""
        if self.cls is not list:
            super().store_item(tx, key, value)
        if isinstance(key, SliceValue):
            where, values = key.constant(), list(_through_iterator(tx, value))
            if where.step not in (None, 1) and len(range(*where.indices(len(self)))) != len(values):
                raise CannotCapture("operation-raises", "attempt to assign a sequence of another size to a slice")
            tx.mutate(self)
            self.items[where] = values
            return
        position = index_of(key)
        if not -len(self) <= position < len(self):
            raise CannotCapture("operation-raises", "list assignment index out of range")
        tx.mutate(self)
        self._items[position] = value

    def delete_item(self, tx: Capture, key: Value) -> None:
        """Deletes items of a list."""
        if self.cls is not list:
            super().delete_item(tx, key)
        where = key.constant() if isinstance(key, SliceValue) else index_of(key)
        if isinstance(where, int) and not -len(self) <= where < len(self):
            raise CannotCapture("operation-raises", "list assignment index out of range")
        tx.mutate(self)
        del self.items[where]

    def truth(self, tx: Capture) -> bool:
        """Whether it has items."""
        return self.length(tx).truth(tx)

    def length(self, tx: Capture) -> Value:
        """The number of items. That of a list from outside stays open where it varies and no item is read."""
        if self.spans:
            return integer(sum((item.size if type(item) is Span else 1 for item in self._items), 0))
        if self.cls is not list or self._loosen is None:
            return Constant(len(self))
        assert self.source is not None
        size = tx.length_symbol(len(self.found), self.source)
        if size is None:
            return Constant(len(self))
        return integer(size + (len(self._items) - len(self.found)))

    def loosen(self) -> None:
        """Gives up the guard on the length, where nothing has depended on it."""
        if self._loosen is not None:
            self._loosen()

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The items, as a list iterator sees them (items added meanwhile included)."""
        position = 0
        while position < len(self):
            yield self.at(position)
            position += 1

    def rebuild(self, program: Rebuilder) -> str:
        """A display, or the named tuple's constructor."""
        if self.source is not None:
            return program.load(self.source)
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
        parts = [item.starred(program) if type(item) is Span else [program.rebuild(item)] for item in self._items]
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


MAX_ITEMS = 10_000


def _settled_in(container: Value, item: Deferred, tx: Capture) -> Value:
    """What an item of a container is, which takes its place there.

    One that is made again, or is changed, is made of its items: the step that has read one, under guards, cannot be
    taken back.
    """
    if container.source is None or id(container) in tx.mutated:
        tx.touch()
    return item.settle(tx)


def _found_at(tx: Capture, item: Unread, source: Source) -> Value:
    """An item that is found at ``source``, too; a text is not read yet."""
    return Unread(item.value, source) if item.is_text else tx.wrap(item.value, source)


def _now(key: Value) -> Any:
    """What a key that varies is in this call."""
    return key.size.hint if isinstance(key, IntegerValue) else key.value  # type: ignore[attr-defined]


def _through_iterator(tx: Capture, value: Value) -> Iterator[Value]:
    """``list(iter(value))``, where Python first asks for the iterator: how many there are is asked of that alone."""
    from tcompile.capture.protocols import iterator

    return value.collect(tx) if isinstance(value, SequenceValue) else iterator(tx, value).collect(tx)


def finite(values: Iterator[Value]) -> Iterator[Value]:
    """The same values; more than can sensibly be followed end the capture."""
    for count, value in enumerate(values):
        if count >= MAX_ITEMS:
            raise CannotCapture("too-long", f"A container of more than {MAX_ITEMS} items is made.")
        yield value


def same_object(found: Value, now: Value) -> bool:
    """Whether ``now`` is what was ``found`` at a place, read or not."""
    return found is now or (now.source is not None and now.source == found.source)


class DictValue(Value):
    """A dict with constant keys. What came in from outside holds its values unread until they are asked for."""

    def __init__(self, items: dict[Any, Value], source: Source | None = None) -> None:
        self._items = items
        self.source = source
        self._tx: Capture | None = None  # where values may be unread
        self.found: dict[Any, Value] = {}
        self._deleted: dict[Any, None] = {}  # keys from outside that were deleted at some time
        self._changes = 0  # how often keys came or went
        self._asked: dict[Any, bool] = {}  # which keys of what came from outside were asked for, and were there
        self._loosen: Callable[[Mapping[Any, bool]], None] | None = None  # until anything depends on all keys
        self._varies = False  # whether its keys have been seen to, or are not known when it is read
        self._later: list[tuple[Value, Value]] = []  # what was stored under keys that vary, until something is read

    @staticmethod
    def outside(
        tx: Capture, items: dict[Any, Value], source: Source, loosen: Callable[[Mapping[Any, bool]], None], varies: bool
    ) -> DictValue:
        """A dict found at ``source``; values are read, and guarded, when they are asked for.

        ``loosen`` leaves of the guard on all keys what was asked for, where a dict is changed key by key, or ``varies``
        in its keys.
        """
        value = DictValue(items, source)
        value._tx, value.found, value._loosen, value._varies = tx, dict(items), loosen, varies
        return value

    @staticmethod
    def holding(tx: Capture, items: dict[Any, Value]) -> DictValue:
        """A dict that is made of ``items``, whose values may be deferred."""
        value = DictValue(items)
        value._tx = tx
        return value

    @property
    def items(self) -> dict[Any, Value]:
        """All keys and values."""
        self._read()
        self._loosen = None
        if self._tx is not None:
            for key in self._items:
                self._settled_at(key)
            self._tx = None
        return self._items

    @property
    def keys(self) -> Mapping[Any, Any]:
        """The keys, in order."""
        self._read()
        self._loosen = None
        return self._items

    def _read(self) -> None:
        """Something depends on keys: those under which something was stored become known."""
        later, self._later = self._later, []
        for key, value in later:
            assert self._tx is not None
            self._tx.touch()
            self._put(self._tx, self._key(settled(self._tx, key)), value)

    def has(self, key: Any) -> bool:
        """Whether there is a key."""
        self._read()
        self._asked.setdefault(key, key in self.found)
        return key in self._items

    def at(self, key: Any) -> Value:
        """The value under a key that is there."""
        self._read()
        self._asked.setdefault(key, key in self.found)
        return self._settled_at(key)

    def _settled_at(self, key: Any) -> Value:
        value = self._items[key]
        if isinstance(value, Deferred):
            assert self._tx is not None
            value = self._items[key] = _settled_in(self, value, self._tx)
        return value

    @property
    def python_type(self) -> type:
        """Always dict."""
        return dict

    def export(self, tx: Capture) -> Any:
        """A dict of exported values."""
        return {key: value.export(tx) for key, value in self.items.items()}

    def attribute(self, tx: Capture, name: str) -> Value:
        """A built-in method."""
        if hasattr(dict, name):
            return BuiltinMethod(self, name)
        raise CannotCapture("operation-raises", f"dict has no attribute {name!r}")

    def method(self, tx: Capture, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The dict methods."""
        if name == "update" and len(args) <= 1:
            return self._update(tx, args, kwargs)
        if kwargs:
            return super().method(tx, name, args, kwargs)
        if name in ("items", "keys", "values") and not args:
            return DictViewValue(self, name)
        if name == "copy" and not args:
            return DictValue(dict(self.items))
        if name == "clear" and not args:
            self._change(tx)
            self._deleted.update(dict.fromkeys(self.found))
            self.items.clear()
            return Constant(None)
        if name == "popitem" and not args and self.keys:
            last = next(reversed(self._items))
            return SequenceValue([Constant(last), self._take(tx, last)], tuple)
        if name in ("get", "pop", "setdefault") and 1 <= len(args) <= 2:
            key = self._key(args[0])
            if self.has(key):
                return self._take(tx, key) if name == "pop" else self.at(key)
            if name == "pop" and len(args) == 1:
                raise CannotCapture("operation-raises", f"KeyError: {key!r}")
            other = args[1] if len(args) > 1 else Constant(None)
            if name == "setdefault":
                self._put(tx, key, other)
            return other
        return super().method(tx, name, args, kwargs)

    def _update(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        pairs: list[tuple[Any, Value]] = []
        for other in args:
            if isinstance(other, DictValue):
                pairs += other.items.items()
            elif isinstance(other, SequenceValue):
                for item in other.items:
                    if not isinstance(item, SequenceValue) or len(item) != 2:
                        raise CannotCapture("unsupported-object", f"A dict is updated from {item.describe()}.")
                    pairs.append((self._key(item.at(0)), item.at(1)))
            else:
                raise CannotCapture("unsupported-object", f"A dict is updated from {other.describe()}.")
        for key, value in [*pairs, *kwargs.items()]:
            self._put(tx, key, value)
        return Constant(None)

    def _change(self, tx: Capture) -> None:
        """Notes that keys come or go."""
        tx.mutate(self)
        self._changes += 1

    def loosen(self) -> None:
        """Gives up the guard on all keys, where nothing has depended on them and they vary."""
        if self._loosen is not None and self._varies:
            self._loosen(self._asked)

    def _put(self, tx: Capture, key: Any, value: Value) -> None:
        self._tx = tx  # the value may be deferred
        if self.has(key):
            tx.mutate(self)
        else:
            self._change(tx)
        self._items[key] = value

    def _take(self, tx: Capture, key: Any) -> Value:
        value = self.at(key)
        self._change(tx)
        if key in self.found:
            self._deleted[key] = None
        del self._items[key]
        return value

    def item(self, tx: Capture, key: Value) -> Value:
        """The value under a key; one that varies is looked up in a dict from outside as it was there."""
        place = self._place_of(tx, key)
        if place is not None:
            item = self.found.get(_now(key))
            if isinstance(item, Unread) and self.source is not None:
                self._varies = True
                return _found_at(tx, item, VaryingItemSource(self.source, *place))
        plain = self._key(settled(tx, key))
        if not self.has(plain):
            raise CannotCapture("operation-raises", f"KeyError: {plain!r}")
        return self.at(plain)

    def contains(self, tx: Capture, key: Value) -> bool:
        """``key in dict``; of a key that varies this is asked in each call."""
        place = self._place_of(tx, key)
        if place is None or self.source is None:
            return self.has(self._key(settled(tx, key)))
        self._varies = True
        code, text = f"{tx.prologue.load(place[0])} in {{}}", f"{place[1]} in {self.source.text}"
        return tx.decide(self.source, code, text, _now(key) in self.found)

    def _place_of(self, tx: Capture, key: Value) -> tuple[Source, str] | None:
        """Where a key that varies is found, if the dict is from outside and still as it was there."""
        return tx.key_source(key) if self.source is not None and id(self) not in tx.mutated else None

    @staticmethod
    def _key(key: Value) -> Any:
        return hashable(key, "a dict key")

    def store_item(self, tx: Capture, key: Value, value: Value) -> None:
        """Sets an item. ``key`` and ``value`` may be deferred."""
        if self.source is not None and (tx.waits(key) or (self._later and tx.is_plain(key))):
            tx.mutate(self)
            self._tx = tx
            self._later.append((key, value))
        else:
            self._put(tx, self._key(settled(tx, key)), value)

    def delete_item(self, tx: Capture, key: Value) -> None:
        """Deletes an item."""
        plain = self._key(key)
        if not self.has(plain):
            raise CannotCapture("operation-raises", f"KeyError: {plain!r}")
        self._take(tx, plain)

    def truth(self, tx: Capture) -> bool:
        """Whether it has items."""
        return bool(self.keys)

    def length(self, tx: Capture) -> Value:
        """The number of items."""
        return Constant(len(self.keys))

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The keys, as long as none has come or gone since now."""
        return self._walk(list(self.keys), self._changes)

    def _walk(self, keys: list[Any], changes: int) -> Iterator[Value]:
        for done in range(len(keys) + 1):
            self._read()
            if self._changes != changes:
                raise CannotCapture("operation-raises", "dictionary changed during iteration")
            if done < len(keys):
                yield Constant(keys[done])

    def rebuild(self, program: Rebuilder) -> str:
        """A dict display."""
        if self.source is not None:
            return program.load(self.source)
        return f"{{{self._pairs(program)}}}"

    def shell(self, program: Rebuilder) -> str:
        """An empty dict."""
        return "{}"

    def fill(self, program: Rebuilder, name: str) -> list[str]:
        """The items."""
        return [f"{name}.update({{{self._pairs(program)}}})"]

    def _pairs(self, program: Rebuilder) -> str:
        return ", ".join(f"{program.rebuild(Constant(k))}: {program.rebuild(v)}" for k, v in self.keys.items())

    def commit(self, program: Rebuilder) -> list[str]:
        """Deletions, then what was set, in order."""
        assert self.source is not None
        if self._loosen is not None:
            self._loosen(self._asked)
        name = program.load(self.source)
        lines = [f"del {name}[{program.rebuild(Constant(key))}]" for key in self._deleted]
        for key, value in self._items.items():
            kept = key in self.found and key not in self._deleted and same_object(self.found[key], value)
            if not kept:
                lines.append(f"{name}[{program.rebuild(Constant(key))}] = {program.rebuild(value)}")
        lines += [f"{name}[{program.rebuild(key)}] = {program.rebuild(value)}" for key, value in self._later]
        return lines


class DictViewValue(Value):
    """``d.items()``, ``d.keys()`` or ``d.values()``: shows what the dict holds when it is asked."""

    def __init__(self, owner: DictValue, name: str) -> None:
        self.owner = owner
        self.name = name

    @property
    def python_type(self) -> type:
        """The class of such views."""
        return type(getattr({}, self.name)())

    def describe(self) -> str:
        """The kind of view."""
        return f"a view of the {self.name} of {self.owner.describe()}"

    def truth(self, tx: Capture) -> bool:
        """Whether the dict has items."""
        return self.owner.truth(tx)

    def length(self, tx: Capture) -> Value:
        """The number of items."""
        return self.owner.length(tx)

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """Keys, values or pairs, made as they are asked for."""
        return map(self._shown, self.owner.iterate(tx))

    def _shown(self, key: Value) -> Value:
        if self.name == "keys":
            return key
        value = self.owner.at(constant_of(key, "a dict key"))
        return value if self.name == "values" else SequenceValue([key, value], tuple)

    def rebuild(self, program: Rebuilder) -> str:
        """The dict, asked for the view."""
        return f"{program.rebuild(self.owner)}.{self.name}()"


class SliceValue(Value):
    """``slice(start, stop, step)``."""

    def __init__(self, start: Value, stop: Value, step: Value, source: Source | None = None) -> None:
        self.parts = (start, stop, step)
        self.source = source

    @property
    def python_type(self) -> type:
        """Always slice."""
        return slice

    def export(self, tx: Capture) -> Any:
        """A slice of exported parts."""
        return slice(*(part.export(tx) for part in self.parts))

    def attribute(self, tx: Capture, name: str) -> Value:
        """start, stop or step."""
        if name in ("start", "stop", "step"):
            return self.parts[("start", "stop", "step").index(name)]
        return super().attribute(tx, name)

    def constant(self) -> slice:
        """A slice of constant ints, fixing symbolic ones."""
        parts = []
        for part in self.parts:
            none = isinstance(part, Constant) and part.value is None
            parts.append(None if none else index_of(part))
        return slice(*parts)

    def rebuild(self, program: Rebuilder) -> str:
        """The object itself where it came from outside, else a call of slice."""
        if self.source is not None:
            return program.load(self.source)
        return f"slice({', '.join(program.rebuild(part) for part in self.parts)})"


class RangeValue(Value):
    """``range(start, stop, step)``; bounds may be symbolic until it is iterated over."""

    def __init__(self, start: Any, stop: Any, step: Any, source: Source | None = None) -> None:
        self.start, self.stop, self.step = start, stop, step
        self.source = source
        self.unrolled = False  # whether the user asks for that
        self.scalar = False  # whether a loop along it has to be scalar code

    @property
    def python_type(self) -> type:
        """Always range."""
        return range

    def fixed(self) -> range:
        """The range of ints, symbolic bounds fixed with guards."""
        return range(*(p if isinstance(p, int) else p.specialise() for p in (self.start, self.stop, self.step)))

    def export(self, tx: Capture) -> Any:
        """The range itself."""
        return self.fixed()

    def attribute(self, tx: Capture, name: str) -> Value:
        """start, stop or step."""
        if name in ("start", "stop", "step"):
            return integer(getattr(self, name))
        return super().attribute(tx, name)

    def item(self, tx: Capture, key: Value) -> Value:
        """One number, or a shorter range."""
        try:
            found = self.fixed()[key.constant() if isinstance(key, SliceValue) else index_of(key)]
        except IndexError as error:
            raise CannotCapture("operation-raises", str(error)) from error
        return RangeValue(found.start, found.stop, found.step) if isinstance(found, range) else Constant(found)

    def truth(self, tx: Capture) -> bool:
        """Whether it is not empty."""
        return bool(self.fixed())

    def length(self, tx: Capture) -> Value:
        """The number of steps, symbolic where it can be."""
        if self.step == 1 and not (isinstance(self.start, int) and isinstance(self.stop, int)):
            return integer(self.stop - self.start if self.stop > self.start else 0)
        try:
            return Constant(len(self.fixed()))
        except OverflowError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The numbers."""
        return (Constant(i) for i in self.fixed())

    def backwards(self) -> RangeValue:
        """The same numbers from the last one on; bounds stay symbolic where the step is 1."""
        if self.step == 1 and not (isinstance(self.start, int) and isinstance(self.stop, int)):
            return RangeValue(self.stop - 1, self.start - 1, -1)
        found = self.fixed()[::-1]
        return RangeValue(found.start, found.stop, found.step)

    def rebuild(self, program: Rebuilder) -> str:
        """The object itself where it came from outside, else a call of range."""
        if self.source is not None:
            return program.load(self.source)
        return f"range({', '.join(f'({part})' for part in (self.start, self.stop, self.step))})"


class BuiltinMethod(Value):
    """A built-in method bound to a container or constant."""

    def __init__(self, owner: Value, name: str) -> None:
        self.owner = owner
        self.name = name

    def describe(self) -> str:
        """The method's name."""
        return f"the method `{self.name}` of {self.owner.describe()}"

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Asks the owner."""
        if self.name == "join" and isinstance(self.owner, Constant) and len(args) == 1:
            args = [Constant(tuple(constant_of(part, "a part of a string") for part in _through_iterator(tx, args[0])))]
        return self.owner.method(tx, self.name, args, kwargs)

    def rebuild(self, program: Rebuilder) -> str:
        """The method of the owner."""
        return f"({program.rebuild(self.owner)}).{self.name}"


def hashable(value: Value, role: str) -> Any:
    """A constant that hashes and compares without running a user's code, and is equal to itself."""
    plain = constant_of(value, role)
    if not _hashes_plainly(plain):
        raise CannotCapture("unsupported-object", f"{value.describe()} is used as {role}.")
    try:
        hash(plain)
    except Exception as error:
        raise CannotCapture("operation-raises", str(error)) from error
    return plain


def _hashes_plainly(plain: Any) -> bool:
    if type(plain) in (tuple, frozenset):
        return all(_hashes_plainly(item) for item in plain)
    if isinstance(plain, float | complex) and plain != plain:
        return False
    if isinstance(plain, type):
        return type(plain).__hash__ is type.__hash__ and type(plain).__eq__ is type.__eq__
    own = [lookup(type(plain), name) for name in ("__hash__", "__eq__")]
    return isinstance(plain, enum.Enum) or not any(isinstance(found, types.FunctionType) for found in own)


def constant_of(value: Value, role: str) -> Any:
    """The plain object behind a constant value. Raises CannotCapture for anything computed."""
    if isinstance(value, Constant) and not answers_in_python(value.value):
        return value.value
    if isinstance(value, IntegerValue):
        return value.specialise()
    if isinstance(value, SequenceValue) and value.cls is tuple:
        return tuple(constant_of(item, role) for item in value.items)
    if isinstance(value, ArrayValue | FloatValue):
        raise CannotCapture("data-dependent-value", f"{value.describe()} as {role}")
    raise CannotCapture("unsupported-object", f"{value.describe()} is used as {role}.")
