"""Polynomial exp on vectors, after reducing the argument by multiples of log 2.

Input: a vector of float32 or float64.
Output: exp of it, within about one unit in the last place, with every special value and the overflow flag where NumPy
raises it, and with no branch.
Why: exp is the most frequent vector function, and a call costs more than its polynomial.

(At +infinity the overflow flag is raised as well, which only costs a replay.) Underflowing results are rounded once, as
they should be.

exp x = 2^n exp r with r = x - n log 2, |r| <= (log 2) / 2, and exp r = 1 + r + r^2 q(r), where q interpolates at the
Chebyshev nodes. The reduction with a two-part log 2 is W. J. Cody and W. Waite's (Software Manual for the Elementary
Functions).
"""

from __future__ import annotations

from tcompile.backends.llvm import native
from tcompile.backends.llvm.vector.vectors import FLOAT32, INT32, INT64, Vectors
from tcompile.graph.dtypes import DType
from tcompile.records import dataclass


@dataclass(frozen=True)
class _Constants:
    """Constants of the reduction, and of the polynomial, for one dtype."""

    low: float  # below, the result is zero
    high: float  # above, the result is infinite
    round: float  # adding it leaves the nearest integer in the low bits
    log2_high: float  # so short that n times it is exact
    log2_low: float
    q: tuple[float, ...]
    bits: int
    bias: int


_SINGLE = _Constants(
    -106.0, 90.0, 1.5 * 2**23, 0.693359375, -2.12194440e-4,
    (0.5, 0.16666576266288757, 0.041666556149721146, 0.008363178931176662, 0.0013926184037700295), 23, 127,
)  # fmt: skip
_DOUBLE = _Constants(
    -750.0, 711.0, 1.5 * 2**52, 6.93145751953125e-1, 1.42860682030941723212e-6,
    (0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326136, 0.0013888888888883748, 0.00019841269874820627,
     2.4801587325547743e-05, 2.7557255400206422e-06, 2.75572736431103e-07, 2.5105217004720745e-08,
     2.0914686968086876e-09), 52, 1023,
)  # fmt: skip


def constants(d: DType) -> _Constants:
    """The constants for a dtype."""
    return _SINGLE if d == FLOAT32 else _DOUBLE


def exp(v: Vectors, d: DType, x: str) -> str:
    """exp of every lane."""
    c = constants(d)
    integer = INT32 if d == FLOAT32 else INT64

    def constant(value: float) -> str:
        return v.constant(d, value)

    def fma(a: str, b: str, plus: str) -> str:
        return v.call("fmuladd", d, a, b, plus)

    x = v.pick(v.compare("gt", d, x, constant(c.high)), d, constant(c.high), x)
    x = v.pick(v.compare("lt", d, x, constant(c.low)), d, constant(c.low), x)
    shifted = fma(x, constant(1.4426950408889634), constant(c.round))
    n = v.op("fsub", d, shifted, constant(c.round))
    r = fma(n, constant(-c.log2_high), x)
    r = fma(n, constant(-c.log2_low), r)
    q = constant(c.q[-1])
    for coefficient in c.q[-2::-1]:
        q = fma(q, r, constant(coefficient))
    # 1 + r in two parts: its rounding error would be the largest but the last one.
    near = v.op("fadd", d, constant(1.0), r)
    lost = v.op("fsub", d, r, v.op("fsub", d, near, constant(1.0)))
    power = v.op("fadd", d, near, fma(v.op("fmul", d, r, r), q, lost))
    if native.machine().scales_vectors and v.lanes * d.itemsize == 64:
        return _scaled(v, d, power, n)
    # 2^n in two factors, each of which has an exponent in range.
    whole, _ = v.bits(d, shifted)
    whole = v.op("sub", integer, whole, v.bits(d, constant(c.round))[0])
    half = v.op("ashr", integer, whole, v.constant(integer, 1))
    for exponent in (half, v.op("sub", integer, whole, half)):
        biased = v.op("add", integer, exponent, v.constant(integer, c.bias))
        factor = v.convert("bitcast", v.op("shl", integer, biased, v.constant(integer, c.bits)), integer, d)
        power = v.op("fmul", d, power, factor)
    return power


def _scaled(v: Vectors, d: DType, power: str, n: str) -> str:
    """``power`` times 2^n, rounded once, by the one instruction for that."""
    type, lanes = v.type(d), v.lanes
    name = f"@llvm.x86.avx512.mask.scalef.{'ps' if d == FLOAT32 else 'pd'}.512"
    v.w.module.declare(name, f"declare {type} {name}({type}, {type}, {type}, i{lanes}, i32)")
    return v.w.get(f"call {type} {name}({type} {power}, {type} {n}, {type} zeroinitializer, i{lanes} -1, i32 4)")
