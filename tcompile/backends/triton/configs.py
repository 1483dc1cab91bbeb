"""Tiling of a graph's kernels: how they are divided among programs.

Input: nothing.
Output: ``TilingConfig``, which code generation reads, and ``USUAL``, the default.
Why: ``tuning`` tries other values. Element-wise results have the same bits under each; sums of floats are added in
another order, within the same bound.
"""

from __future__ import annotations

from tcompile.records import dataclass


@dataclass(frozen=True)
class TilingConfig:
    """One way to divide the kernels of a graph.

    A program takes ``points`` of a kernel without reductions, or a rectangle of ``side`` times ``side``; a rectangle of
    rows of a few elements is twice as broad. Of a kernel with reductions it takes ``elements`` at once: of one row, of
    several short ones, or of ``rows`` that are adjacent in memory. For numbers of 8 bytes, points and elements of
    unrolled rows are half as many. Split rows are cut so that a program reduces ``chunk`` elements in all, or, of
    adjacent rows, ``SIDE_BY_SIDE`` times that. ``warps`` are a multiple of the default: one for 256 elements, 64 or 128
    points of 8 bytes, 128 elements of 8 bytes of whole rows, or 512 elements of rows that are reduced block by block;
    ``stages`` is the number of iterations in the software pipeline. Of a product of matrices it takes a ``tile``: rows,
    columns, and terms at a time; None leaves products to the library, whose factors' rows are padded with zeros where
    they are ``padded``.
    """

    points: int = 1024
    side: int = 64
    elements: int = 4096  # each thread has four or eight loads of 16 bytes of float32 in flight
    rows: int = 32  # 128 bytes of float32
    chunk: int = 1 << 14
    warps: float = 1.0
    stages: int = 3
    tile: tuple[int, int, int] | None = (64, 64, 32)
    padded: bool = False

    def text(self) -> str:
        """The config as text, for reports and for the disk cache."""
        return (
            f"points={self.points} side={self.side} elements={self.elements} rows={self.rows} chunk={self.chunk}"
            f" warps={self.warps} stages={self.stages} tile={'x'.join(map(str, self.tile)) if self.tile else 'none'}"
            f" padded={self.padded}"
        )


USUAL = TilingConfig()
RESIDENT = TilingConfig(tile=None)  # of arrays on a GPU: CuPy has cuBLAS

IN_REGISTERS = 8192  # elements of a row that a program keeps in registers between passes
CARRIED = 4  # a compensated accumulator counts as so many in the register estimate
ADJACENT = 16  # adjacent rows that are still read at full memory speed: 64 bytes of float32
MOST_ROWS = 64  # short ones per program
WITH_MOMENTS = 2  # times as many adjacent rows
SIDE_BY_SIDE = 2  # each program stores partial results for all of its rows
FEW_PROGRAMS, MOST_PROGRAMS = 256, 2048  # fewer leave parts of a GPU idle; split rows make no more
MANY_PROGRAMS = 1024  # of whole rows: fewer leave it idle, too, since each waits for its row
LEAST_PART = 2048  # elements of a split row per program, at least
UNROLLED = 16  # elements of a row that a thread computes, unrolled
UNROLLED_STRIDED = 8  # the same where neighbouring threads' rows are adjacent: each load touches many cache lines
MOST_LINES = 512  # of unrolled source

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
