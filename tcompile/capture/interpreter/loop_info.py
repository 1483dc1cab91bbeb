"""The loops of a function: the instructions of each, and their exits.

Input: a function's instructions.
Output: a ``Header`` for each ``while``, and for a ``for`` on request.
Why: a loop's iteration is followed from its header to its header. A jump on an array's value out of the loop is an
early exit.

CPython writes a ``while`` loop's condition twice: where the loop is entered, and after its body. Both copies have the
same positions in the source, by which they are found. An iteration begins at the second copy, so that the condition is
part of it; and a loop is entered there as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property

from tcompile.bytecode.decode import JUMPS
from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.records import dataclass

_RETURNS = ("RETURN_VALUE", "RETURN_CONST")
_ENDS = (*_RETURNS, "RERAISE", "RAISE_VARARGS")
_ALWAYS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
_QUIET = ("STORE", "DELETE", "YIELD", "SEND", "RETURN", "RAISE", "IMPORT", "FOR_ITER", "BEFORE", "JUMP_B")
_SHORT = 40  # instructions of a condition's part


@dataclass(frozen=True)
class Header:
    """One loop: an iteration begins at instruction ``at``, and control enters from outside at ``entry``."""

    at: int
    entry: int
    inside: frozenset[int]


@dataclass(frozen=True)
class Flow:
    """The instructions of one code object, and the targets of each."""

    instructions: Sequence[Instruction]
    positions: Mapping[int, int]

    def target(self, at: int) -> int:
        """The target of a jump; for FOR_ITER the instruction after the cleanup of its iterator."""
        i = self.instructions[at]
        to = self.positions[i.argval]
        return to + D.loop_ends if i.opname == "FOR_ITER" else to

    def leads_to(self, at: int) -> int:
        """The first instruction at a jump's target that does anything.

        A ``continue`` of a ``while True`` leads to a NOP; from CPython 3.14 on each iteration does.
        """
        to = self.positions[self.instructions[at].argval]
        while self.instructions[to].opname == "NOP":
            to += 1
        return to

    def ways(self, at: int) -> tuple[int, ...]:
        """The instructions that may run right after an instruction."""
        return self._leads[at]

    @cached_property
    def _leads(self) -> list[tuple[int, ...]]:
        return [self._ways(at, i) for at, i in enumerate(self.instructions)]

    def _ways(self, at: int, i: Instruction) -> tuple[int, ...]:
        if i.opname in _ENDS:
            return ()
        if not _jumps(i):
            return (at + 1,)
        return (self.target(at),) if i.opname in _ALWAYS else (at + 1, self.target(at))

    @cached_property
    def _before(self) -> dict[int, list[int]]:
        """The predecessors of each instruction."""
        before: dict[int, list[int]] = {}
        for at, ways in enumerate(self._leads):
            for way in ways:
                before.setdefault(way, []).append(at)
        return before

    def whiles(self) -> Iterator[Header]:
        """The loops that have no iterator.

        Exception handlers jump back, too, to the exit of their block; they are not reachable from the start of the
        code.
        """
        back: dict[int, list[int]] = {}
        if not any("JUMP_BACKWARD" in i.opname and self._is_while(i) for i in self.instructions):
            return
        for at in sorted(self._reached()):
            i = self.instructions[at]
            if i.opname == "JUMP_BACKWARD_NO_INTERRUPT" or i.opname == "SEND":
                return  # it suspends the frame
            if _jumps(i) and self.positions[i.argval] <= at:
                back.setdefault(self.leads_to(at), []).append(at)
        copies = {}
        for start in back:
            if self.instructions[start].opname != "FOR_ITER":
                copies[start] = self._condition(start, max(back[start]))
        firsts = {entry for entry, at in copies.values() if entry != at}
        for start, (entry, at) in copies.items():
            if start not in firsts or entry != at:  # `continue` goes to the first copy of the condition
                sources = [*back[start], *(back.get(entry, []) if entry != start else [])]
                first = entry
                while first and self.instructions[first - 1].opname == "NOP":
                    first -= 1
                yield Header(at, entry, self._inside({start, entry}, sources) | {*range(first, start)})

    def _is_while(self, jump: Instruction) -> bool:
        """Whether the target of a back jump is not an iterator's instruction."""
        return self.instructions[self.positions[jump.argval]].opname != "FOR_ITER"

    def _reached(self) -> set[int]:
        """The instructions that run where no exception is handled."""
        found: set[int] = set()
        waiting = [0]
        while waiting:
            at = waiting.pop()
            if at not in found and at < len(self.instructions):
                found.add(at)
                waiting += self.ways(at)
        return found

    def _condition(self, start: int, last: int) -> tuple[int, int]:
        """The start of both copies of a loop's condition. The loop's body is from ``start`` to ``last``."""
        instructions = self.instructions
        one, two = start - 1, last
        if instructions[two].opname == "JUMP_BACKWARD":
            two -= 1
        if one < 0 or not all("POP_JUMP" in instructions[at].opname for at in (one, two)):
            return start, start
        found = start, start
        while one >= 0 and two >= start and self._alike(one, two):
            found = one, two
            one, two = one - 1, two - 1
            if instructions[two].opname == "JUMP_BACKWARD":  # of a test that jumps back where it holds
                two -= 1
        return found

    def _alike(self, one: int, two: int) -> bool:
        a, b = self.instructions[one], self.instructions[two]
        if a.positions[0] is None or a.positions != b.positions:
            return False
        return _jumps(a) == _jumps(b) if _jumps(a) or _jumps(b) else (a.opname, a.argval) == (b.opname, b.argval)

    def loop_at(self, header: int) -> Header:
        """The ``for`` loop whose FOR_ITER this is."""
        back = [at for at in self._before.get(header, []) if at > header]
        return Header(header, header, self._inside({header}, back))

    def is_left_early(self, loop: Header) -> bool:
        """Whether a loop may be left in the middle of an iteration."""
        return any(way not in loop.inside for at in loop.inside - {loop.at} for way in self.ways(at))

    def _inside(self, starts: set[int], sources: Iterable[int]) -> frozenset[int]:
        """The instructions that lead to the back jumps, without going through the start."""
        found, waiting = set(starts), list(sources)
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                waiting += self._before.get(at, [])
        return frozenset(found)

    def chain(self, at: int, stop: Callable[[int], bool] = lambda at: False) -> list[int]:
        """The instructions from here on, up to one that branches or ends, or to a ``stop``, as the last item."""
        found = [at]
        while not stop(at) and at not in found[:-1] and len(ways := self.ways(at)) == 1:
            at = ways[0]
            found.append(at)
        return found

    @cached_property
    def whole(self) -> Header:
        """The whole code as one iteration: all instructions but returns."""
        inside = [at for at, i in enumerate(self.instructions) if i.opname not in _RETURNS]
        return Header(-1, -1, frozenset(inside))

    def meeting(self, one: int, two: int, around: Header) -> int | None:
        """Where two ways through an iteration of the loop ``around`` always meet; None where they need not.

        In a function that is one iteration, both may return: they meet after its code.
        """
        asked = one, two, around
        if asked not in self._met:
            self._met[asked] = self._meeting(*asked)
        return self._met[asked]

    @cached_property
    def _met(self) -> dict[tuple[int, int, Header], int | None]:
        return {}  # each attempt at a capture needs the same

    def _meeting(self, one: int, two: int, around: Header) -> int | None:
        stops = {around.at, around.entry}
        first, second = self._ahead(one, stops), self._ahead(two, stops)
        for at in first:
            common = at in second and (at in around.inside or at in stops)
            if common and all(self._meets(way, at, around) for way in (one, two)):
                return at
        return self.end if around is self.whole else None

    @property
    def end(self) -> int:
        """The number after all instructions."""
        return len(self.instructions)

    def _ahead(self, start: int, stops: Set[int]) -> dict[int, None]:
        """The instructions that may run from one on, the nearest first, up to ``stops``."""
        found = {start: None}
        for at in (waiting := [start]):
            for way in self.ways(at) if at not in stops else ():
                if way not in found:
                    found[way] = None
                    waiting.append(way)
        return found

    def _meets(self, start: int, end: int, around: Header) -> bool:
        """Whether all ways from an instruction in an iteration lead to ``end``, except for those that raise."""
        ahead = self._ahead(start, {around.at, around.entry, end})
        return all(
            at == end or (at in around.inside and at not in (around.at, around.entry)) or at in self.lost
            for at in ahead
        )

    @cached_property
    def lost(self) -> frozenset[int]:
        """The instructions that lead to no return: an exception is raised from there on."""
        returns = [at for at, i in enumerate(self.instructions) if i.opname in _RETURNS]
        return frozenset(range(self.end)) - self._inside(set(), returns)

    def between(self, start: int, end: int) -> frozenset[int]:
        """The instructions on the ways from one instruction to another, without the latter."""
        ahead = self._ahead(start, {end}).keys() - {end}
        if end == self.end:
            return frozenset(ahead)
        return self._inside({end}, [at for at in self._before.get(end, ()) if at in ahead]) & ahead

    def through(self, at: int, stops: Set[int] = frozenset()) -> int:
        """The target of jumps that do nothing else."""
        for _ in range(8):
            if at in stops or self.instructions[at].opname not in ("JUMP_FORWARD", "JUMP_BACKWARD", "NOP"):
                break
            (at,) = self.ways(at)
        return at

    def second_test(self, at: int, other: int, stops: frozenset[int]) -> int | None:
        """The test after ``at`` that may jump to ``other`` as well, as in ``a and b``; None where there is none.

        The test at one of ``stops``, with which a loop begins, belongs to that loop.
        """
        for _ in range(_SHORT):
            if at in stops:
                return None
            i = self.instructions[at]
            if "POP_JUMP" in i.opname:
                return at if other in (self.through(way, stops) for way in self.ways(at)) else None
            if i.opname.startswith(_QUIET) or len(ways := self.ways(at)) != 1:
                return None
            (at,) = ways
        return None


def _jumps(i: Instruction) -> bool:
    return i.opcode in JUMPS


__all__ = ["Flow", "Header"]
