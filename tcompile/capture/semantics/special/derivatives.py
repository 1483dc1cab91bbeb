"""Derivatives of captured functions: ``tcompile.grad`` and its relatives, through ``reverse`` and ``forward``.

Input: calls of them with captured functions and arguments.
Output: the function's value and its derivatives. The function is followed where it is called. So it has its side
effects, and its value has the bits of the plain call. Its derivative is then added to the same graph.
Why: guards, open sizes, fusion and caches are those of any other code.

A differentiated array goes in as a view of itself. So its aliases are constants here: a closure variable, or the
argument of a derivative around this one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tcompile.annotations import derivatives
from tcompile.capture.semantics.special.registry import bind, special
from tcompile.capture.semantics.subgraph import as_node, flatten, unflatten
from tcompile.capture.values.array import ArrayValue, Memory
from tcompile.capture.values.base import Context, Value, settled
from tcompile.capture.values.constant import Constant, FloatValue
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.scalar import ScalarValue
from tcompile.errors import DerivativeError
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Graph, Node
from tcompile.graph.ir import Location
from tcompile.records import dataclass

_NONE = Constant(None)


def _refuse(text: str) -> CannotCapture:
    return CannotCapture("not-differentiable", text)


@dataclass
class Leaf:
    """A number or array that is differentiated: its stand-in inside the function, and the stand-in's node."""

    outside: Value
    inside: Value
    node: Node

    def wrap(self, tx: Context, g: Node | None) -> Value:
        """A gradient as a value of the leaf's kind; zeros where the result does not depend on it."""
        if g is None:
            tensor = self.node.tensor
            g = tx.builder.op("full", shape=tensor.shape, fill_value=0.0, dtype=tensor.dtype.name)
        return _as_kind(tx, g, self.inside)


def _as_kind(tx: Context, node: Node, like: Value) -> Value:
    """A new value like another one: an array, a scalar of the library, or a Python float."""
    if isinstance(like, ScalarValue):
        return ScalarValue(ArrayValue(Traced(node, scalar=True), like.array.frontend), float)
    assert isinstance(like, ArrayValue)
    if like.traced.scalar:
        return tx.from_frontend(Traced(node, scalar=True))
    return tx.from_frontend(Traced(tx.builder.op("copy", node)))


def _leaf(tx: Context, value: Value, name: str) -> Leaf:
    """The stand-in for a differentiated number or array inside the function."""
    value = settled(tx, value)
    is_number = isinstance(value, FloatValue | ScalarValue) or (
        isinstance(value, Constant) and type(value.value) is float
    )
    if isinstance(value, ScalarValue) and value.cls is float:
        node = value.array.traced.node
    elif is_number and not isinstance(value, ScalarValue):
        node = as_node(tx, value)
    elif isinstance(value, ArrayValue):
        node = value.traced.node
    else:
        raise _refuse(f"{name} is {value.describe()}, and not a float or an array of floats.")
    if node.tensor.dtype.kind != "f":
        raise _refuse(f"{name} has the dtype {node.tensor.dtype.name}; derivatives are taken of floats alone.")
    shown = tx.builder.op("reshape", node, shape=node.tensor.shape)
    return Leaf(value, _inside(tx, value, shown), shown)


def _inside(tx: Context, value: Value, shown: Node) -> Value:
    """A view of a value, as one of its kind."""
    if isinstance(value, ArrayValue):
        return tx.new_array(Traced(shown, value.traced.scalar))
    return ScalarValue(ArrayValue(Traced(shown, scalar=True), tx.frontend_at(shown.device)), float)


@dataclass
class Argument:
    """One differentiated argument: its leaves, and their structure."""

    leaves: list[Leaf]
    spec: Any

    @property
    def inside(self) -> Value:
        """The argument that the function gets."""
        return unflatten(self.spec, iter([leaf.inside for leaf in self.leaves]))


def _argument(tx: Context, value: Value, name: str) -> Argument:
    leaves, spec = flatten(tx, value)
    return Argument([_leaf(tx, leaf, name) for leaf in leaves], spec)


@contextlib.contextmanager
def _followed(tx: Context, leaves: Sequence[Leaf]) -> Iterator[None]:
    """Refuses writes to differentiated arrays while a function is followed of which derivatives are taken."""
    held: list[tuple[Memory, str]] = []
    for leaf in leaves:
        memory = leaf.inside.memory if isinstance(leaf.inside, ArrayValue) else None
        if memory is not None:
            held.append((memory, memory.kept))
            memory.kept = memory.kept or "that is differentiated,"
    tx.differentiated += 1
    try:
        yield
    finally:
        tx.differentiated -= 1
        for memory, kept in reversed(held):
            memory.kept = kept


def _plain(tx: Context, value: Value) -> Any:
    """A constant, or a tuple of constants."""
    value = settled(tx, value)
    if isinstance(value, SequenceValue):
        return tuple(_plain(tx, item) for item in value.items)
    assert isinstance(value, Constant)
    return value.value


def _arguments(
    tx: Context, given: Value, named: Value, numbers: Sequence[int | str]
) -> tuple[list[Argument], list[Value], dict[str, Value]]:
    """The arguments to differentiate, and all arguments that the function gets."""
    assert isinstance(given, SequenceValue) and isinstance(named, DictValue)
    positional, keywords = list(given.items), dict(named.items)
    chosen = []
    for number in numbers:
        held: Any = positional if isinstance(number, int) else keywords
        if number >= len(held) if isinstance(number, int) else number not in held:
            raise _refuse(f"There is no argument {number!r} to differentiate.")
        argument = _argument(tx, held[number], f"Argument {number!r}")
        held[number] = argument.inside
        chosen.append(argument)
    return chosen, positional, keywords


@special(derivatives.reverse)
def _reverse(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    names: dict[str, Value | None] = {
        "function": None, "args": None, "kwargs": None, "numbers": None, "has_aux": None, "seed": _NONE,
    }  # fmt: skip
    called, given, named, which, aux, seed = bind("reverse", names, args, kwargs)
    graph = tx.builder.graph
    chosen, positional, keywords = _arguments(tx, given, named, _plain(tx, which))
    leaves = [leaf for argument in chosen for leaf in argument.leaves]
    start = len(graph.nodes)
    with _followed(tx, leaves):
        result = settled(tx, called.call(tx, positional, keywords))
    more: Value = _NONE
    if _plain(tx, aux):
        if not isinstance(result, SequenceValue) or len(result.items) != 2:
            raise _refuse(f"has_aux asks for a pair (value, aux), and the function returns {result.describe()}.")
        first, more = result.items
        result = settled(tx, first)
    pairs = _scalar(tx, result) if seed.is_none else _seeded(tx, result, seed)
    gradients = iter(_backward(tx, graph.nodes[start:], pairs, leaves))
    found: list[Value] = []
    for argument in chosen:
        wrapped = [leaf.wrap(tx, next(gradients)) for leaf in argument.leaves]
        found.append(unflatten(argument.spec, iter(wrapped)))
    return SequenceValue([result, more, SequenceValue(found, tuple)], tuple)


def _node(value: Value) -> Node | None:
    """The node of a result that may depend on differentiated arguments; None for numbers that do not."""
    if isinstance(value, ScalarValue):
        return value.array.traced.node
    if isinstance(value, ArrayValue):
        return value.traced.node
    return None


def _scalar(tx: Context, result: Value) -> list[tuple[Node, Node]]:
    """The one scalar result, with the cotangent 1."""
    node = _node(result)
    if node is None:
        if isinstance(result, Constant | FloatValue) and result.python_type in (int, float, bool):
            return []
        raise _refuse(f"The function returns {result.describe()}, and not a scalar.")
    if node.tensor.ndim:
        raise _refuse(f"The function returns {result.describe()}, and not a scalar; jacrev differentiates arrays.")
    if node.tensor.dtype.kind != "f":
        return _not_float(node)
    return [(node, tx.builder.op("full", shape=(), fill_value=1.0, dtype=node.tensor.dtype.name))]


def _not_float(node: Node) -> list[tuple[Node, Node]]:
    if node.tensor.dtype.kind == "c":
        raise _refuse("The function returns a complex number; complex numbers are not differentiated yet.")
    return []


def _seeded(tx: Context, result: Value, seed: Value) -> list[tuple[Node, Node]]:
    """The results with the cotangents that were given."""
    values, spec = flatten(tx, result)
    given, other = flatten(tx, seed)
    if spec != other or len(values) != len(given):
        raise _refuse("The cotangent has another structure than the function's result.")
    pairs = []
    for value, one in zip(values, given, strict=True):
        node = _node(value)
        if node is None or node.tensor.dtype.kind != "f":
            continue
        g = as_node(tx, one)
        if len(g.tensor.shape) != node.tensor.ndim or any(a != b for a, b in zip(g.tensor.shape, node.tensor.shape,
                                                                                 strict=True)):  # fmt: skip
            raise _refuse(f"A cotangent has the shape {g.tensor.shape}, its result {node.tensor.shape}.")
        pairs.append((node, g if g.tensor.dtype == node.tensor.dtype else
                      tx.builder.op("astype", g, dtype=node.tensor.dtype.name)))  # fmt: skip
    return pairs


def _backward(
    tx: Context, nodes: Sequence[Node], pairs: Sequence[tuple[Node, Node]], leaves: Sequence[Leaf]
) -> list[Node | None]:
    from tcompile.transforms.autodiff import backward  # with the first derivative, not with the first compile

    try:
        return backward(tx.builder.graph, nodes, pairs, [leaf.node for leaf in leaves], partial(_library, tx))
    except DerivativeError as error:
        raise _refuse(f"{error}.") from error


def _library(
    tx: Context,
    graph: Graph,
    location: Location | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Sequence[Node]:
    """A call of one of NumPy's functions, as its frontend expresses it."""
    held = tx.builder.graph, tx.builder.location
    tx.builder.graph, tx.builder.location = graph, location
    try:
        found = tx.frontend_at("cpu").call(tx.builder, function, [_traced(arg) for arg in args], _traced(kwargs))
    finally:
        tx.builder.graph, tx.builder.location = held
    parts = found if isinstance(found, tuple) else (found,)
    return [part.node for part in parts if isinstance(part, Traced)]


def _traced(value: Any) -> Any:
    if isinstance(value, Node):
        return Traced(value)
    if isinstance(value, tuple | list):
        return type(value)(_traced(item) for item in value)
    return {key: _traced(item) for key, item in value.items()} if isinstance(value, dict) else value


@special(derivatives.jvp)
@special(derivatives.forward)
def _forward(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    names: dict[str, Value | None] = {"fun": None, "primals": None, "tangents": None}
    called, given, along = bind("jvp", names, args, kwargs)
    graph = tx.builder.graph
    assert isinstance(given, SequenceValue) and isinstance(along, SequenceValue)
    if len(given.items) != len(along.items):
        raise _refuse(f"There are {len(given.items)} primals and {len(along.items)} tangents.")
    chosen = [_argument(tx, value, f"Argument {number}") for number, value in enumerate(given.items)]
    leaves = [leaf for argument in chosen for leaf in argument.leaves]
    start = len(graph.nodes)
    with _followed(tx, leaves):
        result = settled(tx, called.call(tx, [argument.inside for argument in chosen], {}))
    middle = len(graph.nodes)
    values, spec = flatten(tx, result)
    # The cotangents of the arguments are linear in those of the result. So their derivative with respect to the
    # result's cotangents is the forward derivative.
    pairs, dummies = [], []
    for value in values:
        node = _node(value)
        if node is not None and node.tensor.dtype.kind == "f":
            shape = node.tensor.shape
            zeros = tx.builder.op("full", shape=shape, fill_value=0.0, dtype=node.tensor.dtype.name)
            g = tx.builder.op("reshape", zeros, shape=shape)  # no constant: it is differentiated
            pairs.append((node, g))
            dummies.append(g)
    pulled = _backward(tx, graph.nodes[start:middle], pairs, leaves)
    seeds = _tangents(tx, chosen, along)
    ends = [(g, seed) for g, seed in zip(pulled, seeds, strict=True) if g is not None]
    dummy_leaves = [Leaf(_NONE, _NONE, g) for g in dummies]
    pushed = dict(zip(dummies, _backward(tx, graph.nodes[middle:], ends, dummy_leaves), strict=True))
    by_node = {node: pushed[g] for node, g in pairs}
    tangents = [_tangent(tx, value, by_node) for value in values]
    return SequenceValue([result, unflatten(spec, iter(tangents))], tuple)


def _tangent(tx: Context, value: Value, by_node: Mapping[Node, Node | None]) -> Value:
    node = _node(value)
    if node is None:
        return Constant(0.0)
    found = by_node.get(node)
    if found is None:
        dtype = node.tensor.dtype if node.tensor.dtype.kind == "f" else np.dtype("float64")
        found = tx.builder.op("full", shape=node.tensor.shape, fill_value=0.0, dtype=dtype.name)
    return _as_kind(tx, found, value)


def _tangents(tx: Context, chosen: Sequence[Argument], along: SequenceValue) -> list[Node]:
    """The tangents' nodes, one for each leaf."""
    seeds = []
    for number, (argument, value) in enumerate(zip(chosen, along.items, strict=True)):
        given, spec = flatten(tx, value)
        if spec != argument.spec or len(given) != len(argument.leaves):
            raise _refuse(f"Tangent {number} has another structure than its primal.")
        for leaf, one in zip(argument.leaves, given, strict=True):
            g, like = as_node(tx, one), leaf.node.tensor
            if g.tensor.ndim != like.ndim or any(a != b for a, b in zip(g.tensor.shape, like.shape, strict=True)):
                raise _refuse(f"Tangent {number} has the shape {g.tensor.shape}, its primal {like.shape}.")
            same = g.tensor.dtype == like.dtype
            seeds.append(g if same else tx.builder.op("astype", g, dtype=like.dtype.name))
    return seeds


@special(derivatives.stop_gradient)
def _stop_gradient(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    (x,) = bind("stop_gradient", {"x": None}, args, kwargs)
    leaves, spec = flatten(tx, x)
    return unflatten(spec, iter([_stopped(tx, leaf) for leaf in leaves]))


def _stopped(tx: Context, leaf: Value) -> Value:
    node = _node(leaf)
    if node is None or node.tensor.dtype.kind not in "f":
        return leaf
    from tcompile.transforms.autodiff import STOPPED

    shown = tx.builder.op("reshape", node, shape=node.tensor.shape)
    STOPPED.add(shown)
    return _inside(tx, leaf, shown)


@special(derivatives.compiled)
def _compiled(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """A derivative that a captured function makes is followed where it is called."""
    return args[0]
