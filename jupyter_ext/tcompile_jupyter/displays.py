"""The displays that only notebooks have: comparisons, and the report under a cell.

Input: facts, gathered by ``compare`` and ``report``.
Output: views like those of ``tcompile.observe.display``, and the JSON Schema of all views.
Why: front ends can draw them by themselves. ``tools/write_display_schema.py`` writes the schema to
``displays.schema.json`` beside this file.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from tcompile.observe.display import html
from tcompile.observe.display.explained import ExplainView
from tcompile.observe.display.functions import FunctionView
from tcompile.observe.display.graphs import GraphView
from tcompile.observe.display.kernels import KernelView
from tcompile.observe.display.places import GraphBreakView, GuardFailureView
from tcompile.observe.display.profiles import Cause, ProfileView
from tcompile.observe.display.schema import schema_of
from tcompile.observe.display.view import View
from tcompile.records import dataclass

PATH = Path(__file__).with_name("displays.schema.json")
_SHORT_MS = 0.05  # shorter times do not matter in a cell


def tone_of(eager_ms: float, compiled_ms: float, text: str) -> str:
    """Returns "good", "warn" or "dim", for a pair of times in milliseconds and their ``html.speed``."""
    if text == "same" or max(eager_ms, compiled_ms) <= _SHORT_MS:
        return "dim"
    return "good" if compiled_ms < eager_ms else "warn"


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """The same work in plain Python and compiled; times are medians of ``repeats`` runs of each, in milliseconds.

    ``speed`` is the ratio in words. ``tone`` is "good" or "warn" where compiled code is faster or slower and the times
    matter, else "dim". ``difference`` is the difference of the results, in words if they are not ``equal``.
    ``uncertainty`` is the larger relative error of the medians, with 95% confidence.
    """

    name: str = ""
    eager_ms: float = 0.0
    compiled_ms: float = 0.0
    speed_up: float | None = None
    speed: str = ""
    tone: str = "dim"
    equal: bool = True
    difference: str = ""
    repeats: int = 0
    graphs: int | None = None
    kernels: int | None = None
    uncertainty: float | None = None


@dataclass(frozen=True, kw_only=True)
class ComparisonView(View):
    """A table of comparisons; ``what`` is the kind of its rows."""

    kind: ClassVar[str] = "comparison"
    what: str = "function"
    rows: tuple[ComparisonRow, ...] = ()
    draw_text: str = field(default="", repr=False)

    def body(self) -> str:
        """Returns the table, with a bar for each time."""
        counted = any(row.graphs is not None for row in self.rows)
        counts = ("graphs", "kernels") if counted else ()
        head = [html.short(self.what), *counts, "plain Python", "compiled", "", "speed-up"]
        left = 0, len(head) - 2, len(head)
        return html.table([*head, "difference"], [self._row(row, counted) for row in self.rows], left=left)

    def _row(self, row: ComparisonRow, counted: bool) -> tuple[str, ...]:
        counts = ["" if count is None else str(count) for count in (row.graphs, row.kernels)] if counted else []
        difference = html.short(row.difference, 40 if row.equal else 200)
        if row.equal:
            result = "none" if row.difference == "0" else f'<span style="white-space:nowrap">{difference}</span>'
        else:
            result = f'<span class="tcd-bad">DIFFERENT: {difference}</span>'
        sure = "" if row.uncertainty is None else f", ±{100 * row.uncertainty:.2g}%"
        sure = f' title="medians of {row.repeats} runs{sure}"'
        return (
            f'<code style="white-space:nowrap">{html.short(row.name, 52)}</code>', *counts,
            html.time(row.eager_ms), html.time(row.compiled_ms), self._bars(row),
            f'<span class="tcd-{row.tone}"{sure}>{html.short(row.speed, 20)}</span>', result,
        )  # fmt: skip

    def _bars(self, row: ComparisonRow) -> str:
        longest = max(row.eager_ms, row.compiled_ms) or 1.0
        return "".join(
            f'<div style="height:.34em;margin:.14em 0;border-radius:2px;background:{colour};'
            f'width:{max(0.1, 6 * ms / longest):.2f}em"></div>'
            for ms, colour in ((row.eager_ms, "rgba(127,127,127,.6)"), (row.compiled_ms, html.ACCENT))
        )

    def text(self) -> str:
        """Returns the table as text."""
        return self.draw_text


@dataclass(frozen=True, kw_only=True)
class TimeSpent:
    """What took the time of a cell's run, by samples, in milliseconds.

    Compiling and loading the compiler are paid once. ``causes`` are lines in plain Python, ranked.
    """

    ms: float = 0.0
    compiled_ms: float = 0.0
    compiling_ms: float = 0.0
    loading_ms: float = 0.0
    plain_ms: float = 0.0
    causes: tuple[Cause, ...] = ()

    def headline(self) -> str:
        """Returns the time, and the share of each kind."""
        kinds = {
            "plain Python": self.plain_ms, "compiled code": self.compiled_ms, "compiling": self.compiling_ms,
            "loading the compiler": self.loading_ms,
        }  # fmt: skip
        shares = [f"{ms / self.ms:.0%} {name}" for name, ms in kinds.items() if ms >= 0.01 * self.ms]
        return f"took {html.time(self.ms)}: {', '.join(shares)}"


@dataclass(frozen=True, kw_only=True)
class FunctionReport:
    """The events of one function while a cell ran; ``cell`` is true for the cell's own statements."""

    name: str = ""
    cell: bool = False
    kernels: int = 0
    compile_ms: float = 0.0
    graphs: tuple[GraphView, ...] = ()
    breaks: tuple[GraphBreakView, ...] = ()
    recompiles: tuple[tuple[str, ...], ...] = ()
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReportView(View):
    """The report under a cell. ``waiting`` names the functions of the cell that were not called.

    ``plain_statements`` are the lines of the cell from which its own statements ran in plain Python, with the reasons.
    """

    kind: ClassVar[str] = "report"
    headline: str = ""
    stance: str = "default"
    functions: tuple[FunctionReport, ...] = ()
    waiting: tuple[str, ...] = ()
    plain_statements: tuple[GraphBreakView, ...] = ()
    comparison: ComparisonView | None = None
    statements: ComparisonView | None = None
    spent: TimeSpent | None = None
    times: ProfileView | None = None
    gradient: GradientView | None = None
    draw_html: str = field(default="", repr=False)
    draw_text: str = field(default="", repr=False)

    def body(self) -> str:
        """Returns the HTML made by ``report``."""
        return self.draw_html

    def text(self) -> str:
        """Returns the same as text."""
        return self.draw_text


@dataclass(frozen=True, kw_only=True)
class GradientRow:
    """The gradient by one argument: its norm, and its relative error by finite differences of each step.

    ``best`` is the smallest of ``errors``. Errors are None where finite differences tell nothing. ``verdict`` has the
    outcome in words.
    """

    argument: str = ""
    shape: str = ""
    norm: float | None = 0.0
    best: float | None = None
    step: float | None = None
    agrees: bool = True
    differs: bool = False
    verdict: str = ""
    errors: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GradientView(View):
    """A function's gradient: whether finite differences confirm it, what it costs, and its graph.

    Times are medians of calls in milliseconds, of the function and of value and gradient together.
    """

    kind: ClassVar[str] = "gradient"
    function: str = ""
    value: float | None = 0.0
    rows: tuple[GradientRow, ...] = ()
    steps: tuple[float, ...] = ()
    function_ms: float = 0.0
    gradient_ms: float = 0.0
    lines: str = ""
    graphs: tuple[GraphView, ...] = ()
    draw_svg: str = field(default="", repr=False)

    def headline(self) -> str:
        """Returns value and cost in a line."""
        ratio = f", {self.gradient_ms / self.function_ms:.1f} times the function" if self.function_ms else ""
        cost = f"value and gradient {html.time(self.gradient_ms)}{ratio}"
        return f"value {'not finite' if self.value is None else f'{self.value:.6g}'} · {cost}"

    def body(self) -> str:
        """Returns the table of arguments, the errors by step, the table of lines and the graphs."""
        head = html.title(f"gradient of {html.short(self.function, 60)}", html.text(self.headline()))
        rows = [
            (
                f"<code>{html.short(row.argument, 40)}</code>",
                html.text(row.shape),
                _norm(row),
                self._verdict(row),
            )
            for row in self.rows
        ]
        parts = [head, html.table(("by", "shape", "norm", "finite differences"), rows, left=(0, 1, 3))]
        if self.draw_svg:
            parts.append(html.picture(self.draw_svg, "errors by step"))
        if self.lines:
            parts.append(html.folded("operations and stored bytes by line", html.pre(self.lines)))
        for graph in self.graphs:
            parts.append(html.folded(f"graph, {html.count(graph.ops, 'operation')}", graph.inside()))
        return "".join(parts)

    def _verdict(self, row: GradientRow) -> str:
        tone = "good" if row.agrees else "bad" if row.differs else "warn"
        return f'<span class="tcd-{tone}">{html.text(row.verdict)}</span>'

    def lines_of_text(self) -> list[str]:
        """Returns the value, the cost, and the outcome for each argument."""
        lines = [f"gradient of {self.function}: {self.headline()}"]
        return lines + [f"  by {row.argument} {row.shape}: norm {_norm(row)}, {row.verdict}" for row in self.rows]

    def text(self) -> str:
        """Returns the same as text, without the graphs."""
        return "\n".join([*self.lines_of_text(), self.lines]).rstrip()


def _norm(row: GradientRow) -> str:
    return "" if row.norm is None else f"{row.norm:.4g}"


VIEWS: tuple[type[View], ...] = (
    FunctionView, GraphView, KernelView, GraphBreakView, GuardFailureView, ExplainView, ProfileView, ComparisonView,
    GradientView, ReportView,
)  # fmt: skip


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of every display's JSON form."""
    return schema_of(VIEWS)


__all__ = [
    "PATH", "VIEWS", "ComparisonRow", "ComparisonView", "FunctionReport", "GradientRow", "GradientView", "ReportView",
    "schema",
]  # fmt: skip
