"""The displays of graph breaks and guard failures.

Input: the facts of an event or a break.
Output: a ``GraphBreakView`` or a ``GuardFailureView``.
Why: logs, ``explain`` and notebooks show them in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tcompile.observe.display import html
from tcompile.observe.display.view import View
from tcompile.observe.source_location import UserLine, format_stack
from tcompile.records import dataclass

_DOCUMENT = "docs/graph_breaks.md"


@dataclass(frozen=True, kw_only=True)
class GraphBreakView(View):
    """A place where capture stopped. ``stack`` are the user's lines, outermost first; ``reason`` is its id."""

    kind: ClassVar[str] = "graph-break"
    function: str = ""
    reason: str = ""
    headline: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    stack: tuple[UserLine, ...] = ()

    def body(self) -> str:
        """Returns the headline, the user's line with the relevant part underlined, the explanation, and hints."""
        innermost = self.stack[-1] if self.stack else UserLine()
        where = html.place(innermost)
        by = f"in <code>{html.short(self.function, 80)}</code>" if self.function else ""
        parts = [html.title("graph break", html.facts((by, where)))]
        parts.append(html.note("why", html.code(f"{self.headline or self.reason}.")))
        parts += [html.source((innermost,))] if innermost.text else []
        parts += [f'<div class="tcd-note">{html.code(self.explanation, 400)}</div>'] if self.explanation else []
        parts += [html.note("hint", html.code(hint, 400), tone="good") for hint in self.hints]
        if len(self.stack) > 1:
            calls = "".join(f"<div>{html.place(line)}</div>{html.source((line,))}" for line in self.stack)
            parts.append(html.folded("called from", calls))
        known = f'<span class="tcd-dim">{_DOCUMENT} describes it as <code>{html.short(self.reason, 60)}</code></span>'
        return "".join((*parts, known if self.reason else ""))

    def text(self) -> str:
        """Returns the same as text."""
        by = f" in {html.cut(self.function)}" if self.function else ""
        lines = [f"graph break{by}: {self.headline} [{self.reason}]"]
        lines += [format_stack(self.stack, title="")] if self.stack else []
        lines += [self.explanation, *(f"Hint: {hint}" for hint in self.hints)]
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True, kw_only=True)
class GuardFailureView(View):
    """A guard of a compiled entry that did not hold for a call."""

    kind: ClassVar[str] = "guard-failure"
    function: str = ""
    entry: int = 0
    source: str = ""
    guard: str = ""
    expected: str = ""
    seen: str = ""
    hint: str = ""
    cell: str | None = None

    def body(self) -> str:
        """Returns the expected and the actual value."""
        where = f"in the call in {html.short(self.cell, 60)}" if self.cell else ""
        of = f"of entry {self.entry} of <code>{html.short(self.function, 80)}</code>"
        rows = [
            (html.text(name), f"<code>{html.short(value, 300)}</code>")
            for name, value in (("guard", self.guard), ("of", self.source), ("expected", self.expected))
            if value
        ]
        rows.append(("seen", f'<code class="tcd-warn">{html.short(self.seen, 300)}</code>'))
        cells = "".join(f'<tr><td class="tcd-dim">{name}</td><td>{value}</td></tr>' for name, value in rows)
        hint = html.note("hint", html.code(self.hint, 400), tone="good") if self.hint else ""
        return f"{html.title('guard failed', html.facts((of, where)))}<table>{cells}</table>{hint}"

    def text(self) -> str:
        """Returns the same as text."""
        lines = [f"guard failed: entry {self.entry} of {html.cut(self.function)}"]
        pairs = ("guard", self.guard), ("expected", self.expected), ("seen", self.seen), ("hint", self.hint)
        lines += [f"  {name:<9}{html.cut(value, 300)}" for name, value in pairs if value]
        return "\n".join(lines)


def of_break(event: Any) -> GraphBreakView:
    """Returns the view of a ``GraphBroke`` event."""
    stack: Sequence[UserLine] = event.stack or ((event.where,) if event.where.line else ())
    return GraphBreakView(
        function=event.function, reason=event.reason, headline=event.headline, explanation=event.explanation,
        hints=event.hints, stack=tuple(stack),
    )  # fmt: skip


def of_guard(event: Any) -> GuardFailureView:
    """Returns the view of a ``GuardFailed`` event."""
    return GuardFailureView(
        function=event.function, entry=event.entry, source=event.source, guard=event.guard, expected=event.expected,
        seen=event.seen, hint=event.hint, cell=event.cell,
    )  # fmt: skip


__all__ = ["GraphBreakView", "GuardFailureView", "of_break", "of_guard"]
