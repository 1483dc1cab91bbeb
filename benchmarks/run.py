"""The command: ``python -m benchmarks.run [--quick] [--shapes A,B] [--kernels a,b] [--peers a,b] [--out DIR] ...``.

Input: the command line.
Output: tables on the terminal; JSON, Markdown and pictures in a folder.
Why: the process is limited to its threads before any numerical library is imported, since some of them look only once.
"""

from __future__ import annotations

import argparse
import atexit
import datetime
import os
import platform
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 1 where tcompile's own result differs or fails."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    limit(options.threads)

    from benchmarks import report
    from benchmarks.harness import Plan, load_average, measure
    from benchmarks.kernels import KERNELS
    from benchmarks.peers import PEERS, TCompile

    kernels = [KERNELS[name] for name in _chosen("kernel", options.kernels, list(KERNELS))]
    names = _chosen("peer", options.peers, list(PEERS))
    names = ["numpy", "tcompile", *(n for n in names if n not in ("numpy", "tcompile"))]
    peers = [TCompile(options.backend) if n == "tcompile" else PEERS[n]() for n in names]
    plan = Plan(threads=options.threads)
    if options.quick:
        plan.rounds, plan.overhead_rounds, plan.import_runs, plan.seconds = 5, 7, 3, 1.0
        plan.shapes, plan.dtypes = ((1024, 1024), *plan.shapes[1:]), ("float32",)
    plan.shapes = options.shapes or plan.shapes
    if options.dtypes:
        plan.dtypes = tuple(_chosen("dtype", options.dtypes, ["float32", "float64"]))
    if options.rounds:
        plan.rounds = options.rounds

    before = load_average()
    about = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": "python -m benchmarks.run " + shlex.join(arguments),
        "machine": machine(),
        "environment": {name: os.environ[name] for name in ("OMP_WAIT_POLICY", "OMP_NUM_THREADS")},
        "load average before": before,
    }
    if before is not None and before > 0.5:
        about["noise"] = f"Other programs were running (load average {before} before the start): expect noise."
        print(about["noise"])
    result = measure(kernels, peers, plan, tell, None if options.no_startup else options.backend)
    result.about = {**about, **result.about, "load average after": load_average()}
    result.about["peers"] = {peer.name: peer.how for peer in peers}

    data = result.as_dict()
    print(report.terminal(data))
    name = f"{about['date'][:10]}-peers" + ("-quick" if options.quick else "")
    print("\n" + "\n".join(report.write(data, options.out, name)))
    ours = [row for table in result.tables for row in table.rows if row.peer == "tcompile"]
    return int(any(row.status != "ok" for row in ours) or not ours)


def tell(line: str) -> None:
    """Progress, on standard error so that the table can be piped."""
    print(f"  {line}", file=sys.stderr, flush=True)


def limit(threads: int) -> None:
    """Gives every library the same number of threads: by its variable, and by processor affinity."""
    for variable in (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMEXPR_MAX_THREADS",
        "TCOMPILE_NUM_THREADS",
    ):
        os.environ[variable] = str(threads)
    if "TCOMPILE_CACHE_DIR" not in os.environ:  # an empty cache: every compile is a cold one
        folder = os.environ["TCOMPILE_CACHE_DIR"] = tempfile.mkdtemp(prefix="bench-cache-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # Several OpenMP libraries share this process. One whose idle threads spin takes the cores from the next in turn,
    # and on a busy machine waits for whole time slices; sleeping costs some microseconds and spares milliseconds.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if hasattr(os, "sched_setaffinity"):  # JAX has no variable: it takes as many as it may use
        os.sched_setaffinity(0, cores(os.sched_getaffinity(0), threads))


def cores(allowed: set[int], count: int) -> set[int]:
    """``count`` of the allowed processors, each on a core of its own as long as there are such."""
    first_of_core: dict[str, int] = {}
    rest: list[int] = []
    for number in sorted(allowed):
        path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        siblings = path.read_text(encoding="ascii").strip() if path.exists() else str(number)
        if first_of_core.setdefault(siblings, number) != number:
            rest.append(number)
    return set([*first_of_core.values(), *rest][:count])


def about(name: str, arguments: Sequence[str], threads: int, load: Any, **versions: str) -> dict[str, Any]:
    """Where, when and how a benchmark was run; ``versions`` are those of its peers."""
    import numpy as np

    from tcompile import __version__

    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": f"python -m benchmarks.{name} " + shlex.join(arguments),
        "machine": machine(),
        "threads": threads,
        "versions": {"numpy": np.__version__, "tcompile": __version__, **versions},
        "load average before": load,
    }


def machine() -> dict[str, Any]:
    """The machine's properties that figures depend on; no names of hosts or users."""
    found: dict[str, Any] = {
        "processor": platform.processor() or platform.machine(),
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
    }
    details = Path("/proc/cpuinfo")
    if details.exists():
        fields = dict(
            (part.strip() for part in line.split(":", 1))
            for line in details.read_text(encoding="utf-8").split("\n\n")[0].splitlines()
            if ":" in line
        )
        found["processor"] = fields.get("model name", found["processor"])
        found["vectors"] = [f for f in ("avx2", "avx512f") if f in fields.get("flags", "").split()]
        found["cache"] = fields.get("cache size", "")
    return found


def _chosen(what: str, given: str | None, valid: list[str]) -> list[str]:
    names = valid if given is None else [name.strip() for name in given.split(",") if name.strip()]
    unknown = [name for name in names if name not in valid]
    if unknown:
        sys.exit(f"there is no {what} {unknown[0]!r}; valid: {', '.join(valid)}")
    return names


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description="Measure tcompile beside its peers. benchmarks/README.md explains."
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="1024x1024 in place of 4096x4096, float32, few rounds: rough figures")
    add("--shapes", type=_shapes, help="of the arrays, separated by commas (default: 4096x4096,64x64,1000x3)")
    add("--dtypes", help="separated by commas (default: float32,float64)")
    add("--kernels", help="some of the kernels, separated by commas (default: all)")
    add("--peers", help="some of the peers; NumPy and tcompile always run (default: all that are installed)")
    add("--rounds", type=_positive, help="turns of each contestant at most (default: 15, quick: 5)")
    add("--threads", type=_positive, default=min(2, os.cpu_count() or 1), help="for everybody (default: 2)")
    add("--backend", default="auto", help="tcompile's backend (default: auto)")
    add("--no-startup", action="store_true", help="leave out what needs fresh processes")
    add("--out", type=Path, default=HERE / "results", help="folder for the files (default: benchmarks/results)")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _shapes(text: str) -> tuple[tuple[int, int], ...]:
    found = []
    for part in text.split(","):
        rows, _, columns = part.strip().partition("x")
        found.append((_positive(rows), _positive(columns or rows)))
    return tuple(found)


if __name__ == "__main__":
    sys.exit(main())
