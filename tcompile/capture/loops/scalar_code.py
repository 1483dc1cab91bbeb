"""The code of a scalar loop: which instructions belong to it, and how control flows among them.

Input: a frame at the start of a loop, the analysis of its code, and the loop's header.
Output: answers about the instructions.
Why: what is translated, and how many items a list may get, depends on what each iteration executes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcompile.bytecode.analysis import Analysis
from tcompile.capture.values.counted import Counted
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.capture.interpreter.frame import Frame
    from tcompile.capture.interpreter.loop_info import Header


class Changes(Exception):
    """The loop changes ``what``, which must be known before the first read of it.

    It is the name of attributes that the loop sets; that, or the identity of a list, and the kind of what it gets.
    """

    def __init__(self, what: str | tuple[int | str, str]) -> None:
        super().__init__(what)
        self.what = what


@dataclass(eq=False)
class LoopCode:
    """The instructions ``inside`` of a loop, which begins at ``start``; ``items`` is the iterator, if it has one."""

    f: Frame
    found: Analysis
    start: int
    header: Header
    inside: set[int]
    items: Counted | None = None

    def is_straight(self) -> bool:
        """Whether there is hardly a branch, and no loop inside."""
        instructions = self.f.decoded.instructions
        jumps = sum(self.found.goes[at] >= 0 for at in self.inside)
        loops = any(instructions[at].opname == "FOR_ITER" for at in self.inside if at != self.start)
        return jumps <= 2 and not loops

    def has_loops_inside(self) -> bool:
        """Whether a jump goes back to elsewhere than the start of an iteration."""
        return any(0 <= self.found.goes[at] <= at and self.found.goes[at] != self.start for at in self.inside)

    def is_left_early(self) -> bool:
        """Whether an iteration may end the loop."""
        return self.f.decoded.flow.is_left_early(self.header)

    def appends(self) -> int:
        """How many instructions append to a list."""
        instructions = (self.f.decoded.instructions[at] for at in self.inside)
        return sum(i.argval == "append" or i.opname == "LIST_APPEND" for i in instructions)

    def is_in_each_iteration(self, at: int) -> bool:
        """Whether each iteration executes an instruction once, and the loop has no early exit."""
        if self.items is None:
            return False
        before, after = (self._reached(begin, {at, self.start}) for begin in (self.start + 1, at + 1))
        return self.start not in before and at not in after and before | after <= self.header.inside | {self.start}

    def _reached(self, begin: int, stops: set[int]) -> set[int]:
        """The instructions that may follow, up to ``stops``."""
        met, waiting = set[int](), [begin]
        while waiting:
            here = waiting.pop()
            if here not in met:
                met.add(here)
                waiting.extend(self.found.next_of(here) if here not in stops and here in self.inside else ())
        return met


__all__ = ["LoopCode"]
