"""Functions, methods, partials and cells.

A user's function is followed inside: ``call`` runs its bytecode in a new captured frame. Its globals, cells and
defaults are read through the function object, which is guarded.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.sources import AttributeSource, CellSource, ConstantSource, ItemSource, Source
from tcompile.capture.values.base import Unread, Value, settled
from tcompile.frontends.base import CannotCapture

if TYPE_CHECKING:
    from tcompile.capture.state import Capture


Lazy = Callable[[], Value]  # a default: wrapped, and so guarded, only where a call uses it


class Cell:
    """A closure variable. ``own`` cells were made inside the function and may be rebound."""

    def __init__(self, value: Value | None = None, read: tuple[Any, Source] | None = None) -> None:
        self.value = value
        self._read = read

    @property
    def own(self) -> bool:
        """Whether nobody outside the capture can see the cell."""
        return self._read is None

    def get(self, name: str) -> Value:
        """The contents. Raises CannotCapture where plain Python would raise NameError."""
        if self.value is None and self._read is not None:
            cell, source = self._read
            with contextlib.suppress(ValueError):  # an empty cell
                self.value = Unread(cell.cell_contents, source)
        if self.value is None:
            raise CannotCapture("operation-raises", f"free variable {name!r} is not set")
        return self.value

    def set(self, value: Value | None, name: str) -> None:
        """Rebinds the variable."""
        if not self.own:
            raise CannotCapture("side-effect", f"Assigning the outer variable `{name}`")
        self.value = value


class FunctionValue(Value):
    """A Python function: one that exists, or one that the captured code has just made."""

    def __init__(
        self, code: types.CodeType, globals: dict[str, Any], home: Source, closure: Sequence[Cell] = (),
        defaults: Sequence[Lazy] = (), kwdefaults: Mapping[str, Lazy] | None = None,
        function: types.FunctionType | None = None, source: Source | None = None,
    ) -> None:  # fmt: skip
        self.code = code
        self.globals = globals
        self.home = home  # the function through which globals are read
        self.closure = tuple(closure)
        self.defaults = tuple(defaults)
        self.kwdefaults = dict(kwdefaults or {})
        self.function = function
        self.source = source

    @staticmethod
    def of(tx: Capture, function: types.FunctionType, source: Source | None) -> FunctionValue:
        """The value of an existing function; what it holds is read through ``source`` or the object itself."""
        home = source if source is not None else ConstantSource.of(function.__qualname__, function)
        cells = [
            Cell(read=(cell, CellSource(name, i, home)))
            for i, (name, cell) in enumerate(
                zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            )
        ]
        values, named = function.__defaults__ or (), function.__kwdefaults__ or {}
        held = AttributeSource(home, "__defaults__")

        def default(position: int) -> Value:
            text = f"{held.text} has length {len(values)}"
            tx.prologue.guard(held, f"len({{}}) == {len(values)}", text, str(len(values)))
            return tx.wrap(values[position], ItemSource(held, position))

        def keyword_default(name: str) -> Value:
            return tx.wrap(named[name], ItemSource(AttributeSource(home, "__kwdefaults__"), name))

        return FunctionValue(
            function.__code__, function.__globals__, tx.home_of_globals(function.__globals__, home), cells,
            [functools.partial(default, i) for i in range(len(values))],
            {name: functools.partial(keyword_default, name) for name in named}, function, source,
        )  # fmt: skip

    @property
    def python_type(self) -> type:
        """Always function."""
        return types.FunctionType

    def describe(self) -> str:
        """The function's name."""
        return f"the function `{self.code.co_qualname}`"

    def attribute(self, tx: Capture, name: str) -> Value:
        """Metadata of an existing function."""
        if self.function is not None and name in ("__name__", "__qualname__", "__module__", "__doc__"):
            source = self.source or ConstantSource.of(self.function.__qualname__, self.function)
            return tx.wrap(getattr(self.function, name), AttributeSource(source, name))
        return super().attribute(tx, name)

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Follows the function's bytecode."""
        return tx.inline(self, args, kwargs)

    def truth(self, tx: Capture) -> bool:
        """Functions are true."""
        return True


class MethodValue(Value):
    """A function bound to an object."""

    def __init__(self, owner: Value, function: Value, source: Source | None = None) -> None:
        self.owner = owner
        self.function = function
        self.source = source

    @property
    def python_type(self) -> type:
        """Always method."""
        return types.MethodType

    def describe(self) -> str:
        """The function's name."""
        return self.function.describe()

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls the function with the owner first."""
        return self.function.call(tx, [self.owner, *args], kwargs)

    def attribute(self, tx: Capture, name: str) -> Value:
        """The object and the function."""
        if name in ("__self__", "__func__"):
            return self.owner if name == "__self__" else self.function
        return super().attribute(tx, name)

    def truth(self, tx: Capture) -> bool:
        """Methods are true."""
        return True


class PartialValue(Value):
    """``functools.partial`` of a captured callable."""

    def __init__(
        self, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value], source: Source | None = None
    ) -> None:
        self.function, self.args, self.kwargs, self.source = function, list(args), dict(kwargs), source

    @property
    def python_type(self) -> type:
        """Always functools.partial."""
        return functools.partial

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls the function with the stored arguments first."""
        return self.function.call(tx, [*self.args, *args], {**self.kwargs, **kwargs})

    def truth(self, tx: Capture) -> bool:
        """Partials are true."""
        return True


class IteratorValue(Value):
    """An iterator in the middle of its work. It is private to the capture and cannot leave it."""

    def __init__(self, values: Iterator[Value]) -> None:
        self.values = values

    def describe(self) -> str:
        """Iterators have no better name."""
        return "an iterator"

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """Itself."""
        return self.values

    def truth(self, tx: Capture) -> bool:
        """Iterators are true."""
        return True


def bind_arguments(
    tx: Capture, function: FunctionValue, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> dict[str, Value]:
    """Parameter names to values, as a call would bind them. Raises CannotCapture where the call would raise."""
    from tcompile.capture.values.container import DictValue, SequenceValue

    code = function.code
    names = code.co_varnames
    count, keyword_only = code.co_argcount, code.co_kwonlyargcount
    positional = names[:count]
    bound = dict(zip(positional, args, strict=False))
    rest = list(args[count:])
    extra: dict[str, Value] = {}
    takes_rest, takes_extra = bool(code.co_flags & 0x04), bool(code.co_flags & 0x08)
    allowed = set(positional[code.co_posonlyargcount :]) | set(names[count : count + keyword_only])
    for name, value in kwargs.items():
        if name in allowed:
            if name in bound:
                raise CannotCapture("operation-raises", f"{code.co_name}() got multiple values for argument {name!r}")
            bound[name] = value
        elif takes_extra:
            extra[name] = value
        else:
            raise CannotCapture("operation-raises", f"{code.co_name}() got an unexpected keyword argument {name!r}")
    if rest and not takes_rest:
        raise CannotCapture("operation-raises", f"{code.co_name}() takes {count} arguments but {len(args)} were given")
    for name, default in zip(reversed(positional), reversed(function.defaults), strict=False):
        if name not in bound:
            bound[name] = default()
    for name in names[count : count + keyword_only]:
        if name not in bound and name in function.kwdefaults:
            bound[name] = function.kwdefaults[name]()
    missing = [name for name in names[: count + keyword_only] if name not in bound]
    if missing:
        raise CannotCapture("operation-raises", f"{code.co_name}() misses arguments {missing}")
    position = count + keyword_only
    if takes_rest:
        bound[names[position]] = SequenceValue([settled(tx, value) for value in rest], tuple)
        position += 1
    if takes_extra:
        bound[names[position]] = DictValue({name: settled(tx, value) for name, value in extra.items()})
    return bound
