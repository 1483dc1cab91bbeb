"""Generated programs with loops, run plainly and compiled.

Input: a program's text and a ``Plan``.
Output: nothing, or ``Difference``.
Why: small loops become nodes, too, and run in machine code, so short programs show the faults of long ones.

Values, dtypes, strides, aliasing, errors with their texts, and the arguments after each call are compared.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import pickle
import platform
import types
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from unittest import mock

import numpy as np

import tcompile

from .language_check import Difference, TooLong, checks, shrink, time_limit
from .loop_programs import program

SECONDS, LONGEST = 5, 60  # for a plain run, and for a compiled one
FE_INEXACT = 0x10 if platform.machine() in ("aarch64", "arm64") else 0x20
libm = ctypes.CDLL("libm.so.6")
ITERATIONS = (7, 7, 0, 1, 2, 8, 6, 20)


@dataclass(frozen=True)
class Plan:
    """How a program is run: by which backend, and with these numbers one after the other."""

    backend: str
    numbers: tuple[int, ...]

    def simpler(self) -> Iterator[Plan]:
        """Plans with less in them."""
        yield Plan("eager", self.numbers)
        for number in self.numbers:
            yield Plan("eager", (number,))
            yield replace(self, numbers=(number,))

    @classmethod
    def random(cls, random: Random, backend: str | None = None, stress: bool = False) -> Plan:
        """Some plan; ``stress`` adds nothing to it."""
        return cls(backend or random.choice(("eager", "llvm")), tuple(random.sample(ITERATIONS, 4)))


class Box:
    """An object for attributes."""


def run(function: Any, n: int, names: dict[str, Any]) -> Any:
    """The result, or the error, and what became of all else that others see, with which of these are one memory."""
    outside = names["p"] = Box()
    names["t"] = None
    names["rg"], names["rs"] = np.random.default_rng(n), np.random.RandomState(n)
    a, b = np.arange(8.0) % 5 - 1, np.arange(8.0)[::-1] * 0.5
    try:
        with np.errstate(all="ignore"):
            result = function(a, b, n)
    except Exception as error:
        result = (type(error), str(error))
    flat = [a, b, *(x for item in vars(outside).items() for x in item), names["t"]]
    for item in result:
        flat += item if isinstance(item, tuple) else [len(item), *item] if isinstance(item, list) else [item]
    for state in (names["rg"].bit_generator.state, names["rs"].get_state(legacy=False)):
        flat.append(zlib.crc32(pickle.dumps(state)))
    arrays = [x for x in flat if isinstance(x, np.ndarray)]
    shared = [[np.shares_memory(x, y) for y in arrays] for x in arrays]
    return [picture(x) for x in flat], shared


def picture(x: Any) -> Any:
    """All that can be seen of a value."""
    if isinstance(x, np.ndarray):
        return type(x), x.dtype, x.shape, x.strides, x.flags.owndata, x.tolist()
    if isinstance(x, Box):
        return type(x), [(name, picture(value)) for name, value in vars(x).items()]
    return type(x), x


@contextlib.contextmanager
def all_loops() -> Iterator[None]:
    """However small a loop is, it becomes a node, and runs in machine code."""
    with (
        mock.patch("tcompile.capture.loops.whole_loop.FEW_ITERATIONS", 1),
        mock.patch("tcompile.capture.loops.trace_loop.FEW_OPERATIONS", 0),
        mock.patch("tcompile.capture.loops.trace_loop.MANY_ITERATIONS", 0),
        mock.patch("tcompile.backends.loop_runners.FEWEST", 1),
        tcompile.config.patch(verify=True),
    ):
        yield


def nodes_of(source: str, plan: Plan) -> int | None:
    """How many loops became nodes; None where the program takes too long. Raises Difference.

    Where the plain run has rounded, sums and dots in another order may end in other bits, and tests of them may go
    another way from there. Then what is computed in NumPy's order (``options={"exact": True}``) must be the same;
    Triton has no such option, and nothing is said of the program.
    """
    names: dict[str, Any] = {"np": np, "math": math, "Box": Box}
    exec(compile(source, "<loops>", "exec"), names)
    plain = names["f"]
    libm.feclearexcept(FE_INEXACT)
    try:
        with time_limit(SECONDS):
            wanted = [run(plain, n, names) for n in plan.numbers]
    except TooLong:
        return None
    rounded = bool(libm.fetestexcept(FE_INEXACT))

    def compiled(**more: Any) -> int:
        tcompile.reset()
        function = tcompile.compile(types.FunctionType(plain.__code__, names), backend=plan.backend, **more)
        for n, want in zip(plan.numbers, wanted, strict=True):
            got = run(function, n, names)
            if repr(got) != repr(want):
                raise Difference(f"n={n}: {got} instead of {want}")
        made = ("fori_loop", "exit_loop", "scalar_loop")
        return sum(node.op.name in made for graph in function.graphs for node in graph.nodes)

    try:
        with time_limit(LONGEST), all_loops():
            try:
                return compiled()
            except Difference:
                if not rounded:
                    raise
                return compiled(options={"exact": True}) if plan.backend != "triton" else None
    except TooLong as error:
        raise Difference(f"took more than {LONGEST} seconds") from error


def compare(source: str, plan: Plan) -> bool:
    """Runs a program both ways; False where it takes too long to be looked at. Raises Difference."""
    return nodes_of(source, plan) is not None


check, difference = checks(program, Plan.random, compare)

__all__ = ["Difference", "Plan", "check", "compare", "difference", "nodes_of", "program", "shrink"]
