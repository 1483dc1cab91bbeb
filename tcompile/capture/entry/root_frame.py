"""The frame in which a stretch of captured code starts and ends.

Input: a function's code, the place in it where the stretch starts, and the values of its frame there.
Output: the value that the function returns, or the place before which capture stopped, with the captured locals and
stack there.
Why: unlike the frames of followed calls, this one is also a frame of the running program. It can be entered and left
at any instruction.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tcompile.bytecode.instructions import Instruction
from tcompile.bytecode.rewritten import UNBOUND
from tcompile.capture.guards.entry_protocol import Start, start_of
from tcompile.capture.guards.sources import CellSource, ParameterSource, Source
from tcompile.capture.interpreter.context import Capture
from tcompile.capture.interpreter.frame import PREPARES_CALL, Frame, Returned
from tcompile.capture.loops.predict_carried import targets
from tcompile.capture.values.base import NULL, LazyValue, Value
from tcompile.capture.values.callable import ClosureCell, FunctionValue
from tcompile.frontends.base import CannotCapture

_OF_THE_FRAME = {  # instructions that only the running frame can do: they suspend, or handle exceptions
    "YIELD_VALUE", "SEND", "END_SEND", "GET_YIELD_FROM_ITER", "GET_AWAITABLE", "GET_AITER", "GET_ANEXT",
    "END_ASYNC_FOR", "ASYNC_GEN_WRAP", "CLEANUP_THROW", "BEFORE_ASYNC_WITH",
    "PUSH_EXC_INFO", "POP_EXCEPT", "RERAISE", "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "WITH_EXCEPT_START",
}  # fmt: skip


# Instructions that load a function and its arguments: capture may do them for a frame that runs in plain Python.
_BEFORE_CALLS = {
    "RESUME", "NOP", "COPY_FREE_VARS", "PUSH_NULL", "LOAD_CONST", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_LOAD_FAST",
    "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_ATTR", "LOAD_METHOD", *PREPARES_CALL,
}  # fmt: skip


class Stopped(Exception):
    """Capture has reached the step before which it stops."""


class RootFrame(Frame):
    """The frame of the function that is compiled. Steps are the instructions that it has followed, counted from 0."""

    def __init__(
        self,
        tx: Capture,
        code: types.CodeType,
        namespace: dict[str, Any],
        start: Start,
        values: Sequence[Any],
        stop: int | None,
    ) -> None:
        sources = [ParameterSource(i, name) for i, name in enumerate(start.names)]
        given = dict(zip(sources, values, strict=True))
        cells = {s.name: ClosureCell.of(tx, given[s], s, CellSource(s.name, s)) for s in sources[: len(start.cells)]}
        super().__init__(tx, FunctionValue(code, namespace, [cells[name] for name in code.co_freevars]), {})
        self.cells = cells
        self.uncertain: dict[str, tuple[Source, Value | None]] = {}  # locals that may lack a value at the start
        count = self._first_slot = len(start.cells) + len(start.live)
        for source in sources[len(start.cells) : count]:
            found = None if given[source] is UNBOUND else LazyValue(given[source], source)
            if found is not None:
                self.locals[source.name] = found
            if source.name in start.maybe:
                self.uncertain[source.name] = source, found
        items = iter(sources[count:])
        self.stack = [LazyValue(given[source := next(items)], source) if full else NULL for full in start.slots]
        self.at = self.began = self.decoded.positions[start.offset]
        if start.slots or start.offset != start_of(code).offset:
            self._expect_iterations([source.name for source in sources], values)
        self.trail: list[int] = []
        self._stop = stop
        self._mark = self._place()
        self.is_noted = True

    def _expect_iterations(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Keeps ints open that loops give to the frame: they differ in the next iteration."""
        known = self.decoded.targets
        if not known:
            known.append(targets(self.decoded.instructions))
        self.tx.profile.open_numbers |= known[0]
        if self.at and self.decoded.instructions[self.at - 1].opname == "FOR_ITER" and len(values) > 1:
            item = f"{names[-1]}[0]" if type(values[-2]) is enumerate else names[-1]
            self.tx.profile.open_numbers.add(item)

    def run(self) -> Value:
        """Runs until the function returns, or capture stops: the frame is then at that place."""
        self.tx.frames.append(self)
        try:
            self._steps()
        except Returned as returned:
            return returned.value
        raise AssertionError("a frame ends only by returning")

    def forget(self) -> None:
        """Drops everything, so that the program's own objects live no longer than without capture."""
        self.tx.graph.env.on_guard = None
        vars(self.tx).clear()
        vars(self).clear()

    def note_step(self) -> None:
        """Saves the state from which capture can end before this instruction. Raises Stopped where it ends there."""
        if self.steps == self._stop:
            self.before = self.stack
            raise Stopped
        super().note_step()
        self._mark = self._place()
        self.trail.append(self.at)
        self.tx.step = self.steps

    def refuse_step(self, instruction: Instruction) -> None:
        """Refuses instructions that suspend or handle exceptions, and in a plain frame all but calls."""
        if self.tx.options.plain_frame and instruction.opname not in _BEFORE_CALLS:
            raise CannotCapture("plain-frame", self.tx.current_text())
        if instruction.opname in _OF_THE_FRAME:
            raise CannotCapture("frame-step", self.tx.current_text())

    def _place(self) -> tuple[int, int, int, int, int]:
        """The counts that only grow: changes, nodes, inputs, and steps of guards."""
        tx = self.tx
        graph, guards = tx.graph, tx.graph.env.guards
        return tx.mutations, len(graph.nodes), len(graph.inputs), len(tx.prologue.steps), len(guards)

    def rely_on_binding(self, name: str) -> None:
        """Guards whether a variable, unchanged since the start, has a value there."""
        source, value = self.uncertain.get(name, (None, None))
        if source is not None and self.locals.get(name) is value:
            held = self.tx.prologue.constant(UNBOUND)
            if value is None:
                self.tx.prologue.guard(source, f"{{}} is {held}", f"{name} has no value", "no value")
            else:
                self.tx.prologue.guard(source, f"{{}} is not {held}", f"{name} has a value", "a value")

    # -- where capture stopped -----------------------------------------------------------------------------------------
    @property
    def step(self) -> int:
        """The number of the step that was not done: the steps before it are captured."""
        return len(self.trail)

    def goes_on(self) -> bool:
        """Whether the instruction only uses an object that the running frame made earlier.

        The end of a ``with`` block calls the exit method that its start has loaded; an exception that was made is
        raised.
        """
        held = self.decoded.instructions[self.at].opname == "RAISE_VARARGS"
        slot = self.callee_slot() if not held else len(self.stack) - 1 if self.stack else None
        source = self.stack[slot].source if slot is not None else None
        return isinstance(source, ParameterSource) and source.index >= self._first_slot

    def undo(self) -> bool:
        """Undoes the step in the middle of which capture stopped; False where it has changed captured values."""
        mutations, nodes, inputs, steps, sizes = self._mark
        tx = self.tx
        if not self.trail or tx.mutations != mutations:
            if self.trail:
                self.trail.pop()
            return False
        del tx.graph.nodes[nodes:], tx.graph.inputs[inputs:], tx.input_sources[inputs:]
        guards = tx.graph.env.guards
        while len(guards) > sizes:
            guards.popitem()
        tx.prologue.shorten(steps)
        self.stack = self.before
        self.at = self.trail.pop()
        self.align()
        return True

    def align(self) -> None:
        """Moves back over instructions that only prepare a call: they belong to the call."""
        instructions = self.decoded.instructions
        while (
            self.trail
            and instructions[self.trail[-1]].opname in PREPARES_CALL
            and instructions[self.at].opname in ("CALL", *PREPARES_CALL)
        ):
            self.at = self.trail.pop()

    def longest_loop(self) -> int | None:
        """The first back jump of the loop with the most iterations: this frame can run that loop by itself."""
        opens = (at for at in self.trail if self.decoded.instructions[at].opname.startswith("JUMP_BACKWARD"))
        most = Counter(opens).most_common(1)
        return self.trail.index(most[0][0]) if most else None
