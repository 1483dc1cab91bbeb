"""Runs the project's differential tests with the graph broken after every k-th instruction; counts wrong answers.

Input: values of k, test files, and the number of generated programs.
Output: each wrong answer on the terminal, and a JSON summary. For each k, it has the tests and programs run, those with
differences between plain and compiled runs, and those that ended for another reason.
Why: a break may occur anywhere, and all values in a frame must be carried over it.

A test is wrong if a comparison of plain and compiled runs fails, if tcompile itself fails (bugs raise under
``config.verify``), or if the process dies. Tests that count graphs, entries or breaks do not apply here: their failures
are reported as ``other``. ``fullgraph`` is off, and for odd k ``config.stress_capture`` is on.

    python tools/stress.py                                  every k from 1 to 20, all files
    python tools/stress.py --k 3 7 --programs 200 tests/capture/test_effects.py
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
FILES = (
    *(f"tests/capture/test_{name}.py" for name in (
        "arrays", "breaks", "classes", "cond", "containers", "control_flow", "control_functions", "control_marks",
        "control_policy", "control_reordered", "control_scalars", "effects", "functions", "globals", "library",
        "numbers", "objects", "opcodes", "resumed", "sets", "statements",
    )),
    "tests/runtime/test_cell.py", "tests/runtime/test_dispatch.py", "tests/runtime/test_follow.py",
    "tests/runtime/test_regions.py", "tests/test_callables.py", "tests/test_inputs.py",
    "tests/tutorials/test_introduction.py", "tests/tutorials/test_api_page.py",
)  # fmt: skip
GENERATED = "programs"
LONG = "5000 constants"  # a long function whose regions take many minutes
CRASHED = -1


def settings(k: int) -> dict[str, Any]:
    """Returns the configuration for one k."""
    return {"stress_breaks": k, "stress_capture": bool(k % 2), "verify": True}


def verdict(error: BaseException) -> str:
    """Returns ``wrong`` if an error is a difference or a failure of tcompile, else ``other``."""
    seen: BaseException | None = error
    while seen is not None:
        if _is_wrong(seen, [frame for frame, _ in traceback.walk_tb(seen.__traceback__)]):
            return "wrong"
        seen = seen.__cause__
    return "other"


def _is_wrong(error: BaseException, frames: list[Any]) -> bool:
    if not frames:
        return False
    last = frames[-1].f_code
    if isinstance(error, AssertionError) and any(
        Path(frame.f_code.co_filename).name == "differential.py" and "same" in frame.f_code.co_name for frame in frames
    ):
        return True
    ours = last.co_filename.startswith(str(ROOT / "tcompile"))
    return ours and type(error).__module__ not in ("tcompile.errors", "tcompile.config")


class Stress:
    """A pytest plugin: runs each test's function once for each k, and in no other way."""

    def __init__(self, ks: list[int], tell: Any) -> None:
        self.ks = ks
        self.tell = tell

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool:
        """Calls a test."""
        import tcompile

        names = pyfuncitem._fixtureinfo.argnames
        if "load_tool" in names or LONG in pyfuncitem.name:  # load_tool: pages and examples without comparisons
            return True
        for k in self.ks:
            self.tell(k, pyfuncitem.nodeid, "begun")
            tcompile.reset()
            arguments = {name: pyfuncitem.funcargs[name] for name in names}
            outcome, detail = "right", ""
            try:
                with tcompile.config.patch(**settings(k)):
                    pyfuncitem.obj(**arguments)
            except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                outcome, detail = verdict(error), detail_of(error)
            self.tell(k, pyfuncitem.nodeid, outcome, detail)
        tcompile.reset()
        return True


def detail_of(error: BaseException) -> str:
    """Returns the displayed text of an error."""
    return f"{type(error).__name__}: {error}"[:1500] + "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))


def comparisons_only() -> None:
    """Reduces the tests' helpers to their comparisons, for one backend; ``fullgraph`` is ignored."""
    import differential
    from capture import helpers

    import tcompile

    check, compile = differential.check, tcompile.compile

    def plainly(function: Any = None, **more: Any) -> Any:
        more.pop("fullgraph", None)
        more.pop("nopython", None)
        return compile(function, **more) if function is not None else compile(**more)

    def check_one(function: Any, make_args: Any, *, backends: Any = ("eager",), **more: Any) -> Any:
        more.pop("fullgraph", None)
        return check(function, make_args, backends=backends[:1], **more)

    def whole(f: Any, make_args: Any = helpers.x, ops: int | None = None, **more: Any) -> Any:
        return check_one(f, make_args, **more)[0]

    def broken(f: Any, make_args: Any, *_: Any) -> None:
        check_one(f, make_args)

    tcompile.compile = plainly
    differential.check = helpers.check = check_one
    helpers.whole, helpers.broken = whole, broken


def generated(k: int, seed: int) -> None:
    """Runs one random program. Raises if its runs differ."""
    from capture import language_check
    from capture.language_programs import program

    random = Random(seed)
    source = program(random)
    more = tuple((name, value) for name, value in settings(k).items() if name != "verify")
    try:
        language_check.compare(source, language_check.Plan(random.randrange(1 << 30), settings=more))
    except language_check.Difference as error:
        error.add_note(source)
        raise


def run_child(options: argparse.Namespace) -> int:
    """Runs one file's tests, or the generated programs; writes each outcome on a line of ``--log``."""
    with open(options.log, "w", buffering=1) as log:

        def tell(k: int, test: str, outcome: str, detail: str = "") -> None:
            log.write(json.dumps([k, test, outcome, detail]) + "\n")

        if options.child != GENERATED:
            comparisons_only()
            quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
            chosen = ["-k", options.only] if options.only else []
            pytest.main([*quiet, *chosen, str(ROOT / options.child)], plugins=[Stress(options.k, tell)])
            return 0
        for k in options.k:
            for seed in range(options.seed, options.seed + options.programs):
                name = f"{options.child} {seed}"
                tell(k, name, "begun")
                try:
                    generated(k, seed)
                except Exception as error:
                    tell(k, name, "wrong", detail_of(error))
                else:
                    tell(k, name, "right")
    return 0


def rows(work: str, options: argparse.Namespace) -> Iterator[tuple[int, str, str, str]]:
    """Runs a file or the generated programs in a process; returns k, test, outcome and detail of each."""
    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder, "log"), Path(folder, "out")
        command = [
            sys.executable, "-X", "faulthandler", __file__, "--child", work, "--log", str(log), "--seed",
            str(options.seed), "--programs", str(options.programs), "--only", options.only, "--k", *map(str, options.k),
        ]  # fmt: skip
        with out.open("wb") as text:
            try:
                status = subprocess.run(
                    command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=text, stderr=text, timeout=options.timeout
                ).returncode
            except subprocess.TimeoutExpired:
                status = CRASHED
        last = (0, work, "begun")
        for line in log.read_text().splitlines() if log.exists() else ():
            k, test, outcome, detail = json.loads(line)
            last = k, test, outcome
            if outcome != "begun":
                yield k, test, outcome, detail
        if status or last[2] == "begun":
            yield last[0], last[1], "wrong", f"exit status {status}\n{out.read_text(errors='replace')[-3000:]}"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", default=[*FILES, GENERATED], help="test files, `programs`")
    parser.add_argument("--k", type=int, nargs="+", default=list(range(1, 21)), help="1 to 20 by default")
    parser.add_argument("--only", default="", help="pytest's -k")
    parser.add_argument("--programs", type=int, default=100, help="generated, for each k")
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one file")
    parser.add_argument("--out", type=Path, help="where the JSON summary goes")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--log", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    """The command."""
    options = parser().parse_args()
    if options.child:
        return run_child(options)

    started = time.monotonic()
    counts = {k: Counter[str]() for k in options.k}
    wrong: list[dict[str, Any]] = []
    other: Counter[str] = Counter()
    for work in options.files:
        for k, test, outcome, detail in rows(work, options):
            counts.setdefault(k, Counter())[outcome] += 1
            if outcome == "wrong":
                wrong.append({"k": k, "test": test, "detail": detail})
                print(f"k={k} {test}: {detail}\n", flush=True)
            elif outcome == "other":
                other[f"{test}: {detail.partition(chr(10))[0][:120]}"] += 1
        done = sum(counts.values(), Counter[str]())
        print(f"# {work}: {dict(done)} so far, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    for k, found in counts.items():
        print(f"k={k:2}: {sum(found.values())} run, {found['wrong']} wrong, {found['other']} ended for other reasons")
    summary = {
        "python": platform.python_version(), "seed": options.seed, "programs": options.programs,
        "seconds": round(time.monotonic() - started, 1),
        "by k": {k: {"run": sum(c.values()), "wrong": c["wrong"], "other": c["other"]} for k, c in counts.items()},
        "wrong": wrong, "other": dict(other),
    }  # fmt: skip
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(summary, indent=1))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
