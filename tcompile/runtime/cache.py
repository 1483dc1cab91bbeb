"""The code cache: what has been compiled, by code object.

Input: functions and settings. Output: a ``FunctionCache`` for each pair, which copies of a function share, with a
``Region`` for each place in the function where captured code starts. Exists apart from the callables so that ``reset``
can forget everything, and so that two ``compile`` calls on one function with the same settings find each other's
entries.
"""

from __future__ import annotations

import array
import atexit
import itertools
import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from tcompile import process
from tcompile.capture.guards.dynamic_shapes import Profile
from tcompile.capture.guards.entry_protocol import Start, start_of
from tcompile.capture.guards.prologue import texts
from tcompile.config import config
from tcompile.observe import bus
from tcompile.observe.context import cell_of, current_cell
from tcompile.observe.events import FellBack
from tcompile.records import dataclass
from tcompile.runtime.frames import REASON, Look

if TYPE_CHECKING:
    from tcompile.bytecode.rewritten import Rewritten
    from tcompile.capture.entry.codegen import Captured, Rest
    from tcompile.capture.guards.graph_breaks import GraphBreak
    from tcompile.capture.guards.prologue import Guard
    from tcompile.graph import Graph
    from tcompile.runtime.native.words import CallPlan
    from tcompile.runtime.run import Run


@dataclass(frozen=True)
class Settings:
    """The arguments of ``tcompile.compile`` that decide what is compiled."""

    fullgraph: bool = False
    dynamic: bool | None = None
    backend: str | Callable[..., Any] = "auto"
    options: tuple[tuple[str, Any], ...] = ()
    enter_compiled: bool = True  # whether functions that are compiled already are followed too
    plain_frame: bool = False  # whether the function itself runs in plain Python, and only what it calls is compiled

    @property
    def exact(self) -> bool:
        """Whether results must have NumPy's very bits."""
        return bool(dict(self.options).get("exact", False))

    @property
    def traced(self) -> bool:
        """Whether each compile writes a debug folder."""
        return any(on for name, on in self.options if name.startswith("trace."))

    @property
    def backend_name(self) -> str:
        """The backend's name, or the callable's."""
        return self.backend if isinstance(self.backend, str) else getattr(self.backend, "__name__", "custom")


class Trial(Protocol):
    """What decides, call by call, whether the compiled function runs or the plain one (``trials``).

    Attributes:
        alone: the function is one graph, whose calls machine code answers by itself once the trial has ended.
        inside: whether the call that is being timed is a compiled one; None while none is.
    """

    alone: bool
    inside: bool | None

    def choose(self, plain: Run, timed: Run, compiled: Callable[..., Any]) -> Run:
        """What one call is to run."""


@dataclass(eq=False)
class Entry:
    """One compiled stretch of a function, for values of one kind.

    ``run(*parameters)`` returns the function's result, or a marker: guards failed, or go on in plain Python. Where the
    stretch ends before the function returns, ``captured.exit`` is set and the result says where the frame goes on.
    """

    index: int
    captured: Captured
    run: Callable[..., Any]
    rebuild: Callable[[Callable[[Guard], bool]], Callable[..., Any]]  # the same program with fewer guards
    compiled_graph: Callable[..., Any] | None = None
    graph: Graph | None = None
    broke: GraphBreak | None = None
    kernels: tuple[Any, ...] = ()
    compile_ms: float = 0.0
    stage: int = 0  # of the function's profile
    rest: Rest | None = None  # the program after its guards
    trifling: bool = False  # whether plain Python computes it sooner, if that is all there is to do
    plan: CallPlan | None = None
    planned: bool = False  # whether it was looked for a plan
    calls: int = 0  # that fitted, those that the plan has answered apart
    replays: int = 0
    in_turn: int = 0  # the last of them, one after the other,
    replayed: int = -1  # and how many calls had fitted before the last one
    rests: int = 0  # how often it was left to plain Python for some calls

    @property
    def hits(self) -> int:
        """How many calls fitted."""
        return self.calls + (self.plan.hits if self.plan is not None else 0)

    @property
    def guards(self) -> list[str]:
        """The guards as a person reads them."""
        return texts(self.captured.guards)

    def __repr__(self) -> str:
        what = "plain" if self.graph is None else f"{self.graph.op_count} ops, {len(self.kernels)} kernels"
        return f"<entry {self.index}: {what}, {len(self.captured.guards)} guards, {self.hits} hits>"


@dataclass(eq=False)
class Region:
    """A place in a function where captured code starts. Entries stand most recent first."""

    start: Start
    entries: tuple[Entry, ...] = ()
    limit_warned: bool = False
    misses: int = 0  # since nothing more is compiled here
    idle: int = 0  # since its resume point was woken: calls at its end, in turn, of what is not compiled
    # From which the machine code works that enters here, by resume point: that of the whole host, and of the one in
    # use.
    tables: weakref.WeakKeyDictionary[Any, Any] = field(default_factory=weakref.WeakKeyDictionary)
    unchecked: tuple[tuple[Entry, ...], tuple[Callable[..., Any], ...]] = ((), ())

    def is_full(self, profile: Profile) -> bool:
        """Whether no more is compiled here. Entries from before another size was opened do not count."""
        entries, limit = self.entries, config.recompile_limit
        return len(entries) >= limit and sum(entry.stage == profile.stage for entry in entries) >= limit

    @property
    def is_plain(self) -> bool:
        """Whether whatever has come here so far runs in plain Python."""
        return all(entry.captured.graph is None for entry in self.entries)

    @property
    def is_missed(self) -> bool:
        """Whether next to nothing that comes here fits, and nothing more is compiled."""
        return self.misses > _MISSES and self.misses > sum(entry.hits for entry in self.entries)

    @property
    def has_no_work(self) -> bool:
        """Whether next to nothing is computed here but by plain Python."""
        graphs = [entry.captured.graph for entry in self.entries if not entry.trifling]
        return not any(graph.nodes for graph in graphs if graph is not None)


@dataclass(eq=False)
class FunctionCache:
    """Everything compiled for one code object in one module, under one set of settings."""

    name: str
    held: weakref.ref[types.CodeType]  # weakly: the code's end is the end of what was compiled for it
    namespace: dict[str, Any] = field(repr=False)
    settings: Settings
    first: Region
    cell: str | None = field(default_factory=current_cell.get)  # that was running when it was made
    number: int = field(default_factory=itertools.count().__next__)  # its part of compile ids
    regions: dict[int, Region] = field(default_factory=dict)
    tops: dict[int, str] = field(default_factory=dict)  # by offset, what is on top of the stack there
    built: Rewritten | None = None  # made as soon as capture asks where the frame can be resumed
    rewritten: Rewritten | None = (
        None  # the one that calls run in: ``built``, or one that has only the resume points in use
    )
    quiet_calls: int = 0  # in the rewritten code, since a resume point was last opened
    closed: set[int] = field(default_factory=set)  # offsets of resume points where nothing can be captured any more
    asleep: set[int] = field(
        default_factory=set
    )  # offsets of resume points at which plain Python has gone on again and again
    resumable: bool = True
    profile: Profile = field(default_factory=Profile)
    breaks: list[GraphBreak] = field(default_factory=list)
    callers_breaks: list[GraphBreak] = field(default_factory=list)  # of the function that led here
    recompiles: list[tuple[str, ...]] = field(default_factory=list)
    eager_calls: int = 0
    compiles: int = 0
    callees: dict[types.CodeType, FunctionCache] | None = None  # of a cache that shares nothing with others
    called: weakref.WeakSet[FunctionCache] = field(default_factory=weakref.WeakSet)  # of what is compiled by itself
    look: Look | None = None  # at its callers, for which it stays plain
    stays_plain: bool = False  # nothing is compiled for it
    trial: Trial | None = None  # whether it is worth it, as long as that is not known, or plain calls take less time
    lock: threading.RLock = field(default_factory=process.lock)

    @staticmethod
    def of(function: types.FunctionType, settings: Settings) -> FunctionCache:
        """An empty cache for a function."""
        first = Region(start_of(function.__code__))
        held = weakref.ref(function.__code__)
        profile = Profile(whole=settings.fullgraph)
        return FunctionCache(function.__qualname__, held, function.__globals__, settings, first, profile=profile)

    def of_callee(self, function: types.FunctionType, settings: Settings) -> FunctionCache | None:
        """What is compiled for a function called from here, where nothing is shared with others; else None."""
        if self.callees is None:
            return None
        found = self.callees.get(function.__code__)
        if found is None or found.settings != settings:
            found = self.callees[function.__code__] = FunctionCache.of(function, settings)
            found.callees = self.callees
        return found

    def stay_plain(self, look: Look) -> None:
        """Notes that the function stays plain because it looks at callers, and tells it."""
        self.look = look
        bus.emit(FellBack(**self.about, reason=REASON, detail=f"{self.name}: {look}"))

    @property
    def code(self) -> types.CodeType:
        """The code object, which whoever calls into this cache holds."""
        code = self.held()
        assert code is not None
        return code

    @property
    def about(self) -> dict[str, Any]:
        """What an event says of this function where no compile is going on."""
        return {"function": self.name, "defined_in": self.defined_in}

    @property
    def defined_in(self) -> str | None:
        """The cell that defined the function; of code without a file (under ``%%time``), the one that compiled it."""
        code = self.held()
        if code is None:
            return None
        return cell_of(code.co_filename) or (self.cell if code.co_filename.startswith("<") else None)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of all regions: those at the function's start first, then the most recent first."""
        others = [region for region in list(self.regions.values()) if region is not self.first]
        later = [entry for region in others for entry in region.entries]
        return (*self.first.entries, *sorted(later, key=lambda entry: -entry.index))

    @property
    def graphs(self) -> list[Graph]:
        """The captured graphs, oldest first."""
        ordered = sorted(self.entries, key=lambda e: e.index)
        return [e.graph for e in ordered if e.graph is not None and (e.graph.nodes or e.captured.exit is None)]

    def region(self, offset: int) -> Region:
        """The region at an instruction where the frame can be resumed; made on first use."""
        found = self.regions.get(offset)
        if found is None:
            assert self.rewritten is not None
            analysis = self.rewritten.analysis
            point = analysis.points[offset]
            top = self.tops.get(offset, "")
            start = Start(offset, analysis.cells, point.live, point.slots, point.maybe, top)
            found = self.regions[offset] = self.first if start == self.first.start else Region(start)
        return found

    def open(self, offset: int) -> None:
        """Lets captured code start at an instruction, unless nothing can be captured there any more."""
        assert self.built is not None
        resume_point = self.built.resume_points.get(offset)
        if resume_point is not None and not resume_point and offset not in self.closed:
            resume_point.append(offset)
            self.quiet_calls = 0
            self.rewritten = self.rewritten and self.built

    def close(self, offset: int) -> None:
        """Lets no captured code start at an instruction from now on."""
        assert self.built is not None
        self.closed.add(offset)
        self._shut(offset)

    def sleep(self, offset: int) -> None:
        """Lets frames pass a resume point by without a look at what they hold, until ``wake``."""
        self.asleep.add(offset)
        self._shut(offset)

    def _shut(self, offset: int) -> None:
        for rewritten in (self.built, self.rewritten):
            if rewritten is not None and offset in rewritten.resume_points:
                rewritten.resume_points[offset].clear()

    @property
    def is_quiet(self) -> bool:
        """Whether calls come to what they would without anything compiled, as far as has been seen."""
        if self.rewritten is None:
            return self.first.is_missed
        if self.quiet_calls > DROWSY and all(region.has_no_work for region in list(self.regions.values())):
            return True
        return not any(self.rewritten.resume_points.values())

    @property
    def looks_again(self) -> bool:
        """Whether this call is one of those, ever fewer, in which what was given up is tried once more."""
        return not self.quiet_calls % 3 and (self.quiet_calls // 3).bit_count() == 1  # 3, 6, 12, 24, 48, 96, …

    def wake(self) -> None:
        """Has every resume point that is asleep looked at again."""
        self.rewritten = self.rewritten and self.built
        for offset in list(self.asleep):
            if offset in self.regions:
                self.regions[offset].idle = 0
            if self.built is not None and not self.built.resume_points[offset]:
                self.built.resume_points[offset].append(offset)
        self.asleep.clear()

    def add(self, region: Region, entry: Entry) -> None:
        """Puts a new entry first. Whatever made it necessary may go for resume points that are asleep, too."""
        region.entries = (entry, *region.entries)
        if self.asleep:
            self.quiet_calls = 0
            self.wake()

    def promote(self, region: Region, entry: Entry) -> None:
        """Moves an entry that was hit to the front (a lost race with another thread is harmless)."""
        with self.lock:
            if entry in region.entries:
                region.entries = (entry, *(other for other in region.entries if other is not entry))


SUSPENDS = 0x2A0  # code flags of generators, coroutines and asynchronous generators: a call only makes them
_MISSES = 256  # so often a place is missed before it is given up
DROWSY = 256  # so often plain Python goes on at a place before its resume point sleeps
_MOST = 1024  # functions whose compiled code is kept while nothing else holds it
_Key = tuple[int, int, Settings]
_caches: OrderedDict[_Key, tuple[weakref.ref[types.CodeType], FunctionCache]] = OrderedDict()
_by_name: dict[tuple[int, str, Settings], _Key] = {}
# Callables of modules' functions that compiled code has called: each is made once, as long as they are few.
followed: dict[types.FunctionType, Any] = {}
MOST_FOLLOWED = 64
_lock = process.lock()
# Grows with every reset, so that callables look their cache up again; machine code reads it.
generation = array.array("q", [0])


def function_cache(function: types.FunctionType, settings: Settings) -> FunctionCache:
    """The cache of ``function``'s code object under ``settings``; made on first use.

    A function that is defined again takes the place of the old one, whose entries live on only while a callable of it
    does.
    """
    code, namespace = function.__code__, function.__globals__
    key = (id(code), id(namespace), settings)
    with _lock:
        found = _caches.get(key)
        if found is not None and found[0]() is code:
            _caches.move_to_end(key)
            return found[1]
        made = FunctionCache.of(function, settings)
        drop = _caches.pop  # by name here, for at exit the module's own names are gone first
        _caches[key] = (weakref.ref(code, lambda _: drop(key, None)), made)
        if "<" not in function.__qualname__:
            name = (id(namespace), function.__qualname__, settings)
            if (old := _by_name.get(name)) not in (None, key):
                _caches.pop(old, None)
            _by_name[name] = key
        while len(_caches) > _MOST:
            _caches.popitem(last=False)
        return made


def caches() -> tuple[FunctionCache, ...]:
    """The caches of all functions for which something may be compiled; of a function defined again, the new one."""
    with _lock:
        return tuple(cache for code, cache in _caches.values() if code() is not None)


@atexit.register  # what namespaces hold ends with their modules then, as in plain Python, whose finalizers still work
def reset() -> None:
    """Forgets everything compiled, every profile of sizes, and every count."""
    with _lock:
        _caches.clear()
        _by_name.clear()
        followed.clear()
        generation[0] += 1
