"""Small sorts: as many rows side by side as a vector has lanes, in a sorting network.

Input: a kernel of form ``sort``: one reduced axis of a few elements, a compile-time constant.
Output: its function.
Why: no branch depends on the data. NaNs come last, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcompile.backends.llvm.kernels.elements import VectorPosition
from tcompile.backends.llvm.kernels.small_reductions import SmallRowsNest, Vector
from tcompile.backends.schedule.kernel_ops import ALONG


class SortNest(SmallRowsNest):
    """A nest that vectorises the innermost kept axis and unrolls the sorted one."""

    def rows_of(self, vector: Vector) -> None:
        """Sorts as many rows as there are lanes."""
        (value,) = (value for value in self.kernel.values if value.op is ALONG)
        wanted = [other for other in self.stages.needed(0, {}) if other is not value]
        rows = VectorPosition(vector.address, vector.counters, self.last, vector.index, vector.rest)
        vector.known, _ = self.elements.write(rows, self.stages.row_values(0), vector.known)
        line = []
        for r, registers in enumerate(vector.elements):
            found, _ = self.elements.write(self.place(vector, r), wanted, {**vector.known, **registers})
            line.append(found[value.values[0]])
        for low, high in exchanges(self.count):
            line[low], line[high] = self._in_order(line[low], line[high])
        vector.elements = [{value: register} for register in line]
        self.store_elements(vector, self.kernel.stores)

    def _in_order(self, a: str, b: str) -> tuple[str, str]:
        v, dtype = self.v, self.kernel.stores[0].value.dtype
        turned = v.compare("lt", dtype, b, a)
        if dtype.kind == "f":
            number = v.w.get(f"fcmp ord {v.type(dtype)} {b}, {b}")
            turned = v.mask("or", turned, v.mask("and", v.is_nan(dtype, a), number))
        return v.pick(turned, dtype, b, a), v.pick(turned, dtype, a, b)


def exchanges(count: int) -> Iterator[tuple[int, int]]:
    """The pairs of positions to compare and exchange, one after the other, to sort ``count`` elements.

    Batcher's odd-even merges (D. E. Knuth, TAOCP 3, 5.2.2, algorithm M).

    >>> list(exchanges(3))
    [(0, 2), (0, 1), (1, 2)]
    """
    power = 1 << max(0, (count - 1).bit_length() - 1)
    p = power
    while p:
        q, r, d = power, 0, p
        while True:
            yield from ((i, i + d) for i in range(count - d) if i & p == r)
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1


__all__ = ["SortNest", "exchanges"]
