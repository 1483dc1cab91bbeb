"""Where the time of compiled work goes, by the user's lines.

Input: work that can be repeated: a call, or a cell.
Output: a ``ProfileView``.
Why: a line of code may be part of a kernel, a call of a library or plain Python; only measurement tells what it costs.

Steps of graphs are timed one by one (``step_timing``). The rest of the call is plain Python, and is shared out by
samples (``sampling``). All is scaled to the median of calls without timing.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import statistics
import threading
import types
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter, perf_counter_ns
from typing import Any

from tcompile import compiler, process
from tcompile.config import config
from tcompile.debug.causes import Measured, causes
from tcompile.debug.copying import copied
from tcompile.debug.sampling import GENERATED, REST, Rest, Sampler, is_library, is_ours
from tcompile.debug.step_timing import FUSED, LIBRARY, PLAIN, Laps, TimedGraph
from tcompile.graph import Graph
from tcompile.observe.context import cell_of, of_no_cell
from tcompile.observe.display.profiles import LineTime, ProfileView
from tcompile.observe.events import CompileFinished, GraphBroke
from tcompile.observe.recorder import Recorder
from tcompile.records import dataclass
from tcompile.runtime.cache import apart
from tcompile.stance import set_stance

SECONDS = 0.5  # for all timed calls
CALLS = range(3, 2001)
_WARM_UPS = 4  # the second size compiles anew, and later hits move into machine code
_SAMPLES = 50  # in a call,
_PERIOD = 3e-5, 2e-4  # within these seconds from one to the next
_LEAST = 1e-3  # the share of a line that is listed
_lock = process.lock()  # one profile at a time: output, caches and ``compiler.timer`` are the process's


@dataclass(frozen=True)
class Work:
    """Work that may be repeated: ``around`` is a block that gives what ``run`` takes, which is new each time."""

    around: Callable[[], contextlib.AbstractContextManager[Any]]
    run: Callable[[Any], object]

    def once(self) -> None:
        """Does it once."""
        with self.around() as given:
            self.run(given)

    def warm_up(self) -> None:
        """Does it until nothing more is compiled; twice if it takes long."""
        over = perf_counter() + SECONDS
        for number in range(_WARM_UPS):
            if number < 2 or perf_counter() < over:
                self.once()

    def times(
        self, seconds: float, begin: Callable[[], None] = lambda: None, end: Callable[[], None] = lambda: None
    ) -> Iterator[float]:
        """The seconds that it takes, again and again; ``begin`` and ``end`` are called around each run."""
        over, number = perf_counter() + seconds, 0
        while number < CALLS.start or (number < CALLS.stop and perf_counter() < over):
            with self.around() as given:
                begin()
                started = perf_counter()
                self.run(given)
                taken = perf_counter() - started
                end()
            yield taken
            number += 1


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Work:
    """A call as work; each time with copies of the arguments."""
    return Work(lambda: contextlib.nullcontext(copied((args, kwargs))), lambda given: function(*given[0], **given[1]))


def profile(name: str, usual: Work, timed: Work, plain: Work) -> ProfileView:
    """Profiles work.

    Parameters
    ----------
    name : str
        Its name in the display.
    usual, timed, plain : Work
        The work three times: compiled, compiled with a cache of its own, and in plain Python. Only what the first run
        prints is shown.

    Returns
    -------
    ProfileView
        The lines that take time, in the order of the source.
    """
    with _lock:
        return _profile(name, usual, timed, plain)


def _profile(name: str, usual: Work, timed: Work, plain: Work) -> ProfileView:
    laps, found = Laps(), _Lines()
    with config.patch(rest_when_slower=False), of_no_cell():  # what is timed is compiled code
        with Recorder(this_thread=True) as recorder:
            usual.once()
            with _hidden():
                usual.warm_up()
        with _hidden():
            ms = statistics.median(usual.times(SECONDS / 2)) * 1e3
        with _hidden(), apart(), _timing(laps):
            timed.warm_up()
            laps.clear()
            period = min(max(ms * 1e-3 / _SAMPLES, _PERIOD[0]), _PERIOD[1])
            with Sampler(period, found, eager=True) as sampler:

                def begin() -> None:
                    sampler.begin()
                    laps.last = perf_counter_ns()

                def end() -> None:
                    laps.lap(0)
                    sampler.looks = False

                count = sum(1 for _ in timed.times(SECONDS, begin, end))
    with _hidden(), of_no_cell(), set_stance.block("force_eager"):
        plain.once()
        plain_ms = statistics.median(plain.times(SECONDS / 4)) * 1e3
    compile_ms = sum(event.ms for event in recorder.of(CompileFinished))
    lines, unknown = _lines(laps, sampler, ms, recorder.of(GraphBroke))
    why = causes(Measured(laps, count, ms, plain_ms, unknown, lines, found.names, recorder))
    return ProfileView(
        function=name, ms=ms, plain_ms=plain_ms, compile_ms=compile_ms, unknown_ms=unknown, calls=count, lines=lines,
        causes=why,
    )  # fmt: skip


def _hidden() -> contextlib.AbstractContextManager[Any]:
    """A block whose prints are dropped."""
    return contextlib.redirect_stdout(io.StringIO())


def _lines(
    laps: Laps, sampler: Sampler[tuple[str, int]], ms: float, breaks: Sequence[GraphBroke]
) -> tuple[tuple[LineTime, ...], float]:
    """The times of all lines of a call of so many milliseconds, and what belongs to none."""
    times: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: dict.fromkeys((FUSED, LIBRARY, PLAIN), 0.0))
    why: dict[tuple[str, int], dict[str, None]] = defaultdict(dict)
    scale, unknown = ms / max(1, sum(laps.ns)), 0.0
    for place, ns in zip(laps.places, laps.ns, strict=True):
        unknown += 0.0 if place.lines or place.kind == PLAIN else ns * scale
        for where, part in place.lines:
            times[where.file, where.line][place.kind] += ns * part * scale
            if place.name and ns:
                why[where.file, where.line][place.name] = None
    outside, sampled = laps.ns[0] * scale, sum(sampler.ns.values()) + sampler.rest
    for line, weight in sampler.ns.items():
        times[line][PLAIN] += outside * weight / sampled
    for event in breaks:
        why[event.where.file, event.where.line][event.headline] = None
    lines = (
        LineTime(
            cell=cell_of(line[0]) or "",
            file=line[0],
            line=line[1],
            text=linecache.getline(*line).rstrip(),
            why=", ".join(why[line]),
            **kinds,
        )
        for line, kinds in sorted(times.items())
        if sum(kinds.values()) > ms * _LEAST
    )
    return tuple(lines), unknown + outside * (sampler.rest / sampled if sampled else 1.0)


@contextlib.contextmanager
def _timing(laps: Laps) -> Iterator[None]:
    """A block in which graphs that this thread compiles are timed."""
    thread = threading.get_ident()

    def timed(graph: Graph, made: Callable[..., Any]) -> Callable[..., Any]:
        return made if threading.get_ident() != thread or not graph.nodes else TimedGraph(graph, made, laps)

    before, compiler.timer = compiler.timer, timed
    try:
        yield
    finally:
        compiler.timer = before


class _Lines:
    """Finds the user's line that a frame runs; ``names`` are the functions of the lines found."""

    def __init__(self) -> None:
        self.names: dict[tuple[str, int], str] = {}

    def __call__(self, frame: types.FrameType | None) -> tuple[str, int] | Rest | None:
        while frame is not None:
            if frame.f_code.co_filename.startswith(GENERATED):  # in a graph
                return None
            if frame.f_code is Work.times.__code__:
                return REST
            if not is_ours(frame) and not is_library(frame):
                line = frame.f_code.co_filename, frame.f_lineno or frame.f_code.co_firstlineno
                self.names[line] = frame.f_code.co_qualname
                return line
            frame = frame.f_back
        return None


__all__ = ["Work", "call", "profile"]
