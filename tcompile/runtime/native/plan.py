"""A call plan: one entry as operations of machine code, from its guards to its result.

Input: a captured stretch of a function, its compiled graph, and the Python function for the rest.
Output: a ``CallPlan``, an array of words that ``call.ll`` interprets, or None.
Why: the plan is made from the text of the entry program. It checks the same guards in the same order and returns the
same result. An expression without an operation of its own is one call of Python.
"""

from __future__ import annotations

import array
import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tcompile.backends import helpers
from tcompile.backends.host import Allocate, FlagReport, HostConstant, NamedSize, StoreTarget
from tcompile.backends.llvm.host import LaunchStep, Recipe
from tcompile.bytecode.rewritten import KEEP, UNBOUND
from tcompile.capture.entry.codegen import Captured, Rest
from tcompile.capture.guards.prologue import LoadStep
from tcompile.graph import Node, ScalarType
from tcompile.runtime.native import layout
from tcompile.runtime.native.guards import Guards
from tcompile.runtime.native.words import PLAN_CODE, CallPlan, Facts, NoPlan

_MARKS: dict[str, Any] = {"KEEP": KEEP, "UNBOUND": UNBOUND}


def plan_of(
    captured: Captured, rest: Rest, operations: Mapping[str, int], returned: Sequence[bool] | None = None
) -> CallPlan | None:
    """Returns the plan of an entry; None if there can be none.

    ``rest`` is the entry program after its guards; if its graph has a ``recipe``, only kernels remain. ``returned``
    leads rewritten code to the function's return.
    """
    try:
        return _Writer(captured, operations, rest.run).write(rest, returned)
    except NoPlan:
        return None


@lru_cache(1024)
def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class _Writer(Guards):
    """Writes a plan from its first guard to its end."""

    def write(self, rest: Rest, returned: Sequence[bool] | None) -> CallPlan:
        captured = self.captured
        needed = None if captured.graph is not None else captured.loads_for_guards()
        steps = captured.prologue.steps
        for step, line in zip(steps, ast.parse("\n".join(step.code for step in steps)).body, strict=True):
            assert isinstance(line, ast.Expr)
            node = line.value
            if not isinstance(step, LoadStep):
                if not self.binding(node):
                    self.guard(node)
            elif needed is None or step.variable in needed:
                self.load(step.variable, node)
        self.unchanged()
        if captured.graph is None:
            self.emit("plain")
        else:
            self.result(rest, returned)
        words = array.array("Q", [0] * PLAN_CODE["P_CODE"] + self.code)
        return CallPlan(words, tuple(self.keep), self.registers, self.owned, self.most_words)

    def result(self, rest: Rest, returned: Sequence[bool] | None) -> None:
        """Writes what follows the guards, as much of it as possible without Python."""
        mark = self.mark()
        recipe = getattr(rest.run, "recipe", None)
        computed = False
        nodes = self.captured.graph is not None and self.captured.graph.nodes
        if isinstance(recipe, Recipe) and not self.captured.locks:
            try:
                self.hoist(rest.route, returned)
                self.graph(recipe)
                computed = True
            except NoPlan:
                self.rewind(mark)
                self.launched = False
        if computed or not nodes:
            mark = self.mark()
            try:
                *statements, outcome = self.after_graph(rest.route, returned)
                for statement in statements:
                    self.statement(statement)
                assert isinstance(outcome, ast.Expr)
                self.emit("give_back", self.at(self.made(outcome.value)))
                return
            except NoPlan:
                self.rewind(mark)
        text = ast.parse(rest.source((), computed, returned))
        used = {node.id for node in ast.walk(text) if isinstance(node, ast.Name)}
        if self.captured.has_loops:  # a poll re-checks the objects that they lead to
            parameters = {f"p{number}" for number in range(self.captured.arity)}
            used |= {name for name in parameters if self.captured.name_of(name, used) is None}
        names = sorted(used & self.variables())
        given = [self.object(ast.Name(name)) for name in names]
        self.emit("body", self.address(rest.function(names, computed, returned)), *self.gathered(given))

    def after_graph(self, route: Sequence[bool], returned: Sequence[bool] | None) -> list[ast.stmt]:
        """Writes the statements after the graph, and what gives the outcome."""
        outcome = self.captured.outcome(route, returned)
        return ast.parse("\n".join([*self.captured.lines, *self.captured.effects, f"({outcome})"])).body

    def hoist(self, route: Sequence[bool], returned: Sequence[bool] | None) -> None:
        """Hoists the integer arithmetic of the statements after the graph: on overflow of 64 bits the plan misses.

        Repeated computations are shared (``Words.arithmetic``).
        """
        nodes: list[ast.AST] = list(self.after_graph(route, returned))
        while nodes:
            node = nodes.pop()
            if isinstance(node, ast.BinOp | ast.UnaryOp):
                mark = self.mark()
                if self.number(node) is not None:
                    continue
                self.rewind(mark)
            nodes += ast.iter_child_nodes(node)

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                self.objects[target] = self.assigned(value)
            case ast.If(test=ast.Compare(ops=[ast.IsNot()]) as test) if self.is_same(test):
                pass  # kernels have written to the argument itself
            case _:
                raise NoPlan

    def is_same(self, test: ast.Compare) -> bool:
        """Returns whether two variables are one object, if that is known now."""
        names = [node.id for node in (test.left, *test.comparators) if isinstance(node, ast.Name)]
        registers = {self.objects.get(name) for name in names}
        return len(names) == 2 and len(registers) == 1 and None not in registers

    def assigned(self, value: ast.expr) -> int:
        match value:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=[])) if self.is_output(name):
                made = self.own()
                self.emit("scalar", self.at(made), self.at(self.objects[name]))
                return made
            case ast.Call(func=ast.Name(id="asarray"), args=[ast.Name(id=name)]) if self.is_output(name):
                return self.objects[name]
        return self.made(value)

    def is_output(self, name: str) -> bool:
        """Whether a variable holds an output of the graph, which is an array."""
        return name.startswith("o") and name in self.objects

    def made(self, node: ast.expr) -> int:
        """Returns the register of a value built of variables, constants and displays."""
        match node:
            case ast.Name(id=name) if name in self.objects or name in self.constants or name in self.numbers:
                return self.object(node)
            case ast.Name(id=name) if name in _MARKS:
                return self.object(ast.Constant(_MARKS[name]))
            case ast.Constant():
                return self.object(node)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                items = [self.made(item) for item in elts]
                register = self.own()
                kind = "tuple" if isinstance(node, ast.Tuple) else "list"
                self.emit(kind, self.at(register), len(items), *map(self.at, items))
                return register
            case ast.Dict(keys=keys, values=values):
                pairs: list[int] = []
                for key, value in zip(keys, values, strict=True):
                    if key is None or not self.is_fixed(key):
                        raise NoPlan
                    pairs += [self.made(key), self.made(value)]
                register = self.own()
                self.emit("dict", self.at(register), len(values), *map(self.at, pairs))
                return register
        number = self.number(node)
        if number is None:
            raise NoPlan
        register = self.own()
        self.emit("boxed", self.at(register), self.at(number))
        return register

    def graph(self, recipe: Recipe) -> None:
        """Writes the kernels of a graph; its outputs become the variables ``o0``, ``o1``, …"""
        arrays: dict[Node | str, int] = {}
        symbols: dict[str, int] = {}
        for node, variable in zip(recipe.inputs, self.captured.inputs, strict=True):
            if variable in self.numbers:
                register = self.numbers[variable]
            elif isinstance(node.type, ScalarType) and node.type.kind == "int":
                found = self.number(ast.Name(variable))
                if found is None:
                    raise NoPlan
                register = found
            else:
                register = self.object(ast.Name(variable))
                self.check_input(node, self.of(register))
            arrays[node] = register
        for name, (position, axis) in recipe.symbols.items():
            symbols[name] = register = arrays[recipe.inputs[position]]
            if axis is not None:
                symbols[name] = self.size_of(register, axis)
        outer, self.numbers = self.numbers, symbols
        try:
            if any(isinstance(step, LaunchStep) for step in recipe.steps):
                self.emit("errors")
            if recipe.rewritten:
                self.emit("result_of", self.at(self.own()), self.address(helpers.check_rewriting), 0)
            self.hoist_sizes(recipe)
            for step in recipe.steps:
                match step:
                    case Allocate():
                        arrays[step.key] = self.allocate(step)
                    case StoreTarget():
                        arrays[step.key] = arrays[step.base]
                    case HostConstant():
                        arrays[step.key] = self.literal_array(step)
                    case LaunchStep():
                        self.launch(step, arrays, recipe.addresses[step.kernel])
                    case FlagReport():
                        self.report(step, arrays)
        finally:
            self.numbers = outer
        for position, node in enumerate(recipe.outputs):
            # An input that is also an output may be a scalar, which is not an array to be read.
            if node not in arrays or (node in recipe.inputs and self.of(arrays[node]).type is not np.ndarray):
                raise NoPlan
            self.objects[f"o{position}"] = arrays[node]

    def hoist_sizes(self, recipe: Recipe) -> None:
        """Computes all sizes before anything is written: on overflow of 64 bits the plan misses."""
        for step in recipe.steps:
            match step:
                case NamedSize():
                    self.numbers[step.name] = self.size(step.value)
                case Allocate():
                    for text in step.shape:
                        self.size(text)
                case LaunchStep():
                    given = zip(step.spec, step.arguments, strict=True)
                    words = [str(argument) for letter, argument in given if letter == "i"]
                    for text in (step.items, step.grain, *words):
                        self.size(text)

    def check_input(self, node: Node, facts: Facts) -> None:
        """Refuses an input if the guards do not establish enough to read it."""
        if isinstance(node.type, ScalarType):
            known = node.type.kind == "float" and facts.type is float
        elif facts.type is np.ndarray:
            known = facts.dtype is node.tensor.dtype and facts.ndim == node.tensor.ndim
        else:
            known = facts.type is not None and layout.scalar_holds_value(facts.type)
            known = known and not node.tensor.ndim and np.dtype(facts.type) == node.tensor.dtype
        if not known:
            raise NoPlan

    def size(self, text: str) -> int:
        register = self.number(_expression(text))
        if register is None:
            raise NoPlan
        return register

    def allocate(self, step: Allocate) -> int:
        """Allocates an array."""
        registers = [self.size(size) for size in step.shape]
        axes = tuple(range(len(registers)))
        flags = 0 if step.order == axes else 1 if step.order == axes[::-1] else 2
        made = self.own()
        order = None if step.order == axes else step.order
        dtype = self.address(step.dtype), step.dtype.itemsize
        self.emit("allocate", self.at(made), *dtype, flags, self.address(order), *self.gathered(registers))
        self.of(made).type = np.ndarray
        return made

    def report(self, step: FlagReport, arrays: Mapping[Node | str, int]) -> None:
        """Handles the kernels' status; writes to arrays of the caller may be undone."""
        if step.undoing is None:
            self.emit("status")
            return
        registers = [arrays[array] for array in step.arrays]
        # The first item is the status.
        self.emit("undoing", self.address(step.undoing), *self.gathered([registers[0], *registers]))

    def literal_array(self, step: HostConstant) -> int:
        """Returns an array that exists already."""
        made = self.new()
        self.emit("constant", self.at(made), self.address(step.array))
        self.of(made).type = np.ndarray
        return made

    def launch(self, step: LaunchStep, arrays: Mapping[Node | str, int], address: int) -> None:
        words = 0
        items, grain = self.size(step.items), self.size(step.grain)
        for letter, argument in zip(step.spec, step.arguments, strict=True):
            if letter == "i":
                self.emit("give", self.at(self.size(str(argument))))
                words += 1
                continue
            assert not isinstance(argument, str) or argument in arrays
            where = self.at(arrays[argument])  # type: ignore[index]
            kind = self.of(arrays[argument]).type  # type: ignore[index]
            if letter == "f":
                self.emit("give_value", where)
                words += 1
            elif kind is not None and kind is not np.ndarray:
                self.emit("give_inside", where, layout.OFFSETS["SCALAR_VALUE"])
                words += 1
            else:
                assert isinstance(argument, Node | str)
                strides = argument.tensor.ndim if letter == "s" and isinstance(argument, Node) else 0
                self.emit("give_data", where, strides)
                words += 1 + strides
        self.most_words = max(self.most_words, words)
        self.emit("launch", address, self.at(items), self.at(grain))
        self.launched = True


__all__ = ["plan_of"]
