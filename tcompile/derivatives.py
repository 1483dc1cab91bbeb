"""Derivatives as they run in plain Python, and their check by finite differences.

Input: calls of ``annotations.derivatives.reverse`` and ``forward`` that no compiled function has made its own.
Output: what they give, by the reference evaluation of the same graph; or the error that says why there is none.
Why: a stance or a graph break around a gradient must not change it.
"""

from __future__ import annotations

import functools
import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.annotations.batching import vmap
from tcompile.annotations.derivatives import (
    COMPILE,
    PLAIN,
    distinct,
    forward,
    grad,
    hvp,
    jvp,
    linearize,
    product,
    remembered,
    stop_gradient,
    value_and_grad,
    vjp,
    weighed,
)
from tcompile.annotations.jacobians import hessian, jacfwd, jacrev
from tcompile.api import compile
from tcompile.errors import DerivativeError, InvalidArgument, InvalidType, RecompileLimitError, Unsupported
from tcompile.graph import Graph
from tcompile.stance import set_stance

_Function = Callable[..., Any]


def check_grads(fun: _Function, order: int = 1, tolerance: float = 1e-5, step: float = 1e-6) -> _Function:
    """A function that compares the gradient of ``fun`` with finite differences, along random directions.

    It takes the arguments of ``fun``, all of which are differentiated, and raises AssertionError where they differ by
    more than ``tolerance``, relative to the larger of both and 1. ``order`` 2 does the same for the gradient.

    >>> import numpy as np, tcompile
    >>> tcompile.check_grads(np.linalg.norm, order=2)(np.array([0.5, 2.0]))
    """
    if not callable(fun):
        raise InvalidType(f"check_grads: fun must be callable, got {type(fun).__name__} {fun!r}")
    if order not in (1, 2):
        raise InvalidArgument(f"check_grads: order must be 1 or 2, got {order!r}")

    def check(*args: Any) -> None:
        random = np.random.default_rng(0)
        numbers = tuple(range(len(args)))
        gradients = grad(fun, numbers)
        along = [_direction(random, arg) for arg in args]

        def moved(by: float) -> list[Any]:
            return [_plus(arg, d, by) for arg, d in zip(args, along, strict=True)]

        _compare(fun, gradients(*args), along, moved, tolerance, step, "gradient")
        if order == 2:
            weights = [_direction(random, arg) for arg in args]
            slope = weighed(gradients, weights)
            _compare(slope, grad(slope, numbers)(*args), along, moved, tolerance, step, "second derivative")

    return check


def _compare(
    fun: _Function, gradients: Any, along: Sequence[Any], moved: _Function, tolerance: float, step: float, name: str
) -> None:
    exact = float(product(gradients, along))
    numeric = (float(fun(*moved(step))) - float(fun(*moved(-step)))) / (2 * step)
    if not abs(exact - numeric) <= tolerance * max(1.0, abs(exact), abs(numeric)):
        raise AssertionError(
            f"check_grads: the {name} is {exact!r} along a random direction, by differences {numeric!r}"
        )


def _direction(random: np.random.Generator, x: Any) -> Any:
    if isinstance(x, tuple | list):
        return type(x)(_direction(random, item) for item in x)
    if isinstance(x, dict):
        return {key: _direction(random, item) for key, item in x.items()}
    return random.standard_normal(np.shape(x)) if np.ndim(x) else float(random.standard_normal())


def _plus(x: Any, d: Any, by: float) -> Any:
    if isinstance(x, tuple | list):
        return type(x)(_plus(a, b, by) for a, b in zip(x, d, strict=True))
    if isinstance(x, dict):
        return {key: _plus(item, d[key], by) for key, item in x.items()}
    return x + by * d


# -- in plain Python ---------------------------------------------------------------------------------------------------
_RAISES = ("[operation-raises]", "[raises]")


def _plainly(kind: _Function, function: _Function, *rest: Any) -> Any:
    """What ``kind`` gives where no compiled function calls it: the same graph, by the reference evaluation."""
    _check_arguments(kind, function, rest)
    found = remembered(_evaluated, kind, function)
    conditions: list[str] = []
    held, _conditions.seen = _conditions.seen, conditions
    try:
        with set_stance("default"):
            try:
                answer = found(*rest)
            except RecompileLimitError:
                answer = _evaluated.__wrapped__(kind, function, shared=False)(*rest)
    except _Failed as failed:
        raise failed.error from None
    except Unsupported as error:
        if any(reason in str(error) for reason in _RAISES):
            args, kwargs = (rest[0], {}) if kind is forward else (rest[0], rest[1])
            function(*args, **kwargs)  # its own exception
        raise DerivativeError(_reported(str(error))) from None
    finally:
        _conditions.seen = held
    _report(conditions)
    return answer


@functools.lru_cache(maxsize=64)
def _evaluated(kind: _Function, function: _Function, shared: bool = True) -> _Function:
    """The derivative that ``kind`` computes, for any arguments; with entries of its own where it is not ``shared``."""

    def evaluated(*given: Any) -> Any:
        return kind(function, *given)

    if shared:
        distinct(evaluated, function)
    else:
        evaluated.__code__ = evaluated.__code__.replace()
    made: _Function = compile(evaluated, fullgraph=True, backend=_reference)
    return made


class _Failed(BaseException):
    """An operation of a graph has raised an exception. It is no Exception, for which compiled code begins again."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Conditions(threading.local):
    """The floating-point conditions that a graph has met, by name."""

    seen: list[str] | None = None


_conditions = _Conditions()


def _report(conditions: Sequence[str]) -> None:
    """What NumPy does about floating-point conditions."""
    for name in dict.fromkeys(conditions):
        key = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}[name]
        mode = np.geterr()[key]  # type: ignore[literal-required]
        if mode == "raise":
            raise FloatingPointError(f"{name} encountered")
        if mode == "warn":
            warnings.warn(f"{name} encountered in a function that is differentiated", RuntimeWarning, stacklevel=4)


def _reported(text: str) -> str:
    """The text of a graph break, without what it says of graph breaks, and without our own frames."""
    text = text.partition("\nWithout fullgraph=True")[0].rstrip()
    head, _, stack = text.partition("\nfrom user code:\n")
    frames = [frame for frame in re.split(r"(?m)^(?=  File )", stack) if frame and f'"{__file__}"' not in frame]
    return head + ("\nfrom user code:\n" + "".join(frames) if frames else "")


def _reference(graph: Graph, inputs: Sequence[Any]) -> _Function:
    """A backend that evaluates a graph by its meaning, and notes floating-point conditions."""

    def evaluate(*args: Any) -> tuple[Any, ...]:
        seen = _conditions.seen
        with np.errstate(all="call", call=lambda name, flag: None if seen is None else seen.append(name)):
            try:
                return graph(*args)
            except Exception as error:
                raise _Failed(error) from None

    return evaluate


def _check_arguments(kind: _Function, function: _Function, rest: tuple[Any, ...]) -> None:
    if kind is forward:
        for number, value in enumerate(rest[0]):
            _check_float(value, f"argument {number}")
        return
    args, kwargs, numbers = rest[0], rest[1], rest[2]
    for number in numbers:
        held: Any = args if isinstance(number, int) else kwargs
        missing = number >= len(held) if isinstance(number, int) else number not in held
        if missing:
            passed = f"{len(args)} positional arguments" + (f" and {', '.join(map(repr, kwargs))}" if kwargs else "")
            raise DerivativeError(f"there is no argument {number!r} to differentiate: the call passes {passed}")
        _check_float(held[number], f"argument {number!r}")


def _check_float(value: Any, name: str) -> None:
    if isinstance(value, tuple | list):
        for item in value:
            _check_float(item, name)
    elif isinstance(value, Mapping):
        for item in value.values():
            _check_float(item, name)
    elif isinstance(value, bool | int):
        raise DerivativeError(
            f"{name} is the {type(value).__name__} {value}, which has no derivative: pass {value:.1f}"
        )
    elif isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind == "c":
            raise DerivativeError(f"{name} is complex ({value.dtype}); complex numbers are not differentiated yet")
        if value.dtype.kind != "f":
            raise DerivativeError(f"{name} has the dtype {value.dtype}; pass floats, as by {name}.astype(float)")
    elif not isinstance(value, float):
        raise DerivativeError(f"{name} is a {type(value).__name__}; pass a float or an array of floats")


PLAIN.append(_plainly)
COMPILE.append(compile)

__all__ = [
    "check_grads", "grad", "hessian", "hvp", "jacfwd", "jacrev", "jvp", "linearize", "stop_gradient", "value_and_grad",
    "vjp", "vmap",
]  # fmt: skip
