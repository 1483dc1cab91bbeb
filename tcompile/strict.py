"""Contexts that raise or silence warnings, in the current thread only.

Input: nothing.
Output: the contexts ``strict`` and ``silent``, and ``state``, which restores the state after an interrupt in them.
Why: ``warnings.catch_warnings`` changes the filters of all threads, and leaving it clears the record of warnings
already shown.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from tcompile import process

Action = Literal["error", "ignore"]


class _Entered:
    """A context that a thread has entered."""

    def __init__(self, action: Action) -> None:
        self.action = action


class _Here(threading.local):
    """The contexts of this thread, innermost last."""

    def __init__(self) -> None:
        self.entered: list[_Entered] = []


class _Matcher:
    """Replaces a filter's regular expression on module names: matches if its thread is in such a context."""

    def __init__(self, action: Action) -> None:
        self.action = action

    def match(self, module: str) -> bool:
        """Whether the filter holds for a warning."""
        entered = _here.entered
        return bool(entered) and entered[-1].action == self.action


_here = _Here()
_FILTERS: Any = [(action, None, Warning, _Matcher(action), 0) for action in ("error", "ignore")]
_lock = process.lock()
_inside: set[_Entered] = set()
# Each entry: a list of filters that was replaced, the filters to insert, and the replacement. Other threads may be
# iterating over any of them and must find each filter, so lists are replaced, not changed.
_replaced: list[tuple[list[Any], list[Any], list[Any]]] = []


def strict(floats: Literal["raise", "ignore"] = "raise") -> contextlib.AbstractContextManager[None]:
    """Raises all warnings of this thread; ``floats`` sets the handling of floating-point errors.

    Python's record of warnings already shown is kept.

    >>> with strict():
    ...     np.array([1j]).astype(float)
    Traceback (most recent call last):
        ...
    numpy.exceptions.ComplexWarning: Casting complex values to real discards the imaginary part
    """
    return _context("error", floats)


def silent() -> contextlib.AbstractContextManager[None]:
    """Silences all warnings and floating-point errors of this thread.

    >>> with silent():
    ...     np.array([1j]).astype(float) / 0.0
    array([nan])
    """
    return _context("ignore", "ignore")


@contextlib.contextmanager
def _context(action: Action, floats: Literal["raise", "ignore"]) -> Iterator[None]:
    entered = _Entered(action)
    _here.entered.append(entered)
    try:
        _put_in(entered)
        with np.errstate(all=floats):
            yield
    finally:
        _here.entered.pop()
        _take_out(entered)


def state() -> Callable[[], None]:
    """Returns a function that restores this thread's contexts and NumPy's error state to those of now.

    An interrupt can arrive after ``np.errstate`` was entered and before the ``with`` block would leave it.

    >>> put_back = state()
    >>> old = np.seterr(all="ignore")
    >>> put_back()
    >>> np.geterr() == old
    True
    """
    return partial(_put_back, len(_here.entered), np.geterr())


def _put_back(depth: int, floats: Mapping[str, Any]) -> None:
    while len(_here.entered) > depth:
        _take_out(_here.entered.pop())
    if np.geterr() != floats:
        np.seterr(**floats)


def _put_in(entered: _Entered) -> None:
    with _lock:
        _inside.add(entered)
        filters: list[Any] = warnings.filters  # type: ignore[assignment]
        if _others(filters[: len(_FILTERS)]) or len(filters) < len(_FILTERS):
            ours = _FILTERS + _others(filters)
            _replaced.append((filters, list(ours), ours))
            warnings.filters = ours


def _take_out(entered: _Entered) -> None:
    with _lock:
        _inside.discard(entered)
        while _replaced and not _inside:
            before, wanted, ours = _replaced.pop()
            if warnings.filters is ours:  # else other code has replaced the filters
                if ours != wanted:  # other code has added a filter
                    before[:] = _others(ours)
                warnings.filters = before


def _others(filters: list[Any]) -> list[Any]:
    return [entry for entry in filters if all(entry is not own for own in _FILTERS)]


__all__ = ["silent", "state", "strict"]
