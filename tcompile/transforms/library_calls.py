"""Reading the arguments of library calls (``call`` nodes).

Input: a ``call`` node.
Output: its constant arguments; the labels of an ``einsum``.
Why: derivatives and batches both have rules for single functions of NumPy.
"""

from __future__ import annotations

from typing import Any

from tcompile.graph.ir import Node
from tcompile.graph.ops.opaque import Slot


def argument(node: Node, place: int, name: str, default: Any = None) -> Any:
    """A constant argument of a call, by position or by name."""
    args, kwargs = node.attrs["args"], dict(node.attrs["kwargs"])
    return args[place] if len(args) > place else kwargs.get(name, default)


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


__all__ = ["argument", "einsum_labels"]
