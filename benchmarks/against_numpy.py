"""The command ``python -m benchmarks.against_numpy programs|everyday|draws|small``: tcompile beside NumPy alone.

Input: the command line.
Output: a table on the terminal; JSON, Markdown and a picture in a folder.
Why: users' programs must get faster, and small functions must not get slower.

``programs`` runs the whole programs of ``programs.py``, ``everyday`` those of ``everyday.py``, at a small size first
and then at another one, ``draws`` those of ``draws.py``, which draw random numbers; ``small`` runs the functions of
``small.py`` at 1 to 10^7 elements, and flags those that are slower compiled. All run NumPy and tcompile in turn, in one
process, on equal inputs, after the results were checked.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib
import io
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.run import HERE, limit, machine, tell

Data = dict[str, Any]
SIZES = tuple(10**power for power in range(8))
ALLOWED = 1.05  # a small function may take NumPy's time, this much more, and the overhead of one call
LEAST_OVERHEAD_MS = 0.0002  # the overhead of a call that is always allowed: the clock cannot resolve less
TURN_S = 0.002  # a turn repeats a short call until it takes this long
ROUNDS = {"programs": 9, "everyday": 9, "draws": 9, "small": 7}
SECONDS = {"programs": 6.0, "everyday": 2.0, "draws": 3.0, "small": 0.8}  # of timing; a row gets three rounds
SETTLED = 20  # calls until the trial of plain Python has ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 1 where a compiled result differs from NumPy's."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    limit(options.threads)

    import numpy as np

    from benchmarks import against_report
    from benchmarks.harness import load_average

    load = load_average()
    about = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": "python -m benchmarks.against_numpy " + shlex.join(arguments),
        "machine": machine(),
        "threads": options.threads,
        "versions": {"numpy": np.__version__, "tcompile": importlib.import_module("tcompile").__version__},
        "load average before": load,
    }
    if load is not None and load > 0.5:
        about["noise"] = f"Other programs were running (load average {load} before the start): expect noise."
        tell(about["noise"])
    rounds = options.rounds or (3 if options.quick else ROUNDS[options.suite])
    measure = small if options.suite == "small" else programs
    data = {"suite": options.suite, "about": about, "rounds": rounds, **measure(options, rounds)}
    about["load average after"] = load_average()
    print(against_report.terminal(data))
    name = f"{about['date'][:10]}-{options.suite}" + ("-quick" if options.quick else "")
    print("\n" + "\n".join(against_report.write(data, options.out, name)))
    return int(any(row["status"] != "ok" for row in data["rows"]))


# -- the suites --------------------------------------------------------------------------------------------------------
def programs(options: argparse.Namespace, rounds: int) -> Data:
    """Times whole programs; ``geometric_mean`` is that of the speed-ups."""
    table = importlib.import_module(f"benchmarks.{options.suite}")
    rows = []
    for program in _chosen(options.names, getattr(table, options.suite.upper())):
        size = program.small * 2 if options.quick else program.large
        first = partial(program.inputs, program.small) if options.suite == "everyday" else None
        tell(f"{program.name}, {size}")
        row = {"name": program.name, "about": program.about, "size": size}
        inputs, seconds = partial(program.inputs, size), SECONDS[options.suite]
        with contextlib.redirect_stdout(io.StringIO()):  # some print
            rows.append(row | _measure(program, inputs, rounds, seconds, options, first))
    gains = [row["speedup"] for row in rows if row["status"] == "ok"]
    return {"rows": rows, "geometric_mean": math.exp(sum(map(math.log, gains)) / len(gains)) if gains else None}


def small(options: argparse.Namespace, rounds: int) -> Data:
    """Times small functions at all sizes. A row ``loses`` where its time is above the allowed one, ``within_noise``
    where the quartiles leave it open.
    """
    from benchmarks.small import SMALL

    overhead = _overhead(options)
    rows = []
    for function in _chosen(options.names, SMALL):
        tell(function.name)
        for size in SIZES[:5] if options.quick else SIZES:
            row = {"name": function.name, "size": size}
            inputs = cache(partial(function.inputs, size))  # which the functions leave unchanged
            row |= _measure(function, inputs, rounds, SECONDS["small"], options)
            if row["status"] == "ok":
                row["loses"] = row["tcompile_ms"][0] > row["numpy_ms"][0] * ALLOWED + overhead
                row["within_noise"] = row["tcompile_ms"][1] <= row["numpy_ms"][2] * ALLOWED + overhead
            rows.append(row)
    return {"rows": rows, "overhead_ms": overhead, "allowed": ALLOWED}


def _overhead(options: argparse.Namespace) -> float:
    """The overhead of a compiled call in ms: of a function that returns an attribute of its argument."""
    import numpy as np

    def shape(x):
        return x.shape

    compiled = _compile(shape, options)
    run = [_repeated(f, lambda: (np.ones(3),), 2000) for f in (shape, compiled)]
    times = [[turn() for turn in run] for _ in range(15)]
    plain, ours = (sorted(column)[len(column) // 2] for column in zip(*times, strict=True))
    return max(LEAST_OVERHEAD_MS, (ours - plain) * 1e3)


def _compile(function: Callable[..., Any], options: argparse.Namespace) -> Any:
    from benchmarks.peers import fresh

    library = importlib.import_module("tcompile")
    return library.compile(fresh(function), backend=options.backend, dynamic=options.dynamic)


def _measure(
    what: Any,
    inputs: Callable[[], Any],
    rounds: int,
    seconds: float,
    options: argparse.Namespace,
    first: Callable[[], Any] | None = None,
) -> Data:
    """Compiles, checks and times one function. Times in ms: median, first and third quartile.

    ``first`` are inputs of another size, for its first calls.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        compiled = _compile(what.function, options)
        row: Data = {"status": "ok"}
        if first is not None:
            row["first_call_ms"] = _repeated(compiled, first, 1)() * 1e3
            compiled(*first())
        row["first_call_ms" if first is None else "other_size_ms"] = _repeated(compiled, inputs, 1)() * 1e3
        for _ in range(2 if first is None else SETTLED):  # resumed parts after a break may compile more
            got = compiled(*inputs())
        wrong = differs(got, what.function(*inputs()), what.ulp)
        row |= {"status": "differs" if wrong else "ok", "detail": wrong}
        row["compile_ms"] = sum(entry.compile_ms for entry in compiled.entries)
        row["breaks"] = sorted({broke.reason.id for broke in compiled.breaks})
        if wrong:
            tell(f"    {what.name}: {wrong}")
            return row
        return row | _time(what.function, compiled, inputs, rounds, seconds)


def _time(plain: Callable[..., Any], compiled: Any, inputs: Callable[[], Any], rounds: int, seconds: float) -> Data:
    once = _repeated(plain, inputs, 1)
    estimate = min(once(), once())
    calls = max(1, int(TURN_S / max(estimate, 1e-7)))
    turns = [_repeated(plain, inputs, calls), _repeated(compiled, inputs, calls)]
    rounds = max(3, min(rounds, int(seconds / (2 * estimate * calls))))
    times: list[list[float]] = [[], []]
    for number in range(rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            times[which].append(turns[which]() * 1e3)
    numpy_ms, ours = (_quartiles(column) for column in times)
    return {"numpy_ms": numpy_ms, "tcompile_ms": ours, "speedup": numpy_ms[0] / ours[0], "rounds": rounds}


def _repeated(function: Callable[..., Any], inputs: Callable[[], Any], calls: int) -> Callable[[], float]:
    """A turn: the seconds of one call, of so many in a row. A single call gets new inputs each time, made outside."""
    arguments = inputs() if calls > 1 else None

    def turn() -> float:
        given = arguments if arguments is not None else inputs()
        clock = time.perf_counter
        start = clock()
        for _ in range(calls):
            function(*given)
        return (clock() - start) / calls

    return turn


def _quartiles(values: list[float]) -> list[float]:
    import numpy as np

    return [float(v) for v in np.percentile(values, [50, 25, 75])]


# -- checking ----------------------------------------------------------------------------------------------------------
def differs(got: Any, want: Any, ulp: float) -> str:
    """The difference of ``got`` from NumPy's result: in type, dtype, shape, or by more than ``ulp`` units; else ""."""
    import numpy as np

    if type(got) is not type(want):
        return f"{type(got).__name__} instead of {type(want).__name__}"
    if isinstance(want, tuple | list):
        if len(got) != len(want):
            return f"{len(got)} results instead of {len(want)}"
        return next(filter(None, (differs(a, b, ulp) for a, b in zip(got, want, strict=True))), "")
    if isinstance(want, dict):
        return differs(list(got), list(want), ulp) or differs(list(got.values()), list(want.values()), ulp)
    if not isinstance(want, np.ndarray | np.generic):
        return "" if got == want else f"{got!r} instead of {want!r}"
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind not in "fc":
        return "" if np.array_equal(got, want) else "other values"
    size = np.abs(want)
    largest = np.max(size, initial=0, where=np.isfinite(size))
    allowed = ulp * np.finfo(want.dtype).eps * np.maximum(size, largest * 0.1)
    distance = np.abs(got - want)
    same = (got == want) | (np.isnan(got) & np.isnan(want)) | (distance <= allowed)
    return "" if same.all() else f"by up to {np.max(distance[~same]):.3g}"


# -- the command line --------------------------------------------------------------------------------------------------
def _chosen(given: str | None, table: dict[str, Any]) -> list[Any]:
    names = list(table) if given is None else [name.strip() for name in given.split(";") if name.strip()]
    unknown = [name for name in names if name not in table]
    if unknown:
        sys.exit(f"there is no {unknown[0]!r}; valid: {'; '.join(table)}")
    return [table[name] for name in names]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.against_numpy", description="Measure tcompile beside NumPy alone."
    )
    add = parser.add_argument
    add("suite", choices=tuple(ROUNDS), help="whole programs, those of notebooks, random numbers, or small functions")
    add("--quick", action="store_true", help="small inputs and few rounds: rough figures")
    add("--names", help="some of the rows, separated by semicolons (default: all)")
    add("--rounds", type=int, help="turns of each (default: 7 for small, else 9; fewer where a call is long)")
    add("--threads", type=int, default=min(2, os.cpu_count() or 1), help="for both (default: 2)")
    add("--backend", default="auto", help="tcompile's backend (default: auto)")
    add("--dynamic", action="store_const", const=True, default=None, help="compile for all sizes at once")
    add("--out", type=Path, default=HERE / "results", help="folder for the files (default: benchmarks/results)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
