"""Entries of scalar loops: trampolines that pass arrays as separate arguments.

Input: words of a launch, of which the first is a function's address, and those after it are arrays'.
Output: the function's result, and the floating-point flags that it has raised.
Why: LLVM's ``noalias`` needs arguments, not loaded addresses. And flags must be cleared and read outside of a function
whose instructions LLVM may move.

The entries are compiled once: they are as much work as a small loop. Some of NumPy's loops clear the flags when they
are done (``clears_flags``). Those are called by way of a function that reads the flags before, and adds them to a word
of the caller's.
"""

from __future__ import annotations

import ctypes
from functools import cache

from tcompile.backends.llvm.native import launch, target
from tcompile.backends.status import OVERFLOW

MOST = 8  # arrays that are passed as arguments; further ones are read from the words


def _entry(arrays: int) -> str:
    lines = [f"define i32 @tc_enter_{arrays}(ptr %words, i64 %begin, i64 %end) nounwind {{"]
    given = "ptr %words"
    for number in range(arrays):
        lines.append(f"  %at{number} = getelementptr i64, ptr %words, i64 {number + 1}")
        lines.append(f"  %array{number} = load ptr, ptr %at{number}")
        given += f", ptr %array{number}"
    lines += [
        "  %function = load ptr, ptr %words", "  call void @tc_clear_flags()",
        f"  %status = call i32 %function({given})", "  %flags = call i32 @tc_read_flags()",
        "  %both = or i32 %status, %flags", "  ret i32 %both", "}",
    ]  # fmt: skip
    return "\n".join(lines)


_KEEPING = """
declare i32 @tc_raised_flags() nounwind
define void @tc_call_keeping_flags(ptr %loop, ptr %arrays, ptr %sizes, ptr %strides, ptr %kept) nounwind {
  %flags = call i32 @tc_raised_flags()
  %old = load i32, ptr %kept
  %all = or i32 %old, %flags
  store i32 %all, ptr %kept
  call void %loop(ptr %arrays, ptr %sizes, ptr %strides, ptr null)
  ret void
}
"""


@cache
def _code() -> target.MachineCode:
    texts = [_entry(arrays) for arrays in range(MOST + 1)]
    names = [*(f"tc_enter_{arrays}" for arrays in range(MOST + 1)), "tc_call_keeping_flags"]
    ir = "\n".join([launch.FLAGS, *texts, _KEEPING])
    symbols = {**launch.flags(), "tc_raised_flags": launch.shared()["tc_raised_flags"]}
    return target.keep_forever(target.load(ir, names, symbols, opt=0))


def entry(arrays: int) -> int:
    """The address of the kernel that calls words[0] with ``words`` and the arrays at words[1], words[2] and so on."""
    return _code()[f"tc_enter_{min(arrays, MOST)}"]


def call_keeping_flags() -> int:
    """The address of ``void (loop, arrays, sizes, strides, int *kept)``."""
    return _code()["tc_call_keeping_flags"]


@cache
def clears_flags(loop: int, floats: int) -> bool:
    """Whether NumPy's loop at that address, of so many floats, clears flags that were raised before it."""
    flags = launch.flags()
    clear = ctypes.CFUNCTYPE(None)(flags["tc_clear_flags"])
    read = ctypes.CFUNCTYPE(ctypes.c_int)(flags["tc_read_flags"])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop)
    values = (ctypes.c_double * (floats + 1))(*[0.5] * floats)
    at, width = ctypes.addressof(values), ctypes.sizeof(ctypes.c_double)
    arrays = (ctypes.c_void_p * (floats + 1))(*(at + width * place for place in range(floats + 1)))
    sizes, strides = (ctypes.c_ssize_t * 1)(1), (ctypes.c_ssize_t * (floats + 1))()
    large = float("1e300")
    clear()
    large * large  # raises the overflow flag
    run(arrays, sizes, strides, None)
    return not read() & OVERFLOW


__all__ = ["MOST", "call_keeping_flags", "clears_flags", "entry"]
