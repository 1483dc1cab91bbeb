"""The operating system layer between tcompile and the platform, chosen here and nowhere else.

Input: the platform, and ``TCOMPILE_OS_LAYER``.
Output: the IR texts of the layer's threads, pages and clock; the system's symbols, sizes, and bounds of stacks.
Why: the thread pool, the memory pool and interrupts are written once, over functions that each system implements.

The layers are ``linux`` (futex, mmap, processor affinity), ``posix`` (pthread mutexes and conditions, mmap), which is
macOS's and runs on Linux too, and ``windows`` (WaitOnAddress, CreateThread, VirtualAlloc). Each text defines the same
functions as the others of its name:

=========  =============================================================================================================
threads    ``sleep_on(word, seen, queue)`` while the word is ``seen``; ``wake(word, count, queue)``; ``start_thread``;
           ``forget_threads`` at the start and after a fork; ``note_worker``, ``before_sleep``, ``after_sleep`` and
           ``send_away``, by which Linux keeps workers off the processor of the caller
pages      ``map_pages(bytes, huge)``; ``unmap_pages(start, bytes)``; ``give_way`` lets another thread run
clock      ``tc_now`` in nanoseconds; ``let_others`` gives threads that wait for the GIL their turn
limits     ``fair_share(held)``: what the limits of the process leave to the memory pool
=========  =============================================================================================================
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import Any

VARIABLE = "TCOMPILE_OS_LAYER"
_USUAL = {"linux": "linux", "darwin": "posix", "win32": "windows"}
_FURTHER = {"linux": ("posix",)}  # layers that a platform can run beside its own
_SIGNALS = {"linux": 2}  # SIG_SETMASK; 3 elsewhere
_ANONYMOUS = {"linux": 0x22}  # MAP_PRIVATE | MAP_ANONYMOUS; 0x1002 elsewhere
# Numbers of the system calls futex and gettid.
_CALLS = {"x86_64": (202, 186), "aarch64": (98, 178)}
FEW = 7  # workers whose processors Linux is asked for when they are woken: two system calls each
STACK = 8 << 20  # bytes of address space for a worker's stack: macOS gives a thread 512 KiB, Windows 1 MiB
# LLVM's newer linker, which puts far functions within reach, is not made for Windows. So there code holds whole
# addresses.
JIT_LINK = sys.platform != "win32"
CODE_MODEL = "small" if JIT_LINK else "large"
# The attribute of functions that take much of the stack; on Windows all of them probe it, by a call of ``__chkstk``.
STACK_PROBES = '"probe-stack"="inline-asm"' if sys.platform != "win32" else ""
# Where Windows has the functions that IR texts declare, the C library that Python and NumPy use first.
_DLLS = ("ucrtbase", "kernel32", "kernelbase", "ntdll", "vcruntime140")
# Symbols that LLVM itself refers to. ``_fltused`` is a mark that Microsoft's linker looks for.
_OF_LLVM = ("memcpy", "memmove", "memset", "memcmp", "__chkstk", "fmod", "fmodf", "fma", "fmaf")


def layer() -> str:
    """The name of this process's layer; empty where the platform has none."""
    usual = _USUAL.get(sys.platform, "")
    return os.environ.get(VARIABLE, "") or usual


def refusal() -> str | None:
    """The reason why there is no layer, in one sentence; None where there is one."""
    usual = _USUAL.get(sys.platform)
    if usual is None:
        return f"native code is not supported on {sys.platform}"
    known = (usual, *_FURTHER.get(sys.platform, ()))
    if layer() not in known:
        return f"{VARIABLE} must be {' or '.join(map(repr, known))} on {sys.platform}, not {layer()!r}"
    return None


def text(part: str, processor: str = "x86_64") -> str:
    """The IR of a part of the layer: ``threads``, ``pages``, ``clock`` or ``limits``.

    >>> "define internal void @wake(" in text("threads")
    True
    """
    name = layer()
    file = name
    if part == "limits":  # of the process, whatever its layer
        file = "linux" if sys.platform == "linux" else "no"
    elif part != "threads":
        file = "windows" if name == "windows" else "posix"
    ir = resources.files(__name__).joinpath(f"{file}_{part}.ll").read_text("ascii")
    return fill(ir, _VALUES[part](name, processor))


def _thread_values(name: str, processor: str) -> dict[str, object]:
    if name == "linux":
        futex, gettid = _CALLS[processor]
        return {"FUTEX": futex, "GETTID": gettid, "FEW": FEW}
    return {"STACK": STACK, "SIG_SETMASK": _SIGNALS.get(sys.platform, 3)}


def _page_values(name: str, processor: str) -> dict[str, object]:
    # MADV_HUGEPAGE is 14. Where the system has no huge pages the call fails, and nothing is lost.
    advice = "%r3 = call i32 @madvise(ptr %start.ptr, i64 %bytes, i32 14)" if name == "linux" else ""
    return {"ADVISE": advice, "MAP_ANONYMOUS_PRIVATE": _ANONYMOUS.get(sys.platform, 0x1002)}


def _clock_values(name: str, processor: str) -> dict[str, object]:
    return {"MONOTONIC": getattr(time, "CLOCK_MONOTONIC", 0)}  # Windows has no such clock


_VALUES: dict[str, Callable[[str, str], dict[str, object]]] = {
    "threads": _thread_values, "pages": _page_values, "clock": _clock_values,
    "limits": lambda name, processor: {"PAGE": page_size()},
}  # fmt: skip


def fill(ir: str, values: Mapping[str, object]) -> str:
    """An IR text with each ``$KEY`` replaced by its value.

    >>> fill("ret i32 $SIZE", {"SIZE": 4})
    'ret i32 4'
    """
    return re.sub(r"\$([A-Z][A-Z_0-9]*)", lambda match: str(values[match[1]]), ir)


def page_size() -> int:
    """Bytes of a page: 16 KiB on Apple silicon."""
    import mmap

    return mmap.PAGESIZE


def memory_size() -> int | None:
    """The machine's memory in bytes; None where the system does not report it."""
    if sys.platform == "win32":
        status = (ctypes.c_uint64 * 8)(64)  # a MEMORYSTATUSEX: its length and the load, then the total
        return status[1] if _windows("GlobalMemoryStatusEx", "kernel32")(status) else None
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def library_symbols(ir: str) -> dict[str, int]:
    """Addresses of C's and the system's functions that ``ir`` declares, where the linker could choose the wrong one.

    Several libraries of a Windows process have a ``sin`` of their own. Elsewhere there is one, which the linker finds.
    """
    if sys.platform != "win32":
        return {}
    declared = re.findall(r"^declare .*@(?!llvm\.|tc_|_?Py)(\w+)\(", ir, re.MULTILINE)
    found = {name: at for name in {*declared, *_OF_LLVM} if (at := _address(name))}
    return found | {"_fltused": found["memcpy"]}


@cache
def _address(name: str) -> int:
    for library in _DLLS:
        for exported in (name, f"_{name}"):  # Microsoft's headers define ``hypotf`` as ``_hypotf``
            try:
                return ctypes.cast(_windows(exported, library), ctypes.c_void_p).value or 0
            except (OSError, AttributeError):
                continue
    return 0


def _windows(name: str, library: str) -> Any:
    return getattr(ctypes.CDLL(library), name)


def read_function() -> Callable[..., int]:
    """C's ``read``, for the file descriptors of Python."""
    found: Callable[..., int] = _windows("_read", "ucrtbase") if sys.platform == "win32" else ctypes.CDLL(None).read
    return found


def stack_bounds() -> tuple[int, int]:
    """The lowest address of this thread's stack, and its size in bytes; (0, 0) where they are unknown."""
    return {"linux": _linux_stack, "darwin": _mac_stack, "win32": _windows_stack}.get(sys.platform, lambda: (0, 0))()


def _linux_stack() -> tuple[int, int]:
    get, read, destroy, this = _pthread_functions("getattr_np", "attr_getstack", "attr_destroy", "self")
    attributes = ctypes.create_string_buffer(256)  # a pthread_attr_t takes 56 bytes
    lowest, size = ctypes.c_void_p(), ctypes.c_size_t()
    if get(ctypes.c_void_p(this()), attributes):
        return 0, 0
    known = not read(attributes, ctypes.byref(lowest), ctypes.byref(size))
    destroy(attributes)
    return (lowest.value or 0, size.value) if known else (0, 0)


def _mac_stack() -> tuple[int, int]:
    highest_of, size_of, this = _pthread_functions("get_stackaddr_np", "get_stacksize_np", "self")
    thread = ctypes.c_void_p(this())
    size: int = size_of(thread)
    return highest_of(thread) - size, size


@cache
def _pthread_functions(*names: str) -> tuple[Any, ...]:
    library = ctypes.CDLL(None)
    found = tuple(library[f"pthread_{name}"] for name in names)
    for name, function in zip(names, found, strict=True):
        if name in ("self", "get_stackaddr_np", "get_stacksize_np"):
            function.restype = ctypes.c_size_t
    return found


def _windows_stack() -> tuple[int, int]:
    lowest, highest = ctypes.c_size_t(), ctypes.c_size_t()
    _windows("GetCurrentThreadStackLimits", "kernel32")(ctypes.byref(lowest), ctypes.byref(highest))
    return lowest.value, highest.value - lowest.value


__all__ = [
    "CODE_MODEL",
    "FEW",
    "JIT_LINK",
    "STACK",
    "STACK_PROBES",
    "VARIABLE",
    "fill",
    "layer",
    "library_symbols",
    "memory_size",
    "page_size",
    "read_function",
    "refusal",
    "stack_bounds",
    "text",
]
