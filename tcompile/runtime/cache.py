"""The code cache: what has been compiled, by code object.

Enters: code objects and settings. Leaves: a ``FunctionCache`` for each pair, which copies of a function share. Exists
apart from the callables so that ``reset`` can forget everything, and so that two ``compile`` calls on one function with
the same settings find each other's entries.
"""

from __future__ import annotations

import itertools
import threading
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcompile.capture.dynamic import Profile

if TYPE_CHECKING:
    from tcompile.capture.breaks import GraphBreak
    from tcompile.capture.program import Captured
    from tcompile.graph import Graph


@dataclass(frozen=True, slots=True)
class Settings:
    """The arguments of ``tcompile.compile`` that decide what is compiled."""

    fullgraph: bool = False
    dynamic: bool | None = None
    backend: str | Callable[..., Any] = "auto"
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def backend_name(self) -> str:
        """The backend's name, or the callable's."""
        return self.backend if isinstance(self.backend, str) else getattr(self.backend, "__name__", "custom")


@dataclass(eq=False, slots=True)
class Entry:
    """One compiled kind of call.

    ``run(F, *locals)`` returns the function's result, or a marker: guards failed, or run it in plain Python.
    """

    index: int
    captured: Captured
    run: Callable[..., Any]
    compiled_graph: Callable[..., Any] | None = None
    graph: Graph | None = None
    broke: GraphBreak | None = None
    kernels: tuple[Any, ...] = ()
    compile_ms: float = 0.0
    hits: int = 0
    replays: int = 0

    @property
    def guards(self) -> list[str]:
        """The guards as a person reads them."""
        return [guard.text for guard in self.captured.guards]

    def __repr__(self) -> str:
        what = "plain" if self.graph is None else f"{self.graph.op_count} ops, {len(self.kernels)} kernels"
        return f"<entry {self.index}: {what}, {len(self.captured.guards)} guards, {self.hits} hits>"


@dataclass(eq=False)
class FunctionCache:
    """Everything compiled for one code object under one set of settings. Entries stand most recent first."""

    name: str
    number: int
    entries: tuple[Entry, ...] = ()
    profile: Profile = field(default_factory=Profile)
    breaks: list[GraphBreak] = field(default_factory=list)
    recompiles: list[tuple[str, ...]] = field(default_factory=list)
    eager_calls: int = 0
    limit_warned: bool = False
    compiles: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)
    unchecked: tuple[tuple[Entry, ...], tuple[Callable[..., Any], ...]] = ((), ())

    def add(self, entry: Entry) -> None:
        """Puts a new entry first."""
        self.entries = (entry, *self.entries)

    def promote(self, entry: Entry) -> None:
        """Moves an entry that was hit to the front (a lost race with another thread is harmless)."""
        with self.lock:
            if entry in self.entries:
                self.entries = (entry, *(other for other in self.entries if other is not entry))


numbers = itertools.count()  # each cache's part of compile ids
_caches: dict[int, tuple[weakref.ref[types.CodeType], dict[Settings, FunctionCache]]] = {}
_lock = threading.Lock()
generation = 0  # grows with every reset, so that callables look their cache up again


def function_cache(function: types.FunctionType, settings: Settings) -> FunctionCache:
    """The cache of ``function``'s code object under ``settings``; made on first use."""
    code = function.__code__
    with _lock:
        found = _caches.get(id(code))
        if found is None or found[0]() is not code:
            key = id(code)
            found = _caches[key] = (weakref.ref(code, lambda _: _caches.pop(key, None)), {})
        per_settings = found[1]
        if settings not in per_settings:
            per_settings[settings] = FunctionCache(function.__qualname__, next(numbers))
        return per_settings[settings]


def reset() -> None:
    """Forgets everything compiled, every profile of sizes, and every count."""
    global generation
    with _lock:
        _caches.clear()
        generation += 1
