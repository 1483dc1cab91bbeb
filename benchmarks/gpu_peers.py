"""GPU peers: CuPy, eager and fused; PyTorch, eager and compiled; JAX.

Input: a kernel, and its arrays, CuPy's.
Output: by name, a callable that runs it (as ``forms`` writes it) on arrays of the peer's own in the same memory.
Why: peers that are not installed, or find no GPU, are left out, and one that cannot run a kernel gives a reason.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks import forms
from benchmarks.kernels import Kernel

Run = Callable[[], Any]
FINISH: dict[str, Callable[[Any], object]] = {
    "jax.jit": lambda made: made.block_until_ready()
}  # for streams that CuPy does not know


def of_cupy(cupy: Any, kernel: Kernel, arrays: Sequence[Any]) -> dict[str, Callable[[], Run]]:
    """CuPy as it is, and with ``cupy.fuse``."""
    run = kernel.numpy
    return {"CuPy": lambda: partial(run, *arrays), "cupy.fuse": lambda: partial(cupy.fuse()(run), *arrays)}


def of_torch(kernel: Kernel, arrays: Sequence[Any]) -> dict[str, Callable[[], Run]]:
    """PyTorch, eager and compiled."""
    torch: Any = importlib.import_module("torch")
    given, run = [torch.from_dlpack(x) for x in arrays], forms.TORCH[kernel.name](torch)
    return {
        "torch": lambda: partial(run, *given),
        "torch.compile": lambda: partial(torch.compile(run), *given),
        "torch.compile, max-autotune": lambda: partial(torch.compile(run, mode="max-autotune-no-cudagraphs"), *given),
    }


def of_jax(kernel: Kernel, arrays: Sequence[Any]) -> dict[str, Callable[[], Run]]:
    """JAX, which has streams of its own (``FINISH``)."""
    jax: Any = importlib.import_module("jax")
    importlib.import_module("jax.dlpack")
    jax.config.update("jax_enable_x64", True)  # else it would take float64 for float32
    jax.config.update("jax_default_matmul_precision", "highest")  # as the others: no products of fewer bits
    given, run = [jax.dlpack.from_dlpack(x) for x in arrays], jax.jit(forms.JAX[kernel.name](jax))
    return {"jax.jit": lambda: partial(run, *given)}


def versions() -> dict[str, str]:
    """Those of the peers that are installed."""
    found = {}
    for name in ("torch", "jax"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def peers(cupy: Any, kernel: Kernel, arrays: Sequence[Any], without: Sequence[str] = ()) -> dict[str, Run | str]:
    """By name, the callable for the kernel, or the reason why there is none; without those in ``without``."""
    found: dict[str, Run | str] = {}
    for collect in (partial(of_cupy, cupy), of_torch, of_jax):
        try:
            ways = collect(kernel, arrays)
        except Exception as error:  # not installed, without CUDA, or of other CUDA than CuPy
            found[getattr(collect, "__name__", "cupy")] = f"{type(error).__name__}: {error}"[:200]
            continue
        for name, prepare in ways.items():
            if name in without:
                continue
            try:
                run = prepare()
                run()
            except Exception as error:  # cupy.fuse does not take every kernel
                found[name] = f"{type(error).__name__}: {error}"[:200]
            else:
                found[name] = run
    return found


def calls(name: str, rounds: int, array: Any) -> dict[str, Run]:
    """``torch.compile`` on the functions by which ``gpu`` measures host time; none without PyTorch."""
    try:
        torch: Any = importlib.import_module("torch")
        x = torch.from_dlpack(array)
    except Exception:
        return {}

    def one(x: Any) -> Any:
        return torch.clamp_min(x + 1, 0) * 2

    def many(x: Any) -> Any:
        for k in range(rounds):
            x = x - x.sum(dim=k % 2, keepdim=True) / 8
        return x

    function = {"one": one, "many": many}[name]
    ways = {"torch.compile": {}, "torch.compile, reduce-overhead": {"mode": "reduce-overhead"}}
    found = {way: partial(torch.compile(function, **settings), x) for way, settings in ways.items()}
    for run in found.values():
        for _ in range(3):
            run()
    return found


def on_host(x: Any) -> Any:
    """A peer's result as a NumPy array."""
    numpy: Any = importlib.import_module("numpy")
    for name in ("get", "cpu"):
        if hasattr(x, name):
            x = getattr(x, name)()
    return numpy.asarray(x)


__all__ = ["FINISH", "Run", "calls", "of_cupy", "of_jax", "of_torch", "on_host", "peers", "versions"]
