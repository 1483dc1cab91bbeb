"""Launches of kernels on a GPU, with little more overhead than CUDA's own.

Input: a ``TritonFunction``, the number of programs, and arrays and numbers.
Output: its status bits.
Why: machine code is specialised to facts about the arguments (``cubins.ArgumentFacts``), which have to be checked at
every launch.

The fast check is Python generated for the function's parameters; a new combination takes the slow path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Protocol

import numpy as np

from tcompile.backends.replay import Replay
from tcompile.backends.triton import cubins
from tcompile.backends.triton.text import TritonFunction
from tcompile.records import dataclass

WIDE = 1 << 31  # an offset in elements that needs more than 32 bits
_MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_NOTHING = np.uint64(0)  # unused scratch memory of machine code


class GpuTarget(Protocol):
    """The GPU that functions are loaded on.

    Attributes:
        number: CuPy's number of it.
        capability: its compute capability, major and minor as one number: 90 for 9.0.
        cupy: the CuPy package.
        words: counters for status bits, in its memory.
    """

    number: int
    capability: int
    cupy: Any

    @property
    def words(self) -> Any:
        """Counters for the status bits of this thread's launches."""


class Status:
    """The status bits of running kernels: reading them waits."""

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
        return other if isinstance(other, Status) else self  # a status that was read is done

    def __and__(self, bit: int) -> int:
        return self._value() & bit

    def __bool__(self) -> bool:
        return bool(self._value())


@dataclass(frozen=True, eq=False)
class GpuLaunch:
    """A prepared launch: the loaded function, the number of programs, threads of one, shared memory in bytes, and the
    arguments, of which arrays stand for their addresses.
    """

    handle: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[Any, ...]


_noting: dict[int, Callable[[GpuLaunch], None]] = {}  # by thread: the recorder of its launches


@contextmanager
def noted(take: Callable[[GpuLaunch], None]) -> Iterator[None]:
    """Passes this thread's launches to ``take`` meanwhile, instead of starting them."""
    try:
        _noting[get_ident()] = take
        yield
    finally:
        _noting.pop(get_ident(), None)


def _start(launch: GpuLaunch) -> None:
    take = _noting.get(get_ident())
    if take is not None:
        take(launch)
    else:
        launch.handle(launch.grid, launch.block, launch.arguments, launch.shared)


class Loaded:
    """A function of a kernel on a GPU: its machine code is loaded for the facts about its arguments.

    ``launch(programs, *arguments)`` starts so many programs on CuPy's current stream; it returns their status bits, or
    0 if they have none. Raises Replay where arrays are not on this GPU.
    """

    def __init__(self, function: TritonFunction, device: GpuTarget) -> None:
        self.function = function
        self.device = device
        self._indices = [p.is_index for p in function.parameters]
        self._wide: bool | None = None  # constant where no size and no stride is a run-time argument
        self._handles: dict[tuple[bool, tuple[bool, ...]], tuple[cubins.Cubin, Any, Any]] = {}
        self._known: dict[int, tuple[Any, ...]] = {}  # by the key of ``launch``: all that a launch needs
        self.launch = self._written()

    def _written(self) -> Callable[..., Status | int]:
        """Generates the function ``launch``, which starts what ``_prepared`` has prepared before for arguments of the
        same key.

        Its key has a bit for each number, whether that is a multiple of 16; pointers must be. Where sizes are run-time
        arguments, no offset may need 64 bits; a complex number is two cells.
        """
        parameters, signals = self.function.parameters, self.function.signals
        arrays = [f"a{i}" for i, p in enumerate(parameters) if p.is_array]
        numbers = [f"a{i}" for i, p in enumerate(parameters) if p.kind in ("size", "stride", "count", "wide")]
        indices = [f"a{i}" for i, is_index in enumerate(self._indices) if is_index]
        given = [f"float64(a{i}).view(int64)" if p.kind == "number" else f"a{i}" for i, p in enumerate(parameters)]
        names = ", ".join(f"a{i}" for i in range(len(parameters)))
        bits = " | ".join([f"(not {n} & 15) << {i}" for i, n in enumerate(numbers)] or ["0"])
        small = [f"({a}.size if {a}._c_contiguous else extent({a})) < WIDE >> 1" for a in arrays]
        small += [f"-WIDE < {n} < WIDE" for n in indices]
        here = [
            f"{a}.data.device_id == NUMBER" for a in arrays[:1]
        ]  # all arrays are on one GPU, by guards or by allocation
        even = [f"not ({' | '.join(f'{a}.data.ptr' for a in arrays)}) & 15"] if arrays else []
        points = [f"programs < {-(-WIDE // self.function.points)}"]
        fits = " and ".join(["not noting", *here, *even, *(points + small if indices else [])])
        lines = [
            f"def launch(programs, {names}):",
            "    if not programs:",
            "        return 0",
            f"    found = known.get({bits}) if {fits} else None",
            "    if found is None:",
            f"        start(prepared(programs, {names}))",
            "    else:",
            "        handle, block, shared, extra = found",
            f"        handle((programs, 1, 1), block, ({''.join(f'{g}, ' for g in given)}"
            f"{'words(), ' if signals else ''}*extra), shared)",
            f"    return {'Status(words())' if signals else '0'}",
        ]
        device = self.device
        names_known: dict[str, Any] = {
            "known": self._known, "prepared": self._prepared, "start": _start, "noting": _noting, "extent": extent,
            "NUMBER": device.number, "WIDE": WIDE, "Status": Status, "words": lambda: device.words,
            "float64": np.float64, "int64": np.int64,
        }  # fmt: skip
        exec(compile("\n".join(lines), f"<tcompile launch of {self.function.name}>", "exec"), names_known)
        launch: Callable[..., Status | int] = names_known["launch"]
        return launch

    def _prepared(self, programs: int, *given: Any) -> GpuLaunch:
        """The launch of at least one program. Raises Replay where arrays are not on this GPU."""
        function, device = self.function, self.device
        wide = self._wide
        if wide is None:
            wide = self._is_wide(programs, given)
            if not any(self._indices):
                self._wide = wide
        even: list[bool] = []
        arguments: list[Any] = []
        key, number, aligned = 0, 0, True
        for parameter, value in zip(function.parameters, given, strict=True):
            if parameter.is_array:
                if value.device.id != device.number:
                    raise Replay(
                        f"arrays on GPU {value.device.id}, kernels on GPU {device.number}: copy them, or compile there"
                    )
                even.append(value.data.ptr % 16 == 0)
                aligned = aligned and even[-1]
                arguments.append(value)
            elif parameter.kind == "number":
                even.append(False)
                arguments.append(np.float64(value).view(np.int64))
            else:
                even.append(int(value) % 16 == 0)
                key |= even[-1] << number
                number += 1
                arguments.append(int(value))  # 32-bit indices read the lower half
        found = self._handles.get((wide, tuple(even)))
        code, handle, _ = found if found is not None else self._load(wide, tuple(even))
        block, extra = (32 * code.warps, 1, 1), (_NOTHING,) * code.extra
        if aligned and (not wide or self._wide is not None):
            self._known[key] = handle, block, code.shared, extra
        words = (device.words,) if function.signals else ()
        return GpuLaunch(handle, (programs, 1, 1), block, code.shared, (*arguments, *words, *extra))

    def _is_wide(self, programs: int, given: Sequence[Any]) -> bool:
        """Whether some offset needs 64 bits."""
        function = self.function
        if programs * function.points >= WIDE or (isinstance(function.row, int) and function.row >= WIDE):
            return True
        for parameter, value in zip(function.parameters, given, strict=True):
            if (parameter.is_array and extent(value) >= WIDE) or (parameter.is_index and abs(int(value)) >= WIDE):
                return True
        return False

    def _load(self, wide: bool, even: tuple[bool, ...]) -> tuple[cubins.Cubin, Any, Any]:
        code = cubins.compiled(self.function, self.device.capability, cubins.ArgumentFacts(wide, even))
        module = self.device.cupy.cuda.function.Module()
        module.load(code.code)
        handle = module.get_function(code.name)
        if code.shared > 48 << 10:
            self.device.cupy.cuda.driver.funcSetAttribute(handle.ptr, _MOST_SHARED, code.shared)
        self._handles[wide, even] = code, handle, module
        return code, handle, module


def extent(array: Any) -> int:
    """An upper bound of the number of cells between an array's first and last one."""
    steps: Sequence[int] = [abs(s) * (n - 1) for s, n in zip(array.strides, array.shape, strict=True)]
    cell: int = array.itemsize // (2 if array.dtype.kind == "c" else 1)
    return sum(steps) // cell + 1


__all__ = ["GpuLaunch", "Loaded", "Status", "extent", "noted"]
