"""Dtypes, memory layouts and memory of tensors, and those of arrays.

Input: tensors, fake ones included, and arrays.
Output: the same memory, seen as an array or as a tensor; graph types.
Why: kernels work on arrays; nothing is copied on the way in or out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tcompile.frontends.numpy.values import layout_of
from tcompile.graph import TensorType
from tcompile.graph.dtypes import DType

DTYPES: dict[torch.dtype, DType] = {
    getattr(torch, name): np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
        "float64", "complex64", "complex128",
    )
}  # fmt: skip


def _forget_warning() -> None:
    """Triggers PyTorch's once-per-process warning about read-only arrays, unseen: graphs do not write to operands."""
    read_only = np.zeros(1)
    read_only.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.from_numpy(read_only)


_forget_warning()


def has_array(tensor: torch.Tensor) -> bool:
    """Whether an array can hold the tensor: a dense one on the CPU of a dtype that NumPy has.

    Conjugates and negatives that PyTorch leaves for later are computed on the way.

    >>> has_array(torch.ones(2)), has_array(torch.ones(2, dtype=torch.bfloat16))
    (True, False)
    """
    return tensor.dtype in DTYPES and tensor.layout == torch.strided and tensor.device.type == "cpu"


def type_of(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> TensorType:
    """The graph type of a tensor; strides count elements.

    >>> print(type_of((3, 2), (1, 3), torch.float32))
    f32[3, 2]{order 1,0}
    """
    own = DTYPES[dtype]
    steps = [step * own.itemsize for step in strides]
    seen = np.lib.stride_tricks.as_strided(np.empty(1, own), tuple(shape), steps)
    return TensorType(own, tuple(shape), layout_of(seen))


def type_of_tensor(tensor: torch.Tensor) -> TensorType:
    """The graph type of a tensor, or of a fake one whose sizes are numbers."""
    return type_of(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)


def same_strides(one: TensorType, other: TensorType) -> bool:
    """Whether the strides of two types of one shape are equal, axes of size one apart."""
    if one.layout.dense != other.layout.dense:
        return False
    ranks = zip(one.layout.ranks, other.layout.ranks, one.shape, strict=True)
    pairs = [(a, b) for a, b, n in ranks if n != 1]
    orders = [sorted({pair[i] for pair in pairs}) for i in range(2)]
    return all(orders[0].index(a) == orders[1].index(b) and (a == 0) == (b == 0) for a, b in pairs)


def storage_of(tensor: torch.Tensor) -> int:
    """What tensors have in common that share memory, fake ones included."""
    return int(tensor.untyped_storage()._cdata)


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The tensor's memory as an array."""
    array: np.ndarray[Any, Any] = tensor.numpy(force=True)
    return array


tensor_of = torch.from_numpy  # an array's memory as a tensor

__all__ = ["DTYPES", "array_of", "has_array", "same_strides", "storage_of", "tensor_of", "type_of", "type_of_tensor"]
