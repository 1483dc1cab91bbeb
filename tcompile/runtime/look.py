"""The display of a compiled function.

Input: the ``FunctionCache`` of a compiled function.
Output: a ``FunctionView``, the data of its display.
Why: loaded when a function is first shown; calls do not need it.
"""

from __future__ import annotations

import inspect
import linecache
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tcompile.capture.guards.entry_protocol import start_of
from tcompile.config import config
from tcompile.observe import times
from tcompile.observe.display.functions import EntryView, FunctionView
from tcompile.observe.display.graphs import NodeView
from tcompile.observe.source_location import UserLine
from tcompile.runtime import native
from tcompile.runtime.cache import Entry, FunctionCache
from tcompile.stance import current

_DRAWN = 250_000  # characters of drawings


def cache_view(cache: FunctionCache, graphs: bool = True) -> FunctionView:
    """Returns the display data of ``cache``'s function; without ``graphs`` it is short and fast."""
    code, settings = cache.code, cache.settings
    ordered = sorted(cache.entries, key=lambda entry: entry.index)
    entries = tuple(_drawn([entry_view(cache, code, entry, graphs) for entry in ordered]))
    shown = [f"fullgraph={settings.fullgraph}"] if settings.fullgraph else []
    shown += [f"dynamic={settings.dynamic}"] if settings.dynamic is not None else []
    shown += [f"{name}={value!r}" for name, value in settings.options if value]
    where = UserLine(file=code.co_filename, line=code.co_firstlineno, function=code.co_name)
    return FunctionView(
        name=cache.name, where=where, defined_in=cache.defined_in,
        backend=settings.backend_name, settings=tuple(shown), stance=current().name, calls=calls_are(), entries=entries,
        breaks=tuple(broke.view(cache.name) for broke in cache.breaks), recompiles=tuple(cache.recompiles),
        eager_calls=cache.eager_calls, code=tuple(_source(where)),
        compiled_lines=tuple(sorted(set(_captured(entries, code.co_filename)))),
    )  # fmt: skip


def entry_view(cache: FunctionCache, code: types.CodeType, entry: Entry, graphs: bool = True) -> EntryView:
    """Returns the data of one entry of ``code``, with its graph unless ``graphs`` is False."""
    starts, exit = "start", entry.captured.exit
    region = next((region for region in list(cache.regions.values()) if entry in region.entries), cache.first)
    if region is not cache.first and region.start.offset != start_of(code).offset:
        starts = _line_at(code, region.start.offset)
    return EntryView(
        number=entry.index, state="compiled" if entry.graph is not None else "plain", starts=starts,
        ends="return" if exit is None else _line_at(code, exit), hits=entry.hits,
        ops=entry.graph.op_count if entry.graph is not None else 0,
        kernels=tuple(kernel.name for kernel in entry.kernels), guards=tuple(entry.guards), compile_ms=entry.compile_ms,
        phases=times.phases(f"{cache.number}/{entry.index}"),
        graph=entry.graph.view() if graphs and entry.graph is not None and entry.graph.nodes else None,
    )  # fmt: skip


def calls_are() -> str:
    """Returns how calls that hit are answered: ``in machine code``, or ``in Python`` and why."""
    if not config.native_calls:
        return "in Python: config.native_calls is False"
    reason = native.unavailable()
    return "in machine code" if reason is None else f"in Python: {reason}"


def _drawn(entries: list[EntryView]) -> list[EntryView]:
    """Returns the entries, only the newest with drawings: all of them would make notebooks large."""
    left = _DRAWN
    for number, entry in reversed(list(enumerate(entries))):
        graph = entry.graph
        left -= sum(map(len, graph.drawings.values())) if graph is not None else 0
        if graph is not None and left < 0:
            entries[number] = replace(entry, graph=replace(graph, draw_svg="", draw_parts=()))
    return entries


def _line_at(code: types.CodeType, offset: int) -> str:
    line = next((at for start, end, at in code.co_lines() if at and start <= offset < end), None)
    return f"line {line}" if line is not None else f"instruction {offset}"


def _captured(entries: tuple[EntryView, ...], file: str) -> Iterator[int]:
    """Returns the line numbers of ``file`` that are in a graph."""

    def of(nodes: tuple[NodeView, ...]) -> Iterator[int]:
        for node in nodes:
            if node.where.file == file:
                yield from range(node.where.line, max(node.where.line, node.where.end_line) + 1)
            yield from of(node.inside)

    for entry in entries:
        if entry.graph is not None:
            yield from of(entry.graph.nodes)


def _source(where: UserLine) -> Iterator[UserLine]:
    """Returns the lines of the function that begins at ``where``; none if its file cannot be read."""
    try:
        lines = linecache.getlines(where.file)[where.line - 1 :]
        block: list[Any] = inspect.getblock(lines) if lines else []
    except Exception:
        block = []
    for number, text in enumerate(block, start=where.line):
        yield UserLine(file=where.file, line=number, function=where.function, text=text.rstrip("\n"))


__all__ = ["cache_view", "calls_are", "entry_view"]
