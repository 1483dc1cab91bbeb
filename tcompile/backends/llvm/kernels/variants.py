"""Variants of kernels: tuning parameters that change no bit of the results.

Input: nothing.
Output: ``KernelVariant``, which code generation reads, and ``USUAL``, the default.
Why: ``tuning`` tries other values.
"""

from __future__ import annotations

from tcompile.records import dataclass


@dataclass(frozen=True)
class KernelVariant:
    """One way to write the kernels of a graph.

    ``chunk`` is the work of one chunk of a thread, as a multiple of the default. ``past_the_cache``: large results of
    kernels without reductions are stored past the cache. ``unroll`` is the unroll factor of pointwise loops in vectors,
    ``strip_rows`` the number of rows in a strip of transposed operands.
    """

    chunk: float = 1.0
    past_the_cache: bool = True
    unroll: int = 1
    strip_rows: int = 256

    def text(self) -> str:
        """The variant as text, for reports and for the disk cache."""
        return f"chunk={self.chunk} past_the_cache={self.past_the_cache} unroll={self.unroll} strip={self.strip_rows}"


USUAL = KernelVariant()

__all__ = ["USUAL", "KernelVariant"]
