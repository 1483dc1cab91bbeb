"""Measures the same work in plain Python and compiled.

Input: two ways to do the same work, or a function with its arguments.
Output: a ``Measured`` after each repeat, with the times so far, their medians and confidence intervals.
Why: a table, a sentence and a plot all measure in this one way:

- the results of both are compared before anything is timed;
- the first runs warm up: they compile, and fill caches and pools;
- plain and compiled runs alternate, so that changes of the machine's speed affect both alike;
- short work is repeated for one sample, so that the clock's own cost does not count;
- it continues until both medians are known to within a tolerance, at a stated confidence, or the budget is spent.

The confidence interval of a median comes from the order of the samples alone, without assumptions on their
distribution. The k-th smallest and the k-th largest of n samples enclose the median with the probability 1 - 2 P(B <
k), B binomial of n and 1/2 (H. A. David and H. N. Nagaraja, Order Statistics, 7.1).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tcompile import api
from tcompile.debug.copying import copied
from tcompile.debug.differences import Difference, difference
from tcompile.records import dataclass
from tcompile.runtime.dispatch import parts_of
from tcompile.stance import set_stance
from tcompile_jupyter.status import is_compiled

Run = Callable[[int], tuple[float, Any]]
"""Repeats the work. Returns the seconds of one repetition, and the last result."""

REPEATS = range(6, 201)
"""The fewest and the most samples of each kind. Six are the fewest that enclose a median with 95% confidence."""

CONFIDENCE = 0.95
TOLERANCE = 0.05
_SAMPLE = 2e-4  # minimum seconds of a sample, if the work may be repeated
_MOST_CALLS = 10_000
_WARM_UPS = 3  # after the first run: the second size compiles anew, and the second hit moves into machine code


@dataclass(frozen=True)
class Sample:
    """Times of one kind of run, in milliseconds, in order."""

    ms: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        """The median; NaN without samples."""
        return statistics.median(self.ms) if self.ms else math.nan

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Returns the confidence interval of the median; infinite with too few samples.

        >>> Sample((3.0, 1.0, 2.0, 5.0, 4.0, 6.0)).interval()
        (1.0, 6.0)
        >>> Sample((3.0, 1.0)).interval()
        (-inf, inf)
        """
        n = len(self.ms)
        missed, rank = 0.0, 0
        while rank < n / 2:
            missed += math.comb(n, rank) / 2**n
            if 2 * missed > 1 - confidence:
                break
            rank += 1
        ordered = sorted(self.ms)
        return (ordered[rank - 1], ordered[n - rank]) if rank else (-math.inf, math.inf)

    def spread(self) -> tuple[float, float]:
        """Returns the lower and upper quartile.

        >>> Sample((1.0, 2.0, 3.0, 4.0, 5.0)).spread()
        (2.0, 4.0)
        """
        if len(self.ms) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.ms, n=4, method="inclusive")
        return low, high

    def uncertainty(self, confidence: float = CONFIDENCE) -> float:
        """Returns the relative error of the median."""
        low, high = self.interval(confidence)
        median = self.median
        return max(high - median, median - low) / median if median else math.inf


@dataclass(frozen=True)
class Measured:
    """The results after some repeats. ``done``: the measurement has ended."""

    eager: Sample
    compiled: Sample
    difference: Difference
    done: bool = False

    @property
    def repeats(self) -> int:
        """The number of samples of each kind."""
        return len(self.eager.ms)

    @property
    def speed_up(self) -> float:
        """How many times faster compiled code is, by the medians."""
        return self.eager.median / self.compiled.median if self.compiled.median else math.inf

    @property
    def uncertainty(self) -> float:
        """Returns the larger relative error of the two medians."""
        return max(self.eager.uncertainty(), self.compiled.uncertainty())

    @property
    def sure(self) -> bool:
        """Whether one of the two is faster with 95% confidence: their intervals are disjoint."""
        (low, high), (other_low, other_high) = self.eager.interval(), self.compiled.interval()
        return high < other_low or other_high < low

    def progress(self, tolerance: float = TOLERANCE) -> float:
        """Returns the progress from 0 to 1, if the time allows: errors shrink with the root of the count."""
        if self.done:
            return 1.0
        return min(0.99, (tolerance / self.uncertainty) ** 2) if self.uncertainty else 0.99


def measure(
    eager: Run,
    compiled: Run,
    *,
    budget: float = 1.0,
    tolerance: float = TOLERANCE,
    repeat: bool = True,
    after_first: Callable[[], Difference] = Difference,
) -> Iterator[Measured]:
    """Compares the results of both, then times them alternately, and yields the results after each repeat.

    It ends when both medians are known to within ``tolerance`` with 95% confidence, or when ``budget`` seconds are
    spent. It also ends when the caller stops iterating; at least the minimum of repeats is run. ``repeat``: short work
    may be repeated for one sample. ``after_first`` adds a difference once both have run.

    >>> def quick(calls):
    ...     return 1e-3, "the same"
    >>> list(measure(quick, quick))[-1].speed_up
    1.0
    """
    plain_result, compiled_result = eager(1)[1], compiled(1)[1]
    apart = difference(plain_result, compiled_result) | after_first()
    del plain_result, compiled_result
    calls = (_warmed(eager), _warmed(compiled)) if repeat else (1, 1)
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + budget
    while True:
        times[0].append(eager(calls[0])[0] * 1e3)
        times[1].append(compiled(calls[1])[0] * 1e3)
        known = Measured(Sample(tuple(times[0])), Sample(tuple(times[1])), apart)
        enough = known.repeats >= REPEATS[0] and (
            known.uncertainty <= tolerance or known.repeats >= REPEATS[-1] or time.perf_counter() > end
        )
        yield known if not enough else Measured(known.eager, known.compiled, apart, done=True)
        if enough:
            return


def _warmed(run: Run) -> int:
    """Warms ``run`` up. Returns the number of calls in a sample."""
    seconds = run(1)[0]
    for _ in range(_WARM_UPS - 1):
        if seconds > 0.05:  # work this long needs no more warming up
            break
        seconds = run(1)[0]
    return max(1, min(_MOST_CALLS, math.ceil(_SAMPLE / seconds))) if seconds > 0 else _MOST_CALLS


@dataclass(frozen=True)
class Pair:
    """A call in plain Python and compiled, each on its own arguments."""

    name: str
    eager: Run
    compiled: Run
    arguments: Callable[[], Difference]  # their difference so far
    function: Any  # the compiled function

    @classmethod
    def of(cls, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], **settings: Any) -> Pair:
        """Returns the plain and the compiled call of ``function``, which is compiled with ``settings`` unless it is
        already.

        The arguments are copied, once for each.
        """
        plain: Callable[..., Any] = parts_of(function)[0] if is_compiled(function) else function
        compiled = api.compile(function, **settings) if settings or plain is function else function
        work = copied((tuple(args), kwargs)), copied((tuple(args), kwargs))

        def eager_run(calls: int) -> tuple[float, Any]:
            with set_stance.block("force_eager"):
                return timed(plain, work[0], calls)

        def compiled_run(calls: int) -> tuple[float, Any]:
            return timed(compiled, work[1], calls)

        def arguments() -> Difference:
            return difference(work[0], work[1], "the arguments")

        return cls(getattr(plain, "__name__", repr(plain)), eager_run, compiled_run, arguments, compiled)

    def measure(self, budget: float, tolerance: float = TOLERANCE) -> Iterator[Measured]:
        """Measures the two; see the function ``measure``."""
        return measure(self.eager, self.compiled, budget=budget, tolerance=tolerance, after_first=self.arguments)


def crossings(sizes: Sequence[float], speed_ups: Sequence[float]) -> list[float]:
    """Returns the sizes at which the speed-up passes 1, interpolated on a log-log plot.

    >>> crossings([1, 100], [0.1, 10.0])
    [10.0]
    >>> crossings([1, 10, 100], [2.0, 3.0, 4.0])
    []
    """
    points = sorted((size, speed) for size, speed in zip(sizes, speed_ups, strict=True) if 0 < speed < math.inf)
    found = []
    for (size, speed), (next_size, next_speed) in pairwise(points):
        if (speed < 1) != (next_speed < 1):
            part = -math.log(speed) / (math.log(next_speed) - math.log(speed))
            found.append(round(math.exp(math.log(size) + part * (math.log(next_size) - math.log(size))), 9))
    return found


def timed(work: Callable[..., Any], arguments: tuple[Any, dict[str, Any]], calls: int) -> tuple[float, Any]:
    """Calls ``work`` with ``(args, kwargs)`` so many times. Returns the seconds of one call, and the last result."""
    args, kwargs = arguments
    result = None
    if kwargs:
        start = time.perf_counter()
        for _ in range(calls):
            result = work(*args, **kwargs)
    else:
        start = time.perf_counter()
        for _ in range(calls):
            result = work(*args)
    return (time.perf_counter() - start) / calls, result


__all__ = ["CONFIDENCE", "REPEATS", "TOLERANCE", "Measured", "Pair", "Run", "Sample", "crossings", "measure"]
