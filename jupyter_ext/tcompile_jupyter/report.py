"""The report under a cell: what was compiled, what was not, and why.

Input: a ``Record``, and the sections that the cell's options select.
Output: an object that displays itself, as HTML in a notebook and as text in a terminal.
Why: events are put into words in one place, and text from the user's code is escaped there.

>>> from tcompile_jupyter.record import Record
>>> print(CellReport(Record(), stance="default"))
tcompile  nothing new to compile
"""

from __future__ import annotations

from typing import Any

from tcompile.observe.display.graphs import GraphView
from tcompile.observe.display.html import code, cut, folded, note, page, pre, printable, short, table, text, title
from tcompile.observe.display.html import count as _count
from tcompile.observe.display.html import time as format_ms
from tcompile.observe.display.places import GraphBreakView, of_break
from tcompile.observe.display.profiles import ProfileView, causes_html, causes_text
from tcompile.observe.events import GraphBroke, GraphCaptured
from tcompile.observe.explain import ExplainOutput
from tcompile.observe.html_form import html_form
from tcompile.observe.profiler import CompileProfiler
from tcompile.observe.source_location import UserLine, file_label
from tcompile.records import dataclass
from tcompile.runtime.cell import CELL
from tcompile_jupyter.compare import Comparison, Comparisons
from tcompile_jupyter.displays import FunctionReport, GradientView, ReportView, TimeSpent
from tcompile_jupyter.record import FunctionRecord, Record, plain_statements

_STATEMENTS = 10  # of the cell in plain Python, listed in a terminal


@dataclass
class CellReport:
    """The summary of a cell's run.

    ``draw`` shows the drawings of the graphs unfolded; ``explain`` all facts about each function; ``profile`` the
    profiler's counts. ``comparison`` is of the whole cell, ``statements`` of each statement,
    ``spent`` says what took the time of its run, ``times`` where its time goes, ``gradient`` is that of a function that
    it calls.
    """

    record: Record
    stance: str = "default"
    draw: bool = False
    explain: bool = False
    waiting: tuple[str, ...] = ()
    comparison: Comparison | None = None
    statements: Comparisons | None = None
    spent: TimeSpent | None = None
    times: ProfileView | None = None
    gradient: GradientView | None = None
    profile: CompileProfiler | None = None
    cell_file: str = ""

    # -- the words, the same in both forms --
    def headline(self) -> str:
        """Returns one line: how much was compiled, in what time, under which stance."""
        functions, counts = list(self.record), self.record.counts
        if counts.graphs:
            parts = [_count(counts.graphs, "graph"), _count(counts.kernels, "kernel")]
        elif functions:
            parts = ["nothing could be compiled" if counts.breaks else "nothing to compile"]
        elif self.stance == "force_eager":
            parts = ["ran in plain Python"]
        else:
            parts = ["nothing new to compile"]
        if counts.compile_ms:
            parts.append(f"{format_ms(counts.compile_ms)} compiling")
        if self.stance != "default":
            parts.append(f"stance {cut(self.stance, 40)}")
        return " · ".join(parts)

    def notes(self, function: FunctionRecord) -> list[Note]:
        """Returns the remarks on one function, most important first."""
        notes = []
        if not function.of_cell:  # a cell's statements do much that is not array work
            notes = [
                Note("break", self.break_text(of_break(event)), event.explanation, _hint(event))
                for event in function.breaks
            ]
        if function.recompiles:
            reasons = function.recompiles[-1].reasons
            before = len(function.recompiles) - 1
            more = f", and {_count(before, 'other')} before it" if before else ""
            first, _, rest = (reasons[0] if reasons else "no entry fitted the call").partition("\n")
            notes.append(Note("recompile", first + more, hint=rest.strip().removeprefix("Hint: ")))
        if function.idle:
            notes.append(Note("plain", "it does no array work"))
        seen: dict[str, int] = {}
        for fallback in function.fallbacks:
            text = f"{fallback.reason}: {fallback.detail}" if fallback.detail else fallback.reason
            seen[text] = seen.get(text, 0) + 1
        if function.of_cell or not function.breaks:  # a break has already explained why the function runs plainly
            notes += [Note("plain", f"{text} ({n} calls)" if n > 1 else text) for text, n in seen.items()]
        return notes

    def break_text(self, broke: GraphBreakView) -> str:
        """Returns line and reason of a break."""
        return f"{self.place(broke.stack[-1]) if broke.stack else ''}{broke.headline or broke.reason}"

    def plain_statements(self) -> list[GraphBreakView]:
        """Returns the lines of the cell from which its own statements ran in plain Python, with the reasons."""
        own = (function for function in self.record if function.of_cell)
        return [broke for function in own for broke in plain_statements(map(of_break, function.breaks), self.cell_file)]

    def place(self, where: UserLine) -> str:
        """``line 3, `if x.sum() > 0:`: `` for a line of this cell; other cells and files are named."""
        if not where.line:
            return ""
        file = "" if where.file == self.cell_file else f"{file_label(where.file)}, "
        text = f", `{where.text.strip()}`" if where.text.strip() else ""
        return f"{file}line {where.line}{text}: "

    def label(self, name: str) -> str:
        """Returns a function's name in the report."""
        return "the cell" if name == CELL else cut(printable(name), 80)

    # -- the forms --
    def __str__(self) -> str:
        lines = [f"tcompile  {self.headline()}"]
        for function in self.record:
            lines.append(f"  {self.label(function.name)}: {', '.join(_figures(function))}")
            for remark in self.notes(function):
                lines.append(f"    {remark.kind}: {cut(remark.text, 300)}")
                lines += [f"      why: {cut(remark.why, 300)}"] if remark.why else []
                lines += [f"      hint: {remark.hint}"] if remark.hint else []
        if plain := self.plain_statements():
            lines.append(f"  {_count(len(plain), 'statement')} of the cell in plain Python:")
            lines += [f"    {cut(self.break_text(broke), 300)}" for broke in plain[:_STATEMENTS]]
            more = len(plain) - _STATEMENTS
            lines += [f"    and {_count(more, 'other')}"] if more > 0 else []
        if self.waiting:
            lines.append(f"  not called yet: {', '.join(map(self.label, self.waiting))}")
        if self.comparison is not None:
            lines.append(f"  {self.comparison.sentence()}")
        if self.statements is not None:
            lines.append(repr(self.statements))
        if self.spent is not None:
            lines.append(f"  {self.spent.headline()}")
            lines += [causes_text(self.spent.causes, self.spent.ms)] if self.spent.causes else []
        if self.times is not None:
            lines.append(f"\n{self.times}")
        if self.gradient is not None:
            lines.append(f"\n{self.gradient}")
        if self.draw and not self.explain:
            lines += [graph.readable for function in self.record for graph in function.graphs]
        if self.explain:
            lines += [f"\n{self._explained(function)}" for function in self.record if not function.idle]
        if self.profile is not None:
            lines.append(f"\n{self.profile.report()}")
        return printable("\n".join(lines))

    def line(self) -> str:
        """Returns the report in one line, for a cell that did not ask for more."""
        names = [self.label(function.name) for function in self.record]
        summary = f" {', '.join(names[:4])}{', …' if len(names) > 4 else ''}:" if names else ""
        counts = self.record.counts
        plain = sum(remark.kind == "plain" for function in self.record for remark in self.notes(function))
        numbers = {"graph break": counts.breaks, "recompile": counts.recompiles, "run in plain Python": plain}
        more = [_count(number, what) for what, number in numbers.items() if number]
        return printable(f"tcompile {summary} {' · '.join((self.headline(), *more))}")

    def one_line_html(self) -> str:
        """Returns the same as HTML: a line that opens the report."""
        summary = self.line().removeprefix("tcompile").strip()
        line = f'<span class="tcd-title"><b>tcompile</b></span> {short(summary, 300)}'
        return page(folded(line, self._body()), "report")

    def html(self) -> str:
        """Returns the report as one HTML element."""
        return page(self._body(), "report")

    def _body(self) -> str:
        functions = list(self.record)
        compiled = [function for function in functions if function.compiles or function.graphs]
        if compiled:
            parts = [self._table(compiled)]
            if self.stance != "default":
                parts.append(f'<div class="tcd-dim">stance {text(self.stance)}</div>')
        else:
            parts = [title("tcompile", text(self.headline()))]
        for function in functions:
            for remark in self.notes(function):
                name = short(self.label(function.name), 60)
                more = [" ".join(code(words) for words in (remark.why, remark.hint) if words)]
                parts.append(note(remark.kind, f"in {name}, {code(remark.text)}", more))
        if self.waiting:
            names = ", ".join(short(name, 60) for name in self.waiting)
            parts.append(f'<div class="tcd-dim">compiled when first called: {names}</div>')
        if self.comparison is not None:
            mark = "" if not self.comparison.difference.wrong else ' class="tcd-bad"'
            parts.append(f"<div{mark}>{text(self.comparison.sentence())}</div>")
        if self.statements is not None:
            parts.append(self.statements.view().body())
        if self.spent is not None:
            parts.append(f'<div class="tcd-dim">{text(self.spent.headline())}</div>')
            parts += [causes_html(self.spent.causes, self.spent.ms)] if self.spent.causes else []
        if self.times is not None:
            parts.append(self.times.body())
        if self.gradient is not None:
            parts.append(self.gradient.body())
        if self.explain:
            parts += [self._explained(function).view().body() for function in functions if not function.idle]
        else:
            parts += [self._graph(function, graph) for function in functions for graph in function.graphs]
        if self.profile is not None:
            parts.append(self.profile.body())
        if plain := self.plain_statements():
            lines = "".join(f"<div>{code(self.break_text(broke))}</div>" for broke in plain)
            parts.append(folded(f"{_count(len(plain), 'statement')} of the cell in plain Python", lines))
        return "".join(parts)

    def _explained(self, function: FunctionRecord) -> ExplainOutput:
        """The facts about one function; a cell's statements in plain Python have a list of their own."""
        events = [event for event in function.events if not (function.of_cell and isinstance(event, GraphBroke))]
        return ExplainOutput.of(events, self.label(function.name))

    def _table(self, functions: list[FunctionRecord]) -> str:
        rows = [
            (
                short(self.label(function.name), 60),
                *map(str, (counts.graphs, counts.operations, counts.kernels, counts.breaks, counts.recompiles)),
                format_ms(counts.compile_ms) if function.compiles else "",
            )
            for function in functions
            for counts in (function.counts,)
        ]
        heads = "<b>tcompile</b>", "graphs", "operations", "kernels", "breaks", "recompiles", "compile time"
        return table(heads, rows)

    def _graph(self, function: FunctionRecord, event: GraphCaptured) -> str:
        name = short(self.label(function.name), 60)
        body = _view(event, draw=True).inside(opened=True) if self.draw else pre(event.readable)
        if event.guards:
            body += folded(
                f"{_count(len(event.guards), 'guard')}: valid while all of them hold", pre("\n".join(event.guards))
            )
        return folded(f"graph of {name}, {_count(event.ops, 'operation')}", body, opened=self.draw)

    def view(self) -> ReportView:
        """Returns the data of the report's display."""
        functions = tuple(
            FunctionReport(
                name=self.label(function.name), cell=function.of_cell, kernels=function.counts.kernels,
                compile_ms=function.counts.compile_ms, graphs=tuple(map(_view, function.graphs)),
                breaks=() if function.of_cell else tuple(map(of_break, function.breaks)),
                recompiles=tuple(event.reasons for event in function.recompiles),
                fallbacks=tuple(f"{event.reason}: {event.detail}" for event in function.fallbacks),
            )
            for function in self.record
        )  # fmt: skip
        return ReportView(
            headline=self.headline(), stance=self.stance, functions=functions, waiting=self.waiting,
            plain_statements=tuple(self.plain_statements()),
            comparison=Comparisons([self.comparison]).view() if self.comparison is not None else None,
            statements=self.statements.view() if self.statements is not None else None,
            spent=self.spent, times=self.times, gradient=self.gradient, draw_html=self._body(), draw_text=str(self),
        )  # fmt: skip

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return self.view().bundle()

    _repr_html_ = html_form


@dataclass(frozen=True)
class Line:
    """A report as one line, which opens it; what ``%tcompile watch`` shows."""

    report: CellReport

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        forms = {"text/html": self.report.one_line_html(), "text/plain": self.report.line()}
        return self.report.view().bundle(**forms)

    _repr_html_ = html_form


@dataclass(frozen=True)
class Note:
    """One remark: what the compiler could not do, or did again, why, and a hint."""

    kind: str
    text: str
    why: str = ""
    hint: str = ""


def _figures(function: FunctionRecord) -> list[str]:
    counts = function.counts
    figures = [_count(counts.graphs, "graph"), _count(counts.kernels, "kernel")]
    figures += [_count(counts.breaks, "break")] if counts.breaks else []
    figures += [_count(counts.recompiles, "recompile")] if counts.recompiles else []
    figures += [f"compiled in {format_ms(counts.compile_ms)}"] if function.compiles else []
    return figures


def _hint(event: GraphBroke) -> str:
    return event.hints[0] if event.hints else ""


def _view(event: GraphCaptured, draw: bool = False) -> GraphView:
    graph: Any = event.get_graph() if event.get_graph is not None else None
    if hasattr(graph, "view"):
        view: GraphView = graph.view(draw)
        return view
    return GraphView(name=event.graph, ops=event.ops, listing=event.readable)
