"""Gradients of other libraries, for ``benchmarks.gradients``.

Input: a function's form for a library (from ``numpy``'s or a namesake's functions to the function), and its arguments.
Output: a call that computes the gradient; None where the library is missing.
Why: the libraries differ in how a gradient is asked for, in their arrays, and in some names of functions.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

Form: TypeAlias = Callable[[Any], Callable[..., Any]]
Call: TypeAlias = Callable[[], Any]


def _library(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def jax() -> Any:
    """JAX with float64 and one thread; None where it is missing."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    found = _library("jax")
    if found is not None:
        found.config.update("jax_enable_x64", True)
    return found


def versions() -> dict[str, str]:
    """The versions of the libraries that are there."""
    names = ("jax", "torch", "autograd")
    return {name: importlib.metadata.version(name) for name in names if _library(name) is not None}


def jax_gradient(form: Form, arguments: Sequence[Any], argnums: int | tuple[int, ...], static: int | None) -> Call:
    """``jit(grad(f))``; ``static`` is the argument that is a trip count."""
    library = jax()
    gradient = library.jit(library.grad(form(library.numpy), argnums), static_argnums=static)
    given = [library.device_put(a) if isinstance(a, np.ndarray | np.floating) else a for a in arguments]
    return lambda: library.block_until_ready(gradient(*given))


def autograd_gradient(form: Form, arguments: Sequence[Any], argnums: int | tuple[int, ...]) -> Call | None:
    """``autograd.grad(f)``."""
    library = _library("autograd")
    if library is None:
        return None
    gradient = library.grad(form(importlib.import_module("autograd.numpy")), argnums)
    return lambda: gradient(*arguments)


class _TorchNumpy:
    """PyTorch's functions by NumPy's names and parameters, where they differ."""

    float32 = staticmethod(float)

    def __init__(self, torch: ModuleType) -> None:
        self.torch = torch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.torch, name)

    def maximum(self, x: Any, least: float) -> Any:
        return self.torch.clamp(x, min=least)

    def max(self, x: Any, axis: int, keepdims: bool) -> Any:
        return self.torch.amax(x, axis, keepdims)

    def diagonal(self, x: Any, axis1: int, axis2: int) -> Any:
        return self.torch.diagonal(x, 0, axis1, axis2)

    def eye(self, count: int) -> Any:
        return self.torch.eye(count, dtype=self.torch.float64)

    def zeros(self, shape: Any) -> Any:
        return self.torch.zeros(shape, dtype=self.torch.float64)

    def pad(self, x: Any, widths: Any, mode: str) -> Any:
        flat = [width for pair in reversed(widths) for width in pair]
        return self.torch.nn.functional.pad(x, flat, mode)


def torch_gradient(
    form: Form, arguments: Sequence[Any], argnums: int | tuple[int, ...], compiled: bool = False
) -> Call | None:
    """``torch.autograd.grad`` of the eager function, or of ``torch.compile``'s; one thread."""
    torch = _library("torch")
    if torch is None:
        return None
    torch.set_num_threads(1)
    function = form(_TorchNumpy(torch))
    function = torch.compile(function) if compiled else function
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    given = [torch.tensor(a) if isinstance(a, np.ndarray | np.floating) else a for a in arguments]
    for number in numbers:
        given[number].requires_grad_()
    wanted = [given[number] for number in numbers]

    def call() -> Any:
        found = torch.autograd.grad(function(*given), wanted)
        return found if isinstance(argnums, tuple) else found[0]

    return call


__all__ = ["autograd_gradient", "jax", "jax_gradient", "torch_gradient", "versions"]
