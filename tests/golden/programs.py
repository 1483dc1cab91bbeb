"""Small programs, each of which takes another path through the compiler.

Input: nothing.
Output: ``PROGRAMS``: functions by name, with the calls that compile them and the kinds of text to keep.
Why: a golden text is readable only if its program shows one feature.
"""

from __future__ import annotations

import dataclasses
import inspect
import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tcompile

Case = Callable[[], tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Program:
    """A function, and the arguments of the calls that compile it.

    ``ir`` and ``triton`` say which sources are kept. ``bytecode``: the text depends on the version of CPython.
    """

    function: Callable[..., Any]
    cases: tuple[Case, ...]
    ir: bool
    triton: bool
    bytecode: bool


PROGRAMS: dict[str, Program] = {}


def program(
    *cases: Case, ir: bool = False, triton: bool = False, bytecode: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds a function to ``PROGRAMS``, compiled from its own lines alone: no text tells where it stands."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        lines = inspect.getsource(function).splitlines(keepends=True)
        while not lines[0].startswith("def "):
            del lines[0]
        name, found = function.__name__, dict[str, Any]()
        linecache.cache[f"{name}.py"] = (0, None, lines, f"{name}.py")
        exec(compile("".join(lines), f"{name}.py", "exec", flags=0, dont_inherit=True), globals(), found)
        PROGRAMS[name] = Program(found[name], cases, ir, triton, bytecode)
        return function

    return add


def numbers(*shape: int, dtype: str = "float64") -> Any:
    """An array with elements that differ."""
    return (np.arange(1, math.prod(shape) + 1).reshape(shape) / 4).astype(dtype)


# Pointwise operations, dtypes


@program(lambda: (numbers(64, 48, dtype="float32"), numbers(48, dtype="float32")), ir=True, triton=True)
def elementwise(x, y):
    return np.maximum(x + y, 0) * 2 - np.sqrt(x)


@program(lambda: (numbers(100),), ir=True)
def elementary_functions(x):
    return np.exp(-x) + np.sin(x) * np.tanh(x)


@program(lambda: (numbers(100), numbers(100) - 3), triton=True)
def where_and_clip(x, y):
    return np.where((x > y) & (y != 0), np.clip(x, -1, 1), np.select([x > 2, y > 2], [x, y], 0.5))


@program(lambda: (numbers(50, dtype="int8"), numbers(50, dtype="uint8"), numbers(50, dtype="float32")))
def mixed_dtypes(a, b, c):
    return a + b, a * 2, (a // 3).astype(np.float32) + c, a > 3, ~(b > 4) | (a == 1)


@program(lambda: (numbers(40) + 1j, numbers(40)))
def complex_numbers(z, x):
    return np.conj(z) * x + z * z, np.abs(z), z.real - z.imag


@program(lambda: (numbers(32, dtype="int64"), 3))
def integer_division(x, n):
    return x // n, x % n, x << 2, x / n


# Reductions


@program(lambda: (numbers(40, 100, dtype="float32"),), ir=True, triton=True)
def row_reductions(x):
    return x.sum(axis=1), (x * 2).max(axis=1)


@program(lambda: (numbers(60, 80),), ir=True)
def column_reductions(x):
    return x.sum(axis=0), x.argmin(axis=0)


@program(lambda: (numbers(300, 40),), ir=True, triton=True)
def full_reduction(x):
    return (x * x).sum(), (x > 3).any()


@program(lambda: (numbers(100, 3),), ir=True, triton=True)
def small_rows(points):
    return np.sqrt((points**2).sum(axis=1)), points.mean(axis=1)


@program(lambda: (numbers(50, 60),), triton=True)
def variance(x):
    return x.var(axis=1), x.std()


@program(lambda: (numbers(40, 50, dtype="float32"),), ir=True, triton=True)
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@program(lambda: (numbers(40, 50, dtype="float32"), numbers(50, dtype="float32"), numbers(50, dtype="float32")))
def layer_norm(x, scale, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5) * scale + shift


# Views, writes, places


@program(lambda: (numbers(60, 70), numbers(70, 60)), ir=True)
def transposed(x, y):
    return x.T + y


@program(lambda: (numbers(6, 8),))
def views(x):
    return x[::2, ::-1].reshape(-1)[3:], np.swapaxes(x, 0, 1)[1:], x[None, :, 0]


@program(lambda: (numbers(66, 66),), ir=True)
def stencil(u):
    u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
    return u


@program(lambda: (numbers(12, 5), numbers(5)))
def writes_through_views(x, row):
    part = x[2:8]
    part += row
    part[0] = 0
    x.T[1] *= 2
    return part.sum()


@program(lambda: (numbers(30), np.array([3, 1, 4, 1, 5]), numbers(5)), ir=True, triton=True)
def gather_and_scatter(x, places, values):
    x[places] = values
    np.add.at(x, places, 1)
    return x[places] * 2, x.take(places)


@program(lambda: (numbers(30),))
def masks(x):
    x[x > 5] = 0
    return x[x < 2], np.count_nonzero(x)


@program(lambda: (numbers(20, 6),))
def sorts(x):
    return np.sort(x, axis=1), np.argsort(x, axis=0), np.median(x, axis=1)


@program(lambda: (numbers(20, 30),), ir=True, triton=True)
def cumulative(x):
    return np.cumsum(x, axis=1) * 2, np.maximum.accumulate(x, axis=0)


@program(lambda: (numbers(10), numbers(10)))
def joined(x, y):
    return np.concatenate([x * 2, y]), np.stack([x, y], axis=1) + 1, np.pad(x, 2)


@program(lambda: (numbers(9, 9),))
def rolled(x):
    return np.roll(x, 1, axis=0) + np.roll(x, -1, axis=1) - 2 * x


# Products, the library


@program(lambda: (numbers(20, 30), numbers(30, 10), numbers(10)))
def products(a, b, bias):
    return np.maximum((a * 2) @ b + bias, 0), np.einsum("ij,jk->i", a, b)


@program(lambda: (numbers(8, 8) + 10 * np.eye(8), numbers(8)))
def library_calls(a, b):
    return np.linalg.solve(a, b * 2) + 1, np.fft.fft(b).real


@program(lambda: (numbers(40), numbers(40)))
def opaque_calls(x, y):
    return np.interp(x * 2, y, x) + 1, np.searchsorted(x, y) * 2


@program(lambda: (numbers(40),))
def shapes_of_values(x):
    return np.unique(x * 2) + 1


@program(lambda: (np.random.default_rng(1), 50))
def draws(rng, n):
    return rng.normal(size=n) * 2, rng.integers(0, 6, n), rng.random(n) < 0.5


@program(lambda: (5, 7))
def creation(n, m):
    return np.zeros((n, m)), np.arange(n) * 2, np.linspace(0, 1, m), np.eye(n) + 1


# Sizes and guards


@program(lambda: (numbers(5, 7),), lambda: (numbers(6, 7),), triton=True)
def symbolic_sizes(x):
    return (x / x.shape[0]).sum(axis=0) + x[: len(x) // 2].max()


class Model:
    """An object whose attributes are read and written."""

    def __init__(self):
        self.weights, self.rate, self.steps = numbers(4), 0.5, 0

    def step(self, gradient):
        """One step of descent."""
        self.weights = self.weights - self.rate * gradient
        self.steps += 1


@program(lambda: (Model(), {"gradient": numbers(4), "scale": 2}))
def objects(model, settings):
    model.step(settings["gradient"] * settings["scale"])
    return [model.weights, model.steps]


def scaled(x, by=2.0, *, offset=0.0):
    """What other programs call."""
    return x * by + offset


@program(lambda: (numbers(9),))
def calls(x):
    total = scaled(x, 1)
    for k in range(2, 4):
        total = total + scaled(x, by=k)
    return scaled(total, offset=1), (lambda y: y - 1)(x)


@program(lambda: (numbers(9),), bytecode=True)
def comprehension(x):
    return sum([scaled(x, k) for k in range(1, 4)]), {k: x * k for k in (1, 2)}


@program(lambda: ({"b": numbers(4), "a": [numbers(3), 2]}, ("mean", None)))
def containers(tree, options):
    kind, axis = options
    first, *rest = sorted(tree)
    found = {}
    for name in (first, "long"):
        found[name] = tree["b"] + len(name)
    if kind == "mean" and axis is None:
        found["result"] = tree["a"][0] * tree["a"][1]
    return found, (kind, rest)


@program(lambda: (numbers(6), -1), lambda: (numbers(6), 2))
def exceptions(x, n):
    try:
        if n < 0:
            raise ValueError(n)
        y = x * n
    except ValueError as error:
        y = x - error.args[0]
    return y + 1


def partial_sums(x, n):
    """What ``generators`` iterates over."""
    for k in range(1, n):
        yield x[:k].sum()


@program(lambda: (numbers(6),))
def generators(x):
    total = 0
    for k, part in enumerate(partial_sums(x, 4)):
        total = total + k * part
    return total


@program(lambda: (3.0, 2, numbers(4)), lambda: (4.0, 3, numbers(4)))
def python_numbers(a, n, x):
    return math.sqrt(a) * x**n, n * n + 1, max(a, 2) if n > 1 else a


# Loops


@program(lambda: (numbers(50), 30))
def loop_in_place(u, n):
    for i in range(n):
        u[1:-1] += 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]) * i
    return u


@program(lambda: (numbers(8), 3))
def unrolled_loop(x, n):
    for i in range(n):
        x = np.sqrt(x + i)
    return x


@program(lambda: (numbers(40, 40), numbers(40, 39), 100))
def two_fields(h, v, n):
    for _ in range(n):
        v[:, :] += 0.5 * (h[:, 1:] - h[:, :-1])
        h[:, 1:-1] += 0.5 * (v[:, 1:] - v[:, :-1])
    return h, v


@program(lambda: (numbers(40, 40), 100))
def swapped_arrays(u, n):
    new = u.copy()
    for _ in range(n):
        new[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
        u, new = new, u
    return u


@program(lambda: (numbers(12, 12),))
def nested_loops(a):
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k:] = a[i, k:] - a[k, k:] * (a[i, k] / a[k, k])
    return a


@program(lambda: (numbers(20), 1e-6, 200))
def loop_with_break(x, tolerance, limit):
    for _ in range(limit):
        new = (x + 2 / x) / 2
        if np.abs(new - x).max() < tolerance:
            break
        x = new
    return x


@program(lambda: (numbers(20), 100))
def while_loop(x, n):
    k, error = 0, 1.0
    while k < n and error > 1e-9:
        new = np.cos(x)
        error = np.abs(new - x).max()
        x, k = new, k + 1
    return x, k


@program(lambda: (numbers(30), 60))
def branches(x, n):
    for i in range(n):
        if x.sum() > 10:
            x = x / 2
        elif i % 3 == 0:
            x = x + 1
    return x


@program(lambda: (numbers(40),))
def loop_accumulates(x):
    total, history = 0.0, []
    for i in range(40):
        x = x * 0.9
        total += x[i]
        history.append(x.sum())
    return total, history


# Loops over elements


@program(lambda: (numbers(200), numbers(200)), ir=True)
def scalar_loop(x, y):
    total = 0.0
    for i in range(len(x)):
        if x[i] > y[i]:
            total += x[i] * y[i]
        else:
            y[i] = math.exp(-x[i])
    return total


@program(lambda: (numbers(300),), ir=True)
def scalar_loop_vectors(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = math.sqrt(x[i]) * 2 + 1
    return out


@program(lambda: (200,), bytecode=True)
def scalar_loop_appends(n):
    found = []
    for k in range(2, n):
        prime = True
        for d in range(2, k):
            if d * d > k:
                break
            if k % d == 0:
                prime = False
                break
        if prime:
            found.append(k)
    return found


@program(lambda: (np.random.default_rng(3), 100))
def scalar_loop_draws(rng, n):
    place = 0.0
    for _ in range(n):
        if rng.random() < 0.5:
            place += rng.normal()
        else:
            place -= 1
    return place


@program(lambda: (0.1, 0.2, 500))
def while_loop_of_numbers(a, b, n):
    steps = 0
    while steps < n and a * a + b * b < 4:
        a, b = a * a - b * b + 0.3, 2 * a * b + 0.1
        steps += 1
    return steps


# Derivatives


@program(lambda: (numbers(50),))
def gradient_of_a_scalar_recurrence(x):
    def loss(x):
        y = x.copy()
        for i in range(1, 50):
            y[i] = np.tanh(y[i - 1]) * x[i]
        return (y * y).sum()

    return tcompile.grad(loss)(x)


@program(lambda: (numbers(4, 4), numbers(4)))
def gradient_of_a_recurrence(w, x):
    def loss(w):
        h = x
        for _ in range(500):
            h = np.tanh(w @ h + x)
        return h.sum()

    return tcompile.grad(loss)(w)


# Graph breaks


@program(lambda: (numbers(4), 2))
def graph_breaks(x, n):
    for i in range(n):
        x = np.sqrt(x) + i
        print("step", i)
    return x * 2


@program(lambda: (numbers(6),), bytecode=True)
def break_in_with(x):
    with np.errstate(invalid="ignore"):
        y = np.sqrt(x - 1)
    try:
        z = y.tolist()
        return np.array(z) + x
    finally:
        print(len(x))


@program(lambda: (numbers(8),), bytecode=True)
def data_dependent(x):
    if x.sum() > 3:
        return x * 2
    return x + 1
