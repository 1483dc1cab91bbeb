"""Instances of user classes, and opaque objects.

Input: objects from outside, or made by captured code.
Output: values whose attributes follow Python's lookup: data descriptors, instance dictionary, class.
Why: user code is object-oriented. Methods, properties and descriptors are inlined. Stores are visible to later reads,
and are done after the graph.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tcompile.capture.guards.sources import AttributeSource, ComputedSource, ConstantSource, ItemSource, Source
from tcompile.capture.values.attributes import Attributed, AttributesValue
from tcompile.capture.values.base import Context, Rebuilder, Value, named
from tcompile.capture.values.callable import IteratorValue, MethodValue
from tcompile.capture.values.classes import MISSING, bound, guard_definition, lookup
from tcompile.capture.values.constant import Constant, IntegerValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph.names import is_plain, quoted

_CLASS = object.__dict__["__class__"]


@functools.cache
def _asks_length(cls: type) -> bool:
    """Whether ``cls(value)`` asks how many items there will be, as tuples do before 3.14; found by trying."""
    asked: list[Any] = []

    class Tried:
        def __iter__(self) -> Iterator[Any]:
            return iter(())

        def __len__(self) -> int:
            asked.append(self)
            return 0

    cls(Tried())
    return bool(asked)


class ObjectValue(Attributed):
    """An instance of a class that Python code defines: one from outside, whose class is guarded, or a new one.

    ``value`` is the object from outside, or ``MISSING``. What is stored to it stands beside it until it is committed.
    """

    filled_last = True

    def __init__(self, cls: type, value: Any = MISSING, source: Source | None = None) -> None:
        self.cls = cls
        self.value = value
        self.source = source
        self.stored: dict[str, Value] = {}
        self._deleted: dict[str, None] = {}  # attributes of the object from outside that were deleted at some time

    @property
    def python_type(self) -> type:
        """The object's class."""
        return self.cls

    def describe(self) -> str:
        """The class and, where there is one, the user's name."""
        kind = f"an object of class {self.cls.__qualname__}"
        return named(self.source, kind)

    # -- attributes ------------------------------------------------------------------------------------------------
    def attribute(self, tx: Context, name: str) -> Value:
        """``object.name`` by Python's own look-up rules."""
        cls = self.cls
        if not _plain_lookup(cls):
            raise CannotCapture("unsupported-object", f"{self.describe()} defines its own attribute look-up.")
        found = lookup(cls, name)
        if isinstance(found, property):
            value = bound(tx, self, cls, name, found)
            assert value is not None
            return value
        if found is _CLASS:
            return tx.wrap_found(cls)
        if name == "__dict__" and isinstance(found, types.GetSetDescriptorType) and self._has_dict:
            return AttributesValue(self)
        if _is_data_descriptor(found) and not isinstance(found, types.MemberDescriptorType):
            get = self._descriptor_method(tx, name, found, "__get__")
            return get([self, tx.wrap_found(cls)])
        if self._holds(name, found):
            return self._own(tx, name)
        if isinstance(found, types.MemberDescriptorType):
            return self._missing(tx, name)
        self._guard_not_shadowed(tx, name)
        if found is MISSING:
            return self._missing(tx, name)
        if type(found) is functools.cached_property and found.attrname == name:
            return self._cached(tx, name, found)
        value = bound(tx, self, cls, name, found)
        if value is not None:
            return value
        if hasattr(type(found), "__get__"):
            get = self._descriptor_method(tx, name, found, "__get__")
            return get([self, tx.wrap_found(cls)])
        return tx.wrap(found, AttributeSource(self.source or ConstantSource.of(cls.__qualname__, cls), name))

    def _holds(self, name: str, found: Any) -> bool:
        """Whether the instance itself has the attribute (whose name ``found`` has in the class)."""
        return name in self.stored or self._came_with(name, found)

    def _came_with(self, name: str, found: Any) -> bool:
        """Whether it is from outside and had the attribute there, which was not deleted."""
        if self.value is MISSING or name in self._deleted:
            return False
        if isinstance(found, types.MemberDescriptorType):
            try:
                found.__get__(self.value, self.cls)
            except AttributeError:
                return False
            return True
        own = self.value.__dict__ if self._has_dict else {}
        if not all(type(key) is str for key in own):  # looking one up may run code of the user's
            raise CannotCapture("unsupported-object", f"{self.describe()} has attributes whose names are no strings.")
        return name in own

    def _own(self, tx: Context, name: str) -> Value:
        """An attribute that the instance itself has."""
        value = self.stored.get(name)
        return value if value is not None else self._found(tx, name)

    def _found(self, tx: Context, name: str) -> Value:
        """An attribute that the instance came with."""
        assert self.source is not None
        if hasattr(self.cls, "__getattr__"):  # which no guard may call
            self._guard_own(tx, name)
        return tx.wrap(self._read(name), AttributeSource(self.source, name))

    def found_value(self, tx: Context, name: str) -> Value | None:
        """What the instance itself came with under ``name``; None where that is nothing."""
        return self._found(tx, name) if self._came_with(name, lookup(self.cls, name)) else None

    def _missing(self, tx: Context, name: str) -> Value:
        """What ``__getattr__`` says of an attribute that is not there."""
        if lookup(self.cls, "__getattr__") is MISSING or name.startswith("__"):
            raise CannotCapture("operation-raises", f"{self.cls.__name__!r} object has no attribute {name!r}")
        self._guard_not_in_class(tx, name)
        return self.call_method(tx, "__getattr__", [Constant(name)])

    def _cached(self, tx: Context, name: str, found: functools.cached_property[Any]) -> Value:
        """The value of a cached property, which the instance keeps from now on."""
        if not isinstance(found.func, types.FunctionType) or not self._has_dict:
            raise CannotCapture("unsupported-object", f"The property `{name}` of {self.describe()} is read.")
        guard_definition(tx, self.cls, name, found)
        place = AttributeSource(ConstantSource.of(name, found), "func")
        value = tx.wrap(found.func, place).call(tx, [self], {})
        self._put(tx, name, value)
        return value

    def _descriptor_method(self, tx: Context, name: str, found: Any, method: str) -> Callable[[list[Value]], Value]:
        """A method of the descriptor ``found``, which Python code defines."""
        owner = next(c for c in self.cls.__mro__ if name in c.__dict__)
        if not isinstance(lookup(type(found), method), types.FunctionType):
            raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()} is a descriptor.")
        finder, held = tx.prologue.constant(lookup), tx.prologue.constant(self.cls)
        tx.prologue.guard(
            ConstantSource.of(self.cls.__qualname__, self.cls),
            f"{finder}({held}, {quoted(name)}) is {tx.prologue.constant(found)}",
            f"{self.cls.__qualname__}.{name} is unchanged", "the same definition",
        )  # fmt: skip
        place = ItemSource(AttributeSource(ConstantSource.of(owner.__qualname__, owner), "__dict__"), name)
        descriptor = tx.wrap(found, place)
        if not isinstance(descriptor, ObjectValue):
            raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()} is a descriptor.")
        function = descriptor.special(tx, method)
        return lambda args: function.call(tx, args, {})

    def is_told_by_reading(self, name: str) -> bool:
        """Whether only code of the user's says whether there is such an attribute."""
        cls = self.cls
        found = lookup(cls, name)
        return not _plain_lookup(cls) or hasattr(cls, "__getattr__") or hasattr(type(found), "__get__")

    def has(self, tx: Context, name: str) -> bool:
        """``hasattr(object, name)``, under a guard."""
        cls = self.cls
        found = lookup(cls, name)
        if self.is_told_by_reading(name):
            self.attribute(tx, name)  # breaks where it cannot be read soundly
            return True
        if name in self.stored:
            return True
        if self.source is None or name in self._deleted:
            there = found is not MISSING
            where, text = ConstantSource.of(cls.__qualname__, cls), f"hasattr({cls.__qualname__}, {name!r})"
            return tx.decide(where, f"hasattr({{}}, {quoted(name)})", text, there)
        there = found is not MISSING or (self._has_dict and name in self.value.__dict__)
        text = f"hasattr({self.source.text}, {name!r})"
        return tx.decide(self.source, f"hasattr({{}}, {quoted(name)})", text, there)

    def store_attribute(self, tx: Context, name: str, value: Value | None) -> None:
        """``object.name = value``, or ``del object.name``, by Python's own rules."""
        method = "__delattr__" if value is None else "__setattr__"
        found = lookup(self.cls, method)
        if isinstance(found, types.FunctionType):
            self.special(tx, method).call(tx, [Constant(name)] if value is None else [Constant(name), value], {})
            return
        if found is not getattr(object, method):
            raise CannotCapture("side-effect", f"Setting the attribute `{name}` of {self.describe()}")
        guard_definition(tx, self.cls, method, found)
        self.store_plainly(tx, name, value)

    def sets_plainly(self, name: str) -> bool:
        """Whether the instance itself has this attribute, and no code of the user's runs where it is set."""
        found = lookup(self.cls, name)
        plain = _plain_lookup(self.cls) and lookup(self.cls, "__setattr__") is object.__setattr__
        slot = isinstance(found, types.MemberDescriptorType)
        return plain and (slot or not _is_data_descriptor(found)) and self._holds(name, found)

    def store_plainly(self, tx: Context, name: str, value: Value | None) -> None:
        """What ``object.__setattr__`` does, and ``object.__delattr__`` where ``value`` is None."""
        found = lookup(self.cls, name)
        args: list[Value] = [self] if value is None else [self, value]
        if isinstance(found, property):
            setter = found.fdel if value is None else found.fset
            if not isinstance(setter, types.FunctionType):
                raise CannotCapture("operation-raises", f"{self.describe()} does not let {name!r} be set.")
            guard_definition(tx, self.cls, name, found)
            tx.wrap_found(setter).call(tx, args, {})
            return
        slot = isinstance(found, types.MemberDescriptorType)
        if _is_data_descriptor(found) and not slot:
            self._descriptor_method(tx, name, found, "__delete__" if value is None else "__set__")(args)
            return
        if slot and not (name in _slots(found.__objclass__) and found.__objclass__ in self.cls.__mro__):
            raise CannotCapture("side-effect", f"Setting the attribute `{name}` of {self.describe()}")
        if not slot and not self._has_dict:
            raise CannotCapture("operation-raises", f"{self.cls.__name__!r} object has no attribute {name!r}")
        if found is MISSING:
            self._guard_not_in_class(tx, name)
        elif not slot:
            guard_definition(tx, self.cls, name, found)
        if value is not None:
            self._put(tx, name, value)
            return
        if not self._holds(name, found):
            raise CannotCapture("operation-raises", f"{self.cls.__name__!r} object has no attribute {name!r}")
        came = self._came_with(name, found)
        if name not in self.stored:
            self._guard_own(tx, name)
        elif self.source is not None and name not in self._deleted:
            self._decide_own(tx, name, came)
        tx.mutate(self)
        self.stored.pop(name, None)
        if came:
            self._deleted[name] = None

    # The instance's dict, past the class. ``stored`` holds slots too, which are not in it.
    def _in_dict(self, name: str) -> bool:
        if _is_data_descriptor(lookup(self.cls, name)):
            raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()} is a descriptor.")
        return self._holds(name, MISSING)

    def own_names(self, tx: Context) -> list[str]:
        """The names in the instance's dict, in order, under a guard."""
        found: list[str] = []
        if self.source is not None:
            found = list(vars(self.value))
            held = tx.prologue.constant(tuple(found))
            text = f"{self.source.text} has the attributes {found}"
            tx.prologue.guard(self.source, f"tuple({{}}.__dict__) == {held}", text, "the same attributes")
        names = [name for name in found if name not in self._deleted]
        names += [name for name in self.stored if name not in names]
        return [name for name in names if not isinstance(lookup(self.cls, name), types.MemberDescriptorType)]

    def has_own(self, tx: Context, name: str) -> bool:
        """Whether the instance's dict has ``name``, under a guard."""
        there = self._in_dict(name)
        if self.source is not None and name not in self.stored and name not in self._deleted:
            self._decide_own(tx, name, there)
        return there

    def own(self, tx: Context, name: str) -> Value:
        """What the instance's dict holds under ``name``, which is there."""
        if name in self.stored:
            return self.stored[name]
        assert self.source is not None
        return tx.wrap(vars(self.value)[name], ItemSource(AttributeSource(self.source, "__dict__"), name))

    def store_own(self, tx: Context, name: str, value: Value | None) -> None:
        """Stores to the instance's dict; deletes where ``value`` is None."""
        self._in_dict(name)
        self.store_plainly(tx, name, value)

    def _put(self, tx: Context, name: str, value: Value) -> None:
        tx.mutate(self)
        self.stored[name] = value

    @property
    def _has_dict(self) -> bool:
        if self.cls.__dictoffset__ and not self.has_plain_dict:
            raise CannotCapture("unsupported-object", f"{self.describe()} says itself what its attributes are.")
        return self.has_plain_dict

    @property
    def has_plain_dict(self) -> bool:
        """Whether it has a dict of attributes, and ``__dict__`` is that, without any code of the user's."""
        cls = self.cls
        own = isinstance(lookup(cls, "__dict__"), types.GetSetDescriptorType)
        return bool(cls.__dictoffset__) and own and _plain_lookup(cls)

    def _read(self, name: str) -> Any:
        try:
            return getattr(self.value, name)
        except AttributeError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    def _guard_not_shadowed(self, tx: Context, name: str) -> None:
        if self.source is not None and name not in self._deleted and self._has_dict:
            code = f"{quoted(name)} not in {{}}.__dict__"
            text = f"{self.source.text} has no attribute {name!r} of its own"
            tx.prologue.guard(self.source, code, text, "no attribute", "own attribute")

    def _guard_own(self, tx: Context, name: str) -> None:
        """Guards that the instance itself has the attribute."""
        assert self.source is not None
        text = f"{self.source.text} has an attribute {name!r}"
        tx.prologue.guard(self.source, self._question(name), text, "the attribute")

    def _decide_own(self, tx: Context, name: str, came: bool) -> None:
        """Guards whether the instance itself came with the attribute."""
        assert self.source is not None
        tx.decide(self.source, self._question(name), f"{self.source.text} has an attribute {name!r}", came)

    def _question(self, name: str) -> str:
        """Code that asks an instance whether it has the attribute itself."""
        if not isinstance(lookup(self.cls, name), types.MemberDescriptorType):
            return f"{quoted(name)} in {{}}.__dict__"
        if hasattr(self.cls, "__getattr__"):
            raise CannotCapture("unsupported-object", f"{self.describe()} defines __getattr__ and slots.")
        return f"hasattr({{}}, {quoted(name)})"

    def _guard_not_in_class(self, tx: Context, name: str) -> None:
        where, text = ConstantSource.of(self.cls.__qualname__, self.cls), f"{self.cls.__qualname__} has no {name!r}"
        if hasattr(self.cls, name):  # by its metaclass
            raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()}")
        tx.prologue.guard(where, f"not hasattr({{}}, {quoted(name)})", text, "no such attribute")

    # -- leaving ------------------------------------------------------------------------------------------------------
    def shell(self, program: Rebuilder) -> str:
        """A new instance without attributes."""
        return f"{program.constant(object.__new__)}({program.constant(self.cls)})"

    def fill(self, program: Rebuilder, name: str) -> list[str]:
        """The attributes, stored as ``object`` stores them."""
        lines = []
        plain = lookup(self.cls, "__setattr__") is object.__setattr__
        for key, value in self.stored.items():
            if plain and is_plain(key):
                lines.append(f"{name}.{key} = {program.rebuild(value)}")
            else:
                lines.append(f"{program.constant(object.__setattr__)}({name}, {key!r}, {program.rebuild(value)})")
        return lines

    def commit(self, program: Rebuilder) -> list[str]:
        """Deletions, then what was stored, in order."""
        assert self.source is not None
        name = program.load(self.source)
        delete = program.constant(object.__delattr__)
        return [*(f"{delete}({name}, {key!r})" for key in self._deleted), *self.fill(program, name)]

    # -- operations ---------------------------------------------------------------------------------------------------
    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The class's ``__call__``."""
        if hasattr(self.cls, "__tcompile_inline__"):
            raise CannotCapture("compiled-by-itself", self.describe())
        return self.special(tx, "__call__").call(tx, args, kwargs)

    def defines(self, *names: str) -> bool:
        """Whether the class defines these methods in Python."""
        return all(isinstance(lookup(self.cls, name), types.FunctionType) for name in names)

    def special(self, tx: Context, name: str) -> Value:
        """The class's own method ``name``, bound to the object."""
        cls = self.cls
        found = lookup(cls, name)
        if not isinstance(found, types.FunctionType):
            raise CannotCapture("unknown-function", f"`{name}` of {self.describe()}")
        guard_definition(tx, cls, name, found)
        return MethodValue(self, tx.wrap_found(found))

    def item(self, tx: Context, key: Value) -> Value:
        """The class's ``__getitem__``."""
        return self.call_method(tx, "__getitem__", [key])

    def length(self, tx: Context) -> Value:
        """The class's ``__len__``."""
        result = self.call_method(tx, "__len__", [])
        if not isinstance(result, IntegerValue) and not (isinstance(result, Constant) and type(result.value) is int):
            raise CannotCapture("unsupported-object", f"The length of {self.describe()} is {result.describe()}.")
        size = result.size if isinstance(result, IntegerValue) else result.value
        if size < 0 or size > sys.maxsize:
            raise CannotCapture("operation-raises", f"__len__() returns {result.describe()}")
        return result

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The values of the class's ``__iter__``."""
        return _rest(tx, self.iterator(tx))

    def collect(self, tx: Context, cls: type = list) -> Iterator[Value]:
        """The same values as ``iterate`` gives; Python may ask the object first how many there will be."""
        values = super().collect(tx)
        for name in ("__len__", "__length_hint__") if _asks_length(cls) else ():
            count = self.call_operator(tx, name, [])
            if count is not None:
                known = count.value if isinstance(count, Constant) else None
                if type(known) is not int or not 0 <= known <= sys.maxsize:
                    raise CannotCapture("operation-raises", f"{name}() returns {count.describe()}")
                break
        return values

    def iterator(self, tx: Context) -> Value:
        """What the class's ``__iter__`` gives."""
        found = self.call_method(tx, "__iter__", [])
        if not isinstance(found, IteratorValue) and not hasattr(found.python_type, "__next__"):
            raise CannotCapture("unsupported-object", f"The iterator of {self.describe()} is {found.describe()}.")
        return found

    def call_method(self, tx: Context, name: str, args: Sequence[Value]) -> Value:
        """What the class's own method ``name`` gives."""
        return self.special(tx, name).call(tx, args, {})

    def store_item(self, tx: Context, key: Value, value: Value) -> None:
        """The class's ``__setitem__``."""
        self.call_method(tx, "__setitem__", [key, value])

    def delete_item(self, tx: Context, key: Value) -> None:
        """The class's ``__delitem__``."""
        self.call_method(tx, "__delitem__", [key])

    def truth(self, tx: Context) -> bool:
        """True, unless the class says otherwise in Python."""
        if self.class_has(tx, "__bool__"):
            result = self.call_method(tx, "__bool__", [])
            if result.python_type is not bool:
                raise CannotCapture("operation-raises", "__bool__ should return bool")
            return result.truth(tx)
        return not self.class_has(tx, "__len__") or self.length(tx).truth(tx)

    def class_has(self, tx: Context, name: str) -> bool:
        """Whether the class has a special method; guards that it gets none."""
        if lookup(self.cls, name) is not MISSING:
            return True
        self._guard_not_in_class(tx, name)
        return False

    def call_operator(self, tx: Context, name: str, args: Sequence[Value]) -> Value | None:
        """The class's method ``name`` (``__add__``), if it has one; None where that says NotImplemented."""
        if not self.class_has(tx, name):
            return None
        result = self.call_method(tx, name, args)
        return None if isinstance(result, Constant) and result.value is NotImplemented else result

    def compare(self, tx: Context, name: str, other: Value) -> Value | None:
        """``object.__eq__(other)`` and its like; None where that says NotImplemented."""
        found = lookup(self.cls, name)
        if found is not getattr(object, name):
            return self.call_operator(tx, name, [other])
        guard_definition(tx, self.cls, name, found)
        if name == "__eq__":
            return Constant(True) if self is other else None
        if name == "__ne__":
            equal = self.compare(tx, "__eq__", other)
            return None if equal is None else Constant(not equal.truth(tx))
        return None

    def contains(self, tx: Context, item: Value) -> bool | None:
        """``item in object`` where the class says it; None where iteration decides."""
        found = self.call_operator(tx, "__contains__", [item])
        return None if found is None else found.truth(tx)


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
        return named(self.source, self.why)

    def export(self, tx: Context) -> Any:
        """Never goes into a graph."""
        raise CannotCapture("unsupported-object", f"{self.describe()} is used in array code.")


class WeakReference(OpaqueValue):
    """A weak reference, which gives its object when it is called."""

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The object, or None."""
        if args or kwargs:
            raise CannotCapture("operation-raises", "a weak reference is called with arguments")
        return tx.wrap(self.value(), ComputedSource("{0}()", (self.source,)))


def _plain_lookup(cls: type) -> bool:
    """Whether attribute access on instances is Python's default."""
    return lookup(cls, "__getattribute__") is object.__getattribute__


def _slots(cls: type) -> tuple[str, ...]:
    """The slots that ``cls`` itself defines."""
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    mangled = f"_{cls.__name__.lstrip('_')}"
    return tuple(f"{mangled}{n}" if n.startswith("__") and not n.endswith("__") else n for n in names)


def _is_data_descriptor(found: object) -> bool:
    return found is not MISSING and (hasattr(type(found), "__set__") or hasattr(type(found), "__delete__"))


class Exhausted(CannotCapture):
    """An iterator in Python says that there is nothing left. A break, unless someone is iterating."""


def advance(tx: Context, value: Value) -> Value | None:
    """``next(value)``; None where nothing is left."""
    if isinstance(value, IteratorValue):
        return next(value, None)
    if isinstance(value, ObjectValue):
        depth = len(tx.frames)
        try:
            return value.call_method(tx, "__next__", [])
        except Exhausted:
            if len(tx.frames) != depth + 1:  # raised further in, on its way through other frames
                raise
            tx.frames.pop()
            return None
    raise CannotCapture("unknown-function", f"`next` of {value.describe()}")


def _rest(tx: Context, value: Value) -> Iterator[Value]:
    """The values that ``next`` still gives."""
    while (found := advance(tx, value)) is not None:
        yield found
