"""Checks of derivatives: by finite differences, and for the operation that makes the first NaN.

Input: a function and its arguments.
Output: AssertionError where a gradient differs from finite differences; the errors by their step; the line and the
operation of the first NaN.
Why: a wrong or NaN gradient does not say which operation caused it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.annotations.derivatives import copied, grad, product, value_and_grad, weighed
from tcompile.annotations.trees import leaves_of, mapped
from tcompile.debug.copying import copied as deep_copy
from tcompile.derivatives import spied
from tcompile.errors import InvalidArgument, InvalidType
from tcompile.graph import Graph, Node, ops
from tcompile.records import dataclass
from tcompile.stance import set_stance

_Function = Callable[..., Any]


# -- finite differences ------------------------------------------------------------------------------------------------
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

        _compare(fun, gradients(*copied(args)), along, moved, tolerance, step, "gradient")
        if order == 2:
            weights = [_direction(random, arg) for arg in args]
            slope = weighed(gradients, weights)
            _compare(slope, grad(slope, numbers)(*copied(args)), along, moved, tolerance, step, "second derivative")

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
    return mapped(lambda leaf: random.standard_normal(np.shape(leaf)) if np.ndim(leaf) else random.standard_normal(), x)


def _plus(x: Any, d: Any, by: float) -> Any:
    return mapped(lambda leaf, along: leaf + by * along, x, d)


STEPS = tuple(10.0 ** (-n / 2) for n in range(2, 25))  # from 0.1 to 1e-12
_TOLERANCES = {"float16": 0.3, "float32": 1e-2}  # the errors of differences in these dtypes; of others, 1e-5
_ROUNDING = 16  # units in the last place by which a value of a function may be wrong
_NO_VALUE = (ArithmeticError, ValueError, np.linalg.LinAlgError)  # what functions raise beside their domain


@dataclass(frozen=True)
class GradientErrors:
    """How far the gradient by one argument is from finite differences along a random direction, by their step.

    Differences of a smooth function have an error that falls as the square of the step, until rounding dominates. So a
    right gradient has a small error at some step; a wrong one has a large error at all steps.

    An error is the difference between the change of the value and the product of the gradient and the change of the
    argument, relative to the larger of both. At a minimum both are small, so the change that the largest step makes is
    taken for comparison, in proportion to the step.

    Attributes
    ----------
    argument : str
        The parameter's name, or its position.
    gradient : tree of arrays and floats
        The gradient by it, in its structure.
    steps : tuple of float
        The steps, relative to each element of the argument, or to 1 where it is smaller.
    errors : tuple of float
        The error for each step; NaN where the function has no value, or rounding hides the change.
    rounding : tuple of float
        The part of each error that rounding of the values may make.
    tolerance : float
        The largest error of a right gradient, at the best step, besides rounding: 1e-5, or 0.01 where an argument or
        the value is of single precision.
    """

    argument: str
    gradient: Any
    steps: tuple[float, ...]
    errors: tuple[float, ...]
    rounding: tuple[float, ...]
    tolerance: float

    @property
    def best(self) -> float:
        """The smallest error; infinite where there is none."""
        return min((error for error in self.errors if error == error), default=np.inf)

    @property
    def step(self) -> float:
        """The step with the smallest error; NaN where there is none."""
        return self.steps[self.errors.index(self.best)] if np.isfinite(self.best) else np.nan

    @property
    def agrees(self) -> bool:
        """Whether some step confirms the gradient."""
        return any(error <= self.tolerance + part for error, part in zip(self.errors, self.rounding, strict=True))

    @property
    def differs(self) -> bool:
        """Whether it can be compared, and no step confirms it."""
        return bool(np.isfinite(self.best)) and not self.agrees

    @property
    def verdict(self) -> str:
        """Whether finite differences confirm the gradient, in words."""
        if self.agrees or self.differs:
            return f"{'agrees to' if self.agrees else 'DIFFERS by'} {self.best:.1e}, at a step of {self.step:.0e}"
        leaves = [np.asarray(leaf) for leaf in leaves_of(self.gradient)]
        if any(np.isnan(leaf).any() for leaf in leaves):
            return "is NaN; tcompile.find_nan tells where that begins"
        if not all(np.isfinite(leaf).all() for leaf in leaves):
            return "is infinite"
        return "cannot be compared: beside the arguments the function has no value, or rounding hides its changes"

    def __str__(self) -> str:
        return f"the gradient by {self.argument} {self.verdict}"


def gradient_errors(fun: _Function, seed: int = 0) -> _Function:
    """A function of the arguments of ``fun`` that compares its gradient with finite differences of many steps.

    Parameters
    ----------
    fun : callable
        A function whose value is a scalar, as for ``grad``. It runs twice for each step and argument, and twice
        besides, on deep copies of the arguments.
    seed : int
        Another seed gives other directions.

    Returns
    -------
    callable
        It returns a list of ``GradientErrors``, one for each argument that is a float or holds floats.

    Raises
    ------
    InvalidType
        ``fun`` is no function, or no argument is a float.
    DerivativeError
        ``fun`` has no derivative, or an argument holds something beside floats.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> (errors,) = tcompile.gradient_errors(np.linalg.norm)(np.array([1.0, 2.0]))
    >>> errors.argument, errors.agrees
    ('x', True)
    """
    if not callable(fun):
        raise InvalidType(f"gradient_errors: fun must be callable, got {type(fun).__name__} {fun!r}")

    def errors(*args: Any, **kwargs: Any) -> list[GradientErrors]:
        given = by_place(args, kwargs)
        numbers, names = float_places("gradient_errors", given)
        args, kwargs = deep_copy((args, kwargs))
        gradients = grad(fun, numbers, argnames=names)(*args, **kwargs)
        random = np.random.default_rng(seed)
        places: list[int | str] = [*numbers, *names]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of values beside those of the call
            here = _value(fun, given)
            dtypes = {
                str(getattr(leaf, "dtype", "float64"))
                for leaf in (here, *(leaf for value in given.values() for leaf in leaves_of(value)))
                if is_float(leaf)
            }
            loosest = max(dtypes, key=lambda name: _TOLERANCES.get(name, 0.0))
            return [
                _errors(fun, given, place, g, random, float(here), loosest)
                for place, g in zip(places, gradients, strict=True)
            ]

    return errors


def _errors(
    fun: _Function,
    given: Mapping[int | str, Any],
    place: int | str,
    gradient: Any,
    random: np.random.Generator,
    here: float,
    dtype: str,
) -> GradientErrors:
    value, tolerance, unit = given[place], _TOLERANCES.get(dtype, 1e-5), _ROUNDING * float(np.finfo(dtype).eps)
    along = mapped(lambda leaf: _direction(random, leaf) * np.maximum(1.0, np.abs(leaf)), value)
    errors, rounding, secant = [], [], np.nan
    for step in STEPS:
        ends = [mapped(lambda leaf, d, by=by: _moved(leaf, by * d), value, along) for by in (step, -step)]
        up, down = (float(_value(fun, {**given, place: end})) for end in ends)
        moved = mapped(lambda a, b: np.subtract(a, b, dtype=float), *ends)
        change, expected = up - down, float(product(gradient, moved))
        if np.isnan(secant):
            secant = (abs(up - here) + abs(down - here)) / step
        scale = max(abs(change), abs(expected), secant * step)
        part = unit * max(abs(up), abs(down)) / scale if scale else 0.0
        known = part <= max(0.01, tolerance / 4)
        errors.append(abs(change - expected) / (scale or 1.0) if known else np.nan)
        rounding.append(part if known else 0.0)
    return GradientErrors(_name_of(fun, place), gradient, STEPS, tuple(errors), tuple(rounding), tolerance)


def _value(fun: _Function, given: Mapping[int | str, Any]) -> Any:
    """The value of the function; NaN where it raises an exception of its domain."""
    there = deep_copy(dict(given))
    positional = [there[n] for n in sorted(n for n in there if isinstance(n, int))]
    try:
        return fun(*positional, **{n: there[n] for n in there if isinstance(n, str)})
    except _NO_VALUE:
        return float("nan")


def _moved(leaf: Any, by: Any) -> Any:
    """A float beside another one, of its kind and dtype."""
    if isinstance(leaf, np.ndarray):
        return np.asarray(leaf + by, leaf.dtype)
    return leaf.dtype.type(leaf + by) if isinstance(leaf, np.generic) else leaf + float(by)


def _name_of(fun: _Function, place: int | str) -> str:
    """The name of a parameter; its position where the function tells none."""
    if isinstance(place, str):
        return place
    try:
        parameters = list(inspect.signature(fun).parameters.values())[: place + 1]
    except (TypeError, ValueError):
        return str(place)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = len(parameters) > place and all(parameter.kind in kinds for parameter in parameters)
    return parameters[place].name if known else str(place)


def by_place(args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[int | str, Any]:
    """The arguments of a call by their positions and names."""
    given: dict[int | str, Any] = dict(enumerate(args))
    given.update(kwargs)
    return given


def float_places(name: str, given: Mapping[int | str, Any]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and names of the arguments that are floats or hold them; ``name`` is the caller's, for errors."""
    floats = [place for place, value in given.items() if any(map(is_float, leaves_of(value)))]
    if not floats:
        raise InvalidType(f"{name}: no argument is a float or an array of floats")
    numbers = tuple(place for place in floats if isinstance(place, int))
    return numbers, tuple(place for place in floats if isinstance(place, str))


# -- the first NaN -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class FirstNan:
    """Where the first NaN of a function or its derivative comes from.

    Attributes:
        where: the user's line; for a NaN that the function is given, the argument or the input of the graph.
        operation: the operation that made it; ``input`` for one that is given.
        backward: whether it belongs to the derivative.
        operands: the operands that are numbers or arrays, at the place of the first NaN; those of other shapes as they
            are.
    """

    where: str
    operation: str
    backward: bool
    operands: tuple[Any, ...]

    def __str__(self) -> str:
        if self.operation == "input":
            return f"The function gets a NaN: {self.where}."
        which = "the derivative of " if self.backward else ""
        of = ", ".join(_short(value) for value in self.operands)
        return f"The first NaN is made in {which}{self.where}: {self.operation} of {of}."


def _short(value: Any) -> str:
    return f"an array of shape {np.shape(value)}" if np.ndim(value) else f"{value:.6g}"


def find_nan(fun: _Function) -> _Function:
    """A function of the arguments of ``fun`` that says where the first NaN of its value or gradient is made.

    The graph is evaluated operation by operation, the iterations of loops over arrays too. NaNs that reach neither the
    value nor the gradient, as of a side that ``np.where`` does not take, do not count.

    Parameters
    ----------
    fun : callable
        A function whose value is a scalar, as for ``grad``.

    Returns
    -------
    callable
        It returns a ``FirstNan``, or None where neither the value nor the gradient has a NaN. All arguments that are
        floats or hold them are differentiated; complex ones are not.

    Raises
    ------
    InvalidType
        ``fun`` is no function, or no argument is a float.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> found = tcompile.find_nan(np.linalg.norm)(np.zeros(3))
    >>> found.backward
    True
    """
    if not callable(fun):
        raise InvalidType(f"find_nan: fun must be callable, got {type(fun).__name__} {fun!r}")

    def find(*args: Any, **kwargs: Any) -> FirstNan | None:
        given = by_place(args, kwargs)
        numbers, names = float_places("find_nan", given)
        for place, value in given.items():
            if any(map(_has_nan, leaves_of(value))):
                return FirstNan(f"argument {place!r}", "input", False, ())
        origins = _Origins()
        gradient = value_and_grad(fun, numbers, argnames=names)
        with spied(origins), set_stance("force_eager"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gradient(*copied(args), **copied(kwargs))
        return origins.of_last

    return find


class _Origins:
    """A spy that finds, for each evaluated graph, the node that made a NaN of its outputs.

    Attributes:
        of_last: that of the graph evaluated last, which is the whole one; None where its outputs have no NaN.
    """

    def __init__(self) -> None:
        self.of_last: FirstNan | None = None
        self._of_region: dict[Graph, FirstNan] = {}  # in the first of its evaluations that made a NaN

    def __call__(self, graph: Graph, values: Mapping[Node, Any]) -> None:
        self.of_last = None
        node = next((output for output in graph.outputs if _has_nan(values[output])), None)
        if node is None:
            return
        while (before := next((o for o in reversed(node.inputs) if _has_nan(values[o])), None)) is not None:
            node = before  # what an array is given comes before the array, in which rows are stored in place
        if node.op is ops.INPUT:  # of a region, it is made outside
            self.of_last = FirstNan(f"`{node.name}`", "input", False, ())
            return
        inside = (self._of_region.get(region) for region in node.regions)
        self.of_last = next(filter(None, inside), None) or _first_nan(node, values)
        self._of_region.setdefault(graph, self.of_last)


def _first_nan(node: Node, values: Mapping[Node, Any]) -> FirstNan:
    location, value = node.users_location, values[node]
    where = "the function" if location is None else f"line {location.line}: {location.text.strip()}"
    operands: list[Any] = [values[o] if isinstance(o, Node) else o for o in node.operands]
    if not isinstance(value, tuple) and np.ndim(value):
        at = tuple(np.argwhere(np.isnan(value))[0])
        operands = [x[at] if np.shape(x) == np.shape(value) else x for x in operands]
    name = node.attrs.get("target", node.op.name)
    return FirstNan(where, name, node.silent, tuple(x for x in operands if isinstance(x, _NUMBERS)))


_NUMBERS = (bool, int, float, complex, np.ndarray, np.generic)


def is_float(value: Any) -> bool:
    """Whether it is a float or an array of floats."""
    return isinstance(value, float) or (isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f")


def _has_nan(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_nan, value))
    return isinstance(value, float | complex | np.ndarray | np.generic) and bool(
        np.asarray(value).dtype.kind in "fc" and np.isnan(value).any()
    )


__all__ = [
    "STEPS", "FirstNan", "GradientErrors", "by_place", "check_grads", "find_nan", "float_places", "gradient_errors",
    "is_float",
]  # fmt: skip
