"""Texts of numbers known at run time only: ``f"{epoch}: {loss:.4f}"``, ``"%d" % n``, ``str(x)``.

Input: a built-in function that makes a str without side effects, and its arguments.
Output: a ``TextValue``, which is made after the graph and until then only moved. Or a constant, if all arguments are
known, or if the text itself is needed, which fixes the ints in it.
Why: a number that is printed in each iteration of a loop would otherwise be compiled once for each iteration.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Deferred, LazyValue, Rebuilder, Value, settled
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.scalar import ScalarValue
from tcompile.graph.dtypes import limits
from tcompile.strict import strict

_KNOWN = (int, float, complex, str, bool, type(None))
# What each number is tried with: a text that cannot be made of one of them may raise, and is not made after the graph.
_INTS, _FLOATS, _TEXTS = (0, 1 << 1000), (-0.5, float("inf")), ("", "text")
_BITS = 62  # of an int that is open


class TextValue(Deferred):
    """``function(*args, **kwargs)``, a str that plain Python makes after the graph."""

    def __init__(self, function: Callable[..., str], args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
        self.function = function
        self.args = tuple(args)
        self.kwargs = dict(kwargs)

    @property
    def is_text(self) -> bool:
        """Always true."""
        return True

    @property
    def python_type(self) -> type:
        """Always str."""
        return str

    def describe(self) -> str:
        """What it is."""
        return "a text of numbers that vary"

    def settle(self, tx: Context) -> Value:
        """The text as a constant: what is open in it is fixed. Raises CannotCapture where only the graph knows that."""
        args = [arg.settle(tx) if isinstance(arg, Deferred) else arg for arg in self.args]
        kwargs = {name: arg.settle(tx) if isinstance(arg, Deferred) else arg for name, arg in self.kwargs.items()}
        return tx.fold(self.function, args, kwargs)

    def export(self, tx: Context) -> Any:
        """The text."""
        return self.settle(tx).export(tx)

    def attribute(self, tx: Context, name: str) -> Value:
        """An attribute of the text."""
        return self.settle(tx).attribute(tx, name)

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """A method of the text."""
        return self.settle(tx).method(tx, name, args, kwargs)

    def item(self, tx: Context, key: Value) -> Value:
        """Some of its characters."""
        return self.settle(tx).item(tx, key)

    def truth(self, tx: Context) -> bool:
        """Whether it has characters."""
        return self.settle(tx).truth(tx)

    def length(self, tx: Context) -> Value:
        """How many characters it has."""
        return self.settle(tx).length(tx)

    def iterate(self, tx: Context) -> Iterator[Value]:
        """Its characters."""
        return self.settle(tx).iterate(tx)

    def rebuild(self, program: Rebuilder) -> str:
        """The call."""
        args = [program.rebuild(arg) for arg in self.args]
        args += [f"**{{{name!r}: {program.rebuild(arg)}}}" for name, arg in self.kwargs.items()]
        return f"{program.constant(self.function)}({', '.join(args)})"

    def tried(self, example: int) -> str:
        """The text of numbers such as these may be."""
        args = [_tried(arg, example) for arg in self.args]
        return self.function(*args, **{name: _tried(arg, example) for name, arg in self.kwargs.items()})


def text(
    tx: Context, function: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value] | None = None
) -> Value:
    """The str ``function(*args, **kwargs)``. ``args`` may be deferred."""
    made = TextValue(function, [_read(tx, arg) for arg in args], kwargs or {})
    operands = [*made.args, *made.kwargs.values()]
    varies = any(map(_varies, operands)) and all(_varies(arg) or _is_known(arg) for arg in operands)
    if not varies or tx.in_iteration or not _always_works(made):
        return made.settle(tx)
    for operand in operands:
        _guard_types(tx, operand)
    return made


def held(tx: Context, value: Value) -> Value:
    """The value as a container that is made here holds it: texts wait until they are asked for, all else is read."""
    return value if isinstance(value, Deferred) and value.is_text else settled(tx, value)


def joined(*parts: str) -> str:
    """What an f-string does with its parts."""
    return "".join(parts)


def remainder(tx: Context, left: Value, right: Value) -> Value | None:
    """``left % right`` where the left side is a str that is known; None where it is something else."""
    if not (isinstance(left, Constant) and type(left.value) is str):
        return None
    right = _read(tx, right)
    return text(tx, operator.mod, [left, right]) if _varies(right) else None


def follows_settings(result: Any, given: Sequence[Any], is_scalar: Callable[[Any], bool]) -> bool:
    """Whether a text or a number depends on a library's print options, or on the limit of an int's digits."""
    if isinstance(result, str):
        return any(is_scalar(x) or (type(x) is int and _is_long(x)) for x in given)
    return type(result) is int and _is_long(result) and any(isinstance(x, str | bytes) for x in given)


def _is_long(number: int) -> bool:
    return number.bit_length() > 3 * sys.int_info.str_digits_check_threshold  # no lower limit can be set


def _read(tx: Context, value: Value) -> Value:
    """The value, read if it was not; a str from outside need not be."""
    if isinstance(value, SequenceValue) and value.cls is tuple:
        return SequenceValue.holding(tx, [_read(tx, item) for item in value.held], tuple)
    return value.settle(tx) if isinstance(value, LazyValue) and type(value.value) is not str else value


def _varies(value: Value) -> bool:
    """Whether something of a value is known only in a call, and the texts of it can wait."""
    if isinstance(value, SequenceValue):
        items = value.held if value.cls is tuple else []
        return any(map(_varies, items)) and all(_varies(item) or _is_known(item) for item in items)
    if isinstance(value, LazyValue):
        return type(value.value) is str
    if isinstance(value, IntegerValue):
        most = sum(abs(factor) << _BITS * len(symbols) for symbols, factor in value.size.terms.items())
        return not value.size.counters() and most < _INTS[1]
    if isinstance(value, ArrayValue):  # an object of NumPy's that never changes
        return value.traced.scalar and value.traced.type.dtype.kind in "biuf" and value.traced.type.device == "cpu"
    return isinstance(value, FloatValue | ScalarValue | TextValue)


def _is_known(value: Value) -> bool:
    return isinstance(value, Constant) and type(value.value) in _KNOWN


def _always_works(made: TextValue) -> bool:
    """Whether no number, as far as has been tried, makes it raise or warn."""
    try:
        with strict():
            return all(type(made.tried(example)) is str for example in range(2))
    except Exception:
        return False


def _tried(value: Value, example: int) -> Any:
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, SequenceValue):
        return tuple(_tried(item, example) for item in value.held)
    if isinstance(value, TextValue):
        return value.tried(example)
    if isinstance(value, LazyValue):
        return _TEXTS[example]
    if isinstance(value, ArrayValue):
        dtype = value.traced.type.dtype
        examples = {"f": _FLOATS, "b": (False, True)}.get(dtype.kind)
        return dtype.type(examples[example] if examples else (0, limits(dtype).max)[example])
    cls = value.python_type
    return (_FLOATS if cls is float else _INTS if cls is int else (False, True))[example]


def _guard_types(tx: Context, value: Value) -> None:
    """Guards that what came from outside as a str is one."""
    if isinstance(value, SequenceValue):
        for item in value.held:
            _guard_types(tx, item)
    elif isinstance(value, LazyValue):
        source = value.source
        tx.prologue.guard(source, "type({}) is str", f"type({source.text}) is str", "str", "type")


__all__ = ["TextValue", "held", "joined", "remainder", "text"]
