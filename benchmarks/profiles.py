"""The command ``python -m benchmarks.profiles``: how well ``tcompile.profile`` tells where time goes.

Input: the command line.
Output: a table on the terminal; JSON, Markdown and a picture in a folder.
Why: a profile is worth what its shares are worth.

Each program has a line whose cost is known otherwise: by the time of the compiled program without that line. Both
programs run in turn. The programs are made so that the line changes nothing for the others: its result is returned.
"""

from __future__ import annotations

import argparse
import linecache
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.run import HERE, about, limit

Data = dict[str, Any]
TURNS, SECONDS = 15, 2.0  # turns, and seconds for a program at most
N = 200_000
PLANTED = "  # planted"
PROGRAMS = {
    "sort beside kernels": "y = np.sin(x) * 2\nz = np.sort(x)  # planted\nw = np.exp(y) + 1\nreturn w, z",
    "svd beside kernels": "y = np.sin(x) * np.exp(-x)\nz = np.linalg.svd(x[:10_000].reshape(100, 100))[1]  # planted\n"
    "return y, z",
    "roll in a loop": "y = x\nfor i in range(20):\n    y = y * 0.5 + x\nz = np.median(x)  # planted\nreturn y, z",
    "plain loop": "y = np.tanh(x)\nz = ''.join([str(i) for i in range(2000)])  # planted\nreturn y, z",
    "sleep": "y = np.tanh(x) * 2\nz = time.sleep(0.001)  # planted\nw = np.sort(y)\nreturn w, z",
    "two sorts": "y = np.sort(x)\nz = np.sort(x[:60_000] * 2)  # planted\nreturn y, z",
    "cumulative sum": "y = np.sort(x)\nz = np.cumsum(x)  # planted\nreturn y, z",
    "matrix product": "a = x[:40_000].reshape(200, 200)\ny = np.sort(x)\nz = a @ a  # planted\nreturn y, z",
    "expensive kernel": "y = np.sort(x[:50_000])\nz = np.sin(x) ** 2 + np.cos(x) * np.tanh(x)  # planted\nreturn y, z",
    "dictionary": "y = np.sqrt(x) + 1\nz = {i: str(i) for i in range(3000)}  # planted\nprint(end='')\n"
    "w = np.sort(y[:50_000])\nreturn w, z",
    "formatting": "y = np.log(x) * 2\nz = [format(i, '8.3f') for i in range(500)]  # planted\nw = y + 1\nreturn w, z",
    "Fourier transform": "y = np.sort(x)\nz = np.fft.rfft(x)  # planted\nreturn y, z",
}


def made(name: str, body: str) -> Callable[..., Any]:
    """The function with this body."""
    import numpy as np

    text = "def program(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    names: dict[str, Any] = {"np": np, "time": time}
    exec(compile(text, name, "exec"), names)
    function: Callable[..., Any] = names["program"]
    return function


def measure(name: str, body: str) -> Data:
    """The share of the planted line, in percent: by the profile, and by leaving it out."""
    import numpy as np

    import tcompile

    x = np.random.default_rng(0).random(N) + 0.1
    lines = body.splitlines()
    planted = next(number for number, line in enumerate(lines) if line.endswith(PLANTED))
    without = [*lines[:planted], "z = None", *lines[planted + 1 :]]
    whole, rest = made(f"<{name}>", body), made(f"<{name}, without>", "\n".join(without))
    found = tcompile.profile(whole)(x)
    share = sum(line.ms for line in found.lines if line.line == planted + 2) / found.ms
    calls = [tcompile.compile(function) for function in (whole, rest)]
    times: list[list[float]] = [[], []]
    started = time.perf_counter()
    with tcompile.config.patch(rest_when_slower=False):
        for call in calls:
            for _ in range(5):
                call(x)
        while len(times[0]) < TURNS or time.perf_counter() - started < SECONDS:
            for call, taken in zip(calls, times, strict=True):
                begin = time.perf_counter()
                call(x)
                taken.append(time.perf_counter() - begin)
    all_ms, rest_ms = (statistics.median(taken) * 1e3 for taken in times)
    return {"name": name, "ms": all_ms, "profile": 100 * share, "truth": 100 * (1 - rest_ms / all_ms)}


def table(data: Data) -> tuple[list[str], list[list[str]]]:
    """The table's head and rows."""
    head = ["program", "ms a call", "share by the profile", "share by leaving the line out", "points apart"]
    rows = [
        [row["name"], f"{row['ms']:.2f}", f"{row['profile']:.1f}%", f"{row['truth']:.1f}%",
         f"{row['profile'] - row['truth']:+.1f}"]
        for row in data["rows"]
    ]  # fmt: skip
    return head, rows


def closing(data: Data) -> list[str]:
    """The sentence under the table."""
    apart = [abs(row["profile"] - row["truth"]) for row in data["rows"]]
    return [f"- Points apart: median {statistics.median(apart):.1f}, at most {max(apart):.1f}."]


def draw(data: Data, path: Path) -> None:
    """Draws both shares."""
    from benchmarks.against_report import draw_bars

    rows = data["rows"]
    series = {"by the profile": [row["profile"] for row in rows], "by leaving it out": [row["truth"] for row in rows]}
    draw_bars(path, [row["name"] for row in rows], series, "percent of the call")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 1 where shares are more than 5 points apart."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiles")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results")
    options = parser.parse_args(arguments)
    limit(options.threads)
    from benchmarks.against_report import page, write
    from benchmarks.harness import load_average

    load, rows = load_average(), []
    for name, body in PROGRAMS.items():
        rows.append(measure(name, body))
        print(rows[-1], flush=True)
    data: Data = {"about": about("profiles", arguments, options.threads, load), "rows": rows}

    def markdown(data: Data, picture: str | None) -> str:
        return page("Where time goes, by tcompile.profile", data, picture, *table(data), closing(data))

    print("\n".join(write(data, options.out, f"{data['about']['date'][:10]}-profiles", draw, markdown)))
    return int(any(abs(row["profile"] - row["truth"]) > 5 for row in rows))


if __name__ == "__main__":
    sys.exit(main())
