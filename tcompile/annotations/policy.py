"""The policy for graph breaks: ``error_on_graph_break`` as a ``with`` block and as a decorator.

Input: a user's statement.
Output: ``breaks_are_errors()``, which capture reads when it starts.
Why: users can require that some lines are captured. Captured code enters such a block without leaving the graph: see
``capture.semantics.special.policy``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeVar, final

from tcompile.annotations.treatments import Treatment, set_treatment
from tcompile.errors import InvalidType

F = TypeVar("F", bound=Callable[..., Any])
_Chain = tuple[bool, Any] | None
_policy: ContextVar[_Chain] = ContextVar("tcompile_error_on_graph_break", default=None)


def breaks_are_errors() -> bool:
    """Whether a graph break at this point is an error."""
    inside = _policy.get()
    return inside is not None and inside[0]


@final
class error_on_graph_break:
    """Makes graph breaks errors (``True``) or not (``False``): a ``with`` block, or a decorator.

    It may stand inside compiled functions and around calls of them. It takes effect when code is compiled: an entry
    that fits the call is used. Unlike ``fullgraph=True`` it can be limited to some lines; a function compiled with
    ``fullgraph=True`` is not affected. It holds in the current thread or task.

    Parameters
    ----------
    errors : bool
        Whether a break is an error.

    Raises
    ------
    Unsupported
        With the break's full text, at a graph break inside.
    InvalidType
        Where the argument is no bool.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> @tcompile.compile
    ... def f(x):
    ...     with tcompile.error_on_graph_break(True):
    ...         y = x * 2
    ...     print("doubled")  # a graph break, and no error
    ...     return y
    >>> f(np.ones(2))
    doubled
    array([2., 2.])
    """

    def __init__(self, errors: bool) -> None:
        if not isinstance(errors, bool):
            raise InvalidType(f"error_on_graph_break takes a bool, got {type(errors).__name__} {errors!r}")
        self.errors = errors

    def __enter__(self) -> None:
        _policy.set((self.errors, _policy.get()))

    def __exit__(self, *error: object) -> None:
        inside = _policy.get()
        _policy.set(inside[1] if inside is not None else None)

    def __call__(self, function: F) -> F:
        """Returns ``function``, whose calls run inside such a block."""
        if isinstance(function, staticmethod | classmethod):
            return type(function)(self(function.__func__))
        if isinstance(function, type) or not callable(function):
            raise InvalidType(f"error_on_graph_break decorates functions, got {type(function).__name__} {function!r}")
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise InvalidType("error_on_graph_break decorates functions, got a generator or coroutine function")

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        set_treatment(inside, Treatment("policy", flag=self.errors))
        return inside  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"error_on_graph_break({self.errors})"


__all__ = ["breaks_are_errors", "error_on_graph_break"]
