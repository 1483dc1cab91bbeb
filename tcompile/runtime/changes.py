"""Changes that others make while a captured loop runs.

Input: the polls of running loops. Output: whether anything that the running entry has read has changed since. Why: a
signal handler or another thread that sets ``stop = True`` ends a loop of plain Python at its next test, and the
captured loop has read ``stop`` once, before its first iteration.
"""

from __future__ import annotations

import sys
import types

from tcompile.backends import polls
from tcompile.capture.program import ENTRY_FILE, Captured


def _has_changed() -> bool:
    """Looks again at what the innermost entry has read that runs in this thread."""
    frame = _entry_frame()
    if frame is None:
        return False
    captured: Captured = frame.f_globals["captured"]
    known = frame.f_locals
    names = [f"p{number}" for number in range(captured.arity)]
    if not all(name in known for name in names):
        return False
    parameters = [known[name] for name in names]
    return captured.reread.has_changed(parameters, known)


def _entry_frame() -> types.FrameType | None:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and not (frame.f_code.co_filename == ENTRY_FILE and "captured" in frame.f_globals):
        frame = frame.f_back
    return frame


polls.register(_has_changed)
