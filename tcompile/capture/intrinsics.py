"""Functions of tcompile that a user may call inside a compiled function: what they do in plain Python.

Enters: a user's call. Leaves: its plain result. ``special`` beside this file says what the same calls mean to capture;
they are apart so that importing tcompile does not load capture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcompile.errors import InvalidType


def is_compiling() -> bool:
    """True inside compiled code, False in plain Python (also where a compiled function runs plainly)."""
    return False


def graph_break(reason: str = "") -> None:
    """Ends the graph here. In plain Python it does nothing. ``reason`` is shown in the report."""


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()
) -> Any:
    """``true_fn(*operands)`` where ``pred`` holds, else ``false_fn(*operands)``; captured as one node of two branches.

    ``pred`` is a bool or an array of one element. In a compiled function both branches must return arrays of the same
    shapes and dtypes. Raises InvalidType where an argument has the wrong kind.

    >>> import numpy as np
    >>> cond(np.ones(3).sum() < 0, lambda x: -x, lambda x: x + 1, (np.ones(2),))
    array([2., 2.])
    """
    for name, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise InvalidType(f"cond: {name} must be callable, got {type(function).__name__} {function!r}")
    if not isinstance(operands, tuple | list):
        raise InvalidType(f"cond: operands must be a tuple or list, got {type(operands).__name__}")
    if not isinstance(pred, bool | np.bool_) and not (isinstance(pred, np.ndarray) and pred.size == 1):
        raise InvalidType(f"cond: pred must be a bool or an array of one element, got {type(pred).__name__} {pred!r}")
    return (true_fn if pred else false_fn)(*operands)
