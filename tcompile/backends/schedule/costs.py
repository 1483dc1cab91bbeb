"""What operations cost, in units of one vector addition.

Enters: an operation's name. Leaves: a rough figure that decides whether a value is worth storing instead of
computing it again. Measured orders of magnitude are enough: reading an element back from memory costs about
as much as 10 units.
"""

from __future__ import annotations

from tcompile.backends.schedule.products import terms
from tcompile.graph import Node

_COSTS: dict[str, float] = {
    "divide": 4, "sqrt": 4, "python_sqrt": 4, "python_divide": 4, "reciprocal": 4, "floor_divide": 30, "remainder": 30,
    "fmod": 30,
    "pow": 40, "exp": 10, "exp2": 10, "expm1": 15, "log": 12, "log1p": 15, "log2": 12, "log10": 12, "cbrt": 15,
    "sin": 15, "cos": 15, "tan": 20, "asin": 15, "acos": 15, "atan": 15,
    "sinh": 20, "cosh": 20, "tanh": 15, "asinh": 20, "acosh": 20,
    "atanh": 20, "atan2": 25, "hypot": 25, "logaddexp": 30, "nextafter": 10, "gather": 6,
}  # fmt: skip

_FREE = frozenset({"load", "size", "number", "constant", "iota", "reduce", "pair", "part"})

STORE_ABOVE = 9.0  # a value dearer than this is stored, rather than computed twice


_SMALL_POWERS = (2, 3, 4, 5, 6, -2, 0.5, 1.5, 2.5, -0.5, -1.5)


def small_power(exponent: object) -> float | None:
    """The exponent where a power is best computed by a few multiplications and a root (within 4 ULP), else None."""
    if isinstance(exponent, int | float) and not isinstance(exponent, bool) and exponent in _SMALL_POWERS:
        return float(exponent)
    return None


def cost_of(node: Node, op: str | None = None) -> float:
    """The cost of one element of ``node`` without its operands; of the operation ``op``, where ``node`` has several."""
    op = op or node.op
    if op in _FREE:
        return 0.0
    if op == "call":
        return 30.0  # of a tiny inverse
    if op == "matmul":
        return 2.0 * terms(node)
    power = small_power(node.operands[1]) if op == "pow" else None
    if power is not None:
        return 3.0 if power > 1 and power.is_integer() else 8.0
    return _COSTS.get(op, 1.0)
