"""Scheduling: the partition of a graph into fused kernels.

Input: a ``Graph``.
Output: a ``Schedule``, straight-line steps over buffers, of which the fused ones are ``Kernel`` values: loop nests over
an affine iteration space.
Why: fusion is decided once for all code generators; the schedule knows nothing of LLVM or Triton.
"""

from tcompile.backends.schedule.fusion import schedule
from tcompile.backends.schedule.kernel import Access, Axis, Buffer, Kernel, KernelValue, Store
from tcompile.backends.schedule.plan import Schedule

__all__ = ["Access", "Axis", "Buffer", "Kernel", "KernelValue", "Schedule", "Store", "schedule"]
