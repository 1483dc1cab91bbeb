"""The symbolic interpreter: runs a function's bytecode on captured values.

Input: a function and its bound arguments.
Output: the value that it returns; the graph, guards and side effects grow in the shared ``Capture``.
Why: a program's meaning is its bytecode, so one handler for each instruction has that instruction's meaning for values.

Calls of user functions run in a ``Frame`` of their own. An instruction that is not followed, or an operation on values
that cannot be captured, raises ``CannotCapture``. The frame in which it happens is known from ``Capture.frames``.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from tcompile.bytecode.analysis import Analysis, analyse
from tcompile.bytecode.decode import NotResumable
from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction, read
from tcompile.capture.context.followed import Followed, note
from tcompile.capture.context.lazy_imports import settle
from tcompile.capture.context.loop_plan import LoopPlan, WhileLoop
from tcompile.capture.guards.sources import ConstantSource, GlobalSource
from tcompile.capture.interpreter.context import Capture
from tcompile.capture.interpreter.loop_info import Flow, Header
from tcompile.capture.values.base import Deferred, LazyValue, Null, Value, settled
from tcompile.capture.values.callable import ClosureCell, FunctionValue
from tcompile.config import config
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Location
from tcompile.graph.names import quoted
from tcompile.graph.verify import user_line
from tcompile.observe.source_location import UserLine, file_line
from tcompile.records import dataclass

_MOVES = ("NOP", "COPY", "SWAP", "LOAD_CONST", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST", "STORE_FAST")
PREPARES_CALL = ("KW_NAMES", "PRECALL")  # instructions that belong to the call after them


Handler: TypeAlias = "Callable[[Frame, Instruction], None]"
HANDLERS: dict[str, Handler] = {}  # the meaning of each instruction: filled in by ``opcodes`` and ``loops.enter``
AT_HEADER = "AT_HEADER"  # the handler of an instruction where an iteration of a ``while`` loop begins


def handler(*names: str) -> Callable[[Handler], Handler]:
    """Registers the meaning of the instructions ``names``."""

    def register(function: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


class Returned(Exception):
    """Ends a frame; carries the value returned."""

    def __init__(self, value: Value) -> None:
        self.value = value


class Yielded(Exception):
    """Suspends a generator's frame; carries the value yielded."""

    def __init__(self, value: Value) -> None:
        self.value = value


@dataclass(eq=False)
class Decoded:
    """A code object made ready for the interpreter: one list entry an instruction."""

    instructions: list[Instruction]
    handlers: list[Handler | None]
    positions: dict[int, int]  # instruction number by offset
    locations: list[Location | None]  # filled in as they are asked for
    has_blocks: bool  # whether it has ``try`` or ``with``
    flow: Flow
    headers: dict[int, Header] = field(default_factory=dict)  # of `while` loops, by where they begin and are entered
    analysed: list[Analysis | None] = field(default_factory=list)  # once it was asked for
    targets: list[frozenset[str]] = field(default_factory=list)  # of its `for` loops, once they were asked for


_DECODED: dict[int, tuple[weakref.ref[types.CodeType], Decoded]] = {}


def decode(code: types.CodeType) -> Decoded:
    """The instructions of ``code``, decoded once."""
    found = _DECODED.get(id(code))
    if found is not None and found[0]() is code:
        return found[1]
    try:
        listed = read(code)
    except Exception as error:  # bytecode made by hand, with errors
        raise CannotCapture("unsupported-instruction", f"bytecode that cannot be read ({error})") from error
    positions = {i.offset: n for n, i in enumerate(listed)}
    positions.update({i.start: n for n, i in enumerate(listed)})  # a jump names the first EXTENDED_ARG
    decoded = Decoded(
        listed, [HANDLERS.get(i.opname) for i in listed], positions, [None] * len(listed),
        any(i.opname == "PUSH_EXC_INFO" for i in listed), Flow(listed, positions),
    )  # fmt: skip
    for header in decoded.flow.whiles():
        for at in {header.at, header.entry}:
            decoded.headers[at] = header
            decoded.handlers[at] = HANDLERS[AT_HEADER]
    key = id(code)
    drop = _DECODED.pop  # a local name, because the module's names are gone first at exit
    _DECODED[key] = (weakref.ref(code, lambda _: drop(key, None)), decoded)
    return decoded


class Frame:
    """One function's execution on captured values. A function that is not the user's code is ``place``d at a line."""

    def __init__(
        self, tx: Capture, function: FunctionValue, arguments: dict[str, Value], place: Location | None = None
    ) -> None:
        self.tx = tx
        self.place = place
        self.function = function
        self.code = function.code
        self.locals: dict[str, Value] = dict(arguments)
        self.assigned: set[str] = set()  # names of locals that were bound or unbound in here
        self.stack: list[Value] = []
        self.before: list[Value] = []  # the stack before the instruction that is being followed, where that is kept
        self.cells: dict[str, ClosureCell] = dict(zip(self.code.co_freevars, function.closure, strict=True))
        self.keyword_names: tuple[str, ...] = ()
        self.decoded = decode(self.code)
        self.lines = self._noted() if place is None else None
        self.at = 0
        self.steps = 0  # that were followed
        self.is_noted = bool(tx.options.continues)  # whether ``note_step`` is called before each step
        self.began = 0  # the instruction at which capture of it began
        self.came_back = -1  # the instruction that a jump back has led to
        self.peeled: dict[int, tuple[Header, LoopPlan]] = {}  # loops with a peeled iteration being followed
        self.iterations: dict[int, WhileLoop] = {}  # of the `while` loops that the frame is in, by where they begin
        # At the first back jump of each unrolled loop: how many operations there are, and steps of the prologue.
        self.first_iteration: dict[int, tuple[int, int]] = {}

    def _noted(self) -> list[int] | None:
        """Notes that the function is followed; returns the list of lines of this call, where lines are noted."""
        code, known = self.code, self.tx.followed
        found = known.get(code)
        if found is None:
            found = known[code] = Followed.of(code)
        if not self.tx.options.notes_lines:
            return None
        lines: list[int] = []
        found.calls.append(lines)
        return lines

    @property
    def instructions(self) -> Sequence[Instruction]:
        """The function's code."""
        return self.decoded.instructions

    @property
    def has_blocks(self) -> bool:
        """Whether its code has ``try`` or ``with`` in it: a generator that is dropped would run its clean-up."""
        return self.decoded.has_blocks

    # -- running -----------------------------------------------------------------------------------------------------
    def run(self) -> Value:
        """Runs until the function returns."""
        self.tx.frames.append(self)
        try:
            self._steps()
        except Returned as returned:
            self.tx.frames.pop()
            return returned.value
        raise AssertionError("a frame ends only by returning")

    def resume(self, sent: Value | None) -> tuple[Value, bool]:
        """Runs a generator's frame to its next yield: returns the value and whether it was yielded."""
        if sent is not None:
            self.push(sent)
        self.tx.frames.append(self)
        try:
            self._steps()
        except Returned as returned:
            self.tx.frames.pop()
            return settled(self.tx, returned.value), False
        except Yielded as yielded:
            self.tx.frames.pop()
            return yielded.value, True
        raise AssertionError("a frame ends only by returning")

    def _steps(self) -> None:
        tx, limit, every = self.tx, self.tx.options.max_instructions, config.stress_breaks
        instructions, handlers, lines = self.decoded.instructions, self.decoded.handlers, self.lines
        is_noted = self.is_noted
        while True:
            at = self.at
            if is_noted:
                self.note_step()
            self.at = at + 1
            tx.instructions += 1
            if tx.instructions > limit:
                raise CannotCapture("too-long", f"More than {limit} instructions were followed.")
            if every and self.steps == every:
                raise CannotCapture("stress-break", f"config.stress_breaks is {every}.")
            self.steps += 1
            if is_noted:
                self.refuse_step(instructions[at])
            run = handlers[at]
            if run is None:
                raise CannotCapture("unsupported-instruction", instructions[at].opname)
            tx.builder.location = location = self.location(at)
            if lines is not None:
                note(lines, location.line)
            run(self, instructions[at])

    def note_step(self) -> None:
        """Saves the state for ``go_back``, before an instruction is followed."""
        self.before = self.stack[:]

    def push(self, value: Value) -> None:
        """Puts a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Value:
        """Takes the top of the stack."""
        value = self.stack.pop()
        return value.settle(self.tx) if isinstance(value, Deferred) else value

    def peek(self, depth: int) -> Value:
        """The value at a place of the stack (1: the top), which stays there."""
        value = self.stack[-depth] = settled(self.tx, self.stack[-depth])
        return value

    def pop_unread(self) -> Value:
        """Takes the top of the stack to move it elsewhere."""
        return self.stack.pop()

    def pop_many_unread(self, count: int) -> list[Value]:
        """Takes ``count`` values, the deepest first, to move them elsewhere."""
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    def pop_many(self, count: int) -> list[Value]:
        """Takes ``count`` values, the deepest first."""
        return [settled(self.tx, value) for value in self.pop_many_unread(count)]

    def analysis(self) -> Analysis | None:
        """The live variables at each instruction; None for code that is not understood."""
        known = self.decoded.analysed
        if not known:
            try:
                known.append(analyse(self.code))
            except NotResumable:
                known.append(None)
        return known[0]

    def may_branch(self) -> bool:
        """Whether a jump on a value of the graph may go both ways: in an iteration of a loop that becomes a node."""
        return bool(self.peeled or self.tx.open_loops) and not self.tx.options.follows_path

    def jump(self, instruction: Instruction) -> None:
        """Goes to the instruction's target."""
        self.at = self.decoded.positions[instruction.argval]

    # -- where we are ------------------------------------------------------------------------------------------------
    def location(self, at: int) -> Location:
        """The user's line after instruction number ``at``."""
        if self.place is not None:
            return self.place
        known = self.decoded.locations[at]
        if known is None:
            first, last, column, end_column = self.decoded.instructions[at].positions
            line = first or self.code.co_firstlineno
            known = self.decoded.locations[at] = Location(
                self.code.co_filename, line, column, end_column, self.code.co_name,
                file_line(self.code.co_filename, line).strip(), last if last and last > line else 0,
            )  # fmt: skip
        return known

    def user_line(self) -> UserLine:
        """The line being executed."""
        return user_line(self.location(max(self.at - 1, 0)))

    # -- names -------------------------------------------------------------------------------------------------------
    def load_global(self, name: str) -> Value:
        """A global, or a built-in where there is none."""
        names = self.function.globals
        if type(names) is not dict:
            raise CannotCapture("unsupported-object", f"The globals are of class {type(names).__qualname__}.")
        stored = self.tx.stored_global(names, name)
        if stored is not None:
            return stored
        source = ConstantSource.of("globals()", names)
        if name in names:
            settle(names, name)
            found = GlobalSource(name, source)
            self.tx.prologue.load(found)  # whether it exists matters, even where its value does not
            return LazyValue(names[name], found)
        builtins = self.function.builtins
        if name in builtins:
            guards = self.tx.prologue
            guards.guard(source, f"{quoted(name)} not in {{}}", f"no global named {name!r}", "no global", "no global")
            guards.guard_binding(source, builtins, name, f"{name} is the built-in", "the built-in", "built-in")
            return self.tx.wrap_found(builtins[name])
        raise CannotCapture("operation-raises", f"name {name!r} is not defined")

    def store_global(self, name: str, value: Value | None) -> None:
        """Stores to a global, or deletes it where ``value`` is None."""
        if type(self.function.globals) is not dict:
            raise CannotCapture("side-effect", f"Assigning the global `{name}`")
        self.tx.store_global(self.function.globals, name, value)

    def refuse_step(self, instruction: Instruction) -> None:
        """Called before each instruction; raises CannotCapture where only the running frame can do it."""

    def rely_on_binding(self, name: str) -> None:
        """Called where it matters whether a local variable has a value."""

    def load_local(self, name: str) -> Value:
        """A local variable. Raises CannotCapture where plain Python would raise UnboundLocalError."""
        self.rely_on_binding(name)
        value = self.locals.get(name)
        if value is not None:
            return value
        if name in self.cells:
            return self.cells[name]
        raise CannotCapture("operation-raises", f"local variable {name!r} is not set")

    @property
    def offset(self) -> int:
        """The offset of the instruction that was not done."""
        return self.decoded.instructions[self.at].start

    def jumps_to(self, at: int) -> Iterator[int]:
        """The instructions that only jump back to an instruction."""
        for place, instruction in enumerate(self.decoded.instructions):
            if instruction.opname == "JUMP_BACKWARD" and self.decoded.flow.leads_to(place) == at:
                yield place

    def go_back(self) -> None:
        """Undoes the instruction that is being followed, and those before it that belong to it."""
        self.stack = self.before
        self.at -= 1
        while self.decoded.instructions[self.at - 1].opname in PREPARES_CALL:
            self.at -= 1

    def move_on(self, stops: Container[int]) -> None:
        """Executes instructions that only move locals and stack items, up to an instruction at one of these offsets."""
        while self.offset not in stops and self.decoded.instructions[self.at].opname in _MOVES:
            instruction = self.decoded.instructions[self.at]
            self.at += 1
            HANDLERS[instruction.opname](self, instruction)

    def callee_slot(self) -> int | None:
        """The stack slot of the function that is about to be called; None where no call comes next."""
        at = self.at
        while self.decoded.instructions[at].opname in PREPARES_CALL:
            at += 1
        call = self.decoded.instructions[at]
        above = {"CALL": 0, "CALL_KW": 1, "CALL_FUNCTION_EX": 1}.get(call.opname)
        if above is None:
            return None
        if call.opname == "CALL_FUNCTION_EX":
            above += D.keywords_slot or (call.arg or 0) & 1
        else:
            above += call.arg or 0
        lower = len(self.stack) - above - 2
        return lower + 1 if isinstance(self.stack[lower], Null) else lower
