"""Dispatch: what happens when a compiled function is called.

Enters: a call. Leaves: its result, from the first entry whose guards hold; else from a new compile, or from plain
Python, as the stance says. Exists as the one place where stances, limits and fallbacks meet.

Captured work is pure until its effects are committed. So whenever an entry raises, its results are dropped and the
function runs in plain Python from its start: error, traceback and NumPy's warnings are then plain Python's own.
"""

from __future__ import annotations

import functools
import pickle
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from tcompile.backends.replay import Replay
from tcompile.capture.entries import MISS, PLAIN, local_names
from tcompile.config import config
from tcompile.errors import BackendError, RecompileError, RecompileLimitError, StanceError
from tcompile.observe import bus
from tcompile.observe.events import CallTimed, FellBack, GuardFailed
from tcompile.observe.userline import file_label
from tcompile.runtime import cache as caches
from tcompile.runtime.binding import binder
from tcompile.runtime.cache import Entry, FunctionCache, Settings, function_cache
from tcompile.stance import DEFAULT, Stance, current

if TYPE_CHECKING:
    from tcompile.capture.breaks import GraphBreak
    from tcompile.graph import Graph


class CompileFunction(Protocol):
    """What ``api`` hands the runtime: compiles one kind of call and returns its entry."""

    def __call__(
        self, function: types.FunctionType, values: Sequence[Any], cache: FunctionCache, settings: Settings,
        reasons: Sequence[str],
    ) -> Entry:
        """The entry for a call of ``function`` with these parameters; ``reasons`` say why no other entry fits."""
        ...


_MAX_GUARD_TEXT = 3


class CompiledFunction:
    """A function whose array work runs as compiled graphs. Called, bound and shown like the function itself."""

    def __init__(
        self, function: types.FunctionType, settings: Settings, compile: CompileFunction,
        private: FunctionCache | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.settings = settings
        self._compile = compile
        self._count = function.__code__.co_argcount
        self._simple = not function.__code__.co_kwonlyargcount and not function.__code__.co_flags & 0x0C
        self._bind = binder(function)
        self._private = private  # a cache of its own, which shares nothing with other callables
        self._refresh()

    # -- calling -------------------------------------------------------------------------------------------------------
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        function = self.function
        stance = current()
        if stance is not DEFAULT:
            return self._call_under(stance, args, kwargs)
        if self._generation != caches.generation:
            self._refresh()
        if self._simple and not kwargs and len(args) == self._count:
            values = args
        else:
            bound = self._bound(args, kwargs)
            if bound is None:
                return function(*args, **kwargs)  # raises Python's own error
            values = bound
        cache = self._cache
        started = perf_counter() if bus.active() else 0.0
        for entry in cache.entries:
            try:
                result = entry.run(function, *values)
            except Exception as error:
                self._note_replay(entry, error)
            else:
                if result is MISS:
                    continue
                entry.hits += 1
                if entry is not cache.entries[0]:
                    cache.promote(entry)
                if result is PLAIN:
                    return function(*args, **kwargs)
                if started:
                    self._tell_call(started)
                return result
            return function(*args, **kwargs)
        return self._miss(DEFAULT, cache, self.settings, values, args, kwargs)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        """The values of the parameters, or None where the call does not fit them."""
        try:
            return self._bind(*args, **kwargs)
        except TypeError:
            return None

    def _refresh(self) -> None:
        self._cache = self._private or function_cache(self.function, self.settings)
        self._generation = caches.generation

    def _call_under(self, stance: Stance, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call under a stance that is not the default one."""
        function = self.function
        if stance.name == "force_eager":
            return function(*args, **kwargs)
        values = self._bound(args, kwargs)
        if values is None:
            return function(*args, **kwargs)
        settings = self.settings
        if stance.force_backend is not None:
            settings = replace(settings, backend=stance.force_backend, options=())
        cache = function_cache(function, settings)
        hit, result = self._try_entries(cache, values, stance.skip_guard_eval_unsafe)
        if hit:
            return function(*args, **kwargs) if result is PLAIN else result
        return self._miss(stance, cache, settings, values, args, kwargs)

    def _try_entries(self, cache: FunctionCache, values: Sequence[Any], unsafe: bool) -> tuple[bool, Any]:
        function = self.function
        runs = _unchecked(cache) if unsafe else tuple(entry.run for entry in cache.entries)
        for entry, run in zip(cache.entries, runs, strict=False):
            try:
                result = run(function, *values)
            except Exception as error:
                self._note_replay(entry, error)
                return True, PLAIN
            if result is not MISS:
                entry.hits += 1
                return True, result
        return False, None

    # -- when no entry fits --------------------------------------------------------------------------------------------
    def _miss(
        self, stance: Stance, cache: FunctionCache, settings: Settings, values: Sequence[Any], args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        function = self.function
        with cache.lock:
            # Another thread may have compiled this kind of call while we waited.
            hit, result = self._try_entries(cache, values, False)
            entry = None if hit else self._entry_for(stance, cache, settings, values)
        if entry is not None:
            hit, result = True, PLAIN
            try:
                result = entry.run(function, *values)
            except Exception as error:
                self._note_replay(entry, error)
            else:
                if result is MISS:  # an argument changed under our hands
                    result = PLAIN
        elif not hit and stance.name == "aot_eager_then_compile" and cache.eager_calls == 1:
            first = replace(settings, backend="aot_eager", options=())
            return self._through(first, values, args, kwargs)
        return function(*args, **kwargs) if not hit or result is PLAIN else result

    def _through(
        self, settings: Settings, values: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        cache = function_cache(self.function, settings)
        hit, result = self._try_entries(cache, values, False)
        if hit:
            return self.function(*args, **kwargs) if result is PLAIN else result
        return self._miss(DEFAULT, cache, settings, values, args, kwargs)

    def _entry_for(
        self, stance: Stance, cache: FunctionCache, settings: Settings, values: Sequence[Any]
    ) -> Entry | None:
        """A new entry for this kind of call, or None where it is to run in plain Python."""
        function = self.function
        if stance.name == "eager_on_recompile":
            return None
        if stance.name in ("eager_then_compile", "aot_eager_then_compile") and not cache.compiles:
            cache.eager_calls += 1
            if cache.eager_calls == 1:
                cache.profile.observe(local_names(function.__code__), values)
                return None
        reasons = self.miss_reasons(cache, values)
        if stance.name == "fail_on_recompile":
            if cache.entries and all(entry.graph is None for entry in cache.entries):
                return None
            raise RecompileError(_recompile_text(function, reasons))
        if len(cache.entries) >= config.recompile_limit:
            self._at_limit(cache, settings, reasons)
            return None
        if bus.active():
            for entry in cache.entries:
                self._tell_failure(entry, values)
        try:
            entry = self._compile(function, values, cache, settings, reasons)
        except (BackendError, StanceError) as error:
            if not config.suppress_errors:
                raise
            warnings.warn(f"tcompile: {error}\n{function.__qualname__} runs in plain Python.", stacklevel=4)
            bus.emit(FellBack(function=function.__qualname__, reason="error suppressed", detail=str(error)))
            return None
        cache.add(entry)
        return entry

    def miss_reasons(self, cache: FunctionCache, values: Sequence[Any]) -> tuple[str, ...]:
        """For each entry, the first guard that does not hold for a call with these parameters."""
        texts = []
        for entry in cache.entries:
            failure = entry.captured.first_failure(self.function, values)
            if failure is not None:
                texts.append(f"entry {entry.index}: {failure}")
        return tuple(texts)

    def _tell_call(self, started: float) -> None:
        milliseconds = (perf_counter() - started) * 1e3
        bus.emit(CallTimed(function=self.function.__qualname__, cell=bus.current_cell.get(), ms=milliseconds))

    def _tell_failure(self, entry: Entry, values: Sequence[Any]) -> None:
        failure = entry.captured.first_failure(self.function, values)
        if failure is None:
            return
        guard = failure.guard
        bus.emit(
            GuardFailed(
                function=self.function.__qualname__, entry=entry.index, cell=bus.current_cell.get(),
                source=guard.source.text if guard else "", guard=guard.text if guard else "",
                expected=guard.expected if guard else "", seen=failure.seen, hint=guard.advice if guard else "",
            )
        )

    def _at_limit(self, cache: FunctionCache, settings: Settings, reasons: Sequence[str]) -> None:
        name = self.function.__qualname__
        if all(entry.graph is None for entry in cache.entries):
            return
        last = reasons[0] if reasons else "no entry fits"
        limit = config.recompile_limit
        if settings.fullgraph:
            raise RecompileLimitError(
                f"{name} reached config.recompile_limit ({limit}) with fullgraph=True. Last reason: {last}"
            )
        if not cache.limit_warned:
            cache.limit_warned = True
            text = (
                f"tcompile: {name} was compiled {limit} times (config.recompile_limit). Calls that fit those entries "
                f"stay compiled, all others run in plain Python. Last reason: {last}. "
                "tcompile.set_logs(recompiles=True) shows every reason."
            )
            warnings.warn(text, stacklevel=6)
            bus.emit(FellBack(function=name, reason="recompile limit", detail=last, cell=bus.current_cell.get()))

    def _note_replay(self, entry: Entry, error: Exception) -> None:
        entry.replays += 1
        entry.hits += 1
        if entry.replays > 1:
            return
        name = self.function.__qualname__
        reason = "replayed in plain Python"
        detail = str(error) if isinstance(error, Replay) else f"{type(error).__name__}: {error}"
        bus.emit(FellBack(function=name, reason=reason, detail=detail, cell=bus.current_cell.get()))

    # -- being a function ----------------------------------------------------------------------------------------------
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        name = self.function.__qualname__
        module = sys.modules.get(self.function.__module__)
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return name
        if found is not self.function:
            raise pickle.PicklingError(f"cannot pickle compiled {name!r}: it is not found as {name} in its module")
        return _rebuild, (self.function, self.settings)

    def __repr__(self) -> str:
        function = self.function
        return f"<compiled {function.__qualname__}: {len(self.entries)} entries, backend {self.settings.backend_name}>"

    @staticmethod
    def __tcompile_inline__(compiled: CompiledFunction) -> types.FunctionType:
        """Capture follows the function itself where one compiled function calls another."""
        return compiled.function

    # -- its state -----------------------------------------------------------------------------------------------------
    @property
    def cache(self) -> FunctionCache:
        """What has been compiled for this function under its own settings."""
        if self._generation != caches.generation:
            self._refresh()
        return self._cache

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The compiled entries, most recent first."""
        return self.cache.entries

    @property
    def graphs(self) -> list[Graph]:
        """The captured graphs, oldest first."""
        ordered = sorted(self.cache.entries, key=lambda e: e.index)
        return [entry.graph for entry in ordered if entry.graph is not None]

    @property
    def breaks(self) -> list[GraphBreak]:
        """The graph breaks met so far."""
        return list(self.cache.breaks)

    @property
    def recompiles(self) -> list[tuple[str, ...]]:
        """For each recompile, why no entry fitted."""
        return list(self.cache.recompiles)


_rebuild_hook: list[Callable[[types.FunctionType, Settings], CompiledFunction]] = []


def _rebuild(function: types.FunctionType, settings: Settings) -> CompiledFunction:
    """Makes a pickled callable again; ``api`` says how, since it has the compiler."""
    return _rebuild_hook[0](function, settings)


def on_rebuild(make: Callable[[types.FunctionType, Settings], CompiledFunction]) -> None:
    """Sets how unpickled callables are made."""
    _rebuild_hook[:] = [make]


def _unchecked(cache: FunctionCache) -> tuple[Callable[..., Any], ...]:
    """For each entry, its program with only those guards that tell it from the other entries."""
    entries = cache.entries
    if cache.unchecked[0] != entries:
        texts = [set(entry.guards) for entry in entries]
        common = set.intersection(*texts) if texts else set()
        runs = tuple(
            entry.captured.entry(entry.compiled_graph, lambda guard: len(entries) > 1 and guard.text not in common)
            for entry in entries
        )
        cache.unchecked = (entries, runs)
    return cache.unchecked[1]


def _recompile_text(function: types.FunctionType, reasons: Sequence[str]) -> str:
    code = function.__code__
    lines = [
        "a compile was needed while the stance is 'fail_on_recompile'",
        f"  function: {function.__qualname__} ({file_label(code.co_filename)}, line {code.co_firstlineno})",
    ]
    if not reasons:
        lines.append("  reason: it has not been compiled yet")
    lines += [f"  failed guard of {reason}" for reason in reasons[:_MAX_GUARD_TEXT]]
    if len(reasons) > _MAX_GUARD_TEXT:
        lines.append(f"  … and {len(reasons) - _MAX_GUARD_TEXT} more entries")
    return "\n".join(lines)


__all__ = ["CompileFunction", "CompiledFunction", "on_rebuild"]
