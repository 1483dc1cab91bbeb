"""The launch: from Python objects to a running kernel in one builtin function.

Input: a kernel's address, a spec that says how each argument is passed, the amount of work, and the arguments.
Output: the kernel's status bits as an int.
Why: ctypes would cost microseconds a call; this builtin is machine code made from ``launch.ll``, and costs some tens of
nanoseconds.

A kernel has the C signature ``i32 kernel(ptr words, i64 begin, i64 end)``: it covers the items [begin, end) and returns
status bits. ``words`` is an array of 64-bit words that the launch fills from the arguments, one character of the spec
for each:

    a   an ndarray: the address of its data
    s   an ndarray: the address of its data, then its strides in bytes, one word an axis
    i   a Python int: its value as a signed 64-bit integer
    f   a Python float: its value as a double

Arrays must be exactly ``numpy.ndarray``. The caller guarantees their dtype, number of axes and layout, and that the
code of the kernel stays loaded during the launch.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Callable
from functools import cache

import numpy as np

from tcompile import system
from tcompile.backends.llvm.native import abi, target, threads
from tcompile.errors import BackendError

# The words of a launch are on the stack; a longer spec is refused.
_MOST_WORDS = 32768

# The declarations of a kernel's module. Shared: in each module they would be a fifth of its compile time.
FLAGS = "declare void @tc_clear_flags() nounwind\ndeclare i32 @tc_read_flags() nounwind\n"
_FLAGS = ("tc_clear_flags", "tc_read_flags")
_MORE_FLAGS = ("tc_raised_flags", "tc_clear_asked_flags", "tc_read_asked_flags")
# Shared kernels: fill an array with the byte words[0]. Items are bytes.
FILLS = {0: "tc_zeros", 1: "tc_ones"}

_TEXTS = {
    "few": "launch() takes a kernel, a spec, items, a grain, and the kernel's arguments",
    "spec": "launch(): the spec must be bytes, not %.200s",
    "count": "launch(): the spec is for %zd arguments, and %zd came",
    "letter": "launch(): the spec has the unknown character %d",
    "many": "launch(): too many arguments for one kernel",
    "range": "launch(): needs a kernel's address, items >= 0, and a grain >= 1 where there are items",
    "type": "launch(): kernel argument %zd must be %s, not %.200s",
    "array": "a numpy.ndarray",
    "int": "an int",
    "float": "a float",
}


def _ir() -> str:
    texts = "".join(abi.c_string(f"text.{name}", text) for name, text in _TEXTS.items())
    method = abi.method_def("method", "launch", "launch(kernel, spec, items, grain, /, *arguments)")
    flags = target.source("flags_x86.ll" if platform.machine() in ("x86_64", "AMD64") else "flags_arm.ll")
    fills = "".join(map(_fill, FILLS))
    values = {**abi.OFFSETS, "MOST_WORDS": _MOST_WORDS, "PROBES": system.STACK_PROBES}
    return flags + fills + texts + target.source("launch.ll", values) + method


def _fill(byte: int) -> str:
    return f"""
define i32 @{FILLS[byte]}(ptr %words, i64 %begin, i64 %end) nounwind {{
  %array = load ptr, ptr %words
  %first = getelementptr i8, ptr %array, i64 %begin
  %count = sub i64 %end, %begin
  call void @llvm.memset.p0.i64(ptr %first, i8 {byte}, i64 %count, i1 false)
  ret i32 0
}}
"""


@cache
def _build() -> tuple[Callable[..., int], target.MachineCode] | str:
    """The builtin and its module, with the functions of ``FLAGS`` and ``FILLS``; or the reason why there are none."""
    reason = abi.unsupported()
    if reason is not None:
        return reason
    try:
        ir = _ir()
        symbols = {**abi.symbols(ir), "tc_parallel": threads.code()["tc_parallel"]}
        names = ["method", "echo", *_FLAGS, *_MORE_FLAGS, *FILLS.values()]
        code = target.keep_forever(target.load(ir, names, symbols, opt=0))
        launch: Callable[..., int] = abi.builtin(code, "method")
    except (RuntimeError, OSError, ValueError, AttributeError) as error:
        return f"the launch function could not be made: {error}"
    seen = np.zeros(7, np.int64)
    sample = np.zeros((4, 6), np.float32)[::2, 1:]
    status = launch(code["echo"], b"asif", 1, 1, seen, sample, -5, 1.5)
    expected = [
        seen.__array_interface__["data"][0],
        sample.__array_interface__["data"][0],
        *sample.strides,
        -5,
        struct.unpack("<q", struct.pack("<d", 1.5))[0],
    ]
    if status != 31 or seen[:6].tolist() != expected:
        return "the launch function does not pass its self-test"
    return launch, code


def unavailable() -> str | None:
    """The reason why kernels cannot be launched in this process, in one sentence; None where they can.

    The first call sets LLVM up and runs the self-tests, some tens of milliseconds; the answer is kept.
    """
    built = _build()
    return built if isinstance(built, str) else None


def available() -> bool:
    """Whether kernels can be launched in this process."""
    return unavailable() is None


def launcher() -> Callable[..., int]:
    """The builtin ``launch(kernel, spec, items, grain, *arguments) -> int``.

    ``kernel`` is an address, ``spec`` bytes with one character an argument (see the top of this file). The
    kernel is called for the chunks [k * grain, min((k + 1) * grain, items)), each exactly once, in any order
    and on any thread without the GIL; where ``items <= grain`` it is called once, as kernel(words, 0,
    items), in this thread and with the GIL held. Returns the OR of the statuses.

    The builtin raises TypeError where an argument does not fit its character, OverflowError for an int of
    more than 64 bits, ValueError for numbers out of range. Raises BackendError where ``unavailable()`` gives
    a reason.
    """
    return _built()[0]


def flags() -> dict[str, int]:
    """The addresses of the functions that ``FLAGS`` declares, for the symbols of a kernel's module.

    They work on the floating-point exception flags of the thread that runs the chunk: clear first, compute,
    then read. Reading gives the status bits DIVIDE, OVERFLOW, UNDERFLOW and INVALID, and clears the flags
    again. Raises BackendError where ``unavailable()`` gives a reason.
    """
    code = shared()
    return {name: code[name] for name in _FLAGS}


def shared() -> target.MachineCode:
    """The code with the kernels of ``FILLS``, and with rarely used functions for flags (``flags_x86.ll``).

    Raises BackendError where ``unavailable()`` gives a reason.
    """
    return _built()[1]


def _built() -> tuple[Callable[..., int], target.MachineCode]:
    built = _build()
    if isinstance(built, str):
        raise BackendError(built)
    return built
