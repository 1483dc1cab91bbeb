"""View ops: operations whose results share elements with their operand, as in NumPy.

Input: nothing.
Output: rows of the op table.
Why: kernels read through them without moving an element.

``index`` is basic indexing: its attribute ``key`` is a tuple of ints, slices, None and Ellipsis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph.dtypes import part_of_complex
from tcompile.graph.ir import Node
from tcompile.graph.op import QUIET, Aliasing, Op, OverNamespace, TypeRule, define
from tcompile.graph.ops.rules import only
from tcompile.graph.sizes import Size, SymInt, always, is_one, product, same
from tcompile.graph.types import Layout, TensorType


def _reshape_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("reshape", types)
    shape = tuple(attrs["shape"])
    if not same(product(shape), type.size) and product(shape) != type.size:
        raise GraphError(f"cannot reshape {type} into {shape}")
    if type.c_contiguous:
        return TensorType(type.dtype, shape)
    squeezed = [(n, r) for n, r in zip(type.shape, type.layout.ranks, strict=True) if not is_one(n)]
    if [n for n, _ in squeezed] == [n for n in shape if not is_one(n)]:
        ranks = iter([r for _, r in squeezed])  # only axes of size one were added or dropped
        return TensorType(
            type.dtype, shape, Layout(tuple(1 if is_one(n) else next(ranks) for n in shape), type.layout.dense)
        )
    ordered = [r for _, r in squeezed]
    if ordered == sorted(ordered, reverse=True) or (type.layout.dense and not _may_view(type, shape)):
        # A view and a copy have the same order here; where the operand is not dense, run time decides which it is.
        return TensorType(type.dtype, shape, Layout(Layout.c(len(shape)).ranks, type.layout.dense))
    raise GraphError(f"reshape of {type} into {shape} may or may not be a view")


def _may_view(type: TensorType, shape: tuple[Size, ...]) -> bool:
    """Whether NumPy could reshape this dense value without a copy (NumPy itself decides, on a stand-in)."""
    strides = type.strides()
    if strides is None or not all(isinstance(n, int) for n in (*type.shape, *shape, *strides)):
        return True
    base = np.lib.stride_tricks.as_strided(np.empty(1, "b1"), type.shape, strides)  # type: ignore[arg-type]
    try:
        base.reshape(shape, copy=False)  # type: ignore[arg-type]
    except ValueError:
        return False
    return True


def is_view_of_operand(op: Op, source: TensorType, result: TensorType) -> bool | None:
    """Whether a view op gives a view of its operand (True) or a copy (False); None: it depends on run-time strides."""
    if op not in (RESHAPE, RAVEL) or source.c_contiguous:
        return True
    if op is RAVEL:
        return False if source.never_c_contiguous else None
    kept = [[n for n in shape if not is_one(n)] for shape in (source.shape, result.shape)]
    if len(kept[0]) == len(kept[1]) and all(same(a, b) for a, b in zip(*kept, strict=True)):
        return True
    if not source.layout.dense:
        return None
    if not all(isinstance(n, int) for n in (*source.shape, *result.shape)):
        return None
    return _may_view(source, result.shape)


def _permute_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("permute_dims", types)
    axes = attrs["axes"]
    if sorted(axes) != list(range(type.ndim)):
        raise GraphError(f"permute_dims: axes {axes} do not fit {type}")
    layout = Layout(tuple(type.layout.ranks[a] for a in axes), type.layout.dense)
    return TensorType(type.dtype, tuple(type.shape[a] for a in axes), layout)


def _broadcast_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("broadcast_to", types)
    shape = tuple(attrs["shape"])
    lead = len(shape) - type.ndim
    if lead < 0:
        raise GraphError(f"cannot broadcast {type} to {shape}")
    ranks: list[float] = [0] * lead
    dense = lead == 0
    for size, rank, target in zip(type.shape, type.layout.ranks, shape[lead:], strict=True):
        if same(size, target) or (not is_one(size) and size == target):
            ranks.append(rank)
        elif is_one(size):
            ranks.append(0)
            dense = False
        else:
            raise GraphError(f"cannot broadcast {type} to {shape}")
    return TensorType(type.dtype, shape, Layout(tuple(ranks), dense and type.layout.dense))


def _expand_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("expand_dims", types)
    axis = attrs["axis"]
    shape = (*type.shape[:axis], 1, *type.shape[axis:])
    ranks = (*type.layout.ranks[:axis], 1, *type.layout.ranks[axis:])
    return TensorType(type.dtype, shape, Layout(ranks, type.layout.dense))


def _squeeze_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("squeeze", types)
    if not all(type.shape[a] == 1 for a in attrs["axis"]):
        raise GraphError(f"squeeze: axes {attrs['axis']} of {type} are not all of size one")
    kept = [i for i in range(type.ndim) if i not in attrs["axis"]]
    layout = Layout(tuple(type.layout.ranks[i] for i in kept), type.layout.dense)
    return TensorType(type.dtype, tuple(type.shape[i] for i in kept), layout)


def _flip_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("flip", types)
    return TensorType(type.dtype, type.shape, Layout(type.layout.ranks, dense=False))


def _index_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("index", types)
    key = expand_key(attrs["key"], type.ndim)
    shape: list[Size] = []
    ranks: list[float] = []
    dense = type.layout.dense
    axis = 0
    for item in key:
        if item is None:
            shape.append(1)
            ranks.append(1)
            continue
        size = type.shape[axis]
        if isinstance(item, slice):
            start, stop, step = slice_bounds(item, size)
            length = slice_length(start, stop, step)
            dense = dense and step == 1 and _is_whole(start, stop, size)
            shape.append(length)
            ranks.append(_rank_of_steps(type, axis, abs(step)))
        else:
            normalise_index(item, size)
            dense = dense and is_one(size)
        axis += 1
    exact = _dense_exactly(type, key, tuple(shape))
    dense = dense or _still_c(type, key) if exact is None else exact
    return TensorType(type.dtype, tuple(shape), Layout(tuple(ranks), dense))


def _rank_of_steps(type: TensorType, axis: int, step: int) -> float:
    """The rank of an axis whose stride is multiplied by ``step``: another one among axes that share a stride.

    All others differ by more than such a factor, or the axis has one element left.
    """
    rank = type.layout.ranks[axis]
    whole = int(rank)
    sizes = zip(type.layout.ranks, type.shape, strict=True)
    alike = sum(int(other) == whole for other, size in sizes if isinstance(size, SymInt) or size != 1)
    multiple = round(1 / (whole + 1 - rank)) * step
    return whole + 1 - 1 / multiple if step > 1 and whole and alike > 1 else rank


def _dense_exactly(type: TensorType, key: Sequence[Any], shape: tuple[Size, ...]) -> bool | None:
    """Whether the part of ``key`` is dense, where all sizes and strides are known; else None."""
    if all(isinstance(n, int) and n <= 1 for n in shape):
        return True  # one element, or none
    strides = type.strides()
    if strides is None or any(isinstance(n, SymInt) for n in (*type.shape, *shape)):
        return None
    if any(n == 0 for n in shape):
        return True
    taken: list[tuple[Size, Size]] = []
    axis = place = 0
    for item in key:
        if item is None:
            place += 1
            continue
        if isinstance(item, slice):
            step = slice_bounds(item, type.shape[axis])[2]
            taken.append((strides[axis] * step, shape[place]))
            place += 1
        axis += 1
    expected: Size = 1
    for stride, size in sorted((s, n) for s, n in taken if n != 1):
        if stride != expected:
            return False
        expected = expected * size
    return True


def _still_c(type: TensorType, key: Sequence[Any]) -> bool:
    """Whether a key on a C-contiguous array cuts whole blocks only: ints, then one slice of step 1, then all."""
    if not type.c_contiguous:
        return False
    sizes = iter(type.shape)
    cut = False
    for item in key:
        if item is None:
            continue
        size = next(sizes)
        if isinstance(item, slice):
            start, stop, step = slice_bounds(item, size)
            whole = step == 1 and _is_whole(start, stop, size)
            if not whole and (cut or step != 1):
                return False
            cut = cut or not is_one(size)
        elif cut:
            return False
    return True


def _is_whole(start: Size, stop: Size, size: Size) -> bool:
    """Whether a slice of step 1 covers an axis, in all enclosing iterations."""
    return always(lambda: start == 0) and same(slice_length(start, stop, 1), size)


def expand_key(key: Sequence[Any], ndim: int) -> list[Any]:
    """A key of ints, slices and None that names every axis: no Ellipsis, full slices added at the end."""
    used = sum(1 for item in key if item is not None and item is not Ellipsis)
    if used > ndim:
        raise GraphError(f"too many indices: array is {ndim}-dimensional, but {used} were indexed")
    fill = [slice(None)] * (ndim - used)
    places = [i for i, item in enumerate(key) if item is Ellipsis]
    if len(places) > 1:
        raise GraphError("an index can only have a single ellipsis")
    at = places[0] if places else len(key)
    return [*key[:at], *fill, *key[at + 1 :]]


def normalise_index(index: Size, size: Size) -> Size:
    """A non-negative index into an axis of ``size``. Raises GraphError where it is out of range."""
    if index < 0:
        index = index + size
    if not 0 <= index < size:
        raise GraphError(f"index {index} is out of bounds for axis of size {size}")
    return index


def slice_bounds(item: slice, size: Size) -> tuple[Size, Size, int]:
    """``slice.indices`` for sizes that may be symbolic."""
    step = 1 if item.step is None else item.step
    if isinstance(step, SymInt):
        step = step.specialise()
    if step == 0:
        raise GraphError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clamp(value: Size | None, default: Size) -> Size:
        if value is None:
            return default
        if value < 0:
            value = value + size
            return low if value < low else value
        return high if value > high else value

    return clamp(item.start, low if step > 0 else high), clamp(item.stop, high if step > 0 else low), step


def slice_length(start: Size, stop: Size, step: int) -> Size:
    """The number of elements of a slice with normalised bounds."""
    distance = stop - start if step > 0 else start - stop
    if distance < 0:  # negative lengths need no guard, so sizes that are zero in some iteration stay open
        return 0
    return distance if abs(step) == 1 else (distance - 1) // abs(step) + 1


def address_direction(node: Node, axis: int) -> bool | None:
    """Whether steps along an axis lead to higher addresses, or (False) to lower ones or nowhere; None: unknown.

    Unknown are arrays that are neither dense nor parts of dense ones.
    """
    forward = True
    while not node.tensor.layout.dense:
        if not node.tensor.layout.ranks[axis]:
            return False
        if node.op is PERMUTE_DIMS:
            axis = node.attrs["axes"][axis]
        elif node.op is FLIP:
            forward ^= axis in node.attrs["axis"]
        elif node.op is INDEX:
            shape, number = node.inputs[0].tensor.shape, -1
            shown: list[tuple[int, slice] | None] = []  # for each axis of the part: the whole's axis, and the slice
            for item in expand_key(node.attrs["key"], len(shape)):
                number += item is not None
                if item is None or isinstance(item, slice):
                    shown.append(None if item is None else (number, item))
            cut = shown[axis]
            if cut is None:
                return None
            axis = cut[0]
            forward ^= slice_bounds(cut[1], shape[axis])[2] < 0
        else:
            return None
        node = node.inputs[0]
    return forward


def _diagonal_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("diagonal", types)
    first, second, offset = attrs["axis1"], attrs["axis2"], attrs["offset"]
    rows, columns = type.shape[first], type.shape[second]
    rows, columns = (rows, columns - offset) if offset >= 0 else (rows + offset, columns)
    size = rows if rows <= columns else columns
    kept = [i for i in range(type.ndim) if i not in (first, second)]
    ranks = [type.layout.ranks[i] for i in kept]
    if kept and not (type.c_contiguous and all(n > 1 for n in type.shape)):
        raise GraphError(f"the memory order of a diagonal of {type} is not known")
    # A step along the diagonal is the sum of two: longer than either, shorter than any longer stride.
    longest = max(type.layout.ranks[first], type.layout.ranks[second])
    shape = (*(type.shape[i] for i in kept), size if size > 0 else 0)
    return TensorType(type.dtype, shape, Layout((*ranks, longest), dense=False))


def _windows_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("windows", types)
    shape, ranks = list(type.shape), list(type.layout.ranks)
    for axis, count in zip(attrs["axes"], attrs["sizes"], strict=True):
        if count < 0 or not shape[axis] >= count:
            raise GraphError(f"windows of {count} elements in {type}")
        shape[axis] = shape[axis] - (count - 1)
    # A step inside a window is as long as one from window to window.
    ranks += [type.layout.ranks[axis] for axis in attrs["axes"]]
    return TensorType(type.dtype, (*shape, *attrs["sizes"]), Layout(tuple(ranks), dense=False))


def _part_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("real and imag", types)
    if type.dtype.kind != "c":
        raise GraphError(f"real and imag take complex operands, got {type}")
    dtype = part_of_complex(type.dtype)
    return TensorType(dtype, type.shape, Layout(type.layout.ranks, dense=False))


def _ravel_rule(types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
    type = only("ravel", types)
    return TensorType(type.dtype, (type.size,))


def _reshape(x: Any, shape: tuple[int, ...]) -> Any:
    return np.reshape(x, shape)


def _windows(x: Any, sizes: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, sizes, axes)


@OverNamespace
def _index(xp: Any, x: Any, key: tuple[Any, ...]) -> Any:
    return xp.asarray(x)[key]


def _row(name: str, rule: TypeRule, meaning: Callable[..., Any] | OverNamespace, doc: str = "") -> Op:
    return define(Op(name, "view", 1, rule, meaning, doc, QUIET, Aliasing.VIEW))


RESHAPE = _row("reshape", _reshape_rule, _reshape, "a view where NumPy gives one, else a copy")
PERMUTE_DIMS = _row("permute_dims", _permute_rule, lambda x, axes: np.transpose(x, axes))
BROADCAST_TO = _row("broadcast_to", _broadcast_rule, lambda x, shape: np.broadcast_to(x, shape))
EXPAND_DIMS = _row("expand_dims", _expand_rule, lambda x, axis: np.expand_dims(x, axis))
SQUEEZE = _row("squeeze", _squeeze_rule, lambda x, axis: np.squeeze(x, axis))
FLIP = _row("flip", _flip_rule, lambda x, axis: np.flip(x, axis))
DIAGONAL = _row("diagonal", _diagonal_rule, np.diagonal, "attributes ``offset``, ``axis1``, ``axis2``")
REAL = _row("real", _part_rule, np.real, "of a complex operand")
IMAG = _row("imag", _part_rule, np.imag, "of a complex operand")
WINDOWS = _row("windows", _windows_rule, _windows, "all windows of ``sizes`` along ``axes``, read-only")
RAVEL = _row("ravel", _ravel_rule, np.ravel, "all elements in C order: a view where NumPy gives one")
INDEX = _row("index", _index_rule, _index, "basic indexing with the attribute ``key``")
