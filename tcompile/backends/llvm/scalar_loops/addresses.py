"""Addresses of scalar loops, hoisted as far out as their operands allow.

Input: the indices of an element, in units of an array's memory.
Output: its address.
Why: a row's address is invariant in the loop over its columns, and LLVM's passes do not run to hoist it.

A part of an address is written once, at the end of the block that dominates its uses and defines its operands. Constant
offsets are added last, where they fold into the load or store.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcompile.backends.llvm.scalar_loops.loop_nest import LoopNest
from tcompile.backends.llvm.vector.text import Writer
from tcompile.records import dataclass

ENTRY = -1  # the block of constants and arguments


@dataclass(frozen=True)
class HoistedValue:
    """A value, and the block at whose end it is known."""

    name: str
    block: int


@dataclass(frozen=True)
class Term:
    """An index times a step: ``more`` is added to the index.

    ``checked``: it is in range wherever it is known, not only after a comparison.
    """

    index: HoistedValue
    step: str
    more: int = 0
    checked: bool = True


class AddressWriter:
    """Emits computations that depend on registers alone. ``made`` says in which blocks these are defined."""

    def __init__(self, w: Writer, shape: LoopNest, made: dict[int, int]) -> None:
        self.w, self.nest, self.blocks = w, shape, made
        for at in shape.order:
            parameters, lines, _ = shape.blocks[at]
            made.update(dict.fromkeys(parameters, at))
            made.update((line[1], ENTRY if line[0] in ("const", "size") else at) for line in lines)
        self.now = ENTRY
        self._tails: dict[int, tuple[int, list[str]]] = {}
        self._found: dict[str, list[tuple[int, bool, str]]] = {}
        self._passed: dict[tuple[str, str], list[int]] = {}

    def enter(self, block: int) -> None:
        """Begins a block of the program."""
        self.now = block

    def leave(self) -> None:
        """Marks the end of the block's instructions: hoisted computations of later blocks go here."""
        self.w.lines.append("")
        self._tails[self.now] = (len(self.w.lines) - 1, [])

    def close(self) -> None:
        """Emits the hoisted computations at the ends of the blocks."""
        for line, texts in self._tails.values():
            self.w.lines[line] = "\n".join(texts)

    def is_passed(self, index: str, size: str) -> bool:
        """Whether a dominating check found an index to be in range; from here on it is."""
        blocks = self._passed.setdefault((index, size), [])
        if any(self.nest.dominates(block, self.now) for block in blocks):
            return True
        blocks.append(self.now)
        return False

    def pure(self, text: str, block: int) -> HoistedValue:
        """The result of an instruction without effects, whose operands are known from the end of ``block`` on."""
        if block == ENTRY:
            return HoistedValue(self.w.at_entry(text), ENTRY)
        shape = self.nest
        for where, at_end, name in self._found.get(text, ()):
            if (where != self.now or not at_end) and shape.dominates(where, self.now):
                return HoistedValue(name, where)
        at_end = shape.depth[block] < shape.depth[self.now]
        where = block if at_end else self.now
        name = self.w.name("u") if at_end else self.w.get(text)
        if at_end:
            self._tails[block][1].append(f"  {name} = {text}")
        self._found.setdefault(text, []).append((where, at_end, name))
        return HoistedValue(name, where)

    def later(self, one: int, two: int) -> int:
        """The later one of two blocks that dominate this one."""
        return two if one == ENTRY or (two != ENTRY and self.nest.dominates(one, two)) else one

    def address(self, start: str, unit: str, terms: Sequence[Term]) -> str:
        """The address of the element with these indices."""
        depth, last = self.nest.depth, 0
        address = HoistedValue(start, ENTRY)
        moving = []
        for term in sorted(terms, key=lambda term: depth.get(term.index.block, -1)):
            known, more = _known(term.step), term.more
            if _known(term.index.name):
                more += int(term.index.name)
            else:
                moving.append(term)
            if known:
                last += int(term.step) * more
            elif more:
                far = self.pure(f"mul nsw i64 {term.step}, {more}", ENTRY)
                address = self.pure(f"getelementptr {unit}, ptr {address.name}, i64 {far.name}", ENTRY)
        flag = "inbounds " if not last and all(term.checked for term in terms) else ""
        for term in moving:
            index = term.index
            if term.step != "1":
                index = self.pure(f"mul nsw i64 {index.name}, {term.step}", index.block)
            block = self.later(address.block, index.block)
            address = self.pure(f"getelementptr {flag}{unit}, ptr {address.name}, i64 {index.name}", block)
        return address.name if not last else self.w.get(f"getelementptr {unit}, ptr {address.name}, i64 {last}")


def _known(step: str) -> bool:
    return step.lstrip("-").isdigit()


__all__ = ["ENTRY", "AddressWriter", "Term"]
