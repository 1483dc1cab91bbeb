"""``mode="max-autotune"``: variants of a graph's kernels, timed on the arrays at hand.

Input: the default variant, the alternatives, a function that builds a program of one, and the inputs of the call that
is being compiled.
Output: the fastest variant, remembered in this process and on disk.
Why: all code generators share the search; each states what may vary, and the key of a choice.

One property of a variant is tried after the other. Competitors run in turn, and their best times are compared, since
disturbances only ever make a measurement longer.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from tcompile.backends.disk import cache
from tcompile.backends.replay import Interrupted, Replay
from tcompile.errors import BackendError
from tcompile.graph import Graph

TURN_S = 100e-6  # a turn repeats the call until this time is over
COMPETITOR_S = 0.05  # how long each competitor runs
MOST_TURNS = 30
GAIN = 0.97  # a variant has to take less than this share of the best time so far


class Tunable(Protocol):
    """One way to write the kernels of a graph: a frozen record of plain properties."""

    def text(self) -> str:
        """The variant as text, for reports and for the disk cache."""


V = TypeVar("V", bound=Tunable)
Runnable = Callable[..., Any]
_known: dict[str, Any] = {}


def fastest(
    key: str,
    usual: V,
    tried: Mapping[str, Sequence[Any]],
    choices: Mapping[str, Sequence[Any]],
    make: Callable[[V], Runnable],
    graph: Graph,
    inputs: Sequence[Any],
    finish: Callable[[], object] = lambda: None,
) -> V:
    """The fastest variant for ``inputs``, which are left unchanged.

    ``tried`` has the alternatives of properties of ``usual``, ``choices`` those that matter for this graph. ``make``
    gives the program of a variant, whose work is done when ``finish`` has returned.
    """
    found = _known.get(key) or _from_disk(key, usual, tried)
    if found is None:
        written = set(graph.updates.values())
        given = [x.copy(order="K") if i in written else x for i, x in enumerate(inputs)]
        try:
            found = _search(usual, make, choices, given, finish)
        except Interrupted as error:
            raise error.error from None
        except (Replay, ArithmeticError, Warning):  # plain Python reports something for these values
            return usual
        cache.keep(key, found.text().encode())
    _known[key] = found
    return found


def sizes(inputs: Sequence[Any]) -> str:
    """The part of a key that describes the arrays at hand."""
    return " ".join(f"{x.dtype}{x.shape}{x.strides}" if hasattr(x, "strides") else str(type(x)) for x in inputs)


def _from_disk(key: str, usual: V, tried: Mapping[str, Sequence[Any]]) -> V | None:
    """The choice of an earlier process; None without one, or where it lacks today's properties."""
    contents = cache.find(key)
    if contents is None:
        return None
    text, found = contents.decode("ascii", "replace"), usual
    words = set(text.split())
    for name, others in tried.items():
        variants = [_with(found, {name: value}) for value in (getattr(usual, name), *others)]
        found = max(variants, key=lambda variant: len(words & set(variant.text().split())))
    return found if found.text() == text else None


def _with(variant: V, values: Mapping[str, Any]) -> V:
    made: V = replace(variant, **values)  # type: ignore[type-var]
    return made


def _search(
    usual: V,
    make: Callable[[V], Runnable],
    choices: Mapping[str, Sequence[Any]],
    given: Sequence[Any],
    finish: Callable[[], object],
) -> V:
    found = usual
    for name, values in choices.items():
        rivals = [found, *(_with(found, {name: value}) for value in values)]
        times = _times([make(variant) for variant in rivals], given, finish)
        fastest = min(range(len(rivals)), key=times.__getitem__)
        if times[fastest] < GAIN * times[0]:
            found = rivals[fastest]
    return found


def _times(programs: Sequence[Runnable], given: Sequence[Any], finish: Callable[[], object]) -> list[float]:
    """The best time of each program, in turn; infinite for one that cannot run here."""
    best = [math.inf] * len(programs)
    running = []
    for i, program in enumerate(programs):
        try:
            program(*given)
            finish()
        except (BackendError, RuntimeError):  # it needs more of the GPU's resources than there are
            if not i:
                raise
        else:
            running.append(i)

    def turn(program: Runnable, calls: int) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            program(*given)
        finish()
        return time.perf_counter() - started

    once = max(turn(programs[0], 1), 1e-7)
    calls = max(1, math.ceil(TURN_S / once))
    for _ in range(min(MOST_TURNS, max(3, int(COMPETITOR_S / (calls * once))))):
        for i in running:
            best[i] = min(best[i], turn(programs[i], calls))
    return best


__all__ = ["Tunable", "fastest", "sizes"]
