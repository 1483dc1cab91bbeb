"""Trials: whether compiled calls of a function take less time than plain Python's.

Enters: calls of functions that may not be worth it: those that Python and captured stretches run in turn, and loops of
numbers alone. Leaves: the same results, for some calls are plain Python's, which is what compiled ones give as well;
and a verdict. Where plain calls are the shorter ones, the function rests: its calls are plain Python's until one takes
much longer than those of the trial did, as with larger arrays, and is tried again.

No other function is on trial, since kernels are faster than NumPy by design. Nor is one whose kernels may round in
another way than NumPy does: two calls with the same arguments give the same bits, whatever the clock says.
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
    from tcompile.runtime.cache import FunctionCache

SAMPLES = 3  # calls of each kind
LONGEST_IN_TURN, LONGEST_ALONE = 2e-3, 1e-4  # seconds: a compiled call that takes longer is worth it, as a rule
GAIN = 0.8  # of a compiled call's time: a plain one must be shorter by so much,
DISPATCH = 2e-6  # and by these seconds, which machine code would not need in place of the trial's own steps
LARGER, NOISE = 8, 2e-5  # times the longest plain call of the trial, and seconds: what ends a rest
MOST = 4  # trials of a function


class Trial:
    """The trial of one function, or the rest that has come of it.

    ``alone``: the function is one loop of numbers, which machine code answers by itself once the trial has ended.
    """

    __slots__ = ("alone", "cache", "compiled", "held", "inside", "limit", "plain")

    def __init__(self, cache: FunctionCache, alone: bool, held: int = 1) -> None:
        self.cache = cache
        self.alone = alone
        self.held = held  # trials, this one included
        self.compiled: list[float] = []
        self.plain: list[float] = []
        self.limit = 0.0  # of a rest: the seconds of a plain call that ends it
        self.inside = False  # a compiled call is being timed: calls inside of it are compiled as well

    def call(self, function: Callable[..., Any], compiled: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """One call, timed. What it raises is raised, and tells nothing."""
        started = perf_counter()
        if self.limit or len(self.compiled) >= SAMPLES:
            result = function(*args, **kwargs)
            self._ran_plainly(perf_counter() - started)
            return result
        compiles = self.cache.compiles
        self.inside = True
        try:
            result = compiled(*args, **kwargs)
        finally:
            self.inside = False
        if self.cache.compiles == compiles:
            self._ran_compiled(perf_counter() - started)
        return result

    def _ran_compiled(self, seconds: float) -> None:
        self.compiled.append(seconds)
        longest = LONGEST_ALONE if self.alone else LONGEST_IN_TURN
        if len(self.compiled) == SAMPLES and min(self.compiled) > longest:
            self._end()

    def _ran_plainly(self, seconds: float) -> None:
        if self.limit:
            if seconds > self.limit:
                self._end(again=True)
            return
        self.plain.append(seconds)
        compiled, plain = min(self.compiled), min(self.plain)
        if plain > GAIN * compiled - (DISPATCH if self.alone else 0):
            self._end()
        elif len(self.plain) == SAMPLES:
            self.limit = LARGER * max(self.plain) + NOISE
            detail = f"{compiled * 1e6:.0f} us compiled, {plain * 1e6:.0f} us plain"
            bus.emit(FellBack(**self.cache.about, reason="plain Python takes less time", detail=detail))

    def _end(self, again: bool = False) -> None:
        if self.cache.trial is self:
            again = again and self.held < MOST
            self.cache.trial = Trial(self.cache, self.alone, self.held + 1) if again else None


def begin(cache: FunctionCache, alone: bool = False) -> None:
    """Puts a function on trial, if it gives NumPy's bits and nobody has asked for more than that."""
    settings = cache.settings
    wanted = settings.fullgraph or settings.options or settings.backend not in ("auto", "llvm")
    stressed = config.stress_capture or config.stress_breaks
    if wanted or stressed or not config.rest_when_slower or cache.code.co_flags & SUSPENDS:
        return
    if all(_gives_the_same(entry.graph) for entry in cache.entries if entry.graph is not None):
        cache.trial = Trial(cache, alone)


def is_alone(graph: Graph) -> bool:
    """Whether a graph is about numbers, of which it makes loops."""
    types = [node.type for node in (*graph.inputs, *graph.outputs)]
    if any(isinstance(type, TensorType) and type.shape for type in types):
        return False
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
