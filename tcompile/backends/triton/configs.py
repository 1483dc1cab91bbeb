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
    elements; ``stages`` is how many rounds of a loop load ahead.
    """

    points: int = 1024
    side: int = 32
    elements: int = 4096
    columns: int = 1024
    warps: float = 1.0
    stages: int = 3

    def text(self) -> str:
        """The same for reports and for the cache on disk."""
        return (
            f"points={self.points} side={self.side} elements={self.elements} columns={self.columns} warps={self.warps}"
            f" stages={self.stages}"
        )


USUAL = Config()

__all__ = ["USUAL", "Config"]
