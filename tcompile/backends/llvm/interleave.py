"""Elements a few places apart, read and written as whole vectors that are sorted out in registers.

Enters: vectors of elements that lie side by side in memory, ``period`` of them. Leaves: for each of the ``period``
places the vector of the elements at that place, or the other way round; and squares turned about their diagonal. Exists
because gathering and scattering lanes one by one costs several times as much.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcompile.backends.llvm.vectors import Vectors

LONGEST = 8  # periods beyond this are gathered


def every(v: Vectors, cell: str, vectors: Sequence[str], first: int) -> str:
    """Lane i of the result is element ``first + i * len(vectors)`` of the vectors in a row."""
    period = len(vectors)
    return collect(v, cell, vectors, [divmod(first + i * period, v.lanes) for i in range(v.lanes)])


def woven(v: Vectors, cell: str, vectors: Sequence[str]) -> list[str]:
    """The vectors in a row whose element ``place + i * len(vectors)`` is lane i of vector number ``place``."""
    period, lanes = len(vectors), v.lanes
    found = []
    for start in range(0, period * lanes, lanes):
        wanted = [((start + i) % period, (start + i) // period) for i in range(lanes)]
        found.append(collect(v, cell, vectors, wanted))
    return found


def transposed(v: Vectors, cell: str, rows: Sequence[str]) -> list[str]:
    """The columns of a square of as many vectors as each has lanes, a power of two: halves change places, then quarters
    of them, and so on.
    """
    found, lanes = list(rows), v.lanes
    half = lanes // 2
    while half:
        for upper in [i for i in range(lanes) if not i & half]:
            a, b = found[upper], found[upper + half]
            stay = [i if not i & half else lanes + i - half for i in range(lanes)]
            move = [i + half if not i & half else lanes + i for i in range(lanes)]
            found[upper], found[upper + half] = v.shuffle(cell, a, stay, b), v.shuffle(cell, a, move, b)
        half //= 2
    return found


def collect(v: Vectors, cell: str, vectors: Sequence[str], wanted: Sequence[tuple[int, int]]) -> str:
    """Lane i is the lane of the vector that ``wanted[i]`` names, vector first."""
    first, *others = sorted({number for number, _ in wanted})
    result, settled = vectors[first], False
    for other in others:
        order = []
        for i, (number, lane) in enumerate(wanted):
            mine = lane if number == first and not settled else i
            order.append(v.lanes + lane if number == other else mine)
        result, settled = v.shuffle(cell, result, order, vectors[other]), True
    return result if settled else v.shuffle(cell, result, [lane for _, lane in wanted])


__all__ = ["LONGEST", "collect", "every", "transposed", "woven"]
