"""The driver of capture: a stretch of a function, from one place in it, becomes an outcome.

Input: a function's code and globals, the place where the stretch starts, the values of its frame there, and records of
earlier compiles.
Output: an ``Outcome``: the program of this stretch for values of this kind. Where capture stopped before the function
returned, it has the ``GraphBreak`` with the reason.
Why: capture in one attempt is not enough: it restarts with loop plans, and ends before instructions that it cannot
capture.

A stretch ends before the instruction that cannot be captured. That instruction may have changed captured values
half-way, so the stretch up to it is captured again. It is also captured again, up to an earlier place, where the frame
cannot be resumed at the break. For instance, an iterator that has given items cannot be made again. The stretch then
ends before the loop, which runs in the frame itself with its body compiled.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from tcompile.bytecode.rewritten import Rewritten
from tcompile.callers import raise_if_callers
from tcompile.capture.context.loop_plan import LoopPlan, LoopPlans, Restart
from tcompile.capture.context.options import CaptureOptions
from tcompile.capture.entry.codegen import Captured, finish, finish_at, plain
from tcompile.capture.entry.root_frame import RootFrame, Stopped
from tcompile.capture.guards.dynamic_shapes import Profile
from tcompile.capture.guards.entry_protocol import Start
from tcompile.capture.guards.graph_breaks import GraphBreak
from tcompile.capture.interpreter.context import Capture
from tcompile.capture.interpreter.frame import Frame
from tcompile.capture.loops import enter as _loops  # noqa: F401  # registers what instructions do
from tcompile.capture.loops.continuation import NoContinuation, Reached, go_back_to_call, go_to_resume_point
from tcompile.capture.values.base import Unrebuildable
from tcompile.frontends.base import CannotCapture, Frontend
from tcompile.graph import Graph
from tcompile.observe.context import enter
from tcompile.records import dataclass

_MAX_ATTEMPTS = 12


@dataclass(frozen=True)
class Outcome:
    """The program of one stretch, and the break that ended it where there was one."""

    captured: Captured
    graph_break: GraphBreak | None = None
    loops: Sequence[LoopPlan] = ()
    plans: LoopPlans = field(default_factory=LoopPlans)  # of these loops


def capture(
    code: types.CodeType,
    namespace: dict[str, Any],
    start: Start,
    values: Sequence[Any],
    *,
    name: str,
    frontends: Sequence[Frontend],
    options: CaptureOptions,
    profile: Profile,
    rewritten: Callable[[], Rewritten | None],
    plans: LoopPlans | None = None,
) -> Outcome:
    """Captures the stretch of a function from ``start``. ``values`` are those of its frame there, in the order of
    ``start``.

    ``namespace`` holds the function's globals. ``rewritten`` returns the code in which the frame can be resumed (None:
    nowhere). ``plans`` are the loop plans of another capture of this stretch. Raises NoContinuation where the options
    ask for a continuation and there is none, and StanceError where the function changes the stance. Any other stop of
    capture is in the Outcome.
    """
    attempts = _Attempts(
        code, namespace, start, values, name, frontends, options, profile, rewritten, plans or LoopPlans()
    )
    outcome, left_open = attempts.run()
    loops = attempts.loops.reported()
    for kind in (int, float):  # capture may need the value of one: fix them and try again
        places = {place for place, cls in left_open.items() if cls is kind and profile.may_fix(place, kind)}
        broke = outcome.graph_break
        if broke is None or not places:
            continue
        profile.needed |= places
        fixed, less_open = attempts.run()
        # Floats that vary then compile for each value, which is worth it only without a graph break.
        if fixed.graph_break is None or (kind is int and not fixed.graph_break.same_place(broke)):
            outcome, left_open, loops = fixed, less_open, attempts.loops.reported()
        else:
            profile.needed -= places
    return dataclasses.replace(outcome, loops=loops, plans=attempts.loops)


def _followed(tx: weakref.ref[Capture]) -> str:
    """The progress of a capture, as text."""
    count = getattr(tx(), "instructions", 0)
    return f"{count} instructions followed" if count else ""


@dataclass(frozen=True)
class _Attempts:
    """The arguments of a capture, and the loop plans that its attempts share."""

    code: types.CodeType
    namespace: dict[str, Any]
    start: Start
    values: Sequence[Any]
    name: str
    frontends: Sequence[Frontend]
    options: CaptureOptions
    profile: Profile
    rewritten: Callable[[], Rewritten | None]
    loops: LoopPlans = field(default_factory=LoopPlans)

    def run(self) -> tuple[Outcome, dict[str, type]]:
        """The longest stretch that ends where the frame can be resumed, and the places of numbers that stay open."""
        broke: GraphBreak | None = None
        stop: int | None = None
        left = _MAX_ATTEMPTS
        while left:
            tx = Capture(
                self.frontends, self.options, self.profile, Graph(self.name), self.code, self.namespace,
                Frame, loops=self.loops,
            )  # fmt: skip
            tx.graph.env.names = self.loops.names
            self.loops.begin()
            enter("capture", functools.partial(_followed, weakref.ref(tx)))
            try:
                frame = RootFrame(tx, self.code, self.namespace, self.start, self.values, stop)
            except CannotCapture as error:  # bytecode that cannot be read
                return Outcome(plain(tx, self.start), _graph_break(tx, error)), {}
            try:
                try:
                    return Outcome(finish(tx, frame.run(), self.start.arity)), tx.left_open
                except (Stopped, CannotCapture, RecursionError) as reason:
                    left -= 1
                    ended, broke = self._stopped(tx, frame, reason, broke)
                if isinstance(ended, int) and (ended < 0 or not left):
                    ended = Outcome(plain(tx, self.start), broke)
                if isinstance(ended, Outcome):
                    return ended, tx.left_open
                stop = ended
            except Reached:
                return self._continuation(tx, frame), {}
            except Restart:
                self.loops.followed += tx.instructions
            finally:  # captured values refer to both, and these to the program's own objects
                frame.forget()
        raise AssertionError("the last attempt ends in an outcome")

    def _continuation(self, tx: Capture, frame: RootFrame) -> Outcome:
        """The program that leads to the next iteration of a loop. Raises NoContinuation where there is none."""
        rewritten = self.rewritten()
        frames = [frame for frame in reversed(tx.frames) if isinstance(frame, Frame)]
        for called, caller in itertools.pairwise(frames):
            go_back_to_call(caller, called)
        go_to_resume_point(frame, rewritten)
        assert rewritten is not None
        try:
            return Outcome(finish_at(tx, frame, rewritten.analysis.points[frame.offset], self.start.arity))
        except CannotCapture as error:
            raise NoContinuation(error.detail) from error

    def _stopped(
        self, tx: Capture, frame: RootFrame, reason: Stopped | CannotCapture | RecursionError, broke: GraphBreak | None
    ) -> tuple[Outcome | int, GraphBreak]:
        """The next step where capture stopped: an outcome, or the step before which the next attempt stops."""
        if isinstance(reason, Stopped):
            frame.align()
        else:
            broke = broke or _graph_break(tx, reason)
            loop = frame.longest_loop() if broke.reason.id == "too-long" else None
            clean = frame.undo()
            if loop is not None or not clean:
                return frame.step if loop is None else loop, broke
        assert broke is not None  # an attempt gets a stop only because of a break
        if broke.reason.id in ("unknown-function", "raises") and frame.goes_on():
            broke = GraphBreak("frame-step", broke.detail, broke.stack)
        return self._end(tx, frame, broke)

    def _end(self, tx: Capture, frame: RootFrame, broke: GraphBreak) -> tuple[Outcome | int, GraphBreak]:
        """The outcome of a stretch that ends here, or the step (-1: none) before which the next attempt stops."""
        rewritten = self.rewritten()
        if rewritten is None:
            return -1, broke
        if frame.offset not in rewritten.targets:
            listed, steps = frame.decoded.instructions, range(frame.step - 1, 0, -1)
            return next((step for step in steps if listed[frame.trail[step]].start in rewritten.targets), -1), broke
        try:
            return Outcome(
                finish_at(tx, frame, rewritten.analysis.points[frame.offset], self.start.arity), broke
            ), broke
        except Unrebuildable as lost:
            return min(lost.born, frame.step - 1), _graph_break(tx, lost) if lost.where else broke
        except CannotCapture:
            return frame.step - 1, broke


def _graph_break(tx: Capture, error: CannotCapture | RecursionError) -> GraphBreak:
    if error.__cause__ is not None:
        raise_if_callers(error.__cause__)
    if isinstance(error, Unrebuildable) and error.where:
        return GraphBreak(error.reason, error.detail, error.where, tx.break_is_error)
    if isinstance(error, CannotCapture):
        return GraphBreak(error.reason, error.detail, tx.user_stack(), tx.break_is_error)
    return GraphBreak("recursion", "Python's own limit was reached.", tx.user_stack()[:1], tx.break_is_error)
