"""The report under a cell: what was compiled, what was not, and why.

Input: a ``Record``, and the sections that the cell's options select.
Output: an object that displays itself, as HTML in a notebook and as text in a terminal.
Why: events are put into words in one place, and text from the user's code is escaped there.

>>> from tcompile_jupyter.record import Record
>>> print(CellReport(Record(), stance="default"))
tcompile  nothing new to compile
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tcompile.observe.display.graphs import GraphView
from tcompile.observe.display.html import code, cut, folded, note, page, pre, printable, short, table, text, title
from tcompile.observe.display.html import count as _count
from tcompile.observe.display.html import time as format_ms
from tcompile.observe.display.places import of_break
from tcompile.observe.events import GraphBroke, GraphCaptured
from tcompile.observe.explain import ExplainOutput
from tcompile.observe.html_form import html_form
from tcompile.observe.profiler import CompileProfiler
from tcompile.observe.source_location import UserLine, file_label
from tcompile.records import dataclass
from tcompile.runtime.cell import CELL
from tcompile_jupyter.compare import Comparison, Comparisons
from tcompile_jupyter.displays import FunctionReport, GradientView, ReportView
from tcompile_jupyter.record import FunctionRecord, Record


@dataclass
class CellReport:
    """The summary of a cell's run.

    ``draw`` shows the drawings of the graphs unfolded; ``explain`` all facts about each function; ``profile`` the
    profiler's counts. ``comparison`` is of the whole cell, ``statements`` of each statement,
    ``gradient`` of a function that it calls.
    """

    record: Record
    stance: str = "default"
    draw: bool = False
    explain: bool = False
    waiting: tuple[str, ...] = ()
    comparison: Comparison | None = None
    statements: Comparisons | None = None
    gradient: GradientView | None = None
    profile: CompileProfiler | None = None
    cell_file: str = ""

    # -- the words, the same in both forms --
    def headline(self) -> str:
        """Returns one line: how much was compiled, in what time, under which stance."""
        functions = list(self.record)
        graphs = sum(len(function.graphs) for function in functions)
        kernels = sum(function.kernels for function in functions)
        if graphs:
            parts = [_count(graphs, "graph"), _count(kernels, "kernel")]
        elif functions:
            parts = ["nothing could be compiled" if any(f.breaks for f in functions) else "nothing to compile"]
        elif self.stance == "force_eager":
            parts = ["ran in plain Python"]
        else:
            parts = ["nothing new to compile"]
        ms = sum(function.compile_ms for function in functions)
        if ms:
            parts.append(f"{format_ms(ms)} compiling")
        if self.stance != "default":
            parts.append(f"stance {cut(self.stance, 40)}")
        return " · ".join(parts)

    def notes(self, function: FunctionRecord) -> list[Note]:
        """Returns the remarks on one function, most important first."""
        notes = []
        if not function.of_cell:  # a cell's statements do much that is not array work
            notes = [
                Note("break", self.break_text(event), event.explanation, _hint(event)) for event in function.breaks
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

    def break_text(self, event: GraphBroke) -> str:
        """Returns line and reason of a break."""
        return f"{self.place(event.where)}{event.headline or event.reason}"

    def plain_statements(self) -> list[GraphBroke]:
        """Returns the lines from which the cell's own statements ran in plain Python, each once.

        Calls of compiled functions do not count. Several captures may stop at a line; the last one says what remained.
        The lines are the cell's, even if a called function stopped the capture.
        """
        breaks = next((function.breaks for function in self.record if function.of_cell), [])
        found: dict[int, GraphBroke] = {}
        for event in breaks:
            here = [line for line in (*event.stack, event.where) if line.line and line.file == self.cell_file]
            if here and event.reason != "compiled-by-itself":
                found[here[0].line] = replace(event, where=here[0])
        return list(found.values())

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
            places = ", ".join(str(event.where.line) for event in plain)
            lines.append(f"  statements of the cell in plain Python: line {places}")
        if self.waiting:
            lines.append(f"  not called yet: {', '.join(map(self.label, self.waiting))}")
        if self.comparison is not None:
            lines.append(f"  {self.comparison.sentence()}")
        if self.statements is not None:
            lines.append(repr(self.statements))
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
        remarks = [remark for function in self.record for remark in self.notes(function)]
        kinds = {kind: sum(remark.kind == kind for remark in remarks) for kind in ("break", "recompile", "plain")}
        words = {"break": "graph break", "recompile": "recompile", "plain": "run in plain Python"}
        more = [_count(number, words[kind]) for kind, number in kinds.items() if number]
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
            mark = "" if self.comparison.difference.equal else ' class="tcd-bad"'
            parts.append(f"<div{mark}>{text(self.comparison.sentence())}</div>")
        if self.statements is not None:
            parts.append(self.statements.view().body())
        if self.gradient is not None:
            parts.append(self.gradient.body())
        if self.explain:
            parts += [self._explained(function).view().body() for function in functions if not function.idle]
        else:
            parts += [self._graph(function, graph) for function in functions for graph in function.graphs]
        if self.profile is not None:
            parts.append(self.profile.body())
        if plain := self.plain_statements():
            lines = "".join(f"<div>{code(self.break_text(event))}</div>" for event in plain)
            parts.append(folded(f"{_count(len(plain), 'statement')} of the cell in plain Python", lines))
        return "".join(parts)

    def _explained(self, function: FunctionRecord) -> ExplainOutput:
        return ExplainOutput.of(function.events, self.label(function.name))

    def _table(self, functions: list[FunctionRecord]) -> str:
        rows = [
            (
                short(self.label(function.name), 60),
                *(
                    str(number)
                    for number in (
                        len(function.graphs), sum(graph.ops for graph in function.graphs), function.kernels,
                        0 if function.of_cell else len(function.breaks), len(function.recompiles),
                    )
                ),
                format_ms(function.compile_ms) if function.compiles else "",
            )
            for function in functions
        ]  # fmt: skip
        heads = "<b>tcompile</b>", "graphs", "operations", "kernels", "breaks", "recompiles", "compile time"
        return table(heads, rows)

    def _graph(self, function: FunctionRecord, event: GraphCaptured) -> str:
        name = short(self.label(function.name), 60)
        body = _view(event, draw=True).inside(opened=True) if self.draw else pre(event.readable)
        if event.guards:
            body += folded(f"{_count(len(event.guards), 'guard')}: it holds while", pre("\n".join(event.guards)))
        return folded(f"graph of {name}, {_count(event.ops, 'operation')}", body, opened=self.draw)

    def view(self) -> ReportView:
        """Returns the data of the report's display."""
        functions = tuple(
            FunctionReport(
                name=self.label(function.name), cell=function.of_cell, kernels=function.kernels,
                compile_ms=function.compile_ms, graphs=tuple(map(_view, function.graphs)),
                breaks=tuple(map(of_break, function.breaks)),
                recompiles=tuple(event.reasons for event in function.recompiles),
                fallbacks=tuple(f"{event.reason}: {event.detail}" for event in function.fallbacks),
            )
            for function in self.record
        )  # fmt: skip
        return ReportView(
            headline=self.headline(), stance=self.stance, functions=functions, waiting=self.waiting,
            comparison=Comparisons([self.comparison]).view() if self.comparison is not None else None,
            statements=self.statements.view() if self.statements is not None else None,
            gradient=self.gradient, draw_html=self._body(), draw_text=str(self),
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
    figures = [_count(len(function.graphs), "graph"), _count(function.kernels, "kernel")]
    if function.breaks and not function.of_cell:
        figures.append(_count(len(function.breaks), "break"))
    if function.recompiles:
        figures.append(_count(len(function.recompiles), "recompile"))
    if function.compiles:
        figures.append(f"compiled in {format_ms(function.compile_ms)}")
    return figures


def _hint(event: GraphBroke) -> str:
    return event.hints[0] if event.hints else ""


def _view(event: GraphCaptured, draw: bool = False) -> GraphView:
    graph: Any = event.get_graph() if event.get_graph is not None else None
    if hasattr(graph, "view"):
        view: GraphView = graph.view(draw)
        return view
    return GraphView(name=event.graph, ops=event.ops, listing=event.readable)
