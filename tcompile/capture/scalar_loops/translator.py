"""Translates scalar code to a program of typed blocks.

Input: a code object, the instructions of a stretch, and the values of its variables.
Output: the blocks of a ``scalar_loop`` program (``graph.ops.scalar_loop``), or ``Refused``.
Why: in scalar loops all types follow from those at the start. Each basic block is translated once for each combination
of kinds that reaches it. A variable that is an int in the first iteration and ``np.int64`` afterwards gives two
versions of the loop, and no value ever has two kinds. ``opcodes`` holds the instructions and calls.

A path that raises in Python ends with ``replay``: plain Python then repeats the whole stretch. Where it is a ``raise``,
the block may hold the values with which plain Python goes on there, or at the call of the function that raises
(``loops.scalar``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import Any, TypeAlias

from tcompile.bytecode.analysis import Analysis
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.context.followed import note
from tcompile.capture.scalar_loops.builder import (
    LETTER,
    NUMBERS,
    Block,
    Instructions,
    Refused,
    V,
    is_none,
    is_number,
    parts_of,
)
from tcompile.capture.values.callable import MethodValue
from tcompile.capture.values.dicts import DictValue
from tcompile.graph.ops.scalar_loop import dtype_of, is_numpy, ways
from tcompile.records import dataclass

_MOST_VERSIONS = 6  # of one place in the code
_MOST_CALLS = 8  # of functions inside of functions
_REPEATABLE = ("load", "size", "more", "step", "require")
_QUIET = ("bool", "np.bool", "int", "float")  # kinds of numbers whose arithmetic sets no floating-point flags
RETURNED = -3  # the target of exits that return

NULL = V(("null",))
NONE = "None"  # the kind of None among the items of a list
State: TypeAlias = "tuple[int, tuple[Any, ...], tuple[tuple[str, Any], ...]]"


@dataclass
class Iteration:
    """A block at which an iteration of the outermost loop begins, and its values."""

    block: Block
    stack: tuple[V, ...]
    env: dict[str, V]


@dataclass
class Raising:
    """A block before instructions that lead to an exception, the first of them, and the values there.

    ``before`` is the instruction that leads to them. Where a called function raises, it is the call, and the first one
    is the call or what prepares it.
    """

    block: Block
    before: int
    at: int
    stack: tuple[V, ...]
    env: dict[str, V]


@dataclass(eq=False)
class Room:
    """The arrays for the items of a list, and the array with their count, by number; and the items' kind.

    ``places`` are the instructions that append. ``counts``: an instruction may append in some iterations only, or
    several times. ``size`` is how many items the arrays hold, and ``may_be_full`` whether more may come.
    """

    count: int
    size: Any = None
    may_be_full: bool = False
    kind: Any = None
    arrays: Sequence[int] = ()
    places: set[int] = field(default_factory=set)
    counts: bool = False

    @property
    def is_tuple(self) -> bool:
        """Whether an item is several numbers."""
        return self.kind is not None and not isinstance(self.kind, str)


@dataclass(frozen=True)
class Cells:
    """The arrays that have the items of a list meanwhile, by their numbers.

    There is one for each of the ``kinds`` that an item may have; -1 for None. Where there are several, the elements of
    the array ``tags`` tell which kind an item has.
    """

    kinds: tuple[str, ...]
    arrays: tuple[int, ...]
    tags: int = -1

    @property
    def indexed(self) -> int:
        """An array of the list's length, which indices are checked against."""
        return self.arrays[0] if self.tags < 0 else self.tags


@dataclass
class Exit:
    """An exit: the kinds of its variables, and the blocks that take it, with the values."""

    state: State
    blocks: list[tuple[Block, tuple[int, ...]]]


# Handlers by instruction name, and by the identity of a function; ``opcodes`` fills these tables.
STEPS: dict[str, Callable[[Translator, Instruction], None]] = {}
CALLS: dict[int, Callable[[Translator, list[V]], V]] = {}  # of functions of Python's, by their identities
LIBRARY_CALLS: dict[str, Callable[[Translator, list[V]], V]] = {}  # of array libraries, by the names of instructions
METHODS: dict[str, Callable[[Translator, V, list[V]], V]] = {}  # the same by the kind of what is called


@dataclass(eq=False)
class Surroundings:
    """What translators ask for, of the loop's own code and of called functions. All of it raises Refused.

    Attributes:
        array_type: the type of an array of the program.
        callee: the translator of the code of a Python function that is called, or None.
        generator: a known random generator.
        spare: the arrays with what a generator keeps beside its state.
        text: the array of a str's code points.
        table: an array of numbers from before the loop.
        items_of_list: the items of a list, which the loop then may not change.
        cells: the arrays of a list's items, which may get one of a kind; None if there are none.
        attribute: an attribute of a library's module.
        member: an attribute of an object of the user's, or an item of a dict; or a property's getter, and True.
        set_member: sets an attribute.
        room: the arrays for an item of a list.
        length: the length of a list, or the arrays of one that the loop appends to.
        space: these, and how many items they hold, before an append; None where all have room.
        instruction: the name of the instruction that a call of a library's function is, or None.
        read_only: notes an array that the loop may not write.
        scratch: arrays of 64 ints and 64 floats for the stack of a sum.
        form: a function of ours as a value that can be called.
        is_exact: whether results have to have NumPy's very bits.
    """

    array_type: Callable[[int], Any]
    callee: Callable[[Translator, Any, list[V]], Translator | None]
    generator: Callable[[Translator, Any], V]
    spare: Callable[[Any], tuple[int, ...]]
    text: Callable[[str], V]
    table: Callable[[Sequence[V]], int]
    items_of_list: Callable[[int], list[V]]
    cells: Callable[[int, str | None], Cells | None]
    attribute: Callable[[Any, str], Any]
    member: Callable[[Translator, Any, str], tuple[V, bool]]
    set_member: Callable[[Translator, Any, str, V], None]
    room: Callable[[Translator, int, V], Room]
    length: Callable[[int], Room | int]
    space: Callable[[Translator, int], tuple[Room, V] | None]
    instruction: Callable[[Any], str | None]
    read_only: Callable[[int], None]
    scratch: Callable[[], tuple[int, int]]
    form: Callable[[Any], Any]
    is_exact: Callable[[], bool]


class Translator(Instructions):
    """One stretch on its way to a program.

    - ``inside`` are the instructions that belong to it, ``lost`` those that lead to an exception.
    - ``load_outside(name)`` gives a variable as it is before the stretch.
    - ``load_global(translator, instruction)`` gives an object.
    - ``load_below(depth)`` gives a list on the frame's stack, below the values of the stretch.
    - ``around`` is the rest of what it asks for.

    The code of a function that is called is a stretch of its own in the program of its ``caller``.
    """

    def __init__(
        self,
        found: Analysis,
        instructions: Sequence[Instruction],
        inside: set[int],
        lost: Set[int],
        bound: set[str],
        load_outside: Callable[[str], V | None],
        load_global: Callable[[Translator, Instruction], V],
        load_below: Callable[[int], V],
        around: Surroundings,
        caller: Translator | None = None,
    ) -> None:
        super().__init__(caller)
        self.found, self.instructions, self.inside, self.lost, self.bound = found, instructions, inside, lost, bound
        self.load_outside, self.load_global, self.load_below = load_outside, load_global, load_below
        self.around = around
        self.depth: int = 0 if caller is None else caller.depth + 1
        self.lines: list[int] | None = None  # of the frame, where they are noted
        self.by_state: dict[State, Block] = {}
        self.versions: dict[tuple[int, tuple[int, ...]], int] = {}
        self.waiting: list[Block] = []
        self.exits: dict[State, Exit] = {}
        self.at = -1  # the instruction that is translated
        self.header = -1  # the instruction with which an iteration of the outermost loop begins
        self.iterations: list[Iteration] = []
        self.raising: list[Raising] = []
        self.repeated: set[State] = set()  # the states in which all iterations begin but the first
        self.outer: dict[str, V | None] = {}
        self.names = {bit: name for name, bit in found.fast_bit.items()}
        self.targets = {target for target in found.goes if target >= 0}
        self.entry = self.new_block((-1, (), ()))

    # -- blocks --------------------------------------------------------------------------------------------------------
    def _live(self, at: int, env: Mapping[str, V]) -> list[tuple[str, V]]:
        live = self.found.live[at]
        return sorted((name, v) for name, v in env.items() if live >> self.found.fast_bit[name] & 1)

    def goto(self, at: int, stack: Sequence[V], env: Mapping[str, V]) -> tuple[int, tuple[int, ...]]:
        """Returns the block for these values at an instruction, and its parameters."""
        variables = self._live(at, env)
        state: State = (at, tuple(v.kind for v in stack), tuple((name, v.kind) for name, v in variables))
        given = tuple(r for v in (*stack, *(v for _, v in variables)) for r in v.registers)
        if at in self.lost:
            block = self.new_block(state)
            block.end = ("replay",)
            self.raising.append(Raising(block, self.at, at, tuple(stack), dict(variables)))
            return block.number, ()
        if at not in self.inside:
            block = self.new_block(state)
            self.exits.setdefault(state, Exit(state, [])).blocks.append((block, given))
            return block.number, ()
        if at == self.header and self.block is not self.entry:
            self.repeated.add(state)
        block_ = self.by_state.get(state)
        if block_ is None:
            place = at, tuple(kind[2] for kind in state[1] if kind[0] == "items")
            self.versions[place] = self.versions.get(place, 0) + 1
            if self.versions[place] > _MOST_VERSIONS:
                raise Refused("its variables change their types too often")
            block_ = self.by_state[state] = self.new_block(state)
            kinds = [*state[1], *(kind for _, kind in state[2])]
            block_.parameters = [self.register(part) for kind in kinds for part in parts_of(kind)]
            self.waiting.append(block_)
        return block_.number, given

    def jump(self, at: int, how: str = "jump") -> None:
        """Ends the block."""
        self.block.end = (how, *self.goto(at, self.stack, self.env))

    def branch(self, condition: V, yes: int, no: int) -> None:
        """Ends the block with two successors that have the same stack."""
        one, two = self.goto(yes, self.stack, self.env), self.goto(no, self.stack, self.env)
        self.block.end = ("branch", condition.register, *one, *two)

    def split(self, condition: V) -> tuple[Block, Block]:
        """Ends the block in the middle of an instruction, with two successors."""
        yes, no = (self.new_block((-2, (), ())) for _ in range(2))
        self.block.end = ("branch", condition.register, yes.number, (), no.number, ())
        return yes, no

    def hand_back(self, value: V) -> None:
        """Ends the block, unless it has ended; the next one has the value on the stack."""
        if not self.block.end:
            self.block.end = ("jump", *self.goto(self.at + 1, [*self.stack, value], self.env))

    def run(self, start: int, stack: Sequence[V]) -> None:
        """Translates all instructions reachable from one."""
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

    def _follow(self, block: Block) -> None:
        at, stack, variables = block.state
        registers: Iterator[int] = iter(block.parameters)

        def value(kind: Any) -> V:
            known = self.objects[kind[1]] if kind[0] == "object" and not isinstance(kind, str) else None
            return V(kind, tuple(next(registers) for _ in parts_of(kind)), known)

        self.block = block
        self.stack = [value(kind) for kind in stack]
        self.env = {name: value(kind) for name, kind in variables}
        if at == self.header:
            self.iterations.append(Iteration(block, tuple(self.stack), dict(self.env)))
        self.keywords: tuple[str, ...] = ()
        first = True
        while not block.end:
            if at not in self.inside or ((at in self.targets or at == self.header) and not first):
                self.jump(at)
                return
            first = False
            i = self.instructions[at]
            step = STEPS.get(i.opname)
            if step is None:
                raise Refused(f"{i.opname.lower()} is no scalar code")
            self.at = at
            if self.lines is not None and i.positions[0]:
                note(self.lines, i.positions[0])
            step(self, i)
            at += 1

    def outside(self, name: str) -> V | None:
        """Returns a variable's value before the stretch."""
        if name not in self.outer:
            block, self.block = getattr(self, "block", self.entry), self.entry
            try:
                self.outer[name] = self.load_outside(name)
            finally:
                self.block = block
        return self.outer[name]

    # -- what instructions share ---------------------------------------------------------------------------------------
    def load(self, name: str) -> None:
        """Pushes a variable."""
        value = self.env.get(name) if name in self.bound else self.outside(name)
        if value is None:
            raise Refused(f"`{name}` has no value")
        self.stack.append(value)

    def pop(self, count: int) -> list[V]:
        """Pops some values."""
        self.hold(count)
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    def hold(self, count: int) -> None:
        """Checks the stack depth: values below the entry depth are not the stretch's own."""
        if len(self.stack) < count:
            raise Refused("it pops below the region's entry stack depth")

    def indices(self, array: int, key: V, before: Sequence[int] = ()) -> tuple[int, ...]:
        """Returns the registers of the indices of a key."""
        items = self.items(key) if key.kind[0] == "tuple" else [key]
        for item in items:
            whole = is_number(item) and (item.kind == "int" or dtype_of(item.kind).kind in "iu")
            if not whole or item.kind == "bool":
                raise Refused("an index that is no int")
        found = (*before, *(item.register for item in items))
        if len(found) > len(self.around.array_type(array).shape):
            raise Refused("too many indices")
        return found

    def subscript(self, value: V, key: V) -> V:
        """``value[key]``."""
        if value.kind[0] in ("tuple", "list"):
            return self._item(value, key)
        if isinstance(value.known, DictValue) and type(key.known) is str:
            return self.around.member(self, value.known, key.known)[0]
        value = self.text(value)
        if value.kind[0] == "text":
            self.accesses += 1
            letter = self.add("load", "np.int32", value.kind[1], *self.indices(value.kind[1], key))
            return V(LETTER, self.as_ints(letter.registers))
        if value.kind[0] not in ("array", "row"):
            raise Refused("an item of something else than an array")
        array = value.kind[1]
        found = self.indices(array, key, value.registers)
        type_ = self.around.array_type(array)
        if len(found) < len(type_.shape):
            for axis in range(len(value.registers), len(found)):
                self.check_index(array, axis, found[axis])
            return V(("row", array, len(found)), self.as_ints(found))
        self.accesses += 1
        return self.add("load", f"np.{type_.dtype.name}", array, *found)

    def _item(self, value: V, key: V) -> V:
        """``value[key]`` of a tuple or a list."""
        cells = self.around.cells(value.kind[1], None) if value.kind[0] == "list" else None
        if cells is not None:
            self.accesses += 1
            return self.cell(cells, self.indices(cells.indexed, key))
        items = self.items(value) if value.kind[0] == "tuple" else self.around.items_of_list(value.kind[1])
        if type(key.known) is int:
            if not -len(items) <= key.known < len(items):
                raise Refused("an item of a tuple")
            return items[key.known]
        rows = [self.items(item) if item.kind[0] == "tuple" else [item] for item in items]
        if not rows or any(item.kind != items[0].kind for item in items):
            raise Refused("an item of a tuple whose items have different kinds")
        columns = []
        for column in zip(*rows, strict=True):
            if not all(map(is_number, column)):
                raise Refused("an item of a tuple of other objects than numbers")
            array = self.around.table(column)
            columns.append(self._element(array, column[0].kind, self.indices(array, key)))
        self.accesses += 1
        return self.pack(columns) if items[0].kind[0] == "tuple" else columns[0]

    def _element(self, array: int, kind: str, indices: Sequence[int]) -> V:
        """An element, as the object of such a kind that it is to Python."""
        if kind == NONE:
            return self.constant(None)
        found = self.add("load", f"np.{self.around.array_type(array).dtype.name}", array, *indices)
        return found if is_numpy(kind) else self.add(kind, kind, found.register)

    def cell(self, cells: Cells, indices: Sequence[int]) -> V:
        """An item of a list. Where it may have several kinds, each continues in a block of its own."""
        *others, last = zip(cells.arrays, cells.kinds, strict=True)
        if cells.kinds == (NONE,):
            self.check_index(cells.tags, 0, *indices)
        if others:
            tag = V("int", self.as_ints(self.add("load", "np.int8", cells.tags, *indices).registers))
        for number, other in enumerate(others):
            is_this = self.truth(self.binary("==", tag, self.constant(number)))
            self.block, no = self.split(is_this)
            self.hand_back(self._element(*other, indices))
            self.block = no
        found = self._element(*last, indices)
        if others:
            self.hand_back(found)
        return found

    def store_cell(self, cells: Cells, indices: Sequence[int], value: V) -> None:
        """Replaces an item of a list by a number or None, of one of its kinds."""
        kind = NONE if is_none(value) else value.kind
        which = cells.kinds.index(kind)
        if kind != NONE:
            self.block.lines.append(("store", -1, cells.arrays[which], value.register, *indices))
        if cells.tags >= 0:
            self.block.lines.append(("store", -1, cells.tags, self.constant(which).register, *indices))

    def text(self, value: V) -> V:
        """Returns the value; a known str as the array of its code points."""
        return self.around.text(value.known) if value.kind[0] == "object" and type(value.known) is str else value

    def check_index(self, array: int, axis: int, index: int) -> None:
        """Guards what would raise if the row were made, though nothing of it is read."""
        size = self.add("size", "int", array, axis)
        place = V("int", self.as_ints([index]))
        low = self.add("negative", "int", size.register)
        self.require(self.add(">=", "bool", place.register, low.register))
        self.require(self.add("<", "bool", place.register, size.register))

    def range(self, items: Sequence[V]) -> V:
        """The iterator of a range."""
        if not 1 <= len(items) <= 3 or not all(is_number(item) for item in items):
            raise Refused("range of something else")
        ints = []
        for item in items:
            if item.kind != "int" and (not is_numpy(item.kind) or dtype_of(item.kind).kind not in "iu"):
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

    def call(self, function: V, arguments: list[V], operands: Sequence[V]) -> V:
        """The value of a call. ``operands`` are what the instruction has taken from the stack."""
        target = function.known
        if function.kind[0] in METHODS:
            return METHODS[function.kind[0]](self, function, arguments)
        if function.kind[0] != "object" or self.objects.get(function.kind[1]) is not target:
            raise Refused("a call of something that is no function")
        if isinstance(target, MethodValue):
            return self.call(self.object(target.function), [self.object(target.owner), *arguments], operands)
        known = CALLS.get(id(target)) or LIBRARY_CALLS.get(self.around.instruction(target) or "")
        if known is not None:
            return known(self, arguments)
        inner = self.around.callee(self, target, arguments) if self.depth < _MOST_CALLS else None
        if inner is None:
            raise Refused(f"a call of {getattr(target, '__name__', 'something')}")
        return self._enter(inner, operands)

    def _blocks_before(self, block: Block, entry: int) -> Iterator[Block]:
        """The blocks of a call, which begins with the block ``entry``, from which this one can be reached."""
        met, grows = {block.number}, True
        while grows:
            found = {b.number for b in self.blocks[entry:] if not met.isdisjoint(ways(b.end or ("",)))}
            grows = not found <= met
            met |= found
        return (self.blocks[number] for number in met)

    def _is_repeatable(self, block: Block) -> bool:
        """Whether it may run twice: it writes nothing, and sets no floating-point flags."""
        return all(
            name in _REPEATABLE or (name not in ("store", "draw") and self.kinds[made] in _QUIET)
            for name, made, *_ in block.lines
        )

    def _before_this(self, block: Block, operands: Sequence[V]) -> Raising:
        """A block from which plain Python goes on before this instruction, which has taken ``operands``."""
        begin = self.at - (self.instructions[self.at - 1].opname == "PRECALL")
        return Raising(block, self.at, begin, (*self.stack, *operands), dict(self._live(self.at, self.env)))

    def leave_unless(self, condition: V, operands: Sequence[V]) -> None:
        """Leaves to plain Python before this instruction, which has taken ``operands``, unless the condition holds."""
        self.block, other = self.split(condition)
        other.end = ("replay",)
        self.raising.append(self._before_this(other, operands))

    def leave(self, value: V) -> None:
        """Returns a value from the stretch."""
        state: State = (RETURNED, (value.kind,), ())
        block = self.new_block(state)
        self.exits.setdefault(state, Exit(state, [])).blocks.append((block, value.registers))
        self.block.end = ("jump", block.number, ())

    def _enter(self, inner: Translator, operands: Sequence[V]) -> V:
        """Inlines a function's code; each return continues after this instruction."""
        self.block.end = ("jump", inner.entry.number, ())
        inner.run(0, ())
        self.accesses += inner.accesses
        self.raising += [
            self._before_this(each.block, operands)  # plain Python makes the call again
            for each in inner.raising
            if all(map(self._is_repeatable, self._blocks_before(each.block, inner.entry.number)))
        ]
        result: V | None = None
        for state, exit in inner.exits.items():
            (kind,) = state[1]
            for block, registers in exit.blocks:
                result = V(kind, registers, self.objects[kind[1]] if kind[0] == "object" else None)
                block.end = ("jump", *self.goto(self.at + 1, [*self.stack, result], self.env))
        if result is None and not inner.raising:
            raise Refused("it calls a function that never ends")
        return NULL if result is None else result


__all__ = [
    "CALLS", "LIBRARY_CALLS", "METHODS", "NONE", "NULL", "NUMBERS", "RETURNED", "STEPS", "Cells", "Exit", "Iteration",
    "Raising", "Refused", "Room", "Surroundings", "Translator", "V", "is_number", "parts_of",
]  # fmt: skip
