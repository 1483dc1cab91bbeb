"""The IR of loop programs: ``build`` fills these records in, and ``encoding`` writes them as words.

Input: nothing.
Output: the records, and a check of sizes.
Why: both files need them, and neither needs the other. Arrays of a loop have numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tcompile.backends.llvm.loop_program import skewing
from tcompile.graph import Graph, Node, Size, SymInt
from tcompile.graph.sizes import counters_in
from tcompile.records import dataclass

if TYPE_CHECKING:
    from tcompile.backends.schedule import Access

Array: TypeAlias = np.ndarray[Any, Any]


class NotNative(Exception):
    """This loop runs in Python, with a compiled body."""


@dataclass(frozen=True)
class LoopArray:
    """One array of the loop: of this type, or the partial results of a kernel."""

    node: Node | None
    shape: tuple[Size, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Slabs:
    """The slabs of a kernel over these axes: the arrays' numbers, whether it writes, and the accesses. Except at its
    ends, it may only be called for a multiple of ``unit`` items. A point takes ``ns``, by estimate. Elements that it
    ``moves`` are stored as they were loaded.
    """

    axes: tuple[Size, ...]
    places: tuple[tuple[int, bool, Access], ...]
    unit: int
    ns: float
    moves: bool


@dataclass(frozen=True)
class KernelStep:
    """A kernel. Its arguments have the character of the spec, and an array's number, a size or a carried value's."""

    kernel: int
    arguments: tuple[tuple[str, Any], ...]
    items: tuple[Size, ...]
    per_item: int
    grain: int | None  # None: one chunk
    slabs: Slabs | None = None  # where all its accesses are affine


@dataclass(frozen=True)
class CopyStep:
    """A copy of one array's elements to another."""

    to: int
    source: int


@dataclass(frozen=True)
class InnerLoopStep:
    """An inner loop. ``given`` are arrays, or the numbers of carried Python floats; ``results`` get the carried values,
    which for each exit (that of all iterations first) lie in one of its arrays.

    It writes to the ``bound`` ones of its arrays where the enclosing loop has them. The two in ``reported_words`` get
    the iteration and the exit by which it was left, which happens in no fewer than ``least`` iterations (None: never).
    """

    iterations: LoopIR
    count: Size
    given: tuple[int, ...]
    results: tuple[tuple[int, tuple[int, ...]], ...]
    bound: frozenset[int]
    reported_words: tuple[int | None, int | None] = (None, None)
    least: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class SkewPlan:
    """The kernels of a loop that are skewed: those of so many iterations, or of some runs of rows."""

    iterations: int = 1
    several: skewing.Skew | None = None
    runs: tuple[tuple[int, int, skewing.Skew], ...] = ()


class LoopIR:
    """One loop as a list of steps over numbered arrays: ``encoding`` writes them as words for each call.

    Attributes:
        graph: the loop's body, whose inputs are the induction variable and the carried values.
        carried: the number of carried values.
        counter: the symbol of the induction variable.
        arrays: the loop's arrays, by number.
        steps: the steps of one iteration.
        fixed: constant arrays, which are only read, by number.
        inputs: the carried value that each array holds before the first iteration.
        taken_over: the carried values whose arrays the loop may write to as they are given.
        written: how many steps of an iteration store to each array.
        copied_once: copies that only the first iteration needs.
        double_buffers: the carried value that each second buffer of a double buffer starts as.
        moves: for the array of each carried value, the array that holds its next value.
        swaps: the pairs of arrays that are swapped after each iteration.
        period: after how many iterations all buffers are in their first order again.
        fresh: arrays that each call makes anew.
        tests: whether a flag may end the loop, or an iteration.
        plans: how kernels are skewed, by everything that this depends on.
    """

    graph: Graph
    carried: int
    counter: str
    arrays: list[LoopArray]
    steps: list[KernelStep | CopyStep | InnerLoopStep | ExitTest]
    fixed: dict[int, Array]
    inputs: dict[int, int]
    taken_over: set[int]
    written: Counter[int]
    copied_once: list[CopyStep]
    double_buffers: dict[int, int]
    moves: dict[int, int]
    swaps: list[tuple[int, int]]
    period: int
    fresh: list[int]
    tests: bool
    plans: dict[Any, SkewPlan]


@dataclass(frozen=True)
class ExitTest:
    """Leaves the loop by an exit (0: skips the rest of the iteration, after so many copies) where a flag is set."""

    flag: int
    way: int
    copies: int = 0


def linear(size: Size) -> Size:
    """A size, which must be linear in all induction variables, without products of them."""
    found = counters_in(size)
    for monomial in size.terms if isinstance(size, SymInt) and found else ():
        names = [name for atom in monomial for name in re.findall(r"\w+", atom) if name in found]
        if len(names) > 1 or not set(names) <= set(monomial):
            raise NotNative("a size is not linear in the induction variable")
    return size


__all__ = ["Array", "CopyStep", "ExitTest", "InnerLoopStep", "KernelStep", "LoopArray", "NotNative", "Slabs", "linear"]
