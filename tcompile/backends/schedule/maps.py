"""Affine index maps: from indices into one array to indices into the array it was made from.

Input: a node and the map from an iteration space to its own axes.
Output: the maps for its operands, or None where the operation is not affine.
Why: transposes, slices, flips and broadcasts cost nothing inside a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tcompile.graph import Node, Size, SymInt, TensorType, ops
from tcompile.graph.op import OPS, Op
from tcompile.graph.ops.view import expand_key, normalise_index, slice_bounds
from tcompile.graph.ops.writing import path_types
from tcompile.graph.sizes import is_one, same
from tcompile.records import dataclass


@dataclass(frozen=True)
class Affine:
    """One index: ``offset`` plus multiples of the iteration space's indices."""

    terms: tuple[tuple[int, Size], ...] = ()
    offset: Size = 0

    def scaled(self, factor: Size, offset: Size) -> Affine:
        """``factor`` times this index, plus ``offset``."""
        return Affine(tuple((axis, m * factor) for axis, m in self.terms), self.offset * factor + offset)

    def plus(self, other: Affine) -> Affine:
        """The sum of both indices; each axis is in it once."""
        terms = dict(self.terms)
        for axis, multiple in other.terms:
            terms[axis] = terms[axis] + multiple if axis in terms else multiple
        kept = tuple((axis, m) for axis, m in terms.items() if isinstance(m, SymInt) or m)
        return Affine(kept, self.offset + other.offset)

    def key(self) -> tuple[object, ...]:
        """A hashable form; comparing it adds no guard on symbolic sizes."""
        return (*((axis, _key(m)) for axis, m in self.terms), _key(self.offset))


Map: TypeAlias = tuple[Affine, ...]
ZERO = Affine()
ANYWHERE: Map = (Affine(((-1, 1),)),)  # of a gather's base: at every point, any element may be read


def _key(size: Size) -> object:
    return str(size) if isinstance(size, SymInt) else size


def identity(ndim: int) -> Map:
    """The map of the iteration space's axes to themselves."""
    return tuple(Affine(((axis, 1),)) for axis in range(ndim))


def map_key(map: Map) -> tuple[object, ...]:
    """A hashable form of a map."""
    return tuple(affine.key() for affine in map)


def broadcast(map: Map, source: Sequence[Size], target: Sequence[Size]) -> Map:
    """The map for an operand of shape ``source`` of an operation whose result has shape ``target``."""
    lead = len(target) - len(source)
    return tuple(
        ZERO if is_one(size) and not is_one(target[lead + i]) else map[lead + i] for i, size in enumerate(source)
    )


def through(node: Node, map: Map) -> Map | None:
    """The map into the operand of the view op ``node``; None where it is not affine."""
    return move(node.op, node.attrs, node.inputs[0].tensor, node.tensor, map)


def through_path(node: Node, map: Map) -> Map | None:
    """The map into the result of an ``assign``, from one into the part that it replaces."""
    path = node.attrs["path"]
    types = path_types(node.inputs[0].tensor, path)
    result: Map | None = map
    for (op, attrs), source, target in reversed(list(zip(path, types, types[1:], strict=False))):
        if result is not None:
            result = move(OPS[op], dict(attrs), source, target, result)
    return result


def move(op: Op, attrs: Mapping[str, Any], source: TensorType, target: TensorType, map: Map) -> Map | None:
    """The map into the operand of the view op ``op``, which makes ``target`` of ``source``; None where it is not
    affine.
    """
    shape = source.shape
    if op is ops.PERMUTE_DIMS:
        result: list[Affine] = [ZERO] * source.ndim
        for position, axis in enumerate(attrs["axes"]):
            result[axis] = map[position]
        return tuple(result)
    if op in (ops.REAL, ops.IMAG):
        return map
    if op is ops.BROADCAST_TO:
        return broadcast(map, shape, target.shape)
    if op is ops.EXPAND_DIMS:
        axis = attrs["axis"]
        return (*map[:axis], *map[axis + 1 :])
    if op is ops.SQUEEZE:
        kept = iter(map)
        return tuple(ZERO if axis in attrs["axis"] else next(kept) for axis in range(source.ndim))
    if op is ops.FLIP:
        axes = attrs["axis"]
        axes = range(source.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
        return tuple(m.scaled(-1, shape[i] - 1) if i in axes else m for i, m in enumerate(map))
    if op is ops.INDEX:
        return _index(attrs["key"], source, map)
    if op is ops.DIAGONAL:
        first, second, offset = (attrs[name] for name in ("axis1", "axis2", "offset"))
        others = iter(map[:-1])
        along = {first: map[-1].scaled(1, max(-offset, 0)), second: map[-1].scaled(1, max(offset, 0))}
        return tuple(along[axis] if axis in along else next(others) for axis in range(source.ndim))
    if op is ops.WINDOWS:
        result = list(map[: source.ndim])
        for axis, inside in zip(attrs["axes"], map[source.ndim :], strict=True):
            result[axis] = result[axis].plus(inside)
        return tuple(result)
    if op is ops.RESHAPE:
        return _reshape(shape, target.shape, map)
    return None


def _index(key: Sequence[Any], source: TensorType, map: Map) -> Map:
    result: list[Affine] = []
    out = iter(map)
    for item in expand_key(key, source.ndim):
        if item is None:
            next(out)
            continue
        size = source.shape[len(result)]
        if isinstance(item, slice):
            start, _, step = slice_bounds(item, size)
            result.append(next(out).scaled(step, start))
        else:
            result.append(Affine((), normalise_index(item, size)))
    return tuple(result)


def _reshape(source: Sequence[Size], target: Sequence[Size], map: Map) -> Map | None:
    """A reshape that only splits axes, or adds and drops axes of size one."""
    result: list[Affine] = []
    position = 0
    for size in source:
        if is_one(size):
            result.append(ZERO)
            continue
        while position < len(target) and is_one(target[position]):
            position += 1
        covered: Size = 1
        index = ZERO
        while not same(covered, size):
            if position == len(target):
                return None
            part = target[position]
            if (
                isinstance(covered, int)
                and isinstance(size, int)
                and isinstance(part, int)
                and (not part or covered * part > size)
            ):
                return None
            scaled = index.scaled(part, 0)
            index = scaled.plus(map[position])
            covered = covered * part
            position += 1
        result.append(index)
    if any(not is_one(size) for size in target[position:]):
        return None
    return tuple(result)
