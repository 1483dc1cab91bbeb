"""NumPy objects that are subscripted: ``r_``, ``c_``, ``mgrid``, ``ogrid``, ``s_`` and ``index_exp``.

Input: such an object and a key.
Output: one call of NumPy, whose shape follows from the key; or the key itself.
Why: they look like indexing, and are calls.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture
from tcompile.frontends.numpy.library import Rule, Shape, library_call, refuse, shape_of
from tcompile.graph.sizes import Size, SymInt, same

_KEYS = (np.s_, np.index_exp)
_PLAIN = (int, float, complex, type(None))


def subscript(b: Builder, owner: Any, key: Any) -> Any:
    """``owner[key]``, of an object that ``SUBSCRIPTED`` has."""
    items = key if isinstance(key, tuple) else (key,)
    for item in items:
        bounds = _bounds(item) if isinstance(item, slice) else ()
        if isinstance(item, str) or not all(type(n) in _PLAIN or isinstance(n, SymInt) for n in bounds):
            raise CannotCapture("unsupported-argument", "a text, or a range between computed numbers")
    if owner not in _KEYS:
        return library_call(b, SUBSCRIPTED[owner], [key], {})
    plain = all(isinstance(item, slice) or type(item) in (*_PLAIN, type(Ellipsis)) for item in items)
    if not plain or any(isinstance(n, SymInt) for item in items if isinstance(item, slice) for n in _bounds(item)):
        raise CannotCapture("unsupported-argument", "a key with computed numbers or arrays in it")
    return owner[key]


def _bounds(item: slice) -> tuple[Any, Any, Any]:
    return item.start, item.stop, item.step


def _count(item: Any) -> int:
    """How many numbers a slice stands for; a complex step is their number."""
    start, stop, step = item.start or 0, item.stop, 1 if item.step is None else item.step
    if type(step) is complex:
        return int(abs(step))
    if stop is None or not step:
        raise refuse("a range without an end, or with a step of zero")
    count: int = math.ceil((stop - start) / step)
    return max(0, count)


def _mgrid(key: Any) -> Shape:
    sizes = _grid(key)
    return (len(sizes), *sizes) if isinstance(key, tuple) else sizes


def _ogrid(key: Any) -> Shape | list[Shape]:
    sizes = _grid(key)
    if not isinstance(key, tuple):
        return sizes
    return [(*(1,) * i, n, *(1,) * (len(sizes) - i - 1)) for i, n in enumerate(sizes)]


def _grid(key: Any) -> tuple[int, ...]:
    items = key if isinstance(key, tuple) else (key,)
    if not items or not all(isinstance(item, slice) for item in items):
        raise refuse("a grid of something else than ranges")
    return tuple(map(_count, items))


def _rows(key: Any) -> Shape:
    parts = [(_count(item),) if isinstance(item, slice) else shape_of(item) or (1,) for item in _items(key)]
    return _joined(parts, 0)


def _columns(key: Any) -> Shape:
    parts: list[Shape] = []
    for item in _items(key):
        shape = (_count(item),) if isinstance(item, slice) else shape_of(item) or (1,)
        parts.append((*shape, 1) if len(shape) == 1 else shape)
    return _joined(parts, -1)


def _items(key: Any) -> tuple[Any, ...]:
    if not isinstance(key, tuple):
        return (key,)
    if not key:
        raise refuse("nothing is joined")
    return key


def _joined(parts: list[Shape], axis: int) -> Shape:
    first = list(parts[0])
    place = axis % len(first)
    total: Size = 0
    for part in parts:
        if len(part) != len(first) or not all(same(n, m) for i, (n, m) in enumerate(zip(part, first, strict=True))
                                              if i != place):  # fmt: skip
            raise refuse("arrays that do not fit together are joined")
        total = total + part[place]
    first[place] = total
    return tuple(first)


SUBSCRIPTED: dict[Any, Rule] = {
    np.r_: Rule(_rows, "numpy.r_.__getitem__"),
    np.c_: Rule(_columns, "numpy.c_.__getitem__"),
    np.mgrid: Rule(_mgrid, "numpy.mgrid.__getitem__"),
    np.ogrid: Rule(_ogrid, "numpy.ogrid.__getitem__"),
}
OWNERS = (*SUBSCRIPTED, *_KEYS)
