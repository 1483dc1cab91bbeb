"""Merging of equal versions of blocks in scalar programs.

Input: a program as capture writes it, where each block takes all its operands as parameters.
Output: an equivalent program.
Why: capture specialises a block to each combination of kinds. Where ``s = 0.0`` is Python's float in the first
iteration and ``np.float64`` in all others, there are two versions of the loop, of its inner loops, and of all code
after it. Both kinds are 64 bits, and are added, multiplied and compared alike.

The algorithm is partition refinement: blocks are equal until their parameters, instructions or successors differ. Where
the kind of a number matters, it separates them as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tcompile.graph.ops.scalar_blocks import operands, reachable
from tcompile.graph.ops.scalar_loop import COMPARISONS, Block, Kind, Program, dtype_of, ways

# Instructions with the same result for all kinds with the same bits.
_ALIKE = frozenset((*COMPARISONS, "+", "-", "*", "&", "|", "^", "negative", "abs", "bool", "not", "int", "float"))
_SHORT = 3  # instructions
_MOVES = frozenset(("select", "load", "store", "more", "step", "require", "hold"))


def merge_versions(program: Program) -> Program:
    """Merges equal blocks of a program."""
    kinds, numbers, blocks, results = program
    found = _Versions(kinds, [_with_plain_condition(kinds, block) for block in blocks])
    return (kinds, numbers, found.done(), results) if found.refine() else program


def _with_plain_condition(kinds: Sequence[Kind], block: Block) -> Block:
    """A block that tests ``np.bool`` itself instead of its ``bool()``."""
    parameters, lines, end = block
    asked = end[1] if end[0] == "branch" and lines and lines[-1][:2] == ("bool", end[1]) else None
    if asked is None or _held(kinds[lines[-1][2]]) != "?" or asked in end[3] or asked in end[5]:
        return block
    return parameters, lines[:-1], ("branch", lines[-1][2], *end[2:])


@lru_cache(maxsize=64)
def _held(kind: Kind) -> str:
    """The bits of a register of a kind."""
    return dtype_of(kind).char


class _Versions:
    """Blocks while they are merged. ``group[block]`` is the representative of its class."""

    def __init__(self, kinds: Sequence[Kind], blocks: Sequence[Block]) -> None:
        self.kinds, self.blocks = kinds, blocks
        self.order = reachable(blocks)
        self.group: dict[int, int] = {}
        self.own: dict[int, dict[int, int]] = {}  # for each block, its registers and their positions
        self.parent: dict[int, int] = {}  # for blocks without parameters, the predecessor

    def refine(self) -> bool:
        """Splits classes until they are stable; returns whether some blocks are equal."""
        shapes = {at: self._shape(at) for at in self.order}
        alike = Counter(shapes.values())
        first: dict[Any, int] = {}
        for at, key in shapes.items():
            if alike[key] > 1:
                parameters, lines, _ = self.blocks[at]
                key = (key, tuple(_held(self.kinds[p]) for p in parameters), tuple(map(self._look, lines)))
            self.group[at] = first.setdefault(key, at)
        if len(first) == len(self.order):
            return False
        for at in self.order:
            self.own[at] = {register: n for n, register in enumerate(self._made(at))}
        before: dict[int, list[int]] = {at: [] for at in self.order}
        for at in self.order:
            for way in ways(self.blocks[at][2]):
                before[way].append(at)
        self.parent = {at: found[0] for at, found in before.items() if len(found) == 1 and not self.blocks[at][0]}
        reads = {at: self._reads(at) for at in self.order}
        count = len(first)
        while count < len(self.order):
            seen: dict[Any, int] = {}
            self.group = {
                at: seen.setdefault((self.group[at], reads[at], self._around(at)), at) for at in self.order
            }  # fmt: skip
            if len(seen) == count:
                return True
            count = len(seen)
        return False

    def _shape(self, at: int) -> Any:
        """A key that separates most blocks at once."""
        parameters, lines, end = self.blocks[at]
        return len(parameters), tuple(line[0] for line in lines), end[0]

    def _made(self, at: int) -> tuple[int, ...]:
        """The registers that a block defines."""
        parameters, lines, _ = self.blocks[at]
        return (*parameters, *(line[1] for line in lines if line[1] >= 0))

    def _look(self, line: tuple[Any, ...]) -> Any:
        """The part of an instruction that does not depend on its registers."""
        name, result = line[:2]
        kinds = self.kinds
        if name in ("const", "size"):
            return name, kinds[result], repr(line[2:])
        held = tuple(_held(kinds[r]) for r in operands(line))
        made = _held(kinds[result]) if result >= 0 else ""
        if name == "draw":
            return name, kinds[result], line[2:5], held
        if name in _MOVES:
            return name, made, line[2] if name in ("load", "store") else None, held
        if (name in _ALIKE or (name == "/" and held[0] in "fd")) and len(set(held)) == 1:
            return name, made, held
        return name, kinds[result], tuple(kinds[r] for r in operands(line))

    def _place(self, at: int, register: int) -> tuple[int, int]:
        """A register by its position in the block, or in a block before it, or itself."""
        steps, block = 0, at
        while True:
            place = self.own[block].get(register)
            if place is not None:
                return steps, place
            if block not in self.parent:
                return -1, register
            steps, block = steps + 1, self.parent[block]

    def _reads(self, at: int) -> Any:
        """The registers that a block reads."""
        _, lines, end = self.blocks[at]
        found = [self._place(at, r) for line in lines for r in operands(line)]
        if end[0] in ("exit", "branch"):
            found += [self._place(at, r) for r in (end[1] if end[0] == "exit" else (end[1],))]
        parts = [end[2]] if end[0] in ("jump", "back") else [end[3], end[5]] if end[0] == "branch" else []
        return tuple(found), tuple(tuple(self._place(at, r) for r in part) for part in parts)

    def _around(self, at: int) -> tuple[int, ...]:
        """The successors, and the predecessor that a block without parameters reads from."""
        group = self.group
        return (*(group[way] for way in ways(self.blocks[at][2])), group.get(self.parent.get(at, -1), -1))

    def _sides(self) -> set[int]:
        """The short blocks with only one predecessor, a test, whose other edge bypasses them.

        They are not merged: shared with another version they could not become a select (``scalar_choices``).
        """
        parents = set(self.parent.values())
        found = set()
        for at in self.order:
            end = self.blocks[at][2]
            for way, other in ((end[2], end[4]), (end[4], end[2])) if end[0] == "branch" else ():
                _, lines, leaves = self.blocks[way]
                if way in parents or len(lines) > _SHORT or leaves[0] not in ("jump", "back"):
                    continue
                after = self.blocks[other][2]
                ends = [other, after[1]] if after[0] in ("jump", "back") else [other]
                if self.group[leaves[1]] in [self.group[one] for one in ends]:
                    found.add(way)
        return found

    def done(self) -> tuple[Block, ...]:
        """The blocks, with edges between representatives."""
        sides = self._sides()
        group = {at: at if at in sides else first for at, first in self.group.items()}
        same = {
            register: other
            for at in self.order if group[at] != at
            for register, other in zip(self._made(at), self._made(group[at]), strict=True)
        }  # fmt: skip
        made = list(self.blocks)
        for at in self.order:
            parameters, lines, (*end,) = self.blocks[at]
            if group[at] != at:
                continue
            renamed = []
            for line in lines:
                start = len(line) - len(operands(line))
                renamed.append((*line[:start], *(same.get(r, r) for r in line[start:])))
            for place, part in enumerate(end):
                if isinstance(part, tuple):
                    end[place] = tuple(same.get(r, r) for r in part)
            if end[0] in ("jump", "back"):
                end[1] = group[end[1]]
            elif end[0] == "branch":
                end[1:5:1] = [same.get(end[1], end[1]), group[end[2]], end[3], group[end[4]]]
            made[at] = (parameters, tuple(renamed), tuple(end))
        return tuple(made)


__all__ = ["merge_versions"]
