"""``np.pad`` of small arrays: a copy into the middle of a new array, then copies to its edges.

Input: an array and plain widths.
Output: ``assign`` nodes, one for the middle and one for each edge, in NumPy's order of edges, so that corners are the
same.
Why: NumPy spends ten microseconds on planning. For large arrays the copying dominates, and ``np.pad`` stays one call
(``arranging``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tcompile.frontends.base import Builder, CannotCapture, Traced
from tcompile.frontends.numpy.arranging import widths
from tcompile.frontends.numpy.creation import full
from tcompile.frontends.numpy.registry import function, refuse_unless
from tcompile.frontends.numpy.values import array_object
from tcompile.graph import Node
from tcompile.graph.sizes import Size, hint, product

MOST, MOST_WITH_EDGES = 1 << 16, 1 << 14  # elements of a result
Part: TypeAlias = "Callable[[int, int, Size], slice]"  # of an axis, from the widths before and after and its own size


def _down(start: Size, count: int) -> slice:
    """``count`` places from ``start`` down."""
    stop = start - count
    return slice(start, None if isinstance(stop, int) and stop < 0 else stop, -1)


# The padding before and after the elements of an axis, as positions in the padded axis, and the minimum number of
# elements: a multiple of the larger width, plus a constant.
_EDGES: dict[str, tuple[Part, Part, int, int]] = {
    "edge": (lambda p, q, n: slice(p, p + 1), lambda p, q, n: slice(p + n - 1, p + n), 0, 1),
    "wrap": (lambda p, q, n: slice(n, n + p), lambda p, q, n: slice(p, p + q), 1, 0),
    "reflect": (lambda p, q, n: _down(2 * p, p), lambda p, q, n: _down(p + n - 2, q), 1, 1),
    "symmetric": (lambda p, q, n: _down(2 * p - 1, p), lambda p, q, n: _down(p + n - 1, q), 1, 0),
}


@function("pad")
def pad(b: Builder, array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Traced:
    """Builds ``np.pad`` with one number, or with the array's own values at its edges."""
    value = kwargs.pop("constant_values", 0) if mode == "constant" else 0
    how = kwargs.pop("reflect_type", "even") if mode in ("reflect", "symmetric") else "even"
    refuse_unless("pad", reflect_type=(how, ("even",)), more=(tuple(kwargs), ((),)))
    x = array_object(b, array)
    shape, dtype = x.type.shape, x.type.dtype
    if mode not in ("constant", *_EDGES) or type(value) not in (bool, int, float) or (dtype.kind != "f" and value != 0):
        raise CannotCapture("unsupported-argument", "pad in this mode, or with such a value")
    if x.type.ndim > 1 and not x.type.c_contiguous:
        raise CannotCapture("memory-order", "pad of an array that is not in C order")
    around = widths(pad_width, x.type.ndim)
    sizes = tuple(n + p + q for n, (p, q) in zip(shape, around, strict=True))
    most = MOST if mode == "constant" else MOST_WITH_EDGES
    if not shape or any(p < 0 or q < 0 for p, q in around) or hint(product(sizes)) > most:
        raise CannotCapture("unsupported-argument", "pad of a number, or of many elements")
    middle = tuple(slice(p, p + n) for n, (p, _) in zip(shape, around, strict=True))
    made = _stored(b, full(b, sizes, value, dtype).node, middle, x.node)
    if mode != "constant":
        first, last, times, more = _EDGES[mode]
        for axis, (n, (p, q)) in enumerate(zip(shape, around, strict=True)):
            if not n >= max(p, q, 1) * times + more:
                raise CannotCapture("unsupported-argument", "pad of fewer elements than are added")
            before, after = (slice(None),) * axis, middle[axis + 1 :]
            edges = ((p, slice(0, p), first(p, q, n)), (q, slice(p + n, p + n + q), last(p, q, n)))
            for width, here, source in edges:
                if width:
                    taken = b.op("index", made, key=(*before, source, *after))
                    made = _stored(b, made, (*before, here, *after), taken)
    return Traced(made)


def _stored(b: Builder, into: Node, key: tuple[Any, ...], value: Node) -> Node:
    return b.op("assign", into, value, path=(("index", (("key", key),)),))
