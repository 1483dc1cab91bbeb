"""Derivatives as they run in plain Python, and their check by finite differences.

Input: calls of ``reverse``, ``forward``, ``rows`` and ``columns`` that no compiled function has made its own.
Output: what they give, by the reference evaluation of the same graph, or by a compiled graph of one control-flow path;
or the error that says why there is none.
Why: a stance or a graph break around a gradient must not change it.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.annotations.batching import vmap
from tcompile.annotations.custom_rules import custom_jvp, custom_vjp
from tcompile.annotations.derivatives import (
    COMPILE,
    PLAIN,
    checkpoint,
    copied,
    forward,
    grad,
    hvp,
    jvp,
    kept_with,
    linearize,
    product,
    stop_gradient,
    value_and_grad,
    vjp,
    weighed,
)
from tcompile.annotations.jacobians import hessian, jacfwd, jacrev
from tcompile.annotations.trees import leaves_of, mapped
from tcompile.api import compile, compile_with
from tcompile.backends import find_backend, why_no_native
from tcompile.errors import DerivativeError, InvalidArgument, InvalidType, RecompileLimitError, Unsupported
from tcompile.graph import Graph, Node, ops
from tcompile.graph.evaluate import run
from tcompile.graph.ops.checks import OtherPath
from tcompile.graph.ops.scalar_loop import Replayed
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.polls import Changed
from tcompile.records import dataclass
from tcompile.runtime import debuggers
from tcompile.runtime.cache import CompileSettings
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


@dataclass(frozen=True)
class FirstNan:
    """Where the first NaN of a function or its derivative comes from.

    Attributes:
        where: the user's line.
        operation: the operation that made it.
        backward: whether it belongs to the derivative.
        operands: the operands at the place of the first NaN; those of other shapes as they are.
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

    It returns a ``FirstNan``, or None where there is no NaN. All arguments that are floats, or hold them, are
    differentiated. The graph is evaluated operation by operation; a loop is one of them.

    >>> import numpy as np, tcompile
    >>> found = tcompile.find_nan(np.linalg.norm)(np.zeros(3))
    >>> found.backward
    True
    """
    if not callable(fun):
        raise InvalidType(f"find_nan: fun must be callable, got {type(fun).__name__} {fun!r}")

    def find(*args: Any) -> FirstNan | None:
        numbers = tuple(number for number, arg in enumerate(args) if _is_differentiable(arg))
        if not numbers:
            raise InvalidType("find_nan: no argument is a float or an array of floats")
        for number, arg in enumerate(args):
            if any(map(_has_nan, leaves_of(arg))):
                return FirstNan(f"argument {number}", "input", False, ())
        known: dict[Node, Any] = {}
        found: list[FirstNan] = []

        def spy(node: Node, value: Any) -> None:
            known[node] = value
            if not found and _has_nan(value) and not any(_has_nan(known.get(o)) for o in node.inputs):
                found.append(_first_nan(node, value, [known.get(o) for o in node.inputs]))

        held, _conditions.spy = _conditions.spy, spy
        try:
            with set_stance("force_eager"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value_and_grad(fun, numbers)(*copied(args))
        finally:
            _conditions.spy = held
        return found[0] if found else None

    return find


def _is_differentiable(arg: Any) -> bool:
    try:
        _check_float(arg, "")
    except DerivativeError:
        return False
    return True


def _has_nan(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_has_nan, value))
    return isinstance(value, float | complex | np.ndarray | np.generic) and bool(
        np.asarray(value).dtype.kind in "fc" and np.isnan(value).any()
    )


def _first_nan(node: Node, value: Any, operands: Sequence[Any]) -> FirstNan:
    where = "the function" if node.location is None else f"line {node.location.line}: {node.location.text.strip()}"
    if node.op is ops.INPUT:
        return FirstNan(f"`{node.name}`", "input", False, ())
    name = node.attrs.get("target", node.op.name)
    shown: list[Any] = list(operands)
    if not isinstance(value, tuple) and np.ndim(value):
        at = tuple(np.argwhere(np.isnan(value))[0])
        shown = [x[at] if np.shape(x) == np.shape(value) else x for x in shown]
    return FirstNan(where, name, node.silent, tuple(shown))


# -- in plain Python ---------------------------------------------------------------------------------------------------
_RAISES = ("[operation-raises]", "[raises]")


def _plainly(kind: _Function, function: _Function, *rest: Any) -> Any:
    """What ``kind`` gives where no compiled function calls it."""
    _check_arguments(kind, function, rest)
    conditions: list[str] = []
    held, _conditions.seen = _conditions.seen, conditions
    try:
        with set_stance("default"), debuggers.ignored():
            answer = _answer(kind, function, rest)
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


def _answer(kind: _Function, function: _Function, rest: tuple[Any, ...]) -> Any:
    """The same. Raises Unsupported where there is no graph, and ``_Failed`` where an operation raises."""
    graphs = kept_with(function, kind, functools.partial(_Graphs, kind, function))
    if not graphs.branches:
        try:
            return graphs.whole(function, *rest)
        except RecompileLimitError:
            return graphs.anew(follows_path=False)(function, *rest)
        except _Failed as failed:
            if not isinstance(failed.error, Replayed | Changed):
                raise
            return _by_path(graphs, function, rest)  # where a loop of its own is left to Python
        except Unsupported as error:
            answer = _by_path(graphs, function, rest)
            graphs.branches = True
            why = _reported(str(error)).replace("\n", " ")
            bus.emit(FellBack(reason="A derivative follows one control-flow path at a time", detail=why))
            return answer
    return _by_path(graphs, function, rest)


def _by_path(graphs: _Graphs, function: _Function, rest: tuple[Any, ...]) -> Any:
    """The answer of a graph that follows the path that this call takes through the function's branches.

    A few paths have compiled graphs, each of which checks that a call takes its path. Any other is followed anew.
    """
    if _conditions.inside:  # plain Python repeats what compiled code has begun, for its warnings and exceptions
        return graphs.anew(follows_path=True)(function, *rest)
    _conditions.inside = True
    try:
        for path in graphs.paths():
            try:
                return path(function, *rest)
            except (OtherPath, RecompileLimitError):
                continue
        return graphs.anew(follows_path=True)(function, *rest)
    finally:
        _conditions.inside = False


_MOST_PATHS = 8  # that are compiled, for each function
_MOST_OPS = 4000  # of a graph that becomes machine code: compiling a longer one takes seconds


class _Graphs:
    """The compiled functions that give one kind of derivative of all functions with one code.

    ``whole`` follows no branch on a value, ``paths()`` follow one path each. ``branches``: there are such branches.
    """

    def __init__(self, kind: _Function, function: _Function) -> None:
        self.kind = kind
        self.whole = self._made(_reference, False)
        self.branches = False
        self._paths: list[_Function] = []

    def paths(self) -> Iterator[_Function]:
        """Those of the paths that were taken, and then new ones, as many as are kept."""
        for number in range(_MOST_PATHS):
            if number == len(self._paths):
                self._paths.append(self._made(_compiled, True))
            yield self._paths[number]

    def anew(self, follows_path: bool) -> _Function:
        """A new one, for one call. Its graph is evaluated operation by operation."""
        return self._made(_reference, follows_path)

    def _made(self, backend: _Function, follows_path: bool) -> _Function:
        kind = self.kind

        def evaluated(function: _Function, *given: Any) -> Any:
            return kind(function, *given)

        evaluated.__code__ = evaluated.__code__.replace()  # entries belong to a code object
        made: _Function = compile_with(
            evaluated, CompileSettings(fullgraph=True, backend=backend, follows_path=follows_path)
        )
        return made


class _Failed(BaseException):
    """An operation of a graph has raised an exception. It is no Exception, for which compiled code begins again."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Conditions(threading.local):
    """The floating-point conditions that a graph has met, by name.

    Attributes:
        inside: whether a path through branches is being followed.
        spy: what is called with each value of a graph that is evaluated.
    """

    seen: list[str] | None = None
    inside: bool = False
    spy: Callable[[Node, Any], None] | None = None


_conditions = _Conditions()


def _report(conditions: Sequence[str]) -> None:
    """What NumPy does about floating-point conditions."""
    for name in dict.fromkeys(conditions):
        key = {"divide by zero": "divide", "overflow": "over", "underflow": "under", "invalid value": "invalid"}[name]
        mode = np.geterr()[key]  # type: ignore[literal-required]
        if mode == "raise":
            raise FloatingPointError(f"{name} encountered")
        if mode == "warn":
            text = f"{name} encountered in a function that is differentiated"
            warnings.warn(text, RuntimeWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """The stack level, seen from the caller, of the first function that is not ours."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "tcompile":
        level, frame = level + 1, frame.f_back
    return level


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
                for node, value in zip(graph.inputs, args if _conditions.spy else (), strict=False):
                    _conditions.spy(node, value)  # type: ignore[misc]
                return run(graph, args, spy=_conditions.spy)
            except Exception as error:
                raise _Failed(error) from None

    return evaluate


def _compiled(graph: Graph, inputs: Sequence[Any]) -> _Function:
    """A backend that makes machine code of graphs that are not too long."""
    from tcompile import transforms  # with the first path, not with tcompile

    if graph.op_count > _MOST_OPS or why_no_native() is not None:
        return _reference(graph, inputs)
    made: _Function = find_backend("llvm").compiler({})(transforms.run(graph, None), inputs)
    return made


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
        if value.dtype.kind not in "fc":
            raise DerivativeError(f"{name} has the dtype {value.dtype}; pass floats, as by {name}.astype(float)")
    elif isinstance(value, complex):
        raise DerivativeError(f"{name} is the complex number {value!r}: pass np.complex128{value!r}")
    elif not isinstance(value, float):
        raise DerivativeError(f"{name} is a {type(value).__name__}; pass a float or an array of floats")


PLAIN.append(_plainly)
COMPILE.append(compile)

__all__ = [
    "FirstNan", "check_grads", "checkpoint", "custom_jvp", "custom_vjp", "find_nan", "grad", "hessian", "hvp", "jacfwd",
    "jacrev", "jvp",
    "linearize", "stop_gradient", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
