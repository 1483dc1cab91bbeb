"""What is computed: one entry a kernel, with one form for each library.

Leaves: ``KERNELS``. The NumPy function is the meaning and also what tcompile compiles, unchanged. The other forms are
what a user of that library would write: its own softmax where it has one, loops by hand for Numba. Each form is made by
a function that is given the library, so that this file imports none of them.

A form may be missing (None): numexpr has no reductions inside an expression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Make = Callable[[Any], Callable[..., Any]]
"""Given a library's module, the function to compile."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One computation. A result passes when ``|result - numpy| <= atol + rtol * |numpy|`` everywhere."""

    name: str
    title: str
    numpy: Callable[[Any], Any]
    torch: Make
    jax: Make
    numba: Make
    numexpr: Make | None
    rtol: float
    atol: float
    tolerance: str  # why these tolerances


# -- np.maximum(x + 1, 0) * 2 ----------------------------------------------------------------------------------------
def relu(x):
    return np.maximum(x + 1, 0) * 2


def _relu_torch(torch):
    return lambda x: torch.relu(x + 1) * 2


def _relu_jax(jax):
    return lambda x: jax.numpy.maximum(x + 1, 0) * 2


def _relu_numba(numba):
    prange = numba.prange

    def relu(x):
        out = np.empty_like(x)
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = max(x[i, j] + np.float32(1), np.float32(0)) * np.float32(2)
        return out

    return relu


def _relu_numexpr(numexpr):
    zero = np.float32(0)  # a bare 0 would make maximum() a double
    return lambda x: numexpr.evaluate("maximum(x + 1, zero) * 2", {"x": x, "zero": zero}, {})


# -- row softmax -----------------------------------------------------------------------------------------------------
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _softmax_torch(torch):
    return lambda x: torch.softmax(x, 1)


def _softmax_jax(jax):
    return lambda x: jax.nn.softmax(x, axis=1)


def _softmax_numba(numba):
    prange = numba.prange

    def softmax(x):
        rows, columns = x.shape
        out = np.empty_like(x)
        for i in prange(rows):
            largest = x[i, 0]
            for j in range(1, columns):
                largest = max(largest, x[i, j])
            total = np.float32(0)
            for j in range(columns):
                e = np.exp(x[i, j] - largest)
                out[i, j] = e
                total += e
            scale = np.float32(1) / total
            for j in range(columns):
                out[i, j] *= scale
        return out

    return softmax


# -- layer norm, no affine -------------------------------------------------------------------------------------------
def layer_norm(x):
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5)


def _layer_norm_torch(torch):
    return lambda x: torch.nn.functional.layer_norm(x, x.shape[1:], eps=1e-5)


def _layer_norm_jax(jax):
    jnp = jax.numpy

    def layer_norm(x):
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        return centred / jnp.sqrt(variance + 1e-5)

    return layer_norm


def _layer_norm_numba(numba):
    prange = numba.prange

    def layer_norm(x):
        rows, columns = x.shape
        out = np.empty_like(x)
        for i in prange(rows):
            total = np.float32(0)
            for j in range(columns):
                total += x[i, j]
            mean = total / np.float32(columns)
            squares = np.float32(0)
            for j in range(columns):
                centred = x[i, j] - mean
                squares += centred * centred
            scale = np.float32(1) / np.sqrt(squares / np.float32(columns) + np.float32(1e-5))
            for j in range(columns):
                out[i, j] = (x[i, j] - mean) * scale
        return out

    return layer_norm


# -- gelu, the tanh form ---------------------------------------------------------------------------------------------
def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def _gelu_torch(torch):
    return lambda x: torch.nn.functional.gelu(x, approximate="tanh")


def _gelu_jax(jax):
    return lambda x: jax.nn.gelu(x, approximate=True)


def _gelu_numba(numba):
    prange = numba.prange
    half, one = np.float32(0.5), np.float32(1)
    outer, inner = np.float32(0.7978845608028654), np.float32(0.044715)

    def gelu(x):
        out = np.empty_like(x)
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                v = x[i, j]
                out[i, j] = half * v * (one + np.tanh(outer * (v + inner * v * v * v)))
        return out

    return gelu


def _gelu_numexpr(numexpr):
    # A constant in the text would be a double, and with it the whole expression.
    names = {"half": np.float32(0.5), "outer": np.float32(0.7978845608028654), "inner": np.float32(0.044715)}
    text = "half * x * (1 + tanh(outer * (x + inner * x * x * x)))"
    return lambda x: numexpr.evaluate(text, {"x": x, **names}, {})


# -- sin + cos -------------------------------------------------------------------------------------------------------
def sin_cos(x):
    return np.sin(x) + np.cos(x)


def _sin_cos_torch(torch):
    return lambda x: torch.sin(x) + torch.cos(x)


def _sin_cos_jax(jax):
    jnp = jax.numpy
    return lambda x: jnp.sin(x) + jnp.cos(x)


def _sin_cos_numba(numba):
    prange = numba.prange

    def sin_cos(x):
        out = np.empty_like(x)
        for i in prange(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = np.sin(x[i, j]) + np.cos(x[i, j])
        return out

    return sin_cos


def _sin_cos_numexpr(numexpr):
    return lambda x: numexpr.evaluate("sin(x) + cos(x)", {"x": x}, {})


# -- sum of squares --------------------------------------------------------------------------------------------------
def sum_squares(x):
    return (x * x).sum()


def _sum_squares_torch(torch):
    return lambda x: (x * x).sum()


def _sum_squares_jax(jax):
    return lambda x: (x * x).sum()


def _sum_squares_numba(numba):
    prange = numba.prange

    def sum_squares(x):
        total = np.float32(0)
        for i in prange(x.shape[0]):
            row = np.float32(0)
            for j in range(x.shape[1]):
                row += x[i, j] * x[i, j]
            total += row
        return total

    return sum_squares


def _sum_squares_numexpr(numexpr):
    # Adds one value after the other: its float32 sum of a large array is wrong by percents, of a row it is not.
    return lambda x: numexpr.evaluate("sum(x * x, axis=1)", {"x": x}, {}).sum()


KERNELS: dict[str, Kernel] = {
    k.name: k
    for k in (
        Kernel(
            "relu", "np.maximum(x + 1, 0) * 2", relu, _relu_torch, _relu_jax, _relu_numba, _relu_numexpr,
            0.0, 0.0, "each operation is exact or correctly rounded: equal to the last bit",
        ),
        Kernel(
            "softmax", "row softmax", softmax, _softmax_torch, _softmax_jax, _softmax_numba, None,
            2e-5, 1e-9, "order of summation, and exp to a few units in the last place",
        ),
        Kernel(
            "layer_norm", "layer norm, no affine", layer_norm, _layer_norm_torch, _layer_norm_jax, _layer_norm_numba,
            None, 2e-5, 2e-6, "order of summation; near zero the rounding of the mean shows",
        ),
        Kernel(
            "gelu", "gelu, tanh form", gelu, _gelu_torch, _gelu_jax, _gelu_numba, _gelu_numexpr,
            1e-5, 1e-6, "1 + tanh cancels for negative x: absolute there",
        ),
        Kernel(
            "sin_cos", "np.sin(x) + np.cos(x)", sin_cos, _sin_cos_torch, _sin_cos_jax, _sin_cos_numba,
            _sin_cos_numexpr, 1e-5, 1e-6, "the sum cancels near -pi/4: absolute there",
        ),
        Kernel(
            "sum_squares", "(x * x).sum()", sum_squares, _sum_squares_torch, _sum_squares_jax, _sum_squares_numba,
            _sum_squares_numexpr, 2e-5, 0.0, "order of summation",
        ),
    )
}  # fmt: skip
