"""A CuPy without a GPU: what the triton backend uses of it, on the host's memory, with kernels in Triton's interpreter.

It is strict where CuPy is: NumPy cannot read its arrays, and copies between host and GPU need memory in C order.
"""

from __future__ import annotations

import time
import types
from typing import Any

import numpy as np


class OutOfMemoryError(MemoryError):
    pass


class Memory:
    """Allocated memory, or a place in it."""

    def __init__(self, nbytes: int) -> None:
        self.held = np.zeros(max(1, nbytes), np.uint8)


class FakeArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array "on the GPU"."""

    def __init__(self, shape, dtype=float, memptr=None, strides=None, *, host=None, base=None):
        if host is None:
            memory = memptr if memptr is not None else Memory(int(np.prod(shape)) * np.dtype(dtype).itemsize)
            host = np.ndarray(shape, dtype, memory.held, 0, strides)
        self.host, self.base, self.device = host, base, types.SimpleNamespace(id=0)

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    strides = property(lambda self: self.host.strides)
    ndim = property(lambda self: self.host.ndim)
    size = property(lambda self: self.host.size)
    itemsize = property(lambda self: self.host.itemsize)
    flags = property(lambda self: self.host.flags)
    nbytes = property(lambda self: self.host.nbytes)
    T = property(lambda self: self.transpose())
    data = property(lambda self: types.SimpleNamespace(ptr=self.host.ctypes.data))

    def _view(self, host):
        return FakeArray(None, host=host, base=self)

    def transpose(self, *axes):
        return self._view(self.host.transpose(*axes))

    def reshape(self, *shape):
        made = self.host.reshape(*shape)
        return self._view(made) if np.shares_memory(made, self.host) else FakeArray(None, host=made)

    def __getitem__(self, key):
        return self._view(self.host[(*key, ...) if isinstance(key, tuple) and ... not in key else key])

    def __setitem__(self, key, value):
        self.host[key] = value.host if isinstance(value, FakeArray) else value

    def get(self, out=None):
        if out is None:
            return self.host.copy()
        assert self.host.flags.c_contiguous and out.flags.c_contiguous and out.dtype == self.dtype
        out[...] = self.host
        return out

    def set(self, host):
        assert type(host) is np.ndarray and host.flags.c_contiguous and self.host.flags.c_contiguous
        assert host.shape == self.shape
        self.host[...] = host

    def fill(self, value):
        self.host.fill(value)

    def copy(self, order="C"):
        return FakeArray(None, host=self.host.copy(order=order))

    def __bool__(self):
        return bool(self.host)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        given = [a.host if isinstance(a, FakeArray) else a for a in inputs]
        return FakeArray(None, host=np.asarray(ufunc(*given)))

    def sum(self, **kwargs):
        return FakeArray(None, host=np.asarray(self.host.sum(**kwargs)))

    def max(self, **kwargs):
        return FakeArray(None, host=np.asarray(self.host.max(**kwargs)))

    def __array_function__(self, function, types, args, kwargs):
        given = [a.host if isinstance(a, FakeArray) else a for a in args]
        made = function(*given, **kwargs)
        return self._view(made) if np.may_share_memory(made, self.host) else FakeArray(None, host=made)


class Function:
    def __init__(self, run):
        self.run = run

    def __call__(self, grid, block, args, shared_mem=0):
        assert len(grid) == 3 and block[0] % 32 == 0
        self.run(grid, args)


def module(functions: dict[bytes, Any], *, capability: str = "90", devices: int = 1, room: int = 1 << 30) -> Any:
    """The module ``cupy``. ``functions`` maps machine code to what runs in its place: ``run(grid, arguments)``."""
    taken = [0]

    def alloc(nbytes: int) -> Memory:
        if nbytes > room:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes} bytes")
        taken[0] += nbytes
        return Memory(nbytes)

    class Module:
        def load(self, code):
            self.code = code

        def get_function(self, name):
            return Function(functions[self.code])

    class Event:
        def record(self):
            self.at = time.perf_counter()

        def synchronize(self):
            pass

    pool = types.SimpleNamespace(total_bytes=lambda: 3 << 20, used_bytes=lambda: 2 << 20)
    return types.SimpleNamespace(
        ndarray=FakeArray,
        zeros=lambda shape, dtype: FakeArray(shape, dtype),
        get_default_memory_pool=lambda: pool,
        __version__="0",
        copyto=lambda to, source: to.__setitem__(..., source),
        empty_like=lambda x: FakeArray(x.shape, x.dtype),
        **{name: getattr(np, name) for name in ("maximum", "abs", "exp", "sin", "tanh")},
        cuda=types.SimpleNamespace(
            alloc=alloc,
            runtime=types.SimpleNamespace(
                getDeviceCount=lambda: devices, getDeviceProperties=lambda number: {"name": b"Pretended GPU"}
            ),
            Event=Event,
            get_elapsed_time=lambda start, stop: 1e3 * (stop.at - start.at),
            Device=lambda: types.SimpleNamespace(id=0, compute_capability=capability),
            function=types.SimpleNamespace(Module=Module),
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        ),
    )
