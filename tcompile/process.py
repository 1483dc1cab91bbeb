"""Process lifetime: locks that are safe in signal handlers and forks, and callbacks at exit.

Input: callbacks for the end of the interpreter.
Output: locks, and whether exit has begun.
Why: a signal handler runs while its own thread may hold a lock, and a forked child inherits locks of threads that it
lacks. ``atexit`` ignores handlers that are registered while handlers run.
"""

from __future__ import annotations

import atexit
import importlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_last: list[Callable[[], object]] = []
_ended = False


def lock() -> threading.RLock:
    """Returns a reentrant lock, free in a forked child unless the forking thread holds it."""
    made = threading.RLock()
    _locks.add(made)
    return made


loading = lock()
"""Held while the compiler is imported, so that threads do not enter its circular imports at several places."""


def at_end(run: Callable[[], object]) -> None:
    """Calls ``run`` at exit; at once if exit has begun."""
    if _ended:
        run()
    else:
        _last.append(run)


def has_ended() -> bool:
    """Whether ``atexit`` has called tcompile's handler. Handlers registered before tcompile's run later."""
    return _ended


@atexit.register
def _end() -> None:
    global _ended
    _ended = True
    while _last:
        _last.pop()()


_PATIENCE = 10.0  # seconds


def _wait_for_imports() -> None:
    """Waits until no other thread imports tcompile or llvmlite: a forked child would wait for it forever."""
    end, own = time.monotonic() + _PATIENCE, threading.get_ident()
    while any(owner not in (None, own) for owner in _importing()) and time.monotonic() < end:
        time.sleep(0.001)


def _importing() -> Iterator[int | None]:
    """Returns the threads that import such modules: the owners of the modules' locks."""
    for name, held in list(getattr(importlib._bootstrap, "_module_locks", {}).items()):
        if name.partition(".")[0] in ("tcompile", "llvmlite"):
            yield getattr(held(), "owner", None)


def _free_locks() -> None:
    for held in list(_locks):
        if not held._is_owned():
            held._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_child=_free_locks)

__all__ = ["at_end", "has_ended", "loading", "lock"]
