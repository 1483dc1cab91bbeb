"""Dicts and their views, and valid keys.

Input: items, or a dict from outside.
Output: values with dict's operations.
Why: a dict made inside the function has no aliases outside, so it may be changed freely. One from outside is read under
guards, item by item; its changes are visible to later reads, and are done after the graph.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tcompile.capture.guards.sources import Source, VaryingItemSource
from tcompile.capture.values.base import Context, Deferred, LazyValue, Rebuilder, Value, settled
from tcompile.capture.values.callable import BuiltinMethod
from tcompile.capture.values.classes import lookup
from tcompile.capture.values.constant import Constant, IntegerValue
from tcompile.capture.values.container import (
    SequenceValue,
    constant_of,
    found_at,
    same_object,
    settled_in,
)
from tcompile.frontends.base import CannotCapture


class DictValue(Value):
    """A dict with constant keys. What came in from outside holds its values unread until they are asked for."""

    def __init__(self, items: dict[Any, Value], source: Source | None = None) -> None:
        self._items = items
        self.source = source
        self._tx: Context | None = None  # where values may be unread
        self.found: dict[Any, Value] = {}
        self._deleted: dict[Any, None] = {}  # keys from outside that were deleted at some time
        self._changes = 0  # how often keys came or went
        self._asked: dict[Any, bool] = {}  # which keys of what came from outside were asked for, and were there
        self._loosen: Callable[[Mapping[Any, bool]], None] | None = None  # until anything depends on all keys
        self._varies = False  # whether its keys have been seen to, or are not known when it is read
        self._later: list[tuple[Value, Value]] = []  # what was stored under keys that vary, until something is read

    @staticmethod
    def outside(
        tx: Context, items: dict[Any, Value], source: Source, loosen: Callable[[Mapping[Any, bool]], None], varies: bool
    ) -> DictValue:
        """A dict found at ``source``; values are read, and guarded, when they are asked for.

        ``loosen`` leaves of the guard on all keys what was asked for, where a dict is changed key by key, or ``varies``
        in its keys.
        """
        value = DictValue(items, source)
        value._tx, value.found, value._loosen, value._varies = tx, dict(items), loosen, varies
        return value

    @staticmethod
    def holding(tx: Context, items: dict[Any, Value]) -> DictValue:
        """A dict that is made of ``items``, whose values may be deferred."""
        value = DictValue(items)
        value._tx = tx
        return value

    @property
    def items(self) -> dict[Any, Value]:
        """All keys and values."""
        self.read()
        self._loosen = None
        if self._tx is not None:
            for key in self._items:
                self._settled_at(key)
            self._tx = None
        return self._items

    @property
    def keys(self) -> Mapping[Any, Any]:
        """The keys, in order."""
        self.read()
        self._loosen = None
        return self._items

    @property
    def waiting(self) -> int:
        """How many stores there were under keys that have not been read."""
        return len(self._later)

    def read(self) -> None:
        """Something depends on keys: those under which something was stored become known."""
        later, self._later = self._later, []
        for key, value in later:
            assert self._tx is not None
            self._tx.touch()
            self._put(self._tx, self._key(settled(self._tx, key)), value)

    def has(self, key: Any) -> bool:
        """Whether there is a key."""
        self.read()
        self._asked.setdefault(key, key in self.found)
        return key in self._items

    def at(self, key: Any) -> Value:
        """The value under a key that is there."""
        self.read()
        self._asked.setdefault(key, key in self.found)
        return self._settled_at(key)

    def _settled_at(self, key: Any) -> Value:
        value = self._items[key]
        if isinstance(value, Deferred):
            assert self._tx is not None
            value = self._items[key] = settled_in(self, value, self._tx)
        return value

    @property
    def python_type(self) -> type:
        """Always dict."""
        return dict

    def export(self, tx: Context) -> Any:
        """A dict of exported values."""
        return {key: value.export(tx) for key, value in self.items.items()}

    def attribute(self, tx: Context, name: str) -> Value:
        """A built-in method."""
        if hasattr(dict, name):
            return BuiltinMethod(self, name)
        raise CannotCapture("operation-raises", f"dict has no attribute {name!r}")

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
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

    def _update(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
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

    def _change(self, tx: Context) -> None:
        """Notes that keys come or go."""
        tx.mutate(self)
        self._changes += 1

    def loosen(self) -> None:
        """Gives up the guard on all keys, where nothing has depended on them and they vary."""
        if self._loosen is not None and self._varies:
            self._loosen(self._asked)

    def _put(self, tx: Context, key: Any, value: Value) -> None:
        self._tx = tx  # the value may be deferred
        if self.has(key):
            tx.mutate(self)
        else:
            self._change(tx)
        self._items[key] = value

    def _take(self, tx: Context, key: Any) -> Value:
        value = self.at(key)
        self._change(tx)
        if key in self.found:
            self._deleted[key] = None
        del self._items[key]
        return value

    def item(self, tx: Context, key: Value) -> Value:
        """The value under a key; one that varies is looked up in a dict from outside as it was there."""
        place = self._place_of(tx, key)
        if place is not None:
            item = self.found.get(_now(key))
            if isinstance(item, LazyValue) and self.source is not None:
                self._varies = True
                return found_at(tx, item, VaryingItemSource(self.source, *place))
        plain = self._key(settled(tx, key))
        if not self.has(plain):
            raise CannotCapture("operation-raises", f"KeyError: {plain!r}")
        return self.at(plain)

    def contains(self, tx: Context, key: Value) -> bool:
        """``key in dict``; of a key that varies this is asked in each call."""
        place = self._place_of(tx, key)
        if place is None or self.source is None:
            return self.has(self._key(settled(tx, key)))
        self._varies = True
        code, text = f"{tx.prologue.load(place[0])} in {{}}", f"{place[1]} in {self.source.text}"
        return tx.decide(self.source, code, text, _now(key) in self.found)

    def _place_of(self, tx: Context, key: Value) -> tuple[Source, str] | None:
        """Where a key that varies is found, if the dict is from outside and still as it was there."""
        return tx.key_source(key) if self.source is not None and id(self) not in tx.mutated else None

    @staticmethod
    def _key(key: Value) -> Any:
        return hashable(key, "a dict key")

    def store_item(self, tx: Context, key: Value, value: Value) -> None:
        """Sets an item. ``key`` and ``value`` may be deferred."""
        if self.source is not None and (tx.waits(key) or (self._later and tx.is_plain(key))):
            tx.mutate(self)
            self._tx = tx
            self._later.append((key, value))
        else:
            self._put(tx, self._key(settled(tx, key)), value)

    def delete_item(self, tx: Context, key: Value) -> None:
        """Deletes an item."""
        plain = self._key(key)
        if not self.has(plain):
            raise CannotCapture("operation-raises", f"KeyError: {plain!r}")
        self._take(tx, plain)

    def truth(self, tx: Context) -> bool:
        """Whether it has items."""
        return bool(self.keys)

    def length(self, tx: Context) -> Value:
        """The number of items."""
        return Constant(len(self.keys))

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The keys, as long as none has come or gone since now."""
        return self._walk(list(self.keys), self._changes)

    def _walk(self, keys: list[Any], changes: int) -> Iterator[Value]:
        for done in range(len(keys) + 1):
            self.read()
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

    def truth(self, tx: Context) -> bool:
        """Whether the dict has items."""
        return self.owner.truth(tx)

    def length(self, tx: Context) -> Value:
        """The number of items."""
        return self.owner.length(tx)

    def iterate(self, tx: Context) -> Iterator[Value]:
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


def _now(key: Value) -> Any:
    """What a key that varies is in this call."""
    return key.size.hint if isinstance(key, IntegerValue) else key.value  # type: ignore[attr-defined]


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
