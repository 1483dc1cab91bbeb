"""The compiler's events while a cell ran, sorted by function, and what they come to.

Input: events, from the bus.
Output: a ``Record`` with one ``FunctionRecord`` for each function in the events, in the order of their first event, and
its ``Counts``.
Why: the report is a pure function of data. Report, watch line and badge show the counts that are made here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, field, fields, replace

from tcompile.observe import bus
from tcompile.observe.display.places import GraphBreakView
from tcompile.observe.events import (
    CompileFinished,
    Event,
    FellBack,
    GraphBroke,
    GraphCaptured,
    RecompileStarted,
)
from tcompile.records import dataclass
from tcompile.runtime.cell import CELL

_COUNTED = GraphCaptured, GraphBroke, RecompileStarted, CompileFinished  # kinds of events that ``Counts`` comes from


@dataclass(frozen=True)
class Counts:
    """How much was compiled. ``compile_ms`` are milliseconds, all compiles together."""

    graphs: int = 0
    operations: int = 0
    kernels: int = 0
    breaks: int = 0
    recompiles: int = 0
    compile_ms: float = 0.0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Counts)))


@dataclass
class FunctionRecord:
    """The events of one function."""

    name: str
    graphs: list[GraphCaptured] = field(default_factory=list)
    breaks: list[GraphBroke] = field(default_factory=list)
    recompiles: list[RecompileStarted] = field(default_factory=list)
    compiles: list[CompileFinished] = field(default_factory=list)
    fallbacks: list[FellBack] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)  # all of them, in order

    @property
    def counts(self) -> Counts:
        """What was compiled. A cell's own statements are no graph breaks: much of a cell is not array work."""
        return Counts(
            graphs=len(self.graphs), operations=sum(event.ops for event in self.graphs),
            kernels=sum(event.kernels for event in self.compiles), breaks=0 if self.of_cell else len(self.breaks),
            recompiles=len(self.recompiles), compile_ms=sum(event.ms for event in self.compiles),
        )  # fmt: skip

    def add(self, event: Event) -> None:
        """Files ``event`` under its kind; kinds that no report shows are dropped."""
        match event:
            case GraphCaptured():
                self.graphs.append(event)
            case GraphBroke():
                if any(_same_break(event, other) for other in self.breaks):
                    return
                self.breaks.append(event)
            case RecompileStarted():
                self.recompiles.append(event)
            case CompileFinished():
                self.compiles.append(event)
            case FellBack():
                self.fallbacks.append(event)
            case _:
                return
        self.events.append(event)

    @property
    def idle(self) -> bool:
        """Whether compiling found no array work."""
        return bool(self.compiles) and not (self.graphs or self.breaks)

    @property
    def of_cell(self) -> bool:
        """Whether these are the cell's own statements."""
        return self.name == CELL

    @property
    def empty(self) -> bool:
        """Whether there is nothing to report: a cell's statements without array work are not news."""
        if self.of_cell:
            return not (self.graphs or self.fallbacks)
        return not (self.graphs or self.breaks or self.recompiles or self.compiles or self.fallbacks)


def plain_statements(breaks: Iterable[GraphBreakView], file: str) -> list[GraphBreakView]:
    """Returns the lines of ``file``, a cell's, from which its own statements ran in plain Python, each once.

    Calls of compiled functions do not count. Several captures may stop at a line; the last one says what remained. The
    lines are the cell's, even if a called function stopped the capture.
    """
    found: dict[int, GraphBreakView] = {}
    for broke in breaks:
        here = next((line for line in broke.stack if line.line and line.file == file), None)
        if here is not None and broke.reason != "compiled-by-itself":
            found[here.line] = replace(broke, stack=(here,))
    return list(found.values())


@dataclass
class Record:
    """The events of one run, by function. A ``Record`` is a bus listener."""

    cell: str | None = None
    functions: dict[str, FunctionRecord] = field(default_factory=dict)

    def __call__(self, event: Event) -> None:
        """Files ``event``, unless it belongs to another cell that runs at the same time."""
        if event.cell is not None and event.cell != self.cell:
            return
        self.functions.setdefault(event.function, FunctionRecord(event.function)).add(event)

    @property
    def counts(self) -> Counts:
        """What was compiled, all functions together."""
        return sum((function.counts for function in self), Counts())

    def __iter__(self) -> Iterator[FunctionRecord]:
        shown = [function for function in list(self.functions.values()) if not function.empty]
        return iter(sorted(shown, key=lambda function: function.of_cell))  # the cell's own statements last


class CellRuns:
    """What the newest run of each cell compiled.

    ``began`` says when the run of a cell began that was under way at a time.
    """

    MOST = 1000  # cells; the oldest are dropped

    def __init__(self, began: Callable[[str, float], float]) -> None:
        self._began = began
        self._runs: dict[str, tuple[float, Record]] = {}

    def add(self, event: Event) -> str | None:
        """Files an event, and returns its cell; None for one that no figure counts, or without a cell."""
        cell = event.cell
        if cell is None or not isinstance(event, _COUNTED):
            return None
        began = self._began(cell, event.time)
        held = self._runs.pop(cell, None)
        run = held if held is not None and held[0] >= began else (began, Record(cell))
        self._runs[cell] = run
        if len(self._runs) > self.MOST:
            self._runs.pop(next(iter(self._runs)))
        run[1](replace(event, get_graph=None) if isinstance(event, GraphCaptured) else event)
        return cell

    def summary(self, cell: str) -> dict[str, float]:
        """Returns the counts of a cell's newest run, and when it began."""
        began, record = self._runs[cell]
        return {"began": began, **asdict(record.counts)}


@contextlib.contextmanager
def recording(cell: str | None) -> Iterator[Record]:
    """Records for the length of a ``with`` block; events in it carry the id ``cell``.

    It listens in the background: calls of compiled functions run as fast as without it.
    """
    record = Record(cell)
    token = bus.current_cell.set(cell)
    unsubscribe = bus.subscribe(record, background=True)
    try:
        yield record
    finally:
        unsubscribe()
        bus.current_cell.reset(token)


def _same_break(one: GraphBroke, other: GraphBroke) -> bool:
    return (one.reason, one.where, one.headline) == (other.reason, other.where, other.headline)
