"""Division with NumPy's rules: floor division, remainders and integer powers.

Input: operand registers.
Output: result registers; divisions by zero and overflows set status bits as they set NumPy's floating-point flags.
Why: LLVM's division is undefined in these cases. The float rules are those that Python and NumPy share: the remainder
has the divisor's sign.
"""

from __future__ import annotations

import numpy as np

from tcompile.backends.llvm.vector import vmath
from tcompile.backends.llvm.vector.text import splat_of
from tcompile.backends.llvm.vector.vectors import FLOAT32, FLOAT64, Vectors
from tcompile.backends.status import DIVIDE, ONLY_NUMPY, OVERFLOW
from tcompile.graph.dtypes import DType


def integer_divide(v: Vectors, name: str, d: DType, a: str, b: str) -> str:
    """``floor_divide``, ``remainder`` or ``fmod`` of integers: by zero gives zero and the divide flag."""
    known = _number_in(b)
    if known is not None and known not in (0, -1):
        return _divided_by(v, name, d, a, b, known)
    zero, one = v.constant(d, 0), v.constant(d, 1)
    by_zero = v.compare("eq", d, b, zero)
    v.report(by_zero, DIVIDE)
    if d.kind == "u":
        return v.pick(by_zero, d, zero, _divided(v, name, d, a, v.pick(by_zero, d, one, b)))
    # The least integer divided by -1 overflows; dividing by 1 gives the wrapped result.
    least = v.constant(d, int(np.iinfo(d).min))
    wraps = v.mask("and", v.compare("eq", d, a, least), v.compare("eq", d, b, v.constant(d, -1)))
    if name == "floor_divide":
        v.report(wraps, OVERFLOW)
    result = _divided(v, name, d, a, v.pick(v.mask("or", by_zero, wraps), d, one, b))
    return v.pick(by_zero, d, zero, result)


def _number_in(register: str) -> int | None:
    """The number in all lanes of a literal vector of integers."""
    number = splat_of(register)
    return None if number is None else int(number)


def _divided_by(v: Vectors, name: str, d: DType, a: str, b: str, number: int) -> str:
    """Division by a constant: shifts for powers of two, else LLVM's multiplication up to 32 bits."""
    if number > 0 and not number & (number - 1) and name != "fmod":
        if name == "remainder":
            return v.op("and", d, a, v.constant(d, number - 1))
        return v.op("ashr" if d.kind == "i" else "lshr", d, a, v.constant(d, number.bit_length() - 1))
    return _divided_as_integers(v, name, d, a, b) if d.itemsize < 8 else _divided(v, name, d, a, b)


def _divided(v: Vectors, name: str, d: DType, a: str, b: str) -> str:
    """Division without zero divisors and overflow, by float division, the only one that processors have in vectors."""
    if d.itemsize < 8:
        return _divided_as_floats(v, name, d, a, b, FLOAT32 if d.itemsize < 4 else FLOAT64)
    w = v.w
    near, far, on = w.label("near"), w.label("far"), w.label("on")
    sizes = v.op("or", d, *((v.op("add", d, x, v.constant(d, _EXACT)) if d.kind == "i" else x) for x in (a, b)))
    limit = v.constant(np.dtype("uint64"), 2 * _EXACT if d.kind == "i" else _EXACT)
    w.branch(v.any(v.compare("ge", np.dtype("uint64"), sizes, limit)), far, near)
    w.place(near)
    by_floats = _divided_as_floats(v, name, d, a, b, FLOAT64)
    w.jump(on)
    w.place(far)
    one_by_one = _divided_as_integers(v, name, d, a, b)
    w.jump(on)
    w.place(on)
    return w.select_phi(v.type(d), [(by_floats, near), (one_by_one, far)])


# Ints of 64 bits convert to floats, and back, by two additions: only AVX-512 has a vector instruction for it. Added to
# ``_SHIFT``, ints below ``_EXACT`` make floats with a spacing of one, whose bits count them.
_EXACT = 1 << 51
_SHIFT = 1.5 * (1 << 52)
_BITS = int(np.float64(_SHIFT).view(np.int64))


def _of_long(v: Vectors, d: DType, a: str) -> str:
    """An int below ``_EXACT`` as a float64."""
    shifted = v.convert("bitcast", v.op("add", d, a, v.constant(d, _BITS)), d, FLOAT64)
    return v.op("fsub", FLOAT64, shifted, v.constant(FLOAT64, _SHIFT))


def _as_long(v: Vectors, d: DType, a: str) -> str:
    """A float64 that is an int below ``_EXACT``, as one of 64 bits."""
    shifted = v.convert("bitcast", v.op("fadd", FLOAT64, a, v.constant(FLOAT64, _SHIFT)), FLOAT64, d)
    return v.op("sub", d, shifted, v.constant(d, _BITS))


def _divided_as_floats(v: Vectors, name: str, d: DType, a: str, b: str, wide: DType) -> str:
    """Division of integers that ``wide`` holds exactly.

    A quotient that is no integer is at least 1/b away from one. Rounding moves it by less, so that rounding down gives
    the same as without it.
    """
    letter = "s" if d.kind == "i" else "u"
    long = d.itemsize == 8
    first, second = (_of_long(v, d, x) if long else v.convert(f"{letter}itofp", x, d, wide) for x in (a, b))
    quotient = v.call("trunc" if name == "fmod" else "floor", wide, v.op("fdiv", wide, first, second))
    whole = _as_long(v, d, quotient) if long else v.convert(f"fpto{letter}i", quotient, wide, d)
    return whole if name == "floor_divide" else v.op("sub", d, a, v.op("mul", d, whole, b))


def _divided_as_integers(v: Vectors, name: str, d: DType, a: str, b: str) -> str:
    if d.kind == "u":
        return v.op("udiv" if name == "floor_divide" else "urem", d, a, b)
    zero, one = v.constant(d, 0), v.constant(d, 1)
    quotient = v.op("sdiv", d, a, b)
    rest = v.op("sub", d, a, v.op("mul", d, quotient, b))
    if name == "fmod":
        return rest
    apart = v.compare("lt", d, v.op("xor", d, a, b), zero)
    adjust = v.mask("and", v.compare("ne", d, rest, zero), apart)
    if name == "floor_divide":
        return v.pick(adjust, d, v.op("sub", d, quotient, one), quotient)
    return v.pick(adjust, d, v.op("add", d, rest, b), rest)


def float_divmod(v: Vectors, name: str, d: DType, a: str, b: str) -> str:
    """``floor_divide`` or ``remainder`` of floats, as Python's ``divmod`` defines them."""
    zero = v.constant(d, 0)
    by_zero = v.compare("eq", d, b, zero)
    divisor, dividend = b, a
    if name == "floor_divide":  # a plain division reports a division by zero, so these lanes raise no flag here
        divisor, dividend = v.pick(by_zero, d, v.constant(d, 1), b), v.pick(by_zero, d, zero, a)
    rest = vmath.call(v, "fmod", d, [dividend, divisor])
    has_rest = v.compare("ne", d, rest, zero)
    apart = v.w.get(f"xor <{v.lanes} x i1> {v.compare('lt', d, b, zero)}, {v.compare('lt', d, rest, zero)}")
    adjust = v.mask("and", has_rest, apart)
    if name == "remainder":
        moved = v.pick(adjust, d, v.op("fadd", d, rest, v.pick(adjust, d, b, zero)), rest)
        result = v.pick(has_rest, d, moved, v.call("copysign", d, zero, b))
        return v.pick(by_zero, d, rest, result)
    quotient = v.op("fdiv", d, v.op("fsub", d, dividend, rest), divisor)
    quotient = v.op("fsub", d, quotient, v.pick(adjust, d, v.constant(d, 1), zero))
    floor = v.call("floor", d, quotient)
    excess = v.op("fsub", d, quotient, v.pick(_finite(v, d, quotient), d, floor, zero))
    up = v.compare("gt", d, excess, v.constant(d, 0.5))
    floor = v.op("fadd", d, floor, v.pick(up, d, v.constant(d, 1), zero))
    plain = v.op("fdiv", d, a, b)
    result = v.pick(v.compare("ne", d, quotient, zero), d, floor, v.call("copysign", d, zero, plain))
    return v.pick(by_zero, d, plain, result)


def _finite(v: Vectors, d: DType, a: str) -> str:
    return v.compare("lt", d, v.call("fabs", d, a), v.constant(d, float("inf")))


def integer_power(v: Vectors, d: DType, base: str, exponent: str) -> str:
    """Integer powers by squaring, wrapping around. Negative exponents raise in NumPy, so they are left to it."""
    zero, one = v.constant(d, 0), v.constant(d, 1)
    if d.kind == "i":
        negative = v.compare("lt", d, exponent, zero)
        v.report(negative, ONLY_NUMPY)
        exponent = v.pick(negative, d, zero, exponent)
    w, type = v.w, v.type(d)
    head, body, done = w.label("head"), w.label("body"), w.label("done")
    origin = w.block
    w.jump(head)
    w.place(head)
    result, power, rest = w.phi(type, one, origin), w.phi(type, base, origin), w.phi(type, exponent, origin)
    w.branch(v.any(v.compare("ne", d, rest.name, zero)), body, done)
    w.place(body)
    odd = v.compare("ne", d, v.op("and", d, rest.name, one), zero)
    result.close(v.pick(odd, d, v.op("mul", d, result.name, power.name), result.name), body)
    power.close(v.op("mul", d, power.name, power.name), body)
    rest.close(v.op("lshr", d, rest.name, one), body)
    w.jump(head)
    w.place(done)
    return result.name
