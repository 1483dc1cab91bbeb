"""The warning that the interpreter is not supported.

Input: a call of a function that was to be compiled.
Output: one warning in the life of the process, and an event for each call while there are listeners.
Why: an unsupported interpreter runs programs unchanged, and users must learn once why nothing is faster.
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
    """Warns at the first call, and emits an event for every call. ``about``: the function's event fields."""
    global warned
    with _lock:  # threads may race here
        is_first, warned = not warned, True
    if is_first:
        warn(f"{interpreter.refusal}: everything runs in plain Python.")
    if bus.listened[0]:
        bus.emit(FellBack(**about, reason="interpreter refused", detail=interpreter.refusal or ""))


__all__ = ["note_call", "warned"]
