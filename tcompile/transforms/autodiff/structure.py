"""Derivatives of views, copies, writes and reads at computed places: what moves elements and computes none.

Input: a node and its result's cotangent.
Output: the operands' cotangents.
Why: all of these are linear, and each one's transpose is another of them: a part that is read becomes a part that is
written, and the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.errors import DerivativeError
from tcompile.graph import ops
from tcompile.graph.ir import Node
from tcompile.graph.ops.writing import Path, step_of
from tcompile.graph.sizes import Size
from tcompile.transforms.autodiff.table import Part, Pull, complex_too, constant, derivative
from tcompile.transforms.emit import Emit

constant(ops.EMPTY, ops.FULL, ops.ARANGE, ops.EYE, ops.LINSPACE, ops.ARGSORT)
complex_too(
    ops.RESHAPE, ops.RAVEL, ops.EXPAND_DIMS, ops.SQUEEZE, ops.REAL, ops.IMAG, ops.PERMUTE_DIMS, ops.BROADCAST_TO,
    ops.FLIP, ops.INDEX, ops.DIAGONAL, ops.WINDOWS, ops.COPY, ops.COPY_C, ops.ASSIGN, ops.GATHER, ops.SCATTER,
    ops.COMBINE, ops.CONCAT, ops.ROLL,
)  # fmt: skip


def _shape(node: Node) -> tuple[Size, ...]:
    return node.inputs[0].tensor.shape


@derivative(ops.RESHAPE, ops.RAVEL, ops.EXPAND_DIMS, ops.SQUEEZE)
def _reshape(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.reshape(g, _shape(node))]


@derivative(ops.REAL)
def _real(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.cast(g, node.inputs[0].tensor.dtype)]


@derivative(ops.IMAG)
def _imag(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    """``imag(z)`` is the real part of ``-i z``."""
    z = node.inputs[0]
    return [lambda: e.multiply(e.cast(g, z.tensor.dtype), e.full(z, -1j, ()))]


@derivative(ops.PERMUTE_DIMS)
def _permute(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    axes = node.attrs["axes"]
    return [lambda: e.permute(g, [axes.index(i) for i in range(len(axes))])]


@derivative(ops.BROADCAST_TO)
def _broadcast(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e.sum_to(g, _shape(node))]


@derivative(ops.FLIP)
def _flip(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e(ops.FLIP, g, axis=node.attrs["axis"])]


def _zeros(e: Emit, node: Node) -> Node:
    """Zeros of the first operand's shape."""
    return e.full(node, 0.0, _shape(node))


def _is_whole(item: Any) -> bool:
    """Whether an item of a key leaves no element out."""
    return item is None or item is Ellipsis or (isinstance(item, slice) and item == slice(None))


@derivative(ops.INDEX)
def _index(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    if all(_is_whole(item) for item in node.attrs["key"]):
        return [lambda: e.reshape(g, _shape(node))]  # all elements, in order
    path = (step_of(ops.INDEX, node.attrs),)
    return [lambda: Part(path, g)]


@derivative(ops.DIAGONAL)
def _diagonal(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    first, second, offset = (node.attrs[key] for key in ("axis1", "axis2", "offset"))

    def pull() -> Node:
        length = node.tensor.shape[-1]
        along = e(ops.ARANGE, start=0, stop=length, step=1, dtype="int64")
        rows, columns = (along, e.add(along, offset)) if offset >= 0 else (e.subtract(along, offset), along)
        turned = e.permute(g, [g.tensor.ndim - 1, *range(g.tensor.ndim - 1)])  # the places come first
        return e(ops.SCATTER, _zeros(e, node), turned, rows, columns, axes=(first, second), path=())

    return [pull]


@derivative(ops.WINDOWS)
def _windows(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    axes, sizes = node.attrs["axes"], node.attrs["sizes"]
    if len(set(axes)) != len(axes):
        raise DerivativeError("windows along one axis twice")

    def pull() -> Node:
        ndim, many = len(_shape(node)), len(axes)
        places = []
        for number, (axis, size) in enumerate(zip(axes, sizes, strict=True)):
            starts = e(ops.ARANGE, start=0, stop=node.tensor.shape[axis], step=1, dtype="int64")
            inside = e(ops.ARANGE, start=0, stop=size, step=1, dtype="int64")
            shape = [1] * (2 * many)
            rows = e.reshape(starts, [node.tensor.shape[axis] if i == number else n for i, n in enumerate(shape)])
            places.append(e.add(rows, e.reshape(inside, [size if i == many + number else 1 for i in range(2 * many)])))
        rest = [axis for axis in range(ndim) if axis not in axes]
        turned = e.permute(g, [*axes, *range(ndim, ndim + many), *rest])
        return e(ops.COMBINE, _zeros(e, node), turned, *places, axes=tuple(axes), path=(), ufunc="add")

    return [pull]


@derivative(ops.COPY, ops.COPY_C)
def _copy(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: g]


def _whole(path: Path) -> Path:
    """A path of a write. Raises DerivativeError where it leads to the real or the imaginary part alone."""
    if any(name in ("real", "imag") for name, _ in path):
        raise DerivativeError("a write to the real or the imaginary part has no derivative rule")
    return path


@derivative(ops.ASSIGN)
def _assign(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    _, value = node.inputs
    path = _whole(node.attrs["path"])

    def to_base() -> Node:
        if not path:
            return e.full(node, 0.0)
        return e(ops.ASSIGN, g, e.full(node, 0.0, ()), path=path)

    return [to_base, lambda: e.sum_to(e.shown(g, path), value.tensor.shape)]


@derivative(ops.GATHER)
def _gather(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    _, *indices = node.inputs
    zeros = _zeros(e, node)
    return [
        lambda: e(ops.COMBINE, zeros, g, *indices, axes=node.attrs["axes"], path=(), ufunc="add"),
        *(None for _ in indices),
    ]


@derivative(ops.SCATTER)
def _scatter(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    base, value, *indices = node.operands
    axes, path = node.attrs["axes"], _whole(node.attrs["path"])

    def to_base() -> Node:
        return e(ops.SCATTER, g, e.full(node, 0.0, ()), *indices, axes=axes, path=path)

    def to_value() -> Node:
        assert isinstance(value, Node) and isinstance(base, Node)
        taken = e(ops.GATHER, e.shown(g, path), *indices, axes=axes)
        if all(not i.tensor.ndim for i in indices if isinstance(i, Node)):  # one place
            return e.sum_to(taken, value.tensor.shape)
        # Of several values for one place the last one stays, and has the derivative: each writes its number.
        count = taken.tensor.size
        numbers = e.reshape(e(ops.ARANGE, start=0, stop=count, step=1, dtype="int64"), taken.tensor.shape)
        part = e.shown(e(ops.FULL, shape=base.tensor.shape, fill_value=-1, dtype="int64"), path)
        whole = e(ops.COPY_C, part) if path else part
        last = e(ops.GATHER, e(ops.SCATTER, whole, numbers, *indices, axes=axes, path=()), *indices, axes=axes)
        return e.sum_to(e.where(e(ops.EQUAL, last, numbers), taken, 0.0), value.tensor.shape)

    return [to_base, to_value if isinstance(value, Node) else None, *(None for _ in indices)]


@derivative(ops.COMBINE)
def _combine(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    _, value, *indices = node.operands
    axes, path, name = node.attrs["axes"], _whole(node.attrs["path"]), node.attrs["ufunc"]
    if name not in ("add", "subtract"):
        raise DerivativeError(f"np.{name}.at has no derivative rule")

    def to_value() -> Node:
        assert isinstance(value, Node)
        taken = e.sum_to(e(ops.GATHER, e.shown(g, path), *indices, axes=axes), value.tensor.shape)
        return e.negative(taken) if name == "subtract" else taken

    return [lambda: g, to_value if isinstance(value, Node) else None, *(None for _ in indices)]


@derivative(ops.CONCAT)
def _concat(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    axis = node.attrs["axis"]
    start: Size = 0
    pulls: list[Pull | None] = []
    for part in node.inputs:
        key = (*(slice(None),) * axis, slice(start, start + part.tensor.shape[axis]))
        pulls.append(lambda key=key: e(ops.INDEX, g, key=key))  # type: ignore[misc]
        start = start + part.tensor.shape[axis]
    return pulls


@derivative(ops.ROLL)
def _roll(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    return [lambda: e(ops.ROLL, g, shifts=tuple(-shift for shift in node.attrs["shifts"]))]


def _along(e: Emit, x: Node, order: Node, axis: int) -> Node:
    """``np.take_along_axis``."""
    shape = x.tensor.shape
    places = []
    for number, size in enumerate(shape):
        if number == axis:
            places.append(order)
            continue
        numbers = e(ops.ARANGE, start=0, stop=size, step=1, dtype="int64")
        places.append(e.reshape(numbers, [size if i == number else 1 for i in range(len(shape))]))
    return e(ops.GATHER, x, *places, axes=tuple(range(len(shape))))


@derivative(ops.SORT)
def _sort(e: Emit, node: Node, g: Node) -> Sequence[Pull | None]:
    axis = node.attrs["axis"]
    axis += node.tensor.ndim if axis < 0 else 0

    def pull() -> Node:
        order = e(ops.ARGSORT, node.inputs[0], axis=axis)
        return _along(e, g, e(ops.ARGSORT, order, axis=axis), axis)

    return [pull]
