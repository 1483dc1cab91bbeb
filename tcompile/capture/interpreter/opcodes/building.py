"""Instructions that build and take apart tuples, lists, dicts, slices and strings.

Input: a frame with the parts on its stack.
Output: the container, or the parts.
Why: instructions with a common theme share helpers.
"""

from __future__ import annotations

import itertools
from typing import Any

from tcompile.bytecode.instructions import Instruction
from tcompile.capture.interpreter.frame import Frame, handler
from tcompile.capture.interpreter.opcodes.operators import positive
from tcompile.capture.semantics.attributes import iterator
from tcompile.capture.values.base import settled
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.dicts import DictValue, hashable
from tcompile.capture.values.object import advance
from tcompile.capture.values.sets import SetValue
from tcompile.capture.values.slices import SliceValue
from tcompile.capture.values.templates import InterpolationValue, TemplateValue, conversion_of
from tcompile.capture.values.text import held, joined, text
from tcompile.frontends.base import CannotCapture


@handler("BUILD_TUPLE", "BUILD_LIST")
def _build_sequence(f: Frame, i: Instruction) -> None:
    items = [held(f.tx, item) for item in f.pop_many_unread(i.arg or 0)]
    f.push(SequenceValue.holding(f.tx, items, tuple if i.opname == "BUILD_TUPLE" else list))


@handler("BUILD_MAP")
def _build_map(f: Frame, i: Instruction) -> None:
    flat = f.pop_many_unread(2 * (i.arg or 0))
    keys = [hashable(settled(f.tx, key), "a dict key") for key in flat[::2]]
    values = [held(f.tx, value) for value in flat[1::2]]
    f.push(DictValue.holding(f.tx, dict(zip(keys, values, strict=True))))


@handler("BUILD_SET")
def _build_set(f: Frame, i: Instruction) -> None:
    f.push(SetValue(f.tx, {hashable(item, "an item of a set") for item in f.pop_many(i.arg or 0)}))


@handler("SET_ADD")
def _set_add(f: Frame, i: Instruction) -> None:
    value = f.pop()
    f.peek(i.arg or 0).method(f.tx, "add", [value], {})


@handler("SET_UPDATE")
def _set_update(f: Frame, i: Instruction) -> None:
    value = f.pop()
    f.peek(i.arg or 0).method(f.tx, "update", [value], {})


@handler("BUILD_CONST_KEY_MAP")
def _build_const_key_map(f: Frame, i: Instruction) -> None:
    keys = constant_of(f.pop(), "dict keys")
    values = [held(f.tx, value) for value in f.pop_many_unread(i.arg or 0)]
    f.push(DictValue.holding(f.tx, dict(zip(keys, values, strict=True))))


@handler("BUILD_SLICE")
def _build_slice(f: Frame, i: Instruction) -> None:
    parts = f.pop_many(i.arg or 0)
    f.push(SliceValue(parts[0], parts[1], parts[2] if len(parts) == 3 else Constant(None)))


@handler("BUILD_STRING")
def _build_string(f: Frame, i: Instruction) -> None:
    f.push(text(f.tx, joined, f.pop_many_unread(i.arg or 0)))


_CONVERSIONS: dict[int, Any] = {1: str, 2: repr, 3: ascii}


@handler("FORMAT_VALUE")
def _format_value(f: Frame, i: Instruction) -> None:
    flags = i.arg or 0
    spec = f.pop_unread() if flags & 4 else Constant("")
    value = f.pop_unread()
    if flags & 3:
        value = text(f.tx, _CONVERSIONS[flags & 3], [value])
    f.push(text(f.tx, format, [value, spec]))


@handler("CONVERT_VALUE")
def _convert_value(f: Frame, i: Instruction) -> None:
    f.push(text(f.tx, _CONVERSIONS[i.arg or 1], [f.pop_unread()]))


@handler("FORMAT_SIMPLE", "FORMAT_WITH_SPEC")
def _format(f: Frame, i: Instruction) -> None:
    f.push(text(f.tx, format, f.pop_many_unread(1 if i.opname == "FORMAT_SIMPLE" else 2)))


@handler("BUILD_INTERPOLATION")
def _build_interpolation(f: Frame, i: Instruction) -> None:
    flags = i.arg or 0
    spec = f.pop_unread() if flags & 1 else Constant("")
    value, expression = (held(f.tx, part) for part in f.pop_many_unread(2))
    f.push(InterpolationValue(value, expression, Constant(conversion_of(flags >> 2)), held(f.tx, spec)))


@handler("BUILD_TEMPLATE")
def _build_template(f: Frame, i: Instruction) -> None:
    strings, interpolations = f.pop_many(2)
    assert isinstance(interpolations, SequenceValue)
    f.push(TemplateValue(constant_of(strings, "the texts of a template"), interpolations.items))


@handler("LIST_EXTEND")
def _list_extend(f: Frame, i: Instruction) -> None:
    values = f.pop()
    f.peek(i.arg or 0).method(f.tx, "extend", [values], {})


@handler("LIST_APPEND")
def _list_append(f: Frame, i: Instruction) -> None:
    value = held(f.tx, f.pop_unread())
    f.peek(i.arg or 0).method(f.tx, "append", [value], {})


@handler("MAP_ADD")
def _map_add(f: Frame, i: Instruction) -> None:
    key, value = f.pop_many(2)
    f.peek(i.arg or 0).store_item(f.tx, key, value)


@handler("DICT_UPDATE", "DICT_MERGE")
def _dict_update(f: Frame, i: Instruction) -> None:
    other = f.pop()
    target = f.peek(i.arg or 0)
    if not isinstance(other, DictValue) or not isinstance(target, DictValue):
        raise CannotCapture("unsupported-object", f"{other.describe()} is unpacked into a dict.")
    if i.opname == "DICT_MERGE" and set(other.items) & set(target.items):
        raise CannotCapture("operation-raises", "multiple values for a keyword argument")
    target.method(f.tx, "update", [other], {})


@handler("LIST_TO_TUPLE")
def list_to_tuple(f: Frame, i: Instruction) -> None:
    """Makes the list on the stack a tuple (3.12 and later spell it as an intrinsic)."""
    value = f.pop()
    assert isinstance(value, SequenceValue)
    f.push(SequenceValue(value.items, tuple))


@handler("CALL_INTRINSIC_1")
def _call_intrinsic(f: Frame, i: Instruction) -> None:
    if i.argrepr == "INTRINSIC_UNARY_POSITIVE":
        positive(f, i)
    elif i.argrepr == "INTRINSIC_LIST_TO_TUPLE":
        list_to_tuple(f, i)
    else:
        raise CannotCapture("unsupported-instruction", i.argrepr)


@handler("UNPACK_SEQUENCE")
def _unpack_sequence(f: Frame, i: Instruction) -> None:
    count = i.arg or 0
    whole = f.pop()
    items = whole.unpacked() if isinstance(whole, SequenceValue) else whole.iterate(f.tx)
    values = list(itertools.islice(items, count + 1))
    if len(values) != count:
        raise CannotCapture("operation-raises", f"{len(values)} values or more to unpack, expected {count}")
    f.stack.extend(reversed(values))


@handler("UNPACK_EX")
def _unpack_ex(f: Frame, i: Instruction) -> None:
    before, after = (i.arg or 0) & 0xFF, (i.arg or 0) >> 8
    items = iterator(f.tx, f.pop())
    values = [value for _ in range(before) if (value := advance(f.tx, items)) is not None]
    values += items.collect(f.tx) if len(values) == before else []
    if len(values) < before + after:
        raise CannotCapture("operation-raises", f"{len(values)} values to unpack, expected {before + after} or more")
    middle = SequenceValue(values[before : len(values) - after], list)
    f.stack.extend(reversed([*values[:before], middle, *values[len(values) - after :]]))
