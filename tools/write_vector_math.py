"""Writes docs/vector_math.md: the error and the speed of vector functions, tcompile's beside NumPy's.

Input: this machine.
Output: the page: for each function and dtype, the largest error in units in the last place over arguments of every
size. And nanoseconds per element on one thread, on an array that fits the second-level cache; the minimum of many
repetitions.
Why: docs/numerics.md promises errors. The references are the same functions in extended precision.

    python tools/write_vector_math.py [--page PAGE] [--names exp,log] [--seconds 0.1]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).resolve().parent.parent / "docs" / "vector_math.md"
# The function in NumPy, and its ordinary range, in which it is timed.
ONE: dict[str, tuple[str, float, float]] = {
    "exp": ("exp", -80, 80), "exp2": ("exp2", -100, 100), "expm1": ("expm1", -20, 80), "log": ("log", 1e-3, 1e3),
    "log2": ("log2", 1e-3, 1e3), "log10": ("log10", 1e-3, 1e3), "log1p": ("log1p", -0.99, 100), "sin": ("sin", -30, 30),
    "cos": ("cos", -30, 30), "tan": ("tan", -30, 30), "asin": ("arcsin", -1, 1), "acos": ("arccos", -1, 1),
    "atan": ("arctan", -30, 30), "sinh": ("sinh", -80, 80), "cosh": ("cosh", -80, 80), "tanh": ("tanh", -3, 3),
    "asinh": ("arcsinh", -30, 30), "acosh": ("arccosh", 1, 1e4), "atanh": ("arctanh", -0.99, 0.99),
    "cbrt": ("cbrt", -30, 30), "sqrt": ("sqrt", 0, 1e3),
}  # fmt: skip
TWO: dict[str, tuple[str, float, float]] = {
    "pow": ("power", 0.1, 10), "atan2": ("arctan2", -30, 30), "hypot": ("hypot", -30, 30),
    "logaddexp": ("logaddexp", 1, 30),
}  # fmt: skip
DTYPES = ("float32", "float64")
COUNT = 16_384
INTRODUCTION = """# Vector functions: error and speed

Written by `tools/write_vector_math.py`. The largest error is in units in the last place (ULP), of {samples} arguments:
of every size, with denormal ones, near zeros and poles, and in the ordinary range; the reference is computed in
extended precision. Nanoseconds are those of one element of {count} in the ordinary range, on one thread.
[Numerics](numerics.md) says which errors are promised.

{machine} · NumPy {numpy}
"""


def arguments(name: str, dtype: str, arity: int) -> list[np.ndarray]:
    """Returns the arguments for measuring the error."""
    rng = np.random.default_rng(7)
    _, low, high = {**ONE, **TWO}[name]
    bits = f"uint{np.dtype(dtype).itemsize * 8}"
    found = []
    for number in range(arity):
        anything = rng.integers(0, np.iinfo(bits).max, 60_000, dtype=bits).view(dtype)
        near = [np.arange(-999, 999) * 0.5, np.arange(-999, 999) * np.pi / 4, 1 + np.arange(-99, 99) * 1e-7]
        parts = [anything, rng.uniform(low, high, 60_000), rng.uniform(-1, 1, 20_000), *near]
        with np.errstate(all="ignore"):
            joined = np.concatenate([part.astype(dtype) for part in parts])
        if name == "logaddexp":  # relative to results beyond one: near zero the sum cancels
            joined = rng.uniform(low, high, joined.size).astype(dtype)
        found.append(rng.permutation(joined) if number else joined)
    return found


def error(got: np.ndarray, exact: np.ndarray) -> float:
    """Returns the largest error in ULP over finite results."""
    with np.errstate(all="ignore"):
        unit = np.spacing(np.abs(exact).astype(got.dtype)).astype(np.longdouble)
        found = np.abs(got - exact) / unit
    known = np.isfinite(found) & np.isfinite(got)
    return float(found[known].max())


def measure(name: str, dtype: str, seconds: float) -> list[float]:
    """Returns the errors of NumPy and of tcompile in ULP, and their ns per element."""
    import tcompile

    arity = 1 if name in ONE else 2
    called, low, high = {**ONE, **TWO}[name]
    function: Callable[..., Any] = getattr(np, called)
    compiled = tcompile.compile(_wrapped(called, arity), dynamic=False)
    given = arguments(name, dtype, arity)
    with np.errstate(all="ignore"):
        exact = function(*(x.astype(np.longdouble) for x in given))
        errors = [error(run(*given), exact) for run in (function, compiled)]
    rng = np.random.default_rng(1)
    usual = [rng.uniform(low, high, COUNT).astype(dtype) for _ in range(arity)]
    turns = [_turn(run, usual) for run in (function, compiled)]
    until, times = time.perf_counter() + seconds, [[turn()] for turn in turns]
    while time.perf_counter() < until:
        for turn, found in zip(turns, times, strict=True):
            found.append(turn())
    return [*errors, *(min(found) for found in times)]


def _wrapped(called: str, arity: int) -> Callable[..., Any]:
    """Wraps a NumPy function in a Python function."""
    names = ", ".join("xy"[:arity])
    scope: dict[str, Any] = {"np": np}
    exec(f"def function({names}):\n    return np.{called}({names})", scope)
    made: Callable[..., Any] = scope["function"]
    return made


def _turn(run: Callable[..., Any], given: Sequence[np.ndarray]) -> Callable[[], float]:
    """Returns the ns per element of twenty calls."""

    def turn() -> float:
        start = time.thread_time()
        for _ in range(20):
            run(*given)
        return (time.thread_time() - start) / 20 / COUNT * 1e9

    for _ in range(3):
        run(*given)
    return turn


def page(names: Sequence[str], seconds: float) -> str:
    """The page's text."""
    samples = f"{len(arguments('exp', 'float32', 1)[0]):,}"
    text = INTRODUCTION.format(samples=samples, count=f"{COUNT:,}", machine=_machine(), numpy=np.__version__)
    lines = [text]
    for dtype in DTYPES:
        lines += [f"## {dtype}", "", "| | ULP, NumPy | ULP, tcompile | ns, NumPy | ns, tcompile | times faster |",
                  "|---|---:|---:|---:|---:|---:|"]  # fmt: skip
        for name in names:
            ulp_numpy, ulp_ours, ns_numpy, ns_ours = measure(name, dtype, seconds)
            shown = [f"{ulp_numpy:.2f}", f"{ulp_ours:.2f}", f"{ns_numpy:.3f}", f"{ns_ours:.3f}"]
            lines.append(f"| `np.{ {**ONE, **TWO}[name][0] }` | {' | '.join(shown)} | {ns_numpy / ns_ours:.2f} |")
            print(f"{dtype} {name}: {', '.join(shown)}", file=sys.stderr, flush=True)
        lines.append("")
    return "\n".join(lines)


def _machine() -> str:
    found = platform.processor() or platform.machine()
    details = Path("/proc/cpuinfo")
    if details.exists():
        fields = [line.partition(":") for line in details.read_text(encoding="utf-8").splitlines()]
        found = next((value.strip() for key, _, value in fields if key.strip() == "model name"), found)
    return f"{found}, {' '.join(platform.libc_ver())}"


def main(given: Sequence[str] | None = None) -> int:
    """Writes the page."""
    parser = argparse.ArgumentParser(description="Write docs/vector_math.md.")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--names", default=",".join([*ONE, *TWO]), help="functions, separated by commas")
    parser.add_argument("--seconds", type=float, default=0.25, help="of timing for each function and dtype")
    options = parser.parse_args(given)
    os.environ["TCOMPILE_NUM_THREADS"] = "1"
    options.page.write_text(page(options.names.split(","), options.seconds), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
