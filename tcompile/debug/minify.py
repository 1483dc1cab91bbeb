"""The minifier: the smallest piece of a graph that still fails in the same way.

Input: a graph with inputs on which a part of the compiler fails.
Output: ``Minified``: a piece of it, its inputs, and the verdict.
Why: a bug in a large graph is found by a few operations.

The steps: sizes fixed, one output instead of many, the shortest failing beginning and the shortest end of that, then
every run of operations that can be left out (their results become inputs), then smaller arrays. An error that
accumulates over many operations is searched operation by operation, in units in the last place.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tcompile.debug.isolated import Worker
from tcompile.debug.judge import TOLERANCE, Column, Verdict, judge
from tcompile.debug.pieces import Piece, Whole, sizes, smaller, specialised
from tcompile.errors import InvalidArgument
from tcompile.graph import Graph, Node
from tcompile.records import dataclass

Judge = Callable[[Graph, Sequence[Any], float | None], Verdict]
SECONDS = 60.0
SMALL = 3  # operations
_MANY = 24


@dataclass(frozen=True)
class Minified:
    """The result of the minifier. ``verdict`` is the failure of ``graph`` on ``inputs``; ``first`` was that of the
    whole graph.

    ``tolerance`` is the one at which it fails; None is that of single operations. ``checks`` graphs were tried.
    """

    graph: Graph
    inputs: list[Any]
    verdict: Verdict
    first: Verdict
    column: Column
    tolerance: float | None
    ops_before: int
    checks: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.first}\n{self.ops_before} operations reduced to {self.graph.op_count} in {self.seconds:.1f} s, "
            f"{self.checks} graphs tried:\n{self.graph.readable()}\n{self.verdict}"
        )


def minify(
    graph: Graph,
    inputs: Sequence[Any],
    column: Column | None = None,
    *,
    tolerance: float = TOLERANCE,
    isolate: bool = False,
    seconds: float = SECONDS,
) -> Minified:
    """The smallest piece of ``graph`` found that fails on ``column`` in the same way as the whole does.

    isolate: run each try in a process of its own, so that it may crash; the backend must then be one that another
    process finds by its name. seconds: when time is up, the best so far is the result. Raises InvalidArgument where
    nothing fails.
    """
    column = column or Column()
    if not isolate:
        search = _Search(lambda g, i, t: judge(g, i, column, t), tolerance, seconds)
        return search.run(graph, list(inputs), column)
    with Worker(column) as worker:
        return _Search(worker.judge, tolerance, seconds).run(graph, list(inputs), column)


class _OutOfTime(Exception):
    """The search has used up its time."""


class _Search:
    """One search: the best piece so far, and the remaining time."""

    def __init__(self, ask: Judge, tolerance: float | None, seconds: float) -> None:
        self.ask = ask
        self.tolerance = tolerance
        self.started = time.monotonic()
        self.deadline = self.started + seconds

    def run(self, graph: Graph, inputs: list[Any], column: Column) -> Minified:
        self.best: Piece = (graph, inputs)
        self.checks = 1
        self.first = self.verdict = self.ask(graph, inputs, self.tolerance)
        if not self.first.failed:
            raise InvalidArgument(f"nothing to minify: the result is {self.first}")
        with contextlib.suppress(_OutOfTime):
            self._steps()
        return Minified(
            *self.best, self.verdict, self.first, column, self.tolerance, graph.op_count, self.checks,
            time.monotonic() - self.started,
        )  # fmt: skip

    def _steps(self) -> None:
        self._specialise()
        self._one_output()
        self._bisect()
        if self.best[0].op_count > _MANY:
            self._drift()
        self._leave_out()
        if self.best[0].op_count > SMALL:
            self._drift()
        self._smaller()

    # -- checks
    # ----------------------------------------------------------------------------------------------------------
    def _judge(self, graph: Graph, inputs: Sequence[Any], tolerance: float | None) -> Verdict:
        if time.monotonic() > self.deadline:
            raise _OutOfTime
        self.checks += 1
        return self.ask(graph, inputs, tolerance)

    def _fails(self, make: Callable[[], Piece]) -> bool:
        """Whether the piece fails as the whole does; then it is the best so far."""
        try:
            graph, inputs = make()
        except Exception:  # it cannot be cut so: sizes or types would not fit
            return False
        verdict = self._judge(graph, inputs, self.tolerance)
        if not verdict.like(self.first):
            return False
        self.best, self.verdict = (graph, inputs), verdict
        return True

    # -- the steps -----------------------------------------------------------------------------------------------------
    def _specialise(self) -> None:
        graph, inputs = self.best
        if graph.symbol_inputs():
            self._fails(partial(specialised, graph, inputs))

    def _one_output(self) -> None:
        graph, inputs = self.best
        different = list(dict.fromkeys(graph.outputs))
        if len(different) > 1:
            whole = Whole(graph, inputs)
            any(self._fails(partial(whole.piece, graph.nodes, [node])) for node in reversed(different))

    def _bisect(self) -> None:
        """The shortest beginning that fails, and the shortest end of it."""
        graph, inputs = self.best
        nodes, whole = graph.nodes, Whole(graph, inputs)
        low, high = 1, len(nodes)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._fails(partial(whole.piece, nodes[:middle])) else (middle + 1, high)
        self._one_output()
        graph, inputs = self.best
        nodes, whole = graph.nodes, Whole(graph, inputs)
        low, high = 0, len(nodes) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fails(partial(whole.piece, nodes[middle:])) else (low, middle - 1)
        self._one_output()

    def _leave_out(self) -> None:
        """Delta debugging: leaves out runs of nodes, half of all at first, single ones until none can go."""
        length = max(1, len(self.best[0].nodes) // 2)
        while True:
            done = self._leave_out_runs(length)
            self._one_output()
            if length == 1 and not done:
                return
            length = max(1, length // 2)

    def _leave_out_runs(self, length: int) -> bool:
        done, start = False, 0
        while start < len(self.best[0].nodes):
            graph, inputs = self.best
            rest = graph.nodes[:start] + graph.nodes[start + length :]
            if rest and self._fails(partial(_without, graph, inputs, rest)):
                done = True
            else:
                start += length
        return done

    def _drift(self) -> None:
        """An operation, or two, whose error exceeds its bound, though not the tolerance of the whole."""
        if self.first.kind != "wrong" or self.tolerance is None:
            return
        graph, inputs = self.best
        whole = Whole(graph, inputs)
        inside = set(graph.nodes)
        pairs = [[operand, node] for node in graph.nodes for operand in node.inputs if operand in inside]
        for windows in ([[node] for node in graph.nodes], pairs):
            worst: tuple[Verdict, Piece] | None = None
            for window in windows:
                try:
                    piece = whole.piece(window)
                except Exception:
                    continue
                verdict = self._judge(*piece, tolerance=None)
                if verdict.kind == "wrong" and (worst is None or verdict.off > worst[0].off):
                    worst = verdict, piece
            if worst is not None:
                self.verdict, self.best = worst
                self.tolerance = None
                return

    def _smaller(self) -> None:
        """Smaller arrays, an axis's length at a time."""
        while not self.best[0].symbol_inputs():
            graph, inputs = self.best
            if not any(self._cut(graph, inputs, size) for size in sizes(graph)):
                return

    def _cut(self, graph: Graph, inputs: list[Any], size: int) -> bool:
        """Whether one half of the axes of ``size`` is enough; of short ones, all but one element."""
        half = size // 2
        cuts = [(0, half), (half, size)] + ([(0, size - 1), (1, size)] if size <= SMALL + 1 else [])
        return any(self._fails(partial(smaller, graph, inputs, size, *cut)) for cut in cuts)


def _without(graph: Graph, inputs: list[Any], rest: list[Node]) -> Piece:
    """The piece of ``rest``, which returns what the graph returned of it, or else what is read outside."""
    returned = [node for node in dict.fromkeys(graph.outputs) if node in rest]
    piece = Whole(graph, inputs).piece(rest, returned or None)
    if piece[0].op_count >= graph.op_count:
        raise InvalidArgument("nothing was left out")
    return piece


__all__ = ["SECONDS", "Minified", "minify"]
