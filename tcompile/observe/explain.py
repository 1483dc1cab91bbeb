"""What ``explain`` answers: graphs, breaks, guards and times of a call, put together from events.

Enters: the events that a call emitted. Leaves: an ``ExplainOutput``, which prints as text and draws itself
in a notebook. Knows graphs only as objects with a name, nodes and pictures of their own.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tcompile.observe.events import CompileFinished, Event, FellBack, GraphBroke, GraphCaptured, UserLine
from tcompile.observe.recorder import Recorder
from tcompile.observe.userline import format_stack


@dataclass(frozen=True, slots=True)
class BreakReason:
    """One graph break: ``reason`` in a line, the user's lines outermost first, why, what to do, and the reason's id.

    ``graph_break`` is always true here: that a function returns is no reason why a graph ended.
    """

    reason: str
    user_stack: tuple[UserLine, ...]
    explanation: str = ""
    hints: tuple[str, ...] = ()
    id: str = ""
    graph_break: bool = True

    def __str__(self) -> str:
        parts = [f"{self.reason} [{self.id}]" if self.id else self.reason, format_stack(self.user_stack, title="")]
        parts += [self.explanation, *(f"Hint: {hint}" for hint in self.hints)]
        return "\n".join(part for part in parts if part)


@dataclass(frozen=True)
class ExplainOutput:
    """What compiling a call did.

    ``ops_per_graph`` names the operations of each graph, ``out_guards`` are the checks under which the
    compiled code is used again, ``compile_times`` are milliseconds for each phase and in ``total``,
    ``fell_back`` says why calls ran in plain Python.
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
    listings: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, events: Iterable[Event], function: str = "") -> ExplainOutput:
        """Puts the events of a call together. ``function`` is by default the first one that they name."""
        graphs, listings, operations = [], [], []
        reasons: list[BreakReason] = []
        guards: dict[str, None] = {}
        fell_back: dict[str, None] = {}
        op_count = 0
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
                reasons.append(
                    BreakReason(event.headline, stack, event.explanation, event.hints, event.reason)
                )
            elif isinstance(event, FellBack):
                fell_back[f"{event.reason}: {event.detail}" if event.detail else event.reason] = None
            elif isinstance(event, CompileFinished):
                for phase, ms in event.phases.items():
                    times[phase] += ms
                times["total"] += event.ms
        return cls(
            function, tuple(graphs), len(graphs), len(reasons), tuple(reasons), op_count, tuple(operations),
            tuple(guards), dict(times), tuple(fell_back), tuple(listings),
        )  # fmt: skip

    @property
    def headline(self) -> str:
        """The counts, in a line."""
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
        for number, reason in enumerate(self.break_reasons, start=1):
            yield f"Graph break {number}: {_indent(str(reason)).lstrip()}"
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

    def _repr_html_(self) -> str:
        parts = [f"<div><b>{html.escape(self.function)}</b>: {self.headline}</div>"]
        for number, (graph, listing) in enumerate(zip(self.graphs, self.listings, strict=True), start=1):
            drawn = _drawing(graph) or _pre(listing)
            parts.append(_details(f"Graph {number}", drawn, opened=number == 1))
        for number, reason in enumerate(self.break_reasons, start=1):
            title = f"Graph break {number}: {reason.reason}"
            parts.append(_details(title, _pre("\n".join(str(reason).splitlines()[1:])), opened=True))
        if self.fell_back:
            parts.append(_details("Ran in plain Python", _pre("\n".join(self.fell_back)), opened=True))
        if self.out_guards:
            parts.append(_details(f"Guards ({len(self.out_guards)})", _pre("\n".join(self.out_guards))))
        if self.compile_times:
            rows = "".join(
                f"<tr><td style='text-align:left'>{html.escape(phase)}</td><td>{ms:.2f}</td></tr>"
                for phase, ms in self.compile_times.items()
            )
            parts.append(_details("Compile times, ms", f"<table>{rows}</table>"))
        return "".join(parts)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def _operations(graph: Any) -> Iterator[str]:
    for node in getattr(graph, "nodes", ()):
        yield node.op
        for region in node.regions:
            yield from _operations(region)


def _drawing(graph: Any) -> str:
    bundle = getattr(graph, "_repr_mimebundle_", None)
    text = bundle().get("text/html", "") if bundle is not None else ""
    return text if isinstance(text, str) else ""


def _details(title: str, body: str, *, opened: bool = False) -> str:
    mark = " open" if opened else ""
    return f"<details{mark}><summary>{html.escape(title)}</summary>{body}</details>"


def _pre(text: str) -> str:
    return f"<pre style='margin:0.3em 1em'>{html.escape(text)}</pre>"


def _indent(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


__all__ = ["BreakReason", "ExplainOutput", "Recorder"]
