"""The native runtime: machine code, its launch, its threads and its memory.

Input: LLVM IR text, and NumPy arrays.
Output: loaded code, kernels run on all processors, arrays from a pool.
Why: the rest of the llvm backend builds on it; it knows nothing of graphs, and imports llvmlite at the first use only.
"""

from tcompile.backends.llvm.native.abi import symbols
from tcompile.backends.llvm.native.inner_loops import address as inner_loop
from tcompile.backends.llvm.native.inner_loops import available as has_inner_loops
from tcompile.backends.llvm.native.launch import FILLS, FLAGS, available, flags, launcher, shared, unavailable
from tcompile.backends.llvm.native.memory import copy, empty, maker, scratch, set_limit, stats, trim
from tcompile.backends.llvm.native.target import (
    Machine,
    MachineCode,
    begin,
    has_half,
    has_symbol,
    identity,
    load,
    machine,
)
from tcompile.backends.llvm.native.threads import num_threads, set_num_threads
from tcompile.backends.status import DIVIDE, INTEGER_OVERFLOW, INVALID, OVERFLOW, UNDERFLOW

__all__ = [
    "DIVIDE",
    "FILLS",
    "FLAGS",
    "INTEGER_OVERFLOW",
    "INVALID",
    "OVERFLOW",
    "UNDERFLOW",
    "Machine",
    "MachineCode",
    "available",
    "begin",
    "copy",
    "empty",
    "flags",
    "has_half",
    "has_inner_loops",
    "has_symbol",
    "identity",
    "inner_loop",
    "launcher",
    "load",
    "machine",
    "maker",
    "num_threads",
    "scratch",
    "set_limit",
    "set_num_threads",
    "shared",
    "stats",
    "symbols",
    "trim",
    "unavailable",
]
