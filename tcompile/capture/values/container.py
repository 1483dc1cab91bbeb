"""Tuples, lists, dicts and their views, slices and ranges.

A container made inside the function may be changed freely: nobody else sees it. A container that came in from outside
is read under guards, item by item as they are used, and never changed (a change is a side effect, and breaks).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.sources import Source
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Value
from tcompile.capture.values.classes import class_attribute
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue, integer
from tcompile.frontends.base import CannotCapture
from tcompile.graph.ops.movement import slice_bounds, slice_length

if TYPE_CHECKING:
    from tcompile.capture.program import Rebuilder
    from tcompile.capture.state import Capture


def index_of(key: Value) -> int:
    """A constant int from an index value, fixing a symbolic one. Raises CannotCapture for anything else."""
    if isinstance(key, IntegerValue):
        return key.specialise()
    if isinstance(key, Constant):
        try:
            return operator.index(key.value)
        except TypeError as error:
            raise CannotCapture("operation-raises", str(error)) from error
    raise CannotCapture("data-dependent-value", f"{key.describe()} as an index")


class SequenceValue(Value):
    """A tuple or list; ``cls`` says which. A named tuple keeps its class."""

    def __init__(self, items: list[Value], cls: type, source: Source | None = None) -> None:
        self._items = items
        self.cls = cls
        self.source = source
        self._read: Callable[[int], Value] | None = None
        self._count = 0

    @staticmethod
    def outside(count: int, read: Callable[[int], Value], cls: type, source: Source) -> SequenceValue:
        """A container found at ``source``; ``read`` gives an item, and guards it, when it is asked for."""
        value = SequenceValue([], cls, source)
        value._read, value._count = read, count
        return value

    @property
    def items(self) -> list[Value]:
        """All items."""
        if self._read is not None:
            self._items = [self._read(i) for i in range(self._count)]
            self._read = None
        return self._items

    def __len__(self) -> int:
        return self._count if self._read is not None else len(self._items)

    def at(self, position: int) -> Value:
        """One item."""
        return self._items[position] if self._read is None else self._read(position % self._count)

    @property
    def python_type(self) -> type:
        """tuple, list or a named tuple's class."""
        return self.cls

    def describe(self) -> str:
        """The kind and, where there is one, the user's name."""
        return f"`{self.source.text}` (a {self.cls.__name__})" if self.source is not None else f"a {self.cls.__name__}"

    def export(self, tx: Capture) -> Any:
        """The same container of exported items."""
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
        """The list and tuple methods that need no comparison of arrays."""
        if kwargs:
            return super().method(tx, name, args, kwargs)
        if name in ("append", "extend", "insert", "pop", "reverse", "clear") and self.cls is list:
            self._require_own(name)
            if name == "append" and len(args) == 1:
                self.items.append(args[0])
                return Constant(None)
            if name == "extend" and len(args) == 1:
                self.items.extend(list(self.items) if args[0] is self else args[0].iterate(tx))
                return Constant(None)
            if name == "insert" and len(args) == 2:
                self.items.insert(index_of(args[0]), args[1])
                return Constant(None)
            if name == "pop" and len(args) <= 1:
                position = index_of(args[0]) if args else -1
                if not -len(self.items) <= position < len(self.items):
                    raise CannotCapture("operation-raises", "pop index out of range")
                return self.items.pop(position)
            if name in ("reverse", "clear") and not args:
                getattr(self.items, name)()
                return Constant(None)
        if name == "copy" and self.cls is list and not args:
            return SequenceValue(list(self.items), list)
        if name in ("index", "count") and len(args) == 1:
            values = [constant_of(item, f"{self.cls.__name__}.{name}") for item in self.items]
            return tx.fold(getattr(values, name), args, {})
        return super().method(tx, name, args, kwargs)

    def _require_own(self, name: str) -> None:
        if self.source is not None:
            raise CannotCapture("side-effect", f"Changing {self.describe()} by {name}")

    def item(self, tx: Capture, key: Value) -> Value:
        """One item, or a new container for a slice."""
        if isinstance(key, SliceValue):
            return SequenceValue(self.items[key.constant()], list if self.cls is list else tuple)
        position = index_of(key)
        if not -len(self) <= position < len(self):
            raise CannotCapture("operation-raises", f"{self.cls.__name__} index out of range")
        return self.at(position)

    def store_item(self, tx: Capture, key: Value, value: Value) -> None:
        """Replaces one item of a list made inside the function."""
        if self.cls is not list or isinstance(key, SliceValue):
            super().store_item(tx, key, value)
        self._require_own("item assignment")
        position = index_of(key)
        if not -len(self.items) <= position < len(self.items):
            raise CannotCapture("operation-raises", "list assignment index out of range")
        self.items[position] = value

    def delete_item(self, tx: Capture, key: Value) -> None:
        """Deletes items of a list made inside the function."""
        if self.cls is not list:
            super().delete_item(tx, key)
        self._require_own("deleting an item")
        try:
            del self.items[key.constant() if isinstance(key, SliceValue) else index_of(key)]
        except IndexError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    def truth(self, tx: Capture) -> bool:
        """Whether it has items."""
        return len(self) > 0

    def length(self, tx: Capture) -> Value:
        """The number of items."""
        return Constant(len(self))

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The items, as a list iterator sees them (items added meanwhile included)."""
        if self._read is None:
            return iter(self._items)
        return (self.at(i) for i in range(self._count))  # from outside: never changed

    def rebuild(self, program: Rebuilder) -> str:
        """A display, or the named tuple's constructor."""
        if self.source is not None:
            return program.load(self.source)
        items = [program.rebuild(item) for item in self.items]
        if hasattr(self.cls, "_fields"):
            return f"{program.constant(self.cls)}({', '.join(items)})"
        if self.cls is list:
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


class DictValue(Value):
    """A dict with constant keys."""

    def __init__(self, items: dict[Any, Value], source: Source | None = None) -> None:
        self._items = items
        self.source = source
        self._read: Callable[[Any], Value] | None = None
        self._keys: dict[Any, None] = {}

    @staticmethod
    def outside(keys: Sequence[Any], read: Callable[[Any], Value], source: Source) -> DictValue:
        """A dict found at ``source``; ``read`` gives a value, and guards it, when it is asked for."""
        value = DictValue({}, source)
        value._read, value._keys = read, dict.fromkeys(keys)
        return value

    @property
    def items(self) -> dict[Any, Value]:
        """All keys and values."""
        if self._read is not None:
            self._items = {key: self._read(key) for key in self._keys}
            self._read = None
        return self._items

    @property
    def keys(self) -> Mapping[Any, Any]:
        """The keys, in order."""
        return self._items if self._read is None else self._keys

    def at(self, key: Any) -> Value:
        """The value under a key that is there."""
        return self._items[key] if self._read is None else self._read(key)

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
        """The common dict methods."""
        if name in ("items", "keys", "values") and not args and not kwargs:
            return DictViewValue(self, name)
        if name == "get" and args and not kwargs:
            key = self._key(args[0])
            return self.at(key) if key in self.keys else args[1] if len(args) > 1 else Constant(None)
        if name == "copy" and not args:
            return DictValue(dict(self.items))
        if name in ("update", "pop", "setdefault"):
            if self.source is not None:
                raise CannotCapture("side-effect", f"Changing {self.describe()} by {name}")
            if name == "update" and len(args) <= 1 and all(isinstance(a, DictValue) for a in args):
                for other in args:
                    assert isinstance(other, DictValue)
                    self.items.update(other.items)
                self.items.update(kwargs)
                return Constant(None)
            if name == "pop" and args:
                key = constant_of(args[0], "a dict key")
                if key in self.items:
                    return self.items.pop(key)
                if len(args) > 1:
                    return args[1]
                raise CannotCapture("operation-raises", f"KeyError: {key!r}")
            if name == "setdefault" and args:
                key = constant_of(args[0], "a dict key")
                return self.items.setdefault(key, args[1] if len(args) > 1 else Constant(None))
        return super().method(tx, name, args, kwargs)

    def item(self, tx: Capture, key: Value) -> Value:
        """The value under a constant key."""
        plain = self._key(key)
        if plain not in self.keys:
            raise CannotCapture("operation-raises", f"KeyError: {plain!r}")
        return self.at(plain)

    @staticmethod
    def _key(key: Value) -> Any:
        plain = constant_of(key, "a dict key")
        try:
            hash(plain)
        except TypeError as error:
            raise CannotCapture("operation-raises", str(error)) from error
        return plain

    def store_item(self, tx: Capture, key: Value, value: Value) -> None:
        """Sets an item of a dict made inside the function."""
        if self.source is not None:
            super().store_item(tx, key, value)
        self.items[self._key(key)] = value

    def delete_item(self, tx: Capture, key: Value) -> None:
        """Deletes an item of a dict made inside the function."""
        if self.source is not None:
            super().delete_item(tx, key)
        if self.items.pop(self._key(key), None) is None:
            raise CannotCapture("operation-raises", f"KeyError: {key.describe()}")

    def truth(self, tx: Capture) -> bool:
        """Whether it has items."""
        return bool(self.keys)

    def length(self, tx: Capture) -> Value:
        """The number of items."""
        return Constant(len(self.keys))

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The keys."""
        keys = list(self.keys)
        for key in keys:
            yield Constant(key)
            if list(self.keys) != keys:
                raise CannotCapture("operation-raises", "dictionary changed during iteration")

    def rebuild(self, program: Rebuilder) -> str:
        """A dict display."""
        if self.source is not None:
            return program.load(self.source)
        pairs = [f"{program.rebuild(Constant(k))}: {program.rebuild(v)}" for k, v in self.items.items()]
        return f"{{{', '.join(pairs)}}}"


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
        for key in self.owner.iterate(tx):
            if self.name == "keys":
                yield key
                continue
            value = self.owner.at(constant_of(key, "a dict key"))
            yield value if self.name == "values" else SequenceValue([key, value], tuple)

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
        if isinstance(self.step, int) and self.step:
            bounds = slice(self.start, self.stop, self.step)
            if self.step == 1 and isinstance(self.start, int) and self.start >= 0:
                return integer(slice_length(*slice_bounds(bounds, self.stop)))
        return Constant(len(self.fixed()))

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The numbers."""
        return (Constant(i) for i in self.fixed())

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
            args = [Constant(tuple(constant_of(part, "a part of a string") for part in args[0].iterate(tx)))]
        return self.owner.method(tx, self.name, args, kwargs)


def constant_of(value: Value, role: str) -> Any:
    """The plain object behind a constant value. Raises CannotCapture for anything computed."""
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, IntegerValue):
        return value.specialise()
    if isinstance(value, SequenceValue) and value.cls is tuple:
        return tuple(constant_of(item, role) for item in value.items)
    if isinstance(value, ArrayValue | FloatValue):
        raise CannotCapture("data-dependent-value", f"{value.describe()} as {role}")
    raise CannotCapture("unsupported-object", f"{value.describe()} is used as {role}.")
