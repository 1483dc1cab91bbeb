"""Control flow: operations with regions, and ``get``, which reads one result of several.

Input: nothing.
Output: rows of the op table.
Why: loops and branches stay in the graph, whatever their trip counts.

``cond``: operands ``(pred, *args)``, regions ``(true, false)`` over ``args``. ``while_loop``: operands are the carried
values, regions ``(condition, body)``. ``fori_loop``: operands ``(start, stop, *carried)``, region ``body(i,
*carried)``, whose ``i`` is an integer array of rank 0 or, by its type, a Python int that binds a symbol.

``exit_loop``: a ``fori_loop`` from 0 with early exits; its regions are the parts of an iteration, ``part(i,
*carried)``. All but the last return a bool after the carried values: where it holds, the loop is left (where ``leaves``
says so of this part) or the next iteration begins. The results are the values carried at that moment, the iteration,
and the exit: 0 after ``stop`` iterations, k by part k - 1. ``least`` gives for each exit the fewest iterations after
which it may be taken (None: never).

``scan``: operands ``(*init, *xs)``, attribute ``carry`` counts the first, region ``combine(*carry, *slices)`` returns
the new carry and then the stacked parts. ``map``: operands ``xs``, region over one slice each. ``invoke``: operands
``args``, region over them; several nodes may hold one region. The node's type is a tuple; ``get`` reads result
``index``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.graph.op import QUIET, Aliasing, Op, define
from tcompile.graph.ops.scalar_loop import SCALAR_LOOP, Replayed
from tcompile.polls import Changed, Clock

FOREVER = 1 << 48  # trip count of a loop that only a test ends


def _cond(pred: Any, *args: Any, regions: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(regions[0 if pred else 1](*args))


def _while_loop(*carried: Any, regions: Sequence[Any]) -> tuple[Any, ...]:
    condition, body = regions
    clock = Clock()
    while condition(*carried)[0]:
        carried = body(*carried)
        clock.tick()
    return carried


def _fori_loop(start: int, stop: int, *carried: Any, regions: Sequence[Any]) -> tuple[Any, ...]:
    clock = Clock()
    for i in range(int(start), int(stop)):
        try:
            carried = regions[0](np.asarray(i), *carried)
        except Changed as changed:
            raise changed.before(i - int(start), carried) from None
        clock.tick(i + 1 - int(start), carried)
    return carried


def _exit_loop(
    start: int,
    stop: int,
    *carried: Any,
    leaves: tuple[bool, ...],
    least: tuple[int | None, ...],
    regions: Sequence[Any],
) -> tuple[Any, ...]:
    begin = state = carried
    i, way = int(start), 0
    clock = Clock()
    while i < stop and not way:
        begin = state
        try:
            for number, part in enumerate(regions, 1):
                state = part(np.asarray(i), *state)
                if number < len(regions):
                    *kept, flag = state
                    state = tuple(kept)
                    if flag:
                        way = number if leaves[number - 1] else 0
                        break
        except Changed as changed:
            raise changed.before(i - int(start), begin) from None
        i += not way
        if not way:
            clock.tick(i - int(start), state)
    fewest = least[way]
    if fewest is None or i < fewest:
        reason = "the loop is left in a way that its graph cannot follow"
        if clock.is_late():
            raise Changed("", i - int(start), begin, reason=reason)
        raise Replayed(reason)
    return (*state, np.asarray(i), np.asarray(way))


def _scan(*operands: Any, carry: int, regions: Sequence[Any]) -> tuple[Any, ...]:
    state, xs = operands[:carry], operands[carry:]
    rows = []
    for i in range(len(xs[0])):
        results = regions[0](*state, *(x[i] for x in xs))
        state, row = results[:carry], results[carry:]
        rows.append(row)
    return (*state, *(np.stack(column) for column in zip(*rows, strict=True)))


def _map(*xs: Any, regions: Sequence[Any]) -> tuple[Any, ...]:
    rows = [regions[0](*(x[i] for x in xs)) for i in range(len(xs[0]))]
    return tuple(np.stack(column) for column in zip(*rows, strict=True))


def _invoke(*args: Any, regions: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(regions[0](*args))


def is_branch(node: Any) -> bool:
    """Whether a loop is one side of a branch: at most one iteration, unless a test says that it is not taken."""
    return node.op is EXIT_LOOP and all(type(o) is int for o in node.operands[:2]) and node.operands[:2] == (0, 1)


def _row(name: str, function: Callable[..., Any]) -> Op:
    return define(Op(name, "control", None, None, function, memory=Aliasing.MAY_ALIAS))


INVOKE = _row("invoke", _invoke)
COND = _row("cond", _cond)
WHILE_LOOP = _row("while_loop", _while_loop)
FORI_LOOP = _row("fori_loop", _fori_loop)
EXIT_LOOP = _row("exit_loop", _exit_loop)
SCAN = _row("scan", _scan)
MAP = _row("map", _map)
LOOPS = frozenset({SCALAR_LOOP, FORI_LOOP, EXIT_LOOP, WHILE_LOOP, SCAN, MAP})  # may run for a long time
GET = define(Op("get", "control", 1, None, lambda results, index: results[index], "result ``index`` of several",
                QUIET, Aliasing.MAY_ALIAS))  # fmt: skip
