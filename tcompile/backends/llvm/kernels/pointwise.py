"""Lowerings of pointwise operations to vector instructions, with NumPy's values and flags.

Input: an operation, the dtype of its operands and result, operand registers.
Output: the result register.
Why: each lowering lies in one table, by operation and kind of dtype (``lowering``). An operation without one stays a
NumPy call; ``REFUSED`` says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tcompile.backends.llvm import native
from tcompile.backends.llvm.vector import exponential, vmath
from tcompile.backends.llvm.vector.division import float_divmod, integer_divide, integer_power
from tcompile.backends.llvm.vector.text import scalar_type, splat_of
from tcompile.backends.llvm.vector.vectors import BOOL, FLOAT16, FLOAT32, FLOAT64, Vectors
from tcompile.backends.schedule.kernel_ops import Operation, lowered_op
from tcompile.backends.status import DIVIDE, INTEGER_OVERFLOW, ONLY_NUMPY
from tcompile.graph import ops
from tcompile.graph.dtypes import DType
from tcompile.graph.op import Op

Emit = Callable[[Vectors, DType, list[str]], str]  # operands of one dtype, in registers: to the result's register
# By operation, and by the kind of dtype of its operands. Kernels have operations beside those of graphs.
LOWERINGS: dict[Operation, dict[str, Emit]] = {}
# The reasons why some operations of graphs have none. ``astype`` and ``where``, which know two dtypes, are in ``emit``.
REFUSED = {
    ops.CLIP: "transforms.decompose writes it as minimum and maximum",
    ops.CONJ: "schedule.complex_and_half writes it for complex numbers, and it is no operation on others",
    ops.SCALAR_ABS: "the least integer has no absolute value, of which NumPy's scalars warn",
}

_COMPARE = {
    "equal": "eq", "not_equal": "ne", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
}  # fmt: skip
_ROUND = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "nearbyint"}
_LOGICAL = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
_BITWISE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor"}


def lowering(name: str, kinds: str) -> Callable[[Emit], Emit]:
    """Registers the lowering of operation ``name`` for kinds of dtypes of its operands: ``b``, ``i``, ``u``, ``f``."""

    def register(emit: Emit) -> Emit:
        table = LOWERINGS.setdefault(lowered_op(name), {})
        assert table.keys().isdisjoint(kinds), f"{name} has a lowering for {kinds}"
        table.update(dict.fromkeys(kinds, emit))
        return emit

    return register


def _truth(v: Vectors, dtype: DType, a: str) -> str:
    return a if dtype.kind == "b" else v.compare("ne", dtype, a, v.constant(dtype, 0))


def _larger(v: Vectors, d: DType, a: str, b: str, sign: str) -> str:
    """``a`` where it is larger (``gt``) or smaller (``lt``) or NaN, else ``b``; so NaN wins, and ``b`` where equal.
    With a processor instruction for it, the sign of zero is that instruction's.
    """
    if d.kind == "b":
        return v.mask("or" if sign == "gt" else "and", a, b)
    if d.kind == "f" and native.machine().has_extremes:
        return v.call("maximum" if sign == "gt" else "minimum", d, a, b)
    if d.kind == "f":
        if is_constant(b):  # no NaN there: one comparison that is true for a NaN in a as well
            first = v.quiet("u" + sign, d, a, b)
        elif is_constant(a):
            first = v.compare(sign, d, a, b)
        else:
            first = v.mask("or", v.compare(sign, d, a, b), _nan(v, d, a))
        return v.pick(first, d, a, b)
    return v.call(("s" if d.kind == "i" else "u") + ("max" if sign == "gt" else "min"), d, a, b)


def is_constant(register: str) -> bool:
    """Whether this is a literal vector without NaN (whose bits stand out)."""
    number = splat_of(register)
    return number is not None and not number.startswith(("0x7FF8", "0xFFF8"))


def maximum(v: Vectors, d: DType, a: str, b: str) -> str:
    """NumPy's maximum."""
    return _larger(v, d, a, b, "gt")


def minimum(v: Vectors, d: DType, a: str, b: str) -> str:
    """NumPy's minimum."""
    return _larger(v, d, a, b, "lt")


def _number_wins(v: Vectors, d: DType, a: str, b: str, sign: str) -> str:
    if d.kind != "f":
        return _larger(v, d, a, b, sign)
    if native.machine().has_extremes:
        return v.call("maxnum" if sign == "gt" else "minnum", d, a, b)
    first = v.compare(sign, d, a, b)
    return v.pick(first if is_constant(b) else v.mask("or", first, _nan(v, d, b)), d, a, b)


def _nan(v: Vectors, d: DType, a: str) -> str:
    """The mask of NaN lanes, to be joined with a comparison.

    LLVM would abort the process where it proves that there is no NaN, as for floats made of an int minus itself.
    """
    return v.quiet("uno", d, a, a)


def _finite(v: Vectors, d: DType, a: str) -> str:
    """The operand, left to NumPy where it is infinite or a NaN."""
    v.report(_magnitude_against_infinity(v, d, a, "ge"), ONLY_NUMPY)
    return a


def _regular(v: Vectors, d: DType, a: str, least: str) -> str:
    """The operand, left to NumPy where it is not larger than ``least``, infinite or a NaN."""
    large = v.compare("gt", d, v.call("fabs", d, a), least)
    v.report(v.negate(large), ONLY_NUMPY)
    return _finite(v, d, a)


def _sign_of(v: Vectors, d: DType, a: str) -> str:
    zero, one = v.constant(d, 0), v.constant(d, 1)
    result = v.pick(v.compare("gt", d, a, zero), d, one, zero)
    if d.kind != "u":
        result = v.pick(v.compare("lt", d, a, zero), d, v.constant(d, -1), result)
    return v.pick(v.is_nan(d, a), d, a, result) if d.kind == "f" else result


def _abs(v: Vectors, d: DType, a: str) -> str:
    if d.kind == "f":
        return v.call("fabs", d, a)
    return v.call("abs", d, a, extra=", i1 false") if d.kind == "i" else a


def _arithmetic(float_name: str, integer_name: str, bool_name: str | None = None) -> Emit:
    def emit(v: Vectors, d: DType, o: list[str]) -> str:
        if d.kind == "b" and bool_name is not None:
            return v.mask(bool_name, o[0], o[1])
        return v.op(float_name if d.kind == "f" else integer_name, d, o[0], o[1])

    return emit


@lowering("bitwise_left_shift", "iu")
def _shift_left(v: Vectors, d: DType, o: list[str]) -> str:
    bits = v.constant(d, d.itemsize * 8)
    fits = v.w.get(f"icmp ult {v.type(d)} {o[1]}, {bits}")
    shifted = v.op("shl", d, o[0], v.pick(fits, d, o[1], v.constant(d, 0)))
    return v.pick(fits, d, shifted, v.constant(d, 0))


@lowering("bitwise_right_shift", "iu")
def _shift_right(v: Vectors, d: DType, o: list[str]) -> str:
    bits = v.constant(d, d.itemsize * 8)
    fits = v.w.get(f"icmp ult {v.type(d)} {o[1]}, {bits}")
    count = v.pick(fits, d, o[1], v.constant(d, d.itemsize * 8 - 1))
    if d.kind == "i":
        return v.op("ashr", d, o[0], count)
    return v.pick(fits, d, v.op("lshr", d, o[0], count), v.constant(d, 0))


def _checked(name: str, status: int = INTEGER_OVERFLOW) -> Emit:
    def emit(v: Vectors, d: DType, o: list[str]) -> str:
        a, b = o if len(o) == 2 else [v.constant(d, 0), o[0]]
        type, flags = v.type(d), f"<{v.lanes} x i1>"
        full = f"@llvm.{'s' if d.kind == 'i' else 'u'}{name}.with.overflow.v{v.lanes}{scalar_type(d)}"
        v.w.module.declare(full, f"declare {{{type}, {flags}}} {full}({type}, {type})")
        pair = v.w.get(f"call {{{type}, {flags}}} {full}({type} {a}, {type} {b})")
        v.report(v.w.get(f"extractvalue {{{type}, {flags}}} {pair}, 1"), status)
        return v.w.get(f"extractvalue {{{type}, {flags}}} {pair}, 0")

    return emit


def _signbit(v: Vectors, d: DType, a: str) -> str:
    bits, integer = v.bits(d, a)
    return v.compare("lt", integer, bits, v.constant(integer, 0))


def _magnitude_against_infinity(v: Vectors, d: DType, a: str, sign: str) -> str:
    bits, integer = v.bits(d, v.call("fabs", d, a))  # as integers, where a NaN raises no flag
    infinity = 0x7F800000 if d.itemsize == 4 else 0x7FF0000000000000
    return v.compare(sign, integer, bits, v.constant(integer, infinity))


@lowering("logaddexp", "f")
def _logaddexp(v: Vectors, d: DType, o: list[str]) -> str:
    zero = v.constant(d, 0)
    v.report(v.w.get(f"fcmp uno {v.type(d)} {o[0]}, {o[1]}"), ONLY_NUMPY)  # whether NumPy warns depends on its loops
    same = v.compare("eq", d, o[0], o[1])
    a, b = v.pick(same, d, zero, o[0]), v.pick(same, d, zero, o[1])
    distance = v.call("fabs", d, v.op("fsub", d, a, b))
    tail = exponential.exp(v, d, v.op("fneg", d, distance))
    tail = vmath.call(v, "log1p", d, [tail])
    apart = v.op("fadd", d, maximum(v, d, o[0], o[1]), tail)
    return v.pick(same, d, v.op("fadd", d, o[0], v.constant(d, math.log(2.0))), apart)


def _report_poles(v: Vectors, d: DType, o: list[str]) -> None:
    """Reports the powers at which the flags of C libraries and of NumPy's own loops differ."""
    zero = v.constant(d, 0)
    pole = v.mask("and", v.compare("eq", d, o[0], zero), v.compare("lt", d, o[1], zero))
    v.report(pole, DIVIDE)
    infinite = [_magnitude_against_infinity(v, d, a, "eq") for a in o if not is_constant(a)]
    if infinite:
        v.report(infinite[0] if len(infinite) == 1 else v.mask("or", *infinite), ONLY_NUMPY)


def _root_or_error(v: Vectors, d: DType, a: str) -> str:
    v.report(v.compare("lt", d, a, v.constant(d, 0)), ONLY_NUMPY)
    return v.sqrt(d, a)


def _quotient_or_error(v: Vectors, d: DType, a: str, b: str) -> str:
    v.report(v.compare("eq", d, b, v.constant(d, 0)), ONLY_NUMPY)
    return v.op("fdiv", d, a, b)


def _bitwise(sign: str) -> Emit:
    return lambda v, d, o: v.op(sign, d, o[0], o[1])


def _comparison(sign: str) -> Emit:
    return lambda v, d, o: v.compare(sign, d, o[0], o[1])


def _signalling(sign: str) -> Emit:
    return lambda v, d, o: v.signalling("o" + sign, d, o[0], o[1])


def _logical(sign: str) -> Emit:
    return lambda v, d, o: v.mask(sign, _truth(v, d, o[0]), _truth(v, d, o[1]))


def _rounding(intrinsic: str) -> Emit:
    return lambda v, d, o: v.call(intrinsic, d, o[0])


def _integer_division(name: str) -> Emit:
    return lambda v, d, o: integer_divide(v, name, d, o[0], o[1])


def _float_division(name: str) -> Emit:
    return lambda v, d, o: float_divmod(v, name, d, o[0], o[1])


def _function(name: str) -> Emit:
    return lambda v, d, o: vmath.call(v, name, d, o)


@lowering("heaviside", "f")
def _heaviside(v: Vectors, d: DType, o: list[str]) -> str:
    a, at_zero = o
    zero, one = v.constant(d, 0), v.constant(d, 1)
    step = v.pick(v.compare("lt", d, a, zero), d, zero, one)
    step = v.pick(v.compare("eq", d, a, zero), d, at_zero, step)
    return v.pick(v.is_nan(d, a), d, v.constant(d, math.nan), step)


@lowering("pow", "f")
def _power(v: Vectors, d: DType, o: list[str]) -> str:
    _report_poles(v, d, o)
    return vmath.call(v, "pow", d, o)


# -- operands of any dtype
lowering("add", "biuf")(_arithmetic("fadd", "add", "or"))
lowering("multiply", "biuf")(_arithmetic("fmul", "mul", "and"))
lowering("maximum", "biuf")(lambda v, d, o: maximum(v, d, *o))
lowering("minimum", "biuf")(lambda v, d, o: minimum(v, d, *o))
lowering("ordered", "biuf")(lambda v, d, o: o[0])
lowering("fmax", "biuf")(lambda v, d, o: _number_wins(v, d, o[0], o[1], "gt"))
lowering("fmin", "biuf")(lambda v, d, o: _number_wins(v, d, o[0], o[1], "lt"))
lowering("logical_not", "biuf")(lambda v, d, o: v.negate(_truth(v, d, o[0])))
for _name, _sign in _COMPARE.items():
    lowering(_name, "biuf")(_comparison(_sign))
    lowering(f"signalling_{_name}", "f")(_signalling(_sign))
for _name, _sign in _LOGICAL.items():
    lowering(_name, "biuf")(_logical(_sign))

# -- bits
lowering("bitwise_invert", "b")(lambda v, d, o: v.op("xor", d, o[0], v.constant(d, True)))
lowering("bitwise_invert", "iu")(lambda v, d, o: v.op("xor", d, o[0], v.constant(d, -1)))
for _name, _sign in _BITWISE.items():
    lowering(_name, "biu")(_bitwise(_sign))

# -- numbers
lowering("subtract", "iuf")(_arithmetic("fsub", "sub"))
lowering("negative", "iu")(lambda v, d, o: v.op("sub", d, v.constant(d, 0), o[0]))
lowering("negative", "f")(lambda v, d, o: v.op("fneg", d, o[0]))
lowering("positive", "iuf")(lambda v, d, o: o[0])
lowering("square", "iuf")(lambda v, d, o: v.op("fmul" if d.kind == "f" else "mul", d, o[0], o[0]))
lowering("abs", "iuf")(lambda v, d, o: _abs(v, d, o[0]))
lowering("sign", "iuf")(lambda v, d, o: _sign_of(v, d, o[0]))
for _name, _sign in _ROUND.items():
    lowering(_name, "f")(_rounding(_sign))
for _name in ("floor", "ceil", "trunc"):
    lowering(_name, "iu")(lambda v, d, o: o[0])
for _name in ("floor_divide", "remainder"):
    lowering(_name, "iu")(_integer_division(_name))
    lowering(_name, "f")(_float_division(_name))
    lowering(f"scalar_{_name}", "iu")(_integer_division(_name))
lowering("fmod", "iu")(_integer_division("fmod"))

# -- integers
lowering("scalar_add", "iu")(_checked("add"))
lowering("scalar_subtract", "iu")(_checked("sub"))
lowering("scalar_multiply", "iu")(_checked("mul"))
lowering("scalar_negative", "iu")(_checked("sub"))
lowering("python_add", "iu")(_checked("add", ONLY_NUMPY))
lowering("python_subtract", "iu")(_checked("sub", ONLY_NUMPY))
lowering("python_multiply", "iu")(_checked("mul", ONLY_NUMPY))
lowering("pow", "iu")(lambda v, d, o: integer_power(v, d, o[0], o[1]))

# -- floats
lowering("divide", "f")(lambda v, d, o: v.op("fdiv", d, o[0], o[1]))
lowering("reciprocal", "f")(lambda v, d, o: v.op("fdiv", d, v.constant(d, 1), o[0]))
lowering("sqrt", "f")(lambda v, d, o: v.sqrt(d, o[0]))
lowering("exp", "f")(lambda v, d, o: exponential.exp(v, d, o[0]))
lowering("scalar_pow", "f")(lambda v, d, o: vmath.of_numbers(v, d, "pow", o))  # NumPy's scalars have libm's powers
lowering("python_sqrt", "f")(lambda v, d, o: _root_or_error(v, d, o[0]))
lowering("python_divide", "f")(lambda v, d, o: _quotient_or_error(v, d, *o))
lowering("fma", "f")(lambda v, d, o: v.fma(d, *o))
lowering("finite", "f")(lambda v, d, o: _finite(v, d, o[0]))
lowering("regular", "f")(lambda v, d, o: _regular(v, d, o[0], o[1]))
lowering("copysign", "f")(lambda v, d, o: v.call("copysign", d, o[0], o[1]))
lowering("isnan", "f")(lambda v, d, o: v.is_nan(d, o[0]))
lowering("isinf", "f")(lambda v, d, o: _magnitude_against_infinity(v, d, o[0], "eq"))
lowering("isfinite", "f")(lambda v, d, o: _magnitude_against_infinity(v, d, o[0], "lt"))
lowering("signbit", "f")(lambda v, d, o: _signbit(v, d, o[0]))
for _name in vmath.FUNCTIONS:
    if "f" not in LOWERINGS.get(lowered_op(_name), {}):
        lowering(_name, "f")(_function(_name))


def has_lowering(op: Op, dtype: DType) -> bool:
    """Whether an operation has a lowering for operands of the machine dtype ``dtype``."""
    return dtype.kind in LOWERINGS.get(op, ())


def emit(v: Vectors, op: Operation, operand: DType, result: DType, o: list[str]) -> str:
    """Emits the operation on operand registers of dtype ``operand`` (for ``where``: of the branches)."""
    if op is ops.ASTYPE:
        return cast(v, operand, result, o[0])
    if op is ops.WHERE:
        return v.pick(o[0], operand, o[1], o[2])
    return LOWERINGS[op][operand.kind](v, operand, o)


def small_power(v: Vectors, d: DType, a: str, exponent: float) -> str:
    """``a`` to one of ``costs.small_power``'s exponents. It overflows, and is infinite, just where the power is."""
    one = v.constant(d, 1)
    if not exponent.is_integer():
        least = v.compare("eq", d, a, v.constant(d, float("-inf")))
        v.report(least, ONLY_NUMPY)  # the power is no NaN, as the root is
        root = v.sqrt(d, a)
        if exponent == -0.5:
            return v.call("fabs", d, v.op("fdiv", d, one, root))
        if exponent == -1.5:
            return v.op("fdiv", d, v.op("fdiv", d, one, a), root)
        if exponent == 0.5:
            return v.call("fabs", d, root)
        whole = a if exponent == 1.5 else small_power(v, d, a, exponent - 0.5)
        return v.op("fmul", d, whole, root)
    if exponent < 0:
        inverse = v.op("fdiv", d, one, a)
        return v.op("fmul", d, inverse, inverse)
    half = a if exponent < 4 else small_power(v, d, a, float(exponent // 2))
    square = v.op("fmul", d, half, half)
    return v.op("fmul", d, square, a) if exponent % 2 else square


def _to_odd(v: Vectors, a: str) -> str:
    """Converts float64 to float32 rounding to odd, so that a second rounding gives the correctly rounded result.

    (S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums, IEEE Trans. Computers 57, 2008.)
    """
    near = v.convert("fptrunc", a, FLOAT64, FLOAT32)
    size, rounded = v.call("fabs", FLOAT64, a), v.call("fabs", FLOAT64, v.convert("fpext", near, FLOAT32, FLOAT64))
    bits, integer = v.bits(FLOAT32, near)
    even = v.compare("eq", integer, v.op("and", integer, bits, v.constant(integer, 1)), v.constant(integer, 0))
    low = v.mask("and", even, v.compare("lt", FLOAT64, rounded, size))
    high = v.mask("and", even, v.compare("gt", FLOAT64, rounded, size))
    none, one = v.constant(integer, 0), v.constant(integer, 1)
    step = v.op("sub", integer, v.pick(low, integer, one, none), v.pick(high, integer, one, none))
    return v.convert("bitcast", v.op("add", integer, bits, step), integer, FLOAT32)


def cast(v: Vectors, source: DType, target: DType, a: str) -> str:
    """Emits NumPy's astype; half precision converts to and from floats only.

    Floats that the integer target cannot hold are left to NumPy (the replay bit is set).
    """
    if source == target:
        return a
    if target == BOOL and source != FLOAT16:
        return _truth(v, source, a)
    if source == FLOAT16:
        return v.from_half(a)
    if target == FLOAT16:
        return v.to_half(a if source == FLOAT32 else _to_odd(v, a))
    if source == BOOL:
        return v.convert("uitofp" if target.kind == "f" else "zext", a, source, target)
    if source.kind == "f" and target.kind == "f":
        return v.convert("fpext" if target.itemsize > source.itemsize else "fptrunc", a, source, target)
    if target.kind == "f":
        return v.convert("sitofp" if source.kind == "i" else "uitofp", a, source, target)
    if source.kind == "f":
        info = np.iinfo(target)
        # The bounds are exact: -2**k and 2**k; truncation towards zero admits values above low - 1.
        bits = target.itemsize * 8 - (target.kind == "i")
        mantissa = 24 if source.itemsize == 4 else 53
        above = v.compare("lt", source, a, v.constant(source, float(2**bits)))
        if bits < mantissa:
            below = v.compare("gt", source, a, v.constant(source, float(info.min) - 1.0))
        else:
            below = v.compare("ge", source, a, v.constant(source, float(info.min)))
        fits = v.mask("and", above, below)
        v.report(v.negate(fits), ONLY_NUMPY)
        safe = v.pick(fits, source, a, v.constant(source, 0))
        if target.name == "uint32" and not native.machine().makes_unsigned:  # LLVM's way would raise the invalid flag
            wide = np.dtype("int64")
            return v.convert("trunc", v.convert("fptosi", safe, source, wide), wide, target)
        return v.convert("fptosi" if target.kind == "i" else "fptoui", safe, source, target)
    if source.itemsize == target.itemsize:
        return a
    if source.itemsize > target.itemsize:
        return v.convert("trunc", a, source, target)
    return v.convert("sext" if source.kind == "i" else "zext", a, source, target)
