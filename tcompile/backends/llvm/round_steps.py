"""What a round of a loop does in machine code: records that ``rounds`` fills in and ``round_words`` writes as words.

Enters: nothing. Leaves: the records, and what sizes may be. Arrays of a loop have numbers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tcompile.graph import Node, Size, SymInt
from tcompile.graph.sizes import counters_in
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.backends.llvm.rounds import Rounds
    from tcompile.backends.schedule import Access

Array: TypeAlias = np.ndarray[Any, Any]


class NotNative(Exception):
    """This loop is Python's, and its body compiled."""


@dataclass(frozen=True)
class LoopArray:
    """One array of the loop: of this type, or the partial results of a kernel."""

    node: Node | None
    shape: tuple[Size, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Slabs:
    """What a kernel over these axes reads and writes: the arrays' numbers, whether it writes, and the places. Items at
    its ends aside, it may only be called for a multiple of ``unit`` items. A point takes ``ns``, by estimate. Elements
    that it ``moves`` are stored as they were loaded.
    """

    axes: tuple[Size, ...]
    places: tuple[tuple[int, bool, Access], ...]
    unit: int
    ns: float
    moves: bool


@dataclass(frozen=True)
class Launch:
    """A kernel. Its arguments have the character of the spec, and an array's number, a size or a carried value's."""

    kernel: int
    arguments: tuple[tuple[str, Any], ...]
    items: tuple[Size, ...]
    per_item: int
    grain: int | None  # None: all items at once
    slabs: Slabs | None = None  # where all its places are affine


@dataclass(frozen=True)
class Copy:
    """One array's elements go to another."""

    to: int
    source: int


@dataclass(frozen=True)
class Inner:
    """A loop inside. ``given`` are arrays, or the numbers of carried Python floats; ``results`` get what it carries,
    which for each way out (that of all rounds first) lies in one of its arrays.

    It writes to the ``bound`` ones of its arrays where the loop around has them. The two in ``told`` get the number of
    the round and the way by which it was left, which it must not be in fewer than ``least`` rounds (None: never).
    """

    rounds: Rounds
    count: Size
    given: tuple[int, ...]
    results: tuple[tuple[int, tuple[int, ...]], ...]
    bound: frozenset[int]
    told: tuple[int | None, int | None] = (None, None)
    least: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class Test:
    """Leaves the loop by a way (0: skips the rest of the round, after so many copies) where a flag holds."""

    flag: int
    way: int
    copies: int = 0


def linear(size: Size) -> Size:
    """A size, which must be linear in all counters, none of them times another."""
    found = counters_in(size)
    for monomial in size.terms if isinstance(size, SymInt) and found else ():
        names = [name for atom in monomial for name in re.findall(r"\w+", atom) if name in found]
        if len(names) > 1 or not set(names) <= set(monomial):
            raise NotNative("a size is not linear in the number of the round")
    return size


__all__ = ["Array", "Copy", "Inner", "Launch", "LoopArray", "NotNative", "Slabs", "Test", "linear"]
