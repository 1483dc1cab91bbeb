"""What gradients cost beside their functions: ``python -m benchmarks.gradient_costs [--only heat,mlp] [--out FOLDER]``.

Input: the programs of ``benchmarks.programs``.
Output: a table, and with ``--out`` JSON and a page: medians of calls of the compiled function and of its gradient by
all float arguments, in turn on the same data, on one thread.
Why: reverse mode costs a small multiple of its function. A larger ratio shows where to work next.

The gradient is that of a random weighted sum of all floats that the program returns. A program without such a result,
or without a derivative, is listed with the reason.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tcompile
from benchmarks.programs import PROGRAMS, Program

Data = dict[str, Any]
FEWEST = 7  # calls of each
HEADS = ("program", "function ms", "gradient ms", "ratio", "note")


def is_float(value: Any) -> bool:
    """Whether a value is a float or an array of floats. It is captured with the program, so it stands here."""
    return isinstance(value, float) or (isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f")


def weighed_sum(program: Program, args: Sequence[Any]) -> Callable[..., Any]:
    """A scalar function of the program's arguments: the weighted sum of its float results."""
    function = program.function
    draws = np.random.default_rng(0)
    found = function(*args)
    results = found if isinstance(found, tuple) else (found,)
    weights = [draws.standard_normal(np.shape(value)) for value in results if is_float(value)]
    if not weights:
        raise ValueError("it returns no floats")

    def loss(*given: Any) -> Any:
        found = function(*given)
        results = found if isinstance(found, tuple) else (found,)
        floats = [value for value in results if is_float(value)]
        total = 0.0
        for weight, value in zip(weights, floats, strict=True):
            total = total + np.sum(weight * value)
        return total

    return loss


def measure(program: Program, size: int, seconds: float) -> Data:
    """One row: medians in ms."""
    row: Data = {"program": program.name, "size": size}
    try:
        numbers = tuple(place for place, value in enumerate(program.inputs(size)) if is_float(value))
        if not numbers:
            raise ValueError("it has no float arguments")
        loss = weighed_sum(program, program.inputs(size))
        runs = [tcompile.compile(loss), tcompile.value_and_grad(loss, numbers)]
        for run in runs:
            for _ in range(3):
                run(*program.inputs(size))
    except Exception as error:  # the reason is the row
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        return {**row, "note": f"{type(error).__name__}: {text}"}
    times: tuple[list[float], list[float]] = ([], [])
    end, order = time.perf_counter() + seconds, random.Random(0)
    while len(times[0]) < FEWEST or time.perf_counter() < end:
        for which in order.sample((0, 1), 2):
            given = program.inputs(size)
            start = time.perf_counter()
            runs[which](*given)
            times[which].append((time.perf_counter() - start) * 1e3)
    one, both = map(statistics.median, times)
    return {**row, "function_ms": one, "gradient_ms": both, "ratio": both / one, "calls": len(times[0])}


def cells(row: Data) -> tuple[str, ...]:
    """A row of the table as text."""
    if "ratio" not in row:
        return (row["program"], "", "", "", row["note"][:100])
    return (row["program"], f"{row['function_ms']:.3g}", f"{row['gradient_ms']:.3g}", f"{row['ratio']:.2f}", "")


def main(arguments: list[str] | None = None) -> list[Data]:
    """The command."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each program")
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--tiny", action="store_true", help="small arrays, to see that it works")
    parser.add_argument("--out", type=Path, default=None, help="a folder for JSON and a page")
    given = parser.parse_args(arguments)
    from benchmarks.harness import load_average
    from benchmarks.run import machine

    load, threads = load_average(), tcompile.get_num_threads()
    tcompile.set_num_threads(1)
    rows = []
    try:
        for program in PROGRAMS.values():
            if not given.only or program.name in given.only.split(","):
                rows.append(measure(program, program.small if given.tiny else program.large, given.seconds))
                print("  ".join(f"{cell:>12}" for cell in cells(rows[-1])), flush=True)
    finally:
        tcompile.set_num_threads(threads)
    if given.out is not None:
        about = {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "command": "python -m benchmarks.gradient_costs " + shlex.join(arguments),
            "machine": machine(), "threads": 1, "load average before": load,
            "versions": {"numpy": np.__version__, "tcompile": tcompile.__version__},
        }  # fmt: skip
        name = f"{about['date'][:10]}-gradient-costs"
        (given.out / f"{name}.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n", "utf-8")
        page = ["| " + " | ".join(line) + " |" for line in (HEADS, ("---",) * len(HEADS), *map(cells, rows))]
        where = ", ".join(f"{key} {value}" for key, value in about["machine"].items())
        head = f"# What gradients cost beside their functions\n\n`{about['command']}`, on one thread; {where}\n\n"
        (given.out / f"{name}.md").write_text(head + "\n".join(page) + "\n", "utf-8")
    return rows


if __name__ == "__main__":
    main()
