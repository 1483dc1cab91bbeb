"""Derivatives of library calls: linear algebra, and functions that only move elements.

Input: a ``call`` node and its result's cotangent.
Output: the operands' cotangents, by the same library's functions.
Why: a call is known by its target alone; what has no rule here is an error that names it.

Sources: M. Giles, Collected matrix derivative results for forward and reverse mode (2008), for inverses, determinants
and solutions; I. Murray, Differentiation of the Cholesky decomposition (2016); for eigenvalues Giles as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.ir import Node
from tcompile.graph.ops.opaque import Slot, resolve
from tcompile.graph.ops.writing import step_of
from tcompile.graph.sizes import Size, is_one
from tcompile.transforms.autodiff.composed import COMPOSED, pulls
from tcompile.transforms.autodiff.reverse import LOOPS, Walk
from tcompile.transforms.autodiff.table import COMPLEX_CALLS, VJPS, Pull, derivative
from tcompile.transforms.emit import Emit, is_complex, is_float
from tcompile.transforms.library_calls import argument, at_first_places, einsum_labels, keyword

TARGETS: dict[str, Callable[[Emit, Node, Node], Sequence[Pull | None]]] = {}
PARTS: dict[str, Callable[[Emit, Node, dict[int, Node]], Node]] = {}  # of one operand, with several results
_MOVES = frozenset({
    "append", "array", "block", "choose", "column_stack", "delete", "dstack", "hstack", "insert", "repeat", "resize",
    "roll", "stack", "take", "take_along_axis", "tile", "vstack",
})  # fmt: skip
# The arguments that are values, by position and name; others have one, the first.
_VALUES: dict[str, tuple[tuple[int, ...], tuple[str, ...]]] = {
    "append": ((0, 1), ("arr", "values")), "choose": ((1,), ("choices",)), "insert": ((0, 2), ("arr", "values")),
}  # fmt: skip
COMPLEX_CALLS.update(f"numpy.{name}" for name in _MOVES)
COMPLEX_CALLS.update(
    f"numpy.{name}"
    for name in (
        "convolve", "correlate", "diff", "dot", "einsum", "inner", "linalg.det", "linalg.inv", "linalg.matrix_norm",
        "linalg.multi_dot", "linalg.norm", "linalg.outer", "linalg.solve", "linalg.vecdot", "matmul", "pad", "tril",
        "triu", "tensordot", "linalg.tensordot", "var", "std", "vdot", "vecdot",
    )
)  # fmt: skip
COMPLEX_CALLS.add("tcompile.frontends.numpy.einsum.by_blas")
_COPIES = ("numpy.copy", "numpy.ndarray.astype", "numpy.ndarray.copy")
COMPLEX_CALLS.update(_COPIES)
_MOST_FACTORS = 16  # of a power of a matrix: each is a product of its own
_PADS = ("edge", "reflect", "symmetric", "wrap")


def target(*names: str) -> Callable[[Any], Any]:
    """Registers the rule of some calls."""

    def register(rule: Any) -> Any:
        for name in names:
            TARGETS[name] = rule
        return rule

    return register


def several(*names: str) -> Callable[[Any], Any]:
    """Registers the rule of some calls with several results: it takes the cotangents of those that have one."""

    def register(rule: Any) -> Any:
        for name in names:
            PARTS[name] = rule
        return rule

    return register


@derivative(ops.CALL)
def _call(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    name = node.attrs["target"]
    rule = TARGETS.get(name)
    if rule is not None:
        return rule(e, node, g)
    if name.removeprefix("numpy.") in _MOVES or (name == "numpy.pad" and argument(node, 2, "mode") in _PADS):
        return at_first_places(node, partial(_moved, e, node, g))
    if name in COMPOSED:
        return pulls(e, node, g)
    raise DerivativeError(f"{name} has no derivative rule")


def _several(walk: Walk, node: Node) -> None:
    rule = PARTS.get(node.attrs["target"])
    if rule is None:
        raise DerivativeError(walk.why(node))
    if any(map(is_complex, node.inputs)):
        raise DerivativeError(walk.why(node, f"{node.attrs['target']} has no derivative rule for complex numbers"))
    walk.add(node.inputs[0], rule(walk.e, node, walk.results[node]))


LOOPS[ops.CALL] = _several


# -- what only moves elements ------------------------------------------------------------------------------------------
def _moved(e: Emit, node: Node, g: Node, number: int) -> Pull | None:
    """The same call on the elements' numbers says where each element of the result comes from."""
    operand = node.operands[number]
    if not isinstance(operand, Node) or not is_float(operand):
        return None

    def pull() -> Node:
        args, kwargs = _numbered(e, node, operand)
        places = e.numpy(resolve(node.attrs["target"]), *args, **kwargs)
        size = operand.tensor.size
        flat = e.cast(e.reshape(places, [places.tensor.size]), np.dtype("int64"))
        values = e.where(e(ops.GREATER_EQUAL, flat, 0), e.reshape(g, [g.tensor.size]), 0.0)
        zeros = e.full(operand, 0.0, [size])
        taken = e(ops.COMBINE, zeros, values, e(ops.MAXIMUM, flat, 0), axes=(0,), path=(), ufunc="add")
        return e.reshape(taken, operand.tensor.shape)

    return pull


def _numbered(e: Emit, node: Node, operand: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call that moves values, with the elements' numbers in the place of ``operand``.

    All other values are -1. Indices, counts and axes are as they were.
    """
    places, names = _VALUES.get(node.attrs["target"].removeprefix("numpy."), ((0,), ()))

    def of(template: Any, is_value: bool) -> Any:
        if isinstance(template, Slot):
            given = node.operands[template.index]
            if not is_value or not isinstance(given, Node):
                return -1 if is_value else given
            if given is operand:
                return _numbers(e, given)
            return e(ops.FULL, shape=given.tensor.shape, fill_value=-1, dtype="int64")
        if isinstance(template, tuple | list):
            return type(template)(of(item, is_value) for item in template)
        return -1 if is_value and isinstance(template, bool | int | float) else template

    args = tuple(of(part, i in places) for i, part in enumerate(node.attrs["args"]))
    return args, {key: of(part, key in names) for key, part in node.attrs["kwargs"]}


def _numbers(e: Emit, x: Node) -> Node:
    numbers = e(ops.ARANGE, start=0, stop=x.tensor.size, step=1, dtype="int64")
    return e.reshape(numbers, x.tensor.shape)


@target(*_COPIES)
def _copy(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: g]


@target("numpy.roll")
def _roll(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    shift, axis = argument(node, 1, "shift"), argument(node, 2, "axis")
    if any(isinstance(part, Slot) for part in (shift if isinstance(shift, tuple) else (shift,))):
        return [_moved(e, node, g, 0), *(None for _ in node.operands[1:])]
    back = tuple(-part for part in shift) if isinstance(shift, tuple) else -shift
    return [lambda: e.numpy(np.roll, g, back, axis=axis)]


@target("numpy.pad")
def _pad(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    mode = argument(node, 2, "mode", "constant")
    odd = keyword(node, "reflect_type", "even") == "odd"
    folds = len(node.operands) == 1 and (mode == "constant" or (mode in _PADS and _folds(node, mode)))
    if mode in _PADS and not folds and not odd:
        return [_moved(e, node, g, 0), *(None for _ in node.operands[1:])]
    if not folds:
        what = ", reflect_type='odd' and so many elements" if odd else ""
        raise DerivativeError(f"numpy.pad with the mode {mode!r}{what} has no derivative rule")

    def pull() -> Node:
        given = g
        for axis, (before, after) in enumerate(_pad_widths(node)):
            given = _folded(e, given, mode, axis, before, after, odd)
        return given

    return [pull]


def _pad_widths(node: Node) -> list[list[int]]:
    """For each axis how many elements are added before and after."""
    widths = np.broadcast_to(np.asarray(argument(node, 1, "pad_width")), (node.inputs[0].tensor.ndim, 2))
    found: list[list[int]] = widths.tolist()
    return found


def _folds(node: Node, mode: str) -> bool:
    """Whether each added element is one of those that are padded, by the mode's usual rule."""
    least = {"edge": 1, "reflect": 2, "symmetric": 1, "wrap": 1}[mode]
    for (before, after), size in zip(_pad_widths(node), node.inputs[0].tensor.shape, strict=True):
        longest = max(before, after) if mode != "edge" else 0
        if not isinstance(size, int) or size < max(least, longest + (mode == "reflect")):
            return False
    return True


def _folded(e: Emit, g: Node, mode: str, axis: int, before: int, after: int, odd: bool) -> Node:
    """The cotangent along one axis before padding: what was added is added to the elements that it copies.

    ``odd``: it was twice the edge minus such an element.
    """

    def part(x: Node, start: int | None, stop: int | None, step: int = 1) -> Node:
        return e(ops.INDEX, x, key=(*[slice(None)] * axis, slice(start, stop, step)))

    def plus(x: Node, start: int, stop: int, value: Node) -> Node:
        path = (step_of(ops.INDEX, {"key": (*[slice(None)] * axis, slice(start, stop))}),)
        return e(ops.ASSIGN, x, e.add(e.shown(x, path), value), path=path)

    size = g.tensor.shape[axis] - before - after
    assert isinstance(size, int)
    made = part(g, before, before + size)
    if mode == "constant":
        return made
    sides = [(part(g, 0, before), before, True), (part(g, before + size, None), after, False)]
    for value, count, first in sides:
        if not count:
            continue
        edge = (0, 1) if first else (size - 1, size)
        if odd:
            total = e(ops.SUM, value, axis=(axis,), keepdims=True)
            made, value = plus(made, *edge, e.multiply(total, 2.0)), e.negative(value)
        if mode == "edge":
            start, stop = edge
            value = e(ops.SUM, value, axis=(axis,), keepdims=True)
        elif mode == "wrap":
            start, stop = (size - count, size) if first else (0, count)
        else:
            away = int(mode == "reflect")
            start, stop = (away, away + count) if first else (size - away - count, size - away)
            value = part(value, None, None, -1)
        made = plus(made, start, stop, value)
    return made


# -- linear algebra ----------------------------------------------------------------------------------------------------
def _t(e: Emit, x: Node) -> Node:
    """Matrices transposed."""
    ndim = x.tensor.ndim
    return e.permute(x, [*range(ndim - 2), ndim - 1, ndim - 2])


def _mm(e: Emit, a: Node, b: Node) -> Node:
    return e(ops.MATMUL, a, b)


def _inverse_t(e: Emit, a: Node) -> Node:
    return _t(e, e.numpy(np.linalg.inv, a))


def _beside(e: Emit, value: Node) -> Node:
    """A number for each matrix, beside the matrices' elements."""
    return e.reshape(value, [*value.tensor.shape, 1, 1])


@target("numpy.linalg.inv")
def _inv(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.negative(_mm(e, _mm(e, _t(e, node), g), _t(e, node)))]


@target("numpy.linalg.det")
def _det(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.multiply(_beside(e, e.multiply(g, node)), _inverse_t(e, node.inputs[0]))]


@target("numpy.linalg.solve")
def _solve(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    a, b = node.inputs
    is_vector = b.tensor.ndim == 1

    def to_b() -> Node:
        return e.numpy(np.linalg.solve, _t(e, a), g)

    def whole_b() -> Node:
        return e.sum_to(to_b(), b.tensor.shape)

    def to_a() -> Node:
        pulled = to_b()
        rows = e.reshape(pulled, [*pulled.tensor.shape, 1]) if is_vector else pulled
        columns = e.reshape(node, [*node.tensor.shape, 1]) if is_vector else node
        return e.sum_to(e.negative(_mm(e, rows, _t(e, columns))), a.tensor.shape)

    return [to_a, whole_b]


@target("numpy.linalg.cholesky")
def _cholesky(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    def pull() -> Node:
        half = e.numpy(np.tril, _mm(e, _t(e, node), e.numpy(np.tril, g)))
        n = node.tensor.shape[-1]
        eye = e(ops.EYE, n_rows=n, n_cols=n, k=0, dtype=node.tensor.dtype.name)
        half = e.multiply(half, e.subtract(1.0, e.multiply(eye, 0.5)))
        inverse = e.numpy(np.linalg.inv, node)
        made = _mm(e, _mm(e, _t(e, inverse), half), inverse)
        return e.multiply(e.add(made, _t(e, made)), 0.5)

    return [pull]


@several("numpy.linalg.slogdet")
def _slogdet(e: Emit, node: Node, given: dict[int, Node]) -> Node:
    a = node.inputs[0]
    if 1 not in given:
        return e.full(a, 0.0)
    return e.multiply(_beside(e, given[1]), _inverse_t(e, a))


def _results(e: Emit, node: Node) -> list[Node]:
    """What a call has given."""
    assert isinstance(node.type, tuple)
    return [e.graph.append(ops.GET, [node], {"index": i}, t) for i, t in enumerate(node.type)]


@several("numpy.linalg.eigh")
def _eigh(e: Emit, node: Node, given: dict[int, Node]) -> Node:
    values, vectors = _results(e, node)
    n: Size = values.tensor.shape[-1]
    inner: Node | None = None
    if 1 in given:
        columns = e.reshape(values, [*values.tensor.shape[:-1], 1, n])
        rows = e.reshape(values, [*values.tensor.shape, 1])
        eye = e(ops.EYE, n_rows=n, n_cols=n, k=0, dtype=values.tensor.dtype.name)
        gaps = e.add(e.subtract(columns, rows), eye)
        inner = e.multiply(e.divide(_mm(e, _t(e, vectors), given[1]), gaps), e.subtract(1.0, eye))
    if 0 in given:
        diagonal = _diagonal(e, given[0])
        inner = diagonal if inner is None else e.add(inner, diagonal)
    assert inner is not None
    made = _mm(e, _mm(e, vectors, inner), _t(e, vectors))
    return _lower(e, node, made)


def _diagonal(e: Emit, values: Node) -> Node:
    n = values.tensor.shape[-1]
    eye = e(ops.EYE, n_rows=n, n_cols=n, k=0, dtype=values.tensor.dtype.name)
    return e.multiply(eye, e.reshape(values, [*values.tensor.shape, 1]))


def _lower(e: Emit, node: Node, symmetric: Node) -> Node:
    """The cotangent of the triangle that is read: twice the part off the diagonal (LAPACK reads one triangle)."""
    both = e.add(symmetric, _t(e, symmetric))
    n = both.tensor.shape[-1]
    eye = e(ops.EYE, n_rows=n, n_cols=n, k=0, dtype=both.tensor.dtype.name)
    both = e.subtract(both, e.multiply(both, e.multiply(eye, 0.5)))
    upper = argument(node, 1, "UPLO", "L") == "U"
    return e.numpy(np.triu if upper else np.tril, both)


@target("numpy.linalg.eigvalsh")
def _eigvalsh(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    def pull() -> Node:
        _, vectors = e.several(np.linalg.eigh, node.inputs[0], argument(node, 1, "UPLO", "L"))
        made = _mm(e, _mm(e, vectors, _diagonal(e, g)), _t(e, vectors))
        return _lower(e, node, made)

    return [pull]


@target("numpy.deg2rad", "numpy.radians", "numpy.rad2deg", "numpy.degrees")
def _linear(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.numpy(resolve(node.attrs["target"]), g)]


@target("numpy.convolve")
def _convolve(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    a, v = node.inputs
    if argument(node, 2, "mode", "full") != "full":
        return pulls(e, node, g)
    return [lambda: e.numpy(np.correlate, g, e.conj(v), "valid"), lambda: e.numpy(np.correlate, g, e.conj(a), "valid")]


@target("numpy.correlate")
def _correlate(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    a, v = node.inputs
    if argument(node, 2, "mode", "valid") != "valid":
        return pulls(e, node, g)
    if any(map(is_complex, (a, v))):
        return pulls(e, node, g)
    return [lambda: e.numpy(np.convolve, g, v), lambda: e.numpy(np.correlate, a, g, "valid")]


@target("numpy.matmul")
def _matmul(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return VJPS[ops.MATMUL](e, node, g)


@target("numpy.einsum")
def _einsum(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    """Each operand's cotangent is the ``einsum`` of the result's with the other operands."""
    found = einsum_labels(node)
    if found is None:
        raise DerivativeError("numpy.einsum with an ellipsis, or with lists of axes, has no derivative rule")
    labels, output, slots = found
    if any(len(set(part)) != len(part) for part in labels):
        raise DerivativeError("numpy.einsum with a label twice in one operand has no derivative rule")
    return _of_products(e, node, g, labels, output, [slot.index for slot in slots])


@target("tcompile.frontends.numpy.einsum.by_blas")
def _by_blas(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    """Its last two operands are those of ``einsum``, the others views of them."""
    _, _, spec, *slots = node.attrs["args"]
    inputs, _, output = spec.replace(" ", "").partition("->")
    return _of_products(e, node, g, inputs.split(","), output, [slot.index for slot in slots])


def _of_products(
    e: Emit, node: Node, g: Node, labels: Sequence[str], output: str, places: Sequence[int]
) -> Sequence[Pull | None]:
    operands = [node.inputs[place] for place in places]

    def pull(number: int) -> Node:
        own, x = labels[number], operands[number]
        others = [i for i in range(len(labels)) if i != number]
        known = set(output).union(*(labels[i] for i in others))
        kept = "".join(label for label in own if label in known)
        parts = ",".join([output, *(labels[i] for i in others)])
        found = e.numpy(np.einsum, f"{parts}->{kept}", g, *(operands[i] for i in others))
        # An axis may have size 1 in this operand, or in all others.
        wanted, sizes = dict(zip(own, x.tensor.shape, strict=True)), dict(zip(kept, found.tensor.shape, strict=True))
        sizes = {label: 1 if is_one(wanted[label]) else size for label, size in sizes.items()}
        found = e.sum_to(found, [sizes[label] for label in kept])
        return e.broadcast(e.reshape(found, [sizes.get(label, 1) for label in own]), x.tensor.shape)

    pulls: list[Pull | None] = [None] * len(node.operands)
    for number, place in enumerate(places):
        pulls[place] = partial(pull, number)
    return pulls


@target("numpy.tril", "numpy.triu")
def _triangle(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    k = argument(node, 1, "k", 0)
    return [lambda: e.sum_to(e.numpy(resolve(node.attrs["target"]), g, k), node.inputs[0].tensor.shape)]


@target("numpy.fix", "numpy.round", "numpy.around")
def _steps(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [None] * len(node.operands)


@target("numpy.ldexp")
def _ldexp(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    x, power = node.operands[0], argument(node, 1, "x2")
    given = node.operands[power.index] if isinstance(power, Slot) else power
    assert isinstance(x, Node)
    return [lambda: e.sum_to(e.numpy(np.ldexp, g, given), x.tensor.shape), *(None for _ in node.operands[1:])]


@several("numpy.modf")
def _modf(e: Emit, node: Node, given: dict[int, Node]) -> Node:
    return given.get(0, e.full(node.inputs[0], 0.0))  # the other result is a step function


@target("numpy.linalg.pinv")
def _pinv(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    """Golub and Pereyra, The differentiation of pseudo-inverses (1973), for matrices of constant rank."""
    a, p = node.inputs[0], node
    if len(node.operands) != 1:
        raise DerivativeError("numpy.linalg.pinv with a tolerance has no derivative rule")

    def rest(x: Node, y: Node) -> Node:
        """The identity without a projection."""
        n = x.tensor.shape[-2]
        return e.subtract(e(ops.EYE, n_rows=n, n_cols=n, k=0, dtype=x.tensor.dtype.name), _mm(e, x, y))

    def pull() -> Node:
        first = e.negative(_mm(e, _mm(e, _t(e, p), g), _t(e, p)))
        second = _mm(e, _mm(e, rest(a, p), _t(e, g)), _mm(e, p, _t(e, p)))
        third = _mm(e, _mm(e, _mm(e, _t(e, p), p), _t(e, g)), rest(p, a))
        return e.add(e.add(first, second), third)

    return [pull]


@several("numpy.linalg.svd")
def _svd(e: Emit, node: Node, given: dict[int, Node]) -> Node:
    """Townsend, Differentiating the singular value decomposition (2016), for distinct singular values."""
    if argument(node, 1, "full_matrices", True) and (0 in given or 2 in given):
        raise DerivativeError("numpy.linalg.svd with full_matrices=True has no derivative rule: pass False")
    u, s, vt = _results(e, node)
    k: Size = s.tensor.shape[-1]
    if argument(node, 1, "full_matrices", True):
        u = e(ops.INDEX, u, key=(Ellipsis, slice(0, k)))
        vt = e(ops.INDEX, vt, key=(Ellipsis, slice(0, k), slice(None)))
    eye = e(ops.EYE, n_rows=k, n_cols=k, k=0, dtype=s.tensor.dtype.name)
    columns, rows = (e.reshape(s, [*s.tensor.shape[:-1], *shape]) for shape in ((1, k), (k, 1)))
    inner = _diagonal(e, given[1]) if 1 in given else None
    more: list[Node] = []
    if 0 in given or 2 in given:
        gaps = e.add(e.subtract(e(ops.SQUARE, columns), e(ops.SQUARE, rows)), eye)
        factors = e.divide(e.subtract(1.0, eye), gaps)

        def turning(x: Node) -> Node:
            return e.multiply(factors, e.subtract(x, _t(e, x)))

        if 0 in given:
            part = e.multiply(turning(_mm(e, _t(e, u), given[0])), columns)
            inner = part if inner is None else e.add(inner, part)
            off = e.subtract(given[0], _mm(e, u, _mm(e, _t(e, u), given[0])))
            more.append(_mm(e, e.divide(off, columns), vt))
        if 2 in given:
            gv, v = _t(e, given[2]), _t(e, vt)
            part = e.multiply(turning(_mm(e, vt, gv)), rows)
            inner = part if inner is None else e.add(inner, part)
            off = e.subtract(gv, _mm(e, v, _mm(e, vt, gv)))
            more.append(_mm(e, u, _t(e, e.divide(off, columns))))
    assert inner is not None
    total = _mm(e, _mm(e, u, inner), vt)
    for part in more:
        total = e.add(total, part)
    return total


@several("numpy.linalg.qr")
def _qr(e: Emit, node: Node, given: dict[int, Node]) -> Node:
    """Walter and Lehmann, On evaluating higher-order derivatives of the QR decomposition (2012)."""
    a = node.inputs[0]
    m, n = a.tensor.shape[-2:]
    if argument(node, 1, "mode", "reduced") != "reduced" or not m >= n:
        raise DerivativeError("numpy.linalg.qr of a wide matrix, or in another mode, has no derivative rule")
    q, r = _results(e, node)
    gq = given.get(0, e.full(q, 0.0))
    gr = given.get(1, e.full(r, 0.0))
    inner = e.subtract(_mm(e, r, _t(e, gr)), _mm(e, _t(e, gq), q))
    below = e.numpy(np.tril, inner, -1)
    symmetric = e.add(e.add(below, _t(e, below)), e.subtract(e.numpy(np.tril, inner), below))
    return _t(e, e.numpy(np.linalg.solve, r, _t(e, e.add(gq, _mm(e, q, symmetric)))))


@target("numpy.linalg.matrix_power")
def _matrix_power(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    n = argument(node, 1, "n")
    if isinstance(n, int) and -_MOST_FACTORS <= n < 0:
        return pulls(e, node, g)
    if not isinstance(n, int) or not 0 <= n <= _MOST_FACTORS:
        raise DerivativeError(f"numpy.linalg.matrix_power with the exponent {n} has no derivative rule")

    def pull() -> Node:
        powers: list[Node] = []
        for _ in range(n - 1):
            powers.append(_mm(e, powers[-1], powers[0]) if powers else _t(e, node.inputs[0]))
        total = e.full(node, 0.0)
        for i in range(n):
            left = _mm(e, powers[i - 1], g) if i else g
            total = e.add(total, _mm(e, left, powers[n - 2 - i]) if i < n - 1 else left)
        return total

    return [pull]


__all__ = ["PARTS", "TARGETS"]
