"""The report under a cell: a few lines that say what was compiled, what was not, and why.

Enters: a ``Record``, and the sections that the cell's options asked for. Leaves: an object that displays
itself, as HTML in a notebook and as text in a terminal. Exists as the one place where events are put into
words; all text that comes from the user's code is escaped here.

>>> from tcompile_jupyter.record import Record
>>> print(Report(Record(), stance="default"))
tcompile  nothing new to compile
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from tcompile.observe.events import GraphBroke, GraphCaptured, UserLine
from tcompile.observe.userline import file_label
from tcompile_jupyter.compare import Comparison, format_ms
from tcompile_jupyter.record import CELL, FunctionRecord, Record

_STYLE = """
.tcompile-report {font-size: .86em; line-height: 1.5; margin: .3em 0; padding: .1em 0 .1em .75em;
  border-left: 3px solid #4b8bbe}
.tcompile-report table {border-collapse: collapse; margin: .15em 0; font-size: 1em}
.tcompile-report td, .tcompile-report th {padding: 0 1.3em 0 0; text-align: left; border: none;
  background: none; white-space: nowrap; font-weight: normal; vertical-align: baseline; line-height: 1.45}
.tcompile-report th.number {opacity: .6}
.tcompile-report th.title, .tcompile-report td.title {text-align: left}
.tcompile-report .title b {color: #4b8bbe; font-weight: 600}
.tcompile-report tr {background: none !important}
.tcompile-report td.number, .tcompile-report th.number {text-align: right; font-variant-numeric: tabular-nums}
.tcompile-report .note {margin: .1em 0}
.tcompile-report .note b {color: #c77700; font-weight: 600}
.tcompile-report .hint, .tcompile-report .quiet {opacity: .65}
.tcompile-report .note .hint {padding-left: 1.2em}
.tcompile-report .bad {color: #c62828; font-weight: 600}
.tcompile-report summary {cursor: pointer; opacity: .65}
.tcompile-report pre {margin: .2em 0 .4em; padding: 0; font-size: .95em; line-height: 1.35; overflow-x: auto;
  background: none; border: none}
.tcompile-report svg {max-width: 100%; height: auto}
"""


@dataclass
class Report:
    """What a cell's run is summed up as. ``draw`` shows the drawings of the graphs, not folded away."""

    record: Record
    stance: str = "default"
    draw: bool = False
    waiting: tuple[str, ...] = ()
    comparison: Comparison | None = None
    cell_file: str = ""

    # -- the words, the same in both forms --
    def headline(self) -> str:
        """One line: how much was compiled, in what time, under which stance."""
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
            parts.append(f"stance {self.stance}")
        return " · ".join(parts)

    def notes(self, function: FunctionRecord) -> list[Note]:
        """What to know about one function, most important first."""
        notes = []
        if not function.of_cell:  # a cell's statements do much that is no array work
            notes = [
                Note("break", self.break_text(event), event.explanation, _hint(event)) for event in function.breaks
            ]
        if function.recompiles:
            reasons = function.recompiles[-1].reasons
            before = len(function.recompiles) - 1
            more = f", and {_count(before, 'other')} before it" if before else ""
            notes.append(Note("recompile", (reasons[0] if reasons else "no entry fitted the call") + more))
        if function.idle:
            notes.append(Note("plain", "it does no array work"))
        seen: dict[str, int] = {}
        for fallback in function.fallbacks:
            text = f"{fallback.reason}: {fallback.detail}" if fallback.detail else fallback.reason
            seen[text] = seen.get(text, 0) + 1
        if function.of_cell or not function.breaks:  # a break has already said why the function runs plainly
            notes += [Note("plain", f"{text} ({n} calls)" if n > 1 else text) for text, n in seen.items()]
        return notes

    def break_text(self, event: GraphBroke) -> str:
        """Line and reason of a break."""
        return f"{self.place(event.where)}{event.headline or event.reason}"

    def plain_statements(self) -> list[GraphBroke]:
        """Where the cell's own statements went on in plain Python: calls of compiled functions do not count."""
        breaks = next((function.breaks for function in self.record if function.of_cell), [])
        return [event for event in breaks if event.reason != "compiled-by-itself"]

    def place(self, where: UserLine) -> str:
        """``line 3, `if x.sum() > 0:`: `` for a line of this cell; other cells and files are named."""
        if not where.line:
            return ""
        file = "" if where.file == self.cell_file else f"{file_label(where.file)}, "
        text = f", `{where.text.strip()}`" if where.text.strip() else ""
        return f"{file}line {where.line}{text}: "

    def label(self, name: str) -> str:
        """How a function is called in the report."""
        return "the cell" if name == CELL else name

    # -- the forms --
    def __str__(self) -> str:
        lines = [f"tcompile  {self.headline()}"]
        for function in self.record:
            lines.append(f"  {self.label(function.name)}: {', '.join(_figures(function))}")
            for note in self.notes(function):
                lines.append(f"    {note.kind}: {note.text}")
                lines += [f"      why: {note.why}"] if note.why else []
                lines += [f"      hint: {note.hint}"] if note.hint else []
        if plain := self.plain_statements():
            places = ", ".join(str(event.where.line) for event in plain)
            lines.append(f"  statements of the cell in plain Python: line {places}")
        if self.waiting:
            lines.append(f"  not called yet: {', '.join(self.waiting)}")
        if self.comparison is not None:
            lines.append(f"  {self.comparison.sentence()}")
        if self.draw:
            lines += [graph.readable for function in self.record for graph in function.graphs]
        return "\n".join(lines)

    def html(self) -> str:
        """The report as one HTML element."""
        functions = list(self.record)
        compiled = [function for function in functions if function.compiles or function.graphs]
        if compiled:
            parts = [self._table(compiled)]
            if self.stance != "default":
                parts.append(f'<div class="quiet">stance {escape(self.stance)}</div>')
        else:
            parts = [f'<div class="title"><b>tcompile</b> {escape(self.headline())}</div>']
        for function in functions:
            for note in self.notes(function):
                name = escape(self.label(function.name))
                more = " ".join(_code(text) for text in (note.why, note.hint) if text)
                hint = f'<div class="hint">{more}</div>' if more else ""
                parts.append(f'<div class="note"><b>{note.kind}</b> in {name}, {_code(note.text)}{hint}</div>')
        if self.waiting:
            names = ", ".join(escape(name) for name in self.waiting)
            parts.append(f'<div class="quiet">compiled when first called: {names}</div>')
        if self.comparison is not None:
            mark = "" if self.comparison.difference.equal else ' class="bad"'
            parts.append(f"<div{mark}>{escape(self.comparison.sentence())}</div>")
        parts += [self._graph(function, graph) for function in functions for graph in function.graphs]
        if plain := self.plain_statements():
            texts = "".join(f"<div>{_code(self.break_text(event))}</div>" for event in plain)
            summary = f"{_count(len(plain), 'statement')} of the cell in plain Python"
            parts.append(f"<details><summary>{summary}</summary>{texts}</details>")
        return f'<div class="tcompile-report"><style>{_STYLE}</style>{"".join(parts)}</div>'

    def _table(self, functions: list[FunctionRecord]) -> str:
        heads = ("<b>tcompile</b>", "graphs", "operations", "kernels", "breaks", "recompiles", "compile time")
        row = "".join(f"<th{_number(n)}>{head}</th>" for n, head in enumerate(heads))
        rows = [f"<tr>{row}</tr>"]
        for function in functions:
            cells = (
                escape(self.label(function.name)),
                len(function.graphs),
                sum(graph.ops for graph in function.graphs),
                function.kernels,
                0 if function.of_cell else len(function.breaks),
                len(function.recompiles),
                format_ms(function.compile_ms) if function.compiles else "",
            )
            rows.append("<tr>" + "".join(f"<td{_number(n)}>{cell}</td>" for n, cell in enumerate(cells)) + "</tr>")
        return f"<table>{''.join(rows)}</table>"

    def _graph(self, function: FunctionRecord, graph: GraphCaptured) -> str:
        name = escape(self.label(function.name))
        drawing = ""
        if self.draw and graph.get_graph is not None:
            drawing = graph.get_graph().svg()
        guards = "".join(f"{escape(guard)}\n" for guard in graph.guards)
        held = f"<div class='hint'>holds while</div><pre>{guards}</pre>" if guards else ""
        summary = f"graph of {name}, {_count(graph.ops, 'operation')}"
        body = f"{drawing}<pre>{escape(graph.readable)}</pre>{held}"
        return f"<details{' open' if self.draw else ''}><summary>{summary}</summary>{body}</details>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self.html()}


@dataclass(frozen=True)
class Note:
    """One thing that the compiler could not do, or did again: what, why, and what to do about it."""

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


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _number(column: int) -> str:
    return ' class="number"' if column else ' class="title"'


def _code(text: str) -> str:
    """Escaped text, its `quoted` stretches as code."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:  # an odd backquote is the user's own
        return escape(text)
    return "".join(f"<code>{escape(p)}</code>" if n % 2 else escape(p) for n, p in enumerate(pieces))
