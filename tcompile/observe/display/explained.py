"""The display of ``explain``'s result.

Input: an ``ExplainOutput``'s facts.
Output: an ``ExplainView``.
Why: ``explain`` collects events, and its display is data that a notebook can save.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import ClassVar

from tcompile.observe.display import html
from tcompile.observe.display.graphs import GraphView
from tcompile.observe.display.places import GraphBreakView
from tcompile.observe.display.view import View
from tcompile.observe.source_location import UserLine
from tcompile.records import dataclass


@dataclass(frozen=True, kw_only=True)
class ExplainView(View):
    """One call, explained. ``compile_times`` are milliseconds, of each phase and in ``total``."""

    kind: ClassVar[str] = "explain"
    function: str = ""
    headline: str = ""
    draw_text: str = field(default="", repr=False)
    graph_count: int = 0
    graph_break_count: int = 0
    op_count: int = 0
    graphs: tuple[GraphView, ...] = ()
    breaks: tuple[GraphBreakView, ...] = ()
    guards: tuple[str, ...] = ()
    compile_times: dict[str, float] = field(default_factory=dict)
    fell_back: tuple[str, ...] = ()
    loops: tuple[str, ...] = ()
    derivatives: tuple[str, ...] = ()

    def body(self) -> str:
        """Returns the counts, each break with its line, the graphs, guards and times."""
        return "".join(self._parts())

    def _parts(self) -> Iterator[str]:
        headline = f'<span class="tcd-dim">{html.text(self.headline)}</span>'
        yield html.title(f"explain {html.short(self.function, 80)}", headline)
        phases = {name: ms for name, ms in self.compile_times.items() if name != "total"}
        if phases:
            times = html.facts(f"{html.text(name)} {html.time(ms)}" for name, ms in phases.items())
            yield f'{html.bar(phases)}<div class="tcd-dim">compiling: {times}</div>'
        for broke in self.breaks:
            where = broke.stack[-1] if broke.stack else UserLine()
            place = html.place(where)
            yield html.note("graph break", f"{place + ': ' if place else ''}{html.code(broke.headline)}")
            yield html.source((where,)) if where.text else ""
            more = [html.code(text, 400) for text in (broke.explanation, *broke.hints) if text]
            yield "".join(f'<div class="tcd-note tcd-more tcd-dim">{text}</div>' for text in more)
        for text in self.loops:
            yield html.note("loop", html.code(text, 400))
        for text in self.fell_back:
            yield html.note("plain Python", html.code(text, 300))
        for text in self.derivatives:
            name, _, rows = text.partition("\n")
            yield html.folded(f"derivative in {name}: forward and backward, line by line", html.pre(rows), opened=True)
        for number, graph in enumerate(self.graphs, start=1):
            summary = f"graph {number}: {html.count(graph.ops, 'operation')}"
            yield html.folded(summary, graph.inside(), opened=number == 1)
        if self.guards:
            held = html.pre("\n".join(self.guards))
            yield html.folded(f"{html.count(len(self.guards), 'guard')}: what the compiled code relies on", held)

    def text(self) -> str:
        """Returns all of it as a listing."""
        return self.draw_text


__all__ = ["ExplainView"]
