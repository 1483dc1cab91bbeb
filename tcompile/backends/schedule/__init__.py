"""Scheduling: decides which operations of a graph run together, in which loops.

Input: a ``Graph``. Output: a ``Schedule``, straight-line steps over buffers, of which the fused ones are ``Kernel``
values: loop nests over an affine iteration space. Knows nothing of LLVM or of any other code generator.
"""

from tcompile.backends.schedule.kernel import Access, Axis, Buffer, Kernel, KernelValue, Store
from tcompile.backends.schedule.plan import Schedule
from tcompile.backends.schedule.steps import schedule

__all__ = ["Access", "Axis", "Buffer", "Kernel", "KernelValue", "Schedule", "Store", "schedule"]
