"""Sources: the origin of a value, and how to load it again.

Input: the places that a captured function can read: its arguments, globals, closure cells, and attributes and items of
those.
Output: for each, a readable text and a Python expression for the entry program.
Why: one object reloads a value and names it in a guard.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tcompile.graph.names import attribute_of
from tcompile.graph.ops.draws import Family, spare_of, state_of
from tcompile.records import dataclass

Load = Callable[["Source"], str]
Constant = Callable[[Any], str]


@dataclass(frozen=True)
class Source:
    """A place that holds a value. Subclasses say which."""

    @property
    def text(self) -> str:
        """The place in the user's own terms: ``x``, ``self.w``, ``layers[0]``."""
        raise NotImplementedError

    @property
    def operand(self) -> str:
        """The text as a part of another one's."""
        return self.text

    def expression(self, load: Load, constant: Constant) -> str:
        """Python code that loads the value; ``load`` names the variable of another source."""
        raise NotImplementedError


@dataclass(frozen=True)
class ParameterSource(Source):
    """Parameter ``index`` of the entry program: a local variable, a cell or a stack item of the frame it runs in."""

    index: int
    name: str

    @property
    def text(self) -> str:
        """The variable's name."""
        return self.name

    def expression(self, load: Load, constant: Constant) -> str:
        """The entry program's own parameter."""
        return f"p{self.index}"


@dataclass(frozen=True)
class ConstantSource(Source):
    """An object that the entry program holds on to (reached only after its identity was guarded)."""

    name: str
    object_id: int
    holder: tuple[Any, ...]

    @staticmethod
    def of(name: str, value: Any) -> ConstantSource:
        """A source for ``value``, which is kept alive."""
        return ConstantSource(name, id(value), _Same((value,)))

    @property
    def text(self) -> str:
        """The name given to the object."""
        return self.name

    def expression(self, load: Load, constant: Constant) -> str:
        """The constant's name in the entry program."""
        return constant(self.holder[0])


class _Same(tuple[Any, ...]):
    """A tuple that hashes and compares as nothing: identity is carried by ``object_id``."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same)


@dataclass(frozen=True)
class GlobalSource(Source):
    """Global ``name`` of the module whose namespace is held at ``namespace``."""

    name: str
    namespace: ConstantSource

    @property
    def text(self) -> str:
        """The global's name."""
        return self.name

    def expression(self, load: Load, constant: Constant) -> str:
        """A look-up in the namespace."""
        return f"{load(self.namespace)}[{self.name!r}]"


@dataclass(frozen=True)
class CellSource(Source):
    """The contents of the closure cell found at ``cell``: the variable ``name``."""

    name: str
    cell: Source

    @property
    def text(self) -> str:
        """The variable's name."""
        return self.name

    def expression(self, load: Load, constant: Constant) -> str:
        """A read of the cell."""
        return f"{load(self.cell)}.cell_contents"


@dataclass(frozen=True)
class AttributeSource(Source):
    """``base.name``."""

    base: Source
    name: str

    @property
    def text(self) -> str:
        """Attribute access as the user would write it."""
        return f"{self.base.text}.{self.name}"

    def expression(self, load: Load, constant: Constant) -> str:
        """An attribute read."""
        return attribute_of(load(self.base), self.name)


@dataclass(frozen=True)
class MemberSource(Source):
    """A parameter, a buffer or a submodule of the module at ``base``, which holds it in ``table``."""

    base: Source
    table: str
    name: str

    @property
    def text(self) -> str:
        """Attribute access as the user would write it."""
        return f"{self.base.text}.{self.name}"

    def expression(self, load: Load, constant: Constant) -> str:
        """An item read, which needs no code of the module."""
        return f"{load(self.base)}.{self.table}[{self.name!r}]"


@dataclass(frozen=True)
class ItemSource(Source):
    """``base[key]`` with a constant key."""

    base: Source
    key: Any

    @property
    def text(self) -> str:
        """Item access as the user would write it."""
        return f"{self.base.text}[{self.key!r}]"

    def expression(self, load: Load, constant: Constant) -> str:
        """An item read."""
        plain = isinstance(self.key, int | str)
        return f"{load(self.base)}[{self.key!r}]" if plain else f"{load(self.base)}[{constant(self.key)}]"


@dataclass(frozen=True)
class VaryingItemSource(Source):
    """``base[key]`` with a key that is another in each call, and is itself found at a place."""

    base: Source
    key: Source
    shown: str  # the key in the user's terms

    @property
    def text(self) -> str:
        """Item access as the user would write it."""
        return f"{self.base.text}[{self.shown}]"

    def expression(self, load: Load, constant: Constant) -> str:
        """An item read."""
        return f"{load(self.base)}[{load(self.key)}]"


@dataclass(frozen=True)
class ComputedSource(Source):
    """A number that plain Python computes from other sources before the graph runs: ``1.0 - k``.

    ``template`` is a format string over the expressions of ``parts``; ``shown`` is the same over their texts.
    """

    template: str
    parts: tuple[Source, ...]
    functions: tuple[Any, ...] = ()

    @property
    def terms(self) -> int:
        """How many sources and operations the expression is of, each as often as it occurs."""
        return 1 + sum(part.terms if isinstance(part, ComputedSource) else 1 for part in self.parts)

    @property
    def text(self) -> str:
        """The expression in the user's terms."""
        shown = self.operand
        return shown[1:-1] if _is_in_parentheses(shown) else shown

    @property
    def operand(self) -> str:
        """The expression as a part of another one: in parentheses, where those tell what belongs together."""
        tight = self.template.startswith("(")  # what calls and comparisons take needs no parentheses
        shown = (part.operand if tight else part.text for part in self.parts)
        return self.template.format(*shown, *(_name(f) for f in self.functions))

    def expression(self, load: Load, constant: Constant) -> str:
        """The expression over loaded variables."""
        return self.template.format(*(load(part) for part in self.parts), *(constant(f) for f in self.functions))


def _is_in_parentheses(text: str) -> bool:
    """Whether all of it is: the parenthesis at the start is the one that closes at the end."""
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if not depth:
            return place == len(text) - 1 > 0
    return False


def _name(function: Any) -> str:
    return getattr(function, "__name__", "f")


@dataclass(frozen=True)
class StateSource(Source):
    """A part of the state of the random generator found at ``generator``, where that keeps it.

    It is what a bit generator of a family has, or what is called so in NumPy's dictionary of the state.
    """

    generator: Source
    part: Family | str

    @property
    def text(self) -> str:
        """The state in the terms of NumPy, or of Python."""
        if isinstance(self.part, Family) and self.part.is_pythons:
            return f"{self.generator.text}.getstate()"
        more = f"[{self.part!r}]" if isinstance(self.part, str) else ""
        return f"{self.generator.text}.bit_generator.state{more}"

    def expression(self, load: Load, constant: Constant) -> str:
        """An array that shows it."""
        shown = constant(spare_of if isinstance(self.part, str) else state_of)
        return f"{shown}({load(self.generator)}, {constant(self.part)})"


@dataclass(frozen=True)
class SizeSource(Source):
    """The value of a size expression over symbols (which the entry program has bound by then)."""

    size: str

    @property
    def text(self) -> str:
        """The expression over symbols."""
        return self.size

    @property
    def operand(self) -> str:
        """The same, in parentheses."""
        return self.size if self.size.isidentifier() or self.size.isdigit() else f"({self.size})"

    def expression(self, load: Load, constant: Constant) -> str:
        """The same: symbols are local variables of the entry program."""
        return f"({self.size})"
