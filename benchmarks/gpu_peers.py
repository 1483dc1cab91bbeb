"""Who else runs a kernel of ``benchmarks.gpu`` on a GPU: CuPy, eager and fused; PyTorch, eager and compiled; JAX.

Enters: how a kernel is written for an array namespace, and its arrays, CuPy's. Leaves: by name, what runs it on arrays
of the peer's own in the same memory. Peers that are not installed, or find no GPU, are left out, and a peer that cannot
run a kernel says so.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

Make = Callable[[Any], Callable[..., Any]]  # of an array namespace, the kernel
Run = Callable[[], Any]


def of_cupy(cupy: Any, make: Make, arrays: Sequence[Any]) -> dict[str, Callable[[], Run]]:
    """CuPy as it is, and with ``cupy.fuse``."""
    kernel = make(cupy)
    return {"CuPy": lambda: partial(kernel, *arrays), "cupy.fuse": lambda: partial(cupy.fuse()(kernel), *arrays)}


def of_torch(make: Make, arrays: Sequence[Any]) -> dict[str, Callable[[], Run]]:
    """PyTorch, which calls a few functions otherwise."""
    torch: Any = importlib.import_module("torch")
    names = types.SimpleNamespace(
        maximum=lambda x, least: torch.clamp(x, min=least),
        max=lambda x, axis, keepdims=False: torch.amax(x, dim=axis, keepdim=keepdims),
        sum=lambda x, axis=None, keepdims=False: x.sum() if axis is None else x.sum(dim=axis, keepdim=keepdims),
        **{name: getattr(torch, name) for name in ("abs", "exp", "sin", "tanh")},
    )
    given, kernel = [torch.from_dlpack(x) for x in arrays], make(names)
    return {
        "torch": lambda: partial(kernel, *given),
        "torch.compile": lambda: partial(torch.compile(kernel), *given),
        "torch.compile, max-autotune": lambda: partial(
            torch.compile(kernel, mode="max-autotune-no-cudagraphs"), *given
        ),
    }


def of_jax(make: Make, arrays: Sequence[Any]) -> dict[str, Callable[[], Run]]:
    """JAX, whose work is waited for: the GPU's clock does not see the stream on which it runs."""
    jax: Any = importlib.import_module("jax")
    numpy: Any = importlib.import_module("jax.numpy")
    given, kernel = [jax.dlpack.from_dlpack(x) for x in arrays], jax.jit(make(numpy))
    return {"jax.jit": lambda: lambda: kernel(*given).block_until_ready()}


def peers(cupy: Any, make: Make, arrays: Sequence[Any]) -> dict[str, Run | str]:
    """By name, what runs the kernel, or why nothing does."""
    found: dict[str, Run | str] = {}
    for collect in (partial(of_cupy, cupy), of_torch, of_jax):
        try:
            ways = collect(make, arrays)
        except Exception as error:  # not installed, without CUDA, or of other CUDA than CuPy
            found[getattr(collect, "__name__", "cupy")] = f"{type(error).__name__}: {error}"[:200]
            continue
        for name, prepare in ways.items():
            try:
                run = prepare()
                run()
            except Exception as error:  # cupy.fuse does not take every kernel
                found[name] = f"{type(error).__name__}: {error}"[:200]
            else:
                found[name] = run
    return found


def on_host(x: Any) -> Any:
    """A peer's result as a NumPy array."""
    numpy: Any = importlib.import_module("numpy")
    for name in ("get", "cpu"):
        if hasattr(x, name):
            x = getattr(x, name)()
    return numpy.asarray(x)


__all__ = ["Make", "Run", "of_cupy", "of_jax", "of_torch", "on_host", "peers"]
