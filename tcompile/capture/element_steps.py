"""Bytecode of scalar code, instruction by instruction, as a program of typed blocks.

Enters: a code object, the instructions that belong to a stretch, and what its variables hold. Leaves: the blocks of an
``element_loop`` program (``graph.ops.element_loop``), or ``Refused``. Exists because in loops over elements the types
of all values are known from those at the start: each block is followed once for each combination of kinds that its
variables arrive with. A variable that is an int in the first round and ``np.int64`` in all others gives two versions of
the loop, and no value ever has two kinds.

What raises in Python ends a program with ``replay``: plain Python then does the whole stretch again.
"""

from __future__ import annotations

import dis
import math
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np

from tcompile.bytecode.analysis import Analysis
from tcompile.graph.ops.element_loop import (
    ARITHMETIC,
    COMPARISONS,
    ELEMENTS,
    LIBRARY,
    common,
    is_numpy,
    result_kind,
)
from tcompile.records import dataclass

_MOST_BLOCKS = 300
_MOST_VERSIONS = 6  # of one place in the code
_MOST_CALLS = 8  # of functions inside of functions
_NUMBERS = (bool, int, float)
RETURNED = -3  # where a way out goes that returns
_EXPONENTS = (2, 3)  # of ints: these are products
_COMPARED = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


class Refused(Exception):
    """This stretch is no scalar code; the text says why."""


@dataclass(frozen=True)
class V:
    """A value: its kind, the registers that hold it, and what it is where that is known.

    Kinds are those of registers, or tuples: ``("array", number)``, ``("row", number, indices)``, ``("tuple", kinds)``,
    ``("range", step)``, ``("object", identity)``.
    """

    kind: Any
    registers: tuple[int, ...] = ()
    known: Any = None

    @property
    def register(self) -> int:
        """The one register of a number."""
        return self.registers[0]


NULL = V(("null",))
State: TypeAlias = "tuple[int, tuple[Any, ...], tuple[tuple[str, Any], ...]]"


def is_number(value: V) -> bool:
    """Whether it is a number in a register."""
    return isinstance(value.kind, str)


def parts_of(kind: Any) -> tuple[str, ...]:
    """The kinds of the registers of a value."""
    if isinstance(kind, str):
        return (kind,)
    if kind[0] == "tuple":
        return tuple(part for inner in kind[1] for part in parts_of(inner))
    if kind[0] == "row":
        return ("int",) * int(kind[2])
    if kind[0] == "range":
        return ("int", "int", "int") if kind[1] is None else ("int", "int")
    return ()


@dataclass
class _Block:
    """A block under construction."""

    number: int
    state: State
    parameters: list[int] = field(default_factory=list)
    lines: list[tuple[Any, ...]] = field(default_factory=list)
    end: tuple[Any, ...] = ()


@dataclass
class Exit:
    """A way out: the kinds of the variables there, and the blocks that take it, with the values."""

    state: State
    blocks: list[tuple[_Block, tuple[int, ...]]]


class Translator:
    """One stretch on its way to a program.

    ``load_outside(name)`` gives a variable as it is before the stretch, ``load_global(translator, instruction)`` an
    object, ``inside`` are the instructions that belong to it. ``callee(translator, function, arguments)`` gives the
    translator of the code of a function that is called, and None for what is no function of Python.

    The code of a function that is called is a stretch of its own in the program of its ``caller``.
    """

    def __init__(
        self, found: Analysis, instructions: Sequence[dis.Instruction], inside: set[int], bound: set[str],
        load_outside: Callable[[str], V | None], load_global: Callable[[Translator, dis.Instruction], V],
        array_type: Callable[[int], Any], callee: Callable[[Translator, Any, list[V]], Translator | None],
        caller: Translator | None = None,
    ) -> None:  # fmt: skip
        self.found, self.instructions, self.inside, self.bound = found, instructions, inside, bound
        self.load_outside, self.load_global, self.array_type = load_outside, load_global, array_type
        self.callee = callee
        self.in_ufunc: bool = caller is not None and caller.in_ufunc  # NumPy asks for the processor's flags behind it
        self.depth: int = 0 if caller is None else caller.depth + 1
        self.kinds: list[str] = [] if caller is None else caller.kinds
        self.objects: dict[int, Any] = {} if caller is None else caller.objects
        self.blocks: list[_Block] = [] if caller is None else caller.blocks
        self.by_state: dict[State, _Block] = {}
        self.versions: dict[int, int] = {}
        self.waiting: list[_Block] = []
        self.exits: dict[State, Exit] = {}
        self.outer: dict[str, V | None] = {}
        self.names = {bit: name for name, bit in found.fast_bit.items()}
        self.targets = {target for target in found.goes if target >= 0}
        self.accesses = 0
        self.entry = self._block((-1, (), ()))

    # -- values --------------------------------------------------------------------------------------------------------
    def register(self, kind: str) -> int:
        """A new register."""
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def add(self, name: str, kind: str, *operands: Any, known: Any = None) -> V:
        """An instruction with a result."""
        made = self.register(kind)
        self.block.lines.append((name, made, *operands))
        return V(kind, (made,), known)

    def constant(self, value: Any) -> V:
        """A number, or an object that only calls and attributes look at."""
        if type(value) in _NUMBERS:
            if type(value) is int and not -(1 << 62) <= value <= 1 << 62:
                raise Refused("an int of more than 62 bits")
            return self.add("const", type(value).__name__, value, known=value)
        if isinstance(value, np.generic):
            if value.dtype.name not in ELEMENTS:
                raise Refused(f"a {value.dtype.name}")
            return self.add("const", f"np.{value.dtype.name}", value.item())
        if type(value) is tuple:
            return self.pack([self.constant(item) for item in value])
        return self.object(value)

    def object(self, value: Any) -> V:
        """An object that is known."""
        self.objects[id(value)] = value
        return V(("object", id(value)), (), value)

    @staticmethod
    def pack(items: Sequence[V]) -> V:
        """A tuple of values."""
        kind = ("tuple", tuple(item.kind for item in items))
        return V(kind, tuple(r for item in items for r in item.registers), tuple(items))

    @staticmethod
    def items(value: V) -> list[V]:
        """The items of a tuple."""
        if value.known is not None:
            return list(value.known)
        items, at = [], 0
        for kind in value.kind[1]:
            size = len(parts_of(kind))
            items.append(V(kind, value.registers[at : at + size]))
            at += size
        return items

    # -- blocks --------------------------------------------------------------------------------------------------------
    def _block(self, state: State) -> _Block:
        block = _Block(len(self.blocks), state)
        if block.number >= _MOST_BLOCKS:
            raise Refused("it has too many blocks")
        self.blocks.append(block)
        return block

    def _live(self, at: int, env: Mapping[str, V]) -> list[tuple[str, V]]:
        live = self.found.live[at]
        return sorted((name, v) for name, v in env.items() if live >> self.found.fast_bit[name] & 1)

    def goto(self, at: int, stack: Sequence[V], env: Mapping[str, V]) -> tuple[int, tuple[int, ...]]:
        """The block that goes on there with such values, and the registers that it is given."""
        variables = self._live(at, env)
        state: State = (at, tuple(v.kind for v in stack), tuple((name, v.kind) for name, v in variables))
        given = tuple(r for v in (*stack, *(v for _, v in variables)) for r in v.registers)
        if at not in self.inside:
            block = self._block(state)
            self.exits.setdefault(state, Exit(state, [])).blocks.append((block, given))
            return block.number, ()
        block_ = self.by_state.get(state)
        if block_ is None:
            self.versions[at] = self.versions.get(at, 0) + 1
            if self.versions[at] > _MOST_VERSIONS:
                raise Refused("its variables change their types too often")
            block_ = self.by_state[state] = self._block(state)
            kinds = [*state[1], *(kind for _, kind in state[2])]
            block_.parameters = [self.register(part) for kind in kinds for part in parts_of(kind)]
            self.waiting.append(block_)
        return block_.number, given

    def jump(self, at: int, how: str = "jump") -> None:
        """Ends the block."""
        self.block.end = (how, *self.goto(at, self.stack, self.env))

    def branch(self, condition: V, yes: int, no: int) -> None:
        """Ends the block in one of two ways, which the stack is the same for."""
        one, two = self.goto(yes, self.stack, self.env), self.goto(no, self.stack, self.env)
        self.block.end = ("branch", condition.register, *one, *two)

    def fork(self, condition: V, one: V, two: V) -> None:
        """Ends the block: behind this instruction, one of two values is on the stack."""
        yes, no = (self.goto(self.at + 1, [*self.stack, value], self.env) for value in (one, two))
        self.block.end = ("branch", condition.register, *yes, *no)

    def run(self, start: int, stack: Sequence[V]) -> None:
        """Translates everything that can be reached from an instruction."""
        self.block, self.stack = self.entry, list(stack)
        self.env: dict[str, V] = {}
        live = self.found.live[start]
        for name in sorted(self.bound):
            if live >> self.found.fast_bit[name] & 1:
                value = self.outside(name)
                if value is not None:
                    self.env[name] = value
        first = self.goto(start, self.stack, self.env)
        self.entry.end = ("jump", *first)
        while self.waiting:
            self._follow(self.waiting.pop())

    def _follow(self, block: _Block) -> None:
        at, stack, variables = block.state
        registers: Iterator[int] = iter(block.parameters)

        def value(kind: Any) -> V:
            known = self.objects[kind[1]] if kind[0] == "object" and not isinstance(kind, str) else None
            return V(kind, tuple(next(registers) for _ in parts_of(kind)), known)

        self.block = block
        self.stack = [value(kind) for kind in stack]
        self.env = {name: value(kind) for name, kind in variables}
        self.keywords: tuple[str, ...] = ()
        first = True
        while not block.end:
            if at not in self.inside or (at in self.targets and not first):
                self.jump(at)
                return
            first = False
            i = self.instructions[at]
            step = STEPS.get(i.opname)
            if step is None:
                raise Refused(f"{i.opname.lower()} is no scalar code")
            self.at = at
            step(self, i)
            at += 1

    def outside(self, name: str) -> V | None:
        """A variable as it is before the stretch."""
        if name not in self.outer:
            block, self.block = getattr(self, "block", self.entry), self.entry
            try:
                self.outer[name] = self.load_outside(name)
            finally:
                self.block = block
        return self.outer[name]

    # -- what instructions share ---------------------------------------------------------------------------------------
    def load(self, name: str) -> None:
        """Puts a variable on the stack."""
        value = self.env.get(name) if name in self.bound else self.outside(name)
        if value is None:
            raise Refused(f"`{name}` has no value")
        self.stack.append(value)

    def pop(self, count: int) -> list[V]:
        """Takes some values off the stack."""
        self.hold(count)
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    def hold(self, count: int) -> None:
        """Makes sure that so many values are on the stack: what was there before the stretch is not its own."""
        if len(self.stack) < count:
            raise Refused("it reaches below its part of the stack")

    def truth(self, value: V) -> V:
        """``bool(value)``."""
        if value.kind == "bool":
            return value
        if not is_number(value):
            raise Refused("the truth of something else than a number")
        return self.add("bool", "bool", value.register)

    def binary(self, sign: str, a: V, b: V) -> V:
        """``a sign b``."""
        if not is_number(a) or not is_number(b):
            raise Refused(f"{sign} of something else than numbers")
        if sign == "**" and type(b.known) is int and b.known in _EXPONENTS and a.kind in ("int", "bool", "np.int64"):
            square = self.binary("*", a, a)
            return square if b.known == 2 else self.binary("*", square, a)
        if sign in COMPARISONS and type(a.known) is type(b.known) is int:
            return self.constant(_COMPARED[sign](a.known, b.known))
        kind = result_kind(sign, a.kind, b.kind)
        if kind is None:
            raise Refused(f"{a.kind} {sign} {b.kind}")
        if self.in_ufunc and sign in COMPARISONS:
            for value in (a, b):  # Python's own comparison with a NaN sets a flag, and NumPy warns of an invalid value
                if np.dtype(value.kind.removeprefix("np.")).kind == "f":
                    self.require(self.add("==", "bool", value.register, value.register))
        return self.add(sign, kind, a.register, b.register)

    def indices(self, array: int, key: V, before: Sequence[int] = ()) -> tuple[int, ...]:
        """The registers of the indices of a key."""
        items = self.items(key) if key.kind[0] == "tuple" else [key]
        for item in items:
            whole = is_number(item) and (item.kind == "int" or np.dtype(item.kind.removeprefix("np.")).kind in "iu")
            if not whole or item.kind == "bool":
                raise Refused("an index that is no int")
        found = (*before, *(item.register for item in items))
        if len(found) > len(self.array_type(array).shape):
            raise Refused("too many indices")
        return found

    def subscript(self, value: V, key: V) -> V:
        """``value[key]``."""
        if value.kind[0] == "tuple":
            if type(key.known) is not int or not -len(self.items(value)) <= key.known < len(self.items(value)):
                raise Refused("an item of a tuple")
            return self.items(value)[key.known]
        if value.kind[0] not in ("array", "row"):
            raise Refused("an item of something else than an array")
        array = value.kind[1]
        found = self.indices(array, key, value.registers)
        type_ = self.array_type(array)
        if len(found) < len(type_.shape):
            for axis in range(len(value.registers), len(found)):
                self.check_index(array, axis, found[axis])
            return V(("row", array, len(found)), self.as_ints(found))
        self.accesses += 1
        return self.add("load", f"np.{type_.dtype.name}", array, *found)

    def as_ints(self, registers: Sequence[int]) -> tuple[int, ...]:
        """The registers of indices as Python ints."""
        return tuple(
            r if self.kinds[r] == "int" else self.add("int", "int", r).register for r in registers
        )  # fmt: skip

    def check_index(self, array: int, axis: int, index: int) -> None:
        """What raises where a row is made, though nothing of it is read."""
        size = self.add("size", "int", array, axis)
        place = V("int", self.as_ints([index]))
        low = self.add("negative", "int", size.register)
        self.require(self.add(">=", "bool", place.register, low.register))
        self.require(self.add("<", "bool", place.register, size.register))

    def require(self, condition: V) -> None:
        """Leaves everything to plain Python where the condition does not hold."""
        self.block.lines.append(("require", -1, condition.register))

    def range(self, items: Sequence[V]) -> V:
        """The iterator of a range."""
        if not 1 <= len(items) <= 3 or not all(is_number(item) for item in items):
            raise Refused("range of something else")
        ints = []
        for item in items:
            if item.kind != "int" and (not is_numpy(item.kind) or np.dtype(item.kind[3:]).kind not in "iu"):
                raise Refused("range of something else than ints")
            ints.append(V("int", self.as_ints(item.registers), item.known))
        start, stop = (self.constant(0), ints[0]) if len(ints) == 1 else ints[:2]
        step = ints[2] if len(ints) == 3 else V("int", (), 1)
        for bound in (start, stop):
            if bound.known is None:
                for sign, limit in (("<", 1 << 61), (">", -(1 << 61))):
                    self.require(self.add(sign, "bool", bound.register, self.constant(limit).register))
        if step.known is None:
            for sign, limit in ((">", 0), ("<", 1 << 61)):
                self.require(self.add(sign, "bool", step.register, self.constant(limit).register))
            return V(("range", None), (start.register, stop.register, step.register))
        if step.known == 0 or abs(step.known) > 1 << 60:
            raise Refused("a step of zero")
        return V(("range", step.known), (start.register, stop.register))

    def call(self, function: V, arguments: list[V]) -> V:
        """The value of a call."""
        target = function.known
        if function.kind[0] != "object" or self.objects.get(function.kind[1]) is not target:
            raise Refused("a call of something that is no function")
        known = _CALLS.get(id(target))
        if known is not None:
            return known(self, arguments)
        inner = self.callee(self, target, arguments) if self.depth < _MOST_CALLS else None
        if inner is None:
            raise Refused(f"a call of {getattr(target, '__name__', 'something')}")
        return self._enter(inner)

    def _enter(self, inner: Translator) -> V:
        """Goes on in the code of a function, and from each place where it returns behind this instruction again."""
        self.block.end = ("jump", inner.entry.number, ())
        inner.run(0, ())
        self.accesses += inner.accesses
        result: V | None = None
        for state, exit in inner.exits.items():
            (kind,) = state[1]
            for block, registers in exit.blocks:
                result = V(kind, registers, self.objects[kind[1]] if kind[0] == "object" else None)
                block.end = ("jump", *self.goto(self.at + 1, [*self.stack, result], self.env))
        if result is None:
            raise Refused("it calls a function that never ends")
        return result


# -- calls -------------------------------------------------------------------------------------------------------------


def _one(arguments: Sequence[V]) -> V:
    if len(arguments) != 1 or not is_number(arguments[0]):
        raise Refused("a call with other arguments")
    return arguments[0]


def _chosen(sign: str) -> Callable[[Translator, list[V]], V]:
    def run(t: Translator, arguments: list[V]) -> V:
        if len(arguments) < 2 or not all(is_number(a) for a in arguments):
            raise Refused("min or max of something else")
        best = arguments[0]
        for position, other in enumerate(arguments[1:], 2):
            better = t.truth(t.binary(sign, other, best))
            if other.kind != best.kind:
                if position < len(arguments):
                    raise Refused("min or max of numbers of different types")
                t.fork(better, other, best)
                return best
            best = t.add("select", best.kind, better.register, other.register, best.register)
        return best

    return run


def _abs(t: Translator, arguments: list[V]) -> V:
    value = _one(arguments)
    if value.kind in ("np.bool",) or (is_numpy(value.kind) and np.dtype(value.kind[3:]).kind == "u"):
        return value
    return t.add("abs", "int" if value.kind == "bool" else value.kind, value.register)


def _converted(kind: str) -> Callable[[Translator, list[V]], V]:
    def run(t: Translator, arguments: list[V]) -> V:
        value = _one(arguments)
        return value if value.kind == kind else t.add(kind, kind, value.register, known=None)

    return run


def _length(t: Translator, arguments: list[V]) -> V:
    (value,) = arguments
    if value.kind[0] == "tuple":
        return t.constant(len(value.kind[1]))
    if value.kind[0] not in ("array", "row"):
        raise Refused("len of something else than an array")
    return t.add("size", "int", value.kind[1], len(value.registers))


def _math(name: str, kind: str = "float") -> Callable[[Translator, list[V]], V]:
    def run(t: Translator, arguments: list[V]) -> V:
        value = _one(arguments)
        return t.add(f"math.{name}", kind, _as_float(t, value).register)

    return run


def _as_float(t: Translator, value: V) -> V:
    return value if value.kind == "float" else t.add("float", "float", value.register)


def _root(t: Translator, arguments: list[V]) -> V:
    value = _one(arguments)
    if value.kind == "int":  # NumPy takes the root of no int beyond 64 bits
        value = t.add("np.int64", "np.int64", value.register)
    if value.kind in ("float", "np.int64", "np.int32", "np.uint32"):
        value = t.add("np.float64", "np.float64", _as_float(t, value).register)
    if value.kind not in ("np.float64", "np.float32"):
        raise Refused(f"np.sqrt of {value.kind}")
    return t.add("np.sqrt", value.kind, value.register)


def _magnitude(t: Translator, arguments: list[V]) -> V:
    value = _one(arguments)
    if value.kind == "float":
        value = t.add("np.float64", "np.float64", value.register)
    if value.kind not in ("np.float64", "np.float32"):
        raise Refused(f"np.abs of {value.kind}")
    return t.add("abs", value.kind, value.register)


def _scalar(name: str) -> Callable[[Translator, list[V]], V]:
    kind = f"np.{name}"

    def run(t: Translator, arguments: list[V]) -> V:
        value = _one(arguments)
        to = np.dtype(name)
        if value.kind == kind:
            return value
        exact = np.can_cast(common(value.kind, kind), to) if to.kind == "f" else value.kind in ("int", "bool")
        if not exact:
            raise Refused(f"np.{name} of {value.kind}")
        return t.add(kind, kind, value.register)

    return run


_CALLS: dict[int, Callable[[Translator, list[V]], V]] = {
    id(min): _chosen("<"), id(max): _chosen(">"), id(abs): _abs, id(len): _length, id(int): _converted("int"),
    id(float): _converted("float"), id(bool): _converted("bool"), id(range): lambda t, items: t.range(items),
    id(math.sqrt): _math("sqrt"), id(math.fabs): _math("fabs"), id(math.floor): _math("floor", "int"),
    id(math.ceil): _math("ceil", "int"), id(math.isnan): _math("isnan", "bool"),
    id(np.sqrt): _root, id(np.abs): _magnitude, id(np.fabs): _magnitude,
    id(np.float64): _scalar("float64"), id(np.int64): _scalar("int64"),
    **{id(getattr(math, name)): _math(name) for name in LIBRARY},
}  # fmt: skip

# -- instructions ------------------------------------------------------------------------------------------------------

Step: TypeAlias = Callable[[Translator, dis.Instruction], None]
STEPS: dict[str, Step] = {}


def _step(*names: str) -> Callable[[Step], Step]:
    def register(step: Step) -> Step:
        STEPS.update(dict.fromkeys(names, step))
        return step

    return register


@_step("NOP", "RESUME", "PRECALL", "EXTENDED_ARG", "CACHE", "COPY_FREE_VARS")
def _nothing(t: Translator, i: dis.Instruction) -> None:
    pass


@_step("LOAD_FAST", "LOAD_FAST_CHECK")
def _load(t: Translator, i: dis.Instruction) -> None:
    t.load(i.argval)


@_step("LOAD_FAST_LOAD_FAST")
def _load_two(t: Translator, i: dis.Instruction) -> None:
    for name in i.argval:
        t.load(name)


@_step("STORE_FAST")
def _store(t: Translator, i: dis.Instruction) -> None:
    (t.env[i.argval],) = t.pop(1)


@_step("STORE_FAST_STORE_FAST")
def _store_two(t: Translator, i: dis.Instruction) -> None:
    for name in i.argval:
        (t.env[name],) = t.pop(1)


@_step("STORE_FAST_LOAD_FAST")
def _store_load(t: Translator, i: dis.Instruction) -> None:
    (t.env[i.argval[0]],) = t.pop(1)
    t.load(i.argval[1])


@_step("LOAD_CONST")
def _const(t: Translator, i: dis.Instruction) -> None:
    t.stack.append(t.constant(i.argval))


@_step("LOAD_GLOBAL", "LOAD_DEREF")
def _global(t: Translator, i: dis.Instruction) -> None:
    value = t.load_global(t, i)
    null = i.opname == "LOAD_GLOBAL" and (i.arg or 0) & 1
    t.stack += ([value, NULL] if _NULL_LAST else [NULL, value]) if null else [value]


_NULL_LAST = "CALL_KW" in dis.opmap  # 3.13 and later


@_step("PUSH_NULL")
def _push_null(t: Translator, i: dis.Instruction) -> None:
    t.stack.append(NULL)


@_step("LOAD_ATTR", "LOAD_METHOD")
def _attribute(t: Translator, i: dis.Instruction) -> None:
    (owner,) = t.pop(1)
    method = i.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and (i.arg or 0) & 1)
    value = _attribute_of(t, owner, i.argval)
    t.stack += ([value, NULL] if _NULL_LAST else [NULL, value]) if method else [value]


def _attribute_of(t: Translator, owner: V, name: str) -> V:
    if owner.kind[0] in ("array", "row") and name in ("shape", "ndim", "size"):
        axes = range(len(owner.registers), len(t.array_type(owner.kind[1]).shape))
        if name == "ndim":
            return t.constant(len(axes))
        sizes = [t.add("size", "int", owner.kind[1], axis) for axis in axes]
        if name == "shape":
            return t.pack(sizes)
        found = sizes[0]
        for size in sizes[1:]:
            found = t.binary("*", found, size)
        return found
    if owner.kind[0] == "object" and owner.known in (math, np):
        return t.constant(getattr(owner.known, name))
    raise Refused(f"the attribute {name}")


@_step("POP_TOP", "END_FOR")
def _pop_top(t: Translator, i: dis.Instruction) -> None:
    t.pop(1)


@_step("COPY")
def _copy(t: Translator, i: dis.Instruction) -> None:
    t.hold(i.arg or 0)
    t.stack.append(t.stack[-(i.arg or 0)])


@_step("SWAP")
def _swap(t: Translator, i: dis.Instruction) -> None:
    t.hold(i.arg or 0)
    other = -(i.arg or 0)
    t.stack[-1], t.stack[other] = t.stack[other], t.stack[-1]


@_step("BUILD_TUPLE")
def _build_tuple(t: Translator, i: dis.Instruction) -> None:
    t.stack.append(t.pack(t.pop(i.arg or 0)))


@_step("UNPACK_SEQUENCE")
def _unpack(t: Translator, i: dis.Instruction) -> None:
    (value,) = t.pop(1)
    if value.kind[0] != "tuple" or len(value.kind[1]) != i.arg:
        raise Refused("something else than a tuple is unpacked")
    t.stack += reversed(t.items(value))


@_step("BINARY_OP")
def _binary(t: Translator, i: dis.Instruction) -> None:
    left, right = t.pop(2)
    sign = i.argrepr.removesuffix("=")
    if sign not in ARITHMETIC:
        raise Refused(sign)
    t.stack.append(t.binary(sign, left, right))


@_step("COMPARE_OP")
def _compare(t: Translator, i: dis.Instruction) -> None:
    left, right = t.pop(2)
    sign = i.argval.removeprefix("bool(").removesuffix(")")
    if sign not in COMPARISONS:
        raise Refused(sign)
    found = t.binary(sign, left, right)
    t.stack.append(t.truth(found) if i.argrepr.startswith("bool(") else found)


@_step("UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_POSITIVE")
def _unary(t: Translator, i: dis.Instruction) -> None:
    (value,) = t.pop(1)
    if not is_number(value) or value.kind in ("np.bool", "bool"):
        raise Refused("a sign before something else than a number")
    name = i.opname.removeprefix("UNARY_").lower()
    if is_numpy(value.kind) and np.dtype(value.kind[3:]).kind == "u" and name == "negative":
        raise Refused("the negative of an unsigned number")
    if name == "invert" and value.kind != "int" and np.dtype(value.kind.removeprefix("np.")).kind not in "iu":
        raise Refused("~ of a float")
    if name == "negative" and type(value.known) is int:
        t.stack.append(t.constant(-value.known))
        return
    t.stack.append(t.add(name, value.kind, value.register))


@_step("UNARY_NOT")
def _not(t: Translator, i: dis.Instruction) -> None:
    (value,) = t.pop(1)
    t.stack.append(t.add("not", "bool", t.truth(value).register))


@_step("TO_BOOL")
def _to_bool(t: Translator, i: dis.Instruction) -> None:
    (value,) = t.pop(1)
    t.stack.append(t.truth(value))


@_step("BINARY_SUBSCR")
def _subscript(t: Translator, i: dis.Instruction) -> None:
    value, key = t.pop(2)
    t.stack.append(t.subscript(value, key))


@_step("STORE_SUBSCR")
def _store_subscript(t: Translator, i: dis.Instruction) -> None:
    value, target, key = t.pop(3)
    if target.kind[0] not in ("array", "row") or not is_number(value):
        raise Refused("an item of something else than an array is stored")
    array = target.kind[1]
    found = t.indices(array, key, target.registers)
    type_ = t.array_type(array)
    if len(found) != len(type_.shape):
        raise Refused("a part of an array is stored")
    t.accesses += 1
    t.block.lines.append(("store", -1, array, value.register, *found))


@_step("GET_ITER")
def _get_iter(t: Translator, i: dis.Instruction) -> None:
    t.hold(1)
    if t.stack[-1].kind[0] != "range":
        raise Refused("a loop over something else than a range")


@_step("FOR_ITER")
def _for_iter(t: Translator, i: dis.Instruction) -> None:
    t.hold(1)
    items = t.stack[-1]
    if items.kind[0] != "range":
        raise Refused("a loop over something else than a range")
    known = items.kind[1]
    at, stop = (V("int", (r,)) for r in items.registers[:2])
    step = V("int", items.registers[2:]) if known is None else t.constant(known)
    more = t.add("more", "bool", at.register, stop.register, step.register)
    target = t.found.goes[t.at]
    del t.stack[-1]
    done = t.goto(target, t.stack, t.env)
    body = t._block((-2, (), ()))
    t.block.end = ("branch", more.register, body.number, (), *done)
    t.block = body
    following = t.add("step", "int", at.register, step.register)
    t.stack += [V(items.kind, (following.register, *items.registers[1:])), at]
    t.jump(t.at + 1)


@_step("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(t: Translator, i: dis.Instruction) -> None:
    t.jump(t.found.goes[t.at], "jump" if i.opname == "JUMP_FORWARD" else "back")


@_step(
    "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE",
    "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE",
)  # fmt: skip
def _pop_jump(t: Translator, i: dis.Instruction) -> None:
    (value,) = t.pop(1)
    ways = t.found.goes[t.at], t.at + 1
    if type(value.known) in _NUMBERS and is_number(value):
        t.jump(ways[bool(value.known) != i.opname.endswith("TRUE")])
        return
    t.branch(t.truth(value), *(ways if i.opname.endswith("TRUE") else reversed(ways)))


@_step("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(t: Translator, i: dis.Instruction) -> None:
    t.hold(1)
    value = t.stack[-1]
    condition = t.truth(value)
    jumps = t.goto(t.found.goes[t.at], t.stack, t.env)
    t.pop(1)
    goes_on = t.goto(t.at + 1, t.stack, t.env)
    ways = (*jumps, *goes_on) if i.opname == "JUMP_IF_TRUE_OR_POP" else (*goes_on, *jumps)
    t.block.end = ("branch", condition.register, *ways)


@_step("RETURN_VALUE", "RETURN_CONST")
def _return(t: Translator, i: dis.Instruction) -> None:
    (value,) = t.pop(1) if i.opname == "RETURN_VALUE" else [t.constant(i.argval)]
    state: State = (RETURNED, (value.kind,), ())
    block = t._block(state)
    t.exits.setdefault(state, Exit(state, [])).blocks.append((block, value.registers))
    t.block.end = ("jump", block.number, ())


@_step("CALL")
def _call(t: Translator, i: dis.Instruction) -> None:
    arguments = t.pop(i.arg or 0)
    one, two = t.pop(2)
    if one.kind == NULL.kind:
        function = two
    elif two.kind == NULL.kind:
        function = one
    else:
        raise Refused("a method is called")
    t.stack.append(t.call(function, arguments))


@_step("CALL_INTRINSIC_1")
def _intrinsic(t: Translator, i: dis.Instruction) -> None:
    t.hold(1)
    if i.argrepr != "INTRINSIC_UNARY_POSITIVE" or not is_number(t.stack[-1]) or t.stack[-1].kind in ("bool", "np.bool"):
        raise Refused(i.argrepr)


__all__ = ["NULL", "RETURNED", "Exit", "Refused", "Translator", "V", "is_number", "parts_of"]
