"""Calls that only report something, kept in order without ending the graph: ``config.reorderable_functions``.

Input: a call of such a function in captured code.
Output: the call as a side effect of the program, with the values that its arguments had. These calls are made after the
graph, in the order of the program.
Why: a ``print`` need not end the graph. Where an argument may have changed by then, the call is a graph break as
always.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Rebuilder, Value, settled
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.scalar import ScalarValue
from tcompile.capture.values.text import TextValue
from tcompile.config import config


def is_reorderable(function: Any) -> bool:
    """Whether the user has said that calls of ``function`` may be made after the graph."""
    found = config.reorderable_functions
    return bool(found) and any((f.__func__ if type(f) is types.MethodType else f) is function for f in found)


class LaterCall(Value):
    """A call that is made when the graph has run."""

    def __init__(self, function: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
        self.function = function
        self.args = list(args)
        self.kwargs = dict(kwargs)

    def commit(self, program: Rebuilder) -> list[str]:
        """The call."""
        given = [program.rebuild(arg) for arg in self.args]
        given += [f"**{{{name!r}: {program.rebuild(value)}}}" for name, value in self.kwargs.items()]
        return [f"{program.constant(self.function)}({', '.join(given)})"]


def call_later(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value | None:
    """Notes the call; None where it cannot be made after the graph, as in an iteration of a loop."""
    if tx.open_loops:
        return None
    given = [_as_it_is_now(tx, arg) for arg in args]
    named = {name: _as_it_is_now(tx, value) for name, value in kwargs.items()}
    if None in given or None in named.values():
        return None
    later = LaterCall(
        function.value, [arg for arg in given if arg is not None],
        {name: value for name, value in named.items() if value is not None},
    )  # fmt: skip
    tx.touch()
    tx.outside_mutations += 1
    tx.mutated[id(later)] = later
    return Constant(None)


def _as_it_is_now(tx: Context, value: Value) -> Value | None:
    """A value that no later step changes; None where there is none."""
    value = value if isinstance(value, TextValue) else settled(tx, value)
    if isinstance(value, Constant | IntegerValue | FloatValue | ScalarValue | TextValue):
        return value
    if isinstance(value, ArrayValue):
        if value.source is not None:
            return None if id(value) in tx.mutated else value
        return ArrayValue(value.traced, value.frontend)
    if value.source is not None:  # it changes after the calls that were noted before the change
        return None if id(value) in tx.mutated else value
    if isinstance(value, SequenceValue):
        items = [_as_it_is_now(tx, item) for item in value.items]
        return None if None in items else SequenceValue([item for item in items if item is not None], value.cls)
    if isinstance(value, DictValue):
        parts = {key: _as_it_is_now(tx, item) for key, item in value.items.items()}
        known = {key: item for key, item in parts.items() if item is not None}
        return DictValue(known) if len(known) == len(parts) else None
    return None
