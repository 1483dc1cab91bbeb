"""Adding the cotangents of parts of an array.

Input: an array, its cotangent so far, and cotangents of parts that view ops show.
Output: the cotangent of the array.
Why: a stencil reads one array through several slices. Each slice's cotangent added by itself goes over the array once;
those of slices that share a cotangent are one sum of windows of it, with zeros around, and one kernel computes that.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcompile.graph import ops
from tcompile.graph.ir import Node
from tcompile.graph.ops.view import expand_key, slice_bounds
from tcompile.graph.ops.writing import Path, step_of
from tcompile.graph.sizes import SymInt
from tcompile.transforms.autodiff.table import Part
from tcompile.transforms.emit import Emit

_FEWEST = 2  # windows of one cotangent, from which on it gets zeros around


def together(e: Emit, node: Node, held: Node | None, parts: Sequence[Part]) -> Node:
    """The sum of ``held`` and of the parts, each at its place in zeros of the shape of ``node``."""
    groups: dict[Node, list[Part]] = {}
    parts = _by_place(e, parts)
    if held is not None and writes_zeros(held):
        # What is read where zeros are written is read before: so a loop's iteration may write in place.
        apart = [part for part in parts if _are_apart(part.path, held.attrs["path"])]
        if apart:
            base, zeros = held.operands
            assert isinstance(base, Node)
            for part in apart:
                base = e(ops.ASSIGN, base, e.add(e.shown(base, part.path), part.g), path=part.path)
            held = e(ops.ASSIGN, base, zeros, path=held.attrs["path"])
            parts = [part for part in parts if part not in apart]
    for part in parts:
        if held is not None and _is_zero_at(held, part):  # a loop's iteration writes to what it reads
            held = e(ops.ASSIGN, held.inputs[0], part.g, path=part.path)
        else:
            groups.setdefault(part.g, []).append(part)
    alone: list[Part] = []
    for g, group in groups.items():
        starts = [_start(node, part) for part in group]
        if len(group) < _FEWEST or any(start is None for start in starts):
            alone += group
            continue
        made = _windows(e, node, g, [start for start in starts if start is not None])
        held = made if held is None else e.add(held, made)
    for part in alone:
        if held is None:
            held, g = e.full(node, 0.0, node.tensor.shape), part.g
        else:
            g = e.add(e.shown(held, part.path), part.g)
        held = e(ops.ASSIGN, held, g, path=part.path)
    assert held is not None
    return held


def _by_place(e: Emit, parts: Sequence[Part]) -> list[Part]:
    """One part for each place."""
    found: list[Part] = []
    for part in parts:
        same = next((i for i, other in enumerate(found) if _are_alike(other, part)), None)
        if same is None:
            found.append(part)
        else:
            found[same] = Part(part.path, e.add(found[same].g, part.g))
    return found


def _are_alike(one: Part, other: Part) -> bool:
    """Whether two parts are the same place by their texts: sizes are compared without a question."""
    return one.g.tensor.ndim == other.g.tensor.ndim and repr(one.path) == repr(other.path)


def _is_zero_at(held: Node, part: Part) -> bool:
    """Whether a cotangent has been set to zero at the place of a part, and nowhere else since."""
    return writes_zeros(held) and repr(held.attrs["path"]) == repr(part.path)


def writes_zeros(held: Node) -> bool:
    """Whether a cotangent is another one with zeros in some places."""
    value = held.operands[1] if held.op is ops.ASSIGN else None
    return isinstance(value, Node) and is_zeros(value)


def is_zeros(node: Node) -> bool:
    """Whether a node is an array of zeros."""
    return node.op is ops.FULL and node.attrs["fill_value"] == 0.0


def _are_apart(one: Path, other: Path) -> bool:
    """Whether two paths certainly show different rows: their numbers along some axis differ by a constant."""
    if not (len(one) == len(other) == 1 and one[0][0] == other[0][0] == ops.INDEX.name):
        return False
    for a, b in zip(dict(one[0][1])["key"], dict(other[0][1])["key"], strict=False):
        if isinstance(a, slice) or isinstance(b, slice) or a is None or b is None or a is Ellipsis or b is Ellipsis:
            return False
        away = a - b
        constant = away.as_int() if isinstance(away, SymInt) else away if min(a, b) >= 0 else None
        if constant:
            return True
    return False


def _start(node: Node, part: Part) -> tuple[int, ...] | None:
    """Where a part begins along each axis; None unless it is a box of known size."""
    shape = node.tensor.shape
    if len(part.path) != 1 or part.path[0][0] != ops.INDEX.name or part.g.tensor.ndim != len(shape):
        return None
    key = expand_key(dict(part.path[0][1])["key"], len(shape))
    starts = []
    for item, size in zip(key, shape, strict=False):
        if not isinstance(item, slice) or not isinstance(size, int):
            return None
        start, stop, step = slice_bounds(item, size)
        if step != 1 or not isinstance(start, int) or not isinstance(stop, int):
            return None
        starts.append(start)
    return tuple(starts) if len(key) == len(shape) else None


def _windows(e: Emit, node: Node, g: Node, starts: Sequence[tuple[int, ...]]) -> Node:
    """The sum of ``g`` at several places in zeros: windows of it with zeros around."""
    shape = [int(n) for n in node.tensor.shape]  # type: ignore[arg-type]
    last = [max(places) for places in zip(*starts, strict=True)]
    first = [min(places) for places in zip(*starts, strict=True)]
    around = e.full(node, 0.0, [high - low + n for low, high, n in zip(first, last, shape, strict=True)])
    inside = tuple(slice(high, high + int(n)) for high, n in zip(last, g.tensor.shape, strict=True))  # type: ignore[arg-type]
    around = e(ops.ASSIGN, around, g, path=(step_of(ops.INDEX, {"key": inside}),))
    total: Node | None = None
    for start in starts:
        key = tuple(slice(high - place, high - place + n) for high, place, n in zip(last, start, shape, strict=True))
        window = e(ops.INDEX, around, key=key)
        total = window if total is None else e.add(total, window)
    assert total is not None
    return total


__all__ = ["is_zeros", "together", "writes_zeros"]
