"""Calls of a user's Python function as one operation.

Input: nothing.
Output: a row of the op table.
Why: allowed functions stay in the graph without being captured.

``python_call``: the attribute ``target`` names the function, ``args`` and ``kwargs`` hold its arguments with
``Slot(i)`` standing for operand ``i``, as in a ``call``. The function's results are checked against ``expected``: a row
``(dtype, shape, memory order, scalar)`` for each. ``container`` is "" for one bare result, else "tuple" or "list". The
node's type is a tuple; ``get`` reads it.

Functions are referred to weakly, by a unique name: a graph does not keep its user's objects alive.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tcompile.errors import GraphError
from tcompile.graph.dtypes import as_dtype
from tcompile.graph.op import Aliasing, Op, define
from tcompile.graph.ops.opaque import fill

_functions: dict[str, Callable[[], Any]] = {}
_names: dict[int, str] = {}
_numbers = itertools.count()


def name_of(function: Callable[..., Any]) -> str:
    """The unique name of ``function`` in operations; the same one each time."""
    key = id(function)
    known = _names.get(key)
    if known is not None and _functions[known]() is function:
        return known
    name = f"{getattr(function, '__name__', 'function')}_{next(_numbers)}"

    functions, names = _functions, _names  # bound here, since at exit the module's globals die first

    def forget(reference: Any) -> None:
        functions.pop(name, None)
        if names.get(key) == name:
            del names[key]

    try:
        _functions[name] = weakref.ref(function, forget)
    except TypeError:  # it does not support weak references
        _functions[name] = lambda: function
    _names[key] = name
    return name


def call_python(*operands: Any, target: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]) -> Any:
    """Calls the function on real arrays. Raises GraphError where it was garbage-collected."""
    held = _functions.get(target)
    function = held() if held is not None else None
    if function is None:
        raise GraphError(f"python_call target {target} was garbage-collected")
    given = [np.asarray(value) if isinstance(value, np.generic) else value for value in operands]
    return function(*fill(args, given), **{key: fill(value, given) for key, value in kwargs})


def _python_call(
    *operands: Any, expected: tuple[tuple[Any, ...], ...], container: str, target: str, **attrs: Any
) -> tuple[Any, ...]:
    result = call_python(*operands, target=target, **attrs)
    if type(result).__name__ != container and container:
        raise GraphError(f"{target} returned {type(result).__name__} where {container} was seen")
    results: tuple[Any, ...] = tuple(result) if container else (result,)
    if len(results) != len(expected):
        raise GraphError(f"{target} returned {len(results)} results where {len(expected)} were seen")
    for value, (dtype, shape, order, scalar) in zip(results, expected, strict=True):
        kind = isinstance(value, np.generic) if scalar else type(value) is np.ndarray
        if not kind or value.dtype != as_dtype(dtype) or value.shape != shape:
            raise GraphError(f"{target} returned {_shown(value)} where {dtype}{list(shape)} was seen")
        if not scalar and not value.transpose(order).flags.c_contiguous:
            raise GraphError(f"{target} returned an array in another memory order")
        if any(isinstance(x, np.ndarray) and np.may_share_memory(value, x) for x in operands):
            raise GraphError(f"{target} returned an argument, or a view of one")
    return results


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return f"{type(value).__name__} {value.dtype}{list(value.shape)}"
    return type(value).__name__


PYTHON_CALL = define(Op("python_call", "opaque", None, None, _python_call, memory=Aliasing.MAY_ALIAS))
