"""Compares many generated programs, run plainly and compiled.

Input: the number of programs, and a seed.
Output: each program that shows a difference, minimised, on the terminal; a JSON summary with the seed, the versions,
and the differences.
Why: long runs find rare faults; the tests run the same generators for some seconds.

    python tools/fuzz.py --programs 100000 --seed 1 --jobs 2 --out build/fuzz.json
    python tools/fuzz.py --kind numpy         programs of NumPy instead of all of the language
    python tools/fuzz.py --kind special       the same with infinities, NaNs, the largest and the smallest numbers alone
    python tools/fuzz.py --kind small         the same with few elements or none, and other sizes in each call
    python tools/fuzz.py --kind cells         the same as cells of a notebook
    python tools/fuzz.py --kind loops         programs with loops over ranges, rows, and until a test ends them
    python tools/fuzz.py --kind elements      programs with loops over the elements of arrays
    python tools/fuzz.py --kind gradients     gradients of programs of NumPy and of programs with loops
    python tools/fuzz.py --kind async         loops that signal handlers and threads change
    python tools/fuzz.py --kind tensors       programs of PyTorch's tensors
    python tools/fuzz.py --only 4711          one program: shows it, and its difference if it has one
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import multiprocessing
import os
import platform
import resource
import sys
import time
import traceback
from multiprocessing.connection import wait
from pathlib import Path
from random import Random
from typing import Any

os.environ["TCOMPILE_CACHE_DIR"] = ""  # no program twice
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
CHUNK = 1000
MEMORY = 8 << 30  # bytes for a process: a statement that would make a list of a billion elements raises instead
KINDS = {
    "language": "capture.language_check", "loops": "capture.loop_check", "elements": "capture.scalar_loop_check",
    "async": "capture.async_check", "numpy": "frontends.numpy_check", "special": "frontends.special_check",
    "cells": "frontends.cell_check", "small": "frontends.small_check", "gradients": "derivatives.gradient_check",
    "tensors": "pytorch.tensor_check",
}  # fmt: skip


def of_kind(kind: str) -> Any:
    """Returns the module that generates and checks programs of this kind."""
    return importlib.import_module(KINDS[kind])


def run_chunk(seeds: range, options: argparse.Namespace, pipe: Any, current: Any) -> None:
    """Runs the programs of some seeds; sends the differences."""
    programs = of_kind(options.kind)
    gc.freeze()  # imported objects are excluded from collections: a seventh of the time
    gc.set_threshold(100_000, 20, 50)
    skipped, found = 0, []
    for seed in seeds:
        current.value = seed
        try:
            skipped += not programs.check(seed, options.backend, options.stress)
        except programs.Difference as error:
            found.append(report(seed, error, options))
    pipe.send((len(seeds), skipped, found))


def report(seed: int, error: BaseException, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the text about a difference: its seed, its program, and the shortest program found that shows it."""
    programs = of_kind(options.kind)
    random = Random(seed)
    source = programs.program(random)
    plan = programs.Plan.random(random, options.backend, options.stress)
    texts = {source: str(error)}

    def fails(text: str) -> bool:
        found = programs.difference(text, plan)
        if found is not None:
            texts[text] = found
        return found is not None

    for simpler in plan.simpler():
        if simpler != plan and programs.difference(source, simpler) is not None:
            plan = simpler
            break

    small = programs.shrink(source, fails, options.shrink) if options.shrink and fails(source) else source
    return {"seed": seed, "plan": str(plan), "difference": texts.get(small, str(error)), "program": small}


def run_one(seed: int, options: argparse.Namespace) -> int:
    """Shows one program, and its difference with the traceback."""
    programs = of_kind(options.kind)
    print(programs.program(Random(seed)))
    try:
        programs.check(seed, options.backend, options.stress)
    except programs.Difference as error:
        traceback.print_exception(error.__cause__)
        print(json.dumps(report(seed, error, options), indent=1).replace("\\n", "\n"))
        return 1
    print("no difference")
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kind", choices=KINDS, default="language", help="what programs are about")
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others follow")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--backend", help="instead of eager mostly, and the others now and then")
    parser.add_argument("--stress", action="store_true", help="break at every k-th instruction, k between 1 and 20")
    parser.add_argument("--shrink", type=float, default=60.0, help="seconds spent on shortening a program (0: none)")
    parser.add_argument("--only", type=int, help="show and run the program of this seed")
    parser.add_argument("--out", type=Path, help="where the JSON summary goes")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # for child processes, too
    if options.only is not None:
        return run_one(options.only, options)

    context = multiprocessing.get_context("spawn")
    end = options.seed + options.programs
    size = max(1, min(CHUNK, options.programs // (4 * options.jobs)))  # differences are sent when a chunk has ended
    chunks = [range(first, min(first + size, end)) for first in range(options.seed, end, size)][::-1]
    working: dict[Any, tuple[Any, range, Any]] = {}
    started, done, skipped = time.monotonic(), 0, 0
    differences: list[dict[str, Any]] = []
    while chunks or working:
        while chunks and len(working) < options.jobs:
            seeds, current = chunks.pop(), context.Value("q", 0)
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=run_chunk, args=(seeds, options, theirs, current))
            process.start()
            theirs.close()
            working[ours] = process, seeds, current
        for pipe in wait(list(working)):
            process, seeds, current = working.pop(pipe)
            try:
                count, passed_over, found = pipe.recv()
            except EOFError:  # the process died
                process.join()
                count, passed_over = 1, 0
                ended = f"the process ended with {process.exitcode}"
                found = [{"seed": current.value, "difference": ended, "program": ""}]
                # Its earlier findings are lost with it: those programs run again.
                for rest in (range(seeds.start, current.value), range(current.value + 1, seeds.stop)):
                    if rest:
                        chunks.append(rest)
            process.join()
            done, skipped = done + count, skipped + passed_over
            for one in found:
                print(f"# seed {one['seed']}: {one['difference']}\n# {one.get('plan')}\n{one['program']}", flush=True)
            differences += found
        rate = done / (time.monotonic() - started)
        print(f"{done} programs, {len(differences)} differences, {rate:.0f} a second", file=sys.stderr, flush=True)

    for line in getattr(of_kind(options.kind), "groups", lambda _: ())(differences):
        print(f"# {line}")
    summary = {
        "kind": options.kind, "programs": done, "passed over": skipped, "seed": options.seed,
        "backend": options.backend or "mixed",
        "stress": options.stress, "seconds": round(time.monotonic() - started, 1), "versions": versions(),
        "differences": differences,
    }  # fmt: skip
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
    return 1 if differences else 0


def versions() -> dict[str, str]:
    """What took part."""
    import llvmlite
    import numpy

    import tcompile

    return {
        "python": platform.python_version(), "numpy": numpy.__version__, "llvmlite": llvmlite.__version__,
        "tcompile": getattr(tcompile, "__version__", ""), "machine": platform.machine(),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
