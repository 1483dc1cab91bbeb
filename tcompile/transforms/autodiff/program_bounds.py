"""How long the tapes of a scalar loop get, where that follows from the ranges of counted loops.

Input: a program's plan, and what each block pushes to its tapes.
Output: the lengths, as sizes.
Why: tapes are allocated before the loop runs, and their cotangents are set to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tcompile.graph.ops.scalar_blocks import affine, dominates, dominators
from tcompile.graph.ops.scalar_loop import ways
from tcompile.graph.sizes import Size
from tcompile.transforms.autodiff.program_plan import Needed, Plan

Number: TypeAlias = "tuple[Any, ...]"


class Counts:
    """Bounds of how often blocks run, where they follow from the ranges of counted loops."""

    def __init__(self, plan: Plan, known: Callable[[Number], Size | None]) -> None:
        self.plan, self.known = plan, known
        blocks = plan.blocks
        nearest = self.nearest = dominators(blocks, plan.order)
        self.bodies: dict[int, set[int]] = {}
        self.counters: dict[int, tuple[int, int, int]] = {}  # by induction variable: start, stop, step
        self.counter_of: dict[int, int] = {}  # by a loop's header
        for at in plan.order:
            for header in ways(blocks[at][2]):
                if dominates(nearest, header, at):
                    body = self.bodies.setdefault(header, {header})
                    waiting = [at]
                    while waiting:
                        block = waiting.pop()
                        if block not in body:
                            body.add(block)
                            waiting += [before for before, _ in plan.before[block]]
        for header, body in self.bodies.items():
            self._find_counter(header, body)

    def _find_counter(self, header: int, body: set[int]) -> None:
        """Finds the induction variable that a test in each iteration bounds."""
        plan = self.plan
        back = [at for at, _ in plan.before[header] if at in body]
        tests = {
            lines[-1][2]: lines[-1] for at in body for _, lines, end in [plan.blocks[at]]
            if lines and lines[-1][0] == "more" and end[:2] == ("branch", lines[-1][1])
            and not body.issuperset(ways(end)) and all(dominates(self.nearest, at, other) for other in back)
        }  # fmt: skip
        for place, parameter in enumerate(plan.blocks[header][0]):
            given = [(at, plan.blocks[at][2][where][place]) for at, where in plan.before[header]]
            starts = [register for at, register in given if at not in body]
            steps = [plan.made.get(register, ("", 0, 0, 0)) for at, register in given if at in body]
            if parameter not in tests or len(set(starts)) != 1 or any(step[0] != "step" for step in steps):
                continue
            step = plan.made.get(tests[parameter][4], ("",))
            if step[0] == "const" and all(each[2:] == (parameter, step[1]) for each in steps):
                self.counters[parameter] = starts[0], tests[parameter][3], step[2]
                self.counter_of[header] = parameter

    def _bound(self, register: int, most: bool, depth: int = 0) -> Size | None:
        """The most or the least that an int may be."""
        plan = self.plan
        base, more = affine(plan.made, plan.kinds, register)
        made = plan.made.get(base, ("",))
        if made[0] == "step" and plan.made.get(made[3], ("",))[0] == "const":
            before = self._bound(made[2], most, depth)
            return None if before is None else before + more + int(plan.made[made[3]][2])
        if made[0] == "const":
            return int(made[2]) + more
        found: Size | None = None
        if made[0] == "size":
            found = self.known(("size", *made[2:]))
        elif base in plan.numbers:
            found = self.known(("number", base))
        elif base in self.counters and depth < len(self.counters):
            start, stop, step = self.counters[base]
            found = self._bound(start if most == (step < 0) else stop, most, depth + 1)
        return None if found is None else found + more

    def _trips(self, header: int) -> Size | None:
        """The most times that a loop's header runs."""
        if header not in self.counter_of:
            return None
        start, stop, step = self.counters[self.counter_of[header]]
        low, high = self._bound(start, step < 0), self._bound(stop, step > 0)
        if low is None or high is None:
            return None
        first = min(low, 0) if isinstance(low, int) and step > 0 else low
        length = high - first if step > 0 else low - high
        return max(length, 0) + 2 if isinstance(length, int) else length + 2

    def pushes(self, needed: Mapping[int, Needed], runs: Size | None) -> tuple[Size, Size, Size] | None:
        """The lengths of both tapes at most, and how many blocks the backward program runs.

        ``runs`` blocks run at most, where that is known. None where some loop has no bound.
        """
        plan = self.plan
        steps = 2 + max(map(len, plan.before.values()))  # a backward block, and those that find the next one
        counts = [self._runs(at) for at in plan.order]
        if all(count is not None for count in counts):
            pairs = [(count, needed[at]) for count, at in zip(counts, plan.order, strict=True) if count is not None]
            return (
                sum((count * (len(each.ints) + 1) for count, each in pairs), start=2),
                sum((count * len(each.floats) for count, each in pairs), start=2),
                sum((count for count, _ in pairs), start=2) * steps,
            )
        if runs is None:
            return None
        ints, floats = (
            max(map(len, each)) for each in zip(*((n.ints, n.floats) for n in needed.values()), strict=True)
        )
        return runs * (ints + 1) + 2, runs * floats + 2, runs * steps

    def _runs(self, at: int) -> Size | None:
        """How often a block runs at most."""
        runs: Size = 1
        for header, body in self.bodies.items():
            if at in body:
                trips = self._trips(header)
                if trips is None:
                    return None
                runs = runs * trips
        return runs


__all__ = ["Counts", "Number"]
