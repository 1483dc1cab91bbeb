"""Detects changes by others to objects that a running captured loop has read.

Input: the polls of running loops.
Output: whether anything that the running entry has read has changed; then a frame that continues in plain Python with
the loop's next iteration.
Why: a signal handler or another thread that sets ``stop = True`` ends a plain loop at its next test. The captured loop
has read ``stop`` once, before its first iteration.

The first poll of a run captures the program that leads to the next iteration (``capture.continuation``), while nothing
has changed. The program is kept with the entry, its loaded values with the run's frame. When a later poll sees a
change, the loop ends after a whole iteration, and the program takes the node's results as they are. Without such a
program, the stretch runs again from its start, as if the change had come before the loop.
"""

from __future__ import annotations

import contextvars
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

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

T = TypeVar("T")
_Kept: TypeAlias = "dict[tuple[str, int], Continuation | None]"  # by loop and version of its iteration
_KEPT = "continuation"  # the local variable of an entry program's frame that holds the run's continuations


@dataclass(frozen=True)
class Resumed:
    """The outcome of a paused run.

    Attributes:
        answer: maps the frame's values at the start of the stretch to where the rewritten code resumes. The
            frame's cells may differ from those of the run.
    """

    answer: Callable[[Sequence[Any]], tuple[Any, ...]]
    is_scalar: bool  # plain Python runs scalar code faster than one captured stretch at a time


def _has_changed() -> bool:
    """Re-checks what the innermost entry of this thread has read."""
    frame: types.FrameType | None = sys._getframe(1)
    below = []
    while frame is not None and not _is_entry(frame):
        below.append(frame)
        frame = frame.f_back
    if frame is None:
        return False
    known = frame.f_locals
    captured, parameters = _parameters(frame)
    if parameters is None:
        return False
    here = running(below)
    kept: _Kept = known.setdefault(_KEPT, {})
    if captured.reread.has_changed(parameters, known):
        for found in () if here is None else _of_loop(kept, here.loop).values():
            if here is not None and found is not None:
                found.earlier.update(here.earlier())
        return True
    if here is not None and not _of_loop(kept, here.loop) and not reentry.is_inside():
        found_now, changed = _prepared(captured, here.loop, parameters, known)
        kept.update(found_now)
        if changed:  # meanwhile: the continuation may have loaded the new state
            for place in _of_loop(kept, here.loop):
                kept[place] = None
                captured.continuations.pop(place, None)
            return True
    return False


def _parameters(frame: types.FrameType) -> tuple[Captured, Sequence[Any] | None]:
    """Returns the entry whose program this frame runs, and its parameters, if all are known."""
    captured: Captured = frame.f_globals["captured"]
    known = frame.f_locals
    names = [captured.name_of(f"p{number}", known) for number in range(captured.arity)]
    return captured, None if None in names else [known[name] for name in names if name is not None]


def _of_loop(places: dict[tuple[str, int], T], loop: str) -> dict[tuple[str, int], T]:
    return {place: value for place, value in places.items() if place[0] == loop}


def _is_entry(frame: types.FrameType) -> bool:
    return frame.f_code.co_filename == ENTRY_FILE and "captured" in frame.f_globals


polls.register(_has_changed)


def _prepared(captured: Captured, loop: str, parameters: Sequence[Any], known: Mapping[str, Any]) -> tuple[_Kept, bool]:
    """Returns the continuations of a run: for its current loop, and for others if known; and whether what the run has
    read, ``known``, has changed by then.

    Another thread captures it, so that no signal handler runs meanwhile: what the loop has read must not change before
    the capture has read it. That thread may wait for the lock of a function's cache; this one holds it only inside a
    compile.
    """
    from tcompile.backends.llvm.native.interrupts import undisturbed  # imported late: loops that run for long are rare
    from tcompile.runtime.continuations import prepare

    loops = {name for name, version in [*captured.continuations] if version >= 0}  # not those before exceptions
    if loop not in loops:
        loops = {loop}
    context = contextvars.copy_context()  # includes NumPy's error state, which guards may read
    given = [(parameters, known)]  # popped, because the thread may outlive this call

    def run() -> tuple[_Kept, bool]:
        parameters, known = given.pop()
        found = {place: found for name in loops for place, found in prepare(captured, name, parameters).items()}
        return found, captured.reread.has_changed(parameters, known)

    return undisturbed(lambda: context.run(run))


def resume_run(error: Changed, cache: FunctionCache) -> Any:
    """Returns the outcome of a paused run: Resumed, or MISS if the stretch must run again."""
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
    reason = "in a loop an exception is raised, or a list is full" if error.raises else error.reason
    where = "in the middle of an iteration" if error.raises else "with the next iteration"
    how = "runs this stretch again" if answer is None else f"continues in plain Python {where}"
    bus.emit(FellBack(**cache.about, reason=reason, detail=f"the call {how}"))
    return MISS if answer is None else Resumed(answer, is_scalar)


def _continuation_of(error: Changed) -> Continuation | None:
    """Returns the paused run's continuation, from the frame of its entry program.

    After a change that was made meanwhile, a loop that comes to an exception has none.
    """
    traceback = error.__traceback__
    while traceback is not None and not _is_entry(traceback.tb_frame):
        traceback = traceback.tb_next
    if traceback is None:
        return None
    frame = traceback.tb_frame
    kept: _Kept = frame.f_locals.get(_KEPT, {})
    if not error.raises or error.place in kept:
        return kept.get(error.place)
    from tcompile.runtime.continuations import prepared

    captured, parameters = _parameters(frame)
    if parameters is None or captured.reread.has_changed(parameters, frame.f_locals):
        return None
    found = prepared(captured, error.place, parameters)
    below = []
    while traceback is not None:
        below.append(traceback.tb_frame)
        traceback = traceback.tb_next
    here = running(reversed(below[1:]))
    if found is not None and here is not None:
        found.earlier.update(here.earlier())
    return found


__all__ = ["Resumed", "resume_run"]
