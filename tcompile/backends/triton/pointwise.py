"""What each pointwise operation is in Triton's language, with NumPy's values and flags.

Enters: an operation's name, the dtype of its operands, the operands' texts. Leaves: the text of the result, and of its
status bits, where it has any. ``has_operation`` says which combinations there are; everything else stays a NumPy call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tcompile.backends.schedule.parts import HALF, SINGLE
from tcompile.backends.triton.names import BOOL, full, literal, type_of
from tcompile.graph.types import DType

Operand: TypeAlias = str | bool | int | float  # the name of a register, or a number


@dataclass(frozen=True)
class Written:
    """The text of a result, and of its status bits: in that, ``{r}`` is the result's name. "" means none."""

    value: str
    flags: str = ""


# In the texts below, ``{a}``, ``{b}`` and ``{c}`` are operands, numbers written as they are, ``{A}``, ``{B}`` and
# ``{C}`` the same with numbers as tensors, which functions need, and ``{zero}``, ``{one}`` tensors of their dtype.
_COMPARE = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
_TRUTH = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}

_BOOLEANS = {
    "add": "{a} | {b}", "multiply": "{a} & {b}", "maximum": "{a} | {b}", "minimum": "{a} & {b}", "fmax": "{a} | {b}",
    "fmin": "{a} & {b}", "equal": "~({A} ^ {B})", "not_equal": "{a} ^ {b}", "less": "~{A} & {b}",
    "less_equal": "~{A} | {b}", "greater": "{a} & ~{B}", "greater_equal": "{a} | ~{B}", "logical_not": "~{A}",
    "logical_and": "{a} & {b}", "logical_or": "{a} | {b}", "logical_xor": "{a} ^ {b}", "bitwise_and": "{a} & {b}",
    "bitwise_or": "{a} | {b}", "bitwise_xor": "{a} ^ {b}", "bitwise_invert": "~{A}",
    "ordered": "{A}",
}  # fmt: skip

_NUMBERS = {
    "add": "{a} + {b}", "subtract": "{a} - {b}", "multiply": "{a} * {b}", "square": "{a} * {a}", "positive": "{a}",
    "ordered": "{A}", "logical_not": "{a} == {zero}", "sign": "sign({A}, {zero}, {one})",
    **{name: f"{{a}} {sign} {{b}}" for name, sign in _COMPARE.items()},
    **{name: f"({{A}} != {{zero}}) {sign} ({{B}} != {{zero}})" for name, sign in _TRUTH.items()},
}  # fmt: skip

_INTEGERS = {
    "negative": "{zero} - {a}", "abs": "magnitude({A})", "floor": "{a}", "ceil": "{a}", "trunc": "{a}", "round": "{a}",
    "maximum": "tl.maximum({A}, {B})", "minimum": "tl.minimum({A}, {B})", "fmax": "tl.maximum({A}, {B})",
    "fmin": "tl.minimum({A}, {B})", "bitwise_and": "{a} & {b}", "bitwise_or": "{a} | {b}", "bitwise_xor": "{a} ^ {b}",
    "bitwise_invert": "~{A}", "floor_divide": "quotient({A}, {B}, {one})", "remainder": "rest({A}, {B}, {one})",
    "fmod": "rest_towards_zero({A}, {B}, {one})", "bitwise_left_shift": "shifted_left({A}, {B}, {bits}, {zero})",
    "bitwise_right_shift": "shifted_right({A}, {B}, {bits}, {zero})", "pow": "power({A}, {B}, {one}, {bits})",
    "scalar_add": "{a} + {b}", "scalar_subtract": "{a} - {b}", "scalar_multiply": "{a} * {b}",
    "scalar_negative": "{zero} - {a}",
    "python_add": "{a} + {b}", "python_subtract": "{a} - {b}", "python_multiply": "{a} * {b}",
}  # fmt: skip
_UNSIGNED = {
    "abs": "{a}", "floor_divide": "quotient_unsigned({A}, {B}, {one})", "remainder": "rest_unsigned({A}, {B}, {one})",
    "fmod": "rest_unsigned({A}, {B}, {one})", "bitwise_left_shift": "shifted_left({A}, {B}, {bits}, {zero})",
    "bitwise_right_shift": "shifted_right_unsigned({A}, {B}, {bits}, {zero})",
}  # fmt: skip
_INTEGER_FLAGS = {
    "remainder": "flags_by_zero({B})", "fmod": "flags_by_zero({B})",
    "floor_divide": "flags_by_zero({B}) | flags_wrapped({A}, {B}, {least})", "pow": "flags_negative({B})",
    "scalar_add": "flags_sum({A}, {B}, {r})", "scalar_subtract": "flags_difference({A}, {B}, {r})",
    "scalar_multiply": "flags_product({A}, {B}, {r}, {one}, {least})",
    "scalar_negative": "flags_difference({zero}, {A}, {r})",
    "python_add": "flags_python(flags_sum({A}, {B}, {r}))",
    "python_subtract": "flags_python(flags_difference({A}, {B}, {r}))",
    "python_multiply": "flags_python(flags_product({A}, {B}, {r}, {one}, {least}))",
}  # fmt: skip
_UNSIGNED_FLAGS = {
    "remainder": "flags_by_zero({B})", "fmod": "flags_by_zero({B})", "floor_divide": "flags_by_zero({B})",
    "scalar_add": "flags_less({r}, {A})", "scalar_subtract": "flags_less({A}, {B})",
    "scalar_multiply": "flags_product_unsigned({A}, {B}, {r}, {one})", "scalar_negative": "flags_less({zero}, {A})",
}  # fmt: skip

_LIBRARY = frozenset({
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt", "atan2", "hypot", "pow", "fmod", "nextafter", "copysign",
    "trunc",
})  # fmt: skip
FUNCTIONS = _LIBRARY - {"fmod", "nextafter", "copysign", "trunc"}  # that take many operations
OF_ANGLES = frozenset({"sin", "cos", "tan"})
_FLOATS = {
    "negative": "{A} * -1.0", "abs": "tl.abs({A})", "floor": "tl.floor({A})", "ceil": "tl.ceil({A})",
    "round": "libdevice.rint({A})", "nearbyint": "libdevice.rint({A})",
    "maximum": "larger({A}, {B})", "minimum": "smaller({A}, {B})",
    "fmax": "larger_number({A}, {B})", "fmin": "smaller_number({A}, {B})", "isnan": "{a} != {a}",
    "isinf": 'tl.abs({A}) == float("inf")', "isfinite": 'tl.abs({A}) < float("inf")',
    "signbit": "{A}.to({integer}, bitcast=True) < 0", "divide": "plain_quotient({A}, {B})",
    "python_divide": "plain_quotient({A}, {B})",
    "reciprocal": "plain_quotient({one}, {A})", "fma": "tl.fma({A}, {B}, {C})", "finite": "{A}", "regular": "{A}",
    "remainder": "remainder({A}, {B})", "logaddexp": "logaddexp({A}, {B}, {log_2})",
    "floor_divide": "floor_divide({A}, {B}, plain_quotient({A}, {B}), {one})",
    **{f"signalling_{name}": f"{{a}} {sign} {{b}}" for name, sign in _COMPARE.items()},
    **{name: f"libdevice.{name}({{A}})" for name in _LIBRARY},
    **{name: f"libdevice.{name}({{A}}, {{B}})" for name in ("atan2", "hypot", "pow", "fmod", "nextafter", "copysign")},
}  # fmt: skip
_ROOTS = ("sqrt", "python_sqrt")
_ONE = "flags_1({r}, {A}, OVERFLOW)"
_TWO = "flags_2({r}, {A}, {B}, OVERFLOW)"
_FLOAT_FLAGS = {
    **dict.fromkeys(("add", "subtract", "multiply", "hypot", "fmod", "remainder"), _TWO),
    **dict.fromkeys(("square", "exp", "exp2", "expm1", "sinh", "cosh", "sqrt", "sin", "cos", "tan", "asin", "acos",
                     "acosh"), _ONE),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "atanh"), "flags_1({r}, {A}, DIVIDE)"),
    **{f"signalling_{name}": "flags_nan({A}, {B}, INVALID)" for name in _COMPARE},
    "divide": "flags_divide({r}, {A}, {B})", "floor_divide": "flags_divide({r}, {A}, {B})",
    "reciprocal": "flags_reciprocal({r}, {A})", "pow": "flags_pow({r}, {A}, {B})",
    "nextafter": "flags_nextafter({r}, {A})", "fma": "flags_3({r}, {A}, {B}, {C}, OVERFLOW)",
    # Whether NumPy warns of NaNs here depends on its loops.
    "logaddexp": f"{_TWO} | flags_nan({{A}}, {{B}}, ONLY_NUMPY)",
    "python_sqrt": "flags_negative({A})", "python_divide": "flags_python(flags_by_zero({B}))",
    "finite": "flags_finite({A})", "regular": "flags_regular({A}, {B})",
}  # fmt: skip

# How a value comes to a place where others may come to, in any order, and dtypes that the GPU combines in memory.
STORES: dict[str | None, str] = {
    None: "tl.store", "add": "tl.atomic_add", "maximum": "tl.atomic_max", "minimum": "tl.atomic_min",
}  # fmt: skip
INTEGERS, FLOATS = frozenset({"int32", "int64", "uint32", "uint64"}), frozenset({"float32", "float64"})


def has_operation(name: str, dtype: DType) -> bool:
    """Whether operation ``name`` is written for operands of ``dtype``, a dtype of the machine's."""
    if dtype == BOOL:
        return name in _BOOLEANS
    return name in _NUMBERS or name in _ROOTS or name in (_FLOATS if dtype.kind == "f" else _INTEGERS)


def write(name: str, dtype: DType, operands: Sequence[Operand]) -> Written:
    """The operation on operands of ``dtype``: names of registers, or numbers."""
    plain = [o if isinstance(o, str) else literal(o, dtype) for o in operands]
    tensors = [o if isinstance(o, str) else full(o, dtype) for o in operands]
    if all(not isinstance(o, str) for o in operands):
        plain = tensors
    if name == "pow" and dtype.kind == "f" and operands[1] == 2:
        name = "square"
    names = dict(zip("abc", plain, strict=False)) | dict(zip("ABC", tensors, strict=False))
    names |= {"zero": full(0, dtype), "one": full(1, dtype), "bits": str(dtype.itemsize * 8), "r": "{r}"}
    if dtype == BOOL:
        return Written(_BOOLEANS[name].format_map(names))
    if dtype.kind == "f":
        names |= {"integer": f"tl.int{dtype.itemsize * 8}", "log_2": full(math.log(2.0), dtype)}
        if name in _ROOTS:
            text = "tl.sqrt_rn({A})" if dtype == SINGLE else "tl.sqrt({A})"
        else:
            text = _FLOATS.get(name) or _NUMBERS[name]
        flags = _FLOAT_FLAGS.get(name, "")
    else:
        names["least"] = full(int(np.iinfo(dtype).min), dtype)
        own, flag_texts = (_UNSIGNED, _UNSIGNED_FLAGS) if dtype.kind == "u" else (_INTEGERS, _INTEGER_FLAGS)
        text = own.get(name) or _INTEGERS.get(name) or _NUMBERS[name]
        flags = flag_texts.get(name, "")
    return Written(text.format_map(names), flags.format_map(names))


def where(condition: Operand, dtype: DType, a: Operand, b: Operand) -> str:
    """``a`` where the condition holds, ``b`` elsewhere."""
    chosen = condition if isinstance(condition, str) else full(condition, BOOL)
    first, second = (o if isinstance(o, str) else full(o, dtype) for o in (a, b))
    return f"tl.where({chosen}, {first}, {second})"


def cast(source: DType, target: DType, operand: Operand) -> Written:
    """NumPy's astype. Floats that the integer target cannot hold are left to NumPy."""
    a = operand if isinstance(operand, str) else full(operand, source)
    if source == target:
        return Written(a)
    if target == BOOL:
        return Written(f"{a} != {full(0, source)}")
    made = f"{a}.to({type_of(target)})"
    if source.kind == "f" and target.kind == "f":
        narrower = target.itemsize < source.itemsize
        wide = f"{{r}}.to({type_of(source)})" if target == HALF else "{r}"
        return Written(made, f"flags_1({wide}, {a}, OVERFLOW)" if narrower else "")
    if source.kind != "f" or target.kind == "f":
        return Written(made)
    # The bounds are exact: -2**k and 2**k; truncation towards zero admits values above the least one minus one.
    bits = target.itemsize * 8 - (target.kind == "i")
    least = int(np.iinfo(target).min)
    high = full(float(2**bits), source)
    if bits < (24 if source == SINGLE else 53):
        flags, fits = "flags_fits", f"({a} > {full(least - 1.0, source)})"
        low = full(least - 1.0, source)
    else:
        flags, fits = "flags_fits_from", f"({a} >= {full(float(least), source)})"
        low = full(float(least), source)
    safe = f"tl.where({fits} & ({a} < {high}), {a}, {full(0, source)})"
    return Written(f"{safe}.to({type_of(target)})", f"{flags}({a}, {low}, {high})")


__all__ = ["Written", "cast", "has_operation", "where", "write"]
