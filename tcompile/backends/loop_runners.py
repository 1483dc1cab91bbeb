"""Loops of a host program, run iteration by iteration, and part by part where they have early exits.

Input: the compiled body of a ``fori_loop``, or the parts of an ``exit_loop``'s.
Output: a ``PythonLoop`` or a ``PartLoop``, which runs the loop on arrays.
Why: a loop runs in machine code where a backend can and it pays, else from Python.

Iterations write carried arrays in place: those are copies, never the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tcompile.backends.replay import Interrupted, Replay
from tcompile.graph import Graph
from tcompile.polls import Changed, Clock
from tcompile.records import dataclass

FEWEST = 8  # iterations, from which machine code pays
iterations_run = [0]  # how many iterations and loops Python has run, in all loops
Native: TypeAlias = "Callable[[int, Sequence[Any], Mapping[str, int]], tuple[tuple[Any, ...], int, int]]"


@dataclass
class PythonLoop:
    """A ``fori_loop`` as a host program calls it. ``own`` copies those that iterations write in place."""

    name: str
    body: Callable[..., tuple[Any, ...]]
    own: Owned
    symbols: Sequence[str]
    native: Native | None

    def __call__(self, start: int, stop: int, *carried: Any, sizes: tuple[int, ...] = ()) -> tuple[Any, ...]:
        """Runs it; ``sizes`` are those that an iteration takes too. Raises Changed where a value that was read has
        changed.
        """
        if self.native is not None and start == 0 and stop >= FEWEST:
            try:
                return self.native(stop, carried, dict(zip(self.symbols, sizes, strict=True)))[0]
            except Changed as changed:
                raise _named(changed, self.name) from None
        if stop > start:
            carried = self.own(carried)
        iterations_run[0] += 1 + max(stop - start, 0)
        clock = Clock()
        for i in range(start, stop):
            try:
                carried = self.body(i, *carried, *sizes)
            except (Changed, Replay) as error:
                raise self.own.left(error, clock, self.name, i - start, carried) from None
            if clock.is_due() and clock.has_changed():
                raise Changed(self.name, i + 1 - start, carried)
        return carried


@dataclass
class PartLoop:
    """An ``exit_loop`` as a host program calls it. ``own`` copies the carried values that parts write in place."""

    name: str
    parts: Sequence[Callable[..., tuple[Any, ...]]]
    leaves: tuple[bool, ...]
    least: tuple[int | None, ...]
    own: Owned
    symbols: Sequence[Sequence[str]]
    native: Native | None

    def __call__(self, start: int, stop: int, *carried: Any, sizes: Sequence[tuple[int, ...]]) -> tuple[Any, ...]:
        """Runs it; ``sizes`` are those that each part takes besides.

        Raises Replay where only plain Python goes on, and Changed where a value that was read has changed.
        """
        if self.native is not None and start == 0 and stop >= FEWEST:
            named: dict[str, int] = {}
            if any(sizes):
                for names, row in zip(self.symbols, sizes, strict=True):
                    named.update(zip(names, row, strict=True))
            try:
                results, i, way = self.native(stop, carried, named)
            except Changed as changed:
                raise _named(changed, self.name) from None
            return (*results, np.asarray(i), np.asarray(way))
        parts = list(zip(self.parts, sizes, strict=True))
        last = len(parts)
        begin = state = self.own(carried)
        i, way = start, 0
        clock = Clock()
        while i < stop and not way:
            begin = state
            try:
                for number, (part, given) in enumerate(parts, 1):
                    state = part(i, *state, *given)
                    if number < last:
                        flag = state[-1]
                        state = state[:-1]
                        if flag:
                            way = number if self.leaves[number - 1] else 0
                            break
            except (Changed, Replay) as error:
                raise self.own.left(error, clock, self.name, i - start, begin) from None
            i += not way
            if not way and clock.is_due() and clock.has_changed():
                raise Changed(self.name, i - start, state)
        iterations_run[0] += 1 + i - start
        try:
            check_exit(self.least, i - start, way)
        except Replay as replay:
            if not clock.is_late() or not way or any(self.own.parts[:way]):
                raise
            raise Changed(self.name, i - start, begin, reason=replay.reason) from None
        return (*state, np.asarray(i), np.asarray(way))


def check_exit(least: Sequence[int | None], iterations: int, way: int) -> None:
    """Raises Replay where a loop has been left by an exit that its graph does not follow after so many iterations.

    ``least`` says for each exit from how many on it does (None: never).
    """
    fewest = least[way]
    if fewest is None or iterations < fewest:
        raise Replay("the loop is left in a way that its graph cannot follow")


def _named(changed: Changed, name: str) -> Changed:
    """The same exception, with the name of the loop's node; in the middle of an iteration there is no state."""
    if changed.iterations:
        changed.loop = name
    return changed


@dataclass
class Owned:
    """The carried values of a loop that each part of its iteration writes in place, and how they are copied."""

    parts: Sequence[frozenset[int]]
    copy: Callable[[Any], Any]

    def __post_init__(self) -> None:
        self.positions = frozenset[int]().union(*self.parts)

    def __call__(self, carried: Sequence[Any]) -> tuple[Any, ...]:
        """The carried values, of which the loop owns those that it writes in place."""
        return tuple(self.copy(x) if number in self.positions else x for number, x in enumerate(carried))

    def left(
        self, error: Changed | Replay, clock: Clock, name: str, iterations: int, begin: Sequence[Any]
    ) -> Changed | Replay:
        """The exception of a loop in whose iteration an inner loop has ended. ``begin``: what the iteration began with.

        Where the iteration writes in place, that is lost. What only plain Python does is repeated from the first
        iteration where that takes no time.
        """
        if isinstance(error, Interrupted) or (isinstance(error, Replay) and (self.positions or not clock.is_late())):
            return error
        changed = Changed(reason=error.reason) if isinstance(error, Replay) else error
        changed.loop = "" if self.positions else name
        return changed.before(iterations, () if self.positions else begin)


def owned(regions: Sequence[Graph], copy: Callable[[Any], Any]) -> Owned:
    """What the regions of a loop write in place."""
    return Owned([frozenset(number - 1 for number in region.updates.values()) for region in regions], copy)


__all__ = ["Owned", "PartLoop", "PythonLoop", "check_exit", "owned"]
