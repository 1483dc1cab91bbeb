"""Store-to-load forwarding across iterations of scalar loops: carried elements stay in registers.

Input: a program.
Output: an equivalent program.
Why: recurrences (``d[i] = d[i] - w * d[i - 1]``) are bound by memory latency otherwise: a load of a recent store takes
as long as several additions.

An innermost range reads ``X[…, c + a]`` and writes ``X[…, c + a + step]`` in each iteration, ``c`` being its induction
variable, or it reads and then writes the same element in all of them (``c[i, j] += a[i, k] * b[k, j]``), and nothing
else there writes to that memory. Then the element is loaded once, before the loop, if there is any iteration, and each
iteration carries the stored value to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcompile.graph.ops.scalar_blocks import affine, dominates, dominators, operands, reachable
from tcompile.graph.ops.scalar_loop import Block, Program, dtype_of, ways


def carry(program: Program, root: Callable[[int], int]) -> Program:
    """Keeps such elements in registers; ``root(array)`` identifies the memory of an array."""
    if not any(line[0] == "store" for _, lines, _ in program[2] for line in lines):
        return program
    made = _Carrying(program, root)
    for header in list(made.loops):
        made.treat(header)
    return (tuple(made.kinds), program[1], tuple(made.blocks), program[3])


class _Carrying:
    """A program while elements are moved to registers. ``loops`` are the bodies of the innermost loops."""

    def __init__(self, program: Program, root: Callable[[int], int]) -> None:
        self.kinds, self.root = list(program[0]), root
        self.blocks: list[Block] = list(program[2])
        order = reachable(self.blocks)
        self.nearest = dominators(self.blocks, order)
        self.before: dict[int, list[int]] = {at: [] for at in order}
        for at in order:
            for way in ways(self.blocks[at][2]):
                self.before[way].append(at)
        self.made: dict[int, tuple[Any, ...]] = {}
        self.home: dict[int, int] = {}
        for at in order:
            self.home.update(dict.fromkeys(self.blocks[at][0], at))
            for line in self.blocks[at][1]:
                self.made[line[1]] = line
                self.home[line[1]] = at
        bodies: dict[int, set[int]] = {}
        for at in order:
            for header in ways(self.blocks[at][2]):
                if dominates(self.nearest, header, at):
                    bodies.setdefault(header, {header}).update(self._body(header, at))
        self.loops = {
            header: body for header, body in bodies.items()
            if not any(other in body for other in bodies if other != header)
        }  # fmt: skip

    def _body(self, header: int, at: int) -> set[int]:
        found, waiting = {header}, [at]
        while waiting:
            block = waiting.pop()
            if block not in found:
                found.add(block)
                waiting += self.before[block]
        return found

    def treat(self, header: int) -> None:
        """Carries the eligible elements of one loop."""
        body = self.loops[header]
        parameters, lines, end = self.blocks[header]
        if end[0] != "branch" or not lines or lines[-1][0] != "more" or lines[-1][2] not in parameters:
            return
        _, _, counter, stop, step = lines[-1]
        amount = self.made.get(step, ("",))
        outside = [at for at in self.before[header] if at not in body]
        back = [at for at in self.before[header] if at in body]
        known = amount[0] == "const" and self.home.get(stop) not in body
        if not known or len(outside) != 1 or self.blocks[outside[0]][2][0] != "jump":
            return
        stores = [line for at in body for line in self.blocks[at][1] if line[0] == "store"]
        moves = []
        for at in sorted(body - {header}):
            for line in self.blocks[at][1]:
                if line[0] != "load" or not all(dominates(self.nearest, at, other) for other in back):
                    continue
                alike = [store for store in stores if self.root(store[2]) == self.root(line[2])]
                if len(alike) == 1 and alike[0][2] == line[2] and self.kinds[alike[0][3]] == self.kinds[line[1]]:
                    where = next(other for other in body if alike[0] in self.blocks[other][1])
                    axes = self._follows(line, alike[0], counter, amount[2], body)
                    if axes is None or not all(dominates(self.nearest, where, other) for other in back):
                        continue
                    if axes or self._comes_first(line, at, alike[0], where):
                        moves.append((line, alike[0][3], axes))
        if moves:
            self._move(header, outside[0], moves)

    def _follows(
        self, load: tuple[Any, ...], store: tuple[Any, ...], counter: int, step: int, body: set[int]
    ) -> tuple[int, ...] | None:
        """The axis along which the load reads the store of the iteration before, unless both address one place."""
        axes: tuple[int, ...] = ()
        for place, (one, two) in enumerate(zip(load[3:], store[4:], strict=True)):
            (a, more), (b, further) = (affine(self.made, self.kinds, register) for register in (one, two))
            if a == b == counter and further == more + step and not axes:
                axes = (place,)
            elif a != b or more != further or self.home.get(a, 0) in body or self.home.get(one, 0) in body:
                return None
        return axes

    def _comes_first(self, load: tuple[Any, ...], at: int, store: tuple[Any, ...], where: int) -> bool:
        """Whether a load precedes a store in each iteration."""
        if at != where:
            return dominates(self.nearest, at, where)
        lines = self.blocks[at][1]
        return lines.index(load) < lines.index(store)

    def _register(self, kind: str) -> int:
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def _move(self, header: int, outside: int, moves: Sequence[tuple[tuple[Any, ...], int, tuple[int, ...]]]) -> None:
        """Hoists loads before the loop, and carries stored values."""
        parameters, lines, end = self.blocks[header]
        _, _, counter, stop, step = lines[-1]
        given = self.blocks[outside][2][2]
        start = given[parameters.index(counter)]
        carried = {load[1]: self._register(self.kinds[load[1]]) for load, _, _ in moves}
        gone = [load for load, _, _ in moves]
        values = tuple(carried.get(value, value) for _, value, _ in moves)
        self.blocks[header] = ((*parameters, *carried.values()), lines, end)
        for at, (own, rest, way) in enumerate(self.blocks):
            kept = tuple(_renamed(line, carried) for line in rest if line not in gone)
            going = list(_renamed_end(way, carried))
            for place in (2,) if way[0] in ("jump", "back") else (3, 5) if way[0] == "branch" else ():
                if going[place - 1] == header and at != outside:
                    going[place] = (*going[place], *values)
            self.blocks[at] = (own, kept, tuple(going))
        first: list[tuple[Any, ...]] = []
        test: list[tuple[Any, ...]] = []
        firsts, nothings = [], []
        for load, _, axes in moves:
            kind, places = self.kinds[load[1]], list(load[3:])
            for axis in axes:
                _, more = affine(self.made, self.kinds, places[axis])
                places[axis] = start
                if more:
                    distance, places[axis] = self._register("int"), self._register("int")
                    first += [("const", distance, more), ("+", places[axis], start, distance)]
            firsts.append(self._register(kind))
            nothings.append(self._register(kind))
            first.append(("load", firsts[-1], load[2], *places))
            test.append(("const", nothings[-1], dtype_of(kind).type(0).item()))
        some = self._register("bool")
        test.append(("more", some, start, stop, step))
        own, rest, _ = self.blocks[outside]
        self.blocks[outside] = (
            own, (*rest, *test), ("branch", some, len(self.blocks), (), header, (*given, *nothings)),
        )  # fmt: skip
        self.blocks.append(((), tuple(first), ("jump", header, (*given, *firsts))))


def _renamed(line: tuple[Any, ...], names: Mapping[int, int]) -> tuple[Any, ...]:
    start = len(line) - len(operands(line))
    return (*line[:start], *(names.get(register, register) for register in line[start:]))


def _renamed_end(end: tuple[Any, ...], names: Mapping[int, int]) -> tuple[Any, ...]:
    parts = [tuple(names.get(r, r) for r in part) if isinstance(part, tuple) else part for part in end]
    if end[0] == "branch":
        parts[1] = names.get(end[1], end[1])
    return tuple(parts)


__all__ = ["carry"]
