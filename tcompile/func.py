"""The function transforms under the names, and with the arguments, that ``torch.func`` has for them.

Input: a function of NumPy arrays.
Output: its derivatives and batches, as ``tcompile.grad`` and its relatives give them.
Why: code that is written for ``torch.func`` reads the same here. What is missing: ``has_aux`` of ``vjp`` and ``jvp``,
``chunk_size`` of Jacobians, and the values "error" and "same" of ``randomness``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcompile import derivatives as ours
from tcompile.annotations.derivatives import compiled
from tcompile.errors import InvalidArgument

_Function = Callable[..., Any]
jvp, linearize, vjp = ours.jvp, ours.linearize, ours.vjp


def grad(func: _Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> _Function:
    """``tcompile.grad`` with the arguments of ``torch.func.grad``.

    >>> import numpy as np
    >>> from tcompile.func import grad
    >>> grad(lambda x: (np.sum(x * x), x[0]), 0, True)(np.array([1.0, 2.0]))
    (array([2., 4.]), np.float64(1.0))
    """
    return ours.grad(func, argnums, has_aux=has_aux)


def grad_and_value(func: _Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> _Function:
    """A function that gives the gradient first and then the value: ``value_and_grad`` the other way round.

    With ``has_aux`` it gives ``(gradient, (value, aux))``.

    >>> import numpy as np
    >>> from tcompile.func import grad_and_value
    >>> grad_and_value(lambda x: np.sum(x * x))(np.array([1.0, 2.0]))
    (array([2., 4.]), np.float64(5.0))
    """
    both = ours.value_and_grad(func, argnums, has_aux=has_aux)

    def swapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return compiled(swapped, func, "grad_and_value", (repr(argnums), has_aux), parameters=True)


def jacrev(func: _Function, argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> _Function:
    """``tcompile.jacrev`` with the arguments of ``torch.func.jacrev``."""
    return ours.jacrev(func, argnums, has_aux=has_aux)


def jacfwd(func: _Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> _Function:
    """``tcompile.jacfwd`` with the arguments of ``torch.func.jacfwd``."""
    return ours.jacfwd(func, argnums, has_aux=has_aux)


def hessian(func: _Function, argnums: int | Sequence[int] = 0) -> _Function:
    """``tcompile.hessian`` with the arguments of ``torch.func.hessian``."""
    return ours.hessian(func, argnums)


def vmap(
    func: _Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "different", *,
    chunk_size: int | None = None,
) -> _Function:  # fmt: skip
    """``tcompile.vmap`` with ``in_dims`` and ``out_dims`` for ``in_axes`` and ``out_axes``.

    ``randomness`` is "different": draws differ between examples, as in a loop over them. "error", torch's default, and
    "same" are refused.

    >>> import numpy as np
    >>> from tcompile.func import vmap
    >>> vmap(np.dot, in_dims=(0, None))(np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """
    if randomness != "different":
        raise InvalidArgument(
            f"vmap: randomness must be 'different', got {randomness!r}: draws differ between examples"
        )
    return ours.vmap(func, in_dims, out_dims, chunk_size)


__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]
