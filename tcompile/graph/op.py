"""Operations: rows of the op table, with all facts about each.

Input: rows (``Op``), one for each operation, from the modules of ``graph.ops``.
Output: ``OPS``, the rows by name.
Why: facts about operations stand once, in the operation's own row. Passes, schedules and code generators read
``node.op.memory`` or ``node.op.cost``; lists of names elsewhere would miss the next operation.

Facts that differ by backend lie in tables keyed by the operation (its lowerings). A test checks each table for missing
operations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Literal, TypeAlias

from tcompile.errors import GraphError
from tcompile.graph.types import TensorType
from tcompile.records import dataclass

Kind: TypeAlias = Literal["input", "pointwise", "reduction", "view", "creation", "opaque", "control"]
Fusion: TypeAlias = Literal["map", "reduce", "scan", "sort", "view", "opaque"]
TypeRule: TypeAlias = Callable[[Sequence[TensorType | None], dict[str, Any]], TensorType]
_FUSION: dict[Kind, Fusion] = {"pointwise": "map", "creation": "map", "reduction": "reduce", "view": "view"}


@dataclass(frozen=True)
class Effects:
    """The conditions under which an operation may warn or raise.

    ``signals`` is ``always`` (on any dtype), ``inexact`` (not on integers and booleans, whose arithmetic wraps
    silently), ``casts`` (where the cast loses values) or ``never``. ``loud`` are the characters of further operand
    dtypes on which it may.
    """

    signals: Literal["always", "inexact", "casts", "never"] = "always"
    loud: str = ""


SIGNALS, QUIET, INEXACT, CASTS = Effects(), Effects("never"), Effects("inexact"), Effects("casts")


class Aliasing(Enum):
    """The relation between the memory of an operation's result and that of its operands."""

    FRESH = "a new array, which owns its memory"
    COPY = "new memory, of which the library's result may be a view"
    VIEW = "the operand's memory, or a copy where no view shows the elements"
    MAY_ALIAS = "new memory or that of any operand"
    WRITES = "the memory of operands that it writes to (the first one, but for scalar_loop), with other elements"


# ``Op.exact``: the kinds of dtypes, besides booleans and integers, on which a kernel gives NumPy's very bits.
EVERYWHERE = "*"


class OverNamespace:
    """A meaning that makes arrays by itself: ``function(xp, *operands, **attrs)``, for an array namespace ``xp``.

    Other meanings only call functions of NumPy's on their operands, and arrays of another library answer these calls.
    A decorator.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._made: dict[Any, Callable[..., Any]] = {}

    def of(self, xp: Any) -> Callable[..., Any]:
        """The function of operands and attributes that makes arrays of ``xp``."""
        made = self._made.get(xp)
        if made is None:
            made = self._made[xp] = functools.partial(self.function, xp)
        return made


@dataclass(frozen=True, eq=False)
class Op:
    """One operation. Operations are compared, and hashed, by identity; pickles hold their names.

    ``kind`` says how its result depends on its operands: ``pointwise`` (element by element, broadcasting),
    ``reduction`` (over the attribute ``axis``), ``view`` (a view of the same elements), ``creation`` (no tensor
    operands), ``opaque`` (one library call), ``control`` (has regions). ``arity`` is None where it varies.
    ``type_rule`` maps operand types (None for a bare Python number) and attributes to the result type; it is None where
    the code that builds a node states the type. ``meaning`` computes the result; ``reference`` gives it for the
    arrays of a library.

    ``effects`` and ``memory`` are its side effects and aliasing. ``exact`` are the kinds of dtypes on which kernels
    give NumPy's bits (``f``, ``c``, or ``EVERYWHERE``). ``cost`` is the work for one element, in vector additions.
    ``fusion`` is its role in a kernel; by default it follows from ``kind``.
    """

    name: str
    kind: Kind
    arity: int | None
    type_rule: TypeRule | None
    meaning: Callable[..., Any] | OverNamespace
    doc: str = ""
    effects: Effects = SIGNALS
    memory: Aliasing = Aliasing.FRESH
    exact: str = ""
    cost: float = 1.0
    fusion: Fusion = "opaque"

    def __post_init__(self) -> None:
        if self.fusion == "opaque":
            object.__setattr__(self, "fusion", _FUSION.get(self.kind, "opaque"))

    def reference(self, xp: Any) -> Callable[..., Any]:
        """What the operation computes, as a function of operands and attributes.

        Parameters
        ----------
        xp : module
            The namespace whose arrays the operands and the result are: NumPy, or CuPy.
        """
        meaning = self.meaning
        return meaning.of(xp) if isinstance(meaning, OverNamespace) else meaning

    def infer(self, types: Sequence[TensorType | None], attrs: dict[str, Any]) -> TensorType:
        """The result's type. Raises GraphError where the operands are ill-typed, or no rule infers it."""
        if self.type_rule is None:
            raise GraphError(f"{self.name}: no rule works out its type; Graph.append states it")
        return self.type_rule(types, attrs)

    def __reduce__(self) -> tuple[Any, ...]:
        return op_named, (self.name,)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Op {self.name}>"


OPS: dict[str, Op] = {}


def define(op: Op) -> Op:
    """Adds a row to the table, and returns it."""
    if op.name in OPS:
        raise GraphError(f"operation {op.name!r} is defined twice")
    OPS[op.name] = op
    return op


def op_named(name: str) -> Op:
    """The row of the table. Raises GraphError where there is none."""
    op = INPUT if name == "input" else OPS.get(name)
    if op is None:
        raise GraphError(f"unknown operation {name!r}")
    return op


def _no_reference(*operands: Any) -> Any:
    raise GraphError("the value of an input is given, and not computed")


# The operation of a graph's inputs: not a row, since no node of a graph may have it otherwise.
INPUT = Op("input", "input", 0, None, _no_reference, effects=QUIET, memory=Aliasing.MAY_ALIAS)

__all__ = [
    "CASTS",
    "EVERYWHERE",
    "INEXACT",
    "INPUT",
    "OPS",
    "QUIET",
    "SIGNALS",
    "Aliasing",
    "Effects",
    "Fusion",
    "Kind",
    "Op",
    "OverNamespace",
    "TypeRule",
    "define",
    "op_named",
]
