"""The history: the last compile-time events, always kept.

Input: every event except timings of calls.
Output: ``history``, a ``Recorder`` of the last 512.
Why: a later report (why was this slow? what was recompiled?) needs past events, even without listeners at the time.

It costs nothing per call, as no event is emitted for it then, and it keeps no graph alive: events of discarded graphs
remain as text.
"""

from __future__ import annotations

from tcompile.observe import bus
from tcompile.observe.events import CallTimed, Event, LoopTimed
from tcompile.observe.recorder import Recorder

LIMIT = 512

history = Recorder(LIMIT)


def _keep(event: Event) -> None:
    if not isinstance(event, CallTimed | LoopTimed):
        history(event.light())


bus.subscribe(_keep, background=True)

__all__ = ["LIMIT", "history"]
