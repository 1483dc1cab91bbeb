"""The command: ``python -m benchmarks.gpu [--out DIR]``: kernels on a GPU beside its peers, and beside a copy.

Enters: the command line; needs a GPU, Triton and CuPy. Leaves: a table on the terminal, and JSON with the GPU's name in
a folder. Every result, those of the peers (``gpu_peers``) too, is checked against NumPy's before anything is timed.
What is timed are calls on arrays that are on the GPU already, by the GPU's own clock: medians of many runs. Copies
between host and GPU are not in it.
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
from benchmarks import gpu_peers

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
        e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
        return e / xp.sum(e, axis=1, keepdims=True)

    return f


def rows(xp: Any) -> Callable[..., Any]:
    """A sum along rows."""
    return lambda x, y: xp.sum(x * y, axis=1)


def columns(xp: Any) -> Callable[..., Any]:
    """A sum along columns."""
    return lambda x, y: xp.sum(x * y, axis=0)


def total(xp: Any) -> Callable[..., Any]:
    """A sum of everything."""
    return lambda x, y: xp.sum(x * y)


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
    from tcompile.backends.triton import cubins, cuda

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
    table, wrong = {}, 0
    for kernel, make in KERNELS.items():
        want, compiled = make(np)(x, y), tcompile.compile(make(np), fullgraph=True)
        rivals = {"tcompile": partial(compiled, *there), **gpu_peers.peers(cupy, make, there)}
        times, refused = {}, {}
        for peer, run in rivals.items():
            if isinstance(run, str):
                refused[peer] = run
            elif not close(gpu_peers.on_host(run()), want):
                refused[peer] = "wrong"
                wrong += peer == "tcompile"
            else:
                times[peer] = milliseconds(cupy, run)
        (graph,) = compiled.graphs
        moved = x.nbytes * len(graph.inputs) + want.nbytes
        share = moved / times["tcompile"] / 1e6 / bandwidth if "tcompile" in times else 0.0
        table[kernel] = {"ms": times, "refused": refused, "bytes": moved, "of_copy": share}
        print(f"{kernel}: {share:.0%} of a copy's bandwidth")
        for peer, ms in sorted(times.items(), key=lambda pair: pair[1]):
            print(f"    {peer:30} {ms:9.3f} ms  {ms / times.get('tcompile', ms):6.2f}x")
        for peer, why in refused.items():
            print(f"    {peer:30} {why.splitlines()[0]}")
    about = {
        "device": name, "capability": device.capability, "triton": cubins.version(), "cupy": cupy.__version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "dtype": options.dtype,
        "shape": [N, N], "copy GB/s": bandwidth, "kernels": table,
    }  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"gpu_{name.lower().replace(' ', '_')}_{options.dtype}.json"
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return int(wrong > 0)


def close(got: Any, want: Any) -> bool:
    """Whether a peer's result is NumPy's, within what the order of sums and functions may make of it."""
    scale = float(np.abs(want).max())
    return got.shape == np.shape(want) and bool(np.allclose(got, want, rtol=1e-4, atol=1e-5 * scale))


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
