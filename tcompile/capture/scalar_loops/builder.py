"""The builder of programs of typed blocks.

Input: values in registers.
Output: instructions of ``scalar_loop`` programs (``graph.ops.scalar_loop``) in the open block, or ``Refused``.
Why: separate from ``translator``, which reads bytecode: other code also makes programs.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from tcompile.graph.ops.scalar_loop import COMPARISONS, ELEMENTS, dtype_of, kind_of_scalar, result_kind
from tcompile.records import dataclass

_MOST_BLOCKS = 300
NUMBERS = (bool, int, float)
_EXPONENTS = (2, 3)  # of ints: here products
_COMPARED = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


LETTER = ("letter",)


class Refused(Exception):
    """The stretch is not scalar code; the text says why."""


@dataclass(frozen=True)
class V:
    """A value: its kind, the registers that hold it, and what it is where that is known.

    Kinds are those of registers, or tuples: ``("array", number)``, ``("row", number, indices)``, ``("tuple", kinds)``,
    ``("object", identity)``; a slice of a row, ``("slice", number, indices before it)``, the items of an array at such
    indices, ``("taken", number, kind of the slice)``, the products of two, ``("product", kinds)``, and methods of them,
    ``("reduced", name, kind)`` and ``("dotted", name, kind)``; a ``slice`` object, ``("key", kinds of bounds)``; a str
    ``("text", number)``, by the array of its code points, and a character of one, ``("letter",)``; a list,
    ``("list", number)``, and its method, ``("append", number)``; a random generator,
    ``("generator", number of its state, family, class, identity)``, and a method of one,
    ``("draw", number, family, what, numbers of what else it keeps)`` or ``("choice", number, family)``, and before the
    call ``("drawing", generator, name)``; iterators ``("range", step)``, ``("rows", array)``, ``("letters", text)``,
    ``("listed", list)``, ``("items", kinds, place)`` of a tuple, ``("zipped", iterators)`` with one position for all,
    and ``("counted", iterator)`` of ``enumerate``.
    """

    kind: Any
    registers: tuple[int, ...] = ()
    known: Any = None

    @property
    def register(self) -> int:
        """The one register of a number."""
        return self.registers[0]


def is_number(value: V) -> bool:
    """Whether it is a number in a register."""
    return isinstance(value.kind, str)


def numbers_of(arguments: Sequence[V], fewest: int = 1, most: int | None = None) -> list[V]:
    """Returns so many arguments, which have to be numbers."""
    if not fewest <= len(arguments) <= (most or fewest) or not all(map(is_number, arguments)):
        raise Refused("a call with other arguments")
    return list(arguments)


def is_none(value: V) -> bool:
    """Whether it is None, which its kind tells."""
    return value.kind[0] == "object" and value.known is None


def parts_of(kind: Any) -> tuple[str, ...]:
    """The kinds of the registers of a value."""
    if isinstance(kind, str):
        return (kind,)
    if kind[0] in ("tuple", "items", "key", "product"):
        return tuple(part for inner in kind[1] for part in parts_of(inner))
    if kind[0] == "row":
        return ("int",) * int(kind[2])
    if kind[0] == "slice":
        return ("int",) * (int(kind[2]) + 2)
    if kind[0] in ("taken", "reduced", "dotted"):
        return parts_of(kind[2])
    if kind[0] == "range":
        return ("int", "int", "int") if kind[1] is None else ("int", "int")
    if kind[0] in ("rows", "letters", "listed"):
        return ("int", "int")
    if kind[0] == "zipped":
        return ("int", "int", *("int" for column in kind[1] if column[0] == "range"))
    if kind[0] == "counted":
        return (*parts_of(kind[1]), "int")
    return ("int",) if kind == LETTER else ()


@dataclass
class Block:
    """A block under construction."""

    number: int
    state: Any
    parameters: list[int] = field(default_factory=list)
    lines: list[tuple[Any, ...]] = field(default_factory=list)
    end: tuple[Any, ...] = ()


class Instructions:
    """A program under construction, or a part of its ``caller``'s. ``block`` receives the instructions."""

    def __init__(self, caller: Instructions | None = None) -> None:
        self.in_ufunc: bool = caller is not None and caller.in_ufunc  # NumPy asks for the processor's flags after it
        self.kinds: list[str] = [] if caller is None else caller.kinds
        self.objects: dict[int, Any] = {} if caller is None else caller.objects
        self.blocks: list[Block] = [] if caller is None else caller.blocks
        self.block: Block
        self.accesses = 0  # to elements, and draws
        # Registers, and the operands that they take.
        self.numbers: list[tuple[int, Any]] = [] if caller is None else caller.numbers

    def register(self, kind: str) -> int:
        """A new register."""
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def add(self, name: str, kind: str, *operands: Any, known: Any = None) -> V:
        """Emits an instruction with a result."""
        made = self.register(kind)
        self.block.lines.append((name, made, *operands))
        return V(kind, (made,), known)

    def constant(self, value: Any) -> V:
        """Returns a constant number, or an object that only calls and attributes use."""
        if type(value) in NUMBERS:
            if type(value) is int and not -(1 << 62) <= value <= 1 << 62:
                raise Refused("an int of more than 62 bits")
            return self.add("const", type(value).__name__, value, known=value)
        kind = kind_of_scalar(value)
        if kind is not None:
            if value.dtype.name not in ELEMENTS:
                raise Refused(f"a {value.dtype.name}")
            return self.add("const", kind, value.item())
        if type(value) is tuple:
            return self.pack([self.constant(item) for item in value])
        return self.object(value)

    def object(self, value: Any) -> V:
        """Returns a known object."""
        self.objects[id(value)] = value
        return V(("object", id(value)), (), value)

    def operand(self, kind: str, operand: Any) -> V:
        """Adds a parameter of the program."""
        register = self.register(kind)
        self.numbers.append((register, operand))
        return V(kind, (register,))

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

    def new_block(self, state: Any = None) -> Block:
        """Returns an empty block."""
        block = Block(len(self.blocks), state)
        if block.number >= _MOST_BLOCKS:
            raise Refused("it has too many blocks")
        self.blocks.append(block)
        return block

    def truth(self, value: V) -> V:
        """``bool(value)``."""
        if value.kind == "bool":
            return value
        if is_none(value):
            return self.constant(False)
        if not is_number(value):
            raise Refused("the truth of something else than a number")
        return self.add("bool", "bool", value.register)

    def binary(self, sign: str, a: V, b: V) -> V:
        """``a sign b``."""
        if LETTER in (a.kind, b.kind):
            return self._letters(sign, a, b)
        if sign in COMPARISONS and type(a.known) is type(b.known) is str:
            return self.constant(_COMPARED[sign](a.known, b.known))
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
                if dtype_of(value.kind).kind == "f":
                    self.require(self.add("==", "bool", value.register, value.register))
        return self.add(sign, kind, a.register, b.register)

    def _letters(self, sign: str, a: V, b: V) -> V:
        """Emits ``a sign b`` of characters, which compare by code point.

        A str from outside must be one character, or plain Python runs everything.
        """
        a, b = (self._only_letter(v) if v.kind[0] == "text" else v for v in (a, b))
        texts = [value.known for value in (a, b) if value.kind != LETTER]
        if sign not in COMPARISONS or any(type(text) is not str for text in texts):
            raise Refused(f"{sign} of a character")
        if any(len(text) != 1 for text in texts):
            if sign not in ("==", "!="):
                raise Refused(f"{sign} of a character and a text")
            return self.constant(sign == "!=")
        one, two = (V("int", v.registers) if v.kind == LETTER else self.constant(ord(v.known)) for v in (a, b))
        return self.add(sign, "bool", one.register, two.register)

    def _only_letter(self, text: V) -> V:
        size = self.add("size", "int", text.kind[1], 0)
        self.require(self.add("==", "bool", size.register, self.constant(1).register))
        letter = self.add("load", "np.int32", text.kind[1], self.constant(0).register)
        return V(LETTER, self.as_ints(letter.registers))

    def as_ints(self, registers: Sequence[int]) -> tuple[int, ...]:
        """The registers of indices as Python ints."""
        return tuple(
            r if self.kinds[r] == "int" else self.add("int", "int", r).register for r in registers
        )  # fmt: skip

    def require(self, condition: V) -> None:
        """Replays everything in plain Python unless the condition holds."""
        self.block.lines.append(("require", -1, condition.register))


__all__ = [
    "LETTER",
    "NUMBERS",
    "Block",
    "Instructions",
    "Refused",
    "V",
    "is_none",
    "is_number",
    "numbers_of",
    "parts_of",
]
