"""Facts about each compiled function, for the JupyterLab extension.

Input: the code caches.
Output: JSON-able records, one for each function, with a mark for each known line: in a graph, at a graph break, or in
plain Python.
Why: the editor marks lines without running code.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

from tcompile.graph import Node
from tcompile.observe.context import cell_of
from tcompile.records import dataclass
from tcompile.runtime.cache import Entry, FunctionCache
from tcompile.runtime.cell import CELL
from tcompile.runtime.frames import REASON
from tcompile.runtime.look import cache_view
from tcompile_jupyter.record import plain_statements

MOST_LINES = 2_000
"""Lines of one function that are marked."""


@dataclass(frozen=True, kw_only=True)
class LineMark:
    """The state of a line: "captured", "broken" or "plain"; the other fields describe the break."""

    file: str
    line: int
    text: str
    state: str
    column: int | None = None
    end_column: int | None = None
    reason: str = ""
    headline: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()


def function_state(cache: FunctionCache) -> dict[str, Any]:
    """Returns a function's record: its number, which begins the ids of its compiles, its display, its marks.

    The display has no graphs: they are large, and are requested when viewed.
    """
    found = {(mark.file, mark.line): asdict(mark) for mark in _marks(cache)}
    view = cache_view(cache, graphs=False)
    if cache.name == CELL:
        first = min((line for *_, line in cache.code.co_lines() if line), default=0)
        plain = tuple(plain_statements(view.breaks, view.where.file))
        view = replace(view, where=replace(view.where, line=first), breaks=plain)
    return {
        "number": cache.number,
        "view": view.data(),
        "marks": list(found.values())[:MOST_LINES],
    }


def find_entry(cache: FunctionCache | None, index: int) -> Entry | None:
    """Returns an entry of a cache by its number."""
    return next((entry for entry in cache.entries if entry.index == index), None) if cache is not None else None


def cells_of(states: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Returns the cell of each file that the marks lie in."""
    files = {mark["file"] for state in states for mark in state["marks"]}
    return {file: cell for file in files if (cell := cell_of(file)) is not None}


def _marks(cache: FunctionCache) -> Iterator[LineMark]:
    """Returns the marks; at the same line the last one wins."""
    graphs = [entry.graph for entry in list(cache.entries) if entry.graph is not None]
    of_cell = cache.name == CELL
    if cache.look is not None and not cache.entries:
        yield from _plain(cache)
        if cache.look.line:
            file = cache.code.co_filename
            line = linecache.getline(file, cache.look.line).strip()
            yield LineMark(
                file=file, line=cache.look.line, text=line, state="plain", headline=REASON, explanation=str(cache.look)
            )
    tried = cache.eager_calls or cache.breaks or cache.entries
    if tried and not of_cell and not any(graph.nodes for graph in graphs):
        yield from _plain(cache)
    for graph in graphs:
        yield from _captured(graph.nodes)
    for broke in list(cache.breaks):
        # In a library's function the user sees the line that led there.
        where = next((line for line in reversed(broke.stack) if cell_of(line.file) is not None), broke.where)
        if of_cell and broke.reason.id == "compiled-by-itself":
            continue
        if where.line:
            yield LineMark(
                file=where.file, line=where.line, text=where.text, state="plain" if of_cell else "broken",
                column=where.column, end_column=None if where.end_line > where.line else where.end_column,
                reason=broke.reason.id, headline=broke.reason.headline, explanation=broke.explanation,
                hints=broke.reason.hints,
            )  # fmt: skip


def _captured(nodes: Iterable[Node]) -> Iterator[LineMark]:
    for node in nodes:
        at = node.location
        if at is not None and at.line:
            for line in range(at.line, max(at.line, at.end_line) + 1):
                text = at.text if line == at.line else linecache.getline(at.file, line)
                yield LineMark(file=at.file, line=line, text=text.strip(), state="captured")
        for region in node.regions:
            yield from _captured(region.nodes)


def _plain(cache: FunctionCache) -> Iterator[LineMark]:
    file, first = cache.code.co_filename, cache.code.co_firstlineno
    for line in sorted({line for _, _, line in cache.code.co_lines() if line is not None and line > first}):
        yield LineMark(file=file, line=line, text=linecache.getline(file, line).strip(), state="plain")


__all__ = ["MOST_LINES", "LineMark", "cells_of", "find_entry", "function_state"]
