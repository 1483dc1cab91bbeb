"""Loops over elements: which blocks are loops, and how long each may go on without asking for signals.

Enters: the blocks of a program, and the sizes of its arrays where they are known. Leaves: a ``Shape``: the blocks in
order, the edges that go back, how deep each block lies, and what each loop pays a round from the budget that is spent
between two questions. Exists because asking in every round would cost as much as many a round does, and code that
counts rounds in every loop is code that LLVM has to compile.

What is paid is work: about one unit an instruction. A range whose rounds are known to be few pays nothing itself; the
loop around it pays for all of them. An innermost range of many rounds runs in strips, which are paid beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcompile.backends.llvm.scalar_ranges import Ranges
from tcompile.graph.ops.element_blocks import affine, dominates, reachable
from tcompile.graph.ops.element_loop import Block, ways

_FREE_INSIDE = 1 << 16  # units that a loop inside another one may take without asking
_FREE_OUTSIDE = 1 << 22  # and one that is run once
_SLOW = ("**", "%", "//")
_SMALL_STEP = 1 << 30
_FEW = 8  # rounds that no vector is worth


class Shape:
    """A program's loops, by the block that each begins with.

    ``bodies`` are their blocks, ``back`` the edges that go back, ``depth`` how many loops a block is in, ``within`` the
    innermost of them. ``pays`` is what a jump back pays, or a round of a strip: ``strips`` has the counter, the bound
    and the step of the ranges that run in strips.
    """

    def __init__(
        self, kinds: Sequence[str], blocks: Sequence[Block], size: Callable[[int, int], int | None]
    ) -> None:
        self.blocks = blocks
        self.order = reachable(blocks)
        self.ranges = Ranges(kinds, blocks, self.order, size)
        self.nearest = self.ranges.nearest
        self.back = {
            (at, way) for at in self.order for way in ways(blocks[at][2]) if self.dominates(way, at)
        }  # fmt: skip
        self.bodies = self._bodies()
        smallest = sorted(self.bodies, key=lambda header: len(self.bodies[header]))
        self.within: dict[int, int | None] = {
            at: next((header for header in smallest if at in self.bodies[header]), None) for at in self.order
        }
        self.depth = {at: sum(at in body for body in self.bodies.values()) for at in self.order}
        self.pays: dict[int, int] = {}
        self.strips: dict[int, tuple[int, int, int]] = {}
        self._share_costs(smallest)

    def dominates(self, one: int, two: int) -> bool:
        """Whether all ways to the block ``two`` pass ``one``."""
        return dominates(self.nearest, one, two)

    def _bodies(self) -> dict[int, set[int]]:
        before: dict[int, list[int]] = {at: [] for at in self.order}
        for at in self.order:
            for way in ways(self.blocks[at][2]):
                before[way].append(at)
        bodies: dict[int, set[int]] = {}
        for at, header in self.back:
            body = bodies.setdefault(header, {header})
            waiting = [at]
            while waiting:
                block = waiting.pop()
                if block not in body:
                    body.add(block)
                    waiting += before[block]
        return bodies

    def _share_costs(self, smallest: Sequence[int]) -> None:
        """Who pays for what, from the innermost loops outwards."""
        costs = dict.fromkeys(self.bodies, 1)
        for at in self.order:
            loop = self.within[at]
            if loop is not None:
                costs[loop] += sum(_weight(line) for line in self.blocks[at][1])
        for header in smallest:
            around = self._around(header)
            rounds = self.ranges.rounds(header) if self._counts(header) else None
            total = None if rounds is None else max(rounds, 0) * costs[header]
            if total is not None and total <= (_FREE_OUTSIDE if around is None else _FREE_INSIDE):
                self.pays[header] = 0
                if around is not None:
                    costs[around] += total
                continue
            self.pays[header] = costs[header]
            innermost = not any(other in self.bodies[header] for other in self.bodies if other != header)
            strip = self._range(header) if innermost else None
            if strip is not None:
                self.strips[header] = strip

    def vectors(self) -> list[int]:
        """Innermost ranges whose rounds do not wait for one another, elements side by side: vectors may do several."""
        innermost = [h for h, body in self.bodies.items() if not any(o in body for o in self.bodies if o != h)]
        return [header for header in innermost if self._is_vector(header)]

    def _is_vector(self, header: int) -> bool:
        found, body = self._range(header), self.bodies[header]
        rounds = self.ranges.rounds(header)
        if found is None or abs(found[2]) != 1 or (rounds is not None and rounds < _FEW):
            return False
        counter = found[0]
        if any(self.ranges.full[p] is None for p in self.blocks[header][0]):
            return False
        lines = [line for at in body for line in self.blocks[at][1]]
        inside = {line[1] for line in lines} | {p for at in body for p in self.blocks[at][0]}
        if any(line[0] in _SLOW or line[0].startswith("math.") for line in lines):
            return False
        stores: dict[int, list[Any]] = {}
        for line in lines:
            if line[0] == "store":
                stores.setdefault(line[2], []).append(self._along(line[4:], counter, inside))
        for line in lines:
            if line[0] == "load":
                along = self._along(line[3:], counter, inside)
                if along is None or any(other != along for other in stores.get(line[2], ())):
                    return False
        told = [along for row in stores.values() for along in row]
        return bool(told) and all(along is not None and along[0] for along in told)

    def _along(self, places: Sequence[int], counter: int, inside: set[int]) -> tuple[bool, Any] | None:
        """Whether elements go along with a counter, and from where; None where they lie anywhere else."""
        *outer, (register, more) = (affine(self.ranges.made, self.ranges.kinds, place) for place in places)
        if any(place in inside for place, _ in outer):
            return None
        if register == counter:
            return True, (tuple(outer), more)
        return None if register in inside else (False, (tuple(outer), register, more))

    def _counts(self, header: int) -> bool:
        """Whether each jump back gives the range that begins there its next number."""
        parameters, lines, _ = self.blocks[header]
        if not lines or lines[-1][0] != "more" or lines[-1][2] not in parameters:
            return False
        at = lines[-1][2]
        place = parameters.index(at)
        back = [given for other, _, given in self.ranges.arms[header] if (other, header) in self.back]
        return all(self.ranges.made.get(given[place], ("",) * 3)[::2][:2] == ("step", at) for given in back)

    def _around(self, header: int) -> int | None:
        found = [other for other, body in self.bodies.items() if other != header and header in body]
        return min(found, key=lambda other: len(self.bodies[other]), default=None)

    def _range(self, header: int) -> tuple[int, int, int] | None:
        """The counter, the bound and the step of a loop over a range that begins there."""
        parameters, lines, end = self.blocks[header]
        if end[0] != "branch" or not lines or lines[-1][0] != "more" or end[1] != lines[-1][1]:
            return None
        _, _, at, stop, step = lines[-1]
        amount = self.ranges.made.get(step, ("",))
        if amount[0] != "const" or abs(amount[2]) > _SMALL_STEP or at not in parameters:
            return None
        return (at, stop, amount[2])


def _weight(line: tuple[Any, ...]) -> int:
    """What an instruction takes, in units of about an addition."""
    if line[0] in ("const", "size"):
        return 0
    return 20 if line[0] in _SLOW or line[0].startswith("math.") else 1


__all__ = ["Shape"]
