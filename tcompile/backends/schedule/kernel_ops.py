"""The operations of kernels: those that compute elements as graphs do, and their own.

Input: nothing.
Output: a ``KernelOp`` for each operation that graphs do not have, by its name in capitals.
Why: ``KernelValue.op`` is a row of the op table or one of these, and tables of lowerings are keyed by both. Like rows,
they are compared and hashed by identity.
"""

from __future__ import annotations

from typing import TypeAlias, Union, final

from tcompile.graph import ops
from tcompile.graph.op import Op, op_named


@final
class KernelOp:
    """One operation that kernels have and graphs do not; its ``cost`` is in the unit of ``Op.cost``."""

    __slots__ = ("cost", "name")

    def __init__(self, name: str, cost: float) -> None:
        self.name, self.cost = name, cost
        _BY_NAME[name] = self

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<KernelOp {self.name}>"


Operation: TypeAlias = Union[Op, KernelOp]  # noqa: UP007  # evaluated where it is imported

_BY_NAME: dict[str, KernelOp] = {}

LOAD = KernelOp("load", 0.0)
GATHER = KernelOp("gather", ops.GATHER.cost)
SCATTER = KernelOp("scatter", ops.SCATTER.cost)
SIZE = KernelOp("size", 0.0)
NUMBER = KernelOp("number", 0.0)
CONSTANT = KernelOp("constant", 0.0)
IOTA = KernelOp("iota", 0.0)
REDUCE = KernelOp("reduce", 0.0)
ALONG = KernelOp("along", 1.0)
PART = KernelOp("part", 0.0)
PAIR = KernelOp("pair", 0.0)
BESIDE = KernelOp("beside", 0.0)
ROUTINE = KernelOp("routine", 1.0)
# Element by element, with lowerings in the code generators.
FMA = KernelOp("fma", 1.0)
REGULAR = KernelOp("regular", 1.0)
SIGNALLING: dict[Op, KernelOp] = {
    op: KernelOp(f"signalling_{op.name}", 1.0)
    for op in (ops.EQUAL, ops.NOT_EQUAL, ops.LESS, ops.LESS_EQUAL, ops.GREATER, ops.GREATER_EQUAL)
}
LOWERED = frozenset({FMA, REGULAR, *SIGNALLING.values()})


def lowered_op(name: str) -> Operation:
    """The operation of a lowering: a row of the op table, or one of ``LOWERED``. Raises GraphError where it is none."""
    found = _BY_NAME.get(name)
    return found if found in LOWERED and found is not None else op_named(name)


__all__ = [
    "ALONG", "BESIDE", "CONSTANT", "FMA", "GATHER", "IOTA", "LOAD", "LOWERED", "NUMBER", "PAIR", "PART",
    "REDUCE", "REGULAR", "ROUTINE", "SCATTER", "SIGNALLING", "SIZE", "KernelOp", "Operation", "lowered_op",
]  # fmt: skip
