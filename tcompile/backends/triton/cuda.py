"""Kernels on an NVIDIA GPU, by way of CuPy: its memory pool, its streams, its loader of machine code. No PyTorch.

Input: functions of kernels, NumPy arrays.
Output: NumPy arrays.
Why: compiling needs no GPU (``cubins``), and running needs no compiler once the machine code is on disk.

Operands of kernels are copied to the GPU and results are copied back at the end; in between, only operands of NumPy's
own calls are copied.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tcompile.backends import helpers
from tcompile.backends.replay import Replay
from tcompile.backends.triton import cubins, interpreter
from tcompile.backends.triton.configs import FEW_PROGRAMS
from tcompile.backends.triton.launches import Loaded, Status
from tcompile.backends.triton.text import TritonFunction
from tcompile.errors import BackendError
from tcompile.observe import bus
from tcompile.observe.events import FellBack

_ELSE = "backend='llvm' runs on the CPU."


def load_cupy() -> Any:
    """Imports CuPy. Raises BackendError where it is not installed, cannot be imported, or finds no GPU."""
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise BackendError(
            f"kernels for GPUs need CuPy ({error}): pip install cupy-cuda12x, or the package for your CUDA. {_ELSE}"
        ) from error
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:
        raise BackendError(
            f"there is no NVIDIA driver that CuPy can use ({error}). {_ELSE} To see what kernels for GPUs compute"
            " without one: tcompile.config.triton_interpret = True."
        ) from error
    if not count:
        raise BackendError(f"CuPy finds no GPU. {_ELSE}")
    return cupy


def _current_device(cupy: Any) -> Any:
    """CuPy's current GPU. Raises BackendError where CUDA has none."""
    try:
        return cupy.cuda.Device()
    except Exception as error:
        raise BackendError(
            f"CuPy cannot use its current GPU ({error}). Where an earlier kernel has failed, CUDA needs a new process."
            f" {_ELSE}"
        ) from error


class _Own(threading.local):
    """Thread-local state on a GPU: counters by stream, and those that are ``lent``, if they are."""

    def __init__(self) -> None:
        self.counters: dict[int, Any] = {}
        self.lent: list[Any] | None = None


class Cuda:
    """The GPU that is CuPy's current one. Raises BackendError where there is none, or one that is too old."""

    def __init__(self) -> None:
        self.cupy = load_cupy()
        device = _current_device(self.cupy)
        self.number = int(device.id)
        self.capability = int(device.compute_capability)
        cubins.check_capability(self.capability)
        self._own = _Own()

    @functools.cached_property
    def name(self) -> str | None:
        """The GPU's name."""
        name: bytes = self.cupy.cuda.runtime.getDeviceProperties(self.number)["name"]
        return name.decode("utf-8", "replace")

    def finish(self) -> None:
        """Waits for CuPy's current stream."""
        self.cupy.cuda.get_current_stream().synchronize()

    # -- memory ---------------------------------------------------------------------------------------------------
    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], order: tuple[int, ...] | None = None) -> Any:
        """A new array on the GPU, whose axes lie in memory in ``order``, outermost first (None: C)."""
        if order is None:
            return self.cupy.ndarray(shape, dtype)
        strides, step = [0] * len(shape), dtype.itemsize
        for axis in reversed(order):
            strides[axis], step = step, step * shape[axis]
        memory = self.cupy.cuda.alloc(math.prod(shape) * dtype.itemsize)
        return self.cupy.ndarray(shape, dtype, memory, tuple(strides))

    def is_mine(self, x: Any) -> bool:
        """Whether an object is an array on a GPU."""
        return isinstance(x, self.cupy.ndarray)

    def placed(self, x: Any, order: tuple[int, ...] | None = None) -> Any:
        """The array itself where it is on the GPU; else a copy whose axes lie in ``order`` (None: C)."""
        if self.is_mine(x):
            return self._dense(x, order)
        host = np.asarray(x)
        axes = tuple(range(host.ndim)) if order is None else order
        made = self.empty(host.shape, host.dtype, axes)
        made.transpose(axes).set(np.asarray(host.transpose(axes), order="C"))
        return made

    def _dense(self, x: Any, order: tuple[int, ...] | None) -> Any:
        axes = tuple(range(x.ndim)) if order is None else order
        if x.transpose(axes).flags.c_contiguous:
            return x
        made = self.empty(x.shape, x.dtype, axes)
        made[...] = x
        return made

    def to_host(self, x: Any, made: dict[int, tuple[Any, Any, Any]] | None = None) -> Any:
        """Copies an array of the GPU to NumPy, in the same layout; views of one array stay views of one array.

        ``made`` holds the copies of the same call.
        """
        if not self.is_mine(x):
            return x
        made = {} if made is None else made
        whole = x
        while whole.base is not None:
            whole = whole.base
        if id(whole) not in made:
            axes = tuple(sorted(range(whole.ndim), key=lambda axis: -whole.strides[axis]))
            host = interpreter.empty(whole.shape, whole.dtype, axes)
            whole.transpose(axes).get(out=host.transpose(axes))
            made[id(whole)] = whole, host, host.transpose(axes)
        _, host, memory = made[id(whole)]
        if x is whole:
            return host
        return np.ndarray(x.shape, x.dtype, memory, x.data.ptr - whole.data.ptr, x.strides)

    def on_host(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Calls a library function on NumPy arrays."""
        return function(*map(self._all_to_host, args), **kwargs)

    def _all_to_host(self, x: Any) -> Any:
        if type(x) in (tuple, list):
            return type(x)(map(self._all_to_host, x))
        return self.to_host(x)

    # -- programs -------------------------------------------------------------------------------------------------
    def tools(self) -> dict[str, Any]:
        """The functions that a host program calls."""
        return {
            "empty": self.empty, "stride": interpreter.stride, "placed": self.placed, "on_host": self.on_host,
            "to_host": self.to_host, "counters": self.counters,
            "copy": lambda x: x.copy(order="K") if self.is_mine(x) else helpers.copy(x),
        }  # fmt: skip

    def around(self, program: Callable[..., tuple[Any, ...]], resident: bool) -> Callable[..., tuple[Any, ...]]:
        """Wraps the program: results are copied back, unless all arrays are ``resident``.

        Where the GPU's memory runs out, plain Python goes on.
        """

        def stay(*inputs: Any) -> tuple[Any, ...]:
            try:
                return program(*inputs)
            except self.cupy.cuda.memory.OutOfMemoryError as error:
                raise Replay(self._out_of_memory(error)) from None

        def run(*inputs: Any) -> tuple[Any, ...]:
            depth = getattr(self._own, "depth", 0)
            if not depth and hasattr(self._own, "words"):
                self.words.fill(0)  # a failed run may have left some set
            self._own.depth = depth + 1  # regions run inside of a program, and must not clear its bits
            made: dict[int, tuple[Any, Any, Any]] = {}
            try:
                return tuple(self.to_host(x, made) for x in program(*inputs))
            except self.cupy.cuda.memory.OutOfMemoryError as error:
                raise Replay(self._out_of_memory(error)) from None
            finally:
                self._own.depth = depth

        return stay if resident else run

    def _out_of_memory(self, error: Exception) -> str:
        pool = self.cupy.get_default_memory_pool()
        text = (
            f"the GPU's memory ran out ({error}). CuPy's pool holds {pool.total_bytes() >> 20} MiB, of which"
            f" {pool.used_bytes() >> 20} MiB are in use; cupy.get_default_memory_pool().free_all_blocks() gives back"
            " the rest. This call runs in plain Python."
        )
        if bus.active():
            bus.emit(FellBack(reason="out of memory on the GPU", detail=text))
        return text

    def launcher(self, function: TritonFunction) -> Callable[..., Status | int]:
        """Runs a function on the GPU."""
        return Loaded(function, self).launch

    def counters(self, count: int) -> Any:
        """At least so many counters for the next launch, all zero, and left so. Each stream has its own, on which
        launches are ordered.
        """
        if self._own.lent is not None:
            self._own.lent.append(self._zeros(count))
            return self._own.lent[-1]
        counters, stream = self._own.counters, self.cupy.cuda.get_current_stream().ptr
        if stream not in counters or counters[stream].size < count:
            counters[stream] = self._zeros(max(count, FEW_PROGRAMS))
        return counters[stream]

    def _zeros(self, count: int) -> Any:
        """Zeros in memory of their own: a shared buffer would be overwritten whenever a recording is started."""
        made = self.cupy.ndarray((count,), np.int32, self.cupy.get_default_memory_pool().malloc(4 * count))
        made.fill(0)
        return made

    @contextlib.contextmanager
    def lent(self) -> Iterator[list[Any]]:
        """Gives this thread new counters meanwhile, for launches that run at any time."""
        before, self._own.lent = self._own.lent, []
        try:
            yield self._own.lent
        finally:
            self._own.lent = before

    @property
    def words(self) -> Any:
        """This thread's word of status bits."""
        if not hasattr(self._own, "words"):
            self._own.words = self._zeros(1)
        return self._own.words


@functools.cache
def _on(number: int) -> Cuda:
    return Cuda()


def current() -> Cuda:
    """CuPy's current GPU. Raises BackendError where none can be used."""
    return _on(int(_current_device(load_cupy()).id))


def on(device: str) -> Cuda:
    """The GPU of this name (``cuda:0``). Raises BackendError where it is not CuPy's current one, or cannot be used."""
    found = current()
    if device != f"cuda:{found.number}":
        raise BackendError(f"arrays are on {device} and the current GPU is {found.number}: with cupy.cuda.Device(n):")
    return found


__all__ = ["Cuda", "current", "load_cupy", "on"]
