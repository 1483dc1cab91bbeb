"""Products of small matrices, unrolled in kernels.

Input: a ``matmul`` node.
Output: whether it is computed element by element, as the sum of a few products, what it reads, and the order of the
sum.
Why: a call of BLAS for a 2 x 2 matrix takes far longer than its four products, and prevents fusion with the code before
and after it.
"""

from __future__ import annotations

from tcompile.backends.schedule.maps import Affine, Map, broadcast
from tcompile.graph import Node
from tcompile.graph.sizes import is_one

MOST_TERMS = 4  # of the sum for one element
_MOST_COLUMNS = 16  # BLAS is better for wide ones: it reads each factor once


def is_small(node: Node) -> bool:
    """Whether kernels should compute the product."""
    a, b = (operand.tensor for operand in node.inputs)
    terms = a.shape[-1]
    columns = b.shape[-1] if b.ndim > 1 else 1
    if not (isinstance(terms, int) and 0 < terms <= MOST_TERMS and isinstance(columns, int)):
        return False
    kinds = a.dtype.kind in "iu" or a.dtype.name in ("float32", "float64", "complex64", "complex128")
    return columns <= _MOST_COLUMNS and kinds and a.dtype.isnative


def is_fused(node: Node) -> bool:
    """Whether BLAS fuses multiplication and addition, rounding once: it does for two matrices, not for vectors."""
    a, b = (operand.tensor for operand in node.inputs)
    return min(a.ndim, b.ndim) > 1 and not is_one(a.shape[-2]) and not is_one(b.shape[-1])


def terms(node: Node) -> int:
    """The number of products in the sum for one element."""
    size = node.inputs[0].tensor.shape[-1]
    assert isinstance(size, int)
    return size


def places(node: Node, map: Map) -> list[tuple[Map, Map]]:
    """For each product, where its two factors lie in the operands."""
    a, b = (operand.tensor for operand in node.inputs)
    stack = node.tensor.ndim - (a.ndim > 1) - (b.ndim > 1)
    outer, inside = map[:stack], list(map[stack:])
    row = (inside.pop(0),) if a.ndim > 1 else ()
    batches = [broadcast(outer, type.shape[:-2], node.tensor.shape[:stack]) for type in (a, b)]
    found = []
    for k in range(terms(node)):
        at = Affine((), k)
        found.append(((*batches[0], *row, at), (*batches[1], at, *inside)))
    return found


__all__ = ["MOST_TERMS", "is_fused", "is_small", "places", "terms"]
