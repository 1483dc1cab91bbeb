"""Construction of loop programs: the kernels of a loop's body, iteration after iteration, without Python in between.

Input: the host program of a ``fori_loop``'s region, whose steps are kernels, loops of kernels, and scalar loops, which
are called as kernels are.
Output: an ``Iterations``, which runs the loop on arrays.
Why: one iteration of small kernels takes less time than one call of Python.

An iteration is a program of 64-bit words, encoded for each call of the loop, which ``native/loop_program.ll``
interprets. It consists of kernels with their words, copies, inner loops, numbers with a constant step per iteration
(everything that depends on the induction variable is linear in it), and double buffers: a carried array and the one
that its next value is written to are swapped. Temporaries are allocated once. Iterations run without the GIL. A poll
asks Python now and then whether an interrupt has arrived; an interrupted loop leaves no effect.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tcompile.backends import helpers
from tcompile.backends.llvm import native
from tcompile.backends.llvm.kernels.nest import element_ns, lanes_of
from tcompile.backends.llvm.loop_program.encoding import DONE, WAY, At, Level
from tcompile.backends.llvm.loop_program.ir import (
    Array,
    CopyStep,
    ExitTest,
    InnerLoopStep,
    KernelStep,
    LoopArray,
    LoopIR,
    NotNative,
    SkewPlan,
    Slabs,
    linear,
)
from tcompile.backends.llvm.loop_program.liveness import old_elements_are_dead
from tcompile.backends.llvm.native import entries, interrupts
from tcompile.backends.loop_runners import check_exit
from tcompile.backends.replay import Interrupted, Replay
from tcompile.backends.schedule.kernel_ops import GATHER, LOAD, SCATTER
from tcompile.backends.status import PAUSED
from tcompile.graph import Node, ScalarType, Size, SymInt, TensorType, ops
from tcompile.graph.ops.scalar_loop import dtype_of, written_roots
from tcompile.graph.sizes import counters_in, product
from tcompile.polls import Changed

if TYPE_CHECKING:
    from tcompile.backends.llvm.kernels.codegen import Code
    from tcompile.backends.llvm.kernels.nest import KernelFunction
    from tcompile.backends.llvm.scalar_loops.lower import ScalarLoop
    from tcompile.backends.schedule import Access, Kernel, Schedule
    from tcompile.backends.schedule.plan import Step

_ELSEWHERE = (GATHER, SCATTER)  # operations with computed places
_COPIED_BYTES = 1 << 18  # of the state of a loop that is copied after each poll
_SPARE_BYTES, _SPARE = 1 << 22, 256  # limits on the bytes and the number of programs that are kept from earlier calls


class Body(Protocol):
    """The compiled kernels of a loop's body, or of a part of it: fields of ``host.LlvmProgram``."""

    schedule: Schedule
    codes: dict[Step, Code]
    scalar_loops: Mapping[Node, ScalarLoop]
    addresses: Mapping[str, int]

    @property
    def fixed(self) -> Mapping[Node, Array]:
        """The constant arrays, which are only read."""

    @property
    def native_loops(self) -> Mapping[Node, Iterations | None]:
        """The inner loops; None for those that run in Python."""

    def grain(self, step: Step, function: KernelFunction) -> str:
        """The number of items of one thread, as an expression."""

    def writes_in_place(self, step: Step, number: int) -> bool:
        """Whether a scalar loop writes to its operand ``number`` in place."""


class Iterations(LoopIR):
    """A loop that runs in machine code: ``programs`` are those of the parts of an iteration, which carry so many
    values.

    ``is_taken_over`` says of a carried value whether the loop may write to the very array that it is given. All but the
    last part end with a flag; ``leaves`` says whether it ends the loop or only the iteration. No array is moved between
    two parts: ``at`` says, for each part, which arrays hold the carried values after it.
    """

    def __init__(
        self,
        programs: Sequence[Body],
        carried: int,
        leaves: Sequence[bool] = (),
        is_taken_over: Callable[[int], bool] = lambda place: False,
        least: Sequence[int | None] = (),
    ) -> None:
        self.graph = programs[0].schedule.graph
        self.carried = carried
        self.least = tuple(least)
        ((self.counter, _),) = [row for row in self.graph.symbol_inputs().items() if row[1] == (0, None)]
        self.arrays: list[LoopArray] = []
        self.steps: list[KernelStep | CopyStep | InnerLoopStep | ExitTest] = []
        self.number: dict[Node, int] = {}
        self.fixed: dict[int, Array] = {}  # constant arrays, which are only read
        self.inputs: dict[int, int] = {}  # which carried value each array holds before the first iteration
        self.tests = bool(leaves)
        for position, node in enumerate(self.graph.inputs[1 : carried + 1]):
            if isinstance(node.type, TensorType):
                self.inputs[self._array(node)] = position
        self.written: Counter[int] = Counter()  # how many steps of an iteration store to each array
        self.copies: list[tuple[CopyStep, bool]] = []  # with whether they change the same part in all iterations
        self.at: list[list[int | None]] = []
        ends: list[tuple[int, int, bool]] = []  # for each test: its position among the steps, its flag, what it does
        for number, program in enumerate(programs):
            self.graph = program.schedule.graph
            if number:
                for node, at in zip(self.graph.inputs[1:], self.at[-1], strict=False):
                    if at is not None:
                        self.number[node] = at
            self._part(program)
            if number < len(leaves):
                self._locate_carried()
                flag = self.number[self.graph.outputs[-1]]
                ends.append((len(self.steps), flag, leaves[number]))
        alone = [copy for copy, same in self.copies if self._is_copied_once(copy, same, ends)]
        self._swap_buffers(rotates=all(leaves))
        endings = {n: self._copies_into_place(self.at[n]) for n, (_, _, leave) in enumerate(ends) if not leave}
        others = {copy.to for row in endings.values() for copy in row if self.moves.get(copy.to) != copy.source}
        self.copied_once = [  # copies for the first iteration only
            copy for copy in alone
            if (self.moves.get(copy.source), self.moves.get(copy.to)) == (copy.to, copy.source)
            and not {copy.source, copy.to} & others
        ]  # fmt: skip
        self.taken_over = {
            place for number, place in self.inputs.items() if number in self.written and is_taken_over(place)
        }
        self.double_buffers = {copy.to: self.inputs[copy.source] for copy in self.copied_once}
        for number, (place, flag, leave) in reversed(list(enumerate(ends))):
            copies = endings.get(number, [])
            test = ExitTest(flag, number + 1 if leave else 0, len(copies))
            self.steps[place:place] = [test, *copies, *([] if leave else [ExitTest(flag, -1)])]
        self.graph = programs[0].schedule.graph
        moved = {held for row in self.at for held in row if held is not None} if self.tests else set()
        self.fresh = sorted(self.inputs.keys() | moved | self.moves.keys())
        self.sized = sorted({place - 1 for place, axis in self.graph.symbol_inputs().values() if axis is not None})
        held = [self.number.get(node) for node in self.graph.inputs[1 : carried + 1]]
        self.exits = [held, *self.at]  # the arrays of the carried values after the loop, for each exit
        self.results = [[self._result(*row) for row in enumerate(way)] for way in self.exits]
        types = [node.type for node in self.graph.inputs[1 : carried + 1]]
        self.floats = [place for place, type in enumerate(types) if isinstance(type, ScalarType)]
        self.strided = [
            place for place, type in enumerate(types) if isinstance(type, TensorType) and not type.layout.dense
        ]
        self.spare: dict[Any, Level] = {}  # programs and temporaries of earlier calls, by the form of their arguments,
        self.spare_bytes = 0  # and their bytes
        self.plans: dict[Any, SkewPlan] = {}  # how kernels are skewed, by everything that this depends on
        if self.tests and any(counters_in(array.shape) for array in self.arrays):
            raise NotNative("the sizes of its arrays depend on the iteration")

    def _part(self, program: Body) -> None:
        fixed = program.fixed
        for position, step in enumerate(program.schedule.steps):
            if step.kernel is not None:
                self._kernel(program, step)
            elif step.node is not None and step.node in fixed:
                self.fixed[self._array(step.node)] = fixed[step.node]
            elif step.node is not None and step.node in program.native_loops:
                later = {node for other in program.schedule.steps[position + 1 :] for node in other.reads}
                self._inner(program, step.node, later - {step.node})
            elif step.kind == "loop":
                self._elements(program, step)
            elif step.kind == "view" and step.node is not None and _is_the_same(step.node):
                self._reshaped(step.node)
            elif not _is_result(step.node, program):
                others = [other for other in program.schedule.steps[position:] if _is_call(other, program)]
                if not others and step.kind == "view":
                    raise NotNative("they carry a part of an array")
                raise NotNative(f"they call {_done_by((others or [step])[0])}")

    def _locate_carried(self) -> None:
        """Records which arrays hold the carried values after a part, each in an array of its own."""
        row: list[int | None] = []
        for node, result in zip(self.graph.inputs[1 : self.carried + 1], self.graph.outputs, strict=False):
            if not isinstance(node.type, TensorType):
                row.append(None)
                continue
            there = self.number[result]
            if there in row:
                source, there = there, self._like(result)
                self.steps.append(CopyStep(there, source))
                self.written[there] += 1
            row.append(there)
        self.at.append(row)

    def _copies_into_place(self, row: list[int | None]) -> list[CopyStep]:
        """The copies that move carried values to the arrays of the next iteration, before buffers are swapped."""
        final = {here: self.moves.get(here, here) for here in self.inputs}
        wanted = {self.inputs[here]: there for here, there in final.items()}
        copies = [CopyStep(wanted[p], held) for p, held in enumerate(row) if held is not None and wanted[p] != held]
        if {copy.to for copy in copies} & {held for held in row if held is not None}:
            raise NotNative("an iteration that ends early would move arrays in a circle")
        self.written.update(copy.to for copy in copies)
        return copies

    def _array(self, node: Node) -> int:
        self.number[node] = self._like(node)
        return self.number[node]

    def _kernel(self, program: Body, step: Any) -> None:
        for node in step.writes:
            onto = step.onto.get(node)
            if onto == "base":
                self.number[node] = self.number[node.inputs[0]]
            else:
                made = self._array(node)
                if onto == "copy":
                    copy = CopyStep(made, self.number[node.inputs[0]])
                    self.steps.append(copy)
                    self.copies.append((copy, self._writes_the_same_part(node, copy.source)))
            self.written[self.number[node]] += 1
        code = program.codes[step]
        partial: tuple[int, tuple[Size, ...], int] | None = None
        for function in code.functions:
            items, per_item = function.items, function.per_item
            last = function is code.functions[-1]
            if function.partial_words:
                if any(isinstance(n, SymInt) for n in items):
                    raise NotNative("it reduces over a size that varies")
                count = -(-product(items) // per_item)
                self.arrays.append(LoopArray(None, (count * function.partial_words,), np.dtype("int64")))
                partial = len(self.arrays) - 1, items, per_item
            elif partial is not None and last:
                items, per_item = partial[1:]
            grain = None if partial is not None and last else int(program.grain(step, function))
            if code.kernel.form == "routine":  # the GIL is released here
                items, grain = (2,), 2
            arguments = []
            for char, argument in zip(function.parameters.spec, function.parameters.arguments, strict=True):
                if isinstance(argument, str):
                    assert partial is not None
                    arguments.append((char, partial[0]))
                else:
                    arguments.append((char, self._argument(argument)))
            linear(product(items))
            if per_item != 1 and counters_in(items):
                raise NotNative("the number of its elements depends on the iteration")
            slabs = None if grain is None else self._slabs(code.kernel, items)
            address = program.addresses[function.name]
            self.steps.append(KernelStep(address, tuple(arguments), items, per_item, grain, slabs))

    def _slabs(self, kernel: Kernel, items: tuple[Size, ...]) -> Slabs | None:
        """The slabs of a kernel: the accesses at one index of its outermost axis, where these are affine."""
        axes = tuple(axis.size for axis in kernel.axes)
        if kernel.form != "flat" or items != (axes[:-1] or axes) or any(v.op in _ELSEWHERE for v in kernel.values):
            return None
        rows = [(False, v.access) for v in kernel.values if v.access is not None]
        rows += [(True, store.access) for store in kernel.stores]
        places = tuple((self.number[access.buffer.node], written, access) for written, access in rows)
        if any(counters_in(size) for size in (*axes, *(size for _, _, access in places for size in _sizes(access)))):
            return None
        lanes, points = lanes_of(kernel), axes[0] if len(axes) == 1 else None
        whole = (
            isinstance(points, int) and points % lanes == 0
        )  # then no vector extends beyond the end (``Nest.whole``)
        moves = all(value.op in (LOAD, ops.ORDERED) for value in kernel.values)
        return Slabs(axes, places, lanes if whole else 1, element_ns(kernel.values, kernel.stores), moves)

    def _writes_the_same_part(self, node: Node, base: int) -> bool:
        """Whether a step changes one part of a carried array, the same one in all iterations.

        Where no other step changes the array or its copy, both are swapped in each iteration, and outside of the part
        they are always equal. So one copy, before the first iteration, is enough.
        """
        position = self.inputs.get(base)
        if node.op is not ops.ASSIGN or position is None or not node.tensor.layout.dense:
            return False
        if self.graph.outputs[position] is not node:
            return False
        return self.graph.outputs.count(node) == 1 and not counters_in(node.attrs["path"])

    def _is_copied_once(self, copy: CopyStep, same: bool, ends: Sequence[tuple[int, int, bool]]) -> bool:
        """Whether the copy is for the first iteration only, if both arrays are swapped after each iteration."""
        if self.written[copy.source]:
            return False
        if same and self.written[copy.to] == 1:
            return True
        seen = {place for (place, flag, _), row in zip(ends, self.at, strict=True) if copy.to in (flag, *row)}
        return old_elements_are_dead(self.steps, copy.to, self.arrays[copy.to], seen)

    def _reshaped(self, node: Node) -> None:
        """Records a reshape as an alias: the same memory, but a carried value has a shape of its own."""
        source = self.number[node.inputs[0]]
        if node in self.graph.outputs:
            self.steps.append(CopyStep(self._array(node), source))
            self.written[self.number[node]] += 1
        else:
            self.number[node] = source

    def _elements(self, program: Body, step: Step) -> None:
        """Adds a scalar loop. It writes to copies, unless the old elements of an array are dead."""
        node = step.node
        assert node is not None
        loop = program.scalar_loops[node]
        shows, (_, _, _, kinds) = node.attrs["shows"], node.attrs["program"]
        written: dict[int, int] = {}
        for place in written_roots(shows, node.attrs["program"]):
            root = node.inputs[place]
            written[place] = self.number[root]
            if not program.writes_in_place(step, place):
                if not root.tensor.layout.dense:
                    raise NotNative("an array with gaps is copied")
                source, written[place] = self.number[root], self._like(root)
                self.steps.append(CopyStep(written[place], source))
        results = [self._word(kind) for kind in kinds]
        made = [*written.values(), *results]
        self.written.update(made)
        for get in self.graph.nodes:
            if get.op is ops.GET and get.inputs[0] is node:
                self.number[get] = made[get.attrs["index"]]
        arguments: list[tuple[str, Any]] = [("i", program.addresses[loop.name])]
        for char, argument in zip(loop.spec, loop.arguments, strict=True):
            if isinstance(argument, tuple):
                arguments.append((char, self._made_for(argument, written, results)))
            else:
                arguments.append((char, self._argument(argument)))
        arrays = [
            number for char, number in arguments if char == "a"
        ]  # each appears once as data, and again for its strides
        if any(arrays.count(number) > 1 for number in made):
            raise NotNative("a scalar loop is given an array twice")
        self.steps.append(KernelStep(entries.entry(loop.arrays), tuple(arguments), (1,), 1, None))

    def _made_for(self, argument: tuple[str, int], written: Mapping[int, int], results: Sequence[int]) -> int:
        """The array for an argument of a scalar loop that is no value of the graph. The loop never pauses here."""
        match argument:
            case ("written", number):
                return written[number]
            case ("result", number):
                return results[number]
        return 0

    def _like(self, node: Node) -> int:
        """A new array of the type of ``node``."""
        self.arrays.append(LoopArray(node, node.tensor.shape, node.tensor.dtype))
        return len(self.arrays) - 1

    def _word(self, kind: str) -> int:
        """A new array for one number that a scalar loop returns."""
        self.arrays.append(LoopArray(None, (), dtype_of(kind)))
        return len(self.arrays) - 1

    def _argument(self, argument: Node | SymInt) -> Any:
        """A size, the number of a carried Python float, or that of an array."""
        if isinstance(argument, SymInt):
            return linear(argument)
        if isinstance(argument.type, ScalarType):
            return self.graph.inputs.index(argument) - 1
        return self.number[argument]

    def _inner(self, program: Body, node: Node, later: set[Node]) -> None:
        """Adds an inner loop; ``later`` are the arrays that steps after it read. It writes dead arrays in place."""
        iterations = program.native_loops[node]
        if iterations is None:
            raise NotNative("Python runs a loop inside")
        start, count, *operands = node.operands
        given = []
        for operand in operands:
            assert isinstance(operand, Node)
            scalar = isinstance(operand.type, ScalarType)
            given.append(self.graph.inputs.index(operand) - 1 if scalar else self.number[operand])
        results: list[tuple[int, tuple[int, ...]]] = []
        bound: set[int] = set()
        reported_words: list[int | None] = [None, None]
        needed = {self.number[other] for other in (*later, *self.graph.outputs) if other in self.number}
        for get in program.schedule.graph.nodes:
            if get.op is not ops.GET or get.inputs[0] is not node:
                continue
            position = get.attrs["index"]
            if isinstance(get.type, ScalarType):
                continue
            if position >= iterations.carried:
                reported_words[position - iterations.carried] = self._array(get)
                continue
            ways = tuple(way[position] for way in iterations.exits)
            inside = iterations.number[iterations.graph.inputs[position + 1]]
            stays = set(ways) == {inside}
            if stays and inside not in iterations.written:
                self.number[get] = given[position]
                continue
            free = given[position] not in needed and given.count(given[position]) == 1
            if stays and free:
                self.number[get] = given[position]
            else:
                self._array(get)
            self.written[self.number[get]] += 1
            if stays and free and inside not in iterations.moves:
                bound.add(inside)
            else:
                results.append((self.number[get], ways))
        assert start == 0 and isinstance(count, int | SymInt)
        more: dict[str, Any] = (
            {"reported_words": tuple(reported_words), "least": node.attrs["least"]} if iterations.tests else {}
        )
        self.steps.append(
            InnerLoopStep(iterations, linear(count), tuple(given), tuple(results), frozenset(bound), **more)
        )

    def _swap_buffers(self, rotates: bool) -> None:
        """Finds the array of each carried value of the next iteration, and the arrays that are swapped for it. Where
        the loop ``rotates``, a value that an iteration carries on as another one stays in its array, too.
        """
        self.moves: dict[int, int] = {}
        results = {here: self.number[self.graph.outputs[position]] for here, position in self.inputs.items()}
        taken = {here for here, there in results.items() if here == there}
        for here, there in results.items():
            if here == there:
                continue
            if there in taken or (there in self.inputs and not rotates):  # another value stays in that one
                source, there = there, self._like(self.graph.outputs[self.inputs[here]])
                self.steps.append(CopyStep(there, source))
            taken.add(there)
            self.moves[here] = there
        for first in [here for here in self.moves if here not in taken]:
            last = first
            while last in self.moves:
                last = self.moves[last]
            self.moves[last] = first  # a dead array
        self.written.update(self.moves)
        self.swaps: list[tuple[int, int]] = []
        self.period, seen = 1, set[int]()
        for here in self.moves:
            at, length = here, 0
            while at not in seen:
                seen.add(at)
                length += 1
                if (after := self.moves[at]) != here:
                    self.swaps.append((at, after))
                at = after
            self.period = math.lcm(self.period, max(length, 1))

    # -- each call -----------------------------------------------------------------------------------------------------
    def run(self, stop: int, given: Sequence[Any], sizes: Mapping[str, int]) -> tuple[tuple[Any, ...], int, int]:
        """Runs ``stop`` iterations on the carried values; ``sizes`` are the symbols that the parts take besides.

        Returns the results, the iteration in which the loop was left, and the exit (0: all are done). Raises Replay
        where only plain Python can go on, and Changed where a value that was read has changed. A loop that has run for
        some time raises Changed in both cases: with copies of its state after some iteration.
        """
        helpers.check_error_state()
        key = (
            stop, native.num_threads(), *sizes.values(), *[given[place].hex() for place in self.floats],
            *[given[place].strides for place in self.strided], *[given[place].shape for place in self.sized],
        )  # fmt: skip
        level = self.spare.pop(key, None)
        if level is None:
            level = Level(self, given, At(self._symbols(given, sizes), {self.counter: stop - 1}))
            status = level.run(stop)
        else:
            self.spare_bytes -= level.size
            status = level.begin(given, stop)
        left, kept = stop, None
        try:
            while True:
                if status:
                    helpers.floating_point_report(interrupts.check_status(status & ~PAUSED))
                way = level.reported_words[WAY]
                left -= level.reported_words[DONE]
                done = stop - left
                if way or not left or status & PAUSED:
                    break
                kept = self._copied(level, given, done)
                status |= level.run(left)
            if self.least:
                check_exit(self.least, done, way)
        except Replay as replay:
            if kept is None or isinstance(replay, Interrupted):
                raise
            raise Changed("", *kept, reason=replay.reason) from None
        level.arrays = self._swapped(level.arrays, done)
        results = self._results(level.arrays, given, way)
        level.release_arrays()
        if level.size < _SPARE_BYTES // 4 and key not in self.spare:  # another thread may have added one
            if self.spare_bytes + level.size > _SPARE_BYTES or len(self.spare) >= _SPARE:
                self.spare.clear()
                self.spare_bytes = 0
            self.spare[key] = level
            self.spare_bytes += level.size
        if status & PAUSED and left and not way:
            raise Changed(iterations=done, results=results)
        return tuple(results), done, way

    def _swapped(self, arrays: Sequence[Array], done: int) -> list[Array]:
        """The arrays, each at its number after so many iterations."""
        found = list(arrays)
        for a, b in self.swaps * (done % self.period):
            found[a], found[b] = found[b], found[a]
        return found

    def _results(self, arrays: Sequence[Array], given: Sequence[Any], way: int) -> list[Any]:
        """The carried values where the loop is left."""
        return [given[at] if at is not None else arrays[number] for at, number in self.results[way]]

    def _copied(self, level: Level, given: Sequence[Any], done: int) -> tuple[int, list[Any]] | None:
        """The number of iterations, and copies of the carried values after them; None where copies take too long."""
        own = [level.arrays[number] for at, number in self.results[0] if at is None]
        if sum(array.nbytes for array in own) > _COPIED_BYTES:
            return None
        results = self._results(self._swapped(level.arrays, done), given, 0)
        places = zip(results, self.results[0], strict=True)
        return done, [value if at is not None else np.array(value, order="K") for value, (at, _) in places]

    def _result(self, position: int, number: int | None) -> tuple[int | None, int]:
        """The position of a result among the arguments, if it is one, and else its array's number."""
        if number is None:
            return position, -1
        return (None if number in self.written else self.inputs.get(number)), number

    def _symbols(self, given: Sequence[Any], sizes: Mapping[str, int]) -> dict[str, int]:
        rows = [(n, position, axis) for n, (position, axis) in self.graph.symbol_inputs().items() if axis is not None]
        return {**sizes, **{name: given[position - 1].shape[axis] for name, position, axis in rows}}


def _sizes(access: Access) -> list[Size]:
    return [multiple for distance in (access.offset, *access.steps) for multiple, _ in distance]


def _is_the_same(node: Node) -> bool:
    """Whether a view op shows all elements of its operand in memory order."""
    moves = node.op in (ops.RESHAPE, ops.RAVEL, ops.EXPAND_DIMS, ops.SQUEEZE)
    return moves and node.inputs[0].tensor.c_contiguous and node.tensor.c_contiguous


def _is_result(node: Node | None, program: Body) -> bool:
    """Whether it is a result of a loop."""
    loops = {**program.native_loops, **program.scalar_loops}
    return node is not None and node.op is ops.GET and node.inputs[0] in loops


def _is_call(step: Step, program: Body) -> bool:
    """Whether a step is no kernel, view or loop, and no result of one."""
    if step.kernel is not None or step.kind in ("view", "loop") or step.node in program.native_loops:
        return False
    return not _is_result(step.node, program)


def _done_by(step: Step) -> str:
    """The operation of a step that is no kernel, in users' words."""
    node = step.node
    if node is None:
        return "a step"
    return str(node.attrs["target"]) if node.op is ops.CALL else node.op.name


__all__ = ["Iterations", "NotNative"]
