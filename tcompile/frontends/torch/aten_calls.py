"""ATen operations that stay calls of PyTorch, as nodes of a graph.

Input: an operation and its arguments.
Output: ``call`` nodes, and the function that they name.
Why: convolutions, attention and whatever has no row run PyTorch's own kernels, with ours around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from typing import Any

import numpy as np
import torch

from tcompile.frontends.torch.tensors import tensor_of, type_of_tensor
from tcompile.graph import Graph, Location, Node, TensorType, ops
from tcompile.graph.dtypes import BOOL
from tcompile.graph.ops.opaque import THREADED, Slot

RUNNER = f"{__name__}.run_aten"
THREADED.add(RUNNER)


class NoLowering(Exception):
    """Arguments that a row of the table, or a call, does not cover."""


def append_call(
    graph: Graph,
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    expected: Any,
    location: Location | None = None,
    is_draw: bool = False,
    after: Node | None = None,
) -> Any:
    """Adds a call of PyTorch's kernel to a graph.

    Parameters
    ----------
    graph : Graph
        The graph.
    name : str
        The operation, with its overload.
    args, kwargs
        The arguments, with nodes for tensors.
    expected
        The fake result: a tensor, a tuple of tensors and other values, or None for a check.
    location : Location, optional
        The user's line.
    is_draw : bool
        Whether it draws random numbers, so that it must run after ``after``, the draw before it.

    Returns
    -------
    Node or tuple
        The result; items of a tuple that are not tensors are returned unchanged. A check, which has no result, gives a
        boolean node.

    Raises
    ------
    NoLowering
        Where no result is a tensor.
    """
    operands = list(dict.fromkeys(nodes_in((*args, *kwargs.values()))))

    def template(value: Any) -> Any:
        if isinstance(value, Node):
            return Slot(operands.index(value))
        return tuple(map(template, value)) if isinstance(value, tuple) else value

    results = expected if isinstance(expected, tuple) else (expected,)
    types = [type_of_tensor(fake) for fake in results if isinstance(fake, torch.Tensor)]
    if expected is None:
        types = [TensorType(BOOL, ())]
    if not types:
        raise NoLowering(f"{name} returns no tensor")
    strides = tuple(tuple(fake.stride()) if isinstance(fake, torch.Tensor) else None for fake in results)
    call: list[Any] = [name, strides, template(tuple(args)), tuple((key, template(v)) for key, v in kwargs.items())]
    if is_draw and after is not None:
        call.append(Slot(len(operands)))
        operands.append(after)
    attrs, label = {"target": RUNNER, "args": tuple(call), "kwargs": ()}, name.split(".")[1]
    if not isinstance(expected, tuple):
        return graph.append(ops.CALL, operands, attrs, types[0], name=label, location=location)
    whole = graph.append(ops.CALL, operands, attrs, tuple(types), name=label, location=location)
    tensors = iter([
        graph.append(ops.GET, [whole], {"index": i}, type, name=f"{label}_{i}", location=location)
        for i, type in enumerate(types)
    ])  # fmt: skip
    return tuple(next(tensors) if isinstance(fake, torch.Tensor) else fake for fake in results)


def nodes_in(value: Any) -> list[Node]:
    """The nodes in arguments."""
    if isinstance(value, Node):
        return [value]
    return [node for item in value for node in nodes_in(item)] if isinstance(value, tuple) else []


@cache
def operation(name: str) -> Callable[..., Any]:
    """The operation of a name, such as ``aten.add.Tensor``."""
    found: Callable[..., Any] = reduce(getattr, name.split("."), torch.ops)
    return found


def run_aten(name: str, strides: Sequence[Any], args: Sequence[Any], kwargs: Sequence[Any], *after: Any) -> Any:
    """Runs an operation on arrays.

    Parameters
    ----------
    name : str
        The operation, with its overload.
    strides : sequence
        For each result its strides in elements, or None where it is not a tensor.
    args, kwargs : sequence
        The arguments, and pairs of names and arguments; arrays are tensors' memory.
    after
        Results of operations that have to run before: they draw random numbers, too.

    Returns
    -------
    ndarray or tuple of ndarray
        The memory of the results that are tensors.
    """
    made = operation(name)(*map(_tensor, args), **{key: _tensor(value) for key, value in kwargs})
    if made is None:
        return np.ones((), bool)
    if isinstance(made, torch.Tensor):
        return _array(made, strides[0])
    return tuple(_array(one, wanted) for one, wanted in zip(made, strides, strict=True) if wanted is not None)


def _tensor(value: Any) -> Any:
    if type(value) in (tuple, list):
        return [_tensor(item) for item in value]
    if isinstance(value, np.ndarray):
        backwards = any(step < 0 for step in value.strides)  # which tensors cannot be
        return tensor_of(np.ascontiguousarray(value) if backwards else value)
    return tensor_of(np.asarray(value)) if isinstance(value, np.generic) else value


def _array(tensor: torch.Tensor, strides: Sequence[int]) -> Any:
    if tensor.stride() != strides:  # the fake result promised another memory order
        copy = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device="cpu")
        tensor = copy.copy_(tensor)
    return tensor.numpy(force=True)


__all__ = ["RUNNER", "NoLowering", "append_call", "nodes_in", "operation", "run_aten"]
