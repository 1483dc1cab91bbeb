"""Kernels on an NVIDIA GPU, by way of CuPy: its memory pool, its streams, its loader of machine code. No PyTorch.

Enters: functions of kernels, NumPy arrays. Leaves: NumPy arrays. What kernels read is copied to the GPU, what they have
made is copied back at the end, and in between only for what NumPy itself computes. Exists apart from ``cubins`` because
compiling needs no GPU, and running needs no compiler once the machine code is on disk.
"""

from __future__ import annotations

import functools
import importlib
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.backends import helpers
from tcompile.backends.replay import Replay
from tcompile.backends.triton import cubins, interpreter
from tcompile.backends.triton.text import Function
from tcompile.errors import BackendError
from tcompile.observe import bus
from tcompile.observe.events import FellBack

_WIDE = 1 << 31
_ELSE = "backend='llvm' runs on the CPU."


def load_cupy() -> Any:
    """CuPy. Raises BackendError where it is not installed, cannot be imported, or finds no GPU."""
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
    """CuPy's current GPU. Raises BackendError where CUDA gives none."""
    try:
        return cupy.cuda.Device()
    except Exception as error:
        raise BackendError(
            f"CuPy cannot use its current GPU ({error}). Where an earlier kernel has failed, CUDA needs a new process."
            f" {_ELSE}"
        ) from error


class Status:
    """The status bits of kernels that run on: they are waited for where they are asked about."""

    def __init__(self, words: Any) -> None:
        self.words = words
        self.known: int | None = None

    def _value(self) -> int:
        if self.known is None:
            self.known = int(self.words.get()[0])
            self.words.fill(0)
        return self.known

    def __ror__(self, other: int) -> Status:
        return self

    def __or__(self, other: Status | int) -> Status:
        return other if isinstance(other, Status) else self  # what has been asked about is done with

    def __and__(self, bit: int) -> int:
        return self._value() & bit

    def __bool__(self) -> bool:
        return bool(self._value())


class Cuda:
    """The GPU that is CuPy's current one. Raises BackendError where there is none, or one that is too old."""

    def __init__(self) -> None:
        self.cupy = load_cupy()
        device = _current_device(self.cupy)
        self.number = int(device.id)
        self.capability = int(device.compute_capability)
        cubins.check_capability(self.capability)
        self._own = threading.local()

    @functools.cached_property
    def name(self) -> str | None:
        """What GPU it is."""
        name: bytes = self.cupy.cuda.runtime.getDeviceProperties(self.number)["name"]
        return name.decode("utf-8", "replace")

    def finish(self) -> None:
        """Waits for CuPy's current stream."""
        self.cupy.cuda.get_current_stream().synchronize()

    # -- memory ---------------------------------------------------------------------------------------------------
    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any], order: tuple[int, ...] | None = None) -> Any:
        """A new array on the GPU, whose axes lie in memory in ``order``, outermost first."""
        strides, step = [0] * len(shape), dtype.itemsize
        for axis in reversed(order if order is not None else range(len(shape))):
            strides[axis], step = step, step * shape[axis]
        memory = self.cupy.cuda.alloc(math.prod(shape) * dtype.itemsize)
        return self.cupy.ndarray(shape, dtype, memory, tuple(strides))

    def is_mine(self, x: Any) -> bool:
        """Whether an object is an array on a GPU."""
        return isinstance(x, self.cupy.ndarray)

    def placed(self, x: Any, order: tuple[int, ...] | None = None) -> Any:
        """An array on the GPU, as it is there; else a copy whose axes lie in ``order`` (None: C)."""
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

    def to_host(self, x: Any, made: dict[int, tuple[Any, Any]] | None = None) -> Any:
        """An array of the GPU's as NumPy's, lying in memory likewise; views of one array stay views of one array.

        ``made`` holds what has been copied in the same call.
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
            made[id(whole)] = whole, host
        host = made[id(whole)][1]
        if x is whole:
            return host
        return np.ndarray(x.shape, x.dtype, host, x.data.ptr - whole.data.ptr, x.strides)

    def on_host(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A call of the library's, on NumPy arrays."""
        return function(*map(self._all_to_host, args), **kwargs)

    def _all_to_host(self, x: Any) -> Any:
        if type(x) in (tuple, list):
            return type(x)(map(self._all_to_host, x))
        return self.to_host(x)

    # -- programs -------------------------------------------------------------------------------------------------
    def tools(self) -> dict[str, Any]:
        """What a host program calls."""
        return {
            "empty": self.empty, "stride": interpreter.stride, "placed": self.placed, "on_host": self.on_host,
            "to_host": self.to_host, "copy": lambda x: x.copy(order="K") if self.is_mine(x) else helpers.copy(x),
        }  # fmt: skip

    def around(self, program: Callable[..., tuple[Any, ...]], resident: bool) -> Callable[..., tuple[Any, ...]]:
        """The program, with its results copied back, unless all arrays are ``resident``.

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
                self.words.fill(0)  # what a run that was given up may have left
            self._own.depth = depth + 1  # regions run inside of a program, whose bits are not theirs to clear
            made: dict[int, tuple[Any, Any]] = {}
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

    def launcher(self, function: Function) -> Loaded:
        """Runs a function on the GPU."""
        return Loaded(function, self)

    @property
    def words(self) -> Any:
        """This thread's word of status bits."""
        if not hasattr(self._own, "words"):
            self._own.words = self.cupy.zeros(1, np.int32)
        return self._own.words


class Loaded:
    """A function of a kernel on a GPU: its machine code is loaded for what is known of the arguments."""

    def __init__(self, function: Function, device: Cuda) -> None:
        self.function = function
        self.device = device
        self._kinds = [(p.kind in ("array", "partial"), p.kind == "number", p.is_index) for p in function.parameters]
        self._wide: bool | None = None  # the same at every call, where no size and no stride is given at run time
        self._handles: dict[tuple[bool, tuple[bool, ...]], tuple[cubins.Cubin, Any, Any]] = {}

    def __call__(self, grid: tuple[int, int], *given: Any) -> Status | int:
        """Starts the programs of ``grid`` on CuPy's current stream; returns their status bits, or 0 if they have none.

        Raises Replay where arrays are not on this GPU.
        """
        if 0 in grid:
            return 0
        function, device = self.function, self.device
        wide = self._wide
        if wide is None:
            wide = self._is_wide(grid, given)
            if not any(is_index for _, _, is_index in self._kinds):
                self._wide = wide
        even, arguments = [], []
        index = np.int64 if wide else np.int32
        placed = False
        for (is_array, is_number, is_index), value in zip(self._kinds, given, strict=True):
            if is_array:
                if not placed and value.device.id != device.number:  # guards, or we, have put all in one place
                    raise Replay(
                        f"arrays on GPU {value.device.id}, kernels on GPU {device.number}: copy them, or compile there"
                    )
                placed = True
                even.append(value.data.ptr % 16 == 0)
                arguments.append(value)
            elif is_number:
                even.append(False)
                arguments.append(np.float64(value).view(np.int64))
            else:
                number = int(value)
                even.append(number % 16 == 0)
                arguments.append(index(number) if is_index else np.int64(number))
        key = wide, tuple(even)
        found = self._handles.get(key)
        code, handle, _ = found if found is not None else self._load(*key)
        if function.signals:
            arguments.append(device.words)
        if code.extra:
            arguments += [np.uint64(0)] * code.extra
        handle((grid[0], grid[1], 1), (32 * code.warps, 1, 1), tuple(arguments), shared_mem=code.shared)
        return Status(device.words) if function.signals else 0

    def _is_wide(self, grid: tuple[int, int], given: Sequence[Any]) -> bool:
        """Whether some offset needs 64 bits."""
        function = self.function
        if grid[0] * grid[1] * function.points >= _WIDE or (isinstance(function.row, int) and function.row >= _WIDE):
            return True
        for (is_array, _, is_index), value in zip(self._kinds, given, strict=True):
            if (is_array and _extent(value) >= _WIDE) or (is_index and abs(int(value)) >= _WIDE):
                return True
        return False

    def _load(self, wide: bool, even: tuple[bool, ...]) -> tuple[cubins.Cubin, Any, Any]:
        code = cubins.compiled(self.function, self.device.capability, cubins.Variant(wide, even))
        module = self.device.cupy.cuda.function.Module()
        module.load(code.code)
        handle = module.get_function(code.name)
        if code.shared > 48 << 10:
            self.device.cupy.cuda.driver.funcSetAttribute(handle.ptr, _MOST_SHARED, code.shared)
        self._handles[wide, even] = code, handle, module
        return code, handle, module


_MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def _extent(array: Any) -> int:
    """How many cells lie between an array's first and last one, at most."""
    steps: Sequence[int] = [abs(s) * (n - 1) for s, n in zip(array.strides, array.shape, strict=True)]
    cell: int = array.itemsize // (2 if array.dtype.kind == "c" else 1)
    return sum(steps) // cell + 1


@functools.cache
def _on(number: int) -> Cuda:
    return Cuda()


def current() -> Cuda:
    """The GPU that is CuPy's current one. Raises BackendError where there is none that can be used."""
    return _on(int(_current_device(load_cupy()).id))


def on(device: str) -> Cuda:
    """The GPU of this name (``cuda:0``). Raises BackendError where it is not CuPy's current one, or cannot be used."""
    found = current()
    if device != f"cuda:{found.number}":
        raise BackendError(f"arrays are on {device} and the current GPU is {found.number}: with cupy.cuda.Device(n):")
    return found


__all__ = ["Cuda", "current", "load_cupy", "on"]
