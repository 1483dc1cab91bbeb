"""Vector functions: exp, log, sin, … on vectors, with libm's values and flags on every input.

Input: a function's name and vectors.
Output: a call of a helper function that computes all lanes.
Why: NumPy's special values and flags have to be exact.

In the ordinary range, the helper calls glibc's libmvec, or inlines a polynomial (``elementary`` where there is no
libmvec, ``fmod`` and ``hypot`` here, where there is fused multiply-add). Lanes outside that range (NaN, infinities,
domain errors, overflow) are computed by scalar libm, which gives the exact special values and raises just NumPy's
flags. A function with neither is computed by scalar libm, lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from tcompile.backends.llvm import native
from tcompile.backends.llvm.vector import elementary
from tcompile.backends.llvm.vector.text import Writer, scalar_type
from tcompile.backends.llvm.vector.vectors import FLOAT32, Vectors
from tcompile.graph.dtypes import DType
from tcompile.records import dataclass


@dataclass(frozen=True)
class VectorFunction:
    """``name`` in libm; the ordinary ranges (low, high, both included) for float32 and float64.

    None: libmvec is not used. ``neutral`` is an ordinary argument, put in the other lanes meanwhile. ``least``: a lower
    bound of the larger of two arguments. In these ranges libmvec's functions, for vectors of any width, raise no flag
    but that for underflow where libm raises none.
    """

    name: str
    arity: int = 1
    single: tuple[float, float] | None = None
    double: tuple[float, float] | None = None
    neutral: float = 1.0
    least: tuple[float, float] | None = None


_TINY32, _BIG32, _TINY64, _BIG64 = 1.1754944e-38, 3.4028234663852886e38, 2.2250738585072014e-308, 1.7976931348623157e308
_LOG = ((_TINY32, _BIG32), (_TINY64, _BIG64))
_UNIT = ((-1.0, 1.0), (-1.0, 1.0))
_FINITE = ((-_BIG32, _BIG32), (-_BIG64, _BIG64))

FUNCTIONS: dict[str, VectorFunction] = {
    "exp": VectorFunction("exp", 1, (-87.0, 88.0), (-708.0, 709.0)),
    "exp2": VectorFunction("exp2", 1, (-125.0, 127.0), (-1021.0, 1023.0)),
    "expm1": VectorFunction("expm1", 1, (-80.0, 88.0), (-700.0, 709.0)),
    "log": VectorFunction("log", 1, *_LOG),
    "log2": VectorFunction("log2", 1, *_LOG),
    "log10": VectorFunction("log10", 1, *_LOG),
    "log1p": VectorFunction("log1p", 1, (-0.9999, _BIG32), (-0.9999, 1e306)),
    "sin": VectorFunction("sin", 1, (-1e4, 1e4), (-1e5, 1e5)),
    "cos": VectorFunction("cos", 1, (-1e4, 1e4), (-1e5, 1e5)),
    "tan": VectorFunction("tan", 1, (-1e4, 1e4), (-1e5, 1e5)),
    "asin": VectorFunction("asin", 1, *_UNIT, neutral=0.5),
    "acos": VectorFunction("acos", 1, *_UNIT, neutral=0.5),
    "atan": VectorFunction("atan", 1, (-_BIG32, _BIG32), (-1e154, 1e154)),
    "sinh": VectorFunction("sinh", 1, (-88.0, 88.0), (-708.0, 708.0)),
    "cosh": VectorFunction("cosh", 1, (-88.0, 88.0), (-708.0, 708.0)),
    "tanh": VectorFunction("tanh", 1, *_FINITE),
    "asinh": VectorFunction("asinh", 1, (-1e6, 1e6), (-1e19, 1e19)),
    "acosh": VectorFunction("acosh", 1, (1.0000001, 1e18), (1.0000000000000002, 1e19), neutral=2.0),
    "atanh": VectorFunction("atanh", 1, (-0.9999, 0.9999), (-0.9999, 0.9999), neutral=0.5),
    "cbrt": VectorFunction("cbrt", 1, *_FINITE),
    "atan2": VectorFunction("atan2", 2, *_FINITE, least=(_TINY32, _TINY64)),
    "hypot": VectorFunction("hypot", 2, (-1e18, 1e18), (-1e19, 1e19), least=(1e-18, 1e-150)),
    "pow": VectorFunction("pow", 2, *_FINITE),
    "fmod": VectorFunction("fmod", 2),
    "nextafter": VectorFunction("nextafter", 2),
}

Compute = Callable[..., str]


def libmvec_name(function: VectorFunction, dtype: DType, lanes: int) -> tuple[str, int] | None:
    """The widest libmvec function that takes at most ``lanes`` lanes, and how many it takes."""
    single = dtype == FLOAT32
    for letter, width in (("e", 16 if single else 8), ("d", 8 if single else 4), ("b", 4 if single else 2)):
        if width <= lanes:
            name = f"_ZGV{letter}N{width}{'v' * function.arity}_{function.name}{'f' if single else ''}"
            if native.has_symbol(name):
                return name, width
    return None


def call(v: Vectors, name: str, dtype: DType, operands: list[str]) -> str:
    """Calls the vector function ``name`` (a key of FUNCTIONS) on vectors."""
    w, function, lanes = v.w, FUNCTIONS[name], v.lanes
    type = v.type(dtype)
    limits = function.single if dtype == FLOAT32 else function.double
    own = _OWN.get(function.name) if _fuses() else None
    compute = _compute(v, function, dtype)
    if own is not None:
        result, fine = own(v, dtype, *operands)
    elif compute is None or limits is None:
        result, fine = "", ""
    else:
        result, fine = _ordinary(v, function, compute, dtype, limits, operands)
    # The other lanes are computed one at a time in a function of their own, which is rarely called.
    libm = _declared(v, function.name, dtype, function.arity)
    helper = f"@tc_{function.name}_{dtype.name}_{lanes}"
    w.module.helper(helper, lambda: _lane_by_lane(v, helper, libm, dtype, function))
    given = ", ".join(f"{type} {o}" for o in operands)
    if not result:
        return w.get(f"call {type} {helper}({given}, {type} {v.constant(dtype, 0)}, i{lanes} -1)")
    packed = w.get(f"bitcast <{lanes} x i1> {v.negate(fine)} to i{lanes}")
    origin, slow, on = w.label("ordinary"), w.label("slow"), w.label("on")
    w.jump(origin)
    w.place(origin)
    w.branch(w.get(f"icmp eq i{lanes} {packed}, 0"), on, slow)
    w.place(slow)
    exact = w.get(f"call {type} {helper}({given}, {type} {result}, i{lanes} {packed})")
    w.jump(on)
    w.place(on)
    return w.select_phi(type, [(result, origin), (exact, slow)])


def _fuses() -> bool:
    """Whether the processor multiplies and adds in one instruction."""
    return native.machine().fuses or native.has_symbol("_ZGVdN4v_exp")


def _compute(v: Vectors, function: VectorFunction, dtype: DType) -> Compute | None:
    """The code for the ordinary range: libmvec, else a polynomial, else None."""
    fast = libmvec_name(function, dtype, v.lanes)
    if fast is not None:
        return lambda *operands: _in_parts(v, *fast, dtype, list(operands))
    polynomial = elementary.FUNCTIONS.get(function.name) if _fuses() else None
    return None if polynomial is None else lambda *operands: polynomial(v, dtype, *operands)


def of_numbers(v: Vectors, dtype: DType, name: str, operands: Sequence[str]) -> str:
    """Calls libm once for numbers, each of which is in all lanes of an operand."""
    w, scalar = v.w, scalar_type(dtype)
    given = [f"{scalar} {w.get(f'extractelement {v.type(dtype)} {o}, i64 0')}" for o in operands]
    return v.spread(scalar, w.get(f"call {scalar} {_declared(v, name, dtype, len(operands))}({', '.join(given)})"))


def _declared(v: Vectors, name: str, dtype: DType, arity: int) -> str:
    """The name of a function of libm's."""
    libm, scalar = f"@{name}{'f' if dtype == FLOAT32 else ''}", scalar_type(dtype)
    return v.w.module.declare(libm, f"declare {scalar} {libm}({', '.join([scalar] * arity)}) nounwind")


def _ordinary(
    v: Vectors,
    function: VectorFunction,
    compute: Compute,
    dtype: DType,
    limits: tuple[float, float],
    operands: list[str],
) -> tuple[str, str]:
    """The result of ``compute``, and the mask of lanes where it holds."""
    low, high = (v.constant(dtype, limit) for limit in limits)
    least, most = (_TINY32, _BIG32) if dtype == FLOAT32 else (_TINY64, _BIG64)
    fine = ""
    for x in operands:
        if limits[0] == -limits[1]:
            inside = v.compare("le", dtype, v.call("fabs", dtype, x), high)
        else:
            inside = v.mask("and", v.compare("ge", dtype, x, low), v.compare("le", dtype, x, high))
        fine = v.mask("and", fine, inside) if fine else inside
    if function.name == "pow":  # zero and denormal bases have special values and flags
        size = v.call("fabs", dtype, operands[0])
        fine = v.mask("and", fine, v.compare("ge", dtype, size, v.constant(dtype, least)))
    if function.least is not None:
        one, two = (v.call("fabs", dtype, x) for x in operands)
        larger = v.pick(v.compare("gt", dtype, one, two), dtype, one, two)
        smallest = v.constant(dtype, function.least[dtype != FLOAT32])
        fine = v.mask("and", fine, v.compare("ge", dtype, larger, smallest))
    neutral = v.constant(dtype, function.neutral)
    result = compute(*(v.pick(fine, dtype, x, neutral) for x in operands))
    if function.name == "pow":  # overflow, underflow and domain errors show in the result
        size = v.call("fabs", dtype, result)
        for sign, limit in (("ge", least), ("le", most)):
            fine = v.mask("and", fine, v.compare(sign, dtype, size, v.constant(dtype, limit)))
    return result, fine


def _lane_by_lane(v: Vectors, helper: str, libm: str, dtype: DType, function: VectorFunction) -> str:
    """A function of operands, a partial result, and a mask of lanes to compute with libm."""
    w, lanes = Writer(v.w.module), v.lanes
    type, scalar = v.type(dtype), scalar_type(dtype)
    names = [f"%x{i}" for i in range(function.arity)]
    places = [w.slot(type) for _ in names]
    out = w.slot(type)
    for place, x in zip([*places, out], [*names, "%result"], strict=True):
        w.do(f"store {type} {x}, ptr {place}, align 64")

    def lane(i: str, carried: list[str]) -> list[str]:
        shifted = w.get(f"lshr i{lanes} %mask, {w.get(f'trunc i64 {i} to i{lanes}')}")
        do, skip = w.label("do"), w.label("skip")
        w.branch(w.get(f"icmp ne i{lanes} {w.get(f'and i{lanes} {shifted}, 1')}, 0"), do, skip)
        w.place(do)
        arguments = []
        for place in places:
            at = w.get(f"getelementptr {scalar}, ptr {place}, i64 {i}")
            arguments.append(f"{scalar} {w.get(f'load {scalar}, ptr {at}')}")
        value = w.get(f"call {scalar} {libm}({', '.join(arguments)})")
        if function.name in _WITHOUT_A_VALUE:
            nan = _nan_of_numpy(function.name, dtype)
            no_value = w.get(f"fcmp uno {scalar} {value}, {value}")
            wrong = w.get(f"and i1 {no_value}, {w.get(f'fcmp ord {arguments[0]}, {arguments[0].split()[1]}')}")
            value = w.get(f"select i1 {wrong}, {scalar} {nan}, {scalar} {value}")
        if function.name == "pow" and _keeps_nans(dtype):  # libm flips the sign, if the exponent is odd
            base = arguments[0].split()[1]
            no_value = w.get(f"fcmp uno {scalar} {value}, {value}")
            kept = w.get(f"and i1 {no_value}, {w.get(f'fcmp uno {scalar} {base}, {base}')}")
            value = w.get(f"select i1 {kept}, {scalar} {w.get(f'fadd {scalar} {base}, {base}')}, {scalar} {value}")
        at = w.get(f"getelementptr {scalar}, ptr {out}, i64 {i}")
        w.do(f"store {scalar} {value}, ptr {at}")
        w.jump(skip)
        w.place(skip)
        return []

    w.loop("0", str(lanes), "1", [], lane)
    w.do(f"ret {type} {w.get(f'load {type}, ptr {out}, align 64')}")
    operands = ", ".join(f"{type} {x}" for x in names)
    return w.text(f"internal {type} {helper}({operands}, {type} %result, i{lanes} %mask)", "nounwind noinline cold")


_WITHOUT_A_VALUE = {
    "asin": (np.arcsin, 2), "acos": (np.arccos, 2), "log": (np.log, -1), "log2": (np.log2, -1), "log10": (np.log10, -1),
}  # fmt: skip


@cache
def _nan_of_numpy(name: str, dtype: DType) -> str:
    """NumPy's NaN for domain errors: its sign depends on whether NumPy has a vector loop, and may not be libm's."""
    function, number = _WITHOUT_A_VALUE[name]
    with np.errstate(invalid="ignore"):
        is_negative = np.signbit(function(np.full(1, number, dtype)))[0]
    return "0xFFF8000000000000" if is_negative else "0x7FF8000000000000"


@cache
def _keeps_nans(dtype: DType) -> bool:
    """Whether odd powers of NaN keep its sign in NumPy, as where it has a vector loop."""
    return bool(np.signbit(np.power(np.full(1, -np.nan, dtype), np.full(1, 3, dtype)))[0])


def _near_fmod(v: Vectors, d: DType, a: str, b: str) -> tuple[str, str]:
    """fmod where the quotient is small, exactly, and the mask of lanes where this holds.

    The rounded quotient is at most one off, so the remainder that one fused multiply-add gives exactly is right, or off
    by one divisor.
    """
    single = d == FLOAT32
    tiny, big, reach = (_TINY32, 1e30, 2.0**22) if single else (_TINY64, 1e290, 2.0**51)
    one, zero = v.constant(d, 1), v.constant(d, 0)
    size, unit = v.call("fabs", d, a), v.call("fabs", d, b)
    fine = v.mask("and", v.compare("ge", d, unit, v.constant(d, tiny)), v.compare("le", d, unit, v.constant(d, big)))
    unit = v.pick(fine, d, unit, one)
    fine = v.mask("and", fine, v.compare("le", d, size, v.op("fmul", d, unit, v.constant(d, reach))))
    size = v.pick(fine, d, size, zero)
    quotient = v.call("trunc", d, v.op("fdiv", d, size, unit))
    rest = v.call("fma", d, v.op("fneg", d, quotient), unit, size)
    rest = v.op("fadd", d, rest, v.pick(v.compare("lt", d, rest, zero), d, unit, zero))
    rest = v.op("fsub", d, rest, v.pick(v.compare("ge", d, rest, unit), d, unit, zero))
    return v.call("copysign", d, rest, a), fine


def _near_hypot(v: Vectors, d: DType, x: str, y: str) -> tuple[str, str]:
    """hypot where no square overflows or underflows, within about one unit in the last place, and the mask of such
    lanes.

    The squares are added with one rounding. For arguments of like size they are added as (x - y)^2 + 2 x y, in which
    that rounding is of the larger part: C. F. Borges, Algorithm 1014 (ACM Transactions on Mathematical Software, 2021).
    """
    single = d == FLOAT32
    least, most = (1e-18, 1e18) if single else (1e-150, 1e150)
    one, two = v.call("fabs", d, x), v.call("fabs", d, y)
    first = v.compare("gt", d, one, two)
    large, small = v.pick(first, d, one, two), v.pick(first, d, two, one)
    ordered = v.compare("le", d, small, large)  # none is NaN
    low, high = v.compare("ge", d, large, v.constant(d, least)), v.compare("le", d, large, v.constant(d, most))
    inside = v.mask("or", v.mask("and", low, high), v.compare("eq", d, large, v.constant(d, 0)))
    fine = v.mask("and", ordered, inside)
    large, small = (v.pick(fine, d, part, v.constant(d, 1)) for part in (large, small))
    twice, apart = v.op("fadd", d, small, small), v.op("fsub", d, large, small)
    alike = v.compare("ge", d, twice, large)
    added = v.pick(alike, d, apart, small)
    total = v.call("fma", d, v.pick(alike, d, twice, large), large, v.op("fmul", d, added, added))
    return v.call("sqrt", d, total), fine


_OWN: dict[str, Callable[..., tuple[str, str]]] = {"fmod": _near_fmod, "hypot": _near_hypot}


def _in_parts(v: Vectors, name: str, width: int, dtype: DType, operands: list[str]) -> str:
    """Splits vectors, calls a function of ``width`` lanes on the parts, and joins the results."""
    w, scalar = v.w, scalar_type(dtype)
    part = f"<{width} x {scalar}>"
    w.module.declare(f"@{name}", f"declare {part} @{name}({', '.join([part] * len(operands))}) nounwind")
    if width == v.lanes:
        return w.get(f"call {part} @{name}({', '.join(f'{part} {o}' for o in operands)})")
    type = v.type(dtype)
    parts = []
    for start in range(0, v.lanes, width):
        mask = ", ".join(f"i32 {start + i}" for i in range(width))
        pieces = [w.get(f"shufflevector {type} {o}, {type} poison, <{width} x i32> <{mask}>") for o in operands]
        parts.append(w.get(f"call {part} @{name}({', '.join(f'{part} {p}' for p in pieces)})"))
    while len(parts) > 1:
        mask = ", ".join(f"i32 {i}" for i in range(2 * width))
        half = f"<{width} x {scalar}>"
        parts = [
            w.get(f"shufflevector {half} {a}, {half} {b}, <{2 * width} x i32> <{mask}>")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        width *= 2
    return parts[0]


__all__ = ["FUNCTIONS", "VectorFunction", "call", "libmvec_name"]
