"""Functions of tcompile that have a meaning of their own in a captured function: one file a theme.

Input: calls of them.
Output: ``SPECIAL``, the meaning of each call to capture, and the marks by which a user's function is excluded.
Why: in plain Python these functions do their work themselves (``tcompile.annotations``), but a graph needs nodes or
breaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tcompile.capture.semantics.special import (
    batching,
    control_flow,
    custom_rules,
    derivatives,
    functions,
    jacobians,
    policy,
)
from tcompile.capture.semantics.special.functions import is_marked, refuse_marked
from tcompile.capture.semantics.special.registry import SPECIAL
from tcompile.capture.semantics.special.reordered import call_later, is_reorderable
from tcompile.capture.semantics.special.treated import call_treated

if TYPE_CHECKING:
    from tcompile.capture.values.base import Context, Value
    from tcompile.capture.values.constant import Constant


def call_special(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value | None:
    """The value of a call that has a meaning of its own; None for all others. Raises where it must not be followed."""
    handler = SPECIAL.get(id(function.value))
    if handler is not None:
        return handler(tx, function, args, kwargs)
    refuse_marked(tx, function.value)
    if is_reorderable(function.value):
        later = call_later(tx, function, args, kwargs)
        if later is not None:
            return later
    return call_treated(tx, function, args, kwargs)


__all__ = [
    "SPECIAL",
    "batching",
    "call_later",
    "call_special",
    "control_flow",
    "custom_rules",
    "derivatives",
    "functions",
    "is_marked",
    "is_reorderable",
    "jacobians",
    "policy",
]
