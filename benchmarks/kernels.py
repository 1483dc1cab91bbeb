"""The kernels of the comparison, in plain NumPy.

Input: nothing.
Output: ``KERNELS``.
Why: the NumPy function defines the result, and is also what tcompile compiles, unchanged. ``forms.py`` has the forms
for users of the other libraries. ``inputs`` makes the arguments for a shape and a dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

FINE = 2.0**-29  # how much finer float64 is than float32: tolerances shrink with it


@dataclass(frozen=True, slots=True)
class Kernel:
    """One computation.

    A float32 result passes when ``|result - numpy| <= atol + rtol * |numpy|`` everywhere, a float64 one when it is
    within ``FINE`` of that.
    """

    name: str
    title: str
    numpy: Callable[..., Any]
    inputs: Callable[[tuple[int, int], Any], tuple[np.ndarray, ...]]
    rtol: float
    atol: float
    tolerance: str  # why these tolerances

    def limits(self, dtype: Any) -> tuple[float, float]:
        """The tolerances for results of ``dtype``: relative and absolute."""
        factor = FINE if np.dtype(dtype).itemsize == 8 else 1.0
        return self.rtol * factor, self.atol * factor


# -- inputs ----------------------------------------------------------------------------------------------------------
def one(shape, dtype):
    return (np.random.default_rng(0).standard_normal(shape, dtype=dtype),)


def with_transposed(shape, dtype):
    generator = np.random.default_rng(0)
    return generator.standard_normal(shape, dtype=dtype), generator.standard_normal(shape[::-1], dtype=dtype)


def points(shape, dtype):
    """As many points as rows: in three dimensions where there are many, else as they stand."""
    return (np.random.default_rng(0).standard_normal((shape[0], min(shape[1], 64 if shape[0] < 256 else 3)), dtype),)


def layer_inputs(shape, dtype):
    generator = np.random.default_rng(0)
    rows, columns = shape
    shapes = (rows, columns), (columns, columns), (columns,)
    return tuple(generator.standard_normal(one, dtype="float32").astype(dtype) for one in shapes)


# -- the kernels -----------------------------------------------------------------------------------------------------
def relu(x):
    return np.maximum(x + 1, 0) * 2


def sin_cos(x):
    return np.sin(x) + np.cos(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def chain(x):
    return np.sqrt(np.log(np.exp(x) + 1) + 1)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x):
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5)


def variance(x):
    return x.var(axis=0)


def sum_squares(x):
    return (x * x).sum()


def transpose_add(x, y):
    return x.T + y


def stencil(x):
    return 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) - x[1:-1, 1:-1]


def pairwise(p):
    d = p[:, None, :] - p[None, :, :]
    return np.sqrt((d * d).sum(axis=-1))


def polynomial(x):
    y = 0.125
    for c in (-0.25, 0.5, -0.75, 1.0, -1.25, 1.5, -1.75, 2.0):
        y = y * x + c
    return y


def layer(x, w, b):
    return np.maximum(x @ w + b, 0)


# For GPUs alone: on the CPU all libraries call a BLAS.
LAYER = Kernel("layer", "np.maximum(x @ w + b, 0)", layer, layer_inputs, 2e-4, 2e-3, "order of summation")
KERNELS: dict[str, Kernel] = {
    k.name: k
    for k in (
        Kernel(
            "relu", "np.maximum(x + 1, 0) * 2", relu, one, 0.0, 0.0,
            "each operation is exact or correctly rounded: equal to the last bit",
        ),
        Kernel(
            "sin_cos", "np.sin(x) + np.cos(x)", sin_cos, one, 1e-5, 1e-6,
            "the sum cancels near -pi/4: absolute there",
        ),
        Kernel("gelu", "gelu, tanh form", gelu, one, 1e-5, 1e-6, "1 + tanh cancels for negative x: absolute there"),
        Kernel(
            "chain", "sqrt(log(exp(x) + 1) + 1)", chain, one, 1e-5, 0.0, "exp and log to a few units in the last place",
        ),
        Kernel(
            "softmax", "row softmax", softmax, one, 2e-5, 1e-9,
            "order of summation, and exp to a few units in the last place",
        ),
        Kernel(
            "layer_norm", "layer norm, no affine", layer_norm, one, 2e-5, 5e-4,
            "order of summation; in rows of three that are close together the rounding of the mean shows",
        ),
        Kernel("variance", "x.var(axis=0)", variance, one, 2e-5, 0.0, "order of summation"),
        Kernel("sum_squares", "(x * x).sum()", sum_squares, one, 2e-5, 0.0, "order of summation"),
        Kernel("transpose_add", "x.T + y", transpose_add, with_transposed, 0.0, 0.0, "one correctly rounded operation"),
        Kernel(
            "stencil", "5-point stencil", stencil, one, 1e-5, 1e-6,
            "order of the additions; the difference cancels: absolute there",
        ),
        Kernel(
            "pairwise", "pairwise distances", pairwise, points, 2e-5, 1e-6, "order of summation",
        ),
        Kernel(
            "polynomial", "polynomial of degree 8", polynomial, one, 1e-5, 1e-5,
            "some libraries fuse multiplications and additions; the terms cancel: absolute there",
        ),
    )
}  # fmt: skip
