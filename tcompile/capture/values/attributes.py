"""The dict of an instance's attributes: ``object.__dict__``, ``vars(object)``.

Input: an instance.
Output: a value that reads and stores the instance's own attributes by name, bypassing its class.
Why: it aliases the instance: a store through either is visible in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tcompile.capture.values.base import Context, Rebuilder, Value
from tcompile.capture.values.callable import BuiltinMethod
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.dicts import DictValue
from tcompile.frontends.base import CannotCapture


class Attributed(Value):
    """What has attributes of its own, beside those of its class."""

    def own_names(self, tx: Context) -> list[str]:
        """Their names, in order."""
        raise NotImplementedError

    def has_own(self, tx: Context, name: str) -> bool:
        """Whether there is such an attribute, under a guard."""
        raise NotImplementedError

    def own(self, tx: Context, name: str) -> Value:
        """The attribute, which there is."""
        raise NotImplementedError

    def store_own(self, tx: Context, name: str, value: Value | None) -> None:
        """Stores the attribute; None deletes it."""
        raise NotImplementedError


class AttributesValue(Value):
    """``owner.__dict__``."""

    def __init__(self, owner: Attributed) -> None:
        self.owner = owner

    @property
    def python_type(self) -> type:
        """Always dict."""
        return dict

    def describe(self) -> str:
        """Whose attributes these are."""
        return f"the attributes of {self.owner.describe()}"

    def attribute(self, tx: Context, name: str) -> Value:
        """A built-in method."""
        if hasattr(dict, name):
            return BuiltinMethod(self, name)
        raise CannotCapture("operation-raises", f"dict has no attribute {name!r}")

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The methods that look at or store single attributes, and views."""
        if name == "update" and all(isinstance(arg, DictValue) for arg in args) and len(args) <= 1:
            for other in args:
                assert isinstance(other, DictValue)
                for key, value in other.items.items():
                    self.store_item(tx, Constant(key), value)
            for key, value in kwargs.items():
                self.store_item(tx, Constant(key), value)
            return Constant(None)
        if kwargs:
            return super().method(tx, name, args, kwargs)
        if name in ("items", "keys", "values") and not args:
            return AttributesView(self, name)
        if name == "copy" and not args:
            return self.copy(tx)
        if name in ("get", "pop", "setdefault") and 1 <= len(args) <= 2:
            if self.holds(tx, args[0]):
                found = self.item(tx, args[0])
                if name == "pop":
                    self.delete_item(tx, args[0])
                return found
            if name == "pop" and len(args) == 1:
                raise CannotCapture("operation-raises", f"KeyError: {args[0].describe()}")
            other_value = args[1] if len(args) > 1 else Constant(None)
            if name == "setdefault":
                self.store_item(tx, args[0], other_value)
            return other_value
        return super().method(tx, name, args, kwargs)

    def copy(self, tx: Context) -> DictValue:
        """A dict of the same items."""
        return DictValue({name: self.owner.own(tx, name) for name in self.owner.own_names(tx)})

    @staticmethod
    def _name(key: Value) -> str:
        name = constant_of(key, "an attribute's name")
        if type(name) is not str:
            raise CannotCapture("unsupported-object", "A key of an object's attributes is no string.")
        return name

    def holds(self, tx: Context, key: Value) -> bool:
        """Whether there is such an attribute, under a guard."""
        return self.owner.has_own(tx, self._name(key))

    def item(self, tx: Context, key: Value) -> Value:
        """The attribute."""
        name = self._name(key)
        if not self.owner.has_own(tx, name):
            raise CannotCapture("operation-raises", f"KeyError: {name!r}")
        return self.owner.own(tx, name)

    def store_item(self, tx: Context, key: Value, value: Value) -> None:
        """Stores the attribute."""
        self.owner.store_own(tx, self._name(key), value)

    def delete_item(self, tx: Context, key: Value) -> None:
        """Deletes the attribute."""
        self.owner.store_own(tx, self._name(key), None)

    def truth(self, tx: Context) -> bool:
        """Whether there are attributes."""
        return bool(self.owner.own_names(tx))

    def length(self, tx: Context) -> Value:
        """How many there are."""
        return Constant(len(self.owner.own_names(tx)))

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The names."""
        names = self.owner.own_names(tx)
        for name in names:
            yield Constant(name)
            if self.owner.own_names(tx) != names:
                raise CannotCapture("operation-raises", "dictionary changed during iteration")

    def rebuild(self, program: Rebuilder) -> str:
        """The object's own dict."""
        return f"{program.rebuild(self.owner)}.__dict__"


class AttributesView(Value):
    """``owner.__dict__.items()``, ``keys()`` or ``values()``."""

    def __init__(self, owner: AttributesValue, name: str) -> None:
        self.owner = owner
        self.name = name

    def describe(self) -> str:
        """The kind of view."""
        return f"a view of {self.owner.describe()}"

    def length(self, tx: Context) -> Value:
        """How many there are."""
        return self.owner.length(tx)

    def iterate(self, tx: Context) -> Iterator[Value]:
        """Names, values or pairs."""
        for name in self.owner.iterate(tx):
            if self.name == "keys":
                yield name
            else:
                value = self.owner.item(tx, name)
                yield value if self.name == "values" else SequenceValue([name, value], tuple)

    def rebuild(self, program: Rebuilder) -> str:
        """The dict, asked for the view."""
        return f"{program.rebuild(self.owner)}.{self.name}()"
