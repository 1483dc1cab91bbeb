"""The memory pool: result arrays whose memory is reused after they die.

Input: shape, dtype, and the order of the axes in memory.
Output: ordinary arrays with undefined contents, which own their memory (OWNDATA is set, ``base`` is None).
Why: for large results the page faults of fresh memory cost more than the kernel that fills it.

Small arrays are NumPy's own. Large ones get memory of the pool and its memory handler (NEP 49): NumPy frees the memory
through it when the array dies or is resized, on any thread. The handler is machine code made from ``memory.ll``. It
maps memory from the system in size classes, eight to a doubling, and keeps freed blocks of each class in a list, newest
first. Above the limit, the block that was freed longest ago goes back to the system.

Free blocks must not make another allocation fail. So the pool keeps at most a quarter of the memory that RLIMIT_AS and
RLIMIT_DATA leave (``fair_share``). When an allocation of NumPy's or Python's fails, all free blocks go back to the
system, and it is tried once more (``relief.ll``). For that, the pool wraps the functions of Python's raw domain, as
PyMem_SetAllocator allows at any time, and those in NumPy's default memory handler. A handler in NumPy's context
variable would not do: each array would have another handler, and new threads and contexts would lack it. The default
handler is the same object for all of them. Memory that C libraries get from malloc directly is not covered by the
second rule.

A block begins with a header of 64 bytes, directly before the data, so that data are aligned to 64 bytes, as nontemporal
stores of whole cache lines need. Blocks of 2 MiB and more start on a huge page. The header's offset in its page varies
from block to block, and is not near the page's start, where NumPy's own large arrays begin. Otherwise 4K aliasing
delays loads: processors take a load for one of a recent store where the last 12 bits of the addresses agree. This cost
a stencil a quarter of its time where two arrays began within 256 bytes of the same offset.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import functools
import math
import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tcompile import system
from tcompile.backends.llvm.native import abi, target

if TYPE_CHECKING:
    import numpy.typing as npt

# Arrays of fewer bytes are allocated by NumPy as always: its own small blocks are in caches already.
THRESHOLD = 256 * 1024

_HANDLER_NAME = "tcompile"

_RELIEVED = ("numpy", "python", "arenas")  # the allocators that are wrapped
_EXPORTS = [
    "method",
    "handler",
    "capsule",
    "tc_memory_reset",
    "tc_memory_limit",
    "tc_memory_trim",
    "tc_memory_stats",
    "tc_pool_array",
    "none",
    *(f"{of}.{name}" for of in _RELIEVED for name in ("next", "malloc", "calloc", "realloc")),
]
_MOST_AXES = 64  # of an array that machine code makes
_OWNDATA = 4  # among an array's flags

# The address of the pool's allocation function, for native calls; 0 until there is a pool.
new_array = array.array("Q", [0])


def _ir() -> str:
    values = {
        "HEAD_PAGE": max(4096, system.page_size()),
        "HANDLER_NAME": _HANDLER_NAME + "\\00" * (127 - len(_HANDLER_NAME)),
        "MOST_AXES": _MOST_AXES,
        "OWNDATA": _OWNDATA,
        "TRACED": np.lib.tracemalloc_domain,
        **abi.OFFSETS,
    }
    text = abi.c_string("text.few", "new() takes a dtype, a number of bytes, a shape, and strides or None")
    method = abi.method_def("method", "new", "new(dtype, nbytes, shape, strides, /)")
    reliefs = (target.source("relief.ll", {"OF": of}) for of in _RELIEVED)
    layer = (system.text("pages"), system.text("limits"))
    return "".join((text, target.source("memory.ll", values), method, *layer, *reliefs))


class _Pool:
    """The loaded pool: the builtin that allocates from it, and its maintenance functions."""

    def __init__(self) -> None:
        ir = _ir()
        code = self._code = target.keep_forever(target.load(ir, _EXPORTS, abi.symbols(ir)))
        make_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
            ("PyCapsule_New", ctypes.pythonapi)
        )
        # Arrays hold references to the capsule, and may outlive this module.
        capsule = target.immortal(make_capsule(code["handler"], b"mem_handler", None))
        ctypes.c_void_p.from_address(code["capsule"]).value = id(capsule)
        ctypes.c_void_p.from_address(code["none"]).value = id(None)
        self.new: Callable[..., npt.NDArray[Any] | None] = abi.builtin(code, "method")
        self.new_array = code["tc_pool_array"]
        self.reset = ctypes.PYFUNCTYPE(None, ctypes.c_int)(code["tc_memory_reset"])
        self.limit = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(code["tc_memory_limit"])
        self.trim = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(code["tc_memory_trim"])
        self.stats = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(code["tc_memory_stats"])
        self.reset(1)
        self.limit(_default_limit() if _limit is None else _limit)

    def relieve_others(self) -> None:
        """Makes failing allocations of NumPy's and Python's free the pool's cached blocks, and retry."""
        numpys = abi.default_allocator()
        if numpys is not None:
            self._stand_in("numpy", numpys)
        raw = abi.allocator(abi.RAW)
        plain = list(raw)
        self._stand_in("python", raw)
        for domain in abi.DOMAINS:  # with PYTHONMALLOC=malloc, all have the raw domain's functions
            if domain == abi.RAW or list(abi.allocator(domain)) == plain:
                abi.set_allocator(domain, raw)
        arenas = abi.arena_allocator()
        self._stand_in("arenas", arenas, 1)
        abi.set_arena_allocator(arenas)

    def _stand_in(self, of: str, functions: ctypes.Array[ctypes.c_uint64], count: int = 3) -> None:
        """Wraps the first functions of an allocator: context, malloc, calloc, realloc, free.

        The wrappers call the original functions. The context stays, so that a thread without the GIL may find old and
        new functions with it.
        """
        next_of_ours = (ctypes.c_uint64 * count).from_address(self._code[f"{of}.next"])
        for i, name in enumerate(("malloc", "calloc", "realloc")[:count]):
            next_of_ours[i] = functions[1 + i]
            functions[1 + i] = self._code[f"{of}.{name}"]

    def works(self) -> bool:
        """Whether an array made by the builtin is well formed."""
        made = self.new(np.dtype(np.float64), 1 << 19, (1 << 16,), None)
        return (
            type(made) is np.ndarray
            and made.base is None
            and made.flags.owndata
            and made.__array_interface__["data"][0] % 64 == 0
            and np._core.multiarray.get_handler_name(made) == _HANDLER_NAME  # type: ignore[attr-defined]
        )


_limit: int | None = None


def _default_limit() -> int:
    """2 GiB, and no more than an eighth of the memory that this process may have."""
    total = system.memory_size() or 8 << 30
    return min(2 << 30, min(_limits_of_groups(), default=total) // 8, total // 8)


def _limits_of_groups(system: str = "") -> Iterator[int]:
    """The memory limits of this process's control groups, and of those around them, in bytes; of both versions."""
    groups: list[str] = []
    with contextlib.suppress(OSError):
        groups = _read(f"{system}/proc/self/cgroup").splitlines()
    for line in groups:
        _, _, line = line.partition(":")
        controllers, _, path = line.partition(":")
        if controllers == "":
            root, file = f"{system}/sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            root, file = f"{system}/sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        # A container sees its own group as the root, whatever path the file says.
        path = path.rstrip("/")
        while True:
            with contextlib.suppress(ValueError, OSError):  # "max", or no such file
                yield int(_read(f"{root}{path}/{file}"))
            if not path:
                break
            path = path.rpartition("/")[0]


def _read(file: str) -> str:
    """A short text; pathlib would take longer than the system."""
    with open(file, encoding="utf-8") as opened:
        return opened.read()


@cache
def _pool() -> _Pool | None:
    """The pool, made at the first large array; None where there is no native code, then NumPy allocates."""
    if abi.unsupported() is not None or not abi.knows_owners():
        return None
    try:
        pool = _Pool()
    except (RuntimeError, OSError, ValueError, AttributeError):
        return None
    if not pool.works():
        return None
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: pool.reset(0))
    new_array[0] = pool.new_array
    pool.relieve_others()
    return pool


def _strides(shape: tuple[int, ...], itemsize: int, order: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous array whose axes lie in memory in this order, outermost first.

    >>> _strides((2, 3, 4), 4, (1, 0, 2))
    (16, 32, 4)
    """
    strides = [0] * len(shape)
    step = itemsize
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], order: tuple[int, ...] | None = None) -> npt.NDArray[Any]:
    """A new contiguous array with undefined contents, which owns its memory.

    ``order`` lists the axes outermost first, in the order in which they lie in memory; None means C order.
    Data of at least ``THRESHOLD`` bytes start at a multiple of 64 bytes and come from the pool. Raises
    MemoryError where there is no memory.

    >>> empty((2, 3, 4), np.dtype("f4"), order=(1, 0, 2)).strides
    (16, 32, 4)
    """
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= THRESHOLD and not dtype.hasobject and (pool := _pool()) is not None:
        strides = None if order is None else _strides(shape, dtype.itemsize, order)
        made = pool.new(dtype, nbytes, shape, strides)
        if made is not None:
            return made
    if order is None:
        return np.empty(shape, dtype)
    return np.empty_like(_prototype(order), dtype, "K", True, shape)


@cache
def _prototype(order: tuple[int, ...]) -> npt.NDArray[Any]:
    """A tiny array whose axes lie in memory in this order, as a template for NumPy."""
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return np.empty((2,) * len(order), np.int8).transpose(inverse)


def maker(shape: tuple[int, ...], dtype: np.dtype[Any], order: tuple[int, ...]) -> Callable[[], npt.NDArray[Any]]:
    """Returns a function that makes new arrays as ``empty`` does, faster where they are small."""
    if math.prod(shape) * dtype.itemsize < THRESHOLD and order == tuple(range(len(order))):
        return functools.partial(np.empty, shape, dtype)
    return functools.partial(empty, shape, dtype, order)


def copy(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy in the same memory order, allocated as by ``empty``.

    >>> copy(np.ones((2, 3), order="F")).strides
    (8, 16)
    """
    if array.nbytes < THRESHOLD:
        return np.array(array, order="K")
    order = None
    if not array.flags.c_contiguous:
        order = tuple(sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis])))
    made = empty(array.shape, array.dtype, order)
    np.copyto(made, array)
    return made


def scratch(nbytes: int) -> npt.NDArray[np.uint8]:
    """Memory for one launch: an array of ``nbytes`` undefined bytes, freed when it dies."""
    return empty((nbytes,), np.dtype(np.uint8))


def set_limit(nbytes: int) -> None:
    """Lets the pool keep ``nbytes`` bytes for reuse, and frees blocks above that. 0 turns reuse off.

    Raises ValueError for a negative number.
    """
    global _limit
    if nbytes < 0:
        raise ValueError(f"the limit of the memory pool is a number of bytes, not {nbytes}")
    _limit = nbytes
    if _pool.cache_info().currsize and (pool := _pool()) is not None:
        pool.limit(nbytes)


def limit() -> int:
    """How many bytes the pool may keep for reuse."""
    return _default_limit() if _limit is None else _limit


def trim(keep: int = 0) -> None:
    """Frees the memory that the pool keeps for reuse, all but ``keep`` bytes."""
    if _pool.cache_info().currsize and (pool := _pool()) is not None:
        pool.trim(keep)


def stats() -> dict[str, int]:
    """The statistics of the pool.

    ``in_use`` and ``cached`` are bytes in living arrays and in blocks kept for reuse, ``limit`` the most that may be
    cached; ``hits`` and ``misses`` count the allocations that reused a block and those that asked the system.
    """
    names = ("in_use", "cached", "hits", "misses", "limit")
    if not _pool.cache_info().currsize or (pool := _pool()) is None:
        return dict.fromkeys(names, 0)
    figures = (ctypes.c_int64 * len(names))()
    pool.stats(figures)
    return dict(zip(names, figures, strict=True))
