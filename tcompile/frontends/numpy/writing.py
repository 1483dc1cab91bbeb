"""Writes to arrays: items, slices, and functions that store into their arguments.

Input: an array or view, and the values to write.
Output: writes recorded with the builder; capture does them.
Why: graphs are pure. Writes that NumPy would refuse, or would warn of, are refused here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tcompile.errors import GraphError
from tcompile.frontends.base import (
    Builder,
    CannotCapture,
    Check,
    Selected,
    Traced,
    TracedNumber,
    refuse_sequential_copy,
)
from tcompile.frontends.numpy import masks
from tcompile.frontends.numpy.indexing import arrangement, basic, items_of, spread, under_mask
from tcompile.frontends.numpy.registry import function, method, refuse_unless
from tcompile.frontends.numpy.values import (
    WRITEABLE,
    Weak,
    broadcast,
    call,
    cast,
    constant,
    is_weak,
    nested,
    number_text,
    strong,
)
from tcompile.graph import Node, TensorType
from tcompile.graph.dtypes import DType
from tcompile.graph.ops import broadcast_shapes
from tcompile.graph.overlap import share_memory
from tcompile.graph.sizes import SymInt
from tcompile.records import dataclass

_WARNS = 1 << 31  # of flags.num, as WRITEABLE is
_MAY_WRITE = f"{{}}.flags.num & {WRITEABLE | _WARNS} == {WRITEABLE}"
_EFFORT: Any = 1000  # how long NumPy may look for an element that two arrays share


def setitem(b: Builder, x: Traced, key: Any, value: Any) -> None:
    """``x[key] = value``."""
    items = items_of(b, target_of(x), key)
    listed = isinstance(value, list | tuple)
    if listed:  # the array's dtype is passed to NumPy when it reads the list
        value = nested(b, value, x.type.dtype)
    found = under_mask(b, x, items)
    if found is not None:
        view, mask, lead = found
        refuse_own(view, mask)
        target = Selected(view.node, mask, lead=lead)
        b.write(view, masks.replaced(b, target, value, lambda type, item: fitted(b, type, item, "unsafe")))
    elif isinstance(value, Selected):
        raise masks.refused("that go to other places")
    elif any(isinstance(item, Traced) for item in items):
        scattered(b, x, items, value, listed)
    else:
        view = Traced(basic(b, x, items).node)
        _refuse_sequence(view.type, value, listed or _names_an_element(x, items))
        store(b, view, as_item(b, value, x.type.dtype), "unsafe")


def _names_an_element(x: Traced, items: tuple[Any, ...]) -> bool:
    return len(items) == x.type.ndim and all(isinstance(item, int | SymInt) or _is_number(item) for item in items)


def _refuse_sequence(target: TensorType, value: Any, counts: bool) -> None:
    """Elements take no sequences, and lists are no deeper than what they are written to."""
    if counts and isinstance(value, Traced) and value.type.ndim > target.ndim:
        raise CannotCapture("operation-raises", "setting an array element with a sequence.")  # or a warning


def _is_number(item: Any) -> bool:
    return isinstance(item, Traced) and not item.type.ndim


def as_item(b: Builder, value: Any, dtype: DType) -> Any:
    """A scalar on its way into an array of integers: NumPy makes a Python int of it, and raises where it does not fit.

    Scalars of other dtypes, and arrays, are cast.
    """
    if isinstance(value, np.generic):
        value = constant(b, value)
    if not isinstance(value, Traced) or not value.scalar or dtype.kind not in "iu":
        return value
    if value.type.dtype.kind == "c" or np.can_cast(value.type.dtype, dtype):
        return value
    return call(b, "tcompile.frontends.numpy.quiet.as_item", [value], TensorType(dtype, ()), dtype=dtype.name)


def scattered(b: Builder, x: Traced, items: tuple[Any, ...], value: Any, listed: bool = False) -> None:
    """``x[items] = value`` where arrays are among the items; ``listed`` says that the value was a list."""
    element = _names_an_element(x, items)
    if all(_is_number(item) for item in items if isinstance(item, Traced)):  # a view is written to, as of plain numbers
        value = as_item(b, value, x.type.dtype)
    places = Places.of(b, x, items)
    _refuse_sequence(places.type, value, element or listed)
    are_cast = isinstance(value, Traced) and value.type.dtype != x.type.dtype and not value.type.layout.dense
    if are_cast and not all(index.tensor.c_contiguous for index in places.indices):
        # The last of several values for one place stays. Which that is depends on where the uncast values' axes lead.
        raise CannotCapture("memory-order", "values are cast for places that do not lie in C order")
    contents = places.value(b, fitted(b, places.type, value, "unsafe"))
    b.write(places.view, b.op("scatter", places.view.node, contents, *places.indices, axes=places.axes, path=()))


@dataclass(frozen=True)
class Places:
    """The places that a key with arrays in it names: those of ``view`` that ``indices`` index along ``axes``.

    ``type`` is that of what the key gives.
    """

    view: Traced
    axes: tuple[int, ...]
    indices: list[Node]
    type: TensorType
    order: tuple[int, ...] | None

    @staticmethod
    def of(b: Builder, x: Traced, items: tuple[Any, ...]) -> Places:
        """The places that the items of a key name in ``x``."""
        view, axes, indices = spread(b, x, items)
        if not indices:
            raise CannotCapture("unsupported-argument", "places that no array names")
        shape = broadcast([index.tensor.shape for index in indices])
        shape = (*shape, *(n for axis, n in enumerate(view.tensor.shape) if axis not in axes))
        order = arrangement(axes, indices, len(shape))
        if order is not None:
            shape = tuple(shape[axis] for axis in order)
        return Places(Traced(view), axes, indices, TensorType(x.type.dtype, shape), order)

    def value(self, b: Builder, value: Node) -> Node:
        """What fits to what the key gives, with the axes of the indices before."""
        if self.order is None or not value.tensor.ndim:
            return value
        missing = len(self.order) - value.tensor.ndim
        whole = b.op("index", value, key=(*(None,) * missing, Ellipsis)) if missing else value
        back = sorted(range(len(self.order)), key=self.order.__getitem__)
        return b.op("permute_dims", whole, axes=tuple(back))


def store(b: Builder, target: Traced, value: Any, casting: str) -> Traced:
    """Asks for ``value``, cast and broadcast, to be written to the array or view ``target``."""
    return b.write(target, fitted(b, target.type, value, casting))


def fitted(b: Builder, target: TensorType, value: Any, casting: str) -> Node:
    """``value`` as contents of the type ``target``: of its dtype, of a shape that broadcasts to its shape."""
    item = written(b, value, target.dtype, casting)
    shape = item.type.shape
    extra = len(shape) - target.ndim
    if extra > 0 and all(isinstance(n, int) and n == 1 for n in shape[:extra]):
        item = Traced(b.op("squeeze", item.node, axis=tuple(range(extra))))
    try:
        whole = broadcast_shapes([item.type.shape, target.shape])
    except GraphError as error:
        raise CannotCapture("operation-raises", str(error)) from error
    if len(whole) != target.ndim or any(n != m for n, m in zip(whole, target.shape, strict=True)):
        raise CannotCapture("operation-raises", f"{item.type} does not fit into {target}")
    return item.node


def written(b: Builder, value: Any, dtype: DType, casting: str) -> Traced:
    """A value on its way into an array of ``dtype``."""
    if isinstance(value, np.generic):
        value = constant(b, value)
    elif isinstance(value, list | tuple):
        value = nested(b, value)
    if isinstance(value, Traced):
        item = Traced(value.node)
        if not np.can_cast(item.type.dtype, dtype, casting):  # type: ignore[arg-type]
            raise CannotCapture("operation-raises", f"{item.type.dtype} is not cast to {dtype}")
        if item.type.dtype.kind == "c" and dtype.kind not in "cb":
            raise CannotCapture("operation-raises", "a cast discards imaginary parts")
        return Traced(cast(b, item, dtype))
    if not is_weak(value):
        raise CannotCapture("unsupported-argument", f"a {type(value).__name__} is written to an array")
    if casting != "unsafe" and _rank(value) > _RANKS[dtype.kind]:
        raise CannotCapture("operation-raises", f"a Python number is not cast to {dtype}")
    return Traced(_number(b, value, dtype))


_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _rank(value: Weak) -> int:
    """The kind of a Python number, as NumPy orders kinds for casts."""
    if isinstance(value, TracedNumber):
        return 2
    return {bool: 0, float: 2, complex: 3}.get(type(value), 1)


def _number(b: Builder, value: Weak, dtype: DType) -> Node:
    """A Python number as NumPy stores it."""
    if isinstance(value, SymInt | TracedNumber):
        if dtype.kind not in ("fc" if isinstance(value, TracedNumber) else "fci"):
            raise CannotCapture("unsupported-argument", f"a number that varies is written to elements of {dtype}")
        if isinstance(value, SymInt) and dtype.kind == "i" and dtype.itemsize < 8:
            raise CannotCapture("unsupported-argument", f"an int that varies is written to elements of {dtype}")
        return cast(b, strong(b, value), dtype)
    if isinstance(value, complex) and dtype.kind != "c":
        raise CannotCapture("operation-raises", f"a complex number is written to elements of {dtype}")
    if type(value) is float and dtype.kind in "iu":
        if not math.isfinite(value):
            raise CannotCapture("operation-raises", f"{value} is written to elements of {dtype}")
        value = int(value)
    if type(value) is int and dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        raise CannotCapture("operation-raises", f"{number_text(value)} does not fit into {dtype}")
    if dtype.kind == "b":
        value = bool(value)
    try:
        with np.errstate(all="ignore"):
            item = dtype.type(value)
        overflows = dtype.kind in "fc" and not np.isfinite(item) and (isinstance(value, int) or np.isfinite(value))
    except OverflowError:  # an int beyond all floats
        overflows = True
    if overflows:
        raise CannotCapture("operation-raises", f"{number_text(value)} overflows in {dtype}")
    return constant(b, item).node


def write_checks(value: Any, name: str, constant: Callable[[Any], str]) -> list[Check]:
    """The conditions on an array that is written to."""
    if not value.flags.num & WRITEABLE:
        raise CannotCapture("operation-raises", f"{name} is read-only")
    if value.flags.num & _WARNS:
        raise CannotCapture("operation-raises", f"{name} warns when it is written to")
    if overlaps_itself(value):
        raise CannotCapture("writes-to-array", f"Writing to `{name}`, some of whose elements lie in one place,")
    checks = [Check(_MAY_WRITE, f"{name} is writeable", "writeable", "writeable")]
    if not value.flags.forc:
        code, text = f"not {constant(overlaps_itself)}({{}})", f"each element of {name} has its own place"
        checks.append(Check(code, text, "no two elements in one place", "memory"))
    return checks


def overlaps_itself(array: Any) -> bool:
    """Whether two elements of an array, NumPy's or CuPy's, may lie in one place.

    >>> a = np.arange(5)
    >>> overlaps_itself(a[::2]), overlaps_itself(np.lib.stride_tricks.sliding_window_view(a, 2))
    (False, True)
    """
    flags = array.flags
    if flags.c_contiguous or flags.f_contiguous or array.size < 2:
        return False
    reach = array.itemsize
    for stride, size in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1):
        if stride < reach:
            return True
        reach = stride * (size - 1) + reach
    return False


def overlap(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays share an element; True also where that is hard to find out."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_EFFORT)
    except np.exceptions.TooHardError:
        return True


@function("copyto")
def copyto(b: Builder, dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """``np.copyto``."""
    refuse_unless("copyto", casting=(casting, ("same_kind", "unsafe", "safe", "equiv", "no")))
    target = target_of(dst)
    contents = fitted(b, target.type, src, casting)
    if where is True:
        b.write(target, contents)
        return
    if isinstance(where, Traced):
        refuse_own(target, where.node)
    refuse_sequential_copy(target.node, contents)
    b.write(target, chosen(b, target, where, contents))


def chosen(b: Builder, target: Traced, where: Any, contents: Node) -> Node:
    """``contents`` where a mask holds, else what ``target`` has there."""
    mask = written(b, where, np.dtype("bool"), "no").node
    node = b.op("where", mask, contents, target.node)
    if len(node.tensor.shape) != target.type.ndim or any(
        n != m for n, m in zip(node.tensor.shape, target.type.shape, strict=True)
    ):
        raise CannotCapture("operation-raises", f"a mask of shape {mask.tensor.shape} does not fit {target.type}")
    return node


def refuse_own(target: Traced, mask: Node) -> None:
    """Refuses a mask that shares memory with what is written under it: NumPy looks at it on the way."""
    if share_memory(target.node, mask):
        raise CannotCapture("overlapping-views", "An array is written to under a mask that may share memory with it.")


def target_of(x: Any) -> Traced:
    """An array that is written to."""
    if not isinstance(x, Traced) or x.scalar:
        raise CannotCapture("operation-raises", "what is written to is no array")
    return x


@method("fill")
def fill(b: Builder, x: Traced, value: Any, /) -> None:
    """``x.fill(value)``."""
    if (isinstance(value, Traced) and value.type.ndim) or isinstance(value, list | tuple):
        raise CannotCapture("unsupported-argument", "fill with an array")
    store(b, target_of(x), as_item(b, value, x.type.dtype), "unsafe")


@method("__setitem__")
def _setitem(b: Builder, x: Traced, key: Any, value: Any) -> None:
    setitem(b, x, key, value)


@method("sort")
def sort(b: Builder, x: Traced, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """``x.sort()``: in place."""
    from tcompile.frontends.numpy.opaque import sort as sorted_copy

    if axis is None:
        raise CannotCapture("operation-raises", "sort in place along no axis")
    result = sorted_copy(b, target_of(x), axis, kind, order, stable=stable)
    b.write(x, result.node)
