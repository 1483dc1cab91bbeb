"""Python's ints in the graph.

Input: an int, maybe of symbols and of the counters of loops. Output: the node that computes it in 64 bits. Why: keys of
arrays, arithmetic and what loops carry all need such nodes.
"""

from __future__ import annotations

from typing import Any

from tcompile.capture.values.base import Context
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Node
from tcompile.graph.sizes import Size, SymInt

LARGEST = 1 << 62  # ints up to here are added without overflow


def int_node(tx: Context, size: Size) -> Node:
    """An int of at most 64 bits in the graph. What divides the counter of a loop is computed there."""
    op = tx.builder.op
    if not (isinstance(size, SymInt) and size.varies_unevenly()):
        check_bits(size)
        return op("full", shape=(), fill_value=size, dtype="int64")
    atoms = size.env.atoms
    rest = SymInt(size.env, {m: c for m, c in size.terms.items() if atoms.keys().isdisjoint(m)})
    known = rest.as_int()
    total = int_node(tx, rest if known is None else known)
    for monomial, coefficient in size.terms.items():
        if atoms.keys().isdisjoint(monomial):
            continue
        term: Any = coefficient
        for atom in monomial:
            if atom in atoms:
                found = atoms[atom]
                name = "floor_divide" if found.sign == "//" else "remainder"
                factor = op(name, int_node(tx, found.left), int_node(tx, found.right))
            else:
                factor = int_node(tx, SymInt(size.env, {(atom,): 1}))
            term = factor if isinstance(term, int) and term == 1 else op("python_multiply", factor, term)
        total = op("python_add", total, term)
    return total


def check_bits(size: Size) -> None:
    """Raises CannotCapture where an int may be too large to be added to another in 64 bits."""
    if not -LARGEST <= size <= LARGEST:
        raise CannotCapture("loop-mismatch", f"{size} may have more than 64 bits")


__all__ = ["LARGEST", "check_bits", "int_node"]
