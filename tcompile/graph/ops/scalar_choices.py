"""If-conversion in scalar loops: a branch whose sides only differ in a value becomes a select.

Input: a simplified program (``tidy``).
Output: an equivalent program.
Why: a data-dependent branch is mispredicted half of the time, which costs as much as dozens of operations. A body of
one block can be vectorised, too.

The sides may pass on different values (``if x[i] > m: m = x[i]``), store different values in the same place, or add to
a value that the other side leaves unchanged (``if x[i] > 0: s += x[i]``). The last becomes the sum of a select: adding
minus zero to a float changes none of its bits and raises no flag. A few bit operations, which cannot fail, are
speculated on both sides (``c = c >> 1 ^ p if c & 1 else c >> 1``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tcompile.graph.ops.scalar_blocks import operands, reachable, tidy
from tcompile.graph.ops.scalar_loop import Block, Program, dtype_of, ways
from tcompile.records import dataclass

_MOST = 2  # values that a test may select: each select depends on both
_MOST_AHEAD = 4  # operations that may be speculated in vain
_OF_BITS = ("&", "|", "^", ">>")


def choose(program: Program, root: Callable[[int], int]) -> Program:
    """Converts such tests to selects; ``root(array)`` identifies the memory of an array."""
    made = _Choosing(program, root)
    changed = False
    while made.find():
        changed = True
    return tidy((tuple(made.kinds), program[1], tuple(made.blocks), program[3])) if changed else program


@dataclass(frozen=True)
class _Side:
    """One side of a branch: its target, kind of jump, arguments, and its instructions, if any."""

    kind: str
    target: int
    given: tuple[int, ...]
    lines: tuple[tuple[Any, ...], ...] = ()


class _Choosing:
    """A program while its tests become selects."""

    def __init__(self, program: Program, root: Callable[[int], int]) -> None:
        self.kinds, self.root = list(program[0]), root
        self.blocks: list[Block] = list(program[2])
        self.constants = {line[1]: line[2] for _, lines, _ in self.blocks for line in lines if line[0] == "const"}

    def find(self) -> bool:
        """Converts one test; returns whether there was one."""
        order = reachable(self.blocks)
        leading = Counter(way for at in order for way in ways(self.blocks[at][2]))
        for at in order:
            end = self.blocks[at][2]
            if end[0] != "branch":
                continue
            direct = [_Side("jump", end[2], end[3]), _Side("jump", end[4], end[5])]
            sides = [self._side(at, side) if leading[side.target] == 1 else side for side in direct]
            for one, two in ((sides[0], sides[1]), (sides[0], direct[1]), (direct[0], sides[1])):
                if (one.kind, one.target) == (two.kind, two.target) and self._chosen(at, end[1], one, two):
                    return True
        return False

    def _side(self, at: int, side: _Side) -> _Side:
        """The side past a block with only one predecessor: its loads precede the test already."""
        parameters, lines, end = self.blocks[side.target]
        if parameters or end[0] not in ("jump", "back"):
            return side
        known: dict[tuple[Any, ...], int] = {}
        for line in self.blocks[at][1]:
            if line[0] == "load":
                known[line[2:]] = line[1]
            elif line[0] == "store":
                known = {place: held for place, held in known.items() if self.root(place[0]) != self.root(line[2])}
        same: dict[int, int] = {}
        left: list[tuple[Any, ...]] = []
        for line in lines:
            if line[0] == "load" and line[2:] in known and not left:
                same[line[1]] = known[line[2:]]
            else:
                start = len(line) - len(operands(line))
                left.append((*line[:start], *(same.get(register, register) for register in line[start:])))
        return _Side(end[0], end[1], tuple(same.get(register, register) for register in end[2]), tuple(left))

    def _chosen(self, at: int, condition: int, yes: _Side, no: _Side) -> bool:
        """Converts both sides to selects, where possible."""
        if not yes.lines and not no.lines and yes.given == no.given:
            return self._replace(at, [], yes, yes.given)
        parts = [self._split(side.lines) for side in (yes, no)]
        added = [line for ahead, _ in parts for line in ahead]
        if len(added) > _MOST_AHEAD:
            return False
        lines = [rest for _, rest in parts]
        stores = [rest.pop() for rest in lines if rest and rest[-1][0] == "store"]
        if len(stores) == 2:
            (_, _, one, first, *places), (_, _, two, second, *others) = stores
            if lines[0] or lines[1] or one != two or places != others:
                return False
            value = self._choice(added, condition, first, second, self.kinds[first])
            if value is None:
                return False
            added.append(("store", -1, one, value, *places))
        elif stores or len(lines[0]) + len(lines[1]) > 1:
            return False
        pairs = {(first, second): first for first, second in zip(yes.given, no.given, strict=True) if first == second}
        for rest, is_yes in ((lines[0], True), (lines[1], False)):
            if rest:
                found = self._sum(added, condition, rest[0], yes, no, is_yes)
                if found is None:
                    return False
                pairs[found] = found[not is_yes]
        values = []
        for parameter, pair in zip(self.blocks[yes.target][0], zip(yes.given, no.given, strict=True), strict=True):
            value = pairs[pair] if pair in pairs else self._choice(added, condition, *pair, self.kinds[parameter])
            if value is None:
                return False
            values.append(value)
        if sum(line[0] == "select" for line in added) > _MOST:
            return False
        return self._replace(at, added, yes, tuple(values))

    def _split(self, lines: Sequence[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Splits the instructions of a side into those that may be speculated, and the others."""
        ahead: list[tuple[Any, ...]] = []
        rest: list[tuple[Any, ...]] = []
        for line in lines:
            waits = any(other[1] in operands(line) for other in rest)
            (rest if waits or not self._cannot_fail(line) else ahead).append(line)
        return ahead, rest

    def _cannot_fail(self, line: tuple[Any, ...]) -> bool:
        """Whether an instruction works on bits, and gives a result for any operands."""
        if line[0] not in _OF_BITS:
            return False
        dtypes = {dtype_of(self.kinds[register]) for register in line[1:]}
        dtype = dtypes.pop()
        if dtypes or dtype.kind not in "iub":
            return False
        shift: int = self.constants.get(line[3], -1) if line[0] == ">>" else 0
        return 0 <= shift < dtype.itemsize * 8

    def _sum(
        self, added: list[tuple[Any, ...]], condition: int, line: tuple[Any, ...], yes: _Side, no: _Side, is_yes: bool
    ) -> tuple[int, int] | None:
        """The sum for both sides, where one adds to the value that the other passes on."""
        if line[0] not in ("+", "-"):
            return None
        result, one, two = line[1:]
        found = [pair for pair in zip(yes.given, no.given, strict=True) if pair[not is_yes] == result]
        if len(found) != 1 or found[0][is_yes] not in ((one, two) if line[0] == "+" else (one,)) or one == two:
            return None
        base = found[0][is_yes]
        more = two if base == one else one
        dtypes = {dtype_of(self.kinds[register]) for register in (result, one, two)}
        dtype = dtypes.pop()
        if dtypes or dtype.kind not in "if":
            return None
        nothing, chosen = self._register(self.kinds[more]), self._register(self.kinds[more])
        added.append(("const", nothing, 0 if dtype.kind == "i" else -0.0 if line[0] == "+" else 0.0))
        added.append(("select", chosen, condition, *((more, nothing) if is_yes else (nothing, more))))
        added.append((line[0], result, *((base, chosen) if base == one else (chosen, base))))
        return found[0]

    def _choice(self, added: list[tuple[Any, ...]], condition: int, yes: int, no: int, kind: str) -> int | None:
        """A register that selects one of two values; None where they differ in type."""
        if len({dtype_of(k) for k in (kind, self.kinds[yes], self.kinds[no])}) > 1:
            return None
        made = self._register(kind)
        added.append(("select", made, condition, yes, no))
        return made

    def _register(self, kind: str) -> int:
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def _replace(self, at: int, added: list[tuple[Any, ...]], side: _Side, values: tuple[int, ...]) -> bool:
        parameters, lines, _ = self.blocks[at]
        self.blocks[at] = (parameters, (*lines, *added), (side.kind, side.target, values))
        return True


__all__ = ["choose"]
