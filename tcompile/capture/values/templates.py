"""Template strings (PEP 750): their texts, and the values between them.

Input: the constant texts and the values.
Output: values with the attributes of ``string.templatelib``'s objects, which the entry program rebuilds.
Why: a template only records its parts, so arrays in it stay in the graph.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from tcompile.capture.values.base import Context, Rebuilder, Value
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue

_PARTS = ("value", "expression", "conversion", "format_spec")


def _class(name: str) -> type:
    found: type = getattr(importlib.import_module("string.templatelib"), name)  # from 3.14 on
    return found


class InterpolationValue(Value):
    """One value in a template: the value, its source text, its conversion or None, and its format."""

    def __init__(self, value: Value, expression: Value, conversion: Value, format_spec: Value) -> None:
        self.parts = (value, expression, conversion, format_spec)

    @property
    def python_type(self) -> type:
        """Always Interpolation."""
        return _class("Interpolation")

    def attribute(self, tx: Context, name: str) -> Value:
        """One of its parts."""
        return self.parts[_PARTS.index(name)] if name in _PARTS else super().attribute(tx, name)

    def truth(self, tx: Context) -> bool:
        """Interpolations are true."""
        return True

    def rebuild(self, program: Rebuilder) -> str:
        """A new one."""
        return f"{program.constant(self.python_type)}({', '.join(program.rebuild(part) for part in self.parts)})"


class TemplateValue(Value):
    """A template: one text more than values."""

    def __init__(self, strings: Sequence[str], interpolations: Sequence[Value]) -> None:
        self.strings = tuple(strings)
        self.interpolations = tuple(interpolations)

    @property
    def python_type(self) -> type:
        """Always Template."""
        return _class("Template")

    def attribute(self, tx: Context, name: str) -> Value:
        """Its texts, its interpolations, or the values of these."""
        if name == "strings":
            return SequenceValue([Constant(text) for text in self.strings], tuple)
        if name == "interpolations":
            return SequenceValue(list(self.interpolations), tuple)
        if name == "values":
            return SequenceValue([found.attribute(tx, "value") for found in self.interpolations], tuple)
        return super().attribute(tx, name)

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The texts that have characters, and the interpolations, as they stand."""
        return iter([part for part in self._parts() if not isinstance(part, Constant) or part.value])

    def truth(self, tx: Context) -> bool:
        """Templates are true."""
        return True

    def rebuild(self, program: Rebuilder) -> str:
        """A new one."""
        return f"{program.constant(self.python_type)}({', '.join(program.rebuild(part) for part in self._parts())})"

    def _parts(self) -> Iterator[Value]:
        for text, found in zip_longest(self.strings, self.interpolations):
            yield Constant(text)
            if found is not None:
                yield found


def conversion_of(number: int) -> Any:
    """What an instruction's number says of how a value is converted: ``!s``, ``!r``, ``!a``, or not at all."""
    return (None, "s", "r", "a")[number]


__all__ = ["InterpolationValue", "TemplateValue", "conversion_of"]
