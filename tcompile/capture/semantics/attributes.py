"""Attributes and iteration, for instructions and built-in functions.

Input: captured values.
Output: the attribute, the iterator, the next value.
Why: ``x.y`` and ``getattr(x, 'y')`` have one meaning, as have a ``for`` loop and ``next``.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.capture.guards.sources import ConstantSource
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.callable import BuiltinMethod, FunctionValue, IteratorValue, MethodValue
from tcompile.capture.values.classes import class_answers_in_python, hasattr_asks, module_answers
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue
from tcompile.capture.values.container import SequenceValue, constant_of, through_iterator
from tcompile.capture.values.counted import counted
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.object import ObjectValue, OpaqueValue
from tcompile.capture.values.sets import SetValue
from tcompile.capture.values.slices import RangeValue, SliceValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph.names import quoted

_WITH_METHODS = (str, bytes, int, float, complex, bool, frozenset)
_PLAIN_CLASSES = (
    FunctionValue, MethodValue, FloatValue, IntegerValue, DictValue, SetValue, RangeValue, SliceValue, SequenceValue,
    ArrayValue,
)  # fmt: skip


class _Join(BuiltinMethod):
    """``"…".join``, which takes an iterator of the parts."""

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Joins the parts."""
        if len(args) == 1:
            args = [Constant(tuple(constant_of(part, "a part of a string") for part in through_iterator(tx, args[0])))]
        return super().call(tx, args, kwargs)


def attribute_name(value: Value) -> str:
    """The name argument of ``getattr`` and its like, which may be any object."""
    name = constant_of(value, "an attribute's name")
    if type(name) is not str:
        raise CannotCapture("operation-raises", "attribute name must be string")
    return name


def attribute(tx: Context, owner: Value, name: str) -> Value:
    """``owner.name``."""
    if name == "__class__" and _has_plain_class(owner):
        return tx.wrap_found(owner.python_type)
    plain = isinstance(owner, Constant) and type(owner.value) in _WITH_METHODS
    if plain and callable(getattr(owner.value, name, None)):  # type: ignore[attr-defined]
        return _Join(owner, name) if name == "join" else BuiltinMethod(owner, name)
    return owner.attribute(tx, name)


def _has_plain_class(owner: Value) -> bool:
    if isinstance(owner, Constant):
        return type(owner.value).__module__ == "builtins"
    return isinstance(owner, _PLAIN_CLASSES)


def has_attribute(tx: Context, value: Value, name: str) -> bool:
    """``hasattr(value, name)``."""
    if isinstance(value, ObjectValue):
        return value.has(tx, name)
    if isinstance(value, Constant):
        if isinstance(value.value, types.ModuleType) and tx.stored_global(vars(value.value), name) is not None:
            return True
        if hasattr_asks(value.value, name) or module_answers(tx, value.value, name):
            raise CannotCapture("unsupported-object", f"hasattr() is asked of {value.describe()}.")
        found = hasattr(value.value, name)
        if isinstance(value.value, type | types.ModuleType) and not tx.is_library_name(_module_name(value.value)):
            source = value.source or ConstantSource.of(value.describe(), value.value)
            return tx.decide(source, f"hasattr({{}}, {quoted(name)})", f"hasattr({source.text}, {name!r})", found)
        return found
    if isinstance(value, OpaqueValue) and class_answers_in_python(value.python_type):
        raise CannotCapture("unsupported-object", f"hasattr() is asked of {value.describe()}.")
    found = hasattr(value.python_type, name)
    if not found and not isinstance(value, ArrayValue | SequenceValue | DictValue | FloatValue | IntegerValue):
        # Functions have attributes of their own.
        raise CannotCapture("unsupported-object", f"hasattr() is asked of {value.describe()}.")
    return found


def found_attribute(tx: Context, value: Value, name: str) -> Value | None:
    """``value.name``, read once; None where there is no such attribute."""
    if isinstance(value, ObjectValue) and value.is_told_by_reading(name):
        return attribute(tx, value, name)
    return attribute(tx, value, name) if has_attribute(tx, value, name) else None


def _module_name(value: Any) -> str:
    return value.__name__ if isinstance(value, types.ModuleType) else str(value.__module__)


def iterator(tx: Context, value: Value) -> Value:
    """``iter(value)``."""
    if isinstance(value, IteratorValue):
        return value
    if isinstance(value, ObjectValue):
        return value.iterator(tx)
    found = counted(tx, value)
    if found is not None:
        return found
    return IteratorValue(tx, value.iterate(tx))
