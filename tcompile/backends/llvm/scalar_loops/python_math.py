"""Python's ``math`` functions as LLVM IR.

Input: operands as IR, doubles throughout but for ints where a function takes them.
Output: IR that computes the result, or jumps to the block ``replay`` where Python would raise.
Why: beside ``values``. The C library computes most of them, as it does for Python; LLVM must not replace the calls.

``hypot`` follows CPython's algorithm, a sum of exact squares with a correction (A. Borges, 2019, arXiv:1904.09481),
whose steps differ between 3.11 and later versions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from tcompile.backends.llvm.scalar_loops.values import Values
from tcompile.backends.llvm.vector.text import literal
from tcompile.graph.dtypes import named
from tcompile.graph.ops.scalar_loop import LIBRARY, LIBRARY_OF_TWO

_FLOAT = named("float64")
_INFINITY, _ZERO, _ONE = (literal(_FLOAT, value) for value in (float("inf"), 0.0, 1.0))
_SPLIT = literal(_FLOAT, 134217729.0)  # 2**27 + 1: halves of 26 bits
_LEAST_EXPONENT, _MOST_EXPONENT = 1, 2044  # biased: powers of two beyond have no reciprocal
_BIAS = 2045
_ROOT = 3037000499  # of the largest int of 64 bits


def _unary(v: Values, intrinsic: str, value: str) -> str:
    return v.w.get(f"call double {v.intrinsic(f'llvm.{intrinsic}.f64', 'double', 'double')}(double {value})")


def _finite(v: Values, value: str) -> str:
    """The value; plain Python where it is not finite."""
    v.need(v.w.get(f"fcmp olt double {_unary(v, 'fabs', value)}, {_INFINITY}"))
    return value


def _called(name: str) -> Callable[[Values, Sequence[str]], str]:
    """A function of the C library of finite numbers, whose result is finite."""

    def run(v: Values, operands: Sequence[str]) -> str:
        if len(operands) > 1:
            for operand in operands:
                _finite(v, operand)
        return _finite(v, v.library(name, list(operands)))

    return run


def _never_by_zero(function: Callable[[Values, Sequence[str]], str]) -> Callable[[Values, Sequence[str]], str]:
    def run(v: Values, operands: Sequence[str]) -> str:
        v.need(v.w.get(f"fcmp une double {operands[1]}, {_ZERO}"))
        return function(v, operands)

    return run


def _sqrt(v: Values, operands: Sequence[str]) -> str:
    v.refuse(v.w.get(f"fcmp olt double {operands[0]}, {_ZERO}"))
    return _unary(v, "sqrt", operands[0])


def _to_int(intrinsic: str) -> Callable[[Values, Sequence[str]], str]:
    return lambda v, operands: v.to_int(_unary(v, intrinsic, operands[0]), _FLOAT)


def _below(sign: str) -> Callable[[Values, Sequence[str]], str]:
    """A comparison of the size with infinity."""
    return lambda v, operands: v.w.get(f"fcmp {sign} double {_unary(v, 'fabs', operands[0])}, {_INFINITY}")


def _copysign(v: Values, operands: Sequence[str]) -> str:
    copy = v.intrinsic("llvm.copysign.f64", "double, double", "double")
    return v.w.get(f"call double {copy}({', '.join(f'double {operand}' for operand in operands)})")


def _integer_root(v: Values, operands: Sequence[str]) -> str:
    """The largest int whose square is no larger: the root of the nearest float is off by one at most."""
    w, (n,) = v.w, operands
    v.need(w.get(f"icmp sge i64 {n}, 0"))
    root = w.get(f"fptosi double {_unary(v, 'sqrt', w.get(f'sitofp i64 {n} to double'))} to i64")
    root = w.get(f"select i1 {w.get(f'icmp sgt i64 {root}, {_ROOT}')}, i64 {_ROOT}, i64 {root}")
    above = w.get(f"icmp sgt i64 {w.get(f'mul i64 {root}, {root}')}, {n}")
    root = w.get(f"select i1 {above}, i64 {w.get(f'sub i64 {root}, 1')}, i64 {root}")
    more = w.get(f"add i64 {root}, 1")
    within = w.get(f"icmp ule i64 {w.get(f'mul i64 {more}, {more}')}, {n}")
    return w.get(f"select i1 {within}, i64 {more}, i64 {root}")


class _Norm:
    """The root of a sum of squares: ``total`` is the rounded sum, and ``rests`` what rounding has lost."""

    def __init__(self, v: Values) -> None:
        self.v = v
        self.total = _ONE  # so that the sum's last bit has a known place
        self.rests = [_ZERO, _ZERO, _ZERO]

    def op(self, name: str, a: str, b: str) -> str:
        return self.v.w.get(f"{name} double {a}, {b}")

    def halves(self, x: str) -> tuple[str, str]:
        """Two floats of 26 bits whose sum is ``x`` (T. J. Dekker, 1971)."""
        t = self.op("fmul", x, _SPLIT)
        high = self.op("fsub", t, self.op("fsub", t, x))
        return high, self.op("fsub", x, high)

    def add(self, term: str, place: int) -> None:
        """Adds a term, and what the addition loses to one of the rests."""
        before = self.total
        self.total = self.op("fadd", before, term)
        lost = self.op("fadd", self.op("fsub", before, self.total), term)
        self.rests[place] = self.op("fadd", self.rests[place], lost)

    def add_square(self, x: str, minus: bool) -> None:
        """Adds the square of ``x``, or subtracts it."""
        if sys.version_info >= (3, 12):
            self._add_product(x, minus)
            return
        high, low = self.halves(x)
        first = self.v.w.get(f"fneg double {high}") if minus else high
        two = literal(_FLOAT, -2.0 if minus else 2.0)
        self.add(self.op("fmul", first, high), 0)
        self.add(self.op("fmul", self.op("fmul", two, high), low), 1)
        if minus:
            self.add(self.op("fmul", self.v.w.get(f"fneg double {low}"), low), 2)
        else:
            self.rests[2] = self.op("fadd", self.rests[2], self.op("fmul", low, low))

    def _add_product(self, x: str, minus: bool) -> None:
        """The same by an exact product of two floats: its rounded value, and its error."""
        fma = self.v.intrinsic("llvm.fma.f64", "double, double, double", "double")
        first = self.v.w.get(f"fneg double {x}") if minus else x
        product = self.op("fmul", first, x)
        negative = self.v.w.get(f"fneg double {product}")
        error = self.v.w.get(f"call double {fma}(double {first}, double {x}, double {negative})")
        before = self.total
        self.total = self.op("fadd", before, product)
        lost = self.op("fadd", self.op("fsub", before, self.total), product)
        self.rests[0] = self.op("fadd", self.rests[0], error)
        self.rests[1] = self.op("fadd", self.rests[1], lost)

    def sum(self) -> str:
        """The sum, without the one that it began with."""
        rests = self.rests if sys.version_info < (3, 12) else self.rests[:2]
        lost = rests[0]
        for rest in rests[1:]:
            lost = self.op("fadd", lost, rest)
        return self.op("fadd", self.op("fsub", self.total, _ONE), lost)


def _hypot(v: Values, operands: Sequence[str]) -> str:
    w, sizes = v.w, [_unary(v, "fabs", operand) for operand in operands]
    if len(sizes) == 1:
        return _finite(v, sizes[0])
    largest = sizes[0]
    for size in sizes:
        _finite(v, size)
        largest = w.get(f"select i1 {w.get(f'fcmp ogt double {size}, {largest}')}, double {size}, double {largest}")
    is_zero = w.get(f"fcmp oeq double {largest}, {_ZERO}")
    exponent = w.get(f"lshr i64 {w.get(f'bitcast double {largest} to i64')}, 52")
    inside = w.get(f"icmp ult i64 {w.get(f'sub i64 {exponent}, {_LEAST_EXPONENT}')}, {_MOST_EXPONENT}")
    v.need(w.get(f"or i1 {is_zero}, {inside}"))
    bits = w.get(f"shl i64 {w.get(f'sub i64 {_BIAS}, {exponent}')}, 52")
    scale = w.get(f"bitcast i64 {bits} to double")
    norm = _Norm(v)
    for size in sizes:
        norm.add_square(norm.op("fmul", size, scale), minus=False)
    root = _unary(v, "sqrt", norm.sum())
    norm.add_square(root, minus=True)
    correction = norm.op("fdiv", norm.sum(), norm.op("fmul", literal(_FLOAT, 2.0), root))
    found = norm.op("fdiv", norm.op("fadd", root, correction), scale)
    return w.get(f"select i1 {is_zero}, double {_ZERO}, double {found}")


_FUNCTIONS: dict[str, Callable[[Values, Sequence[str]], str]] = {
    **{name: _called(name) for name in (*LIBRARY, *LIBRARY_OF_TWO)},
    "fmod": _never_by_zero(_called("fmod")), "remainder": _never_by_zero(_called("remainder")),
    "copysign": _copysign, "sqrt": _sqrt, "fabs": lambda v, operands: _unary(v, "fabs", operands[0]),
    "floor": _to_int("floor"), "ceil": _to_int("ceil"), "trunc": _to_int("trunc"),
    "isnan": lambda v, operands: v.w.get(f"fcmp uno double {operands[0]}, {operands[0]}"),
    "isinf": _below("oeq"), "isfinite": _below("olt"), "isqrt": _integer_root, "hypot": _hypot,
}  # fmt: skip


def call(v: Values, name: str, operands: Sequence[str]) -> str:
    """The result of ``math.NAME``."""
    return _FUNCTIONS[name.removeprefix("math.")](v, operands)


__all__ = ["call"]
