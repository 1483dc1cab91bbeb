"""Overlap of views of one array, and NumPy's order of copies between them.

Input: nodes that are written to, and nodes whose elements are.
Output: whether they may overlap, and ``in_turn``.
Why: NumPy makes a temporary copy for an overlap only where the target has several axes or the two have opposite
directions. Else it copies element by element, forwards, or backwards where the source begins before the target and
reaches into it. So it may read an element that it has just written, which no kernel does (NumPy's
``PyArray_AssignArray``).
"""

from __future__ import annotations

from typing import Any

from tcompile.graph import ops
from tcompile.graph.ir import Node
from tcompile.graph.op import Aliasing
from tcompile.graph.ops.view import expand_key, normalise_index, slice_bounds
from tcompile.graph.sizes import Size, always, is_one, same
from tcompile.records import dataclass


def is_view(node: Node) -> bool:
    """Whether a node is a view of another one (or a copy, where a view op must make one)."""
    return node.op.memory is Aliasing.VIEW


def root(node: Node) -> Node:
    """The node that owns a node's elements."""
    while is_view(node):
        node = node.inputs[0]
    return node


def share_memory(target: Node, other: Node) -> bool:
    """Whether two different views may overlap."""
    return target is not other and root(target) is root(other)


def in_turn(target: Node, source: Node) -> bool:
    """Whether elements of ``source`` may be read after they were overwritten, when it is copied to ``target``."""
    if target.tensor.ndim != 1 or not share_memory(target, source):
        return False
    if not source.tensor.ndim or is_one(source.tensor.size) or is_one(target.tensor.size):
        return False
    into, read = _view(target), _view(source)
    if into is None or read is None or into.whole is not read.whole or len(read.axes) != 1:
        return True
    (axis, step), (other, stride) = into.axes[0], read.axes[0]
    if axis is None or other is None:
        return True
    kept = [i for i in range(len(into.start)) if i not in (axis, other)]
    if any(_differ(into.start[i], read.start[i]) for i in kept):
        return False
    if axis != other:
        count = target.tensor.shape[0]
        return not (
            _outside(read.start[axis], into.start[axis], step, count)
            or _outside(into.start[other], read.start[other], stride, source.tensor.shape[0])
        )
    if step == stride or step * stride < 0:
        return False
    if step < 0 or not into.whole.tensor.layout.dense:  # the latter's elements may lie in the other direction
        return True
    first, begin = into.start[axis], read.start[axis]
    return not (always(lambda: begin >= first) if stride > step else always(lambda: begin < first))


def _differ(a: Size, b: Size) -> bool:
    return not same(a, b) and always(lambda: a != b)


def _outside(place: Size, start: Size, step: int, count: Size) -> bool:
    """Whether an index is outside of ``count`` indices from ``start`` on."""
    low, high = (start, start + (count - 1) * step) if step > 0 else (start + (count - 1) * step, start)
    return always(lambda: place < low) or always(lambda: place > high)


@dataclass(eq=False)
class _View:
    """A view as indices into an array: its start, and for each of its axes, the array's axis and the step.

    Axes without one have one element, or repeat one.
    """

    whole: Node
    start: list[Size]
    axes: list[tuple[int | None, int]]


def _view(node: Node) -> _View | None:
    """The view of a node; None where it is no such view."""
    if not is_view(node):
        ndim = node.tensor.ndim
        return _View(node, [0] * ndim, [(axis, 1) for axis in range(ndim)])
    view, type = _view(node.inputs[0]), node.inputs[0].tensor
    if view is None:
        return None
    match node.op:
        case ops.INDEX:
            _index(view, expand_key(node.attrs["key"], type.ndim), type.shape)
        case ops.PERMUTE_DIMS:
            view.axes = [view.axes[axis] for axis in node.attrs["axes"]]
        case ops.FLIP:
            back = [-1 if axis in node.attrs["axis"] else 1 for axis in range(type.ndim)]
            _index(view, [slice(None, None, step) for step in back], type.shape)
        case ops.EXPAND_DIMS:
            view.axes.insert(node.attrs["axis"], (None, 0))
        case ops.SQUEEZE:
            view.axes = [item for axis, item in enumerate(view.axes) if axis not in node.attrs["axis"]]
        case _:
            return None
    return view


def _index(view: _View, key: list[Any], shape: tuple[Size, ...]) -> None:
    """Applies a key to a view."""
    axes: list[tuple[int | None, int]] = []
    place = 0
    for item in key:
        if item is None:
            axes.append((None, 0))
            continue
        (axis, step), size = view.axes[place], shape[place]
        place += 1
        if isinstance(item, slice):
            begin, _, by = slice_bounds(item, size)
            axes.append((axis, step * by))
        else:
            begin = normalise_index(item, size)
        if axis is not None:
            view.start[axis] = view.start[axis] + begin * step
    view.axes = axes


__all__ = ["in_turn", "is_view", "root", "share_memory"]
