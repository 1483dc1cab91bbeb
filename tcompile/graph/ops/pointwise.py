"""Element-by-element operations: rows of the op table.

All tensor operands have one dtype and broadcast; a bare number takes that dtype. The result has the dtype of
the operands, or bool for predicates.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph.ops.table import (
    OPS,
    Op,
    TypeRule,
    broadcast_shapes,
    common_dtype,
    define,
    k_order,
    like_order,
    only,
    tensors,
)
from tcompile.graph.types import Layout, TensorType

BOOL = np.dtype("bool")


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
    return TensorType(np.dtype(attrs["dtype"]), type.shape, like_order(type))


def _abs_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("abs", types)
    dtype = np.dtype(f"float{type.dtype.itemsize * 4}") if type.dtype.kind == "c" else type.dtype
    return TensorType(dtype, type.shape, k_order([type], type.shape))


def _ordered_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("ordered", types)
    if sorted(attrs["axes"]) != list(range(type.ndim)):
        raise GraphError(f"ordered needs each axis of {type} once, got {attrs['axes']}")
    return TensorType(type.dtype, type.shape, Layout.of_order(tuple(attrs["axes"])))


def _ordered(x: Any, axes: tuple[int, ...]) -> Any:
    like = np.empty([x.shape[axis] for axis in axes], x.dtype).transpose(np.argsort(axes))
    made = np.empty_like(like)  # an array of its own, not a view
    made[...] = x
    return made


_SAME = {
    "negative": np.negative, "positive": np.positive, "sqrt": np.sqrt, "square": np.square,
    "reciprocal": np.reciprocal, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "log2": np.log2, "log10": np.log10, "cbrt": np.cbrt, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.rint, "sign": np.sign, "bitwise_invert": np.invert,
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "fmod": np.fmod, "pow": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "atan2": np.arctan2,
    "hypot": np.hypot, "logaddexp": np.logaddexp, "copysign": np.copysign, "nextafter": np.nextafter,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
}  # fmt: skip
_PREDICATES = {
    "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan, "signbit": np.signbit,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "logical_not": np.logical_not,
}  # fmt: skip


def _astype(x: Any, dtype: Any) -> Any:
    return np.asarray(x).astype(dtype)


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


for _names, _result in ((_SAME, "same"), (_PREDICATES, "bool")):
    for _name, _ufunc in _names.items():
        define(Op(_name, "pointwise", _ufunc.nin, _rule(_name, _result), _ufunc))
define(Op("abs", "pointwise", 1, _abs_rule, np.absolute))
define(Op("conj", "pointwise", 1, _rule("conj", "same"), np.conjugate))
# Arithmetic of NumPy *scalars* reports integer overflow where array arithmetic wraps silently, and has its
# own ``**``.
_SCALAR: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg,
    "abs": operator.abs, "pow": operator.pow, "floor_divide": operator.floordiv, "remainder": operator.mod,
}  # fmt: skip
for _name, _function in _SCALAR.items():
    define(
        Op(f"scalar_{_name}", "pointwise", OPS[_name].arity, _rule(f"scalar_{_name}", "same"), _checked(_function),
           "rank-0 operands; integer overflow is reported, as NumPy scalars do")
    )  # fmt: skip
for _name in ("add", "subtract", "multiply"):
    define(
        Op(f"python_{_name}", "pointwise", 2, _rule(f"python_{_name}", "same"), _python_int(_SCALAR[_name]),
           "of Python's ints, rank-0 int64 here; what has more than 64 bits is an error")
    )  # fmt: skip
define(
    Op("python_sqrt", "pointwise", 1, _rule("python_sqrt", "same"), _python_sqrt,
       "the square root; what is negative is an error, as math.sqrt says")
)  # fmt: skip
define(
    Op("python_divide", "pointwise", 2, _rule("python_divide", "same"), _python_divide,
       "the quotient of Python's floats; a division by zero is an error")
)  # fmt: skip
define(
    Op("finite", "pointwise", 1, _rule("finite", "same"), _finite,
       "the operand; what is infinite or a NaN is an error, and Python's to find or not")
)  # fmt: skip
define(Op("ordered", "pointwise", 1, _ordered_rule, _ordered, "the same in memory order ``axes``, outermost first"))
define(Op("clip", "pointwise", 3, _rule("clip", "same"), np._core.umath.clip,  # type: ignore[attr-defined]
          "minimum(maximum(x, low), high) with the first operand where both are equal; NaNs win"))  # fmt: skip
define(Op("where", "pointwise", 3, _where_rule, np.where))
define(Op("astype", "pointwise", 1, _astype_rule, _astype, "cast to the attribute ``dtype``"))
