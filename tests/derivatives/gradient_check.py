"""Gradients of generated programs, beside finite differences and beside forward mode.

Input: a program's text and a ``Plan``.
Output: nothing, or ``Difference``.
Why: hand-written tests miss combinations. The programs are those of the generators for NumPy, loops, loops over
elements, and loops over matrices: views, writes, masks, branches, library calls, memory orders.

A program computes a number: the sum of its results' elements times fixed weights. A gradient is compared along one
direction. Where finite differences with two steps disagree, the program has a step or a kink near its arguments, and
only forward and reverse mode are compared. A program that has no derivative is passed over.
"""

from __future__ import annotations

import collections
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from capture import loop_programs, scalar_loop_check
from capture.language_check import Difference, TooLong, shrink, time_limit
from derivatives import matrix_programs
from frontends import numpy_programs

import tcompile
from tcompile.errors import DerivativeError

LONGEST = 60  # seconds for a program
STEPS = (1e-4, 1e-5, 1e-6)
AGREE = 1e-3  # relative difference of two finite differences that are taken for a derivative
NEAR = 1e-2  # relative difference of a gradient and finite differences that is an error
GENERATORS: dict[str, Callable[[Random], str]] = {
    "numpy": numpy_programs.program, "loops": loop_programs.program, "elements": scalar_loop_check.program,
    "matrices": matrix_programs.program,
}  # fmt: skip
LARGEST = 1e7  # of a value: differences of a larger one have no digits
PASSED_OVER: collections.Counter[str] = collections.Counter()


@dataclass(frozen=True)
class Plan:
    """How a program is run: the seed of its arguments, and whether under the stance ``force_eager``."""

    seed: int
    plain: bool = False

    def simpler(self) -> Iterator[Plan]:
        """The same under the other stance."""
        yield replace(self, plain=True)

    @classmethod
    def random(cls, random: Random, backend: str | None = None, stress: bool = False) -> Plan:
        """Some plan; ``backend`` and ``stress`` add nothing to it."""
        return cls(random.randrange(1 << 30), random.random() < 0.1)


def assert_modes_agree(function: Callable[..., Any], x: np.ndarray[Any, Any]) -> None:
    """Compares forward mode, reverse mode and the plain function at ``x``."""
    value, tangent = tcompile.jvp(function, (x,), (np.cos(x),))
    gradient = tcompile.grad(function)(x)
    np.testing.assert_allclose(value, function(x), rtol=1e-12)
    np.testing.assert_allclose(tangent, gradient @ np.cos(x), rtol=1e-9)
    np.testing.assert_allclose(tcompile.jacfwd(function)(x), gradient, rtol=1e-9, atol=1e-12)


def kind_of(source: str) -> str:
    """The generator that a program is from."""
    if "def inputs(" in source:
        return "numpy"
    return "loops" if "def f(a, b, n):" in source else "matrices" if "def f(x, w):" in source else "elements"


def program(random: Random) -> str:
    """A program, whose first line tells its generator."""
    return GENERATORS[random.choice(list(GENERATORS))](random)


def arguments(source: str, names: dict[str, Any], seed: int) -> list[Any]:
    """The arguments of a program: floats of 64 bits where they are floats, in Fortran order in half of the cases."""
    made = _in_c_order(source, names, np.random.default_rng(seed))
    if seed % 2:
        return [np.asfortranarray(x) if isinstance(x, np.ndarray) and x.ndim > 1 else x for x in made]
    return made


def _in_c_order(source: str, names: dict[str, Any], random: np.random.Generator) -> list[Any]:
    kind = kind_of(source)
    if kind == "numpy":
        with np.errstate(all="ignore"):
            return [_wide(arg, random) for arg in names["inputs"](0)]
    if kind == "loops":
        return [random.standard_normal(8), random.standard_normal(8), int(random.integers(0, 9))]
    if kind == "matrices":
        return [0.7 * random.standard_normal((3, 3)), np.asfortranarray(0.4 * random.standard_normal((3, 3)))]
    text = "".join(random.choice(list("abcde"), 8))
    return [
        random.standard_normal(8), random.integers(-3, 9, 8), random.standard_normal((4, 5)), random.random(8) < 0.5,
        random.integers(-5, 5, 8).astype("int16"), 8, text, random.standard_normal(20).tolist(),
    ]  # fmt: skip


def _wide(arg: Any, random: np.random.Generator) -> Any:
    if isinstance(arg, np.ndarray) and arg.dtype.kind == "f":
        return np.where(np.isfinite(arg), arg, 0.5).astype(np.float64) + 0.01 * random.standard_normal(arg.shape)
    if isinstance(arg, float | np.floating):
        return float(arg) + 0.01 * float(random.standard_normal())
    return arg


def numbers_in(value: Any) -> Iterator[Any]:
    """The floats and arrays of floats in a result."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        yield value
    elif isinstance(value, np.complexfloating) or (isinstance(value, np.ndarray) and value.dtype.kind == "c"):
        yield value.real
        yield value.imag


def total_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A program's results as one number."""

    def total(*args: Any) -> Any:
        sum_ = 0.0
        for value in numbers_in(function(*args)):
            weights = np.cos(np.arange(np.size(value)).reshape(np.shape(value)) + 1.0)
            sum_ = sum_ + np.sum(value * weights)
        return sum_

    return total


def difference(source: str, plan: Plan) -> str | None:
    """What is wrong with a program's gradient; None where nothing is, or it has none."""
    names: dict[str, Any] = {"np": np, "math": math, "Box": type("Box", (), {})}
    try:
        if kind_of(source) == "numpy":
            names = numpy_programs.namespace(source)
        else:
            exec(compile(source, "<gradient>", "exec"), names)
        with warnings.catch_warnings(), np.errstate(all="ignore"), time_limit(LONGEST):
            warnings.simplefilter("ignore")
            try:
                args = arguments(source, names, plan.seed)
                total = total_of(names["f"])
            except Exception:  # a shortened program lacks something
                return None
            return _difference(source, plan, names, args, total)
    except TooLong:
        PASSED_OVER["too long"] += 1
        return None


def _moved(x: Any, by: Any) -> Any:
    """The sum, in the memory order of ``x``: whether ``reshape`` gives a view depends on it."""
    return np.asfortranarray(x + by) if isinstance(x, np.ndarray) and np.isfortran(x) else x + by


def _difference(
    source: str, plan: Plan, names: dict[str, Any], args: list[Any], total: Callable[..., Any]
) -> str | None:
    which = tuple(i for i, arg in enumerate(args) if isinstance(arg, float) or _is_float(arg))
    if not which:
        return None

    def renewed() -> None:
        """Gives the program's globals their first values."""
        if kind_of(source) == "loops":
            names["p"], names["t"] = names["Box"](), None
            names["rg"], names["rs"] = np.random.default_rng(3), np.random.RandomState(3)

    def run(*floats: Any) -> Any:
        given = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        for i, value in zip(which, floats, strict=True):
            given[i] = value * 1.0
        return total(*given)

    floats = [args[i] for i in which]
    random = np.random.default_rng(plan.seed + 1)
    along = [random.standard_normal(np.shape(x)) if np.ndim(x) else float(random.standard_normal()) for x in floats]
    if any(np.any((x + STEPS[0] * d == x) & (d != 0)) for x, d in zip(floats, along, strict=True)):
        PASSED_OVER["too large for a step"] += 1
        return None
    try:
        renewed()
        value = float(run(*floats))
        slopes = []
        for step in STEPS:
            more, less = ([_moved(x, s * d) for x, d in zip(floats, along, strict=True)] for s in (step, -step))
            ends = []
            for end in (more, less):
                renewed()
                ends.append(float(run(*end)))
            slopes.append((ends[0] - ends[1]) / (2 * step))
    except Exception as error:
        PASSED_OVER[type(error).__name__] += 1
        return None
    if not np.isfinite(value) or not np.all(np.isfinite(slopes)) or abs(value) > LARGEST:
        PASSED_OVER["not finite"] += 1
        return None
    stance = "force_eager" if plan.plain else "default"
    tcompile.reset()  # all programs run in one function, whose code counts compiles
    with tcompile.set_stance(stance):
        try:
            renewed()
            gradients = tcompile.grad(run, tuple(range(len(floats))))(*floats)
            renewed()
            forward = tcompile.jvp(run, tuple(floats), tuple(along))[1]
        except DerivativeError as error:
            if "internal-error" in str(error):
                return str(error)
            PASSED_OVER[str(error).replace("\n", " ")[:160]] += 1
            return None
    found = sum(float(np.sum(g * d)) for g, d in zip(gradients, along, strict=True))
    pushed = float(np.sum(forward))
    if np.isnan(found) or np.isnan(pushed):  # infinities times zero: of elements that do not count, say
        PASSED_OVER["nan"] += 1
        return None
    if not _close(found, pushed, 1e-6):
        return f"reverse mode gives {found!r}, forward mode {pushed!r}, differences {slopes}"
    good = [b for a, b in itertools.pairwise(slopes) if _close(a, b, AGREE)]
    if not good:
        PASSED_OVER["no derivative by differences"] += 1
        return None
    if not any(_close(found, slope, NEAR) for slope in slopes):
        return f"the gradient is {found!r} along a direction, differences {slopes}"
    PASSED_OVER["checked"] += 1
    return None


def _is_float(arg: Any) -> bool:
    return isinstance(arg, np.ndarray) and arg.dtype == np.float64


def _close(a: float, b: float, tolerance: float) -> bool:
    return abs(a - b) <= tolerance * max(1.0, abs(a), abs(b))


def check(seed: int, backend: str | None = None, stress: bool = False) -> bool:
    """Raises Difference for a program whose gradient is wrong; whether it was compared."""
    random = Random(seed)
    source = program(random)
    found = difference(source, Plan.random(random, backend, stress))
    if found is not None:
        raise Difference(found)
    return True


__all__ = ["Plan", "assert_modes_agree", "check", "difference", "program", "shrink"]
