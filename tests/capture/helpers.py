"""Helpers for the tests of capture.

Input: functions and arguments.
Output: checks that a function is captured whole, or that it breaks and stays right.
Why: nearly every test of capture makes one of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from differential import BACKENDS, check

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import GraphBroke

X = np.linspace(-2.0, 3.0, 12).reshape(3, 4)


def x() -> tuple[np.ndarray]:
    """Arguments: one array."""
    return (X.copy(),)


def xy() -> tuple[np.ndarray, np.ndarray]:
    """Arguments: two arrays."""
    return X.copy(), X.copy() * 0.5 + 1


def whole(
    f: Callable[..., Any], make_args: Callable[[], Sequence[Any]] = x, ops: int | None = None, **more: Any
) -> Any:
    """Checks ``f`` against plain Python and that one graph holds all of it; returns the compiled callable."""
    found = None
    for backend in more.pop("backends", BACKENDS):
        (compiled,) = check(f, make_args, fullgraph=True, backends=(backend,), **more)
        entries = compiled.entries
        assert not compiled.breaks, compiled.breaks[0].full_text()
        assert len(entries) == 1, f"{len(entries)} entries: {compiled.recompiles}"
        assert entries[0].hits > 0 and not entries[0].replays
        if ops is not None:
            assert compiled.graphs[0].op_count == ops, compiled.graphs[0].readable()
        found = compiled
    return found


def guards(compiled: Any) -> list[str]:
    """The guards of the newest entry, as a person reads them."""
    return compiled.entries[0].guards


def broken(f: Callable[..., Any], make_args: Callable[[], Sequence[Any]], reason: str, line: str) -> GraphBroke:
    """Checks that ``f`` gives what plain Python gives, and that the break names ``reason`` and a line with ``line``."""
    check(f, make_args, backends=("eager",))
    seen: list[GraphBroke] = []
    tcompile.reset()
    with bus.listening(lambda event: seen.append(event) if isinstance(event, GraphBroke) else None):
        try:
            tcompile.compile(f, backend="eager")(*make_args())
        except Exception:
            pass
    found = [event for event in seen if event.reason == reason and line in event.where.text]
    assert found, [(e.reason, e.where.text, e.explanation) for e in seen]
    return found[0]
