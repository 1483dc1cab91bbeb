"""Slices and ranges, and the conversion of indices.

Input: the values of their bounds.
Output: values to slice with, to iterate over, and to rebuild in the entry program.
Why: bounds may be open ints, which are fixed only on use.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from typing import Any

from tcompile.capture.guards.sources import Source
from tcompile.capture.values.base import Context, Rebuilder, Value
from tcompile.capture.values.classes import answers_in_python
from tcompile.capture.values.constant import Constant, IntegerValue, integer
from tcompile.frontends.base import CannotCapture


def index_of(key: Value) -> int:
    """A constant int from an index value, fixing a symbolic one. Raises CannotCapture for anything else."""
    if isinstance(key, IntegerValue):
        return key.specialise()
    if isinstance(key, Constant) and not answers_in_python(key.value):
        try:
            return operator.index(key.value)
        except TypeError as error:
            raise CannotCapture("operation-raises", str(error)) from error
    raise CannotCapture("data-dependent-value", f"{key.describe()} as an index")


def count_of(value: Value) -> int:
    """The same for what Python counts items with, which has to be of the machine's size."""
    count = index_of(value)
    if abs(count) > sys.maxsize:
        raise CannotCapture("operation-raises", "Python int too large to convert to C ssize_t")
    return count


class SliceValue(Value):
    """``slice(start, stop, step)``."""

    def __init__(self, start: Value, stop: Value, step: Value, source: Source | None = None) -> None:
        self.parts = (start, stop, step)
        self.source = source

    @property
    def python_type(self) -> type:
        """Always slice."""
        return slice

    def export(self, tx: Context) -> Any:
        """A slice of exported parts."""
        return slice(*(part.export(tx) for part in self.parts))

    def attribute(self, tx: Context, name: str) -> Value:
        """start, stop or step."""
        if name in ("start", "stop", "step"):
            return self.parts[("start", "stop", "step").index(name)]
        return super().attribute(tx, name)

    def constant(self) -> slice:
        """A slice of constant ints that a sequence takes, fixing symbolic ones."""
        parts = []
        for part in self.parts:
            none = isinstance(part, Constant) and part.value is None
            parts.append(None if none else index_of(part))
        if parts[2] == 0:
            raise CannotCapture("operation-raises", "slice step cannot be zero")
        return slice(*parts)

    def rebuild(self, program: Rebuilder) -> str:
        """The object itself where it came from outside, else a call of slice."""
        if self.source is not None:
            return program.load(self.source)
        return f"slice({', '.join(program.rebuild(part) for part in self.parts)})"


class RangeValue(Value):
    """``range(start, stop, step)``; bounds may be symbolic until it is iterated over."""

    def __init__(self, start: Any, stop: Any, step: Any, source: Source | None = None) -> None:
        self.start, self.stop, self.step = start, stop, step
        self.source = source
        self.unrolled = False  # whether the user asks for that
        self.scalar = False  # whether a loop along it has to be scalar code

    @property
    def python_type(self) -> type:
        """Always range."""
        return range

    def fixed(self) -> range:
        """The range of ints, symbolic bounds fixed with guards."""
        return range(*(p if isinstance(p, int) else p.specialise() for p in (self.start, self.stop, self.step)))

    def export(self, tx: Context) -> Any:
        """The range itself."""
        return self.fixed()

    def attribute(self, tx: Context, name: str) -> Value:
        """start, stop or step."""
        if name in ("start", "stop", "step"):
            return integer(getattr(self, name))
        return super().attribute(tx, name)

    def item(self, tx: Context, key: Value) -> Value:
        """One number, or a shorter range."""
        try:
            found = self.fixed()[key.constant() if isinstance(key, SliceValue) else index_of(key)]
        except IndexError as error:
            raise CannotCapture("operation-raises", str(error)) from error
        return RangeValue(found.start, found.stop, found.step) if isinstance(found, range) else Constant(found)

    def truth(self, tx: Context) -> bool:
        """Whether it is not empty."""
        return bool(self.fixed())

    def length(self, tx: Context) -> Value:
        """The number of steps, symbolic where it can be."""
        if self.step == 1 and not (isinstance(self.start, int) and isinstance(self.stop, int)):
            return integer(self.stop - self.start if self.stop > self.start else 0)
        try:
            return Constant(len(self.fixed()))
        except OverflowError as error:
            raise CannotCapture("operation-raises", str(error)) from error

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The numbers."""
        return (Constant(i) for i in self.fixed())

    def backwards(self) -> RangeValue:
        """The same numbers from the last one on; bounds stay symbolic where the step is 1."""
        if self.step == 1 and not (isinstance(self.start, int) and isinstance(self.stop, int)):
            return RangeValue(self.stop - 1, self.start - 1, -1)
        found = self.fixed()[::-1]
        return RangeValue(found.start, found.stop, found.step)

    def rebuild(self, program: Rebuilder) -> str:
        """The object itself where it came from outside, else a call of range."""
        if self.source is not None:
            return program.load(self.source)
        return f"range({', '.join(f'({part})' for part in (self.start, self.stop, self.step))})"
