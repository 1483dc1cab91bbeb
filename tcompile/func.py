"""The function transforms under the names that ``torch.func`` has for them.

Input: a function of NumPy arrays.
Output: its derivatives and batches, as ``tcompile.grad`` and its relatives give them.
Why: code that is written for ``torch.func`` reads the same here. Only names and argument names differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcompile.annotations.derivatives import value_and_grad
from tcompile.derivatives import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp
from tcompile.derivatives import vmap as _vmap
from tcompile.errors import InvalidArgument


def grad_and_value(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Any:
    """A function that gives the gradient first and then the value: ``value_and_grad`` the other way round.

    With ``has_aux`` it gives ``(gradient, (value, aux))``.

    >>> import numpy as np
    >>> from tcompile.func import grad_and_value
    >>> grad_and_value(lambda x: np.sum(x * x))(np.array([1.0, 2.0]))
    (array([2., 4.]), np.float64(5.0))
    """
    both = value_and_grad(fun, argnums, has_aux=has_aux)

    def swapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return gradient, value

    return swapped


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "different",
    *, chunk_size: int | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """``tcompile.vmap`` with ``in_dims`` and ``out_dims`` for ``in_axes`` and ``out_axes``.

    ``randomness`` is "different": draws differ between examples, as in a loop over them. "error" and "same" are
    refused.

    >>> import numpy as np
    >>> from tcompile.func import vmap
    >>> vmap(np.dot, in_dims=(0, None))(np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """
    if randomness != "different":
        raise InvalidArgument(
            f"vmap: randomness must be 'different', got {randomness!r}: draws differ between examples"
        )
    return _vmap(func, in_dims, out_dims, chunk_size)


__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]
