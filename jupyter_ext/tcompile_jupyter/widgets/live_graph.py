"""A function's graphs, drawn as they are captured.

Input: a compiled function, and events of its compiles.
Output: a ``LiveGraph``. A click on an operation shows its source line and its kernel.
Why: connects operations with user lines and kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ipywidgets

from tcompile.errors import InvalidType
from tcompile.graph.printer import type_text
from tcompile.observe.display import html
from tcompile.observe.display.graphs import GraphView, NodeView
from tcompile.observe.events import CompileFinished, Event
from tcompile.observe.source_location import file_label
from tcompile.runtime.dispatch import parts_of
from tcompile_jupyter.feed import feed
from tcompile_jupyter.status import is_compiled
from tcompile_jupyter.widgets.picture import Detail, Picture
from tcompile_jupyter.widgets.shown import Shown, image, plain, text

MOST = 300
"""The maximum of operations in a drawn graph; a larger one is listed."""


class LiveGraph(Shown):
    """The graphs of a compiled function, one for each entry. New ones appear as calls are captured.

    A click on an operation shows its type, its source line, and its kernel. Raises InvalidType if ``function`` is not a
    compiled function.
    """

    def __init__(self, function: Any) -> None:
        if not is_compiled(function):
            raise InvalidType(f"LiveGraph takes a compiled function, got {type(function).__name__}")
        self.function = function
        self._chooser = ipywidgets.Dropdown(layout={"width": "auto", "max_width": "100%"})
        self._parts = ipywidgets.ToggleButtons(style={"button_width": "auto"})
        self._chosen = False  # whether the user has chosen one
        self._following = False
        self._picture = Picture(zooms=True, hint="Click an operation for its line and its kernel.")
        self._waits = ipywidgets.HTML()
        self._seen: dict[int, _Drawn] = {}  # by entry number
        super().__init__((self._waits, self._chooser, self._parts, self._picture))
        self.ends = (feed.open(self._follow),)
        self._chooser.observe(self._picked, "value")
        self._parts.observe(self._turned, "value")
        self.refresh()

    def refresh(self) -> None:
        """Reads the function's entries again."""
        entries = sorted((e for e in parts_of(self.function)[2].entries if e.graph is not None), key=lambda e: e.index)
        held = {number: drawn for number, drawn in self._seen.items() if any(e is drawn[0] for e in entries)}
        new = [entry for entry in entries if entry.index not in held]
        if not new and len(held) == len(self._seen) and self._waits.value:
            return
        self._seen = {entry.index: held.get(entry.index) or _drawn(entry) for entry in entries}
        newest = new[-1].index if new else None
        before = self._chooser.value
        self._following = True
        self._chooser.options = [(_summary(e), e.index) for e in entries]
        if self._seen:
            stays = (self._chosen or newest is None) and before in self._seen
            self._chooser.value = before if stays else newest if newest is not None else entries[-1].index
        self._following = False
        self._chooser.layout.display = "" if entries else "none"
        self._waits.value = self._head(len(entries))
        self._show()

    def _head(self, count: int) -> str:
        name = text(_name(self.function), 80)
        if not count:
            return f"<b>{name}</b> <span style='opacity:.7'>nothing captured yet: call it</span>"
        return f"<b>{name}</b> <span style='opacity:.7'>{count} {'graph' if count == 1 else 'graphs'}</span>"

    def _show(self) -> None:
        _, drawings, details = self._seen.get(self._chooser.value, _NOTHING)
        names = tuple(drawings) if len(drawings) > 1 else ()
        self._parts.layout.display = "" if names else "none"
        if self._parts.options != names:
            self._following, before = True, self._parts.value
            self._parts.options = names
            self._parts.value = before if before in names else next(iter(names), None)
            self._following = False
        self._picture.show(self._part_of(drawings), details)
        self.redraw()

    def _picked(self, change: Any) -> None:
        if not self._following and change["new"] is not None:
            self._chosen = True
            self._show()

    def _part_of(self, drawings: dict[str, str]) -> str:
        """Returns the drawing of the selected part, or of the whole graph."""
        return drawings.get(self._parts.value, next(iter(drawings.values()), ""))

    def _turned(self, change: Any) -> None:
        if not self._following:
            self._show()

    def _follow(self, batch: tuple[Event, ...]) -> None:
        if any(isinstance(event, CompileFinished) for event in batch):
            self.refresh()
        self.redraw()

    def title(self) -> str:
        """Returns the number of graphs."""
        return f"graphs of {_name(self.function)}: {len(self._seen)}"

    def picture(self) -> str:
        """Returns the selected graph."""
        head = f"<div>{self._head(len(self._seen))}</div>"
        entry, drawings, _ = self._seen.get(self._chooser.value, _NOTHING)
        if entry is None:
            return head
        drawing = self._part_of(drawings)
        drawn = image(drawing, f"graph of {_name(self.function)}") if drawing.startswith("<svg") else drawing
        return f"{head}<div>{text(_summary(entry))}</div><div>{drawn}</div>"


_Drawn = tuple[Any, dict[str, str], dict[str, list[Detail]]]
_NOTHING: _Drawn = None, {}, {}


def _drawn(entry: Any) -> _Drawn:
    """Returns an entry with the drawings of its graph, by their names, and the details of each operation."""
    graph = entry.graph
    if graph.op_count > MOST:
        listing = text(graph.readable(), 20_000)
        return entry, {"": f"<pre>{graph.op_count} operations, too many to draw:\n{listing}</pre>"}, {}
    view: GraphView = graph.view()
    kernels = {kernel.name: kernel.description for kernel in entry.kernels}
    return entry, view.drawings, dict(_details([*view.inputs, *view.nodes], kernels))


def _details(
    nodes: Sequence[NodeView], kernels: dict[str, str], outside: str = ""
) -> Iterator[tuple[str, list[Detail]]]:
    """Returns the details of the nodes of a graph, and of those in its sub-graphs, which have kernels of their own."""
    together: dict[str, list[str]] = {}
    for node in nodes:
        together.setdefault(node.kernel, []).append(node.name)
    for node in nodes:
        yield outside + node.name, list(_rows(node, kernels, together))
        yield from _details(node.inside, kernels, f"{outside}{node.name}/")


def _rows(node: NodeView, kernels: dict[str, str], together: dict[str, list[str]]) -> Iterator[Detail]:
    yield "value", f"{node.name}: {node.type}"
    if node.call:
        yield "operation", node.call
    if node.where.line:
        file = html.cut(file_label(node.where.file), 60)
        yield "your line", f"{file}, line {node.where.line}\n{node.where.text.strip()}"
    if node.kernel:
        yield "kernel", f"{node.kernel}\n{kernels.get(node.kernel, '')}".strip()
        yield "computed with it", ", ".join(together[node.kernel])


def _summary(entry: Any) -> str:
    parts = [html.count(entry.graph.op_count, "operation"), html.count(len(entry.kernels), "kernel")]
    sizes = ", ".join(f"{node.name} {type_text(node.type)}" for node in entry.graph.inputs[:3])
    return plain(f"entry {entry.index}: {' · '.join([*parts, sizes, html.time(entry.compile_ms)])}", 120)


def _name(function: Any) -> str:
    return str(getattr(function, "__qualname__", function))


__all__ = ["MOST", "LiveGraph"]
