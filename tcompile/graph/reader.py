"""Parsing of printed graphs.

Input: text in the form that ``printer.code`` writes, edited by hand or not.
Output: a ``Graph``, with types inferred again by the op table and the user's lines taken from the comments.
Why: a graph can be kept as a file that a person can read, run and shrink.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from tcompile.errors import GraphError
from tcompile.graph.dtypes import named
from tcompile.graph.ir import Graph, Location, Node
from tcompile.graph.namespace import xp
from tcompile.graph.ops import GET, Op, apply, op_named
from tcompile.graph.sizes import ShapeEnv, Size, SymInt
from tcompile.graph.types import Layout, ScalarType, TensorType, Type

NO_SOURCE = "made by the compiler"

_TYPE = re.compile(r"(?P<dtype>[^\[\]{}]+)\[(?P<shape>[^\]]*)\](\{(?P<layout>[^}]*)\})?( (?P<device>\S+))?")
_HINT = re.compile(r"^\s+(\w+) = .*#\s*(-?\d+) at capture(?:, at least (-?\d+))?\s*$", re.MULTILINE)
_PLACE = re.compile(r"(?P<file>.*?):(?P<line>\d+) in (?P<function>[^:]*)(: (?P<text>.*))?")
_BUILTINS = {"slice": slice, "complex": complex}


def from_code(text: str) -> Graph:
    """The graph that ``text`` describes: one function in the form that ``code`` prints.

    Types are inferred again. Raises GraphError where the text is not of that form, or an operation is ill-typed.

    >>> text = '''def double(x: "f32[3]"):
    ...     multiply = xp.multiply(x, 2.0)
    ...     return (multiply,)
    ... '''
    >>> from_code(text)
    <Graph double: 1 inputs, 1 ops, 1 outputs>
    """
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise GraphError(f"the text is not Python: {error}") from error
    functions = [statement for statement in module.body if isinstance(statement, ast.FunctionDef)]
    if len(functions) != 1 or len(module.body) != 1:
        raise GraphError("the text of a graph is one function definition")
    return _Reader(text).graph(functions[0], {}, bind=True)


def parse_type(text: str, size: Callable[[str], Size] | None) -> Type:
    """The type that ``text`` names: ``f32[3, s0]{order 1,0}``, ``float``, ``int s0``.

    ``size`` evaluates a size's expression; None stands for sizes that do not matter.
    """
    sized: Callable[[str], Size] = size if size is not None else lambda _: 2
    if text == "float" or text == "int":
        return ScalarType("float" if text == "float" else "int")
    if text.startswith("int "):
        return ScalarType("int", sized(text[4:]))
    match = _TYPE.fullmatch(text)
    if match is None:
        raise GraphError(f"{text!r} is not a type")
    parts = [part for part in match["shape"].split(", ") if part]
    shape = tuple(int(part) if part.isdecimal() else sized(part) for part in parts)
    layout = Layout.c(len(shape))
    if match["layout"]:
        word, _, numbers = match["layout"].partition(" ")
        given = [number for number in numbers.split(",") if number]
        if word == "order":
            layout = Layout.of_order(tuple(map(int, given)))
        else:
            layout = Layout(tuple(float(rank) if "." in rank else int(rank) for rank in given), word != "strided")
    try:
        dtype = named(match["dtype"])
    except GraphError as error:
        raise GraphError(f"{text!r} is not a type: {error}") from error
    return TensorType(dtype, shape, layout, match["device"] or "cpu")


class _Reader:
    """The state of parsing one text: its lines, the symbols so far, and their environment."""

    def __init__(self, text: str) -> None:
        self.env = ShapeEnv()
        self.lines = text.splitlines()
        self.hints = {name: (int(hint), low and int(low)) for name, hint, low in _HINT.findall(text)}
        self.symbols: dict[str, SymInt] = {}

    def graph(self, function: ast.FunctionDef, outer: dict[str, Any], *, bind: bool = False) -> Graph:
        graph = Graph(function.name, self.env)
        scope: dict[str, Any] = dict(outer)
        for argument in function.args.args:
            if not (isinstance(argument.annotation, ast.Constant) and isinstance(argument.annotation.value, str)):
                raise GraphError(f"{function.name}: the argument {argument.arg} needs its type, as a string")
            scope[argument.arg] = graph.input(argument.arg, parse_type(argument.annotation.value, self.size))
        for statement in function.body:
            if isinstance(statement, ast.FunctionDef):
                scope[statement.name] = self.graph(statement, scope)
            elif isinstance(statement, ast.Return) and isinstance(statement.value, ast.Tuple):
                graph.outputs = [self._value(item, scope) for item in statement.value.elts]
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                name, value = statement.targets[0].id, statement.value
                if isinstance(value, ast.Call):
                    scope[name] = self._operation(graph, name, value, scope, self._location(function, statement))
                elif bind and name in self.symbols:
                    scope[name] = self.symbols[name]
                else:
                    raise GraphError(f"line {statement.lineno}: no input has the size {name}")
            else:
                raise GraphError(f"line {statement.lineno}: not an operation, a nested function or a return")
        return graph

    def _operation(
        self, graph: Graph, name: str, call: ast.Call, scope: dict[str, Any], location: Location | None
    ) -> Node:
        target = call.func
        if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "xp"):
            raise GraphError(f"line {call.lineno}: not a call of an operation of xp")
        operands = [self._value(argument, scope) for argument in call.args]
        attrs = {keyword.arg or "": self._value(keyword.value, scope) for keyword in call.keywords}
        regions = tuple(attrs.pop("regions", ()))
        stated = attrs.pop("type", None)
        op = self._op(call, target.attr)
        if op is GET:
            stated_type: Any = operands[0].type[attrs["index"]]
        elif stated is None:
            try:
                return apply(graph, op, *operands, location=location, node_name=name, **attrs)
            except GraphError as error:
                raise GraphError(f"line {call.lineno}: {error}") from error
        elif isinstance(stated, tuple):
            stated_type = tuple(parse_type(text, self.size) for text in stated)
        else:
            stated_type = parse_type(stated, self.size)
        return graph.append(op, operands, attrs, stated_type, name=name, location=location, regions=regions)

    def _op(self, call: ast.Call, name: str) -> Op:
        try:
            return op_named(name)
        except GraphError as error:
            raise GraphError(f"line {call.lineno}: {error}") from error

    def _value(self, expression: ast.expr, scope: dict[str, Any]) -> Any:
        names = {**_BUILTINS, **self.symbols, **scope, "xp": xp, "__builtins__": {}}
        try:
            return eval(compile(ast.Expression(expression), "<graph>", "eval"), names)
        except Exception as error:
            raise GraphError(f"line {expression.lineno}: {type(error).__name__}: {error}") from error

    def size(self, text: str) -> Size:
        """The value of a size's expression; names in it become symbols."""
        for name in re.findall(r"[A-Za-z_]\w*", text):
            if name not in self.symbols:
                hint, least = self.hints.get(name, (2, ""))
                self.env.hints[name] = hint
                self.env.minimum[name] = None if least == "" else least
                self.symbols[name] = SymInt(self.env, {(name,): 1})
        value: Size = eval(text, {"__builtins__": {}, **self.symbols})
        return value

    def _location(self, function: ast.FunctionDef, statement: ast.stmt) -> Location | None:
        """The place named by the nearest comment above ``statement`` in ``function`` itself."""
        indent = " " * statement.col_offset
        for line in reversed(self.lines[function.lineno : statement.lineno - 1]):
            if line.startswith(f"{indent}# "):
                match = _PLACE.fullmatch(line[len(indent) + 2 :])
                if match is None:
                    return None
                return Location(match["file"], int(match["line"]), function=match["function"], text=match["text"] or "")
        return None


__all__ = ["NO_SOURCE", "from_code", "parse_type"]
