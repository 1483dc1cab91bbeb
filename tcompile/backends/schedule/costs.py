"""Cost model of operations, in units of one vector addition.

Input: a node.
Output: a rough figure (``Op.cost``, or what depends on the operands).
Why: it decides whether a value is materialised or recomputed; measured orders of magnitude are enough. Reading an
element back from memory costs about 10 units.
"""

from __future__ import annotations

from tcompile.backends.schedule.kernel_ops import Operation
from tcompile.backends.schedule.products import terms
from tcompile.graph import Node, ops

STORE_ABOVE = 9.0  # a value of higher cost is materialised, not recomputed


_SMALL_POWERS = (2, 3, 4, 5, 6, -2, 0.5, 1.5, 2.5, -0.5, -1.5)


def small_power(exponent: object) -> float | None:
    """The exponent where a power is best computed by a few multiplications and a root (within 4 ULP), else None."""
    if isinstance(exponent, int | float) and not isinstance(exponent, bool) and exponent in _SMALL_POWERS:
        return float(exponent)
    return None


def cost_of(node: Node, op: Operation | None = None) -> float:
    """The cost of one element of ``node`` without its operands; of the operation ``op``, where ``node`` has several."""
    op = op or node.op
    if op is ops.CALL:
        return 30.0  # of a small inverse
    if op is ops.MATMUL:
        return 2.0 * terms(node)
    power = small_power(node.operands[1]) if op is ops.POW else None
    if power is not None:
        return 3.0 if power > 1 and power.is_integer() else 8.0
    return op.cost
