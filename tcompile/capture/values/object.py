"""Instances of the user's own classes, and objects that are only passed through.

Attributes are read as Python reads them: data descriptors, instance dictionary, class. Methods and properties are
followed inside. Nothing is written.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.sources import AttributeSource, Source
from tcompile.capture.values.base import Value
from tcompile.capture.values.callable import IteratorValue, MethodValue
from tcompile.capture.values.classes import MISSING, bound, guard_definition, lookup
from tcompile.capture.values.constant import Constant, IntegerValue
from tcompile.frontends.base import CannotCapture

if TYPE_CHECKING:
    from tcompile.capture.state import Capture


class ObjectValue(Value):
    """An object from outside whose class is known (and guarded)."""

    def __init__(self, value: Any, source: Source) -> None:
        self.value = value
        self.source: Source = source

    @property
    def python_type(self) -> type:
        """The object's class."""
        return type(self.value)

    def describe(self) -> str:
        """The user's name and the class."""
        return f"`{self.source.text}` (an object of class {type(self.value).__qualname__})"

    def attribute(self, tx: Capture, name: str) -> Value:
        """``object.name`` by Python's own look-up rules."""
        cls = type(self.value)
        if not _plain_lookup(cls):
            raise CannotCapture("unsupported-object", f"{self.describe()} defines its own attribute look-up.")
        found = lookup(cls, name)
        own = getattr(self.value, "__dict__", None)
        where = AttributeSource(self.source, name)
        if isinstance(found, property):
            value = bound(tx, self, cls, name, found)
            assert value is not None
            return value
        if isinstance(found, types.MemberDescriptorType):  # a slot
            return tx.wrap(self._read(name), where)
        if _is_data_descriptor(found):
            raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()} is a descriptor.")
        if isinstance(own, dict) and name in own:
            return tx.wrap(self._read(name), where)
        if found is MISSING:
            if hasattr(cls, "__getattr__"):
                raise CannotCapture("unsupported-object", f"{self.describe()} defines __getattr__.")
            raise CannotCapture("operation-raises", f"{cls.__name__!r} object has no attribute {name!r}")
        self._guard_not_shadowed(tx, name)
        value = bound(tx, self, cls, name, found)
        if value is not None:
            return value
        if hasattr(type(found), "__get__"):
            raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()} is a descriptor.")
        return tx.wrap(self._read(name), where)

    def has(self, tx: Capture, name: str) -> bool:
        """``hasattr(object, name)``, under a guard."""
        cls = type(self.value)
        found = lookup(cls, name)
        if not _plain_lookup(cls) or hasattr(cls, "__getattr__") or hasattr(type(found), "__get__"):
            self.attribute(tx, name)  # breaks where it cannot be read soundly
            return True
        there = found is not MISSING or name in getattr(self.value, "__dict__", ())
        text = f"hasattr({self.source.text}, {name!r})"
        return tx.decide(self.source, f"hasattr({{}}, {name!r})", text, there)

    def _read(self, name: str) -> Any:
        try:
            return getattr(self.value, name)
        except AttributeError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    def _guard_not_shadowed(self, tx: Capture, name: str) -> None:
        if hasattr(self.value, "__dict__"):
            code = f"{name!r} not in {{}}.__dict__"
            tx.prologue.guard(self.source, code, f"{name!r} not in {self.source.text}.__dict__", "no such attribute")

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The class's ``__call__``."""
        if hasattr(type(self.value), "__tcompile_inline__"):
            raise CannotCapture("compiled-by-itself", self.describe())
        return self._special(tx, "__call__").call(tx, args, kwargs)

    def _special(self, tx: Capture, name: str) -> Value:
        cls = type(self.value)
        found = lookup(cls, name)
        if not isinstance(found, types.FunctionType):
            raise CannotCapture("unknown-function", f"`{name}` of {self.describe()}")
        guard_definition(tx, cls, name, found)
        return MethodValue(self, tx.wrap_found(found))

    def item(self, tx: Capture, key: Value) -> Value:
        """The class's ``__getitem__``."""
        return self._special(tx, "__getitem__").call(tx, [key], {})

    def length(self, tx: Capture) -> Value:
        """The class's ``__len__``."""
        result = self._special(tx, "__len__").call(tx, [], {})
        if not isinstance(result, IntegerValue) and not (isinstance(result, Constant) and type(result.value) is int):
            raise CannotCapture("unsupported-object", f"The length of {self.describe()} is {result.describe()}.")
        if (result.size if isinstance(result, IntegerValue) else result.value) < 0:
            raise CannotCapture("operation-raises", "__len__() should return >= 0")
        return result

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The class's ``__iter__``."""
        found = self._special(tx, "__iter__").call(tx, [], {})
        if not isinstance(found, IteratorValue):
            raise CannotCapture("unsupported-object", f"The iterator of {self.describe()} is {found.describe()}.")
        return found.iterate(tx)

    def truth(self, tx: Capture) -> bool:
        """True, unless the class says otherwise in Python."""
        cls = type(self.value)
        if hasattr(cls, "__bool__"):
            result = self._special(tx, "__bool__").call(tx, [], {})
            if result.python_type is not bool:
                raise CannotCapture("operation-raises", "__bool__ should return bool")
            return result.truth(tx)
        if hasattr(cls, "__len__"):
            return self.length(tx).truth(tx)
        return True

    def inplace(self, tx: Capture, name: str, other: Value) -> Value | None:
        """The class's in-place method ``name`` (``__iadd__``); None where it has none."""
        if lookup(type(self.value), name) is MISSING:
            return None
        result = self._special(tx, name).call(tx, [other], {})
        if isinstance(result, Constant) and result.value is NotImplemented:
            raise CannotCapture("unsupported-operands", f"`{name}` of {self.describe()}, which returns NotImplemented,")
        return result

    def operator(self, tx: Capture, name: str, args: Sequence[Value]) -> Value:
        """The class's operator method ``name`` (``__add__``); NotImplemented is not followed."""
        cls = type(self.value)
        for other in args:  # a subclass's reflected method would come first
            if other.python_type is not cls and issubclass(other.python_type, cls):
                raise CannotCapture("unsupported-operands", f"`{name}` of {self.describe()} and {other.describe()}")
        result = self._special(tx, name).call(tx, args, {})
        if isinstance(result, Constant) and result.value is NotImplemented:
            raise CannotCapture("unsupported-operands", f"`{name}` of {self.describe()}, which returns NotImplemented,")
        return result


class OpaqueValue(Value):
    """An object that is not captured. It may be passed around and returned; any use of it breaks."""

    def __init__(self, value: Any, source: Source, why: str) -> None:
        self.value = value
        self.source: Source = source
        self.why = why

    @property
    def python_type(self) -> type:
        """The object's class."""
        return type(self.value)

    def describe(self) -> str:
        """The user's name and what it is."""
        return f"`{self.source.text}` ({self.why})"

    def export(self, tx: Capture) -> Any:
        """Never goes into a graph."""
        raise CannotCapture("unsupported-object", f"{self.describe()} is used in array code.")


def _plain_lookup(cls: type) -> bool:
    """Whether attribute access on instances is Python's default."""
    return lookup(cls, "__getattribute__") is object.__getattribute__


def _is_data_descriptor(found: object) -> bool:
    return found is not MISSING and (hasattr(type(found), "__set__") or hasattr(type(found), "__delete__"))
