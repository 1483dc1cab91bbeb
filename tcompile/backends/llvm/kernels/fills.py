"""Fills with one byte, as for zeros: precompiled kernels.

Input: a kernel.
Output: the shared function that does the same, if there is one.
Why: ``np.zeros`` is in most functions with loops, and its own kernel would take up to a fifth of their compile time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcompile.backends.llvm import native
from tcompile.backends.llvm.kernels.nest import KernelFunction
from tcompile.backends.llvm.kernels.parameters import WordParameters
from tcompile.backends.schedule import Kernel, Store
from tcompile.backends.schedule.kernel import size_of
from tcompile.backends.schedule.kernel_ops import CONSTANT
from tcompile.graph.dtypes import DType
from tcompile.graph.sizes import same


def write(kernel: Kernel, nontemporal: Sequence[Store]) -> KernelFunction | None:
    """The shared function, for a kernel that fills one whole array through the caches; None for any other."""
    if kernel.form != "flat" or len(kernel.values) != 1 or len(kernel.stores) != 1 or nontemporal:
        return None
    (value,), (store,) = kernel.values, kernel.stores
    if value.op is not CONSTANT:
        return None
    name = native.FILLS.get(_byte(value.operands[0], value.dtype))
    type = store.access.buffer.type
    if name is None or not type.layout.dense or not same(size_of(kernel.axes), type.size):
        return None
    sizes = *(axis.size for axis in kernel.axes), type.dtype.itemsize
    return KernelFunction(name, "", WordParameters.of(store.access.buffer), sizes)


def _byte(number: object, dtype: DType) -> int:
    """The byte that such an element repeats; -1 where its bytes differ."""
    with np.errstate(all="ignore"):
        found = set(np.array(number).astype(dtype).tobytes())
    return found.pop() if len(found) == 1 else -1


__all__ = ["write"]
