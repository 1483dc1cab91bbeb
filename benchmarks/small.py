"""Small functions that a compiler can hardly make faster, and must not make slower.

Input: nothing.
Output: ``SMALL``: name, function and inputs by number of elements.
Why: among them are the cases in which generated loops lose (strided, transposed, a tiny inner axis, sums over either
axis), and NumPy's own strengths (matrix products, sorting, Fourier transforms). ``benchmarks/against_numpy.py`` times
them from 1 to 10^7 elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Small:
    """One function. ``inputs(n)`` makes arguments of about ``n`` elements in all of the largest one."""

    name: str
    function: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    ulp: float = 8


def _x(n, seed=0):
    return np.random.default_rng(seed).standard_normal(n)


def _one(n):
    return (_x(n),)


def _two(n):
    return _x(n), _x(n, 1)


def _float32(n):
    return (_x(n).astype(np.float32),)


def _integers(n):
    return np.arange(n) % 1000, np.arange(n) % 7 + 1


def _square(n):
    return (_x((isqrt(n), isqrt(n))),)


def _squares(n):
    return _x((isqrt(n), isqrt(n))), _x((isqrt(n), isqrt(n)), 1)


def _thin(n):
    return (_x((max(n // 3, 1), 3)),)


def _flat(n):
    return (_x((3, max(n // 3, 1))),)


def _edges(n):
    return _x(isqrt(n)), _x(isqrt(n), 1)


def _places(n):
    return np.zeros(n), np.random.default_rng(2).permutation(n), _x(n)


def _few_places(n):
    return np.zeros(n), np.arange(0, n, max(n // 16, 1)), np.arange(0.0, n, max(n // 16, 1))


def _written(x, i, v):
    x[i] = v
    return x


def _added_up(x, i, v):
    counts = np.zeros(100)
    np.add.at(counts, i % 100, v)
    return counts


def _softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


_TABLE = (
    Small("add", lambda x, y: x + y, _two),
    Small("relu, float32", lambda x: np.maximum(x, 0), _float32),
    Small("polynomial", lambda x: 3 * x * x + 2 * x + 1, _one),
    Small("exp", lambda x: np.exp(x), _one),
    Small("sin", lambda x: np.sin(x), _one),
    Small("tanh, float32", lambda x: np.tanh(x), _float32),
    Small("power", lambda x: np.abs(x) ** 1.5, _one),
    Small("divide", lambda x, y: x / y, _two),
    Small("where", lambda x, y: np.where(x > 0, x, y), _two),
    Small("clip", lambda x: np.clip(x, -1, 1), _one),
    Small("less", lambda x, y: x < y, _two),
    Small("integers", lambda i, j: i * j + 1, _integers),
    Small("floor divide", lambda i, j: i // j, _integers),
    Small("astype", lambda x: x.astype(np.float32), _one),
    Small("every other", lambda x: x[::2] + 1, _one),
    Small("reversed", lambda x: x[::-1] * 2, _one),
    Small("transposed", lambda m: m.T + m, _square),
    Small("thin rows", lambda m: m * np.array([1.0, 2.0, 3.0]), _thin, 64),
    Small("sum", lambda x: x.sum(), _one, 512),
    Small("sum of float32", lambda x: x.sum(), _float32, 512),
    Small("rows' sums", lambda m: m.sum(axis=1), _square, 512),
    Small("columns' sums", lambda m: m.sum(axis=0), _square, 512),
    Small("thin rows' sums", lambda m: m.sum(axis=1), _thin, 64),
    Small("flat columns' sums", lambda m: m.sum(axis=0), _flat, 64),
    Small("max", lambda x: x.max(), _one),
    Small("argmax", lambda x: x.argmax(), _one),
    Small("any", lambda x: (x > 10).any(), _one),
    Small("std", lambda x: x.std(), _one, 512),
    Small("standardise", lambda x: (x - x.mean()) / (1 + x.std()), _one, 512),
    Small("rows' softmax", _softmax, _square, 64),
    Small("dot", lambda x, y: x @ y, _two, 512),
    Small("places", _written, _places),
    Small("few places", _written, _few_places),
    Small("add.at", _added_up, _places, 512),
    Small("matmul", lambda a, b: a @ b, _squares, 512),
    Small("outer", lambda x, y: np.outer(x, y), _edges),
    Small("cumsum", lambda x: np.cumsum(x), _one),
    Small("diff", lambda x: np.diff(x), _one),
    Small("roll", lambda x: np.roll(x, 1), _one),
    Small("concatenate", lambda x, y: np.concatenate([x, y]), _two),
    Small("norm", lambda x: np.linalg.norm(x), _one, 512),
    Small("sort", lambda x: np.sort(x), _one),
    Small("rfft", lambda x: np.fft.rfft(x), _one),
)
SMALL = {small.name: small for small in _TABLE}
