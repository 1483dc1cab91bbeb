"""Changes that others make while a captured loop runs.

Input: the polls of running loops. Output: whether anything that the running entry has read has changed since, and then
a frame that goes on in plain Python with the loop's next iteration. Why: a signal handler or another thread that sets
``stop = True`` ends a loop of plain Python at its next test, and the captured loop has read ``stop`` once, before its
first iteration.

The first poll of a run writes the program that leads to the next iteration (``capture.continuation``): everything is
still as the run has read it. It is kept with the entry, and what it loads with the run's frame. When a later poll sees
a change, the loop ends with an iteration of its own; the program then takes the node's results as they are. Where there
is no such program, the stretch is done again from its start, as if the change had come before the loop.
"""

from __future__ import annotations

import contextvars
import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tcompile import polls, reentry
from tcompile.backends.running import running
from tcompile.capture.guards.entry_protocol import ENTRY_FILE, MISS
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.polls import Changed
from tcompile.records import dataclass
from tcompile.runtime.cache import FunctionCache
from tcompile.runtime.rewritten import open_resume_points

if TYPE_CHECKING:
    from tcompile.capture.entry.codegen import Captured
    from tcompile.runtime.continuations import Continuation

_KEPT = "continuation"  # the variable of an entry program's frame that holds the run's continuations


@dataclass(frozen=True)
class Resumed:
    """A run that was paused.

    Attributes:
        answer: what leads the function's host to the loop's next iteration, given what the frame holds where the
            stretch starts: its cells may be others than those that the run was given.
    """

    answer: Callable[[Sequence[Any]], tuple[Any, ...]]
    is_scalar: bool  # the loop's iterations are scalar code, which plain Python does sooner than stretches one by one


def _has_changed() -> bool:
    """Looks again at what the innermost entry has read that runs in this thread."""
    frame: types.FrameType | None = sys._getframe(1)
    below = []
    while frame is not None and not _is_entry(frame):
        below.append(frame)
        frame = frame.f_back
    if frame is None:
        return False
    captured: Captured = frame.f_globals["captured"]
    known = frame.f_locals
    names = [captured.name_of(f"p{number}", known) for number in range(captured.arity)]
    if None in names:
        return False
    parameters = [known[name] for name in names if name is not None]
    here = running(below)
    kept: dict[str, Continuation | None] = known.setdefault(_KEPT, {})
    if captured.reread.has_changed(parameters, known):
        found = None if here is None else kept.get(here.loop)
        if here is not None and found is not None:
            found.earlier.update(here.earlier())
        return True
    if here is not None and here.loop not in kept and not reentry.is_inside():
        kept.update(_prepared(captured, here.loop, parameters))
        if captured.reread.has_changed(parameters, known):  # meanwhile: what was prepared may be of the new state
            kept[here.loop] = None
            captured.continuations.pop(here.loop, None)
            return True
    return False


def _is_entry(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename == ENTRY_FILE and "captured" in frame.f_globals


polls.register(_has_changed)


def _prepared(captured: Captured, loop: str, parameters: Sequence[Any]) -> dict[str, Continuation | None]:
    """The continuations of a run: that of the loop which it is in, and those of others that are known already.

    It is captured by a thread of its own: what a signal handler raises meanwhile is not lost there. The thread may wait
    for the lock of a function's cache, which this one does not hold unless it is inside a compile.
    """
    from tcompile.backends.llvm.native.target import uninterrupted  # loops that run for long are few
    from tcompile.runtime.continuations import prepare

    if loop in captured.continuations:
        return {name: prepare(captured, name, parameters) for name in [*captured.continuations]}
    context = contextvars.copy_context()  # with NumPy's error state, which guards may ask for
    given = [parameters]  # taken out, as the thread may end a little later
    return {loop: uninterrupted(lambda: context.run(prepare, captured, loop, given.pop()))}


def go_on(error: Changed, cache: FunctionCache) -> Any:
    """What a run that was paused comes to: Resumed, or MISS where the stretch is to be done again."""
    answer = None
    found = _continuation_of(error) if error.loop else None
    if found is not None:
        from tcompile.runtime import continuations

        try:
            answer = continuations.answer(error, found, cache)
        except continuations.Unlike:
            answer = None
    is_scalar = bool(len(error.variables))
    if found is not None and answer is not None and not is_scalar:
        open_resume_points(cache, found.captured, cache.first)
    how = "does the stretch again" if answer is None else "goes on in plain Python with the next iteration"
    bus.emit(FellBack(**cache.about, reason="what a loop reads has changed", detail=f"the call {how}"))
    return MISS if answer is None else Resumed(answer, is_scalar)


def _continuation_of(error: Changed) -> Continuation | None:
    """What the paused run has prepared, from the frame of its entry program."""
    traceback = error.__traceback__
    while traceback is not None:
        if _is_entry(traceback.tb_frame):
            kept: dict[str, Continuation | None] = traceback.tb_frame.f_locals.get(_KEPT, {})
            return kept.get(error.loop)
        traceback = traceback.tb_next
    return None


__all__ = ["Resumed", "go_on"]
