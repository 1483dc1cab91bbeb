"""The display of a compiled function: entries, graph breaks and recompiles.

Input: the runtime's facts about the function.
Output: a ``FunctionView``.
Why: a function at the end of a cell shows its own state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import ClassVar

from tcompile.observe.display import html
from tcompile.observe.display.graphs import GraphView
from tcompile.observe.display.places import GraphBreakView
from tcompile.observe.display.view import View
from tcompile.observe.events import NOWHERE
from tcompile.observe.source_location import UserLine
from tcompile.records import dataclass

_PLAIN = ' <span class="tcd-warn">plain Python</span>'
_OPEN_LINES = 24  # lines of a function's code that are shown without a click


@dataclass(frozen=True, kw_only=True)
class EntryView:
    """One compiled stretch of a function, for calls of one kind.

    ``state`` is "compiled", or "plain" if such calls run in plain Python. ``starts`` and ``ends`` describe where the
    stretch begins and ends. ``phases`` are milliseconds of compiling; empty if the history has dropped them.
    """

    number: int = 0
    state: str = "compiled"
    starts: str = "start"
    ends: str = "return"
    hits: int = 0
    ops: int = 0
    kernels: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    compile_ms: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    graph: GraphView | None = None


@dataclass(frozen=True, kw_only=True)
class FunctionView(View):
    """A compiled function. ``code`` are its lines, ``compiled_lines`` the numbers of those that are in a graph."""

    kind: ClassVar[str] = "function"
    name: str = ""
    where: UserLine = NOWHERE
    defined_in: str | None = None
    backend: str = ""
    settings: tuple[str, ...] = ()
    stance: str = ""
    calls: str = ""
    entries: tuple[EntryView, ...] = ()
    breaks: tuple[GraphBreakView, ...] = ()
    recompiles: tuple[tuple[str, ...], ...] = ()
    eager_calls: int = 0
    code: tuple[UserLine, ...] = ()
    compiled_lines: tuple[int, ...] = ()

    def body(self) -> str:
        """Returns the state, the code with its marks, the entries, the breaks, and the reasons for recompiles."""
        return "".join(self._parts())

    def _parts(self) -> Iterator[str]:
        facts = html.facts((html.place(self.where), *map(html.short, self._state())))
        yield html.title(f"compiled {html.short(self.name, 80)}", f'<span class="tcd-dim">{facts}</span>')
        if not self.entries:
            yield '<div class="tcd-note">nothing is compiled yet: the first call does that</div>'
        else:
            yield html.table(
                ("entry", "runs from", "to", "hits", "ops", "kernels", "guards", "compiled in", ""),
                [self._row(entry) for entry in self.entries],
                left=(0, 1, 2, 8),
            )
        for broke in self.breaks:
            where = broke.stack[-1] if broke.stack else UserLine()
            line = f"line {where.line}: " if where.line else ""
            more = [html.code(text, 300) for text in (broke.explanation, *broke.hints[:1])]
            yield html.note("graph break", f"{line}{html.code(broke.headline)}", more)
        given: set[str] = set()
        for number, reasons in enumerate(self.recompiles, start=1):
            hints = [line for reason in reasons[:1] for line in reason.splitlines()[1:] if line not in given]
            given.update(hints)
            yield html.note(f"recompile {number}", html.code(_first(reasons), 300), map(html.code, hints))
        if self.eager_calls:
            yield html.note("plain Python", f"{html.count(self.eager_calls, 'call')} ran without compiled code")
        if self.code:
            yield html.folded("the code: ● in a graph, ○ plain Python", self._code(), opened=self._is_short())
        for entry in self.entries:
            yield html.folded(f"entry {entry.number}: {self._what(entry)}", self._entry(entry))

    def _state(self) -> Iterator[str]:
        yield f"backend {self.backend}"
        yield from self.settings
        if self.stance and self.stance != "default":
            yield f"stance {self.stance}"
        if self.calls.startswith("in Python"):
            yield f"calls {self.calls}"

    def _is_short(self) -> bool:
        return len(self.code) <= _OPEN_LINES and bool(self.breaks)

    def _row(self, entry: EntryView) -> tuple[str, ...]:
        plain = entry.state == "plain"
        return (
            f"{entry.number}{_PLAIN if plain else ''}", html.short(entry.starts),
            html.short(entry.ends), str(entry.hits), "" if plain else str(entry.ops),
            "" if plain else str(len(entry.kernels)), str(len(entry.guards)), html.time(entry.compile_ms),
            html.bar(entry.phases) if entry.phases else "",
        )  # fmt: skip

    def _what(self, entry: EntryView) -> str:
        if entry.state == "plain":
            return "plain Python"
        return f"{html.count(entry.ops, 'operation')} in {html.count(len(entry.kernels), 'kernel')}"

    def _entry(self, entry: EntryView) -> str:
        graph = entry.graph.inside() if entry.graph is not None else ""
        guards = html.folded(
            f"{html.count(len(entry.guards), 'guard')}: it serves calls for which these hold",
            html.pre("\n".join(entry.guards)),
            opened=len(entry.guards) <= 8,
        )
        phases = html.facts(f"{html.short(name)} {html.time(ms)}" for name, ms in entry.phases.items())
        return graph + guards + (f'<div class="tcd-dim">compiling: {phases}</div>' if phases else "")

    def _code(self) -> str:
        broken = {stack.line for broke in self.breaks for stack in broke.stack if stack.file == self.where.file}
        rows = []
        for line in self.code:
            mark = "○" if line.line in broken else "●" if line.line in self.compiled_lines else " "
            tone = ' class="tcd-warn"' if mark == "○" else f' style="color:{html.ACCENT}"'
            rows.append(
                f'<span{tone}>{mark}</span><span class="tcd-no">{line.line:>5}</span>  {html.text(line.text[:400])}'
            )
        return f'<pre class="tcd-code">{chr(10).join(rows)}</pre>'

    def text(self) -> str:
        """The same as text, without the drawings."""
        counts = [html.count(len(self.entries), "entry").replace("entrys", "entries")]
        counts += [html.count(len(self.breaks), "graph break")] if self.breaks else []
        counts += [html.count(len(self.recompiles), "recompile")] if self.recompiles else []
        lines = [f"compiled {html.cut(self.name)}: {', '.join((*counts, *map(html.cut, self._state())))}"]
        for entry in self.entries:
            lines.append(
                f"  entry {entry.number}: {self._what(entry)}, "
                f"from {html.cut(entry.starts)} to {html.cut(entry.ends)}, "
                f"{html.count(len(entry.guards), 'guard')}, {html.count(entry.hits, 'hit')}, "
                f"compiled in {html.time(entry.compile_ms)}"
            )
        for broke in self.breaks:
            where = f"line {broke.stack[-1].line}: " if broke.stack else ""
            lines.append(f"  graph break: {where}{html.cut(broke.headline)}")
        lines += [f"  recompile: {html.cut(_first(reasons), 200)}" for reasons in self.recompiles]
        return "\n".join(lines)


def _first(reasons: tuple[str, ...]) -> str:
    """Returns why an entry was made: the first line of the newest earlier entry's failure."""
    return reasons[0].partition("\n")[0] if reasons else "no entry fitted the call"


__all__ = ["EntryView", "FunctionView"]
