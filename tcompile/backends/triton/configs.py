"""How a graph's kernels are divided among programs.

Input: nothing. Output: ``TilingConfig``, which those who write kernels ask, and ``USUAL``, which is right for most. Exists
as data of its own so that ``tuning`` can try others. Element-wise results have the same bits under each; sums of floats
are added up in another order, within the same bound.
"""

from __future__ import annotations

from tcompile.records import dataclass


@dataclass(frozen=True)
class TilingConfig:
    """One way to divide the kernels of a graph.

    A program takes ``points`` of a kernel that reduces nothing, or a rectangle of ``side`` times ``side``, one of rows
    of a few elements being twice as broad. Of a kernel that reduces it takes ``elements`` at once: of one row, of
    several short ones, or of ``rows`` that lie side by side in memory. Of numbers of 8 bytes, points and elements of
    rows that are written out are half as many. Rows that are shared out are cut so that a program walks ``chunk``
    elements in all, or, of rows side by side, ``SIDE_BY_SIDE`` times that. ``warps`` are a multiple of the usual, one
    for 256 elements, 64 or 128 points of 8 bytes, 128 elements of 8 bytes of rows that are whole, or 512 elements of
    rows that are walked; ``stages`` is how many iterations of a loop load ahead. Of a product of matrices it takes a
    ``tile``: rows, columns, and terms at a time; None leaves products to the library, whose factors' rows are filled up
    with zeros where they are ``padded``.
    """

    points: int = 1024
    side: int = 64
    elements: int = 4096  # each thread has four or eight loads of 16 bytes of float32 on their way
    rows: int = 32  # 128 bytes of float32
    chunk: int = 1 << 14
    warps: float = 1.0
    stages: int = 3
    tile: tuple[int, int, int] | None = (64, 64, 32)
    padded: bool = False

    def text(self) -> str:
        """The same for reports and for the cache on disk."""
        return (
            f"points={self.points} side={self.side} elements={self.elements} rows={self.rows} chunk={self.chunk}"
            f" warps={self.warps} stages={self.stages} tile={'x'.join(map(str, self.tile)) if self.tile else 'none'}"
            f" padded={self.padded}"
        )


USUAL = TilingConfig()
RESIDENT = TilingConfig(tile=None)  # of arrays that lie on a GPU: CuPy has cuBLAS

IN_REGISTERS = 8192  # elements that a program holds from one pass over its rows to the next
CARRIED = 4  # as so many accumulators counts one that carries rounding errors
ADJACENT = 16  # rows side by side that are still read at the memory's speed: 64 bytes of float32
MOST_ROWS = 64  # short ones that a program takes
WITH_MOMENTS = 2  # times as many rows side by side
SIDE_BY_SIDE = 2  # each program leaves partial results for all of its rows
FEW_PROGRAMS, MOST_PROGRAMS = 256, 2048  # fewer leave parts of a GPU idle; no more are made of what is shared out
MANY_PROGRAMS = 1024  # of whole rows: fewer leave it idle, too, since each waits for its row
LEAST_PART = 2048  # elements that a program takes of what is shared out, at least
UNROLLED = 16  # elements of a row that a thread takes one after the other
UNROLLED_STRIDED = 8  # the same where neighbouring threads' rows lie one after the other: each load meets many lines
MOST_LINES = 512  # that elements written out may make

__all__ = [
    "ADJACENT",
    "CARRIED",
    "FEW_PROGRAMS",
    "IN_REGISTERS",
    "LEAST_PART",
    "MANY_PROGRAMS",
    "MOST_LINES",
    "MOST_PROGRAMS",
    "MOST_ROWS",
    "RESIDENT",
    "SIDE_BY_SIDE",
    "UNROLLED",
    "UNROLLED_STRIDED",
    "USUAL",
    "WITH_MOMENTS",
    "TilingConfig",
]  # fmt: skip
