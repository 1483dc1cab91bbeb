"""Reverse mode of the programs of scalar loops: a program that records its way, and one that goes back.

Input: a program, and which of its arrays and numbers are differentiated.
Output: the same program with tapes, and the program that reads the tapes backwards.
Why: a loop over elements with branches, early exits and ``while`` loops in it is differentiated as one loop, in machine
code. Its compile time does not depend on the trip count, and each call may take another path.

This is reverse mode of a control-flow graph (Griewank and Walther, Evaluating Derivatives, 2008, chapters 3 and 4;
Hascoët and Pascual, The Tapenade automatic differentiation tool, 2013). Each block has a backward block, which goes
through its instructions from the last to the first. The backward block's parameters are the cotangents of the registers
that the block hands on. The program writes two tapes: one of ints, with the edges by which blocks with several
predecessors were entered and the ints that backward blocks need, and one of floats. Their lengths are carried in
registers. Cotangents are float64; those of arrays are arrays, to which loads add, and which stores set to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcompile.errors import DerivativeError
from tcompile.graph.ops.scalar_blocks import affine, tidy
from tcompile.graph.ops.scalar_loop import Block, Program, dtype_of
from tcompile.graph.sizes import Size
from tcompile.records import dataclass
from tcompile.transforms.autodiff.program_bounds import Counts, Number
from tcompile.transforms.autodiff.program_plan import FLOATS, INTS, Needed, Plan
from tcompile.transforms.autodiff.program_rules import FLOAT, RULES


@dataclass(frozen=True)
class Reversed:
    """A program with tapes, and the program that goes back.

    Attributes:
        forward: the program. Its last two arrays are the tapes, of ints and of floats, and its last two results their
            lengths. Its last two numbers are ``room``.
        backward: the program that goes back.
        room: how many numbers the tapes hold.
        runs: how many blocks the backward program runs at most; None where that is not known.
        numbers: what the backward program's numbers are: ``("length", tape)``, ``("cotangent", result)``,
            ``("number", register)``, ``("size", array, axis)``, ``("room", tape)``.
        arrays: what its arrays are: ``("tape", tape)``, ``("cotangent", array)``, and ``("source", array)``, one of the
            program itself.
        results: the registers of the differentiated numbers, whose cotangents the backward program returns.
    """

    forward: Program
    backward: Program
    room: tuple[Size, Size]
    runs: Size | None
    numbers: Sequence[Number]
    arrays: Sequence[tuple[str, int]]
    results: Sequence[int]


def reverse(
    program: Program, shows: Sequence[tuple[int, str]], roots: set[int], numbers: set[int], cotangents: set[int],
    known: Callable[[Number], Size | None], runs: Size | None, room: int,
) -> Reversed:  # fmt: skip
    """Reverses a program.

    Args:
        program: the program.
        shows: for each of its arrays, the number of the operand that it shows, and the kind of its elements.
        roots: the numbers of the operands that are differentiated.
        numbers: the registers of the program's numbers that are.
        cotangents: the places of the results that have a cotangent.
        known: the value of a ``("number", register)`` or ``("size", array, axis)``, where it is an int that is known
            before the loop.
        runs: how many blocks the program runs at most, where that is known.
        room: how much a tape holds if that does not follow from the trip counts. Where the program needs more, plain
            Python runs everything.

    Raises:
        DerivativeError: an instruction has no rule.
    """
    plan = Plan(program, shows, roots, numbers, cotangents)
    needed = {at: Needed() for at in plan.order}
    _Backward(plan, needed, recording=True).run()
    back = _Backward(plan, needed, recording=False)
    backward = back.run()
    found = Counts(plan, known).pushes(needed, runs)
    rooms, runs = ((room, room), None) if found is None else (found[:2], found[2])
    return Reversed(
        tidy(_with_tapes(plan, needed)), tidy(backward), rooms, runs, tuple(back.numbers), tuple(back.arrays),
        tuple(plan.results),
    )  # fmt: skip


class _Code:
    """A program under construction; instructions go to the open block, number ``at``."""

    def __init__(self, kinds: Sequence[str] = ()) -> None:
        self.kinds = list(kinds)
        self.blocks: list[tuple[Sequence[int], list[tuple[Any, ...]], list[Any]]] = []
        self.at = 0

    def register(self, kind: str) -> int:
        """A new register."""
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def block(self, parameters: Sequence[int] = ()) -> int:
        """A new block."""
        self.blocks.append((parameters, [], []))
        return len(self.blocks) - 1

    def line(self, *line: Any) -> None:
        """Adds an instruction."""
        self.blocks[self.at][1].append(line)

    def add(self, name: str, kind: str, *given: Any) -> int:
        """Adds an instruction with a result."""
        made = self.register(kind)
        self.line(name, made, *given)
        return made

    def const(self, value: float) -> int:
        """A constant: a Python int, or a float64."""
        return self.add("const", FLOAT if type(value) is float else "int", value)

    def end(self, *end: Any) -> None:
        """Ends the open block."""
        self.blocks[self.at][2][:] = end

    def check(self, place: int, count: int, room: int) -> None:
        """Leaves everything to plain Python unless a tape with this room has so many places from ``place`` on."""
        last = self.add("-", "int", room, self.const(count))
        for sign, bound in ((">=", self.const(0)), ("<=", last)):
            self.line("require", -1, self.add(sign, "bool", place, bound))

    def done(self) -> tuple[Block, ...]:
        """The blocks."""
        return tuple((tuple(p), tuple(lines), tuple(end)) for p, lines, end in self.blocks)


# -- the program with tapes --------------------------------------------------------------------------------------------
def _with_tapes(plan: Plan, needed: Mapping[int, Needed]) -> Program:
    """The program, which writes the tapes. All blocks but the first take their lengths as the last parameters.

    At its end, a block pushes what its backward block needs, and then the number of the edge that it takes.
    """
    kinds, numbers, blocks, results = plan.program
    code = _Code(kinds)
    rooms = (code.register("int"), code.register("int"))
    for at, (parameters, _, _) in enumerate(blocks):
        code.block((*parameters, code.register("int"), code.register("int")) if at else parameters)
    for at in plan.order:
        _, lines, end = blocks[at]
        code.at = at
        for line in lines:
            if line[0] != "hold":  # the derivative of a loop that was left is another one
                code.line(*line)
        lengths = list(code.blocks[at][0][-2:]) if at else [code.const(0), code.const(0)]
        ints = [code.add("int", "int", r) if kinds[r] != "int" else r for r in needed[at].ints]
        _push(plan, code, lengths, INTS, ints)
        _push(plan, code, lengths, FLOATS, list(needed[at].floats))
        if end[0] == "exit":
            if len(plan.exits) > 1:
                _push(plan, code, lengths, INTS, [code.const(plan.exits.index(at))])
            code.end("exit", (*end[1], *lengths))
        elif end[0] == "replay":
            code.end("replay")
        elif end[0] == "branch":
            first = _edge(plan, code, lengths, at, 3)
            second = _edge(plan, code, lengths, at, 5)
            code.end("branch", end[1], *first, *second)
        else:
            edges = plan.before[end[1]]
            if len(edges) > 1:
                _push(plan, code, lengths, INTS, [code.const(edges.index((at, 2)))])
            code.end(end[0], end[1], (*end[2], *lengths))
    return tuple(code.kinds), (*numbers, *rooms), code.done(), (*results, "int", "int")


def _push(plan: Plan, code: _Code, lengths: list[int], tape: int, values: Sequence[int]) -> None:
    """Pushes values to a tape, and changes its length."""
    if not values:
        return
    place = lengths[tape]
    code.check(place, len(values), len(plan.kinds) + tape)
    for register in values:
        code.line("store", -1, len(plan.shows) + tape, register, place)
        place = code.add("+", "int", place, code.const(1))
    lengths[tape] = place


def _edge(plan: Plan, code: _Code, lengths: Sequence[int], at: int, place: int) -> tuple[int, tuple[int, ...]]:
    """The target of one side of a branch, and its arguments: a new block where the edge has a number."""
    end = plan.blocks[at][2]
    to, given = end[place - 1], end[place]
    edges = plan.before[to]
    if len(edges) == 1:
        return to, (*given, *lengths)
    block, own = code.block(), list(lengths)
    open_block, code.at = code.at, block
    _push(plan, code, own, INTS, [code.const(edges.index((at, place)))])
    code.end("jump", to, (*given, *own))
    code.at = open_block
    return block, ()


# -- the program that goes back ----------------------------------------------------------------------------------------
class _Backward:
    """The backward program. While ``recording``, only what its blocks need is of interest."""

    def __init__(self, plan: Plan, needed: Mapping[int, Needed], recording: bool) -> None:
        self.plan, self.needed, self.recording = plan, needed, recording
        self.code = _Code()
        self.numbers: dict[Number, int] = {}
        self.arrays: dict[Any, int] = {("tape", tape): tape for tape in (INTS, FLOATS)}
        self.arrays |= {("cotangent", array): place for place, array in enumerate(plan.arrays, 2)}
        self.block_of: dict[int, int] = {}  # the backward block of each block
        self.block = -1  # the block whose backward block is open
        self.values: dict[int, int] = {}  # the registers that have the values of the program's registers
        self.cotangents: dict[int, int] = {}
        self.lengths: list[int] = []

    def run(self) -> Program:
        """Writes the program."""
        plan, code = self.plan, self.code
        entry = code.block()
        for at in plan.order:
            parameters = [code.register(FLOAT) for _ in plan.handed[at]]
            self.block_of[at] = code.block((*parameters, code.register("int"), code.register("int")))
        code.at = entry
        self.lengths = [self.number(("length", tape), "int") for tape in (INTS, FLOATS)]
        self._choose(plan.exits, self._from_exit)
        for at in plan.order:
            self._reverse(at)
        results = (FLOAT,) * len(plan.results)
        return tuple(code.kinds), tuple(self.numbers.values()), code.done(), results

    def number(self, key: Number, kind: str) -> int:
        """A number that the program is given."""
        if key not in self.numbers:
            self.numbers[key] = self.code.register(kind)
        return self.numbers[key]

    # -- control flow --------------------------------------------------------------------------------------------------
    def _choose(self, ways: Sequence[Any], go: Callable[[Any], None]) -> None:
        """Ends the open block: calls ``go`` for each way. The next number on the tape says which one is taken."""
        code = self.code
        if len(ways) > 1:
            (chosen,) = self._pop(INTS, 1)
            for number, way in enumerate(ways[:-1]):
                taken, others = code.block(), code.block()
                condition = code.add("==", "bool", chosen, code.const(number))
                code.end("branch", condition, taken, (), others, ())
                code.at = taken
                go(way)
                code.at = others
        go(ways[-1])

    def _from_exit(self, at: int) -> None:
        seeds: dict[int, int] = {}
        for place, register in enumerate(self.plan.blocks[at][2][1]):
            if place in self.plan.cotangents and register in self.plan.active:
                self._seed(seeds, register, self.number(("cotangent", place), FLOAT))
        self._enter(at, seeds)

    def _seed(self, seeds: dict[int, int], register: int, g: int) -> None:
        seeds[register] = self.code.add("+", FLOAT, seeds[register], g) if register in seeds else g

    def _enter(self, at: int, seeds: Mapping[int, int]) -> None:
        """Jumps to a block's backward block with the cotangents of what the block has handed on."""
        given = [seeds[r] if r in seeds else self.code.const(0.0) for r in self.plan.handed[at]]
        self.code.end("jump", self.block_of[at], (*given, *self.lengths))

    def _reverse(self, at: int) -> None:
        """Writes the backward block of a block."""
        plan, code = self.plan, self.code
        parameters, lines, end = plan.blocks[at]
        self.block, code.at = at, self.block_of[at]
        *given, ints, floats = code.blocks[code.at][0]
        self.cotangents, self.lengths, self.values = dict(zip(plan.handed[at], given, strict=True)), [ints, floats], {}
        if not self.recording:
            needed = self.needed[at]
            for register, value in zip(needed.ints, self._pop(INTS, len(needed.ints)), strict=True):
                is_bool = dtype_of(plan.kinds[register]).kind == "b"
                self.values[register] = code.add("bool", "bool", value) if is_bool else value
            self.values.update(zip(needed.floats, self._pop(FLOATS, len(needed.floats)), strict=True))
        if end[0] == "replay":
            code.end("replay")
            return
        for line in reversed(lines):
            if line[0] == "store":
                self._store(line)
            elif line[1] in plan.active:
                self._line(line)
        if at == 0:
            code.end("exit", tuple(self._total(register) for register in plan.results))
            return
        cotangents = self.cotangents

        def go(edge: tuple[int, int]) -> None:
            before, place = edge
            seeds = {r: cotangents[r] for r in plan.inside[at] if r in cotangents}
            for parameter, register in zip(parameters, plan.blocks[before][2][place], strict=True):
                if parameter in cotangents and register in plan.active:
                    self._seed(seeds, register, cotangents[parameter])
            self._enter(before, seeds)

        self._choose(plan.before[at], go)

    def _pop(self, tape: int, count: int) -> list[int]:
        """The last values of a tape, in the order in which they were pushed."""
        if not count:
            return []
        code = self.code
        place = code.add("-", "int", self.lengths[tape], code.const(count))
        code.check(place, count, self.number(("room", tape), "int"))
        self.lengths[tape] = place
        found = []
        for n in range(count):
            at = code.add("+", "int", place, code.const(n)) if n else place
            value = code.add("load", "np.int64" if tape == INTS else FLOAT, tape, at)
            found.append(code.add("int", "int", value) if tape == INTS else value)
        return found

    # -- values --------------------------------------------------------------------------------------------------------
    def value(self, register: int) -> int:
        """The value that a register of the program has in this execution of its block."""
        plan = self.plan
        made = plan.made.get(register, ("",))
        if made[0] == "const":
            return self.code.const(float(made[2]) if plan.is_float(register) else int(made[2]))
        if made[0] == "size":
            return self.number(("size", *made[2:]), "int")
        if register in plan.numbers:
            return self._as_float64(self.number(("number", register), plan.kinds[register]))
        if made[0] == "load" and made[2] not in plan.written:  # its element is still there
            places = [self.index(index) for index in made[3:]]
            return self._as_float64(self.code.add("load", plan.kinds[register], self._source(made[2]), *places))
        if self.recording:
            needed = self.needed[self.block]
            (needed.floats if plan.is_float(register) else needed.ints)[register] = None
            return self.code.register(FLOAT if plan.is_float(register) else "int")
        return self.values[register]

    def _as_float64(self, register: int) -> int:
        """A number of the backward program; a float as float64."""
        kind = self.code.kinds[register]
        is_other = kind != FLOAT and dtype_of(kind).kind == "f"
        return self.code.add(FLOAT, FLOAT, register) if is_other else register

    def _element(self, array: int, places: Sequence[int]) -> int:
        """The cotangent of an element."""
        kind = self.plan.elements[array]
        return self._as_float64(self.code.add("load", kind, self.arrays["cotangent", array], *places))

    def _source(self, array: int) -> int:
        """The number of one of the program's own arrays."""
        return self.arrays.setdefault(("source", array), len(self.arrays))

    def index(self, register: int) -> int:
        """The value of an index."""
        base, more = affine(self.plan.made, self.plan.kinds, register)
        found = self.value(base)
        return self.code.add("+", "int", found, self.code.const(more)) if more else found

    # -- cotangents ----------------------------------------------------------------------------------------------------
    def _total(self, register: int) -> int:
        found = self.cotangents.get(register)
        return self.code.const(0.0) if found is None else found

    def hand(self, register: int, g: Callable[[], int]) -> None:
        """Adds to the cotangent of an active register."""
        if register in self.plan.active:
            self._seed(self.cotangents, register, g())

    def _line(self, line: tuple[Any, ...]) -> None:
        g = self.cotangents.pop(line[1], None)
        if g is None:
            return
        if line[0] == "load":
            self._load(line, g)
            return
        rule = RULES.get(line[0])
        if rule is None:
            raise DerivativeError(f"{line[0].removeprefix('math.')} of a number has no derivative rule")
        rule(self, line[1], line[2:], g)

    def _load(self, line: tuple[Any, ...], g: int) -> None:
        places = [self.index(register) for register in line[3:]]
        total = self.code.add("+", FLOAT, self._element(line[2], places), g)
        self.code.line("store", -1, self.arrays["cotangent", line[2]], total, *places)

    def _store(self, line: tuple[Any, ...]) -> None:
        _, _, number, register, *indices = line
        array = self.arrays.get(("cotangent", number))
        if array is None:
            return
        code, places = self.code, [self.index(index) for index in indices]
        if register in self.plan.active:
            self._seed(self.cotangents, register, self._element(number, places))
        code.line("store", -1, array, code.const(0.0), *places)

    # -- arithmetic ----------------------------------------------------------------------------------------------------
    def op(self, sign: str, *given: int) -> int:
        """An operation on floats."""
        return self.code.add(sign, FLOAT, *given)

    def test(self, a: int, sign: str, b: int) -> int:
        """A comparison of floats."""
        return self.code.add("bool", "bool", self.code.add(sign, "np.bool", a, b))

    def pick(self, condition: int, a: int, b: int) -> int:
        """``a`` where the condition holds, else ``b``."""
        return self.op("select", condition, a, b)

    def const(self, value: float) -> int:
        """A float."""
        return self.code.const(value)

    def constant(self, register: int) -> float | None:
        """The number that a register of the forward program always is; None where there is none."""
        made = self.plan.made.get(register, ("",))
        return made[2] if made[0] == "const" else None


__all__ = ["Reversed", "reverse"]
