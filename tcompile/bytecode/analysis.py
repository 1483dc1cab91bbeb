"""Dataflow analysis of bytecode: stack contents, bound locals and liveness before each instruction.

Input: a code object.
Output: an `Analysis`: every point of the function at which its frame can be taken apart and rebuilt.
Why: a region needs the live locals and the stack at its start, and a frame can be resumed only at known points.

The forward pass runs the instructions on kinds of stack items, with the set of bound locals. The backward pass is
liveness. Exception tables give both passes their edges into handlers.
"""

from __future__ import annotations

import dis
import types
import weakref
from collections.abc import Callable, Iterator
from functools import cached_property
from inspect import CO_OPTIMIZED
from typing import Any

from tcompile.bytecode import exceptions, positions
from tcompile.bytecode.decode import JUMPS, NAME, OP, NotResumable, Stream, end_of_prologue, numbers
from tcompile.bytecode.dialect import D, is_known, same_as

# Kinds of stack items. MAYBE is a value or NULL. SAVED is the exception handled before. A comprehension saves the
# former contents of its variables' slots: CELL is one of the function's own cells, ASIDE a local, BARE an unbound
# local. TAGGED is an integer of the evaluation loop's own, or NULL. From METHOD on, a kind names the instruction that
# left a pair: a load of a method (NULL, attribute) or (method, self), the start of a loop (iterator, NULL) or
# (iterable, index). It is even for the item that is NULL if that instruction is made a plain one, odd for the other.
VALUE, NULL, MAYBE, SAVED, CELL, ASIDE, BARE, TAGGED, METHOD = 0, 1, 2, 3, 4, 5, 6, 7, 8
KEPT = frozenset((SAVED, CELL, ASIDE, BARE))  # items that an exception handler must restore

# A function that names one of these may read its caller's frame or its own: all its locals stay live.
LOOKS = frozenset((
    "locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe", "stack", "breakpoint", "set_trace",
    "evaluate", "re_evaluate", "query",
))  # fmt: skip

(
    _NET, _PUSH_NULL, _STORE, _COPY, _SWAP, _GLOBAL, _METHOD, _SUPER, _CALL, _NONE, _CALL_EX, _CLEAR, _DELETE,
    _PUSH_EXC, _POP_EXCEPT, _MAKE_CELL, _FREE, _STORE_LOAD, _STORE_STORE, _GENERATOR, _LOAD, _LOAD_LOAD, _CALL_KW,
    _POP, _ITER,
) = range(25)  # fmt: skip

_ACTIONS = {
    "PUSH_NULL": _PUSH_NULL, "STORE_FAST": _STORE, "COPY": _COPY, "SWAP": _SWAP, "LOAD_GLOBAL": _GLOBAL,
    "LOAD_METHOD": _METHOD, "LOAD_ATTR": _METHOD, "LOAD_SUPER_ATTR": _SUPER, "CALL": _CALL, "PRECALL": _NONE,
    "KW_NAMES": _NONE, "RESUME": _NONE, "NOP": _NONE, "CALL_FUNCTION_EX": _CALL_EX, "LOAD_FAST_AND_CLEAR": _CLEAR,
    "DELETE_FAST": _DELETE, "PUSH_EXC_INFO": _PUSH_EXC, "POP_EXCEPT": _POP_EXCEPT, "MAKE_CELL": _MAKE_CELL,
    "COPY_FREE_VARS": _FREE, "STORE_FAST_LOAD_FAST": _STORE_LOAD, "STORE_FAST_STORE_FAST": _STORE_STORE,
    "RETURN_GENERATOR": _GENERATOR, "LOAD_FAST": _LOAD, "LOAD_FAST_CHECK": _LOAD, "LOAD_CONST": _LOAD,
    "LOAD_FAST_LOAD_FAST": _LOAD_LOAD, "CALL_KW": _CALL_KW, "POP_TOP": _POP, "LOAD_SPECIAL": _METHOD,
}  # fmt: skip
if not D.attributes_load_methods:
    del _ACTIONS["LOAD_ATTR"]  # methods have an instruction of their own there
if D.iterator_items == 2:
    _ACTIONS["GET_ITER"] = _ITER
_ACTION = [_NET] * 256
for _name, _number in OP.items():
    _ACTION[_number] = _ACTIONS.get(same_as(_name), _NET)

_ENDS = numbers("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS", "INTERPRETER_EXIT")
_RETURNS = numbers("RETURN_VALUE", "RETURN_CONST")
_JUMPS = numbers("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
_KEEPS = numbers("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
_TESTS = frozenset(number for name, number in OP.items() if name.startswith("POP_JUMP_"))
CONDITIONAL = _TESTS | _KEEPS
_LOADS = numbers("LOAD_FAST", "LOAD_FAST_CHECK", "DELETE_FAST", "LOAD_FAST_AND_CLEAR")
_STORES = numbers("STORE_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR")
_PAIRS = numbers("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST")

# Instructions at which capture has no reason to stop: they only move values.
PLAIN = numbers(
    "NOP", "POP_TOP", "COPY", "SWAP", "PUSH_NULL", "LOAD_CONST", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST",
    "LOAD_FAST_AND_CLEAR", "STORE_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "DELETE_FAST", "LOAD_GLOBAL",
    "LOAD_DEREF", "STORE_DEREF", "LOAD_CLOSURE", "BUILD_TUPLE", "BUILD_LIST", "BUILD_STRING", "BUILD_SLICE",
    "MAKE_CELL", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "END_FOR", "POP_ITER", "END_SEND",
    "RETURN_VALUE", "RETURN_CONST", "RERAISE",
)  # fmt: skip
# The subset that only pops the stack into variables: a resume point comes after them.
SINKS = numbers("STORE_FAST", "STORE_FAST_STORE_FAST", "POP_TOP", "POP_ITER", "NOP", "END_SEND")

_FOR_ITER, _SEND, _END_FOR = OP["FOR_ITER"], OP["SEND"], OP.get("END_FOR", -1)
_YIELD, _RESUME, _CALL_OP = OP["YIELD_VALUE"], OP["RESUME"], OP["CALL"]
_KW_NAMES, _PRECALL = OP.get("KW_NAMES", -1), OP.get("PRECALL", -1)
_PUSH_EXC_INFO = OP["PUSH_EXC_INFO"]
_PAIRED = numbers("LOAD_METHOD", "LOAD_SPECIAL")  # whatever their argument

_effects: dict[int, int] = {}


def _may_read_frame(code: types.CodeType) -> bool:
    """Whether a function may read a frame: ``np.stack`` does not, but ``inspect.stack`` does, or a bare ``stack``.

    A variable of such a name may hold such a function if its value comes from elsewhere, as a parameter's does.
    """
    names, given = code.co_names, code.co_argcount + code.co_kwonlyargcount
    if not LOOKS.isdisjoint((*code.co_varnames[:given], *code.co_freevars)):
        return True
    found = LOOKS.intersection(names)
    if found != {"stack"}:
        return bool(found)
    place, units = names.index("stack"), zip(code.co_code[::2], code.co_code[1::2], strict=True)
    return "inspect" in names or any(op == OP["LOAD_GLOBAL"] and arg >> 1 == place for op, arg in units)


class Point:
    """A place where a region may start, and where a frame can be resumed.

    Attributes:
        offset: of the original instruction, in bytes.
        depth: stack items before it.
        slots: for each stack item, deepest first: True for a value, False for a NULL.
        live: fast locals that may be read later, in ``co_varnames`` order.
        maybe: those of ``live`` that may be unbound here.
        handlers: offsets right after the PUSH_EXC_INFO of each handler that covers the instruction, innermost first.
        handling: number of exceptions being handled here. A region must end with the number of its start, as no
            value in the frame can set this state.
        line: the source line; an instruction without one has that of the last instruction before it with one.
    """

    __slots__ = ("depth", "handlers", "handling", "line", "live", "maybe", "offset", "slots")

    def __init__(
        self,
        offset: int,
        slots: tuple[bool, ...],
        live: tuple[str, ...],
        maybe: frozenset[str],
        handlers: tuple[int, ...],
        handling: int,
        line: int,
    ) -> None:
        self.offset = offset
        self.depth = len(slots)
        self.slots = slots
        self.live = live
        self.maybe = maybe
        self.handlers = handlers
        self.handling = handling
        self.line = line

    def __repr__(self) -> str:
        return f"Point({self.offset}, slots={self.slots}, live={self.live}, maybe={set(self.maybe) or '{}'})"


Stack = tuple[int, ...]


class Analysis:
    """The static facts about one code object; make it with `analyse`.

    Attributes:
        code: the original.
        cells: cell variables and free variables, in the order in which regions get them.
        start: offset of the first instruction after the prologue.
        units: maps an offset inside an indivisible unit to the unit's start. Units are a call with its preparation, a
            yield with its RESUME, and a delegation loop.
    """

    cells: tuple[str, ...]
    start: int
    units: dict[int, int]

    @property
    def code(self) -> types.CodeType:
        """Returns the code object; the caller keeps it alive."""
        code = self._held()
        assert code is not None
        return code

    def __init__(self, code: types.CodeType) -> None:
        self._held = weakref.ref(code)  # rewritten code lives in a cache that must not keep its function's code alive
        if not is_known():
            raise NotResumable("the bytecode of this Python is not known")
        if not code.co_flags & CO_OPTIMIZED and code.co_nlocals:
            raise NotResumable("not a function, but with fast locals of its own")
        self.stream = Stream(code)
        self.locals = code.co_nlocals
        extra = [name for name in code.co_cellvars if name not in code.co_varnames]
        self.names = (*code.co_varnames, *extra, *code.co_freevars)
        cellvars = set(code.co_cellvars)
        self.cells = code.co_cellvars + code.co_freevars
        self.fast = 0  # bitmask of the locals that are not cells
        self.held = 0  # bitmask of the cells
        for i, name in enumerate(self.names):
            if i < self.locals and name not in cellvars:
                self.fast |= 1 << i
            else:
                self.held |= 1 << i
        self.fast_bit = {name: i for i, name in enumerate(self.names) if self.fast >> i & 1}
        self.extras = tuple(self.fast_bit)
        self.table = _read(exceptions.parse, code.co_exceptiontable)
        self._structure()
        self._forward()
        self._backward()
        begin = self.stream.begin
        self.units = {begin[i] * 2: begin[unit] * 2 for i, unit in self.bars.items() if i != unit}

    # -- the shape of the code --

    def _structure(self) -> None:
        stream = self.stream
        ops, size = stream.ops, stream.size
        self.first = end_of_prologue(ops) + 1
        if self.first >= size:
            raise NotResumable("nothing but a prologue")
        self.start = stream.begin[self.first] * 2
        self.cover = [-1] * (size + 1)  # the exception table entry of each instruction
        leaders = {0, self.first}
        self.landing: list[int] = []
        for number, (start, end, target, _, _) in enumerate(self.table):
            low, high = stream.at(start), stream.at(end) if end < stream.end[-1] else size
            leaders |= {low, high}
            self.landing.append(stream.at(target))
            self.cover[low:high] = [number] * (high - low)
        leaders.update(self.landing)
        # The actual target of a jump: FOR_ITER, when its iterator ends, skips the instructions that remove it.
        skip = D.loop_ends
        self.goes = goes = [target if op in JUMPS else -1 for op, target in zip(ops, stream.target, strict=True)]
        bars: dict[int, int] = {}  # instructions that are not points, with their unit's start
        for i, op in enumerate(ops):
            if goes[i] >= 0:
                if op == _FOR_ITER and skip:
                    end = goes[i]
                    if ops[end] != _END_FOR:
                        raise NotResumable("a loop without its end")
                    for inside in range(end, end + skip):
                        bars[inside] = i
                    goes[i] = end + skip
                leaders |= {goes[i], i + 1}
                if op == _SEND:
                    inside = i
                    while inside < size and inside <= i + 3:
                        bars[inside] = i
                        inside += 1
                    if ops[i + 1] != _YIELD or ops[i + 2] != _RESUME or goes[i + 3] != i:
                        raise NotResumable("a delegation of an unknown shape")
            elif op in _ENDS:
                leaders.add(i + 1)
            elif op == _YIELD:
                if ops[i + 1] != _RESUME:
                    raise NotResumable("a yield without its RESUME")
                bars[i + 1] = bars.get(i, i)
            elif op == _RESUME:
                bars.setdefault(i, i)
            elif op == _KW_NAMES:
                inside = i + 1
                while ops[inside] != _CALL_OP:
                    bars[inside] = i
                    inside += 1
                bars[inside] = i
            elif op == _PRECALL:
                bars[i + 1] = bars.get(i, i)
        for i in self.landing:
            bars.setdefault(i, i)
        self.bars = bars
        self.blocks = sorted(leader for leader in leaders if leader < size)

    def next_of(self, i: int) -> tuple[int, ...]:
        """Returns the possible next instructions, handlers excluded."""
        op, target = self.stream.ops[i], self.goes[i]
        if op in _ENDS:
            return ()
        if target < 0:
            return (i + 1,)
        if op in _JUMPS:
            return (target,)
        return (i + 1, target)

    def callable_at(self, i: int) -> bool:
        """Whether a region may be called before the instruction: a handler must find the stack restored."""
        stack = self.stacks[i]
        assert stack is not None
        entry = self.cover[i]
        return KEPT.isdisjoint(stack[self.table[entry][3] :] if entry >= 0 else stack)

    def successors(self, offset: int) -> tuple[int, ...]:
        """Returns the original offsets that may run right after the instruction at ``offset``, handlers excluded."""
        begin = self.stream.begin
        return tuple(begin[i] * 2 for i in self.next_of(self.stream.index[offset]))

    # -- forward: kinds of stack items, bound locals --

    def _forward(self) -> None:
        size, blocks = self.stream.size, self.blocks
        position = {leader: number for number, leader in enumerate(blocks)}
        code = self.code
        given = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        everything = (1 << len(self.names)) - 1
        bound = (1 << given) - 1 & self.fast
        # The state before a block: stack kinds, locals that may be bound, locals that may be unbound.
        states: list[tuple[Stack, int, int] | None] = [None] * len(blocks)
        states[0] = ((), bound, everything & ~bound)
        self.stacks: list[Stack | None] = [None] * size
        self.bound, self.unbound = [0] * size, [0] * size
        waiting = [False] * len(blocks)
        waiting[0] = True
        turn = 0
        while turn < len(blocks):
            if not waiting[turn]:
                turn += 1
                continue
            waiting[turn] = False
            begin = blocks[turn]
            end = blocks[turn + 1] if turn + 1 < len(blocks) else size
            state = states[turn]
            assert state is not None
            lowest = len(blocks)
            for leader, after in self._run(begin, end, *state):
                to = position.get(leader)
                if to is None:
                    raise NotResumable("the code runs past its end")
                old = states[to]
                new = after if old is None else _join(old, after)
                if new != old:
                    states[to] = new
                    waiting[to] = True
                    lowest = min(lowest, to)
            turn = min(turn + 1, lowest)

    def _run(
        self, begin: int, end: int, stack: Stack, bound: int, unbound: int
    ) -> Iterator[tuple[int, tuple[Stack, int, int]]]:
        """Runs one block, and yields each outgoing state with the instruction that receives it."""
        ops, args = self.stream.ops, self.stream.args
        stacks, bounds, unbounds = self.stacks, self.bound, self.unbound
        any_bound, any_unbound = bound, unbound
        entry = self.cover[begin]
        depth = self.table[entry][3] if entry >= 0 else 0
        floor: Stack | None = None  # the part of the stack that the handler keeps
        for i in range(begin, end):
            op, arg = ops[i], args[i]
            stacks[i], bounds[i], unbounds[i] = stack, bound, unbound
            if entry >= 0:
                any_bound |= bound
                any_unbound |= unbound
                if len(stack) < depth:  # after a generator expression's loop: the handler keeps the iterator
                    if op not in PLAIN:
                        raise NotResumable("a handler deeper than the stack")
                    self.bars.setdefault(i, i)
                elif op != _PUSH_EXC_INFO and stack[:depth] != floor:  # it cannot raise, and is not a point
                    if floor is not None:
                        yield self._caught(entry, floor, any_bound, any_unbound)
                    floor = stack[:depth]
            action = _ACTION[op]
            if action == _LOAD:
                stack = (*stack, VALUE)
            elif action == _NET:
                target = self.goes[i]
                if target >= 0:
                    yield from self._branch(i, op, target, stack, bound, unbound)
                    break
                key = op << 32 | arg
                effect = _effects.get(key)
                if effect is None:
                    effect = _effects[key] = dis.stack_effect(op, arg if op >= dis.HAVE_ARGUMENT else None)
                if effect < 0:
                    stack = stack[:effect] if len(stack) >= -effect else _empty()
                elif effect:
                    stack = stack + (VALUE,) * effect
                if op in _ENDS:
                    break
            elif action == _STORE:
                bound, unbound = self._store(stack[-1], 1 << arg, bound, unbound)
                stack = stack[:-1]
            elif action == _POP:
                stack = stack[:-1]
            elif action == _NONE:
                pass
            elif action == _GLOBAL:
                if not arg & 1:
                    stack = (*stack, VALUE)
                else:
                    stack = (*stack, VALUE, NULL) if D.null_above else (*stack, NULL, VALUE)
            elif action == _CALL:
                stack = (*stack[: -arg - 2], VALUE)
            elif action in (_METHOD, _SUPER):
                rest = stack[:-1] if action == _METHOD else stack[:-3]
                if not arg & 1 and op not in _PAIRED:
                    stack = (*rest, VALUE)
                else:
                    empty, full = METHOD + 2 * i, METHOD + 2 * i + 1
                    stack = (*rest, full, empty) if D.null_above else (*rest, empty, full)
            elif action == _ITER:
                stack = (*stack[:-1], VALUE, TAGGED if arg else METHOD + 2 * i)
            elif action == _PUSH_NULL:
                stack = (*stack, NULL)
            elif action == _COPY:
                stack = (*stack, stack[-arg])
            elif action == _SWAP:
                changed = list(stack)
                changed[-1], changed[-arg] = changed[-arg], changed[-1]
                stack = tuple(changed)
            elif action == _LOAD_LOAD:
                stack = (*stack, VALUE, VALUE)
            elif action == _STORE_LOAD:
                bound, unbound = self._store(stack[-1], 1 << (arg >> 4), bound, unbound)
                stack = (*stack[:-1], VALUE)
            elif action == _STORE_STORE:
                bound, unbound = self._store(stack[-1], 1 << (arg >> 4), bound, unbound)
                bound, unbound = self._store(stack[-2], 1 << (arg & 15), bound, unbound)
                stack = stack[:-2]
            elif action == _CALL_EX:
                stack = (*stack[: -4 if D.keywords_slot else -3 - (arg & 1)], VALUE)
            elif action == _CALL_KW:
                stack = (*stack[: -arg - 3], VALUE)
            elif action == _CLEAR:
                bit = 1 << arg
                if bit & self.held:
                    kind = MAYBE if unbound & bit else CELL
                else:
                    kind = ASIDE if not unbound & bit else BARE if not bound & bit else MAYBE
                stack = (*stack, kind)
                bound, unbound = bound & ~bit, unbound | bit
            elif action == _DELETE:
                bound, unbound = bound & ~(1 << arg), unbound | 1 << arg
            elif action == _PUSH_EXC:
                stack = (*stack[:-1], SAVED, VALUE)
            elif action == _POP_EXCEPT:
                if stack[-1:] != (SAVED,):
                    raise NotResumable("an exception left in an unknown way")
                stack = stack[:-1]
            elif action == _MAKE_CELL:
                if i < self.first:  # later ones make a comprehension's own cell, not the function's
                    bound, unbound = bound | 1 << arg, unbound & ~(1 << arg)
            elif action == _FREE:
                mask = (1 << len(self.names)) - (1 << len(self.names) - arg)
                bound, unbound = bound | mask, unbound & ~mask
            elif action == _GENERATOR:
                stack = (*stack, VALUE)
        else:
            yield end, (stack, bound, unbound)
        if floor is not None:
            yield self._caught(entry, floor, any_bound, any_unbound)

    def _caught(self, entry: int, floor: Stack, bound: int, unbound: int) -> tuple[int, tuple[Stack, int, int]]:
        """Returns the handler of an exception table entry, and the state in which it starts."""
        raising = (TAGGED if D.tagged_ints else VALUE,) * self.table[entry][4]
        return self.landing[entry], ((*floor, *raising, VALUE), bound, unbound)

    def _branch(
        self, i: int, op: int, target: int, stack: Stack, bound: int, unbound: int
    ) -> Iterator[tuple[int, tuple[Stack, int, int]]]:
        """Returns both successors of a jump."""
        if op in _TESTS:
            taken = on = stack[:-1]
        elif op in _JUMPS:
            taken, on = stack, ()
        elif op in _KEEPS:
            taken, on = stack, stack[:-1]
        elif op == _FOR_ITER:
            taken, on = stack[: -D.iterator_items], (*stack, VALUE)
        elif op == _SEND:
            taken, on = (stack if D.keeps_receiver else (*stack[:-2], VALUE)), stack
        else:
            raise NotResumable(f"an unknown jump, {NAME[op]}")
        if op not in _JUMPS:
            yield i + 1, (on, bound, unbound)
        yield target, (taken, bound, unbound)

    def _store(self, kind: int, bit: int, bound: int, unbound: int) -> tuple[int, int]:
        """Returns the bound and the unbound locals after a store of an item of that kind."""
        if kind in (NULL, BARE) or (bit & self.held and kind != CELL):
            return bound & ~bit, unbound | bit
        if kind == MAYBE:
            return bound | bit, unbound | bit
        return bound | bit, unbound & ~bit

    # -- backward: locals that are read later --

    def _backward(self) -> None:
        stream, size, blocks = self.stream, self.stream.size, self.blocks
        ops, args, cover, landing = stream.ops, stream.args, self.cover, self.landing
        code, fast = self.code, self.fast
        self.live = live = [0] * (size + 1)
        if _may_read_frame(code):
            self.live = [fast] * (size + 1)
            return
        # super() without arguments reads the frame's first argument when it is called.
        looked = fast & 1 if "super" in code.co_names else 0
        reads, writes = [looked] * size, [0] * size
        # At its start a function passes all its parameters, as its caller does; a loop may jump back there.
        parameters = code.co_argcount + code.co_kwonlyargcount
        parameters += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
        reads[self.first] |= (1 << parameters) - 1 & fast
        for i, op in enumerate(ops):
            if op in _LOADS:
                reads[i] |= 1 << args[i] & fast
            if op in _STORES:
                writes[i] = 1 << args[i]
            elif op in _PAIRS:
                high, low = 1 << (args[i] >> 4), 1 << (args[i] & 15)
                name = same_as(NAME[op])
                if name == "LOAD_FAST_LOAD_FAST":
                    reads[i] |= (high | low) & fast
                elif name == "STORE_FAST_STORE_FAST":
                    writes[i] = high | low
                else:
                    writes[i] = high
                    reads[i] |= low & fast & ~high
        again = True
        while again:
            again = False
            end = size
            for begin in reversed(blocks):
                last = end - 1
                alive = 0
                for way in self.next_of(last):
                    alive |= live[way]
                entry = cover[begin]
                raised = live[landing[entry]] if entry >= 0 else 0
                before = live[begin]
                for i in range(last, begin - 1, -1):
                    alive = alive & ~writes[i] | reads[i] | raised
                    live[i] = alive
                again |= alive != before
                end = begin

    # -- the points --

    @cached_property
    def spans(self) -> list[positions.ListSlice]:
        """Returns the entries of the line table, which only rewritten code needs. Raises NotResumable."""
        spans: list[positions.ListSlice] = _read(positions.parse, self.code.co_linetable)
        if spans and spans[-1][-1] > len(self.code.co_code) // 2:
            raise NotResumable("the table of lines is longer than the code")
        return spans

    @cached_property
    def _lines(self) -> tuple[list[int | None], int]:
        lines, last = positions.lines(self.spans, self.code.co_firstlineno)
        return lines + [None] * (len(self.code.co_code) // 2 - len(lines)), last  # for a truncated table

    @property
    def last_line(self) -> int:
        """Returns the line number of the last instruction that has one."""
        return self._lines[1]

    @property
    def return_line(self) -> int:
        """Returns the line of the last instruction that returns, for a return that represents all of them."""
        lines, stream = self._lines[0], self.stream
        found = (lines[stream.begin[i]] for i in range(stream.size - 1, -1, -1) if stream.ops[i] in _RETURNS)
        return next(filter(None, found), self.code.co_firstlineno)

    @cached_property
    def points(self) -> dict[int, Point]:
        """Returns every resumable point by offset; a function that is captured whole needs none."""
        stream, first, bars = self.stream, self.first, self.bars
        stacks, begin, names, held = self.stacks, stream.begin, self.names, self.held
        spans: dict[int, tuple[str, ...]] = {}
        doubts: dict[int, frozenset[str]] = {0: frozenset()}
        shapes: dict[Stack, tuple[tuple[bool, ...], int] | None] = {}
        chains: dict[int, tuple[int, ...]] = {-1: ()}
        points: dict[int, Point] = {}
        lines = self._lines[0]
        line = self.code.co_firstlineno
        for i in range(first, stream.size):
            line = lines[begin[i]] or line
            stack = stacks[i]
            if stack is None or i in bars or self.unbound[i] & held:
                continue
            if stack in shapes:
                shape = shapes[stack]
            else:
                shape = shapes[stack] = _shape(stack)
            if shape is None:
                continue
            mask = self.live[i]
            live = spans.get(mask)
            if live is None:
                live = spans[mask] = tuple(name for bit, name in enumerate(names) if mask >> bit & 1)
            doubt = mask & self.unbound[i]
            maybe = doubts.get(doubt)
            if maybe is None:
                maybe = doubts[doubt] = frozenset(name for bit, name in enumerate(names) if doubt >> bit & 1)
            entry = self.cover[i]
            chain = chains.get(entry)
            if chain is None:
                chain = chains[entry] = self._chain(entry)
            offset = begin[i] * 2
            points[offset] = Point(offset, shape[0], live, maybe, chain, shape[1], line)
        return points

    def _chain(self, entry: int) -> tuple[int, ...]:
        found: list[int] = []
        seen = set()
        while entry >= 0 and entry not in seen:
            seen.add(entry)
            handler = self.landing[entry]
            if self.stream.ops[handler] == _PUSH_EXC_INFO:
                found.append(self.stream.begin[handler + 1] * 2)
            entry = self.cover[handler]
        return tuple(found)


def analyse(code: types.CodeType) -> Analysis:
    """Analyses a code object.

    Raises:
        NotResumable: the code contains an unknown construct; run it unchanged.

    >>> def f(x):
    ...     return x + 1
    >>> [point.slots for point in analyse(f.__code__).points.values()][:3]
    [(), (True,), (True, True)]
    """
    return Analysis(code)


def _read(parse: Callable[[bytes], Any], table: bytes) -> Any:
    """Returns the entries of a table, whose bytes may be malformed."""
    try:
        return parse(table)
    except IndexError as error:
        raise NotResumable("a table of the code ends in the middle of an entry") from error


def _empty() -> Stack:
    raise NotResumable("the stack runs empty")


def _join(old: tuple[Stack, int, int], new: tuple[Stack, int, int]) -> tuple[Stack, int, int]:
    stack = old[0]
    if stack != new[0]:
        if len(stack) != len(new[0]):
            raise NotResumable("paths meet with stacks of different depths")
        merged = []
        for a, b in zip(stack, new[0], strict=True):
            if a != b and SAVED in (a, b):
                raise NotResumable("paths meet with different exceptions being handled")
            merged.append(a if a == b else MAYBE)
        stack = tuple(merged)
    return stack, old[1] | new[1], old[2] | new[2]


def _shape(stack: Stack) -> tuple[tuple[bool, ...], int] | None:
    """Returns which items are values, and the number of saved exceptions; None if unknown."""
    if MAYBE in stack or TAGGED in stack:
        return None
    slots = tuple(bool(kind & 1) if kind >= METHOD else kind not in (NULL, BARE) for kind in stack)
    return slots, stack.count(SAVED)
