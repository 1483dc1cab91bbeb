"""What is known of a scalar loop's program before it is reversed: what is active, and what lives from block to block.

Input: a program, and which of its arrays and numbers are differentiated.
Output: ``Plan``.
Why: tapes, bounds of their lengths and the backward program all ask for it (``programs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from tcompile.graph.ops.scalar_blocks import operands, reachable
from tcompile.graph.ops.scalar_loop import Program, dtype_of, ways
from tcompile.records import dataclass

INTS, FLOATS = 0, 1  # the tapes


@dataclass
class Needed:
    """The registers of ints (and bools), and of floats, whose values a backward block needs, in order."""

    ints: dict[int, None] = field(default_factory=dict)
    floats: dict[int, None] = field(default_factory=dict)


class Plan:
    """What is known of a program before it is reversed."""

    def __init__(
        self, program: Program, shows: Sequence[tuple[int, str]], roots: set[int], numbers: set[int],
        cotangents: set[int],
    ) -> None:  # fmt: skip
        self.program, self.cotangents = program, cotangents
        self.shows, self.elements = [root for root, _ in shows], [kind for _, kind in shows]
        self.kinds, self.numbers, self.blocks, _ = program
        self.order = reachable(self.blocks)
        self.made = {line[1]: line for at in self.order for line in self.blocks[at][1] if line[1] >= 0}
        self.before: dict[int, list[tuple[int, int]]] = {at: [] for at in self.order}  # edges: block, place in its end
        for at in self.order:
            end = self.blocks[at][2]
            for place, way in zip(_places(end), ways(end), strict=True):
                self.before[way].append((at, place))
        self.exits = [at for at in self.order if self.blocks[at][2][0] == "exit"]
        self.active, self.roots = set(numbers), set(roots)
        self._spread()
        self.written = {
            array for at in self.order for line in self.blocks[at][1] if line[0] in ("store", "draw")
            for array, root in enumerate(self.shows) if root == self.shows[line[2]]
        }  # fmt: skip
        accessed = [line[2] for at in self.order for line in self.blocks[at][1] if line[0] in ("load", "store")]
        self.arrays = [array for array in dict.fromkeys(accessed) if self.shows[array] in self.roots]
        self.results = [register for register in self.numbers if register in numbers]
        self.inside: dict[int, set[int]] = {at: set() for at in self.order}  # active registers that live before blocks
        self.handed: dict[int, list[int]] = {at: [] for at in self.order}  # those that blocks hand on
        self._find_live()

    def _spread(self) -> None:
        """Finds the registers and the operands that depend on what is differentiated."""
        count = -1
        while count != len(self.active) + len(self.roots):
            count = len(self.active) + len(self.roots)
            for at in self.order:
                for line in self.blocks[at][1]:
                    if line[0] == "store" and line[3] in self.active:
                        if dtype_of(self.elements[line[2]]).kind == "f":
                            self.roots.add(self.shows[line[2]])
                    elif line[1] >= 0 and self.is_float(line[1]) and self._depends(line):
                        self.active.add(line[1])
                for parameter, given in self._edges(at):
                    if given in self.active and self.is_float(parameter):
                        self.active.add(parameter)

    def _depends(self, line: tuple[Any, ...]) -> bool:
        if line[0] == "load":
            return self.shows[line[2]] in self.roots
        return line[0] != "draw" and not self.active.isdisjoint(operands(line))

    def is_float(self, register: int) -> bool:
        """Whether a register holds a float."""
        return dtype_of(self.kinds[register]).kind == "f"

    def _edges(self, at: int) -> list[tuple[int, int]]:
        """The parameters of the blocks after one, and what they are given."""
        end = self.blocks[at][2]
        return [
            pair for place, way in zip(_places(end), ways(end), strict=True)
            for pair in zip(self.blocks[way][0], end[place], strict=True)
        ]  # fmt: skip

    def _find_live(self) -> None:
        changed = True
        while changed:
            changed = False
            for at in reversed(self.order):
                parameters, lines, end = self.blocks[at]
                given = {register for _, register in self._edges(at)} | set(end[1] if end[0] == "exit" else ())
                out = given & self.active
                for way in ways(end):
                    out |= self.inside[way]
                alive = set(out)
                for line in reversed(lines):
                    alive.discard(line[1])
                    if line[0] != "hold":
                        alive |= self.active.intersection(operands(line))
                alive -= set(parameters)
                if alive != self.inside[at] or sorted(out) != self.handed[at]:
                    self.inside[at], self.handed[at], changed = alive, sorted(out), True


def _places(end: tuple[Any, ...]) -> tuple[int, ...]:
    """Where the arguments of a block's successors stand in its end."""
    return (2,) if end[0] in ("jump", "back") else (3, 5) if end[0] == "branch" else ()


__all__ = ["FLOATS", "INTS", "Needed", "Plan"]
