"""Interrupts compilation at random moments, as Ctrl-C does, and checks that everything stays usable and right.

Input: a number of tries and a seed.
Output: counts of interrupted compiles, as text and as JSON; the exit status is 0 if every check held.
Why: an interrupt may come between any two lines. A short run is among the tests; the long one is run by hand:

    python tools/interrupt_check.py --tries 1000 --json interrupts.json
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tcompile
from tcompile.observe import bus
from tcompile.stance import DEFAULT, current

X = np.linspace(-1.0, 1.0, 24).reshape(4, 6)
PROGRAMS = {
    "whole": """\
def f(x):
    y = np.maximum(x * {n} + 1, 0) - x
    return (y / (1 + np.abs(y))).sum(axis=0)
""",
    "called": """\
def inner(x, k):
    return np.where(x > 0, x * k, x / {n})

def f(x):
    return sum([inner(x, k) for k in range(1, 6)])
""",
    "broken": """\
log = []

def f(x):
    y = x * {n}
    log.append(1)
    if y.sum() > -1e9:
        y = y + 1
    np.random.seed(0)
    return np.exp(y).mean()
""",
    "mutating": """\
def f(x):
    total = x * 0
    items = []
    for k in range(8):
        items.append(x + k)
        total = total + items[-1] * {n}
    return total.T
""",
}


def fresh(name: str, number: int) -> Callable[[Any], Any]:
    """Returns a new function, for which nothing has been compiled."""
    names: dict[str, Any] = {"np": np}
    exec(compile(PROGRAMS[name].replace("{n}", str(2 + number % 7)), f"<{name} {number}>", "exec"), names)
    function: Callable[[Any], Any] = names["f"]
    return function


def attempt(name: str, backend: str, number: int, after: float) -> bool:
    """Runs one compile, interrupted after so many seconds. Returns whether it was in time; raises if a check fails."""
    function = fresh(name, number)
    wanted = function(X.copy())
    compiled = tcompile.compile(function, backend=backend)
    interrupted = False
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        compiled(X.copy())
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    check(compiled, wanted)
    # Another thread finds all locks free, and can compile.
    found: list[BaseException] = []
    thread = threading.Thread(target=_collecting(found, lambda: check(compiled, wanted)), daemon=True)
    thread.start()
    thread.join(30)
    if thread.is_alive():
        raise AssertionError("another thread waits for a lock that the interrupted compile holds")
    if found:
        raise found[0]
    return interrupted


def check(compiled: Any, wanted: Any) -> None:
    """Raises AssertionError if a compiled function, or the state around it, is damaged."""
    for _ in range(2):
        got = compiled(X.copy())
        assert type(got) is type(wanted) and got.dtype == wanted.dtype, f"{type(got)} {got!r}"
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    assert current() is DEFAULT
    assert not bus.active(), "a listener was left behind"
    assert not tcompile.is_compiling()


def _collecting(found: list[BaseException], run: Callable[[], None]) -> Callable[[], None]:
    def work() -> None:
        try:
            run()
        except BaseException as error:
            found.append(error)

    return work


def typical_seconds(name: str, backend: str) -> float:
    """Returns the duration of a compile on this machine."""
    times = []
    for number in range(3):
        compiled = tcompile.compile(fresh(name, -1 - number), backend=backend)
        started = time.perf_counter()
        compiled(X.copy())
        times.append(time.perf_counter() - started)
    return min(times)


def run(tries: int, seed: int, backends: tuple[str, ...] = ("eager", "llvm")) -> dict[str, Any]:
    """Returns the outcome of ``tries`` interrupted compiles: counts, and failures with the number of their try."""
    chance = random.Random(seed)
    kinds = [(name, backend) for name in PROGRAMS for backend in backends]
    seconds = {kind: typical_seconds(*kind) for kind in kinds}
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupted, failures = 0, []
    try:
        for number in range(tries):
            kind = kinds[number % len(kinds)]
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # a bug of tcompile's is a warning
                    interrupted += attempt(*kind, number, chance.uniform(1e-5, seconds[kind] * 1.2))
            except Exception as error:
                failures.append({"try": number, "program": kind[0], "backend": kind[1], "error": repr(error)[:500]})
            if number % 100 == 99:
                tcompile.reset()
    finally:
        signal.signal(signal.SIGALRM, before)
    return {
        "tries": tries, "interrupted": interrupted, "failures": failures, "seed": seed,
        "python": platform.python_version(), "machine": platform.machine(),
    }  # fmt: skip


def main() -> int:
    """Runs as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tries", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = run(given.tries, given.seed)
    text = json.dumps(result, indent=1)
    if given.json:
        given.json.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
