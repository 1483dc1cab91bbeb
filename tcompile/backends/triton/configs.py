"""How a graph's kernels are divided among programs.

Enters: nothing. Leaves: ``Config``, which those who write kernels ask, and ``USUAL``, which is right for most. Exists
as data of its own so that ``tuning`` can try others. Element-wise results have the same bits under each; sums of floats
are added up in another order, within the same bound.
"""

from __future__ import annotations

from tcompile.records import dataclass


@dataclass(frozen=True)
class Config:
    """One way to divide the kernels of a graph.

    A program takes ``points`` of a kernel that reduces nothing, or a rectangle of ``side`` times ``side``; of rows it
    takes ``elements`` at once, of long ones ``columns`` at a time. ``warps`` are a multiple of the usual, one for 256
    elements; ``stages`` is how many rounds of a loop load ahead. Of a product of matrices it takes a ``tile``: rows,
    columns, and terms at a time; None leaves products to the library, whose factors' rows are filled up with zeros
    where they are ``padded``.
    """

    points: int = 1024
    side: int = 32
    elements: int = 4096
    columns: int = 1024
    warps: float = 1.0
    stages: int = 3
    tile: tuple[int, int, int] | None = (64, 64, 32)
    padded: bool = False

    def text(self) -> str:
        """The same for reports and for the cache on disk."""
        return (
            f"points={self.points} side={self.side} elements={self.elements} columns={self.columns} warps={self.warps}"
            f" stages={self.stages} tile={'x'.join(map(str, self.tile)) if self.tile else 'none'}"
            f" padded={self.padded}"
        )


USUAL = Config()
RESIDENT = Config(tile=None)  # of arrays that lie on a GPU: CuPy has cuBLAS

__all__ = ["RESIDENT", "USUAL", "Config"]
