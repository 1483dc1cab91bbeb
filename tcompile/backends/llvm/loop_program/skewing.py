"""Loop skewing: kernels over the same arrays run in turn, a few slabs each, over several iterations.

Input: kernels that a loop runs one after the other, those of several iterations too, and the bytes of arrays that each
slab of them reads and writes.
Output: the delay in slabs of each kernel, and the division of slabs among threads; ``native/skewed.ll`` runs them so.
Why: stencils are bound by memory bandwidth. Skewed, a few slabs stay in a cache for all kernels, instead of one pass of
each kernel over arrays larger than the caches.

A *slab* is the work of a kernel at one index of its outermost axis, or at several, so that slabs have the same stride
in each array for all kernels. Slab ``i`` of one kernel and slab ``j`` of a later one conflict where one writes bytes
that the other reads or writes; this depends on ``j - i`` alone, which lies between two bounds. A kernel that does slab
``j`` at the time ``j + before``, with ``before`` large enough, runs after all that it conflicts with (time skewing:
McCalpin and Wonnacott, 1999). Each thread gets a zone of consecutive slabs. At its borders a zone leaves out slabs that
depend on the neighbour's, or on which the neighbour's depend: ``before`` the border and ``after`` it, a little more
with each kernel. When both zones are done, the seam between them is computed (split tiling: Krishnamoorthy and others,
2007). The value of an element depends on none of this.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from tcompile.records import dataclass

LEAST_BYTES, FAR_BYTES = (
    3 << 20,
    1 << 24,
)  # bytes of all arrays: less stays in caches; more is fetched from memory each time
MOST_NS = 2e8  # all kernels together on one processor: interrupts wait for it
MOST_KERNELS = 64
NEAR_BYTES = 1 << 18  # a block of all arrays: it fits a core's own cache
ITERATIONS = (8, 6, 4, 3, 2)  # that are skewed together
LEAST_SLABS, MOST_SLABS, SLAB_BYTES = 4, 16, 1 << 11  # in a block, and of an array between a slab and the next
_NEVER = 1 << 62
NEAR_USES = 2  # kernels with more uses of an element are not bound by shared caches
SEAMS, SEAMS_FAR = 32, 8  # the share of time for seams, in arrays that are in caches or not


@dataclass(frozen=True)
class SlabAccess:
    """The bytes of an array that a slab reads or writes: from ``start`` to ``stop``, and ``step`` further each slab."""

    array: int
    written: bool
    start: int
    stop: int
    step: int


@dataclass(frozen=True)
class Band:
    """A kernel: its number of slabs, the number of its first one, and the accesses of the slab with the number 0 (maybe
    an imaginary one). Several slabs may only be done at once in multiples of ``unit``. ``ns`` is the time of all, by
    estimate.
    """

    slabs: int
    parts: tuple[SlabAccess, ...]
    unit: int = 1
    first: int = 0
    ns: float = 0.0

    def wide(self, width: int, steps: dict[int, int]) -> Band:
        """The same, ``width`` slabs at a time, with this stride in each array; slabs of all kernels are numbered by
        where they write.
        """
        slabs = -(-self.slabs // width)
        parts = []
        for p in self.parts:
            far = p.step * (max(1, min(width, self.slabs)) - 1)
            step = steps[p.array] if slabs == 1 else p.step * width  # a single one has no next
            parts.append(SlabAccess(p.array, p.written, p.start + min(far, 0), p.stop + max(far, 0), step))
        first = min((p.start // p.step for p in parts if p.written and p.step > 0), default=0)
        moved = [
            SlabAccess(p.array, p.written, p.start - first * p.step, p.stop - first * p.step, p.step) for p in parts
        ]
        return Band(slabs, tuple(moved), 1, first, self.ns)


@dataclass(frozen=True)
class Skew:
    """A skewed schedule: ``block`` slabs of each kernel in turn, in so many ``zones``. For each kernel, ``parts`` is
    its own number of slabs and ``widths`` how many of these count as one, ``first`` and ``end`` bound its slabs, and
    ``before`` and ``after`` are the slabs on either side of a border between zones that are left to the seam.
    """

    block: int
    zones: int
    parts: tuple[int, ...]
    widths: tuple[int, ...]
    first: tuple[int, ...]
    end: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def skew(bands: Sequence[Band], threads: int) -> Skew | None:
    """The skewed schedule; None where there is none, or where it would not pay."""
    arrays = sum(len({part.array for part in band.parts}) for band in bands)
    often = sum(len(band.parts) for band in bands) > NEAR_USES * arrays
    if len(bands) > MOST_KERNELS or sum(band.ns for band in bands) > MOST_NS:
        return None
    found = _alike(bands)
    if found is None:
        return None
    widths, wide = found
    first, end = tuple(band.first for band in wide), tuple(band.first + band.slabs for band in wide)
    most, work = max(end), sum(band.slabs for band in wide)
    slab = sum({part.array: abs(part.step) for band in wide for part in band.parts}.values())
    far = most * slab >= FAR_BYTES
    if most * slab < LEAST_BYTES or (often and not far):
        return None
    before, after = list[int](), list[int]()
    known: dict[tuple[int, int], tuple[int, int] | None] = {}  # several iterations have the same bands
    for k, later in enumerate(wide):
        lag = lead = 0
        for j, earlier in enumerate(wide[:k]):
            pair = id(earlier), id(later)
            if pair not in known:
                known[pair] = conflict(earlier, later)
            distances = known[pair]
            if distances is None:
                return None
            lag, lead = max(lag, before[j] - distances[0]), max(lead, after[j] + distances[1])
        before.append(lag)
        after.append(lead)
    narrow = most // threads < 2 * (max(before) + max(after)) + 1
    wasted = threads > 1 and (sum(before) + sum(after)) * threads * (SEAMS_FAR if far else SEAMS) > work
    if narrow or wasted:
        return None
    block = max(LEAST_SLABS, min(NEAR_BYTES // slab, MOST_SLABS))
    parts = tuple(band.slabs for band in bands)
    return Skew(block, threads, parts, widths, first, end, tuple(before), tuple(after))


def _alike(bands: Sequence[Band]) -> tuple[tuple[int, ...], list[Band]] | None:
    """How many slabs of each kernel count as one, so that strides of slabs are the same for all kernels; and the
    kernels with such slabs. None where there are no such numbers.
    """
    steps: dict[int, int] = {}
    for part in (part for band in bands for part in band.parts):
        steps[part.array] = max(steps.get(part.array, 0), abs(part.step))
    if not (most := max(steps.values(), default=0)):
        return None
    ratios = []
    for band in bands:
        moving = [part for part in band.parts if part.step]
        found = {divmod(steps[part.array], abs(part.step)) for part in moving}
        if not moving or band.slabs == 1:
            found = {(1, 0)}
        if len(found) != 1 or (row := found.pop())[1]:
            return None
        ratios.append(row[0])
    several = [(band.unit, ratio) for band, ratio in zip(bands, ratios, strict=True) if band.slabs > ratio]
    scale = math.lcm(*(unit // math.gcd(unit, ratio) for unit, ratio in several))
    scale *= -(-SLAB_BYTES // (most * scale))
    steps = {array: step * scale for array, step in steps.items()}
    widths = tuple(ratio * scale for ratio in ratios)
    wide = {id(band): band.wide(width, steps) for band, width in zip(bands, widths, strict=True)}
    return widths, [wide[id(band)] for band in bands]


def conflict(first: Band, second: Band) -> tuple[int, int] | None:
    """The least and the largest ``j - i`` at which slabs of two kernels conflict; None where they may at any distance.

    Kernels that do not conflict may have any order: the least is larger than the largest.

    >>> write = Band(9, (SlabAccess(0, True, 80, 160, 80),))
    >>> conflict(write, Band(9, (SlabAccess(0, False, 0, 240, 80),)))
    (-1, 1)
    """
    least, largest = _NEVER, -_NEVER
    for a, b in itertools.product(first.parts, second.parts):
        if a.array != b.array or not (a.written or b.written):
            continue
        if a.step != b.step or not a.step:
            if _meet(a, first, b, second):
                return None
            continue
        low, high, step = a.start - b.stop, a.stop - b.start, a.step  # (j - i) * step lies between, neither included
        if step < 0:
            low, high, step = -high, -low, -step
        near, far = low // step + 1, -(-high // step) - 1
        if near <= far:
            least, largest = min(least, near), max(largest, far)
    return least, largest


def _meet(a: SlabAccess, first: Band, b: SlabAccess, second: Band) -> bool:
    """Whether the accesses of any two slabs overlap."""
    (low_a, high_a), (low_b, high_b) = _extent(a, first), _extent(b, second)
    return low_a < high_b and low_b < high_a


def _extent(part: SlabAccess, band: Band) -> tuple[int, int]:
    ends = [part.step * n for n in (band.first, band.first + max(band.slabs - 1, 0))]
    return part.start + min(ends), part.stop + max(ends)


__all__ = ["ITERATIONS", "Band", "Skew", "SlabAccess", "conflict", "skew"]
