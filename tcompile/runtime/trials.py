"""Trials: measures whether compiled calls of a function take less time than plain ones.

Input: calls of functions that may not gain: mixed captured and plain stretches, loops of numbers only, loops that draw
random numbers, and loops whose iterations run in Python.
Output: for some calls plain Python's results, which are the same, and then a verdict. If plain calls are faster, the
function falls back to plain Python until calls take much longer than in the trial, as with larger arrays. Then a new
trial begins.
Why: for these functions the gain cannot be predicted, only measured.

Other functions are never on trial, since kernels are faster than NumPy by design. Neither are functions that can
observe being compiled. Functions whose kernels may round differently than NumPy are on trial once: after it, two calls
with the same arguments give the same bits, unless calls that take much longer end the fallback period in between; then
the function stays compiled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from sys import gettrace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tcompile.config import config
from tcompile.graph import Graph, TensorType, ops
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.runtime import native
from tcompile.runtime.cache import SUSPENDS
from tcompile.runtime.run import Run

if TYPE_CHECKING:
    from tcompile.runtime.cache import Entry, FunctionCache
    from tcompile.runtime.native.words import CallPlan

SAMPLES = 3  # timed calls of each kind
# Seconds. Longer compiled calls are not compared with plain ones, which might take very much longer if machine code
# runs the loops. The bound is higher if Python runs them.
LONGEST, LONGEST_WITH_LOOPS, LONGEST_IN_PYTHON = 3e-2, 1e-4, 1.0
# Seconds from one entry to machine code to the next. If it is less, entering takes most of the time, and machine code
# so little that plain Python cannot take very much longer: the highest of these bounds holds.
OFTEN = 2e-5
GAIN = 0.9  # a plain call must be shorter than this share of a compiled one,
DISPATCH = 2e-6  # less these seconds, which machine code saves once the trial has ended
# One plain sample this many times longer decides, unless it is shorter than SHORT seconds: another process may have
# used the processor.
CLEAR, SHORT = 4, 1e-3
# A call that exceeds LARGER x baseline + NOISE ends the fallback period, once the excess adds up to PATIENCE. PATIENCE
# doubles with each trial: on a busy machine other processes may cause the excess.
LARGER, NOISE, PATIENCE = 8, 2e-5, 5e-3
MOST = 8  # trials of a function; then it stays compiled


class Trial:
    """The trial of one function, or the fallback period that follows it.

    ``alone``: the function is one graph; machine code answers its calls directly after the trial.
    """

    __slots__ = (
        "alone", "cache", "compiled", "excess", "hits", "inside", "iterations", "limit", "plain", "resting_plan",
        "sample", "trial_number",
    )  # fmt: skip

    def __init__(self, cache: FunctionCache, alone: bool, trial_number: int = 1) -> None:
        self.cache = cache
        self.alone = alone
        self.trial_number = trial_number  # number of trials, this one included
        self.hits: dict[Entry, int] = {}  # hits of each entry before the first compiled call
        self.iterations = 0  # that Python had run of any loops before it
        self.compiled: list[float] = []
        self.plain: list[float] = []
        self.limit = 0.0  # in a fallback period: a plain call beyond these seconds may be worth compiling
        self.excess = 0.0  # the sum by which calls have exceeded the limit
        self.resting_plan: CallPlan | None = None  # of a fallback period, which machine code times
        # whether a timed call is in progress, and a compiled one; nested calls follow it
        self.inside: bool | None = None
        self.sample = _Sample(self, is_compiled=False)  # times plain calls, one at a time

    def choose(self, plain: Run, timed: Run, compiled: Callable[..., Any]) -> Run | None:
        """Returns what one call is to run, timed; None if the trial does not concern it. An exception propagates, and
        the call is not a sample.

        ``plain`` and ``timed`` run the plain function; the latter is for the trial to time. ``compiled`` is the
        callable that asks: while ``inside`` is True it does not ask again.
        """
        if self.inside is not None:
            return plain
        if self.resting_plan is not None and native.excess_of(self.resting_plan) > self.patience:
            self._end(again=True)
            return Run(compiled)
        if self.limit and config.rest_when_slower:
            timed.around = self.sample
            return timed
        if self._is_inner_call():
            return None
        is_compiled = not self.limit and len(self.compiled) < SAMPLES  # other threads may change these fields
        asks = not is_compiled and not self.limit
        is_over = asks and self._takes_too_long()
        if is_over or not config.rest_when_slower:
            self._end()
            return Run(compiled)
        if is_compiled:
            if not self.compiled:
                self.hits = {entry: entry.hits for entry in _entries(self.cache)}
                self.iterations = _iterations()
            return Run(compiled, _Sample(self, is_compiled))
        timed.around = self.sample
        return timed

    def _look_at_bits(self) -> None:
        """Makes this the only trial where compiled calls may have other bits than plain ones."""
        self.cache.is_decided = self.cache.is_decided or not _is_exact(self.cache)

    def _is_inner_call(self) -> bool:
        """Whether the call is part of a recursion that began before the trial: its arguments are smaller ones."""
        code, frame = self.cache.code, sys._getframe(2).f_back
        place = code.co_name, code.co_firstlineno, code.co_filename
        while frame is not None:
            found = frame.f_code
            if place == (found.co_name, found.co_firstlineno, found.co_filename):
                return True
            frame = frame.f_back
        return False

    @property
    def patience(self) -> float:
        """By how many seconds calls of a fallback period may exceed the limit before it ends."""
        return PATIENCE * (1 << self.trial_number)

    def _takes_too_long(self) -> bool:
        """Whether compiled calls take so long that no plain one is tried."""
        shortest, count = min(self.compiled, default=0.0), max(len(self.compiled), 1)
        hits = sum(entry.hits - self.hits.get(entry, 0) for entry in _entries(self.cache))
        entered = (hits + _iterations() - self.iterations) / count
        longest = _longest(self.cache, self.hits)
        self._look_at_bits()  # more may have been compiled meanwhile
        if longest and shortest < OFTEN * entered:
            longest = LONGEST_IN_PYTHON
        return bool(shortest >= longest)

    def record(self, seconds: float, is_compiled: bool, alone: bool) -> None:
        """Records a call. If something was compiled meanwhile, earlier samples are discarded."""
        if not alone:
            (self.compiled if is_compiled else self.plain).clear()
        elif is_compiled:
            self.compiled.append(seconds)
        else:
            self._ran_plainly(seconds)

    def _ran_plainly(self, seconds: float) -> None:
        if self.limit:
            self.excess += max(seconds - self.limit, 0)
            if self.excess > self.patience:
                self._end(again=True)
            return
        if not self.compiled:
            return
        self.plain.append(seconds)
        compiled, plain = min(self.compiled), min(self.plain)
        clear = plain >= CLEAR * compiled and (plain >= SHORT or len(self.plain) > 1)
        if len(self.plain) < SAMPLES and not clear:
            return
        if plain > GAIN * compiled - (DISPATCH if self.alone else 0):
            self._end()
        else:
            self.limit = LARGER * max(self.plain) + NOISE
            detail = f"{compiled * 1e6:.0f} us compiled, {plain * 1e6:.0f} us plain"
            bus.emit(FellBack(**self.cache.about, reason="plain Python takes less time", detail=detail))
            self.resting_plan = native.resting_plan(self.limit, self.patience)

    def _end(self, again: bool = False) -> None:
        if self.cache.trial is self:
            again = again and self.trial_number < MOST and not self.cache.is_decided
            self.cache.trial = Trial(self.cache, self.alone, self.trial_number + 1) if again else None


class _Sample:
    """Times one call of a trial."""

    __slots__ = ("compiles", "is_compiled", "started", "trial")

    def __init__(self, trial: Trial, is_compiled: bool) -> None:
        self.trial, self.is_compiled = trial, is_compiled
        self.started, self.compiles = 0.0, 0

    def begin(self) -> None:
        """Handles the begin of the call."""
        self.compiles = _compiles
        self.trial.inside = self.is_compiled
        self.started = perf_counter()

    def end(self, returned: bool) -> None:
        """Handles the end of the call. A traced call is not a sample."""
        seconds = perf_counter() - self.started
        trial = self.trial
        trial.inside = None
        if returned and seconds >= trial.limit and gettrace() is None:  # shorter calls do not end a fallback period
            trial.record(seconds, self.is_compiled, self.compiles == _compiles)


_compiles = 0


def note_compile() -> None:
    """Records that something is compiled: the call in which that happens is not a sample."""
    global _compiles
    _compiles += 1


def begin(cache: FunctionCache, alone: bool = False) -> None:
    """Puts a function on trial, if its settings allow plain runs; once, if kernels may round differently than NumPy."""
    settings = cache.settings
    if cache.trial is not None or cache.is_decided:
        return
    wanted = settings.fullgraph or settings.options or settings.backend not in ("auto", "llvm")
    stressed = config.stress_capture or config.stress_breaks
    if wanted or stressed or not config.rest_when_slower or cache.code.co_flags & SUSPENDS:
        return
    if _longest(cache):
        cache.trial = made = Trial(cache, alone)
        made._look_at_bits()


def _is_exact(cache: FunctionCache) -> bool:
    """Whether all compiled code gives NumPy's bits, that of callees included."""
    # imported late: functions without kernels do not need it
    from tcompile.backends.llvm.bitwise_exact import is_exact_throughout

    return all(entry.graph is None or is_exact_throughout(entry.graph) for entry in _entries(cache))


def _iterations() -> int:
    """How many iterations of loops Python has run."""
    from tcompile.backends.loop_runners import iterations_run  # loaded with the first graph

    return iterations_run[0]


def _longest(cache: FunctionCache, hits: Mapping[Entry, int] | None = None) -> float:
    """Returns the longest compiled call, in seconds, that may be repeated in plain Python; 0 if none may be.

    All compiled code decides whether any may be, that of callees included. The limit depends on the entries called
    since they had these ``hits``.
    """
    limits = set[float]()
    for entry in _entries(cache):
        if entry.captured.differs:
            return 0.0
        if hits is None or entry.hits > hits.get(entry, 0):
            limits.add(_longest_of(entry))
    return min(limits, default=LONGEST)


def _entries(cache: FunctionCache) -> Iterator[Entry]:
    """Returns the entries of a function, and of the functions called from it."""
    found, left = {cache}, [cache]
    while left:
        at = left.pop()
        yield from at.entries
        more = set(at.called) - found
        found |= more
        left += more


def _longest_of(entry: Entry) -> float:
    if _iteration_kinds(entry) == {"python iterations"}:
        return LONGEST_IN_PYTHON
    graph = entry.graph
    if graph is None or not _loops(graph) or (is_alone(graph) and not _has_scalar_loops(graph)):
        return LONGEST
    return LONGEST_WITH_LOOPS


def is_alone(graph: Graph) -> bool:
    """Whether a graph computes numbers only, in loops."""
    types = [node.type for node in (*graph.inputs, *graph.outputs)]
    if any(isinstance(type, TensorType) and type.shape for type in types):
        return False
    return _loops(graph)


def is_run_by_python(entry: Entry) -> bool:
    """Whether a stretch has loops whose iterations run in Python, which may take longer than plain ones."""
    return "python iterations" in _iteration_kinds(entry)


def _iteration_kinds(entry: Entry) -> frozenset[str]:
    """How the iterations of a stretch's loops run."""
    if not _loops(entry.graph):
        return frozenset()
    from tcompile.backends.compiled import CompiledGraph  # loops have loaded it already

    made = entry.compiled_graph
    return made.iterations if isinstance(made, CompiledGraph) else frozenset()


def _has_scalar_loops(graph: Graph) -> bool:
    return any(node.op is ops.SCALAR_LOOP or any(map(_has_scalar_loops, node.regions)) for node in graph.nodes)


def _loops(graph: Graph | None) -> bool:
    return graph is not None and any(node.regions or node.op is ops.SCALAR_LOOP for node in graph.nodes)


__all__ = ["Trial", "begin", "is_alone", "is_run_by_python", "note_compile"]
