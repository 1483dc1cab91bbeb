"""Python numbers that the graph computes: ``x.item()``, ``float(x)``, ``int(x)``, ``bool(x)`` of one element.

Input: arrays of one element.
Output: ``ScalarValue``, which represents the Python number.
Why: such numbers need not end the graph. Inside it they are weakly typed, like any Python number, and they leave the
function as real Python numbers.

Uses of the value itself (a branch, an index, a text) break the graph. So does arithmetic that Python does differently:
integers have no bounds, and a division by zero is an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Rebuilder, Value
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue
from tcompile.capture.values.int_nodes import LARGEST, int_node
from tcompile.frontends.base import CannotCapture, Traced, TracedNumber
from tcompile.graph import Node
from tcompile.graph.dtypes import INT64, DType

_DTYPES = {float: "float64", int: "int64", bool: "bool"}
_WITH_INTEGERS = ("+", "-", "*", "/", "<", "<=", "==", "!=", ">", ">=")
_FLOATS = {"+": "add", "-": "subtract", "*": "multiply"}
_INTS = {"+": "python_add", "-": "python_subtract", "*": "python_multiply"}
_COMPARE = {
    "<": "less", "<=": "less_equal", "==": "equal", "!=": "not_equal", ">": "greater", ">=": "greater_equal",
}  # fmt: skip
_PARTS = {"//": "floor_divide", "%": "remainder"}
_MATH: dict[Callable[..., Any], str] = {
    math.exp: "exp", math.log: "log", math.sin: "sin", math.cos: "cos", math.tanh: "tanh", math.fabs: "abs",
}  # fmt: skip
_EXACT = 1 << 53  # ints up to here are floats


class ScalarValue(Value):
    """A Python float, int or bool; ``array`` is the 0-d float64, int64 or bool value that the graph has for it."""

    def __init__(self, array: ArrayValue, cls: type) -> None:
        self.array = array
        self.cls = cls

    @property
    def python_type(self) -> type:
        """float, int or bool."""
        return self.cls

    def describe(self) -> str:
        """The kind of number."""
        return f"a Python {self.cls.__name__} that is read from an array"

    def export(self, tx: Context) -> Any:
        """A float as a weakly typed number. What an int or bool does to an array depends on the array's dtype."""
        if self.cls is not float:
            raise CannotCapture("data-dependent-value", f"The value of {self.describe()} is needed.")
        return _weak(tx, self.array.traced.node)

    def beside(self, tx: Context, sign: str, array: ArrayValue) -> Any:
        """The number as the other operand of ``sign`` and an array."""
        dtype = array.traced.type.dtype
        if self.cls is int and dtype.kind == "f" and sign in _WITH_INTEGERS:
            return _weak(tx, tx.builder.op("astype", self.array.traced.node, dtype="float64"))
        if self.cls is int and dtype == INT64 and sign in _WITH_INTEGERS:
            return self.array.traced
        return self.export(tx)

    def computed_int(self, tx: Context) -> Node | None:
        """The number itself, where it is an int."""
        return self.array.traced.node if self.cls is int else None

    def truth(self, tx: Context) -> bool:
        """Known only when the graph has run, or where the path of this call is followed."""
        return self.array.truth(tx)

    def rebuild(self, program: Rebuilder) -> str:
        """The Python number."""
        return f"{program.output(self.array, self.array.traced)}.item()"


def _weak(tx: Context, node: Node) -> TracedNumber:
    def at(dtype: DType) -> Node:
        return node if dtype == node.tensor.dtype else tx.builder.op("astype", node, dtype=dtype.name)

    return TracedNumber(node, at)


def read(tx: Context, array: ArrayValue, cls: type | None) -> Value:
    """``array.item()`` (``cls`` None), ``float(array)``, ``int(array)`` or ``bool(array)``."""
    type_ = array.traced.type
    kind = "i" if type_.dtype.kind == "u" and type_.dtype.itemsize < 8 else type_.dtype.kind
    wanted = cls or {"f": float, "i": int, "b": bool}.get(kind)
    one = type_.ndim == 0 or (cls is None and isinstance(type_.size, int) and type_.size == 1)
    exact = kind in ("fib" if wanted in (float, bool) else "ib") and type_.dtype.name in _SIMPLE
    if wanted is int and kind == "f" and one and type_.device == "cpu":
        # No int is infinite or a NaN, and a cast of a large float gives one number here and another there.
        fits = tx.builder.op("less", tx.builder.op("abs", array.traced.node), float(LARGEST))
        if tx.taken(fits):
            return Constant(tx.taken(tx.builder.op("astype", array.traced.node, dtype="int64")))
    if wanted is None or not one or not exact or type_.device != "cpu":
        name = "item()" if cls is None else f"{cls.__name__}()"
        raise CannotCapture("array-conversion", f"{name} is taken of {array.describe()}")
    op = tx.builder.op
    node = op("reshape", array.traced.node, shape=()) if type_.ndim else array.traced.node
    if wanted is bool and kind != "b":
        node = op("not_equal", node, 0)
    elif node.tensor.dtype.name != _DTYPES[wanted]:
        node = op("astype", node, dtype=_DTYPES[wanted])
    if wanted is not float and (taken := tx.taken(node)) is not None:
        return Constant(wanted(taken))
    return number_value(tx, node, wanted)


_SIMPLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32", "float64")


def number_value(tx: Context, node: Node, cls: type) -> ScalarValue:
    """The Python number of class ``cls`` that a node of rank 0 is."""
    return ScalarValue(ArrayValue(Traced(node, scalar=True), tx.frontend_at(node.device)), cls)


def combine(tx: Context, sign: str, left: Value, right: Value) -> Value:
    """``left sign right`` where one side at least is such a number and no side is an array."""
    has_float = float in (left.python_type, right.python_type)
    ints: list[Any] = [None, None] if has_float else [_int_operand(tx, side) for side in (left, right)]
    if sign in _INTS and None not in ints:
        return number_value(tx, tx.builder.op(_INTS[sign], *ints), int)
    if sign in _PARTS and ints[0] is not None and type(ints[1]) is int and 0 < ints[1] < LARGEST:
        return number_value(tx, tx.builder.op(_PARTS[sign], *ints), int)
    operands = [_float_operand(tx, side) for side in (left, right)]
    if sign in _COMPARE:
        if not has_float:
            operands = ints
        if None not in operands:
            return number_value(tx, tx.builder.op(_COMPARE[sign], *operands), bool)
    if has_float and (sign in _FLOATS or sign in ("/", "**")):  # Python makes a float of an int, too
        operands = [_as_float(tx, side, known) for side, known in zip((left, right), operands, strict=True)]
    if None not in operands:
        if sign == "**":
            power = _power(tx, left, right, operands)
            if power is not None:
                return power
        elif sign in _FLOATS or sign == "/":
            divide = "divide" if isinstance(right, Constant) and right.value else "python_divide"
            return number_value(tx, tx.builder.op(_FLOATS.get(sign, divide), *operands), float)
    what = f"{left.describe()} {sign} {right.describe()}"
    raise CannotCapture("data-dependent-value", f"Python itself computes {what}.")


def _power(tx: Context, left: Value, right: Value, operands: list[Any]) -> Value | None:
    """``left ** right`` as a float; None where it may be none, or where NumPy's bits are wanted and may differ."""
    op, known = tx.builder.op, right.value if isinstance(right, Constant) else None
    is_positive = isinstance(left, Constant) and left.value > 0
    if float not in (left.python_type, right.python_type) or tx.options.exact:
        return None
    if known == 2:
        return number_value(tx, op("finite", op("multiply", operands[0], operands[0])), float)
    if known == 0.5 and left.python_type is int:  # which is never a zero with a sign
        return number_value(tx, op("python_sqrt", operands[0]), float)
    if type(known) is int and known >= 0:  # libm's, as Python's is
        return number_value(tx, op("finite", op("scalar_pow", *operands)), float)
    return number_value(tx, op("finite", op("pow", *operands)), float) if is_positive else None


def of_number(tx: Context, function: Callable[..., Any], value: Value) -> Value | None:
    """A function of ``math`` of a number that the graph computes; None where it is something else.

    Where the result is not finite Python says whether that is an error. NumPy's functions may have other last bits.
    """
    if function is not math.sqrt and (function not in _MATH or tx.options.exact):
        return None
    if isinstance(value, ArrayValue) and value.traced.scalar:
        value = read(tx, value, float)
    counted = isinstance(value, IntegerValue) and value.size.counters()
    if not counted and not (isinstance(value, ScalarValue) and value.cls is not bool):
        return None
    node = _as_float(tx, value, _float_operand(tx, value))
    if node is None:  # an int that may be too large
        return None
    if function is math.sqrt:
        return number_value(tx, tx.builder.op("python_sqrt", node), float)
    return number_value(tx, tx.builder.op("finite", tx.builder.op(_MATH[function], node)), float)


def selected(tx: Context, sign: str, value: Value, other: Value) -> Value | None:
    """``value if value sign other else other`` of two scalars that the graph computes; None where it is something else.

    Both must be of one type, for the result has the type of either.
    """
    if isinstance(value, ArrayValue) and isinstance(other, ArrayValue):
        one, two = value.traced, other.traced
        if not (one.scalar and two.scalar) or one.type.dtype != two.type.dtype or one.type.dtype.kind not in "iuf":
            return None
        condition = tx.builder.op(_COMPARE[sign], one.node, two.node)
        return tx.from_frontend(Traced(tx.builder.op("where", condition, one.node, two.node), True), value)
    if not (isinstance(value, ScalarValue) or isinstance(other, ScalarValue)):
        return None
    if value.python_type is not float or other.python_type is not float:
        return None
    operands = [_float_operand(tx, side) for side in (value, other)]
    if None in operands:
        return None
    return number_value(tx, tx.builder.op("where", tx.builder.op(_COMPARE[sign], *operands), *operands), float)


def negative(tx: Context, sign: str, value: ScalarValue) -> Value:
    """``-value``, ``+value`` and ``abs(value)``."""
    if value.cls is not float or sign not in ("-", "+", "abs"):
        raise CannotCapture("data-dependent-value", f"Python itself computes {sign} of {value.describe()}.")
    if sign == "+":
        return value
    return number_value(tx, tx.builder.op("abs" if sign == "abs" else "negative", value.array.traced.node), float)


def _as_float(tx: Context, value: Value, known: Any) -> Any:
    """The operand that an int is beside a float."""
    node = value.computed_int(tx) if known is None else None
    return known if node is None else tx.builder.op("astype", node, dtype="float64")


def truth_node(tx: Context, value: Value) -> Node | None:
    """The truth of a number, or of an array of one element, that the graph computes; None where it is another."""
    if isinstance(value, ScalarValue):
        value = value.array
    return value.truth_node(tx) if isinstance(value, ArrayValue) else None


def either(tx: Context, one: Value, two: Value) -> Value:
    """Whether one of two bools is true that the graph computes, or that are known."""
    for known, other in ((one, two), (two, one)):
        if isinstance(known, Constant):
            return known if known.value else other
    nodes = [node for value in (one, two) if (node := truth_node(tx, value)) is not None]
    return truth_of(tx, tx.builder.op("logical_or", *nodes))


def truth_of(tx: Context, node: Node) -> ScalarValue:
    """The Python bool that a node of the graph is."""
    return number_value(tx, node, bool)


def of_kind(tx: Context, kind: Any, node: Node, kept: str = "") -> Value:
    """What a node is to Python: an ``array``, a ``scalar`` object of its library, or a number of the class ``kind``."""
    if kind in ("array", "scalar"):
        return tx.new_array(Traced(node, kind == "scalar"), kept=kept)
    return number_value(tx, node, kind)


def _int_operand(tx: Context, value: Value) -> Any:
    """The operand of arithmetic of integers; None where the number may be none, or too large."""
    if isinstance(value, ScalarValue) and value.cls is int:
        return value.array.traced.node
    if isinstance(value, IntegerValue) and value.size.counters():
        return int_node(tx, value.size)
    if isinstance(value, Constant) and type(value.value) is int and abs(value.value) < 1 << 63:
        return value.value
    return None


def _float_operand(tx: Context, value: Value) -> Any:
    """The operand of float arithmetic; None where the number may be no float."""
    if isinstance(value, ScalarValue) and value.cls is float:
        return value.array.traced.node
    if isinstance(value, FloatValue):
        return tx.number_input(value.source).node
    if isinstance(value, IntegerValue) and value.size.varies_unevenly():
        return None  # whether it is a float exactly is not known
    if isinstance(value, IntegerValue) and value.size.counters() and -_EXACT <= value.size <= _EXACT:
        return tx.builder.op("full", shape=(), fill_value=value.size, dtype="float64")
    if isinstance(value, Constant) and type(value.value) is float:
        finite = math.isfinite(value.value)
        return value.value if finite else tx.builder.op("full", shape=(), fill_value=value.value, dtype="float64")
    if isinstance(value, Constant) and type(value.value) is int and abs(value.value) <= _EXACT:
        return float(value.value)
    return None


__all__ = [
    "ScalarValue", "combine", "either", "negative", "of_kind", "of_number",
    "read", "selected", "truth_node", "truth_of",
]  # fmt: skip
