"""Trials: whether compiled calls of a function take less time than plain Python's.

Input: calls of functions that may not be worth it: those that Python and captured stretches run in turn, loops of
numbers alone, and loops of which Python runs the iterations. Output: the same results, for some calls are plain
Python's, which is what compiled ones give as well; and a verdict. Where plain calls are the shorter ones, the function
rests: its calls are plain Python's until some take much longer than those of the trial did, as with larger arrays, and
it is tried again.

No other function is on trial, since kernels are faster than NumPy by design. Nor is one whose kernels may round in
another way than NumPy does, or that can see whether it is compiled: two calls with the same arguments give the same
bits, whatever the clock says. Only a kind of call that first comes while its function rests may be compiled later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from sys import gettrace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tcompile.config import config
from tcompile.graph import Graph, TensorType, ops
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.runtime.cache import SUSPENDS
from tcompile.runtime.run import Run

if TYPE_CHECKING:
    from tcompile.runtime.cache import Entry, FunctionCache

SAMPLES = 3  # calls of each kind
# Seconds: a compiled call that takes longer is worth it, as a rule, and a plain one might take very much longer, if
# machine code goes through loops; not so if Python does.
LONGEST, LONGEST_WITH_LOOPS, LONGEST_IN_PYTHON = 3e-2, 1e-4, 1.0
GAIN = 0.9  # of a compiled call's time: a plain one must be shorter by so much,
DISPATCH = 2e-6  # and by these seconds, which machine code would not need in place of the trial's own steps
# Plain calls that take so many times as long need not be done again, but for those of less than so many seconds:
# another process may have had the processor.
CLEAR, SHORT = 4, 1e-3
# What is more than so many times the longest plain call of the trial, and so many seconds, is too much: when that comes
# to PATIENCE, twice as much in each further trial, the rest is over. It may be somebody else's on a busy machine.
LARGER, NOISE, PATIENCE = 8, 2e-5, 5e-3
MOST = 8  # trials of a function; then it stays compiled


class Trial:
    """The trial of one function, or the rest that has come of it.

    ``alone``: the function is one graph, whose calls machine code answers by itself once the trial has ended.
    """

    __slots__ = ("alone", "cache", "compiled", "held", "hits", "inside", "limit", "plain", "sample", "wasted")

    def __init__(self, cache: FunctionCache, alone: bool, held: int = 1) -> None:
        self.cache = cache
        self.alone = alone
        self.held = held  # trials, this one included
        self.hits: dict[Entry, int] = {}  # of each entry, before the first compiled call
        self.compiled: list[float] = []
        self.plain: list[float] = []
        self.limit = 0.0  # of a rest: the seconds of a plain call beyond which there may be more to do,
        self.wasted = 0.0  # and by how much calls have been longer
        self.inside: bool | None = None  # a call is being timed, a compiled one? Calls inside of it are like it
        self.sample = _Sample(self, is_compiled=False)  # of plain calls, one of which is timed at a time

    def choose(self, plain: Run, timed: Run, compiled: Callable[..., Any]) -> Run:
        """What one call is to run, timed. What it raises is raised, and tells nothing.

        ``plain`` and ``timed`` run the plain function; the latter is for a trial to time. ``compiled`` is the callable
        that has asked: while ``inside`` is True it does not ask again.
        """
        if self.inside is not None:
            return plain
        if self.limit and config.rest_when_slower:
            timed.around = self.sample
            return timed
        is_compiled = not self.limit and len(self.compiled) < SAMPLES  # other threads may change what is asked here
        asks = not is_compiled and not self.limit
        is_over = asks and min(self.compiled, default=0.0) >= _longest(self.cache, self.hits)
        if is_over or not config.rest_when_slower:
            self._end()
            return Run(compiled)
        if is_compiled:
            if not self.compiled:
                self.hits = {entry: entry.hits for entry in _entries(self.cache)}
            return Run(compiled, _Sample(self, is_compiled))
        timed.around = self.sample
        return timed

    def took(self, seconds: float, is_compiled: bool, alone: bool) -> None:
        """Notes a call; where something was compiled meanwhile, it and those before are not all there is."""
        if not alone:
            (self.compiled if is_compiled else self.plain).clear()
        elif is_compiled:
            self.compiled.append(seconds)
        else:
            self._ran_plainly(seconds)

    def _ran_plainly(self, seconds: float) -> None:
        if self.limit:
            self.wasted += max(seconds - self.limit, 0)
            if self.wasted > PATIENCE * 2**self.held:
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

    def _end(self, again: bool = False) -> None:
        if self.cache.trial is self:
            again = again and self.held < MOST
            self.cache.trial = Trial(self.cache, self.alone, self.held + 1) if again else None


class _Sample:
    """Times one call of a trial."""

    __slots__ = ("compiles", "is_compiled", "started", "trial")

    def __init__(self, trial: Trial, is_compiled: bool) -> None:
        self.trial, self.is_compiled = trial, is_compiled
        self.started, self.compiles = 0.0, 0

    def begin(self) -> None:
        """The call begins."""
        self.compiles = _compiles
        self.trial.inside = self.is_compiled
        self.started = perf_counter()

    def end(self, returned: bool) -> None:
        """The call has ended. One that somebody has traced says nothing."""
        seconds = perf_counter() - self.started
        trial = self.trial
        trial.inside = None
        if returned and seconds >= trial.limit and gettrace() is None:  # a rest goes on after shorter ones
            trial.took(seconds, self.is_compiled, self.compiles == _compiles)


_compiles = 0


def note_compile() -> None:
    """Notes that something is compiled: the call in which that happens is no sample."""
    global _compiles
    _compiles += 1


def begin(cache: FunctionCache, alone: bool = False) -> None:
    """Puts a function on trial, if it gives NumPy's bits and nobody has asked for more than that."""
    settings = cache.settings
    if cache.trial is not None:
        return
    wanted = settings.fullgraph or settings.options or settings.backend not in ("auto", "llvm")
    stressed = config.stress_capture or config.stress_breaks
    if wanted or stressed or not config.rest_when_slower or cache.code.co_flags & SUSPENDS:
        return
    if _longest(cache):
        cache.trial = Trial(cache, alone)


def _longest(cache: FunctionCache, hits: Mapping[Entry, int] | None = None) -> float:
    """How long a compiled call may take that is done plainly as well, in seconds; 0 where calls are never to be.

    The latter is decided by all that has been compiled, of the functions called from there, too; the former by what has
    been called since the entries had these ``hits``.
    """
    from tcompile.backends.llvm.bitwise_exact import is_exact_throughout  # who has no kernels need not wait for it

    limits = set[float]()
    for entry in _entries(cache):
        if entry.captured.differs or (entry.graph is not None and not is_exact_throughout(entry.graph)):
            return 0.0
        if hits is None or entry.hits > hits.get(entry, 0):
            limits.add(_longest_of(entry))
    return min(limits, default=LONGEST)


def _entries(cache: FunctionCache) -> Iterator[Entry]:
    """Those of a function, and of the functions called from there."""
    found, left = {cache}, [cache]
    while left:
        at = left.pop()
        yield from at.entries
        more = set(at.called) - found
        found |= more
        left += more


def _longest_of(entry: Entry) -> float:
    if is_run_by_python(entry):
        return LONGEST_IN_PYTHON
    graph = entry.graph
    if graph is None or not _loops(graph) or (is_alone(graph) and not _has_scalar_loops(graph)):
        return LONGEST
    return LONGEST_WITH_LOOPS


def is_alone(graph: Graph) -> bool:
    """Whether a graph is about numbers, of which it makes loops."""
    types = [node.type for node in (*graph.inputs, *graph.outputs)]
    if any(isinstance(type, TensorType) and type.shape for type in types):
        return False
    return _loops(graph)


def is_run_by_python(entry: Entry) -> bool:
    """Whether a stretch has loops, and Python runs all their iterations, which takes longer than plain ones may."""
    if not _loops(entry.graph):
        return False
    from tcompile.backends.compiled import CompiledGraph  # whoever has loops has loaded it

    made = entry.compiled_graph
    return isinstance(made, CompiledGraph) and made.iterations == {"python iterations"}


def _has_scalar_loops(graph: Graph) -> bool:
    return any(node.op is ops.SCALAR_LOOP or any(map(_has_scalar_loops, node.regions)) for node in graph.nodes)


def _loops(graph: Graph | None) -> bool:
    return graph is not None and any(node.regions or node.op is ops.SCALAR_LOOP for node in graph.nodes)


__all__ = ["Trial", "begin", "is_alone", "is_run_by_python", "note_compile"]
