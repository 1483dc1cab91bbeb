"""Reading the arguments of library calls (``call`` nodes).

Input: a ``call`` node.
Output: its constant arguments; the labels of an ``einsum``.
Why: derivatives and batches both have rules for single functions of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tcompile.graph.ir import Node
from tcompile.graph.ops.opaque import Slot

T = TypeVar("T")


def argument(node: Node, place: int, name: str, default: Any = None) -> Any:
    """A constant argument of a call, by position or by name."""
    args, kwargs = node.attrs["args"], dict(node.attrs["kwargs"])
    return args[place] if len(args) > place else kwargs.get(name, default)


def keyword(node: Node, name: str, default: Any = None) -> Any:
    """A constant argument of a call, by name alone."""
    return dict(node.attrs["kwargs"]).get(name, default)


def at_first_places(node: Node, make: Callable[[int], T | None]) -> list[T | None]:
    """``make(number)`` for each operand; None where an operand stands a further time.

    What ``make`` returns is for all places of the operand.
    """
    return [make(i) if node.operands.index(operand) == i else None for i, operand in enumerate(node.operands)]


def einsum_labels(node: Node) -> tuple[list[str], str, list[Slot]] | None:
    """The labels of each operand of an ``einsum``, those of the result, and the operands' slots.

    None where it has an ellipsis, or lists of axes.
    """
    spec, *slots = node.attrs["args"]
    if not isinstance(spec, str) or "." in spec or not all(isinstance(slot, Slot) for slot in slots):
        return None
    inputs, arrow, output = spec.replace(" ", "").partition("->")
    if not arrow:
        output = "".join(sorted(label for label in set(inputs) - {","} if inputs.count(label) == 1))
    return inputs.split(","), output, slots


__all__ = ["argument", "at_first_places", "einsum_labels", "keyword"]
