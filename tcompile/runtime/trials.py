"""Trials: whether compiled calls of a function take less time than plain Python's.

Enters: calls of functions that may not be worth it: those that Python and captured stretches run in turn, and loops of
numbers alone. Leaves: the same results, for some calls are plain Python's, which is what compiled ones give as well;
and a verdict. Where plain calls are the shorter ones, the function rests: its calls are plain Python's until some take
much longer than those of the trial did, as with larger arrays, and it is tried again.

No other function is on trial, since kernels are faster than NumPy by design. Nor is one whose kernels may round in
another way than NumPy does, or that can see whether it is compiled: two calls with the same arguments give the same
bits, whatever the clock says. Each entry that is made later is looked at, too.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tcompile.config import config
from tcompile.graph import Graph, Node, TensorType
from tcompile.graph.ops import OPS
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.runtime.cache import SUSPENDS

if TYPE_CHECKING:
    from tcompile.runtime.cache import Entry, FunctionCache

SAMPLES = 3  # calls of each kind
# Seconds: a compiled call that takes longer is worth it, as a rule, and a plain one might take very much longer.
LONGEST, LONGEST_WITH_LOOPS = 3e-2, 1e-4
GAIN = 0.9  # of a compiled call's time: a plain one must be shorter by so much,
DISPATCH = 2e-6  # and by these seconds, which machine code would not need in place of the trial's own steps
CLEAR = 4  # plain calls that take so many times as long need not be done again
# What is more than so many times the longest plain call of the trial, and so many seconds, is too much: when that comes
# to PATIENCE, twice as much in each further trial, the rest is over. It may be somebody else's on a busy machine.
LARGER, NOISE, PATIENCE = 8, 2e-5, 5e-3
MOST = 8  # trials of a function; then it stays compiled


class Trial:
    """The trial of one function, or the rest that has come of it.

    ``alone``: the function is one loop of numbers, which machine code answers by itself once the trial has ended.
    """

    __slots__ = ("alone", "cache", "compiled", "held", "inside", "limit", "longest", "plain", "wasted")

    def __init__(self, cache: FunctionCache, alone: bool, longest: float, held: int = 1) -> None:
        self.cache = cache
        self.alone = alone
        self.longest = longest  # seconds of a compiled call that may be done plainly as well
        self.held = held  # trials, this one included
        self.compiled: list[float] = []
        self.plain: list[float] = []
        self.limit = 0.0  # of a rest: the seconds of a plain call beyond which there may be more to do,
        self.wasted = 0.0  # and by how much calls have been longer
        self.inside: bool | None = None  # a call is being timed, a compiled one? Calls inside of it are like it

    def call(self, function: Callable[..., Any], compiled: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """One call, timed. What it raises is raised, and tells nothing.

        ``compiled`` is the callable that has asked: while ``inside`` is True it does not ask again.
        """
        if self.inside is not None:
            return function(*args, **kwargs)
        if not config.rest_when_slower:
            self._end()
            return compiled(*args, **kwargs)
        is_compiled = not self.limit and len(self.compiled) < SAMPLES  # other threads may change what is asked here
        compiles = self.cache.compiles
        try:
            self.inside = is_compiled
            started = perf_counter()
            result = (compiled if is_compiled else function)(*args, **kwargs)
            seconds = perf_counter() - started
        finally:
            self.inside = None
        if not is_compiled:
            self._ran_plainly(seconds)
        elif self.cache.compiles == compiles:
            self._ran_compiled(seconds)
        return result

    def met(self, entry: Entry) -> None:
        """Looks at an entry that was made in the meantime: what was timed is not all there is."""
        longest = _longest(entry)
        if longest is None:
            self._end()
            return
        self.longest = min(self.longest, longest)
        self.compiled.clear()
        self.plain.clear()

    def _ran_compiled(self, seconds: float) -> None:
        self.compiled.append(seconds)
        if len(self.compiled) >= SAMPLES and min(self.compiled) > self.longest:
            self._end()

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
        if len(self.plain) < SAMPLES and plain < CLEAR * compiled:
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
            self.cache.trial = Trial(self.cache, self.alone, self.longest, self.held + 1) if again else None


def begin(cache: FunctionCache, alone: bool = False) -> None:
    """Puts a function on trial, if it gives NumPy's bits and nobody has asked for more than that."""
    settings = cache.settings
    wanted = settings.fullgraph or settings.options or settings.backend not in ("auto", "llvm")
    stressed = config.stress_capture or config.stress_breaks
    if wanted or stressed or not config.rest_when_slower or cache.code.co_flags & SUSPENDS:
        return
    longest = [_longest(entry) for entry in cache.entries]
    if None not in longest:
        cache.trial = Trial(cache, alone, min(seconds for seconds in longest if seconds is not None))


def _longest(entry: Entry) -> float | None:
    """How long a compiled call with this entry may take that is done plainly as well; None where it may not be."""
    graph = entry.graph
    if entry.captured.differs or (graph is not None and not _gives_the_same(graph)):
        return None
    return LONGEST_WITH_LOOPS if graph is not None and _loops(graph) else LONGEST


def is_alone(graph: Graph) -> bool:
    """Whether a graph is about numbers, of which it makes loops."""
    types = [node.type for node in (*graph.inputs, *graph.outputs)]
    if any(isinstance(type, TensorType) and type.shape for type in types):
        return False
    return _loops(graph)


def _loops(graph: Graph) -> bool:
    return any(node.regions or node.op == "element_loop" for node in graph.nodes)


def _gives_the_same(graph: Graph) -> bool:
    return all(_has_the_same_bits(node) and all(map(_gives_the_same, node.regions)) for node in graph.nodes)


def _has_the_same_bits(node: Node) -> bool:
    from tcompile.backends.llvm.exactness import is_exact  # who has no kernels need not wait for it

    kind = OPS[node.op].kind
    if kind in ("control", "movement") or node.op in _EQUAL:
        return True
    return node.op != "matmul" if kind == "opaque" else is_exact(node)


# Where zeros of both signs meet, kernels may find the other one.
_EQUAL = ("max", "min", "argmax", "argmin", "maximum", "minimum", "any", "all")

__all__ = ["Trial", "begin", "is_alone"]
