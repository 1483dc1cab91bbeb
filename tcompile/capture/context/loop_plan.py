"""Loop plans: the records of loops, kept from one attempt at a capture to the next.

Input: the facts that ``loops.trace_loop`` finds in each attempt.
Output: ``LoopPlans``, which the attempts at one capture share.
Why: the context of a capture holds the plans, and it comes before the loops.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tcompile.graph.ops.control import FOREVER
from tcompile.graph.sizes import Size
from tcompile.observe.source_location import UserLine
from tcompile.records import dataclass

MANY_ITERATIONS = 512  # trip count of a loop over numbers alone: up to this one, iterations are followed


class Restart(BaseException):
    """A loop's plan has changed, so capture starts anew. It is no Exception: handlers of errors let it pass."""


@dataclass
class LoopPlan:
    """The facts of one loop, and the decision.

    ``peeled`` iterations are done before the node, and ``unroll_factor`` iterations are one of the node. ``looked``:
    the trial trace is done. ``carried`` are the local variables bound anew, ``induction_steps`` the amounts by which
    ints among them grow. ``written`` are the arrays written, by their places, ``slots`` the places in objects that are
    bound anew. ``non_affine`` are ints that the graph computes, since they do not grow by the same amount in each
    iteration. ``collected`` are the lists that iterations append to, with their items. ``tested``: a test may end an
    iteration early; ``asked`` are variables that are read there. ``split_aliases`` are variables that begin as aliases
    of an array that an iteration binds anew under one name only.

    ``limit`` is the trip count of a ``while`` loop, by the test at instruction ``limit_at``. ``limit_by`` is the
    difference of the ints that the test compares in the first iteration, and its growth in each further one.
    ``unknown_trip_count``: these differ from one time to the next that the loop is entered.
    """

    where: UserLine
    iterations: str = ""
    finished: bool = False  # whether the last attempt has unrolled it to its end
    met: bool = False  # whether the last attempt has met it
    outcome: str = ""  # "node" or "unrolled", once that is known
    reason: str = ""
    looked: bool = False
    tries: int = 0
    peeled: int = 0
    unroll_factor: int = 1
    carried: set[str] = field(default_factory=set)
    induction_steps: dict[str, Size] = field(default_factory=dict)
    non_affine: set[str] = field(default_factory=set)
    written: dict[Any, Any] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    slots: dict[str, Any] = field(default_factory=dict)
    collected: dict[str, Any] = field(default_factory=dict)
    tested: bool = False
    open_tests: bool = False  # the graph tests the induction variable, as peeled iterations do not help
    split_aliases: set[str] = field(default_factory=set)
    limit: Size | None = None
    limit_at: int = -1
    limit_by: tuple[Size, int] = (0, 0)
    unknown_trip_count: bool = False
    exact: bool = False  # the identity of an array matters that the loop may carry unchanged
    made: bool = False  # the loop must have made such an array: code right after it needs that
    marked: set[str] = field(
        default_factory=set
    )  # variables for which the iterations record whether they hold a new array
    split_short_circuit: bool = False  # the second half of some `a and b` changes something: a branch of its own
    interpreted_loop: bool = False  # the frame runs the loop: an iteration has instructions that only the frame can do
    is_branch: bool = False  # a side of a test that stays in the iteration is a loop of at most one iteration

    def may_end_early(self) -> None:
        """Notes for reports that the trip count is a limit."""
        if not self.iterations.startswith(("any", "at most")):
            self.iterations = f"at most {self.iterations}"

    def learn(self, facts: Mapping[str, Any]) -> None:
        """Sets fields to the facts of an attempt. Raises AttributeError for a name that is no field."""
        for name, value in facts.items():
            getattr(self, name)
            setattr(self, name, value)


@dataclass
class LoopPlans:
    """The plans of all loops of one capture, by the calls that lead to each."""

    plans: dict[tuple[Any, ...], LoopPlan] = field(default_factory=dict)
    restarts: int = 0
    followed: int = 0  # instructions, in the attempts that started anew
    names: dict[Any, str] = field(default_factory=dict)  # of symbols, the same ones in all attempts
    refused: dict[tuple[Any, ...], str] = field(
        default_factory=dict
    )  # why loops are not scalar loops, or batches not whole

    def copied(self) -> LoopPlans:
        """Plans that another capture of the same code may change: its objects may differ."""
        plans = {key: copy.copy(plan) for key, plan in self.plans.items()}
        return LoopPlans(plans, self.restarts, self.followed, dict(self.names), dict(self.refused))

    def begin(self) -> None:
        """Begins another attempt."""
        for plan in self.plans.values():
            plan.met = plan.finished = False

    def reconsider_inside(self, plan: LoopPlan, asks: bool) -> None:
        """Discards the decisions of the loops inside one whose iterations are different now.

        ``asks``: also for loops with peeled iterations, which ask whether there are any. Their reason may be gone after
        the first iterations of the loop around.
        """
        depth = next(key[-1] for key, known in self.plans.items() if known is plan)
        for key, known in list(self.plans.items()):
            if key[-1] > depth and (known.outcome == "unrolled" or (asks and known.peeled)):
                del self.plans[key]

    def reported(self) -> list[LoopPlan]:
        """The plans of loops that the last attempt met, or that Python runs."""
        plans = [plan for plan in self.plans.values() if not plan.is_branch]
        return [plan for plan in plans if plan.met or plan.outcome == "unrolled"]


class WhileLoop:
    """The progress of a frame in a ``while`` loop; the iterations of a node are counted from 0.

    ``inside``: the frame began in the middle of an iteration, after an instruction that only the frame can do. Capture
    follows the rest of that iteration and one more, up to where the frame takes over again.
    """

    def __init__(self, inside: bool = False, taken: int = 0) -> None:
        self.taken = taken
        self.decided = self.inside = inside
        self.plan: LoopPlan | None = None
        self.left: Size = FOREVER


__all__ = ["LoopPlan", "LoopPlans", "Restart", "WhileLoop"]
