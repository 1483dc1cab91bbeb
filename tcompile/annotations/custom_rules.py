"""Functions with derivatives of the user's own: ``custom_vjp`` and ``custom_jvp``.

Input: a function, and the rule that gives its derivative.
Output: a callable that computes the function, and whose derivative is the rule.
Why: a formula may be more exact, or cheaper, than the derivative of each step; and a function that cannot be
differentiated may have a derivative all the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tcompile.errors import DerivativeError, InvalidType

_Function = Callable[..., Any]


class _Custom:
    """A function with a rule."""

    kind = ""

    def __init__(self, fun: _Function) -> None:
        if not callable(fun):
            raise InvalidType(f"{self.kind}: fun must be callable, got {type(fun).__name__} {fun!r}")
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]  # it is called through its class
        self.fun = fun

    def _check(self, **rules: Any) -> None:
        for name, rule in rules.items():
            if not callable(rule):
                raise InvalidType(f"{self.kind}: {name} must be callable, got {type(rule).__name__} {rule!r}")


class custom_vjp(_Custom):  # a decorator
    """A function whose reverse derivative the user gives.

    Parameters
    ----------
    fun : callable
        A function of positional arguments.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> @tcompile.custom_vjp
    ... def clipped(x):
    ...     return np.clip(x, 0, 1)
    >>> clipped.defvjp(lambda x: (np.clip(x, 0, 1), None), lambda residuals, g: (g,))
    >>> tcompile.grad(lambda x: np.sum(clipped(x) * 3))(np.array([-1.0, 0.5]))
    array([3., 3.])
    """

    kind = "custom_vjp"
    forward: _Function | None = None
    backward: _Function | None = None

    def defvjp(self, forward: _Function, backward: _Function) -> None:
        """Sets the rule.

        Parameters
        ----------
        forward : callable
            It takes the arguments, and returns a pair: the function's value, and residuals, a tree of arrays and
            numbers or None.
        backward : callable
            It takes the residuals and the cotangent of the value, and returns a tuple with the cotangent of each
            argument; None is zero.
        """
        self._check(forward=forward, backward=backward)
        self.forward, self.backward = forward, backward

    def __call__(self, *args: Any) -> Any:
        """The function's value."""
        return with_vjp(self, self.fun, self.forward, self.backward, args)


class custom_jvp(_Custom):  # a decorator
    """A function whose forward derivative the user gives; reverse mode is its transpose.

    Parameters
    ----------
    fun : callable
        A function of positional arguments.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> @tcompile.custom_jvp
    ... def softplus(x):
    ...     return np.logaddexp(x, 0.0)
    >>> @softplus.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return softplus(x), t / (1 + np.exp(-x))
    >>> tcompile.grad(softplus)(0.0)
    0.5
    """

    kind = "custom_jvp"
    rule: _Function | None = None

    def defjvp(self, rule: _Function) -> _Function:
        """Sets the rule, a function of the tuples of primals and tangents: the value and its tangent. A decorator."""
        self._check(rule=rule)
        self.rule = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        """The function's value."""
        return with_jvp(self, self.fun, self.rule, args)


# -- the two that capture gives their meaning --------------------------------------------------------------------------
def with_vjp(
    custom: _Custom, fun: _Function, forward: _Function | None, backward: _Function | None, args: tuple[Any, ...]
) -> Any:
    """``fun(*args)``; a derivative of it calls the two others."""
    if forward is None:
        raise DerivativeError(f"{custom.__name__} has no rule: call {custom.__name__}.defvjp(forward, backward)")  # type: ignore[attr-defined]
    return fun(*args)


def with_jvp(custom: _Custom, fun: _Function, rule: _Function | None, args: tuple[Any, ...]) -> Any:
    """``fun(*args)``; a derivative of it calls the rule."""
    if rule is None:
        raise DerivativeError(f"{custom.__name__} has no rule: call {custom.__name__}.defjvp(rule)")  # type: ignore[attr-defined]
    return fun(*args)


__all__ = ["custom_jvp", "custom_vjp", "with_jvp", "with_vjp"]
