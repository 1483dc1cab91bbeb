"""The base class of captured values, and what it asks of the capture in progress.

Input: nothing.
Output: ``Value``, whose subclasses define the meaning of Python's operations on such a value; and the types that a
value's methods take: the protocols ``Context`` and ``FrameView``, and ``Rebuilder``.
Why: the interpreter has no special cases: it asks the value, and a value that cannot answer exactly raises
``CannotCapture``. Values and semantics know the protocols alone, so nothing below the interpreter imports it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tcompile.bytecode.instructions import Instruction
from tcompile.capture.context.loop_plan import LoopPlans
from tcompile.capture.context.options import CaptureOptions
from tcompile.capture.context.symbols import Symbols
from tcompile.capture.guards.dynamic_shapes import Profile
from tcompile.capture.guards.prologue import Prologue
from tcompile.capture.guards.sources import ComputedSource, Source
from tcompile.frontends.base import Builder, CannotCapture, Frontend, Traced, TracedNumber
from tcompile.graph import Graph, Location, Node, ScalarType, TensorType
from tcompile.observe.source_location import UserLine
from tcompile.records import dataclass

MAX_ITEMS = 10_000  # of a container that is made


def is_named(source: Source) -> bool:
    """Whether a place has a name in the user's code: values on the frame's stack have none."""
    return not source.text.startswith("<")


def named(source: Source | None, kind: str) -> str:
    """Describes a value: its name, if any, and its kind."""
    return f"`{source.text}` ({kind})" if source is not None and is_named(source) else kind


class Value:
    """A Python object as capture sees it.

    ``source`` tells where the object can be loaded from again; it is None for objects made inside the function.
    """

    source: Source | None = None
    filled_last = False  # whether it is always made empty and filled when all others exist
    has_variable = True  # whether it is made once, because the code of ``rebuild`` would make a new object each time

    def __bool__(self) -> bool:
        """Always true: tests check whether a value exists, not its truth (see ``truth``)."""
        return True

    @property
    def is_none(self) -> bool:
        """Whether it is known to be None."""
        return False

    @property
    def python_type(self) -> type:
        """The type of the object. Raises CannotCapture where it is not known."""
        raise CannotCapture("unsupported-object", f"The type of {self.describe()} is not known.")

    def describe(self) -> str:
        """The value in a few words, for break texts."""
        kind = type(self).__name__.removesuffix("Value").lower()
        return f"`{self.source.text}`" if self.source is not None and is_named(self.source) else f"a {kind}"

    def export(self, tx: Context) -> Any:
        """Returns the value as a frontend takes it: plain Python with traced leaves."""
        raise CannotCapture("unsupported-argument", f"{self.describe()} in place of an array")

    def as_key(self, tx: Context) -> Any:
        """The value as a frontend takes it as an array's key: ints that the graph computes pick places."""
        node = self.computed_int(tx)
        return self.export(tx) if node is None else Traced(node, scalar=True)

    def computed_int(self, tx: Context) -> Node | None:
        """The int that only the graph knows; None where it is something else."""
        return None

    def attribute(self, tx: Context, name: str) -> Value:
        """``value.name``."""
        raise CannotCapture("unsupported-object", f"The attribute `{name}` of {self.describe()} is read.")

    def call(self, tx: Context, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """``value(*args, **kwargs)``."""
        raise CannotCapture("unknown-function", f"{self.describe()}")

    def method(self, tx: Context, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """``value.name(*args, **kwargs)`` for a built-in method."""
        raise CannotCapture("unknown-function", f"the method `{name}` of {self.describe()}")

    def item(self, tx: Context, key: Value) -> Value:
        """``value[key]``."""
        raise CannotCapture("unsupported-object", f"{self.describe()} is subscripted.")

    def store_item(self, tx: Context, key: Value, value: Value) -> None:
        """``self[key] = value``."""
        raise CannotCapture("side-effect", f"Assigning an item of {self.describe()}")

    def delete_item(self, tx: Context, key: Value) -> None:
        """``del self[key]``."""
        raise CannotCapture("side-effect", f"Deleting an item of {self.describe()}")

    def truth(self, tx: Context) -> bool:
        """``bool(value)``."""
        raise CannotCapture("unsupported-object", f"The truth of {self.describe()} is asked.")

    def length(self, tx: Context) -> Value:
        """``len(value)``."""
        raise CannotCapture("unsupported-object", f"The length of {self.describe()} is asked.")

    def iterate(self, tx: Context) -> Iterator[Value]:
        """The values of ``iter(value)``, made as they are asked for."""
        raise CannotCapture("unsupported-object", f"{self.describe()} is iterated over.")

    def collect(self, tx: Context, cls: type = list) -> Iterator[Value]:
        """Returns the values as ``cls(value)`` takes them, a list or a tuple; too many end the capture."""
        return finite(self.iterate(tx))

    def store_attribute(self, tx: Context, name: str, value: Value | None) -> None:
        """``self.name = value``, or ``del self.name`` where ``value`` is None."""
        raise CannotCapture("side-effect", f"Setting the attribute `{name}` of {self.describe()}")

    def rebuild(self, program: Rebuilder) -> str:
        """Python code that makes the object again in the entry program."""
        if self.source is None:
            raise CannotCapture("unsupported-object", f"{self.describe()} leaves the captured function.")
        return program.load(self.source)

    def shell(self, program: Rebuilder) -> str | None:
        """Code that makes the object without its contents, which ``fill`` adds; None where that cannot be."""
        return None

    def fill(self, program: Rebuilder, name: str) -> list[str]:
        """The statements that give the object, made empty and called ``name``, its contents."""
        raise AssertionError(f"{type(self).__name__} is made whole")

    def commit(self, program: Rebuilder) -> list[str]:
        """The statements that bring an object from outside into the state that the captured code left it in."""
        raise AssertionError(f"{type(self).__name__} is never changed")


class Unrebuildable(CannotCapture):
    """``value`` cannot be rebuilt if capture stops in its middle, like an iterator that has advanced.

    ``born`` is the step of the compiled function at which it was made: before that, there is nothing to rebuild. If
    that step itself cannot be captured, ``reason`` says why, and ``where`` has its lines.
    """

    def __init__(
        self, value: Value, born: int, reason: CannotCapture | None = None, where: tuple[UserLine, ...] = ()
    ) -> None:
        text = f"{value.describe()} leaves the captured function."
        super().__init__(*(("unsupported-object", text) if reason is None else (reason.reason, reason.detail)))
        self.value = value
        self.born = born
        self.where = where


class Deferred(Value):
    """An object that captured code has only moved so far: it has no guards.

    It is on the interpreter's stack, in variables, cells, arguments of inlined functions, or containers. ``settle``
    returns the real value, with its guards, when an operation needs one.
    """

    @property
    def is_text(self) -> bool:
        """Whether it is a str."""
        raise NotImplementedError

    def settle(self, tx: Context) -> Value:
        """The captured value; an equal one each time."""
        raise NotImplementedError


class LazyValue(Deferred):
    """An object from outside, which ``settle`` reads."""

    def __init__(self, value: Any, source: Source) -> None:
        self.value = value
        self.source: Source = source

    @property
    def is_text(self) -> bool:
        """Whether it is a str, and of no class of the user's."""
        return type(self.value) is str

    def settle(self, tx: Context) -> Value:
        """The captured value; the same one each time."""
        return tx.wrap(self.value, self.source)

    def length(self, tx: Context) -> Value:
        """Returns the length of a str, which may be the only property used."""
        if type(self.value) is not str:
            return self.settle(tx).length(tx)
        tx.prologue.guard(self.source, "type({}) is str", f"type({self.source.text}) is str", "str", "type")
        return tx.wrap(len(self.value), ComputedSource("len({0})", (self.source,)))


def settled(tx: Context, value: Value) -> Value:
    """Returns ``value``, read if it was deferred."""
    return value.settle(tx) if isinstance(value, Deferred) else value


class Null(Value):
    """The empty stack slot that CPython pushes beside callables."""

    def describe(self) -> str:
        """Never shown to users."""
        return "an empty stack slot"


NULL = Null()


def finite(values: Iterator[Value]) -> Iterator[Value]:
    """The same values; more than can sensibly be followed end the capture."""
    for count, value in enumerate(values):
        if count >= MAX_ITEMS:
            raise CannotCapture("too-long", f"A container of more than {MAX_ITEMS} items is made.")
        yield value


# -- what values ask of the code generator -----------------------------------------------------------------------------
class _HoldsItself(Exception):
    """A value is part of itself."""


class Rebuilder:
    """Writes the statements that make a captured result again from graph outputs, sources and constants."""

    def __init__(self, prologue: Prologue) -> None:
        self.prologue = prologue
        self.lines: list[str] = []
        self.outputs: list[tuple[object, Traced]] = []
        self._made: dict[int, tuple[Value, str]] = {}
        self._open: set[int] = set()
        self._unfilled: list[tuple[Value, str]] = []
        self._making = False
        self._empty_first = False
        self._count = 0

    def load(self, source: Source) -> str:
        """The variable of a source."""
        return self.prologue.load(source)

    def constant(self, value: Any) -> str:
        """The name of a held object."""
        return self.prologue.constant(value)

    def rebuild(self, value: Value) -> str:
        """Code for ``value``; one captured object becomes one object, also where it holds itself."""
        if self._making:
            return self._make(value)
        lines, outputs, made = len(self.lines), len(self.outputs), dict(self._made)
        for empty_first in (False, True):  # what holds itself is made empty first, and filled when all is there
            self._empty_first = empty_first
            try:
                return self._whole(value)
            except (_HoldsItself, CannotCapture) as error:  # nothing half made may stay
                self._made = made
                del self.lines[lines:], self.outputs[outputs:]
                if isinstance(error, CannotCapture):
                    raise
            finally:
                self._empty_first = False
        raise AssertionError("what is made empty first cannot hold itself")

    def _whole(self, value: Value) -> str:
        self._making, self._open, self._unfilled = True, set(), []
        try:
            code = self._make(value)
            while self._unfilled:
                shell, name = self._unfilled.pop(0)
                self.lines += shell.fill(self, name)
        finally:
            self._making = False
        return code

    def _make(self, value: Value) -> str:
        if value.source is not None or not value.has_variable:
            return value.rebuild(self)
        known = self._made.get(id(value))
        if known is not None:
            return known[1]
        if id(value) in self._open:
            raise _HoldsItself
        self._open.add(id(value))
        empty = value.shell(self) if self._empty_first or value.filled_last else None
        code = value.rebuild(self) if empty is None else empty
        self._open.discard(id(value))
        name = self.name(code)
        self._made[id(value)] = (value, name)
        if empty is not None:
            self._unfilled.append((value, name))
        return name

    def name(self, code: str) -> str:
        """A new variable that holds the value of ``code``."""
        self._count += 1
        self.lines.append(f"t{self._count} = {code}")
        return f"t{self._count}"

    def output(self, held: object, traced: Traced) -> str:
        """The variable of the graph output that is ``held`` (an array object, or elements in memory)."""
        for position, (known, _) in enumerate(self.outputs):
            if known is held:
                return f"o{position}"
        self.outputs.append((held, traced))
        return f"o{len(self.outputs) - 1}"


# -- what values and semantics ask of the capture in progress ----------------------------------------------------------
@dataclass
class Effect:
    """A store to a global that happens after the graph: ``namespace[name] = value`` (value None: delete)."""

    namespace: dict[str, Any]
    name: str
    value: Value | None


class FrameView(Protocol):
    """A followed function's frame, as semantics and loops look at it."""

    code: types.CodeType
    at: int
    locals: dict[str, Value]
    stack: list[Value]
    before: list[Value]

    @property
    def cells(self) -> Mapping[str, Value]:
        """Its closure variables."""

    @property
    def peeled(self) -> Mapping[int, Any]:
        """The loops of which an iteration is followed before their node."""

    @property
    def instructions(self) -> Sequence[Instruction]:
        """The function's code."""

    def location(self, at: int) -> Location:
        """The user's line after instruction number ``at``."""

    def user_line(self) -> UserLine:
        """The line being executed."""


class Context(Protocol):
    """The capture in progress. ``interpreter.context.Capture`` says what each part is for."""

    builder: Builder
    options: CaptureOptions
    profile: Profile
    graph: Graph
    prologue: Prologue
    symbols: Symbols
    frontends: Sequence[Frontend]
    tensors: Any
    tensor_values: dict[int, Value]
    differentiated: int
    frames: list[FrameView]
    effects: dict[tuple[int, str], Effect]
    mutated: dict[int, Value]
    objects: dict[Source, Any]
    examples: dict[Node, Any]
    regions: list[Any]
    input_sources: list[Source]
    left_open: dict[str, type]
    open_loops: list[tuple[Graph, Graph]]
    step: int
    outside_mutations: int
    outside_writes: int
    differs: bool
    forward_rules: list[Value]
    loops: LoopPlans
    break_is_error: bool

    def taken(self, node: Node) -> Any:
        """The value that a node has in this call, which the graph then relies on; None where that is not known."""

    @property
    def in_iteration(self) -> bool:
        """Whether an iteration of a loop is followed that stands for all of them."""

    # values from outside
    def wrap(self, value: Any, source: Source) -> Value:
        """The captured value of an object found at ``source``, with the guards that its kind needs."""

    def wrap_found(self, found: Any) -> Value:
        """The value of an attribute of a guarded constant: itself constant."""

    def cell(self, cell: types.CellType, source: Source, contents: Source) -> Value:
        """The captured closure cell found at ``source``."""

    def library_attribute(self, module: types.ModuleType, name: str) -> Any:
        """What a library's module holds, under a guard that it still does."""

    def is_special(self, value: Any) -> bool:
        """Whether a call of ``value`` has a meaning of its own, or must not be followed."""

    def is_library_name(self, module: object) -> bool:
        """Whether what a module holds is taken as fixed."""

    def is_fixed(self, value: Any) -> bool:
        """Whether a library says that the identity of ``value`` is all there is to know."""

    def inlined_function(self, value: Any) -> types.FunctionType | None:
        """The user's function after an already compiled one."""

    # side effects
    def touch(self) -> None:
        """Notes that captured state is about to change in place."""

    def mutate(self, value: Value) -> None:
        """Notes that ``value`` is about to change."""

    def stored_global(self, namespace: dict[str, Any], name: str) -> Value | None:
        """What the captured code has stored as a global; None where it has not."""

    def store_global(self, namespace: dict[str, Any], name: str, value: Value | None) -> None:
        """Remembers a store to a global (None: its deletion)."""

    # arrays
    def frontend_of(self, function: Any) -> Frontend | None:
        """The frontend that knows ``function``."""

    def frontend_at(self, device: str) -> Frontend:
        """The frontend whose arrays are on ``device``."""

    def is_scalar(self, value: Any) -> bool:
        """Whether an object is a scalar object of a library, such as ``np.float64(1)``."""

    def graph_input(self, type: TensorType | ScalarType, source: Source) -> Node:
        """A new input of the graph."""

    def array_input(self, type: TensorType, scalar: bool, source: Source) -> Value:
        """A graph input for an array found at ``source``."""

    def new_array(self, traced: Traced, source: Source | None = None, kept: str = "") -> Value:
        """The array object that shows ``traced``."""

    def from_frontend(self, result: Any, owner: Value | None = None) -> Value:
        """The captured value of a frontend's result."""

    def read(self, array: Value, cls: type | None) -> Value:
        """``array.item()`` (``cls`` None), ``float(array)``, ``int(array)`` or ``bool(array)``."""

    def draw(self, generator: Value, name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """What a random generator's method gives."""

    def write(self) -> None:
        """Does the writes that a frontend has asked for."""

    def let_go(self) -> None:
        """Lets arrays be written again of which iterations have read rows."""

    # numbers
    def decide(self, source: Source, code: str, text: str, holds: bool) -> bool:
        """The answer to a question about a run-time number, as seen now, under a guard."""

    def compute(self, template: str, operands: Sequence[Value], run: Callable[..., Any]) -> Value:
        """A Python number that plain Python computes before the graph."""

    def number_input(self, source: Source) -> TracedNumber:
        """A graph input for a Python float computed from ``source``."""

    def number_source(self, value: Value) -> Source | None:
        """A source for a Python number that varies; None for constants."""

    def key_source(self, key: Value) -> tuple[Source, str] | None:
        """Where a key of a container is found that may be another in each call, and its text."""

    def is_plain(self, key: Value) -> bool:
        """Whether a key is known, and hashes and compares without running anybody's code."""

    def waits(self, key: Value) -> bool:
        """Whether a key varies and can be made after the graph."""

    # operations and calls
    def equal(self, left: Value, right: Value) -> bool:
        """``left == right`` as containers compare their items."""

    def ordered(self, values: Sequence[Value], key: Value | None, reverse: Value | None) -> list[Value]:
        """``sorted(values, key=key, reverse=reverse)``."""

    def iterator(self, value: Value) -> Value:
        """``iter(value)``."""

    def text(self, function: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The str ``function(*args, **kwargs)``."""

    def fold(self, function: Callable[..., Any], args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Calls a pure function now; all arguments must be constants."""

    def call_constant(self, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """The meaning of calling a built-in, a class, or a library function."""

    def inline(self, function: Value, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Follows a user's function."""

    def inline_form(self, form: types.FunctionType, args: Sequence[Value], kwargs: Mapping[str, Value]) -> Value:
        """Follows the Python form of a library's function, which happens on the user's line."""

    # where we are
    def current_text(self) -> str:
        """The source text of the expression being executed."""

    def user_stack(self) -> tuple[UserLine, ...]:
        """The user's lines, outermost first."""
