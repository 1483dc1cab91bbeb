"""Functions that stay one call of NumPy, with fusion around them.

Input: a NumPy function and its arguments, with traced values in them.
Output: one ``call`` node of exact type, and a ``get`` node for each of several results.
Why: supporting another NumPy function takes one shape rule.

A *rule* has the function's own signature and returns the shape of its result (a list of shapes for several results),
from arguments in which types replace arrays. NumPy itself answers the rest, on small stand-ins for the arrays: dtypes,
memory order, scalar or array, one result or several, and whether the arguments fit. The stand-ins have the arrays'
dtypes and memory layouts. Sizes from 4 on are replaced by 4, 5, … in their order; smaller sizes stay, because functions
treat 0, 1, 2 and 3 specially. The rule is then applied to the stand-ins too, and must agree with NumPy. The running
graph compares a call's result with its type once more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np

from tcompile.frontends.base import Builder, CannotCapture, Traced, TracedNumber, slot
from tcompile.frontends.numpy.registry import NO_VALUE, lookup
from tcompile.frontends.numpy.values import (
    WRITEABLE,
    axes_in,
    axis_in,
    broadcast,
    certainly_not_c,
    constant,
    layout_of,
    nested,
    takes_dtype,
)
from tcompile.graph import Layout, Node, TensorType, ops
from tcompile.graph.ops.opaque import Slot, resolve
from tcompile.graph.sizes import Size, SymInt, hint, may_be
from tcompile.records import dataclass
from tcompile.strict import strict

Shape: TypeAlias = tuple[Size, ...]
RuleFunction: TypeAlias = Callable[..., Any]
R = TypeVar("R", bound=RuleFunction)

_REAL_LIMIT = 1 << 18  # elements of a stand-in that keeps the sizes of its array
_UNCHANGED_SIZES = 4  # sizes below this one are never replaced
# Parameters that are sequences of arrays; other lists with computed numbers in them become arrays by themselves.
_SEQUENCES = ("choices", "condlist", "choicelist", "keys", "arrays", "multi_index", "args", "key")
_LEAST = (_UNCHANGED_SIZES, 17)  # where the smallest stand-ins do not tell, somewhat larger ones may
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


@dataclass(frozen=True)
class Rule:
    """How one function is called as a node.

    ``target`` is what runs; ``values`` fills the stand-ins of a parameter (``zeros``, ``eye``, ``range``), others hold
    ones; ``example`` replaces plain arguments for the stand-in run; ``real`` keeps the arrays' own sizes;
    ``only_arrays`` says that it is a method that scalars do not share.
    """

    shapes: RuleFunction
    target: str
    values: Mapping[str, str] = field(default_factory=dict)
    example: Mapping[str, Any] = field(default_factory=dict)
    real: bool = False
    only_arrays: bool = False

    @cached_property
    def signature(self) -> inspect.Signature:
        """The rule's signature: the function's own."""
        return inspect.signature(self.shapes)


RULES: dict[Any, Rule] = {}
METHOD_RULES: dict[str, Rule] = {}


def library(
    *names: str,
    target: str = "",
    values: Mapping[str, str] | None = None,
    example: Mapping[str, Any] | None = None,
    real: bool = False,
    method: bool = False,
) -> Callable[[R], R]:
    """Registers a shape rule for the functions ``numpy.<name>``; names that this NumPy lacks are passed over.

    ``method`` says that arrays have a method of that name, which is the function on the array.
    """

    def register(rule: R) -> R:
        for name in names:
            found = lookup(name)
            if found is not None:
                where = target.format(name=name) or f"numpy.{name}"
                RULES[found] = Rule(rule, where, values or {}, example or {}, real)
                if method:
                    METHOD_RULES[name] = RULES[found]
        return rule

    return register


def array_method(name: str, values: Mapping[str, str] | None = None) -> Callable[[R], R]:
    """Registers a shape rule for the method ``x.name`` of arrays, which is no function of NumPy's on the array."""

    def register(rule: R) -> R:
        METHOD_RULES[name] = Rule(rule, f"numpy.ndarray.{name}", values or {}, only_arrays=True)
        return rule

    return register


# -- what rules are written with -----------------------------------------------------------------------------------


def shape_of(value: Any) -> Shape:
    """The shape of an argument: a type, a number, or nested lists."""
    if isinstance(value, TensorType):
        return value.shape
    if isinstance(value, list | tuple):
        return (len(value), *(shape_of(value[0]) if value else ()))
    return ()


def together(*values: Any) -> Shape:
    """The shape to which arguments broadcast."""
    return broadcast([shape_of(v) for v in values])


def without(shape: Shape, axis: Any, keepdims: Any = False) -> Shape:
    """A shape after a reduction over ``axis``."""
    axes = axes_in(tuple(axis) if isinstance(axis, list) else axis, len(shape))
    if keepdims is True:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def along(shape: Shape, axis: Any, size: Size) -> Shape:
    """A shape with another size along one axis."""
    place = axis_in(axis, len(shape))
    return (*shape[:place], size, *shape[place + 1 :])


def total(shape: Shape) -> Size:
    """The number of elements."""
    count: Size = 1
    for n in shape:
        count = count * n
    return count


def refuse(text: str, reason: str = "unsupported-argument") -> CannotCapture:
    """What a rule raises where it cannot tell the shape."""
    return CannotCapture(reason, text)


# -- stand-ins -----------------------------------------------------------------------------------------------------


class Sizes:
    """The small sizes that stand for the sizes of one call's arrays: ``least``, and those that follow."""

    def __init__(self, types: Sequence[TensorType], real: bool, least: int) -> None:
        seen = sorted({hint(n) for t in types for n in t.shape if hint(n) >= _UNCHANGED_SIZES})
        self.small = {n: n if real else least + i for i, n in enumerate(seen)}

    def shape(self, shape: Shape) -> tuple[int, ...]:
        """The stand-in's shape."""
        return tuple(self.small.get(hint(n), hint(n)) for n in shape)


def stand_in(type: TensorType, shape: tuple[int, ...], fill: str = "") -> np.ndarray[Any, Any]:
    """A small array of this type: ones by default, in the type's memory order."""
    order = type.layout.order
    step = 1 if type.layout.dense else 2
    spread = [1 if not type.layout.ranks[axis] else shape[axis] * step for axis in order]
    base = np.zeros(spread, type.dtype) if fill == "zeros" else np.ones(spread, type.dtype)
    key: Any = (..., *(slice(None, None, step) for _ in spread))  # with dots an array without axes stays one
    array: np.ndarray[Any, Any] = base[key]
    array = array.transpose(np.argsort(order)) if order else array
    if fill == "range":
        array[...] = np.arange(array.size).reshape(array.shape).astype(type.dtype)
    if fill == "eye" and array.ndim > 1:
        array[...] = np.eye(*array.shape[-2:], dtype=type.dtype)
    return np.broadcast_to(array, shape) if array.shape != shape else array


# -- the call ------------------------------------------------------------------------------------------------------


@dataclass
class _Arguments:
    """The arguments of one call, seen three ways: by the graph, by the stand-in run, and by the rule."""

    b: Builder
    rule: Rule
    operands: list[Traced | TracedNumber] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)

    def template(self, name: str, value: Any) -> Any:
        """``value`` with ``Slot(i)`` for what is computed."""
        if isinstance(value, np.generic):
            value = constant(self.b, value)
        if isinstance(value, Traced | TracedNumber):
            self.operands.append(value)
            self.parameters.append(name)
            return slot(len(self.operands) - 1, value)
        if isinstance(value, SymInt):
            return value.specialise()
        if isinstance(value, list | tuple) and type(value) in (list, tuple):
            if name not in _SEQUENCES and any(map(_is_computed_number, value)):
                return self.template(name, nested(self.b, value))
            return type(value)(self.template(name, v) for v in value)
        if isinstance(value, np.dtype) or (isinstance(value, type) and name == "dtype" and value is not object):
            return self._dtype(value)
        if isinstance(value, slice):
            return slice(*(self.template(name, v) for v in (value.start, value.stop, value.step)))
        if type(value) not in _PLAIN:
            raise refuse(f"an argument of type {type(value).__name__}")
        return value

    def _dtype(self, value: Any) -> str:
        try:
            dtype = np.dtype(value)
        except TypeError as error:
            raise CannotCapture("unsupported-dtype", str(error)) from error
        name: str = dtype.name
        if not takes_dtype(dtype):
            raise CannotCapture("unsupported-dtype", f"dtype {dtype}")
        return name

    def filled(self, template: Any, values: Sequence[Any]) -> Any:
        """A template with ``values`` in its slots."""
        if isinstance(template, Slot):
            return values[template.index]
        if isinstance(template, list | tuple):
            return type(template)(self.filled(item, values) for item in template)
        return template

    def stand_ins(self, dense: bool = False, least: int = _UNCHANGED_SIZES, few: int | None = None) -> list[Any]:
        """What stands for each operand; ``dense`` makes all of them dense whose strides are not known.

        ``few``: so many elements have axes that may have so few.
        """
        types = [o.type for o in self.operands if isinstance(o, Traced)]
        if self.rule.real:
            types = [TensorType(t.dtype, tuple(n.specialise() if isinstance(n, SymInt) else n for n in t.shape))
                     for t in types]  # fmt: skip
            if any(total(t.shape) > _REAL_LIMIT for t in types):
                raise refuse("an array too large to try the call on")
        sizes = Sizes(types, self.rule.real, least)
        found: list[Any] = []
        for operand, name in zip(self.operands, self.parameters, strict=True):
            if isinstance(operand, TracedNumber):
                found.append(1.0)
                continue
            type = operand.type
            if dense and _may_be_dense(operand):
                ranks = Layout.c(type.ndim).ranks if type.layout.dense else type.layout.ranks
                type = TensorType(type.dtype, type.shape, Layout(ranks))
            shape = sizes.shape(type.shape)
            if few is not None:
                pairs = zip(type.shape, shape, strict=True)
                shape = tuple(few if _varies_to(n, few) else small for n, small in pairs)
            made = stand_in(type, shape, self.rule.values.get(name, ""))
            found.append(made[()] if operand.scalar else made)
        return found


def _is_computed_number(value: Any) -> bool:
    return isinstance(value, TracedNumber) or (isinstance(value, Traced) and not value.type.ndim)


def type_of_call(b: Builder, rule: Rule, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Traced:
    """What a call would give, without making it: for a handler whose own result has to lie in memory the same way."""
    mark = len(b.graph.nodes)
    found: Traced = library_call(b, rule, args, kwargs)
    del b.graph.nodes[mark:]
    return found


def library_call(b: Builder, rule: Rule, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The meaning of a call of the function that ``rule`` is about, as one node."""
    kwargs = {name: value for name, value in kwargs.items() if value is not NO_VALUE}
    try:
        bound = rule.signature.bind(*args, **kwargs)
    except TypeError as error:
        raise refuse(str(error)) from error
    names = _names(rule, bound, len(args))
    _refuse_writes(dict(bound.arguments))
    arguments = _Arguments(b, rule)
    template = tuple(arguments.template(name, value) for name, value in zip(names, args, strict=True))
    named = {key: arguments.template(key, value) for key, value in kwargs.items()}
    types = [o.type if isinstance(o, Traced) else 0.0 for o in arguments.operands]
    shapes = _shapes(rule, arguments, template, named, types)
    for least in _LEAST:
        values = arguments.stand_ins(least=least)
        results = _tried(rule, arguments, names, template, named, values)
        leaves = list(_leaves(results))
        if shapes is None or not any(map(_hides_order, leaves, shapes)):
            break
    else:
        raise CannotCapture("memory-order", "a result whose order small arrays do not show")
    if any(isinstance(o, Traced) and _may_be_dense(o) for o in arguments.operands):
        dense = arguments.stand_ins(dense=True, least=least)
        others = list(_leaves(_tried(rule, arguments, names, template, named, dense)))
        _refuse_views(others, dense)
        strided = any(isinstance(o, Traced) and not o.type.layout.dense for o in arguments.operands)
        if strided and [layout_of(np.asarray(a)) for a in leaves] != [layout_of(np.asarray(a)) for a in others]:
            raise CannotCapture("memory-order", "a view whose strides are known at run time only")
    if any(leaf.ndim > 1 for leaf in leaves) and any(map(_is_empty_in_another_order, arguments.operands)):
        raise CannotCapture("memory-order", "an array without elements: new ones have no order, and views have one")
    _ask_for_few(rule, arguments, names, template, named)
    small = _shapes(rule, arguments, template, named, [_small_type(v) for v in values])
    if shapes is None:
        shapes = [leaf.shape for leaf in leaves]
    elif [tuple(s) for s in small or ()] != [leaf.shape for leaf in leaves]:
        raise refuse(f"{rule.target} of these arguments: its result's shape is not certain")
    _refuse_views(leaves, values)
    found = [_result_type(leaf, tuple(shape)) for leaf, shape in zip(leaves, shapes, strict=True)]
    attrs = {"target": rule.target, "args": template, "kwargs": tuple(sorted(named.items()))}
    name = rule.target.rpartition(".")[2]
    nodes = [o.node for o in arguments.operands]
    if isinstance(results, np.ndarray | np.generic):
        node = b.graph.append(ops.CALL, nodes, attrs, found[0], name=name, location=b.location)
        return _as_made(b, node, results)
    node = b.graph.append(ops.CALL, nodes, attrs, tuple(found), name=name, location=b.location)
    parts = iter(range(len(found)))

    def take(result: Any) -> Any:
        if isinstance(result, np.ndarray | np.generic):
            index = next(parts)
            get = b.graph.append(ops.GET, [node], {"index": index}, found[index], location=b.location)
            return _as_made(b, get, result)
        return _container(result, [take(item) for item in result])

    return take(results)


def _as_made(b: Builder, node: Node, result: np.ndarray[Any, Any] | np.generic) -> Traced:
    """One result: a scalar, an array, or what NumPy makes as the view of a new array."""
    if isinstance(result, np.generic):
        return Traced(node, True)
    return Traced(node if result.flags.owndata else b.whole_view(node))


def _container(like: Any, items: list[Any]) -> Any:
    return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)


def _names(rule: Rule, bound: inspect.BoundArguments, count: int) -> list[str]:
    """The parameter that each positional argument goes to."""
    names: list[str] = []
    for parameter in rule.signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [parameter.name] * len(bound.arguments.get(parameter.name, ()))
        else:
            names.append(parameter.name)
    return names[:count]


def _refuse_writes(arguments: Mapping[str, Any]) -> None:
    if arguments.get("out") is not None:
        raise CannotCapture("writes-to-array", "a call with out=")
    if arguments.get("overwrite_input", False) is not False:
        raise CannotCapture("writes-to-array", "a call with overwrite_input=")
    if arguments.get("like") is not None:
        raise refuse("a call with like=")


def _hides_order(leaf: Any, shape: Shape) -> bool:
    """Whether an axis of a stand-in's result has size 0 or 1, and the real one has not: then it has no place in
    memory order.
    """
    pairs = zip(leaf.shape, shape, strict=False)
    return leaf.ndim > 1 and any(n < 2 and not (isinstance(m, int) and m == n) for n, m in pairs)


def _is_empty_in_another_order(x: Traced | TracedNumber) -> bool:
    return isinstance(x, Traced) and not x.type.c_contiguous and any(isinstance(n, int) and not n for n in x.type.shape)


def _ask_for_few(
    rule: Rule, arguments: _Arguments, names: list[str], template: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Guards sizes that may turn out to be one or zero, where the call would give a view of an array then."""
    if arguments.rule.real:
        return
    for few in (1, 0):
        shapes = [o.type.shape for o in arguments.operands if isinstance(o, Traced)]
        sizes = [n for shape in shapes for n in shape if _varies_to(n, few)]
        matters = sizes and any(_gives_view(rule, arguments, names, template, named, few, d) for d in (False, True))
        if matters and sum(n == few for n in sizes):  # all are asked
            raise refuse("a result that is a view of another array")


def _varies_to(size: Size, few: int) -> bool:
    return isinstance(size, SymInt) and may_be(size, few)


def _gives_view(
    rule: Rule,
    arguments: _Arguments,
    names: list[str],
    template: tuple[Any, ...],
    named: dict[str, Any],
    few: int,
    dense: bool,
) -> bool:
    """Whether the call gives a view of an array where sizes that may be so few are; what is not dense may be then."""
    values = arguments.stand_ins(dense, few=few)
    try:
        results = list(_leaves(_tried(rule, arguments, names, template, named, values)))
    except CannotCapture:  # then it is an error, too, when the program runs
        return False
    try:
        _refuse_views(results, values)
    except CannotCapture:
        return True
    return False


def _may_be_dense(x: Traced) -> bool:
    """Whether a value may turn out to be in C order of which the type does not say so: one that it calls strided, or
    one in another order, all but one of whose axes may turn out to be one element long.
    """
    return not x.type.c_contiguous and not certainly_not_c(x.node)


def _tried(
    rule: Rule,
    arguments: _Arguments,
    names: list[str],
    template: tuple[Any, ...],
    named: dict[str, Any],
    values: list[Any],
) -> Any:
    """What the function gives for the stand-ins. What it raises, or warns of in words, the user's call would."""
    args = [rule.example.get(n, arguments.filled(t, values)) for n, t in zip(names, template, strict=True)]
    kwargs = {n: rule.example.get(n, arguments.filled(t, values)) for n, t in named.items()}
    try:
        with strict("ignore"):
            return resolve(rule.target)(*args, **kwargs)
    except Exception as error:
        raise CannotCapture("operation-raises", f"{type(error).__name__}: {error}") from error


def _shapes(
    rule: Rule, arguments: _Arguments, template: tuple[Any, ...], named: dict[str, Any], types: list[Any]
) -> list[Shape] | None:
    """The shapes that the rule gives, one a result; None where the rule leaves them to the stand-in run."""
    args = [arguments.filled(t, types) for t in template]
    kwargs = {n: arguments.filled(t, types) for n, t in named.items()}
    try:
        shapes = rule.shapes(*args, **kwargs)
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # arguments that NumPy refuses as well
        raise CannotCapture("operation-raises", f"{rule.target} of these arguments") from error
    if shapes is None:
        if not rule.real:
            raise AssertionError(f"the rule of {rule.target} gives no shape")
        return None
    return shapes if isinstance(shapes, list) else [shapes]


def _small_type(value: Any) -> Any:
    return TensorType(value.dtype, value.shape) if isinstance(value, np.ndarray | np.generic) else value


def _leaves(results: Any) -> Iterator[Any]:
    if isinstance(results, tuple | list):
        for item in results:
            yield from _leaves(item)
    elif type(results) is np.ndarray or isinstance(results, np.generic):
        if not takes_dtype(results.dtype):
            raise CannotCapture("unsupported-dtype", f"a result of dtype {results.dtype}")
        yield results
    else:
        raise CannotCapture("array-conversion", f"a result of type {type(results).__name__}")


def _refuse_views(leaves: list[Any], values: list[Any]) -> None:
    """Refuses results that show the memory of an argument or of each other, or that cannot be written to."""
    arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray)]
    given = [v for v in values if isinstance(v, np.ndarray)]
    for i, leaf in enumerate(arrays):  # arrays without elements share no memory: there it is the owner that tells
        of_given = any(_owner(leaf) is _owner(v) or np.shares_memory(leaf, v) for v in given)
        of_another = any(leaf is a or leaf.base is a or np.shares_memory(leaf, a) for a in arrays[:i])
        if of_given or of_another or not leaf.flags.num & WRITEABLE:
            raise refuse("a result that is a view of another array")


def _owner(array: np.ndarray[Any, Any]) -> Any:
    return array if array.base is None else array.base


def _result_type(result: Any, shape: Shape) -> TensorType:
    dtype = np.dtype(result.dtype.str)
    return TensorType(dtype, shape, layout_of(np.asarray(result)))
