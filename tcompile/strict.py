"""Trying out what a function does: what warns raises, or is not heard of, in this thread alone.

Input: nothing. Output: the contexts ``strict`` and ``silent``, and ``state``, which puts right what an interrupt in
them has left. Why: ``warnings.catch_warnings`` changes the filters for all threads, so that another one's
warnings would become errors meanwhile; and because leaving it makes Python forget which warnings it has shown, so that
these would be shown again.
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
    """A context that a thread is in."""

    def __init__(self, action: Action) -> None:
        self.action = action


class _Here(threading.local):
    """The contexts that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.entered: list[_Entered] = []


class _Matcher:
    """Stands in a filter for a regular expression on module names: it fits where its thread is in such a context."""

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
    """What puts this thread's contexts, and NumPy's error state, back to what they are now.

    An interrupt can come when ``np.errstate`` has been entered, and nothing would leave it.

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
            if warnings.filters is ours:  # else somebody has put others in their place
                if ours != wanted:  # somebody has added one
                    before[:] = _others(ours)
                warnings.filters = before


def _others(filters: list[Any]) -> list[Any]:
    return [entry for entry in filters if all(entry is not own for own in _FILTERS)]


__all__ = ["silent", "state", "strict"]
