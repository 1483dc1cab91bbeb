"""What is known of the loops that a capture meets, from one attempt at it to the next.

Input and output: ``LoopPlans``, which ``loops.trace_loop`` fills in and which the attempts at one capture share.
Why: the context of a capture holds it, and comes before the loops.
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

MANY_ITERATIONS = 512  # of a loop that needs nothing but its own numbers: as many are followed


class Restart(BaseException):
    """Something was learned of a loop: capture is to start anew. Nobody on the way takes it for an error."""


@dataclass
class LoopPlan:
    """What is known of one loop, and what is done with it.

    ``peeled`` iterations are done before the node, ``unroll_factor`` iterations are one of its own. ``carried`` are the
    local variables bound anew, ``induction_steps`` by how much ints among them grow; ``written`` are the arrays
    written, by where they are found, ``slots`` the places in objects that are bound anew. ``non_affine`` are ints that
    the graph computes, since they do not grow by the same amount in each iteration. ``collected`` are the lists that
    iterations append to, and what. ``tested`` says that a test may end an iteration before it is done, and ``asked``
    are variables that are read there. ``split_aliases`` are variables that begin as another name of an array that an
    iteration binds anew under one name only. ``limit`` is the trip count that the test at instruction ``limit_at``
    leaves a ``while`` loop, ``limit_by`` how far apart the ints are that it compares in the first iteration, and by how
    much more in each further one. ``unknown_trip_count``: they are others from one time to the next that the loop is
    come to.
    """

    where: UserLine
    iterations: str = ""
    finished: bool = False  # whether the last attempt has unrolled it to its end
    met: bool = False  # whether the last attempt came to it
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
    open_tests: bool = False  # tests of the induction variable are the graph's, for iterations done apart do not help
    split_aliases: set[str] = field(default_factory=set)
    limit: Size | None = None
    limit_at: int = -1
    limit_by: tuple[Size, int] = (0, 0)
    unknown_trip_count: bool = False
    exact: bool = False  # it matters which object an array is that the loop may hand on as it was given it
    made: bool = False  # the loop has to have made such an array: what comes right after it asks for that
    marked: set[str] = field(
        default_factory=set
    )  # variables of which the iterations note whether they hold a new array
    split_short_circuit: bool = False  # the second half of some `a and b` changes something: a branch of its own
    interpreted_loop: bool = False  # the frame goes from iteration to iteration: an iteration does what belongs there
    is_branch: bool = False  # a side of a test that stays in the iteration is a loop of at most one iteration

    def learn(self, facts: Mapping[str, Any]) -> None:
        """Takes over what an attempt has found. Raises AttributeError where a name is none of the fields'."""
        for name, value in facts.items():
            getattr(self, name)
            setattr(self, name, value)


@dataclass
class LoopPlans:
    """The plans of all loops that one capture meets, by the way that leads to each."""

    plans: dict[tuple[Any, ...], LoopPlan] = field(default_factory=dict)
    restarts: int = 0
    followed: int = 0  # instructions, in the attempts that started anew
    names: dict[Any, str] = field(default_factory=dict)  # of symbols, which are called the same in all attempts
    refused: dict[tuple[Any, ...], str] = field(default_factory=dict)  # why loops are no scalar loops

    def copied(self) -> LoopPlans:
        """Plans that another capture of the same code may change: a change of what it reads may lead it elsewhere."""
        plans = {key: copy.copy(plan) for key, plan in self.plans.items()}
        return LoopPlans(plans, self.restarts, self.followed, dict(self.names), dict(self.refused))

    def begin(self) -> None:
        """Another attempt begins."""
        for plan in self.plans.values():
            plan.met = plan.finished = False

    def reconsider_inside(self, plan: LoopPlan, asks: bool) -> None:
        """Lets the loops inside one be tried again where they were given up: its iterations are others from now on.

        ``asks``: also those with iterations done apart, for which they ask whether there are any. What these iterations
        are for may be over with the first ones of the loop around.
        """
        depth = next(key[-1] for key, known in self.plans.items() if known is plan)
        for key, known in list(self.plans.items()):
            if key[-1] > depth and (known.outcome == "unrolled" or (asks and known.peeled)):
                del self.plans[key]

    def told(self) -> list[LoopPlan]:
        """Those that the last attempt came to, or stopped before since Python runs them."""
        plans = [plan for plan in self.plans.values() if not plan.is_branch]
        return [plan for plan in plans if plan.met or plan.outcome == "unrolled"]


class WhileLoop:
    """How far a frame is with a ``while`` loop; the iterations of a node are counted from 0.

    ``inside``: the frame began in the middle of an iteration, after what only the frame can do. What is left of that
    iteration goes on into one more, and there the frame itself takes over again.
    """

    def __init__(self, inside: bool = False, taken: int = 0) -> None:
        self.taken = taken
        self.decided = self.inside = inside
        self.plan: LoopPlan | None = None
        self.left: Size = FOREVER


__all__ = ["LoopPlan", "LoopPlans", "Restart", "WhileLoop"]
