"""The table of derivatives: for each operation its rule, or why it has none.

Input: rules, registered by the sibling modules.
Output: ``VJPS`` and ``NO_VJP``, keyed by the operation.
Why: a derivative stands beside nothing else that is known of an operation in that backend or this pass, and a test says
of each row of the op table that it is in one of both.

``COMPLEX`` and ``COMPLEX_CALLS`` name those whose rules hold for complex numbers, too. The convention is JAX's: the
cotangent ``g`` of a complex ``z`` is the number with ``d loss = real(g * dz)``, so that a holomorphic function has the
rule of the real one, without a conjugate.

A rule takes the node and the cotangent of its result, and returns for each operand a function that makes the
operand's cotangent, or None where the derivative is zero. Only the functions of operands that lead to what is
differentiated are called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcompile.graph.ir import Node
from tcompile.graph.op import Op
from tcompile.graph.ops.writing import Path
from tcompile.records import dataclass
from tcompile.transforms.emit import Emit


@dataclass
class Part:
    """A cotangent ``g`` of the elements that a path of view ops shows; that of all others is zero."""

    path: Path
    g: Node


Pull: TypeAlias = Callable[[], Node | Part]
Vjp: TypeAlias = Callable[[Emit, Node, Node], Sequence[Pull | None]]

VJPS: dict[Op, Vjp] = {}
NO_VJP: dict[Op, str] = {}  # operations on floats without a rule, and why
COMPLEX: set[Op] = set()
COMPLEX_CALLS: set[str] = set()  # by the targets of library calls


def derivative(*rows: Op) -> Callable[[Vjp], Vjp]:
    """Registers the rule of some operations."""

    def register(rule: Vjp) -> Vjp:
        for row in rows:
            VJPS[row] = rule
        return rule

    return register


def constant(*rows: Op) -> None:
    """Registers operations whose derivative is zero wherever it exists."""
    for row in rows:
        VJPS[row] = lambda e, node, g: [None] * len(node.operands)


def complex_too(*rows: Op) -> None:
    """Registers operations whose rule holds for complex numbers."""
    COMPLEX.update(rows)


def refused(reason: str, *rows: Op) -> None:
    """Registers operations that have no rule, with the reason that a user reads."""
    for row in rows:
        NO_VJP[row] = reason


__all__ = [
    "COMPLEX", "COMPLEX_CALLS", "NO_VJP", "VJPS", "Part", "Pull", "Vjp", "complex_too", "constant", "derivative",
    "refused",
]  # fmt: skip
