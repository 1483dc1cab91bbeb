"""Attributes that classes define, looked up as in Python, under guards.

Input: a class, an attribute's name, and the object or class it is read from.
Output: the value, and a guard that holds while the class gives the same definition, from whichever class in the
resolution order.
Why: instances, named tuples and classes find methods in the same way.
"""

from __future__ import annotations

import abc
import enum
import types
from typing import Any

from tcompile.capture.guards.sources import AttributeSource, ConstantSource, Source
from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.callable import BuiltinMethod, FunctionValue, MethodValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph.names import attribute_of

MISSING = object()
_TUPLE_SLOTS = (
    "__len__", "__iter__", "__getitem__", "__contains__", "__add__", "__mul__", "__rmul__", "__eq__", "__ne__",
    "__lt__",
    "__le__", "__gt__", "__ge__", "__hash__", "__getattribute__", "__setattr__",
)  # fmt: skip


def lookup(cls: type, name: str) -> Any:
    """What the classes in ``cls.__mro__`` hold under ``name``, unbound; ``MISSING`` where none has it."""
    for owner in cls.__mro__:
        if name in owner.__dict__:
            return owner.__dict__[name]
    return MISSING


def guard_definition(tx: Context, cls: type, name: str, found: Any) -> None:
    """Guards that ``cls`` still defines ``name`` as ``found``, a function, property, static or class method."""
    if _metaclass_decides(cls, name):
        raise CannotCapture("unsupported-object", f"`{cls.__qualname__}.{name}` is defined by its metaclass too.")
    held = tx.prologue.constant(cls)
    code = attribute_of(held, name)
    if isinstance(found, staticmethod):
        found = found.__func__
    elif isinstance(found, classmethod):
        code, found = f"{code}.__func__", found.__func__
    where = ConstantSource.of(cls.__qualname__, cls)
    text = f"{cls.__qualname__}.{name} is unchanged"
    tx.prologue.guard(where, f"{code} is {tx.prologue.constant(found)}", text, "unchanged", "class attribute")


def bound(tx: Context, owner: Value, cls: type, name: str, found: Any) -> Value | None:
    """``owner.name`` where the class defines it as a function, property, static or class method; else None."""
    if isinstance(found, property):
        if not isinstance(found.fget, types.FunctionType):
            raise CannotCapture("unsupported-object", f"The property `{name}` of {owner.describe()} is read.")
        guard_definition(tx, cls, name, found)
        return FunctionValue.of(tx, found.fget, None).call(tx, [owner], {})
    if isinstance(found, types.FunctionType):
        guard_definition(tx, cls, name, found)
        return MethodValue(owner, tx.wrap_found(found))
    if isinstance(found, staticmethod) and isinstance(found.__func__, types.FunctionType):
        guard_definition(tx, cls, name, found)
        return tx.wrap_found(found.__func__)
    if isinstance(found, classmethod) and isinstance(found.__func__, types.FunctionType):
        guard_definition(tx, cls, name, found)
        return MethodValue(tx.wrap_found(cls), tx.wrap_found(found.__func__))
    inner = tx.inlined_function(found) if hasattr(type(found), "__get__") else None
    if inner is not None:
        guard_definition(tx, cls, name, found)
        return MethodValue(owner, FunctionValue.compiled(tx, found, inner, None))
    return None


def class_attribute(tx: Context, owner: Value, cls: type, name: str) -> Value:
    """``owner.name`` for an instance of ``cls`` that has no attributes of its own."""
    found = lookup(cls, name)
    if found is MISSING:
        raise CannotCapture("operation-raises", f"{cls.__qualname__!r} object has no attribute {name!r}")
    value = bound(tx, owner, cls, name, found)
    if value is not None:
        return value
    if isinstance(found, types.MethodDescriptorType):
        return BuiltinMethod(owner, name)
    if hasattr(type(found), "__get__"):
        raise CannotCapture("unsupported-object", f"The attribute `{name}` of {owner.describe()} is a descriptor.")
    return tx.wrap(found, AttributeSource(ConstantSource.of(cls.__qualname__, cls), name))


def attribute_of_class(tx: Context, cls: type, name: str, source: Source | None) -> Value:
    """``cls.name`` for a class made by a class statement."""
    if issubclass(cls, enum.Enum):
        member = cls.__members__.get(name)
        if member is None:
            raise CannotCapture("unsupported-object", f"`{cls.__qualname__}.{name}` is no member.")
        return tx.wrap_found(member)
    if _metaclass_decides(cls, name):
        if _runs_no_python(cls, name):
            held = source or ConstantSource.of(cls.__qualname__, cls)
            return tx.wrap(getattr(cls, name), AttributeSource(held, name))
        raise CannotCapture("unsupported-object", f"The attribute `{name}` of the class {cls.__qualname__} is read.")
    found = lookup(cls, name)
    if found is MISSING:
        raise CannotCapture("operation-raises", f"type object {cls.__qualname__!r} has no attribute {name!r}")
    where = AttributeSource(source or ConstantSource.of(cls.__qualname__, cls), name)
    if isinstance(found, classmethod) and isinstance(found.__func__, types.FunctionType):
        guard_definition(tx, cls, name, found)
        return MethodValue(tx.wrap_found(cls), tx.wrap_found(found.__func__))  # another one at each access
    if isinstance(found, types.FunctionType | staticmethod) or not hasattr(type(found), "__get__"):
        return tx.wrap(getattr(cls, name), where)
    if tx.inlined_function(found) is not None:
        return tx.wrap(found, where)
    raise CannotCapture("unsupported-object", f"`{cls.__qualname__}.{name}` is a descriptor.")


def _runs_no_python(cls: type, name: str) -> bool:
    """Whether ``cls.name`` is one of the texts of a class, which ``type`` itself answers."""
    if name not in ("__name__", "__qualname__", "__module__", "__doc__"):
        return False
    metaclass = type(cls)
    if metaclass.__getattribute__ is not type.__getattribute__ or lookup(metaclass, name) is not vars(type)[name]:
        return False
    return name != "__doc__" or not hasattr(type(vars(cls).get(name)), "__get__")  # dataclasses make theirs when read


def _metaclass_decides(cls: type, name: str) -> bool:
    """Whether ``cls.name`` is not simply what the classes in the resolution order hold."""
    metaclass = type(cls)
    if metaclass.__getattribute__ is not type.__getattribute__:
        return True
    found = type(lookup(metaclass, name))
    return hasattr(found, "__set__") or hasattr(found, "__delete__")


def plain_named_tuple(cls: Any) -> bool:
    """Whether ``cls`` is a named tuple class that changes nothing about being a tuple."""
    if not issubclass(cls, tuple) or not isinstance(getattr(cls, "_fields", None), tuple) or type(cls) is not type:
        return False
    if any(getattr(cls, name) is not getattr(tuple, name) for name in _TUPLE_SLOTS):
        return False
    if hasattr(cls, "__bool__") or hasattr(cls, "__getattr__") or hasattr(cls, "__iadd__"):
        return False
    fields = (lookup(cls, field) for field in getattr(cls, "_fields"))  # noqa: B009  # no attribute of every type
    return not any(field is MISSING or isinstance(field, property) for field in fields)


def plain_constructor(cls: Any) -> bool:
    """Whether calling the named tuple class ``cls`` does nothing but fill its fields."""
    made = cls.__new__
    if not isinstance(made, types.FunctionType) or not made.__module__.startswith("namedtuple_"):
        return False
    return lookup(cls, "__init__") is object.__init__


def answers_in_python(value: Any) -> bool:
    """Whether an operator, a built-in function or a text of ``value`` may run code of the user's.

    That is so for a class whose metaclass defines special methods, for a member of an enumeration that does, for an
    instance of any other class made by a class statement, and for a container of such.
    """
    cls = type(value)
    if cls in (tuple, list, frozenset, set):
        return any(map(answers_in_python, value))
    if cls is dict:
        return any(answers_in_python(part) for item in value.items() for part in item)
    if cls is slice:
        return any(map(answers_in_python, (value.start, value.stop, value.step)))
    if not cls.__flags__ & _BY_CLASS_STATEMENT or cls in (abc.ABCMeta, enum.EnumMeta):
        return False
    if str(cls.__module__).partition(".")[0] in ("numpy", "re"):
        return False
    if not issubclass(cls, type | enum.Enum):
        return True
    bases: Any = cls.__mro__
    return any(map(_defines_special, bases))


def class_answers_in_python(cls: type) -> bool:
    """Whether reading an attribute of ``cls`` itself, or comparing it, may run code of the user's metaclass."""
    metaclass = type(cls)
    if metaclass in (type, abc.ABCMeta, enum.EnumMeta):
        return False
    bases: Any = metaclass.__mro__
    owners = (one for one in bases if one.__module__ not in ("builtins", "abc", "enum"))
    return any(name in vars(one) for one in owners for name in _ASKED_OF_CLASSES)


_ASKED_OF_CLASSES = ("__getattribute__", "__getattr__", "__eq__", "__hash__")


def hasattr_asks(value: Any, name: str) -> bool:
    """Whether ``hasattr(value, name)`` of a class or a member of an enumeration may run code of the user's."""
    if isinstance(value, type):
        return _metaclass_decides(value, name) or lookup(type(value), "__getattr__") is not MISSING
    return isinstance(value, enum.Enum) and name not in ("name", "value")


def module_answers(tx: Context, value: Any, name: str) -> bool:
    """Whether ``value`` is a module whose own function (PEP 562) is asked for the attribute. Libraries' are fixed."""
    if not isinstance(value, types.ModuleType) or tx.is_library_name(value.__name__):
        return False
    return "__getattr__" in vars(value) and name not in vars(value) and not hasattr(types.ModuleType, name)


def _defines_special(cls: type) -> bool:
    """Whether a class statement of the user's gives ``cls`` a special method that operators or built-ins call."""
    if not cls.__flags__ & _BY_CLASS_STATEMENT or cls.__module__ in ("abc", "enum"):
        return False
    for name, value in vars(cls).items():
        special = name[:2] == name[-2:] == "__" and name not in _HARMLESS and type(value) not in _NO_METHODS
        if special and getattr(value, "__module__", None) != "enum":  # whose methods are copied into its classes
            return True
    return False


_BY_CLASS_STATEMENT = 1 << 9
_HARMLESS = ("__new__", "__init__", "__init_subclass__", "__set_name__", "__prepare__", "__class_getitem__", "__dir__")
_NO_METHODS = (
    str, int, tuple, dict, list, set, frozenset, type(None), types.GetSetDescriptorType, types.MemberDescriptorType,
    types.WrapperDescriptorType, types.MethodDescriptorType, types.BuiltinFunctionType,
)  # fmt: skip
