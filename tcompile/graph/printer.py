"""Printing of graphs: as Python that runs, and as a listing to read.

Input: a ``Graph``.
Output: text.
Why: every stage's output can be inspected, run, changed and read back: ``from_code(code(graph))`` is the same graph
again (see ``reader``).

In the printed function, operations are calls on an array namespace ``xp``, each with its result's type as a comment,
under a comment with the user's line. Open sizes are bound at the top. Sub-graphs are nested functions, passed to their
operation. Operations without type inference have an argument ``type``.
"""

from __future__ import annotations

import builtins
import cmath
import keyword
import math
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tcompile.graph.dtypes import is_extension
from tcompile.graph.ir import Graph, Location, Node, Operand
from tcompile.graph.ops.control import GET
from tcompile.graph.ops.opaque import TENSOR_CALL, Name, Slot, short_name
from tcompile.graph.ops.scalar_loop import SCALAR_LOOP, about
from tcompile.graph.ops.view import INDEX
from tcompile.graph.ops.writing import ASSIGN
from tcompile.graph.reader import NO_SOURCE, from_code, parse_type
from tcompile.graph.sizes import SymInt
from tcompile.graph.types import TensorType, Type
from tcompile.observe.source_location import file_label

_RESERVED = {*keyword.kwlist, *dir(builtins), "xp"}


def code(graph: Graph) -> str:
    """The graph as the text of a runnable Python function over an array namespace ``xp``.

    >>> from tcompile.graph import ops
    >>> g = Graph("double")
    >>> x = g.input("x", TensorType(np.dtype("float32"), (3,)))
    >>> g.outputs = [ops.apply(g, "multiply", x, 2.0)]
    >>> print(code(g), end="")
    def double(x: "f32[3]"):
        multiply = xp.multiply(x, 2.0)  # f32[3]
        return (multiply,)
    """
    names = _Names({*_RESERVED, *graph.env.hints})
    name = names.add(graph.name)
    return "\n".join(_function(graph, name, names, bind=True)) + "\n"


def _function(graph: Graph, name: str, outer: _Names, *, bind: bool = False) -> Iterator[str]:
    names = _Names(outer.used)
    for node in graph.inputs:
        names.name(node)
    arguments = ", ".join(f'{names[node]}: "{_signature_type(node.type)}"' for node in graph.inputs)
    yield f"def {name}({arguments}):"
    if bind:
        for symbol, (position, axis) in graph.symbol_inputs().items():
            source = names[graph.inputs[position]] + ("" if axis is None else f".shape[{axis}]")
            least = graph.env.minimum.get(symbol)
            bound = "" if least is None else f", at least {least}"
            yield f"    {symbol} = {source}  # {graph.env.hints[symbol]} at capture{bound}"
    above: str | None = None
    printed: dict[Graph, str] = {}
    for node in graph.nodes:
        place = _place(node.location)
        if place != above and (place or above):
            yield f"    # {place or NO_SOURCE}"
        above = place
        functions = []
        for region in node.regions:
            if region in printed:  # several nodes share it
                functions.append(printed[region])
                continue
            printed[region] = names.add(region.name)
            functions.append(printed[region])
            for line in _function(region, functions[-1], names):
                yield f"    {line}"
        yield f"    {_statement(node, functions, names)}"
    outputs = "".join(f"{names[node]}, " for node in graph.outputs)
    yield f"    return ({outputs.rstrip() if len(graph.outputs) == 1 else outputs.rstrip(', ')})"


def _statement(node: Node, functions: list[str], names: _Names) -> str:
    arguments = [_operand(operand, names) for operand in node.operands]
    arguments += [f"{key}={literal(value)}" for key, value in node.attrs.items()]
    if functions:
        arguments.append(f"regions=[{', '.join(functions)}]")
    types = node.type if isinstance(node.type, tuple) else (node.type,)
    if states_type(node):
        stated = [f'"{_signature_type(type)}"' for type in types]
        tuple_text = f"({', '.join(stated)}{',' if len(stated) == 1 else ''})"
        arguments.append(f"type={tuple_text if isinstance(node.type, tuple) else stated[0]}")
    return f"{names.name(node)} = xp.{node.op.name}({', '.join(arguments)})  # {type_text(node.type)}"


def states_type(node: Node) -> bool:
    """Whether the printed form has to state the type: no rule infers it from the operands."""
    return node.op.type_rule is None and node.op is not GET


def _operand(operand: Operand, names: _Names) -> str:
    return names[operand] if isinstance(operand, Node) else literal(operand)


def _place(location: Location | None) -> str:
    if location is None:
        return ""
    text = location.text.strip().partition("\n")[0].strip()
    place = f"{location.file}:{location.line} in {location.function}" + (f": {text}" if text else "")
    return "".join(c if c.isprintable() else " " for c in place)


# -- types and values ------------------------------------------------------------------------------


def type_text(type: Type | tuple[Type, ...]) -> str:
    """A type, or the types of several results in parentheses."""
    return f"({', '.join(map(str, type))})" if isinstance(type, tuple) else str(type)


def _signature_type(type: Type | tuple[Type, ...]) -> str:
    """The text of a type, which ``parse_type`` parses to an equal one."""
    text = str(type)
    if isinstance(type, TensorType) and parse_type(text, None).layout != type.layout:  # type: ignore[union-attr]
        word = "ranks" if type.layout.dense else "strided"
        layout = f"{{{word} {','.join(map(str, type.layout.ranks))}}}"
        text = re.sub(r"\](\{.*?\})?", lambda _: f"]{layout}", text, count=1)
    return text


def literal(value: Any) -> str:
    """An attribute or a number as a Python expression over ``xp``."""
    if isinstance(value, np.dtype):
        return repr(value.name if is_extension(value) or np.dtype(value.name) == value else value.str)
    if isinstance(value, np.generic):
        return f"xp.const({value.dtype.name!r}, {literal(value.item())})"
    if isinstance(value, type) and issubclass(value, np.generic):
        return repr(np.dtype(value).name)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, complex):
        plain = cmath.isfinite(value) and math.copysign(1, value.real) == 1 == math.copysign(1, value.imag)
        return repr(value) if plain else f"complex({_float(value.real)}, {_float(value.imag)})"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, Slot):
        return f"xp.slot({value.index})" if value.seen == "array" else f"xp.slot({value.index}, {value.seen!r})"
    if isinstance(value, Name):
        return f"xp.name({value.path!r})"
    if value is Ellipsis:
        return "..."
    if isinstance(value, str | bytes | bool | int | SymInt | None):
        return repr(value)
    raise TypeError(f"graphs have no attributes of type {type(value).__name__}: {value!r}")


def _float(value: float) -> str:
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isnan(value):
        return f"{sign}xp.nan"
    return f"{sign}xp.inf" if math.isinf(value) else repr(value)


class _Names:
    """Unique names for one printed function's values, which shadow nothing that the text uses."""

    def __init__(self, used: set[str]) -> None:
        self.used = set(used)
        self._of: dict[Node, str] = {}

    def add(self, wanted: str) -> str:
        name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", wanted)) or "v"
        name = name if name.isidentifier() else f"v{name}"
        if name in _RESERVED:
            name += "_"
        unique, count = name, 0
        while unique in self.used:
            count += 1
            unique = f"{name}_{count}"
        self.used.add(unique)
        return unique

    def name(self, node: Node) -> str:
        self._of[node] = self.add(node.name)
        return self._of[node]

    def __getitem__(self, node: Node) -> str:
        return self._of.get(node, f"{node.name}__not_defined_here")  # only in graphs that verify() refuses


# -- the listing -----------------------------------------------------------------------------------


def readable(graph: Graph) -> str:
    """A compact listing: name, type and operation of each value, under the user's line that made it.

    >>> from tcompile.graph import ops
    >>> g = Graph("double")
    >>> x = g.input("x", TensorType(np.dtype("float32"), (3,)))
    >>> g.outputs = [ops.apply(g, "multiply", x, 2.0)]
    >>> print(readable(g))
    graph double: 1 op
      x         f32[3]  input
      multiply  f32[3]  multiply(x, 2.0)
      return multiply
    """
    count = graph.op_count
    title = f"graph {graph.name}: {count} op{'' if count == 1 else 's'}"
    return "\n".join([title, *(f"  {line}" for line in _listing(graph, bind=True))])


def _listing(graph: Graph, *, bind: bool) -> Iterator[str]:
    nodes = [*graph.inputs, *graph.nodes]
    wide = max((len(node.name) for node in nodes), default=0)
    types = max((len(type_text(node.type)) for node in nodes if len(type_text(node.type)) <= 40), default=0)
    for node in graph.inputs:
        yield f"{node.name:<{wide}}  {type_text(node.type):<{types}}  input"
    if bind:
        for symbol, (position, axis) in graph.symbol_inputs().items():
            source = graph.inputs[position].name + ("" if axis is None else f".shape[{axis}]")
            yield f"{symbol} = {source}, {graph.env.hints[symbol]} at capture"
    above = ""
    for node in graph.nodes:
        place = short_place(node.location)
        if place and place != above:
            yield f"# {place}"
        above = place or above
        yield f"{node.name:<{wide}}  {type_text(node.type):<{types}}  {call_text(node)}"
        for region in node.regions:
            yield f"    {region.name}:"
            for line in _listing(region, bind=False):
                yield f"      {line}"
    yield f"return {', '.join(node.name for node in graph.outputs)}".rstrip()


def call_text(node: Node) -> str:
    """``op(operands, attribute=…)`` with the nodes' own names."""
    arguments = [o.name if isinstance(o, Node) else literal(o) for o in node.operands]
    if node.op is TENSOR_CALL:
        return _tensor_call_text(node)
    if node.op is INDEX:  # as the user wrote it
        return f"{arguments[0]}[{', '.join(map(key_text, node.attrs['key']))}]"
    arguments += attribute_texts(node)
    return f"{node.op.name}({', '.join(arguments)})"


def _tensor_call_text(node: Node) -> str:
    """A call of PyTorch's with the nodes' own names: ``linear(x, weight, bias)``."""
    parts = [_argument(item, node.inputs) for item in node.attrs["args"]]
    parts += [f"{name}={_argument(value, node.inputs)}" for name, value in node.attrs["kwargs"]]
    return f"{title(node)}({', '.join(parts)})"


def _argument(value: Any, operands: Sequence[Node]) -> str:
    """An argument of a call, with names for slots."""
    if isinstance(value, Slot):
        return operands[value.index].name
    if isinstance(value, Name):
        return value.path
    if isinstance(value, tuple | list):
        items = ", ".join(_argument(item, operands) for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items}{',' if len(value) == 1 else ''})"
    return key_text(value) if isinstance(value, slice) else literal(value)


def title(node: Node) -> str:
    """The operation's name for human readers: of a call of PyTorch's, the function's."""
    return short_name(node.attrs["target"]) if node.op is TENSOR_CALL else node.op.name


def attribute_texts(node: Node, most: bool = False) -> list[str]:
    """The attributes for human readers: a program is summarised. ``most`` leaves out False."""
    if node.op is TENSOR_CALL:
        given = [("", value) for value in node.attrs["args"]] + [(f"{name}=", v) for name, v in node.attrs["kwargs"]]
        return [f"{name}{_argument(v, node.inputs)}" for name, v in given if not isinstance(v, Slot)]
    if node.op is SCALAR_LOOP:
        return [about(node.attrs["program"])]
    attrs = dict(node.attrs)
    part = "".join(map(_step_text, attrs.pop("path", ())))
    shown = [f"{key}={literal(value)}" for key, value in attrs.items() if not (most and value is False)]
    return [part, *shown] if part or node.op is ASSIGN else shown


def _step_text(step: tuple[str, tuple[tuple[str, Any], ...]]) -> str:
    """One view op of a path: ``[1:-1, 0]``, ``.transpose(axes=(1, 0))``."""
    op, attrs = step
    if op == INDEX.name:
        return f"[{', '.join(map(key_text, dict(attrs)['key']))}]"
    return f".{op}({', '.join(f'{name}={literal(value)}' for name, value in attrs)})"


def key_text(item: Any) -> str:
    """One item of an index: ``1:-1``, ``...``, ``None``, a number."""
    if item is Ellipsis:
        return "..."
    if not isinstance(item, slice):
        return literal(item)
    start, stop, step = ("" if part is None else literal(part) for part in (item.start, item.stop, item.step))
    return f"{start}:{stop}" + (f":{step}" if step else "")


def short_place(location: Location | None) -> str:
    """The user's line, with the file's name only, or the cell's."""
    if location is None:
        return ""
    label = file_label(location.file)
    file = os.path.basename(label) or label
    return _place(Location(file, location.line, None, None, location.function, location.text))


__all__ = [
    "attribute_texts", "call_text", "code", "from_code", "key_text", "literal", "parse_type", "readable", "short_place",
    "title", "type_text",
]  # fmt: skip
