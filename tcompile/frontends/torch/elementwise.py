"""Rows of pointwise ATen operations, and of those that make tensors.

Input: nodes and numbers.
Output: nodes.
Why: these operations fuse. What each means at zeros, infinities and NaNs is PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from tcompile.frontends.torch.lowering import BOOL, Builder, NoLowering, Row, computing, floating, lowering
from tcompile.frontends.torch.tensors import DTYPES
from tcompile.graph import Node, Operand
from tcompile.graph.dtypes import FLOAT16, FLOAT32, FLOAT64, DType, kind_of

# Operations that have the same name here, by the operands and the result that they have.
_UNARY_FLOATS = (
    "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "sqrt",
)  # fmt: skip
_BINARY_FLOATS = ("atan2", "hypot", "nextafter")
_LOGICAL = ("logical_and", "logical_or", "logical_xor")
_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor")
_EXTREMES = ("maximum", "minimum", "fmax", "fmin")  # the first two: NaNs win; the others: numbers win
_ROUNDING = ("floor", "ceil", "trunc", "round")
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip


def _unary_float(name: str) -> Row:
    return lambda b, x: b.pointwise(name, x, dtype=floating(b))


def _binary_float(name: str) -> Row:
    return lambda b, x, y: b.pointwise(name, x, y, dtype=floating(b))


def _rounding(name: str) -> Row:
    def row(b: Builder, x: Node) -> Node:
        if kind_of(x.tensor.dtype) in "iu":
            return x
        return b.pointwise(name, x, dtype=floating(b))

    return row


def _comparison(name: str) -> Row:
    def row(b: Builder, x: Node, y: Operand) -> Node:
        common = b.promoted(x, y)
        if kind_of(common) == "c":
            raise NoLowering("a comparison of complex numbers")
        return b.pointwise(name, x, y, dtype=common)

    return row


def _logical(name: str) -> Row:
    return lambda b, x, y: b.result(b.op(name, _as_bool(b, x), _as_bool(b, y)))


def _bitwise(name: str) -> Row:
    def row(b: Builder, x: Operand, y: Operand) -> Node:
        of_booleans = b.promoted(x, y) == BOOL
        return b.pointwise(name.replace("bitwise", "logical") if of_booleans else name, x, y)

    return row


def _extreme(name: str) -> Row:
    return lambda b, x, y: _larger_or_smaller(b, name, x, y)


def _larger_or_smaller(b: Builder, name: str, x: Operand, y: Operand) -> Node:
    if kind_of(b.dtype) not in "iuf":
        raise NoLowering("booleans")
    return b.pointwise(name, x, y, dtype=b.dtype)


for _names, _make, _overloads in (
    (_UNARY_FLOATS, _unary_float, ("default",)),
    (_BINARY_FLOATS, _binary_float, ("default",)),
    (_ROUNDING, _rounding, ("default",)),
    (_EXTREMES, _extreme, ("default",)),
    (_LOGICAL, _logical, ("default",)),
    (_BITWISE, _bitwise, ("Tensor", "Scalar")),
):
    for _name in _names:
        lowering(*(f"aten.{_name}.{overload}" for overload in _overloads))(_make(_name))
for _name, _own in _COMPARISONS.items():
    lowering(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")(_comparison(_own))
lowering("aten.copysign.Tensor", "aten.copysign.Scalar")(_binary_float("copysign"))


@lowering("aten.neg.default")
def neg(b: Builder, x: Node) -> Node:
    """``-x``."""
    if kind_of(x.tensor.dtype) not in "iuf":
        raise NoLowering("complex numbers")
    return b.op("negative", x)


def _as_bool(b: Builder, x: Operand) -> Node:
    """Whether elements are not zero."""
    assert isinstance(x, Node)
    return x if x.tensor.dtype == BOOL else b.op("not_equal", x, b.cast(0, x.tensor.dtype))


@lowering("aten.sign.default")
def sign(b: Builder, x: Node) -> Node:
    """The sign; that of a NaN is 0."""
    if kind_of(x.tensor.dtype) not in "if":
        raise NoLowering("booleans, unsigned or complex numbers")
    made = b.op("sign", x)
    return made if kind_of(x.tensor.dtype) == "i" else b.op("where", b.op("isnan", x), b.node(0.0, b.dtype), made)


@lowering("aten.add.Tensor", "aten.add.Scalar")
def add(b: Builder, x: Node, y: Operand, alpha: Any = 1) -> Node:
    """``x + alpha * y``."""
    return _sum(b, "add", x, y, alpha)


@lowering("aten.sub.Tensor", "aten.sub.Scalar")
def sub(b: Builder, x: Node, y: Operand, alpha: Any = 1) -> Node:
    """``x - alpha * y``."""
    return _sum(b, "subtract", x, y, alpha)


def _sum(b: Builder, name: str, x: Node, y: Operand, alpha: Any) -> Node:
    common = b.promoted(x, y)
    if common == BOOL:
        name = "logical_or"  # torch.add of booleans; it subtracts none
    right = b.cast(y, common)
    if alpha != 1:
        right = b.op("multiply", right, b.cast(alpha, common)) if isinstance(right, Node) else right * alpha
    return b.pointwise(name, x, right, dtype=common)


@lowering("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(b: Builder, x: Node, y: Operand, alpha: Any = 1) -> Node:
    """``y - alpha * x``."""
    common = b.promoted(x, y)
    left = b.cast(x, common)
    if alpha != 1:
        left = b.op("multiply", left, b.cast(alpha, common))
    return b.pointwise("subtract", y, left, dtype=common)


@lowering("aten.mul.Tensor", "aten.mul.Scalar")
def mul(b: Builder, x: Node, y: Operand) -> Node:
    """``x * y``."""
    common = _product_dtype(b, y, b.promoted(x, y))
    return b.pointwise("logical_and" if common == BOOL else "multiply", x, y, dtype=common)


@lowering("aten.div.Tensor", "aten.div.Scalar")
def div(b: Builder, x: Node, y: Operand) -> Node:
    """``x / y``, of integers in floats."""
    return b.pointwise("divide", x, y, dtype=_product_dtype(b, y, b.dtype))


def _product_dtype(b: Builder, y: Operand, common: DType) -> DType:
    """The dtype of a multiplication or division by ``y``: PyTorch does not round one number to half precision."""
    is_number = not isinstance(y, Node) or not y.tensor.ndim
    return FLOAT32 if is_number and common == FLOAT16 else common


@lowering("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(b: Builder, x: Node, y: Operand, rounding_mode: str | None = None) -> Node:
    """``x / y``, rounded towards zero or down; of floats."""
    common = b.promoted(x, y)
    if kind_of(common) != "f":
        raise NoLowering("integers: a division by zero is an error")
    if rounding_mode == "floor":
        return b.pointwise("floor_divide", x, y, dtype=common)
    quotient = b.op("divide", *_nodes(b, (x, y), common))
    return b.result(quotient if rounding_mode is None else b.op("trunc", quotient))


def _nodes(b: Builder, values: tuple[Operand, ...], dtype: DType) -> list[Operand]:
    cast = [b.cast(value, dtype) for value in values]
    if not any(isinstance(value, Node) for value in cast):
        cast[0] = b.node(cast[0], dtype)
    return cast


@lowering("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(b: Builder, x: Node, y: Operand) -> Node:
    """The remainder with the sign of ``x``; of floats."""
    floating(b)
    return b.pointwise("fmod", x, y)


@lowering("aten.remainder.Tensor", "aten.remainder.Scalar")
def remainder(b: Builder, x: Node, y: Operand) -> Node:
    """The remainder with the sign of ``y``; of floats."""
    floating(b)
    return b.pointwise("remainder", x, y)


@lowering("aten.pow.Tensor_Scalar")
def pow_scalar(b: Builder, x: Node, exponent: Any) -> Node:
    """``x ** exponent``."""
    common = b.promoted(x, exponent)
    if kind_of(common) != "f":
        if kind_of(common) in "iu" and exponent == 2:
            base = b.cast(x, common)
            return b.result(b.op("multiply", base, base))
        raise NoLowering("a power of integers or complex numbers")
    base = b.cast(x, common)
    if exponent == 2:
        return b.result(b.op("multiply", base, base))
    if exponent == 3:
        return b.result(b.op("multiply", b.op("multiply", base, base), base))
    if exponent == 0.5:
        return b.result(b.op("sqrt", base))
    if exponent == -0.5:
        return b.result(b.op("divide", 1.0, b.op("sqrt", base)))
    if exponent == -1:
        return b.result(b.op("divide", 1.0, base))
    if exponent == -2:
        return b.result(b.op("divide", 1.0, b.op("multiply", base, base)))
    return b.pointwise("pow", base, float(exponent), dtype=common)


@lowering("aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def pow_tensor(b: Builder, x: Operand, exponent: Operand) -> Node:
    """``x ** exponent`` of floats."""
    return b.pointwise("pow", x, exponent, dtype=floating(b))


@lowering("aten.hardtanh.default")
def hardtanh(b: Builder, x: Node, low: Operand = -1, high: Operand = 1) -> Node:
    """``x`` between two bounds."""
    return _between(b, x, low, high)


@lowering("aten.clamp.default", "aten.clamp.Tensor")
def clamp(b: Builder, x: Node, low: Operand | None = None, high: Operand | None = None) -> Node:
    """``x`` between two bounds, either of which may be missing; the upper one wins."""
    return _between(b, x, low, high)


def _between(b: Builder, x: Node, low: Operand | None, high: Operand | None) -> Node:
    if kind_of(b.dtype) not in "iuf":
        raise NoLowering("booleans")
    node = b.cast(x, b.dtype)
    if low is not None:
        node = b.op("maximum", node, b.cast(low, b.dtype))
    if high is not None:
        node = b.op("minimum", node, b.cast(high, b.dtype))
    assert isinstance(node, Node)
    return b.result(node)


@lowering("aten.relu.default")
def relu(b: Builder, x: Node) -> Node:
    """``max(x, 0)``."""
    return _larger_or_smaller(b, "maximum", x, 0)


@lowering("aten.abs.default")
def absolute(b: Builder, x: Node) -> Node:
    """The absolute value."""
    if kind_of(x.tensor.dtype) in "bc":
        raise NoLowering("booleans or complex numbers")
    return b.op("abs", x)


@lowering("aten.reciprocal.default")
def reciprocal(b: Builder, x: Node) -> Node:
    """``1 / x``."""
    return b.op("divide", 1.0, b.cast(x, floating(b)))


@lowering("aten.rsqrt.default")
def rsqrt(b: Builder, x: Node) -> Node:
    """``1 / sqrt(x)``."""
    return b.result(b.op("divide", 1.0, b.op("sqrt", b.cast(x, computing(b)))))


@lowering("aten.sigmoid.default")
def sigmoid(b: Builder, x: Node) -> Node:
    """``1 / (1 + exp(-x))``."""
    x = b.node(x, computing(b))
    return b.result(b.op("divide", 1.0, b.op("add", b.op("exp", b.op("negative", x)), 1.0)))


@lowering("aten.silu.default")
def silu(b: Builder, x: Node) -> Node:
    """``x * sigmoid(x)``."""
    x = b.node(x, computing(b))
    return b.result(b.op("divide", x, b.op("add", b.op("exp", b.op("negative", x)), 1.0)))


# erf(x) = x P(x**2) / Q(x**2) on [-4, 4]: the minimax fit of Eigen and XLA for float32, within 1.5 units in the last
# place.
_ERF_ABOVE = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
    -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_ERF_BELOW = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)


def _polynomial(b: Builder, x: Node, coefficients: tuple[float, ...]) -> Node:
    """A polynomial by Horner's rule, the highest power first."""
    made = b.op("add", b.op("multiply", x, coefficients[0]), coefficients[1])
    for coefficient in coefficients[2:]:
        made = b.op("add", b.op("multiply", made, x), coefficient)
    return made


def _erf(b: Builder, x: Node) -> Node:
    if x.tensor.dtype == FLOAT64:
        raise NoLowering("erf in double precision")
    inside = b.op("minimum", b.op("maximum", x, -4.0), 4.0)
    square = b.op("multiply", inside, inside)
    above = b.op("multiply", inside, _polynomial(b, square, _ERF_ABOVE))
    return b.op("divide", above, _polynomial(b, square, _ERF_BELOW))


@lowering("aten.erf.default")
def erf(b: Builder, x: Node) -> Node:
    """The error function, in float32 and float16."""
    return b.result(_erf(b, b.node(x, computing(b))))


@lowering("aten.gelu.default")
def gelu(b: Builder, x: Node, approximate: str = "none") -> Node:
    """The Gaussian error linear unit, exact or by ``tanh``."""
    x = b.node(x, computing(b))
    half = b.op("multiply", x, 0.5)
    if approximate == "none":
        return b.result(b.op("multiply", half, b.op("add", _erf(b, b.op("multiply", x, math.sqrt(0.5))), 1.0)))
    cube = b.op("multiply", b.op("multiply", x, x), x)
    inside = b.op("multiply", b.op("add", x, b.op("multiply", cube, 0.044715)), math.sqrt(2 / math.pi))
    return b.result(b.op("multiply", half, b.op("add", b.op("tanh", inside), 1.0)))


@lowering("aten.gelu_backward.default")
def gelu_backward(b: Builder, gradient: Node, x: Node, approximate: str = "none") -> Node:
    """The derivative of ``gelu`` at ``x``, times ``gradient``."""
    gradient, x = b.node(gradient, computing(b)), b.node(x, computing(b))
    if approximate == "none":
        below = b.op("multiply", b.op("add", _erf(b, b.op("multiply", x, math.sqrt(0.5))), 1.0), 0.5)
        bell = b.op("multiply", b.op("exp", b.op("multiply", b.op("multiply", x, x), -0.5)), 1 / math.sqrt(2 * math.pi))
        return b.result(b.op("multiply", gradient, b.op("add", below, b.op("multiply", x, bell))))
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    square = b.op("multiply", x, x)
    inside = b.op("multiply", b.op("add", x, b.op("multiply", b.op("multiply", square, x), cubic)), scale)
    turned = b.op("tanh", inside)
    slope = b.op("multiply", b.op("add", b.op("multiply", square, 3 * cubic), 1.0), scale)
    steep = b.op("multiply", b.op("subtract", 1.0, b.op("multiply", turned, turned)), slope)
    left = b.op("multiply", b.op("add", turned, 1.0), 0.5)
    right = b.op("multiply", b.op("multiply", x, 0.5), steep)
    return b.result(b.op("multiply", gradient, b.op("add", left, right)))


@lowering("aten.logical_not.default")
def logical_not(b: Builder, x: Node) -> Node:
    """Whether elements are zero."""
    return b.op("logical_not", _as_bool(b, x))


@lowering("aten.bitwise_not.default")
def bitwise_not(b: Builder, x: Node) -> Node:
    """Each bit the other."""
    return b.op("logical_not" if x.tensor.dtype == BOOL else "bitwise_invert", x)


@lowering("aten.isnan.default")
def isnan(b: Builder, x: Node) -> Node:
    """Whether elements are NaN."""
    return _of_floats(b, "isnan", x)


@lowering("aten.isinf.default")
def isinf(b: Builder, x: Node) -> Node:
    """Whether elements are infinite."""
    return _of_floats(b, "isinf", x)


def _of_floats(b: Builder, name: str, x: Node) -> Node:
    if kind_of(x.tensor.dtype) == "c":
        raise NoLowering("complex numbers")
    return b.op(name, x) if kind_of(x.tensor.dtype) == "f" else b.full(b.shape, False, BOOL)


@lowering("aten.where.self")
def where(b: Builder, condition: Node, x: Operand, y: Operand) -> Node:
    """``x`` where the condition holds, ``y`` elsewhere."""
    if condition.tensor.dtype != BOOL:
        raise NoLowering("a condition that is not boolean")
    return b.result(b.op("where", condition, b.node(x, b.dtype), b.cast(y, b.dtype)))


@lowering("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(b: Builder, x: Node, mask: Node, value: Operand) -> Node:
    """``x`` with a number where the mask holds."""
    if mask.tensor.dtype != BOOL:
        raise NoLowering("a mask that is not boolean")
    return b.result(b.op("where", mask, b.cast(value, b.dtype), b.cast(x, b.dtype)))


@lowering("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(b: Builder, start: Node, end: Node, weight: Operand) -> Node:
    """``start + weight * (end - start)``, from the nearer end."""
    dtype = computing(b)
    first, last = b.node(start, dtype), b.node(end, dtype)
    distance = b.op("subtract", last, first)

    def near(share: Operand) -> Node:
        return b.op("add", first, b.op("multiply", distance, share))

    def far(share: Operand) -> Node:
        return b.op("subtract", last, b.op("multiply", distance, share))

    if isinstance(weight, int | float):
        return b.result(near(float(weight)) if abs(weight) < 0.5 else far(1.0 - weight))
    share = b.node(weight, dtype)
    is_near = b.op("less", b.op("abs", share), 0.5)
    return b.result(b.op("where", is_near, near(share), far(b.op("subtract", 1.0, share))))


@lowering("aten.addcmul.default")
def addcmul(b: Builder, x: Node, y: Node, z: Node, value: Any = 1) -> Node:
    """``x + value * y * z``."""
    dtype = computing(b)
    y, z = b.node(y, dtype), b.node(z, dtype)
    scaled = y if value == 1 else b.op("multiply", y, float(value))
    return b.result(b.op("add", b.cast(x, dtype), b.op("multiply", scaled, z)))


@lowering("aten.addcdiv.default")
def addcdiv(b: Builder, x: Node, y: Node, z: Node, value: Any = 1) -> Node:
    """``x + value * y / z``."""
    dtype = computing(b)
    y, z = b.node(y, dtype), b.node(z, dtype)
    scaled = y if value == 1 else b.op("multiply", y, float(value))
    return b.result(b.op("add", b.cast(x, dtype), b.op("divide", scaled, z)))


# -- tensors from nothing, and casts ---------------------------------------------------------------------------------


@lowering("aten.full.default")
def full(b: Builder, size: Any, value: Any, **options: Any) -> Node:
    """One number everywhere."""
    return b.full(b.shape, b.cast(value, b.dtype), b.dtype)


@lowering("aten.full_like.default")
def full_like(b: Builder, x: Node, value: Any, **options: Any) -> Node:
    """One number everywhere, in the shape of another tensor."""
    return b.full(b.shape, b.cast(value, b.dtype), b.dtype)


@lowering("aten.zeros.default", "aten.zeros_like.default")
def zeros(b: Builder, *size: Any, **options: Any) -> Node:
    """Zeros."""
    return b.full(b.shape, b.cast(0, b.dtype), b.dtype)


@lowering("aten.ones.default", "aten.ones_like.default")
def ones(b: Builder, *size: Any, **options: Any) -> Node:
    """Ones."""
    return b.full(b.shape, b.cast(1, b.dtype), b.dtype)


@lowering("aten.scalar_tensor.default")
def scalar_tensor(b: Builder, value: Any, **options: Any) -> Node:
    """A number as a tensor of rank 0."""
    return b.full((), b.cast(value, b.dtype), b.dtype)


@lowering("prims.iota.default")
def iota(b: Builder, length: int, *, start: int, step: int, **options: Any) -> Node:
    """``length`` integers from ``start`` on."""
    return b.op("arange", start=start, stop=start + length * step, step=step, dtype=str(b.dtype))


@lowering("prims.convert_element_type.default")
def convert_element_type(b: Builder, x: Node, dtype: torch.dtype) -> Node:
    """A cast."""
    return _cast(b, x, DTYPES[dtype])


@lowering("aten._to_copy.default")
def to_copy(b: Builder, x: Node, **options: Any) -> Node:
    """A cast, in new memory."""
    return _cast(b, x, b.dtype)


@lowering("aten.copy.default")
def copy(b: Builder, x: Node, source: Node, non_blocking: bool = False) -> Node:
    """``source`` as ``x`` would hold it."""
    return b.result(_cast(b, source, b.dtype))


def _cast(b: Builder, x: Node, dtype: DType) -> Node:
    source, target = kind_of(x.tensor.dtype), kind_of(dtype)
    if source == "c" and target != "c":
        raise NoLowering("a cast from complex to real numbers")
    if source == "f" and target in "iu":
        raise NoLowering("a cast of floats to integers: of a NaN or a large one, kernels leave it to NumPy")
    found = b.cast(x, dtype)
    assert isinstance(found, Node)
    return found


@lowering("aten.arange.start_step")
def arange(b: Builder, start: Any, end: Any, step: Any = 1, **options: Any) -> Node:
    """Integers from ``start`` on, below ``end``."""
    if any(type(value) is not int for value in (start, end, step)) or kind_of(b.dtype) not in "iu":
        raise NoLowering("floats")
    stop = start + len(range(start, end, step)) * step
    return b.op("arange", start=start, stop=stop, step=step, dtype=str(b.dtype))
