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
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tcompile.annotations import derivatives
from tcompile.capture.context.loop_plan import Restart
from tcompile.capture.semantics.special.library import library_call
from tcompile.capture.semantics.special.registry import bind, special
from tcompile.capture.semantics.subgraph import as_node, flatten, is_new, unflatten
from tcompile.capture.values.array import ArrayValue, Memory, origin
from tcompile.capture.values.base import Context, Value, settled
from tcompile.capture.values.constant import Constant, FloatValue, IntegerValue
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.capture.values.scalar import ScalarValue
from tcompile.errors import DerivativeError
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Node, TensorType, ops
from tcompile.graph.sizes import SymInt, VariesInLoop
from tcompile.records import dataclass

_NONE = Constant(None)


def refuse(text: str) -> CannotCapture:
    """The graph break of what has no derivative."""
    return CannotCapture("not-differentiable", text)


@dataclass
class Leaf:
    """A number or array that is differentiated: what the function gets for it, and the node of that."""

    outside: Value
    inside: Value
    node: Node

    def wrap(self, tx: Context, g: Node | None, own: set[Node]) -> Value:
        """A gradient as a value of the leaf's kind; zeros where the result does not depend on it.

        ``own`` are new arrays that nothing else holds; one that is taken leaves them.
        """
        if g is None:
            tensor = self.node.tensor
            g = tx.builder.op("full", shape=tensor.shape, fill_value=0.0, dtype=tensor.dtype.name)
            own.add(g)
        is_own = g in own
        own.discard(g)
        return as_kind(tx, g, self.inside, is_own)


def as_kind(tx: Context, node: Node, like: Value, own: bool = False) -> Value:
    """A new value like another one: an array, a scalar of the library, or a Python float.

    ``own``: nothing else holds the node's array.
    """
    if isinstance(like, ScalarValue):
        return ScalarValue(ArrayValue(Traced(node, scalar=True), like.array.frontend), float)
    assert isinstance(like, ArrayValue)
    if like.traced.scalar:
        return tx.from_frontend(Traced(node, scalar=True))
    return tx.from_frontend(Traced(node if own else tx.builder.op("copy", node)))


def _leaf(tx: Context, value: Value, name: str) -> Leaf:
    """A differentiated number or array, and what the function gets for it."""
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
        raise refuse(f"{name} is {value.describe()}, and not a float or an array of floats.")
    if node.tensor.dtype.kind not in "fc":
        raise refuse(f"{name} has the dtype {node.tensor.dtype.name}; derivatives are taken of floats alone.")
    written = isinstance(value, ArrayValue) and not value.traced.scalar and _place(tx) in tx.loops.refused
    shown = tx.builder.op("copy", node) if written else tx.builder.op("reshape", node, shape=node.tensor.shape)
    return Leaf(value, inside(tx, value, shown), shown)


def _place(tx: Context) -> tuple[Any, ...]:
    """The call that is followed, as a key for what is known of it in the next attempt at capture."""
    return "written", *((id(frame.code), frame.at) for frame in tx.frames)


def inside(tx: Context, value: Value, shown: Node) -> Value:
    """A view of a value, as one of its kind."""
    if isinstance(value, ArrayValue):
        return tx.new_array(Traced(shown, value.traced.scalar))
    return ScalarValue(ArrayValue(Traced(shown, scalar=True), tx.frontend_at(shown.device)), float)


@dataclass
class Argument:
    """One differentiated argument: its leaves, and their structure."""

    leaves: list[Leaf]
    spec: Any
    inside: Value  # what the function gets

    def check_kept(self, tx: Context) -> None:
        """Refuses a function that has put other items into a list or dict."""
        leaves, spec = flatten(tx, self.inside) if self.leaves else ([], self.spec)
        if spec != self.spec or any(a is not b.inside for a, b in zip(leaves, self.leaves, strict=False)):
            raise refuse("The function puts other items into a list or dict that is differentiated.")


def _argument(tx: Context, value: Value, name: str) -> Argument:
    given, spec = flatten(tx, value)
    leaves = [_leaf(tx, leaf, name) for leaf in given]
    return Argument(leaves, spec, unflatten(spec, iter([leaf.inside for leaf in leaves])))


def call(
    tx: Context, called: Value, args: Sequence[Value], kwargs: Mapping[str, Value], chosen: Sequence[Argument]
) -> Value:
    """The result of a function of which derivatives are taken.

    It gets views of the differentiated arrays. Where it writes to one, capture starts again and it gets copies, whose
    elements are then written to the arrays.
    """
    leaves = [leaf for argument in chosen for leaf in argument.leaves]
    start, place = len(tx.builder.graph.nodes), _place(tx)
    try:
        with followed(tx, leaves):
            result = settled(tx, called.call(tx, args, kwargs))
    except CannotCapture as error:
        if _KEPT not in error.detail or place in tx.loops.refused:
            raise
        tx.loops.refused[place] = error.detail
        raise Restart from error
    for argument in chosen:
        argument.check_kept(tx)
    written = [leaf for leaf in leaves if isinstance(leaf.inside, ArrayValue) and leaf.inside.memory is not None
               and leaf.inside.memory.version and leaf.node.op is ops.COPY]  # fmt: skip
    if written:
        _check_aliases(tx, leaves, tx.builder.graph.nodes[start:])
    for leaf in written:
        leaf.outside.store_item(tx, Constant(Ellipsis), leaf.inside)
    return result


def _check_aliases(tx: Context, leaves: Sequence[Leaf], nodes: Sequence[Node]) -> None:
    """Refuses a function that writes to an argument which it also reads under another name."""
    roots = [leaf.outside.memory.root for leaf in leaves
             if isinstance(leaf.outside, ArrayValue) and leaf.outside.memory is not None]  # fmt: skip
    inner = set(nodes)
    read = {origin(o)[0] for node in nodes for o in node.inputs if o not in inner and isinstance(o.type, TensorType)}
    if len(set(roots)) < len(roots) or not read.isdisjoint(roots):
        raise refuse("An array that is differentiated is written to, and read under another name.")


_KEPT = "that is differentiated,"


@contextlib.contextmanager
def followed(tx: Context, leaves: Sequence[Leaf]) -> Iterator[None]:
    """Refuses writes to differentiated arrays while a function is followed of which derivatives are taken."""
    held: list[tuple[Memory, str]] = []
    for leaf in leaves:
        memory = leaf.outside.memory if isinstance(leaf.outside, ArrayValue) else None
        if memory is not None:
            held.append((memory, memory.kept))
            memory.kept = memory.kept or _KEPT
    tx.differentiated += 1
    tx.differs = True  # plain Python evaluates the same graph, operation by operation
    try:
        yield
    finally:
        tx.differentiated -= 1
        for memory, kept in reversed(held):
            memory.kept = kept


def constant_of(tx: Context, value: Value) -> Any:
    """A constant, or a tuple of constants."""
    value = settled(tx, value)
    if isinstance(value, SequenceValue):
        return tuple(constant_of(tx, item) for item in value.items)
    if isinstance(value, IntegerValue):  # it was another one in another call
        return value.size.specialise() if isinstance(value.size, SymInt) else value.size
    assert isinstance(value, Constant)
    return value.value


def arguments(
    tx: Context, given: Value, named: Value, numbers: Sequence[int | str]
) -> tuple[list[Argument], list[Value], dict[str, Value]]:
    """The arguments to differentiate, and all arguments that the function gets."""
    assert isinstance(given, SequenceValue) and isinstance(named, DictValue)
    positional, keywords = list(given.items), dict(named.items)
    chosen = []
    for number in numbers:
        held: Any = positional if isinstance(number, int) else keywords
        if number >= len(held) if isinstance(number, int) else number not in held:
            raise refuse(f"There is no argument {number!r} to differentiate.")
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
    chosen, positional, keywords = arguments(tx, given, named, constant_of(tx, which))
    leaves = [leaf for argument in chosen for leaf in argument.leaves]
    start = len(graph.nodes)
    result = call(tx, called, positional, keywords, chosen)
    result, more = with_aux(tx, result, constant_of(tx, aux))
    if isinstance(seed, Constant) and type(seed.value) is complex:
        _check_holomorphic(result, leaves)
    pairs = _scalar(tx, result, leaves) if seed.is_none else _seeded(tx, result, seed)
    known = set(graph.nodes)
    gradients = iter(pull_back(tx, graph.nodes[start:], pairs, leaves))
    own = {node for node in graph.nodes if node not in known and _is_own(node, known)}
    found: list[Value] = []
    for argument in chosen:
        wrapped = [leaf.wrap(tx, next(gradients), own) for leaf in argument.leaves]
        found.append(unflatten(argument.spec, iter(wrapped)))
    return SequenceValue([result, more, SequenceValue(found, tuple)], tuple)


def _is_own(node: Node, known: Collection[Node]) -> bool:
    """Whether a node's array is a new one, or written into one, that the derivative has made."""
    while node.op is ops.ASSIGN:
        node = node.inputs[0]
    return node not in known and is_new(node)


def with_aux(tx: Context, result: Value, has_aux: bool) -> tuple[Value, Value]:
    """A function's value, and what it returns besides."""
    if not has_aux:
        return result, _NONE
    if not isinstance(result, SequenceValue) or len(result.items) != 2:
        raise refuse(f"has_aux asks for a pair (value, aux), and the function returns {result.describe()}.")
    first, more = result.items
    return settled(tx, first), more


def result_node(value: Value) -> Node | None:
    """The node of a result that may depend on differentiated arguments; None for numbers that do not."""
    if isinstance(value, ScalarValue):
        return value.array.traced.node
    if isinstance(value, ArrayValue):
        return value.traced.node
    return None


def _scalar(tx: Context, result: Value, leaves: Sequence[Leaf]) -> list[tuple[Node, Node]]:
    """The one scalar result, with the cotangent 1."""
    if any(leaf.node.tensor.dtype.kind == "c" for leaf in leaves):
        raise refuse(
            "An argument is complex: pass holomorphic=True for the derivative of a holomorphic function, or use vjp."
        )
    node = result_node(result)
    if node is None:
        if isinstance(result, Constant | FloatValue) and result.python_type in (int, float, bool):
            return []
        raise refuse(f"The function returns {result.describe()}, and not a scalar.")
    if node.tensor.ndim:
        raise refuse(f"The function returns {result.describe()}, and not a scalar; jacrev differentiates arrays.")
    if node.tensor.dtype.kind != "f":
        return _not_float(node)
    return [(node, tx.builder.op("full", shape=(), fill_value=1.0, dtype=node.tensor.dtype.name))]


def _check_holomorphic(result: Value, leaves: Sequence[Leaf]) -> None:
    for leaf in leaves:
        if leaf.node.tensor.dtype.kind != "c":
            raise refuse(f"With holomorphic=True arguments are complex, got the dtype {leaf.node.tensor.dtype.name}.")
    node = result_node(result)
    if node is None or node.tensor.ndim or node.tensor.dtype.kind != "c":
        raise refuse(f"With holomorphic=True the function returns a complex scalar, got {result.describe()}.")


def _not_float(node: Node) -> list[tuple[Node, Node]]:
    if node.tensor.dtype.kind == "c":
        raise refuse("The function returns a complex number; its real part, its abs() or vjp can be differentiated.")
    return []


def _seeded(tx: Context, result: Value, seed: Value) -> list[tuple[Node, Node]]:
    """The results with the cotangents that were given."""
    values, spec = flatten(tx, result)
    given, other = flatten(tx, seed)
    if spec != other or len(values) != len(given):
        raise refuse("The cotangent has another structure than the function's result.")
    pairs = []
    for value, one in zip(values, given, strict=True):
        node = result_node(value)
        if node is None or node.tensor.dtype.kind not in "fc":
            continue
        g = as_node(tx, one)
        if g.tensor.dtype.kind == "c" and node.tensor.dtype.kind != "c":
            raise refuse(f"A cotangent is complex, and its result has the dtype {node.tensor.dtype.name}.")
        if len(g.tensor.shape) != node.tensor.ndim or any(a != b for a, b in zip(g.tensor.shape, node.tensor.shape,
                                                                                 strict=True)):  # fmt: skip
            raise refuse(f"A cotangent has the shape {g.tensor.shape}, its result {node.tensor.shape}.")
        pairs.append((node, g if g.tensor.dtype == node.tensor.dtype else
                      tx.builder.op("astype", g, dtype=node.tensor.dtype.name)))  # fmt: skip
    return pairs


def pull_back(
    tx: Context, nodes: Sequence[Node], pairs: Sequence[tuple[Node, Node]], leaves: Sequence[Leaf]
) -> list[Node | None]:
    """The cotangents of leaves, from pairs of a result and its cotangent; None where nothing depends on a leaf."""
    from tcompile.transforms.autodiff import backward  # with the first derivative, not with the first compile

    library, sources = partial(library_call, tx), [leaf.node for leaf in leaves]
    try:
        return backward(tx.builder.graph, nodes, pairs, sources, library, tx.options.splits_exit_loops)
    except DerivativeError as error:
        raise refuse(f"{error}.") from error
    except VariesInLoop as error:
        raise refuse(f"A loop has no derivative rule: {error}.") from error


@special(derivatives.jvp)
@special(derivatives.forward)
def _forward(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    names: dict[str, Value | None] = {"fun": None, "primals": None, "tangents": None}
    called, given, along = bind("jvp", names, args, kwargs)
    graph = tx.builder.graph
    assert isinstance(given, SequenceValue) and isinstance(along, SequenceValue)
    if len(given.items) != len(along.items):
        raise refuse(f"There are {len(given.items)} primals and {len(along.items)} tangents.")
    chosen = [_argument(tx, value, f"Argument {number}") for number, value in enumerate(given.items)]
    leaves = [leaf for argument in chosen for leaf in argument.leaves]
    start = len(graph.nodes)
    result = call(tx, called, [argument.inside for argument in chosen], {}, chosen)
    values, spec = flatten(tx, result)
    linear = Linear(tx, graph.nodes[start:], values, leaves)
    seeds = _tangents(tx, chosen, along)
    by_node = linear.pushed(dict(enumerate(seeds)))
    tangents = [_tangent(tx, value, by_node) for value in values]
    return SequenceValue([result, unflatten(spec, iter(tangents))], tuple)


class Linear:
    """The derivative of some results by the leaves, as a linear function of tangents.

    The cotangents of the leaves are linear in those of the results. So their derivative by the results' cotangents is
    the forward derivative.
    """

    def __init__(self, tx: Context, nodes: Sequence[Node], values: Sequence[Value], leaves: Sequence[Leaf]) -> None:
        self.tx = tx
        self.pairs: list[tuple[Node, Node]] = []
        start = len(tx.builder.graph.nodes)
        for value in values:
            node = result_node(value)
            if node is not None and node.tensor.dtype.kind in "fc":
                shape = node.tensor.shape
                zeros = tx.builder.op("full", shape=shape, fill_value=0.0, dtype=node.tensor.dtype.name)
                self.pairs.append((node, tx.builder.op("reshape", zeros, shape=shape)))  # no constant
        self.pulled = pull_back(tx, nodes, self.pairs, leaves)
        self.nodes = tx.builder.graph.nodes[start:]

    def pushed(self, tangents: Mapping[int, Node]) -> dict[Node, Node | None]:
        """The tangent of each result's node, of those of some leaves, by number."""
        ends = [(g, seed) for i, seed in tangents.items() if (g := self.pulled[i]) is not None]
        cotangents = [Leaf(_NONE, _NONE, g) for _, g in self.pairs]
        found = pull_back(self.tx, self.nodes, ends, cotangents)
        return {node: tangent for (node, _), tangent in zip(self.pairs, found, strict=True)}


def _tangent(tx: Context, value: Value, by_node: Mapping[Node, Node | None]) -> Value:
    node = result_node(value)
    if node is None:
        return Constant(0.0)
    found = by_node.get(node)
    if found is None:
        dtype = node.tensor.dtype if node.tensor.dtype.kind in "fc" else np.dtype("float64")
        found = tx.builder.op("full", shape=node.tensor.shape, fill_value=0.0, dtype=dtype.name)
    return as_kind(tx, found, value)


def _tangents(tx: Context, chosen: Sequence[Argument], along: SequenceValue) -> list[Node]:
    """The tangents' nodes, one for each leaf."""
    seeds = []
    for number, (argument, value) in enumerate(zip(chosen, along.items, strict=True)):
        given, spec = flatten(tx, value)
        if spec != argument.spec or len(given) != len(argument.leaves):
            raise refuse(f"Tangent {number} has another structure than its primal.")
        for leaf, one in zip(argument.leaves, given, strict=True):
            g, like = as_node(tx, one), leaf.node.tensor
            if g.tensor.ndim != like.ndim or any(a != b for a, b in zip(g.tensor.shape, like.shape, strict=True)):
                raise refuse(f"Tangent {number} has the shape {g.tensor.shape}, its primal {like.shape}.")
            if g.tensor.dtype.kind == "c" and like.dtype.kind != "c":
                raise refuse(f"Tangent {number} is complex, and its primal has the dtype {like.dtype.name}.")
            same = g.tensor.dtype == like.dtype
            seeds.append(g if same else tx.builder.op("astype", g, dtype=like.dtype.name))
    return seeds


@special(derivatives.checkpoint)
def _checkpoint(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    (fun,) = bind("checkpoint", {"fun": None}, args, kwargs)
    return Constant(derivatives.checkpoint(fun.value)) if isinstance(fun, Constant) else fun


@special(derivatives.stop_gradient)
def _stop_gradient(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    (x,) = bind("stop_gradient", {"x": None}, args, kwargs)
    leaves, spec = flatten(tx, x)
    return unflatten(spec, iter([_stopped(tx, leaf) for leaf in leaves]))


def _stopped(tx: Context, leaf: Value) -> Value:
    node = result_node(leaf)
    if node is None or node.tensor.dtype.kind not in "fc":
        return leaf
    from tcompile.transforms.emit import STOPPED

    shown = tx.builder.op("reshape", node, shape=node.tensor.shape)
    STOPPED.add(shown)
    return inside(tx, leaf, shown)


@special(derivatives.compiled)
def _compiled(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """A derivative that a captured function makes is followed where it is called."""
    return args[0]
