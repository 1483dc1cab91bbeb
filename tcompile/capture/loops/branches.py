"""Branches that stay in an iteration of a loop: each side of the test becomes a loop of at most one iteration.

Input: a frame in an iteration of a loop that becomes a node. It is at a jump on a value that the graph computes, and
both targets stay in the iteration.
Output: the frame where the two ways meet, and in the graph an ``exit_loop`` for each side that does anything.
Why: a step that is taken only sometimes (``if error < tolerance: y = new``) does not send the loop back to Python.

Branches use the rules of loop-carried values. A value that a side binds or writes is carried. Where the side is not
taken, every carried value stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcompile.bytecode.instructions import Instruction
from tcompile.capture.context.loop_plan import LoopPlan, WhileLoop
from tcompile.capture.interpreter.frame import Frame, Returned
from tcompile.capture.interpreter.loop_info import Header
from tcompile.capture.loops.exits import Left, Way
from tcompile.capture.loops.trace_loop import Loop, make, plan_of, why
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.scalar import truth_node
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node

# Stack items or results of sides (``1 if test else 2``) are carried as variables of these names, the deepest first.
_PUSHED = tuple(f"value {number}" for number in range(4))


def enter(f: Frame, i: Instruction, value: Value) -> bool:
    """Follows the sides of a jump in a peeled iteration, or in a function that an iteration calls; False elsewhere."""
    at, flow = f.at - 1, f.decoded.flow
    around = [known for known in f.peeled.values() if at in known[0].inside]
    flag = truth_node(f.tx, value) if around or f.tx.open_loops else None
    if flag is None:
        return False
    target, on = flow.target(at), at + 1
    yes, no = (target, on) if i.opname.endswith("TRUE") else (on, target)
    if not around:
        follow(f, flow.whole, at, yes, no, flag)
        return True
    header, plan = min(around, key=lambda known: len(known[0].inside))
    try:
        follow(f, header, at, yes, no, flag)
    except CannotCapture as error:
        plan.outcome, plan.reason = "unrolled", why(error)
        raise
    return True


def follow(f: Frame, around: Header, at: int, yes: int, no: int, flag: Node) -> None:
    """Makes nodes of the two sides of the jump ``at``, and goes on where both meet.

    ``yes`` is the way where ``flag`` holds, and ``around`` the loop of this iteration. Raises CannotCapture where the
    ways do not meet in the iteration, and Restart where capture has to start anew.
    """
    tx, flow = f.tx, f.decoded.flow
    meet = flow.meeting(yes, no, around)
    text = tx.current_text()
    if meet is None:
        raise CannotCapture("data-dependent-branch", text)
    sides = [(start, holds) for start, holds in ((yes, True), (no, False)) if flow.through(start, {meet}) != meet]
    for place, (start, holds) in enumerate(sides):
        f.at = at + 1
        once = WhileLoop()
        once.left = 1
        plan = plan_of(f, once, "at most 1", False, side="yes" if holds else "no")
        if plan is None:
            refused = CannotCapture("data-dependent-branch", text)
            if once.plan is not None:
                refused.add_note(once.plan.reason)
            raise refused
        inside = flow.between(start, meet) | {at}
        later = [other for other, _ in sides[place + 1 :]]
        side = Side(f, once, plan, Header(at, at, inside), start, meet, later)
        if not plan.tries and not plan.looked:
            side.foresee()
        side.around = around
        side.taken = flag if holds else tx.builder.op("logical_not", flag)
        make(side)
    pushed = [f.locals.pop(name) for name in _PUSHED if name in f.locals]
    if meet == flow.end:
        raise Returned(pushed[0])
    f.stack += pushed
    f.at = meet
    f.came_back = meet if meet <= at else -1


class Side(Loop):
    """One side of a branch: from ``start`` to ``meet``, done at most once.

    ``later`` has the start of the other side, where it comes next.
    """

    most_apart = 0
    taken: Node
    around: Header  # the loop in whose iteration it is

    def __init__(
        self, f: Frame, items: WhileLoop, plan: LoopPlan, header: Header, start: int, meet: int, later: Sequence[int]
    ) -> None:
        super().__init__(f, items, plan, header, sure=True)
        self.start, self.meet = start, meet
        self.finds_limits = False
        self.asked_later = set().union(*(self.live(at) for at in later)) if later else set()
        at_end = (self.hidden if meet == f.decoded.flow.end else self.live(meet)).union(_PUSHED)
        self.live_past, self.live_after = at_end, at_end | self.asked_later
        # A variable that the other side always binds needs no value where this side is not taken.
        unbound = at_end - self.asked_later if later else set()
        self.needed = (self.live_after | plan.asked) - (unbound - f.locals.keys())
        self.live_before = self.needed | self.live_after

    def foresee(self) -> None:
        """Predicts the variables that the side binds, where that is plain, so that it needs no trial trace."""
        f, plan = self.f, self.plan
        instructions = f.decoded.instructions
        for at in self.header.inside:
            i = instructions[at]
            updates = i.opname.startswith("STORE_FAST") and instructions[at - 1].opname == "BINARY_OP"
            name = i.argval[0] if isinstance(i.argval, tuple) else i.argval
            if updates and instructions[at - 1].argrepr.endswith("=") and self._is_array(name):
                return  # an update in place keeps the array
        plan.looked = plan.tested = True
        plan.carried = (self.bound & self.needed) | (f.locals.keys() & set(_PUSHED))
        plan.non_affine = set(plan.carried)

    def _is_array(self, name: str) -> bool:
        value = self.f.locals.get(name)
        value = settled(self.tx, value) if value is not None else None
        return isinstance(value, ArrayValue) and not value.traced.scalar

    def live_at(self, way: int) -> set[str]:
        """All exits lead to where the sides meet."""
        return self.live_after

    def branch(self, at: int, yes: int, no: int, flag: Node) -> None:
        """Follows both ways of a jump, up to where they meet in the iteration of the loop around."""
        follow(self.f, self.around, at, yes, no, flag)

    def _iteration(self, number: Any) -> None:
        """Follows the side, after the test whether it is taken."""
        f, op = self.f, self.tx.builder.op
        depth = len(f.stack)
        f.at = self.start
        self.exits.cut(op("logical_not", self.taken), self.meet, self.start, looking=not self.plan.looked)
        try:
            self._follow(set(), {self.meet}, depth)
        except Returned as returned:
            if self.meet != f.decoded.flow.end:
                raise
            f.stack[depth:] = [returned.value]
        for name, value in zip(_PUSHED, f.stack[depth:], strict=False):
            f.locals[name] = value
        if len(f.stack) - depth > len(_PUSHED):
            raise Left
        del f.stack[depth:]

    def _end(self, before: dict[str, Value], results: dict[str, Any], stack: list[Value]) -> Way | None:
        return self.way(self.meet, before, results, stack)

    def _leave(self, made: Sequence[Node], end: Way | None) -> Value | None:
        assert end is not None
        self.exits.meet(made, [end, *self.exits.ways], self.live_after)
        return None


__all__ = ["enter", "follow"]
