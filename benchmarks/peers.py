"""Drivers of the libraries: load, pass data, compile, wait.

Input: a kernel and its inputs as NumPy arrays.
Output: a ``Contestant``: a compiled function, the same data as that library's kind of arrays, and its compile time.
Why: the harness treats all of them alike. A library is imported only when it is measured.
"""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import tempfile
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks import forms
from benchmarks.kernels import Kernel

Inputs = tuple[np.ndarray, ...]


class NotApplicable(Exception):
    """This library cannot express this kernel; the text says why."""


@dataclass(slots=True)
class Contestant:
    """One library's compiled form of one kernel, with its inputs bound."""

    peer: Peer
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    wait: Callable[[Any], Any] | None = None  # for libraries that return before the work is done
    compile_ms: float | None = None  # None: nothing is compiled
    phases: dict[str, float] = field(default_factory=dict)  # ms
    note: str = ""

    def __call__(self) -> Any:
        result = self.function(*self.arguments)
        return result if self.wait is None else self.wait(result)


class Peer:
    """One library. ``load`` imports it (ImportError where it is missing) and limits it to ``threads`` threads."""

    name = ""
    title = ""
    how = ""
    cold = False  # whether a repeated build compiles again

    def load(self, threads: int) -> None:
        raise NotImplementedError

    def versions(self) -> dict[str, str]:
        return {}

    def build(self, kernel: Kernel, inputs: Inputs) -> Contestant:
        """Compiles ``kernel`` for ``inputs``, cold. Raises NotApplicable, or whatever the library raises."""
        raise NotImplementedError


class NumPy(Peer):
    """NumPy itself: nothing is compiled."""

    name, title = "numpy", "NumPy"
    how = "the function as it stands"

    def load(self, threads: int) -> None:
        pass

    def versions(self) -> dict[str, str]:
        return {"numpy": np.__version__}

    def build(self, kernel: Kernel, inputs: Inputs) -> Contestant:
        return Contestant(self, kernel.numpy, inputs)


class TCompile(Peer):
    """tcompile."""

    name, title = "tcompile", "tcompile"
    how = "tcompile.compile of the NumPy function"
    cold = True

    def __init__(self, backend: str = "auto") -> None:
        self.backend = backend
        if backend != "auto":
            self.title = f"tcompile ({backend})"

    def load(self, threads: int) -> None:
        self.library = importlib.import_module("tcompile")
        events = importlib.import_module("tcompile.observe.events")
        self.finished, self.bus = events.CompileFinished, importlib.import_module("tcompile.observe.bus")

    def versions(self) -> dict[str, str]:
        return {"tcompile": self.library.__version__, "llvmlite": importlib.import_module("llvmlite").__version__}

    def build(self, kernel: Kernel, inputs: Inputs) -> Contestant:
        self.library.cache.clear()  # from earlier builds: this one is cold, too
        compiled = self.library.compile(fresh(kernel.numpy), backend=self.backend)
        phases: dict[str, float] = {}

        def listen(event: Any) -> None:
            if isinstance(event, self.finished):
                phases.update(event.phases)

        with self.bus.listening(listen):
            compiled(*inputs)
        entry = compiled.entries[0]
        note = ""
        if entry.graph is None:
            broke = compiled.breaks[-1].reason.headline if compiled.breaks else "no graph"
            note = f"ran in plain Python: {broke}"
        elif entry.replays:
            note = "replayed in plain Python"
        return Contestant(self, compiled, inputs, compile_ms=entry.compile_ms, phases=phases, note=note)


class Torch(Peer):
    """torch.compile on PyTorch's own operators."""

    name, title = "torch", "torch.compile"
    how = "torch.compile of its own operators, on a tensor over the same memory; first call less a later one"

    def load(self, threads: int) -> None:
        folder = tempfile.mkdtemp(prefix="bench-inductor-")  # an empty cache: every compile is a cold one
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")  # the message confirms the setting
        self.library = importlib.import_module("torch")
        self.library.set_num_threads(threads)

    def versions(self) -> dict[str, str]:
        return {"torch": self.library.__version__}

    def build(self, kernel: Kernel, inputs: Inputs) -> Contestant:
        tensors = tuple(map(self.library.from_numpy, inputs))
        return self._contestant(forms.TORCH[kernel.name](self.library), tensors)

    def _contestant(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Contestant:
        compiled = self.library.compile(fresh(function))
        first = _seconds(lambda: compiled(*arguments))
        later = min(_seconds(lambda: compiled(*arguments)) for _ in range(3))
        return Contestant(self, compiled, arguments, compile_ms=(first - later) * 1e3)


class TorchOnNumPy(Torch):
    """torch.compile on the NumPy function."""

    name, title = "torch_numpy", "torch.compile on NumPy"
    how = "torch.compile of the NumPy function, on the NumPy arrays; first call less a later one"

    def load(self, threads: int) -> None:
        self.library = importlib.import_module("torch")
        if not os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
            super().load(threads)

    def build(self, kernel: Kernel, inputs: Inputs) -> Contestant:
        if sum(x.size for x in inputs) < 10_000:
            raise NotApplicable("measured on large arrays only: its compiles take long, and a call tens of µs")
        return self._contestant(kernel.numpy, inputs)


class Jax(Peer):
    """jax.jit."""

    name, title = "jax", "JAX"
    how = "jax.jit, CPU; compile time is lower().compile()"
    cold = True

    def load(self, threads: int) -> None:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        self.library = importlib.import_module("jax")
        self.library.config.update("jax_enable_x64", True)  # without it, float64 is float32

    def versions(self) -> dict[str, str]:
        return {name: importlib.import_module(name).__version__ for name in ("jax", "jaxlib")}

    def build(self, kernel: Kernel, inputs: Inputs) -> Contestant:
        arrays = tuple(map(self.library.device_put, inputs))
        function = fresh(forms.JAX[kernel.name](self.library))
        seconds = _seconds(lambda: self.library.jit(function).lower(*arrays).compile())
        jitted = self.library.jit(function)
        return Contestant(self, jitted, arrays, lambda result: result.block_until_ready(), seconds * 1e3)


class Numba(Peer):
    """numba.njit on loops by hand."""

    name, title = "numba", "Numba"
    how = "njit(parallel=True) of hand-written loops; sums may be reordered, NaN and inf keep their meaning"

    def load(self, threads: int) -> None:
        self.library = importlib.import_module("numba")
        self.library.set_num_threads(min(threads, self.library.config.NUMBA_NUM_THREADS))

    def versions(self) -> dict[str, str]:
        return {"numba": self.library.__version__}

    def build(self, kernel: Kernel, inputs: Inputs) -> Contestant:
        flags = {"reassoc", "contract", "nsz"}
        loops = forms.NUMBA[kernel.name](self.library, inputs[0].dtype)
        compiled = self.library.njit(parallel=True, fastmath=flags, error_model="numpy")(loops)
        seconds = _seconds(lambda: compiled.compile(tuple(map(self.library.typeof, inputs))))
        return Contestant(self, compiled, inputs, compile_ms=seconds * 1e3)


class NumExpr(Peer):
    """numexpr's expressions."""

    name, title = "numexpr", "numexpr"
    how = "one expression; first call less a later one"

    def load(self, threads: int) -> None:
        self.library = importlib.import_module("numexpr")
        self.library.set_num_threads(threads)

    def versions(self) -> dict[str, str]:
        return {"numexpr": self.library.__version__}

    def build(self, kernel: Kernel, inputs: Inputs) -> Contestant:
        if kernel.name not in forms.NUMEXPR:
            raise NotApplicable("reductions inside an expression")
        function = forms.NUMEXPR[kernel.name](self.library, inputs[0].dtype)
        # Its code does not depend on the shape, and compiles in less than a large call takes.
        small = kernel.inputs((4, 4), inputs[0].dtype)
        first = _seconds(lambda: function(*small))
        later = min(_seconds(lambda: function(*small)) for _ in range(3))
        return Contestant(self, function, inputs, compile_ms=(first - later) * 1e3)


PEERS: dict[str, type[Peer]] = {p.name: p for p in (NumPy, TCompile, Torch, TorchOnNumPy, Jax, Numba, NumExpr)}


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy with a code object of its own, so that no compiler finds what it made for the first one."""
    assert isinstance(function, types.FunctionType)
    copy = types.FunctionType(
        function.__code__.replace(), function.__globals__, function.__name__, function.__defaults__,
        function.__closure__,
    )  # fmt: skip
    copy.__qualname__ = function.__qualname__
    return copy


def _seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
