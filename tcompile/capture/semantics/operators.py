"""Python's operators on captured values.

Input: an operator sign and two values.
Output: the value of the result.
Why: the interpreter, the built-in ``operator`` functions and comparisons in built-ins use one meaning of ``+``.
"""

from __future__ import annotations

import enum
import math
import operator
import sys
import types
from collections.abc import Sequence
from typing import Any

from tcompile.capture.guards.kinds import shown
from tcompile.capture.semantics.temporaries import reused
from tcompile.capture.values import scalar
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.attributes import AttributesValue
from tcompile.capture.values.base import MAX_ITEMS, Context, Value
from tcompile.capture.values.callable import FunctionValue, IteratorValue
from tcompile.capture.values.classes import lookup
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue, integer
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.dicts import DictValue, DictViewValue
from tcompile.capture.values.object import ObjectValue, OpaqueValue
from tcompile.capture.values.scalar import ScalarValue
from tcompile.capture.values.selected import SelectedValue
from tcompile.capture.values.sets import SetValue, combine
from tcompile.capture.values.signs import BINARY, COMPARE, UNARY
from tcompile.capture.values.slices import RangeValue, SliceValue, count_of
from tcompile.capture.values.span import FEW_ITEMS, RepeatedSpan
from tcompile.capture.values.tensor import RecordValue, TensorValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph import SymInt

_NAMES = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul",
    "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
    "<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge",
}  # fmt: skip
INPLACE = {sign: f"__i{_NAMES[sign]}__" for sign in BINARY}
_SYMBOLIC = ("+", "-", "*", "//", "%")
_NUMBERS = (int, float, bool, complex)
_COPIED = (int, float, complex, str, bytes, tuple, frozenset)  # equal ones may or may not be one object
_NEVER_NUMBERS = (str, bytes, type(None), type(Ellipsis), type)  # equal to no number and to no container


def binary(tx: Context, sign: str, left: Value, right: Value) -> Value:
    """``left sign right`` for arithmetic and bitwise operators and the six comparisons."""
    if isinstance(left, RecordValue) or isinstance(right, RecordValue):
        left, right = (
            SequenceValue(side.items, tuple) if isinstance(side, RecordValue) else side for side in (left, right)
        )
        if sign not in COMPARE:
            raise CannotCapture("unsupported-operands", f"{left.describe()} {sign} {right.describe()}")
    if isinstance(left, TensorValue) or isinstance(right, TensorValue):
        tensor = left if isinstance(left, TensorValue) else right
        assert isinstance(tensor, TensorValue)
        return tensor.binary(tx, sign, left, right)
    if isinstance(left, ObjectValue) or isinstance(right, ObjectValue):
        found = _compare_objects(tx, sign, left, right) if sign in COMPARE else _combine_objects(tx, sign, left, right)
        if found is None:
            raise CannotCapture("operation-raises", f"unsupported operands for {sign}")
        return found
    if isinstance(left, SelectedValue) or isinstance(right, SelectedValue):
        array_like = left if isinstance(left, SelectedValue) else right
        assert isinstance(array_like, SelectedValue)
        found = array_like.frontend.binary(tx.builder, sign, left.export(tx), right.export(tx))
        return tx.from_frontend(found, array_like)
    if isinstance(left, ArrayValue) or isinstance(right, ArrayValue):
        array = left if isinstance(left, ArrayValue) else right
        assert isinstance(array, ArrayValue)
        other = right if array is left else left
        if sign == "*" and array.traced.scalar and isinstance(other, SequenceValue):  # NumPy's scalars repeat sequences
            raise CannotCapture("unsupported-operands", f"{left.describe()} {sign} {right.describe()}")
        one, two = (side.beside(tx, sign, array) if isinstance(side, ScalarValue) else side.export(tx)
                    for side in (left, right))  # fmt: skip
        result = array.frontend.binary(tx.builder, sign, one, two)
        taken = array.frontend.takes_memory(sign, one, two, result)
        like = reused(tx, [left, right], taken) if taken else None
        if like is not None:
            result = array.frontend.laid_out(tx.builder, result, like.traced)
        return tx.from_frontend(result, array)
    if isinstance(left, ScalarValue) or isinstance(right, ScalarValue):
        return scalar.combine(tx, sign, left, right)
    if isinstance(left, OpaqueValue) or isinstance(right, OpaqueValue):
        raise CannotCapture("unsupported-operands", f"{left.describe()} {sign} {right.describe()}")
    if isinstance(left, SetValue) or isinstance(right, SetValue):
        return combine(tx, sign, left, right)
    if isinstance(left, SequenceValue) or isinstance(right, SequenceValue):
        return _sequences(tx, sign, left, right)
    if isinstance(left, IntegerValue | FloatValue) or isinstance(right, IntegerValue | FloatValue):
        return _numbers(tx, sign, left, right)
    if isinstance(left, DictValue) and isinstance(right, DictValue):
        if sign == "|":
            return DictValue({**left.items, **right.items})
        if sign in ("==", "!="):
            return Constant(_equal_dicts(tx, left, right) == (sign == "=="))
    if sign in ("==", "!=") and not (isinstance(left, Constant) and isinstance(right, Constant)):
        return Constant(_equal_plain(tx, left, right) == (sign == "=="))
    return _fold_operator(tx, sign, left, right)


_KINDS = (
    (int, float, bool, complex), (str,), (bytes,), (type(None),), (list,), (tuple,), (dict,), (set, frozenset),
    (range,), (slice,), (types.FunctionType,), (types.MethodType,), (type,), (types.GeneratorType,),
)  # fmt: skip


def _kind(value: Value) -> tuple[type, ...] | None:
    """The types that a value may be equal to; None where that is not known."""
    cls = value.python_type
    if _compares_by_identity(cls):
        return (cls,)
    return next((kind for kind in _KINDS if cls in kind), None)


def _compares_by_identity(cls: type) -> bool:
    """Whether ``cls`` is a plain enumeration."""
    return issubclass(cls, enum.Enum) and lookup(cls, "__eq__") is object.__eq__


def _equal_plain(tx: Context, left: Value, right: Value) -> bool:
    """``left == right`` for built-in types that are equal to nothing but their own kind."""
    kinds = [_kind(side) for side in (left, right)]
    if None in kinds or (kinds[0] is kinds[1] and not isinstance(left, FunctionValue | RangeValue | SliceValue)):
        raise CannotCapture("unsupported-operands", f"`==` of {left.describe()} and {right.describe()}")
    if kinds[0] is not kinds[1]:
        return False
    if isinstance(left, RangeValue) and isinstance(right, RangeValue):
        return left.fixed() == right.fixed()
    if isinstance(left, SliceValue) and isinstance(right, SliceValue):
        return all(equal(tx, a, b) for a, b in zip(left.parts, right.parts, strict=True))
    return identical(tx, left, right)


def _combine_objects(tx: Context, sign: str, left: Value, right: Value) -> Value | None:
    """``left sign right`` where a Python class may define the operator; None where neither side does."""
    name, reflected = f"__{_NAMES[sign]}__", f"__r{_NAMES[sign]}__"
    refused = CannotCapture("unsupported-operands", f"`{sign}` of {left.describe()} and {right.describe()}")
    if _extends_builtin(left) or _extends_builtin(right):
        raise refused
    turned = False
    if isinstance(left, ObjectValue):
        if isinstance(right, ObjectValue) and right.cls is not left.cls and issubclass(right.cls, left.cls):
            turned = lookup(right.cls, reflected) is not lookup(left.cls, reflected)  # a subclass is asked first
            found = right.call_operator(tx, reflected, [left]) if turned else None
            if found is not None:
                return found
        found = left.call_operator(tx, name, [right])
        if found is not None or not isinstance(right, ObjectValue) or right.cls is left.cls:
            if found is None and not _declines(right):
                raise refused
            return found
    elif not _declines(left) or (sign == "%" and left.python_type in (str, bytes)):
        raise refused
    assert isinstance(right, ObjectValue)
    return None if turned else right.call_operator(tx, reflected, [left])


_REFLECTED = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">": "<", ">=": "<="}
_DECLINING = (
    int, float, bool, complex, str, bytes, type(None), type(Ellipsis), list, tuple, dict, set, frozenset, range, slice,
    type, types.FunctionType, types.MethodType, types.ModuleType,
)  # fmt: skip


def _declines(value: Value) -> bool:
    """Whether the operator returns NotImplemented for this object and an instance of a Python class."""
    cls = value.python_type
    return isinstance(value, ObjectValue) or cls in _DECLINING or _compares_by_identity(cls)


def _extends_builtin(value: Value) -> bool:
    return isinstance(value, ObjectValue) and issubclass(value.cls, (*_COPIED, list, dict, set))


def _compare_objects(tx: Context, sign: str, left: Value, right: Value) -> Value | None:
    """A comparison where a Python class may define it."""
    name, reflected = f"__{_NAMES[sign]}__", f"__{_NAMES[_REFLECTED[sign]]}__"
    refused = CannotCapture("unsupported-operands", f"`{sign}` of {left.describe()} and {right.describe()}")
    if _extends_builtin(left) or _extends_builtin(right):
        raise refused
    turn = [(left, name, right), (right, reflected, left)]
    if left.python_type is not right.python_type and issubclass(right.python_type, left.python_type):
        turn.reverse()
    for side, method, other in turn:
        if not _declines(side):
            raise refused
        found = side.compare(tx, method, other) if isinstance(side, ObjectValue) else None
        if found is not None:
            return found
    return Constant(identical(tx, left, right) == (sign == "==")) if sign in ("==", "!=") else None


def inplace_object(tx: Context, sign: str, left: ObjectValue, right: Value) -> Value:
    """``left sign= right``: the class's in-place method, else the operator."""
    found = left.call_operator(tx, INPLACE[sign], [right])
    return found if found is not None else binary(tx, sign, left, right)


def _fold_operator(tx: Context, sign: str, left: Value, right: Value) -> Value:
    """An operator of constants, done now, unless an enumeration of the user's defines it."""
    for side in (left, right):
        if isinstance(side, Constant) and isinstance(side.value, enum.Enum):
            for name in (f"__{_NAMES[sign]}__", f"__r{_NAMES[sign]}__"):
                found = lookup(type(side.value), name)
                if isinstance(found, types.FunctionType) and found.__module__ != "enum":
                    raise CannotCapture("unsupported-operands", f"`{sign}` of {left.describe()} and {right.describe()}")
    return tx.fold(BINARY.get(sign) or COMPARE[sign], [left, right], {})


_HUGE = 4096  # bits of ints that are not written in a program's text: Python limits the digits


def _numbers(tx: Context, sign: str, left: Value, right: Value) -> Value:
    """Arithmetic of Python numbers, at least one of them known at run time only."""
    if any(isinstance(side, Constant) and isinstance(side.value, enum.Enum) for side in (left, right)):
        return _fold_operator(tx, sign, left, right)  # their classes define the result
    for side in (left, right):
        if isinstance(side, Constant) and not isinstance(side.value, _NUMBERS):
            if sign in ("==", "!=") and type(side.value) in _NEVER_NUMBERS:
                return Constant(sign == "!=")
            raise CannotCapture("unsupported-operands", f"{left.describe()} {sign} {right.describe()}")
    a, b = _size_of(left), _size_of(right)
    counted = any(isinstance(side, SymInt) and side.counters() for side in (a, b))
    huge = any(isinstance(side, int) and side.bit_length() > _HUGE for side in (a, b))
    if counted and (a is None or b is None or sign == "/" or huge):
        return scalar.combine(tx, sign, left, right)
    if a is not None and b is not None:
        if (sign in _SYMBOLIC or sign in COMPARE) and not huge:
            try:
                result = (BINARY.get(sign) or COMPARE[sign])(a, b)
            except ZeroDivisionError as error:
                raise CannotCapture("operation-raises", str(error)) from error
            return Constant(result) if isinstance(result, bool) else integer(result)
        if sign == "**" and isinstance(b, int) and 0 <= b <= 4:
            power: Any = 1
            for _ in range(b):
                power = power * a
            return integer(power)
        if sign == "**" and counted:  # the result is an int without bounds
            return scalar.combine(tx, sign, left, right)
        if sign != "/":
            fixed = [x if isinstance(x, int) else x.specialise() for x in (a, b)]
            return tx.fold(BINARY.get(sign) or COMPARE[sign], [Constant(x) for x in fixed], {})
    return tx.compute(f"{{}} {sign} {{}}", [left, right], BINARY.get(sign) or COMPARE[sign])


def _size_of(value: Value) -> Any:
    """The int of a value, maybe symbolic; None for other values."""
    if isinstance(value, IntegerValue):
        return value.size
    if isinstance(value, Constant) and isinstance(value.value, int):
        return int(value.value)
    return None


def _sequences(tx: Context, sign: str, left: Value, right: Value) -> Value:
    if isinstance(left, SequenceValue) and isinstance(right, SequenceValue):
        if sign == "+" and left.cls is right.cls and left.cls in (list, tuple):
            if left.cls is tuple and not (len(left) and len(right)):
                return left if len(left) else right  # no new tuple
            return SequenceValue([*left.items, *right.items], left.cls)
        if sign in ("==", "!="):
            return Constant(equal(tx, left, right) == (sign == "=="))
        if sign in COMPARE:
            return tx.fold(COMPARE[sign], [_constant_sequence(left), _constant_sequence(right)], {})
    for sequence, count in ((left, right), (right, left)):
        repeated = isinstance(sequence, SequenceValue) and sequence.cls in (list, tuple)
        if sign == "*" and repeated and isinstance(count, Constant | IntegerValue):
            assert isinstance(sequence, SequenceValue)
            span = _repeated_span(tx, sequence, count)
            if span is not None:
                return span
            times = count_of(count)
            if sequence.cls is tuple and (times == 1 or not len(sequence)):
                return sequence  # no new tuple
            if len(sequence) * times > MAX_ITEMS:
                raise CannotCapture("too-long", f"A container of more than {MAX_ITEMS} items is made.")
            return SequenceValue(sequence.items * times, sequence.cls)
    other = right if isinstance(left, SequenceValue) else left
    known = isinstance(other, DictValue | IntegerValue | FloatValue | FunctionValue)
    if isinstance(other, Constant):
        known = type(other.value) in (*_NUMBERS, *_NEVER_NUMBERS)
    if sign in ("==", "!=") and known:
        return Constant(sign == "!=")
    if sign == "%" and isinstance(left, Constant):
        return tx.fold(operator.mod, [left, right], {})
    raise CannotCapture("unsupported-operands", f"{left.describe()} {sign} {right.describe()}")


def _repeated_span(tx: Context, sequence: SequenceValue, count: Constant | IntegerValue) -> SequenceValue | None:
    """``[number] * count`` or ``[None] * count``, whose items are held together; None of few items or another list."""
    size = count.size if isinstance(count, IntegerValue) else count.value
    if sequence.cls is not list or sequence.spans or len(sequence) != 1 or type(size) not in (int, SymInt):
        return None
    (item,) = sequence.items
    if not isinstance(item, Constant) or type(item.value) not in (bool, int, float, type(None)) or not size > FEW_ITEMS:
        return None
    if type(item.value) is int and abs(item.value) >= 1 << 62:
        return None
    made = SequenceValue([RepeatedSpan(tx, item, size, {})], list)
    made.spans = True
    return made


def _constant_sequence(value: SequenceValue) -> Constant:
    items = [constant_of(item, "an item compared") for item in value.items]
    return Constant(items if value.cls is list else tuple(items))  # named tuples compare as tuples do


def _equal_dicts(tx: Context, left: DictValue, right: DictValue) -> bool:
    if left.keys.keys() != right.keys.keys():
        return False
    return all(equal(tx, left.at(key), right.at(key)) for key in left.keys)


def equal(tx: Context, left: Value, right: Value) -> bool:
    """``left == right`` as a Python bool, as containers compare their items (identical objects are equal)."""
    if left is right:
        return True
    if isinstance(left, SequenceValue) and isinstance(right, SequenceValue):
        tuples = issubclass(left.cls, tuple)
        if tuples != issubclass(right.cls, tuple) or (not tuples and len(left.items) != len(right.items)):
            return False  # tuples of different lengths are compared up to where they differ
        position = 0
        while position < min(len(left.items), len(right.items)):  # an item's __eq__ may change either list
            if not equal(tx, left.items[position], right.items[position]):
                break
            position += 1
        return position >= min(len(left.items), len(right.items)) and len(left.items) == len(right.items)
    if any(_is_nan(side) for side in (left, right)):
        raise CannotCapture("object-identity", "an equality of containers with a NaN in them")  # equal to itself
    if isinstance(left, Constant) and isinstance(right, Constant) and left.value is right.value:
        return True
    found = binary(tx, "==", left, right).truth(tx)
    if not found and isinstance(left, FloatValue) and isinstance(right, FloatValue):
        tx.decide(left.source, "{} == {}", f"{left.source.text} is no NaN", True)
    return found


def _is_nan(value: Value) -> bool:
    number = value.hint if isinstance(value, FloatValue) else value.value if isinstance(value, Constant) else None
    return type(number) is float and math.isnan(number)


def ordered(tx: Context, values: Sequence[Value], key: Value | None, reverse: Value | None) -> list[Value]:
    """``sorted(values, key=key, reverse=reverse)``."""

    class Ranked:
        """One value under its key, compared as the captured code compares."""

        __slots__ = ("key", "value")

        def __init__(self, value: Value) -> None:
            self.value = value
            by_itself = key is None or (isinstance(key, Constant) and key.value is None)
            self.key = value if by_itself or key is None else key.call(tx, [value], {})

        def __lt__(self, other: Ranked) -> bool:
            return binary(tx, "<", self.key, other.key).truth(tx)

    if reverse is not None and sys.version_info < (3, 12):  # where it is an int, not whatever has a truth
        tx.fold(sorted, [Constant(())], {"reverse": reverse})
    backwards = reverse is not None and reverse.truth(tx)
    return [item.value for item in sorted([Ranked(value) for value in values], reverse=backwards)]


def unary(tx: Context, sign: str, value: Value) -> Value:
    """``sign value`` for - + ~."""
    if isinstance(value, TensorValue):
        return value.unary(tx, sign)
    if isinstance(value, ArrayValue | SelectedValue):
        return tx.from_frontend(value.frontend.unary(tx.builder, sign, value.export(tx)), value)
    if isinstance(value, ScalarValue):
        return scalar.negative(tx, sign, value)
    if isinstance(value, IntegerValue):
        result = {"-": -value.size, "+": value.size, "~": -value.size - 1}[sign]
        return integer(result)
    if isinstance(value, FloatValue):
        return tx.compute(f"{sign}{{}}", [value], UNARY[sign])
    if isinstance(value, ObjectValue):
        name = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}[sign]
        if not value.class_has(tx, name):
            raise CannotCapture("operation-raises", f"`{sign}` of {value.describe()}")
        return value.call_method(tx, name, [])
    if sign == "~" and isinstance(value, Constant) and type(value.value) is bool:
        raise CannotCapture("unsupported-operands", "`~` of a bool (Python 3.12 and later warn of it)")
    return tx.fold(UNARY[sign], [value], {})


def identical(tx: Context, left: Value, right: Value) -> bool:
    """``left is right``."""
    if left is right:
        return True
    for side in (left, right):
        if isinstance(side, ArrayValue) and side.memory is not None:
            side.memory.ask_identity()
    refused = CannotCapture("object-identity", f"{left.describe()} is {right.describe()}")
    for a, b in ((left, right), (right, left)):
        if isinstance(a, Constant) and _is_singleton(a.value):
            if isinstance(b, Constant):
                return a.value is b.value
            if isinstance(b, OpaqueValue | ObjectValue):
                return a.value is b.value
            if b.python_type is not type(a.value):
                return False
    if any(isinstance(side, Constant | IntegerValue | FloatValue) for side in (left, right)):
        if left.python_type is not right.python_type:
            return False
        if isinstance(left, Constant) and isinstance(right, Constant):
            if tx.tensors is not None and tx.tensors.is_fixed(left.value) and tx.tensors.is_fixed(right.value):
                return left.value is right.value
            if callable(left.value) and callable(right.value):  # any(… for …) asks so on CPython 3.14
                return left.value is right.value
            if not isinstance(left.value, _COPIED) and not tx.is_library_name(type(left.value).__module__):
                return left.value is right.value
            if isinstance(left.value, str | bytes | int) and left.value != right.value:
                return False
        raise refused  # equal numbers and strings may or may not be one object
    for one, two in ((left, right), (right, left)):
        if isinstance(one, SequenceValue) and one.original is not None and isinstance(two, SequenceValue):
            if two.original is not None:
                return one.original is two.original
            if two.source is not None:
                held, same = tx.prologue.constant(one.original), tx.objects[two.source] is one.original
                text = f"{two.source.text} is {shown(one.original)}"
                return tx.decide(two.source, f"{{}} is {held}", text, same)
    if left.source is not None and right.source is not None:
        # Two places may hold one object: whether they do now becomes a guard.
        same = tx.objects[left.source] is tx.objects[right.source]
        other = tx.prologue.load(right.source)
        return tx.decide(left.source, f"{{}} is {other}", f"{left.source.text} is {right.source.text}", same)
    made = (ArrayValue, SequenceValue, DictValue, ObjectValue, SetValue)
    if isinstance(left, made) and isinstance(right, made):
        if left.python_type is not right.python_type:
            return False
        if _is_alike(left) is not None and _is_alike(left) is _is_alike(right):
            raise refused  # one object in the first iteration of a loop
        if not any(_may_be_copied(side) for side in (left, right)):
            return False  # made by captured code: it is no object from outside, and no other new object
    raise refused


def _is_alike(value: Value) -> object:
    """The array with which a variable of a loop begins, where another variable begins with it, too."""
    memory = value.memory if isinstance(value, ArrayValue) and not value.path else None
    return None if memory is None else memory.alike


def _may_be_copied(value: Value) -> bool:
    """Whether Python may use one object for two equal ones of this type."""
    return value.traced.scalar if isinstance(value, ArrayValue) else value.python_type in (tuple, frozenset)


def _is_singleton(value: Any) -> bool:
    """Whether an object is the only one that is equal to it."""
    return value is None or value is Ellipsis or value is NotImplemented or isinstance(value, bool | type | enum.Enum)


def contains(tx: Context, container: Value, item: Value) -> bool:
    """``item in container``."""
    if isinstance(container, DictValue):
        return container.contains(tx, item)
    if isinstance(container, SetValue):
        return container.holds(item)
    if isinstance(container, AttributesValue):
        return container.holds(tx, item)
    if isinstance(container, DictViewValue) and container.name == "keys":
        return contains(tx, container.owner, item)
    if isinstance(container, RangeValue):
        return constant_of(item, "a number looked for") in container.fixed()
    if isinstance(container, DictViewValue) and container.name == "items":
        if not isinstance(item, SequenceValue):
            raise CannotCapture("unsupported-operands", f"{item.describe()} in {container.describe()}")
        if not issubclass(item.cls, tuple) or len(item.items) != 2:
            return False
        key, value = item.items
        return contains(tx, container.owner, key) and equal(tx, container.owner.item(tx, key), value)
    if isinstance(container, DictViewValue):
        return any(equal(tx, other, item) for other in container.iterate(tx))
    if isinstance(container, ObjectValue):
        found = container.contains(tx, item)
        if found is not None:
            return found
    if isinstance(container, SequenceValue | ObjectValue | IteratorValue):
        return any(equal(tx, other, item) for other in container.iterate(tx))
    return tx.fold(operator.contains, [container, item], {}).truth(tx)
