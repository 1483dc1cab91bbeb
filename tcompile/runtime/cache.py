"""The code cache: compiled entries, by code object.

Input: functions and settings.
Output: a ``FunctionCache`` for each pair, shared by copies of a function, with a ``Region`` for each place where
captured code starts.
Why: the cache is separate from the callables. So ``reset`` can discard everything, and two ``compile`` calls on one
function with the same settings share entries.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import itertools
import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
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
class CompileSettings:
    """The arguments of ``tcompile.compile`` that decide what is compiled."""

    fullgraph: bool = False
    dynamic: bool | None = None
    backend: str | Callable[..., Any] = "auto"
    options: tuple[tuple[str, Any], ...] = ()
    enter_compiled: bool = True  # whether functions that are compiled already are inlined too
    plain_frame: bool = False  # whether the function itself runs in plain Python and only its callees are compiled
    follows_path: bool = False  # whether a graph may follow one path through the function's branches (derivatives)
    splits_exit_loops: bool = False  # whether derivatives split loops with exits whose rows may have no room

    @property
    def exact(self) -> bool:
        """Whether results must equal NumPy's bit by bit."""
        return bool(dict(self.options).get("exact", False))

    @property
    def traced(self) -> bool:
        """Whether each compile writes a debug folder."""
        return any(on for name, on in self.options if name.startswith("trace."))

    @property
    def backend_name(self) -> str:
        """Returns the backend's name, or the callable's."""
        return self.backend if isinstance(self.backend, str) else getattr(self.backend, "__name__", "custom")


class CallChooser(Protocol):
    """Chooses, call by call, between the compiled function and the plain one (see ``trials``).

    Attributes:
        alone: the function is one graph; machine code answers its calls directly after the trial.
        inside: whether the call being timed is a compiled one; None if none is being timed.
        resting_plan: the plan with which machine code calls the plain function, while plain calls are faster.
    """

    alone: bool
    inside: bool | None
    resting_plan: CallPlan | None

    def choose(self, plain: Run, timed: Run, compiled: Callable[..., Any]) -> Run | None:
        """Returns what one call is to run; None if that is not for the trial to say."""


@dataclass(eq=False)
class Entry:
    """One compiled stretch of a function, specialised for values of one kind.

    ``run(*parameters)`` returns the function's result, or a marker: a guard failed, or plain Python is to continue. If
    the stretch ends before the function returns, ``captured.exit`` is set and the result says where the frame resumes.
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
    stage: int = 0  # the stage of the function's size profile
    rest: Rest | None = None  # the program after its guards
    trifling: bool = False  # whether plain Python is faster, if there is no other work to do
    plan: CallPlan | None = None
    planned: bool = False  # whether a call plan was tried
    calls: int = 0  # hits, without those that the call plan has answered
    replays: int = 0
    consecutive_replays: int = 0  # the latest consecutive replays
    hits_at_replay: int = -1  # the hit count at the last replay
    suspensions: int = 0  # how often the entry was suspended for some calls

    @property
    def hits(self) -> int:
        """Returns the number of hits."""
        return self.calls + (self.plan.hits if self.plan is not None else 0)

    @property
    def guards(self) -> list[str]:
        """Returns the guards as text."""
        return texts(self.captured.guards)

    def __repr__(self) -> str:
        what = "plain" if self.graph is None else f"{self.graph.op_count} ops, {len(self.kernels)} kernels"
        return f"<entry {self.index}: {what}, {len(self.captured.guards)} guards, {self.hits} hits>"


@dataclass(eq=False)
class Region:
    """A place in a function where captured code starts. Entries are ordered most recent first."""

    start: Start
    entries: tuple[Entry, ...] = ()
    limit_warned: bool = False
    misses: int = 0  # since compiling stopped here
    idle: int = 0  # consecutive fallbacks at the end of this region, since its resume point was woken
    # The tables of the machine code that enters here, by resume point: of the full rewritten code, and of the one in
    # use.
    tables: weakref.WeakKeyDictionary[Any, Any] = field(default_factory=weakref.WeakKeyDictionary)
    unchecked: tuple[tuple[Entry, ...], tuple[Callable[..., Any], ...]] = ((), ())

    def is_full(self, profile: Profile) -> bool:
        """Whether the region has reached the recompile limit. Entries from before a size was opened do not count."""
        entries, limit = self.entries, config.recompile_limit
        return len(entries) >= limit and sum(entry.stage == profile.stage for entry in entries) >= limit

    @property
    def is_plain(self) -> bool:
        """Whether all entries so far fall back to plain Python."""
        return all(entry.captured.graph is None for entry in self.entries)

    @property
    def is_missed(self) -> bool:
        """Whether nearly every arrival is a guard miss, and nothing more is compiled."""
        return self.misses > _MISSES and self.misses > sum(entry.hits for entry in self.entries)

    @property
    def is_fruitless(self) -> bool:
        """Whether one attempt after the other has ended in plain Python, some of them after long capture."""
        if not self.is_plain:
            return False
        long = sum(entry.broke is not None and entry.broke.reason.id == "too-long" for entry in self.entries)
        return len(self.entries) >= _FRUITLESS or long >= _LONG

    @property
    def has_no_work(self) -> bool:
        """Whether plain Python does nearly all the work here."""
        programs = [entry.captured for entry in self.entries if not entry.trifling]
        return not any(p.stands_in or p.graph.nodes for p in programs if p.graph is not None)


@dataclass(eq=False)
class FunctionCache:
    """All compiled code of one code object in one module, under one set of settings."""

    name: str
    held: weakref.ref[types.CodeType]  # weakly: compiled code ends with the code object
    namespace: dict[str, Any] = field(repr=False)
    settings: CompileSettings
    first: Region
    cell: str | None = field(default_factory=current_cell.get)  # the notebook cell that was running when it was made
    number: int = field(default_factory=itertools.count().__next__)  # the number in compile ids
    regions: dict[int, Region] = field(default_factory=dict)
    tops: dict[int, str] = field(default_factory=dict)  # by offset, the text of the value on top of the stack
    built: Rewritten | None = None  # the full rewritten code, made when capture asks where the frame can be resumed
    rewritten: Rewritten | None = None  # the rewritten code in use: ``built``, or one with only the open resume points
    quiet_calls: int = 0  # calls in the rewritten code since a resume point was last opened
    closed: set[int] = field(default_factory=set)  # offsets of resume points where nothing can be captured any more
    asleep: set[int] = field(
        default_factory=set
    )  # offsets of resume points that are asleep, since plain Python continued there time and again
    resumable: bool = True
    profile: Profile = field(default_factory=Profile)
    breaks: list[GraphBreak] = field(default_factory=list)
    callers_breaks: list[GraphBreak] = field(default_factory=list)  # breaks of the function that led here
    recompiles: list[tuple[str, ...]] = field(default_factory=list)
    eager_calls: int = 0
    compiles: int = 0
    callees: dict[types.CodeType, FunctionCache] | None = None  # caches of callees, for a cache that is not shared
    # caches of callees that are compiled separately
    called: weakref.WeakSet[FunctionCache] = field(default_factory=weakref.WeakSet)
    look: Look | None = None  # the code that reads its caller's frame: the function stays plain
    stays_plain: bool = False  # nothing is compiled for it
    trial: CallChooser | None = None  # the timing trial, while the outcome is open or plain calls are faster
    is_decided: bool = False  # whether there was a trial that no other may follow
    lock: threading.RLock = field(default_factory=process.lock)

    @property
    def is_derivative(self) -> bool:
        """Whether the function is one of ours, around a function of the user's."""
        return str(self.namespace.get("__name__")).startswith("tcompile.annotations.")

    @staticmethod
    def of(function: types.FunctionType, settings: CompileSettings) -> FunctionCache:
        """Makes an empty cache for a function."""
        first = Region(start_of(function.__code__))
        held = weakref.ref(function.__code__)
        profile = Profile(whole=settings.fullgraph)
        return FunctionCache(function.__qualname__, held, function.__globals__, settings, first, profile=profile)

    def of_callee(self, function: types.FunctionType, settings: CompileSettings) -> FunctionCache | None:
        """Returns the cache of a callee if this cache is not shared, else None."""
        if self.callees is None:
            return None
        found = self.callees.get(function.__code__)
        if found is None or found.settings != settings:
            found = self.callees[function.__code__] = FunctionCache.of(function, settings)
            found.callees = self.callees
        return found

    def stay_plain(self, look: Look) -> None:
        """Records and reports that the function stays plain, because it reads its callers' frames."""
        self.look = look
        bus.emit(FellBack(**self.about, reason=REASON, detail=f"{self.name}: {look}"))

    @property
    def code(self) -> types.CodeType:
        """Returns the code object; the caller of this cache keeps it alive."""
        code = self.held()
        assert code is not None
        return code

    @property
    def about(self) -> dict[str, Any]:
        """Returns an event's fields about this function, outside a compile."""
        return {"function": self.name, "defined_in": self.defined_in}

    @property
    def defined_in(self) -> str | None:
        """Returns the cell that defined the function. For code without a file (under ``%%time``), the cell that
        compiled it.
        """
        code = self.held()
        if code is None:
            return None
        return cell_of(code.co_filename) or (self.cell if code.co_filename.startswith("<") else None)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Returns the entries of all regions: those at the function's start first, then the most recent first."""
        others = [region for region in list(self.regions.values()) if region is not self.first]
        later = [entry for region in others for entry in region.entries]
        return (*self.first.entries, *sorted(later, key=lambda entry: -entry.index))

    @property
    def graphs(self) -> list[Graph]:
        """Returns the captured graphs, oldest first."""
        ordered = sorted(self.entries, key=lambda e: e.index)
        return [e.graph for e in ordered if e.graph is not None and (e.graph.nodes or e.captured.exit is None)]

    def region(self, offset: int) -> Region:
        """Returns the region at an instruction where the frame can be resumed; made on first use."""
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
        """Stops captured code from starting at an instruction."""
        assert self.built is not None
        self.closed.add(offset)
        self._shut(offset)

    def sleep(self, offset: int) -> None:
        """Makes frames pass a resume point without checking guards, until ``wake``."""
        self.asleep.add(offset)
        self._shut(offset)

    def _shut(self, offset: int) -> None:
        for rewritten in (self.built, self.rewritten):
            if rewritten is not None and offset in rewritten.resume_points:
                rewritten.resume_points[offset].clear()

    @property
    def is_quiet(self) -> bool:
        """Whether calls behave as if nothing were compiled, as far as is known."""
        if self.rewritten is None:
            return self.first.is_missed
        if self.quiet_calls > SLEEP_AFTER and all(region.has_no_work for region in list(self.regions.values())):
            return True
        return not any(self.rewritten.resume_points.values())

    @property
    def retries(self) -> bool:
        """Whether this call retries suspended regions: such calls are ever fewer."""
        return not self.quiet_calls % 3 and (self.quiet_calls // 3).bit_count() == 1  # 3, 6, 12, 24, 48, 96, …

    def wake(self) -> None:
        """Opens every resume point that is asleep, so that its guards are checked again."""
        self.rewritten = self.rewritten and self.built
        for offset in list(self.asleep):
            if offset in self.regions:
                self.regions[offset].idle = 0
            if self.built is not None and not self.built.resume_points[offset]:
                self.built.resume_points[offset].append(offset)
        self.asleep.clear()

    def add(self, region: Region, entry: Entry) -> None:
        """Puts a new entry first and wakes resume points: the cause of the recompile may concern them."""
        region.entries = (entry, *region.entries)
        if region is not self.first and region.is_fruitless:
            self.close(region.start.offset)
        if self.asleep:
            self.quiet_calls = 0
            self.wake()

    def promote(self, region: Region, entry: Entry) -> None:
        """Moves an entry to the front after a hit. A lost race with another thread is harmless."""
        with self.lock:
            if entry in region.entries:
                region.entries = (entry, *(other for other in region.entries if other is not entry))


SUSPENDS = 0x2A0  # code flags of generators, coroutines and asynchronous generators, whose calls only create them
_MISSES = 256  # guard misses after which a region is closed
_FRUITLESS = 8  # attempts to capture something, of some milliseconds each
_LONG = 2  # those of some 20 ms each
SLEEP_AFTER = 256  # plain runs after which a resume point sleeps
_MOST = 1024  # caches kept alive while nothing else holds them
_Key = tuple[int, int, CompileSettings]
_caches: OrderedDict[_Key, tuple[weakref.ref[types.CodeType], FunctionCache]] = OrderedDict()
_by_name: dict[tuple[int, str, CompileSettings], _Key] = {}
_set_aside: list[OrderedDict[_Key, tuple[weakref.ref[types.CodeType], FunctionCache]]] = []  # by ``apart``
# Compiled callables of functions that compiled code calls, made once each, up to a limit.
followed: dict[types.FunctionType, Any] = {}
MOST_FOLLOWED = 64
_lock = process.lock()
# Incremented by every reset, so that callables look their cache up again; machine code reads it.
generation = array.array("q", [0])


def function_cache(function: types.FunctionType, settings: CompileSettings) -> FunctionCache:
    """Returns the cache of ``function``'s code object under ``settings``; made on first use.

    A redefined function replaces the old one, whose entries live as long as a callable holds them.
    """
    code, namespace = function.__code__, function.__globals__
    key = (id(code), id(namespace), settings)
    with _lock:
        found = _caches.get(key)
        if found is not None and found[0]() is code:
            _caches.move_to_end(key)
            return found[1]
        made = FunctionCache.of(function, settings)
        drop = _caches.pop  # bound here: at exit the module's globals are cleared first
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
    """Returns the caches of all compiled functions; of a redefined function, only the newest."""
    with _lock:
        return tuple(cache for code, cache in (*_set_aside, _caches)[0].values() if code() is not None)


def forget(namespace: dict[str, Any]) -> None:
    """Discards the caches of the functions whose globals these are."""
    with _lock:
        for key in [key for key in _caches if key[1] == id(namespace)]:
            _caches.pop(key, None)
        for name in [name for name in _by_name if name[0] == id(namespace)]:
            _by_name.pop(name, None)


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """A block in which nothing compiled before is used. What is compiled in it is not shown, and then forgotten."""
    with _lock:
        held = OrderedDict(_caches), dict(_by_name), dict(followed)
        _set_aside.append(held[0])
        reset()
    try:
        yield
    finally:
        with _lock:
            reset()
            _set_aside[:] = [one for one in _set_aside if one is not held[0]]
            _caches.update(held[0])
            _by_name.update(held[1])
            followed.update(held[2])


@atexit.register  # objects in namespaces then end with their modules, as in plain Python: their finalizers still work
def reset() -> None:
    """Discards all compiled code, size profiles and counters."""
    with _lock:
        _caches.clear()
        _by_name.clear()
        followed.clear()
        generation[0] += 1
