"""Loops in machine code: the kernels of a loop's body, round after round, without Python in between.

Enters: the host program of a ``fori_loop``'s region, whose steps are kernels and loops of kernels. Leaves: a
``Rounds``, which runs the loop on arrays. Exists because a round of small kernels takes less time than one call of
Python.

What the rounds do is a program of 64-bit words, written for each call of the loop, which ``native/rounds.ll`` walks
through: kernels with their words, copies, loops inside, numbers that grow by the same amount each round (all that
depends on the counter is linear in it), and pairs of arrays that change places: a carried array and the one that its
next value is written to. Temporaries are allocated once. Rounds run in stretches of some milliseconds, without the GIL;
between two of them Python may deliver an interrupt, of which the loop then leaves no effect.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tcompile.backends import helpers
from tcompile.backends.llvm import native
from tcompile.backends.llvm.native import target, threads
from tcompile.backends.replay import Replay
from tcompile.graph import Node, ScalarType, Size, SymInt, TensorType
from tcompile.graph.sizes import evaluate, product
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.backends.llvm.host import Program

Array: TypeAlias = np.ndarray[Any, Any]
FEWEST = 8  # rounds for which writing the program pays
_STRETCH = 0.005  # seconds that a stretch of rounds should take
_SPARE, _SPARE_BYTES = 4, 1 << 20  # programs of earlier calls that are kept for each loop, and how large they may be
_KERNEL, _COPY, _BIND, _MOVE, _INNER, _LEAVE, _UNLESS, _NEXT = range(8)
_HEADER = 10
_DONE, _WAY = 8, 9  # words that tell how many rounds were done, and how the loop was left
_STEP = 5


class NotNative(Exception):
    """This loop is Python's, and its body compiled."""


@cache
def _runner() -> Callable[[int, int, int], int]:
    """The machine code that walks through a program. Calls of it run without the GIL."""
    symbols = {"tc_parallel": threads.code()["tc_parallel"]}
    code = target.keep_forever(target.load(target.source("rounds.ll"), ["tc_rounds"], symbols, opt=1))
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code["tc_rounds"])


# -- what a round does -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Array:
    """One array of the loop: of this type, or the partial results of a kernel."""

    node: Node | None
    shape: tuple[Size, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class _Launch:
    """A kernel. Its arguments have the character of the spec, and an array's number, a size or a carried value's."""

    kernel: int
    arguments: tuple[tuple[str, Any], ...]
    items: tuple[Size, ...]
    per_item: int
    grain: int | None  # None: all items at once


@dataclass(frozen=True)
class _Copy:
    """One array's elements go to another."""

    to: int
    source: int


@dataclass(frozen=True)
class _Inner:
    """A loop inside. ``given`` are arrays, or the numbers of carried Python floats; ``results`` get what it carries.

    It writes to the ``bound`` ones of its arrays where the loop around has them.
    """

    rounds: Rounds
    count: Size
    given: tuple[int, ...]
    results: tuple[tuple[int, int], ...]
    bound: frozenset[int]


@dataclass(frozen=True)
class _Test:
    """Leaves the loop by a way (0: skips the rest of the round, after so many copies) where a flag holds."""

    flag: int
    way: int
    copies: int = 0


class Rounds:
    """A loop that runs in machine code: ``programs`` are those of the parts of a round, which carry so many values.

    All but the last part end with a flag; ``leaves`` says whether it ends the loop or only the round. Between two parts
    nothing is moved: ``at`` tells, behind each part, which arrays hold the carried values.
    """

    def __init__(self, programs: Sequence[Program], carried: int, leaves: Sequence[bool] = ()) -> None:
        self.graph = programs[0].schedule.graph
        self.carried = carried
        ((self.counter, _),) = [row for row in self.graph.symbol_inputs().items() if row[1] == (0, None)]
        self.arrays: list[_Array] = []
        self.steps: list[_Launch | _Copy | _Inner | _Test] = []
        self.number: dict[Node, int] = {}
        self.inputs: dict[int, int] = {}  # which carried value each array holds before the first round
        self.tests = bool(leaves)
        for position, node in enumerate(self.graph.inputs[1 : carried + 1]):
            if isinstance(node.type, TensorType):
                self.inputs[self._array(node)] = position
        self.written: set[int] = set()
        self.at: list[list[int | None]] = []
        ends: list[tuple[int, int, bool]] = []  # for each test: its place among the steps, its flag, what it does
        for number, program in enumerate(programs):
            self.graph = program.schedule.graph
            if number:
                for node, held in zip(self.graph.inputs[1:], self.at[-1], strict=False):
                    if held is not None:
                        self.number[node] = held
            self._part(program)
            if number < len(leaves):
                self._move_on()
                flag = self.number[self.graph.outputs[-1]]
                ends.append((len(self.steps), flag, leaves[number]))
        self._exchange()
        for number, (place, flag, leave) in reversed(list(enumerate(ends))):
            copies = [] if leave else self._into_place(self.at[number])
            test = _Test(flag, number + 1 if leave else 0, len(copies))
            self.steps[place:place] = [test, *copies, *([] if leave else [_Test(flag, -1)])]
        self.graph = programs[0].schedule.graph
        moved = {held for row in self.at for held in row if held is not None} if self.tests else set()
        self.fresh = sorted(self.inputs.keys() | moved | {number for pair in self.swaps for number in pair})
        self.sized = sorted({place - 1 for place, axis in self.graph.symbol_inputs().values() if axis is not None})
        self.spare: dict[Any, _Level] = {}  # programs and temporaries of earlier calls, by what the calls were given
        if self.tests and any(_counters(array.shape) for array in self.arrays):
            raise NotNative("the sizes of its arrays depend on the round")

    def _part(self, program: Program) -> None:
        for position, step in enumerate(program.schedule.steps):
            if step.kernel is not None:
                self._kernel(program, step)
            elif step.node is not None and step.node in program.loops:
                later = {node for other in program.schedule.steps[position + 1 :] for node in other.reads}
                self._inner(program, step.node, later - {step.node})
            elif step.node is None or step.node.op != "get" or step.node.inputs[0] not in program.loops:
                raise NotNative("its body does more than kernels do")

    def _move_on(self) -> None:
        """Notes where the carried values are behind a part, each in an array of its own."""
        row: list[int | None] = []
        for node, result in zip(self.graph.inputs[1 : self.carried + 1], self.graph.outputs, strict=False):
            if not isinstance(node.type, TensorType):
                row.append(None)
                continue
            there = self.number[result]
            if there in row:
                self.arrays.append(_Array(result, result.tensor.shape, result.tensor.dtype))
                self.steps.append(_Copy(len(self.arrays) - 1, there))
                there = len(self.arrays) - 1
                self.written.add(there)
            row.append(there)
        self.at.append(row)

    def _into_place(self, row: list[int | None]) -> list[_Copy]:
        """The copies that put carried values where the next round looks for them, before arrays change places."""
        final = {here: here for here in self.inputs} | dict(self.swaps)
        wanted = {self.inputs[here]: there for here, there in final.items()}
        copies = [_Copy(wanted[p], held) for p, held in enumerate(row) if held is not None and wanted[p] != held]
        if {copy.to for copy in copies} & {held for held in row if held is not None}:
            raise NotNative("a round that ends early would move arrays in a circle")
        self.written |= {copy.to for copy in copies}
        return copies

    def _array(self, node: Node) -> int:
        self.number[node] = len(self.arrays)
        self.arrays.append(_Array(node, node.tensor.shape, node.tensor.dtype))
        return self.number[node]

    def _kernel(self, program: Program, step: Any) -> None:
        for node in step.writes:
            onto = step.onto.get(node)
            if onto == "base":
                self.number[node] = self.number[node.inputs[0]]
            else:
                made = self._array(node)
                if onto == "copy":
                    self.steps.append(_Copy(made, self.number[node.inputs[0]]))
            self.written.add(self.number[node])
        code, addresses = program.codes[step]
        partial: tuple[int, tuple[Size, ...], int] | None = None
        for function in code.functions:
            items, per_item = function.items, function.per_item
            last = function is code.functions[-1]
            if function.partial_words:
                if any(isinstance(n, SymInt) for n in items):
                    raise NotNative("it reduces over a size that varies")
                count = -(-product(items) // per_item)
                self.arrays.append(_Array(None, (count * function.partial_words,), np.dtype("int64")))
                partial = len(self.arrays) - 1, items, per_item
            elif partial is not None and last:
                items, per_item = partial[1:]
            grain = None if partial is not None and last else int(program.grain(step, function))
            arguments = []
            for char, argument in zip(function.parameters.spec, function.parameters.arguments, strict=True):
                found: Any
                if isinstance(argument, str):
                    assert partial is not None
                    found = partial[0]
                elif isinstance(argument, SymInt):
                    found = _linear(argument)
                elif isinstance(argument.type, ScalarType):
                    found = self.graph.inputs.index(argument) - 1
                else:
                    found = self.number[argument]
                arguments.append((char, found))
            _linear(product(items))
            if per_item != 1 and _counters(items):
                raise NotNative("the number of its elements depends on the round")
            self.steps.append(_Launch(addresses[function.name], tuple(arguments), items, per_item, grain))

    def _inner(self, program: Program, node: Node, later: set[Node]) -> None:
        """A loop inside; ``later`` are the arrays that steps behind it read. What nobody reads it writes in place."""
        rounds = program.loops[node].rounds
        if rounds is None or rounds.tests:
            raise NotNative("a loop inside does more than kernels do")
        start, count, *operands = node.operands
        given = []
        for operand in operands:
            assert isinstance(operand, Node)
            scalar = isinstance(operand.type, ScalarType)
            given.append(self.graph.inputs.index(operand) - 1 if scalar else self.number[operand])
        results, bound = [], set()
        needed = {self.number[other] for other in (*later, *self.graph.outputs) if other in self.number}
        for get in program.schedule.graph.nodes:
            if get.op != "get" or get.inputs[0] is not node:
                continue
            position = get.attrs["index"]
            if isinstance(get.type, ScalarType):
                continue
            inside = rounds.number[rounds.graph.inputs[position + 1]]
            if inside not in rounds.written:
                self.number[get] = given[position]
                continue
            if given[position] in needed or given.count(given[position]) > 1:
                self._array(get)
            else:
                self.number[get] = given[position]
            self.written.add(self.number[get])
            if self.number[get] == given[position] and not any(inside in pair for pair in rounds.swaps):
                bound.add(inside)
            else:
                results.append((self.number[get], inside))
        assert start == 0 and isinstance(count, int | SymInt)
        self.steps.append(_Inner(rounds, _linear(count), tuple(given), tuple(results), frozenset(bound)))

    def _exchange(self) -> None:
        """Where each carried value of the next round is, and which arrays change places for it."""
        self.swaps: list[tuple[int, int]] = []
        taken: set[int] = set()
        for here, position in self.inputs.items():
            result = self.graph.outputs[position]
            there = self.number[result]
            if here == there:
                continue
            if there in self.inputs or there in taken:  # somebody else keeps that one
                self.arrays.append(_Array(result, result.tensor.shape, result.tensor.dtype))
                self.steps.append(_Copy(len(self.arrays) - 1, there))
                there = len(self.arrays) - 1
            taken.add(there)
            self.swaps.append((here, there))
            self.written |= {here, there}

    # -- each call -----------------------------------------------------------------------------------------------------
    def run(self, stop: int, given: Sequence[Any], sizes: Mapping[str, int]) -> tuple[tuple[Any, ...], int, int]:
        """What ``stop`` rounds make of the carried values; ``sizes`` are the symbols that the parts take besides.

        Says in which round the loop was left, and by which way (0: all are done). Raises Replay where only plain Python
        can go on.
        """
        helpers.check_error_state()
        kind = stop, *sizes.items(), *(value.hex() if type(value) is float else value.strides for value in given)
        shapes = tuple(given[position].shape for position in self.sized)
        level = self.spare.pop((kind, shapes), None)
        if level is None:
            level = _Level(self, given, _At(self._symbols(given, sizes), {self.counter: stop - 1}))
        else:
            level.take(given)
        run, left, stretch, status, way = _runner(), stop, 1, 0, 0
        while left and not way:
            count = min(stretch, left)
            began = time.perf_counter()
            status |= run(level.program, level.table, count)
            if status:
                helpers.floating_point_report(status)
            way = int(level.memory[_WAY])
            left -= int(level.memory[_DONE])
            took = time.perf_counter() - began
            stretch = max(1, stretch * 4 if took < _STRETCH else stretch // 2 if took > 4 * _STRETCH else stretch)
        arrays, done = level.arrays, stop - left
        if done % 2:
            for a, b in self.swaps:
                arrays[a], arrays[b] = arrays[b], arrays[a]
        results = []
        held = self.at[way - 1] if way else [self.number.get(node) for node in self.graph.inputs[1 : self.carried + 1]]
        for position, number in enumerate(held):
            results.append(given[position] if number is None or number not in self.written else arrays[number])
        level.let_go()
        if level.bytes < _SPARE_BYTES:
            if len(self.spare) >= _SPARE:
                self.spare.clear()
            self.spare[kind, shapes] = level
        return tuple(results), done, way

    def _symbols(self, given: Sequence[Any], sizes: Mapping[str, int]) -> dict[str, int]:
        rows = [(n, position, axis) for n, (position, axis) in self.graph.symbol_inputs().items() if axis is not None]
        return {**sizes, **{name: given[position - 1].shape[axis] for name, position, axis in rows}}


def _counters(value: Any) -> set[str]:
    """The counters of loops that sizes depend on."""
    if isinstance(value, tuple):
        return set().union(*map(_counters, value))
    return set(value.counters()) if isinstance(value, SymInt) else set()


def _linear(size: Size) -> Size:
    """A size, which must be linear in all counters, none of them times another."""
    counters = _counters(size)
    for monomial in size.terms if isinstance(size, SymInt) and counters else ():
        names = [name for atom in monomial for name in re.findall(r"\w+", atom) if name in counters]
        if len(names) > 1 or not set(names) <= set(monomial):
            raise NotNative("a size is not linear in the number of the round")
    return size


# -- the words ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _At:
    """The symbols' values, and the last value of each counter; the first one is 0."""

    symbols: Mapping[str, int]
    last: Mapping[str, int]

    def first(self, size: Size) -> int:
        """A size in the first rounds of all loops."""
        return evaluate(size, {**self.symbols, **dict.fromkeys(self.last, 0)})

    def ends(self, size: Size) -> list[int]:
        """What a size is where each counter is at one end; it is never beyond these."""
        names = sorted(_counters(size))
        corners = itertools.product(*((0, self.last[name]) for name in names))
        return [evaluate(size, {**self.symbols, **dict(zip(names, ends, strict=True))}) for ends in corners]

    def most(self, size: Size) -> int:
        """The largest value that a size has in any round."""
        return max(self.ends(size))

    def growth(self, size: Size, counter: str) -> int:
        """By how much a size grows when a counter does."""
        if counter not in _counters(size):
            return 0
        zero = {**self.symbols, **dict.fromkeys(self.last, 0)}
        return evaluate(size, {**zero, counter: 1}) - evaluate(size, zero)


class _Level:
    """The arrays and the program of one loop, for one call. ``inside`` another loop, which gives it its arrays."""

    def __init__(self, rounds: Rounds, given: Sequence[Any], at: _At, inside: bool = False) -> None:
        self.rounds, self.given, self.at, self.inside = rounds, given, at, inside
        self.arrays = [self._memory(number) for number in range(len(rounds.arrays))]
        self.slots = np.array([_address(array) for array in self.arrays], np.int64)
        self.table = _address(self.slots)
        self.numbers: list[tuple[int, Size]] = []  # words that hold sizes
        self.held: list[_Level] = []
        self.words: list[int] = []
        self.places: list[tuple[int, int]] = []  # words that hold addresses, and of which array
        self._write()
        self.first = np.array(self.words, np.int64)
        self.memory = self.first.copy()
        self.program = _address(self.memory)
        if inside:
            self.let_go()

    def take(self, given: Sequence[Any]) -> None:
        """Begins another call with values of the same kind."""
        self.given = given
        for number in self.rounds.fresh:
            self.arrays[number] = made = self._memory(number)
            self.slots[number] = _address(made)
        for place, number in self.places:
            self.first[place] = self.slots[number]
        self.memory[:] = self.first

    @property
    def bytes(self) -> int:
        """How much memory it holds, what it was given left out."""
        own = sum(array.nbytes for array in self.arrays)
        return own + 8 * len(self.words) + sum(level.bytes for level in self.held)

    def let_go(self) -> None:
        """Forgets all arrays that others hold, or will."""
        self.given = ()
        for number in self.rounds.inputs if self.inside else self.rounds.fresh:
            if not (self.inside and number in self.rounds.written):
                self.arrays[number] = _NONE

    def _memory(self, number: int) -> Array:
        """An array of the loop: what it is given, a copy where it is written to, or a new one."""
        position = self.rounds.inputs.get(number)
        if position is not None:
            array = np.asarray(self.given[position])
            return np.copy(array, order="K") if number in self.rounds.written else array
        made = self.rounds.arrays[number]
        shape = tuple(map(self.at.most, made.shape))
        order = tuple(range(len(shape))) if made.node is None else made.node.tensor.layout.order
        return native.empty(shape, made.dtype, order)

    def _number(self, size: Size) -> int:
        """A new word with a size, and its place. Raises Replay where the size has more than 64 bits in some round."""
        if any(abs(end) >= 1 << 63 for end in self.at.ends(size)):
            raise Replay("a number of more than 64 bits")
        self.words.append(self.at.first(size))
        self.numbers.append((len(self.words) - 1, size))
        return len(self.words) - 1

    def _write(self) -> None:
        rounds, words = self.rounds, self.words
        words += [0] * _HEADER
        swapped = {number for pair in rounds.swaps for number in pair}
        if self.inside:  # what the loop around gives may have changed places
            swapped |= rounds.inputs.keys()
        addresses: list[int] = []
        rows: list[tuple[list[int], Size | None]] = []
        for step in rounds.steps:
            if isinstance(step, _Test):
                slot = self.table + 8 * step.flag
                kind = _LEAVE if step.way > 0 else _UNLESS if step.way == 0 else _NEXT
                rows.append(([kind, slot, step.way or step.copies + 1, 0, 0], None))
            elif isinstance(step, _Copy):
                rows.append((self._copy(self.table, step.to, self.table, step.source, self.arrays[step.to]), None))
            elif isinstance(step, _Inner):
                rows += self._inner(step)
            else:
                rows.append(self._launch(step, swapped, addresses))
        words[0:2] = [len(rows), len(words)]
        for row, size in rows:
            words += row
            if size is not None:  # the third number of the row
                self.numbers.append((len(words) - 2, size))
        growing = []
        for place, size in self.numbers:
            by = self.at.growth(size, rounds.counter)
            growing += [place, by] if by else []
        for header, table in ((2, addresses), (4, growing), (6, [n for pair in rounds.swaps for n in pair])):
            words[header : header + 2] = [len(table) // 2, len(words)]
            words += table

    def _launch(
        self, step: _Launch, swapped: set[int], addresses: list[int]
    ) -> tuple[list[int], Size | None]:
        words, items = self.words, product(step.items)
        count = self.at.first(items)
        if step.per_item != 1:
            *outer, inner = (self.at.first(n) for n in step.items)
            count = product(outer) * -(-inner // step.per_item)  # type: ignore[assignment]
        row = [_KERNEL, step.kernel, len(words), count, max(1, count) if step.grain is None else step.grain]
        for char, argument in step.arguments:
            if char == "i":
                self._number(argument)
            elif char == "f":
                words.append(struct.unpack("<q", struct.pack("<d", self.given[argument]))[0])
            else:
                if argument in swapped:
                    addresses += [len(words), argument]
                elif argument in self.rounds.fresh:
                    self.places.append((len(words), argument))
                words.append(_address(self.arrays[argument]))
                words += self.arrays[argument].strides if char == "s" else ()
        return row, items if step.per_item == 1 else None

    @staticmethod
    def _copy(table: int, to: int, source_table: int, source: int, array: Array) -> list[int]:
        return [_COPY, table + 8 * to, source_table + 8 * source, array.nbytes, 0]

    def _inner(self, step: _Inner) -> list[tuple[list[int], Size | None]]:
        """A loop inside: what it is given, the numbers it starts with, itself, and what becomes of its results."""
        rounds = step.rounds
        types = [node.type for node in rounds.graph.inputs[1 : rounds.carried + 1]]
        given = [
            self.arrays[number] if isinstance(type, TensorType) else self.given[number]
            for number, type in zip(step.given, types, strict=True)
        ]
        at = _At(self.at.symbols, {**self.at.last, rounds.counter: self.at.most(step.count) - 1})
        level = _Level(rounds, given, at, inside=True)
        self.held.append(level)
        rows: list[tuple[list[int], Size | None]] = []
        for number, position in rounds.inputs.items():
            source = step.given[position]
            if number in rounds.written and number not in step.bound:
                rows.append((self._copy(level.table, number, self.table, source, level.arrays[number]), None))
            else:
                rows.append(([_BIND, level.table + 8 * number, source, 0, 0], None))
        for place, size in level.numbers:
            if _counters(size):
                start = size.at(rounds.counter, 0) if isinstance(size, SymInt) else size
                rows.append(([_MOVE, level.program + 8 * place, self._number(start), 0, 0], None))
        rows.append(([_INNER, level.program, level.table, self.at.first(step.count), 0], step.count))
        for number, inside in step.results:
            rows.append((self._copy(self.table, number, level.table, inside, self.arrays[number]), None))
        return rows


_NONE: Array = np.empty(0)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


@dataclass
class Loop:
    """A ``fori_loop`` as a host program calls it: in machine code where that is possible and pays.

    ``updated`` are the carried values that a round writes in place.
    """

    body: Callable[..., tuple[Any, ...]]
    rounds: Rounds | None
    updated: tuple[int, ...]
    symbols: tuple[str, ...]

    def __call__(self, start: int, stop: int, *carried: Any, sizes: tuple[int, ...] = ()) -> tuple[Any, ...]:
        """Runs it."""
        if self.rounds is not None and start == 0 and stop >= FEWEST:
            return self.rounds.run(stop, carried, dict(zip(self.symbols, sizes, strict=True)))[0]
        if self.updated and stop > start:
            own = list(carried)
            for number in self.updated:
                own[number] = np.copy(own[number], order="K")
            carried = tuple(own)
        for i in range(start, stop):
            carried = self.body(i, *carried, *sizes)
        return carried


def loop(program: Program, body: Callable[..., tuple[Any, ...]], carried: int, symbols: Sequence[str]) -> Loop:
    """The loop whose region's host program is ``program``, which takes the values of ``symbols`` besides."""
    graph = program.schedule.graph
    rounds = native_rounds([program], carried)
    return Loop(body, rounds, tuple(number - 1 for number in graph.updates.values()), tuple(symbols))


def native_rounds(programs: Sequence[Program], carried: int, leaves: Sequence[bool] = ()) -> Rounds | None:
    """The rounds in machine code; None where they do more than that can."""
    try:
        return Rounds(programs, carried, leaves)
    except NotNative:
        return None


__all__ = ["FEWEST", "Loop", "Rounds", "loop", "native_rounds"]
