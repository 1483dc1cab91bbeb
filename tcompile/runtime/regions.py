"""Regions at run time: what happens where captured code may start.

Input: a region of a function and what the frame holds there. Output: the entry that fits and its result; or nothing,
and the frame goes on in plain Python. Exists as the one place where entries, stances, limits and fallbacks meet,
whether a region is the start of a function, entered by its caller, or a place inside it, entered by its host.

Captured work is pure until its effects are committed. So whenever an entry raises, its results are dropped and the
frame runs the same stretch in plain Python: error, traceback and NumPy's warnings are then plain Python's own.
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
from tcompile.runtime.cache import DROWSY, Entry, FunctionCache, Region
from tcompile.runtime.debuggers import counts_lines, is_watched, may_stop, other_watcher, passes_line_again, tell_lines
from tcompile.runtime.trials import begin, is_alone, is_run_by_python, note_compile
from tcompile.runtime.unseen import go_on, pause, thread, unseen
from tcompile.stance import DEFAULT, Stance, current

REPLAYS = 8  # in turn, after which an entry rests,
_REST, _LONGEST = 32, 5  # for so many calls, and twice as many the next time, as often as that


class StaysPlain(Exception):
    """A function is not compiled, since plain Python is faster than what is left without native code."""


class ByItself(Protocol):
    """What is called in place of a function that code of a cache is about to call."""

    def __call__(self, compiler: Compiler, cache: FunctionCache, function: Any, again: bool) -> Any:
        """The function itself where nothing would be gained; ``again``: what has none so far is looked at once more."""
        ...


class CompileFunction(Protocol):
    """What ``api`` hands the runtime: compiles one stretch of a function and returns its entry."""

    def __call__(
        self, cache: FunctionCache, region: Region, values: Sequence[Any], reasons: Sequence[str], compiler: Compiler
    ) -> Entry:
        """The entry of ``region`` for these parameters; ``reasons`` say why no other entry fits."""
        ...


class Compiler:
    """The compile function, and what it needs of the runtime."""

    def __init__(self, compile: CompileFunction, by_itself: ByItself) -> None:
        self.compile = compile
        self.by_itself = by_itself

    def enter(self, cache: FunctionCache, offset: int, patience: int = 0) -> Callable[..., Any]:
        """What a resume point of the function calls. Before it compiles, it lets ``patience`` misses run plainly."""
        return ResumePoint(self, cache, offset, patience)

    def follow(self, cache: FunctionCache, region: Region, function: Any) -> Any:
        """What is called in place of a function at the end of a stretch, which may have been all there was to do."""
        found = self.by_itself(self, cache, function, not region.idle)
        region.idle = region.idle + 1 if found is function else 1
        if region.idle > DROWSY and region.has_no_work:
            cache.sleep(region.start.offset)
        return found

    def select(
        self, cache: FunctionCache, region: Region, values: Sequence[Any], stance: Stance, in_rewritten: bool = True
    ) -> tuple[Entry, Any] | None:
        """The entry that fits and its result, compiled if need be; None: run this stretch in plain Python.

        hosted: whether rewritten code asks. Any other caller, for whom an entry that ends inside the function is no
        use, gets None as soon as there is rewritten code, which is then to be run.
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
        if sys.is_finalizing():  # a generator is closed as Python ends: nothing can be imported any more
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
                # Another thread may have compiled this stretch while we waited. It is run without the lock.
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
        return None if result is MISS else (entry, result)  # MISS: a value changed under our hands

    @reentry.slow
    def _entry_for(self, cache: FunctionCache, region: Region, values: Sequence[Any], stance: Stance) -> Entry | None:
        """A new entry for these parameters, or None where they are to run in plain Python."""
        if stance.name == "eager_on_recompile":
            return None
        reasons = miss_reasons(region, values)
        if stance.name == "fail_on_recompile":
            if region.entries and all(entry.graph is None for entry in region.entries):
                return None
            raise RecompileError(_recompile_text(cache, reasons))
        for entry in region.entries:
            _tell_failure(cache, entry, values)
        note_compile()
        try:
            entry = self.compile(cache, region, values, reasons, self)
        except StaysPlain as error:
            cache.stays_plain = True
            _tell_plain(cache, str(error))
            return None
        except (BackendError, InvalidArgument, StanceError) as error:
            if not config.suppress_errors:
                raise
            warn(f"tcompile: {error}\n{cache.name} runs in plain Python.")
            bus.emit(FellBack(**cache.about, reason="error suppressed", detail=str(error)))
            return None
        if counts_lines():
            tell_lines(entry.captured.followed)
        cache.add(region, entry)
        is_first = cache.compiles == 1 and entry.graph is not None and is_alone(entry.graph)
        if region is cache.first and (is_first or is_run_by_python(entry)):
            begin(cache, alone=True)
        return entry


class ResumePoint(native.Base):  # type: ignore[misc]  # which class that is depends on the machine
    """What a resume point of a function's host calls: enters the region that starts there.

    It holds the cache weakly, and what leads there as well: the rewritten code's code, which holds the resume point,
    lives in the cache.
    """

    __slots__ = ("__weakref__", "_table", "attached", "cache", "compiler", "offset", "patience")

    def __init__(self, compiler: Compiler, cache: FunctionCache, offset: int, patience: int) -> None:
        self.compiler = compiler
        self.cache = weakref.ref(cache)
        self.offset = offset
        self.patience = patience
        self.attached: tuple[int, ...] = ()  # the entries whose plans the machine code has, by number

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    @unseen
    def __call__(self, *values: Any) -> Any:
        """Where the frame goes on, and with what (``bytecode.build`` says how); None where it goes on natively."""
        if gettrace() is not None or other_watcher() is not None:
            pause(thread())
            try:
                stops = not interrupted.pending and self._stops()
            finally:
                go_on(thread())
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
                    if entry.rests:
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
            if entry.calls > DROWSY and region.is_plain:
                cache.sleep(self.offset)
            return None
        if type(result) is changes.Resumed:
            return result.answer(values)
        if entry.captured.exit is None:
            assert cache.rewritten is not None
            return (None, *cache.rewritten.returned, (result,))
        return result

    def _stops(self) -> bool:
        """Whether a debugger may stop in the frame, or in a function that an entry goes through."""
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
        """Lets the machine code enter here, where there are other entries than the last time."""
        if region.is_plain and region is not cache.first:
            return  # the resume point will not be needed for long
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
    """The first entry whose guards hold and its result (PLAIN where it raised); None where no entry fits.

    ``runs`` stand in for the entries' own programs.
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


def miss_reasons(region: Region, values: Sequence[Any]) -> tuple[str, ...]:
    """For each entry, the first guard that does not hold for these parameters; the same advice is given once."""
    reasons, advice = [], {""}
    for entry in region.entries:
        failure = entry.captured.first_failure(values)
        if failure is not None:
            hint = failure.guard.advice if failure.guard is not None else ""
            reasons.append(f"entry {entry.index}: {failure.text if hint in advice else failure}")
            advice.add(hint)
    return tuple(reasons)


def after_interrupt(cache: FunctionCache, entries: Iterable[Entry]) -> Any:
    """What a run of machine code comes to that was interrupted in this thread; MISS where none was.

    PLAIN: plain Python goes on, and raises there what a signal handler has raised. Resumed: the function's host does,
    where the answer leads it.
    """
    error = interrupted.taken()
    if isinstance(error, Changed):
        return changes.go_on(error, cache)
    if error is None:
        return MISS
    interrupted.go_on(error, cache, entries)
    return PLAIN


def note_replay(cache: FunctionCache, entry: Entry, error: Exception) -> Any:
    """Counts a run that raised and is done again in plain Python; an entry's first one is told, and its first rest.

    Returns PLAIN, or what a run that was paused comes to.

    After several in turn the entry rests: what is going to be done again is not done. A rest that was followed by
    another such run is followed by one twice as long. What a signal's handler has raised meanwhile is raised.
    """
    raise_if_callers(error)
    if isinstance(error, Interrupted):
        interrupted.go_on(error, cache, [entry])
        return PLAIN
    if isinstance(error, Changed):
        return changes.go_on(error, cache)
    entry.replays += 1
    entry.in_turn = entry.in_turn + 1 if entry.hits == entry.replayed + 1 else 1
    entry.replayed = entry.hits
    if entry.in_turn >= REPLAYS and entry.captured.graph is not None and not isinstance(entry.run, Resting):
        entry.rests += 1
        calls = _REST << min(entry.in_turn - REPLAYS, _LONGEST)
        entry.run = Resting(entry, calls)
        if entry.rests == 1:
            reason = f"replayed {REPLAYS} times in turn: the next {calls} calls begin there"
            bus.emit(FellBack(**cache.about, reason=reason, detail=_detail(error)))
    if entry.replays == 1:
        bus.emit(FellBack(**cache.about, reason="replayed in plain Python", detail=_detail(error)))
    return PLAIN


def _detail(error: Exception) -> str:
    return str(error) if isinstance(error, Replay) else f"{type(error).__name__}: {error}"


class Resting:
    """What an entry that rests runs: its guards, after which plain Python goes on."""

    def __init__(self, entry: Entry, calls: int) -> None:
        self.entry, self.left, self.run = entry, calls, entry.run
        self.guards = entry.captured.as_plain().entry(None)

    def __call__(self, *values: Any) -> Any:
        """PLAIN or MISS; after the last call of the rest, the entry's own result."""
        if self.left > 0:
            self.left -= 1
            return self.guards(*values)
        self.entry.run = self.run
        self.entry.replayed = self.entry.hits - 1  # another replay is the next one in turn
        return self.run(*values)


def _tell_failure(cache: FunctionCache, entry: Entry, values: Sequence[Any]) -> None:
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


_told: set[str] = set()  # why functions stay plain, as far as that was said


def _tell_plain(cache: FunctionCache, reason: str) -> None:
    bus.emit(FellBack(**cache.about, reason="no native code, so it runs in plain Python", detail=reason))
    if reason not in _told:
        _told.add(reason)
        warn(f"tcompile: nothing is compiled, functions run in plain Python: {reason}.")


def _at_limit(cache: FunctionCache, region: Region, values: Sequence[Any]) -> None:
    """What a miss means where no more is compiled: the first is told, and a place that is always missed is closed."""
    region.misses += 1
    if cache.rewritten is not None and region.is_missed:
        cache.close(region.start.offset)
    told = region.limit_warned and not cache.settings.fullgraph
    if told or all(entry.graph is None for entry in region.entries):
        return
    reasons = miss_reasons(region, values)
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
    """For each entry, its program with only those guards that tell it from the other entries."""
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
