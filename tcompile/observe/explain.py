"""The result of ``explain``: graphs, breaks, guards and times of a call, gathered from events.

Input: the events that a call emitted.
Output: an ``ExplainOutput``, which prints as text and displays itself in a notebook.
Why: one call answers why a function is fast or slow. This module knows graphs only as objects with a name, nodes and
drawings.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tcompile.observe.events import CompileFinished, Event, FellBack, GraphBroke, GraphCaptured, LoopDecided, LoopTimed
from tcompile.observe.html_form import html_form
from tcompile.observe.recorder import Recorder
from tcompile.observe.source_location import UserLine, format_line, format_stack
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.observe.display.explained import ExplainView


@dataclass(frozen=True)
class BreakReason:
    """One graph break: a one-line ``reason``, the user's lines outermost first, the explanation, hints, and the id.

    ``graph_break`` is always true here: a return is not a reason for which a graph ends.
    """

    reason: str
    user_stack: tuple[UserLine, ...]
    explanation: str = ""
    hints: tuple[str, ...] = ()
    id: str = ""
    graph_break: bool = True

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from tcompile.observe.display.places import GraphBreakView

        return GraphBreakView(
            reason=self.id, headline=self.reason, explanation=self.explanation, hints=self.hints, stack=self.user_stack
        ).bundle()

    _repr_html_ = html_form

    def __str__(self) -> str:
        parts = [f"{self.reason} [{self.id}]" if self.id else self.reason, format_stack(self.user_stack, title="")]
        parts += [self.explanation, *(f"Hint: {hint}" for hint in self.hints)]
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True)
class ExplainOutput:
    """The results of compiling a call.

    ``ops_per_graph`` names the operations of each graph. ``out_guards`` are the guards of the compiled code.
    ``compile_times`` are milliseconds for each phase and in ``total``. ``fell_back`` says why calls ran in plain
    Python, ``loops`` the outcome of each loop, the reason, and the time of its iterations.
    """

    function: str
    graphs: tuple[Any, ...] = ()
    graph_count: int = 0
    graph_break_count: int = 0
    break_reasons: tuple[BreakReason, ...] = ()
    op_count: int = 0
    ops_per_graph: tuple[tuple[str, ...], ...] = ()
    out_guards: tuple[str, ...] = ()
    compile_times: dict[str, float] = field(default_factory=dict)
    fell_back: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    listings: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, events: Iterable[Event], function: str = "") -> ExplainOutput:
        """Gathers the events of a call. ``function`` is by default the first one that they name."""
        graphs, listings, operations = [], [], []
        reasons: list[BreakReason] = []
        guards: dict[str, None] = {}
        fell_back: dict[str, None] = {}
        loops: dict[tuple[str, int], dict[str, None]] = {}  # the outcomes of the loop at each line
        op_count = 0
        timed: dict[tuple[str, int], LoopTimed] = {}
        times: defaultdict[str, float] = defaultdict(float)
        for event in events:
            function = function or event.function
            if isinstance(event, GraphCaptured):
                graph = event.get_graph() if event.get_graph is not None else None
                graphs.append(graph)
                listings.append(event.readable)
                operations.append(tuple(_operations(graph)))
                op_count += event.ops
                guards.update(dict.fromkeys(event.guards))
            elif isinstance(event, GraphBroke):
                stack = event.stack or ((event.where,) if event.where.file else ())
                reasons.append(BreakReason(event.headline, stack, event.explanation, event.hints, event.reason))
            elif isinstance(event, LoopDecided):
                place = event.where.file, event.where.line
                loops.setdefault(place, {format_line(event.where): None})[_indent(loop_text(event))] = None
            elif isinstance(event, LoopTimed):
                place = event.where.file, event.where.line
                timed[place] = event if place not in timed else merged(timed[place], event)
            elif isinstance(event, FellBack):
                fell_back[f"{event.reason}: {event.detail}" if event.detail else event.reason] = None
            elif isinstance(event, CompileFinished):
                for phase, ms in event.phases.items():
                    times[phase] += ms
                times["total"] += event.ms
        for place, rows in loops.items():
            if place in timed:
                rows[_indent(f"It took {iterations_text(timed[place])}.")] = None
        return cls(
            function, tuple(graphs), len(graphs), len(reasons), tuple(reasons), op_count, tuple(operations),
            tuple(guards), dict(times), tuple(fell_back),
            tuple(map("\n".join, loops.values())), tuple(listings),
        )  # fmt: skip

    @property
    def derivatives(self) -> dict[int, str]:
        """Returns a table of forward and backward, by the user's lines, for each graph with a derivative."""
        tables = (g.derivative_table() if hasattr(g, "derivative_table") else "" for g in self.graphs)
        return {number: text for number, text in enumerate(tables, start=1) if text}

    @property
    def headline(self) -> str:
        """Returns the counts, in a line."""
        return ", ".join(
            (
                _count(self.graph_count, "graph"),
                _count(self.graph_break_count, "graph break"),
                _count(self.op_count, "op"),
            )
        )

    def __str__(self) -> str:
        return "\n\n".join(self._sections())

    def _sections(self) -> Iterator[str]:
        yield f"{self.function}: {self.headline}"
        for number, listing in enumerate(self.listings, start=1):
            yield f"Graph {number}\n{_indent(listing)}"
        for number, text in self.derivatives.items():
            yield f"Derivative in graph {number}\n{_indent(text)}"
        for number, reason in enumerate(self.break_reasons, start=1):
            yield f"Graph break {number}: {_indent(str(reason)).lstrip()}"
        if self.loops:
            yield "Loops\n" + _indent("\n".join(self.loops))
        if self.fell_back:
            yield "Ran in plain Python\n" + _indent("\n".join(self.fell_back))
        if self.out_guards:
            yield f"Guards ({len(self.out_guards)})\n" + _indent("\n".join(self.out_guards))
        if self.compile_times:
            wide = max(map(len, self.compile_times))
            rows = (f"{phase:<{wide}} {ms:8.2f}" for phase, ms in self.compile_times.items())
            yield "Compile times, ms\n" + _indent("\n".join(rows))

    def __repr__(self) -> str:
        return f"<ExplainOutput of {self.function}: {self.headline}>"

    def view(self) -> ExplainView:
        """Returns the data of its display."""
        from tcompile.observe.display.explained import ExplainView
        from tcompile.observe.display.graphs import GraphView
        from tcompile.observe.display.places import GraphBreakView

        views = [graph.view() if hasattr(graph, "view") else None for graph in self.graphs]
        return ExplainView(
            function=self.function, headline=self.headline, draw_text=str(self),
            graphs=tuple(
                view if view is not None else GraphView(name=f"graph {number}", listing=listing)
                for number, (view, listing) in enumerate(zip(views, self.listings, strict=True), start=1)
            ),
            graph_count=self.graph_count, graph_break_count=self.graph_break_count, op_count=self.op_count,
            breaks=tuple(
                GraphBreakView(
                    function=self.function, reason=reason.id, headline=reason.reason, explanation=reason.explanation,
                    hints=reason.hints, stack=reason.user_stack,
                )
                for reason in self.break_reasons
            ),
            guards=self.out_guards, compile_times=self.compile_times, fell_back=self.fell_back, loops=self.loops,
            derivatives=tuple(f"graph {number}\n{text}" for number, text in self.derivatives.items()),
        )  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.view().bundle()

    _repr_html_ = html_form


def loop_text(event: LoopDecided) -> str:
    """Returns the outcome of a loop, or how its iterations run, in a line."""
    outcome = {
        "one node": f"stays a loop: one node of the graph, {event.iterations} iterations",
        "unrolled": "is unrolled", "python": "runs in Python, its body compiled where it can be",
        "machine code": "runs in machine code, iteration after iteration",
        "python iterations": "is run by Python, iteration after iteration",
    }[event.outcome]  # fmt: skip
    if event.iterations == "branch":
        outcome = outcome.removesuffix(", iteration after iteration")
        return f"This branch {outcome}{': ' if event.reason else ''}{event.reason}."
    return f"This loop {outcome}{': ' if event.reason else ''}{event.reason}."


def merged(one: LoopTimed, two: LoopTimed) -> LoopTimed:
    """Merges two events about one loop."""
    return dataclasses.replace(
        one, runs=one.runs + two.runs, iterations=one.iterations + two.iterations, ms=one.ms + two.ms
    )


def iterations_text(event: LoopTimed) -> str:
    """Returns the time of a loop's iterations, in words."""
    each = f", {event.ms / event.iterations * 1e3:.3g} µs each" if event.iterations else ""
    return f"{event.ms:.3g} ms for {_count(event.iterations, 'iteration')}{each}"


def _operations(graph: Any) -> Iterator[str]:
    for node in getattr(graph, "nodes", ()):
        yield str(node.op)
        for region in node.regions:
            yield from _operations(region)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


__all__ = ["BreakReason", "ExplainOutput", "Recorder", "iterations_text", "loop_text", "merged"]
