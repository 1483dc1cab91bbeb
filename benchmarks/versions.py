"""Versions of CPython beside one another: call overhead, compile times, and the kernels.

Input: interpreters that can import tcompile.
Output: a table of each figure's median in each of them, and the ratio to the first one's; the exit status is 1 where a
ratio is above 1.05.
Why: tcompile must not become slower with a new CPython. The interpreters take turns, so that a machine that slows down
slows down all.

    python -m benchmarks.versions /opt/python3.13/bin/python /opt/python3.15/bin/python --turns 7
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.run import limit

ROOT = Path(__file__).resolve().parent.parent
SHAPE = (1024, 1024)
BOUND = 1.05
Figures = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=main.__doc__)
    parser.add_argument("pythons", nargs="+", help="interpreters; the others are compared with the first")
    parser.add_argument("--turns", type=int, default=7, help="processes of each (default: 7)")
    options = parser.parse_args(arguments)
    turns: dict[str, list[Figures]] = {python: [] for python in options.pythons}
    for turn in range(options.turns):
        shift = turn % len(turns)
        for python in [*turns][shift:] + [*turns][:shift]:
            turns[python].append(process(python))
        print(f"  turn {turn + 1} of {options.turns}", file=sys.stderr, flush=True)
    medians = {python: median(found) for python, found in turns.items()}
    print("\n".join(table(medians)))
    return int(any(ratio > BOUND for ratios in compared(medians).values() for ratio in ratios.values()))


def process(python: str) -> Figures:
    """The figures of one process. Raises RuntimeError with its own error where it fails."""
    command = [python, "-c", "from benchmarks.versions import child; child()"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{python} failed:\n{done.stderr}")
    found: Figures = json.loads(done.stdout)
    return found


def child() -> None:
    """Prints the figures of this process."""
    limit(min(2, os.cpu_count() or 1))
    from benchmarks import calls
    from benchmarks.harness import rounds
    from benchmarks.kernels import KERNELS
    from benchmarks.peers import TCompile

    ours = TCompile()
    ours.load(2)
    found = {f"call, µs: {row['title']}": row["tcompile_us"] for row in calls.measure([ours], 15)}
    for kernel in KERNELS.values():
        run = ours.build(kernel, kernel.inputs(SHAPE, "float32"))
        found[f"compile, ms: {kernel.name}"] = run.compile_ms
        times = rounds({"": run}, 5, 3)[""]
        found[f"run, ms: {kernel.name}"] = min(min(turn) for turn in times) * 1e3
    print(json.dumps(found))


def median(turns: Sequence[Figures]) -> Figures:
    """The median of each figure, and the sums of those of a kind.

    >>> median([{"run, ms: a": 1.0, "run, ms: b": 2.0}, {"run, ms: a": 3.0, "run, ms: b": 2.0}])
    {'run, ms: a': 2.0, 'run, ms: b': 2.0, 'run, ms: all': 4.0}
    """
    found = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
    for kind in dict.fromkeys(name.partition(":")[0] for name in found):
        found[f"{kind}: all"] = sum(value for name, value in found.items() if name.startswith(kind + ":"))
    return found


def compared(medians: dict[str, Figures]) -> dict[str, Figures]:
    """Each figure as a multiple of the first interpreter's, for each interpreter.

    >>> compared({"one": {"a": 2.0}, "other": {"a": 3.0}})
    {'one': {'a': 1.0}, 'other': {'a': 1.5}}
    """
    first = next(iter(medians.values()))
    return {python: {name: value / first[name] for name, value in row.items()} for python, row in medians.items()}


def table(medians: dict[str, Figures]) -> list[str]:
    """The lines of the table."""
    ratios = compared(medians)
    lines = [f"{'':48}" + "".join(f"{python[-25:]:>26}" for python in medians)]
    for name in next(iter(medians.values())):
        cells = (f"{medians[python][name]:>17.4g} ({ratios[python][name]:.3f})" for python in medians)
        lines.append(f"{name:48}" + "".join(f"{cell:>26}" for cell in cells))
    return lines


if __name__ == "__main__":
    sys.exit(main())
