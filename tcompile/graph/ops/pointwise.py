"""Pointwise operations, element by element.

Input: nothing.
Output: rows of the op table.
Why: kernels fuse them. All tensor operands have one dtype and broadcast; a bare number takes that dtype. The result has
the dtype of the operands, or bool for predicates.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph.dtypes import BOOL, as_dtype, part_of_complex
from tcompile.graph.op import CASTS, INEXACT, QUIET, Effects, Op, OverNamespace, TypeRule, define
from tcompile.graph.ops.rules import broadcast_shapes, common_dtype, k_order, like_order, only, tensors
from tcompile.graph.types import Layout, TensorType


def _rule(name: str, result: str) -> TypeRule:
    def rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
        dtype = common_dtype(name, types)
        shape = broadcast_shapes([t.shape for t in tensors(types)])
        return TensorType(BOOL if result == "bool" else dtype, shape, k_order(tensors(types), shape))

    return rule


def _where_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    condition, *branches = types
    if condition is None or condition.dtype != BOOL:
        raise GraphError(f"where needs a bool condition, got {condition}")
    shape = broadcast_shapes([t.shape for t in tensors(types)])
    return TensorType(common_dtype("where", branches), shape, k_order(tensors(types), shape))


def _astype_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("astype", types)
    return TensorType(as_dtype(attrs["dtype"]), type.shape, like_order(type))


def _abs_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("abs", types)
    dtype = part_of_complex(type.dtype) if type.dtype.kind == "c" else type.dtype
    return TensorType(dtype, type.shape, k_order([type], type.shape))


def _ordered_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("ordered", types)
    if sorted(attrs["axes"]) != list(range(type.ndim)):
        raise GraphError(f"ordered needs each axis of {type} once, got {attrs['axes']}")
    return TensorType(type.dtype, type.shape, Layout.of_order(tuple(attrs["axes"])))


@OverNamespace
def _ordered(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    like = xp.empty([x.shape[axis] for axis in axes], x.dtype).transpose([int(axis) for axis in np.argsort(axes)])
    made = xp.empty_like(like)  # a fresh array, not a view
    made[...] = x
    return made


@OverNamespace
def _astype(xp: Any, x: Any, dtype: Any) -> Any:
    return xp.asarray(x).astype(as_dtype(dtype))


def _python_sqrt(x: Any) -> Any:
    if np.any(np.less(x, 0)):
        raise ValueError("math domain error")
    return np.sqrt(x)


def _python_divide(a: Any, b: Any) -> Any:
    if np.any(np.equal(b, 0)):
        raise ZeroDivisionError("float division by zero")
    return np.divide(a, b)


def _finite(x: Any) -> Any:
    if not np.all(np.isfinite(x)):
        raise OverflowError("math range error")
    return np.positive(x)


def _python_int(function: Callable[[int, int], int]) -> Callable[..., Any]:
    def run(a: Any, b: Any) -> Any:
        result = function(int(a), int(b))
        if not -(1 << 63) <= result < 1 << 63:
            raise OverflowError("an int of more than 64 bits")
        return np.int64(result)

    return run


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*operands: Any) -> Any:
        return function(*(o[()] if isinstance(o, np.ndarray) else o for o in operands))

    return run


def _same(name: str, function: np.ufunc, **facts: Any) -> Op:
    """A row whose result has the operands' dtype."""
    return define(Op(name, "pointwise", function.nin, _rule(name, "same"), function, **facts))


def _predicate(name: str, function: np.ufunc, **facts: Any) -> Op:
    """A row whose result is a bool."""
    return define(Op(name, "pointwise", function.nin, _rule(name, "bool"), function, **facts))


def _scalar(name: str, arity: int, function: Callable[..., Any]) -> Op:
    doc = "rank-0 operands; integer overflow is reported, as NumPy scalars do"
    return define(Op(name, "pointwise", arity, _rule(name, "same"), _checked(function), doc, exact="f"))


def _python(name: str, function: Callable[[int, int], int]) -> Op:
    doc = "of Python's ints, rank-0 int64 here; what has more than 64 bits is an error"
    return define(Op(name, "pointwise", 2, _rule(name, "same"), _python_int(function), doc))


def _other(
    name: str, arity: int, rule: TypeRule, meaning: Callable[..., Any] | OverNamespace, doc: str = "", **facts: Any
) -> Op:
    return define(Op(name, "pointwise", arity, rule, meaning, doc, **facts))


# Not exact on floats are vector functions, and ``maximum`` and its relatives, where the sign of a zero depends in NumPy
# on the element's position. Nor are complex products, which NumPy fuses or not, by strides. Loud are comparisons of
# complex NaNs, and the rounding of signalling NaNs of float16, which NumPy's sort leaves.
NEGATIVE = _same("negative", np.negative, effects=QUIET, exact="fc")
POSITIVE = _same("positive", np.positive, effects=QUIET, exact="fc")
SQRT = _same("sqrt", np.sqrt, exact="fc", cost=4)
SQUARE = _same("square", np.square, effects=INEXACT, exact="f")
RECIPROCAL = _same("reciprocal", np.reciprocal, exact="fc", cost=4)
EXP = _same("exp", np.exp, cost=10)
EXP2 = _same("exp2", np.exp2, cost=10)
EXPM1 = _same("expm1", np.expm1, cost=15)
LOG = _same("log", np.log, cost=12)
LOG1P = _same("log1p", np.log1p, cost=15)
LOG2 = _same("log2", np.log2, cost=12)
LOG10 = _same("log10", np.log10, cost=12)
CBRT = _same("cbrt", np.cbrt, cost=15)
SIN = _same("sin", np.sin, cost=15)
COS = _same("cos", np.cos, cost=15)
TAN = _same("tan", np.tan, cost=20)
ASIN = _same("asin", np.arcsin, cost=15)
ACOS = _same("acos", np.arccos, cost=15)
ATAN = _same("atan", np.arctan, cost=15)
SINH = _same("sinh", np.sinh, cost=20)
COSH = _same("cosh", np.cosh, cost=20)
TANH = _same("tanh", np.tanh, cost=15)
ASINH = _same("asinh", np.arcsinh, cost=20)
ACOSH = _same("acosh", np.arccosh, cost=20)
ATANH = _same("atanh", np.arctanh, cost=20)
FLOOR = _same("floor", np.floor, effects=Effects("never", "e"), exact="fc")
CEIL = _same("ceil", np.ceil, effects=Effects("never", "e"), exact="fc")
TRUNC = _same("trunc", np.trunc, effects=Effects("never", "e"), exact="fc")
ROUND = _same("round", np.rint, effects=Effects("never", "e"), exact="fc")
SIGN = _same("sign", np.sign, effects=Effects("never", "FD"), exact="fc")
BITWISE_INVERT = _same("bitwise_invert", np.invert, effects=QUIET)
ADD = _same("add", np.add, effects=INEXACT, exact="fc")
SUBTRACT = _same("subtract", np.subtract, effects=INEXACT, exact="fc")
MULTIPLY = _same("multiply", np.multiply, effects=INEXACT, exact="f")
DIVIDE = _same("divide", np.true_divide, exact="fc", cost=4)
FLOOR_DIVIDE = _same("floor_divide", np.floor_divide, exact="fc", cost=30)
REMAINDER = _same("remainder", np.remainder, exact="fc", cost=30)
FMOD = _same("fmod", np.fmod, exact="fc", cost=30)
POW = _same("pow", np.power, cost=40)
MAXIMUM = _same("maximum", np.maximum, effects=QUIET)
MINIMUM = _same("minimum", np.minimum, effects=QUIET)
FMAX = _same("fmax", np.fmax, effects=QUIET)
FMIN = _same("fmin", np.fmin, effects=QUIET)
ATAN2 = _same("atan2", np.arctan2, cost=25)
HYPOT = _same("hypot", np.hypot, cost=25)
HEAVISIDE = _same("heaviside", np.heaviside, effects=Effects("never", "e"), exact="f", cost=2)
LOGADDEXP = _same("logaddexp", np.logaddexp, cost=30)
COPYSIGN = _same("copysign", np.copysign, effects=QUIET, exact="fc")
NEXTAFTER = _same("nextafter", np.nextafter, exact="fc", cost=10)
BITWISE_AND = _same("bitwise_and", np.bitwise_and, effects=QUIET)
BITWISE_OR = _same("bitwise_or", np.bitwise_or, effects=QUIET)
BITWISE_XOR = _same("bitwise_xor", np.bitwise_xor, effects=QUIET)
BITWISE_LEFT_SHIFT = _same("bitwise_left_shift", np.left_shift, effects=QUIET)
BITWISE_RIGHT_SHIFT = _same("bitwise_right_shift", np.right_shift, effects=QUIET)
ISFINITE = _predicate("isfinite", np.isfinite, effects=QUIET, exact="fc")
ISINF = _predicate("isinf", np.isinf, effects=QUIET, exact="fc")
ISNAN = _predicate("isnan", np.isnan, effects=QUIET, exact="fc")
SIGNBIT = _predicate("signbit", np.signbit, effects=QUIET, exact="fc")
EQUAL = _predicate("equal", np.equal, effects=QUIET, exact="fc")
NOT_EQUAL = _predicate("not_equal", np.not_equal, effects=QUIET, exact="fc")
LESS = _predicate("less", np.less, effects=Effects("never", "FD"), exact="fc")
LESS_EQUAL = _predicate("less_equal", np.less_equal, effects=Effects("never", "FD"), exact="fc")
GREATER = _predicate("greater", np.greater, effects=Effects("never", "FD"), exact="fc")
GREATER_EQUAL = _predicate("greater_equal", np.greater_equal, effects=Effects("never", "FD"), exact="fc")
LOGICAL_AND = _predicate("logical_and", np.logical_and, effects=QUIET, exact="fc")
LOGICAL_OR = _predicate("logical_or", np.logical_or, effects=QUIET, exact="fc")
LOGICAL_XOR = _predicate("logical_xor", np.logical_xor, effects=QUIET, exact="fc")
LOGICAL_NOT = _predicate("logical_not", np.logical_not, effects=QUIET, exact="fc")

ABS = _other("abs", 1, _abs_rule, np.absolute, effects=QUIET, exact="f")
CONJ = _same("conj", np.conjugate, effects=QUIET, exact="c")

# Arithmetic of NumPy *scalars* reports integer overflow where array arithmetic wraps silently, and has its own ``**``
# (libm's, on both sides).
SCALAR_ADD = _scalar("scalar_add", 2, operator.add)
SCALAR_SUBTRACT = _scalar("scalar_subtract", 2, operator.sub)
SCALAR_MULTIPLY = _scalar("scalar_multiply", 2, operator.mul)
SCALAR_NEGATIVE = _scalar("scalar_negative", 1, operator.neg)
SCALAR_ABS = _scalar("scalar_abs", 1, operator.abs)
SCALAR_POW = _scalar("scalar_pow", 2, operator.pow)
SCALAR_FLOOR_DIVIDE = _scalar("scalar_floor_divide", 2, operator.floordiv)
SCALAR_REMAINDER = _scalar("scalar_remainder", 2, operator.mod)
PYTHON_ADD = _python("python_add", operator.add)
PYTHON_SUBTRACT = _python("python_subtract", operator.sub)
PYTHON_MULTIPLY = _python("python_multiply", operator.mul)
PYTHON_SQRT = _other("python_sqrt", 1, _rule("python_sqrt", "same"), _python_sqrt,
                     "the square root; what is negative is an error, as math.sqrt says",
                     exact="fc", cost=4)  # fmt: skip
PYTHON_DIVIDE = _other("python_divide", 2, _rule("python_divide", "same"), _python_divide,
                       "the quotient of Python's floats; a division by zero is an error",
                       exact="fc", cost=4)  # fmt: skip
FINITE = _other("finite", 1, _rule("finite", "same"), _finite,
                "the operand; what is infinite or a NaN is an error, and Python's to find or not",
                exact="fc")  # fmt: skip
ORDERED = _other("ordered", 1, _ordered_rule, _ordered, "the same in memory order ``axes``, outermost first",
                 effects=QUIET, exact="fc")  # fmt: skip
CLIP = _other("clip", 3, _rule("clip", "same"), np._core.umath.clip,  # type: ignore[attr-defined]
              "minimum(maximum(x, low), high) with the first operand where both are equal; NaNs win",
              effects=QUIET)  # fmt: skip
WHERE = _other("where", 3, _where_rule, np.where, effects=QUIET, exact="fc")
ASTYPE = _other("astype", 1, _astype_rule, _astype, "cast to the attribute ``dtype``", effects=CASTS, exact="fc")
