"""Elementwise functions that are not plain ufuncs: where, clip, round, diff and their relatives.

Input: arrays and numbers.
Output: pointwise nodes in NumPy's order of operations.
Why: they fuse like ufuncs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced, TracedNumber
from tcompile.frontends.numpy import ufuncs
from tcompile.frontends.numpy.registry import NO_VALUE, attribute, function, method, refuse_unless
from tcompile.frontends.numpy.values import (
    BOOL,
    Weak,
    array,
    axis_in,
    cast,
    constant,
    flag,
    integer,
    is_weak,
    kept_order,
    operand,
    require_c,
    same_order,
    strong,
    takes_dtype,
    weak_as,
)
from tcompile.graph import Node, Operand
from tcompile.graph.dtypes import DType
from tcompile.graph.ops import k_order
from tcompile.graph.sizes import SymInt
from tcompile.numpy_versions import ROUND_COPIES_INTEGERS


def _result_dtype(operands: list[Traced | Weak]) -> DType:
    """``np.result_type`` with weak Python numbers."""
    stand_ins: list[Any] = []
    for o in operands:
        if isinstance(o, Traced):
            stand_ins.append(o.type.dtype)
        elif type(o) is bool:
            stand_ins.append(BOOL)
        else:
            stand_ins.append(0.0 if isinstance(o, TracedNumber) else 0 if isinstance(o, SymInt) else type(o)(0))
    try:
        dtype = np.result_type(*stand_ins)
    except TypeError as error:
        raise CannotCapture("operation-raises", str(error)) from error
    if not takes_dtype(dtype):
        raise CannotCapture("unsupported-dtype", f"a result of dtype {dtype}")
    return dtype


def where(b: Builder, condition: Any, x: Any, y: Any) -> Traced:
    """``np.where`` with three arguments. The result is an array object even where it has no dimensions."""
    c = array(b, condition)
    branches = [operand(b, x), operand(b, y)]
    dtype = _result_dtype(branches)
    nodes: list[Operand] = [cast(b, o, dtype) if isinstance(o, Traced) else weak_as(o, dtype) for o in branches]
    if not any(isinstance(o, Traced) for o in branches):
        nodes[0] = _as_node(b, branches[0], dtype)
    node = b.op("where", cast(b, c, BOOL), *nodes)
    types = [o.type for o in (c, *branches) if isinstance(o, Traced)]
    if not same_order(node.tensor, k_order(types, node.tensor.shape)):
        raise CannotCapture("memory-order", "where casts a broadcast operand")
    return Traced(node)


def _as_node(b: Builder, value: Any, dtype: DType) -> Operand:
    if isinstance(value, TracedNumber | SymInt):
        return cast(b, strong(b, value), dtype)
    return constant(b, dtype.type(weak_as(value, dtype))).node


@method("clip")
def _clip(b: Builder, x: Traced, min: Any = None, max: Any = None, out: Any = None, dtype: Any = None) -> Traced:
    refuse_unless("clip", out=(out, (None,)), dtype=(dtype, (None,)))
    return clipped(b, x, min, max)


@function("clip")
def clip(
    b: Builder,
    a: Any,
    a_min: Any = NO_VALUE,
    a_max: Any = NO_VALUE,
    out: Any = None,
    *,
    min: Any = NO_VALUE,
    max: Any = NO_VALUE,
    dtype: Any = None,
) -> Traced:
    """``np.clip``."""
    refuse_unless("clip", out=(out, (None,)), dtype=(dtype, (None,)))
    if a_min is NO_VALUE and a_max is NO_VALUE:
        a_min, a_max = (None if v is NO_VALUE else v for v in (min, max))
    elif a_min is NO_VALUE or a_max is NO_VALUE or min is not NO_VALUE or max is not NO_VALUE:
        raise CannotCapture("operation-raises", "clip with one bound missing, or given twice")
    return clipped(b, array(b, a), a_min, a_max)


def clipped(b: Builder, x: Traced, low: Any, high: Any) -> Traced:
    """The maximum with the lower bound, then the minimum with the upper one."""
    if x.type.dtype.kind in "iu":
        # NumPy drops infinite bounds before it promotes.
        info = np.iinfo(x.type.dtype)
        low = None if type(low) is int and low <= info.min else low
        high = None if type(high) is int and high >= info.max else high
    if low is None and high is None:
        return ufuncs.emit(b, np.positive, [x])
    if low is None or high is None:
        other = operand(b, high if low is None else low)
        return ufuncs.emit(b, np.minimum if low is None else np.maximum, [x, other])
    operands = [x, operand(b, low), operand(b, high)]
    into = ufuncs.loop_dtypes(_CLIP, operands)[0]
    if into.kind not in "iuf":
        raise CannotCapture("unsupported-dtype", f"clip of {into}")
    nodes = [cast(b, o, into) if isinstance(o, Traced) else weak_as(o, into) for o in operands]
    node = b.op("clip", *nodes)
    types = [o.type for o in operands if isinstance(o, Traced)]
    if not same_order(node.tensor, k_order(types, node.tensor.shape)):
        raise CannotCapture("memory-order", "clip casts a broadcast operand")
    return Traced(node, scalar=not node.tensor.ndim)


_CLIP: np.ufunc = np._core.umath.clip  # type: ignore[attr-defined]


@function("round", "around")
@method("round")
def round_(b: Builder, a: Any, decimals: Any = 0, out: Any = None) -> Traced:
    """``np.round``, half to even."""
    refuse_unless("round", out=(out, (None,)))
    x = array(b, a)
    places = integer(decimals, "decimals")
    if not -(1 << 31) <= places < 1 << 31:
        raise CannotCapture("operation-raises", f"decimals={places} is too large")
    kind = x.type.dtype.kind
    if kind not in "iuf":
        raise CannotCapture("unsupported-dtype", f"iteration of {x.type.dtype}")
    if kind == "f" and places == 0:
        return ufuncs.emit(b, np.rint, [x])
    if kind in "iu" and places >= 0:
        if x.scalar:
            return x
        if not ROUND_COPIES_INTEGERS:
            return x if x.type.ndim else Traced(x.node, scalar=True)
        require_c("round", x)
        return Traced(b.op("copy_c", x.node), scalar=not x.type.ndim)
    raise CannotCapture("unsupported-argument", "round to this many decimals")


@function("diff")
def diff(b: Builder, a: Any, n: Any = 1, axis: Any = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE) -> Traced:
    """``np.diff``: slices, and their difference."""
    refuse_unless("diff", prepend=(prepend, (NO_VALUE,)), append=(append, (NO_VALUE,)))
    x = array(b, a)
    times = integer(n, "n")
    if not times and not isinstance(a, Traced):
        raise CannotCapture("unsupported-argument", "diff of no order, which gives the argument itself")
    if times < 0 or not x.type.ndim:
        raise CannotCapture("operation-raises", "diff requires an array of at least one dimension and n >= 0")
    place = axis_in(axis, x.type.ndim)
    lead = (slice(None),) * place
    for _ in range(times):
        ahead = Traced(b.op("index", x.node, key=(*lead, slice(1, None))))
        after = Traced(b.op("index", x.node, key=(*lead, slice(None, -1))))
        x = ufuncs.emit(b, np.not_equal if x.type.dtype == BOOL else np.subtract, [ahead, after])
    return x


@function("nan_to_num")
def nan_to_num(b: Builder, x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Traced:
    """``np.nan_to_num``: selections."""
    value = array(b, x)
    numbers = all(v is None or type(v) in (int, float) for v in (nan, posinf, neginf)) and nan is not None
    if type(copy) is not bool or not numbers or value.type.dtype.name not in ("float32", "float64"):
        raise CannotCapture("unsupported-argument", "nan_to_num of these values")
    if not copy and (not isinstance(x, Traced) or not x.type.ndim):
        raise CannotCapture("unsupported-argument", "nan_to_num of a number in place")
    dtype = value.type.dtype
    most = float(np.finfo(dtype).max)
    high, low = (weak_as(v, dtype) for v in (most if posinf is None else posinf, -most if neginf is None else neginf))
    node = b.op("where", b.op("equal", value.node, -np.inf), low, value.node)
    node = b.op("where", b.op("equal", value.node, np.inf), high, node)
    node = b.op("where", b.op("isnan", value.node), weak_as(nan, dtype), node)
    if not same_order(node.tensor, kept_order(value.type)):
        raise CannotCapture("memory-order", "nan_to_num of a broadcast array")
    return Traced(node, scalar=not node.tensor.ndim) if copy else b.write(value, node)


def _infinite(name: str, wanted: float) -> None:
    @function(name)
    def handler(b: Builder, x: Any, out: Any = None) -> Traced:
        """A comparison with infinity."""
        refuse_unless(name, out=(out, (None,)))
        value = array(b, x)
        if value.type.dtype.kind != "f":
            raise CannotCapture("unsupported-dtype", f"{name} of {value.type.dtype}")
        return ufuncs.emit(b, np.equal, [value, wanted])


_infinite("isposinf", np.inf)
_infinite("isneginf", -np.inf)


@function("angle")
def angle(b: Builder, z: Any, deg: Any = False) -> Traced:
    """``np.angle``: the arctangent of both parts."""
    x = array(b, z)
    if x.type.dtype.kind == "c":
        result = ufuncs.emit(b, np.arctan2, [imag(b, x), real(b, x)])
    else:
        result = ufuncs.emit(b, np.arctan2, [0, x])
    return ufuncs.emit(b, np.multiply, [result, 180 / np.pi]) if flag(deg, "deg") else result


@function("select")
def select(b: Builder, condlist: Any, choicelist: Any, default: Any = 0) -> Traced:
    """``np.select``: one selection inside the other, the first condition outermost."""
    lists = all(isinstance(part, list | tuple) for part in (condlist, choicelist))
    if not lists or not condlist or len(condlist) != len(choicelist):
        raise CannotCapture("unsupported-argument", "select of these lists")
    conditions = [array(b, c) for c in condlist]
    if any(c.type.dtype != BOOL for c in conditions):
        raise CannotCapture("operation-raises", "invalid entry in condlist: should be boolean ndarray")
    if any(isinstance(c, TracedNumber | SymInt) for c in (*choicelist, default)):
        raise CannotCapture("unsupported-argument", "select of a number that is known at run time only")
    choices: list[Any] = [
        c if type(c) in (int, float) else array(b, c) for c in (*choicelist, default)
    ]  # bools and lists become arrays, which is what decides the dtype
    dtype = _result_dtype(choices)
    if not all(np.can_cast(np.asarray(c).dtype, dtype, "same_kind") for c in choices[:-1] if not isinstance(c, Traced)):
        raise CannotCapture("operation-raises", f"select cannot cast a choice to {dtype}")
    if dtype.kind == "c":
        raise CannotCapture("unsupported-dtype", f"select of {dtype}")
    nodes: list[Operand] = [cast(b, c, dtype) if isinstance(c, Traced) else weak_as(c, dtype) for c in choices]
    result = nodes[-1]
    for condition, node in reversed(list(zip(conditions, nodes[:-1], strict=True))):
        if not isinstance(result, Node) and not isinstance(node, Node):
            result = constant(b, dtype.type(result)).node
        result = b.op("where", condition.node, node, result)
    assert isinstance(result, Node)
    if not result.tensor.c_contiguous:
        raise CannotCapture("memory-order", "select makes an array in C order")
    return Traced(result)


@attribute("real")
def real(b: Builder, x: Traced) -> Traced:
    """``x.real``: a real array itself."""
    if x.type.dtype.kind == "c":
        return _part(b, x, "real")
    return x


@attribute("imag")
def imag(b: Builder, x: Traced) -> Traced:
    """``x.imag`` of complex numbers; of real ones it is a read-only array of zeros."""
    if x.type.dtype.kind == "c":
        return _part(b, x, "imag")
    raise CannotCapture("unsupported-argument", "the imaginary part of real numbers is a read-only array")


def _part(b: Builder, x: Traced, name: str) -> Traced:
    return Traced(b.op(name, x.node), scalar=x.scalar)


def _of_number(number: Weak, part: str) -> Any:
    """Returns the attribute of a Python number itself."""
    if isinstance(number, SymInt | TracedNumber):
        raise CannotCapture("unsupported-argument", f"np.{part} of a Python number that varies")
    return getattr(number, part)


@function("real")
def _real(b: Builder, val: Any) -> Any:
    return _of_number(val, "real") if is_weak(val) else real(b, array(b, val))


@function("imag")
def _imag(b: Builder, val: Any) -> Any:
    return _of_number(val, "imag") if is_weak(val) else imag(b, array(b, val))


@method("conj", "conjugate")
def conj(b: Builder, x: Traced) -> Traced:
    """``x.conj()``: a real array itself."""
    return ufuncs.emit(b, np.conjugate, [x]) if x.type.dtype.kind == "c" else x


@function("isrealobj")
def isrealobj(b: Builder, x: Any) -> bool:
    """``np.isrealobj``."""
    return array(b, x).type.dtype.kind != "c"


@function("iscomplexobj")
def iscomplexobj(b: Builder, x: Any) -> bool:
    """``np.iscomplexobj``."""
    return array(b, x).type.dtype.kind == "c"


@function("meshgrid", opaque=True)
def meshgrid(b: Builder, *xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> tuple[Traced, ...]:
    """``np.meshgrid``: each coordinate broadcast over the grid."""
    if indexing not in ("xy", "ij"):
        raise CannotCapture("operation-raises", "meshgrid: indexing is 'xy' or 'ij'")
    refuse_unless("meshgrid", copy=(copy, (True,)), sparse=(sparse, (False,)))
    parts = [array(b, x) for x in xi]
    if any(p.type.ndim != 1 for p in parts):
        raise CannotCapture("unsupported-argument", "meshgrid of arrays that are not one-dimensional")
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(parts[i].type.shape[0] for i in order)
    results = []
    for place, part in enumerate(parts):
        axis = order.index(place)
        lying = tuple(part.type.shape[0] if i == axis else 1 for i in range(len(parts)))
        spread = b.op("broadcast_to", b.op("reshape", part.node, shape=lying), shape=shape)
        results.append(Traced(b.op("copy_c", spread)))
    return tuple(results)
