"""``mode="max-autotune"``: the kernels of a graph in several variants, timed on the arrays at hand.

Enters: a graph, the inputs of the call that is being compiled, and how to make a variant of it. Leaves: the variant
that was fastest, which is remembered, in this process and on disk, for kernels and sizes like these on this machine
with as many threads. Variants give the same bits, so that a wrong choice costs time and nothing else.

One property of a variant is tried after the other. Those that compete run in turn, and their best times are compared,
since what disturbs a measurement only ever makes it longer. Storing small results past the cache is not tried: it is
those who read them next who would pay for that, and they are not measured.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tcompile.backends.disk import cache, key_of
from tcompile.backends.llvm import host, native
from tcompile.backends.llvm.variants import USUAL, Variant
from tcompile.backends.replay import Replay
from tcompile.backends.schedule import Schedule
from tcompile.graph import Graph
from tcompile.records import dataclass

TURN_S = 100e-6  # a turn calls as often as this takes, at least once
ROUNDS_S = 0.05  # how long each competitor runs
MOST_ROUNDS = 30
GAIN = 0.97  # what is not faster than this much of the best so far is no better

_TRIED: dict[str, tuple[Any, ...]] = {
    "chunk": (0.25, 4.0), "past_the_cache": (False,), "unroll": (2, 4), "strip_bytes": (128, 512, 1024),
}  # fmt: skip

_known: dict[str, Variant] = {}


@dataclass
class Made:
    """A graph's kernels and program in one variant. ``text`` is the kernels' IR, ``ms`` what one took to make."""

    schedule: Schedule
    text: str
    code: native.Code | None
    host: host.Program
    source: str
    program: Callable[..., tuple[Any, ...]]
    ms: float


def best(graph: Graph, inputs: Sequence[Any], make: Callable[[Variant], Made]) -> Variant:
    """The fastest variant of ``graph`` for ``inputs``, which are left as they are."""
    usual = make(USUAL)
    choices = _choices(usual)
    if not choices or not _repeatable(usual.schedule):
        return USUAL
    key = key_of("autotune", usual.text, _sizes(inputs), str(native.num_threads()), repr(choices), *native.identity())
    found = _known.get(key) or _from_disk(key)
    if found is None:
        written = set(graph.updates.values())
        given = [x.copy(order="K") if i in written else x for i, x in enumerate(inputs)]
        try:
            found = _search(make, choices, given)
        except (Replay, ArithmeticError, Warning):  # plain Python has something to report for these values
            return USUAL
        cache.keep(key, found.text().encode())
    _known[key] = found
    return found


def _choices(usual: Made) -> dict[str, tuple[Any, ...]]:
    """By property, what could be better than the usual, as far as these kernels know the difference."""
    forms = {kernel.form for kernel in usual.schedule.kernels}
    matters = {
        "chunk": bool(forms) and native.num_threads() > 1,
        "past_the_cache": "!nontemporal" in usual.text,
        "unroll": "flat" in forms,
        "strip_bytes": "tiled" in forms,
    }
    return {name: values for name, values in _TRIED.items() if matters[name]}


def _repeatable(plan: Schedule) -> bool:
    """Whether running the graph again has no effect but on its own arrays: kernels and views are all there is."""
    return all(step.kind in ("kernel", "view") for step in plan.steps)


def _sizes(inputs: Sequence[Any]) -> str:
    return " ".join(
        f"{x.dtype}{x.shape}{x.strides}" if isinstance(x, np.ndarray) else str(type(x)) for x in inputs
    )


def _from_disk(key: str) -> Variant | None:
    """What an earlier process has found; None where it has not, or not with the properties that there are today."""
    contents = cache.find(key)
    if contents is None:
        return None
    text = contents.decode("ascii", "replace")
    values = itertools.product(*((getattr(USUAL, name), *others) for name, others in _TRIED.items()))
    variants = (Variant(**dict(zip(_TRIED, chosen, strict=True))) for chosen in values)
    return next((variant for variant in variants if variant.text() == text), None)


def _search(make: Callable[[Variant], Made], choices: Mapping[str, Sequence[Any]], given: Sequence[Any]) -> Variant:
    found = USUAL
    for name, values in choices.items():
        rivals = [found, *(replace(found, **{name: value}) for value in values)]
        times = _times([make(variant).program for variant in rivals], given)
        fastest = min(range(len(rivals)), key=times.__getitem__)
        if times[fastest] < GAIN * times[0]:
            found = rivals[fastest]
    return found


def _times(programs: Sequence[Callable[..., Any]], given: Sequence[Any]) -> list[float]:
    """The best time of each program, in turn."""
    for program in programs:
        program(*given)
    started = time.perf_counter()
    programs[0](*given)
    once = max(time.perf_counter() - started, 1e-7)
    calls = max(1, math.ceil(TURN_S / once))
    rounds = min(MOST_ROUNDS, max(3, int(ROUNDS_S / (calls * once))))
    best = [math.inf] * len(programs)
    for _ in range(rounds):
        for i, program in enumerate(programs):
            started = time.perf_counter()
            for _ in range(calls):
                program(*given)
            best[i] = min(best[i], time.perf_counter() - started)
    return best


__all__ = ["Made", "best"]
