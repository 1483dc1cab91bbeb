"""How many places hold an array: whether what is written to it can be seen under another name.

Input: the captured objects as they are, and the memory of an array. Output: how many variables, attributes, items and
so on lead to it. Why: a variable that a loop's iterations write to and then bind anew can be carried only where
nothing else sees the array that the first iteration writes to.
"""

from __future__ import annotations

from typing import Any

from tcompile.capture.semantics.subgraph import NOT_STATE
from tcompile.capture.values.array import ArrayValue, Memory
from tcompile.capture.values.base import Context, Effect, Value
from tcompile.capture.values.callable import IteratorValue
from tcompile.capture.values.counted import Counted

_PARTS = (list, tuple, set, frozenset)


def holders(tx: Context, memory: Memory) -> int | None:
    """How many places hold an array, or a view of it; None where an iterator may, which nobody can look into."""
    found, known = 0, set[int]()
    waiting: list[Any] = [*tx.effects.values(), *tx.mutated.values()]
    for frame in tx.frames:
        waiting += [*frame.locals.values(), *frame.cells.values(), *frame.stack]
    for value in waiting:  # which grows
        if isinstance(value, ArrayValue):
            found += value.memory is memory
        elif isinstance(value, Value | Effect) and id(value) not in known:
            if isinstance(value, IteratorValue) and not isinstance(value, Counted):
                return None
            known.add(id(value))
            for name, part in vars(value).items():
                if name not in NOT_STATE:
                    waiting += part.values() if type(part) is dict else part if type(part) in _PARTS else (part,)
    return found


__all__ = ["holders"]
