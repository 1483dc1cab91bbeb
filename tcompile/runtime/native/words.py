"""The words of a plan: registers, operands, and facts about the objects in them.

Input: expressions over the variables of an entry program.
Output: operations of ``call.ll`` that load objects and compute sizes.
Why: the lowest layer of the writers of plans; ``guards`` and ``plan`` build on it.
"""

from __future__ import annotations

import array
import ast
import types
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from tcompile.capture.entry.codegen import Captured
from tcompile.records import dataclass

# The parts of a frame, in words, and the outcomes of a plan.
FRAME = {"F_OUTCOME": 0, "F_RESULT": 1, "F_TOP": 2, "F_STATUS": 3, "F_WORDS": 4, "F_LAST": 5, "F_REGISTERS": 6}
OUTCOMES = {"MISSED": 0, "RETURNED": 1, "FAILED": 2, "PLAIN": 3, "RAISED": 4, "RESTS": 5}
PLAN_CODE = {"P_CODE": 1}  # after the number of hits
MOST_WORDS = 512
WORD = 8

OPERATIONS = (
    "constant", "entry_of", "item", "attribute", "contents", "held", "boxed", "result_of", "dimension", "stride",
    "integer", "add", "subtract", "multiply", "floor_divide", "remainder", "is", "is_not", "type_is", "field_is",
    "equals", "class_holds", "dict_holds", "unchanged", "true", "length_is", "axes", "axis_is", "flags", "ranked",
    "apart", "float_is", "less", "less_equal", "equal", "not_equal", "errors", "allocate", "give_data", "give_inside",
    "give_value", "give", "launch", "status", "undoing", "scalar", "tuple", "list", "dict", "give_back", "body",
    "plain", "resting",
)  # fmt: skip
_ARITHMETIC = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
}  # fmt: skip
LEAST, MOST = -(1 << 63), (1 << 63) - 1  # of 64 bits


@dataclass(eq=False)
class CallPlan:
    """The words of one plan, and the objects whose addresses they contain."""

    words: array.array[int]
    keep: tuple[Any, ...] = field(repr=False)
    registers: int
    owned: int
    words_needed: int

    @property
    def hits(self) -> int:
        """Returns the number of calls that it has answered."""
        return self.words[0]

    @property
    def address(self) -> int:
        """Where the words lie."""
        return self.words.buffer_info()[0]

    @property
    def size(self) -> int:
        """Returns the frame size that it needs, in words."""
        return self.registers + self.owned + self.words_needed


class NoPlan(Exception):
    """No operation exists for this."""


@dataclass
class Facts:
    """Facts about an object that guards have established."""

    type: type | None = None
    dtype: Any = None
    shape: dict[int, int] = field(default_factory=dict)
    ndim: int | None = None


class Words:
    """A plan under construction."""

    def __init__(self, captured: Captured, operations: Mapping[str, int], compiled: Any) -> None:
        self.captured = captured
        self.operations = operations
        self.code: list[int] = []
        self.keep: list[Any] = [compiled]  # addresses of kernels are bare
        self.registers = captured.arity
        self.owned = 0
        self.most_words = 0
        self.words = 0  # passed to the next kernel
        self.objects: dict[str, int] = {f"p{i}": i for i in range(captured.arity)}
        self.numbers: dict[str, int] = {}
        self.constants: dict[str, Any] = dict(captured.prologue.constants)
        self.facts: dict[int, Facts] = {}  # by register
        self.literals: dict[int, int] = {}
        self.launched = False  # whether kernels have run
        self.integers: dict[int, int] = {}  # by register of an object that is an int of 64 bits
        self.computed: dict[tuple[str, int, int], int] = {}  # by operation and operands
        self.bindings: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  # namespaces, and their required contents

    # -- writing ---------------------------------------------------------------------------------------------------
    def emit(self, name: str, *operands: int) -> None:
        """Appends an operation."""
        self.code += [self.operations[name], *(operand & (1 << 64) - 1 for operand in operands)]

    def new(self) -> int:
        """A new register."""
        self.registers += 1
        return self.registers - 1

    def own(self) -> int:
        """Returns a register for an object that the operation leaves to the frame."""
        self.owned += 1
        return self.new()

    def at(self, register: int) -> int:
        """Returns the operand that names a register."""
        return WORD * (FRAME["F_REGISTERS"] + register)

    def address(self, value: Any) -> int:
        """Returns the address of an object, which the plan keeps alive."""
        self.keep.append(value)
        return id(value)

    def gathered(self, registers: Sequence[int]) -> list[int]:
        """Returns the operands of an operation that takes a number of registers."""
        self.most_words = max(self.most_words, len(registers))
        return [len(registers), *map(self.at, registers)]

    def of(self, register: int) -> Facts:
        """Returns the facts about the object in a register."""
        return self.facts.setdefault(register, Facts())

    def mark(self) -> tuple[Any, ...]:
        """Returns a mark of the words written so far."""
        known = dict(self.objects), dict(self.literals), dict(self.integers), dict(self.computed)
        return len(self.code), self.registers, self.owned, *known

    def rewind(self, mark: tuple[Any, ...]) -> None:
        """Drops the words written since the mark."""
        del self.code[mark[0] :]
        self.registers, self.owned, self.objects, self.literals, self.integers, self.computed = mark[1:]
        self.facts = {register: facts for register, facts in self.facts.items() if register < self.registers}

    # -- loads -----------------------------------------------------------------------------------------------------
    def load(self, variable: str, node: ast.expr) -> None:
        """Assigns the value of an expression to a variable of the entry program."""
        match node:
            case ast.Name(id=name) if name in self.constants:
                self.constants[variable] = self.constants[name]
                return
            case ast.Name(id=name) if name in self.objects:
                self.objects[variable] = self.objects[name]
                return
            case ast.Subscript(value=ast.Name() as base, slice=ast.Constant() | ast.Name() as key):
                held = self.constants.get(base.id)
                plain = type(held) is dict and isinstance(key, ast.Constant) and type(key.value) is str
                where = self.object(base)
                made = self.objects[variable] = self.own()
                self.emit("entry_of" if plain else "item", self.at(made), self.at(where), self.address(self.fixed(key)))
                return
            case ast.Attribute(value=ast.Name() as base, attr=name):
                where = self.object(base)
                facts = self.of(where)
                made = self.objects[variable] = self.own()
                if name == "cell_contents" and facts.type is types.CellType:
                    self.emit("contents", self.at(made), self.at(where))
                else:
                    self.emit("attribute", self.at(made), self.at(where), self.address(name))
                return
        number = self.number(node)
        if number is None:
            self.objects[variable] = self.python(node)
        else:
            self.numbers[variable] = number

    def fixed(self, node: ast.expr) -> Any:
        """Evaluates an expression whose value is known now."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in self.constants:
                return self.constants[name]
            case ast.Name(id="int" | "float" | "complex" | "bool" | "str" as name):
                return {"int": int, "float": float, "complex": complex, "bool": bool, "str": str}[name]
        raise NoPlan

    def is_fixed(self, node: ast.expr) -> bool:
        """Whether an expression can be evaluated now."""
        try:
            self.fixed(node)
        except NoPlan:
            return False
        return True

    def known(self, node: ast.expr) -> Any:
        """Returns the value of an expression if known now; else None."""
        return self.fixed(node) if self.is_fixed(node) else None

    def object(self, node: ast.expr) -> int:
        """Returns the register that holds an expression's object."""
        match node:
            case ast.Name(id=name) if name in self.objects:
                return self.objects[name]
            case ast.Name(id=name) if name in self.constants:
                return self.object_of(name, self.constants[name])
            case ast.Constant(value=value):
                made = self.new()
                self.emit("constant", self.at(made), self.address(value))
                return made
        number = self.number(node)
        if number is None:
            return self.python(node)
        made = self.own()
        self.emit("boxed", self.at(made), self.at(number))
        return made

    def object_of(self, name: str, value: Any) -> int:
        """Returns the register of a variable that holds a constant."""
        made = self.objects[name] = self.new()
        self.emit("constant", self.at(made), self.address(value))
        self.of(made).type = type(value)
        return made

    def python(self, node: ast.expr) -> int:
        """Calls Python for an expression over variables."""
        names = sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} & self.variables())
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        text = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, node)))
        function = eval(compile(text, "<tcompile guard>", "eval"), dict(self.captured.prologue.constants))
        given = [self.object(ast.Name(name)) for name in names]
        made = self.own()
        self.emit("result_of", self.at(made), self.address(function), *self.gathered(given))
        return made

    def variables(self) -> set[str]:
        """Returns the assigned variables, without the constants that every function of the entry sees."""
        return (set(self.objects) | set(self.numbers) | set(self.constants)) - set(self.captured.prologue.constants)

    # -- integers --------------------------------------------------------------------------------------------------
    def number(self, node: ast.expr) -> int | None:
        """Returns the register of an integer expression over sizes; None for another form."""
        match node:
            case ast.Constant(value=value) if type(value) is int and LEAST <= value <= MOST:
                return self.literal(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if type(value) is int and value <= MOST:
                return self.literal(-value)
            case ast.Name(id=name) if name in self.numbers:
                return self.numbers[name]
            case ast.Name(id=name) if name in self.objects and self.of(self.objects[name]).type is int:
                return self.integer(self.objects[name], LEAST, MOST)
            case ast.Subscript(value=ast.Attribute(value=ast.Name() as base, attr="shape"), slice=ast.Constant() as at):
                return self.dimension(base, at.value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                right = self.number(operand)
                return None if right is None else self.arithmetic("subtract", self.literal(0), right)
            case ast.BinOp(left=left, op=op, right=right_node) if type(op) in _ARITHMETIC:
                first = self.number(left)
                second = None if first is None else self.number(right_node)
                if first is None or second is None:
                    return None
                return self.arithmetic(_ARITHMETIC[type(op)], first, second)
        return None

    def dimension(self, base: ast.Name, axis: Any) -> int | None:
        """Returns the size of an array's axis."""
        array = self.array(base)
        if array is None or type(axis) is not int or not 0 <= axis < (self.of(array).ndim or 0):
            return None
        return self.size_of(array, axis)

    def size_of(self, array: int, axis: int) -> int:
        """Returns the size of an axis of the array in a register."""
        register = self.computed.get(("dimension", array, axis))
        if register is None:
            register = self.computed["dimension", array, axis] = self.new()
            self.emit("dimension", self.at(register), self.at(array), axis)
        return register

    def arithmetic(self, operation: str, left: int, right: int) -> int:
        """Returns the register of an operation's result."""
        register = self.computed.get((operation, left, right))
        if register is None:
            self.may_miss()
            register = self.computed[operation, left, right] = self.new()
            self.emit(operation, self.at(register), self.at(left), self.at(right))
        return register

    def may_miss(self) -> None:
        """Refuses operations that may miss after kernels may have written: no write may happen twice."""
        if self.launched:
            raise NoPlan

    def literal(self, value: int) -> int:
        """Returns the register of an integer that is known now."""
        register = self.literals.get(value)
        if register is None:
            register = self.literals[value] = self.new()
            self.emit("constant", self.at(register), value)
        return register

    def integer(self, register: int, least: int, most: int) -> int:
        """Returns the value of an object that is an exact int within a range."""
        if (least, most) == (LEAST, MOST) and register in self.integers:
            return self.integers[register]
        self.may_miss()
        made = self.integers[register] = self.new()
        self.emit("integer", self.at(made), self.at(register), least, most)
        return made

    def array(self, node: ast.Name) -> int | None:
        """Returns the register of a variable that is known to hold an exact ndarray."""
        register = self.objects.get(node.id)
        return register if register is not None and self.of(register).type is np.ndarray else None


__all__ = [
    "FRAME",
    "LEAST",
    "MOST",
    "MOST_WORDS",
    "OPERATIONS",
    "OUTCOMES",
    "PLAN_CODE",
    "CallPlan",
    "Facts",
    "NoPlan",
    "Words",
]  # fmt: skip
