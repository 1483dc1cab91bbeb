"""Calls of functions with a user's ``Treatment``: one handler for each kind.

Input: a call of such a function.
Output: its value, by the kind of treatment. ``allow``: an operation that calls the function. ``disallow``: a break.
``constant``: the result of a call made now. ``substitute``: the result of following another function. ``region``: a
call of a shared region.
Why: each treatment replaces the plain following of a call.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from tcompile.annotations.treatments import Treatment, treatment_of
from tcompile.capture.guards.sources import ConstantSource
from tcompile.capture.semantics.examples import examples_of
from tcompile.capture.semantics.special.policy import call_under_policy
from tcompile.capture.semantics.subgraph import Subgraph, capture_region, control_node, is_new, lift, mismatch
from tcompile.capture.values.array import ArrayContext, ArrayValue
from tcompile.capture.values.base import Context, Value
from tcompile.capture.values.callable import FunctionValue
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue
from tcompile.capture.values.container import SequenceValue, constant_of
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.object import ObjectValue
from tcompile.frontends.base import CannotCapture, Traced, TracedNumber, slot
from tcompile.graph import Node, SymInt, TensorType, ops
from tcompile.graph.ops.opaque import Slot
from tcompile.graph.ops.python import call_python, name_of
from tcompile.records import dataclass
from tcompile.strict import silent

_LITERALS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice)


def call_treated(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value | None:
    """The value of a call, or None where the function has no treatment."""
    treatment = treatment_of(function.value)
    if treatment is None:
        return None
    tx.differs = True
    return _HANDLERS[treatment.kind](tx, function, treatment, args, kwargs)


def _name(function: Constant) -> str:
    return str(getattr(function.value, "__qualname__", function.value))


def _disallow(
    tx: Context, function: Constant, treatment: Treatment, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    raise CannotCapture("disabled-function", f"`{_name(function)}` is marked by disallow_in_graph.")


# -- a call made while compiling -------------------------------------------------------------------------------------


def _constant(
    tx: Context, function: Constant, treatment: Treatment, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    plain = [_object(tx, arg, function) for arg in args]
    named = {key: _object(tx, value, function) for key, value in kwargs.items()}
    key = (id(function.value), *map(_same, plain), *((name, _same(value)) for name, value in named.items()))
    held = tx.profile.results.get(key)  # capture may meet the call more than once
    if held is None:
        try:
            result = function.value(*plain, **named)
        except Exception as error:
            raise CannotCapture("operation-raises", f"{type(error).__name__}: {error}") from error
        held = tx.profile.results[key] = (result, function.value, plain, named)
    result = held[0]
    return tx.wrap(result, ConstantSource.of(f"{_name(function)}()", result))


def _same(value: Any) -> Any:
    """A key for equal arguments: the text of a literal, the identity of everything else."""
    return (type(value), repr(value)) if type(value) in _LITERALS else id(value)


def _object(tx: Context, value: Value, function: Constant) -> Any:
    """The object of an argument now, where it is one that exists."""
    if isinstance(value, ObjectValue) or (isinstance(value, ArrayValue) and value.source is not None):
        if value.source is not None and value.source in tx.objects and not tx.mutated.get(id(value)):
            return tx.objects[value.source]
    elif isinstance(value, FunctionValue) and value.function is not None:
        return value.function if value.outer is None else value.outer
    return constant_of(value, f"an argument of `{_name(function)}`, whose result is to be constant")


# -- another function in its place -----------------------------------------------------------------------------------


def _substitute(
    tx: Context, function: Constant, treatment: Treatment, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    values = [*args, *kwargs.values()]
    if treatment.flag and all(isinstance(value, Constant) for value in values):
        return tx.fold(function.value, args, kwargs)
    assert isinstance(treatment.replacement, types.FunctionType)
    return FunctionValue.of(tx, treatment.replacement, None).call(tx, args, kwargs)


# -- one operation that calls it -------------------------------------------------------------------------------------


def _allow(
    tx: Context, function: Constant, treatment: Treatment, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    graph = tx.builder.graph
    if graph is not tx.graph:
        raise mismatch(f"`{_name(function)}`, marked by allow_in_graph, is called in a branch or loop.")
    operands: list[Any] = []

    def template(value: Any) -> Any:
        """An argument as the operation keeps it, with operands for its varying parts."""
        if isinstance(value, Traced) or (isinstance(value, TracedNumber) and value.at is None):
            operands.append(value.node)
            return slot(len(operands) - 1, value)
        if isinstance(value, SymInt):
            operands.append(value)
            return Slot(len(operands) - 1)
        if type(value) is tuple:
            return tuple(template(item) for item in value)
        if type(value) in _LITERALS or tx.is_scalar(value):
            return value
        late = isinstance(value, TracedNumber)
        given = "a number read from an array" if late else f"{type(value).__name__} {value!r}"
        raise CannotCapture("unsupported-argument", f"`{_name(function)}`, marked by allow_in_graph, with {given}")

    attrs: dict[str, Any] = {
        "target": name_of(function.value),
        "args": tuple(template(arg.export(tx)) for arg in args),
        "kwargs": tuple((key, template(value.export(tx))) for key, value in kwargs.items()),
    }
    with silent():
        given = examples_of(tx, operands)
        try:
            result = call_python(*given, **attrs)
        except Exception as error:
            raise CannotCapture("operation-raises", f"{type(error).__name__}: {error}") from error
    several = type(result) in (tuple, list)
    results = list(result) if several else [result]
    traced = [_expected(tx, function, one, operands, given) for one in results]
    attrs["expected"] = tuple((t.dtype.name, t.shape, t.layout.order, scalar) for t, scalar in traced)
    attrs["container"] = type(result).__name__ if several else ""
    types = tuple(t for t, _ in traced)
    location, name = tx.builder.location, getattr(function.value, "__name__", "call")
    node = graph.append(ops.PYTHON_CALL, operands, attrs, types, name=name, location=location)
    values: list[Value] = []
    for index, (type_, scalar) in enumerate(traced):
        got = graph.append(ops.GET, [node], {"index": index}, type_, location=location)
        shown = Traced(got, scalar)
        array = tx.new_array(shown, kept="which a called function may have kept,")
        values.append(array)
    return SequenceValue(values, type(result)) if several else values[0]


def _expected(
    tx: Context, function: Constant, result: Any, operands: Sequence[Any], given: Sequence[Any]
) -> tuple[TensorType, bool]:
    """The type of a result, and whether it is a scalar object."""
    found = next(((f, t) for f in tx.frontends if (t := f.type_of(result)) is not None), None)
    about = f"`{_name(function)}`, marked by allow_in_graph, returned"
    if found is None:
        raise CannotCapture("unsupported-object", f"{about} an object of class {type(result).__qualname__}.")
    frontend, type_ = found
    if not type_.layout.dense:
        raise CannotCapture("memory-order", f"{about} an array whose elements do not lie side by side")
    if any(frontend.type_of(x) is not None and frontend.overlap(result, x) for x in given):
        raise CannotCapture("unsupported-object", f"{about} an argument, or a view of one, and no new array.")
    sizes: dict[int, SymInt] = {}
    for operand in operands:
        if isinstance(operand, Node) and isinstance(operand.type, TensorType):
            sizes.update({size.hint: size for size in operand.type.shape if isinstance(size, SymInt)})
        elif isinstance(operand, SymInt):
            sizes.setdefault(operand.hint, operand)
    shape = tuple(sizes.get(size, size) for size in type_.shape)  # type: ignore[arg-type]  # a guess, checked at run time
    return TensorType(type_.dtype, shape, type_.layout), frontend.is_scalar(result)


# -- a region that calls share ---------------------------------------------------------------------------------------


@dataclass
class Shared:
    """A captured region: its arguments and state, and its results.

    ``passed`` maps a leaf of the result that is an argument itself to the argument's number; ``made`` are the leaves
    that the region's node returns. ``alive`` keeps objects alive whose identities ``key`` and ``state`` have.
    """

    key: list[Any]
    state: list[Any]
    region: Subgraph
    passed: dict[int, int]
    made: list[ArrayValue]
    alive: list[Any]


def _region(
    tx: ArrayContext, function: Constant, treatment: Treatment, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> Value:
    target = function.value
    if not isinstance(target, types.FunctionType):  # compiled already
        target = type(target).__tcompile_inline__(target)
    arrays: list[ArrayValue] = []
    key: list[Any] = [id(target), *(_key(arg, arrays) for arg in args)]
    key += [(name, _key(value, arrays)) for name, value in kwargs.items()]
    state = [tx.outside_mutations, *map(id, tx.effects.values())]
    shared = next((known for known in tx.regions if known.key == key and known.state == state), None)
    if shared is None:
        shared = _captured(tx, target, args, kwargs, arrays)
        shared.key, shared.state = key, state
        shared.alive = [target, *args, *kwargs.values(), *tx.effects.values()]
        if not _is_unique(key):
            tx.regions.append(shared)
    region = shared.region
    types_ = [node.tensor for node in region.graph.outputs]
    nodes = control_node(tx, ops.INVOKE, [*(a.traced.node for a in arrays), *region.outer], types_, [region.graph])
    made: dict[int, Value] = {}
    for leaf, node in zip(shared.made, nodes, strict=True):
        made[id(leaf)] = tx.from_frontend(Traced(node, leaf.traced.scalar))
    made.update({leaf: arrays[number] for leaf, number in shared.passed.items()})
    return _replaced(region.result, made, region.existing)


def _captured(
    tx: ArrayContext,
    target: types.FunctionType,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    arrays: Sequence[ArrayValue],
) -> Shared:
    """Follows the function on new arrays in a graph of its own."""
    passed: dict[int, int] = {}
    made: dict[int, ArrayValue] = {}

    def call(inside: list[Value]) -> Value:
        new: dict[int, Value] = {}
        for number, (value, array) in enumerate(zip(inside, arrays, strict=True)):
            assert isinstance(value, ArrayValue)
            value.become(Traced(value.traced.node, array.traced.scalar))
            tx.remember(value)
            new[id(array)] = value
            passed[id(value)] = number
        given = [_replaced(arg, new) for arg in args]
        named = {name: _replaced(value, new) for name, value in kwargs.items()}
        return FunctionValue.of(tx, target, None).call(tx, given, named)

    def finish(region: Subgraph) -> list[Node]:
        own = set(region.graph.nodes)
        for leaf in _leaves(region.result, region.existing):
            if isinstance(leaf, ArrayValue) and id(leaf) not in passed:
                node = leaf.traced.node
                new = node in own and (is_new(node) or node.op in (ops.GET, ops.CALL) or leaf.traced.scalar)
                if not new:
                    raise mismatch(f"`{target.__qualname__}` returns a view of an array, and no new array.")
                made[id(leaf)] = leaf
            elif not isinstance(leaf, Constant | IntegerValue | FloatValue | ArrayValue):
                raise mismatch(f"`{target.__qualname__}` returns {leaf.describe()}.")
        return [leaf.traced.node for leaf in made.values()]

    region = capture_region(tx, target.__name__, [a.traced.type for a in arrays], call, finish, tree=False)
    lift([region])
    return Shared([], [], region, passed, list(made.values()), [])


def _key(value: Value, arrays: list[ArrayValue]) -> Any:
    """A key for kinds of arguments; a part that is None fits no other call. Notes the arrays, each once."""
    if isinstance(value, ArrayValue):
        if value not in arrays:
            arrays.append(value)
        type_ = value.traced.type
        shape = tuple(map(str, type_.shape))
        return arrays.index(value), type_.dtype, shape, type_.layout, type_.device, value.traced.scalar
    if isinstance(value, SequenceValue) and value.cls is not list and value.source is None:
        return value.cls, tuple(_key(item, arrays) for item in value.items)
    if isinstance(value, Constant):
        literal = type(value.value) in _LITERALS
        return type(value.value), repr(value.value) if literal else id(value.value)
    if isinstance(value, IntegerValue):
        return "int", str(value.size)
    return id(value) if value.source is not None else None


def _is_unique(key: Any) -> bool:
    return key is None or (isinstance(key, list | tuple) and any(map(_is_unique, key)))


def _leaves(value: Value, existing: Collection[int]) -> Iterator[Value]:
    """The leaves of a region's result; containers that it made itself are opened."""
    if id(value) in existing or value.source is not None:
        return
    if isinstance(value, SequenceValue):
        for item in value.items:
            yield from _leaves(item, existing)
    elif isinstance(value, DictValue):
        for item in value.items.values():
            yield from _leaves(item, existing)
    else:
        yield value


def _replaced(value: Value, new: Mapping[int, Value], existing: Collection[int] | None = None) -> Value:
    """``value`` with other leaves, except in ``existing`` objects; without these, lists and dicts stay as they are."""
    found = new.get(id(value))
    if found is not None:
        return found
    if value.source is not None or (existing is not None and id(value) in existing):
        return value
    if isinstance(value, SequenceValue) and (value.cls is not list or existing is not None):
        return SequenceValue([_replaced(item, new, existing) for item in value.items], value.cls)
    if isinstance(value, DictValue) and existing is not None:
        return DictValue({key: _replaced(item, new, existing) for key, item in value.items.items()})
    return value


_HANDLERS: dict[str, Callable[..., Value]] = {
    "allow": _allow, "disallow": _disallow, "constant": _constant, "policy": call_under_policy, "region": _region,
    "substitute": _substitute, "frame": _disallow,
}  # fmt: skip
