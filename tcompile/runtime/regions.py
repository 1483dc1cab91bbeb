"""Regions at run time: entries, stances, limits and fallbacks where captured code may start.

Input: a region of a function and the frame's values there.
Output: the entry that hits and its result; or nothing, and the frame continues in plain Python.
Why: the same rules hold for a region at a function's start, entered by its caller, and for one inside it, entered by
its rewritten code.

Captured work is pure until its side effects are committed. So if an entry raises, its results are dropped and the frame
runs the same stretch in plain Python. Error, traceback and NumPy's warnings are then plain Python's own.
"""

from __future__ import annotations

import sys
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from sys import gettrace
from typing import Any, Protocol

from tcompile import reentry
from tcompile.backends.replay import Interrupted, Replay
from tcompile.callers import raise_if_callers
from tcompile.capture.context.followed import Followed
from tcompile.capture.guards.entry_protocol import MISS, PLAIN
from tcompile.config import config
from tcompile.errors import BackendError, InvalidArgument, RecompileError, RecompileLimitError, StanceError
from tcompile.observe import bus
from tcompile.observe.events import FellBack, GuardFailed
from tcompile.observe.source_location import file_label
from tcompile.observe.warn import warn
from tcompile.polls import Changed
from tcompile.runtime import changes, interrupted, native
from tcompile.runtime.cache import SLEEP_AFTER, Entry, FunctionCache, Region
from tcompile.runtime.debuggers import (
    counts_lines,
    is_watched,
    may_stop,
    other_watcher,
    passes_line_again,
    report_lines,
)
from tcompile.runtime.trials import begin, is_alone, is_run_by_python, note_compile
from tcompile.runtime.unseen import pause, resume_tracing, thread, unseen
from tcompile.stance import DEFAULT, Stance, current

REPLAYS = 8  # consecutive replays after which an entry is suspended,
_SUSPENDED_CALLS, _MOST_DOUBLINGS = 32, 5  # for this many calls, doubled each time, this often


class StaysPlain(Exception):
    """A function is not compiled, since plain Python is faster without native code."""


class ByItself(Protocol):
    """Maps a function that code of a cache is about to call to its compiled form."""

    def __call__(self, compiler: Compiler, cache: FunctionCache, function: Any, again: bool) -> Any:
        """Returns the function itself if compiling gains nothing; ``again``: retry one without entries so far."""
        ...


class CompileFunction(Protocol):
    """Compiles one stretch of a function and returns its entry; passed to the runtime by ``api``."""

    def __call__(
        self, cache: FunctionCache, region: Region, values: Sequence[Any], reasons: Sequence[str], compiler: Compiler
    ) -> Entry:
        """Returns the entry of ``region`` for these parameters; ``reasons`` say why no other entry fits."""
        ...


class Compiler:
    """The compile function, with what it needs of the runtime."""

    def __init__(self, compile: CompileFunction, by_itself: ByItself) -> None:
        self.compile = compile
        self.by_itself = by_itself

    def enter(self, cache: FunctionCache, offset: int, patience: int = 0) -> Callable[..., Any]:
        """Returns a resume point's callable. Before it compiles, it lets ``patience`` misses run in plain Python."""
        return ResumePoint(self, cache, offset, patience)

    def follow(self, cache: FunctionCache, region: Region, function: Any) -> Any:
        """Returns the callee at the end of a stretch; the call may have been the stretch's only work."""
        found = self.by_itself(self, cache, function, not region.idle)
        region.idle = region.idle + 1 if found is function else 1
        if region.idle > SLEEP_AFTER and region.has_no_work:
            cache.sleep(region.start.offset)
        return found

    def select(
        self, cache: FunctionCache, region: Region, values: Sequence[Any], stance: Stance, in_rewritten: bool = True
    ) -> tuple[Entry, Any] | None:
        """Returns the entry that hits and its result, compiled if needed; None: run this stretch in plain Python.

        in_rewritten: whether rewritten code calls. Other callers cannot use an entry that ends inside the function.
        They get None as soon as there is rewritten code, which they then run.
        """
        if stance.name == "force_eager":
            return None
        entries = region.entries
        if not in_rewritten and cache.rewritten is not None:
            return None
        found = try_entries(cache, entries, values, _unchecked(region) if stance.skip_guard_eval_unsafe else None)
        if found is not None:
            return found
        if region.is_full(cache.profile) and stance.name != "fail_on_recompile":
            _at_limit(cache, region, values)
            return None
        if sys.is_finalizing():  # a generator is closed at exit: nothing can be imported any more
            return None
        if cache.stays_plain:
            return None
        if reentry.is_inside():
            bus.emit(FellBack(**cache.about, reason="called while this thread compiles or imports"))
            return None
        entry = None
        tried: set[Entry] = set()
        while entry is None:
            with cache.lock:
                if not in_rewritten and cache.rewritten is not None:
                    return None
                # Another thread may have compiled this stretch while this one waited. It runs without the lock.
                others = [other for other in region.entries if other not in tried]
                if not others:
                    try:
                        entry = self._entry_for(cache, region, values, stance)
                    except (RecursionError, MemoryError):  # the caller is near a limit that plain Python may not reach
                        return None
                    if entry is not None and is_watched() and may_stop(entry.captured.followed):
                        return None
                    break
            found = try_entries(cache, others, values)
            if found is not None:
                return found
            tried.update(others)
        if entry is None or (not in_rewritten and cache.rewritten is not None):
            return None
        try:
            result = entry.run(*values)
        except Exception as error:
            result = note_replay(cache, entry, error)
        return None if result is MISS else (entry, result)  # MISS: a value was changed concurrently

    @reentry.slow
    def _entry_for(self, cache: FunctionCache, region: Region, values: Sequence[Any], stance: Stance) -> Entry | None:
        """Returns a new entry for these parameters, or None if plain Python is to run them."""
        if stance.name == "eager_on_recompile":
            return None
        reasons = miss_reasons(cache, region, values)
        if stance.name == "fail_on_recompile":
            if region.entries and all(entry.graph is None for entry in region.entries):
                return None
            raise RecompileError(_recompile_text(cache, reasons))
        for entry in _by_distance(cache, region, values):
            _emit_failure(cache, entry, values)
        note_compile()
        try:
            entry = self.compile(cache, region, values, reasons, self)
        except StaysPlain as error:
            cache.stays_plain = True
            _report_plain(cache, str(error))
            return None
        except (BackendError, InvalidArgument, StanceError) as error:
            if not config.suppress_errors:
                raise
            warn(f"tcompile: {error}\n{cache.name} runs in plain Python.")
            bus.emit(FellBack(**cache.about, reason="error suppressed", detail=str(error)))
            return None
        if counts_lines():
            report_lines(entry.captured.followed)
        cache.add(region, entry)
        is_first = cache.compiles == 1 and entry.graph is not None and is_alone(entry.graph)
        draws = bool(entry.captured.locks)  # a generator's state is moved in and out: few draws do not pay
        if region is cache.first and (is_first or draws or is_run_by_python(entry)):
            begin(cache, alone=True)
        return entry


class ResumePoint(native.Base):  # type: ignore[misc]  # which class that is depends on the machine
    """The callable of a resume point: enters the region that starts there.

    It holds the cache weakly, and so do its referrers: the rewritten code, which holds the resume point, lives in the
    cache.
    """

    __slots__ = ("__weakref__", "_table", "attached", "cache", "compiler", "offset", "patience")

    def __init__(self, compiler: Compiler, cache: FunctionCache, offset: int, patience: int) -> None:
        self.compiler = compiler
        self.cache = weakref.ref(cache)
        self.offset = offset
        self.patience = patience
        self.attached: tuple[int, ...] = ()  # the entries for which machine code has plans, by number

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @unseen
    def __call__(self, *values: Any) -> Any:
        """Returns where the frame resumes, and with what (see ``bytecode.build``); None if plain Python continues."""
        if gettrace() is not None or other_watcher() is not None:
            pause(thread())
            try:
                stops = not interrupted.pending and self._stops()
            finally:
                resume_tracing(thread())
            if stops:
                return None
        pass  # noqa: PIE790
        return self._answer(values)

    def _answer(self, values: Sequence[Any]) -> Any:
        cache = self.cache()
        if cache is None or cache.held() is None:  # a generator that has outlived its function
            return None
        region = cache.region(self.offset)
        if interrupted.pending:
            resumed = after_interrupt(cache, region.entries)
            if resumed is not MISS:
                return None if resumed is PLAIN else resumed.answer(values)
        stance = current()
        found = None
        if stance is DEFAULT:
            entries = region.entries
            for entry in entries:
                try:
                    result = entry.run(*values)
                except Exception as error:
                    result = note_replay(cache, entry, error)
                    if entry.suspensions:
                        self.attached = ()
                if result is not MISS:
                    entry.calls += 1
                    if entry is not entries[0]:
                        cache.promote(region, entry)
                    self._attach(cache, region)
                    found = entry, result
                    break
        if found is None:
            if self.patience:
                self.patience -= 1
                return None
            found = self.compiler.select(cache, region, values, stance)
            if found is None:
                return None
            if config.verify:
                self._attach(cache, region)
        entry, result = found
        if result is PLAIN:
            if entry.calls > SLEEP_AFTER and region.is_plain:
                cache.sleep(self.offset)
            return None
        if type(result) is changes.Resumed:
            return result.answer(values)
        if entry.captured.exit is None:
            assert cache.rewritten is not None
            return (None, *cache.rewritten.returned, (result,))
        return result

    def _stops(self) -> bool:
        """Whether a debugger may stop in the frame, or in a function that an entry inlines."""
        cache = self.cache()
        code = None if cache is None else cache.held()
        if cache is None or code is None:
            return True
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        entries = cache.region(self.offset).entries
        functions = (function for entry in entries for function in entry.captured.followed)
        if not may_stop((Followed.of(code), *functions), frame):
            return False
        if frame is not None:
            passes_line_again(frame)
        return True

    def _attach(self, cache: FunctionCache, region: Region) -> None:
        """Lets machine code enter here, if the entries have changed since."""
        if region.is_plain and region is not cache.first:
            return  # the resume point is not needed for long
        entries = tuple(sorted(entry.index for entry in region.entries))
        if entries == self.attached or cache.built is None or not config.native_calls or bus.listened[0]:
            return
        if not reentry.is_inside():
            self.attached = entries
            native.attach_resume_point(self, _TABLE, region, region is not cache.first, cache.built.returned)


_TABLE = native.complete(ResumePoint, "_table")


def try_entries(
    cache: FunctionCache,
    entries: Sequence[Entry],
    values: Sequence[Any],
    runs: Sequence[Callable[..., Any]] | None = None,
) -> tuple[Entry, Any] | None:
    """Returns the first entry whose guards hold and its result (PLAIN if it raised); None if all miss.

    ``runs`` replace the entries' own programs.
    """
    for entry, run in zip(entries, runs or [entry.run for entry in entries], strict=False):
        try:
            result = run(*values)
        except Exception as error:
            result = note_replay(cache, entry, error)
        if result is not MISS:
            entry.calls += 1
            return entry, result
    return None


def miss_reasons(cache: FunctionCache, region: Region, values: Sequence[Any]) -> tuple[str, ...]:
    """Returns, for each entry, the first guard that fails for these parameters: of the nearest one first, with advice.

    Near is an entry of which few guards fail. Of those that are equally near, the newest comes first.
    """
    failures = [(entry, entry.captured.first_failure(values)) for entry in _by_distance(cache, region, values)]
    found = [(entry.index, failure) for entry, failure in failures if failure is not None]
    return tuple(f"entry {index}: {failure.text if place else failure}" for place, (index, failure) in enumerate(found))


def _by_distance(cache: FunctionCache, region: Region, values: Sequence[Any]) -> list[Entry]:
    """The entries: of a call the nearest first; of a place where plain Python goes on the newest, which takes less."""
    if region is not cache.first or len(region.entries) < 2:
        return list(region.entries)
    return sorted(region.entries, key=lambda entry: entry.captured.distance(values))


def after_interrupt(cache: FunctionCache, entries: Iterable[Entry]) -> Any:
    """Returns the outcome of an interrupted run of machine code in this thread; MISS if there was none.

    PLAIN: plain Python continues, and raises there what the signal handler has raised. Resumed: the rewritten code
    continues at the answer.
    """
    error = interrupted.taken()
    if isinstance(error, Changed):
        return changes.resume_run(error, cache)
    if error is None:
        return MISS
    interrupted.raise_in_loop(error, cache, entries)
    return PLAIN


def note_replay(cache: FunctionCache, entry: Entry, error: Exception) -> Any:
    """Counts a run that raised and is replayed in plain Python. Reports an entry's first one, and its first suspension.

    Returns PLAIN, or the outcome of a paused run.

    After several consecutive replays the entry is suspended, to save runs that would be repeated. If the next run is
    also replayed, the suspension doubles. An exception of a signal handler is raised.
    """
    raise_if_callers(error)
    if isinstance(error, Interrupted):
        interrupted.raise_in_loop(error, cache, [entry])
        return PLAIN
    if isinstance(error, Changed):
        return changes.resume_run(error, cache)
    entry.replays += 1
    entry.consecutive_replays = entry.consecutive_replays + 1 if entry.hits == entry.hits_at_replay + 1 else 1
    entry.hits_at_replay = entry.hits
    if (
        entry.consecutive_replays >= REPLAYS
        and entry.captured.graph is not None
        and not isinstance(entry.run, SuspendedEntry)
    ):
        entry.suspensions += 1
        calls = _SUSPENDED_CALLS << min(entry.consecutive_replays - REPLAYS, _MOST_DOUBLINGS)
        entry.run = SuspendedEntry(entry, calls)
        if entry.suspensions == 1:
            reason = f"replayed {REPLAYS} times in a row: the next {calls} calls run in plain Python"
            bus.emit(FellBack(**cache.about, reason=reason, detail=_detail(error)))
    if entry.replays == 1:
        bus.emit(FellBack(**cache.about, reason="replayed in plain Python", detail=_detail(error)))
    return PLAIN


def _detail(error: Exception) -> str:
    return str(error) if isinstance(error, Replay) else f"{type(error).__name__}: {error}"


class SuspendedEntry:
    """The program of a suspended entry: its guards, then plain Python."""

    def __init__(self, entry: Entry, calls: int) -> None:
        self.entry, self.left, self.run = entry, calls, entry.run
        self.guards = entry.captured.as_plain().entry(None)

    def __call__(self, *values: Any) -> Any:
        """Returns PLAIN or MISS; after the last call of the suspension, the entry's own result."""
        if self.left > 0:
            self.left -= 1
            return self.guards(*values)
        self.entry.run = self.run
        self.entry.hits_at_replay = self.entry.hits - 1  # the next replay counts as consecutive
        return self.run(*values)


def _emit_failure(cache: FunctionCache, entry: Entry, values: Sequence[Any]) -> None:
    failure = entry.captured.first_failure(values)
    if failure is None:
        return
    guard = failure.guard
    bus.emit(
        GuardFailed(
            **cache.about,
            entry=entry.index,
            source=guard.source.text if guard else "",
            guard=guard.text if guard else "",
            expected=guard.expected if guard else "",
            seen=failure.seen,
            hint=guard.advice if guard else "",
        )
    )


_reported: set[str] = set()  # reasons already reported for staying plain


def _report_plain(cache: FunctionCache, reason: str) -> None:
    bus.emit(FellBack(**cache.about, reason="no native code, so it runs in plain Python", detail=reason))
    if reason not in _reported:
        _reported.add(reason)
        warn(f"tcompile: nothing is compiled, functions run in plain Python: {reason}.")


def _at_limit(cache: FunctionCache, region: Region, values: Sequence[Any]) -> None:
    """Handles a miss where nothing more is compiled: reports the first, and closes a region that mostly misses."""
    region.misses += 1
    if cache.rewritten is not None and region.is_missed:
        cache.close(region.start.offset)
    reported = region.limit_warned and not cache.settings.fullgraph
    if reported or all(entry.graph is None for entry in region.entries):
        return
    reasons = miss_reasons(cache, region, values)
    last = reasons[0] if reasons else "no entry fits"
    limit = config.recompile_limit
    if cache.settings.fullgraph:
        raise RecompileLimitError(
            f"{cache.name} reached config.recompile_limit ({limit}) with fullgraph=True. Last reason: {last}"
        )
    region.limit_warned = True
    text = (
        f"tcompile: {cache.name} was compiled {len(region.entries)} times (config.recompile_limit: {limit}). Calls "
        f"that fit those entries stay compiled, all others run in plain Python. Last reason: {last}. "
        "tcompile.set_logs(recompiles=True) shows every reason."
    )
    warn(text)
    bus.emit(FellBack(**cache.about, reason="recompile limit", detail=last))


def _unchecked(region: Region) -> tuple[Callable[..., Any], ...]:
    """Returns, for each entry, its program with only those guards that distinguish it from the others."""
    entries = region.entries
    if region.unchecked[0] != entries:
        texts = [set(entry.guards) for entry in entries]
        common = set.intersection(*texts) if texts else set()
        runs = tuple(
            entry.rebuild(lambda guard: len(entries) > 1 and guard.text not in common) for entry in entries
        )  # fmt: skip
        region.unchecked = (entries, runs)
    return region.unchecked[1]


_MAX_GUARD_TEXT = 3


def _recompile_text(cache: FunctionCache, reasons: Sequence[str]) -> str:
    code = cache.code
    lines = [
        "a compile was needed while the stance is 'fail_on_recompile'",
        f"  function: {cache.name} ({file_label(code.co_filename)}, line {code.co_firstlineno})",
    ]
    if not reasons:
        lines.append("  reason: it has not been compiled yet")
    lines += [f"  failed guard of {reason}" for reason in reasons[:_MAX_GUARD_TEXT]]
    if len(reasons) > _MAX_GUARD_TEXT:
        lines.append(f"  … and {len(reasons) - _MAX_GUARD_TEXT} more entries")
    return "\n".join(lines)


__all__ = [
    "CompileFunction", "Compiler", "StaysPlain", "after_interrupt", "miss_reasons", "note_replay", "try_entries",
]  # fmt: skip
