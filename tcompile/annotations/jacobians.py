"""Jacobians and Hessians of NumPy functions: ``jacrev``, ``jacfwd``, ``hessian``.

Input: a function as it stands in the notebook, and its arguments.
Output: functions that give its Jacobian. Each is a compiled function of a few lines around ``rows`` or ``columns``.
Why: the function runs once. Its derivative is a batch: of one cotangent for each number in a result, or of one
tangent for each number in the arguments (``capture.semantics.special.jacobians``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tcompile.annotations.derivatives import PLAIN, compiled, numbers_of

_Function = Callable[..., Any]


def jacrev(
    fun: _Function, argnums: int | Sequence[int] = 0, argnames: str | Iterable[str] = (), has_aux: bool = False
) -> _Function:
    """The Jacobian of a function, row by row: for results that have fewer numbers than the arguments.

    Parameters
    ----------
    fun : callable
        A function of floats and arrays of floats. Its value is a float, an array of floats, or a tuple, list or dict
        of these.
    argnums, argnames, has_aux
        Those of ``grad``.

    Returns
    -------
    callable
        A function of the same arguments. For a value of the shape ``m`` and an argument of the shape ``n`` it gives an
        array of the shape ``m + n``; for trees of them the value's tree of the argument's trees. With ``has_aux`` it
        gives a pair of that and what ``fun`` returned beside its value.

    Raises
    ------
    DerivativeError
        By the Jacobian, where ``fun`` cannot be differentiated: the text names the argument, or the operation.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> tcompile.jacrev(np.sin)(np.zeros(2))
    array([[1., 0.],
           [0., 1.]])
    """
    return _jacobian("jacrev", rows, fun, argnums, argnames, has_aux)


def jacfwd(
    fun: _Function, argnums: int | Sequence[int] = 0, argnames: str | Iterable[str] = (), has_aux: bool = False
) -> _Function:
    """The Jacobian of a function, column by column: for results that have more numbers than the arguments.

    Parameters, results and errors are those of ``jacrev``.

    >>> import numpy as np, tcompile
    >>> tcompile.jacfwd(lambda t: np.array([1.0, 2.0]) * t)(3.0)
    array([1., 2.])
    """
    return _jacobian("jacfwd", columns, fun, argnums, argnames, has_aux)


def hessian(
    fun: _Function, argnums: int | Sequence[int] = 0, argnames: str | Iterable[str] = (), has_aux: bool = False
) -> _Function:
    """The second derivatives of a function: ``jacfwd`` of ``jacrev``.

    For a scalar function of an array of the shape ``n`` the result has the shape ``n + n``.

    >>> import numpy as np, tcompile
    >>> tcompile.hessian(lambda x: np.sum(x ** 3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    numbers, several = numbers_of("hessian", fun, argnums, argnames)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        _, aux, found = rows(fun, args, kwargs, numbers, several, has_aux)
        return (found, aux) if has_aux else found

    def second(*args: Any, **kwargs: Any) -> Any:
        _, aux, found = columns(jacobian, args, kwargs, numbers, several, has_aux)
        return (found, aux) if has_aux else found

    return compiled(second, fun, "hessian", (numbers, several, has_aux), not argnames)


def _jacobian(
    name: str, kind: _Function, fun: _Function, argnums: int | Sequence[int], argnames: str | Iterable[str],
    has_aux: bool,
) -> _Function:  # fmt: skip
    numbers, several = numbers_of(name, fun, argnums, argnames)

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        _, aux, found = kind(fun, args, kwargs, numbers, several, has_aux)
        return (found, aux) if has_aux else found

    return compiled(jacobian, fun, name, (numbers, several, has_aux), not argnames)


# -- the two that capture gives their meaning --------------------------------------------------------------------------
def rows(
    function: _Function, args: Sequence[Any], kwargs: Mapping[str, Any], numbers: tuple[int | str, ...], several: bool,
    has_aux: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """``function(*args, **kwargs)``, what it returns besides, and its Jacobian by reverse mode.

    ``numbers`` are positions and names of arguments; ``several``: the Jacobian has a tuple for them.
    """
    answer: tuple[Any, Any, Any] = PLAIN[0](rows, function, args, kwargs, numbers, several, has_aux)
    return answer


def columns(
    function: _Function, args: Sequence[Any], kwargs: Mapping[str, Any], numbers: tuple[int | str, ...], several: bool,
    has_aux: bool,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The same by forward mode."""
    answer: tuple[Any, Any, Any] = PLAIN[0](columns, function, args, kwargs, numbers, several, has_aux)
    return answer


__all__ = ["columns", "hessian", "jacfwd", "jacrev", "rows"]
