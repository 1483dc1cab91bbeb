"""The kernels as users of the other libraries would write them.

Input: a library, and for the last two the NumPy dtype, whose constants loops by hand need.
Output: ``TORCH``, ``JAX``, ``NUMBA`` and ``NUMEXPR``: by the kernel's name, a function that returns the callable to
compile.
Why: this file imports none of them. A name may be missing: numexpr has no reductions inside an expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

COEFFICIENTS = (0.125, -0.25, 0.5, -0.75, 1.0, -1.25, 1.5, -1.75, 2.0)  # of the polynomial, the highest first


# -- torch and JAX, whose operators have much the same names ----------------------------------------------------------
def _horner(x):
    y = COEFFICIENTS[0]
    for c in COEFFICIENTS[1:]:
        y = y * x + c
    return y


def _stencil(x):
    return 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) - x[1:-1, 1:-1]


def _distances(library: Any) -> Callable[[Any], Any]:
    def distances(p):
        d = p[:, None, :] - p[None, :, :]
        return library.sqrt((d * d).sum(-1))

    return distances


TORCH: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "relu": lambda torch: lambda x: torch.relu(x + 1) * 2,
    "sin_cos": lambda torch: lambda x: torch.sin(x) + torch.cos(x),
    "gelu": lambda torch: lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "chain": lambda torch: lambda x: torch.sqrt(torch.log(torch.exp(x) + 1) + 1),
    "softmax": lambda torch: lambda x: torch.softmax(x, 1),
    "layer_norm": lambda torch: lambda x: torch.nn.functional.layer_norm(x, x.shape[1:], eps=1e-5),
    "variance": lambda torch: lambda x: torch.var(x, dim=0, correction=0),
    "sum_squares": lambda torch: lambda x: (x * x).sum(),
    "layer": lambda torch: lambda x, w, b: torch.relu(x @ w + b),
    "transpose_add": lambda torch: lambda x, y: x.t() + y,
    "stencil": lambda torch: _stencil,
    "pairwise": _distances,
    "polynomial": lambda torch: _horner,
}


def _layer_norm_jax(jax):
    jnp = jax.numpy

    def layer_norm(x):
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        return centred / jnp.sqrt(variance + 1e-5)

    return layer_norm


JAX: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "layer": lambda jax: lambda x, w, b: jax.numpy.maximum(x @ w + b, 0),
    "relu": lambda jax: lambda x: jax.numpy.maximum(x + 1, 0) * 2,
    "sin_cos": lambda jax: lambda x: jax.numpy.sin(x) + jax.numpy.cos(x),
    "gelu": lambda jax: lambda x: jax.nn.gelu(x, approximate=True),
    "chain": lambda jax: lambda x: jax.numpy.sqrt(jax.numpy.log(jax.numpy.exp(x) + 1) + 1),
    "softmax": lambda jax: lambda x: jax.nn.softmax(x, axis=1),
    "layer_norm": _layer_norm_jax,
    "variance": lambda jax: lambda x: x.var(axis=0),
    "sum_squares": lambda jax: lambda x: (x * x).sum(),
    "transpose_add": lambda jax: lambda x, y: x.T + y,
    "stencil": lambda jax: _stencil,
    "pairwise": lambda jax: _distances(jax.numpy),
    "polynomial": lambda jax: _horner,
}


# -- Numba: loops by hand, parallel over rows --------------------------------------------------------------------------
def _each(make: Callable[[Any], Callable[[Any], Any]]) -> Callable[[Any, Any], Callable[..., Any]]:
    """The loops around a function of one element, which ``make`` gives for a dtype's type."""

    def form(numba, dtype):
        prange = numba.prange
        element = numba.njit(inline="always", error_model="numpy")(make(np.dtype(dtype).type))

        def loops(x):
            out = np.empty_like(x)
            for i in prange(x.shape[0]):
                for j in range(x.shape[1]):
                    out[i, j] = element(x[i, j])
            return out

        return loops

    return form


def _relu_element(real):
    zero, one, two = real(0), real(1), real(2)
    return lambda v: max(v + one, zero) * two


def _gelu_element(real):
    half, one, outer, inner = real(0.5), real(1), real(0.7978845608028654), real(0.044715)
    return lambda v: half * v * (one + np.tanh(outer * (v + inner * v * v * v)))


def _chain_element(real):
    one = real(1)
    return lambda v: np.sqrt(np.log(np.exp(v) + one) + one)


def _polynomial_element(real):
    a, b, c, d, e, f, g, h, i = map(real, COEFFICIENTS)
    return lambda v: (((((((a * v + b) * v + c) * v + d) * v + e) * v + f) * v + g) * v + h) * v + i


def _softmax_numba(numba, dtype):
    prange, real = numba.prange, np.dtype(dtype).type

    def softmax(x):
        rows, columns = x.shape
        out = np.empty_like(x)
        for i in prange(rows):
            largest = x[i, 0]
            for j in range(1, columns):
                largest = max(largest, x[i, j])
            total = real(0)
            for j in range(columns):
                e = np.exp(x[i, j] - largest)
                out[i, j] = e
                total += e
            scale = real(1) / total
            for j in range(columns):
                out[i, j] *= scale
        return out

    return softmax


def _layer_norm_numba(numba, dtype):
    prange, real = numba.prange, np.dtype(dtype).type

    def layer_norm(x):
        rows, columns = x.shape
        out = np.empty_like(x)
        for i in prange(rows):
            total = real(0)
            for j in range(columns):
                total += x[i, j]
            mean = total / real(columns)
            squares = real(0)
            for j in range(columns):
                centred = x[i, j] - mean
                squares += centred * centred
            scale = real(1) / np.sqrt(squares / real(columns) + real(1e-5))
            for j in range(columns):
                out[i, j] = (x[i, j] - mean) * scale
        return out

    return layer_norm


def _variance_numba(numba, dtype):
    prange, real = numba.prange, np.dtype(dtype).type
    width = 64  # columns that one thread walks down at once

    def variance(x):
        rows, columns = x.shape
        out = np.empty(columns, x.dtype)
        for strip in prange((columns + width - 1) // width):
            start, stop = strip * width, min(columns, (strip + 1) * width)
            mean, squares = np.zeros(width, x.dtype), np.zeros(width, x.dtype)
            for i in range(rows):
                for j in range(start, stop):
                    mean[j - start] += x[i, j]
            for j in range(stop - start):
                mean[j] /= real(rows)
            for i in range(rows):
                for j in range(start, stop):
                    centred = x[i, j] - mean[j - start]
                    squares[j - start] += centred * centred
            for j in range(start, stop):
                out[j] = squares[j - start] / real(rows)
        return out

    return variance


def _sum_squares_numba(numba, dtype):
    prange, real = numba.prange, np.dtype(dtype).type

    def sum_squares(x):
        total = real(0)
        for i in prange(x.shape[0]):
            row = real(0)
            for j in range(x.shape[1]):
                row += x[i, j] * x[i, j]
            total += row
        return total

    return sum_squares


def _transpose_add_numba(numba, dtype):
    prange = numba.prange
    tile = 32

    def transpose_add(x, y):
        rows, columns = y.shape
        out = np.empty_like(y)
        for block in prange((rows + tile - 1) // tile):
            last = min(rows, (block + 1) * tile)
            for start in range(0, columns, tile):
                stop = min(columns, start + tile)
                for i in range(block * tile, last):
                    for j in range(start, stop):
                        out[i, j] = x[j, i] + y[i, j]
        return out

    return transpose_add


def _stencil_numba(numba, dtype):
    prange, quarter = numba.prange, np.dtype(dtype).type(0.25)

    def stencil(x):
        rows, columns = x.shape
        out = np.empty((rows - 2, columns - 2), x.dtype)
        for i in prange(rows - 2):
            for j in range(columns - 2):
                around = x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]
                out[i, j] = quarter * around - x[i + 1, j + 1]
        return out

    return stencil


def _pairwise_numba(numba, dtype):
    prange, real = numba.prange, np.dtype(dtype).type

    def pairwise(p):
        count, dimensions = p.shape
        out = np.empty((count, count), p.dtype)
        for i in prange(count):
            for j in range(count):
                total = real(0)
                for k in range(dimensions):
                    d = p[i, k] - p[j, k]
                    total += d * d
                out[i, j] = np.sqrt(total)
        return out

    return pairwise


NUMBA: dict[str, Callable[[Any, Any], Callable[..., Any]]] = {
    "relu": _each(_relu_element),
    "sin_cos": _each(lambda real: lambda v: np.sin(v) + np.cos(v)),
    "gelu": _each(_gelu_element),
    "chain": _each(_chain_element),
    "softmax": _softmax_numba,
    "layer_norm": _layer_norm_numba,
    "variance": _variance_numba,
    "sum_squares": _sum_squares_numba,
    "transpose_add": _transpose_add_numba,
    "stencil": _stencil_numba,
    "pairwise": _pairwise_numba,
    "polynomial": _each(_polynomial_element),
}


# -- numexpr: one expression -------------------------------------------------------------------------------------------
def _expression(text: str, **constants: float) -> Callable[[Any, Any], Callable[..., Any]]:
    """An expression of ``x``. Its constants have the dtype: one in the text would be a double, and all with it."""

    def form(numexpr, dtype):
        names = {name: np.dtype(dtype).type(value) for name, value in constants.items()}
        return lambda x: numexpr.evaluate(text, {"x": x, **names}, {})

    return form


def _polynomial_numexpr(numexpr, dtype):
    names = {f"c{i}": np.dtype(dtype).type(c) for i, c in enumerate(COEFFICIENTS)}
    text = "c0"
    for name in list(names)[1:]:
        text = f"({text} * x + {name})"
    return lambda x: numexpr.evaluate(text, {"x": x, **names}, {})


def _stencil_numexpr(numexpr, dtype):
    quarter = np.dtype(dtype).type(0.25)

    def stencil(x):
        parts = {"a": x[:-2, 1:-1], "b": x[2:, 1:-1], "c": x[1:-1, :-2], "d": x[1:-1, 2:], "e": x[1:-1, 1:-1]}
        return numexpr.evaluate("q * (a + b + c + d) - e", {**parts, "q": quarter}, {})

    return stencil


NUMEXPR: dict[str, Callable[[Any, Any], Callable[..., Any]]] = {
    "relu": _expression("maximum(x + 1, zero) * 2", zero=0.0),
    "sin_cos": _expression("sin(x) + cos(x)"),
    "gelu": _expression(
        "half * x * (1 + tanh(outer * (x + inner * x * x * x)))", half=0.5, outer=0.7978845608028654, inner=0.044715
    ),
    "chain": _expression("sqrt(log(exp(x) + 1) + 1)"),
    # It adds one value after the other: its float32 sum of a large array is wrong by percents, of a row it is not.
    "sum_squares": lambda numexpr, dtype: lambda x: numexpr.evaluate("sum(x * x, axis=1)", {"x": x}, {}).sum(),
    "transpose_add": lambda numexpr, dtype: lambda x, y: numexpr.evaluate("x + y", {"x": x.T, "y": y}, {}),
    "stencil": _stencil_numexpr,
    "polynomial": _polynomial_numexpr,
}
