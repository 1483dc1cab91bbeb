"""Instances of the user's own classes, and objects that are only passed through.

Attributes are read as Python reads them: data descriptors, instance dictionary, class. Methods and properties are
followed inside. Nothing is written.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.sources import AttributeSource, Source
from tcompile.capture.values.base import Value
from tcompile.capture.values.callable import FunctionValue, MethodValue
from tcompile.capture.values.constant import Constant
from tcompile.frontends.base import CannotCapture

if TYPE_CHECKING:
    from tcompile.capture.state import Capture

_MISSING = object()


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
        return f"`{self.source.text}`, an object of class {type(self.value).__qualname__}"

    def attribute(self, tx: Capture, name: str) -> Value:
        """``object.name`` by Python's own look-up rules."""
        cls = type(self.value)
        if not _plain_lookup(cls):
            raise CannotCapture("unsupported-object", f"{self.describe()} defines its own attribute look-up.")
        found = inspect.getattr_static(cls, name, _MISSING)
        own = getattr(self.value, "__dict__", None)
        where = AttributeSource(self.source, name)
        if isinstance(found, property):
            self._guard_class_attribute(tx, name, found)
            if not isinstance(found.fget, types.FunctionType):
                raise CannotCapture("unsupported-object", f"Property {name!r} of {self.describe()}")
            return FunctionValue.of(tx, found.fget, None).call(tx, [self], {})
        if isinstance(found, types.MemberDescriptorType) or (isinstance(own, dict) and name in own):
            if isinstance(found, types.MemberDescriptorType) or not _is_data_descriptor(found):
                return tx.wrap(self._read(name), where)
            raise CannotCapture("unsupported-object", f"Attribute {name!r} of {self.describe()} is a descriptor.")
        if found is _MISSING:
            if hasattr(cls, "__getattr__"):
                raise CannotCapture("unsupported-object", f"{self.describe()} defines __getattr__.")
            raise CannotCapture("operation-raises", f"{cls.__name__!r} object has no attribute {name!r}")
        self._guard_not_shadowed(tx, name)
        if isinstance(found, types.FunctionType):
            self._guard_class_attribute(tx, name, found)
            return MethodValue(self, FunctionValue.of(tx, found, None))
        if isinstance(found, staticmethod) and isinstance(found.__func__, types.FunctionType):
            self._guard_class_attribute(tx, name, found)
            return FunctionValue.of(tx, found.__func__, None)
        if isinstance(found, classmethod) and isinstance(found.__func__, types.FunctionType):
            self._guard_class_attribute(tx, name, found)
            return MethodValue(Constant(cls), FunctionValue.of(tx, found.__func__, None))
        if hasattr(type(found), "__get__"):
            inner = tx.inlined_function(found)
            if inner is not None:
                self._guard_class_attribute(tx, name, found)
                return MethodValue(self, FunctionValue.of(tx, inner, None))
            raise CannotCapture("unsupported-object", f"Attribute {name!r} of {self.describe()} is a descriptor.")
        return tx.wrap(self._read(name), where)

    def _read(self, name: str) -> Any:
        try:
            return getattr(self.value, name)
        except AttributeError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    def _guard_not_shadowed(self, tx: Capture, name: str) -> None:
        if hasattr(self.value, "__dict__"):
            code = f"{name!r} not in {{}}.__dict__"
            tx.prologue.guard(self.source, code, f"{name!r} not in {self.source.text}.__dict__", "no such attribute")

    def _guard_class_attribute(self, tx: Capture, name: str, found: object) -> None:
        for owner in type(self.value).__mro__:
            if name in owner.__dict__:
                held, want = tx.prologue.constant(owner), tx.prologue.constant(found)
                code = f"{held}.__dict__[{name!r}] is {want}"
                text = f"{owner.__qualname__}.{name} is unchanged"
                tx.prologue.guard(self.source, code, text, "the same definition")
                return

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The class's ``__call__``."""
        if hasattr(type(self.value), "__tcompile_inline__"):
            raise CannotCapture("compiled-by-itself", self.describe())
        return self._special(tx, "__call__").call(tx, args, kwargs)

    def _special(self, tx: Capture, name: str) -> Value:
        found = inspect.getattr_static(type(self.value), name, None)
        if not isinstance(found, types.FunctionType):
            raise CannotCapture("unknown-function", f"{name} of {self.describe()}")
        self._guard_class_attribute(tx, name, found)
        return MethodValue(self, FunctionValue.of(tx, found, None))

    def item(self, tx: Capture, key: Value) -> Value:
        """The class's ``__getitem__``."""
        return self._special(tx, "__getitem__").call(tx, [key], {})

    def length(self, tx: Capture) -> Value:
        """The class's ``__len__``."""
        return self._special(tx, "__len__").call(tx, [], {})

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The class's ``__iter__``."""
        return self._special(tx, "__iter__").call(tx, [], {}).iterate(tx)

    def truth(self, tx: Capture) -> bool:
        """True, unless the class says otherwise in Python."""
        cls = type(self.value)
        if hasattr(cls, "__bool__"):
            return self._special(tx, "__bool__").call(tx, [], {}).truth(tx)
        if hasattr(cls, "__len__"):
            return self.length(tx).truth(tx)
        return True

    def operator(self, tx: Capture, name: str, args: Sequence[Value]) -> Value:
        """The class's operator method ``name`` (``__add__``); NotImplemented is not followed."""
        result = self._special(tx, name).call(tx, args, {})
        if isinstance(result, Constant) and result.value is NotImplemented:
            raise CannotCapture("unsupported-operands", f"{name} of {self.describe()} is not implemented.")
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
        return f"`{self.source.text}`, {self.why},"

    def export(self, tx: Capture) -> Any:
        """Never goes into a graph."""
        raise CannotCapture("unsupported-object", f"{self.describe()} is used in array code.")


def _plain_lookup(cls: type) -> bool:
    """Whether attribute access on instances is Python's default."""
    return cls.__getattribute__ is object.__getattribute__


def _is_data_descriptor(found: object) -> bool:
    return found is not _MISSING and (hasattr(type(found), "__set__") or hasattr(type(found), "__delete__"))
