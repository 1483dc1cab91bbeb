"""Polynomial sin, cos, tanh and logarithms on vectors, for processors without a vector library.

Input: vectors of float32 or float64 in the ordinary ranges of ``vmath.FUNCTIONS``.
Output: the function values, within about two units in the last place, without a branch; the only flag is that for
underflow.
Why: calls of the C library lane by lane took up to four times the instructions of NumPy's own loops on ARM.

It takes fused multiply-add. The reductions are W. J. Cody and W. Waite's (Software Manual for the Elementary
Functions). Polynomials interpolate at the Chebyshev nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tcompile.backends.llvm.vector import exponential
from tcompile.backends.llvm.vector.vectors import FLOAT32, INT32, INT64, Vectors
from tcompile.graph.dtypes import DType
from tcompile.records import dataclass


@dataclass(frozen=True)
class _Constants:
    """The constants for one dtype.

    ``pi`` is its half in three parts; ``sine`` and ``cosine`` are (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 in
    r^2; ``log`` is (log (1 + f) - f + f^2 / 2) / f^3 in f, in float64 2 atanh s / s^3 - 2 / s^2 in s^2. ``root`` are
    the bits of sqrt(1/2); ``ten`` is log 2 to base 10, the first part so short that exponents times it are exact;
    ``beyond``: from there on tanh is one.
    """

    pi: tuple[float, float, float]
    sine: tuple[float, ...]
    cosine: tuple[float, ...]
    log: tuple[float, ...]
    root: int
    ten: tuple[float, float]
    beyond: float


_SINGLE = _Constants(
    (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    (-0.16666666663826582, 0.008333331863560767, -0.00019840080719912243, 2.724914679681317e-06),
    (0.04166666464415581, -0.0013888300056586712, 2.45472991724818e-05),
    (0.3333333134651184, -0.2499999701976776, 0.20000730454921722, -0.1666785031557083, 0.14248551428318024,
     -0.12424037605524063, 0.11689071357250214, -0.11494546383619308, 0.0698070228099823),
    0x3F3504F3, (0.301025390625, 4.605038981195214e-06), 10.0,
)  # fmt: skip
_DOUBLE = _Constants(
    (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
    (-0.16666666666666666, 0.008333333333330918, -0.00019841269836712495, 2.755731607868067e-06,
     -2.5051126876085338e-08, 1.5917771759341917e-10),
    (0.041666666666666664, -0.0013888888888887378, 2.4801587298736863e-05, -2.755731725679604e-07,
     2.087614315990944e-09, -1.1382408754153254e-11),
    (0.666666666666667, 0.3999999999989827, 0.28571428626533335, 0.22222211043822487, 0.18182895746801428,
     0.1533150172120742, 0.1461916477718642),
    0x3FE6A09E667F3BCD, (0.301025390625, 4.605038981195214e-06), 22.0,
)  # fmt: skip


class _Steps:
    """The vocabulary for one dtype."""

    def __init__(self, v: Vectors, d: DType) -> None:
        self.v, self.d = v, d
        self.constants = _SINGLE if d == FLOAT32 else _DOUBLE
        self.exponential = exponential.constants(d)
        self.integer = INT32 if d == FLOAT32 else INT64

    def number(self, value: float) -> str:
        return self.v.constant(self.d, value)

    def add(self, a: str, b: str) -> str:
        return self.v.op("fadd", self.d, a, b)

    def subtract(self, a: str, b: str) -> str:
        return self.v.op("fsub", self.d, a, b)

    def multiply(self, a: str, b: str) -> str:
        return self.v.op("fmul", self.d, a, b)

    def fma(self, a: str, b: str, plus: str) -> str:
        """``a * b + plus``, rounded once."""
        return self.v.call("fma", self.d, a, b, plus)

    def polynomial(self, coefficients: Sequence[float], x: str) -> str:
        """The polynomial with these coefficients, lowest first."""
        value = self.number(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            value = self.fma(value, x, self.number(coefficient))
        return value

    def whole(self, name: str, a: str, b: int) -> str:
        """An operation on integers, with a constant."""
        return self.v.op(name, self.integer, a, self.v.constant(self.integer, b))

    def as_integer(self, a: str) -> str:
        return self.v.bits(self.d, a)[0]

    def as_float(self, a: str) -> str:
        return self.v.convert("bitcast", a, self.integer, self.d)


def sin(v: Vectors, d: DType, x: str) -> str:
    """sin of every lane."""
    value = _circular(_Steps(v, d), x, 0)
    return v.pick(v.compare("eq", d, x, v.constant(d, 0)), d, x, value)  # zero keeps its sign


def cos(v: Vectors, d: DType, x: str) -> str:
    """cos of every lane."""
    return _circular(_Steps(v, d), x, 1)


def _circular(s: _Steps, x: str, quarters: int) -> str:
    """sin of ``x`` and so many quarters of a turn.

    The distance from the nearest multiple of pi / 2 has two parts, since x may be very close to it: the first part of
    pi / 2 leaves an exact difference, whose last bit is worth more than the last one of the second part's product.
    """
    c, v, d = s.constants, s.v, s.d
    first, second, third = c.pi
    shifted = s.fma(x, s.number(2 / np.pi), s.number(s.exponential.round))
    n = s.subtract(shifted, s.number(s.exponential.round))
    near = s.fma(n, s.number(-first), x)
    product = s.multiply(n, s.number(second))
    lost = s.fma(n, s.number(second), v.op("fneg", d, product))
    rest = s.subtract(near, product)
    error = s.subtract(s.subtract(near, rest), product)
    low = s.fma(n, s.number(-third), s.subtract(error, lost))
    r = s.add(rest, low)
    low = s.add(s.subtract(rest, r), low)
    square = s.multiply(r, r)
    sine = s.add(r, s.fma(s.multiply(r, square), s.polynomial(c.sine, square), low))
    half = s.multiply(square, s.number(0.5))
    most = s.subtract(s.number(1.0), half)
    little = s.subtract(s.subtract(s.number(1.0), most), half)
    little = s.subtract(little, s.multiply(r, low))
    cosine = s.add(most, s.fma(s.multiply(square, square), s.polynomial(c.cosine, square), little))
    quarter = s.whole("add", s.as_integer(shifted), quarters)
    odd = v.compare("ne", s.integer, s.whole("and", quarter, 1), v.constant(s.integer, 0))
    sign = s.whole("shl", s.whole("and", quarter, 2), d.itemsize * 8 - 2)
    return s.as_float(v.op("xor", s.integer, s.as_integer(v.pick(odd, d, cosine, sine)), sign))


def tanh(v: Vectors, d: DType, x: str) -> str:
    """tanh of every lane: from exp 2x - 1 without cancellation near zero."""
    s = _Steps(v, d)
    e, size, most = s.exponential, v.call("fabs", d, x), s.number(s.constants.beyond)
    size = v.pick(v.compare("lt", d, size, most), d, size, most)
    twice = s.add(size, size)
    shifted = s.fma(twice, s.number(1.4426950408889634), s.number(e.round))
    n = s.subtract(shifted, s.number(e.round))
    r = s.fma(n, s.number(-e.log2_low), s.fma(n, s.number(-e.log2_high), twice))
    part = s.fma(s.multiply(r, r), s.polynomial(e.q, r), r)
    exponent = s.whole("add", v.op("sub", s.integer, s.as_integer(shifted), s.as_integer(s.number(e.round))), e.bias)
    power = s.as_float(s.whole("shl", exponent, e.bits))
    less_one = s.fma(power, part, s.subtract(power, s.number(1.0)))
    return v.call("copysign", d, v.op("fdiv", d, less_one, s.add(less_one, s.number(2.0))), x)


def _parts(s: _Steps, x: str) -> tuple[str, str]:
    """The exponent of ``x`` as a float, and the logarithm of its mantissa, between sqrt(1/2) and its double."""
    c, e, v, d = s.constants, s.exponential, s.v, s.d
    one = e.bias << e.bits
    moved = s.whole("add", s.as_integer(x), one - c.root)
    exponent = s.whole("sub", s.whole("ashr", moved, e.bits), e.bias)
    left = s.as_float(s.whole("add", s.whole("and", moved, (1 << e.bits) - 1), c.root))
    f = s.subtract(left, s.number(1.0))
    square = s.multiply(f, f)
    half = s.multiply(square, s.number(0.5))
    if d == FLOAT32:
        log = s.add(f, s.subtract(s.multiply(s.multiply(f, square), s.polynomial(c.log, f)), half))
    else:  # log (1 + f) = 2 atanh (f / (2 + f))
        ratio = v.op("fdiv", d, f, s.add(f, s.number(2.0)))
        of_square = s.multiply(ratio, ratio)
        tail = s.multiply(ratio, s.fma(of_square, s.polynomial(c.log, of_square), half))
        log = s.subtract(f, s.subtract(half, tail))
    return v.convert("sitofp", exponent, s.integer, d), log


def log(v: Vectors, d: DType, x: str) -> str:
    """The natural logarithm of every lane."""
    s = _Steps(v, d)
    exponent, rest = _parts(s, x)
    near = s.fma(exponent, s.number(s.exponential.log2_low), rest)
    return s.fma(exponent, s.number(s.exponential.log2_high), near)


def log2(v: Vectors, d: DType, x: str) -> str:
    """The logarithm to base 2 of every lane."""
    s = _Steps(v, d)
    exponent, rest = _parts(s, x)
    return s.fma(rest, s.number(1.4426950408889634), exponent)


def log10(v: Vectors, d: DType, x: str) -> str:
    """The logarithm to base 10 of every lane."""
    s = _Steps(v, d)
    exponent, rest = _parts(s, x)
    high, low = s.constants.ten
    near = s.fma(rest, s.number(0.4342944819032518), s.multiply(exponent, s.number(low)))
    return s.fma(exponent, s.number(high), near)


FUNCTIONS: dict[str, Callable[[Vectors, DType, str], str]] = {
    "sin": sin, "cos": cos, "tanh": tanh, "log": log, "log2": log2, "log10": log10,
}  # fmt: skip

__all__ = ["FUNCTIONS"]
