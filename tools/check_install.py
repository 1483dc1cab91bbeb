"""Runs a few programs with the installed tcompile, compiled and plain, and compares.

Input: nothing.
Output: a line with the programs, and whether machine code was made. The exit status is 1 if an answer differs, or if
expected machine code was not made.
Why: continuous integration checks the wheel on systems on which most tests cannot run.

    python tools/check_install.py
"""

from __future__ import annotations

import platform
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tcompile
from tcompile.backends import why_no_native

SOURCES = Path(__file__).resolve().parent.parent


def pointwise(x: Any) -> Any:
    """Fused operations."""
    return np.maximum(np.exp(-x * x) + 1, x) * 2


def reduced(x: Any) -> Any:
    """A reduction, and what depends on it."""
    return (x - x.mean(axis=0)) / x.std(axis=0)


def looped(x: Any) -> Any:
    """A scalar loop."""
    total = 0.0
    for i in range(len(x)):
        if x[i, 0] > 0.5:
            total += x[i, 0] * i
    return total


def broken(x: Any) -> Any:
    """A graph break in the middle."""
    y = np.sqrt(np.abs(x))
    if y.mean() > 0.5:
        y = y + 1
    return y.sum(axis=1)


def raising(x: Any) -> Any:
    """An error of NumPy's own."""
    return x + np.ones(x.shape[0] + 1)


PROGRAMS = pointwise, reduced, looped, broken, raising


def outcome(function: Callable[[Any], Any], x: Any) -> tuple[str, Any]:
    """Returns a call's result or exception."""
    try:
        return "returned", function(x)
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"


def same(plain: tuple[str, Any], compiled: tuple[str, Any]) -> bool:
    """Whether two outcomes are equal, up to rounding."""
    if plain[0] != compiled[0] or plain[0] == "raised":
        return plain == compiled
    a, b = np.asarray(plain[1]), np.asarray(compiled[1])
    return a.dtype == b.dtype and a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-12, atol=1e-12))


def main() -> int:
    """The command; returns its exit status."""
    if Path(tcompile.__file__).resolve().is_relative_to(SOURCES / "tcompile"):
        print("what is imported are the sources: install the wheel, and move them away")
        return 1
    wrong, graphs = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without machine code, one warning says so
        for function in PROGRAMS:
            compiled = tcompile.compile(function)
            for rows in (3, 3, 40, 1000):  # twice the same: the second call runs the code compiled by the first
                x = np.random.default_rng(rows).random((rows, 4))
                if not same(outcome(function, x), outcome(compiled, x)):
                    wrong.append(f"{function.__name__} with {rows} rows")
            graphs += len(compiled.graphs)
    where = f"Python {platform.python_version()}, NumPy {np.__version__}, {sys.platform} on {platform.machine()}"
    code = why_no_native() or f"{graphs} graphs in machine code"
    print(f"tcompile {tcompile.__version__}, {where}: {len(PROGRAMS)} programs; {code}")
    for name in wrong:
        print(f"DIFFERENT: {name}")
    return int(bool(wrong) or (not graphs and why_no_native() is None))


if __name__ == "__main__":
    sys.exit(main())
