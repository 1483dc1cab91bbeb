"""Elements under a mask, without extracting them: ``x[m]`` that is computed with, reduced, or written back.

Input: an array and a mask, and the operations on ``x[m]``.
Output: the same operations on whole arrays, ``where`` at the end, and reductions over the selected elements.
Why: the number of elements is unknown. Operations that need it are refused, and ``x[m]`` then runs in plain Python.

Elements outside the mask must not signal: before an operation that may, they become a number that is harmless to it.
That number is tracked through operations, so that a chain of them needs one selection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Selected, Traced
from tcompile.frontends.numpy import nan_reductions, reductions
from tcompile.frontends.numpy.registry import NO_VALUE, lookup
from tcompile.frontends.numpy.values import BOOL, axes_in, cast, dtype_of, is_constant, sizes_equal
from tcompile.graph import Node, TensorType
from tcompile.graph.sizes import is_one, may_be_empty
from tcompile.strict import strict

_QUIET = {
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.logical_and, np.logical_or,
    np.logical_xor, np.logical_not, np.isnan, np.isinf, np.isfinite, np.signbit, np.negative, np.positive, np.absolute,
    np.fabs, np.maximum, np.minimum, np.fmax, np.fmin, np.copysign, np.floor, np.ceil, np.trunc, np.rint, np.sign,
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.where, np.clip,
}  # fmt: skip
_QUIET_ON_INTEGERS = {np.add, np.subtract, np.multiply, np.square}
_ELEMENTWISE = {lookup(name) for name in ("where", "clip", "round", "around")}
_HARMLESS = (1, 0, 2)  # of each operation, one of these makes nothing special
_METHODS = ("sum", "prod", "mean", "max", "min", "any", "all", "var", "std")
_REDUCTIONS = (*_METHODS, "amax", "amin")
_REDUCED_BY = {lookup(name): {"amax": "max", "amin": "min"}.get(name, name) for name in _REDUCTIONS}
_WITH_DTYPE = ("sum", "prod", "mean", "var", "std")
_SAME_EVERYWHERE = ("pointwise", "view", "creation", "reduction")


def refused(what: str) -> CannotCapture:
    """What is raised where the number of elements would have to be known."""
    return CannotCapture("data-dependent-shape", f"elements under a mask, {what}")


def holds_selected(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether elements under a mask are among the arguments of a call."""
    return any(isinstance(a, Selected) for a in args) or any(isinstance(a, Selected) for a in kwargs.values())


def compute(
    b: Builder,
    function: Any,
    run: Callable[[Sequence[Any], Mapping[str, Any]], Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Selected:
    """An operation, element by element, on elements under one mask. ``run`` builds it on whole arrays."""
    known = isinstance(function, np.ufunc) and function.signature is None and function.nin == len(args)
    if not (known or _is_among(function, _ELEMENTWISE)) or not kwargs.keys() <= {"dtype", "min", "max", "decimals"}:
        raise refused(f"in a call of {getattr(function, '__name__', function)}")
    parts = [a for a in (*args, *kwargs.values()) if isinstance(a, Selected)]
    first = parts[0]
    size = first.whole.tensor.ndim
    if not all(same_value(part.mask, first.mask) for part in parts):
        raise refused("with elements under another mask")
    if not all(part.whole.tensor.ndim == size and part.lead == first.lead for part in parts):
        raise refused("with others of another shape")
    if any(isinstance(a, list | tuple) for a in (*args, *kwargs.values())):
        raise refused("with a list of others")
    others = [a for a in (*args, *kwargs.values()) if isinstance(a, Traced)]
    kinds = {part.whole.tensor.dtype.kind for part in parts}
    quiet = "c" not in kinds and (function in _QUIET or (kinds <= set("biu") and function in _QUIET_ON_INTEGERS))
    outside = None
    if not others:
        outside = _outside(function, args, kwargs, {})
    if outside is None and not quiet:
        number: Any = 1
        if not others:
            tries = ((n, _outside(function, args, kwargs, dict.fromkeys(map(id, parts), n))) for n in _HARMLESS)
            harmless = next(((n, found) for n, found in tries if found is not None), None)
            if harmless is None and _are_known(a for a in (*args, *kwargs.values()) if not isinstance(a, Selected)):
                # Whether NumPy tells of it depends on whether there are any elements.
                raise refused(f"in {getattr(function, '__name__', function)}, which signals whatever they are")
            number, outside = harmless or (1, None)
        guarded = {id(part): _with_outside(b, part, number) for part in parts}
    else:
        guarded = {id(part): part for part in parts}

    def whole(value: Any) -> Any:
        if isinstance(value, Selected):
            return Traced(guarded[id(value)].whole)
        return _beside(b, value, first) if isinstance(value, Traced) else value

    result = run([whole(a) for a in args], {name: whole(a) for name, a in kwargs.items()})
    if not isinstance(result, Traced) or result.type.ndim != size:
        raise refused(f"in a call of {getattr(function, '__name__', function)}")
    found = [result.type.shape[axis] for axis in first.masked]
    if not all(map(sizes_equal, found, first.mask.tensor.shape)):
        raise refused("with arrays of another shape")
    return first.having(result.node, outside)


def _beside(b: Builder, value: Traced, s: Selected) -> Traced:
    """An array beside elements under a mask: it has to be the same for all of them."""
    shape = value.type.shape
    place = len(shape) - s.after - 1
    if place < 0:
        return value
    if place > s.lead or not is_one(shape[place]):
        raise refused("with an array of other elements")
    if not place:
        return Traced(b.op("squeeze", value.node, axis=(0,)))
    new = s.mask.tensor.ndim - 1
    key = (*(slice(None),) * place, *(None,) * new, Ellipsis)
    return Traced(b.op("index", value.node, key=key)) if new else value


def _are_known(values: Iterable[Any]) -> bool:
    """Whether values are the same in every call."""
    return all(is_constant(v) or v is None or isinstance(v, type | np.dtype | str) for v in values)


def _outside(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], others: Mapping[int, int]) -> Any:
    """What an operation makes of the numbers outside the mask; None where they are not known, or it signals.

    ``others`` are numbers that would be there instead.
    """

    def number(value: Any) -> Any:
        if isinstance(value, Selected):
            instead = others.get(id(value))
            return value.outside if instead is None else value.whole.tensor.dtype.type(instead)
        return value

    values = [number(a) for a in args]
    named = {name: number(a) for name, a in kwargs.items()}
    if not _are_known((*values, *named.values())):
        return None
    if any(v is None for v, a in zip(values, args, strict=True) if isinstance(a, Selected)):
        return None
    try:
        with strict():
            return np.asarray(function(*values, **named))[()]
    except Exception:  # whatever it is, the operation is not harmless there
        return None


def _with_outside(b: Builder, s: Selected, number: int) -> Selected:
    """The same elements with ``number`` in all other places."""
    dtype = s.whole.tensor.dtype
    value = dtype.type(number)
    if s.outside is not None and s.outside == value:
        return s
    return s.having(b.op("where", spread(b, s), s.whole, value.item()), value)


def spread(b: Builder, s: Selected) -> Node:
    """The mask with an axis for each after it that the array has."""
    return b.op("index", s.mask, key=(Ellipsis, *(None,) * s.after)) if s.after else s.mask


def same_value(a: Node, c: Node) -> bool:
    """Whether two nodes certainly hold the same values: the same operations of the same operands."""
    known: dict[tuple[int, int], bool] = {}

    def same(one: Any, two: Any) -> bool:
        if one is two:
            return True
        if not (isinstance(one, Node) and isinstance(two, Node)):
            return type(one) is type(two) and repr(one) == repr(two)
        if one.op is not two.op or one.op.kind not in _SAME_EVERYWHERE:
            return False
        key = id(one), id(two)
        if key not in known:
            known[key] = (
                one.type == two.type and repr(one.attrs) == repr(two.attrs) and len(one.operands) == len(two.operands)
            ) and all(map(same, one.operands, two.operands))
        return known[key]

    return same(a, c)


# -- back into an array --------------------------------------------------------------------------------------------


def replaced(b: Builder, target: Selected, value: Any, fit: Callable[[TensorType, Any], Node]) -> Node:
    """The whole array of ``target`` with ``value`` where the mask holds.

    ``fit`` casts what is no Selected, and checks its shape.
    """
    type = target.whole.tensor
    rest = [axis for axis in range(type.ndim) if axis not in target.masked]
    if isinstance(value, Selected):
        if not same_value(value.mask, target.mask) or value.whole.tensor.ndim != type.ndim or value.lead != target.lead:
            raise refused("that go to places under another mask")
        shape = value.whole.tensor.shape
        if not all(is_one(shape[axis]) or sizes_equal(shape[axis], type.shape[axis]) for axis in rest):
            raise CannotCapture("operation-raises", "values that do not fit under the mask")
        if value.whole.tensor.dtype.kind == "c" and type.dtype.kind not in "cb":
            raise CannotCapture("operation-raises", "a cast discards imaginary parts")
        if value.whole.tensor.dtype != type.dtype and value.outside is None:
            value = _with_outside(b, value, 1)
        contents = cast(b, Traced(value.whole), type.dtype)
    else:
        if not rest and _rank(value) > 1:
            raise CannotCapture("operation-raises", "values of several dimensions under a mask")
        after = type.shape[type.ndim - target.after :]
        one = TensorType(type.dtype, (*type.shape[: target.lead], 1, *after))
        contents = _beside(b, Traced(fit(one, value)), target).node
    return b.op("where", spread(b, target), contents, target.whole)


def _rank(value: Any) -> int:
    """The number of dimensions of what is assigned, not more than it certainly has."""
    if isinstance(value, list | tuple):
        return 1 + (_rank(value[0]) if value else 0)
    return value.type.ndim if isinstance(value, Traced) else 0


def inplace(b: Builder, s: Selected, result: Selected) -> Selected:
    """The new contents of ``s`` after ``s sign= …``, of which ``result`` is what the operator gives."""
    dtype = s.whole.tensor.dtype
    if not all(map(sizes_equal, result.whole.tensor.shape, s.whole.tensor.shape)):
        raise CannotCapture("operation-raises", "the result of an in-place operator has another shape")
    if result.whole.tensor.dtype == dtype:
        return result
    if not np.can_cast(result.whole.tensor.dtype, dtype, "same_kind"):
        raise CannotCapture("operation-raises", f"a result of {result.whole.tensor.dtype} is not cast to {dtype}")
    if result.outside is None:
        result = _with_outside(b, result, 1)
    with np.errstate(all="ignore"):
        outside = dtype.type(result.outside)
    return s.having(cast(b, Traced(result.whole), dtype), outside)


# -- reductions ----------------------------------------------------------------------------------------------------


def count(b: Builder, s: Selected) -> Traced:
    """How many elements the mask selects, as a scalar."""
    if s.lead:
        raise refused("after other axes, counted")
    node = b.op("astype", s.mask, dtype="int64")
    return Traced(b.op("sum", node, axis=tuple(range(node.tensor.ndim)), keepdims=False), scalar=True)


def reduction_of(function: Any) -> str | None:
    """The name of the reduction that a function of NumPy's is; None where it is none of those."""
    return _REDUCED_BY[function] if _is_among(function, _REDUCED_BY) else None


def _is_among(function: Any, known: Any) -> bool:
    return any(function is item for item in known)


def reduce(b: Builder, name: str, s: Selected, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Traced:
    """A reduction, called ``name``, of elements under a mask."""
    places = ("axis", "dtype") if name in _WITH_DTYPE else ("axis",)
    given = {**kwargs, **dict(zip(places, args, strict=False))}
    dtype, ddof, axis = given.pop("dtype", None), given.pop("ddof", 0), given.pop("axis", None)
    plain = (value is None or value is NO_VALUE or value is False for value in given.values())
    if len(args) > len(places) or not all(plain):
        raise refused(f"in {name} with more arguments")
    ndim = s.mask.tensor.ndim
    axes = axes_in(axis, s.lead + 1 + s.after)
    over = {a if a < s.lead else a + ndim - 1 for a in axes if a != s.lead}
    left = s.lead + s.after - len(over)
    # Beside axes that stay, all others do: the order in memory of what is left is NumPy's only then.
    if s.lead not in axes or (over and left) or (s.lead and left > 1):
        raise refused(f"in {name} along an axis of its own")
    axes = tuple(sorted({*over, *s.masked}))
    own = s.whole.tensor.dtype
    iterations = own.kind in "fc" or name in ("mean", "var", "std")
    unknown = own.name == "float16" or (own.kind == "c" and name not in ("sum", "any", "all"))
    if unknown or (b.exact and iterations):
        raise refused(f"in {name} of {own}")
    if ddof != 0 and (name not in ("var", "std") or type(ddof) is not int or ddof < 0):
        raise refused(f"in {name} with ddof={ddof!r}")
    if name in ("sum", "prod"):
        filled = _filled(b, s, 0 if name == "sum" else 1)
        make = reductions.sum if name == "sum" else reductions.prod
        return make(b, filled, axes, dtype)
    if dtype is not None and dtype_of(dtype) != own:
        raise refused(f"in {name} with dtype=")
    if name in ("any", "all"):
        held = s.having(cast(b, Traced(s.whole), BOOL))
        make_ = reductions.any_ if name == "any" else reductions.all_
        return make_(b, _filled(b, held, name == "all"), axes)
    if name in ("max", "min"):
        some = b.op("any", s.mask, axis=tuple(range(ndim)), keepdims=False)
        nan_reductions.refuse_if_any(b, b.op("logical_not", some))
        return reductions.extremum(b, name, _filled(b, s, _least(name, own)), axes, False)
    return _moment(b, name, s, axes, ddof)


def _filled(b: Builder, s: Selected, number: Any) -> Traced:
    """The whole array with ``number`` outside the mask."""
    dtype = s.whole.tensor.dtype
    value = bool(number) if dtype == BOOL else number
    return Traced(b.op("where", spread(b, s), s.whole, value))


def _least(name: str, dtype: np.dtype[Any]) -> Any:
    """What the extremum ``name`` of anything and this is the thing itself."""
    if dtype.kind == "b":
        return name == "min"
    if dtype.kind == "f":
        return -math.inf if name == "max" else math.inf
    info = np.iinfo(dtype)
    return info.min if name == "max" else info.max


def _moment(b: Builder, name: str, s: Selected, axes: tuple[int, ...], ddof: int) -> Traced:
    """A mean, variance or standard deviation, in NumPy's steps; none of too few elements."""
    own = s.whole.tensor.dtype
    if may_be_empty([n for axis, n in enumerate(s.whole.tensor.shape) if axis not in s.masked]):
        raise refused(f"in {name} beside an axis without elements")
    if own.kind != "f":
        s = s.having(cast(b, Traced(s.whole), np.dtype("float64")))
    number = b.op("astype", spread(b, s), dtype="int64")
    if s.mask.tensor.ndim < s.whole.tensor.ndim:
        number = b.op("broadcast_to", number, shape=s.whole.tensor.shape)
    keep = name != "mean"
    total = b.op("sum", _filled(b, s, 0.0).node, axis=axes, keepdims=keep)
    items = b.op("sum", number, axis=axes, keepdims=keep)
    if name == "mean":
        nan_reductions.refuse_if_any(b, b.op("equal", items, 0))
        node = nan_reductions.divided(b, total, items)
        return Traced(node, scalar=not node.tensor.ndim)
    within = s if s.outside is not None else _with_outside(b, s, 1)
    apart = b.op("subtract", within.whole, nan_reductions.divided(b, total, items))
    apart = _filled(b, s.having(apart), 0.0).node
    squares = b.op("sum", b.op("multiply", apart, apart), axis=axes, keepdims=False)
    freedom = b.op("subtract", b.op("sum", number, axis=axes, keepdims=False), ddof)
    nan_reductions.refuse_if_any(b, b.op("less_equal", freedom, 0))
    node = nan_reductions.divided(b, squares, freedom)
    node = b.op("sqrt", node) if name == "std" else node
    return Traced(node, scalar=not node.tensor.ndim)


# -- attributes ----------------------------------------------------------------------------------------------------


def attribute(s: Selected, name: str) -> Any:
    """What is known of elements under a mask without counting them."""
    rank = s.whole.tensor.ndim - s.mask.tensor.ndim + 1
    if name == "ndim":
        return rank
    if name == "dtype":
        return s.whole.tensor.dtype
    if name == "itemsize":
        return s.whole.tensor.dtype.itemsize
    raise refused(f"whose {name} is read")


def method(b: Builder, s: Selected, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """``s.name(*args, **kwargs)`` for reductions, copies and casts."""
    if name in _METHODS:
        return reduce(b, name, s, args, kwargs)
    if name == "copy" and not args and not kwargs:
        return s.having(s.whole, s.outside)
    if name == "astype" and len(args) == 1 and not kwargs:
        into = dtype_of(args[0])
        if s.whole.tensor.dtype.kind == "c" and into.kind not in "cb":
            raise CannotCapture("operation-raises", "a cast discards imaginary parts")
        if s.outside is None:
            s = _with_outside(b, s, 1)
        with np.errstate(all="ignore"):
            outside = into.type(s.outside)
        return s.having(cast(b, Traced(s.whole), into), outside)
    raise refused(f"whose method {name} is called")


__all__ = [
    "attribute", "compute", "count", "holds_selected", "inplace", "method", "reduce", "reduction_of", "refused",
    "replaced", "same_value", "spread",
]  # fmt: skip
