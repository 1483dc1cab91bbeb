"""Kernels in Triton's interpreter, on NumPy arrays: the GPU's results, one NumPy operation at a time.

Input: a ``TritonFunction`` and NumPy arrays.
Output: arrays that it has written, and its status bits.
Why: every kernel can be run and compared where there is no GPU.

The interpreter expects PyTorch's tensors: ``_Memory`` makes a NumPy array look like one. It lacks CUDA's library:
``_Library`` computes these functions in NumPy.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.backends.replay import Replay
from tcompile.backends.schedule.complex_and_half import PARTS
from tcompile.backends.triton import library
from tcompile.backends.triton.pointwise import LIBRARY
from tcompile.backends.triton.sources import defined
from tcompile.backends.triton.text import TritonFunction
from tcompile.errors import BackendError
from tcompile.graph.op import OPS

Array = np.ndarray[Any, Any]
_FUNCTIONS: dict[str, Callable[..., Any]] = {"rint": np.rint, **{name: OPS[name].reference(np) for name in LIBRARY}}


class _Memory:
    """An array with the interface that the interpreter expects: a tensor in host memory."""

    def __init__(self, array: Array) -> None:
        dtype: np.dtype[Any] = PARTS.get(array.dtype) or array.dtype
        self.address = array.ctypes.data
        self.dtype = np.dtype("int8") if dtype.kind == "b" else dtype

    def data_ptr(self) -> int:
        """The address of the data."""
        return self.address

    def untyped_storage(self) -> _Memory:
        """The tensor itself, as its storage."""
        return self

    def cpu(self) -> _Memory:
        """The tensor itself, on the host."""
        return self

    def copy_(self, other: _Memory) -> None:
        """Does nothing: the interpreter copies back what it has copied to the host."""

    def new_empty(self, *args: Any, **kwargs: Any) -> _Memory:
        """A tensor that will view the copy on the host."""
        return self

    def set_(self, *args: Any) -> None:
        """Makes a tensor view some memory."""

    def storage_offset(self) -> int:
        """The offset of a tensor in its memory."""
        return 0

    def size(self) -> tuple[int, ...]:
        """The shape, which is unused."""
        return ()

    def stride(self) -> tuple[int, ...]:
        """The strides, which are unused."""
        return ()


class _Library:
    """CUDA's library of functions, in NumPy."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = _FUNCTIONS[name]
        return lambda *operands: _of(function(*(o.handle.data for o in operands)), operands)


def _of(data: Any, operands: Sequence[Any]) -> Any:
    """A tensor of the interpreter's with these data, of the operands' dtype."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    dtype = operands[0].dtype
    block = any(o.type.is_block() for o in operands)
    return tl.core.tensor(TensorHandle(data, dtype), tl.block_type(dtype, list(data.shape)) if block else dtype)


def _reduced(function: Any, block: Any, axis: int | None) -> Any:
    """A vectorised reduction, which the interpreter would do element by element."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    data = block.handle.data
    made = function.reduce(data.ravel() if axis is None else data, axis=0 if axis is None else axis, keepdims=True)
    dtype = block.dtype
    type = dtype if axis is None else tl.block_type(dtype, list(made.shape))
    return tl.core.tensor(TensorHandle(made.astype(data.dtype), dtype), type)


def _sums(library_sum: Callable[..., Any], a: Any, errors: Any) -> tuple[Any, Any]:
    """The reduction ``sums_of``, by halves; ``library_sum`` adds two sums and their errors."""
    while (n := int(a.handle.data.shape[1])) > 1:
        halves = [x.handle.data[:, part] for part in (slice(n // 2), slice(n // 2, None)) for x in (a, errors)]
        a, errors = library_sum(*(_of(half, [a]) for half in halves))
    return a, errors


def _accumulated(function: Any, block: Any) -> Any:
    """A vectorised scan, which the interpreter would do element by element."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    data = block.handle.data
    return tl.core.tensor(TensorHandle(function.accumulate(data, 1, data.dtype), block.dtype), block.type)


def _range(*bounds: Any) -> range:
    """Python's range of numbers that the interpreter holds as one-element arrays, which NumPy 2.5 does not convert."""
    return range(*(int(b.handle.data.item()) if hasattr(b, "handle") else operator.index(b) for b in bounds))


@functools.cache
def _names() -> dict[str, Any]:
    """The globals of kernels: Triton's language, and the library's functions as Python."""
    import triton.language as tl

    names: dict[str, Any] = {"tl": tl, "libdevice": _Library()}
    for name, value in vars(library).items():
        if isinstance(value, types.FunctionType) and value.__module__ == library.__name__:
            names[name] = types.FunctionType(value.__code__, names, name, value.__defaults__)
        elif isinstance(value, int):
            names[name] = value
    names["added"] = tl.standard._sum_combine  # which the interpreter recognises by identity, and vectorises
    names["range"] = _range
    names["sums_of"] = functools.partial(_sums, names["added_with_errors"])
    names["product_of"] = lambda block: _reduced(np.multiply, block, 1)
    names["max_of"] = lambda block: _reduced(np.maximum, block, 1)
    names["min_of"] = lambda block: _reduced(np.minimum, block, 1)
    names["bits_of"] = lambda block: _reduced(np.bitwise_or, block, 1)
    names["sums_along"] = lambda block: _accumulated(np.add, block)
    names["products_along"] = lambda block: _accumulated(np.multiply, block)
    names["bits_along"] = lambda block: _accumulated(np.bitwise_or, block)
    names["all_bits"] = lambda block: _reduced(np.bitwise_or, block, None)
    return names


class Interpreted:
    """A function of a kernel, run in the interpreter."""

    def __init__(self, function: TritonFunction) -> None:
        self.function = function

    @functools.cached_property
    def _run(self) -> Any:
        from triton.runtime.interpreter import InterpretedFunction

        made = InterpretedFunction(defined(self.function, _names()))
        made.rewritten_fn = {}  # that of the class holds every kernel forever
        return made

    def __call__(self, programs: int, *given: Any) -> int:
        """Runs so many programs; returns the status bits."""
        import triton.language as tl

        if not programs:
            return 0
        function = self.function
        arguments: list[Any] = []
        for parameter, value in zip(function.parameters, given, strict=True):
            if isinstance(value, np.ndarray):
                arguments.append(_Memory(value))
            else:
                arguments.append(_bits(value) if parameter.kind == "number" else int(value))
        status = np.zeros(1, np.int32)
        if function.signals:
            arguments.append(_Memory(status))
        with np.errstate(all="ignore"):
            self._run[(programs,)](*arguments, **dict(function.blocks), INDEX=tl.int64)
        return int(status[0])


def _bits(number: float) -> int:
    """A Python float as the integer of the same bits."""
    return int(np.float64(number).view(np.int64))


def stride(array: Array, axis: int) -> int:
    """A stride in elements. Raises Replay where it is no multiple of the item size."""
    elements, rest = divmod(array.strides[axis], array.itemsize)
    if rest:
        raise Replay("elements whose distance is no multiple of their size")
    return elements


@functools.cache
def _prototype(order: tuple[int, ...]) -> Array:
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return np.empty((2,) * len(order), np.bool_).transpose(inverse)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], order: tuple[int, ...] | None = None) -> Array:
    """A new array with undefined contents, whose axes lie in memory in ``order``, outermost first."""
    if order is None:
        return np.empty(shape, dtype)
    return np.empty_like(_prototype(order), dtype, "K", True, shape)


class Interpreter:
    """Triton's interpreter as a device. Raises BackendError where there is no Triton."""

    name = None

    def __init__(self) -> None:
        try:
            import triton  # noqa: F401
        except ImportError as error:
            raise BackendError(f"backend='triton' needs Triton: pip install triton ({error})") from error

    def finish(self) -> None:
        """Does nothing: kernels run synchronously."""

    def tools(self) -> dict[str, Any]:
        """NumPy's arrays."""
        return {"empty": empty, "stride": stride, "counters": lambda count: np.zeros(count, np.int32)}

    def around(self, program: Callable[..., tuple[Any, ...]], resident: bool) -> Callable[..., tuple[Any, ...]]:
        """The program itself: its results are NumPy's already."""
        return program

    def launcher(self, function: TritonFunction) -> Interpreted:
        """Runs a function on NumPy arrays."""
        return Interpreted(function)


__all__ = ["Interpreted", "Interpreter", "empty", "stride"]
