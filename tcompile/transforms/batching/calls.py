"""Batches of library calls.

Input: a ``call`` node with the operands of all examples.
Output: one call for all of them, where the function takes stacks of matrices or labels of axes.
Why: a loop over the examples calls the library once for each.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.graph import ops
from tcompile.graph.ir import Node
from tcompile.graph.ops.opaque import Slot, resolve
from tcompile.transforms.batching.table import Batched, OneByOne, batching
from tcompile.transforms.library_calls import argument, einsum_labels

# Functions of stacks of matrices, each on its own.
STACKS = frozenset(f"numpy.linalg.{name}" for name in (
    "cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matrix_power", "pinv", "slogdet", "svd",
))  # fmt: skip
ELEMENTS = frozenset({"numpy.deg2rad", "numpy.radians", "numpy.rad2deg", "numpy.degrees"})
MATRICES = frozenset({"numpy.tril", "numpy.triu"})  # of the last two axes, where there are two


@batching(ops.CALL)
def _call(b: Batched) -> Node:
    (found,) = several(b)
    return found


def several(b: Batched) -> Sequence[Node]:
    """The results of a call for all examples. Raises OneByOne where no rule applies."""
    name = b.node.attrs["target"]
    if name in STACKS or name in ELEMENTS or (name in MATRICES and b.own(0).tensor.ndim >= 2):
        args = tuple(b.given(0) if isinstance(part, Slot) else part for part in b.node.attrs["args"])
        named = dict(b.node.attrs["kwargs"])
        if len(b.operands) == 1 and isinstance(b.node.attrs["args"][0], Slot) and not _has_slot(named):
            return b.e.several(resolve(name), *args, **named)
    rule = _RULES.get(name)
    if rule is None:
        raise OneByOne
    return [rule(b)]


def _has_slot(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_slot, value.values()))
    return any(map(_has_slot, value)) if isinstance(value, tuple | list) else isinstance(value, Slot)


def _solve(b: Batched) -> Node:
    if argument(b.node, 0, "a") != Slot(0) or argument(b.node, 1, "b") != Slot(1):
        raise OneByOne
    a, y = b.given(0), b.given(1)
    if b.own(1).tensor.ndim > 1:
        ndim = max(b.own(0).tensor.ndim, b.own(1).tensor.ndim)
        left, right = b.aligned(0, ndim), b.aligned(1, ndim)
        return b.e.numpy(np.linalg.solve, left, right)
    column = b.e.reshape(y, (*y.tensor.shape, 1))
    found = b.e.numpy(np.linalg.solve, a, column)
    return b.e.reshape(found, (b.count, *b.node.tensor.shape))


def _einsum(b: Batched) -> Node:
    read = einsum_labels(b.node)
    if read is None or b.node.attrs["kwargs"]:
        raise OneByOne
    labels, output, slots = read
    free = next((label for label in string.ascii_letters if label not in output + "".join(labels)), None)
    if free is None:
        raise OneByOne
    parts = [free * b.flags[slot.index] + own for own, slot in zip(labels, slots, strict=True)]
    operands = [b.given(slot.index) for slot in slots]
    return b.e.numpy(np.einsum, f"{','.join(parts)}->{free}{output}", *operands)


def _along_axis(b: Batched) -> Node:
    """A call of ``function(x, how, axis)`` whose second argument is the same for all examples."""
    own = b.own(0).tensor.ndim
    args = b.node.attrs["args"]
    how = args[1] if len(args) > 1 else None
    axis = argument(b.node, 2, "axis")
    if args[0] != Slot(0) or any(b.flags[1:]) or set(dict(b.node.attrs["kwargs"])) - {"axis"} or how is None:
        raise OneByOne
    if axis is None:
        if own != 1:
            raise OneByOne  # of all elements in one row
        axis = 0
    moved = tuple(a + 1 if a >= 0 else a for a in (axis if isinstance(axis, tuple) else (axis,)))
    given = b.given(how.index) if isinstance(how, Slot) else how
    place = moved if isinstance(axis, tuple) else moved[0]
    return b.e.numpy(resolve(b.node.attrs["target"]), b.given(0), given, axis=place)


def _tile(b: Batched) -> Node:
    reps = argument(b.node, 1, "reps")
    reps = (reps,) if isinstance(reps, int) else reps
    own = b.own(0).tensor.ndim
    if not isinstance(reps, tuple) or _has_slot(reps) or len(reps) > own:
        raise OneByOne
    return b.e.numpy(np.tile, b.given(0), (1,) * (own + 1 - len(reps)) + reps)


_RULES: dict[str, Callable[[Batched], Node]] = {
    "numpy.linalg.solve": _solve, "numpy.einsum": _einsum, "numpy.tile": _tile, "numpy.roll": _along_axis,
    "numpy.repeat": _along_axis, "numpy.take": _along_axis,
}  # fmt: skip

__all__ = ["several"]
