"""The loops of a scalar program, their poll budget, and their dependent iterations.

Input: the blocks of a program, and the sizes of its arrays where they are known.
Output: a ``LoopNest``: the blocks in order, the back edges, nesting depths, and the work that each loop takes from the
budget between two polls.
Why: a poll per iteration would cost as much as many an iteration does, and counters in every loop are code that LLVM
has to compile.

The budget is in units of work: about one unit an instruction. A range with a small known trip count pays nothing
itself; the enclosing loop pays for all of its iterations. An innermost range with a large trip count is strip-mined,
and each strip is paid for at its start.

Strips also split dependences. In ``d[i, j] = min(d[i, j], d[i, k] + d[k, j])`` the iterations over j depend on one
another only where j is k. One strip ends before that iteration, one is that iteration alone, and one is the rest. In
the long ones no iteration reads what another has written, which the vectorised loop checks once a strip, at run time
(index set splitting: Allen and Kennedy, Optimizing Compilers for Modern Architectures, 2001, section 5.7).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcompile.backends.llvm.scalar_loops.ranges import Ranges
from tcompile.graph.ops.scalar_blocks import affine, dominates, operands, reachable
from tcompile.graph.ops.scalar_loop import ARITHMETIC, COMPARISONS, Block, dtype_of, is_called, ways
from tcompile.records import dataclass

_FREE_INSIDE = 1 << 16  # units that an inner loop may take without a poll
_FREE_OUTSIDE = 1 << 22  # and a loop that runs once
_SLOW = ("**", "%", "//")
RAISING = (*ARITHMETIC, "np.sqrt", "math.sqrt", "float", "np.float64")  # which may raise floating-point flags
_SAME = ("negative", "positive", "float", "np.float64", "np.float32")  # LLVM sees the same number in operand and result
_SMALL_STEP = 1 << 30
_FEW = 8  # too few iterations to vectorise


@dataclass(frozen=True)
class _Along:
    """The last index of an element: the induction variable of a loop, or (``moves`` is false) an invariant, and a
    number that is added.

    ``outer`` are the other indices, likewise.
    """

    moves: bool
    register: int
    more: int
    outer: tuple[tuple[int, int], ...]


class LoopNest:
    """A program's loops, by their headers.

    ``bodies`` are their blocks, ``back`` the back edges, ``depth`` the nesting depth of a block, ``within`` its
    innermost loop. ``irreducible`` are the edges that close irreducible cycles, which no block dominates, and what they
    pay. ``pays`` is the cost of a back edge, or of an iteration of a strip: ``strips`` has the induction variable, the
    bound and the step of strip-mined ranges. ``dependent_iterations`` are the innermost ranges that can be vectorised,
    each with the iterations that have to run alone, as registers and added numbers. ``kept`` are the floats that are
    dead to LLVM, but computed for their flags.
    """

    def __init__(self, kinds: Sequence[str], blocks: Sequence[Block], size: Callable[[int, int], int | None]) -> None:
        self.blocks = blocks
        self.order = reachable(blocks)
        self.ranges = Ranges(kinds, blocks, self.order, size)
        self.nearest = self.ranges.nearest
        self.back = {
            (at, way) for at in self.order for way in ways(blocks[at][2]) if self.dominates(way, at)
        }  # fmt: skip
        self._place = {at: number for number, at in enumerate(self.order)}
        self.irreducible = self._irreducible()
        self.bodies = self._bodies()
        smallest = sorted(self.bodies, key=lambda header: len(self.bodies[header]))
        self.within: dict[int, int | None] = {
            at: next((header for header in smallest if at in self.bodies[header]), None) for at in self.order
        }
        self.depth = {at: sum(at in body for body in self.bodies.values()) for at in self.order}
        self.unknown = self._unknown()
        self.kept = self._kept(self._read())
        self.pays: dict[int, int] = {}
        self.strips: dict[int, tuple[int, int, int]] = {}
        innermost = [h for h, body in self.bodies.items() if not any(o in body for o in self.bodies if o != h)]
        found = {header: self._dependent_iterations(header) for header in innermost}
        self.dependent_iterations = {
            header: dependent_iterations
            for header, dependent_iterations in found.items()
            if dependent_iterations is not None
        }
        self._share_costs(smallest)

    def dominates(self, one: int, two: int) -> bool:
        """Whether the block ``one`` dominates ``two``."""
        return dominates(self.nearest, one, two)

    def _irreducible(self) -> dict[tuple[int, int], int]:
        """The edges that close an irreducible cycle, with the work of the blocks between.

        Such a cycle is a loop whose first iteration enters an inner loop elsewhere than its later ones.
        """
        place = self._place
        work = [1 + sum(_weight(line) for line in self.blocks[at][1]) for at in self.order]
        return {
            (at, way): sum(work[place[way] : place[at] + 1])
            for at in self.order
            for way in ways(self.blocks[at][2])
            if place[way] <= place[at] and (at, way) not in self.back
        }

    def may_run_again(self, at: int) -> bool:
        """Whether a block may run again: it is in a loop, or between the ends of an irreducible cycle."""
        place = self._place
        return bool(self.depth[at]) or any(place[way] <= place[at] <= place[end] for end, way in self.irreducible)

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
        """Decides which loop pays for what, from the innermost loops outwards."""
        costs = dict.fromkeys(self.bodies, 1)
        for at in self.order:
            loop = self.within[at]
            if loop is not None:
                costs[loop] += sum(_weight(line) for line in self.blocks[at][1])
        for header in smallest:
            around = self._around(header)
            iterations = self.ranges.iterations(header) if self._counts(header) else None
            total = None if iterations is None else max(iterations, 0) * costs[header]
            if total is not None and total <= (_FREE_OUTSIDE if around is None else _FREE_INSIDE):
                self.pays[header] = 0
                if around is not None:
                    costs[around] += total
            else:
                self.pays[header] = costs[header]
            innermost = not any(other in self.bodies[header] for other in self.bodies if other != header)
            strip = self._range(header) if innermost else None
            if strip is not None and (self.pays[header] or header in self.dependent_iterations):
                self.strips[header] = strip

    # -- flags of dead floats
    # ----------------------------------------------------------------------------------------------
    def _unknown(self) -> set[int]:
        """The numbers of which LLVM knows neither sign nor bound: elements, arguments, and these negated."""
        lines = [line for at in self.order for line in self.blocks[at][1]]
        found = {register for line in lines for register in operands(line)} - self.ranges.made.keys()
        found -= {parameter for at in self.order for parameter in self.blocks[at][0]}
        found |= {line[1] for line in lines if line[0] in ("load", "draw")}
        before = -1
        while before != len(found):
            before = len(found)
            for at in self.order:
                for _, _, values in self.ranges.arms[at]:
                    pairs = zip(self.blocks[at][0], values, strict=True)
                    found.update(parameter for parameter, register in pairs if register in found)
                found.update(line[1] for line in self.blocks[at][1] if line[0] in _SAME and line[2] in found)
        return found

    def _may_be_decided(self, condition: int) -> bool:
        """Whether LLVM may fold a comparison, so that its operands are not even computed."""
        line = self.ranges.made.get(condition, ("",))
        while line[0] == "bool":
            line = self.ranges.made.get(line[2], ("",))
        return line[0] in COMPARISONS and self.unknown.isdisjoint(line[2:])

    def _depends(self, line: tuple[Any, ...]) -> Sequence[int]:
        """The registers that are computed wherever a result is."""
        if line[0] in COMPARISONS and self._may_be_decided(line[1]):
            return ()
        return () if line[0] == "select" and self._may_be_decided(line[2]) else operands(line)

    def _read(self) -> set[int]:
        """The live registers: stored or passed on values, their addresses, and conditions of branches.

        A test with two equal edges decides nothing.
        """
        of: dict[int, list[int]] = {}  # the operands of floats, bools and parameters
        waiting: list[int] = []
        for at in self.order:
            parameters, lines, end = self.blocks[at]
            for line in lines:
                if line[0] == "hold":  # reads nothing while the loop runs
                    continue
                (of.setdefault(line[1], []) if self._is_pure(line) else waiting).extend(self._depends(line))
            for _, _, given in self.ranges.arms[at]:
                for parameter, register in zip(parameters, given, strict=True):
                    of.setdefault(parameter, []).append(register)
            if end[0] == "branch" and self._goal(*end[2:4]) != self._goal(*end[4:]):
                waiting.append(end[1])
            elif end[0] == "exit":
                waiting.extend(end[1])
        found: set[int] = set()
        while waiting:
            register = waiting.pop()
            if register not in found:
                found.add(register)
                waiting += of.get(register, ())
        return found

    def _is_pure(self, line: tuple[Any, ...]) -> bool:
        """Whether an instruction only gives a float or a bool."""
        does = line[0] in ("load", "store", "draw", "require")
        return not does and dtype_of(self.ranges.kinds[line[1]]).kind in "bf"

    def _kept(self, read: set[int]) -> set[int]:
        """The floats that have to be kept for their flags: nothing in their own block depends on them.

        LLVM eliminates dead code, and sinks a value past a test into the block that uses it: there it would raise flags
        in some iterations only.
        """
        kept: set[int] = set()
        for at in self.order:
            _, lines, end = self.blocks[at]
            here = {end[1]} if end[0] == "branch" else set(end[1] if end[0] == "exit" else end[2] if end[2:] else ())
            here &= read
            for line in reversed(lines):
                if line[0] == "hold":
                    continue
                if self._is_pure(line) and line[1] not in here:
                    if line[0] not in RAISING or dtype_of(self.ranges.kinds[line[1]]).kind != "f":
                        continue
                    kept.add(line[1])
                    here.update(operands(line))
                else:
                    here.update(self._depends(line))
        return kept

    def _goal(self, way: int, given: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """The target of an edge, past empty blocks."""
        parameters, lines, end = self.blocks[way]
        return (way, given) if parameters or lines or end[0] != "jump" else self._goal(*end[1:])

    def _dependent_iterations(self, header: int) -> list[tuple[int, int]] | None:
        """The iterations that depend on others, where those are few and accesses are contiguous; None otherwise."""
        found, body = self._range(header), self.bodies[header]
        iterations = self.ranges.iterations(header)
        if found is None or abs(found[2]) != 1 or (iterations is not None and iterations < _FEW):
            return None
        counter = found[0]
        if any(self.ranges.full[p] is None for p in self.blocks[header][0]):
            return None
        lines = [line for at in body for line in self.blocks[at][1]]
        inside = {line[1] for line in lines} | {p for at in body for p in self.blocks[at][0]}
        if any(line[0] in _SLOW or is_called(line[0]) for line in lines):
            return None
        stores: dict[int, list[_Along | None]] = {}
        for line in lines:
            if line[0] == "store":
                stores.setdefault(line[2], []).append(self._along(line[4:], counter, inside))
        told = [along for row in stores.values() for along in row]
        if not told or any(along is None or not along.moves for along in told):
            return None
        dependent_iterations: dict[tuple[int, int], None] = {}
        for line in lines:
            if line[0] == "load":
                along = self._along(line[3:], counter, inside)
                if along is None:
                    return None
                for other in stores.get(line[2], ()):
                    assert other is not None
                    if along.moves and along.more != other.more and along.outer == other.outer:
                        return None  # an iteration reads an element that another one has written
                    if not along.moves and dtype_of(self.ranges.kinds[along.register]).name == "int64":
                        dependent_iterations[along.register, along.more - other.more] = None
        return list(dependent_iterations)

    def _along(self, places: Sequence[int], counter: int, inside: set[int]) -> _Along | None:
        """The access of elements of which the last index alone may change between iterations, with the induction
        variable.
        """
        *outer, (register, more) = (affine(self.ranges.made, self.ranges.kinds, place) for place in places)
        moves = register == counter
        if any(place in inside for place, _ in outer) or (register in inside and not moves):
            return None
        return _Along(moves, register, more, tuple(outer))

    def _counts(self, header: int) -> bool:
        """Whether each back edge passes the range's next number to its header."""
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
        """The induction variable, the bound and the step of the range with this header.

        None where the header itself computes the bound, which is needed before it.
        """
        parameters, lines, end = self.blocks[header]
        if end[0] != "branch" or not lines or lines[-1][0] != "more" or end[1] != lines[-1][1]:
            return None
        _, _, at, stop, step = lines[-1]
        amount = self.ranges.made.get(step, ("",))
        if amount[0] != "const" or abs(amount[2]) > _SMALL_STEP or at not in parameters:
            return None
        if any(line[1] == stop for line in lines):
            return None
        return (at, stop, amount[2])


def _weight(line: tuple[Any, ...]) -> int:
    """The cost of an instruction, in units of about an addition."""
    if line[0] in ("const", "size", "hold"):
        return 0
    return 20 if line[0] in _SLOW or is_called(line[0]) else 1


__all__ = ["LoopNest"]
