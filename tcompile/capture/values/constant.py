"""Constants and numbers known at run time only.

``Constant`` is an immutable object whose value (or identity) is fixed by a guard or by the code itself.
``IntegerValue`` is a Python int that stays open, as a polynomial over symbols; ``FloatValue`` a Python float that
plain Python computes before the graph runs.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcompile.capture.sources import Source
from tcompile.capture.values.base import Value
from tcompile.frontends.base import CannotCapture
from tcompile.graph import SymInt

if TYPE_CHECKING:
    from tcompile.capture.program import Rebuilder
    from tcompile.capture.state import Capture

_LITERALS = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))
_PURE_METHODS = (str, bytes, int, float, complex, bool, tuple, frozenset, range, slice)


class Constant(Value):
    """An object fixed for this entry: a literal, a module, a class, a dtype, a built-in function, …"""

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    @property
    def python_type(self) -> type:
        """The object's type."""
        return type(self.value)

    def describe(self) -> str:
        """The constant's repr, or its qualified name."""
        name = getattr(self.value, "__qualname__", None)
        if isinstance(name, str):
            module = getattr(self.value, "__module__", None)
            return f"`{module}.{name}`" if module and module != "builtins" else f"`{name}`"
        return f"`{self.value!r}`"

    def export(self, tx: Capture) -> Any:
        """The object itself."""
        return self.value

    def attribute(self, tx: Capture, name: str) -> Value:
        """Reads the attribute now; module attributes that a user may rebind are guarded."""
        try:
            found = getattr(self.value, name)
        except AttributeError as error:
            raise CannotCapture("operation-raises", str(error)) from error
        if isinstance(self.value, types.ModuleType) and self.source is not None and not tx.is_library(self.value):
            return tx.wrap_attribute(self, name, found)
        return tx.wrap_found(found)

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls a built-in, a class or a library function through the call table."""
        return tx.call_constant(self, args, kwargs)

    def method(self, tx: Capture, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Runs a method of an immutable object now, when all arguments are constants."""
        if isinstance(self.value, _PURE_METHODS):
            return tx.fold(getattr(self.value, name), args, kwargs)
        return super().method(tx, name, args, kwargs)

    def item(self, tx: Capture, key: Value) -> Value:
        """Subscripts an immutable object now."""
        if isinstance(self.value, str | bytes | types.GenericAlias | type) and isinstance(key, Constant):
            return tx.fold(lambda: self.value[key.value], (), {})
        return super().item(tx, key)

    def truth(self, tx: Capture) -> bool:
        """The object's truth, for types whose truth runs no user code."""
        if isinstance(self.value, _LITERALS) or callable(self.value) or isinstance(self.value, types.ModuleType | np.dtype):
            return bool(self.value)
        if isinstance(self.value, np.generic):
            return bool(self.value)
        return super().truth(tx)

    def length(self, tx: Capture) -> Value:
        """The length of a string."""
        if isinstance(self.value, str | bytes):
            return Constant(len(self.value))
        return super().length(tx)

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The characters of a string; the members of an enum class are not followed."""
        if isinstance(self.value, str | bytes):
            return (Constant(item) for item in self.value)
        return super().iterate(tx)

    def rebuild(self, program: Rebuilder) -> str:
        """A literal, or the held object."""
        if type(self.value) in (int, str, bool, type(None), bytes):
            return repr(self.value)
        return program.constant(self.value)


class IntegerValue(Value):
    """A Python int given by an expression over symbolic sizes."""

    def __init__(self, size: SymInt, source: Source | None = None) -> None:
        self.size = size
        self.source = source

    @property
    def python_type(self) -> type:
        """Always int."""
        return int

    def export(self, tx: Capture) -> Any:
        """The symbolic size."""
        return self.size

    def truth(self, tx: Capture) -> bool:
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

    def export(self, tx: Capture) -> Any:
        """A graph input, made on first use."""
        return tx.number_input(self.source)

    def truth(self, tx: Capture) -> bool:
        """Whether it is not zero, guarded."""
        return tx.decide(self.source, "{} != 0.0", f"{self.source.text} != 0", self.hint != 0.0)


def integer(size: int | SymInt) -> Value:
    """The value for an int that may be symbolic."""
    return IntegerValue(size) if isinstance(size, SymInt) else Constant(size)
