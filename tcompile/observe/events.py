"""The events: the only way in which the compiler tells anything.

Enters: what a stage knows when something happens. Leaves: frozen records that become JSON. Exists so that
logs, ``explain``, profilers, notebook displays and the JupyterLab panel read one stream and nothing else.

Every record has a time (seconds since the epoch), a thread id, the qualified name of the function it speaks
of, the notebook cell where known, and the id of the compile it belongs to (``"3/1"``: the fourth function
seen, its second entry).
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLine:
    """A place in the user's code; columns are 0-based. ``end_line`` is set where it goes over several lines."""

    file: str = ""
    line: int = 0
    column: int | None = None
    end_column: int | None = None
    function: str = ""
    text: str = ""
    end_line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event carries."""

    kind: ClassVar[str] = "event"
    function: str = ""
    compile_id: str = ""
    cell: str | None = None
    time: float = field(default_factory=time.time)
    thread: int = field(default_factory=threading.get_ident)

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON-able values, with ``kind`` and ``schema``; get_ fields are left out."""
        fields = {
            f.name: _plain(getattr(self, f.name))
            for f in dataclasses.fields(self)
            if not f.name.startswith("get_")
        }
        return {"kind": self.kind, "schema": SCHEMA_VERSION, **fields}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileStarted(Event):
    """A function is about to be captured. ``reason`` is "first call" or the failed guards of a recompile."""

    kind: ClassVar[str] = "compile_started"
    reason: str = "first call"
    where: UserLine = UserLine()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCaptured(Event):
    """A graph came out of capture. ``get_graph`` gives the Graph itself to readers in this process.

    The texts ``readable`` and ``code`` are made when a reader asks for them: most compiles have none.
    """

    kind: ClassVar[str] = "graph_captured"
    graph: str = ""
    ops: int = 0
    inputs: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    get_graph: Callable[[], Any] | None = None

    @property
    def readable(self) -> str:
        """The graph as a person reads it."""
        return self.get_graph().readable() if self.get_graph is not None else ""

    @property
    def code(self) -> str:
        """The graph as a Python function."""
        return self.get_graph().code if self.get_graph is not None else ""

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON-able values, with both texts."""
        return {**super(GraphCaptured, self).as_dict(), "readable": self.readable, "code": self.code}


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBroke(Event):
    """Capture stopped: what could not be captured, where, why, and what to do."""

    kind: ClassVar[str] = "graph_broke"
    reason: str = ""
    headline: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    where: UserLine = UserLine()
    stack: tuple[UserLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardFailed(Event):
    """A guard of a cached entry did not hold for a call."""

    kind: ClassVar[str] = "guard_failed"
    entry: int = 0
    source: str = ""
    guard: str = ""
    expected: str = ""
    seen: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecompileStarted(Event):
    """No entry fitted a call, a new one is being compiled. ``reasons`` has one text for each entry tried."""

    kind: ClassVar[str] = "recompile_started"
    number: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFinished(Event):
    """One transform ran. ``before`` and ``after`` count operations."""

    kind: ClassVar[str] = "pass_finished"
    name: str = ""
    ms: float = 0.0
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCompiled(Event):
    """A kernel became machine code. ``nodes`` are the graph nodes in it; the ``get_`` fields make text."""

    kind: ClassVar[str] = "kernel_compiled"
    kernel: str = ""
    graph: str = ""
    nodes: tuple[str, ...] = ()
    lines: tuple[UserLine, ...] = ()
    ms: float = 0.0
    description: str = ""
    get_ir: Callable[[], str] | None = None
    get_assembly: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileFinished(Event):
    """A compile ended. ``phases`` maps phase names to milliseconds; ``outcome`` is "compiled" or "plain"."""

    kind: ClassVar[str] = "compile_finished"
    outcome: str = "compiled"
    backend: str = ""
    graphs: int = 0
    kernels: int = 0
    ms: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FellBack(Event):
    """A call, or all further calls of a function, run in plain Python although compilation was asked for."""

    kind: ClassVar[str] = "fell_back"
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimed(Event):
    """One call was timed (only while somebody listens)."""

    kind: ClassVar[str] = "call_timed"
    path: str = "compiled"
    ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StanceChanged(Event):
    """The stance changed: for the process, or for one thread's ``with`` block."""

    kind: ClassVar[str] = "stance_changed"
    stance: str = ""
    previous: str = ""
    scope: str = "process"


EVENTS: tuple[type[Event], ...] = (
    CompileStarted, GraphCaptured, GraphBroke, GuardFailed, RecompileStarted, PassFinished, KernelCompiled,
    CompileFinished, FellBack, CallTimed, StanceChanged,
)  # fmt: skip
