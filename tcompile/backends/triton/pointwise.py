"""Lowerings of pointwise operations to Triton's language, with NumPy's values and flags.

Input: an operation, the dtype of its operands, the operands' texts.
Output: the text of the result, and of its status bits, where it has any.
Why: each lowering lies in one table, by operation and kind of dtype (``lowering``). An operation without one stays a
NumPy call; ``REFUSED`` says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tcompile.backends.schedule.complex_and_half import HALF, SINGLE
from tcompile.backends.schedule.kernel_ops import Operation, lowered_op
from tcompile.backends.triton.names import BOOL, full, literal, type_of
from tcompile.graph import ops
from tcompile.graph.dtypes import DType
from tcompile.graph.op import OPS, Op

Operand: TypeAlias = str | bool | int | float  # the name of a register, or a number


@dataclass(frozen=True)
class Written:
    """The text of a result, and of its status bits, in which ``{r}`` is the result's name. "" means none."""

    value: str
    flags: str = ""


# By operation, and by the kind of dtype of its operands (``b``, ``i``, ``u``, ``f``): templates of the texts. In these,
# ``{a}``, ``{b}`` and ``{c}`` are operands, numbers written as they are, ``{A}``, ``{B}`` and ``{C}`` the same with
# numbers as tensors, which functions need, and ``{zero}``, ``{one}`` tensors of their dtype. Kernels have operations of
# their own besides those of graphs.
LOWERINGS: dict[Operation, dict[str, Written]] = {}
# The reasons why some operations of graphs have none. ``astype`` and ``where``, which know two dtypes, are functions
# below.
REFUSED = {
    ops.CLIP: "transforms.decompose writes it as minimum and maximum",
    ops.CONJ: "schedule.complex_and_half writes it for complex numbers, and it is no operation on others",
    ops.SCALAR_ABS: "the least integer has no absolute value, of which NumPy's scalars warn",
    ops.SCALAR_POW: "of one number, whose power is that of libm",
    ops.SCALAR_FLOOR_DIVIDE: "of one number; a kernel takes no less time than the library",
    ops.SCALAR_REMAINDER: "of one number; a kernel takes no less time than the library",
}


def lowering(name: str, kinds: str, value: str, flags: str = "") -> None:
    """Registers the templates of operation ``name``, on operands of these kinds of dtypes, and of its status bits."""
    table = LOWERINGS.setdefault(lowered_op(name), {})
    assert table.keys().isdisjoint(kinds), f"{name} has a lowering for {kinds}"
    table.update(dict.fromkeys(kinds, Written(value, flags)))


_ONE = "flags_1({r}, {A}, OVERFLOW)"
_TWO = "flags_2({r}, {A}, {B}, OVERFLOW)"
_POLE = "flags_1({r}, {A}, DIVIDE)"
_BY_ZERO = "flags_by_zero({B})"

# Arithmetic.
lowering("add", "b", "{a} | {b}")
lowering("multiply", "b", "{a} & {b}")
for _name, _sign in (("add", "+"), ("subtract", "-"), ("multiply", "*")):
    lowering(_name, "iu", f"{{a}} {_sign} {{b}}")
    lowering(_name, "f", f"{{a}} {_sign} {{b}}", _TWO)
lowering("square", "iu", "{a} * {a}")
lowering("square", "f", "{a} * {a}", _ONE)
lowering("positive", "iuf", "{a}")
lowering("ordered", "biuf", "{A}")
lowering("negative", "iu", "{zero} - {a}")
lowering("negative", "f", "{A} * -1.0")
lowering("abs", "i", "magnitude({A})")
lowering("abs", "u", "{a}")
lowering("abs", "f", "tl.abs({A})")
lowering("sign", "iuf", "sign({A}, {zero}, {one})")
lowering("divide", "f", "plain_quotient({A}, {B})", "flags_divide({r}, {A}, {B})")
lowering("reciprocal", "f", "plain_quotient({one}, {A})", "flags_reciprocal({r}, {A})")
lowering("floor_divide", "i", "quotient({A}, {B}, {one})", f"{_BY_ZERO} | flags_wrapped({{A}}, {{B}}, {{least}})")
lowering("floor_divide", "u", "quotient_unsigned({A}, {B}, {one})", _BY_ZERO)
lowering("floor_divide", "f", "floor_divide({A}, {B}, plain_quotient({A}, {B}), {one})", "flags_divide({r}, {A}, {B})")
lowering("remainder", "i", "rest({A}, {B}, {one})", _BY_ZERO)
lowering("remainder", "u", "rest_unsigned({A}, {B}, {one})", _BY_ZERO)
lowering("remainder", "f", "remainder({A}, {B})", _TWO)
lowering("fmod", "i", "rest_towards_zero({A}, {B}, {one})", _BY_ZERO)
lowering("fmod", "u", "rest_unsigned({A}, {B}, {one})", _BY_ZERO)
lowering("pow", "i", "power({A}, {B}, {one}, {bits})", "flags_negative({B})")
lowering("pow", "u", "power({A}, {B}, {one}, {bits})")
lowering("sqrt", "f", "{root}({A})", _ONE)
lowering("fma", "f", "tl.fma({A}, {B}, {C})", "flags_3({r}, {A}, {B}, {C}, OVERFLOW)")

# Comparisons and selections.
for _name, _text in (
    ("equal", "~({A} ^ {B})"),
    ("not_equal", "{a} ^ {b}"),
    ("less", "~{A} & {b}"),
    ("less_equal", "~{A} | {b}"),
    ("greater", "{a} & ~{B}"),
    ("greater_equal", "{a} | ~{B}"),
):
    lowering(_name, "b", _text)
for _name, _sign in (
    ("equal", "=="),
    ("not_equal", "!="),
    ("less", "<"),
    ("less_equal", "<="),
    ("greater", ">"),
    ("greater_equal", ">="),
):
    lowering(_name, "iuf", f"{{a}} {_sign} {{b}}")
    lowering(f"signalling_{_name}", "f", f"{{a}} {_sign} {{b}}", "flags_nan({A}, {B}, INVALID)")
for _name, _sign in (("maximum", "|"), ("minimum", "&"), ("fmax", "|"), ("fmin", "&")):
    lowering(_name, "b", f"{{a}} {_sign} {{b}}")
for _name, _function in (("maximum", "maximum"), ("minimum", "minimum"), ("fmax", "maximum"), ("fmin", "minimum")):
    lowering(_name, "iu", f"tl.{_function}({{A}}, {{B}})")
lowering("maximum", "f", "larger({A}, {B})")
lowering("minimum", "f", "smaller({A}, {B})")
lowering("fmax", "f", "larger_number({A}, {B})")
lowering("fmin", "f", "smaller_number({A}, {B})")
lowering("heaviside", "f", "heaviside({A}, {B}, {zero}, {one})")
lowering("isnan", "f", "{a} != {a}")
lowering("isinf", "f", 'tl.abs({A}) == float("inf")')
lowering("isfinite", "f", 'tl.abs({A}) < float("inf")')
lowering("signbit", "f", "{A}.to({integer}, bitcast=True) < 0")

# Truth values and bits.
lowering("logical_not", "b", "~{A}")
lowering("logical_not", "iuf", "{a} == {zero}")
for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):
    lowering(f"logical_{_name}", "b", f"{{a}} {_sign} {{b}}")
    lowering(f"logical_{_name}", "iuf", f"({{A}} != {{zero}}) {_sign} ({{B}} != {{zero}})")
    lowering(f"bitwise_{_name}", "biu", f"{{a}} {_sign} {{b}}")
lowering("bitwise_invert", "biu", "~{A}")
lowering("bitwise_left_shift", "iu", "shifted_left({A}, {B}, {bits}, {zero})")
lowering("bitwise_right_shift", "i", "shifted_right({A}, {B}, {bits}, {zero})")
lowering("bitwise_right_shift", "u", "shifted_right_unsigned({A}, {B}, {bits}, {zero})")

# Rounding.
for _name in ("floor", "ceil", "trunc", "round"):
    lowering(_name, "iu", "{a}")
lowering("floor", "f", "tl.floor({A})")
lowering("ceil", "f", "tl.ceil({A})")
lowering("round", "f", "libdevice.rint({A})")

# Functions of CUDA's library.
LIBRARY = frozenset({
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt", "atan2", "hypot", "pow", "fmod", "nextafter", "copysign",
    "trunc",
})  # fmt: skip
# Those that take many operations.
FUNCTIONS = frozenset[Operation](OPS[name] for name in LIBRARY - {"fmod", "nextafter", "copysign", "trunc"})
OF_ANGLES = frozenset[Operation]({ops.SIN, ops.COS, ops.TAN})
_LIBRARY_FLAGS = {
    "pow": "flags_pow({r}, {A}, {B})",
    "nextafter": "flags_nextafter({r}, {A})",
    **dict.fromkeys(("hypot", "fmod"), _TWO),
    **dict.fromkeys(("log", "log2", "log10", "log1p", "atanh"), _POLE),
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh", "sin", "cos", "tan", "asin", "acos", "acosh"), _ONE),
}
for _name in sorted(LIBRARY):
    _given = "{A}" if OPS[_name].arity == 1 else "{A}, {B}"
    lowering(_name, "f", f"libdevice.{_name}({_given})", _LIBRARY_FLAGS.get(_name, ""))
# Whether NumPy warns of NaNs here depends on its loops.
lowering("logaddexp", "f", "logaddexp({A}, {B}, {log_2})", f"{_TWO} | flags_nan({{A}}, {{B}}, ONLY_NUMPY)")

# Numbers: NumPy's scalars report overflow, Python's own infinities.
lowering("scalar_add", "i", "{a} + {b}", "flags_sum({A}, {B}, {r})")
lowering("scalar_add", "u", "{a} + {b}", "flags_less({r}, {A})")
lowering("scalar_subtract", "i", "{a} - {b}", "flags_difference({A}, {B}, {r})")
lowering("scalar_subtract", "u", "{a} - {b}", "flags_less({A}, {B})")
lowering("scalar_multiply", "i", "{a} * {b}", "flags_product({A}, {B}, {r}, {one}, {least})")
lowering("scalar_multiply", "u", "{a} * {b}", "flags_product_unsigned({A}, {B}, {r}, {one})")
lowering("scalar_negative", "i", "{zero} - {a}", "flags_difference({zero}, {A}, {r})")
lowering("scalar_negative", "u", "{zero} - {a}", "flags_less({zero}, {A})")
lowering("python_add", "i", "{a} + {b}", "flags_python(flags_sum({A}, {B}, {r}))")
lowering("python_subtract", "i", "{a} - {b}", "flags_python(flags_difference({A}, {B}, {r}))")
lowering("python_multiply", "i", "{a} * {b}", "flags_python(flags_product({A}, {B}, {r}, {one}, {least}))")
lowering("python_sqrt", "f", "{root}({A})", "flags_negative({A})")
lowering("python_divide", "f", "plain_quotient({A}, {B})", f"flags_python({_BY_ZERO})")
lowering("finite", "f", "{A}", "flags_finite({A})")
lowering("regular", "f", "{A}", "flags_regular({A}, {B})")

# The atomic functions for combining elements in any order, and the dtypes that the GPU has them for.
STORES: dict[str | None, str] = {
    None: "tl.store", "add": "tl.atomic_add", "maximum": "tl.atomic_max", "minimum": "tl.atomic_min",
}  # fmt: skip
INTEGERS, FLOATS = frozenset({"int32", "int64", "uint32", "uint64"}), frozenset({"float32", "float64"})


def has_operation(op: Op, dtype: DType) -> bool:
    """Whether an operation has a lowering for operands of the machine dtype ``dtype``."""
    return dtype.kind in LOWERINGS.get(op, ())


def write(op: Operation, dtype: DType, operands: Sequence[Operand]) -> Written:
    """Writes the operation on operands of ``dtype``: names of registers, or numbers."""
    plain = [o if isinstance(o, str) else literal(o, dtype) for o in operands]
    tensors = [o if isinstance(o, str) else full(o, dtype) for o in operands]
    if all(not isinstance(o, str) for o in operands):
        plain = tensors
    if op is ops.POW and dtype.kind == "f" and operands[1] == 2:
        op = ops.SQUARE
    names = dict(zip("abc", plain, strict=False)) | dict(zip("ABC", tensors, strict=False))
    names |= {"zero": full(0, dtype), "one": full(1, dtype), "bits": str(dtype.itemsize * 8), "r": "{r}"}
    if dtype.kind == "f":
        names |= {"integer": f"tl.int{dtype.itemsize * 8}", "log_2": full(math.log(2.0), dtype)}
        names["root"] = "tl.sqrt_rn" if dtype == SINGLE else "tl.sqrt"
    elif dtype != BOOL:
        names["least"] = full(int(np.iinfo(dtype).min), dtype)
    texts = LOWERINGS[op][dtype.kind]
    return Written(texts.value.format_map(names), texts.flags.format_map(names))


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


__all__ = ["LOWERINGS", "REFUSED", "Written", "cast", "has_operation", "lowering", "where", "write"]
