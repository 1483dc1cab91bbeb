"""The construction of instances of Python classes; ``object`` and ``super``.

Input: a class, or a function of ``object``, and captured arguments.
Output: a new captured object, or the effect on one.
Why: ``type.__call__``, ``object.__new__`` and their like have no bytecode to follow.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.capture.guards.sources import ConstantSource
from tcompile.capture.semantics.attributes import attribute_name
from tcompile.capture.values.base import Context, Rebuilder, Value, settled
from tcompile.capture.values.callable import ClosureCell, FunctionValue, MethodValue
from tcompile.capture.values.classes import MISSING, guard_definition, lookup
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import constant_of
from tcompile.capture.values.object import ObjectValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph.names import quoted

_ABSTRACT = 1 << 20
_FUNCTION = (types.FunctionType, staticmethod)
_METACLASS_CALL = lookup(type, "__call__")


def makes_instances(cls: Any) -> bool:
    """Whether calling ``cls`` makes an instance as ``type.__call__`` does, with no state but its attributes."""
    if not isinstance(cls, type) or lookup(type(cls), "__call__") is not _METACLASS_CALL:
        return False
    if not cls.__flags__ & (1 << 9) or cls.__flags__ & _ABSTRACT or lookup(cls, "__del__") is not MISSING:
        return False
    return _only_attributes(cls)


def _only_attributes(cls: type) -> bool:
    """Whether instances have no state but attributes: no built-in class but ``object`` is a base."""
    return all(base is object or _by_class_statement(base) for base in cls.__mro__)


def _by_class_statement(cls: type) -> bool:
    found = lookup(cls, "__new__")
    own = cls.__dict__
    named = "__module__" in own and ("__dict__" in own or "__slots__" in own or "__doc__" in own)
    return named and bool(cls.__flags__ & (1 << 9)) and (found is object.__new__ or isinstance(found, _FUNCTION))


def construct(tx: Context, cls: type, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """``cls(*args, **kwargs)`` for a class that ``makes_instances`` accepts."""
    new, init = lookup(cls, "__new__"), lookup(cls, "__init__")
    held = tx.prologue.constant(cls)
    where = ConstantSource.of(cls.__qualname__, cls)
    if new is object.__new__:
        text = f"{cls.__qualname__}.__new__ is object's"
        tx.prologue.guard(where, f"{held}.__new__ is {tx.prologue.constant(new)}", text, "object.__new__")
        if init is object.__init__ and (args or kwargs):
            raise CannotCapture("operation-raises", f"{cls.__name__}() takes no arguments")
        made: Value = ObjectValue(cls)
    else:
        function = new.__func__ if isinstance(new, staticmethod) else new
        if not isinstance(function, types.FunctionType):
            raise CannotCapture("unknown-function", f"`{cls.__qualname__}.__new__`")
        guard_definition(tx, cls, "__new__", new)
        made = FunctionValue.of(tx, function, None).call(tx, [Constant(cls), *args], kwargs)
        if not issubclass(made.python_type, cls):
            return made
        if made.python_type is not cls:
            raise CannotCapture("unknown-function", f"`{cls.__qualname__}.__new__`")
    if init is object.__init__:
        text = f"{cls.__qualname__}.__init__ is object's"
        tx.prologue.guard(where, f"{held}.__init__ is {tx.prologue.constant(init)}", text, "object.__init__")
        return made
    if not isinstance(init, types.FunctionType):
        raise CannotCapture("unknown-function", f"`{cls.__qualname__}.__init__`")
    guard_definition(tx, cls, "__init__", init)
    result = FunctionValue.of(tx, init, None).call(tx, [made, *args], kwargs)
    if not (isinstance(result, Constant) and result.value is None):
        raise CannotCapture("operation-raises", "__init__() should return None")
    return made


def enum_member(tx: Context, cls: type[enum.Enum], args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """``cls(value)`` for a value that has a member."""
    if len(args) == 1 and not kwargs and lookup(type(cls), "__call__") is lookup(type(enum.Enum), "__call__"):
        value = constant_of(args[0], "the value of an enumeration")
        if type(value) is cls:
            return args[0]
        if type(value) in (int, str, bool, float, bytes, type(None)):
            member = cls._value2member_map_.get(value)
            if isinstance(member, cls):
                return Constant(member)
    raise CannotCapture("unknown-function", f"`{cls.__qualname__}`")


# -- functions of object ---------------------------------------------------------------------------------------------
def _object_new(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    cls = constant_of(args[0], "a class") if args else None
    if len(args) != 1 or kwargs or cls is None or not makes_instances(cls):
        raise CannotCapture("unknown-function", "`object.__new__`")
    return ObjectValue(cls)


def _object_init(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if len(args) != 1 or kwargs or not isinstance(args[0], ObjectValue):
        raise CannotCapture("unknown-function", "`object.__init__`")
    return Constant(None)


def _object_setattr(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    owner, name, *value = args
    if not isinstance(owner, ObjectValue) or kwargs or len(value) > 1 or not _only_attributes(owner.cls):
        raise CannotCapture("unknown-function", "`object.__setattr__`")
    owner.store_plainly(tx, attribute_name(name), value[0] if value else None)
    return Constant(None)


def _object_getattribute(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    owner, name = args
    if not isinstance(owner, ObjectValue) or hasattr(owner.cls, "__getattr__"):  # object's function does not call it
        raise CannotCapture("unknown-function", "`object.__getattribute__`")
    return owner.attribute(tx, attribute_name(name))


OBJECT_FUNCTIONS = {
    object.__new__: (1, 1, _object_new), object.__init__: (1, 1, _object_init),
    object.__setattr__: (3, 3, _object_setattr), object.__delattr__: (2, 2, _object_setattr),
    object.__getattribute__: (2, 2, _object_getattribute),
}  # fmt: skip


# -- super -----------------------------------------------------------------------------------------------------------
class SuperValue(Value):
    """``super(cls, owner)``."""

    def __init__(self, cls: type, owner: Value) -> None:
        self.cls = cls
        self.owner = owner

    @property
    def python_type(self) -> type:
        """Always super."""
        return super

    def attribute(self, tx: Context, name: str) -> Value:
        """The attribute that the classes after ``cls`` in the owner's resolution order define, bound to the owner."""
        owner = self.owner
        class_ = owner.value if isinstance(owner, Constant) and isinstance(owner.value, type) else None
        through_class = class_ is not None and issubclass(class_, self.cls)
        start = class_ if class_ is not None and through_class else owner.python_type
        if not issubclass(start, self.cls):
            raise CannotCapture("operation-raises", "super(type, obj): obj must be an instance or subtype of type")
        order = start.__mro__
        after = order[order.index(self.cls) + 1 :]
        found = next((c.__dict__[name] for c in after if name in c.__dict__), MISSING)
        if found is MISSING or name == "__class__":
            raise CannotCapture("operation-raises", f"'super' object has no attribute {name!r}")
        inner: Any = found
        if isinstance(found, staticmethod | classmethod):
            inner = found.__func__
        if isinstance(found, property):
            inner = found.fget
        python = isinstance(inner, types.FunctionType)
        if not python and not any(found is function for function in OBJECT_FUNCTIONS):
            raise CannotCapture("unknown-function", f"`super().{name}`")
        self._guard(tx, start, name, found)
        function = tx.wrap_found(inner) if python else Constant(found)
        if isinstance(found, staticmethod) or found is object.__new__:
            return function
        if isinstance(found, classmethod):
            return MethodValue(Constant(start), function)
        if isinstance(found, property):
            if through_class:
                raise CannotCapture("unsupported-object", f"The attribute `{name}` of a super object is read.")
            return function.call(tx, [owner], {})
        return function if through_class else MethodValue(owner, function)

    def rebuild(self, program: Rebuilder) -> str:
        """A new object with the same classes."""
        return f"{program.constant(super)}({program.constant(self.cls)}, {program.rebuild(self.owner)})"

    def _guard(self, tx: Context, start: type, name: str, found: Any) -> None:
        held = [tx.prologue.constant(value) for value in (_after, start, self.cls, found)]
        code = f"{held[0]}({held[1]}, {held[2]}, {quoted(name)}) is {held[3]}"
        text = f"super({self.cls.__qualname__}).{name} is unchanged"
        tx.prologue.guard(ConstantSource.of(start.__qualname__, start), code, text, "the same definition")


def _after(start: type, cls: type, name: str) -> Any:
    """The unbound attribute ``name`` of ``super(cls, start)``."""
    order = start.__mro__
    for owner in order[order.index(cls) + 1 :]:
        if name in owner.__dict__:
            return owner.__dict__[name]
    return None


def make_super(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """``super()`` in the frame that calls it, or ``super(cls, owner)``."""
    if not args and not kwargs:
        frame = tx.frames[-1]
        name = frame.code.co_varnames[0] if frame.code.co_argcount else ""
        held = frame.cells.get(name)
        owner = held.get(name) if isinstance(held, ClosureCell) else frame.locals.get(name)
        cell = frame.cells.get("__class__")
        if owner is None or not isinstance(cell, ClosureCell):
            raise CannotCapture("operation-raises", "super(): no arguments")
        args = [settled(tx, cell.get("__class__")), settled(tx, owner)]
    if len(args) != 2 or kwargs:
        raise CannotCapture("unknown-function", "`super`")
    cls = constant_of(args[0], "the class of super()")
    if not isinstance(cls, type) or not _plain_order(args[1]):
        raise CannotCapture("unknown-function", "`super`")
    found = args[1].value if isinstance(args[1], Constant) else None
    if not issubclass(args[1].python_type, cls) and not (isinstance(found, type) and issubclass(found, cls)):
        raise CannotCapture("operation-raises", f"super() of {args[1].describe()}, which is no {cls.__qualname__}")
    return SuperValue(cls, args[1])


def _plain_order(owner: Value) -> bool:
    """Whether ``super`` finds the owner's class without calling the owner's code."""
    if isinstance(owner, Constant):
        return isinstance(owner.value, type)
    return isinstance(owner, ObjectValue)
