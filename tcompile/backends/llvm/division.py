"""Division with NumPy's rules: floor division, remainders and integer powers.

Enters: operand registers. Leaves: result registers; divisions by zero and overflows set status bits as they
set NumPy's floating-point flags. The float rules are those that Python and NumPy share: the remainder has the
divisor's sign.
"""

from __future__ import annotations

import numpy as np

from tcompile.backends.llvm import vmath
from tcompile.backends.llvm.vectors import DIVIDE, ONLY_NUMPY, OVERFLOW, Vectors
from tcompile.graph.types import DType


def integer_divide(v: Vectors, name: str, d: DType, a: str, b: str) -> str:
    """``floor_divide``, ``remainder`` or ``fmod`` of integers: by zero gives zero and the divide flag."""
    zero, one = v.constant(d, 0), v.constant(d, 1)
    by_zero = v.compare("eq", d, b, zero)
    v.report(by_zero, DIVIDE)
    if d.kind == "u":
        b = v.pick(by_zero, d, one, b)
        result = v.op("udiv" if name == "floor_divide" else "urem", d, a, b)
        return v.pick(by_zero, d, zero, result)
    # The least integer divided by -1 overflows; dividing by 1 gives what wrapping around would.
    least = v.constant(d, int(np.iinfo(d).min))
    wraps = v.mask("and", v.compare("eq", d, a, least), v.compare("eq", d, b, v.constant(d, -1)))
    if name == "floor_divide":
        v.report(wraps, OVERFLOW)
    b = v.pick(v.mask("or", by_zero, wraps), d, one, b)
    quotient = v.op("sdiv", d, a, b)
    rest = v.op("sub", d, a, v.op("mul", d, quotient, b))
    if name == "fmod":
        return v.pick(by_zero, d, zero, rest)
    apart = v.compare("lt", d, v.op("xor", d, a, b), zero)
    adjust = v.mask("and", v.compare("ne", d, rest, zero), apart)
    if name == "floor_divide":
        result = v.pick(adjust, d, v.op("sub", d, quotient, one), quotient)
    else:
        result = v.pick(adjust, d, v.op("add", d, rest, b), rest)
    return v.pick(by_zero, d, zero, result)


def float_divmod(v: Vectors, name: str, d: DType, a: str, b: str, has_symbol: vmath.HasSymbol) -> str:
    """``floor_divide`` or ``remainder`` of floats, as Python's ``divmod`` defines them."""
    zero = v.constant(d, 0)
    by_zero = v.compare("eq", d, b, zero)
    divisor, dividend = b, a
    if name == "floor_divide":  # a division by zero is what a plain division says, so these lanes raise nothing here
        divisor, dividend = v.pick(by_zero, d, v.constant(d, 1), b), v.pick(by_zero, d, zero, a)
    rest = vmath.call(v, "fmod", d, [dividend, divisor], has_symbol)
    has_rest = v.compare("ne", d, rest, zero)
    apart = v.w.get(
        f"xor <{v.lanes} x i1> {v.compare('lt', d, b, zero)}, {v.compare('lt', d, rest, zero)}"
    )
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
