"""Shape and order of axes: functions that NumPy answers with a view, or with a plain copy.

Input: an array and plain arguments.
Output: view ops exactly where NumPy returns a view, copies where it copies, and the same ``Traced`` where it returns
the same object.
Why: aliasing must be NumPy's.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy.registry import NO_VALUE, attribute, function, method, refuse_unless
from tcompile.frontends.numpy.values import (
    array,
    array_object,
    as_ndarray,
    axes_in,
    axis_in,
    broadcast,
    call,
    diagonal_in,
    integer,
    new_shape,
    refuse_list,
    shape_in,
    sizes_equal,
)
from tcompile.graph import TensorType
from tcompile.graph.sizes import Size, SymInt, product

MOST_PIECES = 256  # the maximum number of pieces of an array in a graph


def view(b: Builder, x: Traced) -> Traced:
    """A new array object over all of ``x``."""
    return Traced(b.op("index", x.node, key=(Ellipsis,)))


def reshape_to(b: Builder, x: Traced, shape: tuple[Size, ...]) -> Traced:
    """Returns ``x.reshape(shape)`` with -1 resolved."""
    shape = tuple(n.specialise() if isinstance(n, SymInt) and n < 0 else n for n in shape)
    unknown = [i for i, n in enumerate(shape) if isinstance(n, int) and n == -1]
    if len(unknown) > 1 or any(isinstance(n, int) and n < -1 for n in shape):
        raise CannotCapture("operation-raises", "can only specify one unknown dimension")
    if unknown:
        known = product(n for i, n in enumerate(shape) if i != unknown[0])
        if known == 0:
            raise CannotCapture("operation-raises", "cannot work out a dimension beside one of size zero")
        size = x.type.size // known
        shape = (*shape[: unknown[0]], size, *shape[unknown[0] + 1 :])
    if not sizes_equal(product(shape), x.type.size):
        raise CannotCapture("operation-raises", f"cannot reshape {x.type} into {shape}")
    try:
        node = b.op("reshape", x.node, shape=shape)
    except CannotCapture as error:
        raise CannotCapture("memory-order", error.detail) from error
    return Traced(node, scalar=x.scalar and not shape)


def flat(b: Builder, x: Traced) -> Traced:
    """A new one-dimensional array of the elements in C order."""
    if x.type.c_contiguous:
        return Traced(b.op("copy", b.op("reshape", x.node, shape=(x.type.size,))))
    return call(b, "numpy.ndarray.flatten", [x], TensorType(x.type.dtype, (x.type.size,)))


@function("reshape")
def reshape(
    b: Builder, a: Any, /, shape: Any = None, order: Any = "C", *, newshape: Any = None, copy: Any = None
) -> Traced:
    """``np.reshape``."""
    refuse_unless("reshape", copy=(copy, (None,)), newshape=(newshape, (None,)))
    if shape is None:
        raise CannotCapture("operation-raises", "reshape without a shape")
    return _reshaped(b, array_object(b, a), shape_in(shape), order)


def _reshaped(b: Builder, x: Traced, shape: tuple[Size, ...], order: Any) -> Traced:
    """``x.reshape(shape, order)``: in F order it is the reshape of the transposed array, transposed."""
    x = as_ndarray(b, x) if shape else x  # a scalar does not alias the array that it came from
    if order == "F" and (x.type.ndim > 1 or len(shape) > 1):
        return transpose(b, reshape_to(b, transpose(b, x), shape[::-1]))
    refuse_unless("reshape", order=(order, ("C", "F")))
    return reshape_to(b, x, shape)


@method("reshape")
def _reshape(b: Builder, x: Traced, /, *shape: Any, order: Any = "C", copy: Any = None) -> Traced:
    refuse_unless("reshape", copy=(copy, (None,)))
    if not shape or shape[0] is None:
        raise CannotCapture("operation-raises", "reshape without a shape")
    return _reshaped(b, x, shape_in(shape[0] if len(shape) == 1 else shape), order)


@function("ravel")
@method("ravel")
def ravel(b: Builder, a: Any, order: Any = "C") -> Traced:
    """``np.ravel``: a view of what is in C order, else a copy."""
    x = _in_order(b, "ravel", as_ndarray(b, array(b, a)), order)
    if x.type.c_contiguous:
        return reshape_to(b, x, (x.type.size,))
    return Traced(b.op("ravel", x.node))  # NumPy decides by the strides, of which the type may know less


def row_of(b: Builder, x: Traced) -> Traced:
    """Returns the elements in C order, for readers only: a row is returned unchanged."""
    return x if x.type.ndim == 1 else ravel(b, x)


def _in_order(b: Builder, name: str, x: Traced, order: Any) -> Traced:
    """The array whose elements in C order are those of ``x`` in ``order``."""
    if x.type.c_contiguous and order in ("A", "K"):
        order = "C"
    refuse_unless(name, order=(order, ("C", "F")))
    return transpose(b, x) if order == "F" else x


@method("flatten")
def flatten(b: Builder, x: Traced, order: Any = "C") -> Traced:
    """``x.flatten()``: always a copy."""
    return flat(b, _in_order(b, "flatten", x, order))


def _permuted(b: Builder, x: Traced, axes: tuple[int, ...]) -> Traced:
    if x.scalar:
        return x
    return Traced(b.op("permute_dims", x.node, axes=axes))


def _permutation(axes: Any, ndim: int) -> tuple[int, ...]:
    if isinstance(axes, Traced):
        raise CannotCapture("unsupported-argument", "an array as the order of axes")
    found = tuple(axis_in(a, ndim) for a in (axes if isinstance(axes, tuple | list) else (axes,)))
    if sorted(found) != list(range(ndim)):
        raise CannotCapture("operation-raises", "axes don't match array")
    return found


@function("transpose", "permute_dims")
def transpose(b: Builder, a: Any, axes: Any = None) -> Traced:
    """``np.transpose``."""
    x = array_object(b, a)
    return _permuted(b, x, tuple(range(x.type.ndim))[::-1] if axes is None else _permutation(axes, x.type.ndim))


@method("transpose")
def _transpose(b: Builder, x: Traced, *axes: Any) -> Traced:
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)):
        return transpose(b, x, axes[0])
    return transpose(b, x, axes or None)


@attribute("T")
def transposed(b: Builder, x: Traced) -> Traced:
    """``x.T``."""
    return transpose(b, x)


@attribute("mT")
def matrix_transposed(b: Builder, x: Traced) -> Traced:
    """``x.mT``."""
    if x.type.ndim < 2:
        raise CannotCapture("operation-raises", "mT of fewer than two dimensions")
    return swapaxes(b, x, -1, -2)


@function("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(b: Builder, x: Any, /) -> Traced:
    return matrix_transposed(b, array(b, x))


@function("swapaxes")
@method("swapaxes")
def swapaxes(b: Builder, a: Any, axis1: Any, axis2: Any) -> Traced:
    """``np.swapaxes``."""
    x = array(b, a)
    i, j = axis_in(axis1, x.type.ndim), axis_in(axis2, x.type.ndim)
    axes = list(range(x.type.ndim))
    axes[i], axes[j] = axes[j], axes[i]
    return _permuted(b, x, tuple(axes))


@function("moveaxis")
def moveaxis(b: Builder, a: Any, source: Any, destination: Any) -> Traced:
    """``np.moveaxis``."""
    x = array_object(b, a)
    ndim = x.type.ndim
    sources, targets = (
        [axis_in(i, ndim) for i in (s if isinstance(s, tuple | list) else (s,))] for s in (source, destination)
    )
    distinct = len(set(sources)) == len(sources) and len(set(targets)) == len(targets)
    if len(sources) != len(targets) or not distinct:
        raise CannotCapture("operation-raises", "moveaxis: source and destination do not fit")
    order = [i for i in range(ndim) if i not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return _permuted(b, x, tuple(order))


@function("rollaxis")
def rollaxis(b: Builder, a: Any, axis: Any, start: Any = 0) -> Traced:
    """``np.rollaxis``."""
    refuse_list(a)
    x = array(b, a)
    ndim = x.type.ndim
    origin, to = axis_in(axis, ndim), integer(start, "start")
    to = to + ndim if to < 0 else to
    if not 0 <= to <= ndim:
        raise CannotCapture("operation-raises", "rollaxis: start is out of range")
    to = to - 1 if origin < to else to
    if origin == to:
        return view(b, x)
    order = [i for i in range(ndim) if i != origin]
    order.insert(to, origin)
    return _permuted(b, x, tuple(order))


@function("squeeze")
@method("squeeze")
def squeeze(b: Builder, a: Any, axis: Any = None) -> Traced:
    """``np.squeeze``: the array itself where no axis has size one."""
    x = array_object(b, a)
    if x.scalar:
        refuse_unless("squeeze", axis=(axis, (None,)))
        return x
    if axis is None:
        axes = tuple(i for i, n in enumerate(x.type.shape) if n == 1)  # a size that varies may be one
        if not axes:
            return x
    else:
        axes = tuple(sorted(axis_in(i, x.type.ndim) for i in (axis if isinstance(axis, tuple) else (axis,))))
    if len(set(axes)) != len(axes) or any(x.type.shape[i] != 1 for i in axes):
        raise CannotCapture("operation-raises", "cannot select an axis to squeeze out which has size not equal to one")
    return Traced(b.op("squeeze", x.node, axis=axes))


@function("expand_dims")
def expand_dims(b: Builder, a: Any, axis: Any) -> Traced:
    """``np.expand_dims``: a reshape in NumPy."""
    x = as_ndarray(b, array(b, a))
    places = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = x.type.ndim + len(places)
    inserted = sorted(axis_in(i, ndim) for i in places)
    if len(set(inserted)) != len(inserted):
        raise CannotCapture("operation-raises", "repeated axis")
    node = x.node
    for place in inserted:
        node = b.op("expand_dims", node, axis=place)
    return Traced(node) if places else view(b, x)


@function("broadcast_to")
def broadcast_to(b: Builder, array_: Any, shape: Any, subok: Any = False) -> Traced:
    """``np.broadcast_to``: a read-only view."""
    refuse_unless("broadcast_to", subok=(subok, (False, True)))
    x = as_ndarray(b, array(b, array_))
    return Traced(b.op("broadcast_to", x.node, shape=new_shape(shape)))


@function("broadcast_shapes")
def _broadcast_shapes(b: Builder, *shapes: Any) -> tuple[Size, ...]:
    return broadcast([new_shape(s) for s in shapes])


@function("atleast_1d")
def atleast_1d(b: Builder, *arrays: Any) -> Any:
    """Builds ``np.atleast_1d``: the array itself if it has enough dimensions."""
    return _each(b, arrays, 1)


@function("atleast_2d")
def atleast_2d(b: Builder, *arrays: Any) -> Any:
    """``np.atleast_2d``."""
    return _each(b, arrays, 2)


@function("atleast_3d")
def atleast_3d(b: Builder, *arrays: Any) -> Any:
    """``np.atleast_3d``."""
    return _each(b, arrays, 3)


def _each(b: Builder, arrays: Any, ndim: int) -> Any:
    results = [at_least(b, array(b, a), ndim) for a in arrays]
    return results[0] if len(results) == 1 else tuple(results)


def at_least(b: Builder, x: Traced, ndim: int) -> Traced:
    """``x`` with at least ``ndim`` axes, where the atleast functions put them."""
    have = x.type.ndim
    if have >= ndim:
        return x
    x = as_ndarray(b, x)
    if have == 0:
        return reshape_to(b, x, (1,) * ndim)
    key: tuple[Any, ...] = (None, slice(None))
    if ndim == 3:
        key = (None, slice(None), None) if have == 1 else (slice(None), slice(None), None)
    return Traced(b.op("index", x.node, key=key))


@function("lib.stride_tricks.sliding_window_view")
def sliding_window_view(
    b: Builder, x: Any, window_shape: Any, axis: Any = None, *, subok: Any = False, writeable: Any = False
) -> Traced:
    """``np.lib.stride_tricks.sliding_window_view``: a view of all windows, which cannot be written to."""
    refuse_unless("sliding_window_view", subok=(subok, (False,)), writeable=(writeable, (False,)))
    whole = array_object(b, x)
    given = window_shape if isinstance(window_shape, tuple) else (window_shape,)
    if any(isinstance(n, bool) for n in given):
        raise CannotCapture("operation-raises", "a bool is no size of a window")
    sizes = tuple(integer(n, "a size") for n in given)
    if axis is None:
        axes = tuple(range(whole.type.ndim))
    else:
        axes = tuple(axis_in(a, whole.type.ndim) for a in (axis if isinstance(axis, tuple) else (axis,)))
    if not axes or len(set(axes)) < len(axes) or len(axes) != len(sizes):
        raise CannotCapture("unsupported-argument", "windows along these axes")
    return Traced(b.op("windows", whole.node, sizes=sizes, axes=axes))


@function("flip")
def flip(b: Builder, m: Any, axis: Any = None) -> Traced:
    """``np.flip``: a view with negative strides."""
    x = array(b, m)
    ndim = x.type.ndim
    axes = axes_in(axis, ndim)
    key = tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(ndim))
    return Traced(b.op("index", x.node, key=key), scalar=not ndim)


@function("fliplr")
def fliplr(b: Builder, m: Any) -> Traced:
    """``np.fliplr``."""
    x = array(b, m)
    if x.type.ndim < 2:
        raise CannotCapture("operation-raises", "input must be at least two-dimensional")
    return flip(b, x, 1)


@function("flipud")
def flipud(b: Builder, m: Any) -> Traced:
    """``np.flipud``."""
    x = array(b, m)
    if x.type.ndim < 1:
        raise CannotCapture("operation-raises", "input must be at least one-dimensional")
    return flip(b, x, 0)


@method("view")
def _view(b: Builder, x: Traced, dtype: Any = NO_VALUE, type: Any = NO_VALUE) -> Traced:
    refuse_unless("view", dtype=(dtype, (NO_VALUE,)), type=(type, (NO_VALUE,)))
    return x if x.scalar else view(b, x)


def _refuse_many(count: int) -> None:
    """Limits the pieces: each resulting array is a node of the graph, so a list of thousands stays NumPy's."""
    if count > MOST_PIECES:
        raise CannotCapture("too-long", f"An array is cut into {count} pieces.")


def _pieces(b: Builder, x: Traced, cuts: list[tuple[Size | None, Size | None]], axis: int) -> list[Traced]:
    lead = (slice(None),) * axis
    return [Traced(b.op("index", x.node, key=(*lead, slice(start, stop)))) for start, stop in cuts]


def _split(b: Builder, a: Any, parts: Any, axis: Any, equal: bool) -> list[Traced]:
    x = array(b, a)
    if not x.type.ndim:
        raise CannotCapture("operation-raises", "split of a rank-0 array")
    place = axis_in(axis, x.type.ndim)
    total = integer(x.type.shape[place], "a size")
    if isinstance(parts, tuple | list):
        bounds = [integer(i, "an index") for i in parts]
        cuts: list[tuple[Size | None, Size | None]] = list(zip([0, *bounds], [*bounds, total], strict=True))
    else:
        if equal:  # guarded before its size
            refuse_list(a)
        count = integer(parts, "sections")
        if count <= 0 or (equal and total % count):
            raise CannotCapture("operation-raises", "array split does not result in an equal division")
        _refuse_many(count)
        sizes = [total // count + (i < total % count) for i in range(count)]
        starts = [0]
        for n in sizes:
            starts.append(starts[-1] + n)
        cuts = list(pairwise(starts))
    return _pieces(b, x, cuts, place)


@function("split")
def split(b: Builder, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Traced]:
    """``np.split``: a list of views."""
    return _split(b, ary, indices_or_sections, axis, True)


@function("array_split")
def array_split(b: Builder, ary: Any, indices_or_sections: Any, axis: Any = 0) -> list[Traced]:
    """``np.array_split``."""
    return _split(b, ary, indices_or_sections, axis, False)


@function("hsplit")
def hsplit(b: Builder, ary: Any, indices_or_sections: Any) -> list[Traced]:
    """``np.hsplit``."""
    refuse_list(ary)
    x = array(b, ary)
    return _split(b, x, indices_or_sections, 1 if x.type.ndim > 1 else 0, True)


@function("vsplit")
def vsplit(b: Builder, ary: Any, indices_or_sections: Any) -> list[Traced]:
    """``np.vsplit``."""
    refuse_list(ary)
    x = array(b, ary)
    if x.type.ndim < 2:
        raise CannotCapture("operation-raises", "vsplit only works on arrays of 2 or more dimensions")
    return _split(b, x, indices_or_sections, 0, True)


@function("dsplit")
def dsplit(b: Builder, ary: Any, indices_or_sections: Any) -> list[Traced]:
    """``np.dsplit``."""
    refuse_list(ary)
    x = array(b, ary)
    if x.type.ndim < 3:
        raise CannotCapture("operation-raises", "dsplit only works on arrays of 3 or more dimensions")
    return _split(b, x, indices_or_sections, 2, True)


@function("unstack")
def unstack(b: Builder, x: Any, /, *, axis: Any = 0) -> tuple[Traced, ...]:
    """``np.unstack``: a tuple of views."""
    refuse_list(x)
    rows = moveaxis(b, array(b, x), axis, 0)
    if not rows.type.ndim:
        raise CannotCapture("operation-raises", "input array must be at least 1-d")
    count = integer(rows.type.shape[0], "a size")
    _refuse_many(count)
    scalar = rows.type.ndim == 1
    return tuple(Traced(b.op("index", rows.node, key=(i,)), scalar) for i in range(count))


@function("rot90")
def rot90(b: Builder, m: Any, k: Any = 1, axes: Any = (0, 1)) -> Traced:
    """``np.rot90``: views, flipped and transposed."""
    x = array(b, m)
    if not isinstance(axes, tuple | list) or len(axes) != 2:
        raise CannotCapture("operation-raises", "len(axes) must be 2")
    ndim = x.type.ndim
    first, second = (axis_in(a, ndim) for a in axes)
    if first == second:
        raise CannotCapture("operation-raises", "axes must be different")
    turns = integer(k, "k") % 4
    if turns == 0:
        return view(b, x)
    if turns == 2:
        return flip(b, flip(b, x, first), second)
    order = list(range(ndim))
    order[first], order[second] = second, first
    if turns == 1:
        return transpose(b, flip(b, x, second), tuple(order))
    return flip(b, transpose(b, x, tuple(order)), second)


@function("diagonal")
@method("diagonal")
def diagonal(b: Builder, a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Traced:
    """``np.diagonal``: a read-only view."""
    x = array(b, a)
    if x.type.ndim < 2:
        raise CannotCapture("operation-raises", "diag requires an array of at least two dimensions")
    first, second = axis_in(axis1, x.type.ndim), axis_in(axis2, x.type.ndim)
    if first == second:
        raise CannotCapture("operation-raises", "axis1 and axis2 cannot be the same")
    try:
        return Traced(b.op("diagonal", x.node, offset=diagonal_in(offset), axis1=first, axis2=second))
    except CannotCapture as error:
        raise CannotCapture("memory-order", error.detail) from error


@function("linalg.diagonal")
def _matrix_diagonal(b: Builder, x: Any, /, *, offset: Any = 0) -> Traced:
    return diagonal(b, x, offset, -2, -1)


@function("ix_")
def ix_(b: Builder, *args: Any) -> tuple[Traced, ...]:
    """``np.ix_`` of arrays of integers: each along an axis of its own."""
    parts = [array(b, a) for a in args]
    if any(p.type.ndim != 1 for p in parts):
        raise CannotCapture("operation-raises", "Cross index must be 1 dimensional")
    if any(p.type.dtype.kind == "b" for p in parts):
        raise CannotCapture("data-dependent-shape", "np.ix_ of booleans")
    if any(isinstance(a, list | tuple) or is_zero(p.type.shape[0]) for a, p in zip(args, parts, strict=True)):
        raise CannotCapture("unsupported-argument", "np.ix_ of lists or of nothing")
    count = len(parts)
    return tuple(reshape_to(b, p, (*(1,) * i, p.type.shape[0], *(1,) * (count - i - 1))) for i, p in enumerate(parts))


def is_zero(size: Size) -> bool:
    """Whether a size is the literal 0."""
    return isinstance(size, int) and size == 0
