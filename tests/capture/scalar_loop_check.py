"""Generated scalar loops, run plainly and compiled.

Input: a program's text and a ``Plan``.
Output: nothing, or ``Difference``.
Why: values, dtypes, errors with their texts, warnings, and the arguments after each call must be plain Python's.
"""

from __future__ import annotations

import math
import random
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from unittest import mock

import numpy as np

import tcompile
from tcompile import polls
from tcompile.backends.llvm.scalar_loops import lower

from .language_check import Difference, TooLong, checks, shrink, time_limit
from .scalar_loop_programs import program

SECONDS, LONGEST = 5, 120  # for a plain run, and for a compiled one, which may look for changes at each iteration
SIZES = (8, 8, 5, 0, 9)


class Box:
    """An object whose attributes programs read and set."""

    def step(self, value: Any) -> Any:
        """Sets an attribute from another one."""
        self.level += 0.5 * (value - self.level)
        self.count += 1
        return self.level

    def reset(self, numbers: int) -> None:
        """The attributes as they are before a call."""
        self.level: Any = (0.5, 1, np.float64(0.25))[numbers % 3]
        self.best: Any = None if numbers % 5 else 2
        self.count = 0


BOX = Box()


@dataclass(frozen=True)
class Plan:
    """How a program is run: by which backend, with arrays of which numbers, for these sizes one after the other.

    ``late``: before an exception, a loop leaves for plain Python as if it had run for long.
    """

    backend: str
    numbers: int
    sizes: tuple[int, ...] = SIZES
    late: bool = False

    def simpler(self) -> Iterator[Plan]:
        """Plans with less in them."""
        yield replace(self, backend="eager")
        yield replace(self, late=False)
        for size in dict.fromkeys(self.sizes):
            yield replace(self, sizes=(size,))

    @classmethod
    def random(cls, random: Random, backend: str | None = None, stress: bool = False) -> Plan:
        """Some plan; ``stress`` adds nothing to it."""
        backend = backend or random.choice(("eager", "llvm", "llvm"))
        return cls(backend, random.randrange(1000), late=random.random() < 0.5)


@contextmanager
def late_loops() -> Iterator[None]:
    """A block in which every loop has run for long as soon as its second iteration begins."""
    with mock.patch.object(lower, "_BUDGET", 0), mock.patch.object(polls, "_INTERVAL", 0.0):
        yield


def run(function: Any, numbers: int, size: int) -> Any:
    """What a call returns or raises, warns, and leaves in its arguments."""
    rng = np.random.default_rng(numbers)
    a, b = rng.integers(-4, 9, 8) * 0.5, rng.integers(-3, 9, 8)
    w = "".join(rng.choice(list("abcde"), 8))[: max(size, 2)]
    m, q, h = rng.integers(-4, 9, (4, 5)) * 0.25, rng.random(8) < 0.5, rng.integers(-5, 5, 8).astype("int16")
    xs = [b.tolist(), a.tolist() * 3, [*a.tolist(), *rng.random(11).tolist()], (b * 3).tolist() * 3][numbers % 4]
    if numbers % 11 == 0:
        xs *= 60
    if numbers % 7 == 0:
        xs[-1] = 3 if isinstance(xs[-1], float) else 2.5
    random.seed(numbers)
    BOX.reset(numbers)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(a, b, m, q, h, size, w, xs)
        except Exception as error:
            result = type(error), str(error)
    told = sorted({str(w.message) for w in caught if w.category is RuntimeWarning})
    return [picture(x) for x in (result, a, b, m, q, h, xs, random.getstate(), (BOX.level, BOX.best, BOX.count))], told


def picture(x: Any) -> Any:
    """All that can be seen of a value."""
    if isinstance(x, tuple):
        return [picture(item) for item in x]
    if isinstance(x, np.ndarray):
        if x.dtype.kind == "f":  # whatever the sign of a NaN
            x = np.where(np.isnan(x), x.dtype.type(np.nan), x)
        return x.dtype, x.shape, x.tobytes()
    return type(x), hex(x) if type(x) is int else repr(x)  # of many digits Python makes no text


def nodes_of(source: str, plan: Plan) -> int | None:
    """How many loops became nodes; None where the program takes too long. Raises Difference."""
    names: dict[str, Any] = {"np": np, "math": math, "random": random, "gauss": random.gauss, "box": BOX}
    exec(compile(source, "<elements>", "exec"), names)
    plain = names["f"]
    calls = [(plan.numbers + number, size) for number, size in enumerate(plan.sizes)]
    try:
        with time_limit(SECONDS):
            wanted = [run(plain, *call) for call in calls]
    except TooLong:
        return None
    tcompile.reset()
    compiled = tcompile.compile(types.FunctionType(plain.__code__, names), backend=plan.backend)
    try:
        with time_limit(LONGEST), tcompile.config.patch(verify=True), late_loops() if plan.late else nullcontext():
            for call, want in zip(calls, wanted, strict=True):
                got = run(compiled, *call)
                if got != want:
                    raise Difference(f"size={call[1]}: {got} instead of {want}")
    except TooLong as error:
        raise Difference(f"took more than {LONGEST} seconds") from error
    return sum(node.op.name == "scalar_loop" for graph in compiled.graphs for node in graph.nodes)


def compare(source: str, plan: Plan) -> bool:
    """Runs a program both ways; False where it takes too long to be looked at. Raises Difference."""
    return nodes_of(source, plan) is not None


check, difference = checks(program, Plan.random, compare)

__all__ = ["Difference", "Plan", "check", "compare", "difference", "nodes_of", "program", "shrink"]
