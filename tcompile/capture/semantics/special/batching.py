"""Batches of captured functions: ``tcompile.vmap``, through ``batched``.

Input: calls of it with captured functions and arrays of examples.
Output: the results of all examples. The function is followed once, with stand-ins for the arrays of one example; the
operations that depend on these are then replaced by batched ones.
Why: guards, open sizes, fusion and caches are those of any other code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from tcompile.annotations import batching
from tcompile.capture.context.loop_plan import Restart
from tcompile.capture.semantics.special.library import library_call
from tcompile.capture.semantics.special.registry import bind, special
from tcompile.capture.semantics.subgraph import as_node, flatten, in_c_order, is_new, mismatch, state_of, unflatten
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import Context, Value, settled
from tcompile.capture.values.constant import Constant, IntegerValue
from tcompile.capture.values.container import SequenceValue
from tcompile.capture.values.dicts import DictValue
from tcompile.frontends.base import CannotCapture, Traced
from tcompile.graph import Graph, Node, TensorType
from tcompile.graph.sizes import Size, same
from tcompile.records import dataclass


@dataclass
class Examples:
    """Stand-ins for arrays of one example, and the arrays of all ``count`` examples."""

    count: Size
    graph: Graph
    arrays: dict[Node, Node] = field(default_factory=dict)

    def stand_in(self, column: Node) -> Node:
        """A stand-in for one row of an array of examples."""
        tensor = column.tensor
        node = self.graph.input("example", TensorType(tensor.dtype, tensor.shape[1:]))
        self.arrays[node] = column
        return node


@contextlib.contextmanager
def standing_in(tx: Context, count: Size) -> Iterator[Examples]:
    """Where operations on stand-ins may be added to the graph; they are gone at its end."""
    graph = tx.builder.graph
    made = Examples(count, Graph("examples", graph.env))
    start = len(graph.nodes)
    try:
        yield made
    finally:
        known = _dependents(graph, start, made)
        graph.nodes = [node for node in graph.nodes if node not in known]


def _dependents(graph: Graph, start: int, examples: Examples) -> set[Node]:
    """The stand-ins, and the nodes that depend on them."""
    known = set(examples.arrays)
    for node in graph.nodes[start:]:
        if any(o in known for o in node.inputs):
            known.add(node)
    return known


def computed(tx: Context, examples: Examples, start: int, wanted: Sequence[Node]) -> list[Node]:
    """The arrays of all examples, of what was computed of the stand-ins since node ``start``."""
    from tcompile.transforms.batching import batch  # with the first batch, not with the first compile
    from tcompile.transforms.emit import CUSTOM

    graph = tx.builder.graph
    held = tx.builder.location
    if tx.differentiated and any(node in CUSTOM for node in _dependents(graph, start, examples)):
        raise mismatch("A function with a derivative rule of its own is called for each example.")
    found = batch(graph, graph.nodes[start:], examples.arrays, wanted, examples.count, partial(library_call, tx))
    tx.builder.location = held
    return found


def _axis(tx: Context, value: Value, place: Any) -> tuple[ArrayValue, int]:
    if not isinstance(value, ArrayValue) or value.traced.scalar or value.traced.node.device != "cpu":
        raise mismatch(f"{value.describe()} is no array of examples.")
    return value, place % value.traced.node.tensor.ndim


def _column(tx: Context, value: Value, place: int, count: Size) -> Node:
    """An array of examples in C order with the examples' axis first."""
    array, axis = _axis(tx, value, place)
    node = array.traced.node
    size = node.tensor.shape[axis]
    if not same(size, count) and size != count:
        raise mismatch("Arguments have different numbers of examples.")
    if axis:
        order = (axis, *(i for i in range(node.tensor.ndim) if i != axis))
        node = tx.builder.op("permute_dims", node, axes=order)
    return in_c_order(tx, node)


def _given(tx: Context, examples: Examples, value: Value, axes: Value) -> Value:
    """An argument of one example."""
    value, axes = settled(tx, value), settled(tx, axes)
    if axes.is_none:
        return value
    if isinstance(value, SequenceValue):
        inner = axes.items if isinstance(axes, SequenceValue) else [axes] * len(value.items)
        items = [_given(tx, examples, item, axis) for item, axis in zip(value.items, inner, strict=True)]
        return SequenceValue(items, value.cls)
    if isinstance(value, DictValue):
        picked = axes.items if isinstance(axes, DictValue) else dict.fromkeys(value.items, axes)
        return DictValue({key: _given(tx, examples, item, picked[key]) for key, item in value.items.items()})
    if not isinstance(axes, Constant):
        raise mismatch(f"{axes.describe()} is no axis.")
    stand_in = examples.stand_in(_column(tx, value, axes.value, examples.count))
    if not stand_in.tensor.ndim:
        return tx.from_frontend(Traced(stand_in, scalar=True))
    return tx.new_array(Traced(stand_in), kept="an example of vmap's,")


def _place(spec: Any, axes: Value, tx: Context) -> list[int]:
    """The axis of each result in a tree."""
    axes = settled(tx, axes)
    if spec is None:
        assert isinstance(axes, Constant)
        return [axes.value]
    cls, inner = spec
    if cls is dict:
        picked = axes.items if isinstance(axes, DictValue) else {key: axes for key, _ in inner}
        return [place for key, part in inner for place in _place(part, picked[key], tx)]
    items = axes.items if isinstance(axes, SequenceValue) else [axes] * len(inner)
    return [place for part, axis in zip(inner, items, strict=True) for place in _place(part, axis, tx)]


@special(batching.batched)
def _batched(tx: Context, function: Constant, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    if not tx.options.follows_path:
        return _whole(tx, args, kwargs)
    refused = tx.loops.refused
    key = ("vmap", *((id(frame.code), frame.at) for frame in tx.frames))
    if key not in refused:
        try:
            return _whole(tx, args, kwargs)
        except CannotCapture as error:  # in the middle of changes that cannot be undone
            refused[key] = error.detail
            raise Restart from error
    in_turn = tx.wrap_found(batching.in_turn)
    return in_turn.call(tx, args, kwargs)  # each example takes its own path


def _whole(tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
    """All examples in each operation."""
    names = dict.fromkeys(("fun", "args", "axes", "kwargs", "out_axes", "count"))
    called, given, axes, named, out_axes, count = (settled(tx, value) for value in bind("vmap", names, args, kwargs))
    if not (isinstance(given, SequenceValue) and isinstance(axes, SequenceValue) and isinstance(named, DictValue)):
        raise mismatch("The arguments of the function are not known.")
    size = count.size if isinstance(count, IntegerValue) else count.value if isinstance(count, Constant) else None
    if size is None or (not isinstance(size, int) and not isinstance(count, IntegerValue)):
        raise mismatch("The number of examples is not known.")
    tx.differs = True  # plain Python calls the function for one example after the other
    with standing_in(tx, size) as examples:
        positional = [_given(tx, examples, value, axis) for value, axis in zip(given.items, axes.items, strict=True)]
        keywords = {key: _given(tx, examples, value, Constant(0)) for key, value in named.items.items()}
        before, start = state_of(tx), len(tx.builder.graph.nodes)
        result = settled(tx, called.call(tx, positional, keywords))
        leaves, spec = flatten(tx, result)
        wanted = [as_node(tx, leaf) for leaf in leaves]
        if state_of(tx)[:2] != before[:2]:
            raise mismatch("The function changes something outside itself, which it does for each example in turn.")
        found = computed(tx, examples, start, wanted)
        places = _place(spec, out_axes, tx)
        taken: set[Node] = set()
        arrays = [_result(tx, node, place, taken) for node, place in zip(found, places, strict=True)]
    return unflatten(spec, iter(arrays))


def _result(tx: Context, node: Node, place: int, taken: set[Node]) -> Value:
    """A new array with the examples along an axis. ``taken`` are nodes that other results are."""
    ndim = node.tensor.ndim
    if not -ndim <= place < ndim:
        raise mismatch(f"out_axes has {place}, and a result has {ndim} axes.")
    if place % ndim:
        order = list(range(1, ndim))
        order.insert(place % ndim, 0)
        node = tx.builder.op("permute_dims", node, axes=tuple(order))
    fresh = is_new(node) and node.tensor.c_contiguous and node not in taken
    taken.add(node)
    return tx.from_frontend(Traced(node if fresh else tx.builder.op("copy_c", node)))
