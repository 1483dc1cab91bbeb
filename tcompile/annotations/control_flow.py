"""Control flow as functions: ``cond``, ``while_loop``, ``scan``, ``map`` and ``associative_scan`` in plain Python.

Input: a user's call.
Output: its plain result.
Why: importing tcompile must not load capture. ``capture.semantics.special.control_flow`` captures the same calls as one
node each; both give the same arrays.

Carried and scanned values are *trees* of arrays: an array or number, or a tuple, list or dict of trees. Inside a loop
every leaf is an array in C order, and numbers are 0-d arrays. A loop returns new arrays that alias nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tcompile.errors import InvalidArgument, InvalidType

Tree = Any
_NUMBERS = (bool, int, float, complex, np.generic)
COMBINE_MODES = ("pointwise", "generic")


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Calls ``true_fn(*operands)`` if ``pred`` holds, else ``false_fn(*operands)``; captured as one node of two
    branches.

    Parameters
    ----------
    pred : bool or ndarray
        The condition: a bool, or an array of one element.
    true_fn, false_fn : callable
        In a compiled function both must return new arrays of the same shapes and dtypes, or the call runs in plain
        Python.
    operands : tuple or list
        Their arguments.

    Returns
    -------
    object
        What the chosen function returns.

    Raises
    ------
    InvalidType
        Where an argument has the wrong kind.

    Examples
    --------
    >>> import numpy as np
    >>> cond(np.ones(3).sum() < 0, lambda x: -x, lambda x: x + 1, (np.ones(2),))
    array([2., 2.])
    """
    _check_callable("cond", true_fn=true_fn, false_fn=false_fn)
    if not isinstance(operands, tuple | list):
        raise InvalidType(f"cond: operands must be a tuple or list, got {type(operands).__name__}")
    if not isinstance(pred, bool | np.bool_) and not (isinstance(pred, np.ndarray) and pred.size == 1):
        raise InvalidType(f"cond: pred must be a bool or an array of one element, got {type(pred).__name__} {pred!r}")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried: Sequence[Tree]) -> tuple[Tree, ...]:
    """Runs ``while cond_fn(*carried): carried = body_fn(*carried)``, captured as one node of the graph.

    Parameters
    ----------
    cond_fn : callable
        Returns a bool or a boolean array of one element.
    body_fn : callable
        Returns a tuple or list that has the structure, shapes and dtypes of ``carried``.
    carried : tuple or list of trees
        The values before the first iteration.

    Returns
    -------
    tuple
        The last values, as new arrays.

    Raises
    ------
    InvalidType, InvalidArgument
        Where an argument or a result does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, np.ones(2)))
    (array(3), array([8., 8.]))
    """
    _check_callable("while_loop", cond_fn=cond_fn, body_fn=body_fn)
    if not isinstance(carried, tuple | list):
        raise InvalidType(f"while_loop: carried must be a tuple or list, got {type(carried).__name__}")
    state, spec = flatten("while_loop: carried", tuple(carried))
    state = [np.array(leaf, order="C") for leaf in state]
    while _holds(cond_fn(*unflatten(spec, iter(state)))):
        state = _next("while_loop: body_fn", as_tuple(body_fn(*unflatten(spec, iter(state)))), spec, state, "carried")
    result: tuple[Tree, ...] = unflatten(spec, (np.array(leaf, order="C") for leaf in state))
    return result


def scan(
    combine_fn: Callable[..., Any], init: Tree, xs: Tree, *, dim: int = 0, reverse: bool = False
) -> tuple[Tree, Tree]:
    """``for x in xs: carry, y = combine_fn(carry, x)`` along axis ``dim``; returns the last carry and the stacked ys.

    Parameters
    ----------
    combine_fn : callable
        Takes the carry and a slice. Returns the next carry (structure, shapes and dtypes of ``init``) and a tree ``y``.
    init : tree
        The first carry.
    xs : tree
        Arrays with the same number of slices, at least one.
    dim : int
        The axis of the slices.
    reverse : bool
        Whether it goes from the last slice to the first; the ys lie in the order of the slices all the same.

    Returns
    -------
    carry : tree
        The last carry.
    ys : tree
        The ys, stacked along their first axis.

    Raises
    ------
    InvalidType, InvalidArgument
        Where an argument or a result does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (array(6.), array([0., 2., 9.]))
    """
    _check_callable("scan", combine_fn=combine_fn)
    _check_bool("scan", reverse=reverse)
    state, carry_spec = flatten("scan: init", init)
    state = [np.array(leaf, order="C") for leaf in state]
    columns, spec, count = _columns("scan", xs, dim, reverse)
    rows: list[list[Any]] = []
    row_spec: Any = None
    for position in range(count):
        slices = unflatten(spec, (column[position, ...] for column in columns))
        result = combine_fn(unflatten(carry_spec, iter(state)), slices)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise InvalidType(f"scan: combine_fn must return (carry, y), got {_shown(result)}")
        state = _next("scan: combine_fn", result[0], carry_spec, state, "init")
        row_spec = _collect("scan: combine_fn", result[1], row_spec, rows)
    ys = unflatten(row_spec, _stacked(rows, reverse))
    return unflatten(carry_spec, (np.array(leaf, order="C") for leaf in state)), ys


def map(fn: Callable[..., Any], xs: Tree, *args: Any) -> Tree:
    """``fn(x, *args)`` for each slice ``x`` of ``xs`` along the first axis, the results stacked along theirs.

    Parameters
    ----------
    fn : callable
        Returns a tree of the same structure, shapes and dtypes each time.
    xs : tree
        Arrays with the same number of slices, at least one.
    *args
        Further arguments of ``fn``.

    Returns
    -------
    tree
        The stacked results.

    Raises
    ------
    InvalidType, InvalidArgument
        Where something does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> map(lambda row: row.sum(), np.ones((2, 3)))
    array([3., 3.])
    """
    _check_callable("map", fn=fn)
    columns, spec, count = _columns("map", xs, 0, False)
    rows: list[list[Any]] = []
    row_spec: Any = None
    for position in range(count):
        slices = unflatten(spec, (column[position, ...] for column in columns))
        row_spec = _collect("map: fn", fn(slices, *args), row_spec, rows)
    return unflatten(row_spec, _stacked(rows, False))


def associative_scan(
    combine_fn: Callable[..., Any], xs: Tree, dim: int = 0, reverse: bool = False, combine_mode: str = "pointwise"
) -> Tree:
    """Combines all prefixes of ``xs`` along axis ``dim``: ``y[0] = x[0]``, ``y[i] = combine_fn(y[i-1], x[i])``.

    Parameters
    ----------
    combine_fn : callable
        Takes two trees of slices and returns one of the same structure, shapes and dtypes. It is to be associative.
        Slices are combined from first to last, so that the rounding of sums does not depend on the machine.
    xs : tree
        Arrays with the same number of slices, at least one.
    dim : int
        The axis of the slices.
    reverse : bool
        Whether slices are combined from last to first.
    combine_mode : {"pointwise", "generic"}
        Changes nothing here.

    Returns
    -------
    tree
        The prefixes, of the shapes of ``xs``.

    Raises
    ------
    InvalidType, InvalidArgument
        Where an argument or a result does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> associative_scan(lambda a, b: a * b, np.array([1, 2, 3, 4]))
    array([ 1,  2,  6, 24])
    """
    _check_callable("associative_scan", combine_fn=combine_fn)
    _check_bool("associative_scan", reverse=reverse)
    if combine_mode not in COMBINE_MODES:
        valid = " or ".join(repr(mode) for mode in COMBINE_MODES)
        raise InvalidArgument(f"associative_scan: combine_mode must be {valid}, got {combine_mode!r}")
    columns, spec, count = _columns("associative_scan", xs, dim, reverse)
    state = [np.array(column[0, ...], order="C") for column in columns]
    rows = [state]
    for position in range(1, count):
        slices = unflatten(spec, (column[position, ...] for column in columns))
        result = combine_fn(unflatten(spec, iter(state)), slices)
        state = _next("associative_scan: combine_fn", result, spec, state, "a slice of xs")
        rows.append(state)
    stacked = _stacked(rows, reverse)
    return unflatten(spec, (np.array(np.moveaxis(leaf, 0, dim), order="C") for leaf in stacked))


# -- trees -----------------------------------------------------------------------------------------------------------


def flatten(where: str, tree: Tree) -> tuple[list[Any], Any]:
    """Returns a tree's leaves and its structure. Raises InvalidType for a leaf that is no array and no number."""
    if type(tree) is np.ndarray or isinstance(tree, _NUMBERS):
        return [tree], None
    if isinstance(tree, dict):
        parts = {key: flatten(f"{where}[{key!r}]", item) for key, item in tree.items()}
        spec: Any = (dict, tuple((key, part[1]) for key, part in parts.items()))
        return [leaf for part in parts.values() for leaf in part[0]], spec
    if type(tree) in (tuple, list) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        items = [flatten(f"{where}[{i}]", item) for i, item in enumerate(tree)]
        return [leaf for item in items for leaf in item[0]], (type(tree), tuple(item[1] for item in items))
    raise InvalidType(f"{where} must be an array, a number, or a tuple, list or dict of these, got {_shown(tree)}")


def unflatten(spec: Any, leaves: Iterator[Any]) -> Tree:
    """Returns the tree of a structure with new leaves."""
    if spec is None:
        return next(leaves)
    cls, inner = spec
    if cls is dict:
        return {key: unflatten(part, leaves) for key, part in inner}
    items = [unflatten(part, leaves) for part in inner]
    return cls(*items) if hasattr(cls, "_fields") else cls(items)


def as_tuple(result: Any) -> Any:
    """Returns the result of a loop's body, a list as a tuple."""
    return tuple(result) if isinstance(result, list) else result


def _next(where: str, result: Tree, spec: Any, state: Sequence[Any], what: str) -> list[Any]:
    """Returns the next carried values. Raises InvalidType or InvalidArgument if they do not match those before."""
    leaves, found = flatten(f"{where}'s result", result)
    if found != spec:
        raise InvalidType(f"{where} must return the structure of {what}, got {_shown(result)}")
    leaves = [np.asarray(leaf, order="C") for leaf in leaves]
    for position, (leaf, before) in enumerate(zip(leaves, state, strict=True)):
        if leaf.dtype != before.dtype or leaf.shape != before.shape:
            raise InvalidArgument(
                f"{where} must keep dtype and shape: leaf {position} of {what} is {_shown(before)}, "
                f"and {_shown(leaf)} was returned"
            )
    return leaves


def _columns(name: str, xs: Tree, dim: Any, reverse: bool) -> tuple[list[Any], Any, int]:
    """Returns the leaves of ``xs`` with the scanned axis first, in C order; their structure; the number of slices."""
    try:
        axis = operator.index(dim)
    except TypeError:
        raise InvalidType(f"{name}: dim must be an int, got {_shown(dim)}") from None
    leaves, spec = flatten(f"{name}: xs", xs)
    if not leaves:
        raise InvalidArgument(f"{name}: xs must hold at least one array")
    columns = []
    for leaf in leaves:
        array = np.asarray(leaf)
        if not -array.ndim <= axis < array.ndim:
            raise InvalidArgument(f"{name}: dim must be an axis of every array in xs, got {axis} for {_shown(leaf)}")
        column = np.moveaxis(array, axis, 0)
        columns.append(np.asarray(column[::-1] if reverse else column, order="C"))
    counts = {len(column) for column in columns}
    if len(counts) != 1 or 0 in counts:
        shapes = ", ".join(str(np.shape(leaf)) for leaf in leaves)
        raise InvalidArgument(f"{name}: the arrays in xs must have one size along dim, at least 1, got shapes {shapes}")
    return columns, spec, counts.pop()


def _collect(where: str, result: Tree, spec: Any, rows: list[list[Any]]) -> Any:
    """Adds one row of results. Raises InvalidType or InvalidArgument if it does not match the rows before."""
    leaves, found = flatten(f"{where}'s result", result)
    row = [np.array(leaf, order="C") for leaf in leaves]
    if rows and found != spec:
        raise InvalidType(f"{where} must return the same structure for every slice, got {_shown(result)}")
    for before, leaf in zip(rows[0] if rows else (), row, strict=False):
        if leaf.dtype != before.dtype or leaf.shape != before.shape:
            raise InvalidArgument(
                f"{where} must return the same dtype and shape for every slice: first {_shown(before)}, "
                f"then {_shown(leaf)}"
            )
    rows.append(row)
    return found


def _stacked(rows: list[list[Any]], reverse: bool) -> Iterator[Any]:
    """Returns the columns of rows as new arrays; ``reverse`` puts the last row first."""
    for column in zip(*(rows[::-1] if reverse else rows), strict=True):
        yield np.stack(column)


# -- arguments -------------------------------------------------------------------------------------------------------


def _holds(result: Any) -> bool:
    if isinstance(result, bool | np.bool_):
        return bool(result)
    if isinstance(result, np.ndarray) and result.size == 1 and result.dtype == np.bool_:
        return bool(result.reshape(()))
    raise InvalidType(f"while_loop: cond_fn must return a bool or a boolean array of one element, got {_shown(result)}")


def _check_callable(name: str, **functions: Any) -> None:
    for argument, function in functions.items():
        if not callable(function):
            raise InvalidType(f"{name}: {argument} must be callable, got {_shown(function)}")


def _check_bool(name: str, **values: Any) -> None:
    for argument, value in values.items():
        if not isinstance(value, bool):
            raise InvalidType(f"{name}: {argument} must be bool, got {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


__all__ = ["associative_scan", "cond", "flatten", "map", "scan", "unflatten", "while_loop"]
