"""``mode="max-autotune"``: the kernels of a graph in several variants, timed on the arrays at hand.

Input: the variant that is right for most, what others are tried, how to make a program of one, and the inputs of the
call that is being compiled. Output: the variant that was fastest, which is remembered, in this process and on disk.
Exists for all code generators: each says what may vary, and by which key a choice is known again.

One property of a variant is tried after the other. Those that compete run in turn, and their best times are compared,
since what disturbs a measurement only ever makes it longer.
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

TURN_S = 100e-6  # a turn calls as often as this takes, at least once
ITERATIONS_S = 0.05  # how long each competitor runs
MOST_ROUNDS = 30
GAIN = 0.97  # what is not faster than this much of the best so far is no better


class Variant(Protocol):
    """One way to write the kernels of a graph: a frozen record of plain properties."""

    def text(self) -> str:
        """The same for reports and for the cache on disk."""


V = TypeVar("V", bound=Variant)
Program = Callable[..., Any]
_known: dict[str, Any] = {}


def fastest(
    key: str,
    usual: V,
    tried: Mapping[str, Sequence[Any]],
    choices: Mapping[str, Sequence[Any]],
    make: Callable[[V], Program],
    graph: Graph,
    inputs: Sequence[Any],
    finish: Callable[[], object] = lambda: None,
) -> V:
    """The fastest variant for ``inputs``, which are left as they are.

    ``tried`` is what properties may be besides the ``usual``, ``choices`` what of it can matter here. ``make`` gives
    the program of a variant, whose work is done when ``finish`` has returned.
    """
    found = _known.get(key) or _from_disk(key, usual, tried)
    if found is None:
        written = set(graph.updates.values())
        given = [x.copy(order="K") if i in written else x for i, x in enumerate(inputs)]
        try:
            found = _search(usual, make, choices, given, finish)
        except Interrupted as error:
            raise error.error from None
        except (Replay, ArithmeticError, Warning):  # plain Python has something to report for these values
            return usual
        cache.keep(key, found.text().encode())
    _known[key] = found
    return found


def sizes(inputs: Sequence[Any]) -> str:
    """What a key says of the arrays at hand."""
    return " ".join(f"{x.dtype}{x.shape}{x.strides}" if hasattr(x, "strides") else str(type(x)) for x in inputs)


def _from_disk(key: str, usual: V, tried: Mapping[str, Sequence[Any]]) -> V | None:
    """What an earlier process has found; None where it has not, or not with the properties that there are today."""
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
    make: Callable[[V], Program],
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


def _times(programs: Sequence[Program], given: Sequence[Any], finish: Callable[[], object]) -> list[float]:
    """The best time of each program, in turn; that of one which cannot run here is infinite."""
    best = [math.inf] * len(programs)
    running = []
    for i, program in enumerate(programs):
        try:
            program(*given)
            finish()
        except (BackendError, RuntimeError):  # more of the GPU's resources than there are
            if not i:
                raise
        else:
            running.append(i)

    def turn(program: Program, calls: int) -> float:
        started = time.perf_counter()
        for _ in range(calls):
            program(*given)
        finish()
        return time.perf_counter() - started

    once = max(turn(programs[0], 1), 1e-7)
    calls = max(1, math.ceil(TURN_S / once))
    for _ in range(min(MOST_ROUNDS, max(3, int(ITERATIONS_S / (calls * once))))):
        for i in running:
            best[i] = min(best[i], turn(programs[i], calls))
    return best


__all__ = ["Variant", "fastest", "sizes"]
