"""A CuPy without a GPU: the part that tcompile and its tests use, on the host's memory, with interpreted kernels.

Input: calls of CuPy's functions.
Output: their results, computed by NumPy.
Why: tests need no GPU. It is as strict as CuPy: NumPy cannot read its arrays, copies between host and GPU need memory
in C order, there are no scalars, and results are in C order.
"""

from __future__ import annotations

import inspect
import time
import types
from typing import Any, ClassVar

import numpy as np


class OutOfMemoryError(MemoryError):
    pass


class Memory:
    """Allocated memory, which begins at a multiple of 512 as CuPy's does."""

    device_id = 0

    def __init__(self, size: int, held: Any = None, given_back: Any = None) -> None:
        self.size, self.given_back = size, given_back
        self.held = np.zeros(size + 512, np.uint8) if held is None else held
        self.ptr = self.held.ctypes.data + -self.held.ctypes.data % 512

    def __del__(self) -> None:
        if self.given_back is not None:
            self.given_back.append(self.held)


class Pointer:
    """A place in memory."""

    def __init__(self, mem: Any, ptr: int) -> None:
        self.mem, self.ptr, self.device_id = mem, ptr, mem.device_id

    def __add__(self, distance: int) -> Pointer:
        return Pointer(self.mem, self.ptr + distance)

    def array(self, shape, dtype, strides=None):
        """The host's array at this place."""
        low = 0 if strides is None else sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0)
        place = self.ptr - self.mem.held.ctypes.data
        assert place + low >= 0
        return np.ndarray(shape, dtype, self.mem.held, place, strides)


def allocated(nbytes: int) -> Pointer:
    made = Memory(nbytes)
    return Pointer(made, made.ptr)


class Pool:
    """Memory that is used again, filled with garbage."""

    limit = 1 << 40  # bytes; beyond, what is free is given back to CUDA

    def __init__(self, acquire) -> None:
        self.free: list = []
        self.acquire, self.total = acquire, 0

    def malloc(self, nbytes: int) -> Pointer:
        held = next((held for held in self.free if len(held) >= nbytes + 512), None)
        if held is not None:
            self.free[:] = [other for other in self.free if other is not held]
            held.fill(0xA5)
        else:
            if self.total + nbytes > self.limit:
                self.total -= sum(len(held) - 512 for held in self.free)
                self.free.clear()
            held = self.acquire(nbytes).mem.held
            self.total += nbytes
        made = Memory(nbytes, held, self.free)
        return Pointer(made, made.ptr)

    def total_bytes(self) -> int:
        return self.total


class Allocator:
    """By whom arrays get their memory."""

    current: ClassVar[list] = [allocated]

    def __init__(self, malloc):
        self.malloc = malloc

    def __enter__(self):
        Allocator.current.append(self.malloc)

    def __exit__(self, *error):
        Allocator.current.pop()


class FakeArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array "on the GPU"."""

    def __init__(self, shape, dtype=float, memptr=None, strides=None, *, host=None, base=None, number=0):
        if host is None:
            nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
            memptr = memptr if memptr is not None else Allocator.current[-1](nbytes)
            host = memptr.array(shape, dtype, strides)
        elif memptr is None and base is None:  # it is copied to memory that begins where CuPy's does
            low = sum((n - 1) * s for n, s in zip(host.shape, host.strides, strict=True) if s < 0 and host.size)
            high = sum((n - 1) * s for n, s in zip(host.shape, host.strides, strict=True) if s > 0 and host.size)
            memptr = Allocator.current[-1](high - low + host.itemsize) + -low
            placed = memptr.array(host.shape, host.dtype, host.strides)
            placed[...] = host
            host = placed
        self.host, self.base, self.device = host, base, types.SimpleNamespace(id=number)
        self.mem = memptr.mem if memptr is not None else base.mem

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    strides = property(lambda self: self.host.strides)
    ndim = property(lambda self: self.host.ndim)
    size = property(lambda self: self.host.size)
    itemsize = property(lambda self: self.host.itemsize)
    flags = property(lambda self: self.host.flags)
    nbytes = property(lambda self: self.host.nbytes)
    T = property(lambda self: self.transpose())
    _c_contiguous = property(lambda self: self.host.flags.c_contiguous)

    @property
    def data(self):
        made = Pointer(self.mem, self.host.ctypes.data)
        made.device_id = self.device.id
        return made

    def _view(self, host):
        return FakeArray(None, host=host, base=self, number=self.device.id)

    def transpose(self, *axes):
        return self._view(self.host.transpose(*axes))

    def reshape(self, *shape):
        made = self.host.reshape(*shape)
        return self._view(made) if np.shares_memory(made, self.host) else FakeArray(None, host=made)

    def _key(self, key):
        """Arrays of integers go on at the other end, as often as it takes."""
        items, axis, found = key if isinstance(key, tuple) else (key,), 0, []
        missing = self.ndim - sum(item is not None and item is not Ellipsis for item in items)
        for item in items:
            if isinstance(item, FakeArray) and item.dtype.kind != "b":
                found.append(item.host % self.shape[axis])
            else:
                found.append(on_host(item))
            axis += missing if item is Ellipsis else item is not None
        return tuple(found)

    def __getitem__(self, key):
        items = self._key(key)
        if any(isinstance(item, np.ndarray) for item in items):
            return FakeArray(None, host=np.array(self.host[items], order="C"))
        return self._view(self.host[items if any(item is Ellipsis for item in items) else (*items, ...)])

    def __setitem__(self, key, value):
        self.host[self._key(key)] = value.host if isinstance(value, FakeArray) else value

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

    def __len__(self):
        return len(self.host)

    def __bool__(self):
        return bool(self.host)

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if out is None:
            return computed(ufunc, inputs, kwargs)
        ufunc(*map(on_host, inputs), out=out[0].host, **kwargs)
        return out[0]

    def __array_function__(self, function, types, args, kwargs):
        if function is np.copyto:
            args[0][...] = args[1]
            return None
        if function is np.take:
            return args[0].take(*args[1:], **kwargs)
        return called(function, args, kwargs)

    def take(self, indices, axis=None):
        return (self.ravel() if axis is None else self)[(*(slice(None),) * (axis or 0), indices)]

    # There are no scalars: what a method computes is an array.
    def _method(name, order="C"):
        def method(self, *args, **kwargs):
            return computed(getattr(type(self.host), name), (self, *args), kwargs, order)

        return method

    for _name in ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "cumsum",
                  "cumprod", "dot", "argsort", "searchsorted", "repeat", "clip"):  # fmt: skip
        locals()[_name] = _method(_name)
    astype, copy = _method("astype", "K"), _method("copy", "K")

    def nonzero(self):
        return called(np.nonzero, (self,), {})

    def swapaxes(self, one, two):
        return self._view(self.host.swapaxes(one, two))

    def ravel(self):
        return self.reshape(-1)


FakeArray.__module__ = "cupy"
FUNCTIONS = """
    where zeros_like ones_like full_like copy sum prod max min mean var std any all argmax argmin transpose swapaxes
    expand_dims squeeze broadcast_to reshape ravel sort argsort searchsorted matmul dot inner outer tensordot cumsum
    cumprod take take_along_axis roll tile repeat concatenate stack einsum add multiply subtract divide maximum
    minimum abs exp sin cos tanh sqrt log isnan greater floor_divide power moveaxis nonzero flatnonzero clip zeros ones
    full empty eye identity arange
""".split()
LINEAR = ["norm", "det", "cholesky", "inv", "solve"]


def on_host(x):
    if isinstance(x, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(x, tuple | list):
        return type(x)(map(on_host, x))
    return x.host if isinstance(x, FakeArray) else x


def computed(function, args, kwargs, order="C"):
    """A call of NumPy's on the host's memory, whose result is a new array, in C order."""
    with np.errstate(all="ignore"):
        made = np.array(function(*map(on_host, args), **kwargs), order=order)
    return FakeArray(None, host=made)


def called(function, args, kwargs):
    """The same for functions that may give a view."""
    given = [on_host(x) for x in args]
    with np.errstate(all="ignore"):
        found = function(*given, **kwargs)
    if isinstance(found, tuple):
        return tuple(FakeArray(None, host=item) for item in found)
    made = np.asarray(found)
    owner = next((x for x in args if isinstance(x, FakeArray)), None)
    if owner is not None and np.may_share_memory(made, owner.host):
        return owner._view(made)
    return FakeArray(None, host=np.array(made, order="C"))


def function(name):
    """CuPy's function of this name."""
    known = getattr(np.linalg if name in LINEAR else np, name)

    def called_by_name(*args, **kwargs):
        return called(known, args, kwargs)

    if name == "take":
        called_by_name = lambda a, indices, axis=None: a.take(indices, axis)
    elif not isinstance(known, np.ufunc):
        stated = inspect.signature(known)
        lacking = ("where", "initial")  # which NumPy's reductions take
        called_by_name.__signature__ = stated.replace(
            parameters=[p for name, p in stated.parameters.items() if name not in lacking]
        )
    called_by_name.__name__, called_by_name.__module__ = name, "cupy.fake"
    return called_by_name


class Function:
    def __init__(self, run):
        self.run = run

    def __call__(self, grid, block, args, shared_mem=0):
        assert len(grid) == 3 and block[0] % 32 == 0
        self.run(grid, args)


class LaunchGraph:
    """In place of the driver's: a launch sees the words that were there at the last change."""

    started = 0

    def __init__(self, cuda, launches):
        self.launches, self.words = launches, [list(launch.arguments) for launch in launches]
        self.seen = [list(words) for words in self.words]

    def change(self, number):
        self.seen[number] = list(self.words[number])

    def start(self):
        LaunchGraph.started += 1
        for launch, words in zip(self.launches, self.seen, strict=True):
            launch.handle.run(launch.grid, words)


class Stream:
    """A stream on which everything is done at once."""

    current: ClassVar[list] = []

    def synchronize(self):
        pass


Stream.current.append(Stream())


def module(
    functions: dict[bytes, Any],
    *,
    capability: str = "90",
    devices: int = 1,
    room: int = 1 << 30,
    version: str = "14.0.0",
) -> Any:
    """The module ``cupy``. ``functions`` maps machine code to what runs in its place: ``run(grid, arguments)``."""

    def alloc(nbytes: int) -> Pointer:
        if nbytes > room:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes} bytes")
        return Allocator.current[-1](nbytes)

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

    def get_array_module(*args):
        return made if any(isinstance(x, FakeArray) for x in args) else np

    get_array_module.__module__ = "cupy.fake"
    pool = types.SimpleNamespace(malloc=allocated, total_bytes=lambda: 3 << 20, used_bytes=lambda: 2 << 20)
    made = types.ModuleType("cupy")
    made.__dict__.update(
        ndarray=FakeArray,
        array=lambda x: FakeArray(None, host=np.array(x, order="K")),
        get_array_module=get_array_module,
        get_default_memory_pool=lambda: pool,
        __version__=version,
        copyto=lambda to, source: to.__setitem__(..., source),
        empty_like=lambda x: FakeArray(x.shape, x.dtype),
        **{name: function(name) for name in FUNCTIONS},
        linalg=types.SimpleNamespace(**{name: function(name) for name in LINEAR}),
        cuda=types.SimpleNamespace(
            alloc=alloc,
            runtime=types.SimpleNamespace(
                getDeviceCount=lambda: devices, getDeviceProperties=lambda number: {"name": b"Pretended GPU"}
            ),
            Event=Event,
            Stream=Stream,
            get_current_stream=lambda: Stream.current[-1],
            MemoryPool=Pool,
            Memory=Memory,
            MemoryPointer=lambda mem, offset: Pointer(mem, mem.ptr + offset),
            using_allocator=Allocator,
            device=types.SimpleNamespace(get_device_id=lambda: 0),
            get_elapsed_time=lambda start, stop: 1e3 * (stop.at - start.at),
            Device=lambda: types.SimpleNamespace(id=0, compute_capability=capability),
            function=types.SimpleNamespace(Module=Module),
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        ),
    )
    return made
