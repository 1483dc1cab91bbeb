"""The display of a kernel: user lines, operations, intermediate code and machine code side by side.

Input: the backend's facts about a kernel.
Output: a ``KernelView``.
Why: shows which lines became which instructions.
"""

from __future__ import annotations

from typing import ClassVar

from tcompile.observe.display import html
from tcompile.observe.display.graphs import NodeView, by_line
from tcompile.observe.display.view import View
from tcompile.records import dataclass


@dataclass(frozen=True, kw_only=True)
class KernelView(View):
    """One kernel. ``nodes`` are all operations computed in it; ``ir`` and ``assembly`` are its own functions alone.

    ``language`` is the language of ``ir``.
    """

    kind: ClassVar[str] = "kernel"
    name: str = ""
    description: str = ""
    nodes: tuple[NodeView, ...] = ()
    language: str = "LLVM IR"
    ir: str = ""
    assembly: str = ""

    def body(self) -> str:
        """Returns four texts; in the first two, one colour marks each of the user's lines."""
        lines = by_line(self.nodes)
        colours = {line: html.COLOURS[n % len(html.COLOURS)] for n, line in enumerate(lines)}
        first = "\n".join(
            f'{_dot(colours[line])}<span class="tcd-no">{line.line:>4}</span>  {html.short(line.text.strip(), 200)}'
            for line in sorted(lines, key=lambda line: (line.file, line.line))
            if line.line
        )
        wide = max((len(node.name) for node in self.nodes), default=0)
        second = "\n".join(
            f"{_dot(colours[line])}{html.short(f'{node.name:<{min(wide, 30)}}  {node.type}', 90)}"
            for line, nodes in lines.items()
            for node in nodes
        )
        counts = f"{html.count(len(self.nodes), 'operation')} in one pass"
        head = html.title(f"kernel {html.short(self.name, 80)}", f'<span class="tcd-dim">{counts}</span>')
        about = f'<div class="tcd-dim">{html.short(self.description, 200)}</div>'
        columns = (
            ((("your lines", html.lines(first)), ("operations", html.lines(second))), 1.3),
            (((self.language, html.pre(self.ir)),), 1.4),
            ((("assembly", html.pre(self.assembly)),), 1.1),
        )
        return head + about + html.sides(columns)

    def text(self) -> str:
        """Returns name, lines and operations."""
        rows = [f"kernel {html.cut(self.name)}: {self.description}"]
        for line, nodes in by_line(self.nodes).items():
            rows += [f"  line {line.line}: {html.cut(line.text.strip(), 200)}"] if line.line else []
            rows += [f"    {html.cut(node.name)}  {node.type}" for node in nodes]
        return "\n".join(rows)


def _dot(colour: str) -> str:
    return f'<span style="color:{colour}">▪</span> '


__all__ = ["KernelView"]
