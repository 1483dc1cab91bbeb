"""The command: ``python -m benchmarks.gpu [--out DIR]``: kernels on a GPU beside CuPy, and beside a copy.

Enters: the command line; needs a GPU, Triton and CuPy. Leaves: a table on the terminal, and JSON with the GPU's name in
a folder. Every result is checked against NumPy before anything is timed. What is timed are the kernels alone, on arrays
that are on the GPU already, by the GPU's own clock: medians of many runs. Copies between host and GPU are not in it.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tcompile
from tcompile.graph import Graph
from tcompile.transforms import run as transformed

HERE = Path(__file__).resolve().parent
N = 4096


def relu(xp: Any) -> Callable[..., Any]:
    """The kernel that the results are known by."""
    return lambda x, y: xp.maximum(x + 1, 0) * 2


def chain(xp: Any) -> Callable[..., Any]:
    """Many cheap operations."""
    return lambda x, y: (x * 2 + y) * (x - y) / (xp.abs(x) + 1) + x * y


def functions(xp: Any) -> Callable[..., Any]:
    """Dear operations."""
    return lambda x, y: xp.exp(-x * x) * xp.sin(y) + xp.tanh(x)


def softmax(xp: Any) -> Callable[..., Any]:
    """Rows that fit into registers."""

    def f(x: Any, y: Any) -> Any:
        e = xp.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return f


def rows(xp: Any) -> Callable[..., Any]:
    """A sum along rows."""
    return lambda x, y: (x * y).sum(axis=1)


def columns(xp: Any) -> Callable[..., Any]:
    """A sum along columns."""
    return lambda x, y: (x * y).sum(axis=0)


def total(xp: Any) -> Callable[..., Any]:
    """A sum of everything."""
    return lambda x, y: (x * y).sum()


def transposed(xp: Any) -> Callable[..., Any]:
    """Loads along both axes."""
    return lambda x, y: x.T + y


KERNELS = {f.__name__: f for f in (relu, chain, functions, softmax, rows, columns, total, transposed)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 1 where a result differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args(arguments)
    from tcompile.backends.triton import compile_graph, cubins, cuda

    cupy = importlib.import_module("cupy")
    device = cuda.current()
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(N, N)).astype(options.dtype) for _ in range(2))
    there = device.placed(x), device.placed(y)
    copied = cupy.empty_like(there[0])
    copy_ms = milliseconds(cupy, lambda: cupy.copyto(copied, there[0]))
    bandwidth = 2 * x.nbytes / copy_ms / 1e6
    name = cupy.cuda.runtime.getDeviceProperties(device.number)["name"].decode()
    print(f"{name}: a copy moves {bandwidth:.0f} GB/s")
    print(f"{'kernel':12} {'ms':>8} {'of copy':>8} {'CuPy ms':>8} {'faster':>7}")
    table, wrong = {}, 0
    for kernel, make in KERNELS.items():
        graph = captured(make(np), x, y)
        run = compile_graph(graph).on_device
        given = there[: len(graph.inputs)]
        want, (got, *_) = make(np)(x, y), run(*given)
        scale = np.abs(want).max()
        if not np.allclose(device.to_host(got), want, rtol=1e-4, atol=1e-5 * float(scale)):
            print(f"{kernel}: wrong")
            wrong += 1
            continue
        ours, peer = milliseconds(cupy, partial(run, *given)), milliseconds(cupy, partial(make(cupy), *there))
        moved = sum(a.nbytes for a in given) + got.nbytes
        share = moved / ours / 1e6 / bandwidth
        table[kernel] = {"ms": ours, "cupy_ms": peer, "bytes": moved, "of_copy": share}
        print(f"{kernel:12} {ours:8.3f} {share:8.0%} {peer:8.3f} {peer / ours:6.1f}x")
    about = {
        "device": name, "capability": device.capability, "triton": cubins.version(), "cupy": cupy.__version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "dtype": options.dtype,
        "shape": [N, N], "copy GB/s": bandwidth, "kernels": table,
    }  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"gpu_{name.lower().replace(' ', '_')}_{options.dtype}.json"
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return int(wrong > 0)


def captured(function: Callable[..., Any], *arrays: Any) -> Graph:
    """The graph of a function, as a backend gets it."""
    found: list[Graph] = []

    def keep(graph: Graph, example_inputs: Sequence[Any]) -> Graph:
        found.append(graph)
        return graph

    tcompile.compile(function, backend=keep, fullgraph=True)(*arrays)
    (graph,) = found
    return transformed(graph)


def milliseconds(cupy: Any, run: Callable[[], object], seconds: float = 0.5) -> float:
    """The median time of a run, by the GPU's clock."""
    for _ in range(3):
        run()
    times: list[float] = []
    while len(times) < (10 if seconds else 1) or sum(times) < seconds * 1e3:
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop))
    return float(np.median(times))


if __name__ == "__main__":
    raise SystemExit(main())
