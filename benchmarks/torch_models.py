"""The command ``python -m benchmarks.torch_models``: PyTorch's modules, eager, by Inductor and by tcompile.

Input: the command line.
Output: a table on the terminal; JSON, Markdown and a picture in a folder.
Why: modules must not get slower than eager, and the first call is where others lose seconds.

All run in turn, in one process, on equal inputs, after the losses were compared: forward alone without gradients, and
forward and backward. ``tcompile`` is ``tcompile.compile(module)``, ``backend`` is
``torch.compile(module, backend="tcompile")``, with PyTorch's own capture. Inductor needs a C++ compiler.
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
ROUNDS, SECONDS = 9, 2.0  # turns, and seconds for a row at most


def models(torch: Any) -> dict[str, Callable[[], tuple[Any, Any]]]:
    """Makers of modules and inputs by name."""
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, width: int = 128, heads: int = 4) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.heads = heads

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.mixed(self.first(x)).split(width, 2)
            q, k, v = (y.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for y in parts)
            weights = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
            mask = torch.tril(torch.ones(length, length, dtype=torch.bool))
            weights = weights.masked_fill(~mask, float("-inf")).softmax(-1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.second(x))))

    class Residual(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
            self.norms, self.head = nn.ModuleList([nn.BatchNorm2d(16), nn.BatchNorm2d(16)]), nn.Linear(16, 10)

        def forward(self, x: Any) -> Any:
            x = functional.relu(self.norms[0](self.one(x)))
            x = functional.relu(x + self.norms[1](self.two(x)))
            return self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))

    class Recurrent(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTMCell(32, 64)

        def forward(self, x: Any) -> Any:
            h = c = x.new_zeros(x.shape[1], 64)
            for step in x:
                h, c = self.cell(step, (h, c))
            return h

    class Messages(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.edge, self.node = nn.Linear(64, 32), nn.Linear(64, 32)
            self.ends = torch.randint(0, 500, (2, 4000))

        def forward(self, x: Any) -> Any:
            source, target = self.ends
            sent = functional.silu(self.edge(torch.cat([x[source], x[target]], 1)))
            got = torch.zeros_like(x).index_add(0, target, sent)
            return functional.silu(self.node(torch.cat([x, got], 1)))

    return {
        "tiny, 4 to 4": lambda: (nn.Sequential(nn.Linear(4, 4), nn.Tanh()), torch.randn(2, 4)),
        "MLP, 784-256-10, batch 128": lambda: (
            nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)),
            torch.randn(128, 784),
        ),
        "GPT block, 4 x 128 x 128": lambda: (Block(), torch.randn(4, 128, 128)),
        "encoder with dropout, 4 x 64 x 128": lambda: (
            nn.TransformerEncoderLayer(128, 4, 256, dropout=0.1, batch_first=True),
            torch.randn(4, 64, 128),
        ),
        "small ResNet, 8 x 3 x 32 x 32": lambda: (Residual(), torch.randn(8, 3, 32, 32)),
        "LSTM cell, 10 steps of 16 x 32": lambda: (Recurrent(), torch.randn(10, 16, 32)),
        "message passing, 4000 edges": lambda: (Messages(), torch.randn(500, 32)),
    }


def measure(torch: Any, name: str, make: Callable[[], tuple[Any, Any]], ways: Sequence[str]) -> Data:
    """One model in all ways: milliseconds of forward and of both, the first call, the largest difference of losses."""
    torch.manual_seed(0)
    module, x = make()
    calls: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}
    row: Data = {"name": name, "first call": {}, "forward": {}, "both": {}}
    losses: dict[str, float] = {}
    for way in ways:
        torch._dynamo.reset()
        call = compiled(torch, module, way)

        def forward(call: Any = call) -> Any:
            with torch.no_grad():
                return call(x)

        def both(call: Any = call) -> Any:
            module.zero_grad(set_to_none=True)
            loss = (call(x) ** 2).mean()
            loss.backward()
            return loss

        started = time.perf_counter()
        both()
        row["first call"][way] = (time.perf_counter() - started) * 1e3
        torch.manual_seed(1)
        losses[way] = float(both().detach())
        forward()
        calls[way] = forward, both
    row["difference"] = max(abs(loss - losses["eager"]) for loss in losses.values())
    for number, kind in enumerate(("forward", "both")):
        times: dict[str, list[float]] = {way: [] for way in ways}
        begun = time.perf_counter()
        for turn in range(ROUNDS):
            if turn > 2 and time.perf_counter() - begun > SECONDS:
                break
            for way in ways:
                times[way].append(_turn(calls[way][number]))
        row[kind] = {way: statistics.median(values) for way, values in times.items()}
    return row


def compiled(torch: Any, module: Any, way: str) -> Any:
    """The module, compiled in one of the ways."""
    if way == "eager":
        return module
    if way == "tcompile":
        return importlib.import_module("tcompile").compile(module)
    return torch.compile(module, backend="tcompile" if way == "backend" else way)


def _turn(call: Callable[[], Any]) -> float:
    """Milliseconds of a call, by as many as fill some milliseconds."""
    count, spent = 0, 0.0
    while spent < 0.005:
        started = time.perf_counter()
        call()
        spent += time.perf_counter() - started
        count += 1
    return spent / count * 1e3


def table(data: Data) -> tuple[list[str], list[list[str]]]:
    """Heads and rows."""
    ways = data["ways"]
    heads = ["model"] + [f"{kind}, {way}" for kind in ("forward", "both", "first call") for way in ways]
    rows = [
        [row["name"], *(f"{row[kind][way]:.3g}" for kind in ("forward", "both", "first call") for way in ways)]
        for row in data["rows"]
    ]
    return heads, rows


def closing(data: Data) -> list[str]:
    """The geometric means over the models."""
    lines = ["All in milliseconds; medians of calls in turn. The first call is forward and backward.", ""]
    for kind in ("forward", "both"):
        for way in data["ways"]:
            if way != "tcompile":
                ratios = [row[kind][way] / row[kind]["tcompile"] for row in data["rows"]]
                mean = statistics.geometric_mean(ratios)
                lines.append(f"- {kind}: tcompile is {mean:.2f} times as fast as {way} (geometric mean).")
    return lines


def draw(data: Data, path: Path) -> None:
    """Bars: time beside eager, forward and backward."""
    from matplotlib import pyplot

    from benchmarks.against_report import keep, where

    rows, ways = data["rows"], [way for way in data["ways"] if way != "eager"]
    figure, axis = pyplot.subplots(figsize=(7.5, 0.5 * len(rows) + 1.2))
    for number, way in enumerate(ways):
        places = [place + 0.36 * number for place in range(len(rows))]
        values = [row["both"]["eager"] / row["both"][way] for row in rows]
        axis.barh(places, values, 0.34, label=way)
    axis.axvline(1, color="#5a6270", linewidth=0.8)
    axis.set_yticks([place + 0.18 * (len(ways) - 1) for place in range(len(rows))], [row["name"] for row in rows])
    axis.invert_yaxis()
    axis.set_xlabel("times as fast as eager, forward and backward")
    axis.legend(frameon=False)
    keep(figure, axis, where(data), path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 1 where losses differ."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_models")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="part of a model's name")
    parser.add_argument("--without-inductor", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args(arguments)
    limit(options.threads)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="bench-inductor-")  # empty, as tcompile's own is

    torch: Any = importlib.import_module("torch")
    from benchmarks.against_report import page, write
    from benchmarks.harness import load_average

    torch.set_num_threads(options.threads)
    if "tcompile" not in torch._dynamo.list_backends(None):  # it is not installed, but on the path
        torch._dynamo.register_backend(importlib.import_module("tcompile.torch_backend").torch_backend, "tcompile")
    ways = ["eager", *([] if options.without_inductor else ["inductor"]), "backend", "tcompile"]
    rows = []
    load = load_average()
    for name, make in models(torch).items():
        if options.only is None or options.only in name:
            rows.append(measure(torch, name, make, ways))
            print(rows[-1], flush=True)
    data: Data = {
        "about": about("torch_models", arguments, options.threads, load, torch=torch.__version__),
        "ways": ways,
        "rows": rows,
    }

    def markdown(data: Data, picture: str | None) -> str:
        title = "PyTorch's modules: eager, Inductor, tcompile as a backend, tcompile"
        return page(title, data, picture, *table(data), closing(data))

    name = f"{data['about']['date'][:10]}-torch-models-{options.threads}"
    print("\n".join(write(data, options.out, name, draw, markdown)))
    return int(any(row["difference"] > 1e-3 for row in rows))


if __name__ == "__main__":
    sys.exit(main())
