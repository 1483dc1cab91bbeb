"""Derivatives of library calls that are compositions of simpler ones.

Input: a ``call`` node and its result's cotangent.
Output: the operands' cotangents.
Why: ``np.cov`` is a product of centred rows. Its composition is added to the graph and differentiated by the rules of
its parts, first and second order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.ir import Node, Operand
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.sizes import SymInt, always, product
from tcompile.transforms.autodiff.reverse import backward
from tcompile.transforms.autodiff.table import Pull
from tcompile.transforms.emit import Emit, is_complex, is_float
from tcompile.transforms.library_calls import argument, at_first_places, keyword

Composition = Callable[[Emit, Node], Node]
COMPOSED: dict[str, Composition] = {}


def composed(*names: str) -> Callable[[Composition], Composition]:
    """Registers the composition of some calls, as a function of the node."""

    def register(made: Composition) -> Composition:
        for name in names:
            COMPOSED[f"numpy.{name}"] = made
        return made

    return register


def pulls(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    """The rule of a call that is a composition."""
    found: dict[Node, Node | None] = {}
    sources = list(dict.fromkeys(o for o in node.inputs if is_float(o)))

    def pull(operand: Node) -> Node:
        if not found:
            start = len(e.graph.nodes)
            made = COMPOSED[node.attrs["target"]](e, node)
            nodes = e.graph.nodes[start:]
            if any(n.op is ops.CALL and n.attrs == node.attrs for n in nodes):  # of no elements, say
                raise DerivativeError(f"{node.attrs['target']} of this array has no derivative rule")
            made_g = e.cast(e.reshape(g, made.tensor.shape), made.tensor.dtype)
            cotangents = backward(e.graph, nodes, [(made, made_g)], sources, e.library, False)
            found.update(zip(sources, cotangents, strict=True))
        got = found[operand]
        return e.full(operand, 0.0) if got is None else got

    def pull_of(number: int) -> Pull | None:
        operand = node.operands[number]
        return partial(pull, operand) if isinstance(operand, Node) and operand in sources else None

    return at_first_places(node, pull_of)


def _given(node: Node, place: int, name: str, default: Any = None) -> Any:
    """An argument, which may be an operand."""
    return _operand(node, argument(node, place, name, default))


def _operand(node: Node, found: Any) -> Any:
    return node.operands[found.index] if isinstance(found, Slot) else found


def _alike(e: Emit, node: Node, operand: Any) -> Any:
    """An operand in the dtype of the result: integers beside floats, say."""
    return e.cast(operand, node.tensor.dtype) if isinstance(operand, Node) else operand


def _array(node: Node, place: int, name: str) -> Node:
    found = _given(node, place, name)
    if not isinstance(found, Node):
        raise DerivativeError(f"{node.attrs['target']} of a list has no derivative rule")
    return found


def _only(node: Node, places: int, *names: str) -> None:
    """Refuses a call with further arguments."""
    more = [name for name, value in node.attrs["kwargs"] if name not in names and value is not None]
    if len(node.attrs["args"]) > places or more:
        raise DerivativeError(f"{node.attrs['target']} with these arguments has no derivative rule")


# -- products ----------------------------------------------------------------------------------------------------------
@composed("dot")
def _dot(e: Emit, node: Node) -> Node:
    a, b = (_alike(e, node, _given(node, i, name)) for i, name in enumerate("ab"))
    if not (isinstance(a, Node) and isinstance(b, Node) and a.tensor.ndim and b.tensor.ndim):
        return e.multiply(a, b)
    return _contracted(e, a, b, [a.tensor.ndim - 1], [max(b.tensor.ndim - 2, 0)])


@composed("inner")
def _inner(e: Emit, node: Node) -> Node:
    a, b = (_alike(e, node, _array(node, i, name)) for i, name in enumerate("ab"))
    return _contracted(e, a, b, [a.tensor.ndim - 1], [b.tensor.ndim - 1])


@composed("tensordot", "linalg.tensordot")
def _tensordot(e: Emit, node: Node) -> Node:
    a, b = (_alike(e, node, _array(node, i, name)) for i, name in enumerate("ab"))
    axes = argument(node, 2, "axes", 2)
    if isinstance(axes, int):
        axes = range(a.tensor.ndim - axes, a.tensor.ndim), range(axes)
    first, second = ([axis % x.tensor.ndim for axis in (part if isinstance(part, Sequence) else [part])]
                     for x, part in zip((a, b), axes, strict=True))  # fmt: skip
    return _contracted(e, a, b, first, second)


def _contracted(e: Emit, a: Node, b: Node, first: Sequence[int], second: Sequence[int]) -> Node:
    """The sum of products over axes of ``a`` and of ``b``: one product of matrices."""
    kept_a = [axis for axis in range(a.tensor.ndim) if axis not in first]
    kept_b = [axis for axis in range(b.tensor.ndim) if axis not in second]
    many = product(a.tensor.shape[axis] for axis in first)
    shape_a, shape_b = ([x.tensor.shape[axis] for axis in kept] for x, kept in ((a, kept_a), (b, kept_b)))
    rows = e.reshape(e.permute(a, [*kept_a, *first]), [product(shape_a), many])
    columns = e.reshape(e.permute(b, [*second, *kept_b]), [many, product(shape_b)])
    return e.reshape(e(ops.MATMUL, rows, columns), [*shape_a, *shape_b])


@composed("var", "std")
def _spread(e: Emit, node: Node) -> Node:
    _only(node, 2, "axis", "ddof", "keepdims")
    x, axis = _array(node, 0, "a"), argument(node, 1, "axis")
    axes = tuple(range(x.tensor.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(a % x.tensor.ndim for a in axes)
    found = e(ops.SUM, _squares(e, e.subtract(x, e.numpy(np.mean, x, axis=axes, keepdims=True))), axis=axes,
              keepdims=bool(keyword(node, "keepdims", False)))  # fmt: skip
    found = e.divide(found, product(x.tensor.shape[a] for a in axes) - keyword(node, "ddof", 0))
    return e(ops.SQRT, found) if _name(node) == "numpy.std" else found


def _squares(e: Emit, x: Node) -> Node:
    """The squares of the elements' magnitudes."""
    if not is_complex(x):
        return e(ops.SQUARE, x)
    return e.add(*(e(ops.SQUARE, e(ops.COPY_C, e(part, x))) for part in (ops.REAL, ops.IMAG)))


@composed("vdot")
def _vdot(e: Emit, node: Node) -> Node:
    a, b = (_alike(e, node, e.reshape(_array(node, i, name), (_array(node, i, name).tensor.size,)))
            for i, name in enumerate("ab"))  # fmt: skip
    return e(ops.SUM, e.multiply(e.conj(a), b), axis=(0,), keepdims=False)


@composed("vecdot", "linalg.vecdot")
def _vecdot(e: Emit, node: Node) -> Node:
    _only(node, 2, "axis")
    a, b = (_alike(e, node, _array(node, i, name)) for i, name in enumerate(("x1", "x2")))
    product = e.multiply(e.conj(a), b)
    axis = keyword(node, "axis", -1)
    return e(ops.SUM, product, axis=(axis % product.tensor.ndim,), keepdims=False)


@composed("linalg.outer")
def _outer(e: Emit, node: Node) -> Node:
    a, b = (_alike(e, node, _array(node, i, name)) for i, name in enumerate(("x1", "x2")))
    return e.multiply(e.reshape(a, (a.tensor.size, 1)), b)


@composed("linalg.multi_dot")
def _multi_dot(e: Emit, node: Node) -> Node:
    _only(node, 1)
    parts = [_alike(e, node, node.operands[part.index]) for part in node.attrs["args"][0] if isinstance(part, Slot)]
    if len(parts) != len(node.attrs["args"][0]):
        raise DerivativeError("numpy.linalg.multi_dot of lists has no derivative rule")
    total = parts[0]
    for part in parts[1:]:
        total = e(ops.MATMUL, total, part)
    assert isinstance(total, Node)
    return total


@composed("convolve")
def _convolve(e: Emit, node: Node) -> Node:
    a, v = _array(node, 0, "a"), _array(node, 1, "v")
    return _window(e, e.numpy(np.convolve, a, v), a, v, argument(node, 2, "mode", "full"))


@composed("correlate")
def _correlate(e: Emit, node: Node) -> Node:
    a, v = _array(node, 0, "a"), _array(node, 1, "v")
    mode = argument(node, 2, "mode", "valid")
    if a.tensor.shape[0] < v.tensor.shape[0] and mode != "full":
        raise DerivativeError("numpy.correlate with a longer second array has no derivative rule")
    return _window(e, e.numpy(np.convolve, a, e(ops.FLIP, e.conj(v), axis=(0,))), a, v, mode)


def _window(e: Emit, full: Node, a: Node, v: Node, mode: str) -> Node:
    """The part of a full convolution that a mode returns."""
    n, m = a.tensor.shape[0], v.tensor.shape[0]
    longer, shorter = (n, m) if n >= m else (m, n)
    if mode == "full":
        return full
    start, size = (shorter - 1, longer - shorter + 1) if mode == "valid" else ((shorter - 1) // 2, longer)
    return e(ops.INDEX, full, key=(slice(start, start + size),))


@composed("linalg.matrix_power")
def _matrix_power(e: Emit, node: Node) -> Node:
    a, n = _array(node, 0, "a"), argument(node, 1, "n")
    inverse = power = e.numpy(np.linalg.inv, a)
    for _ in range(-n - 1):
        power = e(ops.MATMUL, power, inverse)
    return power


# -- statistics --------------------------------------------------------------------------------------------------------
@composed("sum")
def _sum(e: Emit, node: Node) -> Node:
    _only(node, 1, "axis", "keepdims", "initial")
    x, initial = _array(node, 0, "a"), _alike(e, node, _operand(node, keyword(node, "initial", 0.0)))
    found = e.numpy(np.sum, x, axis=keyword(node, "axis"), keepdims=bool(keyword(node, "keepdims", False)))
    return e.add(found, initial)


@composed("average")
def _average(e: Emit, node: Node) -> Node:
    _only(node, 3, "axis", "weights", "keepdims")
    x, axis, weights = _array(node, 0, "a"), argument(node, 1, "axis"), _given(node, 2, "weights")
    keepdims = bool(keyword(node, "keepdims", False))
    if weights is None:
        return e.numpy(np.mean, x, axis=axis, keepdims=keepdims)
    x, weights = _alike(e, node, x), _alike(e, node, weights)
    if not isinstance(weights, Node) or isinstance(axis, tuple):
        raise DerivativeError("numpy.average with these weights has no derivative rule")
    if weights.tensor.ndim < x.tensor.ndim:
        place = axis % x.tensor.ndim
        weights = e.reshape(weights, [weights.tensor.size if i == place else 1 for i in range(x.tensor.ndim)])
    weights = e.broadcast(weights, x.tensor.shape)
    above = e.numpy(np.sum, e.multiply(x, weights), axis=axis, keepdims=keepdims)
    return e.divide(above, e.numpy(np.sum, weights, axis=axis, keepdims=keepdims))


@composed("cov")
def _cov(e: Emit, node: Node) -> Node:
    _only(node, 1, "rowvar", "bias", "ddof")
    x = _array(node, 0, "m")
    rows = e.reshape(x, (1, x.tensor.size)) if x.tensor.ndim < 2 else x
    rows = rows if keyword(node, "rowvar", True) or x.tensor.ndim < 2 else e.permute(rows, [1, 0])
    ddof = keyword(node, "ddof")
    ddof = ddof if ddof is not None else 0 if keyword(node, "bias", False) else 1
    rows = e.subtract(rows, e.numpy(np.mean, rows, axis=1, keepdims=True))
    return e.divide(e(ops.MATMUL, rows, e.permute(rows, [1, 0])), rows.tensor.shape[1] - ddof)


@composed("corrcoef")
def _corrcoef(e: Emit, node: Node) -> Node:
    _only(node, 1, "rowvar")
    if _array(node, 0, "x").tensor.ndim < 2:
        raise DerivativeError("numpy.corrcoef of one row has no derivative rule")
    found = _cov(e, node)
    n = found.tensor.shape[0]
    scale = e(ops.SQRT, e(ops.DIAGONAL, found, offset=0, axis1=0, axis2=1))
    return e.divide(e.divide(found, e.reshape(scale, (n, 1))), scale)


@composed("percentile", "quantile")
def _quantile(e: Emit, node: Node) -> Node:
    _only(node, 3, "axis", "keepdims")
    q = argument(node, 1, "q")
    if isinstance(q, bool) or not isinstance(q, int | float) or keyword(node, "keepdims", False):
        raise DerivativeError(f"{node.attrs['target']} with these arguments has no derivative rule")
    return _at(e, node, _array(node, 0, "a"), argument(node, 2, "axis"), q / 100 if "percentile" in _name(node) else q)


def _name(node: Node) -> str:
    name: str = node.attrs["target"]
    return name.replace("tcompile.frontends.numpy.quiet", "numpy")


def _median(e: Emit, node: Node) -> Node:
    _only(node, 2, "axis", "keepdims")
    if keyword(node, "keepdims", False):
        raise DerivativeError("numpy.median with keepdims has no derivative rule")
    return _at(e, node, _array(node, 0, "a"), argument(node, 1, "axis"), 0.5)


COMPOSED["tcompile.frontends.numpy.quiet.median"] = COMPOSED["numpy.median"] = _median


def _at(e: Emit, node: Node, x: Node, axis: int | None, q: float) -> Node:
    """The quantile by linear interpolation between two elements in order."""
    if axis is None:
        x, axis = e.reshape(x, (x.tensor.size,)), 0
    if isinstance(axis, tuple):
        raise DerivativeError(f"{_name(node)} over several axes has no derivative rule")
    axis %= x.tensor.ndim
    size = x.tensor.shape[axis]
    count = size.specialise() if isinstance(size, SymInt) else size
    if not count:
        raise DerivativeError(f"{_name(node)} of no elements has no derivative rule")
    place = (count - 1) * q
    low = min(math.floor(place), count - 1)
    high = min(low + 1, count - 1)
    ordered = e(ops.SORT, x, axis=axis)
    lead = (slice(None),) * axis
    below, above = (e(ops.INDEX, ordered, key=(*lead, i)) for i in (low, high))
    return e.add(e.multiply(below, 1.0 - (place - low)), e.multiply(above, place - low))


# -- functions of one number -------------------------------------------------------------------------------------------
@composed("sinc")
def _sinc(e: Emit, node: Node) -> Node:
    x = _array(node, 0, "x")
    y = e.multiply(e.where(e(ops.EQUAL, x, 0.0), 1e-20, x), math.pi)
    return e.divide(e(ops.SIN, y), y)


@composed("float_power")
def _float_power(e: Emit, node: Node) -> Node:
    def wide(operand: Operand) -> Operand:
        return e.cast(operand, np.dtype("float64")) if isinstance(operand, Node) else operand

    return e(ops.POW, wide(_given(node, 0, "x1")), wide(_given(node, 1, "x2")))


@composed("logaddexp2")
def _logaddexp2(e: Emit, node: Node) -> Node:
    def scaled(operand: Any) -> Operand:
        return e.multiply(operand, math.log(2.0)) if isinstance(operand, Node) else operand * math.log(2.0)

    a, b = (scaled(_alike(e, node, _given(node, i, name))) for i, name in enumerate(("x1", "x2")))
    return e.divide(e(ops.LOGADDEXP, a, b), math.log(2.0))


@composed("interp")
def _interp(e: Emit, node: Node) -> Node:
    _only(node, 3)
    wide = np.dtype("float64")  # whatever the operands' are
    x, xp, fp = (e.cast(_array(node, i, name), wide) for i, name in enumerate(("x", "xp", "fp")))
    last = xp.tensor.shape[0] - 1
    j = e.numpy(np.searchsorted, xp, x, side="right")
    j = e(ops.CLIP, e.subtract(j, 1), 0, last - 1)

    def at(array: Node, index: Node) -> Node:
        return e(ops.GATHER, array, index, axes=(0,))

    right = e.add(j, 1)
    left_x, left_y = at(xp, j), at(fp, j)
    slope = e.divide(e.subtract(at(fp, right), left_y), e.subtract(at(xp, right), left_x))
    inside = e.add(left_y, e.multiply(slope, e.subtract(x, left_x)))
    first, end = (e(ops.INDEX, fp, key=(i,)) for i in (0, last))
    low, high = (e(ops.INDEX, xp, key=(i,)) for i in (0, last))
    return e.where(e(ops.LESS, x, low), first, e.where(e(ops.GREATER, x, high), end, inside))


@composed("vander")
def _vander(e: Emit, node: Node) -> Node:
    _only(node, 2, "N", "increasing")
    x = _array(node, 0, "x")
    count = argument(node, 1, "N")
    count = x.tensor.shape[0] if count is None else count
    powers = e(ops.ARANGE, start=0, stop=count, step=1, dtype=x.tensor.dtype.name)
    powers = powers if keyword(node, "increasing", False) else e(ops.FLIP, powers, axis=(0,))
    return e(ops.POW, e.reshape(x, (x.tensor.shape[0], 1)), powers)


@composed("ediff1d")
def _ediff1d(e: Emit, node: Node) -> Node:
    _only(node, 1)
    x = _array(node, 0, "ary")
    return e.numpy(np.diff, e.reshape(x, (x.tensor.size,)))


@composed("asfortranarray", "asarray_chkfinite", "require")
def _same(e: Emit, node: Node) -> Node:
    return e(ops.COPY, _array(node, 0, "a"))


@composed("ndarray.flatten")
def _flatten(e: Emit, node: Node) -> Node:
    x, order = _array(node, 0, "self"), argument(node, 1, "order", "C")
    if order not in ("C", "F"):
        raise DerivativeError(f"flatten in the order {order!r} has no derivative rule")
    x = x if order == "C" else e.permute(x, list(reversed(range(x.tensor.ndim))))
    return e.reshape(x, (x.tensor.size,))


# -- singular values ---------------------------------------------------------------------------------------------------
def _singular(e: Emit, x: Node) -> Node:
    if not always(lambda: x.tensor.size > 0):
        raise DerivativeError("the singular values of an array without elements have no derivative rule")
    return e.several(np.linalg.svd, x, False)[1]


@composed("linalg.svdvals")
def _svdvals(e: Emit, node: Node) -> Node:
    return _singular(e, _array(node, 0, "x"))


@composed("linalg.norm", "linalg.matrix_norm")
def _norm(e: Emit, node: Node) -> Node:
    _only(node, 2, "ord")
    x = _array(node, 0, "x")
    order = argument(node, 1, "ord", "fro" if "matrix" in _name(node) else None)
    if x.tensor.ndim == 2 and order in (2, -2, "nuc"):
        found = _singular(e, x)
        if order == "nuc":
            return e(ops.SUM, found, axis=(0,), keepdims=False)
        return e(ops.MAX if order == 2 else ops.MIN, found, axis=(0,), keepdims=False)
    if x.tensor.ndim == 2 and order in (1, -1, math.inf, -math.inf):
        sums = e(ops.SUM, e(ops.ABS, x), axis=(0 if abs(order) == 1 else 1,), keepdims=False)
        return e(ops.MAX if order > 0 else ops.MIN, sums, axis=(0,), keepdims=False)
    if order in ("fro", None):
        axes = tuple(range(x.tensor.ndim))
        axes = axes[-2:] if "matrix" in _name(node) else axes
        return e(ops.SQRT, e(ops.SUM, _squares(e, x), axis=axes, keepdims=False))
    raise DerivativeError(f"{_name(node)} with ord={order!r} has no derivative rule")


@composed("linalg.cond")
def _cond(e: Emit, node: Node) -> Node:
    _only(node, 2, "p")
    x, p = _array(node, 0, "x"), argument(node, 1, "p")
    if p not in (None, 2) or x.tensor.ndim != 2:
        raise DerivativeError(f"numpy.linalg.cond with p={p!r} has no derivative rule")
    found = _singular(e, x)
    largest, smallest = (e(row, found, axis=(0,), keepdims=False) for row in (ops.MAX, ops.MIN))
    return e.divide(largest, smallest)


__all__ = ["COMPOSED", "pulls"]
