"""The alias count of an array: a write to it may be seen under another name.

Input: the captured objects as they are, and the memory of an array.
Output: the number of variables, attributes, items and so on that lead to it.
Why: iterations may write to a variable's array and then bind the variable anew. It can be carried only if the array
that the first iteration writes to has no other alias.
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
    """The number of references to an array or its views; None where an iterator, which is opaque, may have one."""
    found, known = 0, set[int]()
    waiting: list[Any] = [*tx.effects.values(), *tx.mutated.values()]
    for frame in tx.frames:
        waiting += [*frame.locals.values(), *frame.cells.values(), *frame.stack]
    for value in waiting:  # the list grows in the loop
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
