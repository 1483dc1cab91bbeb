"""Programs that draw random numbers from a ``Generator`` of NumPy's: many at once, or in a loop.

Input: a generator and sizes.
Output: ``DRAWS``, a table of programs as that of ``programs.py``.
Why: NumPy's library does all the work here, so only the way a number is drawn makes a difference.
``benchmarks/against_numpy.py`` times them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.programs import Program


def random(rng, n):
    return rng.random(n)


def uniform(rng, n):
    return rng.uniform(-1.0, 2.0, n)


def standard_normal(rng, n):
    return rng.standard_normal(n)


def normal(rng, n):
    return rng.normal(1.0, 2.0, n)


def exponential(rng, n):
    return rng.exponential(2.0, n)


def integers(rng, n):
    return rng.integers(0, 1000, n)


def choice(rng, n):
    return rng.choice(np.arange(1000.0), n)


def bootstrap(rng, n):
    """How far the means of samples, drawn with replacement, lie apart."""
    x = rng.standard_normal(1000)
    means = np.empty(n // 1000)
    for i in range(len(means)):
        means[i] = rng.choice(x, size=len(x)).mean()
    return means.std()


def random_walk(rng, n):
    """Steps of -1, 0 or 1, one after the other, and how far they lead."""
    place, farthest = 0, 0
    for _ in range(n):
        place += int(rng.integers(-1, 2))
        farthest = max(farthest, abs(place))
    return place, farthest


def _program(function: Callable[..., object], about: str) -> Program:
    return Program(function.__name__, about, function, lambda n: (np.random.default_rng(0), n), 2000, 1_000_000, 64)


_TABLE = (
    _program(random, "from 0 to 1"), _program(uniform, "from -1 to 2"), _program(standard_normal, "around 0"),
    _program(normal, "with mean and spread"), _program(exponential, "with a scale"), _program(integers, "below 1000"),
    _program(choice, "of 1000 elements"), _program(bootstrap, "a thousand of a thousand elements, again and again"),
    _program(random_walk, "one number an iteration"),
)  # fmt: skip
DRAWS = {program.name: program for program in _TABLE}
