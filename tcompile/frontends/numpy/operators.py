"""Python's operators on traced arrays and scalars.

Input: an operator's sign and its operands.
Output: nodes.
Why: an operator differs from its ufunc: scalars report integer overflow, ``**`` has fast paths, and in-place forms keep
dtype and shape.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced, TracedNumber
from tcompile.frontends.numpy import linear, ufuncs
from tcompile.frontends.numpy.values import BOOL, Weak, cast, constant, is_weak, nested, same_order
from tcompile.graph import ops
from tcompile.graph.dtypes import DType
from tcompile.graph.sizes import SymInt, same_shape
from tcompile.numpy_versions import POWER_LOOKS_AT_TYPES

BINARY: dict[str, np.ufunc] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "//": np.floor_divide, "%": np.remainder,
    "**": np.power, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift,
    ">>": np.right_shift, "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal, ">": np.greater,
    ">=": np.greater_equal,
}  # fmt: skip
UNARY: dict[str, np.ufunc] = {"+": np.positive, "-": np.negative, "~": np.invert, "abs": np.absolute}
# Results of these may take the place of the left operand, or of either.
_OVERWRITING = frozenset({"+", "-", "*", "/", "//", "&", "|", "^", "<<", ">>"})
_EITHER = frozenset({"+", "*", "&", "|", "^"})
_OF_COMPLEX = frozenset("+-*/")  # by which NumPy's scalars and a Python complex give what arrays give
_LARGE = 256 * 1024  # bytes, from which on NumPy does that
# Where arrays wrap silently, NumPy's scalar arithmetic sets the overflow flag.
_SCALAR_CHECKED = {"+", "-", "*", "//", "%", "**", "<", "<=", "==", "!=", ">", ">="}


def binary(b: Builder, sign: str, left: Any, right: Any) -> Any:
    """``left sign right``."""
    left, right = _operand(b, left), _operand(b, right)
    if sign == "@":
        return linear.matmul(b, left, right)
    scalars = _is_scalar(left) and _is_scalar(right)
    if sign == "**" and isinstance(left, Traced) and not left.scalar:
        fast = _fast_power(left, right)
        if fast is not None:
            return ufuncs.emit(b, fast[0], [left, *fast[1]])
    ufunc = BINARY[sign]
    if scalars and (type(left) is complex or (type(right) is complex and sign not in _OF_COMPLEX)):
        # float64 scalars are Python floats too, and complex.__add__ may answer first.
        raise CannotCapture("unsupported-dtype", "an operator between a scalar and a Python complex number")
    if scalars and sign in _SCALAR_CHECKED:
        return _between_scalars(b, ufunc, left, right)
    return ufuncs.emit(b, ufunc, [left, right])


def takes_memory(sign: str, left: Any, right: Any, result: Any) -> list[int]:
    """The places of the operands that NumPy overwrites with the result of ``left sign right``, in its order.

    It does so if the operand is unshared. Empty if the memory layout of the result is the same in any case.
    """
    operands = (left, right)
    if sign not in _OVERWRITING or not all(isinstance(x, Traced) and not x.scalar for x in (*operands, result)):
        return []
    if all(same_order(x.type, result.type.layout) for x in operands):
        return []
    places = [i for i in (0, 1)[: 2 if sign in _EITHER else 1] if _may_take(sign, operands[i], operands[1 - i])]
    if all(same_order(operands[i].type, result.type.layout) for i in places):
        return []
    return places if _takes_memory() else []


def _may_take(sign: str, x: Traced, other: Traced) -> bool:
    type = x.type
    return (
        type.layout.dense
        and (sign != "/" or type.dtype.kind in "fc")
        and same_shape(type.shape, other.type.shape)
        and np.can_cast(other.type.dtype, type.dtype, "safe")
        and bool(type.size * type.dtype.itemsize >= _LARGE)
    )


@cache
def _takes_memory() -> bool:
    """Whether NumPy overwrites operands on this machine; found by trying."""
    x = np.ones((_LARGE // 1024, 128))
    return not (x.T * 1 + np.ones((128, _LARGE // 1024))).flags.c_contiguous


def unary(b: Builder, sign: str, x: Traced) -> Any:
    """``sign x``; ``abs`` is also spelled so."""
    return ufuncs.emit(b, UNARY[sign], [x], scalar_op=x.scalar)


def inplace(b: Builder, sign: str, left: Traced, right: Any) -> Traced:
    """The new contents of ``left``, an array, after ``left sign= right``."""
    operand = _operand(b, right)
    if sign == "@":
        result = linear.matmul(b, left, operand)
        if result.type.dtype != left.type.dtype or left.type.ndim < 2:
            raise CannotCapture("unsupported-argument", "@= that changes the dtype or works on one dimension")
    else:
        result = _inplace_ufunc(b, sign, left, operand)
    if not same_shape(result.type.shape, left.type.shape):
        raise CannotCapture("operation-raises", f"the result of {sign}= has another shape")
    return result


def _inplace_ufunc(b: Builder, sign: str, left: Traced, right: Traced | Weak) -> Traced:
    operands: list[Traced | Weak] = [left, right]
    ufunc = BINARY[sign]
    if sign == "**":
        fast = _fast_power(left, right)
        if fast is not None:
            ufunc, operands = fast[0], [left, *fast[1]]
    dtype = left.type.dtype
    computed = ufuncs.loop_dtypes(ufunc, operands)[ufunc.nin]
    if computed != dtype:
        # NumPy picks the loop by the inputs and casts its result back, where that is a same-kind cast.
        if not np.can_cast(computed, dtype, "same_kind"):
            raise CannotCapture("operation-raises", f"{sign}= cannot cast {computed} to {dtype}")
        result = ufuncs.emit(b, ufunc, operands)
        return Traced(cast(b, result, dtype))
    return Traced(ufuncs.emit(b, ufunc, operands).node)


def _operand(b: Builder, value: Any) -> Traced | Weak:
    if isinstance(value, Traced) or is_weak(value):
        return value  # type: ignore[no-any-return]
    if isinstance(value, np.generic):
        return constant(b, value)
    if isinstance(value, list | tuple):
        return nested(b, value)
    raise CannotCapture("unsupported-argument", f"an operator between an array and {type(value).__name__}")


def _is_scalar(value: Traced | Weak) -> bool:
    return not isinstance(value, Traced) or value.scalar


def _between_scalars(b: Builder, ufunc: np.ufunc, left: Traced | Weak, right: Traced | Weak) -> Traced:
    """Arithmetic of NumPy's scalar types, which is the ufunc's but for integer overflow and ``**``."""
    inputs = ufuncs.loop_dtypes(ufunc, [left, right])[:2]
    ordered = ufunc in (np.less, np.less_equal, np.greater, np.greater_equal)
    # Between complex scalars NumPy does not report NaNs, as it does between arrays.
    if len(set(inputs)) != 1 or (inputs[0].kind == "c" and ordered):
        raise CannotCapture("unsupported-dtype", f"{ufunc.__name__} between scalars of {inputs[0]} and {inputs[1]}")
    # NumPy's boolean scalars have no arithmetic of their own: where one of them decides, the ufunc wraps
    # silently.
    first = left if isinstance(left, Traced) else right
    decided_by_bool = isinstance(first, Traced) and first.type.dtype == BOOL
    return ufuncs.emit(b, ufunc, [left, right], scalar_op=not decided_by_bool)


def _fast_power(left: Traced, right: Traced | Weak) -> tuple[np.ufunc, tuple[Weak, ...]] | None:
    """The ufunc that ``left ** right`` runs instead of ``power``, and its operands after ``left``; or None."""
    exponent = _exponent(right)
    if exponent is None:
        return None
    ufunc = power_ufunc(left.type.dtype, exponent)
    if ufunc.__name__ == "_ones_like":  # which is a power, too
        return np.power, (0,)
    return None if ufunc is np.power else (ufunc, ())


def _exponent(right: Traced | Weak) -> int | float | np.generic | None:
    """Returns the exponent, if NumPy reads it to choose the ufunc of ``**``."""
    if isinstance(right, SymInt):
        return right.specialise()
    if isinstance(right, TracedNumber):
        # Which ufunc runs depends on the number's value: 0.5 is sqrt, 2.0 may be square.
        raise CannotCapture("data-dependent-value", "** with an exponent known at run time only")
    if not isinstance(right, Traced):
        return right if isinstance(right, bool | int | float) else None
    dtype = right.type.dtype
    if POWER_LOOKS_AT_TYPES or right.type.ndim or dtype.kind == "c" or (dtype == BOOL and not right.scalar):
        return None
    if dtype == BOOL:
        raise CannotCapture("operation-raises", "** with an exponent that is an np.bool warns")
    value = right.node.attrs.get("fill_value") if right.node.op is ops.FULL else None
    if not isinstance(value, int | float):
        raise CannotCapture("data-dependent-value", "** with a NumPy scalar as exponent, known at run time only")
    known: np.generic = dtype.type(value)
    return known


class _Spy(np.ndarray[Any, Any]):
    """An array that records which ufunc an operator runs on it."""

    seen: np.ufunc | None = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        self.seen = ufunc
        return None


@lru_cache(maxsize=1024, typed=True)  # 2 and 2.0 differ
def power_ufunc(dtype: DType, exponent: int | float | np.generic) -> np.ufunc:
    """The ufunc that this NumPy runs for ``array ** exponent``; found by watching, for it differs by version.

    >>> power_ufunc(np.dtype("float64"), 2)
    <ufunc 'square'>
    """
    spy = np.ones(1, dtype).view(_Spy)
    spy**exponent
    if spy.seen is None:
        raise CannotCapture("unknown-function", f"** {exponent!r} of {dtype}")
    return spy.seen
