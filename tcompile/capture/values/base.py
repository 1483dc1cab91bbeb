"""The base class of captured values.

Input: nothing.
Output: ``Value``, whose subclasses define the meaning of Python's operations on such a value.
Why: the interpreter has no special cases: it asks the value, and a value that cannot answer exactly raises
``CannotCapture``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.capture.guards.sources import ComputedSource, Source
from tcompile.frontends.base import CannotCapture
from tcompile.observe.source_location import UserLine

if TYPE_CHECKING:
    from tcompile.capture.entry.codegen import Rebuilder
    from tcompile.capture.interpreter.context import Capture


def is_named(source: Source) -> bool:
    """Whether a place has a name in the user's code: values on the frame's stack have none."""
    return not source.text.startswith("<")


def named(source: Source | None, kind: str) -> str:
    """Describes a value: its name, if any, and its kind."""
    return f"`{source.text}` ({kind})" if source is not None and is_named(source) else kind


class Value:
    """A Python object as capture sees it.

    ``source`` tells where the object can be loaded from again; it is None for objects made inside the function.
    """

    source: Source | None = None
    filled_last = False  # whether it is always made empty and filled when all others exist
    has_variable = True  # whether it is made once, because the code of ``rebuild`` would make a new object each time

    def __bool__(self) -> bool:
        """Always true: tests check whether a value exists, not its truth (see ``truth``)."""
        return True

    @property
    def is_none(self) -> bool:
        """Whether it is known to be None."""
        return False

    @property
    def python_type(self) -> type:
        """The type of the object. Raises CannotCapture where it is not known."""
        raise CannotCapture("unsupported-object", f"The type of {self.describe()} is not known.")

    def describe(self) -> str:
        """The value in a few words, for break texts."""
        kind = type(self).__name__.removesuffix("Value").lower()
        return f"`{self.source.text}`" if self.source is not None and is_named(self.source) else f"a {kind}"

    def export(self, tx: Capture) -> Any:
        """Returns the value as a frontend takes it: plain Python with traced leaves."""
        raise CannotCapture("unsupported-argument", f"{self.describe()} in place of an array")

    def attribute(self, tx: Capture, name: str) -> Value:
        """``value.name``."""
        raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()} is read.")

    def call(self, tx: Capture, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """``value(*args, **kwargs)``."""
        raise CannotCapture("unknown-function", f"{self.describe()}")

    def method(self, tx: Capture, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """``value.name(*args, **kwargs)`` for a built-in method."""
        raise CannotCapture("unknown-function", f"the method `{name}` of {self.describe()}")

    def item(self, tx: Capture, key: Value) -> Value:
        """``value[key]``."""
        raise CannotCapture("unsupported-object", f"{self.describe()} is subscripted.")

    def store_item(self, tx: Capture, key: Value, value: Value) -> None:
        """``self[key] = value``."""
        raise CannotCapture("side-effect", f"Assigning an item of {self.describe()}")

    def delete_item(self, tx: Capture, key: Value) -> None:
        """``del self[key]``."""
        raise CannotCapture("side-effect", f"Deleting an item of {self.describe()}")

    def truth(self, tx: Capture) -> bool:
        """``bool(value)``."""
        raise CannotCapture("unsupported-object", f"The truth of {self.describe()} is asked.")

    def length(self, tx: Capture) -> Value:
        """``len(value)``."""
        raise CannotCapture("unsupported-object", f"The length of {self.describe()} is asked.")

    def iterate(self, tx: Capture) -> Iterator[Value]:
        """The values of ``iter(value)``, made as they are asked for."""
        raise CannotCapture("unsupported-object", f"{self.describe()} is iterated over.")

    def collect(self, tx: Capture, cls: type = list) -> Iterator[Value]:
        """Returns the values as ``cls(value)`` takes them, a list or a tuple; too many end the capture."""
        from tcompile.capture.values.container import finite

        return finite(self.iterate(tx))

    def store_attribute(self, tx: Capture, name: str, value: Value | None) -> None:
        """``self.name = value``, or ``del self.name`` where ``value`` is None."""
        raise CannotCapture("side-effect", f"Setting the attribute `{name}` of {self.describe()}")

    def rebuild(self, program: Rebuilder) -> str:
        """Python code that makes the object again in the entry program."""
        if self.source is None:
            raise CannotCapture("unsupported-object", f"{self.describe()} leaves the captured function.")
        return program.load(self.source)

    def shell(self, program: Rebuilder) -> str | None:
        """Code that makes the object without its contents, which ``fill`` adds; None where that cannot be."""
        return None

    def fill(self, program: Rebuilder, name: str) -> list[str]:
        """The statements that give the object, made empty and called ``name``, its contents."""
        raise AssertionError(f"{type(self).__name__} is made whole")

    def commit(self, program: Rebuilder) -> list[str]:
        """The statements that bring an object from outside into the state that the captured code left it in."""
        raise AssertionError(f"{type(self).__name__} is never changed")


class Unrebuildable(CannotCapture):
    """``value`` cannot be rebuilt if capture stops in its middle, like an iterator that has advanced.

    ``born`` is the step of the compiled function at which it was made: before that, there is nothing to rebuild. If
    that step itself cannot be captured, ``reason`` says why, and ``where`` has its lines.
    """

    def __init__(
        self, value: Value, born: int, reason: CannotCapture | None = None, where: tuple[UserLine, ...] = ()
    ) -> None:
        text = f"{value.describe()} leaves the captured function."
        super().__init__(*(("unsupported-object", text) if reason is None else (reason.reason, reason.detail)))
        self.value = value
        self.born = born
        self.where = where


class Deferred(Value):
    """An object that captured code has only moved so far: it has no guards.

    It is on the interpreter's stack, in variables, cells, arguments of inlined functions, or containers. ``settle``
    returns the real value, with its guards, when an operation needs one.
    """

    @property
    def is_text(self) -> bool:
        """Whether it is a str."""
        raise NotImplementedError

    def settle(self, tx: Capture) -> Value:
        """The captured value; an equal one each time."""
        raise NotImplementedError


class LazyValue(Deferred):
    """An object from outside, which ``settle`` reads."""

    def __init__(self, value: Any, source: Source) -> None:
        self.value = value
        self.source: Source = source

    @property
    def is_text(self) -> bool:
        """Whether it is a str, and of no class of the user's."""
        return type(self.value) is str

    def settle(self, tx: Capture) -> Value:
        """The captured value; the same one each time."""
        return tx.wrap(self.value, self.source)

    def length(self, tx: Capture) -> Value:
        """Returns the length of a str, which may be the only property used."""
        if type(self.value) is not str:
            return self.settle(tx).length(tx)
        tx.prologue.guard(self.source, "type({}) is str", f"type({self.source.text}) is str", "str", "type")
        return tx.wrap(len(self.value), ComputedSource("len({0})", (self.source,)))


def settled(tx: Capture, value: Value) -> Value:
    """Returns ``value``, read if it was deferred."""
    return value.settle(tx) if isinstance(value, Deferred) else value


class Null(Value):
    """The empty stack slot that CPython pushes beside callables."""

    def describe(self) -> str:
        """Never shown to users."""
        return "an empty stack slot"


NULL = Null()
