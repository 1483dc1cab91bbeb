"""Functions, methods, partials and cells.

Input: callables.
Output: values whose ``call`` runs the user's bytecode in a new captured frame.
Why: user functions are inlined. Globals, cells and defaults are read through the function object, which is guarded.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tcompile.capture.guards.kinds import shown
from tcompile.capture.guards.sources import AttributeSource, CellSource, ConstantSource, ItemSource, Source
from tcompile.capture.values.base import Context, LazyValue, Rebuilder, Unrebuildable, Value
from tcompile.frontends.base import CannotCapture

_OWN = "tcompile"

# A default value. Those of a function from outside are wrapped, and so guarded, only where a call uses them.
Default: TypeAlias = "Value | Callable[[], Value]"


def value_of(default: Default) -> Value:
    """The value of a default, where a call uses it."""
    return default if isinstance(default, Value) else default()


class ClosureCell(Value):
    """A closure variable. One from outside has a source, and is rebound after the graph."""

    filled_last = True

    def __init__(
        self, tx: Context, value: Value | None = None, outside: tuple[types.CellType, Source, Source] | None = None
    ) -> None:
        self.tx = tx
        self.value = value
        self.found: Value | None = None
        if outside is not None:
            cell, self.source, contents = outside
            with contextlib.suppress(ValueError):  # an empty cell
                self.value = self.found = LazyValue(cell.cell_contents, contents)
            self.contents = contents

    @staticmethod
    def of(tx: Context, cell: types.CellType, source: Source, contents: Source) -> ClosureCell:
        """The value of the cell found at ``source``; one for each cell."""
        found = tx.cell(cell, source, contents)
        assert isinstance(found, ClosureCell)
        return found

    @property
    def python_type(self) -> type:
        """Always cell."""
        return types.CellType

    def describe(self) -> str:
        """The variable's name where it has one."""
        return "a closure variable" if self.source is None else f"the outer variable `{self.contents.text}`"

    def get(self, name: str) -> Value:
        """The contents. Raises CannotCapture where plain Python would raise NameError."""
        if self.value is None:
            raise CannotCapture("operation-raises", f"free variable {name!r} is not set")
        return self.value

    def set(self, value: Value | None) -> None:
        """Rebinds the variable; None unbinds it."""
        self.tx.mutate(self)
        self.value = value

    def delete(self, name: str) -> None:
        """Unbinds the variable. Raises CannotCapture where plain Python would raise NameError."""
        self.get(name)
        if self.source is not None and self.value is self.found:
            self.tx.prologue.load(self.contents)  # an entry is missed where the variable has no value
        self.set(None)

    def shell(self, program: Rebuilder) -> str:
        """An unbound variable."""
        return f"{program.constant(types.CellType)}()"

    def fill(self, program: Rebuilder, name: str) -> list[str]:
        """Binds the variable."""
        return [] if self.value is None else [f"{name}.cell_contents = {program.rebuild(self.value)}"]

    def commit(self, program: Rebuilder) -> list[str]:
        """Binds or unbinds the variable."""
        assert self.source is not None
        name = program.load(self.source)
        if self.value is None:
            return [f"del {name}.cell_contents"] if self.found is not None else []
        return [f"{name}.cell_contents = {program.rebuild(self.value)}"]


class FunctionValue(Value):
    """A Python function: one that exists, or one that the captured code has just made."""

    def __init__(
        self,
        code: types.CodeType,
        globals: dict[str, Any],
        closure: Sequence[ClosureCell] = (),
        defaults: Sequence[Default] = (),
        kwdefaults: Mapping[str, Default] | None = None,
        function: types.FunctionType | None = None,
        source: Source | None = None,
        annotations: Value | None = None,
    ) -> None:
        self.code = code
        self.globals = globals
        self.closure = tuple(closure)
        self.defaults = tuple(defaults)
        self.kwdefaults = dict(kwdefaults or {})
        self.function = function
        self.source = source
        self.annotations = annotations  # of a function that the captured code has made
        self.annotate: FunctionValue | None = None  # the function that gives them when they are asked for
        self.outer: Any = None  # the compiled callable that stands for the function, where there is one

    @staticmethod
    def of(tx: Context, function: types.FunctionType, source: Source | None) -> FunctionValue:
        """The value of an existing function; what it holds is read through ``source`` or the object itself.

        Raises CannotCapture for one that is still being made, without its closure variables.
        """
        if len(function.__closure__ or ()) != len(function.__code__.co_freevars):
            raise CannotCapture("frame-step", function.__qualname__)
        home = source
        if home is None:
            home = ConstantSource.of(function.__qualname__, function)
            if str(function.__globals__.get("__name__")).partition(".")[0] != _OWN:
                # The object stays, and who edits a module that is reloaded (IPython's autoreload) gives it other code.
                code = tx.prologue.constant(function.__code__)
                text = f"the code of {function.__qualname__} is unchanged"
                tx.prologue.guard(home, f"{{}}.__code__ is {code}", text, shown(function), "definition")
        held_cells = AttributeSource(home, "__closure__")
        cells = [
            ClosureCell.of(tx, cell, ItemSource(held_cells, i), CellSource(name, ItemSource(held_cells, i)))
            for i, (name, cell) in enumerate(
                zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            )
        ]
        values, named = function.__defaults__ or (), function.__kwdefaults__ or {}
        held = AttributeSource(home, "__defaults__")

        def default(position: int) -> Value:
            text = f"{held.text} has length {len(values)}"
            tx.prologue.guard(held, f"len({{}}) == {len(values)}", text, str(len(values)), "length")
            return tx.wrap(values[position], ItemSource(held, position))

        def keyword_default(name: str) -> Value:
            return tx.wrap(named[name], ItemSource(AttributeSource(home, "__kwdefaults__"), name))

        return FunctionValue(
            function.__code__, function.__globals__, cells,
            [functools.partial(default, i) for i in range(len(values))],
            {name: functools.partial(keyword_default, name) for name in named}, function, source,
        )  # fmt: skip

    @staticmethod
    def compiled(tx: Context, outer: Any, function: types.FunctionType, source: Source | None) -> FunctionValue:
        """The value of ``outer``, found at ``source``: a call follows ``function``, all else is the callable's own."""
        value = FunctionValue.of(tx, function, None)
        value.outer, value.source = outer, source or ConstantSource.of(function.__qualname__, outer)
        tx.objects[value.source] = outer
        return value

    @property
    def builtins(self) -> dict[str, Any]:
        """Where names are looked up that are no globals."""
        if self.function is not None:
            held: dict[str, Any] = self.function.__builtins__  # type: ignore[attr-defined, unused-ignore]
            return held
        found = self.globals.get("__builtins__", builtins)
        return found if isinstance(found, dict) else vars(found)

    @property
    def python_type(self) -> type:
        """Function, or the class of the compiled callable."""
        return types.FunctionType if self.outer is None else type(self.outer)

    def describe(self) -> str:
        """The function's name."""
        return f"the function `{self.code.co_qualname}`"

    def attribute(self, tx: Context, name: str) -> Value:
        """Metadata of an existing function."""
        if self.function is not None and name in ("__name__", "__qualname__", "__module__", "__doc__"):
            source = self.source or ConstantSource.of(self.function.__qualname__, self.function)
            found = self.function if self.outer is None else self.outer
            return tx.wrap(getattr(found, name), AttributeSource(source, name))
        return super().attribute(tx, name)

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Follows the function's bytecode."""
        return tx.inline(self, args, kwargs)

    def rebuild(self, program: Rebuilder) -> str:
        """The function itself where there is one, else a new one."""
        if self.source is not None:
            return program.load(self.source)
        if self.function is not None:
            return program.constant(self.function)
        if len(self.closure) != len(self.code.co_freevars):
            raise CannotCapture("unsupported-object", "A function without its closure variables leaves capture.")
        names = program.constant(self.globals)
        cells = "".join(f"{program.rebuild(cell)}, " for cell in self.closure)
        defaults = "".join(f"{program.rebuild(value_of(default))}, " for default in self.defaults)
        code, name = program.constant(self.code), repr(self.code.co_name)
        parts = [code, names, name, f"({defaults}) or None", f"({cells}) or None"]
        made = program.name(f"{program.constant(types.FunctionType)}({', '.join(parts)})")
        if self.kwdefaults:
            named = ", ".join(f"{name!r}: {program.rebuild(value_of(x))}" for name, x in self.kwdefaults.items())
            program.lines.append(f"{made}.__kwdefaults__ = {{{named}}}")
        if self.annotations is not None:
            program.lines.append(f"{made}.__annotations__ = {program.rebuild(self.annotations)}")
        if self.annotate is not None:
            program.lines.append(f"{made}.__annotate__ = {program.rebuild(self.annotate)}")
        return made

    def truth(self, tx: Context) -> bool:
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

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls the function with the owner first."""
        return self.function.call(tx, [self.owner, *args], kwargs)

    def rebuild(self, program: Rebuilder) -> str:
        """The object itself where it came from outside, else a new method."""
        if self.source is not None:
            return program.load(self.source)
        return f"{program.constant(types.MethodType)}({program.rebuild(self.function)}, {program.rebuild(self.owner)})"

    def attribute(self, tx: Context, name: str) -> Value:
        """The object and the function."""
        if name in ("__self__", "__func__"):
            return self.owner if name == "__self__" else self.function
        return super().attribute(tx, name)

    def truth(self, tx: Context) -> bool:
        """Methods are true."""
        return True


class BuiltinMethod(Value):
    """A built-in method bound to a container or constant."""

    def __init__(self, owner: Value, name: str) -> None:
        self.owner = owner
        self.name = name

    def describe(self) -> str:
        """The method's name."""
        return f"the method `{self.name}` of {self.owner.describe()}"

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Asks the owner."""
        return self.owner.method(tx, self.name, args, kwargs)

    def rebuild(self, program: Rebuilder) -> str:
        """The method of the owner."""
        return f"({program.rebuild(self.owner)}).{self.name}"


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

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls the function with the stored arguments first."""
        return self.function.call(tx, [*self.args, *args], {**self.kwargs, **kwargs})

    def rebuild(self, program: Rebuilder) -> str:
        """The object itself where it came from outside, else a new partial."""
        if self.source is not None:
            return program.load(self.source)
        parts = [program.rebuild(value) for value in (self.function, *self.args)]
        named = ", ".join(f"{name!r}: {program.rebuild(value)}" for name, value in self.kwargs.items())
        return f"{program.constant(functools.partial)}({', '.join(parts)}, **{{{named}}})"

    def truth(self, tx: Context) -> bool:
        """Partials are true."""
        return True


class IteratorValue(Value):
    """An iterator in the middle of its work. It is private to the capture and cannot leave it.

    ``born`` is the step of the compiled function in which it was made.
    """

    def __init__(self, tx: Context, values: Iterator[Value]) -> None:
        self.tx = tx
        self.born = tx.step
        self.taken = 0
        self._values = values

    def __iter__(self) -> Iterator[Value]:
        return self

    def __next__(self) -> Value:
        self.tx.touch()
        self.taken += 1
        return next(self._values)

    def rebuild(self, program: Rebuilder) -> str:
        """Refuses it: an iterator that has advanced cannot be rebuilt."""
        raise Unrebuildable(self, self.born)

    def describe(self) -> str:
        """Iterators have no better name."""
        return "an iterator"

    def iterate(self, tx: Context) -> Iterator[Value]:
        """Itself."""
        return self

    def truth(self, tx: Context) -> bool:
        """Iterators are true."""
        return True
