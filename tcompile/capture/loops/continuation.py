"""Continuations: the program by which a frame goes on at the next iteration of a loop that is one node of a graph.

Input: a capture that has just made the node of a loop, with the frame as it is where the loop is done. Output: the
frame as it is where the next iteration begins; what depends on the number of iterations is left to parameters that the
entry program gets besides its own. Why: when something that the loop reads has changed, the frame has to look at it
with the iteration that comes next, and not with the first one.

The extra parameters are the number of iterations that are done, and then the numbers that a scalar loop holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tcompile.bytecode.dialect import D
from tcompile.capture.guards.sources import ParameterSource
from tcompile.capture.values.base import Value
from tcompile.capture.values.counted import Counted, Enumerated, RangeIterator, RowIterator, Zipped
from tcompile.graph.sizes import Size

if TYPE_CHECKING:
    from tcompile.capture.entry.codegen import Rebuilder
    from tcompile.capture.interpreter.context import Capture
    from tcompile.capture.interpreter.frame import Frame


class Reached(Exception):
    """Capture has made the node, and the frame is where the next iteration begins."""


class NoContinuation(Exception):
    """The frame cannot go on in the middle of this loop."""


def is_wanted(f: Frame, name: str) -> bool:
    """Whether capture is to end with the loop whose node has this name.

    Raises NoContinuation where a frame other than the compiled function's runs the loop, and where a loop came before:
    that would have to be done again.
    """
    tx = f.tx
    if not tx.options.continues or tx.open_loops:
        return False
    if tx.options.continues != name:
        raise NoContinuation("another loop comes first")
    if tx.frames[0] is not f or len(tx.frames) > 1:
        raise NoContinuation("it is a called function's loop")
    return True


class LateInt(Value):
    """An int that grows by a known amount with each iteration: ``first + amount * iterations``."""

    def __init__(self, tx: Capture, first: Size, amount: Size) -> None:
        self.first, self.amount, self.iterations = first, amount, iterations_of(tx)

    def rebuild(self, program: Rebuilder) -> str:
        """The expression."""
        return f"({self.first}) + ({self.amount}) * {program.load(self.iterations)}"


class LateNumber(Value):
    """A number that a scalar loop holds where its next iteration begins."""

    def __init__(self, tx: Capture, place: int, name: str) -> None:
        self.given = ParameterSource(tx.options.arity + 1 + place, name)

    def rebuild(self, program: Rebuilder) -> str:
        """The parameter."""
        return program.load(self.given)


class LateIterator(Value):
    """An iterator that has given its next items to a loop. ``per_iteration`` of them go to one iteration of the node.

    Where ``absolute``, the parameter is the position that a scalar loop keeps, and not the number of iterations.
    """

    def __init__(self, tx: Capture, items: Counted, per_iteration: int = 1, absolute: bool = False) -> None:
        self.items, self.per_iteration, self.absolute = items, per_iteration, absolute
        self.iterations = iterations_of(tx)

    def rebuild(self, program: Rebuilder) -> str:
        """A new iterator of the items that are left."""
        given = program.load(self.iterations)
        taken = f"({self.items.rounds}) + {self.per_iteration} * {given}"
        if self.absolute:
            values = getattr(self.items, "values", None)
            taken = given if values is None else f"({given} - ({values.start})) // ({values.step})"
        return _advanced(program, self.items, taken)


def _advanced(program: Rebuilder, items: Counted, taken: str) -> str:
    """Code for an iterator whose first ``taken`` items are gone."""
    match items:
        case RangeIterator(values=values):
            code = f"({values.start}), ({values.stop}), ({values.step})"
            return f"{program.constant(range_from)}({taken}, {code})"
        case RowIterator(array=array, backwards=backwards):
            return f"{program.constant(rows_from)}({taken}, {program.rebuild(array)}, {backwards})"
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


def rows_from(taken: int, array: Any, backwards: bool) -> Iterator[Any]:
    """The iterator of an array, or the reversed one, without its first items.

    >>> list(rows_from(1, [5, 6, 7], True))
    [6, 5]
    """
    found: Any = reversed(array) if backwards else iter(array)
    found.__setstate__(len(array) - 1 - taken if backwards else taken)
    return found  # type: ignore[no-any-return]


def iterations_of(tx: Capture) -> ParameterSource:
    """The parameter that says how many iterations are done."""
    return ParameterSource(tx.options.arity, "iterations")


def go_to_next_iteration(f: Frame, at: int, advanced: LateIterator | None) -> None:
    """Puts the frame where the next iteration begins, at instruction ``at``. Raises Reached."""
    if advanced is not None:
        items = advanced.items
        if items.source is not None or any(value is items for value in f.locals.values()):
            raise NoContinuation("others hold its iterator")
        f.stack[-D.iterator_items] = advanced
    f.at = at
    raise Reached


__all__ = [
    "LateInt", "LateIterator", "LateNumber", "NoContinuation", "Reached", "go_to_next_iteration", "is_wanted",
]  # fmt: skip
