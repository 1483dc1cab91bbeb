"""Costs of an open dashboard: calls of compiled functions, compiles, and messages to the page.

Input: nothing.
Output: a line for each figure, and ``build/widgets.json``.
Why: a widget must not slow down the code that it shows.

    python -m benchmarks.widgets

- *calls*: blocks of calls of one compiled function, in turn with the dashboard closed and open, a million calls each
  way in all; the medians of the blocks are compared.
- *compiles*: a thousand functions are compiled, once with the dashboard closed and once open: the slowdown, the number
  and sizes of messages to the page, and for how long the thread of the widgets is busy at a time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from ipywidgets import Widget
from tcompile_jupyter.feed import feed
from tcompile_jupyter.widgets import dashboard

import tcompile


class Messages:
    """Counts the messages of the widgets, in place of a page."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.bytes = 0
        send = Widget._send

        def counted(widget: Any, msg: Any, buffers: Any = None) -> None:
            self.times.append(time.perf_counter())
            self.bytes += len(json.dumps(msg, default=str))
            send(widget, msg, buffers)

        Widget._send = counted


def calls(blocks: int, size: int) -> dict[str, float]:
    """Nanoseconds of a call, closed and open."""
    f = tcompile.compile(lambda x: x * 2 + 1)
    x = np.ones(8)
    for _ in range(100):
        f(x)
    spent: dict[bool, list[float]] = {False: [], True: []}
    for block in range(2 * blocks):
        opened = bool(block % 2)
        board = dashboard({"f": f}) if opened else None
        f(x)
        start = time.perf_counter()
        for _ in range(size):
            f(x)
        spent[opened].append((time.perf_counter() - start) / size * 1e9)
        if board is not None:
            board.close()
    closed, opened_ns = (statistics.median(spent[kind]) for kind in (False, True))
    return {"calls": blocks * size, "closed_ns": closed, "open_ns": opened_ns, "ratio": opened_ns / closed}


def compiles(count: int, messages: Messages) -> dict[str, float]:
    """Seconds for so many compiles, closed and open, and the messages meanwhile."""
    x = np.ones(8)

    def run(offset: int) -> float:
        space: dict[str, Any] = {}
        text = "".join(f"def f{n}(x):\n    return x * {n + offset}.5 + 1\n" for n in range(count))
        exec(compile(text, "<benchmark>", "exec"), space)
        start = time.perf_counter()
        for n in range(count):
            tcompile.compile(space[f"f{n}"])(x)
        return time.perf_counter() - start

    run(0)  # so that first-use imports are not counted
    closed = run(10_000)
    busy: list[float] = []
    flush = feed.flush

    def timed() -> None:
        start = time.perf_counter()
        flush()
        busy.append(time.perf_counter() - start)

    feed.flush = timed  # type: ignore[method-assign]
    board = dashboard({})
    messages.times.clear()
    messages.bytes = 0
    opened = run(20_000)
    time.sleep(1)
    sent, size = len(messages.times), messages.bytes
    board.close()
    feed.flush = flush  # type: ignore[method-assign]
    return {
        "compiles": count, "closed_s": closed, "open_s": opened, "ratio": opened / closed, "messages": sent,
        "messages_a_second": sent / opened, "bytes": size, "longest_batch_ms": max(busy, default=0.0) * 1e3,
    }  # fmt: skip


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("build/widgets.json"))
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, to see that it runs")
    options = parser.parse_args()
    tcompile.cache.directory = None  # every compile is a real one
    messages = Messages()
    found = {
        "calls": calls(4 if options.quick else 20, 10_000 if options.quick else 50_000),
        "compiles": compiles(100 if options.quick else 1000, messages),
    }
    for name, figures in found.items():
        print(name, *(f"{key}={value:.4g}" for key, value in figures.items()))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
