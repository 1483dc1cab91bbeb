"""Derivatives as they run in plain Python.

Input: calls of ``reverse``, ``forward``, ``rows`` and ``columns`` that no compiled function has made its own.
Output: what they give, by the reference evaluation of the same graph, or by a compiled graph that splits long loops, or
follows one control-flow path; or the error that says why there is none.
Why: a stance or a graph break around a gradient must not change it.
"""

from __future__ import annotations

import contextlib
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
    FUNCTIONS,
    PLAIN,
    checkpoint,
    forward,
    grad,
    hvp,
    jvp,
    kept_with,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
)
from tcompile.annotations.jacobians import hessian, jacfwd, jacrev
from tcompile.api import compile, compile_with
from tcompile.backends import find_backend, why_no_native
from tcompile.errors import DerivativeError, RecompileLimitError, Unsupported
from tcompile.graph import Graph
from tcompile.graph.evaluate import Spy, run
from tcompile.graph.ops.checks import OtherPath
from tcompile.graph.ops.scalar_loop import Replayed
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.polls import Changed
from tcompile.runtime import debuggers
from tcompile.runtime.cache import CompileSettings
from tcompile.runtime.dispatch import CompiledFunction
from tcompile.stance import set_stance

_Function = Callable[..., Any]


# -- in plain Python ---------------------------------------------------------------------------------------------------
_RAISES = ("[operation-raises]", "[raises]")


def _plainly(kind: _Function, function: _Function, *rest: Any) -> Any:
    """What ``kind`` gives where no compiled function calls it."""
    _check_arguments(kind, function, rest)
    conditions: list[str] = []
    held, _state.seen = _state.seen, conditions
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
        _state.seen = held
    _report(conditions)
    return answer


def _answer(kind: _Function, function: _Function, rest: tuple[Any, ...]) -> Any:
    """The same. Raises Unsupported where there is no graph, and ``_Failed`` where an operation raises."""
    graphs = kept_with(function, kind, functools.partial(_Graphs, kind, function))
    if not graphs.branches:
        if graphs.are_long:
            return _by_segments(graphs, function, rest)
        try:
            return graphs.whole(function, *rest)
        except RecompileLimitError:
            return graphs.anew()(function, *rest)
        except _Failed as failed:
            if not isinstance(failed.error, Replayed | Changed):
                raise
            return _by_segments(graphs, function, rest)
        except Unsupported as error:
            answer = _by_path(graphs, function, rest)
            graphs.branches = True
            why = _reported(str(error)).replace("\n", " ")
            bus.emit(FellBack(reason="A derivative follows one control-flow path at a time", detail=why))
            return answer
    return _by_path(graphs, function, rest)


def _by_segments(graphs: _Graphs, function: _Function, rest: tuple[Any, ...]) -> Any:
    """The answer of the graph that splits long loops; of a path, where a loop is left to Python there, too."""
    # Where plain Python repeats a compiled graph, for its warnings and exceptions, and for a spy, it is evaluated.
    evaluates = _state.split is graphs or _state.spy is not None
    held, _state.split = _state.split, graphs
    try:
        made = graphs.anew(splits_exit_loops=True) if evaluates else graphs.split
        answer = made(function, *rest)
        graphs.are_long = True
        return answer
    except (RecompileLimitError, Unsupported, _Failed) as error:
        if isinstance(error, _Failed) and not isinstance(error.error, Replayed | Changed):
            raise
        return _by_path(graphs, function, rest)
    finally:
        _state.split = held


def _by_path(graphs: _Graphs, function: _Function, rest: tuple[Any, ...]) -> Any:
    """The answer of a graph that follows the path that this call takes through the function's branches.

    A few paths have compiled graphs, each of which checks that a call takes its path. Any other is followed anew.
    """
    if _state.inside:  # plain Python repeats what compiled code has begun, for its warnings and exceptions
        return graphs.anew(follows_path=True)(function, *rest)
    _state.inside = True
    try:
        for path in graphs.paths():
            try:
                return path(function, *rest)
            except (OtherPath, RecompileLimitError):
                continue
        return graphs.anew(follows_path=True)(function, *rest)
    finally:
        _state.inside = False


_MOST_PATHS = 8  # that are compiled, for each function
_MOST_OPS = 4000  # of a graph that becomes machine code: compiling a longer one takes seconds


class _Graphs:
    """The compiled functions that give one kind of derivative of all functions with one code.

    ``whole`` follows no branch on a value, nor does ``split``, which splits long loops. ``paths()`` follow one path
    each. ``branches``: there are such branches; ``are_long``: a loop has needed more rows than there is room for.
    """

    def __init__(self, kind: _Function, function: _Function) -> None:
        self.kind = kind
        self.whole = self._made(_reference, False)
        self.branches = self.are_long = False
        self._paths: list[_Function] = []

    def paths(self) -> Iterator[_Function]:
        """Those of the paths that were taken, and then new ones, as many as are kept."""
        for number in range(_MOST_PATHS):
            if number == len(self._paths):
                self._paths.append(self._made(_compiled, True))
            yield self._paths[number]

    @functools.cached_property
    def split(self) -> _Function:
        """The derivative with loops in segments, where their rows may have no room."""
        return self._made(_compiled, False, splits_exit_loops=True)

    def anew(self, follows_path: bool = False, splits_exit_loops: bool = False) -> _Function:
        """A new one, for one call. Its graph is evaluated operation by operation."""
        return self._made(_reference, follows_path, splits_exit_loops)

    def _made(self, backend: _Function, follows_path: bool, splits_exit_loops: bool = False) -> _Function:
        kind = self.kind

        def evaluated(function: _Function, *given: Any) -> Any:
            return kind(function, *given)

        evaluated.__code__ = evaluated.__code__.replace()  # entries belong to a code object
        settings = CompileSettings(
            fullgraph=True, backend=backend, follows_path=follows_path, splits_exit_loops=splits_exit_loops
        )
        made: _Function = compile_with(evaluated, settings)
        return made


class _Failed(BaseException):
    """An operation of a graph has raised an exception. It is no Exception, for which compiled code begins again."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _State(threading.local):
    """What holds for the derivatives that this thread evaluates.

    Attributes:
        seen: the floating-point conditions that a graph has met, by name.
        inside: whether a path through branches is being followed.
        split: those graphs whose ``split`` is running.
        spy: what is called with the values of each graph that is evaluated, and of its regions.
    """

    seen: list[str] | None = None
    inside: bool = False
    split: _Graphs | None = None
    spy: Spy | None = None


_state = _State()


@contextlib.contextmanager
def spied(spy: Spy) -> Iterator[None]:
    """Has ``spy`` called with the values of each graph that is evaluated for a derivative, in this thread."""
    held, _state.spy = _state.spy, spy
    try:
        yield
    finally:
        _state.spy = held


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
        seen = _state.seen
        with np.errstate(all="call", call=lambda name, flag: None if seen is None else seen.append(name)):
            try:
                return run(graph, args, spy=_state.spy)
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
FUNCTIONS.append(CompiledFunction)

__all__ = [
    "checkpoint", "custom_jvp", "custom_vjp", "grad", "hessian", "hvp", "jacfwd", "jacrev", "jvp", "linearize",
    "spied", "stop_gradient", "value_and_grad", "vjp", "vmap",
]  # fmt: skip
