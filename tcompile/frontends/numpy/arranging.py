"""Shape rules of calls that rearrange or repeat: copies, triangles and diagonals.

Input: arguments in which types replace arrays.
Output: shapes.
Why: these functions stay one call of NumPy; ``library`` makes a node of a rule.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

from tcompile.frontends.numpy.library import Shape, along, array_method, library, refuse, shape_of, together, total
from tcompile.frontends.numpy.values import axis_in
from tcompile.graph import TensorType
from tcompile.graph.sizes import Size


@library("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Shape:
    """Returns the same shape."""
    return shape_of(a)


@library("repeat", method=True)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Shape:
    """Returns the shape with each element repeated."""
    shape = shape_of(a) if axis is not None else (total(shape_of(a)),)
    place = axis_in(0 if axis is None else axis, len(shape))
    if isinstance(repeats, TensorType):
        raise refuse("repeat with a computed number of times", "data-dependent-shape")
    if isinstance(repeats, tuple | list):
        if len(repeats) != 1:
            raise refuse("repeat with a count for each element")
        repeats = repeats[0]
    if type(repeats) is not int:
        raise refuse("repeat with a count that is no int")
    return along(shape, place, shape[place] * repeats)


@library("tile")
def tile(A: Any, reps: Any) -> Shape:
    """Returns the shape with each axis repeated."""
    counts = reps if isinstance(reps, tuple | list) else (reps,)
    if not all(type(n) is int for n in counts):
        raise refuse("tile with a computed number of times", "data-dependent-shape")
    shape = shape_of(A)
    ndim = max(len(counts), len(shape))
    sizes = (*(1,) * (ndim - len(shape)), *shape)
    return tuple(n * c for n, c in zip(sizes, (*(1,) * (ndim - len(counts)), *counts), strict=True))


@library("resize")
def resize(a: Any, new_shape: Any) -> Shape:
    """Returns the requested shape."""
    return tuple(_plain_int(n) for n in (new_shape if isinstance(new_shape, tuple | list) else (new_shape,)))


def _plain_int(n: Any) -> int:
    if type(n) is not int:
        raise refuse("a computed size", "data-dependent-shape")
    return n


@library("pad")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Shape:
    """Returns the shape with each axis longer at both ends."""
    if mode == "empty":
        raise refuse("pad with undefined values", "undefined-contents")
    shape = shape_of(array)
    around = widths(pad_width, len(shape))
    return tuple(n + before + after for n, (before, after) in zip(shape, around, strict=True))


def widths(given: Any, ndim: int) -> list[tuple[int, int]]:
    """The width before and after each axis: one int for all, a pair for all, or a pair for each."""
    if type(given) is int:
        return [(given, given)] * ndim
    if not isinstance(given, tuple | list):
        raise refuse("pad with computed widths", "data-dependent-shape")
    if all(type(n) is int for n in given):
        if len(given) not in (1, 2):
            raise refuse("pad with widths that do not fit", "operation-raises")
        return [(given[0], given[-1])] * ndim
    pairs = [tuple(p) for p in given if isinstance(p, tuple | list)]
    if len(pairs) != len(given) or not all(len(p) in (1, 2) and all(type(n) is int for n in p) for p in pairs):
        raise refuse("pad with widths that do not fit")
    pairs = pairs * ndim if len(pairs) == 1 else pairs
    if len(pairs) != ndim:
        raise refuse("pad with widths that do not fit", "operation-raises")
    return [(p[0], p[-1]) for p in pairs]


@library("delete", real=True)
def delete(arr: Any, obj: Any, axis: Any = None) -> None:
    """Returns NumPy's own answer; the deleted indices must be known."""
    _known_places(obj)


@library("insert", real=True)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> None:
    """Returns NumPy's own answer; the insertion indices must be known."""
    _known_places(obj)


def _known_places(obj: Any) -> None:
    items = obj if isinstance(obj, tuple | list) else [obj]
    if not all(type(i) is int or isinstance(i, slice) for i in items):
        raise refuse("computed places", "data-dependent-shape")


@library("tril", "triu")
def triangle(m: Any, k: Any = 0) -> Shape:
    """The same shape; a row becomes a square."""
    shape = shape_of(m)
    return (*shape, *shape) if len(shape) == 1 else shape


@library("tri")
def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Shape:
    """Rows and columns."""
    return (N, N if M is None else M)


@library("diag")
def diag(v: Any, k: Any = 0) -> Shape:
    """A square around a row."""
    shape = shape_of(v)
    if len(shape) != 1:
        raise refuse("diag of a matrix is a view")
    return (shape[0] + abs(k), shape[0] + abs(k))


@library("diagflat")
def diagflat(v: Any, k: Any = 0) -> Shape:
    """A square around all elements."""
    size: Size = total(shape_of(v)) + abs(k)
    return (size, size)


@library("vander")
def vander(x: Any, N: Any = None, increasing: Any = False) -> Shape:
    """A row of powers for each element."""
    (size,) = shape_of(x)
    return (size, size if N is None else N)


@library("asfortranarray")
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Shape:
    """The same shape."""
    return shape_of(a)


@library("ascontiguousarray")
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Shape:
    """The same shape."""
    return shape_of(a)


@library("array")
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: Any = "K",
    subok: Any = False,
    ndmin: Any = 0,
    like: Any = None,
    ndmax: Any = 0,
) -> Shape:
    """The same shape, of at least ``ndmin`` dimensions."""
    shape = shape_of(object)
    return (*(1,) * (ndmin - len(shape)), *shape)


@library("asarray", "asanyarray")
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Shape:
    """The same shape."""
    return shape_of(a)


@library("copy")
def copy(a: Any, order: Any = "K", subok: Any = False) -> Shape:
    """The same shape."""
    return shape_of(a)


@array_method("copy")
def _copy(a: Any, order: Any = "C") -> Shape:
    return shape_of(a)


@array_method("astype")
def astype(a: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Shape:
    """The same shape."""
    return shape_of(a)


@array_method("flatten")
def flatten(a: Any, order: Any = "C") -> Shape:
    """All elements in a row."""
    return (total(shape_of(a)),)


def _triangle_indices(name: str) -> None:
    lower = name.startswith("tril")

    def places(n: int, k: int, m: int | None) -> int:
        columns = n if m is None else m
        counts = (min(max(row + k + 1 if lower else columns - row - k, 0), columns) for row in range(n))
        return sum(counts)

    @library(f"{name}_indices")
    def indices(n: Any, k: Any = 0, m: Any = None) -> list[Shape]:
        """Returns the number of elements in the triangle."""
        return [(places(n, k, m),)] * 2

    @library(f"{name}_indices_from")
    def indices_from(arr: Any, k: Any = 0) -> list[Shape]:
        """Returns the number of elements in the triangle."""
        rows, columns = (n if isinstance(n, int) else n.specialise() for n in shape_of(arr))
        return [(places(rows, k, columns),)] * 2


_triangle_indices("tril")
_triangle_indices("triu")


@library("ix_")
def ix_(*args: Any) -> list[Shape]:
    """Each sequence along an axis of its own."""
    shapes = [shape_of(a) for a in args]
    if any(isinstance(a, TensorType) and a.dtype.kind == "b" for a in args):
        raise refuse("ix_ of booleans", "data-dependent-shape")
    count = len(args)
    return [(*(1,) * i, total(s), *(1,) * (count - i - 1)) for i, s in enumerate(shapes)]


@library("block")
def block(arrays: Any) -> Shape:
    """Lists of lists of arrays: the innermost are joined along the last axis, those around along the one before."""
    depth = _depth_of_lists(arrays)
    leaves = [arrays]
    for _ in range(depth):
        leaves = [item for part in leaves for item in part]
    ndim = max([depth, *(len(shape_of(leaf)) for leaf in leaves)])

    def size(part: Any, axis: int) -> Shape:
        if not isinstance(part, list):
            shape = shape_of(part)
            return (*(1,) * (ndim - len(shape)), *shape)
        shapes = [size(item, axis + 1) for item in part]
        return along(shapes[0], axis, functools.reduce(operator.add, (shape[axis] for shape in shapes)))

    return size(arrays, -depth)


def _depth_of_lists(value: Any) -> int:
    """Returns the nesting depth of lists, which is the same everywhere."""
    if not isinstance(value, list):
        if isinstance(value, tuple):
            raise refuse("block of a tuple")
        return 0
    depths = {_depth_of_lists(item) for item in value}
    if len(depths) != 1:
        raise refuse("block of lists that are empty, or not nested alike")
    return 1 + depths.pop()


@library("indices")
def indices(dimensions: Any, dtype: Any = int, sparse: Any = False) -> Shape | list[Shape]:
    """A grid for each dimension."""
    sizes = tuple(_plain_int(n) for n in dimensions)
    if sparse is True:
        count = len(sizes)
        return [(*(1,) * i, n, *(1,) * (count - i - 1)) for i, n in enumerate(sizes)]
    return (len(sizes), *sizes)


@library("meshgrid")
def meshgrid(*xi: Any, copy: Any = True, sparse: Any = False, indexing: Any = "xy") -> list[Shape]:
    """Each coordinate along an axis of its own, spread over the grid unless it is sparse."""
    sizes = [total(shape_of(x)) for x in xi]
    order = list(range(len(sizes)))
    if indexing == "xy" and len(sizes) > 1:
        order[:2] = [1, 0]
    full = tuple(sizes[i] for i in order)
    if sparse is not True:
        return [full] * len(sizes)
    return [tuple(n if order[axis] == i else 1 for axis, n in enumerate(full)) for i in range(len(sizes))]


@library("bartlett", "blackman", "hamming", "hanning")
def window(M: Any) -> Shape:
    """Returns the requested length."""
    return (max(_plain_int(M), 0),)


@library("kaiser")
def kaiser(M: Any, beta: Any) -> Shape:
    """Returns the requested length."""
    return (max(_plain_int(M), 0),)


def _samples(num: Any, axis: Any, *ends: Any) -> Shape:
    shape = together(*ends)
    place = axis_in(axis, len(shape) + 1)
    return (*shape[:place], _plain_int(num), *shape[place:])


@library("linspace")
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: Any = 0,
    *,
    device: Any = None,
) -> Shape | list[Shape]:
    """The samples along a new axis, and the step where it is asked for."""
    samples = _samples(num, axis, start, stop)
    return [samples, together(start, stop)] if retstep is True else samples


@library("logspace")
def logspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None, axis: Any = 0
) -> Shape:
    """The samples along a new axis."""
    return _samples(num, axis, start, stop, base)


@library("geomspace")
def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: Any = 0) -> Shape:
    """The samples along a new axis."""
    return _samples(num, axis, start, stop)


def _created(name: str) -> None:
    @library(name)
    def created(shape: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None) -> Shape:
        """Returns the requested shape."""
        return tuple(_plain_int(n) for n in (shape if isinstance(shape, tuple | list) else (shape,)))

    @library(f"{name}_like")
    def like(
        a: Any, dtype: Any = None, order: Any = "K", subok: Any = True, shape: Any = None, *, device: Any = None
    ) -> Shape:
        """Returns the same shape, or the requested one."""
        return shape_of(a) if shape is None else created(shape)


_created("zeros")
_created("ones")


@library("full")
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", *, device: Any = None, like: Any = None
) -> Shape:
    """Returns the requested shape."""
    return tuple(_plain_int(n) for n in (shape if isinstance(shape, tuple | list) else (shape,)))


@library("full_like")
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Shape:
    """Returns the same shape, or the requested one."""
    return shape_of(a) if shape is None else full(shape, 0)


@library("eye")
def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: Any = "C", *, device: Any = None, like: Any = None
) -> Shape:
    """Rows and columns."""
    return (_plain_int(N), _plain_int(N if M is None else M))
