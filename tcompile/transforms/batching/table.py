"""The table of batches: for each operation its rule, or why the examples run one after the other.

Input: rules, registered by the sibling modules.
Output: ``RULES`` and ``EACH``, keyed by the operation.
Why: how an operation is batched stands beside nothing else that is known of it, and a test says of each row of the op
table that it is in one of both.

A rule takes a ``Batched``, a node with the operands of all examples, and returns the node of all results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcompile.graph.ir import Node, Operand
from tcompile.graph.op import Op
from tcompile.graph.sizes import Size
from tcompile.records import dataclass
from tcompile.transforms.emit import Emit


@dataclass
class Batched:
    """A node of one example, with its operands for all ``count`` examples.

    ``flags`` tells which operands differ between examples: their first axis counts these.
    """

    e: Emit
    count: Size
    node: Node
    operands: Sequence[Operand]
    flags: Sequence[bool]

    def own(self, number: int) -> Node:
        """An operand of one example."""
        operand = self.node.operands[number]
        assert isinstance(operand, Node)
        return operand

    def given(self, number: int) -> Node:
        """An operand as it is."""
        operand = self.operands[number]
        assert isinstance(operand, Node)
        return operand

    def aligned(self, number: int, ndim: int) -> Operand:
        """An operand that broadcasts with those of ``ndim`` axes in each example."""
        operand = self.operands[number]
        if not self.flags[number]:
            return operand
        assert isinstance(operand, Node)
        missing = ndim - (operand.tensor.ndim - 1)
        return self.e.reshape(operand, (self.count, *(1,) * missing, *operand.tensor.shape[1:]))

    def whole(self, number: int) -> Node:
        """An operand with an axis of examples, whether it differs between them or not."""
        operand = self.given(number)
        return operand if self.flags[number] else self.e.broadcast(operand, (self.count, *operand.tensor.shape))


Rule: TypeAlias = Callable[[Batched], Node]

RULES: dict[Op, Rule] = {}
EACH: dict[Op, str] = {}  # operations without a rule, and why


def batching(*rows: Op) -> Callable[[Rule], Rule]:
    """Registers the rule of some operations."""

    def register(rule: Rule) -> Rule:
        for row in rows:
            RULES[row] = rule
        return rule

    return register


def each(reason: str, *rows: Op) -> None:
    """Registers operations that run in a loop over the examples, with the reason."""
    for row in rows:
        EACH[row] = reason


class OneByOne(Exception):
    """A rule does not apply to this node: it runs in a loop over the examples."""


__all__ = ["EACH", "RULES", "Batched", "OneByOne", "Rule", "batching", "each"]
