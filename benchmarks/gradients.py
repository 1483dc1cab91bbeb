"""Gradients beside other libraries: ``python -m benchmarks.gradients [--seconds 3] [--only heat,mlp] [--out FOLDER]``.

Input: scalar functions of arrays as users of NumPy write them, with loops and writes in place.
Output: a table, and with ``--out`` JSON, a page and a picture: medians of calls in turn on the same data, and the time
of the first call, which compiles.
Why: a gradient that takes much longer than a peer's would not be worth having, and the figures show where to work next.

Gradients are compared before anything is timed. JAX gets ``jit(grad(f))`` of the same text where that is possible. It
has no writes in place, so the time steps are written for it with ``lax.scan`` and ``pad``. PyTorch and autograd get
loops of Python's. Without a library its columns are empty. All have one thread.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import random
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tcompile
from benchmarks import against_report, gradient_peers
from benchmarks.gradients_by_hand import BY_HAND
from benchmarks.report import COLOURS, figure

Data = dict[str, Any]
FEWEST = 9  # calls of each
TOLERANCE = 1e-9  # of the largest element of a gradient
SLOW = 100  # milliseconds: slower ones are called ``FEWEST`` times
PEERS = ("jax", "torch", "inductor", "autograd")
# In the picture: names, and whose colours.
SHOWN = {
    "hand_compiled": ("by hand, compiled", "copy"), "jax": ("JAX", "jax"), "torch": ("PyTorch", "torch"),
    "inductor": ("torch.compile", "numba"), "autograd": ("autograd", "numexpr"),
}  # fmt: skip
HEADS = (
    "function", "NumPy ms", "gradient ms", "quartiles", "by hand", "by hand, compiled", "JAX", "torch", "torch.compile",
    "autograd", "best peer / tcompile", "tcompile / by hand, compiled", "first call ms", "JAX's",
)  # fmt: skip


# -- the functions: each takes the library, and returns what users would write with it --------------------------------
def logistic(np: Any) -> Callable[..., Any]:
    return lambda w, x, y: np.mean(np.log1p(np.exp(-(2 * y - 1) * (x @ w))))


def mlp(np: Any) -> Callable[..., Any]:
    def loss(w1, w2, x, y):
        out = np.maximum(x @ w1, 0) @ w2
        top = np.max(out, axis=1, keepdims=True)
        log_p = out - top - np.log(np.sum(np.exp(out - top), axis=1, keepdims=True))
        return -np.mean(np.sum(log_p * y, axis=1))

    return loss


def pairwise(np: Any) -> Callable[..., Any]:
    return lambda p: np.sum(np.exp(-np.sum((p[:, None] - p[None]) ** 2, axis=2)))


def rosenbrock(np: Any) -> Callable[..., Any]:
    return lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def option_price(np: Any) -> Callable[..., Any]:
    def price(spot, strike, rate, volatility):
        d1 = (np.log(spot / strike) + rate + volatility * volatility / 2) / volatility
        d2 = d1 - volatility

        def normal(z):
            return 0.5 * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3)))

        return np.sum(spot * normal(d1) - strike * np.exp(-rate) * normal(d2))

    return price


def heat(np: Any) -> Callable[..., Any]:
    def energy(start, steps):
        u = start.copy()
        for _ in range(steps):
            u[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        return np.sum(u * u)

    return energy


def fisher(np: Any) -> Callable[..., Any]:
    def energy(start, steps):
        u = start.copy()
        for _ in range(steps):
            c = u[1:-1, 1:-1]
            diffused = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * c
            u[1:-1, 1:-1] = c + 0.1 * diffused + 0.01 * c * (1 - c)
        return np.sum(u * u)

    return energy


def _scanned(grown: Callable[[Any], Any]) -> Callable[[Any], Callable[..., Any]]:
    """The time steps of ``heat`` for JAX, with a term that depends on an element alone."""

    def form(np: Any) -> Callable[..., Any]:
        scan = importlib.import_module("jax").lax.scan

        def step(u, _):
            c = u[1:-1, 1:-1]
            diffused = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * c
            return u + np.pad(0.1 * diffused + grown(c), 1), None

        return lambda start, steps: np.sum(scan(step, start, None, length=steps)[0] ** 2)

    return form


def mixture(np: Any) -> Callable[..., Any]:
    """The log-likelihood of points under Gaussians, by triangular factors whose diagonals are logarithms."""

    def loss(logits, means, factors, x):
        scales = np.exp(np.diagonal(factors, axis1=1, axis2=2))
        lower = np.tril(factors, -1) + np.eye(x.shape[1]) * scales[:, None, :]
        z = np.einsum("kij,nkj->nki", lower, x[:, None, :] - means)
        each = logits + np.sum(np.log(scales), axis=1) - 0.5 * np.sum(z * z, axis=2)
        top = np.max(each, axis=1, keepdims=True)
        return np.sum(np.log(np.sum(np.exp(each - top), axis=1)) + top[:, 0]) - len(x) * np.log(np.sum(np.exp(logits)))

    return loss


def attention(np: Any) -> Callable[..., Any]:
    def loss(q, k, v, w):
        scores = q @ np.swapaxes(k, 1, 2) * np.float32(0.125)
        weights = np.exp(scores - np.max(scores, axis=2, keepdims=True))
        return np.sum((weights / np.sum(weights, axis=2, keepdims=True)) @ v * w)

    return loss


def _stepped(grown: Callable[[Any], Any]) -> Callable[[Any], Callable[..., Any]]:
    """The same for libraries without writes in place whose loops are Python's."""

    def form(np: Any) -> Callable[..., Any]:
        def energy(u, steps):
            for _ in range(steps):
                c = u[1:-1, 1:-1]
                diffused = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * c
                u = u + np.pad(0.1 * diffused + grown(c), ((1, 1), (1, 1)), "constant")
            return np.sum(u * u)

        return energy

    return form


def rnn(np: Any) -> Callable[..., Any]:
    def loss(u, w, b, x):
        h = np.zeros((x.shape[1], w.shape[0]))
        for t in range(x.shape[0]):
            h = np.tanh(x[t] @ u + h @ w + b)
        return np.sum(h * h)

    return loss


def _scanned_rnn(np: Any) -> Callable[..., Any]:
    scan = importlib.import_module("jax").lax.scan

    def loss(u, w, b, x):
        h, _ = scan(lambda h, x: (np.tanh(x @ u + h @ w + b), None), np.zeros((x.shape[1], w.shape[0])), x)
        return np.sum(h * h)

    return loss


def garch(np: Any) -> Callable[..., Any]:
    def loss(p, e):
        h = np.empty(len(e))
        h[0] = 1.0
        for t in range(1, len(e)):
            h[t] = p[0] + p[1] * e[t - 1] ** 2 + p[2] * h[t - 1]
        return np.sum(np.log(h) + e * e / h)

    return loss


def _scanned_garch(np: Any) -> Callable[..., Any]:
    scan = importlib.import_module("jax").lax.scan

    def loss(p, e):
        def step(h, e):
            new = p[0] + p[1] * e**2 + p[2] * h
            return new, new

        _, rest = scan(step, 1.0, e[:-1])
        h = np.concatenate([np.ones(1), rest])
        return np.sum(np.log(h) + e * e / h)

    return loss


def _listed_garch(np: Any) -> Callable[..., Any]:
    def loss(p, e):
        found = [p[0] * 0 + 1.0]
        for t in range(1, len(e)):
            found.append(p[0] + p[1] * e[t - 1] ** 2 + p[2] * found[-1])
        h = np.stack(found)
        return np.sum(np.log(h) + e * e / h)

    return loss


@dataclass(frozen=True, slots=True)
class Case:
    """A function, its arguments for a number that is about its cost, and the arguments to differentiate.

    ``for_jax`` and ``stepped`` are the function without writes in place, for JAX and for other libraries.
    """

    form: Callable[[Any], Callable[..., Any]]
    given: Callable[[np.random.Generator, int], tuple[Any, ...]]
    size: int
    tiny: int
    argnums: int | tuple[int, ...] = 0
    for_jax: Callable[[Any], Callable[..., Any]] | None = None
    stepped: Callable[[Any], Callable[..., Any]] | None = None
    static: int | None = None  # the argument that is a trip count

    @property
    def name(self) -> str:
        return self.form.__name__


def _classes(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    weights = (r.standard_normal((784, 256)) * 0.05, r.standard_normal((256, 10)) * 0.05)
    return (*weights, r.standard_normal((n, 784)), np.eye(10)[r.integers(0, 10, n)])


def _numbers(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (r.standard_normal(100) * 0.1, r.standard_normal((n, 100)), (r.random(n) > 0.5) * 1.0)


def _prices(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (r.random(n) + 0.5, np.float64(1.0), np.float64(0.05), np.float64(0.2))


def _points(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    factors = 0.1 * r.standard_normal((25, 10, 10))
    return (r.standard_normal(25), r.standard_normal((25, 10)), factors, r.standard_normal((n, 10)))


def _heads(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return tuple(r.standard_normal((8, n, 64), dtype=np.float32) for _ in range(4))


def _sequences(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    u, w = 0.05 * r.standard_normal((2, 256, 256))
    return (u, w, 0.1 * r.standard_normal(256), r.standard_normal((n, 16, 256)))


CASES = (
    Case(logistic, _numbers, 10_000, 10),
    Case(mlp, _classes, 128, 4, argnums=(0, 1)),
    Case(pairwise, lambda r, n: (r.standard_normal((n, 10)),), 500, 9),
    Case(rosenbrock, lambda r, n: (r.standard_normal(n),), 100_000, 10),
    Case(option_price, _prices, 100_000, 10, argnums=(0, 1, 2, 3)),
    Case(heat, lambda r, n: (r.random((n, n)), 100), 256, 8, 0, _scanned(lambda c: 0), _stepped(lambda c: 0), 1),
    Case(
        fisher,
        lambda r, n: (r.random((n, n)), 100),
        256,
        8,
        0,
        _scanned(lambda c: 0.01 * c * (1 - c)),
        _stepped(lambda c: 0.01 * c * (1 - c)),
        1,
    ),
    Case(mixture, _points, 1000, 9, argnums=(0, 1, 2)),
    Case(attention, _heads, 256, 8, argnums=(0, 1, 2)),
    Case(rnn, _sequences, 50, 4, argnums=(0, 1, 2), for_jax=_scanned_rnn),
    Case(
        garch,
        lambda r, n: (np.array([0.1, 0.2, 0.5]), r.standard_normal(n)),
        2000,
        9,
        for_jax=_scanned_garch,
        stepped=_listed_garch,
    ),
)


# -- measuring -------------------------------------------------------------------------------------------------------
def _clock(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return (time.perf_counter() - start) * 1e3, result


def _difference(ours: Any, theirs: Any) -> float:
    """The largest difference of two gradients, relative to the largest element."""
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    return max(float(np.abs(a - np.asarray(b)).max() / (np.abs(b).max() or 1)) for a, b in pairs)


def _calls(case: Case, arguments: Sequence[Any], inductor: bool) -> dict[str, Callable[[], Any]]:
    """Who computes the gradient, and how. ``numpy`` computes the function alone."""
    function, numbers = case.form(np), case.argnums
    gradient, by_hand = tcompile.grad(function, numbers), BY_HAND[case.name]
    compiled = tcompile.compile(by_hand)
    calls: dict[str, Callable[[], Any] | None] = {
        "numpy": lambda: function(*arguments), "tcompile": lambda: gradient(*arguments),
        "hand": lambda: by_hand(*arguments), "hand_compiled": lambda: compiled(*arguments),
    }  # fmt: skip
    if gradient_peers.jax() is not None:
        calls["jax"] = gradient_peers.jax_gradient(case.for_jax or case.form, arguments, numbers, case.static)
    calls["autograd"] = gradient_peers.autograd_gradient(case.stepped or case.form, arguments, numbers)
    calls["torch"] = gradient_peers.torch_gradient(case.stepped or case.form, arguments, numbers)
    if inductor and case.for_jax is None:  # it unrolls loops, and compiles them for minutes
        calls["inductor"] = gradient_peers.torch_gradient(case.form, arguments, numbers, compiled=True)
    return {name: call for name, call in calls.items() if call is not None}


def measure(case: Case, size: int, seconds: float, inductor: bool = False) -> Data:
    """The row of one function. Raises AssertionError where gradients differ."""
    row: Data = {"name": case.name, "size": size}
    calls, firsts = _calls(case, case.given(np.random.default_rng(0), size), inductor), dict[str, Any]()
    for name, call in list(calls.items()):
        try:
            firsts[name] = _clock(call)
        except Exception as error:
            if name not in ("autograd", "torch", "inductor"):
                raise
            row[f"{name}_fails"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            del calls[name]
    found = {who: _difference(firsts["tcompile"][1], firsts[who][1]) for who in calls if who in ("hand", *PEERS)}
    row["difference"] = max(found.values())
    assert row["difference"] < (TOLERANCE if case.form is not attention else 1e-4), (case.name, found)
    times: dict[str, list[float]] = {name: [] for name in calls}
    end, order = time.perf_counter() + seconds, list(calls)
    while len(times["tcompile"]) < FEWEST or time.perf_counter() < end:
        random.shuffle(order)
        for name in order:
            if firsts[name][0] < SLOW or len(times[name]) < FEWEST:
                times[name].append(_clock(calls[name])[0])
    for name, each in times.items():
        low, middle, high = statistics.quantiles(each, n=4)
        row[f"{name}_ms"], row[f"{name}_first_ms"] = [middle, low, high], firsts[name][0]
    return row


# -- the report ------------------------------------------------------------------------------------------------------
def best_peer(row: Data) -> float | None:
    """How many times as long as tcompile the fastest other library takes."""
    others = [row[f"{who}_ms"][0] for who in PEERS if f"{who}_ms" in row]
    return min(others) / row["tcompile_ms"][0] if others else None


def cells(row: Data) -> list[str]:
    """A row under ``HEADS``."""
    middle, low, high = row["tcompile_ms"]
    times = [row.get(f"{who}_ms", [None])[0] for who in ("hand", "hand_compiled", *PEERS)]
    return [
        row["name"], figure(row["numpy_ms"][0]), figure(middle), f"{figure(low)} - {figure(high)}", *map(figure, times),
        figure(best_peer(row)), figure(middle / row["hand_compiled_ms"][0]), figure(row["tcompile_first_ms"]),
        figure(row.get("jax_first_ms")),
    ]  # fmt: skip


def markdown(data: Data, picture: str | None) -> str:
    """The whole result as a Markdown page."""
    ratios = {row["name"]: ratio for row in data["rows"] if (ratio := best_peer(row)) is not None}
    fails = [
        f"{who} on {row['name']}: {row[f'{who}_fails']}"
        for row in data["rows"] for who in PEERS if f"{who}_fails" in row
    ]  # fmt: skip
    end = [
        "Times in ms. NumPy: the function without its gradient. By hand: the gradient as its author would write it in "
        "NumPy, and that compiled by tcompile. The first call compiles; each is in a process that has compiled another "
        "function before.",
        f"Slower than the best peer: {', '.join(name for name, ratio in ratios.items() if ratio < 1) or 'none'}.",
    ]
    if ratios:
        end.append(f"Geometric mean of best peer / tcompile: {figure(statistics.geometric_mean(ratios.values()))}.")
    if fails:
        end += ["", "Without a gradient:", "", *(f"- {text}" for text in fails)]
    title = "Gradients: tcompile beside other libraries"
    return against_report.page(title, data, picture, HEADS, map(cells, data["rows"]), end)


def draw(data: Data, path: Path) -> None:
    """A dot for each library: its time, divided by tcompile's. Raises ImportError without matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = data["rows"][::-1]
    style = {"font.family": "DejaVu Sans", "font.size": 9.5, "figure.facecolor": "#fbfbf9", "axes.facecolor": "#fbfbf9"}
    with pyplot.rc_context(style):
        figure_, axis = pyplot.subplots(figsize=(8, 0.42 * max(3, len(rows)) + 1.4))
        axis.axvline(1, color=COLOURS["tcompile"], linewidth=2, zorder=1)
        for who, (name, colour) in SHOWN.items():
            dots = [
                (row[f"{who}_ms"][0] / row["tcompile_ms"][0], y) for y, row in enumerate(rows) if f"{who}_ms" in row
            ]
            if dots:
                axis.scatter(*zip(*dots, strict=True), s=36, color=COLOURS[colour], label=name, zorder=2)
        axis.set_xscale("log")
        axis.set_yticks(range(len(rows)), [row["name"].replace("_", " ") for row in rows])
        axis.set_xlabel("time of the gradient in times of tcompile's, on a logarithmic scale", fontsize=8.5)
        axis.legend(loc="upper right", frameon=False, fontsize=8.5)
        against_report.plain(axis)
        against_report.keep(figure_, axis, against_report.where(data), path)


def main(arguments: list[str] | None = None) -> list[Data]:
    """The command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each function")
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--inductor", action="store_true", help="torch.compile, too, which compiles for minutes")
    parser.add_argument("--tiny", action="store_true", help="small arrays, to see that it works")
    parser.add_argument("--out", type=Path, default=None, help="a folder for JSON, a page and a picture")
    given = parser.parse_args(arguments)
    from benchmarks.harness import load_average
    from benchmarks.run import machine

    load = load_average()
    threads = tcompile.get_num_threads()
    tcompile.set_num_threads(1)
    about = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": "python -m benchmarks.gradients " + shlex.join(arguments),
        "machine": machine(), "threads": 1, "load average before": load,
        "versions": {"numpy": np.__version__, "tcompile": tcompile.__version__} | gradient_peers.versions(),
    }  # fmt: skip
    if load is not None and load > 0.5:
        about["noise"] = f"Other programs were running (load average {load} before the start): expect noise."
    rows = []
    try:
        tcompile.grad(lambda x: np.sum(np.sin(x)))(np.ones(10))  # no row pays for the modules that the first one loads
        for case in CASES:
            if given.only and case.name not in given.only.split(","):
                continue
            row = measure(case, case.tiny if given.tiny else case.size, given.seconds, given.inductor)
            rows.append(row)
            print("  ".join(f"{head} {cell}" for head, cell in zip(HEADS, cells(row), strict=True)), flush=True)
    finally:
        tcompile.set_num_threads(threads)
    data = {"suite": "gradients", "about": about, "rows": rows}
    if given.out is not None:
        print("\n".join(against_report.write(data, given.out, f"{about['date'][:10]}-gradients", draw, markdown)))
    return rows


if __name__ == "__main__":
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # NumPy reads it when it is imported
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.gradients", *sys.argv[1:]])
    main()
