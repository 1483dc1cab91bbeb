"""Interleaved loads and stores: strided elements as whole vectors, deinterleaved in registers.

Input: ``period`` vectors of elements that are contiguous in memory.
Output: for each of the ``period`` places the vector of the elements at that place, or the reverse; and transposed
square tiles.
Why: gathering and scattering lanes one by one costs several times as much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcompile.backends.llvm.vector.text import cell_bits
from tcompile.backends.llvm.vector.vectors import Vectors

LONGEST = 8  # longer periods are gathered
PIECE_BITS = 128  # of a vector register, inside of which shuffles are cheap


def every(v: Vectors, cell: str, vectors: Sequence[str], first: int) -> str:
    """Deinterleaves: lane i of the result is element ``first + i * len(vectors)`` of the concatenated vectors."""
    period = len(vectors)
    return collect(v, cell, vectors, [divmod(first + i * period, v.lanes) for i in range(v.lanes)])


def interleaved(v: Vectors, cell: str, vectors: Sequence[str]) -> list[str]:
    """Interleaves: element ``place + i * len(vectors)`` of the results is lane i of vector number ``place``."""
    period, lanes = len(vectors), v.lanes
    found = []
    for start in range(0, period * lanes, lanes):
        wanted = [((start + i) % period, (start + i) // period) for i in range(lanes)]
        found.append(collect(v, cell, vectors, wanted))
    return found


def transposed(v: Vectors, cell: str, rows: Sequence[str]) -> list[str]:
    """The columns of a square of as many vectors as each has lanes, a power of two.

    First cells are exchanged inside of pieces of 128 bits, then such pieces. Each step is one instruction for a vector:
    shuffles of single cells across pieces are slower.
    """
    lanes, found = v.lanes, list(rows)
    near = min(lanes, PIECE_BITS // cell_bits(cell))
    step = 1
    while step < near:
        low, high = _interleaved_pieces(lanes, near, step, 0), _interleaved_pieces(lanes, near, step, near // 2)
        found = _exchanged(v, cell, found, step, low, high)
        step *= 2
    places = near.bit_length() - 1
    # The number of a column in its piece has its bits reversed.
    found = [found[i - i % near + _transposed_loads(i % near, places)] for i in range(lanes)]
    while step < lanes:
        even, odd = (
            [at + i for at in range(first * near, 2 * lanes, 2 * near) for i in range(near)] for first in (0, 1)
        )
        found = _exchanged(v, cell, found, step, even, odd)
        step *= 2
    return found


def squares(lanes: int, count: int) -> tuple[int, list[int]]:
    """The square tiles in which rows of ``count`` elements are transposed: their size, and where in a row they begin.

    The last one overlaps the one before where a row is no multiple of them.

    >>> squares(8, 10)
    (8, [0, 2])
    """
    size = min(lanes, 1 << (count.bit_length() - 1))
    return size, [*range(0, count - size, size), count - size]


def columns(v: Vectors, cell: str, count: int, row: Callable[[int, int, int], str]) -> list[str]:
    """The elements at each place of as many rows as there are lanes; ``row(number, start, size)`` loads part of one."""
    size, starts = squares(v.lanes, count)
    found = [""] * count
    for start in starts:
        parts = [
            transposed(v.of(size), cell, [row(first + i, start, size) for i in range(size)])
            for first in range(0, v.lanes, size)
        ]
        for place, pieces in enumerate(zip(*parts, strict=True), start):
            found[place] = _in_a_row(v, cell, list(pieces), size)
    return found


def rows(v: Vectors, cell: str, columns: Sequence[str], write: Callable[[int, int, int, str], None]) -> None:
    """The reverse: ``write(number, start, size, vector)`` stores part of a row."""
    size, starts = squares(v.lanes, len(columns))
    for first in range(0, v.lanes, size):
        lanes = list(range(first, first + size))
        for start in starts:
            pieces = [v.shuffle(cell, column, lanes) for column in columns[start : start + size]]
            for number, vector in enumerate(transposed(v.of(size), cell, pieces), first):
                write(number, start, size, vector)


def _in_a_row(v: Vectors, cell: str, pieces: list[str], size: int) -> str:
    """Concatenates vectors of ``size`` cells."""
    while len(pieces) > 1:
        wide = list(range(2 * size))
        pieces = [v.shuffle(cell, a, wide, b, size) for a, b in zip(pieces[::2], pieces[1::2], strict=True)]
        size *= 2
    return pieces[0]


def _exchanged(v: Vectors, cell: str, rows: list[str], step: int, first: list[int], second: list[int]) -> list[str]:
    """Shuffles each pair of rows that are ``step`` apart into two others, by these numbers of cells.

    The results are opaque to LLVM: it would search all steps at once for a better sequence, which takes as long as all
    the rest of a kernel, and finds nothing.
    """
    found = list(rows)
    for i in [i for i in range(v.lanes) if not i & step]:
        a, b = rows[i], rows[i + step]
        found[i], found[i + step] = (v.opaque(cell, v.shuffle(cell, a, wanted, b)) for wanted in (first, second))
    return found


def _interleaved_pieces(lanes: int, near: int, step: int, start: int) -> list[int]:
    """In each piece of ``near`` cells: ``step`` cells of the first vector, then as many of the second, and so on."""
    return [
        which + piece + at + i
        for piece in range(0, lanes, near)
        for at in range(start, start + near // 2, step)
        for which in (0, lanes)
        for i in range(step)
    ]


def _transposed_loads(number: int, bits: int) -> int:
    return sum((number >> i & 1) << (bits - 1 - i) for i in range(bits))


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


__all__ = ["LONGEST", "collect", "columns", "every", "interleaved", "rows", "squares", "transposed"]
