"""Derivatives of element-by-element operations.

Input: a pointwise node and its result's cotangent.
Output: the operands' cotangents.
Why: each rule is the textbook partial derivative; docs/derivatives.md says what is chosen where there is none (kinks,
ties, poles).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tcompile.graph import ops
from tcompile.graph.ir import Node, Operand
from tcompile.graph.op import Op
from tcompile.graph.types import TensorType
from tcompile.transforms.autodiff.table import Pull, complex_too, constant, derivative
from tcompile.transforms.emit import Emit, is_complex

Partial = Callable[[Emit, Node], Operand]


def _reduced(e: Emit, node: Node, number: int, make: Callable[[], Node]) -> Pull | None:
    """The cotangent of an operand that may have been broadcast; None for a number."""
    operand = node.operands[number]
    if not isinstance(operand, Node) or not isinstance(operand.type, TensorType):
        return None
    return lambda: e.sum_to(make(), operand.tensor.shape)


def _unary(row: Op, partial: Partial) -> None:
    """A rule ``g * partial``, where ``partial`` is made of the node ``y`` and its operand."""

    @derivative(row)
    def rule(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
        return [lambda: e.scaled(g, partial(e, node))]


def _x(node: Node) -> Node:
    return node.inputs[0]


def _inverse(e: Emit, x: Node) -> Node:
    return e(ops.RECIPROCAL, x)


def _one_minus_square(e: Emit, x: Operand) -> Node:
    assert isinstance(x, Node)
    return e.subtract(1.0, e(ops.SQUARE, x))


def _direction(e: Emit, x: Node, magnitude: Node) -> Node:
    """The partial derivative of ``abs(x)``; 0 at 0."""
    if not is_complex(x):
        return e(ops.SIGN, x)
    zero = e(ops.EQUAL, magnitude, 0.0)
    return e.divide(e.where(zero, 0.0, e.conj(x)), e.where(zero, 1.0, magnitude))


def _rsqrt(e: Emit, x: Node) -> Node:
    return _inverse(e, e(ops.SQRT, x))


@derivative(ops.NEGATIVE, ops.SCALAR_NEGATIVE)
def _negative(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.through_where(g, e.negative)]


@derivative(ops.POSITIVE, ops.FINITE, ops.ORDERED)
def _same(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: g]


@derivative(ops.CONJ)
def _conj(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.conj(g)]


@derivative(ops.SQRT, ops.PYTHON_SQRT)
def _sqrt(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.through_where(g, lambda part: e.divide(part, e.multiply(node, 2.0)))]


@derivative(ops.RECIPROCAL)
def _reciprocal(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.scaled(g, e.negative(e(ops.SQUARE, node)))]


_unary(ops.SQUARE, lambda e, y: e.multiply(_x(y), 2.0))
_unary(ops.EXP, lambda e, y: y)
_unary(ops.EXP2, lambda e, y: e.multiply(y, math.log(2.0)))
_unary(ops.EXPM1, lambda e, y: e.add(y, 1.0))
_unary(ops.LOG, lambda e, y: _inverse(e, _x(y)))
_unary(ops.LOG1P, lambda e, y: _inverse(e, e.add(_x(y), 1.0)))
_unary(ops.LOG2, lambda e, y: _inverse(e, e.multiply(_x(y), math.log(2.0))))
_unary(ops.LOG10, lambda e, y: _inverse(e, e.multiply(_x(y), math.log(10.0))))
_unary(ops.CBRT, lambda e, y: _inverse(e, e.multiply(e(ops.SQUARE, y), 3.0)))
_unary(ops.SIN, lambda e, y: e(ops.COS, _x(y)))
_unary(ops.COS, lambda e, y: e.negative(e(ops.SIN, _x(y))))
_unary(ops.TAN, lambda e, y: e.add(e(ops.SQUARE, y), 1.0))
_unary(ops.ASIN, lambda e, y: _rsqrt(e, _one_minus_square(e, _x(y))))
_unary(ops.ACOS, lambda e, y: e.negative(_rsqrt(e, _one_minus_square(e, _x(y)))))
_unary(ops.ATAN, lambda e, y: _inverse(e, e.add(e(ops.SQUARE, _x(y)), 1.0)))
_unary(ops.SINH, lambda e, y: e(ops.COSH, _x(y)))
_unary(ops.COSH, lambda e, y: e(ops.SINH, _x(y)))
_unary(ops.TANH, lambda e, y: _one_minus_square(e, y))
_unary(ops.ASINH, lambda e, y: _rsqrt(e, e.add(e(ops.SQUARE, _x(y)), 1.0)))
_unary(ops.ACOSH, lambda e, y: _inverse(e, e.multiply(e(ops.SQRT, e.subtract(_x(y), 1.0)),
                                                      e(ops.SQRT, e.add(_x(y), 1.0)))))  # fmt: skip
_unary(ops.ATANH, lambda e, y: _inverse(e, _one_minus_square(e, _x(y))))
_unary(ops.ABS, lambda e, y: _direction(e, _x(y), y))
_unary(ops.SCALAR_ABS, lambda e, y: e(ops.SIGN, _x(y)))

constant(
    ops.FLOOR, ops.CEIL, ops.TRUNC, ops.ROUND, ops.SIGN, ops.FLOOR_DIVIDE, ops.SCALAR_FLOOR_DIVIDE,
    ops.ISFINITE, ops.ISINF, ops.ISNAN, ops.SIGNBIT, ops.EQUAL, ops.NOT_EQUAL, ops.LESS, ops.LESS_EQUAL,
    ops.GREATER, ops.GREATER_EQUAL, ops.LOGICAL_AND, ops.LOGICAL_OR, ops.LOGICAL_XOR, ops.LOGICAL_NOT,
    ops.BITWISE_INVERT, ops.BITWISE_AND, ops.BITWISE_OR, ops.BITWISE_XOR, ops.BITWISE_LEFT_SHIFT,
    ops.BITWISE_RIGHT_SHIFT, ops.PYTHON_ADD, ops.PYTHON_SUBTRACT, ops.PYTHON_MULTIPLY, ops.EXPECT,
)  # fmt: skip


@derivative(ops.ADD, ops.SCALAR_ADD)
def _add(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [_reduced(e, node, 0, lambda: g), _reduced(e, node, 1, lambda: g)]


@derivative(ops.SUBTRACT, ops.SCALAR_SUBTRACT)
def _subtract(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [_reduced(e, node, 0, lambda: g), _reduced(e, node, 1, lambda: e.through_where(g, e.negative))]


@derivative(ops.MULTIPLY, ops.SCALAR_MULTIPLY)
def _multiply(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    a, b = node.operands
    return [_reduced(e, node, 0, lambda: e.scaled(g, b)), _reduced(e, node, 1, lambda: e.scaled(g, a))]


@derivative(ops.DIVIDE, ops.PYTHON_DIVIDE)
def _divide(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    _, b = node.operands

    def to_divisor() -> Node:
        return e.through_where(g, lambda part: e.negative(e.multiply(part, e.divide(node, b))))

    return [
        _reduced(e, node, 0, lambda: e.through_where(g, lambda part: e.divide(part, b))),
        _reduced(e, node, 1, to_divisor),
    ]


def _modulo(whole: Op, *rows: Op) -> None:
    """The rule of remainders: by the divisor it is minus the quotient, made whole as the operation does."""

    @derivative(*rows)
    def rule(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
        a, b = node.operands

        def to_divisor() -> Node:
            return e.scaled(g, e.negative(e(whole, e.divide(a, b))))

        return [_reduced(e, node, 0, lambda: g), _reduced(e, node, 1, to_divisor)]


_modulo(ops.FLOOR, ops.REMAINDER, ops.SCALAR_REMAINDER)
_modulo(ops.TRUNC, ops.FMOD)


@derivative(ops.POW, ops.SCALAR_POW)
def _pow(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    base, exponent = node.operands

    def to_base() -> Node:
        if not isinstance(exponent, Node):
            if exponent == 0:
                return e.full(node, 0.0)
            if exponent == 1:
                return g
            if exponent == 2:
                return e.scaled(g, e.multiply(base, 2.0))
            return e.scaled(g, e.multiply(e(ops.POW, base, exponent - 1), exponent))
        # 0 where the exponent is 0, also at the base 0.
        partial = e.multiply(exponent, e(ops.POW, base, e.subtract(exponent, 1.0)))
        return e.scaled(e.where(e(ops.EQUAL, exponent, 0.0), 0.0, g), partial)

    def to_exponent() -> Node:
        # 0 at the base 0, where the logarithm is infinite.
        if not isinstance(base, Node):
            return e.scaled(g, e.multiply(node, _logarithm(base)))
        zero = e(ops.EQUAL, base, 0.0)
        return e.scaled(e.where(zero, 0.0, g), e.multiply(node, e(ops.LOG, base)))

    return [_reduced(e, node, 0, to_base), _reduced(e, node, 1, to_exponent)]


def _logarithm(base: Operand) -> float:
    """Of a number; 0 for 0, whose powers are constant."""
    assert isinstance(base, bool | int | float)
    return math.log(base) if base > 0 else 0.0 if base == 0 else math.nan


def _extremum(row: Op, wins: Op, loses: Op, nan_loses: bool) -> None:
    """The rule of the larger or the smaller of two: the cotangent goes to that one, in halves where both are equal.

    Both operands share two masks, since a loop stores masks rather than the operands.
    """

    @derivative(row)
    def rule(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
        a, b = node.operands

        def compared(before: Op, other: Operand) -> Node:
            mask = e(before, a, b)
            return e(ops.LOGICAL_OR, mask, e(ops.ISNAN, other)) if nan_loses and isinstance(other, Node) else mask

        def part(mine: Node, others: Node) -> Node:
            return e.where(mine, e.where(others, e.scaled(g, 0.5), g), 0.0)

        first, second = compared(wins, b), compared(loses, a)
        return [_reduced(e, node, 0, lambda: part(first, second)), _reduced(e, node, 1, lambda: part(second, first))]


_extremum(ops.MAXIMUM, ops.GREATER_EQUAL, ops.LESS_EQUAL, nan_loses=False)
_extremum(ops.MINIMUM, ops.LESS_EQUAL, ops.GREATER_EQUAL, nan_loses=False)
_extremum(ops.FMAX, ops.GREATER_EQUAL, ops.LESS_EQUAL, nan_loses=True)
_extremum(ops.FMIN, ops.LESS_EQUAL, ops.GREATER_EQUAL, nan_loses=True)


@derivative(ops.ATAN2)
def _atan2(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    y, x = node.operands

    def over_squares(top: Operand) -> Node:
        squares = [e(ops.SQUARE, o if isinstance(o, Node) else e.multiply(e.full(node, 1.0), o)) for o in (x, y)]
        return e.divide(top, e.add(*squares))

    return [
        _reduced(e, node, 0, lambda: e.scaled(g, over_squares(x))),
        _reduced(e, node, 1, lambda: e.scaled(g, e.negative(over_squares(y)))),
    ]


@derivative(ops.HYPOT)
def _hypot(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    a, b = node.operands
    return [
        _reduced(e, node, 0, lambda: e.scaled(g, e.divide(a, node))),
        _reduced(e, node, 1, lambda: e.scaled(g, e.divide(b, node))),
    ]


@derivative(ops.LOGADDEXP)
def _logaddexp(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    a, b = node.operands
    return [
        _reduced(e, node, 0, lambda: e.scaled(g, e(ops.EXP, e.subtract(a, node)))),
        _reduced(e, node, 1, lambda: e.scaled(g, e(ops.EXP, e.subtract(b, node)))),
    ]


@derivative(ops.COPYSIGN)
def _copysign(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    a, b = node.operands

    def to_magnitude() -> Node:
        return e.scaled(g, e.multiply(e(ops.SIGN, a), e(ops.COPYSIGN, e.full(node, 1.0), b)))

    return [_reduced(e, node, 0, to_magnitude), None]


@derivative(ops.HEAVISIDE)
def _heaviside(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    x = node.operands[0]
    return [None, _reduced(e, node, 1, lambda: e.where(e(ops.EQUAL, x, 0.0), g, 0.0))]


@derivative(ops.NEXTAFTER)
def _nextafter(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [_reduced(e, node, 0, lambda: g), None]


@derivative(ops.CLIP)
def _clip(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    x, low, high = node.operands

    def to_x() -> Node:
        inside = e(ops.LOGICAL_AND, e(ops.GREATER_EQUAL, x, low), e(ops.LESS_EQUAL, x, high))
        return e.where(inside, g, 0.0)

    def to_low() -> Node:
        below = e(ops.LOGICAL_AND, e(ops.LESS, x, low), e(ops.LESS_EQUAL, low, high))
        return e.where(below, g, 0.0)

    def to_high() -> Node:
        above = e(ops.LOGICAL_OR, e(ops.GREATER, x, high), e(ops.GREATER, low, high))
        return e.where(above, g, 0.0)

    return [_reduced(e, node, 0, to_x), _reduced(e, node, 1, to_low), _reduced(e, node, 2, to_high)]


@derivative(ops.WHERE)
def _where(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    condition = node.inputs[0]
    return [
        None,
        _reduced(e, node, 1, lambda: e.where(condition, g, 0.0)),
        _reduced(e, node, 2, lambda: e.where(condition, 0.0, g)),
    ]


@derivative(ops.ASTYPE)
def _astype(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    dtype = _x(node).tensor.dtype
    return [(lambda: e.cast(g, dtype)) if dtype.kind in "fc" else None]


complex_too(
    ops.NEGATIVE, ops.POSITIVE, ops.FINITE, ops.CONJ, ops.RECIPROCAL, ops.SQUARE, ops.ABS, ops.ADD, ops.SUBTRACT,
    ops.MULTIPLY, ops.DIVIDE, ops.WHERE, ops.ASTYPE, ops.SCALAR_ADD, ops.SCALAR_SUBTRACT, ops.SCALAR_MULTIPLY,
    ops.SCALAR_NEGATIVE, ops.SCALAR_POW, ops.PYTHON_DIVIDE,
)  # fmt: skip
