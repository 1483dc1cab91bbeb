"""The last compile-time events, kept always.

Input: every event but the timings of calls. Output: ``history``, a ``Recorder`` of the last 512. Exists so
that a report asked for afterwards (why was this slow? what was recompiled?) has something to look back on,
without anybody having listened. It costs nothing on the call path, where no event is emitted for it, and it keeps no
graph alive: what is gone from the caches can be read about here, not looked at.
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
