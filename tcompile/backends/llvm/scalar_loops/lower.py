"""Lowering of scalar loops: the program of a ``scalar_loop`` node as one LLVM function.

Input: the node.
Output: a ``ScalarLoop``: the text of a function with a kernel's signature, and its arguments.
Why: the loop takes as long as its single loads and additions, and so does its compile.

Redundant checks are eliminated (``ranges``), addresses are hoisted (``addresses``), and values are passed from block to
block in registers. So LLVM's passes run only for loops that they can vectorise, and for arrays of unknown size, whose
checks depend on the loops' bounds.

Every access is checked, with Python's rule for negative indices. Where Python would raise or warn, where an int needs
more than 64 bits, and at an unforeseen exit, the function ends with the status ``ONLY_NUMPY``: it works on copies, and
plain Python does everything again. Arrays that are written are passed as ``noalias``, since capture guards that they
overlap no other.

A long loop polls now and then for signals, and for changes to values that the code has read (``native.interrupts``):
``loop_nest`` says how much of the budget between two polls each loop spends. After a change the outermost loop is left
before its next iteration, with the status ``PAUSED`` and the registers with which that iteration would begin. Where it
has no such exit, or takes too long to reach it, the status is ``CHANGED``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from tcompile.backends.llvm import native
from tcompile.backends.llvm.native import entries, interrupts
from tcompile.backends.llvm.scalar_loops import python_math
from tcompile.backends.llvm.scalar_loops.addresses import ENTRY, AddressWriter, HoistedValue, Term
from tcompile.backends.llvm.scalar_loops.loop_nest import LoopNest
from tcompile.backends.llvm.scalar_loops.ranges import WHOLE, Bounds
from tcompile.backends.llvm.scalar_loops.values import (
    Values,
    constant,
    forgets_flags,
    is_extreme,
    is_stored_again,
    loaded,
    loop_of,
    stored,
)
from tcompile.backends.llvm.scalar_loops.vectors import Lanes, VectorStrips, vectorisable_range
from tcompile.backends.llvm.vector.text import Module, Writer, element_type, scalar_type
from tcompile.backends.schedule.kernel import Distance, static_elements
from tcompile.backends.schedule.scalar_loop_arrays import StridedArray, roots, seen
from tcompile.backends.status import CHANGED, INTERRUPTED, ONLY_NUMPY, PAUSED, PAUSED_SHIFT
from tcompile.graph import Node, ScalarType, Size, SymInt, TensorType
from tcompile.graph.ops.scalar_blocks import affine, operands
from tcompile.graph.ops.scalar_loop import ARITHMETIC, COMPARISONS, Program, dtype_of, is_ufunc, written_arrays
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.backends.llvm.scalar_loops.draws import Generator
    from tcompile.backends.llvm.scalar_loops.mersenne_twister import PythonGenerator

_STRIP = 1 << 16  # iterations of an innermost loop that are paid for at once
_BUDGET = 1 << 22  # units of work between two reads of the clock
_PATIENCE = 6  # polls, some milliseconds apart, between a change and the forced end of the loop


@dataclass
class ScalarLoop:
    """One node's function.

    ``spec`` and ``arguments`` are those of a launch of ``entries.entry(arrays)``, after the function's address;
    arguments are ``("written", n)``, the operand that is written, ``("result", n)``, ``("pauses", 0)``, a word that
    says whether the loop may be left with ``PAUSED``, or arrays, numbers and sizes.
    """

    node: Node
    name: str
    arrays: int = 0
    text: str = ""
    spec: str = ""
    arguments: list[Any] = field(default_factory=list)
    code: native.MachineCode | None = None
    depth: int = 0  # the nesting depth
    improves: int = 0  # the depth of the innermost loop that LLVM's passes improve
    ms: float = 0.0  # compile time


def write_loops(nodes: Sequence[Node]) -> tuple[dict[Node, ScalarLoop], Module]:
    """Scalar loops, and the module with their functions, which lacks declarations."""
    module = Module()
    loops = {node: write(module, node, f"scalar_{node.name}") for node in nodes}
    if loops:
        module.symbols |= interrupts.functions()
    return loops, module


def can_call(node: Node) -> bool:
    """Whether all functions that the program calls exist."""
    lines = [line for _, instructions, _ in node.attrs["program"][2] for line in instructions]
    loops = {(line[0], len(line) - 2) for line in lines if is_ufunc(line[0])}
    return all(loop_of(*called) is not None for called in loops)


def needs_passes(loops: Iterable[ScalarLoop]) -> bool:
    """Whether LLVM's passes make the deepest of the loops faster."""
    found = list(loops)
    return bool(found) and max(loop.improves for loop in found) >= max(loop.depth for loop in found)


def write(module: Module, node: Node, name: str) -> ScalarLoop:
    """Emits the function of a node into ``module``."""
    made = _Function(module, node, name)
    made.write()
    made.loop.name = module.add(name, made.loop.text)
    return made.loop


class _Words:
    """The words that are the function's arguments."""

    def __init__(self, loop: ScalarLoop) -> None:
        self.loop = loop
        self.count = 1  # the first one is the function's address
        self.places: dict[Any, int] = {}

    def strides(self, argument: Any, type: TensorType) -> int:
        """The number of the first of the words that hold an array's strides."""
        return self.place(("strides", argument), "s", argument, 1 + type.ndim) + 1

    def place(self, key: Any, char: str, argument: Any, words: int = 1) -> int:
        """The number of the first word of an argument."""
        if key not in self.places:
            self.places[key] = self.count
            self.loop.spec += char
            self.loop.arguments.append(argument)
            self.count += words
        return self.places[key]


class _Function:
    """One function under construction."""

    def __init__(self, module: Module, node: Node, name: str) -> None:
        self.node, self.w = node, Writer(module)
        self.v = Values(self.w)
        program: Program = node.attrs["program"]
        self.kinds, self.numbers, self.blocks, self.results = program
        found = seen(node)
        assert found is not None
        self.seen = found
        self.types = [array.type for array in found]
        # Arrays in memory, none of which aliases one that is written.
        self.groups = list(dict.fromkeys(map(_argument, found)))
        self.loop = ScalarLoop(node, name, len(self.groups))
        self.words = _Words(self.loop)
        self.registers: dict[int, str] = {}
        self.nest = LoopNest(self.kinds, self.blocks, self._known_size)
        self.order, self.back, self.strips = self.nest.order, self.nest.back, self.nest.strips
        self.made = self.nest.ranges.made
        self.known = {r: line[2] for r, line in self.made.items() if line[0] == "const"}
        # The incoming values of each block's parameters.
        self.edges: dict[int, list[tuple[str, list[str]]]] = {n: [] for n in range(len(self.blocks))}
        self.checked: set[int] = set()  # blocks with checks
        self.stuck: set[int] = set()  # blocks with checks that cannot be hoisted to the start of a strip
        self.askable = 0  # checks that can be
        self.asked: _Asked | None = None  # the hoisted checks of the strip that is being written
        self.open: set[int] = set()  # blocks with an index into an array of unknown size
        self.places = AddressWriter(self.w, self.nest, dict.fromkeys(self.numbers, ENTRY))
        self.strip_entries: dict[int, list[tuple[str, list[str]]]] = {n: [] for n in self.strips}
        self.strip_values: dict[int, list[str]] = {}
        self.strip_limits: dict[int, str] = {}
        self.generators: dict[
            int, Generator | PythonGenerator
        ] = {}  # by the numbers of the arrays that are their states
        # The registers that the blocks hold with which an iteration of an outermost loop begins, where it may be left.
        self.held = {at: self._held(at) for at in self.order if self.nest.may_run_again(at) and self._held(at)}
        self.pausing = ""  # the word that requests this
        self.strip_ends: dict[
            int, tuple[str, int]
        ] = {}  # the block and the line where a strip's first iteration begins

    def _known_size(self, array: int, axis: int) -> int | None:
        size = self.types[array].shape[axis]
        return size if isinstance(size, int) else None

    # -- the function --------------------------------------------------------------------------------------------------
    def write(self) -> None:
        """Emits the function."""
        w = self.w
        self.budget = self.last = ""
        if self.held and (self.nest.irreducible or any(self.nest.pays.values())):
            self._make_budget()
        if self._keeps_flags():
            self.v.kept = w.slot("i32", align=4)
            w.entry.append(f"  store i32 0, ptr {self.v.kept}")
        for argument in self.groups:
            self.words.place(argument, "a", argument)
        self.units = [self._unit(array) for array in self.seen]
        self.pointers = [self._pointer(*pair) for pair in zip(self.seen, self.units, strict=True)]
        for register, operand in zip(self.numbers, self.node.operands[len(roots(self.node)) :], strict=True):
            self.registers[register] = self._number(operand, self.kinds[register])
        for number in self.order:
            for register in self.blocks[number][0]:
                self.registers[register] = w.name("p")
        for number, family in self._families().items():
            from tcompile.backends.llvm.scalar_loops.draws import generator_of  # imported only for programs that draw

            self.generators[number] = generator_of(w, family, self.pointers[number])
        w.jump("b0")
        for number in self.order:
            self._block(number)
        w.place("replay")
        w.do(f"ret i32 {ONLY_NUMPY}")
        w.place("interrupted")
        w.do(f"ret i32 {INTERRUPTED}")
        w.place("changed")
        w.do(f"ret i32 {CHANGED}")
        scalar = [header for header in self.nest.dependent_iterations if not self._vectorise_strip(header)]
        vectors = [header for header in scalar if not self.checked & self.nest.bodies[header]]
        self._phis()
        self.places.close()
        depth = self.nest.depth
        self.loop.depth = max(depth.values())
        self.loop.improves = max((depth[at] for at in (*vectors, *self.open)), default=0)
        name = self.loop.name
        arrays = "".join(f", ptr {self._noalias(n)}%g{n}" for n in range(min(self.loop.arrays, entries.MOST)))
        self.loop.text = w.text(f"i32 @{name}(ptr noalias readonly %words{arrays})", "nounwind")

    def _noalias(self, number: int) -> str:
        """The attribute of an array in memory. One that is only read has none if there are polls, which may change it.

        LLVM would read its elements once. No written array overlaps it all the same.
        """
        program: Program = self.node.attrs["program"]
        written = {self.groups.index(_argument(self.seen[array])) for array in written_arrays(program)}
        return "" if self.budget and number not in written else "noalias "

    def _keeps_flags(self) -> bool:
        """Whether it calls any function that clears the flags."""
        called = {(line[0], len(line) - 2) for line in self.made.values() if is_ufunc(line[0])}
        return any(forgets_flags(*each) for each in called)

    def _families(self) -> dict[int, str]:
        """The arrays that are states of generators, and their kinds."""
        lines = (line for at in self.order for line in self.blocks[at][1])
        return {line[2]: line[3] for line in lines if line[0] == "draw"}

    def _word(self, place: int) -> str:
        at = self.w.at_entry(f"getelementptr i64, ptr %words, i64 {place}")
        return self.w.at_entry(f"load i64, ptr {at}")

    @staticmethod
    def _unit(array: StridedArray) -> str:
        """The unit of distances within an array: elements where they are all known, else bytes."""
        known = all(static_elements(distance) is not None for distance in (*array.steps, array.offset))
        return element_type(array.type.dtype) if known else "i8"

    def _distance(self, array: StridedArray, distance: Distance, unit: str) -> str:
        """A distance in such units."""
        w, size = self.w, array.type.dtype.itemsize
        if unit != "i8" or not distance:
            return str(static_elements(distance))
        place = self.words.strides(_argument(array), array.base.tensor)
        terms = []
        for multiple, axis in distance:
            stride = str(size) if axis is None else self._word(place + axis)
            one = isinstance(multiple, int) and multiple == 1
            terms.append(stride if one else w.at_entry(f"mul nsw i64 {self._size(multiple)}, {stride}"))
        total = terms[0]
        for term in terms[1:]:
            total = w.at_entry(f"add nsw i64 {total}, {term}")
        return total

    def _pointer(self, array: StridedArray, unit: str) -> str:
        """The address of an array's first element, derived from that of its memory."""
        number = self.groups.index(_argument(array))
        memory = f"%g{number}"
        if number >= entries.MOST:
            memory = self.w.at_entry(f"inttoptr i64 {self._word(self.words.places[_argument(array)])} to ptr")
        offset = self._distance(array, array.offset, unit)
        return memory if offset == "0" else self.w.at_entry(f"getelementptr {unit}, ptr {memory}, i64 {offset}")

    def _size(self, size: Size) -> str:
        if isinstance(size, int):
            return str(size)
        return self._word(self.words.place(str(size), "i", size))

    def _number(self, operand: Any, kind: str) -> str:
        w = self.w
        if isinstance(operand, int | SymInt):
            return self._size(operand)
        assert isinstance(operand, Node)
        if isinstance(operand.type, ScalarType):
            return w.at_entry(f"bitcast i64 {self._word(self.words.place(operand, 'f', operand))} to double")
        assert isinstance(operand.type, TensorType)
        dtype = dtype_of(kind)
        at = w.at_entry(f"inttoptr i64 {self._word(self.words.place(operand, 'a', operand))} to ptr")
        found = w.at_entry(f"load {'i8' if dtype.kind == 'b' else scalar_type(dtype)}, ptr {at}")
        return w.at_entry(f"icmp ne i8 {found}, 0") if dtype.kind == "b" else found

    # -- blocks --------------------------------------------------------------------------------------------------------
    def _block(self, number: int) -> None:
        w = self.w
        _, instructions, end = self.blocks[number]
        strip = self.strips.get(number)
        if strip is not None:
            self._begin_strip(number, *strip)
        w.place(f"b{number}")
        w.do(f"; phis of {number}")
        self.places.enter(number)
        checks, askable = self.v.checks, self.askable
        for at, (line, bounds) in enumerate(zip(instructions, self.nest.ranges.before(number), strict=True)):
            for register in operands(line):
                self._show(register, bounds)
            if line[0] == "hold":
                if end[0] == "replay":
                    self._leave_if_late(line[2:])
                elif number in self.held and self.budget and strip is None:
                    self._leave_if_changed(number, {})
                continue
            if line[0] == "store":
                self._store(*line[2:], again=is_stored_again(line, instructions[at + 1 :]))
            else:
                self._instruction(*line)
                self._keep_flags(line)
        if self.v.checks > checks:
            self.checked.add(number)
        if self.v.checks - checks > self.askable - askable:
            self.stuck.add(number)
        self.places.leave()
        if end[0] == "replay":
            w.jump("replay")
        elif end[0] == "exit":
            for place, (register, kind) in enumerate(zip(end[1], self.results, strict=True)):
                word = self._word(self.words.place(("result", place), "a", ("result", place)))
                stored(w, dtype_of(kind), self.registers[register], w.get(f"inttoptr i64 {word} to ptr"))
            for generator in self.generators.values():
                generator.keep()
            w.do(f"ret i32 {w.get(f'load i32, ptr {self.v.kept}') if self.v.kept else 0}")
        elif end[0] in ("jump", "back"):
            w.jump(self._way(number, end[1], end[2], goes_on=end[0] == "back"))
        elif strip is not None:
            self._end_strip(number, end, *strip)
        else:
            self._branch(number, end)

    def _show(self, register: int, bounds: Mapping[int, Bounds]) -> None:
        """Records the bounds of an int at this point."""
        known, name = bounds.get(register), self.registers[register]
        if known is not None:
            self.v.bounds[name] = known
        else:
            self.v.bounds.pop(name, None)

    def _branch(self, number: int, end: tuple[Any, ...]) -> None:
        """Emits a branch; an edge with work on it gets a block of its own."""
        w, (_, condition, yes, given, no, others) = self.w, end
        same = yes == no
        labels = [self._direct(number, way, values, same) for way, values in ((yes, given), (no, others))]
        w.branch(self.registers[condition], *(label or new for label, new in labels))
        for (label, new), way, values in zip(labels, (yes, no), (given, others), strict=True):
            if label is None:
                w.place(new)
                w.jump(self._way(number, way, values))

    def _direct(self, number: int, to: int, given: tuple[int, ...], same: bool) -> tuple[str | None, str]:
        """The label of the target of an edge without work on it, and else that of a new block."""
        if same or to in self.strips or self._price(number, to):
            return None, self.w.label("way")
        return self._way(number, to, given), ""

    def _price(self, number: int, to: int) -> int:
        """What a jump takes from the budget between two polls."""
        if (number, to) in self.back:
            return 0 if to in self.strips else self.nest.pays[to]
        return self.nest.irreducible.get((number, to), 0)

    def _way(self, number: int, to: int, given: tuple[int, ...], goes_on: bool = False) -> str:
        """The label of a jump's target; a back edge pays for an iteration.

        An innermost loop that ``goes_on`` has paid already. A loop's header may also be reached by the back edge of the
        enclosing loop.
        """
        w = self.w
        price = self._price(number, to)
        if price:
            self._pay(str(price))
        names = [self.registers[register] for register in given]
        if to in self.strips and not ((number, to) in self.back and goes_on):
            self.strip_entries[to].append((w.block, names))
            return f"strip{to}"
        self.edges[to].append((w.block, names))
        return f"b{to}"

    def _make_budget(self) -> None:
        """Emits the words of the budget, and of the result of polls."""
        w = self.w
        self.budget, self.last = w.slot("i64", align=8), w.slot("i64", align=8)
        self.changes = w.slot("i32", align=4)
        self.pausing = w.slot("i32", align=4)
        w.entry += [f"  store i64 {_BUDGET}, ptr {self.budget}", f"  store i64 0, ptr {self.last}"]
        w.entry += [f"  store i32 0, ptr {word}" for word in (self.changes, self.pausing)]
        w.module.declare("@tc_late", "declare i32 @tc_late(ptr nocapture) nounwind")

    def _held(self, number: int) -> tuple[int, ...]:
        """The registers that a block holds, with which an iteration begins."""
        held = next((line[2:] for line in self.blocks[number][1] if line[0] == "hold"), ())
        return held if len(held) <= interrupts.HELD else ()

    def _leave_if_changed(self, number: int, values: Mapping[int, str]) -> None:
        """Before an iteration: leaves the loop where a value has changed. ``values`` are the block's parameters."""
        w = self.w
        leave, on = w.label("leave"), w.label("on")
        w.branch(w.get(f"icmp ne i32 {w.get(f'load i32, ptr {self.pausing}')}, 0"), leave, on)
        w.place(leave)
        self._leave(self.held[number], values)
        w.place(on)

    def _leave_if_late(self, held: Sequence[int]) -> None:
        """Before an exception: leaves the loop if it has run so long that polls are due; else plain Python repeats it.

        Making the frame that goes on takes about as long as plain Python needs for so few iterations.
        """
        w = self.w
        if not self.held or not self.budget or len(held) > interrupts.HELD:
            return
        leave, early = w.label("leave"), w.label("early")
        late = w.get(f"icmp ne i64 {w.get(f'load i64, ptr {self.last}')}, 0")
        w.branch(w.get(f"and i1 {late}, {self._may_pause()}"), leave, early)
        w.place(leave)
        self._leave(held, {})
        w.place(early)

    def _may_pause(self) -> str:
        return self.w.get(f"icmp ne i64 {self._word(self.words.place(('pauses',), 'i', ('pauses', 0)))}, 0")

    def _leave(self, held: Sequence[int], values: Mapping[int, str]) -> None:
        """Stores the registers with which the frame goes on, and returns."""
        w = self.w
        w.module.declare("@tc_held", "@tc_held = external global i64")
        w.module.declare("@tc_held_count", "@tc_held_count = external global i64")
        used = w.get("atomicrmw add ptr @tc_held_count, i64 1 seq_cst")
        row = w.get(f"and i64 {used}, {interrupts.HELD_ROWS - 1}")
        words = w.get(f"getelementptr i64, ptr @tc_held, i64 {w.get(f'mul i64 {row}, {interrupts.HELD}')}")
        for place, register in enumerate(held):
            at = w.get(f"getelementptr i64, ptr {words}, i64 {place}")
            value = values.get(register) or self.registers.get(register) or str(self.known[register])
            stored(w, dtype_of(self.kinds[register]), value, at)
        for generator in self.generators.values():
            generator.keep()
        kept = w.get(f"load i32, ptr {self.v.kept}") if self.v.kept else "0"
        told = w.get(f"shl i32 {w.get(f'trunc i64 {row} to i32')}, {PAUSED_SHIFT}")
        status = w.get(f"or i32 {kept}, {w.get(f'or i32 {told}, {PAUSED}')}")
        w.do(f"ret i32 {status}")

    def _note_change(self, quiet: str) -> None:
        """After a change: ends the outermost loop with this iteration, or at once where that takes too long."""
        w = self.w
        may = self._may_pause()
        count = w.get(f"add i32 {w.get(f'load i32, ptr {self.changes}')}, 1")
        w.do(f"store i32 {count}, ptr {self.changes}")
        most = _PATIENCE if self.held else w.get(f"select i1 {may}, i32 1, i32 {_PATIENCE}")
        if self.held:
            w.do(f"store i32 {w.get(f'zext i1 {may} to i32')}, ptr {self.pausing}")
        w.branch(w.get(f"icmp sge i32 {count}, {most}"), "changed", quiet)

    def _pay(self, work: str) -> None:
        """Takes work from the budget, and polls where it is spent."""
        w = self.w
        if not self.budget:
            self._make_budget()
        old = w.get(f"load i64, ptr {self.budget}")
        left = w.get(f"sub i64 {old}, {work}")
        w.do(f"store i64 {left}, ptr {self.budget}")
        ask, heard, quiet, fine = w.label("ask"), w.label("heard"), w.label("quiet"), w.label("fine")
        w.branch(w.get(f"icmp sge i64 {left}, 0"), fine, ask)
        w.place(ask)
        stopped = w.get(f"call i32 @tc_late(ptr {self.last})")
        w.branch(w.get(f"icmp eq i32 {stopped}, 0"), quiet, heard)
        w.place(heard)
        seen = w.label("seen")
        w.branch(w.get(f"icmp eq i32 {stopped}, 2"), seen, "interrupted")
        w.place(seen)
        self._note_change(quiet)
        w.place(quiet)
        w.do(f"store i64 {_BUDGET}, ptr {self.budget}")
        w.jump(fine)
        w.place(fine)

    # -- innermost ranges ----------------------------------------------------------------------------------------------
    def _begin_strip(self, number: int, at: int, stop: int, step: int) -> None:
        """Emits the block before a loop over a range, strip-mined: the end of this strip."""
        w, parameters = self.w, self.blocks[number][0]
        names = self.strip_values[number] = [w.name("s") for _ in parameters]
        w.place(f"strip{number}")
        w.do(f"; strip of {number}")
        values = dict(zip(parameters, names, strict=True))
        start, end = values[at], values.get(stop) or self.registers[stop]
        before = f"icmp {'slt' if step > 0 else 'sgt'} i64"
        limit = end
        if self.nest.pays[number]:
            far = w.get(f"add nsw i64 {start}, {_STRIP * step}")
            limit = w.get(f"select i1 {w.get(f'{before} {far}, {end}')}, i64 {far}, i64 {end}")
        for register, more in self.nest.dependent_iterations.get(number, ()):
            alone, after = self.registers[register], w.get(f"add nsw i64 {start}, {step}")
            if more:
                alone = w.get(f"add i64 {alone}, {more}")
            until = w.get(f"select i1 {w.get(f'{before} {start}, {alone}')}, i64 {alone}, i64 {after}")
            past, farther = w.get(f"{before} {alone}, {start}"), w.get(f"{before} {limit}, {until}")
            limit = w.get(f"select i1 {w.get(f'or i1 {past}, {farther}')}, i64 {limit}, i64 {until}")
        self.strip_limits[number] = limit
        if self.nest.pays[number]:
            iterations = w.get(f"sub i64 {limit}, {start}")
            if step != 1:
                iterations = w.get(f"sdiv i64 {iterations}, {step}")
            self._pay(w.get(f"mul i64 {iterations}, {self.nest.pays[number]}"))
        if number in self.held and self.budget:
            self._leave_if_changed(number, values)
        self.strip_ends[number] = w.block, len(w.lines)
        self.edges[number].append((w.block, names))
        w.jump(f"b{number}")

    def _vectorise_strip(self, number: int) -> bool:
        """Emits a vectorised loop for most iterations of a strip, where that is possible."""
        w, found = self.w, None
        if number in self.strips and not self.stuck & self.nest.bodies[number]:
            found = vectorisable_range(self.nest, number, self.kinds, self.seen)
        if found is None:
            return False
        block, line = self.strip_ends[number]
        ask, run = w.label("ask"), w.label("several")
        w.lines[line] = f"  br label %{ask}"
        parameters, names = self.blocks[number][0], self.strip_values[number]
        start = names[parameters.index(found.counter)]
        self.edges[number].remove((block, names))
        w.place(ask)
        self.places.enter(number)
        lines, known = self.blocks[found.body][1], [*map(dict, self.nest.ranges.before(found.body))]
        dependent_iterations = self.nest.dependent_iterations.get(number, ())

        def element(line: tuple[Any, ...]) -> str:
            places = line[4:] if line[0] == "store" else line[3:]
            for register in places:
                self._show(register, known[lines.index(line)])
            return self._element(line[2], places)

        def apart(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
            if any(known[lines.index(line)].get(line[-1], WHOLE)[0] < 0 for line in (one, two)):
                return False  # a negative index refers to another element
            (at, more), (other, its) = (affine(self.made, self.kinds, line[-1]) for line in (one, two))
            return (at, more) == (other, its) or (other, its - more) in dependent_iterations

        lanes = Lanes(w, self.nest, number, self.kinds, self.seen, found.count)

        def same(one: int, two: int) -> bool:
            return bool(_argument(self.seen[one]) == _argument(self.seen[two]))

        iterations = w.get(f"sub i64 {self.strip_limits[number]}, {start}")
        counter, self.registers[found.counter] = self.registers[found.counter], start
        self.asked = _Asked(number, found.counter, iterations)
        several = VectorStrips(lanes, found, lines, self.registers, element, same, apart)
        may = several.may_run(iterations, self.asked.conditions)
        self.registers[found.counter], self.asked = counter, None
        w.branch(may, run, f"b{number}")
        self.edges[number].append((ask, names))
        w.place(run)
        after = w.get(f"add i64 {start}, {several.run(iterations)}")
        values = [w.get(f"add i64 {after}, {more - 1}") if more != 1 else after for more in found.more]
        self.edges[number].append((w.block, values))
        w.jump(f"b{number}")
        return True

    def _end_strip(self, number: int, end: tuple[Any, ...], at: int, stop: int, step: int) -> None:
        """Emits the block after a strip: the next one, or the loop's exit."""
        w, (_, _, yes, given, no, others) = self.w, end
        inside, over, out = w.label("inside"), w.label("over"), w.label("out")
        less = f"icmp {'slt' if step > 0 else 'sgt'} i64"
        compare = f"{less} {self.registers[at]}"
        limit, last = self.strip_limits[number], self.registers[stop]  # a limit may be that of an earlier range
        nearer = w.get(f"select i1 {w.get(f'{less} {limit}, {last}')}, i64 {limit}, i64 {last}")
        w.branch(w.get(f"{compare}, {nearer}"), inside, over)
        w.place(inside)
        w.jump(self._way(number, yes, given))
        w.place(over)
        self.strip_entries[number].append((w.block, [self.registers[register] for register in self.blocks[number][0]]))
        w.branch(w.get(f"{compare}, {self.registers[stop]}"), f"strip{number}", out)
        w.place(out)
        w.jump(self._way(number, no, others))

    def _phis(self) -> None:
        """Fills in the phis of each block, now that all edges to it are known."""
        lines = self.w.lines
        for place, line in enumerate(lines):
            if line.startswith("  ; phis of "):
                number = int(line.rsplit(" ", 1)[1])
                names = [self.registers[register] for register in self.blocks[number][0]]
                lines[place] = self._arms(number, names, self.edges[number])
            elif line.startswith("  ; strip of "):
                number = int(line.rsplit(" ", 1)[1])
                lines[place] = self._arms(number, self.strip_values[number], self.strip_entries[number])

    def _arms(self, number: int, names: Sequence[str], edges: Sequence[tuple[str, Sequence[str]]]) -> str:
        """The incoming values of a block's parameters, by predecessor."""
        rows = []
        for position, (name, register) in enumerate(zip(names, self.blocks[number][0], strict=True)):
            type = scalar_type(dtype_of(self.kinds[register]))
            arms = ", ".join(f"[ {values[position]}, %{block} ]" for block, values in edges)
            rows.append(f"  {name} = phi {type} {arms}")
        return "\n".join(rows)

    # -- instructions --------------------------------------------------------------------------------------------------
    def _instruction(self, name: str, result: int, *rest: Any) -> None:
        w, v, kinds, registers = self.w, self.v, self.kinds, self.registers
        if name == "const":
            extreme = is_extreme(rest[0])
            registers[result] = (v.unfolded if extreme else constant)(kinds[result], rest[0])
        elif name == "size":
            registers[result] = self._size(self.types[rest[0]].shape[rest[1]])
        elif name == "load":
            registers[result] = loaded(w, self.types[rest[0]].dtype, self._element(rest[0], rest[1:]))
        elif name == "draw":
            registers[result] = self.generators[rest[0]].draw(rest[2], [registers[r] for r in rest[3:]])
        elif name == "require":
            v.need(registers[rest[0]])
        elif name == "more":
            one, two = registers[rest[0]], registers[rest[1]]
            amount = self.known.get(rest[2], 1)
            registers[result] = w.get(f"icmp {'slt' if amount > 0 else 'sgt'} i64 {one}, {two}")
        elif name == "step":
            registers[result] = w.get(f"add nsw i64 {w.opaque(registers[rest[0]])}, {registers[rest[1]]}")
        elif name == "select":
            type = scalar_type(dtype_of(kinds[result]))
            condition, yes, no = (registers[r] for r in rest)
            registers[result] = w.get(f"select i1 {condition}, {type} {yes}, {type} {no}")
        elif name in ARITHMETIC or name in COMPARISONS:
            a, b = rest
            registers[result] = v.binary(name, registers[a], registers[b], kinds[a], kinds[b], kinds[result])
        elif name.startswith("math."):
            registers[result] = python_math.call(v, name, [registers[r] for r in rest])
        elif is_ufunc(name):
            registers[result] = v.ufunc(name, [registers[r] for r in rest])
        else:
            (a,) = rest
            registers[result] = v.unary(name, registers[a], dtype_of(kinds[a]), dtype_of(kinds[result]))

    def _element(self, number: int, places: Sequence[int]) -> str:
        """The address of an element, whose indices are in range."""
        v, array, unit = self.v, self.seen[number], self.units[number]
        terms = []
        for axis, place in enumerate(places):
            count = array.type.shape[axis]
            step = self._distance(array, array.steps[axis], unit)
            low, high = v.range(self.registers[place], dtype_of(self.kinds[place]))
            if isinstance(count, int) and low == high:
                v.need("true" if -count <= low < count else "false")
                terms.append(Term(HoistedValue(str(low % count if count else 0), ENTRY), step))
            elif isinstance(count, int) and low >= 0 and high < count:
                terms.append(self._counted(place, step))
            else:
                terms.append(self._wrapped(place, self._size(count), step, low))
        return self.places.address(self.pointers[number], unit, terms)

    def _counted(self, place: int, step: str) -> Term:
        """An index that is in range; a constant may be added to it."""
        place, more = affine(self.made, self.kinds, place)
        return Term(self._index(place), step, more)

    def _wrapped(self, place: int, size: str, step: str, low: int) -> Term:
        """An index that may be negative; out of range it leaves to plain Python."""
        if self.asked is not None:
            return self._asked_for(self.asked, place, size, step, low)
        index, pure, checks = self._index(place), self.places.pure, self.v.checks
        if low < 0:
            less = pure(f"icmp slt i64 {index.name}, 0", index.block)
            more = pure(f"add i64 {index.name}, {size}", index.block)
            block = self.places.later(less.block, more.block)
            index = pure(f"select i1 {less.name}, i64 {more.name}, i64 {index.name}", block)
        if not self.places.is_passed(index.name, size):
            if not size.isdigit():
                self.open.add(self.places.now)
            self.v.need(pure(f"icmp ult i64 {index.name}, {size}", index.block).name)
            if self._is_askable(place):
                self.askable += self.v.checks - checks
        return Term(index, step, checked=False)

    def _is_askable(self, place: int) -> bool:
        """Whether an index is known at the start of an innermost loop's strip, or follows its induction variable."""
        header = self.nest.within[self.places.now]
        if header not in self.strips:
            return False
        base, _ = affine(self.made, self.kinds, place)
        return base == self.strips[header][0] or self.places.blocks[base] not in self.nest.bodies[header]

    def _asked_for(self, asked: _Asked, place: int, size: str, step: str, low: int) -> Term:
        """An index in a strip's first iteration. A strip with an index out of range runs as scalar code."""
        w = self.w
        base, more = affine(self.made, self.kinds, place)
        name = self._index(base).name
        if more:
            name = w.get(f"add i64 {name}, {more}")
        if base == asked.counter:
            last = w.get(f"add i64 {name}, {w.get(f'sub i64 {asked.iterations}, 1')}")
            asked.conditions.append(w.get(f"icmp ult i64 {last}, {size}"))
        elif low < 0:
            less = w.get(f"icmp slt i64 {name}, 0")
            name = w.get(f"select i1 {less}, i64 {w.get(f'add i64 {name}, {size}')}, i64 {name}")
        asked.conditions.append(w.get(f"icmp ult i64 {name}, {size}"))
        return Term(HoistedValue(name, asked.header), step, checked=False)

    def _index(self, place: int) -> HoistedValue:
        """A register as an index."""
        register, dtype = self.registers[place], dtype_of(self.kinds[place])
        found = HoistedValue(register, self.places.blocks[place])
        if dtype.itemsize == 8 or register.lstrip("-").isdigit():
            return found
        how = "sext" if dtype.kind == "i" else "zext"
        return self.places.pure(f"{how} {scalar_type(dtype)} {register} to i64", found.block)

    def _keep_flags(self, line: tuple[Any, ...]) -> None:
        """Makes LLVM compute a dead float whose flags Python would have reported."""
        register = line[1]
        if register in self.nest.kept:
            dtype = dtype_of(self.kinds[register])
            stored(self.w, dtype, self.registers[register], self.w.slot(scalar_type(dtype), align=8), for_flags=True)

    def _store(self, number: int, value: int, *places: int, again: bool) -> None:
        dtype, source = self.types[number].dtype, dtype_of(self.kinds[value])
        register = self.registers[value]
        if dtype.name == "float32" and source.kind in "iu" and source.itemsize == 8:
            register = self.v.extend(register, source)
            self.v.exact(register, 24)
        if source.kind == "f" and dtype.kind in "iu":
            register, source = self.v.to_int(register, source), np.dtype("int64")
        made = self.v.convert(register, source, dtype)
        stored(self.w, dtype, made, self._element(number, places), for_flags=again and dtype.kind == "f")


@dataclass
class _Asked:
    """The checks hoisted out of a strip of so many ``iterations``, before it is vectorised."""

    header: int
    counter: int
    iterations: str
    conditions: list[str] = field(default_factory=list)


def _argument(array: StridedArray) -> Any:
    """The function's argument for an array."""
    return array.base if array.written is None else ("written", array.written)


__all__ = ["ScalarLoop", "write"]
