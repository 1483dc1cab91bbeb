"""Simplification of scalar programs: dead code, common subexpressions, and block merging.

Input: a program as capture writes it, where each block takes all live variables as parameters.
Output: an equivalent program.
Why: each redundant parameter, repeated constant and mergeable block costs more in machine code generation than here.

Constants and sizes are hoisted to the start, once each. A parameter with the same value on all edges is replaced by
that value. Blocks that follow one another are merged. An operation that a dominating block has computed is not computed
again: equal operations on equal values give equal results, or have replayed before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.graph.ops.scalar_loop import Block, Program, ways

_LEADING = ("const", "size")  # their operands are not registers
# Nor are the first ones of these: an array, or the kind of a draw. Their results depend on earlier stores.
_ACCESSES = {"load": 3, "store": 3, "draw": 5}
_WORDS = ("int", "np.int64")


def tidy(program: Program) -> Program:
    """Simplifies a program."""
    kinds, numbers, blocks, results = program
    made = _Blocks(kinds, blocks)
    made.gather_leading()
    made.drop_parameters()
    made.merge()
    made.share()
    made.eliminate_dead_code()
    return kinds, numbers, made.done(), results


def reachable(blocks: Sequence[Block]) -> list[int]:
    """The reachable blocks, each after at least one predecessor, a loop's header first."""
    order: list[int] = []
    seen = {0}
    stack = [(0, iter(ways(blocks[0][2])))]
    while stack:
        at, rest = stack[-1]
        for way in rest:
            if way not in seen:
                seen.add(way)
                stack.append((way, iter(ways(blocks[way][2]))))
                break
        else:
            order.append(at)
            stack.pop()
    order.reverse()
    return order


def dominators(blocks: Sequence[Block], order: Sequence[int]) -> dict[int, int]:
    """The immediate dominator of each block; the first block's is itself."""
    place = {at: number for number, at in enumerate(order)}
    before: dict[int, list[int]] = {at: [] for at in order}
    for at in order:
        for way in ways(blocks[at][2]):
            before[way].append(at)
    nearest = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for at in order[1:]:
            meet = -1
            for other in before[at]:
                if other in nearest:
                    meet = other if meet < 0 else _meet(nearest, place, meet, other)
            if nearest.get(at) != meet:
                nearest[at], changed = meet, True
    return nearest


def dominates(nearest: Mapping[int, int], one: int, two: int) -> bool:
    """Whether the block ``one`` dominates ``two``."""
    while two != one:
        above = nearest[two]
        if above == two:
            return False
        two = above
    return True


def _meet(nearest: dict[int, int], place: dict[int, int], one: int, two: int) -> int:
    while one != two:
        while place[one] > place[two]:
            one = nearest[one]
        while place[two] > place[one]:
            two = nearest[two]
    return one


def operands(line: tuple[Any, ...]) -> tuple[int, ...]:
    """The registers that an instruction reads."""
    name = line[0]
    if name in _LEADING:
        return ()
    return line[_ACCESSES.get(name, 2) :]


def affine(made: Mapping[int, tuple[Any, ...]], kinds: Sequence[str], register: int) -> tuple[int, int]:
    """An int of 64 bits as another register and a constant offset; ``made`` has all instructions.

    >>> affine({5: ("const", 5, 2), 7: ("-", 7, 3, 5)}, ["int"] * 8, 7)
    (3, -2)
    """
    more = 0
    line = made.get(register)
    while line is not None and line[0] in ("+", "-") and kinds[line[1]] in _WORDS and kinds[line[2]] in _WORDS:
        known = made.get(line[3], ("",))
        if known[0] != "const" or type(known[2]) is not int:
            break
        more += known[2] if line[0] == "+" else -known[2]
        register = line[2]
        line = made.get(register)
    return register, more


class _Blocks:
    """A program's blocks while they change. ``same`` maps a register to its replacement."""

    def __init__(self, kinds: Sequence[str], blocks: Sequence[Block]) -> None:
        self.kinds = kinds
        self.same: dict[int, int] = {}
        self.parameters = [list(block[0]) for block in blocks]
        self.lines = [list(block[1]) for block in blocks]
        self.ends = [block[2] for block in blocks]
        self.order = reachable(blocks)

    def found(self, register: int) -> int:
        """The register that replaces this one."""
        same = self.same
        while register in same:
            register = same[register]
        return register

    def gather_leading(self) -> None:
        """Hoists constants and sizes to the start, once each."""
        leading: list[tuple[Any, ...]] = []
        known: dict[Any, int] = {}
        for at in self.order:
            rest = []
            for line in self.lines[at]:
                if line[0] not in _LEADING:
                    rest.append(line)
                    continue
                name, result, *more = line
                key = (name, self.kinds[result], *map(repr, more))
                if key in known:
                    self.same[result] = known[key]
                else:
                    known[key] = result
                    leading.append(line)
            self.lines[at] = rest
        self.lines[0] = leading + self.lines[0]

    def _edges(self) -> dict[int, list[tuple[int, int]]]:
        """The edges into each block: the predecessor, and the position of the arguments in its end."""
        edges: dict[int, list[tuple[int, int]]] = {at: [] for at in self.order}
        for at in self.order:
            end = self.ends[at]
            for position, way in zip((2,) if end[0] in ("jump", "back") else (3, 5), ways(end), strict=False):
                edges[way].append((at, position))
        return edges

    def drop_parameters(self) -> None:
        """Removes parameters with the same argument on all edges."""
        edges, same = self._edges(), self.same
        waiting: list[tuple[int, Sequence[int]]] = []  # parameters, with their argument on each edge
        for at in self.order:
            given = [self.ends[other][position] for other, position in edges[at]]
            if given:
                waiting += zip(self.parameters[at], zip(*given, strict=True), strict=True)
        before = -1
        while before != len(waiting):
            before = len(waiting)
            left = []
            for parameter, values in waiting:
                only = -1
                for value in values:
                    if value in same:
                        value = self.found(value)
                    if value != parameter and value != only:
                        if only >= 0:
                            left.append((parameter, values))
                            break
                        only = value
                else:
                    same[parameter] = only
            waiting = left
        for at in self.order:
            parameters = self.parameters[at]
            if any(parameter in same for parameter in parameters):
                kept = [place for place, parameter in enumerate(parameters) if parameter not in same]
                self.parameters[at] = [parameters[place] for place in kept]
                for other in {other for other, _ in edges[at]}:
                    self._give(other, at, kept)

    def _give(self, at: int, to: int, kept: Sequence[int]) -> None:
        end = list(self.ends[at])
        for position in (2,) if end[0] in ("jump", "back") else (3, 5):
            if end[position - 1] == to:
                end[position] = tuple(end[position][place] for place in kept)
        self.ends[at] = tuple(end)

    def merge(self) -> None:
        """Merges a block into its only predecessor, which has no other successor."""
        count = dict.fromkeys(self.order, 0)
        for at in self.order:
            for way in ways(self.ends[at]):
                count[way] += 1
        gone = set()
        for at in self.order:
            if at in gone:
                continue
            while self.ends[at][0] == "jump" and count[self.ends[at][1]] == 1 and self.ends[at][1] != 0:
                to = self.ends[at][1]
                self.lines[at] += self.lines[to]
                self.ends[at] = self.ends[to]
                gone.add(to)
        self.order = [at for at in self.order if at not in gone]

    def _instruction(self, line: tuple[Any, ...]) -> tuple[Any, ...]:
        read = operands(line)
        if self.same.keys().isdisjoint(read):
            return line
        return (*line[: len(line) - len(read)], *map(self.found, read))

    def share(self) -> None:
        """Eliminates common subexpressions across dominated blocks."""
        blocks: list[Block] = [((), (), end) for end in self.ends]
        nearest = dominators(blocks, self.order)
        tables: dict[int, dict[Any, int]] = {}
        for at in self.order:
            above = table = tables[at] = tables[nearest[at]] if at != self.order[0] else {}
            kept = []
            for old in self.lines[at]:
                line = self._instruction(old)
                name, result = line[:2]
                if name not in _ACCESSES and name not in _LEADING and name != "hold":
                    key = (name, self.kinds[result] if result >= 0 else "", line[2:])
                    if key in table:
                        if result >= 0:
                            self.same[result] = table[key]
                        continue
                    if table is above:
                        table = tables[at] = dict(above)
                    table[key] = result
                kept.append(line)
            self.lines[at] = kept

    def eliminate_dead_code(self) -> None:
        """Eliminates dead parameters, also those that are only carried, and dead constants and sizes."""
        for at in self.order:
            self.ends[at] = self._end(self.ends[at])
        needed: set[int] = set()
        waiting: list[int] = []
        for at in self.order:
            end = self.ends[at]
            waiting += [r for line in self.lines[at] for r in operands(line)]
            waiting += end[1] if end[0] == "exit" else (end[1],) if end[0] == "branch" else ()
        given: dict[int, list[int]] = {}
        edges = self._edges()
        for at in self.order:
            for place, parameter in enumerate(self.parameters[at]):
                given[parameter] = [self.ends[other][position][place] for other, position in edges[at]]
        while waiting:
            register = waiting.pop()
            if register not in needed:
                needed.add(register)
                waiting += given.get(register, ())
        for at in self.order:
            kept = [place for place, parameter in enumerate(self.parameters[at]) if parameter in needed]
            if len(kept) != len(self.parameters[at]):
                self.parameters[at] = [self.parameters[at][place] for place in kept]
                for other in {other for other, _ in edges[at]}:
                    self._give(other, at, kept)
        self.lines[0] = [line for line in self.lines[0] if line[0] not in _LEADING or line[1] in needed]

    def _end(self, end: tuple[Any, ...]) -> tuple[Any, ...]:
        found = self.found
        if end[0] in ("jump", "back"):
            return (end[0], end[1], tuple(map(found, end[2])))
        if end[0] == "branch":
            _, condition, yes, given, no, others = end
            return ("branch", found(condition), yes, tuple(map(found, given)), no, tuple(map(found, others)))
        return ("exit", tuple(map(found, end[1]))) if end[0] == "exit" else end

    def done(self) -> tuple[Block, ...]:
        """The remaining blocks, renumbered."""
        number = {at: place for place, at in enumerate(self.order)}
        made: list[Block] = []
        for at in self.order:
            end = self.ends[at]
            if end[0] in ("jump", "back"):
                end = (end[0], number[end[1]], end[2])
            elif end[0] == "branch":
                end = (end[0], end[1], number[end[2]], end[3], number[end[4]], end[5])
            made.append((tuple(self.parameters[at]), tuple(self.lines[at]), end))
        return tuple(made)


__all__ = ["affine", "dominates", "dominators", "operands", "reachable", "tidy"]
