"""The display of a graph.

Input: facts about its values, from the graph's owner.
Output: a ``GraphView``. ``graph.draw`` supplies the drawings.
Why: ``observe`` knows no graph classes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import ClassVar

from tcompile.observe.display import html
from tcompile.observe.display.view import View
from tcompile.observe.events import NOWHERE
from tcompile.observe.source_location import UserLine
from tcompile.records import dataclass

MOST = 2_000
"""The limit of operations that are listed in a graph's JSON and drawn; ``ops`` counts all of them."""


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """One value: its name, operation, type and shape (sizes as text: they may be symbols), and the call that makes it.

    ``inputs`` names its operands, ``where`` is the user's line, ``kernel`` the fused kernel that computes it, or "".
    ``backward``: a derivative has added it. ``inside`` are the operations of its sub-graphs.
    """

    name: str = ""
    op: str = ""
    sort: str = ""
    type: str = ""
    dtype: str = ""
    shape: tuple[str, ...] = ()
    call: str = ""
    inputs: tuple[str, ...] = ()
    where: UserLine = NOWHERE
    kernel: str = ""
    backward: bool = False
    inside: tuple[NodeView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GraphView(View):
    """A graph: its inputs, its operations in order, the names of its outputs, and which kernel computes what.

    If ``transformed``, these are of the graph after the transforms, while ``ops`` and ``listing`` are of the captured
    graph.
    """

    kind: ClassVar[str] = "graph"
    name: str = ""
    ops: int = 0
    transformed: bool = False
    inputs: tuple[NodeView, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    outputs: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    listing: str = ""
    draw_svg: str = field(default="", repr=False)
    draw_parts: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # a derivative's, by their names
    draw_legend: tuple[tuple[str, str], ...] = ()  # the meaning of each colour

    @property
    def drawings(self) -> dict[str, str]:
        """The drawing of the whole graph, and those of a derivative's two parts, by their names."""
        return {"whole": self.draw_svg, **dict(self.draw_parts)} if self.draw_svg else {}

    def body(self) -> str:
        """Returns the drawing with its legend, and the listing folded under it."""
        legend = "".join(f'<i style="background:{colour}"></i>{html.text(sort)}' for sort, colour in self.draw_legend)
        fused = f"fused into {html.count(len(self.kernels), 'kernel')}" if self.kernels else ""
        sizes = ((self.ops, "op"), (len(self.inputs), "input"), (len(self.outputs), "output"))
        counts = html.facts((*(html.count(*size) for size in sizes), fused))
        head = html.title(f"graph {html.short(self.name, 60)}", f'<span class="tcd-dim">{counts}</span>')
        return f'{head}<div class="tcd-key tcd-dim">{legend}</div>{self.inside()}'

    def inside(self, *, opened: bool = False) -> str:
        """Returns the drawing and the listing alone."""
        pictures = [(name, html.picture(svg, f"graph {self.name}: {name}")) for name, svg in self.drawings.items()]
        drawn = html.tabs(pictures)
        if not drawn:
            drawn = f'<div class="tcd-dim">not drawn here, for its size: {html.count(self.ops, "operation")}</div>'
        summary = "as captured, as a listing" if self.transformed else "as a listing"
        return drawn + html.folded(summary, html.pre(self.listing), opened=opened)

    def text(self) -> str:
        """Returns the listing."""
        return self.listing


def by_line(nodes: tuple[NodeView, ...]) -> dict[UserLine, list[NodeView]]:
    """Groups nodes by the user's lines that made them, in the order of their first node; columns are ignored."""
    found: defaultdict[UserLine, list[NodeView]] = defaultdict(list)
    for node in nodes:
        line = node.where
        found[UserLine(file=line.file, line=line.line, function=line.function, text=line.text)].append(node)
    return dict(found)


__all__ = ["MOST", "GraphView", "NodeView", "by_line"]
