"""Sets and frozensets of constants.

Input: constants, or a set from outside.
Output: values that hold Python's own set of the same constants, and the list of changes.
Why: iteration order must be plain Python's, so the changes are repeated where the set leaves the function. The order of
a set from outside is guarded when it is used, and unknown once the set is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tcompile.capture.guards.sources import Source
from tcompile.capture.values.base import Context, Rebuilder, Unrebuildable, Value, finite, named
from tcompile.capture.values.callable import BuiltinMethod
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.dicts import DictViewValue, hashable
from tcompile.capture.values.signs import BINARY, COMPARE
from tcompile.frontends.base import CannotCapture

# The methods, and how many arguments they take; None: any number.
_CHANGES = {
    "add": 1, "discard": 1, "remove": 1, "clear": 0, "update": None, "intersection_update": None,
    "difference_update": None, "symmetric_difference_update": 1,
}  # fmt: skip
_TESTS = {"issubset": 1, "issuperset": 1, "isdisjoint": 1}
_ASKED = {
    "union": None, "intersection": None, "difference": None, "symmetric_difference": 1, "copy": 0, **_TESTS,
}  # fmt: skip


class SetValue(Value):
    """A set or frozenset; ``cls`` says which. ``model`` holds the same constants."""

    def __init__(self, tx: Context, model: set[Any], cls: type = set, source: Source | None = None) -> None:
        self.model = model
        self.cls = cls
        self.source = source
        self.born = tx.step
        self._start = set(model)
        self._log: list[tuple[str, tuple[Any, ...]]] = []
        self._order: Callable[[], tuple[Any, ...]] | None = None

    @staticmethod
    def outside(tx: Context, value: Any, order: Callable[[], tuple[Any, ...]], source: Source) -> SetValue:
        """A set found at ``source``; ``order`` gives its items in their order, under a guard."""
        found = SetValue(tx, set(value), type(value), source)
        found._order = order
        return found

    @property
    def python_type(self) -> type:
        """set or frozenset."""
        return self.cls

    def describe(self) -> str:
        """The kind and, where there is one, the user's name."""
        return named(self.source, f"a {self.cls.__name__}")

    def attribute(self, tx: Context, name: str) -> Value:
        """A built-in method."""
        if hasattr(self.cls, name):
            return BuiltinMethod(self, name)
        raise CannotCapture("operation-raises", f"{self.cls.__name__} has no attribute {name!r}")

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The set methods."""
        if kwargs:
            return super().method(tx, name, args, kwargs)
        if name in _CHANGES and self.cls is set and _CHANGES[name] in (None, len(args)):
            single = name in ("add", "discard", "remove")
            plain = tuple(hashable(arg, "an item of a set") if single else collection(tx, arg) for arg in args)
            if name == "remove" and plain[0] not in self.model:
                raise CannotCapture("operation-raises", f"KeyError: {plain[0]!r}")
            self.change(tx, name, plain)
            return Constant(None)
        if name == "pop" and self.source is None and self.cls is set and not args and self.model:
            return Constant(self.change(tx, "pop", ()))
        if name == "copy" and self.cls is frozenset and not args:
            return self
        if name in _ASKED and _ASKED[name] in (None, len(args)):
            found = getattr(self._plain(), name)(*[collection(tx, arg) for arg in args])
            return Constant(found) if name in _TESTS else SetValue(tx, found, self.cls)
        return super().method(tx, name, args, kwargs)

    def change(self, tx: Context, name: str, args: tuple[Any, ...]) -> Any:
        """Does what the method ``name`` does, and gives what it gives."""
        tx.mutate(self)
        self._log.append((name, args))
        return getattr(self.model, name)(*args)

    def _plain(self) -> set[Any]:
        """The set itself, where its order may matter to what is made of it."""
        if self.source is not None:
            self._ordered()
        return self.model

    def _ordered(self) -> tuple[Any, ...]:
        if self.source is None:
            return tuple(self.model)
        if self._log or self._order is None:
            raise CannotCapture("unsupported-object", f"The order of {self.describe()}, which was changed, is asked.")
        return self._order()

    def holds(self, item: Value) -> bool:
        """``item in set``."""
        return hashable(item, "an item looked for") in self.model

    def truth(self, tx: Context) -> bool:
        """Whether it has items."""
        return bool(self.model)

    def length(self, tx: Context) -> Value:
        """The number of items."""
        return Constant(len(self.model))

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The items, in the set's own order."""
        changes = len(self._log)
        for item in self._ordered():
            yield Constant(item)
            if len(self._log) != changes:
                raise CannotCapture("operation-raises", "Set changed during iteration")

    def rebuild(self, program: Rebuilder) -> str:
        """The set made again by the same steps."""
        if self.source is not None:
            return program.load(self.source)
        again = set(self._start)
        for method, args in self._log:
            getattr(again, method)(*args)
        if list(again) != list(self.model):  # which a copy may have
            raise Unrebuildable(self, self.born)
        start = program.constant(self._start)
        if self.cls is frozenset:
            return f"{program.constant(frozenset)}({start})"
        name = program.name(f"{program.constant(set)}({start})")
        program.lines += self._replay(program, name)
        return name

    def commit(self, program: Rebuilder) -> list[str]:
        """The changes, in order."""
        assert self.source is not None
        return self._replay(program, program.load(self.source))

    def _replay(self, program: Rebuilder, name: str) -> list[str]:
        lines = []
        for method, args in self._log:
            lines.append(f"{name}.{method}({', '.join(program.rebuild(Constant(arg)) for arg in args)})")
        return lines


def _copy(model: Any) -> set[Any]:
    """A copy that will not change. Raises CannotCapture where it has another order."""
    copied = set(model)
    if list(copied) != list(model):
        raise CannotCapture("unsupported-object", "A set is copied, whose copy has another order.")
    return copied


def collection(tx: Context, value: Value) -> Any:
    """A plain collection of the constants in ``value``, in its order."""
    if isinstance(value, SetValue):
        return _copy(value._plain())
    if isinstance(value, Constant) and type(value.value) is frozenset:
        return value.value
    return tuple(hashable(item, "an item of a set") for item in finite(value.iterate(tx)))


def combine(tx: Context, sign: str, left: Value, right: Value) -> Value:
    """``left sign right`` of which one side is a set: | & - ^ and the comparisons."""
    sides = [_as_set(side) for side in (left, right)]
    if any(side is None for side in sides):
        known = [isinstance(s, Constant | SetValue) or s.python_type in (list, tuple, dict) for s in (left, right)]
        if sign in ("==", "!=") and all(known):
            return Constant(sign == "!=")
        raise CannotCapture("unsupported-operands", f"`{sign}` of {left.describe()} and {right.describe()}")
    if sign in COMPARE:
        return Constant(COMPARE[sign](*sides))
    if sign not in ("|", "&", "-", "^"):
        raise CannotCapture("operation-raises", f"`{sign}` of sets")
    for side in (left, right):
        if isinstance(side, SetValue):
            side._plain()
    result = BINARY[sign](*sides)
    if type(result) is set:
        return SetValue(tx, result)
    return SetValue(tx, _copy(result), frozenset)


def _as_set(value: Value) -> Any:
    if isinstance(value, SetValue):
        return value.model if value.cls is set else frozenset(value.model)
    if isinstance(value, Constant) and type(value.value) is frozenset:
        return value.value
    if isinstance(value, DictViewValue) and value.name == "keys":
        return dict.fromkeys(value.owner.keys).keys()
    return None
