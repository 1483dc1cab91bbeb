"""Cost model of operations, in units of one vector addition.

Input: a node.
Output: a rough figure (``Op.cost``, or what depends on the operands).
Why: it decides whether a value is materialised or recomputed; measured orders of magnitude are enough. Reading an
element back from memory costs about 10 units.
"""

from __future__ import annotations

from tcompile.backends.schedule.products import terms
from tcompile.graph import Node, ops
from tcompile.graph.op import OPS

_FREE = frozenset({"load", "size", "number", "constant", "iota", "reduce", "pair", "part"})

STORE_ABOVE = 9.0  # a value of higher cost is materialised, not recomputed


_SMALL_POWERS = (2, 3, 4, 5, 6, -2, 0.5, 1.5, 2.5, -0.5, -1.5)


def small_power(exponent: object) -> float | None:
    """The exponent where a power is best computed by a few multiplications and a root (within 4 ULP), else None."""
    if isinstance(exponent, int | float) and not isinstance(exponent, bool) and exponent in _SMALL_POWERS:
        return float(exponent)
    return None


def cost_of(node: Node, op: str | None = None) -> float:
    """The cost of one element of ``node`` without its operands; of the operation ``op``, where ``node`` has several."""
    name = op or node.op.name
    if name in _FREE:
        return 0.0
    if name == ops.CALL.name:
        return 30.0  # of a small inverse
    if name == ops.MATMUL.name:
        return 2.0 * terms(node)
    power = small_power(node.operands[1]) if name == ops.POW.name else None
    if power is not None:
        return 3.0 if power > 1 and power.is_integer() else 8.0
    row = OPS.get(name)  # kernels have operations beside those of graphs
    return 1.0 if row is None else row.cost
