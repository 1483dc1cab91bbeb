"""Creation of arrays, and copies.

Input: shapes, dtypes and plain numbers.
Output: creation nodes, ``copy`` nodes, or the same value if NumPy returns its argument.
Why: fresh arrays with known contents fuse into their consumers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Stacked, Traced, TracedNumber
from tcompile.frontends.numpy.registry import function, method, refuse_unless
from tcompile.frontends.numpy.shape import reshape_to, transpose
from tcompile.frontends.numpy.values import (
    FLOAT,
    array,
    call,
    cast,
    certainly_not_c,
    dtype_of,
    flag,
    integer,
    is_weak,
    kept_order,
    nested,
    new_shape,
    refuse_list,
    stacked,
    standin_dtype,
    strong,
    takes_dtype,
)
from tcompile.graph import Layout, TensorType
from tcompile.graph.dtypes import DType
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.sizes import Size, SymInt, guarded_one, hint, is_one
from tcompile.numpy_versions import TYPES_KEEP_ONE_ELEMENT
from tcompile.strict import strict

_LIKE = {"like": (None,), "device": (None, "cpu")}


def _plain(name: str, like: Any, device: Any, subok: Any = True) -> None:
    refuse_unless(name, like=(like, _LIKE["like"]), device=(device, _LIKE["device"]), subok=(subok, (True, False)))


def _full(b: Builder, shape: tuple[Size, ...], value: Any, dtype: DType) -> Traced:
    return Traced(b.op("full", shape=shape, fill_value=value, dtype=dtype.name))


def _value_of(value: int, dtype: DType) -> Any:
    return dtype.type(value).item()


def _constant_array(b: Builder, name: str, value: int, shape: Any, dtype: Any, order: Any) -> Traced:
    sizes, into = new_shape(shape), dtype_of(float if dtype is None else dtype)
    if order == "F" and len(sizes) > 1:
        layout = Layout.of_order(tuple(range(len(sizes)))[::-1])
        return call(b, f"numpy.{name}", [], TensorType(into, sizes, layout), sizes, into.name, "F", scalar=False)
    refuse_unless(name, order=(order, ("C", "F")))
    return _full(b, sizes, _value_of(value, into), into)


@function("zeros")
def zeros(
    b: Builder, shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Traced:
    """``np.zeros``."""
    _plain("zeros", like, device)
    return _constant_array(b, "zeros", 0, shape, dtype, order)


@function("ones")
def ones(
    b: Builder, shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Traced:
    """``np.ones``."""
    _plain("ones", like, device)
    return _constant_array(b, "ones", 1, shape, dtype, order)


def _filled(b: Builder, type: TensorType, value: Any, dtype: DType) -> Traced:
    """An array of ``type``'s shape and memory order, every element ``value``."""
    if isinstance(value, np.generic):
        if not np.can_cast(value.dtype, dtype, "same_kind"):
            raise CannotCapture("unsupported-argument", f"a fill value of {value.dtype} in an array of {dtype}")
        value = value.item()
    if isinstance(value, SymInt) and dtype.kind in "iu":
        info = np.iinfo(dtype)
        if not info.min <= value <= info.max:  # a Python int that does not fit raises, where an array would wrap
            raise CannotCapture("operation-raises", f"the Python int {value.hint} does not fit {dtype}")
    if is_weak(value) and not isinstance(value, TracedNumber | SymInt):
        try:
            with strict():
                value = np.full((), value, dtype).item()
        except Exception as error:
            raise CannotCapture("operation-raises", str(error)) from error
    elif not isinstance(value, SymInt) or dtype != np.dtype("int64"):
        return _filled_at_run_time(b, type, value, dtype)
    if type.c_contiguous:
        return _full(b, type.shape, value, dtype)
    return call(b, "numpy.full", [], TensorType(dtype, type.shape, type.layout), type.shape, value, dtype.name, "F")


def _filled_at_run_time(b: Builder, type: TensorType, value: Any, dtype: DType) -> Traced:
    x = strong(b, value) if is_weak(value) else array(b, value)
    if x.type.ndim or x.type.dtype.kind == "c" != dtype.kind or not type.c_contiguous:
        raise CannotCapture("unsupported-argument", "an array filled with another array")
    return call(b, "numpy.full", [x], TensorType(dtype, type.shape), type.shape, Slot(0), dtype.name, scalar=False)


@function("full")
def full(
    b: Builder,
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Traced:
    """``np.full``."""
    _plain("full", like, device)
    refuse_unless("full", order=(order, ("C",)))
    if dtype is None:
        if isinstance(fill_value, Traced | TracedNumber | SymInt | list | tuple):
            fill_value = array(b, fill_value)
            into = fill_value.type.dtype
        else:
            into = standin_dtype(np.asarray, fill_value)
    else:
        into = dtype_of(dtype)
    return _filled(b, TensorType(into, new_shape(shape)), fill_value, into)


def _like(name: str, prototype: Any, b: Builder, dtype: Any, order: Any, shape: Any) -> tuple[TensorType, DType]:
    x = array(b, prototype)
    refuse_unless(name, order=(order, ("K", "C")), shape=(shape, (None,)))
    into = x.type.dtype if dtype is None else dtype_of(dtype)
    layout = kept_order(x.type) if order == "K" else Layout.c(x.type.ndim)
    type = TensorType(into, x.type.shape, layout)
    kept = [i for i in layout.order if not is_one(x.type.shape[i])]
    if kept != sorted(kept) and kept != sorted(kept, reverse=True):
        raise CannotCapture("memory-order", f"{name} of an array in neither C nor F order")
    return type, into


def _constant_like(b: Builder, name: str, value: int, a: Any, dtype: Any, order: Any, shape: Any) -> Traced:
    type, into = _like(name, a, b, dtype, order, shape)
    return _filled(b, type, _value_of(value, into), into)


@function("zeros_like")
def zeros_like(
    b: Builder,
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Traced:
    """``np.zeros_like``."""
    _plain("zeros_like", None, device, subok)
    return _constant_like(b, "zeros_like", 0, a, dtype, order, shape)


@function("ones_like")
def ones_like(
    b: Builder,
    a: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Traced:
    """``np.ones_like``."""
    _plain("ones_like", None, device, subok)
    return _constant_like(b, "ones_like", 1, a, dtype, order, shape)


@function("full_like")
def full_like(
    b: Builder,
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Traced:
    """``np.full_like``."""
    _plain("full_like", None, device, subok)
    type, into = _like("full_like", a, b, dtype, order, shape)
    return _filled(b, type, fill_value, into)


@function("empty")
def empty(
    b: Builder, shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Traced:
    """Builds ``np.empty``: its contents are undefined, and here they are zeros."""
    return zeros(b, shape, dtype, order, device=device, like=like)


@function("ndarray")
def ndarray(
    b: Builder,
    shape: Any,
    dtype: Any = float,
    buffer: Any = None,
    offset: Any = 0,
    strides: Any = None,
    order: Any = None,
) -> Traced:
    """Builds ``np.ndarray`` of only a shape, which is ``np.empty``."""
    refuse_unless("ndarray", buffer=(buffer, (None,)), offset=(offset, (0,)), strides=(strides, (None,)))
    return zeros(b, shape, dtype, "C" if order is None else order)


@function("empty_like")
def empty_like(
    b: Builder,
    prototype: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Traced:
    """Builds ``np.empty_like``: its contents are undefined, and here they are zeros."""
    return zeros_like(b, prototype, dtype, order, subok, shape, device=device)


@function("arange")
def arange(b: Builder, *bounds: Any, dtype: Any = None, device: Any = None, like: Any = None, **named: Any) -> Traced:
    """``np.arange`` of plain numbers."""
    _plain("arange", like, device)
    args = list(bounds)
    if len(args) == 4 and dtype is None:
        dtype = args.pop()
    if named or not 1 <= len(args) <= 3:
        named.setdefault("step", None)
        taken = {"stop", "step"} if args else {"start", "stop", "step"}
        if set(named) - taken or len(args) > 1 or "stop" not in named:
            raise CannotCapture("unsupported-argument", "arange called in an unusual way")
        args = [
            *(args or [named.get("start", 0)]),
            named["stop"],
            1 if named["step"] is None else named["step"],
        ]
    if len(args) == 1:
        args = [0, args[0]]
    if len(args) == 2:
        args.append(1)
    if not all(type(a) in (int, float) or isinstance(a, SymInt) for a in args):
        raise CannotCapture("unsupported-argument", "arange of numbers that are not plain ints or floats")
    start, stop, step = args
    if isinstance(step, SymInt):
        step = step.specialise()
    if step == 0:
        raise CannotCapture("operation-raises", "arange with a step of zero")
    symbolic = any(isinstance(a, SymInt) for a in (start, stop))
    if any(type(a) is float for a in args):
        if symbolic:
            start, stop = (a.specialise() if isinstance(a, SymInt) else a for a in (start, stop))
        if not all(np.isfinite(a) for a in (start, stop, step)):
            raise CannotCapture("operation-raises", "arange: a bound is not finite")
    if dtype is None:
        numbers = [hint(a) if isinstance(a, SymInt) else a for a in args]
        # Arrays without elements, so that each number takes part in promotion.
        into = np.result_type(*(standin_dtype(np.arange, a, a, step) for a in numbers))
    else:
        into = dtype_of(dtype)
        if into.kind not in "iuf" or (into.kind in "iu" and not all(isinstance(a, int | SymInt) for a in args)):
            raise CannotCapture("unsupported-argument", f"arange of these numbers as {into}")
        info = np.iinfo(into) if into.kind in "iu" else None
        if info and (
            (symbolic and into != np.dtype("int64"))
            or any(not info.min <= a <= info.max for a in args if not isinstance(a, SymInt))
        ):
            raise CannotCapture("unsupported-argument", f"arange of these numbers as {into}")
    if not symbolic and abs(stop - start) > 2**50 * abs(step):
        raise CannotCapture("operation-raises", "arange: too many elements")
    return Traced(b.op("arange", start=start, stop=stop, step=step, dtype=into.name))


@function("linspace")
def linspace(
    b: Builder,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Traced:
    """``np.linspace`` between plain numbers."""
    _plain("linspace", None, device)
    refuse_unless("linspace", retstep=(retstep, (False,)), axis=(axis, (0, -1)))
    if type(start) not in (int, float) or type(stop) not in (int, float):
        raise CannotCapture("unsupported-argument", "linspace between values that are not plain numbers")
    count = num if isinstance(num, SymInt) else integer(num, "num")
    if count < 0:
        raise CannotCapture("operation-raises", "linspace: a negative number of samples")
    into = np.dtype("float64") if dtype is None else dtype_of(dtype)
    if into.kind not in "iuf" or not np.isfinite(float(start) - float(stop)):
        raise CannotCapture("unsupported-argument", f"linspace of these numbers as {into}")
    ends = flag(endpoint, "endpoint")
    made = b.op("linspace", start=start, stop=stop, num=count, endpoint=ends, dtype=into.name)
    # NumPy's result is a view if only a step is multiplied in: not after a cast, nor with a zero step.
    steps = count - 1 if ends else count
    shown = into == np.dtype("float64") and start != stop and bool(steps > 0)
    return Traced(b.whole_view(made) if shown and (float(stop) - float(start)) / hint(steps) else made)


@function("eye")
def eye(
    b: Builder,
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Traced:
    """``np.eye``."""
    _plain("eye", like, device)
    refuse_unless("eye", order=(order, ("C",)))
    rows, columns = new_shape((N, N if M is None else M))
    into = dtype_of(float if dtype is None else dtype)
    return Traced(b.op("eye", n_rows=rows, n_cols=columns, k=integer(k, "k"), dtype=into.name))


@function("diag_indices")
def diag_indices(b: Builder, n: Any, ndim: Any = 2) -> tuple[Traced, ...]:
    """Returns one array, once for each dimension."""
    if not isinstance(n, int | SymInt):
        raise CannotCapture("unsupported-argument", "diag_indices of something else than an int")
    return (arange(b, n),) * integer(ndim, "ndim")


@function("diag_indices_from")
def diag_indices_from(b: Builder, arr: Any) -> tuple[Traced, ...]:
    """``np.diag_indices_from``."""
    refuse_list(arr)
    type = array(b, arr).type
    if type.ndim < 2 or any(not n == type.shape[0] for n in type.shape):
        raise CannotCapture("operation-raises", "All dimensions of input must be of equal length")
    return diag_indices(b, type.shape[0], type.ndim)


@function("identity")
def identity(b: Builder, n: Any, dtype: Any = None, *, like: Any = None) -> Traced:
    """``np.identity``."""
    refuse_unless("identity", like=(like, (None,)))
    return eye(b, n, dtype=dtype)


# -- arrays from given ones ----------------------------------------------------------------------------------


def _converted(b: Builder, x: Traced, dtype: Any, copy: bool) -> Traced:
    """Returns ``x`` as an array of ``dtype`` in K order: itself if nothing changes."""
    into = x.type.dtype if dtype is None else dtype_of(dtype)
    if x.type.dtype.kind == "c" and into.kind not in "c":
        raise CannotCapture("unsupported-argument", "complex numbers converted to real ones")
    if into == x.type.dtype:
        return Traced(b.op("copy", x.node)) if copy or x.scalar else x
    return Traced(cast(b, x, into))


def _from_python(b: Builder, value: Any, dtype: Any) -> Traced:
    """A new array from lists and Python numbers, each converted to ``dtype`` by itself."""
    return nested(b, value, None if dtype is None else dtype_of(dtype))


def _array(b: Builder, name: str, a: Any, dtype: Any, copy: bool, order: Any, like: Any, device: Any = None) -> Traced:
    _plain(name, like, device)
    if isinstance(a, list | tuple):
        refuse_unless(name, order=(order, ("K", "C", "A", None)))
        return _from_python(b, a, dtype)
    if isinstance(a, Stacked):
        made = stacked(b, a)
        refuse_unless(name, order=(order, ("K", "C", "A", None)))
        if dtype is not None and dtype_of(dtype) != made.type.dtype:
            raise CannotCapture("unsupported-argument", f"{name} of a list with dtype=")
        return made
    refuse_unless(
        name,
        order=(
            order,
            ("K", "A", None) if isinstance(a, Traced) and a.type.ndim > 1 else ("K", "C", "A", "F", None),
        ),
    )
    if isinstance(a, Traced):
        if (order == "A" or (order in ("C", "F") and not copy)) and not a.type.c_contiguous:
            raise CannotCapture("memory-order", f"{name} with order={order!r}")
        return _converted(b, a, dtype, copy)
    if isinstance(a, np.generic) or dtype is None:
        return _converted(b, strong(b, a), dtype, True)
    if isinstance(a, TracedNumber | SymInt):
        into = dtype_of(dtype)
        if into.kind != "f" and not (into == np.dtype("int64") and isinstance(a, SymInt)):
            raise CannotCapture("unsupported-argument", f"{name} of a Python number as {into}")
        return _converted(b, strong(b, a), into, True)
    into = dtype_of(dtype)
    return _filled(b, TensorType(into, ()), a, into)


@function("array")
def array_(
    b: Builder,
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: Any = False,
    ndmin: Any = 0,
    like: Any = None,
    ndmax: Any = 0,
) -> Traced:
    """``np.array``."""
    refuse_unless("array", copy=(copy, (True, None)), ndmin=(ndmin, (0,)), ndmax=(ndmax, (0, 64)))
    return _array(b, "array", object, dtype, copy is True, order, like)


@function("asarray", "asanyarray")
def asarray(
    b: Builder,
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Traced:
    """``np.asarray``: an array itself where dtype and order fit."""
    refuse_unless("asarray", copy=(copy, (None, True)))
    if order == "C" and isinstance(a, Traced) and a.type.c_contiguous:
        order = None
    return _array(b, "asarray", a, dtype, copy is True, order, like, device)


@function("ascontiguousarray")
def ascontiguousarray(b: Builder, a: Any, dtype: Any = None, *, like: Any = None) -> Traced:
    """Builds ``np.ascontiguousarray``: the array itself if it is in C order and has a dimension."""
    refuse_unless("ascontiguousarray", like=(like, (None,)))
    x = a if isinstance(a, Traced) else _array(b, "ascontiguousarray", a, dtype, False, None, None)
    x = _converted(b, x, dtype, False)
    if not x.type.ndim:
        return reshape_to(b, x, (1,))
    if x.type.c_contiguous or any(type(n) is int and n == 0 for n in x.type.shape):  # then whatever the strides
        return x
    if not certainly_not_c(x.node):
        raise CannotCapture("memory-order", "ascontiguousarray of a view whose strides are not known")
    return Traced(b.op("copy_c", x.node))


@function("asfortranarray")
def asfortranarray(b: Builder, a: Any, dtype: Any = None, *, like: Any = None) -> Traced:
    """``np.asfortranarray``: the array itself where it is in F order."""
    refuse_unless("asfortranarray", like=(like, (None,)))
    same = isinstance(a, Traced) and not a.scalar and (dtype is None or dtype_of(dtype) == a.type.dtype)
    if not same or not a.type.ndim or not transpose(b, a).type.c_contiguous:
        raise CannotCapture("unsupported-argument", "asfortranarray makes a copy")
    return a  # type: ignore[no-any-return]


@function("copy")
def copy_(b: Builder, a: Any, order: Any = "K", subok: Any = False) -> Traced:
    """``np.copy``: memory order kept."""
    refuse_unless("copy", order=(order, ("K", "C")))
    x = array(b, a)
    if order == "C" or x.type.ndim < 2:
        return Traced(b.op("copy_c", x.node))
    return Traced(b.op("copy", x.node))


@method("__copy__")
def _kept(b: Builder, x: Traced) -> Traced:
    """``copy.copy(x)``: memory order kept."""
    return x if x.scalar else Traced(b.op("copy", x.node))


@method("copy")
def _copy(b: Builder, x: Traced, order: Any = "C") -> Traced:
    """``x.copy()``: in C order."""
    refuse_unless("copy", order=(order, ("C", "K", "F", "A") if x.scalar else ("C", "K")))
    if x.scalar:
        return x
    return Traced(b.op("copy_c" if order == "C" else "copy", x.node))


@method("astype")
def astype(
    b: Builder,
    x: Traced,
    dtype: Any,
    order: Any = "K",
    casting: Any = "unsafe",
    subok: Any = True,
    copy: Any = True,
) -> Traced:
    """``x.astype(dtype)``."""
    into = dtype_of(dtype)
    refuse_unless("astype", order=(order, ("K",)), subok=(subok, (True, False)))
    if casting not in ("unsafe", "safe", "same_kind") or not np.can_cast(x.type.dtype, into, casting):
        raise CannotCapture("operation-raises", f"cannot cast from {x.type.dtype} to {into} by {casting}")
    if x.scalar and into == x.type.dtype:
        return x
    result = _converted(b, x, into, flag(copy, "copy"))
    return Traced(result.node, scalar=True) if x.scalar else result


@function("astype")
def _astype(b: Builder, x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Traced:
    _plain("astype", None, device)
    if not isinstance(x, Traced | np.generic):
        raise CannotCapture("operation-raises", "np.astype of what is no array")
    return astype(b, array(b, x), dtype, copy=copy)


def scalar_type(b: Builder, type: type[np.generic], args: Any) -> Any:
    """``np.float32(x)``: a scalar of what has no dimensions, else an array."""
    dtype = np.dtype(type)
    if not takes_dtype(dtype) or len(args) > 1:
        raise CannotCapture("unsupported-dtype", f"{type.__name__} of {len(args)} arguments")
    if not args or not isinstance(args[0], Traced | TracedNumber | SymInt | list | tuple):
        try:
            with strict():
                return type(*args)
        except Exception as error:
            raise CannotCapture("operation-raises", str(error)) from error
    if isinstance(args[0], TracedNumber) and dtype.kind != "f":
        raise CannotCapture("unsupported-argument", f"{type.__name__} of a Python float known at run time only")
    if isinstance(args[0], SymInt) and dtype.kind != "f" and dtype != np.dtype("int64"):
        raise CannotCapture("unsupported-argument", f"{type.__name__} of a Python int known at run time only")
    x = array(b, args[0])
    if not x.type.ndim and x.type.dtype == dtype:
        return Traced(x.node, scalar=True)
    if x.type.ndim and not TYPES_KEEP_ONE_ELEMENT and dtype == FLOAT and all(map(guarded_one, x.type.shape)):
        raise CannotCapture("operation-raises", f"{type.__name__} of an array of one element warns")
    result = _converted(b, x, dtype, False)
    return result if result.type.ndim else Traced(result.node, scalar=True)
