"""The table of functions that have a meaning of their own to capture.

Input: handlers, as the sibling files define them.
Output: ``SPECIAL``, by the function's identity.
Why: the file of one handler needs no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.constant import Constant
from tcompile.frontends.base import CannotCapture

Handler = Callable[["Context", Constant, Sequence[Value], Mapping[str, Value]], Value]
SPECIAL: dict[int, Handler] = {}


def special(function: Any) -> Callable[[Handler], Handler]:
    """Registers the meaning of a call of ``function`` in a captured function."""

    def register(handler: Handler) -> Handler:
        SPECIAL[id(function)] = handler
        return handler

    return register


def bind(
    name: str, parameters: Mapping[str, Value | None], args: Sequence[Value], kwargs: Mapping[str, Value]
) -> list[Value]:
    """The values of the parameters of a function of tcompile; None in ``parameters``: the argument is required."""
    given = dict(zip(parameters, args, strict=False))
    if len(args) > len(parameters) or not set(kwargs) <= set(parameters) - set(given):
        raise CannotCapture("operation-raises", f"wrong arguments for {name}")
    everything = {**parameters, **given, **kwargs}
    if any(everything[key] is None for key in parameters):
        raise CannotCapture("operation-raises", f"{name} misses an argument")
    return [value for key in parameters if (value := everything[key]) is not None]
