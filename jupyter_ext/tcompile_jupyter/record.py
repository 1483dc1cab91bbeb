"""The compiler's events while a cell ran, sorted by function.

Input: events, from the bus.
Output: a ``Record`` with one ``FunctionRecord`` for each function in the events, in the order of their first event.
Why: the report is a pure function of data.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field

from tcompile.observe import bus
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
    def kernels(self) -> int:
        """The number of kernels made."""
        return sum(event.kernels for event in self.compiles)

    @property
    def compile_ms(self) -> float:
        """Milliseconds spent compiling, all compiles together."""
        return sum(event.ms for event in self.compiles)

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

    def __iter__(self) -> Iterator[FunctionRecord]:
        shown = [function for function in list(self.functions.values()) if not function.empty]
        return iter(sorted(shown, key=lambda function: function.of_cell))  # the cell's own statements last


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
