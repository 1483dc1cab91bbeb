"""Constants, and numbers known at run time only.

Input: Python objects.
Output: ``Constant``, an immutable object whose value (or identity) is fixed by a guard or by the code.
``IntegerValue``, an open Python int, as a polynomial over symbols. ``FloatValue``, a Python float that plain Python
computes before the graph runs.
Why: numbers should not cause recompiles.
"""

from __future__ import annotations

import enum
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tcompile.capture.context.lazy_imports import settle
from tcompile.capture.guards.kinds import shown
from tcompile.capture.guards.sources import AttributeSource, ConstantSource, Source
from tcompile.capture.values.base import Context, Rebuilder, Value
from tcompile.capture.values.classes import answers_in_python, attribute_of_class, module_answers
from tcompile.capture.values.int_nodes import int_node
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node, SymInt
from tcompile.graph.names import attribute_of

_LITERALS = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))
_METHODS = (types.BuiltinMethodType, types.MethodWrapperType)
_PURE_METHODS = (str, bytes, int, float, complex, bool, tuple, frozenset, range, slice)


class Constant(Value):
    """An object fixed for this entry: a literal, a module, a class, a dtype, a built-in function, …"""

    has_variable = False

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    @property
    def python_type(self) -> type:
        """The object's type."""
        return type(self.value)

    @property
    def is_none(self) -> bool:
        """Whether it is None."""
        return self.value is None

    def describe(self) -> str:
        """The constant's repr, or its qualified name."""
        # Such an object may answer in Python.
        answers = type(self.value).__flags__ & (1 << 9) or isinstance(self.value, types.ModuleType)
        name = None if answers else getattr(self.value, "__qualname__", None)
        if isinstance(name, str):
            module = getattr(self.value, "__module__", None)
            return f"`{module}.{name}`" if module and module != "builtins" else f"`{name}`"
        return f"`{shown(self.value)}`"

    def export(self, tx: Context) -> Any:
        """The object itself."""
        if answers_in_python(self.value):
            return super().export(tx)
        return self.value

    def attribute(self, tx: Context, name: str) -> Value:
        """Reads the attribute now; those that may be rebound (of modules and of the user's classes) are guarded."""
        owner = self.value
        if isinstance(owner, type) and not tx.is_library_name(owner.__module__) and owner.__flags__ & (1 << 9):
            return attribute_of_class(tx, owner, name, self.source)
        stored = tx.stored_global(vars(owner), name) if isinstance(owner, types.ModuleType) else None
        if stored is not None:
            return stored
        if isinstance(owner, types.ModuleType):
            settle(vars(owner), name)
        if isinstance(owner, enum.Enum) and name not in ("name", "value"):
            raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()} is read.")
        is_library = isinstance(owner, types.ModuleType) and tx.is_library_name(owner.__name__)
        if module_answers(tx, owner, name):
            raise CannotCapture("unsupported-object", f"`{owner.__name__}.{name}` is what its `__getattr__` makes.")
        try:
            found = tx.library_attribute(owner, name) if is_library else getattr(owner, name)
        except AttributeError as error:
            raise CannotCapture("operation-raises", str(error)) from error
        if is_library:
            return tx.wrap_found(found)
        if isinstance(owner, types.ModuleType):
            return tx.wrap(found, AttributeSource(self.source or ConstantSource.of(owner.__name__, owner), name))
        if isinstance(owner, enum.Enum):
            return tx.wrap(found, AttributeSource(self.source or ConstantSource.of(shown(owner), owner), name))
        fixed = type(owner) in _LITERALS or isinstance(owner, type) or tx.is_scalar(owner) or tx.is_fixed(owner)
        if not fixed and name not in ("__name__", "__qualname__", "__module__", "__doc__"):
            raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()} is read.")
        if type(found) in _METHODS and getattr(owner, name) is not found:
            return FixedMethod(found, owner, name)
        return tx.wrap_found(found)

    def store_attribute(self, tx: Context, name: str, value: Value | None) -> None:
        """Stores a module's global."""
        owner = self.value
        if type(owner) is not types.ModuleType or tx.is_library_name(owner.__name__) or name.startswith("__"):
            super().store_attribute(tx, name, value)
        tx.store_global(vars(owner), name, value)

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls a built-in, a class or a library function through the call table."""
        return tx.call_constant(self, args, kwargs)

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Runs a method of an immutable object now, when all arguments are constants."""
        if type(self.value) is str and name == "format":
            return tx.text(self.value.format, args, kwargs)
        if type(self.value) in _PURE_METHODS:
            return tx.fold(getattr(self.value, name), args, kwargs)
        return super().method(tx, name, args, kwargs)

    def item(self, tx: Context, key: Value) -> Value:
        """Subscripts a string now."""
        if type(self.value) in (str, bytes):
            plain = key.constant() if hasattr(key, "constant") else key.export(tx)
            return tx.fold(lambda: self.value[plain], (), {})
        if not callable(self.value):
            frontend = tx.frontend_of(self.value)
            if frontend is not None:
                return tx.from_frontend(frontend.subscript(tx.builder, self.value, key.export(tx)))
        return super().item(tx, key)

    def truth(self, tx: Context) -> bool:
        """The object's truth, for types whose truth runs no user code."""
        quiet = isinstance(self.value, (*_LITERALS, frozenset, range, types.ModuleType, enum.Enum))
        known = quiet or callable(self.value) or tx.is_scalar(self.value) or tx.is_fixed(self.value)
        if known and not answers_in_python(self.value):
            return bool(self.value)
        return super().truth(tx)

    def length(self, tx: Context) -> Value:
        """The length of a string."""
        if isinstance(self.value, str | bytes):
            return Constant(len(self.value))
        return super().length(tx)

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The characters of a string, the items of a frozenset; the members of an enum class are not followed."""
        if isinstance(self.value, str | bytes | frozenset):
            return (Constant(item) for item in self.value)
        return super().iterate(tx)

    def rebuild(self, program: Rebuilder) -> str:
        """A literal for what there is only one of, else the object: the caller's own, or the one that capture met."""
        if self.value is None or type(self.value) is bool or (type(self.value) is int and -5 <= self.value <= 256):
            return repr(self.value)
        return program.constant(self.value) if self.source is None else program.load(self.source)


class CopiedDtype(Constant):
    """A dtype that equals NumPy's own, ``value``, and is another object, as that of an unpickled array."""

    def attribute(self, tx: Context, name: str) -> Value:
        """Of the attributes, one tells the two apart."""
        if name == "isbuiltin":
            raise CannotCapture("object-identity", f"`isbuiltin` of {self.describe()}")
        return super().attribute(tx, name)


class FixedMethod(Constant):
    """A built-in method of a fixed object: each read of it makes another one, as of ``np.add.reduce``."""

    has_variable = True

    def __init__(self, value: Any, owner: Any, name: str) -> None:
        super().__init__(value)
        self.owner, self.name = owner, name

    def rebuild(self, program: Rebuilder) -> str:
        """One read of the attribute."""
        return attribute_of(program.constant(self.owner), self.name)


class IntegerValue(Value):
    """A Python int given by an expression over symbolic sizes."""

    has_variable = False

    def __init__(self, size: SymInt, source: Source | None = None) -> None:
        self.size = size
        self.source = source

    @property
    def python_type(self) -> type:
        """Always int."""
        return int

    def export(self, tx: Context) -> Any:
        """The symbolic size."""
        return self.size

    def computed_int(self, tx: Context) -> Node | None:
        """The int, where the graph computes it from the counter of a loop."""
        return int_node(tx, self.size) if self.size.varies_unevenly() else None

    def truth(self, tx: Context) -> bool:
        """Whether it is not zero, guarded."""
        return bool(self.size)

    def specialise(self) -> int:
        """Fixes the value, with a guard."""
        return self.size.specialise()

    def rebuild(self, program: Rebuilder) -> str:
        """The expression; symbols are variables of the entry program."""
        return f"({self.size})"


class FloatValue(Value):
    """A Python float that varies between calls. Arithmetic on it happens in plain Python, before the graph."""

    def __init__(self, source: Source, hint: float) -> None:
        self.source: Source = source
        self.hint = hint  # the value at capture

    @property
    def python_type(self) -> type:
        """Always float."""
        return float

    def export(self, tx: Context) -> Any:
        """A graph input, made on first use."""
        return tx.number_input(self.source)

    def specialise(self, tx: Context, kind: str = "float") -> float:
        """Fixes the value, with a guard of this kind."""
        code, text = float_test(self.hint, tx.prologue.constant), f"{self.source.text} == {self.hint!r}"
        tx.prologue.guard(self.source, code, text, repr(self.hint), kind)
        return self.hint

    def truth(self, tx: Context) -> bool:
        """Whether it is not zero, guarded."""
        return tx.decide(self.source, "{} != 0.0", f"{self.source.text} != 0.0", self.hint != 0.0)


def float_test(value: float, constant: Callable[[Any], str]) -> str:
    """Code that tells whether ``{}`` is this float, to the sign of a zero."""
    if math.isnan(value):
        return "{} != {}"
    if value == 0.0:
        return f"{{}} == 0.0 and {constant(math.copysign)}(1.0, {{}}) == {math.copysign(1.0, value)}"
    return f"{{}} == {constant(value)}"


def integer(size: int | SymInt) -> Value:
    """The value for an int that may be symbolic."""
    return IntegerValue(size) if isinstance(size, SymInt) else Constant(size)
