"""Annotations that say how capture treats calls of a function.

Input: functions from the user.
Output: for a function that captured code calls, its ``Treatment``.
Why: in plain Python nothing changes, each of these returns the function itself. ``capture.semantics.special.treated``
defines the treatments. The table holds functions weakly, so a cell that runs again leaves nothing behind.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from tcompile.errors import InvalidArgument, InvalidType
from tcompile.records import dataclass

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Treatment:
    """How calls of a function are captured.

    ``replacement`` is the function that a ``substitute`` inlines. ``flag`` says whether it folds constants; for a
    ``policy`` (a function that ``error_on_graph_break`` decorates), whether breaks are errors. For a ``frame`` (the
    result of ``disable(recursive=False)``), ``replacement`` is the function whose frame runs in plain Python.
    """

    kind: Literal["allow", "disallow", "constant", "region", "substitute", "policy", "frame"]
    replacement: Callable[..., Any] | None = None
    flag: bool = False


_table: dict[int, tuple[Callable[[], Any], Treatment]] = {}


def treatment_of(function: Any) -> Treatment | None:
    """Returns how calls of ``function`` are captured; None without an annotation."""
    found = _table.get(id(function)) if _table else None
    return found[1] if found is not None and found[0]() is function else None


def is_compiled_by_torch(function: Any) -> bool:
    """Whether ``torch.compile`` or ``torch.compiler.disable`` made a function: it is neither compiled nor followed."""
    return getattr(function, "_torchdynamo_wrapper_id", None) == id(function)


def allow_in_graph(fn: Any) -> Any:
    """Makes a call of ``fn`` one operation of the graph: capture does not inline it, and calls it with real arrays.

    It is called once more while the code is compiled, to see what it returns. A call that returns another dtype or
    shape runs in plain Python.

    Parameters
    ----------
    fn : callable, or list or tuple of callables
        It must depend on its arguments alone, change nothing, and return new arrays, NumPy scalars, or a tuple or list
        of these.

    Returns
    -------
    callable
        ``fn``, so that it is a decorator.

    Raises
    ------
    InvalidType
        For something that is no function.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> @allow_in_graph
    ... def ranks(x):
    ...     return np.array(sorted(range(len(x)), key=lambda i: x[i]))
    >>> tcompile.compile(lambda x: ranks(x * -1) + 1, fullgraph=True)(np.array([0.5, 2.0, 1.0]))
    array([2, 3, 1])
    """
    return _treat("allow_in_graph", fn, Treatment("allow"))


def disallow_in_graph(fn: Any) -> Any:
    """Makes a call of ``fn`` a graph break: the call itself runs in plain Python.

    Parameters
    ----------
    fn : callable, or list or tuple of callables
        The function, which may be NumPy's own.

    Returns
    -------
    callable
        ``fn``, so that it is a decorator.

    Raises
    ------
    InvalidType
        For something that is no function.
    """
    return _treat("disallow_in_graph", fn, Treatment("disallow"))


def assume_constant_result(fn: F) -> F:
    """Declares the result of ``fn`` constant: it is called once, during compilation, and the result is kept.

    Whether ``fn`` really returns the same is not checked.

    Parameters
    ----------
    fn : callable
        The function. The arguments of a call must be known while code is compiled.

    Returns
    -------
    callable
        ``fn``, so that it is a decorator.

    Raises
    ------
    InvalidType
        For something that is no function.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> @assume_constant_result
    ... def order():
    ...     print("read")
    ...     return 3
    >>> f = tcompile.compile(lambda x: x * order(), fullgraph=True)
    >>> f(np.ones(2)), f(np.zeros(2))
    read
    (array([3., 3.]), array([0., 0.]))
    """
    return _treat("assume_constant_result", fn, Treatment("constant"))  # type: ignore[no-any-return]


def nested_compile_region(fn: F) -> F:
    """Makes ``fn`` a region: it is captured once for each kind of arguments, and calls of one kind share its graph.

    For a function called many times, like a layer, this keeps graphs and compile times small. What ``fn`` computes is
    not fused with the code around it.

    Parameters
    ----------
    fn : callable
        Its array results must be new arrays, and it may change nothing outside itself; else the call is a graph break.

    Returns
    -------
    callable
        ``fn``, so that it is a decorator.

    Raises
    ------
    InvalidType
        For something that is no function.
    """
    return _treat("nested_compile_region", fn, Treatment("region"))  # type: ignore[no-any-return]


def substitute_in_graph(original: Callable[..., Any], *, can_constant_fold_through: bool = False) -> Callable[[F], F]:
    """Decorates a Python function that captured code inlines in place of ``original``:
    ``@substitute_in_graph(original)``.

    For functions without Python code, which capture cannot look into. The Python function must do the same.

    Parameters
    ----------
    original : callable
        The function that is called.
    can_constant_fold_through : bool
        Whether ``original`` itself is called while compiling where all arguments are constants.

    Returns
    -------
    callable
        The decorator.

    Raises
    ------
    InvalidType, InvalidArgument
        Where one of the two is no function, or cannot be called like the other.

    Examples
    --------
    >>> import math, numpy as np
    >>> @substitute_in_graph(math.dist)
    ... def dist(p, q, /):
    ...     return np.sqrt(((p - q) ** 2).sum())
    """
    if not callable(original):
        raise InvalidType(f"substitute_in_graph: original must be a function, got {_shown(original)}")
    if not isinstance(can_constant_fold_through, bool):
        got = _shown(can_constant_fold_through)
        raise InvalidType(f"substitute_in_graph: can_constant_fold_through must be bool, got {got}")

    def substitute(function: F) -> F:
        if not isinstance(function, types.FunctionType):
            raise InvalidType(f"substitute_in_graph decorates a Python function, got {_shown(function)}")
        _check_same_calls(original, function)
        set_treatment(original, Treatment("substitute", function, can_constant_fold_through))
        return function

    return substitute


def _treat(name: str, fn: Any, treatment: Treatment) -> Any:
    several = isinstance(fn, list | tuple) and treatment.kind in ("allow", "disallow")
    functions = list(fn) if several else [fn]
    for function in functions:
        if isinstance(function, type) or not callable(function):
            raise InvalidType(f"{name} takes a function, got {_shown(function)}")
        if isinstance(function, types.MethodType):
            raise InvalidType(f"{name} takes a function, got a bound method: give {function.__func__.__qualname__}")
    for function in functions:
        inner = getattr(type(function), "__tcompile_inline__", None)  # already compiled: the wrapped function, too
        for one in (function, *((inner(function),) if inner is not None else ())):
            set_treatment(one, treatment)
    return fn


def set_treatment(function: Any, treatment: Treatment) -> None:
    """Records how calls of ``function`` are captured from now on."""
    key, table = id(function), _table  # bound here: at exit the module's globals are cleared first

    def forget(reference: Any) -> None:
        held = table.get(key)
        if held is not None and held[0] is reference:
            del table[key]

    try:
        reference: Callable[[], Any] = weakref.ref(function, forget)
    except TypeError:
        reference = lambda: function  # noqa: E731  # kept alive: it cannot be referred to in any other way
    _table[key] = (reference, treatment)


def _check_same_calls(original: Callable[..., Any], function: types.FunctionType) -> None:
    """Raises InvalidArgument if a call that fits ``original`` would not fit ``function``."""
    try:
        theirs = list(inspect.signature(original).parameters.values())
    except (ValueError, TypeError):
        return  # a built-in without a signature
    mine = list(inspect.signature(function).parameters.values())
    fewest, most = _positions(mine)
    least, longest = _positions(theirs)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in mine)
    named = {p.name for p in mine if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    missing = [p.name for p in theirs if p.kind is p.KEYWORD_ONLY and p.name not in named and not takes_any]
    if fewest > least or most < longest or missing:
        raise InvalidArgument(
            f"substitute_in_graph: {function.__qualname__}{inspect.signature(function)} cannot be called like "
            f"{getattr(original, '__qualname__', original)}{inspect.signature(original)}"
        )


def _positions(parameters: Sequence[inspect.Parameter]) -> tuple[int, float]:
    """Returns the minimum and maximum number of positional arguments."""
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return sum(p.default is p.empty for p in plain), float("inf") if rest else len(plain)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


__all__ = [
    "Treatment", "allow_in_graph", "assume_constant_result", "disallow_in_graph", "is_compiled_by_torch",
    "nested_compile_region",
    "set_treatment", "substitute_in_graph", "treatment_of",
]  # fmt: skip
