"""ATen operations that stay calls of PyTorch, as nodes of a graph.

Input: an operation and its arguments.
Output: ``call`` nodes, and the function that they name.
Why: convolutions, attention and whatever has no row run PyTorch's own kernels, with ours around them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import Any

import numpy as np
import torch

from tcompile.frontends.torch.tensors import tensor_of

RUNNER = f"{__name__}.run_aten"
raised = threading.local()  # ``error``: what PyTorch raised last in a call, which a graph reports as its own


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
        For each result its strides in elements, or None for one that is no tensor.
    args, kwargs : sequence
        The arguments, and pairs of names and arguments; arrays are tensors' memory.
    after
        Results of operations that have to run before: they draw random numbers, too.

    Returns
    -------
    ndarray or tuple of ndarray
        The memory of the results that are tensors.
    """
    try:
        with torch.no_grad():
            made = operation(name)(*map(_tensor, args), **{key: _tensor(value) for key, value in kwargs})
    except Exception as error:
        raised.error = error
        raise
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
        copy = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype)
        tensor = copy.copy_(tensor)
    return tensor.numpy(force=True)


__all__ = ["RUNNER", "operation", "raised", "run_aten"]
