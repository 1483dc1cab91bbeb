"""NumPy's and Python's random generators, and their methods.

Input: a generator from outside.
Output: breaks for general use, and for scalar loops the array of its state.
Why: a draw changes the generator, so only code that writes the new state back may draw.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.capture.guards.sources import AttributeSource, ConstantSource, Source, StateSource
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Rebuilder, Value
from tcompile.capture.values.object import ObjectValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph.ops.draws import SPARE, Family, family_of, is_generator, module_of, spare_of, state_of


class RandomGeneratorValue(Value):
    """An ``np.random.Generator`` or ``RandomState``, or a ``random.Random``. ``family`` is the kind of its bit
    generator, None where it is not known how that keeps its state.
    """

    def __init__(self, value: Any, source: Source) -> None:
        self.value = value
        self.source: Source = source
        self.family = family_of(value)
        self.instance = ObjectValue(type(value), value, source)  # its attributes, where it is one of Python's

    @property
    def python_type(self) -> type:
        """The generator's class."""
        return type(self.value)

    def attribute(self, tx: Context, name: str) -> Value:
        """A method, or what the generator holds."""
        if callable(getattr(self.python_type, name, None)):
            return DrawingMethod(self, name)
        if not hasattr(self.value, name):
            raise CannotCapture("operation-raises", f"{self.source.text}.{name}")
        return tx.wrap(getattr(self.value, name), AttributeSource(self.source, name))

    def state(self, tx: Context) -> ArrayValue:
        """The words of its bit generator's state, an array of the caller's."""
        assert self.family is not None
        return self._part(tx, state_of(self.value, self.family), self.family)

    def spare(self, tx: Context) -> list[ArrayValue]:
        """What a RandomState keeps beside it, the parts of ``draws.SPARE``."""
        return [self._part(tx, spare_of(self.value, part), part) for part in SPARE]

    def _part(self, tx: Context, shown: Any, part: Family | str) -> ArrayValue:
        found = tx.wrap(shown, StateSource(self.source, part))
        assert isinstance(found, ArrayValue)
        return found


def is_drawing(function: object) -> bool:
    """Whether it is a method of a generator's, as all of ``np.random`` and ``random`` are."""
    return isinstance(function, types.MethodType | types.BuiltinMethodType) and is_generator(function.__self__)


def method_of_known(tx: Context, function: Any) -> DrawingMethod:
    """The value of such a method, which is known."""
    return DrawingMethod(known_generator(tx, function.__self__), function.__name__)


def known_generator(tx: Context, generator: Any) -> RandomGeneratorValue:
    """The value of a generator that is known because a method of its own is."""
    name = module_of(generator) or "generator"
    found = tx.wrap(generator, ConstantSource.of(name, generator))
    assert isinstance(found, RandomGeneratorValue)
    return found


class DrawingMethod(Value):
    """A method of a generator's, which is plain Python's where it is called."""

    def __init__(self, owner: RandomGeneratorValue, name: str) -> None:
        self.owner, self.name = owner, name

    @property
    def python_type(self) -> type:
        """That of a bound method."""
        return type(getattr(self.owner.value, self.name))

    def describe(self) -> str:
        """As the user would write it."""
        return f"`{self.owner.source.text}.{self.name}`"

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """What is drawn, where graphs draw it."""
        return tx.draw(self.owner, self.name, args, kwargs)

    def rebuild(self, program: Rebuilder) -> str:
        """Reads it anew."""
        return f"{self.owner.rebuild(program)}.{self.name}"


__all__ = ["DrawingMethod", "RandomGeneratorValue", "is_drawing", "known_generator", "method_of_known"]
