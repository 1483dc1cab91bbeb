"""The events: the only output channel of the compiler.

Input: facts from a stage when something happens.
Output: frozen records that become JSON.
Why: logs, ``explain``, profilers, notebook displays and the JupyterLab panel read one stream and nothing else.

Every record has an id that grows within the process, a time (seconds since the epoch), a thread id, and the qualified
name of its function. It names its compile (``"3/1"``: the fourth function seen, its second entry), the notebook cell
that was running and the cell that defined the function, if known.

Fields named ``get_…`` compute large values for readers in this process (``Lazy``); they are not part of the JSON.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, TypeVar

from tcompile.observe import context
from tcompile.observe.html_form import html_form
from tcompile.observe.source_location import UserLine
from tcompile.records import dataclass

SCHEMA_VERSION = 3

E = TypeVar("E", bound="Event")


class Lazy:
    """A function without arguments: ``read(owner)``, or ``owner`` itself. The owner may be held weakly.

    >>> Lazy("abc", len)()
    3
    """

    def __init__(self, owner: Any, read: Callable[[Any], Any] | None = None) -> None:
        self._held: Callable[[], Any] = lambda: owner
        self._read = read

    def __call__(self) -> Any:
        """Returns the value; None if the owner is gone."""
        owner = self._held()
        return owner if owner is None or self._read is None else self._read(owner)

    def weak(self) -> Lazy | None:
        """Returns the same without keeping the owner alive; None if it does not support weak references."""
        try:
            reference = weakref.ref(self._held())
        except TypeError:
            return None
        made = Lazy(None, self._read)
        made._held = reference
        return made


NOWHERE = UserLine()


@dataclass(frozen=True, kw_only=True)
class Event:
    """The fields of every event."""

    kind: ClassVar[str] = "event"
    texts: ClassVar[tuple[str, ...]] = ()  # properties that are computed on access, and are part of the JSON
    id: int = field(default_factory=itertools.count().__next__)
    time: float = field(default_factory=time.time)
    thread: int = field(default_factory=threading.get_ident)
    function: str = field(default_factory=context.function)
    compile_id: str = field(default_factory=context.compile_id)
    cell: str | None = field(default_factory=context.current_cell.get)
    defined_in: str | None = field(default_factory=context.defined_in)

    def as_dict(self) -> dict[str, Any]:
        """Returns the record as JSON-able values, with ``kind`` and ``schema``; ``schema.schema()`` states the form."""
        names = [f.name for f in dataclasses.fields(self) if not f.name.startswith("get_")]
        values = {name: _plain(getattr(self, name)) for name in (*names, *self.texts)}
        return {"kind": self.kind, "schema": SCHEMA_VERSION, **values}

    def light(self: E) -> E:
        """Returns the same record without large objects: owners of ``get_`` fields are held weakly, or not at all."""
        held = {name: value for name, value in vars(self).items() if value is not None and name.startswith("get_")}
        if not held:
            return self
        made = copy.copy(self)  # through __dict__: events are frozen
        made.__dict__.update({name: get.weak() if isinstance(get, Lazy) else None for name, get in held.items()})
        return made


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


@dataclass(frozen=True, kw_only=True)
class CompileStarted(Event):
    """A function is about to be captured. ``reason`` is "first call" or the failed guards of a recompile."""

    kind: ClassVar[str] = "compile_started"
    reason: str = "first call"
    where: UserLine = UserLine()


@dataclass(frozen=True, kw_only=True)
class GraphCaptured(Event):
    """Capture finished a graph. ``get_graph`` gives the Graph itself to readers in this process.

    The texts ``readable`` and ``code`` are made on access, and are empty once the graph is gone.
    """

    kind: ClassVar[str] = "graph_captured"
    texts: ClassVar[tuple[str, ...]] = ("readable", "code")
    graph: str = ""
    ops: int = 0
    inputs: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    get_graph: Callable[[], Any] | None = None

    @property
    def readable(self) -> str:
        """The graph as a listing."""
        graph = self.get_graph() if self.get_graph is not None else None
        return graph.readable() if graph is not None else ""

    @property
    def code(self) -> str:
        """The graph as a Python function."""
        graph = self.get_graph() if self.get_graph is not None else None
        return graph.code if graph is not None else ""


@dataclass(frozen=True, kw_only=True)
class GraphBroke(Event):
    """Capture stopped: what could not be captured, where, why, and what to do."""

    kind: ClassVar[str] = "graph_broke"
    reason: str = ""
    headline: str = ""
    explanation: str = ""
    hints: tuple[str, ...] = ()
    where: UserLine = UserLine()
    stack: tuple[UserLine, ...] = ()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from tcompile.observe.display.places import of_break

        return of_break(self).bundle()

    _repr_html_ = html_form


@dataclass(frozen=True, kw_only=True)
class LoopDecided(Event):
    """The outcome of a loop, and the reason: ``outcome`` is "one node", "unrolled" or "python".

    For a node of the graph a backend also reports how its iterations run: in "machine code" or as "python iterations".
    ``iterations`` is "branch" if the node is one side of a branch.
    """

    kind: ClassVar[str] = "loop_decided"
    outcome: str = ""
    reason: str = ""
    iterations: str = ""
    where: UserLine = UserLine()


@dataclass(frozen=True, kw_only=True)
class GuardFailed(Event):
    """A guard of a cached entry did not hold for a call."""

    kind: ClassVar[str] = "guard_failed"
    entry: int = 0
    source: str = ""
    guard: str = ""
    expected: str = ""
    seen: str = ""
    hint: str = ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from tcompile.observe.display.places import of_guard

        return of_guard(self).bundle()

    _repr_html_ = html_form


@dataclass(frozen=True, kw_only=True)
class RecompileStarted(Event):
    """No entry fitted a call, so another one is being compiled. ``reasons`` has one text for each entry tried."""

    kind: ClassVar[str] = "recompile_started"
    number: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PassFinished(Event):
    """One transform ran. ``before`` and ``after`` count operations; ``get_graph`` gives the graph after it."""

    kind: ClassVar[str] = "pass_finished"
    name: str = ""
    ms: float = 0.0
    before: int = 0
    after: int = 0
    get_graph: Callable[[], Any] | None = None


@dataclass(frozen=True, kw_only=True)
class KernelCompiled(Event):
    """A kernel was compiled to machine code. ``nodes`` are its graph nodes; the ``get_`` fields return text.

    ``language`` is the language of ``get_ir``.
    """

    kind: ClassVar[str] = "kernel_compiled"
    kernel: str = ""
    graph: str = ""
    nodes: tuple[str, ...] = ()
    lines: tuple[UserLine, ...] = ()
    ms: float = 0.0
    description: str = ""
    language: str = "LLVM IR"
    get_ir: Callable[[], str] | None = None
    get_assembly: Callable[[], str] | None = None


@dataclass(frozen=True, kw_only=True)
class CompileFinished(Event):
    """A compile ended. ``phases`` maps phase names to milliseconds; ``outcome`` is "compiled" or "plain".

    ``get_entry_code`` gives the program that checks the guards and runs the graph, ``get_graph_code`` the program
    around the graph's kernels, "" if there is none.
    """

    kind: ClassVar[str] = "compile_finished"
    outcome: str = "compiled"
    backend: str = ""
    graphs: int = 0
    kernels: int = 0
    ms: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    get_entry_code: Callable[[], str] | None = None
    get_graph_code: Callable[[], str] | None = None


@dataclass(frozen=True, kw_only=True)
class CacheHit(Event):
    """Machine code was found in the disk cache. ``key`` names it."""

    kind: ClassVar[str] = "cache_hit"
    key: str = ""
    ms: float = 0.0


@dataclass(frozen=True, kw_only=True)
class CacheMiss(Event):
    """Machine code was not in the disk cache, or could not be used; ``reason`` says which."""

    kind: ClassVar[str] = "cache_miss"
    key: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class FellBack(Event):
    """A call, or all further calls of a function, run in plain Python although compilation was asked for."""

    kind: ClassVar[str] = "fell_back"
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class CudaGraphSkipped(Event):
    """A graph's kernels are launched one by one, although CUDA graphs were requested."""

    kind: ClassVar[str] = "cuda_graph_skipped"
    graph: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class CallTimed(Event):
    """One call was timed (only while there are listeners). A sampled short call represents ``calls`` calls."""

    kind: ClassVar[str] = "call_timed"
    path: str = "compiled"
    ms: float = 0.0
    calls: int = 1


@dataclass(frozen=True, kw_only=True)
class LoopTimed(Event):
    """A loop of a graph ran (only while there are listeners): ``runs`` times, with so many iterations in all, in
    ``ms``.
    """

    kind: ClassVar[str] = "loop_timed"
    where: UserLine = UserLine()
    runs: int = 1
    iterations: int = 0
    ms: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StanceChanged(Event):
    """The stance changed: for the process, or for one thread's ``with`` block."""

    kind: ClassVar[str] = "stance_changed"
    stance: str = ""
    previous: str = ""
    scope: str = "process"


EVENTS: tuple[type[Event], ...] = (
    CompileStarted, GraphCaptured, GraphBroke, LoopDecided, GuardFailed, RecompileStarted, PassFinished,
    KernelCompiled,
    CompileFinished, CacheHit, CacheMiss, FellBack, CudaGraphSkipped, CallTimed, LoopTimed, StanceChanged,
)  # fmt: skip
