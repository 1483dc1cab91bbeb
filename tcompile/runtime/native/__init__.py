"""Calls in machine code: guards, allocation, kernels and return without a Python frame.

Enters: the entries of a function. Leaves: a table from which the machine code of the compiled function works: how
arguments become parameters, and one plan an entry. Whatever has no plan, and any call that fits none, is Python's: the
compiled function's own ``__call__``.
"""

from tcompile.runtime.native.calls import REPLAYS, attach, attach_gate, attached, unavailable
from tcompile.runtime.native.layout import Base, complete

__all__ = ["REPLAYS", "Base", "attach", "attach_gate", "attached", "complete", "unavailable"]
