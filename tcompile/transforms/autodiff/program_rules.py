"""Derivative rules of the instructions of scalar loops.

Input: an instruction of a program, and its result's cotangent.
Output: instructions of the backward program, which add to the cotangents of the operands.
Why: one table, by instruction. ``programs`` knows control flow and tapes, and no arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

FLOAT = "np.float64"  # the kind of cotangents


class Pulls(Protocol):
    """The backward program under construction, as rules see it. Registers are those of the backward program."""

    def value(self, register: int) -> int:
        """The value of a register of the forward program."""

    def constant(self, register: int) -> float | None:
        """The number that a register of the forward program always is; None where there is none."""

    def hand(self, register: int, g: Callable[[], int]) -> None:
        """Adds to the cotangent of a register of the forward program, if that is active."""

    def op(self, sign: str, *given: int) -> int:
        """An operation on floats."""

    def test(self, a: int, sign: str, b: int) -> int:
        """A comparison of floats."""

    def pick(self, condition: int, a: int, b: int) -> int:
        """``a`` where the condition holds, else ``b``."""

    def const(self, value: float) -> int:
        """A float."""


Rule: TypeAlias = Callable[[Pulls, int, Sequence[int], int], None]
RULES: dict[str, Rule] = {}  # by instruction: (program, result, operands, cotangent of the result)


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


@_rule("+")
def _add(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    for operand in given:
        p.hand(operand, lambda: g)


@_rule("-")
def _subtract(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    p.hand(given[0], lambda: g)
    p.hand(given[1], lambda: p.op("negative", g))


@_rule("*")
def _multiply(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    a, b = given
    p.hand(a, lambda: p.op("*", g, p.value(b)))
    p.hand(b, lambda: p.op("*", g, p.value(a)))


@_rule("/")
def _divide(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    a, b = given
    p.hand(a, lambda: p.op("/", g, p.value(b)))
    p.hand(b, lambda: p.op("negative", p.op("*", p.op("/", g, p.value(b)), p.value(r))))


@_rule("math.nextafter")
def _neighbour(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    p.hand(given[0], lambda: g)


@_rule("math.fmod")
def _truncated_remainder(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    a, b = given
    p.hand(a, lambda: g)
    p.hand(b, lambda: p.op("negative", p.op("*", g, p.op("np.trunc", p.op("/", p.value(a), p.value(b))))))


@_rule("math.remainder")
def _nearest_remainder(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    a, b = given
    p.hand(a, lambda: g)
    p.hand(b, lambda: p.op("negative", p.op("*", g, p.op("np.rint", p.op("/", p.value(a), p.value(b))))))


@_rule("math.copysign")
def _with_sign(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    a, _ = given

    def made() -> int:
        product = p.op("*", p.value(a), p.value(r))
        return p.pick(p.test(product, "<", p.const(0.0)), p.op("negative", g), g)

    p.hand(a, made)


@_rule("math.hypot")
def _hypot(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    def part(a: int) -> int:
        length, one = p.value(r), p.const(1.0)
        known = p.test(length, ">", p.const(0.0))  # at 0 each partial derivative is 0
        return p.op("*", g, p.op("/", p.value(a), p.pick(known, length, one)))

    for a in given:
        p.hand(a, lambda a=a: part(a))  # type: ignore[misc]


@_rule("%")
def _remainder(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    a, b = given
    p.hand(a, lambda: g)
    p.hand(b, lambda: p.op("negative", p.op("*", g, p.op("np.floor", p.op("/", p.value(a), p.value(b))))))


@_rule("**", "np.power", "math.pow")
def _power(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    a, b = given
    exponent = p.constant(b)
    zero, one = p.const(0.0), p.const(1.0)

    def by_base() -> int:
        if exponent == 0:
            return zero
        if exponent == 2:
            return p.op("*", g, p.op("*", p.const(2.0), p.value(a)))
        less = p.const(float(exponent) - 1.0) if exponent is not None else p.op("-", p.value(b), one)
        return p.op("*", p.op("*", g, p.value(b)), p.op("**", p.value(a), less))

    def by_exponent() -> int:
        known = p.test(p.value(a), ">", zero)
        logarithm = p.op("np.log", p.pick(known, p.value(a), one))
        return p.op("*", p.op("*", g, p.value(r)), logarithm)

    p.hand(a, by_base)
    p.hand(b, by_exponent)


@_rule("negative")
def _negative(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    p.hand(given[0], lambda: p.op("negative", g))


@_rule("positive", "float", FLOAT, "np.float32")
def _same(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    p.hand(given[0], lambda: g)


@_rule("abs", "math.fabs")
def _abs(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    def made() -> int:
        zero, x = p.const(0.0), p.value(given[0])
        below = p.pick(p.test(x, "<", zero), p.op("negative", g), zero)
        return p.pick(p.test(x, ">", zero), g, below)

    p.hand(given[0], made)


@_rule("select")
def _select(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    condition, a, b = given
    p.hand(a, lambda: p.pick(p.value(condition), g, p.const(0.0)))
    p.hand(b, lambda: p.pick(p.value(condition), p.const(0.0), g))


@_rule("//", "np.floor", "np.ceil", "np.trunc", "np.rint")
def _steps(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    pass  # its derivative is zero


def _extreme(sign: str) -> Rule:
    def rule(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
        def part(a: int, b: int) -> int:
            half = p.op("*", g, p.const(0.5))
            equal = p.pick(p.test(p.value(a), "==", p.value(b)), half, p.const(0.0))
            return p.pick(p.test(p.value(a), sign, p.value(b)), g, equal)

        a, b = given
        p.hand(a, lambda: part(a, b))
        p.hand(b, lambda: part(b, a))

    return rule


RULES["np.maximum"], RULES["np.minimum"] = _extreme(">"), _extreme("<")


@_rule("np.arctan2", "math.atan2")
def _arctan2(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
    y, x = given

    def over_square() -> int:
        square = p.op("+", p.op("*", p.value(x), p.value(x)), p.op("*", p.value(y), p.value(y)))
        return p.op("/", g, square)

    p.hand(y, lambda: p.op("*", over_square(), p.value(x)))
    p.hand(x, lambda: p.op("negative", p.op("*", over_square(), p.value(y))))


# -- functions of one number -------------------------------------------------------------------------------------------
Formula: TypeAlias = Callable[[Pulls, Callable[[], int], Callable[[], int], int], int]


def _function(formula: Formula, *names: str) -> None:
    """Registers functions of Python's and NumPy's by ``formula(program, argument, result, g)``."""

    def rule(p: Pulls, r: int, given: Sequence[int], g: int) -> None:
        p.hand(given[0], lambda: formula(p, lambda: p.value(given[0]), lambda: p.value(r), g))

    for name in names:
        RULES[f"math.{name}"] = RULES[f"np.{name}"] = rule


def _one_minus_square(p: Pulls, x: int) -> int:
    return p.op("-", p.const(1.0), p.op("*", x, x))


def _one_plus_square(p: Pulls, x: int) -> int:
    return p.op("+", p.const(1.0), p.op("*", x, x))


def _times_constant(value: float) -> Formula:
    return lambda p, x, y, g: p.op("*", g, p.op("*", y(), p.const(value)))


def _over_constant(value: float) -> Formula:
    return lambda p, x, y, g: p.op("/", g, p.op("*", x(), p.const(value)))


def _bell(p: Pulls, x: int, height: float) -> int:
    return p.op("*", p.const(height), p.op("np.exp", p.op("negative", p.op("*", x, x))))


_TWO_OVER_ROOT_PI = 1.1283791670955126
_LN2, _LN10 = 0.6931471805599453, 2.302585092994046
_function(lambda p, x, y, g: p.op("*", g, y()), "exp")
_function(_times_constant(_LN2), "exp2")
_function(lambda p, x, y, g: p.op("*", g, p.op("+", y(), p.const(1.0))), "expm1")
_function(lambda p, x, y, g: p.op("/", g, x()), "log")
_function(_over_constant(_LN2), "log2")
_function(_over_constant(_LN10), "log10")
_function(lambda p, x, y, g: p.op("/", g, p.op("+", x(), p.const(1.0))), "log1p")
_function(lambda p, x, y, g: p.op("/", g, p.op("*", p.const(2.0), y())), "sqrt")
_function(lambda p, x, y, g: p.op("/", g, p.op("*", p.const(3.0), p.op("*", y(), y()))), "cbrt")
_function(lambda p, x, y, g: p.op("*", g, _bell(p, x(), _TWO_OVER_ROOT_PI)), "erf")
_function(lambda p, x, y, g: p.op("*", g, _bell(p, x(), -_TWO_OVER_ROOT_PI)), "erfc")
_function(lambda p, x, y, g: p.op("*", g, p.op("np.cos", x())), "sin")
_function(lambda p, x, y, g: p.op("negative", p.op("*", g, p.op("np.sin", x()))), "cos")
_function(lambda p, x, y, g: p.op("*", g, _one_plus_square(p, y())), "tan")
_function(lambda p, x, y, g: p.op("*", g, p.op("np.cosh", x())), "sinh")
_function(lambda p, x, y, g: p.op("*", g, p.op("np.sinh", x())), "cosh")
_function(lambda p, x, y, g: p.op("*", g, _one_minus_square(p, y())), "tanh")
_function(lambda p, x, y, g: p.op("/", g, p.op("np.sqrt", _one_minus_square(p, x()))), "asin", "arcsin")
_function(
    lambda p, x, y, g: p.op("negative", p.op("/", g, p.op("np.sqrt", _one_minus_square(p, x())))), "acos", "arccos"
)  # fmt: skip
_function(lambda p, x, y, g: p.op("/", g, _one_plus_square(p, x())), "atan", "arctan")
_function(lambda p, x, y, g: p.op("/", g, p.op("np.sqrt", _one_plus_square(p, x()))), "arcsinh", "asinh")
_function(
    lambda p, x, y, g: p.op("/", g, p.op("np.sqrt", p.op("-", p.op("*", x(), x()), p.const(1.0)))), "arccosh", "acosh"
)  # fmt: skip
_function(lambda p, x, y, g: p.op("/", g, _one_minus_square(p, x())), "arctanh", "atanh")

__all__ = ["FLOAT", "RULES", "Pulls"]
