"""Encoding of loop programs: 64-bit words, which ``native/loop_program.ll`` interprets.

Input: the ``LoopIR`` of a loop, and the arguments of one call.
Output: a ``Level``: the loop's arrays and its program, kept for later calls of the same form.
Why: the same steps have other addresses and sizes in each call.
"""

from __future__ import annotations

import itertools
import math
import operator
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from tcompile.backends.llvm import native
from tcompile.backends.llvm.loop_program import skewing
from tcompile.backends.llvm.loop_program.ir import (
    Array,
    CopyStep,
    ExitTest,
    InnerLoopStep,
    KernelStep,
    LoopArray,
    LoopIR,
    SkewPlan,
)
from tcompile.backends.llvm.native import interrupts, target, threads
from tcompile.backends.replay import Replay
from tcompile.backends.status import CHANGED, INTERRUPTED, ONLY_NUMPY, PAUSED
from tcompile.graph import Size, SymInt, TensorType
from tcompile.graph.sizes import counters_in, evaluate, product

# The opcodes, and the meaning of their third word.
_Row: TypeAlias = tuple[list[int], Size | None]

_KERNEL, _COPY, _BIND, _MOVE, _INNER, _LEAVE, _UNLESS, _NEXT, _PICK, _TELL, _LEAST, _TOGETHER = range(12)
_HEADER = 13
DONE, WAY = 8, 9  # words with the number of iterations done, and the exit
_CLOCK = 10  # the word with the clock's address
_SEVERAL = 11  # the words with the number of skewed iterations, and the address of their table
_NEVER = (1 << 63) - 1  # iterations
_PLANS = 64  # per loop
_COPIED_BYTES, _COPIED_NS = 1 << 19, 0.1  # bytes that one thread copies, and ns per byte


@cache
def _code() -> target.MachineCode:
    stops = {
        "LAST": ONLY_NUMPY | INTERRUPTED | CHANGED, "ONLY_NUMPY": ONLY_NUMPY, "INTERRUPTED": INTERRUPTED,
        "CHANGED": CHANGED, "PAUSED": PAUSED,
    }  # fmt: skip
    text = target.source("loop_program.ll", stops) + target.source("skewed.ll")
    symbols = {"tc_parallel": threads.code()["tc_parallel"], **interrupts.functions(), **native.symbols(text)}
    return target.keep_forever(target.load(text, ["tc_begin", "tc_copy", "tc_loop"], symbols))


class At:
    """Values of the symbols, and the last value of each induction variable; the first one is 0."""

    def __init__(self, symbols: Mapping[str, int], last: Mapping[str, int]) -> None:
        self.symbols, self.last = symbols, last
        self.begin = {**symbols, **dict.fromkeys(last, 0)}

    def first(self, size: Size) -> int:
        """A size in the first iterations of all loops."""
        return evaluate(size, self.begin)

    def ends(self, size: Size) -> list[int]:
        """The values of a size where each induction variable is at one end; these bound it."""
        if not isinstance(size, SymInt):
            return [size]
        names = sorted(counters_in(size) & self.last.keys())  # an enclosing loop that Python runs has a value
        corners = itertools.product(*((0, self.last[name]) for name in names))
        return [evaluate(size, {**self.symbols, **dict(zip(names, ends, strict=True))}) for ends in corners]

    def most(self, size: Size) -> int:
        """The largest value that a size has in any iteration."""
        return max(self.ends(size))

    def growth(self, size: Size, counter: str) -> int:
        """The step of a size when an induction variable grows by one."""
        if not isinstance(size, SymInt) or counter not in size.names:
            return 0
        return evaluate(size, {**self.begin, counter: 1}) - evaluate(size, self.begin)


class Level:
    """The arrays and the program of one loop, for one call. ``inside`` another loop, which provides its arrays."""

    def __init__(
        self, iterations: LoopIR, given: Sequence[Any], at: At, inside: bool = False, clock: Array | None = None
    ) -> None:
        self.iterations, self.given, self.at, self.inside = iterations, given, at, inside
        self.forms = [self._form(made) for made in iterations.arrays]
        self.arrays = [self._memory(number) for number in range(len(iterations.arrays))]
        self.slots = np.array([_address(array) for array in self.arrays], np.int64)
        self.table = _address(self.slots)
        self.taken = [(number, *self._taken(number)) for number in iterations.fresh]
        self.numbers: list[tuple[int, Size]] = []  # words that hold sizes
        self.clock = np.array([1, 1, 0, 0, 0], np.int64) if clock is None else clock  # see tc_due in poll.ll
        self.tables: list[Array] = []  # of addresses and numbers, to which the program points
        self.held: list[Level] = []
        self.words: list[int] = []
        self._write()
        self.first = np.array(self.words, np.int64)
        self.origin = _address(self.first)
        self.memory = self.first.copy()
        self.program = _address(self.memory)
        self.reported_words = memoryview(self.memory.data)  # faster to read
        self.launch, self.code = native.launcher(), _code()
        self.begins = b"iiiiii" + b"ia" * len(self.taken)
        self.size = self.bytes
        if inside:
            self.release_arrays()

    def begin(self, given: Sequence[Any], iterations: int) -> int:
        """Begins another call with arguments of the same form, as ``run`` does."""
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
        words = (self.program, self.table, iterations, self.origin, length, count, *pairs)
        found: int = self.launch(self.code["tc_begin"], self.begins, 1, 1, *words)
        return found

    def run(self, iterations: int) -> int:
        """Runs so many iterations, or fewer where a status may end them; returns the status."""
        found: int = self.launch(self.code["tc_loop"], b"iii", 1, 1, self.program, self.table, iterations)
        return found

    def _taken(self, number: int) -> tuple[int | None, bool, Callable[[], Array]]:
        """How each call gets an array: from an argument, copied where the loop writes to it, or new."""
        return self._position(number), self._is_copied(number), native.maker(*self.forms[number])

    def _is_copied(self, number: int) -> bool:
        """Whether an argument needs a copy: the loop writes to it, and it may have aliases."""
        iterations = self.iterations
        if number not in iterations.written:
            return False
        return self.inside or iterations.inputs.get(number) not in iterations.taken_over

    def _position(self, number: int) -> int | None:
        """The position of the argument that an array holds before the first iteration."""
        return self.iterations.inputs.get(number, self.iterations.double_buffers.get(number))

    @property
    def bytes(self) -> int:
        """The memory that it keeps between calls: arrays that each call makes, or is given, are left out."""
        others = () if self.inside else frozenset(self.iterations.fresh)
        own = sum(array.nbytes for number, array in enumerate(self.arrays) if number not in others)
        return own + 8 * len(self.words) + sum(level.bytes for level in self.held)

    def release_arrays(self) -> None:
        """Drops the references to all arrays that others hold, or will."""
        self.given = ()
        for number in self.iterations.inputs if self.inside else self.iterations.fresh:
            if not (self.inside and number in self.iterations.written):
                self.arrays[number] = _NONE

    def _memory(self, number: int) -> Array:
        """Allocates an array of the loop: an argument, a copy where it is written to, or a new one."""
        position = self._position(number)
        if position is not None:
            array = np.asarray(self.given[position])
            return native.copy(array) if self._is_copied(number) else array
        fixed = self.iterations.fixed.get(number)
        return fixed if fixed is not None else native.empty(*self.forms[number])

    def _form(self, made: LoopArray) -> tuple[tuple[int, ...], np.dtype[Any], tuple[int, ...]]:
        """The shape, dtype and memory order of an array in all iterations."""
        shape = tuple(map(self.at.most, made.shape))
        order = tuple(range(len(shape))) if made.node is None else made.node.tensor.layout.order
        return shape, made.dtype, order

    def _number(self, size: Size) -> int:
        """A new word with a size, and its position. Raises Replay where it exceeds 64 bits in some iteration."""
        if any(abs(end) >= 1 << 63 for end in self.at.ends(size)):
            raise Replay("a number of more than 64 bits")
        self.words.append(self.at.first(size))
        self.numbers.append((len(self.words) - 1, size))
        return len(self.words) - 1

    def _write(self) -> None:
        iterations, words = self.iterations, self.words
        words += [0] * _HEADER
        words[_CLOCK] = _address(self.clock)
        # The enclosing loop's arrays may have been swapped; each call has other fresh arrays.
        self.changing = iterations.moves.keys() | (iterations.inputs.keys() if self.inside else set(iterations.fresh))
        self.addresses = list[int]()  # pairs of a word and an array
        rows: list[_Row] = []
        kernels: dict[int, KernelStep | CopyStep] = {}
        passed_over = 0  # the number of following rows that a test may skip
        for step in iterations.steps:
            if isinstance(step, ExitTest):
                passed_over = step.copies
                slot = self.table + 8 * step.flag
                kind = _LEAVE if step.way > 0 else _UNLESS if step.way == 0 else _NEXT
                rows.append(([kind, slot, step.way or step.copies + 1, 0, 0], None))
            elif isinstance(step, CopyStep) and any(step is copy for copy in iterations.copied_once):
                continue
            elif isinstance(step, InnerLoopStep):
                rows += self._inner(step)
            else:
                if passed_over:
                    passed_over -= 1
                else:
                    kernels[len(rows)] = step
                rows.append(self._kernel(step))
        rows = self._skew_rows(rows, kernels)
        words[0:2] = [len(rows), len(words)]
        for row, size in rows:
            words += row
            if size is not None:  # the third number of the row
                self.numbers.append((len(words) - 2, size))
        growing = []
        for place, size in self.numbers:
            by = self.at.growth(size, iterations.counter)
            growing += [place, by] if by else []
        for header, table in ((2, self.addresses), (4, growing), (6, [n for pair in iterations.swaps for n in pair])):
            words[header : header + 2] = [len(table) // 2, len(words)]
            words += table

    def _skew_rows(self, rows: list[_Row], kernels: Mapping[int, KernelStep | CopyStep]) -> list[_Row]:
        """The rows, with runs of kernels and runs of iterations skewed where that pays."""
        if sum(array.nbytes for array in self.arrays) < skewing.LEAST_BYTES:
            return rows
        iterations = min(self.at.last[self.iterations.counter] + 1, max(skewing.ITERATIONS))
        key = (
            native.num_threads(), iterations, len(rows), *kernels, *self.at.symbols.values(),
            *[(array.shape, array.strides) for array in self.arrays],
        )  # fmt: skip
        plans = self.iterations.plans
        plan = plans.get(key)
        if plan is None:
            if len(plans) >= _PLANS:
                plans.clear()
            plan = plans[key] = self._plan(len(rows), kernels, iterations)
        if plan.several is not None:
            self._several(plan.iterations, plan.several, rows, kernels.values())
            return rows
        found = list(rows)
        for place, end, how in reversed(plan.runs):
            found[place:end] = [([_TOGETHER, len(self.words), 0, 0, 0], None)]
            self._skewed(how, rows[place:end])
        return found

    def _plan(self, length: int, kernels: Mapping[int, KernelStep | CopyStep], most: int) -> SkewPlan:
        """Decides which of so many rows, and which iterations of at ``most`` so many, are skewed."""
        threads, iterations = native.num_threads(), self.iterations
        bands = {at: band for at, kernel in kernels.items() if (band := self._band(kernel, {})) is not None}
        alike = all(self.arrays[here].strides == self.arrays[there].strides for here, there in iterations.moves.items())
        if len(bands) == length and not iterations.tests and alike:
            each = [[*bands.values()]]
            for there in self._places(iterations.period)[1:]:
                each.append([band for kernel in kernels.values() if (band := self._band(kernel, there)) is not None])
            for count in skewing.ITERATIONS:
                if count <= most and count % iterations.period == 0:
                    how = skewing.skew([band for n in range(count) for band in each[n % iterations.period]], threads)
                    if how is not None:
                        return SkewPlan(count, how)
        runs: list[tuple[int, int, skewing.Skew]] = []
        place = 0
        while place < length:
            end = place
            while end in bands:
                end += 1
            how = skewing.skew([bands[at] for at in range(place, end)], threads) if end - place > 1 else None
            if how is not None:
                runs.append((place, end, how))
            place = end if how is not None else place + 1
        return SkewPlan(runs=tuple(runs))

    def _places(self, iterations: int) -> list[dict[int, int]]:
        """The buffers of swapped arrays after each of so many iterations."""
        found = [{number: number for number in self.iterations.moves}]
        while len(found) < iterations:
            found.append({number: self.iterations.moves[at] for number, at in found[-1].items()})
        return found

    def _several(
        self, count: int, how: skewing.Skew, rows: Sequence[_Row], kernels: Collection[KernelStep | CopyStep]
    ) -> None:
        """Encodes how so many iterations are skewed."""
        grows = any(self.at.growth(size, self.iterations.counter) for _, size in self.numbers)
        each = [list(rows)]
        for n, there in enumerate(self._places(count if grows else self.iterations.period)[1:], start=1):
            each.append([self._kernel(kernel, there, ahead=n) for kernel in kernels])
        self.words[_SEVERAL : _SEVERAL + 2] = [count, len(self.words)]
        self._skewed(how, [row for n in range(count) for row in each[n % len(each)]])

    def _skewed(self, how: skewing.Skew, rows: Sequence[_Row]) -> None:
        """Writes the table that ``native/skewed.ll`` reads."""
        place = len(self.words)
        self.words += [len(rows), how.block, how.zones, max(how.end), max(map(operator.add, how.end, how.before))]
        each = zip(how.parts, how.widths, how.first, how.end, how.before, how.after, strict=True)
        for (row, _), (parts, width, *others) in zip(rows, each, strict=True):
            _, code, words, items, _ = row
            self.words += [code, words - place, items, items // max(parts, 1) * width, *others]

    def _band(self, kernel: KernelStep | CopyStep, there: Mapping[int, int]) -> skewing.Band | None:
        """The slabs of a kernel after swaps, if they are known."""
        if isinstance(kernel, CopyStep):
            size, step = self.arrays[kernel.to].size, self.arrays[kernel.to].itemsize
            both = (kernel.source, False), (kernel.to, True)
            parts = [skewing.SlabAccess(there.get(number, number), written, 0, step, step) for number, written in both]
            return skewing.Band(size, tuple(parts), ns=_COPIED_NS * size * step)
        if kernel.slabs is None:
            return None
        parts = list[skewing.SlabAccess]()
        slabs, *inner = map(self.at.first, kernel.slabs.axes) if kernel.slabs.axes else [1]
        for number, written, access in kernel.slabs.places:
            array = self.arrays[number]
            units: dict[int | None, int] = {None: array.itemsize, **dict(enumerate(array.strides))}
            offset, *steps = (
                sum(self.at.first(multiple) * units[axis] for multiple, axis in distance)
                for distance in (access.offset, *access.steps)
            )
            far = [step * max(n - 1, 0) for step, n in zip(steps[1:], inner, strict=True)]
            start = offset + sum(min(f, 0) for f in far)
            stop = offset + sum(max(f, 0) for f in far) + array.itemsize
            parts.append(skewing.SlabAccess(there.get(number, number), written, start, stop, steps[0] if steps else 0))
        points = slabs * math.prod(inner)
        return skewing.Band(slabs, tuple(parts), kernel.slabs.unit, ns=kernel.slabs.ns * points)

    def _kernel(
        self, step: KernelStep | CopyStep, there: Mapping[int, int] = MappingProxyType({}), ahead: int = 0
    ) -> _Row:
        """A kernel, so many iterations ahead; ``there`` maps swapped arrays to their buffers then."""
        words = self.words
        if isinstance(step, CopyStep):
            array = self.arrays[step.to]
            row = [_KERNEL, _code()["tc_copy"], len(words), array.size, max(1, _COPIED_BYTES // array.itemsize)]
            self._at(there.get(step.to, step.to))
            self._at(there.get(step.source, step.source))
            words.append(array.itemsize)
            return row, None
        items = product(step.items)
        count = self.at.first(items)
        if step.per_item != 1:
            *outer, inner = (self.at.first(n) for n in step.items)
            count = product(outer) * -(-inner // step.per_item)  # type: ignore[assignment]
        row = [_KERNEL, step.kernel, len(words), count, max(1, count) if step.grain is None else step.grain]
        for char, argument in step.arguments:
            if char == "i":
                self._number(argument + ahead * self.at.growth(argument, self.iterations.counter))
            elif char == "f":
                words.append(struct.unpack("<q", struct.pack("<d", self.given[argument]))[0])
            else:
                self._at(there.get(argument, argument))
                words += self.arrays[argument].strides if char == "s" else ()
        return row, items if step.per_item == 1 else None

    def _at(self, number: int) -> None:
        """A word with the address of an array."""
        if number in self.changing:
            self.addresses += [len(self.words), number]
        self.words.append(_address(self.arrays[number]))

    @staticmethod
    def _copy(table: int, to: int, source_table: int, source: int, array: Array) -> list[int]:
        return [_COPY, table + 8 * to, source_table + 8 * source, array.nbytes, 0]

    def _inner(self, step: InnerLoopStep) -> list[_Row]:
        """An inner loop: its arguments, the initial numbers, itself, and the moves of its results."""
        iterations = step.iterations
        types = [node.type for node in iterations.graph.inputs[1 : iterations.carried + 1]]
        given = [
            self.arrays[number] if isinstance(type, TensorType) else self.given[number]
            for number, type in zip(step.given, types, strict=True)
        ]
        at = At(self.at.symbols, {**self.at.last, iterations.counter: self.at.most(step.count) - 1})
        level = Level(iterations, given, at, inside=True, clock=self.clock)
        self.held.append(level)
        rows: list[_Row] = []
        for number, position in iterations.inputs.items():
            source = step.given[position]
            if number in iterations.written and number not in step.bound:
                rows.append((self._copy(level.table, number, self.table, source, level.arrays[number]), None))
            else:
                rows.append(([_BIND, level.table + 8 * number, source, 0, 0], None))
        for number, position in iterations.double_buffers.items():
            rows.append((self._copy(level.table, number, self.table, step.given[position], level.arrays[number]), None))
        for place, size in level.numbers:
            if counters_in(size):
                start = size.at(iterations.counter, 0) if isinstance(size, SymInt) else size
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
        for told, word in zip(step.reported_words, (DONE, WAY), strict=True):
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


__all__ = ["DONE", "WAY", "At", "Level", "SkewPlan"]
