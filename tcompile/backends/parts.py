"""Loops that are nodes, round by round, and part by part those that may be left in the middle of a round.

Enters: the compiled round of a ``fori_loop``, or the parts of an ``exit_loop``'s. Leaves: a ``RoundLoop`` or a
``PartLoop``, which runs the loop on arrays: without Python where a backend can and it pays. Rounds write in place to
what they carry: that is a copy, never the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tcompile.backends.replay import Replay
from tcompile.graph import Graph
from tcompile.records import dataclass

FEWEST = 8  # rounds for which going without Python pays
Native: TypeAlias = "Callable[[int, Sequence[Any], Mapping[str, int]], tuple[tuple[Any, ...], int, int]]"


@dataclass
class RoundLoop:
    """A ``fori_loop`` as a host program calls it. ``updated`` are the carried values that a round writes in place."""

    body: Callable[..., tuple[Any, ...]]
    updated: tuple[int, ...]
    symbols: Sequence[str]
    native: Native | None
    copy: Callable[[Any], Any]

    def __call__(self, start: int, stop: int, *carried: Any, sizes: tuple[int, ...] = ()) -> tuple[Any, ...]:
        """Runs it; ``sizes`` are those that a round takes besides."""
        if self.native is not None and start == 0 and stop >= FEWEST:
            return self.native(stop, carried, dict(zip(self.symbols, sizes, strict=True)))[0]
        if self.updated and stop > start:
            own = list(carried)
            for number in self.updated:
                own[number] = self.copy(own[number])
            carried = tuple(own)
        for i in range(start, stop):
            carried = self.body(i, *carried, *sizes)
        return carried


@dataclass
class PartLoop:
    """An ``exit_loop`` as a host program calls it. ``updated`` are the carried values that parts write in place."""

    parts: Sequence[Callable[..., tuple[Any, ...]]]
    leaves: tuple[bool, ...]
    least: tuple[int | None, ...]
    updated: frozenset[int]
    symbols: Sequence[Sequence[str]]
    native: Native | None

    def __call__(self, start: int, stop: int, *carried: Any, sizes: Sequence[tuple[int, ...]]) -> tuple[Any, ...]:
        """Runs it; ``sizes`` are those that each part takes besides. Raises Replay where only plain Python goes on."""
        if self.native is not None and start == 0 and stop >= FEWEST:
            named: dict[str, int] = {}
            if any(sizes):
                for names, row in zip(self.symbols, sizes, strict=True):
                    named.update(zip(names, row, strict=True))
            results, i, way = self.native(stop, carried, named)
            self._check(i, way)
            return (*results, np.asarray(i), np.asarray(way))
        parts = list(zip(self.parts, sizes, strict=True))
        last = len(parts)
        state = tuple(np.copy(x, order="K") if n in self.updated else x for n, x in enumerate(carried))
        i, way = start, 0
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
        self._check(i - start, way)
        return (*state, np.asarray(i), np.asarray(way))

    def _check(self, rounds: int, way: int) -> None:
        least = self.least[way]
        if least is None or rounds < least:
            raise Replay("the loop is left in a way that its graph cannot follow")


def part_loop(parts: Sequence[Callable[..., tuple[Any, ...]]], regions: Sequence[Graph], **ways: Any) -> PartLoop:
    """The loop of these parts, compiled from these regions."""
    updated = frozenset(number - 1 for region in regions for number in region.updates.values())
    return PartLoop(parts, updated=updated, **ways)


__all__ = ["PartLoop", "RoundLoop", "part_loop"]
