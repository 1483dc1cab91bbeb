"""Scalar loops: scalar code with loops in it becomes one ``scalar_loop`` node.

Input: a frame at the start of a loop.
Output: the node in the graph, and the frame after the loop.
Why: ``d[i, j] = min(d[i, j], d[i, k] + d[k, j])`` is no operation on arrays.

Such loops cost the time of single loads and additions, and they branch on elements. A trace of them would be a graph of
arrays of rank 0. So all loops of a nest are translated at once, with their branches (``scalar_loops.translator``).

The translated code goes from the loop's first instruction to the one where all exits of the loop meet. Where anything
in it is not scalar code, or an array is read in parts, the loop is traced like all others.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.bytecode.analysis import Analysis
from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.context.loop_plan import MANY_ITERATIONS, LoopPlan, Restart
from tcompile.capture.guards.list_numbers import is_of_list
from tcompile.capture.interpreter.frame import Returned
from tcompile.capture.loops.continuation import (
    LateEnumerated,
    LateItems,
    LateIterator,
    LateLetter,
    LateNumber,
    LateRange,
    LateZipped,
    NoContinuation,
    go_to_next_iteration,
    is_wanted,
)
from tcompile.capture.loops.scalar_code import Changes, LoopCode
from tcompile.capture.loops.scalar_lists import Lists
from tcompile.capture.loops.scalar_members import Members
from tcompile.capture.loops.scalar_values import Values
from tcompile.capture.scalar_loops import library_functions, opcodes, python_math  # noqa: F401  # fill the tables
from tcompile.capture.scalar_loops.builder import LETTER
from tcompile.capture.scalar_loops.extent import extent, stored
from tcompile.capture.scalar_loops.kinds import is_held, is_kept, without_numbers, words_of_all
from tcompile.capture.scalar_loops.node import append, number_of
from tcompile.capture.scalar_loops.translator import (
    NULL,
    Exit,
    Iteration,
    Raising,
    Refused,
    Surroundings,
    Translator,
    V,
    parts_of,
)
from tcompile.capture.values.base import NULL as EMPTY
from tcompile.capture.values.base import Value, settled
from tcompile.capture.values.callable import BuiltinMethod, FunctionValue, value_of
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.counted import (
    Counted,
    Enumerated,
    ListIterator,
    RangeIterator,
    RowIterator,
    TextIterator,
    Zipped,
)
from tcompile.capture.values.phi import PhiValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node, SymInt, TensorType, ops
from tcompile.graph.ops.scalar_loop import dtype_of, is_numpy, ways

if TYPE_CHECKING:
    from tcompile.capture.interpreter.frame import Frame
    from tcompile.capture.interpreter.loop_info import Header

# What only moves values, and returns them.
_MOVES = (
    "NOP", "LOAD_FAST", "LOAD_FAST_LOAD_FAST", "LOAD_CONST", "BUILD_TUPLE", "RETURN_VALUE", "RETURN_CONST",
)  # fmt: skip
FEW_ITERATIONS = 4  # of straight code: trip counts up to this one are unrolled
MANY_INSIDE = 16  # trip counts of outer loops over numbers alone: up to this one, iterations are traced
MOST_CHANGED = 8  # names of attributes that a loop sets, and kinds of items that it gives to lists
FEW_APPENDING = 16  # trip counts of loops that append to lists: up to this one, arrays of items cost more


def enter(f: Frame, header: Header) -> bool:
    """Makes a node of the loop that begins at the frame's last instruction; False where it is not a scalar loop.

    The frame is then after the loop, or has returned.
    """
    tx, at = f.tx, f.at - 1
    refused = tx.loops.refused
    key = (*((id(frame.code), frame.at) for frame in tx.frames), len(tx.open_loops))
    if key in refused:
        return False
    inputs = len(tx.input_sources)
    try:
        found = f.analysis()
        if tx.differentiated and tx.options.follows_path:
            raise Refused("a derivative follows the path that its branches take")
        if found is None or f.code.co_flags & 0x2A0:  # generators and coroutines suspend in the middle
            raise Refused("its code is not understood")
        _translate(f, found, at, header)
    except Refused as reason:
        refused[key] = str(reason)
        if any(map(is_of_list, tx.input_sources[inputs:])):
            raise Restart from reason  # without arrays of lists, which each call would make for nothing
        return False
    except CannotCapture as error:  # in the middle of changes that cannot be undone
        refused[key] = error.detail
        raise Restart from error
    return True


def _translate(f: Frame, found: Analysis, at: int, header: Header) -> None:
    changed: dict[Any, None] = {}
    while len(changed) <= MOST_CHANGED:
        stretch = _Stretch(f, found, at, header, changed)
        try:
            stretch.run()
            return
        except Changes as wish:
            changed[wish.what] = None
        finally:
            stretch.close()
    raise Refused("it sets many attributes, or changes many lists")


class _Stretch:
    """One loop on its way to become a node, with the code up to where its exits meet."""

    def __init__(self, f: Frame, found: Analysis, start: int, header: Header, changed: Collection[Any]) -> None:
        self.f, self.tx, self.found, self.start, self.header = f, f.tx, found, start, header
        if len(f.decoded.instructions) != found.stream.size:
            raise Refused("its code is not understood")
        # For each exit of the node, names and kinds of its variables, and the places of their parts among the results.
        self.results: list[tuple[Sequence[tuple[str | None, Any]], list[int]]] = []
        self.kinds: list[str] = []  # of all results
        self.stack: Sequence[V] = ()  # the iterator
        self.held: list[dict[str, Any]] = []  # the kinds of the variables at the start of an iteration, by its version
        self.raising: list[Raising] = []  # the blocks before an exception that hold their variables
        lost = f.decoded.flow.lost
        if start in lost:
            raise Refused("it never ends")
        depth = len(f.stack) - (D.iterator_items if f.decoded.instructions[start].opname == "FOR_ITER" else 0)
        inside = extent(found, start, header.inside, lost, depth)
        bound = {name for at in inside for name in stored(f.decoded.instructions[at]) if name in found.fast_bit}
        self.code = LoopCode(f, found, start, header, inside)
        values = self.values = Values(self.tx)
        members, lists = self.members, self.lists = Members(values, changed), Lists(values, self.code, changed)
        self.around = Surroundings(
            values.array_type, self._callee, values.generator, members.spare, values.known_text, values.table,
            lists.items, lists.cells, values.attribute, members.load, members.store, lists.room, lists.length,
            lists.space, self.tx.scalar_instruction, values.read_only, values.scratch,
            lambda form: FunctionValue.of(self.tx, form, None), lambda: self.tx.options.exact,
        )  # fmt: skip
        self.t = values.top = Translator(
            found, f.decoded.instructions, inside, lost, bound, self._outside, functools.partial(self._global, f),
            lists.below, self.around,
        )  # fmt: skip
        self.t.lines = f.lines

    def run(self) -> None:
        """Translates the code and adds the node. Raises Refused where it is not scalar code."""
        f, t = self.f, self.t
        header = f.decoded.instructions[self.start]
        stack: list[V] = []
        items = f.stack[-D.iterator_items] if header.opname == "FOR_ITER" else None
        depth = len(f.stack) - (D.iterator_items if items is not None else 0)
        if items is not None:
            if not isinstance(items, Counted):
                raise Refused("a loop over something else than a range, a text, or the elements of an array")
            self.code.items = self.values.iterator = items
            t.in_ufunc = items.scalar
            if not items.scalar:
                self._check_worth(items.left)
            t.block = t.entry
            stack = self.stack = [self._iterator(items, items.iterations), NULL][: D.iterator_items]
        t.header = self.start if items is not None else self.header.at
        t.run(self.start, stack)
        lines = [line for block in t.blocks for line in block.lines]
        self.values.check_writes({line[2] for line in lines if line[0] in ("store", "draw")})
        computed = any(isinstance(o, Node) and isinstance(o.type, TensorType) for _, o in self.t.numbers)
        if not t.accesses and not computed and not self._is_long(items):
            raise Refused("it reads no elements")
        held = self.lists.rooms or self.lists.cells_of or self.members.members
        if held and any(array.traced.type.device != "cpu" for array in self.values.arrays):
            raise Refused("lists or attributes beside arrays on a GPU")  # each element would be a store of its own
        if self.lists.rooms:
            self._check_appending()
        exits = self._exits()
        self._finish_blocks(exits)
        self._add(exits, depth, items)

    def close(self) -> None:
        """Drops the translator, whose callbacks refer to this object: a cycle would be left to the collector."""
        del self.t, self.values.top

    def _iterator(self, items: Counted, iterations: Any) -> V:
        """An iterator of the frame's, after so many ``iterations``."""
        t = self.t
        if isinstance(items, RangeIterator):
            values = items.values
            first, step = values.start + values.step * iterations, values.step
            if not isinstance(step, int):
                raise Refused("a step that is not known")
            stop = first + step * (items.count - iterations)
            return V(("range", step), (self.values.size(t, first).register, self.values.size(t, stop).register))
        bounds = (self.values.size(t, iterations).register, self.values.size(t, items.count).register)
        if isinstance(items, RowIterator) and len(items.array.traced.type.shape) == 1 and not items.backwards:
            return V(("rows", self.values.value(t, items.array).kind[1]), bounds)
        if isinstance(items, ListIterator):
            number = self.values.value(t, items.items).kind[1]
            cells = self.lists.cells(number, None)
            if cells is None or len(cells.kinds) > 1:
                raise Refused("a loop over a list that gets items of other kinds")
            return V(("listed", number), bounds)
        if isinstance(items, Zipped):
            columns = [self._iterator(column, 0) for column in items.columns]
            if not all(c.kind[0] in ("rows", "letters", "listed") or c.kind == ("range", 1) for c in columns):
                raise Refused("zip of something else")
            starts = [column.registers[0] for column in columns if column.kind[0] == "range"]
            return V(("zipped", tuple(column.kind for column in columns)), (*bounds, *starts))
        if isinstance(items, TextIterator):
            return V(("letters", t.text(self.values.read(t, items.text)).kind[1]), bounds)
        if isinstance(items, Enumerated):
            inner = self._iterator(items.items, iterations)
            return V(
                ("counted", inner.kind), (*inner.registers, self.values.size(t, items.start + iterations).register)
            )
        raise Refused("a loop over something else than a range, a text, or the elements of an array")

    def _check_worth(self, left: Any) -> None:
        """Refuses straight code of few iterations: traced, it fuses with the code before and after."""
        if isinstance(left, int) and left <= FEW_ITERATIONS and self.code.is_straight():
            raise Refused("few iterations of straight code are unrolled")

    def _check_appending(self) -> None:
        """Refuses few iterations that append to lists, except where a graph break (as at a test) is an error."""
        left = self.code.items.left if self.code.items is not None else None
        if isinstance(left, int) and left <= FEW_APPENDING and (self.code.is_straight() or not self.tx.profile.whole):
            raise Refused("few iterations that append to a list are followed")
        if any(not room.counts and room.is_tuple for room in self.lists.rooms.values()):
            raise Refused("a tuple for each iteration, which Python makes as fast")

    def _is_long(self, items: Any) -> bool:
        """Whether a loop over numbers alone is translated, not traced.

        Its results are then known to the graph only, and may not be sizes. Iterations with loops inside are soon too
        many to be traced.
        """
        most = MANY_INSIDE if self.code.has_loops_inside() else MANY_ITERATIONS
        if not isinstance(items, RangeIterator) or not (isinstance(items.left, SymInt) or items.left > most):
            return False
        floats = any("float" in self.t.kinds[register] for block in self.t.blocks for register in block.parameters)
        return floats or sum(self.found.goes[at] >= 0 for at in self.code.inside) > 2

    # -- values that the code reads ------------------------------------------------------------------------------------
    def _outside(self, name: str) -> V | None:
        self.f.rely_on_binding(name)
        value = self.f.locals.get(name)
        return None if value is None else self.values.read(self.t, value)

    def _global(self, f: Frame, t: Translator, i: Instruction) -> V:
        if i.opname == "LOAD_GLOBAL":
            value: Value | None = f.load_global(i.argval)
        else:
            cell = f.cells.get(i.argval)
            value = None if cell is None else cell.value
        if value is None:
            raise Refused(f"the variable {i.argval}")
        return self.values.read(t, value)

    def _callee(self, t: Translator, function: Any, arguments: list[V]) -> Translator | None:
        """The translator for the code of a user's function that ``t`` calls."""
        from tcompile.capture.interpreter.frame import Frame

        if not isinstance(function, FunctionValue):
            return None
        code = function.code
        count, missing = code.co_argcount, code.co_argcount - len(arguments)
        if code.co_flags & 0x2AC or code.co_kwonlyargcount or not 0 <= missing <= len(function.defaults):
            raise Refused(f"a call of {code.co_name} with other arguments")
        f = Frame(self.tx, function, {})
        found = f.analysis()
        if found is None or len(f.decoded.instructions) != found.stream.size:
            raise Refused(f"the code of {code.co_name} is not understood")
        defaults = function.defaults[len(function.defaults) - missing :] if missing else ()
        given = [*arguments, *(self.values.value(t, settled(self.tx, value_of(default))) for default in defaults)]
        parameters = dict(zip(code.co_varnames[:count], given, strict=True))
        lost = f.decoded.flow.lost
        made = Translator(
            found, f.decoded.instructions, set(range(found.stream.size)) - lost, lost, set(found.fast_bit),
            parameters.get, functools.partial(self._global, f), _nothing_below, self.around, t,
        )  # fmt: skip
        made.lines = f.lines
        return made

    # -- the exits -----------------------------------------------------------------------------------------------------
    def _exits(self) -> list[Exit]:
        """The exits that the node has. All others are plain Python's.

        The first one has most variables, in their last kinds (``_after_all``), as a Python float becomes one of
        NumPy's; so may an attribute that is returned. Others have the same variables, in other kinds: one may
        be a number or None. Exits that differ in kinds of numbers alone count only where the frame returns to Python
        right after the loop: elsewhere a variable of several kinds ends the graph. So does one that has another kind
        only if there is no iteration.
        """
        found = list(self.t.exits.values())
        if not found:
            raise Refused("it never ends")
        late, last = self._after_all()

        def rank(exit: Exit) -> tuple[int, bool, bool, int]:
            numbers = {block.number for block, _ in exit.blocks}
            of_numpy = sum(map(_numbers_of_numpy, exit.state[1]))
            return len(exit.state[2]), not numbers.isdisjoint(late), not numbers.isdisjoint(last), of_numpy

        main = max(reversed(found), key=rank)
        tx = self.tx
        at = main.state[0]
        returns = self.f is tx.frames[0] and (at < 0 or self._only_returns(at))
        if tx.builder.graph is not tx.graph or tx.open_loops or (tx.profile.whole and not returns):
            return [main]
        exits: dict[Any, Exit] = {}
        others = [exit for exit in reversed(found) if exit is not main and (returns or not self._is_before_all(exit))]
        for exit in [main, *others]:
            place, kinds, variables = exit.state
            if [name for name, _ in variables] == [name for name, _ in main.state[2]] and place == at:
                held = (*kinds, *(kind for _, kind in variables))
                exits.setdefault(held if returns else tuple(map(without_numbers, held)), exit)
        return [exit for exit in exits.values() if exit is main or all(map(is_kept, _kinds_of(exit)))]

    def _after_all(self) -> tuple[set[int], set[int]]:
        """The blocks that can follow the start of another iteration than the first; and of one in the last kinds.

        Kinds are the last ones if every iteration that can follow can lead back to them.
        """
        starts = [each.block.number for each in self.t.iterations if each.block.state in self.t.repeated]
        after = {start: self._after(start) for start in starts}
        last = [start for start in starts if all(start in after[other] for other in after[start] & after.keys())]
        return set().union(*after.values()), set().union(*(after[start] for start in last))

    def _after(self, start: int) -> set[int]:
        """A block, and those that can follow it."""
        waiting, met = [start], set[int]()
        while waiting:
            here = waiting.pop()
            if here not in met:
                met.add(here)
                end = self.t.blocks[here].end
                waiting.extend(ways(end) if end else ())  # exits have no end yet
        return met

    def _is_before_all(self, exit: Exit) -> bool:
        """Whether an exit is taken only before the first iteration."""
        headers = [each.block.end for each in self.t.iterations if each.block.state not in self.t.repeated]
        left = {number for end in headers for number in ways(end)}
        return all(block.number in left for block, _ in exit.blocks)

    def _only_returns(self, at: int) -> bool:
        """Whether the code after the loop only moves values, and returns them."""
        instructions = self.f.decoded.instructions
        return all(instructions[each].opname in _MOVES for each in self.f.decoded.flow.chain(at))

    def _finish_blocks(self, exits: Sequence[Exit]) -> None:
        """Ends all exits. ``results`` tells the kinds and places of the variables at each of the node's exits.

        Variables of several exits share the places of the same kind. Where there are several, the first result is the
        number of the exit.
        """
        t = self.t
        places: dict[tuple[Any, ...], int] = {(): 0} if len(exits) > 1 else {}
        for exit in exits:
            rows = _rows(exit)
            for name, kind in rows:
                if not is_kept(kind):
                    raise Refused(f"{name or 'the result'} is no number after the loop")
            keys = [(name, *part) for name, kind in rows for part in enumerate(parts_of(kind))]
            self.results.append((rows, [places.setdefault(key, len(places)) for key in keys]))
        self.kinds = ["int" if key == () else key[2] for key in places]
        self.held = self._kept()
        for iteration in t.iterations:
            self._hold(iteration)
        for raising in t.raising if self.held else ():
            self._hold_where_it_raises(raising)
        taken = {id(exit): number for number, exit in enumerate(exits)}
        for exit in t.exits.values():
            number = taken.get(id(exit))
            for block, given in exit.blocks:
                t.block = block
                block.end = ("replay",) if number is None else ("exit", self._given(number, given))

    def _given(self, number: int, given: Sequence[int]) -> tuple[int, ...]:
        """The registers of all results at an exit."""
        found = dict(zip(self.results[number][1], given, strict=True))
        if len(self.results) > 1:
            found[0] = self.t.constant(number).register
        return tuple(
            found[place] if place in found else self.t.add("const", kind, dtype_of(kind).type(0).item()).register
            for place, kind in enumerate(self.kinds)
        )  # fmt: skip

    def _kept(self) -> list[dict[str, Any]]:
        """The variables at the start of all iterations but the first, and their kinds, by the iteration's version.

        The loop may be left at the start of such an iteration, because an object that it reads has changed.
        """
        t = self.t
        remade = RangeIterator | RowIterator | ListIterator | TextIterator | Zipped | Enumerated
        if self.code.items is not None and not isinstance(self.code.items, remade):
            return []
        found: list[dict[str, Any]] = []
        for iteration in t.iterations:
            if iteration.block.state in t.repeated and all(is_kept(v.kind) for v in iteration.env.values()):
                kinds = {name: v.kind for name, v in iteration.env.items()}
                if kinds not in found:
                    found.append(kinds)
        return found

    def _hold(self, iteration: Iteration) -> None:
        """Has a block hold its variables, after the iterator's position and the version's number.

        The block holds nothing where their kinds need other words. A first iteration may begin with other kinds of the
        same words. No loop is left before it, but its blocks may be those of all iterations.
        """
        t, env = self.t, iteration.env
        kinds = {name: v.kind for name, v in env.items()}
        alike = [held for held in self.held if words_of_all(held) == words_of_all(kinds)]
        if not alike:
            return
        version = self.held.index(kinds if kinds in alike else alike[0])
        block = t.block = iteration.block
        rest, block.lines = block.lines, []  # the constants come first
        position = iteration.stack[-D.iterator_items] if self.code.items is not None else t.constant(0)
        number = t.constant(version).register
        registers = [register for name in self.held[version] for register in env[name].registers]
        block.lines += [("hold", -1, position.registers[0], number, *registers), *rest]

    def _hold_where_it_raises(self, raising: Raising) -> None:
        """Has a block before an exception hold its variables and its stack, like an iteration's first block.

        The number of its version is negative.
        """
        t, inside = self.t, self._is_in_loop(raising)
        held = [*raising.stack[len(self.stack) if inside else 0 :], *raising.env.values()]
        if not all(is_held(v.kind) for v in held):
            return
        self.raising.append(raising)
        t.block = raising.block
        position = raising.stack[0] if inside and self.stack else t.constant(0)
        version = t.constant(-len(self.raising)).register
        registers = [register for v in held for register in v.registers]
        t.block.lines.append(("hold", -1, position.registers[0], version, *registers))

    def _is_in_loop(self, raising: Raising) -> bool:
        """Whether an iteration of the loop itself leads to the exception, and not its end or the code after it."""
        return raising.before in self.header.inside and (raising.before != self.start or not self.stack)

    # -- the node ------------------------------------------------------------------------------------------------------
    def _add(self, exits: Sequence[Exit], depth: int, items: Counted | None) -> None:
        f, t, tx = self.f, self.t, self.tx
        values = append(tx, t, self.values.arrays, self.kinds)
        made = next(node for node in reversed(tx.builder.graph.nodes) if node.op is ops.SCALAR_LOOP)
        if is_wanted(f, made.name):
            self._continue(depth)
        self._tell(str(items.left) if items is not None else "any number of")
        tx.touch()
        self.members.keep()
        self.lists.keep()
        self.lists.fill()
        if items is not None:
            items.decided = True
            items.leave(early=f.decoded.flow.is_left_early(self.header))
        del f.stack[depth:]
        found = self._variables(values)
        if exits[0].state[0] < 0:
            raise Returned(found[None])
        for bound in sorted(t.bound):
            if bound in f.locals and bound not in found:
                del f.locals[bound]  # it is dead, or it has no value
        for variable, value in found.items():
            assert variable is not None
            f.assigned.add(variable)
            f.locals[variable] = value
        f.at = exits[0].state[0]

    def _variables(self, nodes: Sequence[Node]) -> dict[str | None, Value]:
        """The values of all variables after the loop, by their names; a returned value has none."""
        found: list[dict[str | None, tuple[Any, list[Node]]]] = []
        for rows, places in self.results:
            given = iter(places)
            found.append({name: (kind, [nodes[next(given)] for _ in parts_of(kind)]) for name, kind in rows})
        which = None if len(found) == 1 else number_of(self.tx, "int", nodes[0])
        values: dict[str | None, Value] = {}
        for name, one in found[0].items():
            each = [row[name] for row in found]
            made = [self._result(*one)] if all(other == one for other in each) else [self._result(*one) for one in each]
            values[name] = made[0] if which is None or len(made) == 1 else PhiValue(which, dict(enumerate(made)))
        return values

    def _continue(self, depth: int) -> None:
        """Ends the capture where the next iteration begins, or before an exception, with variables not known yet."""
        f, tx, items = self.f, self.tx, self.code.items
        assert tx.options.continues is not None
        version = tx.options.continues[1]
        if not -len(self.raising) <= version < len(self.held):
            raise NoContinuation("the variables at the start of an iteration are not kept")
        at = self.start if items is not None else self.header.at
        above: Sequence[Any] = ()
        if version >= 0:
            held = self.held[version]
        else:
            raising = self.raising[-version - 1]
            at, held = raising.at, {name: v.kind for name, v in raising.env.items()}
            above = [v.kind for v in raising.stack]
            if self._is_in_loop(raising):
                above = above[len(self.stack) :]
            else:
                del f.stack[depth:]
        tx.late_is_scalar = True
        for bound in self.t.bound:
            if bound in f.locals and bound not in held:
                del f.locals[bound]
        place = 0
        for kind in above:
            f.stack.append(self._late(kind, place, "stack"))
            place += len(parts_of(kind))
        for name, kind in held.items():
            f.assigned.add(name)
            f.locals[name] = self._late(kind, place, name)
            place += len(parts_of(kind))
        tx.late_kinds += [part for kind in (*above, *held.values()) for part in parts_of(kind)]
        advanced = None if items is None else LateIterator(tx, items, absolute=True)
        self.members.keep()
        self.lists.keep()
        self.lists.fill(advanced, version < 0)
        go_to_next_iteration(f, at, advanced)

    def _late(self, kind: Any, place: int, name: str) -> Value:
        """The value of a variable whose numbers the program gets from the loop that it continues."""
        if isinstance(kind, str):
            return LateNumber(self.tx, place, name)
        if kind == NULL.kind:
            return EMPTY
        if kind[0] == "range":
            return LateRange([LateNumber(self.tx, place + part, name) for part in range(len(parts_of(kind)))], kind[1])
        if kind[0] == "append":
            return BuiltinMethod(self.values.lists[kind[1]], "append")
        if kind == LETTER:
            return LateLetter(LateNumber(self.tx, place, name))
        if kind[0] in ("rows", "letters", "listed"):
            return LateItems(self._items_of(kind), LateNumber(self.tx, place, name))
        if kind[0] == "zipped":
            at, stop, *starts = (LateNumber(self.tx, place + part, name) for part in range(len(parts_of(kind))))
            columns = [starts.pop(0) if c[0] == "range" else LateItems(self._items_of(c), at) for c in kind[1]]
            return LateZipped(columns, at, stop)
        if kind[0] == "counted":
            number = LateNumber(self.tx, place + len(parts_of(kind[1])), name)
            return LateEnumerated(self._late(kind[1], place, name), number)
        if kind[0] in ("tuple", "items"):
            parts = []
            for inner in kind[1]:
                parts.append(self._late(inner, place, name))
                place += len(parts_of(inner))
            values = SequenceValue(parts, tuple)
            return values if kind[0] == "tuple" else LateItems(values, Constant(kind[2]))
        return self._result(kind, [])

    def _items_of(self, kind: Any) -> Value:
        """What an iterator inside the loop goes along."""
        held: dict[str, Any] = {"rows": self.values.arrays, "letters": self.values.texts, "listed": self.values.lists}
        items: Value = held[kind[0]][kind[1]]
        return items

    def _tell(self, iterations: str) -> None:
        """Notes the loop's outcome for reports."""
        f, plans = self.f, self.tx.loops.plans
        key = ("elements", *((id(frame.code), frame.at) for frame in self.tx.frames), len(self.tx.open_loops))
        line = dataclasses.replace(f.user_line(), end_line=0, end_column=None)
        plan = plans.setdefault(key, LoopPlan(line, iterations, outcome="node", reason="all of it is scalar code"))
        plan.met = True
        if f.decoded.flow.is_left_early(self.header):
            plan.may_end_early()

    def _result(self, kind: Any, nodes: list[Node]) -> Value:
        """The value of a variable after the loop."""
        tx = self.tx
        if isinstance(kind, str):
            (node,) = nodes
            return number_of(tx, kind, node)
        if kind[0] == "array":
            array: Value = self.values.arrays[kind[1]]
            return array
        if kind[0] == "text":
            return self.values.texts[kind[1]]
        if kind[0] == "list":
            appended: Value = self.values.lists[kind[1]]
            return appended
        if kind[0] == "object":
            found = self.t.objects[kind[1]]
            return found if isinstance(found, Value) else Constant(found)
        if kind[0] == "tuple":
            items, at = [], 0
            for inner in kind[1]:
                size = len(parts_of(inner))
                items.append(self._result(inner, nodes[at : at + size]))
                at += size
            return SequenceValue(items, tuple)
        raise AssertionError(kind)


def _numbers_of_numpy(kind: Any) -> int:
    """How many numbers of NumPy's a value of this kind holds."""
    if isinstance(kind, tuple):
        return sum(map(_numbers_of_numpy, kind))
    return int(isinstance(kind, str) and is_numpy(kind))


def _rows(exit: Exit) -> Sequence[tuple[str | None, Any]]:
    """The names and kinds of what an exit gives; a returned value has no name."""
    return ((None, exit.state[1][0]),) if exit.state[0] < 0 else exit.state[2]


def _kinds_of(exit: Exit) -> list[Any]:
    return [kind for _, kind in _rows(exit)]


def _nothing_below(depth: int) -> V:
    raise Refused("it pops below the region's entry stack depth")


__all__ = ["enter"]
