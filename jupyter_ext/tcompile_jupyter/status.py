"""``%tcompile`` alone: the compiled functions of the namespace, and their counts.

Input: the user's namespace.
Output: a ``StatusTable`` that displays itself.
Why: the state of the compiler can be seen at any time, not only under the cell that compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from tcompile.backends import list_backends, why_no_native
from tcompile.observe.display import html
from tcompile.observe.html_form import html_form
from tcompile.records import dataclass
from tcompile.runtime.dispatch import CompiledFunction, parts_of
from tcompile.runtime.look import calls_are
from tcompile.stance import current


@dataclass(frozen=True)
class StatusTable:
    """The stance, how calls are answered, the backends, and one row for each compiled function.

    A row is the function's name and the counts that ``HEADS`` names.
    """

    stance: str
    calls: str
    backends: tuple[str, ...]
    functions: tuple[tuple[str, int, int, int, int], ...]
    plain: str = ""  # why functions run in plain Python

    HEADS = ("function", "entries", "graphs", "breaks", "recompiles")

    @classmethod
    def of(cls, namespace: Mapping[str, Any]) -> StatusTable:
        """Returns the status of the compiled functions in ``namespace``; names that IPython made are left out."""
        rows = []
        for name, value in namespace.items():
            if is_compiled(value) and not name.startswith("_"):
                cache = parts_of(value)[2]  # the user may have given the function attributes of these names
                rows.append((name, len(cache.entries), len(cache.graphs), len(cache.breaks), len(cache.recompiles)))
        return cls(current_stance(), calls_are(), tuple(list_backends()), tuple(rows), why_no_native() or "")

    def __str__(self) -> str:
        lines = [f"stance {self.stance}; calls {self.calls}; backends {', '.join(self.backends)}"]
        if self.plain:
            lines.append(f"no native code, so functions run in plain Python: {self.plain}")
        if not self.functions:
            return "\n".join([*lines, "no compiled functions here"])
        table = [self.HEADS, *((html.cut(html.printable(name)), *map(str, row)) for name, *row in self.functions)]
        widths = [max(len(row[n]) for row in table) for n in range(len(self.HEADS))]
        for row in table:
            numbers = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
            lines.append("  ".join([row[0].ljust(widths[0]), *numbers]))
        return "\n".join(lines)

    def html(self) -> str:
        """The status as HTML."""
        backends = ", ".join(self.backends)
        facts_shown = f"stance {self.stance}", f"calls {self.calls}", f"backends {backends}"
        head = html.title("tcompile", f'<span class="tcd-dim">{html.facts(map(html.short, facts_shown))}</span>')
        if self.plain:
            head += html.note("plain", html.code(f"no native code, so functions run in plain Python: {self.plain}"))
        rows = [(f"<code>{html.short(name)}</code>", *map(str, counts)) for name, *counts in self.functions]
        return html.page(head + (html.table(self.HEADS, rows) if rows else "<div>no compiled functions here</div>"))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self.html()}

    _repr_html_ = html_form


def is_compiled(value: Any) -> TypeGuard[CompiledFunction]:
    """Whether ``value`` is a function that tcompile compiled."""
    return type(value) is CompiledFunction


def current_stance() -> str:
    """Returns the name of the stance that holds in this thread."""
    stance: Any = current()
    return str(getattr(stance, "name", stance))
