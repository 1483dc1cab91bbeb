"""The verifier: checks that a graph is well formed.

Input: a ``Graph``.
Output: nothing, or a GraphError that names the node and the user's line.
Why: a transform that breaks a graph is found where it ran, in tests and under ``config.verify``, and not by a wrong
number three stages later.

Checked: every operand is a value of the same graph and precedes its user; names are unique; each type is the one that
the op table's rule infers from the operands; sub-graphs have the signatures that their operation needs; every symbolic
size can be read from an input.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tcompile.errors import GraphError
from tcompile.graph import ops
from tcompile.graph.build import operand_type
from tcompile.graph.dtypes import BOOL, INT64
from tcompile.graph.ir import Graph, Location, Node
from tcompile.graph.op import INPUT, OPS, Op
from tcompile.graph.printer import call_text, type_text
from tcompile.graph.sizes import ShapeEnv, Size, SymInt, UnprovableSizeError, known_one, same, same_shape
from tcompile.graph.types import Layout, ScalarType, TensorType, Type
from tcompile.observe.source_location import UserLine, format_stack

REGIONS = {
    ops.INVOKE: 1, ops.COND: 2, ops.WHILE_LOOP: 2, ops.FORI_LOOP: 1, ops.EXIT_LOOP: 0, ops.SCAN: 1, ops.MAP: 1,
}  # fmt: skip  # 0: any


def verify(graph: Graph) -> None:
    """Raises GraphError where ``graph`` is not well formed. Records nothing in the graph's environment.

    >>> import numpy as np
    >>> from tcompile.graph import ops
    >>> g = Graph("double")
    >>> x = g.input("x", TensorType(np.dtype("float32"), (3,)))
    >>> g.outputs = [ops.apply(g, "multiply", x, 2.0)]
    >>> verify(g)
    >>> g.nodes.clear()
    >>> verify(g)
    Traceback (most recent call last):
        ...
    tcompile.errors.GraphError: double: output %multiply is not a value of this graph
    """
    with _asking(graph.env):
        _verify(graph, graph.env, set(graph.symbol_inputs()))


def _verify(graph: Graph, env: ShapeEnv, symbols: set[str]) -> None:
    if graph.env is not env:
        raise GraphError(f"{graph.name}: a region has symbols of its own, apart from those of the graph around it")
    defined: set[Node] = set()
    names: set[str] = set()
    for node in graph.inputs:
        if node.op is not INPUT or node.operands or node.regions:
            raise _error(graph, node, "stands among the inputs and is not one")
        _define(graph, node, defined, names)
    every = {*graph.inputs, *graph.nodes}
    for node in graph.nodes:
        op = node.op
        if OPS.get(str(op)) is not op:  # or a text, which is easily taken for its row
            raise _error(graph, node, f"there is no operation {op!r}; ops.op_named(name) gives a row of the table")
        for operand in node.operands:
            if isinstance(operand, Node):
                if operand not in defined:
                    later = operand in every
                    where = "is made only later" if later else "is not a value of this graph"
                    raise _error(graph, node, f"its operand %{operand.name} {where}")
            elif not isinstance(operand, bool | int | float | complex | SymInt):
                raise _error(graph, node, f"its operand {operand!r} is neither a value nor a number")
        _check_symbols(graph, node, symbols)
        _check_type(graph, node, op)
        for region in node.regions:
            _verify(region, env, symbols | set(region.symbol_inputs()))
        _define(graph, node, defined, names)
    for node in graph.outputs:
        if node not in defined:
            raise GraphError(f"{graph.name}: output %{node.name} is not a value of this graph")
        if not isinstance(node.type, TensorType | ScalarType):
            raise _error(graph, node, "is an output with several results")


def _define(graph: Graph, node: Node, defined: set[Node], names: set[str]) -> None:
    if node in defined:
        raise _error(graph, node, "stands twice in the graph")
    if node.name in names:
        raise _error(graph, node, "has the name of another value")
    defined.add(node)
    names.add(node.name)


# -- types -----------------------------------------------------------------------------------------


def _check_type(graph: Graph, node: Node, op: Op) -> None:
    if op.arity is not None and len(node.operands) != op.arity:
        raise _error(graph, node, f"has {len(node.operands)} operands and takes {op.arity}")
    if bool(node.regions) != (op in REGIONS):
        raise _error(graph, node, f"has {len(node.regions)} regions")
    if op.kind == "control":
        CONTROL[op](graph, node)
        return
    if op.type_rule is None:
        return  # any type: the code that built it stated it
    try:
        type = op.type_rule([operand_type(operand) for operand in node.operands], node.attrs)
    except UnprovableSizeError:
        raise
    except Exception as error:  # a rule may fail in any way on unexpected attributes
        raise _error(graph, node, f"its operands do not fit: {error}") from error
    _expect(graph, node, node.type, type, "has the type", "its operation gives")


def _expect(graph: Graph, node: Node, have: object, want: Type, says: str, gives: str) -> None:
    if not isinstance(have, TensorType | ScalarType) or not fits(have, want):
        shown = type_text(have) if isinstance(have, TensorType | ScalarType | tuple) else repr(have)
        raise _error(graph, node, f"{says} {shown} and {gives} {want}")


def fits(a: Type, b: Type) -> bool:
    """Whether a value can have both types; never records a guard."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.dtype == b.dtype and same_shape(a.shape, b.shape) and _order(a) == _order(b)
    if isinstance(a, ScalarType) and isinstance(b, ScalarType):
        symbols = a.symbol is b.symbol is None or (
            a.symbol is not None and b.symbol is not None and same(a.symbol, b.symbol)
        )
        return a.kind == b.kind and symbols
    return False


def _order(type: TensorType) -> Layout:
    """The observable part of a layout: without the positions of axes of size one and gaps between ranks, and without an
    order of empty arrays.
    """
    if any(isinstance(n, int) and not n for n in type.shape):
        return Layout.c(type.ndim)
    ranks = [0 if known_one(n) else r for n, r in zip(type.shape, type.layout.ranks, strict=True)]
    steps = sorted({0, *ranks})
    return Layout(tuple(steps.index(rank) for rank in ranks), type.layout.dense)


def _check_symbols(graph: Graph, node: Node, symbols: set[str]) -> None:
    for size in _sizes((node.operands, tuple(node.attrs.values()), node.type)):
        if size.env is not graph.env:
            raise _error(graph, node, f"its size {size} belongs to another graph")
        for name in re.findall(r"[A-Za-z_]\w*", str(size)):
            if name not in symbols:
                raise _error(graph, node, f"no input tells the size {name}")


def _sizes(value: Any) -> Iterator[SymInt]:
    if isinstance(value, SymInt):
        yield value
    elif isinstance(value, TensorType):
        yield from _sizes(value.shape)
    elif isinstance(value, slice):
        yield from _sizes((value.start, value.stop, value.step))
    elif isinstance(value, tuple):
        for item in value:
            yield from _sizes(item)


# -- regions ---------------------------------------------------------------------------------------


def _types(graph: Graph, node: Node, operands: Sequence[Any]) -> list[Type]:
    """The types of operands that go into a region; bare numbers have none, and are refused."""
    types = []
    for operand in operands:
        if not isinstance(operand, Node) or isinstance(operand.type, tuple):
            raise _error(graph, node, f"hands {operand!r} to its region, which takes values")
        types.append(operand.type)
    return types


def _takes(graph: Graph, node: Node, region: Graph, types: Sequence[Type | None]) -> None:
    if len(region.inputs) != len(types):
        raise _error(graph, node, f"its region {region.name} takes {len(region.inputs)} inputs, got {len(types)}")
    for inner, type in zip(region.inputs, types, strict=True):
        if type is not None:
            _expect(graph, node, inner.type, type, f"its region's input %{inner.name} is", "gets")


def _gives(graph: Graph, node: Node, region: Graph, types: Sequence[Type], says: str = "returns") -> None:
    have = [inner.type for inner in region.outputs]
    if len(have) != len(types):
        raise _error(graph, node, f"its region {region.name} returns {len(have)} values, needs {len(types)}")
    for inner, type in zip(have, types, strict=True):
        _expect(graph, node, inner, type, f"its region {region.name} {says}", "needs")


def _results(graph: Graph, node: Node) -> list[Type]:
    if not isinstance(node.type, tuple):
        raise _error(graph, node, f"has several results, and the type {node.type}")
    count = REGIONS[node.op]
    if len(node.regions) != count:
        raise _error(graph, node, f"has {len(node.regions)} regions and needs {count}")
    return list(node.type)


def _carries(graph: Graph, node: Node, carried: Sequence[Type], results: Sequence[Type]) -> None:
    if len(carried) != len(results) or not all(map(fits, carried, results)):
        raise _error(graph, node, f"carries {type_text(tuple(carried))} and results in {type_text(node.type)}")


def _check_get(graph: Graph, node: Node) -> None:
    source, index = node.operands[0], node.attrs.get("index")
    if not isinstance(source, Node) or not isinstance(source.type, tuple):
        raise _error(graph, node, "reads a value that has one result only")
    if not isinstance(index, int) or not 0 <= index < len(source.type):
        raise _error(graph, node, f"reads result {index} of {len(source.type)}")
    _expect(graph, node, node.type, source.type[index], "has the type", "reads")


def _check_cond(graph: Graph, node: Node) -> None:
    results = _results(graph, node)
    types = _types(graph, node, node.operands[1:])
    for region in node.regions:
        _takes(graph, node, region, types)
        _gives(graph, node, region, results)


def _check_invoke(graph: Graph, node: Node) -> None:
    results = _results(graph, node)
    (region,) = node.regions
    _takes(graph, node, region, _types(graph, node, node.operands))
    _gives(graph, node, region, results)


def _check_while(graph: Graph, node: Node) -> None:
    results, carried = _results(graph, node), _types(graph, node, node.operands)
    condition, body = node.regions
    _carries(graph, node, carried, results)
    _takes(graph, node, condition, carried)
    _takes(graph, node, body, carried)
    _gives(graph, node, condition, [TensorType(BOOL, ())])
    _gives(graph, node, body, results)


def _check_fori(graph: Graph, node: Node) -> None:
    results, carried = _results(graph, node), _types(graph, node, node.operands[2:])
    (body,) = node.regions
    _carries(graph, node, carried, results)
    _takes(graph, node, body, [None, *carried])  # the induction variable may have any integer type
    _gives(graph, node, body, results)


def _check_exit(graph: Graph, node: Node) -> None:
    carried = _types(graph, node, node.operands[2:])
    assert isinstance(node.type, tuple)
    results = list(node.type)
    number, flag = TensorType(INT64, ()), TensorType(BOOL, ())
    _carries(graph, node, [*carried, number, number], results)
    if len(node.attrs["leaves"]) != len(node.regions) - 1:
        raise _error(graph, node, f"has {len(node.regions)} parts and {len(node.attrs['leaves'])} ends of such")
    for part in node.regions:
        _takes(graph, node, part, [None, *carried])
        _gives(graph, node, part, [*carried, *([flag] if part is not node.regions[-1] else [])])


def _check_scan(graph: Graph, node: Node) -> None:
    results, types = _results(graph, node), _types(graph, node, node.operands)
    (combine,) = node.regions
    carry = node.attrs.get("carry", 0)
    _carries(graph, node, types[:carry], results[:carry])
    parts, length = _slices(graph, node, types[carry:])
    _takes(graph, node, combine, [*types[:carry], *parts])
    _gives(graph, node, combine, [*results[:carry], *_rows(graph, node, results[carry:], length)])


def _check_map(graph: Graph, node: Node) -> None:
    results, types = _results(graph, node), _types(graph, node, node.operands)
    (region,) = node.regions
    parts, length = _slices(graph, node, types)
    _takes(graph, node, region, parts)
    rows = _rows(graph, node, results, length)
    if len(region.outputs) != len(rows):
        raise _error(graph, node, f"its region returns {len(region.outputs)} values, needs {len(rows)}")
    for inner, row in zip(region.outputs, rows, strict=True):  # stacking makes new arrays, from any memory order
        have = inner.type
        if not (isinstance(have, TensorType) and have.dtype == row.dtype and same_shape(have.shape, row.shape)):
            raise _error(graph, node, f"its region returns {have}, needs {row}")


def _slices(graph: Graph, node: Node, types: Sequence[Type]) -> tuple[list[Type], Size | None]:
    """The types of one slice of each operand along its first axis, and that axis's length."""
    parts: list[Type] = []
    length: Size | None = None
    for type in types:
        if not isinstance(type, TensorType) or not type.ndim:
            raise _error(graph, node, f"cannot go along the first axis of {type}")
        if length is not None and not same(length, type.shape[0]):
            raise _error(graph, node, f"goes along axes of sizes {length} and {type.shape[0]}")
        length = type.shape[0]
        rest = sorted(type.layout.ranks[1:])
        outermost = type.c_contiguous or all(type.layout.ranks[0] > rank for rank in rest)
        parts.append(
            TensorType(type.dtype, type.shape[1:], Layout(type.layout.ranks[1:], type.layout.dense and outermost))
        )
    return parts, length


def _rows(graph: Graph, node: Node, types: Sequence[Type], length: Size | None) -> list[TensorType]:
    rows = []
    for type in types:
        if not isinstance(type, TensorType) or not type.ndim or length is None or not same(type.shape[0], length):
            raise _error(graph, node, f"stacks {length} rows and has a result {type}")
        rows.append(TensorType(type.dtype, type.shape[1:]))
    return rows


CONTROL: dict[Op, Callable[[Graph, Node], None]] = {
    ops.GET: _check_get, ops.INVOKE: _check_invoke, ops.COND: _check_cond, ops.WHILE_LOOP: _check_while,
    ops.FORI_LOOP: _check_fori, ops.EXIT_LOOP: _check_exit, ops.SCAN: _check_scan, ops.MAP: _check_map,
}  # fmt: skip


# -- reporting -------------------------------------------------------------------------------------


def _error(graph: Graph, node: Node, problem: str) -> GraphError:
    text = f"{graph.name}: %{node.name} = {_shown(node)}: {problem}"
    if node.location is not None:
        text += f"\n{format_stack([user_line(node.location)])}"
    return GraphError(text)


def _shown(node: Node) -> str:
    try:
        return call_text(node)
    except (AttributeError, TypeError):  # an operation, attribute or operand that no graph may have
        return str(node.op)


def user_line(location: Location) -> UserLine:
    """The location as events carry it."""
    return UserLine(
        file=location.file, line=location.line, column=location.column, end_column=location.end_column,
        function=location.function, text=location.text, end_line=location.end_line,
    )  # fmt: skip


@contextlib.contextmanager
def _asking(env: ShapeEnv) -> Iterator[None]:
    """Lets type rules compare sizes, and removes the guards that they record."""
    guards, frozen = dict(env.guards), env.frozen
    env.frozen = False  # the comparisons were answered when the nodes were made
    try:
        yield
    finally:
        env.guards = guards
        env.frozen = frozen


__all__ = ["fits", "user_line", "verify"]
