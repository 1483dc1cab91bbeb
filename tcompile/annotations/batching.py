"""Batches of calls: ``vmap``, and what the Jacobians are made of.

Input: a function of one example, as it stands in the notebook, and arrays of examples.
Output: functions of arrays that hold all examples.
Why: a function that is written for one example is called once for all of them. Capture follows it with stand-ins for
one example, and computes all examples in each operation (``capture.semantics.special.batching``). Where that cannot be,
the function is called for one example after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tcompile.annotations.derivatives import compiled, kept_with
from tcompile.annotations.trees import axis_of, mapped_with_axes, rebuilt
from tcompile.errors import InvalidArgument, InvalidType

_Function = Callable[..., Any]


def vmap(fun: _Function, in_axes: Any = 0, out_axes: Any = 0, chunk_size: int | None = None) -> _Function:
    """A function of many examples, from a function of one.

    ``vmap(fun)(xs)`` is ``np.stack([fun(x) for x in xs])``, with the same values up to rounding, dtypes and effects.
    Where ``fun`` can be captured as a whole, each of its operations computes all examples at once, and a loop that a
    test may end runs once for each example. A function with effects or graph breaks is called for each example in turn.

    Parameters
    ----------
    fun : callable
        A function of one example: of arrays, numbers, or tuples, lists and dicts of them.
    in_axes : int, None, or a tuple of these
        The axis of each argument that counts the examples; None for an argument that all examples share. An int holds
        for all positional arguments. For an argument that is a container, a container of axes of the same structure is
        possible. Arguments that are passed by name have the axis 0.
    out_axes : int or container of ints
        The axis of each result that counts the examples.
    chunk_size : int, optional
        So many examples are computed at once, which bounds the memory; by default all of them.

    Returns
    -------
    callable
        A function of the same arguments. Numbers that ``fun`` returns become arrays.

    Raises
    ------
    InvalidArgument, InvalidType
        Where an axis does not exist, or arguments have different numbers of examples: the text names both.

    Examples
    --------
    >>> import numpy as np, tcompile
    >>> rows = np.arange(6.0).reshape(2, 3)
    >>> tcompile.vmap(lambda x: x / np.sum(x))(rows + 1)
    array([[0.16666667, 0.33333333, 0.5       ],
           [0.26666667, 0.33333333, 0.4       ]])
    >>> tcompile.vmap(np.dot, in_axes=(0, None))(rows, np.ones(3))
    array([ 3., 12.])
    """
    if not callable(fun):
        raise InvalidType(f"vmap: fun must be callable, got {type(fun).__name__} {fun!r}")
    _check_axes("in_axes", in_axes, True)
    _check_axes("out_axes", out_axes, False)
    if chunk_size is not None and (isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size < 1):
        raise InvalidArgument(f"vmap: chunk_size must be a positive int or None, got {chunk_size!r}")

    def over_examples(*args: Any, **kwargs: Any) -> Any:
        axes = axes_of(in_axes, args)
        count = examples(args, axes, kwargs)
        if chunk_size is None or count <= chunk_size:
            return batched(fun, args, axes, kwargs, out_axes, count)
        parts = []
        for start in range(0, count, chunk_size):
            stop = min(start + chunk_size, count)
            some = tuple([_cut(arg, axis, start, stop) for arg, axis in zip(args, axes, strict=True)])
            named = {name: _cut(arg, 0, start, stop) for name, arg in kwargs.items()}
            parts.append(batched(fun, some, axes, named, out_axes, stop - start))
        return _joined(parts, out_axes)

    # An argument that is passed by name has the axis 0, a default has none: by position they would have another one.
    return compiled(
        over_examples, fun, "vmap", (repr(in_axes), repr(out_axes), chunk_size), in_axes == 0, defaults=False
    )


def _check_axes(name: str, axes: Any, may_be_none: bool) -> None:
    if isinstance(axes, tuple | list):
        for axis in axes:
            _check_axes(name, axis, may_be_none)
    elif isinstance(axes, Mapping):
        for axis in axes.values():
            _check_axes(name, axis, may_be_none)
    elif isinstance(axes, bool) or not (isinstance(axes, int) or (may_be_none and axes is None)):
        wanted = "ints or None" if may_be_none else "ints"
        raise InvalidType(f"vmap: {name} must hold {wanted}, got {axes!r}")


# -- what capture gives a meaning of its own ---------------------------------------------------------------------------
def batched(
    fun: _Function, args: tuple[Any, ...], axes: tuple[Any, ...], kwargs: Mapping[str, Any], out_axes: Any, count: int
) -> Any:
    """The results of ``count`` examples, in one call."""

    def make() -> _Function:
        def each(
            fun: _Function, args: tuple[Any, ...], axes: tuple[Any, ...], kwargs: Mapping[str, Any], out_axes: Any,
            count: int,
        ) -> Any:  # fmt: skip
            return in_turn(fun, args, axes, kwargs, out_axes, count)

        return compiled(each, fun, "each")

    return kept_with(fun, "each", make)(fun, args, axes, kwargs, out_axes, count)


def in_turn(
    fun: _Function, args: tuple[Any, ...], axes: tuple[Any, ...], kwargs: Mapping[str, Any], out_axes: Any, count: int
) -> Any:
    """The same by a loop over the examples."""
    if count == 0:
        return _cut(_stacked([_called(fun, args, axes, kwargs, None)], out_axes), out_axes, 0, 0)
    return _stacked([_called(fun, args, axes, kwargs, number) for number in range(count)], out_axes)


def _called(
    fun: _Function, args: tuple[Any, ...], axes: tuple[Any, ...], kwargs: Mapping[str, Any], number: int | None
) -> Any:
    """``fun`` of one example; None: of zeros, for the structure of its result."""
    given = [example(arg, axis, number) for arg, axis in zip(args, axes, strict=True)]
    return fun(*given, **{name: example(arg, 0, number) for name, arg in kwargs.items()})


# -- arguments and results as trees ------------------------------------------------------------------------------------
def axes_of(in_axes: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The axes of each positional argument."""
    if not isinstance(in_axes, tuple | list):
        return (in_axes,) * len(args)
    if len(in_axes) != len(args):
        raise InvalidArgument(f"vmap: in_axes has {len(in_axes)} axes, and the call passes {len(args)} positional args")
    return tuple(in_axes)


def examples(args: tuple[Any, ...], axes: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """The number of examples. Raises InvalidArgument where arguments have different ones, or none has any."""
    first, count = "", -1
    named = [(f"argument {i}", arg, axis) for i, (arg, axis) in enumerate(zip(args, axes, strict=True))]
    named += [(f"argument {name!r}", arg, 0) for name, arg in kwargs.items()]
    for name, arg, axis in named:
        for leaf, place in _leaves(name, arg, axis):
            shape = np.shape(leaf)
            if not -len(shape) <= place < len(shape):
                raise InvalidArgument(f"vmap: {name} has the shape {shape}, and no axis {place}")
            if count >= 0 and shape[place] != count:
                raise InvalidArgument(
                    f"vmap: {name} has {shape[place]} examples along axis {place}, and {first} has {count}"
                )
            first, count = name, shape[place]
    if count < 0:
        raise InvalidArgument("vmap: no argument has an axis of examples")
    return count


def _leaves(name: str, tree: Any, axes: Any) -> list[tuple[Any, int]]:
    """The arrays in a tree that have an axis of examples, with that axis."""
    if axes is None:
        return []
    if isinstance(tree, tuple | list):
        inner = _inner(name, axes, len(tree))
        return [leaf for item, axis in zip(tree, inner, strict=True) for leaf in _leaves(name, item, axis)]
    if isinstance(tree, dict):
        if isinstance(axes, dict) and axes.keys() != tree.keys():
            raise InvalidArgument(f"vmap: {name} has the keys {list(tree)}, and in_axes {list(axes)}")
        parts = [(item, axis_of(axes, key)) for key, item in tree.items()]
        return [leaf for item, axis in parts for leaf in _leaves(name, item, axis)]
    if not isinstance(axes, int):
        raise InvalidArgument(f"vmap: {name} is one array, and in_axes has {axes!r} for it")
    return [(tree, axes)]


def _inner(name: str, axes: Any, size: int) -> Any:
    if not isinstance(axes, tuple | list):
        return (axes,) * size
    if len(axes) != size:
        raise InvalidArgument(f"vmap: {name} has {size} items, and in_axes {len(axes)} axes for it")
    return axes


def example(tree: Any, axes: Any, number: int | None) -> Any:
    """One example of the arrays in a tree: a view of each, or a scalar; for None zeros."""

    def one(array: Any, axis: int) -> Any:
        rows = np.moveaxis(np.asarray(array), axis, 0)
        return rows[number] if number is not None else np.zeros(rows.shape[1:], rows.dtype)[()]

    return mapped_with_axes(one, tree, axes)


def _cut(tree: Any, axes: Any, start: int, stop: int) -> Any:
    """Some of the examples of the arrays in a tree."""

    def some(array: Any, axis: int) -> Any:
        return np.moveaxis(np.moveaxis(np.asarray(array), axis, 0)[start:stop], 0, axis)

    return mapped_with_axes(some, tree, axes)


def _stacked(results: list[Any], axes: Any) -> Any:
    """The results of all examples as arrays."""
    return _together(results, axes, np.stack, 1)


def _joined(results: list[Any], axes: Any) -> Any:
    """The results of chunks of examples as arrays."""
    return _together(results, axes, np.concatenate, 0)


def _together(results: list[Any], axes: Any, join: _Function, more: int) -> Any:
    first = results[0]
    if isinstance(first, tuple | list):
        columns = [[result[i] for result in results] for i in range(len(first))]
        inner = _inner("a result", axes, len(first))
        return rebuilt(
            first, [_together(column, axis, join, more) for column, axis in zip(columns, inner, strict=True)]
        )
    if isinstance(first, dict):
        return {key: _together([result[key] for result in results], axis_of(axes, key), join, more) for key in first}
    ndim = np.ndim(first) + more
    if not -ndim <= axes < ndim:
        raise InvalidArgument(f"vmap: out_axes has {axes}, and a result has {ndim} axes with that of the examples")
    return np.ascontiguousarray(join(results, axis=axes))


__all__ = ["batched", "example", "in_turn", "vmap"]
