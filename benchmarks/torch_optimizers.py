"""The command ``python -m benchmarks.torch_optimizers``: optimizers' steps, eager, by Inductor and by tcompile.

Input: the command line.
Output: a table on the terminal; JSON, Markdown and a picture in a folder.
Why: in a training loop, the step of the optimizer is a third of the time of a small model.

All run in turn, in one process, on equal parameters and gradients, after the parameters were compared. ``tcompile`` is
``tcompile.compile`` of a function that calls ``optimizer.step()``; ``inductor`` is ``torch.compile`` of it, which needs
a C++ compiler; ``fused`` is the optimizer with ``fused=True``, where PyTorch has that. The first four steps are summed:
what compiles does so in one of them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.run import HERE, about, limit

Data = dict[str, Any]
TURNS, SECONDS = 15, 1.5  # turns, and seconds for a row at most
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "4 parameters, 2,800 numbers": [(64, 32), (64,), (10, 64), (10,)],
    "1 parameter, 200,000 numbers": [(400, 500)],
    "52 parameters, 800,000 numbers": [*[(128,)] * 36, *[(128, 128)] * 8, *[(512, 128)] * 4, *[(128, 512)] * 4],
}


def optimizers(torch: Any) -> dict[str, tuple[Any, dict[str, Any], bool]]:
    """Classes with their options by name, and whether PyTorch has a fused kernel on CPUs."""
    optim = torch.optim
    return {
        "Adam": (optim.Adam, {"lr": 1e-3}, True),
        "AdamW": (optim.AdamW, {"lr": 1e-3}, True),
        "SGD, momentum": (optim.SGD, {"lr": 1e-3, "momentum": 0.9}, True),
        "RMSprop": (optim.RMSprop, {"lr": 1e-3}, False),
        "NAdam": (optim.NAdam, {"lr": 1e-3}, False),
    }


def measure(torch: Any, name: str, case: tuple[Any, dict[str, Any], bool], shapes: str, ways: Sequence[str]) -> Data:
    """A row of the table: medians of a step by each way, in microseconds."""
    import tcompile

    torch._dynamo.reset()
    made, options, has_fused = case
    steps: dict[str, Callable[[], Any]] = {}
    held: dict[str, list[Any]] = {}
    for way in ways:
        if way == "fused" and not has_fused:
            continue
        torch.manual_seed(0)
        parameters = held[way] = [torch.nn.Parameter(torch.randn(shape)) for shape in SHAPES[shapes]]
        optimizer = made(parameters, **options, **({"fused": True} if way == "fused" else {}))
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape)

        def step(optimizer: Any = optimizer) -> None:
            optimizer.step()

        steps[way] = {"inductor": torch.compile, "tcompile": tcompile.compile}.get(way, _itself)(step)
    firsts = {way: sum(_turn(call) for _ in range(4)) for way, call in steps.items()}
    difference = max(
        float((mine.detach() - its.detach()).abs().max())
        for found in held.values()
        for mine, its in zip(found, held["eager"], strict=True)
    )
    times: dict[str, list[float]] = {way: [] for way in steps}
    started = time.perf_counter()
    while len(times["eager"]) < TURNS or time.perf_counter() - started < SECONDS:
        for way, call in steps.items():
            times[way].append(_turn(call))
    medians = {way: statistics.median(found) * 1e6 for way, found in times.items()}
    return {"name": f"{name}: {shapes}", "difference": difference, "us": medians, "first_ms": {
        way: seconds * 1e3 for way, seconds in firsts.items()}}  # fmt: skip


def _itself(function: Any) -> Any:
    return function


def _turn(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def table(data: Data) -> tuple[list[str], list[list[str]]]:
    """The table's head and rows."""
    ways = data["ways"]
    head = ["step", *(f"{way}, µs" for way in ways), "beside eager"]
    rows = []
    for row in data["rows"]:
        cells = [f"{row['us'][way]:.0f}" if way in row["us"] else "" for way in ways]
        rows.append([row["name"], *cells, f"{row['us']['eager'] / row['us']['tcompile']:.1f}x"])
    return head, rows


def closing(data: Data) -> list[str]:
    """The sentences under the table."""
    lines: list[str] = []
    firsts = {way: [row["first_ms"][way] for row in data["rows"] if way in row["first_ms"]] for way in data["ways"]}
    for way, found in firsts.items():
        lines.append(f"- First four steps by {way}: {min(found):.0f} to {max(found):.0f} ms.")
    for way in data["ways"]:
        ratios = [row["us"][way] / row["us"]["tcompile"] for row in data["rows"] if way in row["us"]]
        if way != "tcompile":
            lines.append(f"- Geometric mean beside {way}: {statistics.geometric_mean(ratios):.2f}.")
    return lines


def draw(data: Data, path: Path) -> None:
    """Draws the medians."""
    from benchmarks.against_report import draw_bars

    rows = data["rows"]
    series = {way: [row["us"].get(way) for row in rows] for way in data["ways"]}
    draw_bars(path, [row["name"] for row in rows], series, "microseconds for a step", log=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 1 where parameters differ."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_optimizers")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", help="part of an optimizer's name")
    parser.add_argument("--without-inductor", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args(arguments)
    limit(options.threads)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="bench-inductor-")

    torch: Any = importlib.import_module("torch")
    from benchmarks.against_report import page, write
    from benchmarks.harness import load_average

    torch.set_num_threads(options.threads)
    ways = ["eager", "fused", *([] if options.without_inductor else ["inductor"]), "tcompile"]
    load, rows = load_average(), []
    for shapes in SHAPES:
        for name, case in optimizers(torch).items():
            if options.only is None or options.only in name:
                rows.append(measure(torch, name, case, shapes, ways))
                print(rows[-1], flush=True)
    data: Data = {
        "about": about("torch_optimizers", arguments, options.threads, load, torch=torch.__version__),
        "ways": ways,
        "rows": rows,
    }

    def markdown(data: Data, picture: str | None) -> str:
        title = "Steps of PyTorch's optimizers: eager, fused, Inductor, tcompile"
        return page(title, data, picture, *table(data), closing(data))

    name = f"{data['about']['date'][:10]}-torch-optimizers-{options.threads}"
    print("\n".join(write(data, options.out, name, draw, markdown)))
    return int(any(row["difference"] > 1e-4 for row in rows))


if __name__ == "__main__":
    sys.exit(main())
