"""Ufuncs: promotion, casts, and operations.

Input: a ufunc and its operands.
Output: explicit casts and one pointwise node. Without a fitting row (complex numbers, mixed comparisons, other ufuncs),
one ``call`` node of the exact type.
Why: NumPy itself decides promotion (``ufunc.resolve_dtypes``), with Python numbers weak as in NEP 50.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced, TracedNumber, slot
from tcompile.frontends.numpy.library import Rule, Shape, together
from tcompile.frontends.numpy.registry import lookup, refuse_unless
from tcompile.frontends.numpy.values import (
    BOOL,
    Weak,
    broadcast,
    call,
    cast,
    constant,
    dtype_of,
    is_constant,
    number_text,
    operand,
    same_order,
    strong,
    takes_dtype,
    weak_as,
)
from tcompile.graph import Node, Operand, Size, TensorType
from tcompile.graph.dtypes import DType
from tcompile.graph.ops import OPS, k_order
from tcompile.graph.sizes import SymInt, is_one
from tcompile.strict import strict

# The rows whose NumPy meaning is one ufunc, by that ufunc.
ROWS: dict[np.ufunc, str] = {
    op.meaning: name for name, op in OPS.items() if op.kind == "pointwise" and isinstance(op.meaning, np.ufunc)
}
ROWS.update({np.fabs: "abs", np.conjugate: "positive"})  # of real floats
# On booleans these ufuncs are other rows: the very same loops.
_ON_BOOL = {"add": "logical_or", "multiply": "logical_and", "maximum": "logical_or", "minimum": "logical_and"}
# Rows that are meant for floating operands; on others the ufunc stays a library call.
_FLOATING = {"floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "signbit"}
# Rows that are meant for complex operands too; on them other ufuncs stay library calls.
ON_COMPLEX = {
    "add", "subtract", "multiply", "divide", "negative", "positive", "square", "reciprocal", "abs", "conj", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin", "isnan",
    "isinf", "isfinite", "logical_and", "logical_or", "logical_xor", "logical_not",
}  # fmt: skip
_COMPARISONS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}


@lru_cache(maxsize=4096)
def resolve(ufunc: np.ufunc, operands: tuple[Any, ...], dtype: DType | None) -> tuple[DType, ...]:
    """The dtypes of the loop that NumPy runs: inputs, then outputs. Raises TypeError as the call would."""
    places = (*operands, *(None,) * ufunc.nout)
    if dtype is None:
        return ufunc.resolve_dtypes(places)
    return ufunc.resolve_dtypes(places, signature=(*(None,) * ufunc.nin, *(dtype,) * ufunc.nout))


def weak_kind(value: Weak) -> Any:
    """What stands for a Python number in ``resolve``."""
    if type(value) is bool:
        return BOOL
    if isinstance(value, SymInt):
        return int
    return float if isinstance(value, TracedNumber) else type(value)


def loop_dtypes(ufunc: np.ufunc, operands: Sequence[Traced | Weak], dtype: DType | None = None) -> tuple[DType, ...]:
    """``resolve`` for operands; CannotCapture where NumPy raises or the graph lacks a dtype."""
    kinds = tuple(o.type.dtype if isinstance(o, Traced) else weak_kind(o) for o in operands)
    try:
        dtypes = resolve(ufunc, kinds, dtype)
    except TypeError as error:
        raise CannotCapture("operation-raises", str(error)) from error
    # Which of C's two integer types of one size operands are cast to, no result tells.
    dtypes = (*(np.dtype(d.str) if d.kind in "iu" else d for d in dtypes[: ufunc.nin]), *dtypes[ufunc.nin :])
    if not all(takes_dtype(d) for d in dtypes):
        raise CannotCapture("unsupported-dtype", f"{ufunc.__name__} computes in {', '.join(map(str, dtypes))}")
    return dtypes


NOT_FUSED = ("unsupported-argument", "unsupported-dtype", "memory-order", "unknown-function")


@lru_cache(maxsize=512)
def rule_of(ufunc: np.ufunc) -> Rule | None:
    """How a ufunc is called as one node; None for those that are not element by element, or not NumPy's own."""
    if ufunc.signature is not None or lookup(ufunc.__name__) is not ufunc:
        return None

    def shapes(
        *args: Any,
        out: Any = None,
        where: Any = True,
        casting: Any = None,
        order: Any = None,
        dtype: Any = None,
        subok: Any = None,
    ) -> Shape | list[Shape]:
        if where is not True:
            raise CannotCapture("undefined-contents", f"{ufunc.__name__} with where= and no out=")
        if len(args) != ufunc.nin:
            raise CannotCapture("writes-to-array", f"{ufunc.__name__} with an output among its arguments")
        shape = together(*args)
        return shape if ufunc.nout == 1 else [shape] * ufunc.nout

    return Rule(shapes, f"numpy.{ufunc.__name__}")


def call_ufunc(b: Builder, ufunc: np.ufunc, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The meaning of ``ufunc(*args, **kwargs)``."""
    harmless = {
        "out": (None,),
        "where": (True,),
        "casting": ("same_kind",),
        "order": ("K",),
        "subok": (True, False),
    }
    rest = dict(kwargs)
    dtype = rest.pop("dtype", None)
    for name, value in rest.items():
        if name not in harmless:
            raise CannotCapture("unsupported-argument", f"{ufunc.__name__} with {name}=")
        refuse_unless(ufunc.__name__, **{name: (value, harmless[name])})
    if len(args) != ufunc.nin or ufunc.signature is not None:
        raise CannotCapture("unsupported-argument", f"{ufunc.__name__} with {len(args)} arguments")
    return elementwise(b, ufunc, args, None if dtype is None else dtype_of(dtype))


def elementwise(b: Builder, ufunc: np.ufunc, args: Sequence[Any], dtype: DType | None = None) -> Any:
    """``ufunc`` on ``args``, which may be traced values, numbers or lists."""
    if all(is_constant(a) for a in args):
        return fold(ufunc, args, dtype)
    operands = [operand(b, a) for a in args]
    if not any(isinstance(o, Traced) for o in operands):
        operands = [strong(b, o) if isinstance(o, SymInt | TracedNumber) else o for o in operands]
    if ufunc is np.divmod and dtype is None:
        return (emit(b, np.floor_divide, operands), emit(b, np.remainder, operands))
    if ufunc.nout != 1:
        raise CannotCapture("unknown-function", f"{ufunc.__name__} has several results")
    return emit(b, ufunc, operands, dtype)


def fold(ufunc: np.ufunc, args: Sequence[Any], dtype: DType | None) -> Any:
    """A ufunc of numbers known now is a number known now, unless computing it warns."""
    try:
        with strict():
            result = ufunc(*args) if dtype is None else ufunc(*args, dtype=dtype)
    except Exception as error:
        raise CannotCapture("operation-raises", str(error)) from error
    return result


def emit(
    b: Builder,
    ufunc: np.ufunc,
    operands: Sequence[Traced | Weak],
    dtype: DType | None = None,
    *,
    scalar_op: bool = False,
) -> Traced:
    """One ufunc on prepared operands, of which at least one is traced.

    ``scalar_op`` says that Python's operator was used between scalars, where NumPy reports integer overflow.
    """
    dtypes = loop_dtypes(ufunc, operands, dtype)
    inputs, output = dtypes[: ufunc.nin], dtypes[ufunc.nin]
    name = _row(ufunc, inputs, output)
    if scalar_op:
        name = _scalar_row(name, ufunc, inputs)
    if name is None or (name == "multiply" and _is_rounded_twice(operands)):
        return _as_call(b, ufunc, operands, output, dtype)
    if ufunc in _COMPARISONS:
        _refuse_out_of_range(operands, inputs)
    mark = len(b.graph.nodes)
    nodes: list[Operand] = [
        cast(b, o, d) if isinstance(o, Traced) else weak_as(o, d) for o, d in zip(operands, inputs, strict=True)
    ]
    if not any(isinstance(o, Traced) for o in operands):
        nodes[0] = constant(b, inputs[0].type(nodes[0])).node
    node = _power(b, *nodes) if name == "pow" else b.op(name, *nodes)
    types = [o.type for o in operands if isinstance(o, Traced)]
    if not same_order(node.tensor, k_order(types, node.tensor.shape)):
        # A cast of a broadcast operand lies in another order than the operand that NumPy looks at.
        del b.graph.nodes[mark:]
        return _as_call(b, ufunc, operands, output, dtype)
    return Traced(node, scalar=not node.tensor.ndim)


def _is_rounded_twice(operands: Sequence[Traced | Weak]) -> bool:
    """Whether this may be a product of complex numbers in which NumPy does not fuse multiplication and addition.

    It does not where all strides are 0: of one element by one with another number of axes, or of another type.
    """
    types = [o.type for o in operands if isinstance(o, Traced) and o.type.dtype.kind == "c"]
    ranks, dtypes = {len(t.shape) for t in types} - {0}, {t.dtype for t in types}
    return (len(ranks) > 1 or len(dtypes) > 1) and all(_are_ones(t.shape) for t in types)


def _power(b: Builder, base: Operand, exponent: Operand) -> Node:
    """``power`` of floats, which NumPy's loop computes as a square root where one exponent, 0.5, is all elements'.

    That shows in the sign of a zero, and where the base is minus infinity.
    """
    power = b.op("pow", base, exponent)
    dtype = power.tensor.dtype

    def array(operand: Operand) -> Node:
        if isinstance(operand, Node) and isinstance(operand.type, TensorType):
            return operand
        zero = constant(b, dtype.type(-0.0)).node
        return b.op("add", operand, zero)  # a Python float; adding -0.0 changes nothing but its dtype

    shape = exponent.type.shape if isinstance(exponent, Node) and isinstance(exponent.type, TensorType) else ()
    of_base = base.type.shape if isinstance(base, Node) and isinstance(base.type, TensorType) else ()
    shapes = (of_base, shape) if _are_ones(power.tensor.shape) else ()
    if not _are_ones(shape) or not _takes_roots(dtype, *shapes):
        return power
    if exponent is not None and not isinstance(exponent, Node):
        return b.op("sqrt", array(base)) if exponent == 0.5 else power
    half = b.op("equal", array(exponent), 0.5)
    root = b.op("sqrt", b.op("where", half, array(base), 1.0))  # of no other bases, for it may warn
    return b.op("where", half, root, power)


def _are_ones(shape: Sequence[Size]) -> bool:
    return all(map(is_one, shape))


@lru_cache(maxsize=64)
def _takes_roots(dtype: DType, base: tuple[int, ...] = (), exponent: tuple[int, ...] = ()) -> bool:
    """Whether this NumPy has that loop, and takes it for these shapes: some versions do, for some dtypes."""
    return dtype.kind == "f" and bool(np.signbit(np.power(np.full(base, -0.0, dtype), np.full(exponent, 0.5, dtype))))


def _row(ufunc: np.ufunc, inputs: Sequence[DType], output: DType) -> str | None:
    """The row of the op table that is this loop, or None."""
    name = ROWS.get(ufunc)
    first = inputs[0]
    if ufunc is np.conjugate and first.kind == "c":
        name = "conj"
    if name is None or len(set(inputs)) != 1 or (first.kind == "c" and name not in ON_COMPLEX):
        return None
    if first == BOOL:
        name = _ON_BOOL.get(name, name)
    if first.kind not in "fc" and (name in _FLOATING or (first == BOOL and name in ("abs", "sign", "positive"))):
        return None
    probe = OPS[name].infer([TensorType(d, ()) for d in inputs], {})
    return name if probe.dtype == output else None


def _scalar_row(name: str | None, ufunc: np.ufunc, inputs: Sequence[DType]) -> str | None:
    """The row for Python's operator between scalars."""
    if len(set(inputs)) != 1:
        raise CannotCapture("unsupported-dtype", f"{ufunc.__name__} of scalars of different integer types")
    if inputs[0].kind == "c":  # products of scalars are not fused, and powers have an algorithm of their own
        return "scalar_pow" if ufunc is np.power else "scalar_multiply" if ufunc is np.multiply else name
    scalar = f"scalar_{name}"
    checked = scalar in OPS and (inputs[0].kind in "iu" or name in ("pow", "remainder", "floor_divide"))
    return scalar if checked else name


def _refuse_out_of_range(operands: Sequence[Traced | Weak], inputs: Sequence[DType]) -> None:
    for o, d in zip(operands, inputs, strict=True):
        if type(o) is int and d.kind in "iu" and not np.iinfo(d).min <= o <= np.iinfo(d).max:
            raise CannotCapture("unsupported-argument", f"{d} compared with {number_text(o)}, which does not fit")


def _as_call(
    b: Builder, ufunc: np.ufunc, operands: Sequence[Traced | Weak], output: DType, dtype: DType | None
) -> Traced:
    """The ufunc as one library call on the operands as they are."""
    if lookup(ufunc.__name__) is not ufunc:
        raise CannotCapture("unknown-function", f"a ufunc {ufunc.__name__} that is not NumPy's own")
    slots: list[Traced | TracedNumber] = []
    template: list[Any] = []
    for o in operands:
        if isinstance(o, Traced | TracedNumber):
            template.append(slot(len(slots), o))
            slots.append(o)
        else:
            template.append(o)
    types = [o.type for o in operands if isinstance(o, Traced)]
    shape = broadcast([t.shape for t in types])
    kwargs: dict[str, Any] = {} if dtype is None else {"dtype": dtype.name}
    for o, d in zip(operands, loop_dtypes(ufunc, operands, dtype), strict=False):
        if not isinstance(o, Traced | TracedNumber) and d.kind != "c":
            weak_as(o, d)  # refuses what would raise or warn
    type = TensorType(output, shape, k_order(types, shape))
    return call(b, f"numpy.{ufunc.__name__}", slots, type, *template, **kwargs)
