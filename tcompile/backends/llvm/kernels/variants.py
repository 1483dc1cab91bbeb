"""What may differ in how a graph's kernels are written, and does not change any bit of their results.

Input: nothing. Output: ``KernelVariant``, which those who write kernels ask, and ``USUAL``, which holds what is right for
most. Exists as data of its own so that ``tuning`` can try others.
"""

from __future__ import annotations

from tcompile.records import dataclass


@dataclass(frozen=True)
class KernelVariant:
    """One way to write the kernels of a graph.

    ``chunk`` is how much work one chunk of a thread is, as a multiple of the usual. ``past_the_cache`` says whether
    large results of kernels that reduce nothing are stored past the cache. ``unroll`` is how many vectors an iteration
    of a pointwise loop computes, ``strip_rows`` how many rows lie in a strip where an array is read across the grain.
    """

    chunk: float = 1.0
    past_the_cache: bool = True
    unroll: int = 1
    strip_rows: int = 256

    def text(self) -> str:
        """The same for reports and for the cache on disk."""
        return f"chunk={self.chunk} past_the_cache={self.past_the_cache} unroll={self.unroll} strip={self.strip_rows}"


USUAL = KernelVariant()

__all__ = ["USUAL", "KernelVariant"]
