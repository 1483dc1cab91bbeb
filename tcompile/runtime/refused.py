"""The notice that an interpreter is refused.

Input: a function that is called, and was to be compiled. Output: one warning in the life of the process, and an event
for each call while somebody listens. Why: an interpreter that tcompile does not know runs programs as they are, and
their authors have to be told once why nothing is faster.
"""

from __future__ import annotations

import threading
from typing import Any

from tcompile import interpreter
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.observe.warn import warn

_lock = threading.Lock()
warned = False  # in this process


def note_call(about: dict[str, Any]) -> None:
    """Warns at the first call, and tells listeners of every call. ``about``: the function, as events name it."""
    global warned
    with _lock:  # threads may run at the same time here
        is_first, warned = not warned, True
    if is_first:
        warn(f"{interpreter.refusal}: everything runs in plain Python.")
    if bus.listened[0]:
        bus.emit(FellBack(**about, reason="interpreter refused", detail=interpreter.refusal or ""))


__all__ = ["note_call", "warned"]
