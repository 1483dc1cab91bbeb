"""Trying out what a function does: what warns raises, or is not heard of, in this thread alone.

Enters: nothing. Leaves: the contexts ``strict`` and ``silent``. Exists because ``warnings.catch_warnings`` changes the
filters for all threads, so that another one's warnings would become errors meanwhile; and because leaving it makes
Python forget which warnings it has shown, so that these would be shown again.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

Action = Literal["error", "ignore"]


class _Here(threading.local):
    """The contexts that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.actions: list[Action] = []


class _Matcher:
    """Stands in a filter for a regular expression on module names: it fits where its thread is in such a context."""

    def __init__(self, action: Action) -> None:
        self.action = action

    def match(self, module: str) -> bool:
        """Whether the filter holds for a warning."""
        actions = _here.actions
        return bool(actions) and actions[-1] == self.action


_here = _Here()
_FILTERS: Any = [(action, None, Warning, _Matcher(action), 0) for action in ("error", "ignore")]
_lock = threading.RLock()  # a signal's handler may come in between
_inside: set[object] = set()
# Lists of filters that ours have replaced, what is to stand in ours, and ours: other threads may be looking through
# any of them, and must find each filter, so that lists are replaced and not changed.
_replaced: list[tuple[list[Any], list[Any], list[Any]]] = []


def strict(floats: Literal["raise", "ignore"] = "raise") -> contextlib.AbstractContextManager[None]:
    """Within, all warnings of this thread are raised; what becomes of floating-point errors is said by ``floats``.

    Python does not forget which warnings it has shown.

    >>> with strict():
    ...     np.array([1j]).astype(float)
    Traceback (most recent call last):
        ...
    numpy.exceptions.ComplexWarning: Casting complex values to real discards the imaginary part
    """
    return _context("error", floats)


def silent() -> contextlib.AbstractContextManager[None]:
    """Within, no warning of this thread is heard of, nor floating-point errors.

    >>> with silent():
    ...     np.array([1j]).astype(float) / 0.0
    array([nan])
    """
    return _context("ignore", "ignore")


@contextlib.contextmanager
def _context(action: Action, floats: Literal["raise", "ignore"]) -> Iterator[None]:
    token = object()
    _here.actions.append(action)
    try:
        _put_in(token)
        with np.errstate(all=floats):
            yield
    finally:
        _here.actions.pop()
        _take_out(token)


def _put_in(token: object) -> None:
    with _lock:
        _inside.add(token)
        filters: list[Any] = warnings.filters  # type: ignore[assignment]
        if _others(filters[: len(_FILTERS)]) or len(filters) < len(_FILTERS):
            ours = _FILTERS + _others(filters)
            _replaced.append((filters, list(ours), ours))
            warnings.filters = ours


def _take_out(token: object) -> None:
    with _lock:
        _inside.discard(token)
        while _replaced and not _inside:
            before, wanted, ours = _replaced.pop()
            if warnings.filters is ours:  # else somebody has put others in their place
                if ours != wanted:  # somebody has added one
                    before[:] = _others(ours)
                warnings.filters = before


def _others(filters: list[Any]) -> list[Any]:
    return [entry for entry in filters if all(entry is not own for own in _FILTERS)]


__all__ = ["silent", "strict"]
