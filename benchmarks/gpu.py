"""The command: ``python -m benchmarks.gpu [--out DIR]``: kernels on a GPU beside its peers, and beside a copy.

Input: the command line; needs a GPU, Triton and CuPy.
Output: lines on the terminal, and JSON, a page and a picture with the GPU's name in a folder.
Why: a kernel should take as long as a copy of its bytes.

The kernels are those of ``kernels``, and one that multiplies matrices. Every result, those of the peers (``gpu_peers``)
too, is checked against NumPy's before anything is timed. Calls on GPU arrays are timed by the GPU's own clock, with a
cold cache, in turn with the peers': medians of many runs. Copies between host and GPU are not included. The overhead of
a call, and the first call, are timed by the host's clock.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tcompile
from benchmarks import gpu_peers, gpu_report
from benchmarks.kernels import KERNELS, LAYER, Kernel
from benchmarks.run import machine
from tcompile.observe.events import KernelCompiled
from tcompile.observe.recorder import Recorder

HERE = Path(__file__).resolve().parent
SHAPE = 4096, 4096
MANY = 12  # sums and subtractions
CACHE = 1 << 29  # bytes beyond any GPU's cache, whose overwriting takes longer than the host for any call
WORDS = {"one": "one kernel", "many": f"{MANY} kernels"}
MODES = {"tcompile": "default", "tcompile, max-autotune": "max-autotune-no-cudagraphs"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 1 where a result differs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--shape", type=shape_of, default=SHAPE, help="as 4096x4096")
    parser.add_argument("--kernels", nargs="*", default=[*KERNELS, LAYER.name], help="which of them")
    parser.add_argument("--without", nargs="*", default=[], help="peers to leave out")
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    from tcompile.backends.triton import cubins, cuda

    cupy = importlib.import_module("cupy")
    device = cuda.current()
    name = device.name or "a GPU"
    versions = {"numpy": np.__version__, "triton": cubins.version(), "cupy": cupy.__version__}
    about = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "machine": machine(),
        "threads": os.cpu_count(), "versions": {**versions, **gpu_peers.versions()},
        "command": "python -m benchmarks.gpu " + shlex.join(arguments),
        "device": name, "capability": device.capability, "dtype": options.dtype,
        "shape": list(options.shape),
    }  # fmt: skip
    copy = copy_bandwidth(cupy, device, options.shape, options.dtype)
    print(f"{name}: a copy moves {copy:.0f} GB/s", flush=True)
    rows, wrong = [], 0
    for kernel in (one for one in (*KERNELS.values(), LAYER) if one.name in options.kernels):
        row = measured(cupy, device, kernel, options.shape, options.dtype, copy, options.without)
        rows.append(row)
        wrong += sum(row["refused"].get(own) == "wrong" for own in MODES)
        print(gpu_report.line(row), flush=True)
    data = {"suite": "gpu", "about": about, "copy GB/s": copy, "rows": rows, "host": host(cupy, device)}
    size = "" if options.shape == SHAPE else "-" + "x".join(map(str, options.shape))
    path = f"{about['date'][:10]}-gpu-{name.lower().replace(' ', '-')}{size}-{options.dtype}"
    print("\n".join([*gpu_report.closing(data), *gpu_report.write(data, options.out, path)]))
    return int(wrong > 0)


def shape_of(text: str) -> tuple[int, int]:
    """Rows and columns.

    >>> shape_of("1000x3")
    (1000, 3)
    """
    rows, columns = text.split("x")
    return int(rows), int(columns)


def copy_bandwidth(cupy: Any, device: Any, shape: tuple[int, int], dtype: str) -> float:
    """GB/s that a copy on the GPU reads and writes."""
    x = device.placed(np.ones(shape, dtype))
    copied = cupy.empty_like(x)
    return float(2 * x.nbytes / milliseconds(cupy, {"": lambda: cupy.copyto(copied, x)})[""] / 1e6)


def measured(
    cupy: Any,
    device: Any,
    kernel: Kernel,
    shape: tuple[int, int],
    dtype: str,
    bandwidth: float,
    without: Sequence[str],
) -> dict[str, Any]:
    """The time of a kernel, its peers' times, and the reasons why some have none."""
    given = kernel.inputs(shape, dtype)
    want, there = kernel.numpy(*given), tuple(map(device.placed, given))
    rtol, atol = kernel.limits(dtype)
    runs: dict[str, Callable[[], object]] = {}
    refused: dict[str, str] = {}
    rivals: dict[str, Any] = {
        own: partial(tcompile.compile(kernel.numpy, fullgraph=True, mode=mode), *there) for own, mode in MODES.items()
    }
    tuned: list[str] = []
    for peer, run in {**rivals, **gpu_peers.peers(cupy, kernel, there, without)}.items():
        if isinstance(run, str):
            refused[peer] = run
            continue
        result, told = first_run(run)
        tuned += told
        if not close(gpu_peers.on_host(result), want, *((rtol, atol) if peer in MODES else ())):
            refused[peer] = "wrong"
        else:
            runs[peer] = run
    times = milliseconds(cupy, {peer: run for peer, run in runs.items() if peer not in gpu_peers.FINISH})
    times |= {peer: milliseconds_of_many(runs[peer], end) for peer, end in gpu_peers.FINISH.items() if peer in runs}
    moved = sum(x.nbytes for x in given) + np.asarray(want).nbytes
    share = moved / times["tcompile"] / 1e6 / bandwidth if "tcompile" in times else 0.0
    return {
        "name": kernel.name, "title": kernel.title, "ms": times, "refused": refused, "bytes": moved, "of copy": share,
        "tuned": tuned,
    }  # fmt: skip


def first_run(run: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result of a run that compiles, and the choices of ``max-autotune`` for its kernels, other than the default.

    >>> first_run(tcompile.compile(lambda: 1))
    (1, [])
    """
    with Recorder() as recorder:
        result = run()
    told = (event.description.partition("; tuned: ")[2] for event in recorder.of(KernelCompiled))
    return result, [text for text in told if text]


def host(cupy: Any, device: Any) -> dict[str, dict[str, float]]:
    """Host times: of calls, in µs, and of the first one, in ms."""
    return {"a call, µs": calls(cupy, device), "the first call, ms": first_calls(cupy, device)}


def calls(cupy: Any, device: Any) -> dict[str, float]:
    """Host time in µs of a call on few elements: of one kernel, and of many, with and without CUDA graphs."""
    x = device.placed(np.linspace(0.5, 1.0, 64, dtype="f4").reshape(8, 8))

    def one(x: Any) -> Any:
        return np.maximum(x + 1, 0) * 2

    def many(x: Any) -> Any:
        for k in range(MANY):
            x = x - x.sum(axis=k % 2, keepdims=True) / 8
        return x

    def own(function: Callable[[Any], Any]) -> dict[str, Callable[[], object]]:
        modes = {f"tcompile, {mode}": tcompile.compile(function, mode=mode) for mode in ("default", "reduce-overhead")}
        return {way: partial(run, x) for way, run in {"CuPy": function, **modes}.items()}

    def peers(function: Callable[[Any], Any]) -> dict[str, Callable[[], object]]:
        return gpu_peers.calls(function.__name__, MANY, x)

    found = {}
    for ways in (own, peers):  # peers last: their compile processes keep running
        for function in (one, many):
            for way, run in ways(function).items():
                found[f"{WORDS[function.__name__]}, {way}"] = 1e3 * by_host_clock(cupy, run)
    return found


def by_host_clock(cupy: Any, run: Callable[[], object], rounds: int = 20, times: int = 50) -> float:
    """The least time of a call in ms by the host's clock; each round waits for the GPU."""
    best = math.inf
    for _ in range(rounds):
        cupy.cuda.get_current_stream().synchronize()
        started = time.perf_counter()
        for _ in range(times):
            run()
        best = min(best, time.perf_counter() - started)
    cupy.cuda.get_current_stream().synchronize()
    return best / times * 1e3


def first_calls(cupy: Any, device: Any) -> dict[str, float]:
    """ms of the first call of a new function, and with its machine code on disk."""
    x = device.placed(np.ones(1000, "f4"))
    number = float(np.random.default_rng().random())  # in the kernel's text, so that no cache has it
    found = {}
    for what in ("compiled anew", "from the disk cache"):
        tcompile.reset()
        run = tcompile.compile(lambda x: np.exp(x) * number + 1)
        started = time.perf_counter()
        run(x)
        cupy.cuda.get_current_stream().synchronize()
        found[what] = (time.perf_counter() - started) * 1e3
    return found


def close(got: Any, want: Any, rtol: float = 1e-4, atol: float | None = None) -> bool:
    """Whether a result equals NumPy's: a peer's within the rounding of sums and functions."""
    atol = 1e-5 * float(np.abs(want).max()) if atol is None else atol
    return got.shape == np.shape(want) and bool(np.allclose(got, want, rtol=rtol, atol=atol))


def milliseconds(cupy: Any, runs: Mapping[str, Callable[[], object]], seconds: float = 0.1) -> dict[str, float]:
    """The median time of each run, by the GPU's clock, in turn; each is given so many seconds.

    Before each run all of the GPU's cache is overwritten, which takes the GPU longer than the host takes to start the
    run: so operands come from memory, and host time is not measured.
    """
    for run in runs.values():
        for _ in range(3):
            run()
    other = cupy.empty(CACHE, "u1")
    found: dict[str, list[float]] = {name: [] for name in runs}
    started, rounds = time.perf_counter(), 0
    while rounds < 4 or time.perf_counter() - started < seconds * len(runs):
        rounds += 1
        for name, run in runs.items():
            pairs = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(10)]
            for start, stop in pairs:
                other.fill(rounds % 256)
                start.record()
                run()
                stop.record()
            pairs[-1][1].synchronize()
            found[name] += [cupy.cuda.get_elapsed_time(*pair) for pair in pairs]
    return {name: float(np.median(times)) for name, times in found.items()}


def milliseconds_of_many(run: Callable[[], Any], finish: Callable[[Any], object], many: int = 50) -> float:
    """The least time of a run in a row of them, by the host's clock; for libraries with streams of their own."""
    finish(run())
    best = math.inf
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(many):
            made = run()
        finish(made)
        best = min(best, time.perf_counter() - started)
    return best / many * 1e3


if __name__ == "__main__":
    raise SystemExit(main())
