"""The trip count of a ``while`` loop that compares an int which grows by the same amount in each iteration.

Input: the comparison, its place, and the difference of its sides in each iteration.
Output: the trip count.
Why: ``while i < n`` becomes a loop over a range, so values that depend on ``i`` are known in all iterations.
"""

from __future__ import annotations

from typing import Any

from tcompile.bytecode.instructions import Instruction
from tcompile.capture.interpreter.loop_info import Flow, Header
from tcompile.capture.loops.leaves import Unsettled
from tcompile.capture.values.base import Value
from tcompile.capture.values.constant import Constant, IntegerValue
from tcompile.graph.ops.creation import arange_length
from tcompile.graph.sizes import Size, SymInt, VariesInLoop, same

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def ways_of_test(flow: Flow, header: Header, at: int) -> tuple[int, int]:
    """The targets of the jump after a comparison: the one in the loop, and the one outside."""
    while "POP_JUMP" not in flow.instructions[at].opname:
        at += 1
    stays, leaves = sorted(flow.ways(at), key=lambda way: way not in header.inside)
    return stays, leaves


def stays_while(flow: Flow, header: Header, at: int, i: Instruction) -> str | None:
    """The comparison sign for which the loop goes on; None where the jump after it does not leave the loop."""
    test = at + 1
    while flow.instructions[test].opname == "TO_BOOL":
        test += 1
    jump = flow.instructions[test].opname
    if "POP_JUMP" not in jump:
        return None
    ways = flow.ways(test)
    leaving = [way for way in ways if way not in header.inside]
    if len(leaving) != 1:
        return None
    sign: str = i.argval.removeprefix("bool(").removesuffix(")")
    return _OPPOSITE[sign] if (leaving[0] == ways[1]) == jump.endswith("TRUE") else sign


def course(size: Size, counter: str) -> tuple[Size, int] | None:
    """A size in the first iteration, and its growth in each further one; None where the growth is not constant.

    >>> from tcompile.graph.sizes import ShapeEnv
    >>> i = ShapeEnv().counter(100)
    >>> course(2 * i - 9, str(i)), course(7, str(i)), course(i * i, str(i))
    ((-9, 2), (7, 0), None)
    """
    if not isinstance(size, SymInt):
        return size, 0
    try:
        start = size.at(counter, 0)
        by = size.at(counter, 1) - start
    except VariesInLoop:
        return None
    if not isinstance(by, int) or not same(size, start + by * SymInt(size.env, {(counter,): 1})):
        return None
    return start, by


def trip_count_while(start: Size, by: int, sign: str) -> Size | None:
    """In how many iterations, from the first on, ``start + by * iteration sign 0`` holds; None: unknown.

    >>> trip_count_while(-9, 2, "<"), trip_count_while(7, -1, ">="), trip_count_while(7, 0, "<")
    (5, 8, None)
    """
    if sign == "!=" and abs(by) == 1 and (start <= 0 if by > 0 else start >= 0):
        sign = "<" if by > 0 else ">"
    if by > 0 and sign in ("<", "<="):
        return arange_length(start, int(sign == "<="), by)
    if by < 0 and sign in (">", ">="):
        return arange_length(start, -int(sign == ">="), by)
    return None


def int_of(value: Value) -> Any:
    """The int of a captured value. Raises Unsettled for other values."""
    if isinstance(value, IntegerValue):
        return value.size
    if isinstance(value, Constant) and type(value.value) is int:
        return value.value
    raise Unsettled(f"{value.describe()} becomes an int")


def is_int(value: Value) -> bool:
    """Whether a value is an int that ``int_of`` returns."""
    return isinstance(value, IntegerValue) or (isinstance(value, Constant) and type(value.value) is int)


__all__ = ["course", "int_of", "is_int", "stays_while", "trip_count_while", "ways_of_test"]
