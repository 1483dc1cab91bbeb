"""Continuations: the program by which a frame goes on at the next iteration of a loop that is one node of a graph.

Input: a capture that has just made the node of a loop, with the frame as it is after the loop.
Output: the frame as it is where the next iteration begins. Values that depend on the number of completed iterations are
loaded from extra parameters of the entry program.
Why: when an object that the loop reads has changed, the frame goes on at the next iteration, and not at the first one.

The extra parameters are the number of completed iterations, and then the numbers that a scalar loop holds.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tcompile.bytecode.analysis import METHOD
from tcompile.bytecode.dialect import D
from tcompile.capture.context.options import Resumable
from tcompile.capture.guards.sources import ParameterSource
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, FrameView, Null, Rebuilder, Value, settled
from tcompile.capture.values.callable import FunctionValue, MethodValue, PartialValue
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
from tcompile.capture.values.scalar import ScalarValue
from tcompile.capture.values.span import ListSlice
from tcompile.graph.sizes import Size

if TYPE_CHECKING:
    from tcompile.bytecode.rewritten import Rewritten
    from tcompile.capture.interpreter.frame import Frame


class Reached(Exception):
    """Capture has made the node, and the frame is where the next iteration begins."""


class NoContinuation(Exception):
    """The frame cannot go on in the middle of this loop."""


def is_wanted(f: Frame, name: str) -> bool:
    """Whether capture ends with the loop whose node has this name."""
    wanted = f.tx.options.continues
    return wanted is not None and wanted[0] == name and not f.tx.open_loops


class LateCall(Value):
    """A function whose frame starts where a followed call of it is."""

    def __init__(self, frame: Frame, found: Resumable) -> None:
        self.frame, self.found = frame, found
        self.is_scalar = frame.tx.late_is_scalar
        self.point = found.rewritten.analysis.points[frame.offset]
        if [not isinstance(value, Null) for value in frame.stack] != list(self.point.slots):
            raise NoContinuation("the stack of a called function is not as it should be")
        self.cells = [frame.cells[name] for name in frame.code.co_cellvars if name in frame.cells]
        if len(self.cells) != len(frame.code.co_cellvars) or not self._has_cells_alone():
            raise NoContinuation("others hold the closure variables of a called function")

    def _has_cells_alone(self) -> bool:
        """Whether none but the function that it calls holds its closure variables: it gets those of its new frame."""
        if not self.cells:
            return True
        return all(self._is_apart(value) for frame in self.frame.tx.frames for value in _held(frame))

    def _is_apart(self, value: Any) -> bool:
        if isinstance(value, LateCall | Null | Counted | ScalarValue | ArrayValue | Constant | _LATE):
            return True
        if isinstance(value, MethodValue):
            return self._is_apart(value.function)
        if isinstance(value, FunctionValue) and value.function is not None:  # not made by the code that is captured
            return True
        if isinstance(value, SequenceValue) and value.source is None:
            return all(isinstance(item, ListSlice) or self._is_apart(item) for item in value.held)
        return isinstance(value, Value) and value.source is not None

    def rebuild(self, program: Rebuilder) -> str:
        """The code of the function."""
        frame, function = self.frame, self.frame.function
        code = program.rebuild(function) if function.outer is None else program.constant(function.function)
        held = [frame.locals.get(name) for name in self.point.live]
        held += [value for value in frame.stack if not isinstance(value, Null)]
        values = "".join(f"{'UNBOUND' if value is None else program.rebuild(value)}, " for value in held)
        route = "".join(f"{bit}, " for bit in self.found.rewritten.route(frame.offset))
        answer = f"{self.point.offset}, (None, {route}({values}))"
        cells = "".join(f"{program.rebuild(cell)}, " for cell in self.cells)
        return f"{program.constant(self.found.resume)}({code}, {answer}, {self.is_scalar}, ({cells}))"


def _held(frame: FrameView) -> Iterator[Any]:
    """What a frame holds."""
    yield from frame.locals.values()
    yield from frame.stack


def go_back_to_call(caller: Frame, called: Frame) -> None:
    """Puts a frame back to where it calls a function that goes on in the middle. Raises NoContinuation."""
    caller.go_back()
    slot = caller.callee_slot()
    if slot is None or called.place is not None:
        raise NoContinuation("the loop's function was not called by an instruction")
    caller.stack[slot] = _in_place_of(settled(caller.tx, caller.stack[slot]), called)


def _in_place_of(value: Value, called: Frame) -> Value:
    """The callable that starts the called frame in place of the called function."""
    match value:
        case FunctionValue(code=code) if code is called.code:
            return LateCall(called, resumable(called))
        case MethodValue(owner=owner, function=function):
            return MethodValue(owner, _in_place_of(settled(called.tx, function), called))
        case PartialValue(function=function, args=args, kwargs=kwargs):
            return PartialValue(_in_place_of(settled(called.tx, function), called), args, kwargs)
    raise NoContinuation("the loop's function was called by another one")


def resumable(frame: Frame) -> Resumable:
    """The rewritten code of the frame's function, if the frame is at a resume point. Raises NoContinuation."""
    code, function, ask = frame.code, frame.function.function, frame.tx.options.resumable
    if function is None:  # the captured code has made it
        cells = tuple(types.CellType() for _ in code.co_freevars)
        function = types.FunctionType(code, frame.function.globals, code.co_name, None, cells)
    found = None if ask is None else ask(function)
    if found is None:
        raise NoContinuation("a called function cannot be resumed")
    go_to_resume_point(frame, found.rewritten)
    return found


def go_to_resume_point(frame: Frame, rewritten: Rewritten | None) -> None:
    """Moves a frame to a resume point that leads to where it is, or to the next one with no computation between.

    Raises NoContinuation where there is none.
    """
    if rewritten is not None and frame.offset not in rewritten.targets:
        load = _method_load(frame, rewritten)
        if load is None:
            instructions = frame.decoded.instructions
            jumps = (at for at in frame.jumps_to(frame.at) if instructions[at].start in rewritten.targets)
            frame.at = next(jumps, frame.at)
            frame.move_on(rewritten.targets)
        else:
            _go_to_method_load(frame, load)
    if rewritten is None or frame.offset not in rewritten.targets:
        raise NoContinuation("the frame cannot be resumed there")


def _method_load(frame: Frame, rewritten: Rewritten) -> int | None:
    """The instruction that loads the method that is called next; None for other calls."""
    slot, stream = frame.callee_slot(), rewritten.analysis.stream
    kinds = rewritten.analysis.stacks[stream.index[frame.offset]]
    if slot is None or kinds is None or kinds[slot] < METHOD:
        return None
    load = frame.decoded.positions[2 * stream.begin[(kinds[slot] - METHOD) >> 1]]
    return load if frame.decoded.instructions[load].opname in ("LOAD_METHOD", "LOAD_ATTR") else None


def _go_to_method_load(frame: Frame, load: int) -> None:
    """Goes back over moves of arguments to the load of the method, from an object that has nothing else."""
    slot = frame.callee_slot()
    assert slot is not None
    method = LateOwner(frame.decoded.instructions[load].argval, frame.stack[slot])
    frame.stack[slot - (not D.null_above) :] = [method]
    frame.at = load


class LateOwner(Value):
    """An object with one attribute, from which a frame takes the method that it calls."""

    def __init__(self, name: str, method: Value) -> None:
        self.name, self.found = name, method

    def rebuild(self, program: Rebuilder) -> str:
        """A new object."""
        return f"{program.constant(types.SimpleNamespace)}(**{{{self.name!r}: {program.rebuild(self.found)}}})"


class LateInt(Value):
    """An int that grows by a known amount with each iteration: ``first + amount * iterations``."""

    def __init__(self, tx: Context, first: Size, amount: Size) -> None:
        self.first, self.amount, self.iterations = first, amount, iterations_of(tx)

    def rebuild(self, program: Rebuilder) -> str:
        """The expression."""
        return f"({self.first}) + ({self.amount}) * {program.load(self.iterations)}"


class LateNumber(Value):
    """A number that a scalar loop holds where its next iteration begins, or before an exception."""

    def __init__(self, tx: Context, place: int, name: str) -> None:
        self.given = ParameterSource(tx.options.arity + 1 + place, name)

    def rebuild(self, program: Rebuilder) -> str:
        """The parameter."""
        return program.load(self.given)


class LateRange(Value):
    """The iterator of a range inside a scalar loop: the next int, the end, and the step if it is not known."""

    def __init__(self, numbers: Sequence[Value], step: int | None) -> None:
        self.numbers, self.step = numbers, step

    def rebuild(self, program: Rebuilder) -> str:
        """A new iterator over the remaining ints."""
        numbers = [program.rebuild(number) for number in self.numbers]
        bounds = numbers if self.step is None else [*numbers, str(self.step)]
        return f"{program.constant(range_from)}(0, {', '.join(bounds)})"


class LateLetter(Value):
    """A character that a scalar loop holds, by its code point."""

    def __init__(self, code_point: Value) -> None:
        self.code_point = code_point

    def rebuild(self, program: Rebuilder) -> str:
        """The str of one character."""
        return f"{program.constant(chr)}({program.rebuild(self.code_point)})"


class LateItems(Value):
    """The iterator of an array, a tuple or a str inside a scalar loop, and the position of its next item."""

    def __init__(self, items: Value, position: Value) -> None:
        self.items, self.position = items, position

    def rebuild(self, program: Rebuilder) -> str:
        """A new iterator over the remaining items."""
        position, items = program.rebuild(self.position), program.rebuild(self.items)
        return f"{program.constant(items_from)}({position}, {items}, False)"


class LateZipped(Value):
    """``zip`` inside a scalar loop: iterators of items, and first numbers of ranges; the position, and the end."""

    def __init__(self, columns: Sequence[Value], position: LateNumber, end: LateNumber) -> None:
        self.columns, self.position, self.end = columns, position, end

    def rebuild(self, program: Rebuilder) -> str:
        """A new one over the remaining items."""
        at, end = program.rebuild(self.position), program.rebuild(self.end)
        each = []
        for column in self.columns:
            found = program.rebuild(column)
            is_range = isinstance(column, LateNumber)
            each.append(f"{program.constant(range)}({found} + {at}, {found} + {end})" if is_range else found)
        return f"{program.constant(zip)}({', '.join(each)})"


class LateEnumerated(Value):
    """``enumerate`` of such an iterator, and its next number."""

    def __init__(self, items: Value, number: Value) -> None:
        self.items, self.number = items, number

    def rebuild(self, program: Rebuilder) -> str:
        """A new one over the remaining items."""
        return f"{program.constant(enumerate)}({program.rebuild(self.items)}, {program.rebuild(self.number)})"


class LateIterator(Value):
    """An iterator that has given its next items to a loop. ``per_iteration`` of them go to one iteration of the node.

    Where ``absolute``, the parameter is the position of a scalar loop, and not the number of completed iterations.
    """

    def __init__(self, tx: Context, items: Counted, per_iteration: int = 1, absolute: bool = False) -> None:
        self.items, self.per_iteration, self.absolute = items, per_iteration, absolute
        self.iterations = iterations_of(tx)

    def taken(self, program: Rebuilder) -> str:
        """Code for the number of items that were taken."""
        given = program.load(self.iterations)
        if not self.absolute:
            return f"(({self.items.iterations}) + {self.per_iteration} * {given})"
        inner = self.items
        while isinstance(inner, Enumerated):
            inner = inner.items
        values = getattr(inner, "values", None)
        return given if values is None else f"(({given} - ({values.start})) // ({values.step}))"

    def rebuild(self, program: Rebuilder) -> str:
        """A new iterator over the remaining items."""
        return _advanced(program, self.items, self.taken(program))


_LATE = LateInt | LateNumber | LateRange | LateLetter | LateItems | LateZipped | LateEnumerated | LateIterator


class LateSpan(ListSlice):
    """Items of a list that a loop has appended in all completed iterations, ``count`` in each."""

    def __init__(self, whole: ListSlice, count: int, items: LateIterator | None) -> None:
        super().__init__(whole.tx, whole.array, whole.kind, whole.final)
        self.count, self.items_given, self.iterations = count, items, iterations_of(whole.tx)

    @property
    def is_indexed(self) -> bool:
        """The number of items is not known."""
        return False

    def starred(self, program: Rebuilder) -> list[str]:
        """The items in a list's display."""
        items = self.items_given
        done = program.load(self.iterations)
        if items is not None:
            done = f"({items.taken(program)} - ({items.items.iterations}))"
        return self.displayed(program, f"{program.rebuild(self.array)}[:{self.count} * {done}]")


def _advanced(program: Rebuilder, items: Counted, taken: str) -> str:
    """Code for an iterator without its first ``taken`` items."""
    match items:
        case RangeIterator(values=values):
            code = f"({values.start}), ({values.stop}), ({values.step})"
            return f"{program.constant(range_from)}({taken}, {code})"
        case RowIterator(array=array, backwards=backwards):
            return f"{program.constant(items_from)}({taken}, {program.rebuild(array)}, {backwards})"
        case TextIterator(text=text):
            return f"{program.constant(items_from)}({taken}, {program.rebuild(text)}, False)"
        case ListIterator(items=listed):
            return f"{program.constant(items_from)}({taken}, {program.rebuild(listed)}, False)"
        case Enumerated(items=inner, start=start):
            both = f"{_advanced(program, inner, taken)}, ({start}) + {taken}"
            return f"{program.constant(enumerate)}({both})"
        case Zipped(columns=columns):
            each = ", ".join(_advanced(program, column, taken) for column in columns)
            return f"{program.constant(zip)}({each})"
    raise NoContinuation("its iterator cannot be made again")


def range_from(taken: int, start: int, stop: int, step: int) -> Iterator[int]:
    """The iterator of a range, without its first items.

    >>> list(range_from(2, 0, 10, 3))
    [6, 9]
    """
    return iter(range(start, stop, step)[taken:])


def items_from(taken: int, items: Any, backwards: bool) -> Iterator[Any]:
    """The iterator of an array, a tuple or a str, or a reversed one, without its first items.

    >>> list(items_from(1, [5, 6, 7], True))
    [6, 5]
    """
    found: Any = reversed(items) if backwards else iter(items)
    found.__setstate__(len(items) - 1 - taken if backwards else taken)
    return found  # type: ignore[no-any-return]


def iterations_of(tx: Context) -> ParameterSource:
    """The parameter with the number of completed iterations."""
    return ParameterSource(tx.options.arity, "iterations")


def go_to_next_iteration(f: Frame, at: int, advanced: LateIterator | None) -> None:
    """Puts the frame where the next iteration begins, at instruction ``at``. Raises Reached."""
    made: dict[int, LateIterator] = {}
    if advanced is not None:
        if advanced.items.source is not None:
            raise NoContinuation("its iterator has other references")
        made[id(advanced.items)] = advanced
    for frame in f.tx.frames:
        for held in (frame.stack, frame.before):
            held[:] = [_as_it_is(value, made) for value in held]
        frame.locals = {name: _as_it_is(value, made) for name, value in frame.locals.items()}
    f.at = at
    raise Reached


def _as_it_is(value: Value, made: dict[int, LateIterator]) -> Value:
    """A value that a frame holds. Iterators that have given items are made again, too."""
    if not isinstance(value, Counted) or value.source is not None or value.unknown:
        return value
    return made.setdefault(id(value), LateIterator(value.tx, value, 0))


__all__ = [
    "LateEnumerated", "LateInt", "LateItems", "LateIterator", "LateLetter", "LateNumber", "LateRange", "LateSpan",
    "LateZipped", "NoContinuation", "Reached", "go_back_to_call", "go_to_next_iteration", "go_to_resume_point",
    "is_wanted",
]  # fmt: skip
