"""The program of a loop in machine code: 64-bit words, which ``native/rounds.ll`` walks through.

Enters: the ``Rounds`` of a loop, and what one call gives it. Leaves: a ``Level``: the loop's arrays, and its program,
which is kept for later calls of the same kind.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tcompile.backends.llvm import native
from tcompile.backends.llvm.native import interrupts, target, threads
from tcompile.backends.llvm.round_steps import Array, Copy, Inner, Launch, LoopArray, Test
from tcompile.backends.replay import Replay
from tcompile.backends.status import INTERRUPTED, ONLY_NUMPY
from tcompile.graph import Size, SymInt, TensorType
from tcompile.graph.sizes import counters_in, evaluate, product

if TYPE_CHECKING:
    from tcompile.backends.llvm.rounds import Rounds

_KERNEL, _COPY, _BIND, _MOVE, _INNER, _LEAVE, _UNLESS, _NEXT, _PICK, _TELL, _LEAST = range(11)
_HEADER = 11
DONE, WAY = 8, 9  # words that tell how many rounds were done, and how the loop was left
_CLOCK = 10  # the word that tells where the clock is
_NEVER = (1 << 63) - 1  # rounds


@cache
def _code() -> target.Code:
    stops = {"LAST": ONLY_NUMPY | INTERRUPTED, "ONLY_NUMPY": ONLY_NUMPY, "INTERRUPTED": INTERRUPTED}
    text = target.source("rounds.ll", stops)
    symbols = {"tc_parallel": threads.code()["tc_parallel"], **interrupts.functions(), **native.symbols(text)}
    return target.keep_forever(target.load(text, ["tc_begin", "tc_loop"], symbols))


class At:
    """The symbols' values, and the last value of each counter; the first one is 0."""

    def __init__(self, symbols: Mapping[str, int], last: Mapping[str, int]) -> None:
        self.symbols, self.last = symbols, last
        self.begin = {**symbols, **dict.fromkeys(last, 0)}

    def first(self, size: Size) -> int:
        """A size in the first rounds of all loops."""
        return evaluate(size, self.begin)

    def ends(self, size: Size) -> list[int]:
        """What a size is where each counter is at one end; it is never beyond these."""
        if not isinstance(size, SymInt):
            return [size]
        names = sorted(counters_in(size) & self.last.keys())  # rounds of a loop around that Python runs have a value
        corners = itertools.product(*((0, self.last[name]) for name in names))
        return [evaluate(size, {**self.symbols, **dict(zip(names, ends, strict=True))}) for ends in corners]

    def most(self, size: Size) -> int:
        """The largest value that a size has in any round."""
        return max(self.ends(size))

    def growth(self, size: Size, counter: str) -> int:
        """By how much a size grows when a counter does."""
        if not isinstance(size, SymInt) or counter not in size.names:
            return 0
        return evaluate(size, {**self.begin, counter: 1}) - evaluate(size, self.begin)


class Level:
    """The arrays and the program of one loop, for one call. ``inside`` another loop, which gives it its arrays."""

    def __init__(self, rounds: Rounds, given: Sequence[Any], at: At, inside: bool = False) -> None:
        self.rounds, self.given, self.at, self.inside = rounds, given, at, inside
        self.forms = [self._form(made) for made in rounds.arrays]
        self.arrays = [self._memory(number) for number in range(len(rounds.arrays))]
        self.slots = np.array([_address(array) for array in self.arrays], np.int64)
        self.table = _address(self.slots)
        self.taken = [(number, *self._taken(number)) for number in rounds.fresh]
        self.numbers: list[tuple[int, Size]] = []  # words that hold sizes
        self.clock = np.array([1, 1, 0], np.int64)  # see tc_due in poll.ll
        self.tables: list[Array] = []  # of addresses and numbers, which the program points to
        self.held: list[Level] = []
        self.words: list[int] = []
        self._write()
        self.first = np.array(self.words, np.int64)
        self.origin = _address(self.first)
        self.memory = self.first.copy()
        self.program = _address(self.memory)
        self.told = memoryview(self.memory.data)  # whose words are read sooner
        self.launch, self.code = native.launcher(), _code()
        self.begins = b"iiiiii" + b"ia" * len(self.taken)
        self.size = self.bytes
        if inside:
            self.let_go()

    def begin(self, given: Sequence[Any], rounds: int) -> int:
        """Begins another call with values of the same kind, as ``run`` does."""
        self.given = given
        arrays, pairs = self.arrays, list[Any]()
        for number, position, written, make in self.taken:
            if position is None:
                array = make()
            else:
                array = given[position]
                if array.__class__ is not np.ndarray:  # a scalar object
                    array = np.asarray(array)
                if written:
                    array = native.copy(array)
            arrays[number] = array
            pairs += number, array
        count, length = len(self.taken), len(self.words)
        words = (self.program, self.table, rounds, self.origin, length, count, *pairs)
        found: int = self.launch(self.code["tc_begin"], self.begins, 1, 1, *words)
        return found

    def run(self, rounds: int) -> int:
        """Runs so many rounds, or fewer where a status may be the end of them; returns the status."""
        found: int = self.launch(self.code["tc_loop"], b"iii", 1, 1, self.program, self.table, rounds)
        return found

    def _taken(self, number: int) -> tuple[int | None, bool, Callable[[], Array]]:
        """How each call gets an array of its own: from what it is given, copied where the loop writes to it, or new."""
        position = self._position(number)
        return position, number in self.rounds.written, native.maker(*self.forms[number])

    def _position(self, number: int) -> int | None:
        """Which of the values given an array holds before the first round."""
        return self.rounds.inputs.get(number, self.rounds.twins.get(number))

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
        position = self._position(number)
        if position is not None:
            array = np.asarray(self.given[position])
            return native.copy(array) if number in self.rounds.written else array
        fixed = self.rounds.fixed.get(number)
        return fixed if fixed is not None else native.empty(*self.forms[number])

    def _form(self, made: LoopArray) -> tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]:
        """The shape, dtype and memory order of an array in all rounds."""
        shape = tuple(map(self.at.most, made.shape))
        order = tuple(range(len(shape))) if made.node is None else made.node.tensor.layout.order
        return shape, made.dtype, order

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
        words[_CLOCK] = _address(self.clock)
        changing = {number for pair in rounds.swaps for number in pair}
        # What the loop around gives may have changed places; each call has other fresh arrays.
        changing |= rounds.inputs.keys() if self.inside else set(rounds.fresh)
        addresses: list[int] = []
        rows: list[tuple[list[int], Size | None]] = []
        for step in rounds.steps:
            if isinstance(step, Test):
                slot = self.table + 8 * step.flag
                kind = _LEAVE if step.way > 0 else _UNLESS if step.way == 0 else _NEXT
                rows.append(([kind, slot, step.way or step.copies + 1, 0, 0], None))
            elif isinstance(step, Copy) and any(step is copy for copy in rounds.copied_once):
                continue
            elif isinstance(step, Copy):
                rows.append((self._copy(self.table, step.to, self.table, step.source, self.arrays[step.to]), None))
            elif isinstance(step, Inner):
                rows += self._inner(step)
            else:
                rows.append(self._launch(step, changing, addresses))
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
        self, step: Launch, changing: set[int], addresses: list[int]
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
                if argument in changing:
                    addresses += [len(words), argument]
                words.append(_address(self.arrays[argument]))
                words += self.arrays[argument].strides if char == "s" else ()
        return row, items if step.per_item == 1 else None

    @staticmethod
    def _copy(table: int, to: int, source_table: int, source: int, array: Array) -> list[int]:
        return [_COPY, table + 8 * to, source_table + 8 * source, array.nbytes, 0]

    def _inner(self, step: Inner) -> list[tuple[list[int], Size | None]]:
        """A loop inside: what it is given, the numbers it starts with, itself, and what becomes of its results."""
        rounds = step.rounds
        types = [node.type for node in rounds.graph.inputs[1 : rounds.carried + 1]]
        given = [
            self.arrays[number] if isinstance(type, TensorType) else self.given[number]
            for number, type in zip(step.given, types, strict=True)
        ]
        at = At(self.at.symbols, {**self.at.last, rounds.counter: self.at.most(step.count) - 1})
        level = Level(rounds, given, at, inside=True)
        self.held.append(level)
        rows: list[tuple[list[int], Size | None]] = []
        for number, position in rounds.inputs.items():
            source = step.given[position]
            if number in rounds.written and number not in step.bound:
                rows.append((self._copy(level.table, number, self.table, source, level.arrays[number]), None))
            else:
                rows.append(([_BIND, level.table + 8 * number, source, 0, 0], None))
        for number, position in rounds.twins.items():
            rows.append((self._copy(level.table, number, self.table, step.given[position], level.arrays[number]), None))
        for place, size in level.numbers:
            if counters_in(size):
                start = size.at(rounds.counter, 0) if isinstance(size, SymInt) else size
                rows.append(([_MOVE, level.program + 8 * place, self._number(start), 0, 0], None))
        rows.append(([_INNER, level.program, level.table, self.at.first(step.count), 0], step.count))
        way = level.program + 8 * WAY
        if step.least:
            fewest = self._kept([_NEVER if least is None else least for least in step.least])
            rows.append(([_LEAST, level.program, fewest, 0, 0], None))
        for number, ways in step.results:
            row = self._copy(self.table, number, level.table, ways[0], self.arrays[number])
            if len(set(ways)) > 1:
                row = [_PICK, row[1], self._kept([level.table + 8 * inside for inside in ways]), row[3], way]
            rows.append((row, None))
        for told, word in zip(step.told, (DONE, WAY), strict=True):
            if told is not None:
                rows.append(([_TELL, self.table + 8 * told, level.program + 8 * word, 0, 0], None))
        return rows

    def _kept(self, numbers: Sequence[int]) -> int:
        """The address of a table."""
        self.tables.append(np.array(numbers, np.int64))
        return _address(self.tables[-1])


_NONE: Array = np.empty(0)


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


__all__ = ["DONE", "WAY", "At", "Level"]
