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

from tcompile.backends.replay import Replay
from tcompile.graph import Graph
from tcompile.polls import Changed, Clock
from tcompile.records import dataclass

FEWEST = 8  # iterations, from which machine code pays
Native: TypeAlias = "Callable[[int, Sequence[Any], Mapping[str, int]], tuple[tuple[Any, ...], int, int]]"


@dataclass
class PythonLoop:
    """A ``fori_loop`` as a host program calls it. ``own`` copies the carried values that iterations write in place."""

    name: str
    body: Callable[..., tuple[Any, ...]]
    own: Callable[[Sequence[Any]], tuple[Any, ...]]
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
        clock = Clock()
        for i in range(start, stop):
            carried = self.body(i, *carried, *sizes)
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
    own: Callable[[Sequence[Any]], tuple[Any, ...]]
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
            self._check(i, way)
            return (*results, np.asarray(i), np.asarray(way))
        parts = list(zip(self.parts, sizes, strict=True))
        last = len(parts)
        state = self.own(carried)
        i, way = start, 0
        clock = Clock()
        while i < stop and not way:
            for number, (part, given) in enumerate(parts, 1):
                state = part(i, *state, *given)
                if number < last:
                    flag = state[-1]
                    state = state[:-1]
                    if flag:
                        way = number if self.leaves[number - 1] else 0
                        break
            i += not way
            if not way and clock.is_due() and clock.has_changed():
                raise Changed(self.name, i - start, state)
        self._check(i - start, way)
        return (*state, np.asarray(i), np.asarray(way))

    def _check(self, iterations: int, way: int) -> None:
        least = self.least[way]
        if least is None or iterations < least:
            raise Replay("the loop is left in a way that its graph cannot follow")


def _named(changed: Changed, name: str) -> Changed:
    """The same exception, with the name of the loop's node; in the middle of an iteration there is no state."""
    if changed.iterations:
        changed.loop = name
    return changed


def owner(regions: Sequence[Graph], copy: Callable[[Any], Any]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Returns a function that copies, of the values that a loop carries, those that its regions write in place."""
    updated = frozenset(number - 1 for region in regions for number in region.updates.values())
    return lambda carried: tuple(copy(x) if number in updated else x for number, x in enumerate(carried))


__all__ = ["PartLoop", "PythonLoop", "owner"]
