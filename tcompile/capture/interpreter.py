"""The symbolic interpreter: runs a function's bytecode on captured values.

Enters: a function and its bound arguments. Leaves: the value it returns; the graph, guards and effects grow in the
shared ``Capture``. Exists because the language's meaning is its bytecode: whatever CPython compiles a program to, one
handler an instruction says what it does to values. Calls of user functions run in a ``Frame`` of their own.

An instruction that is not followed, or an operation on values that cannot be captured, raises ``CannotCapture``; the
frame in which it happens is known from ``Capture.frames``.
"""

from __future__ import annotations

import builtins
import dis
import linecache
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tcompile.capture.operators import COMPARE, INPLACE, binary, contains, identical, unary
from tcompile.capture.sources import AttributeSource, FunctionSource, GlobalSource
from tcompile.capture.state import Capture, Effect
from tcompile.capture.values.array import ArrayValue
from tcompile.capture.values.base import NULL, Null, Unread, Value, settled
from tcompile.capture.values.callable import Cell, FunctionValue, IteratorValue, MethodValue
from tcompile.capture.values.constant import Constant
from tcompile.capture.values.container import BuiltinMethod, DictValue, SequenceValue, SliceValue, constant_of
from tcompile.capture.values.object import ObjectValue
from tcompile.frontends.base import CannotCapture
from tcompile.graph import Location
from tcompile.observe.events import UserLine

Handler = Callable[["Frame", dis.Instruction], None]
_HANDLERS: dict[str, Handler] = {}


@dataclass(eq=False)
class Decoded:
    """A code object made ready for the interpreter: one list entry an instruction."""

    code: types.CodeType
    instructions: list[dis.Instruction]
    handlers: list[Handler | None]
    positions: dict[int, int]  # instruction number by offset
    locations: list[Location | None]  # filled in as they are asked for
    has_blocks: bool  # whether it has ``try`` or ``with``


_DECODED: dict[int, Decoded] = {}


class _Returned(Exception):
    """Ends a frame; carries the value returned."""

    def __init__(self, value: Value) -> None:
        self.value = value


class _Yielded(Exception):
    """Suspends a generator's frame; carries the value yielded."""

    def __init__(self, value: Value) -> None:
        self.value = value


def handler(*names: str) -> Callable[[Handler], Handler]:
    """Registers the meaning of the instructions ``names``."""

    def register(function: Handler) -> Handler:
        for name in names:
            _HANDLERS[name] = function
        return function

    return register


def decode(code: types.CodeType) -> Decoded:
    """The instructions of ``code``, decoded once."""
    found = _DECODED.get(id(code))
    if found is None or found.code is not code:
        instructions = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE")]
        positions = {i.offset: n for n, i in enumerate(instructions)}
        previous = -1
        for n, i in enumerate(instructions):  # a jump may name the EXTENDED_ARG before its instruction
            for offset in range(previous + 2, i.offset, 2):
                positions.setdefault(offset, n)
            previous = i.offset
        if len(_DECODED) > 512:
            _DECODED.clear()
        found = _DECODED[id(code)] = Decoded(
            code, instructions, [_HANDLERS.get(i.opname) for i in instructions], positions, [None] * len(instructions),
            any(i.opname == "PUSH_EXC_INFO" for i in instructions),
        )  # fmt: skip
    return found


def has_blocks(code: types.CodeType) -> bool:
    """Whether ``code`` has ``try`` or ``with`` in it: a generator that is dropped would run its clean-up."""
    return decode(code).has_blocks


class Frame:
    """One function's execution on captured values."""

    def __init__(self, tx: Capture, function: FunctionValue, arguments: dict[str, Value]) -> None:
        self.tx = tx
        self.function = function
        self.code = function.code
        self.locals: dict[str, Value] = dict(arguments)
        self.stack: list[Value] = []
        self.cells: dict[str, Cell] = dict(zip(self.code.co_freevars, function.closure, strict=True))
        self.keyword_names: tuple[str, ...] = ()
        self.decoded = decode(self.code)
        self.at = 0

    # -- running -----------------------------------------------------------------------------------------------------
    def run(self) -> Value:
        """Runs until the function returns."""
        self.tx.frames.append(self)
        try:
            self._steps()
        except _Returned as returned:
            self.tx.frames.pop()
            return returned.value
        raise AssertionError("a frame ends only by returning")

    def generate(self) -> Iterator[Value]:
        """Runs a generator's frame from one yield to the next."""
        while True:
            self.tx.frames.append(self)
            try:
                self._steps()
            except _Returned:
                self.tx.frames.pop()
                return
            except _Yielded as yielded:
                self.tx.frames.pop()
                yield yielded.value
                self.push(Constant(None))

    def _steps(self) -> None:
        tx, limit = self.tx, self.tx.options.max_instructions
        instructions, handlers = self.decoded.instructions, self.decoded.handlers
        while True:
            at = self.at
            self.at = at + 1
            tx.instructions += 1
            if tx.instructions > limit:
                raise CannotCapture("too-long", f"More than {limit} instructions were followed.")
            run = handlers[at]
            if run is None:
                raise CannotCapture("unsupported-instruction", instructions[at].opname)
            tx.builder.location = self.location(at)
            run(self, instructions[at])

    def push(self, value: Value) -> None:
        """Puts a value on the stack."""
        self.stack.append(value)

    def pop(self) -> Value:
        """Takes the top of the stack."""
        value = self.stack.pop()
        return value.settle(self.tx) if type(value) is Unread else value

    def pop_unread(self) -> Value:
        """Takes the top of the stack, which is only moved elsewhere."""
        return self.stack.pop()

    def pop_many(self, count: int) -> list[Value]:
        """Takes ``count`` values, the deepest first."""
        if not count:
            return []
        values = [settled(self.tx, value) for value in self.stack[-count:]]
        del self.stack[-count:]
        return values

    def jump(self, instruction: dis.Instruction) -> None:
        """Goes to the instruction's target."""
        self.at = self.decoded.positions[instruction.argval]

    # -- where we are ------------------------------------------------------------------------------------------------
    def location(self, at: int) -> Location:
        """The user's line behind instruction number ``at``."""
        known = self.decoded.locations[at]
        if known is None:
            place = self.decoded.instructions[at].positions
            line = (place.lineno if place else None) or self.code.co_firstlineno
            known = self.decoded.locations[at] = Location(
                self.code.co_filename, line, place.col_offset if place else None,
                place.end_col_offset if place and place.end_lineno == line else None, self.code.co_name,
                linecache.getline(self.code.co_filename, line).strip(),
            )  # fmt: skip
        return known

    def user_line(self) -> UserLine:
        """The line being executed."""
        where = self.location(max(self.at - 1, 0))
        return UserLine(
            file=where.file, line=where.line, column=where.column, end_column=where.end_column,
            function=where.function, text=where.text,
        )  # fmt: skip

    # -- names -------------------------------------------------------------------------------------------------------
    def load_global(self, name: str) -> Value:
        """A global, or a built-in where there is none."""
        effect = self.tx.effects.get(name) if self.globals_are_root else None
        if effect is not None:
            self._guard_root_globals()
            if effect.value is None:
                raise CannotCapture("operation-raises", f"name {name!r} is not defined")
            return effect.value
        if name in self.function.globals:
            return Unread(self.function.globals[name], GlobalSource(name, self.function.home))
        if hasattr(builtins, name):
            held = self.tx.prologue.constant(self.function.globals)
            self.tx.prologue.guard(
                self.function.home, f"{name!r} not in {held}", f"no global named {name!r}", "the built-in"
            )
            return self.tx.wrap_found(getattr(builtins, name))
        raise CannotCapture("operation-raises", f"name {name!r} is not defined")

    @property
    def globals_are_root(self) -> bool:
        """Whether this frame's globals are those that effects are stored to."""
        return self.function.globals is self.tx.frames[0].function.globals

    def _guard_root_globals(self) -> None:
        """Effects go to the compiled function's globals: where another function has them too, that is a guard."""
        if not isinstance(self.function.home, FunctionSource):
            held = self.tx.prologue.constant(self.function.globals)
            self.tx.prologue.guard(
                AttributeSource(FunctionSource(), "__globals__"), f"{{}} is {held}", "the module is the same",
                "the module",
            )

    def store_global(self, name: str, value: Value | None) -> None:
        """Remembers a store to a global of the compiled function's module, done after the graph."""
        if not self.globals_are_root:
            raise CannotCapture("side-effect", f"Assigning the global `{name}` of another module")
        self._guard_root_globals()
        self.tx.effects.pop(name, None)
        self.tx.effects[name] = Effect(name, value)

    def load_local(self, name: str) -> Value:
        """A local variable. Raises CannotCapture where plain Python would raise UnboundLocalError."""
        value = self.locals.get(name)
        if value is not None:
            return value
        if name in self.cells:
            return CellReference(self.cells[name])
        raise CannotCapture("operation-raises", f"local variable {name!r} is not set")


class CellReference(Value):
    """A closure cell on the stack, on its way into a new function."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell


# -- stack and names --------------------------------------------------------------------------------------------------


@handler("NOP", "RESUME", "PRECALL", "COPY_FREE_VARS", "END_FOR")
def _nothing(f: Frame, i: dis.Instruction) -> None:
    return


@handler("RETURN_GENERATOR")
def _return_generator(f: Frame, i: dis.Instruction) -> None:
    f.push(NULL)  # the generator object that the following POP_TOP discards


@handler("MAKE_CELL")
def _make_cell(f: Frame, i: dis.Instruction) -> None:
    f.cells[i.argval] = Cell(f.locals.pop(i.argval, None))  # from now on the variable lives in its cell


@handler("PUSH_NULL")
def _push_null(f: Frame, i: dis.Instruction) -> None:
    f.push(NULL)


@handler("POP_TOP")
def _pop_top(f: Frame, i: dis.Instruction) -> None:
    f.pop_unread()


@handler("COPY")
def _copy(f: Frame, i: dis.Instruction) -> None:
    f.push(f.stack[-(i.arg or 0)])


@handler("SWAP")
def _swap(f: Frame, i: dis.Instruction) -> None:
    depth = i.arg or 0
    f.stack[-1], f.stack[-depth] = f.stack[-depth], f.stack[-1]


@handler("LOAD_CONST")
def _load_const(f: Frame, i: dis.Instruction) -> None:
    f.push(_constant(i.argval))


def _constant(value: Any) -> Value:
    if type(value) is tuple:
        return SequenceValue([_constant(item) for item in value], tuple)
    return Constant(value)


@handler("RETURN_CONST")
def _return_const(f: Frame, i: dis.Instruction) -> None:
    raise _Returned(_constant(i.argval))


@handler("RETURN_VALUE")
def _return_value(f: Frame, i: dis.Instruction) -> None:
    raise _Returned(f.pop_unread())


@handler("YIELD_VALUE")
def _yield_value(f: Frame, i: dis.Instruction) -> None:
    raise _Yielded(f.pop())


@handler("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW")
def _load_fast(f: Frame, i: dis.Instruction) -> None:
    f.push(f.load_local(i.argval))


@handler("LOAD_FAST_AND_CLEAR")
def _load_fast_and_clear(f: Frame, i: dis.Instruction) -> None:
    found = f.locals.pop(i.argval, None)
    if found is None and i.argval in f.cells and i.argval in f.code.co_cellvars:
        found = CellReference(f.cells.pop(i.argval))
    f.push(found or NULL)


@handler("LOAD_FAST_LOAD_FAST")
def _load_fast_twice(f: Frame, i: dis.Instruction) -> None:
    for name in i.argval:
        f.push(f.load_local(name))


def _store_local(f: Frame, name: str, value: Value) -> None:
    if isinstance(value, Null):
        f.locals.pop(name, None)
        f.cells.pop(name, None)
    elif isinstance(value, CellReference):
        f.cells[name] = value.cell
    else:
        f.locals[name] = value


@handler("STORE_FAST")
def _store_fast(f: Frame, i: dis.Instruction) -> None:
    _store_local(f, i.argval, f.pop_unread())


@handler("STORE_FAST_LOAD_FAST")
def _store_load(f: Frame, i: dis.Instruction) -> None:
    store, load = i.argval
    _store_local(f, store, f.pop_unread())
    f.push(f.load_local(load))


@handler("STORE_FAST_STORE_FAST")
def _store_store(f: Frame, i: dis.Instruction) -> None:
    for name in i.argval:
        _store_local(f, name, f.pop_unread())


@handler("DELETE_FAST")
def _delete_fast(f: Frame, i: dis.Instruction) -> None:
    f.load_local(i.argval)
    del f.locals[i.argval]


@handler("LOAD_CLOSURE")
def _load_closure(f: Frame, i: dis.Instruction) -> None:
    f.push(CellReference(f.cells[i.argval]))


@handler("LOAD_DEREF", "LOAD_CLASSDEREF")
def _load_deref(f: Frame, i: dis.Instruction) -> None:
    f.push(f.cells[i.argval].get(i.argval))


@handler("STORE_DEREF")
def _store_deref(f: Frame, i: dis.Instruction) -> None:
    f.cells[i.argval].set(f.pop_unread(), i.argval)


@handler("DELETE_DEREF")
def _delete_deref(f: Frame, i: dis.Instruction) -> None:
    f.cells[i.argval].get(i.argval)
    f.cells[i.argval].set(None, i.argval)


def _push_callable(f: Frame, value: Value) -> None:
    """Pushes a callable with the empty slot that CALL expects beside it (either order is understood)."""
    f.push(NULL)
    f.push(value)


@handler("LOAD_GLOBAL")
def _load_global(f: Frame, i: dis.Instruction) -> None:
    value = f.load_global(i.argval)
    if (i.arg or 0) & 1:
        _push_callable(f, value)
    else:
        f.push(value)


@handler("LOAD_NAME")
def _load_name(f: Frame, i: dis.Instruction) -> None:
    f.push(f.load_global(i.argval))


@handler("STORE_GLOBAL", "STORE_NAME")
def _store_global(f: Frame, i: dis.Instruction) -> None:
    f.store_global(i.argval, f.pop())


@handler("DELETE_GLOBAL", "DELETE_NAME")
def _delete_global(f: Frame, i: dis.Instruction) -> None:
    f.load_global(i.argval)
    f.store_global(i.argval, None)


@handler("LOAD_BUILD_CLASS", "SETUP_ANNOTATIONS")
def _class_statement(f: Frame, i: dis.Instruction) -> None:
    raise CannotCapture("unsupported-instruction", "of a class statement or annotation")


@handler("IMPORT_NAME", "IMPORT_FROM")
def _import(f: Frame, i: dis.Instruction) -> None:
    raise CannotCapture("side-effect", f"Importing `{i.argval}`")


# -- attributes and items ---------------------------------------------------------------------------------------------


def _attribute(f: Frame, owner: Value, name: str) -> Value:
    plain = isinstance(owner, Constant) and type(owner.value) in _WITH_METHODS
    if plain and callable(getattr(owner.value, name, None)):  # type: ignore[attr-defined]
        return BuiltinMethod(owner, name)
    return owner.attribute(f.tx, name)


_WITH_METHODS = (str, bytes, int, float, complex, bool, frozenset)


@handler("LOAD_ATTR")
def _load_attr(f: Frame, i: dis.Instruction) -> None:
    value = _attribute(f, f.pop(), i.argval)
    if _ATTR_CALLS and (i.arg or 0) & 1:
        _push_callable(f, value)
    else:
        f.push(value)


_ATTR_CALLS = "LOAD_METHOD" not in dis.opmap or dis.opmap["LOAD_METHOD"] > 255  # 3.12: LOAD_ATTR does both


@handler("LOAD_METHOD")
def _load_method(f: Frame, i: dis.Instruction) -> None:
    _push_callable(f, _attribute(f, f.pop(), i.argval))


@handler("STORE_ATTR", "DELETE_ATTR")
def _store_attr(f: Frame, i: dis.Instruction) -> None:
    raise CannotCapture("side-effect", f"Setting the attribute `{i.argval}` of {f.stack[-1].describe()}")


@handler("BINARY_SUBSCR")
def _binary_subscr(f: Frame, i: dis.Instruction) -> None:
    key = f.pop()
    f.push(f.pop().item(f.tx, key))


@handler("BINARY_SLICE")
def _binary_slice(f: Frame, i: dis.Instruction) -> None:
    owner, start, stop = f.pop_many(3)
    f.push(owner.item(f.tx, SliceValue(start, stop, Constant(None))))


@handler("STORE_SUBSCR")
def _store_subscr(f: Frame, i: dis.Instruction) -> None:
    value, owner, key = f.pop_many(3)
    owner.store_item(f.tx, key, value)


@handler("STORE_SLICE")
def _store_slice(f: Frame, i: dis.Instruction) -> None:
    value, owner, start, stop = f.pop_many(4)
    owner.store_item(f.tx, SliceValue(start, stop, Constant(None)), value)


@handler("DELETE_SUBSCR")
def _delete_subscr(f: Frame, i: dis.Instruction) -> None:
    owner, key = f.pop_many(2)
    owner.delete_item(f.tx, key)


# -- operators --------------------------------------------------------------------------------------------------------


@handler("BINARY_OP")
def _binary_op(f: Frame, i: dis.Instruction) -> None:
    left, right = f.pop_many(2)
    sign = i.argrepr
    if sign.endswith("=") and sign not in COMPARE:
        f.push(_inplace(f, sign[:-1], left, right))
    else:
        f.push(binary(f.tx, sign, left, right))


def _inplace(f: Frame, sign: str, left: Value, right: Value) -> Value:
    if isinstance(left, ArrayValue):
        return left.update(f.tx, sign, right)
    if isinstance(left, SequenceValue) and left.cls is list:
        if sign == "+":
            left.method(f.tx, "extend", [right], {})
            return left
        raise CannotCapture("unsupported-operands", f"{left.describe()} {sign}= {right.describe()}")
    if isinstance(left, DictValue) and sign == "|":
        left.method(f.tx, "update", [right], {})
        return left
    if isinstance(left, ObjectValue):
        result = left.inplace(f.tx, INPLACE[sign], right)
        if result is not None:
            return result
    return binary(f.tx, sign, left, right)


@handler("COMPARE_OP")
def _compare_op(f: Frame, i: dis.Instruction) -> None:
    left, right = f.pop_many(2)
    sign = i.argval.removeprefix("bool(").removesuffix(")")
    result = binary(f.tx, sign, left, right)
    f.push(Constant(result.truth(f.tx)) if i.argrepr.startswith("bool(") else result)


@handler("IS_OP")
def _is_op(f: Frame, i: dis.Instruction) -> None:
    left, right = f.pop_many(2)
    f.push(Constant(identical(f.tx, left, right) != bool(i.arg)))


@handler("CONTAINS_OP")
def _contains_op(f: Frame, i: dis.Instruction) -> None:
    item, container = f.pop_many(2)
    f.push(Constant(contains(f.tx, container, item) != bool(i.arg)))


@handler("UNARY_NEGATIVE")
def _negative(f: Frame, i: dis.Instruction) -> None:
    f.push(unary(f.tx, "-", f.pop()))


@handler("UNARY_POSITIVE")
def _positive(f: Frame, i: dis.Instruction) -> None:
    f.push(unary(f.tx, "+", f.pop()))


@handler("UNARY_INVERT")
def _invert(f: Frame, i: dis.Instruction) -> None:
    f.push(unary(f.tx, "~", f.pop()))


@handler("UNARY_NOT")
def _not(f: Frame, i: dis.Instruction) -> None:
    f.push(Constant(not f.pop().truth(f.tx)))


@handler("TO_BOOL")
def _to_bool(f: Frame, i: dis.Instruction) -> None:
    f.push(Constant(f.pop().truth(f.tx)))


@handler("GET_LEN")
def _get_len(f: Frame, i: dis.Instruction) -> None:
    f.push(f.stack[-1].length(f.tx))


# -- building ---------------------------------------------------------------------------------------------------------


@handler("BUILD_TUPLE", "BUILD_LIST")
def _build_sequence(f: Frame, i: dis.Instruction) -> None:
    f.push(SequenceValue(f.pop_many(i.arg or 0), tuple if i.opname == "BUILD_TUPLE" else list))


@handler("BUILD_MAP")
def _build_map(f: Frame, i: dis.Instruction) -> None:
    flat = f.pop_many(2 * (i.arg or 0))
    f.push(DictValue({constant_of(k, "a dict key"): v for k, v in zip(flat[::2], flat[1::2], strict=True)}))


@handler("BUILD_CONST_KEY_MAP")
def _build_const_key_map(f: Frame, i: dis.Instruction) -> None:
    keys = constant_of(f.pop(), "dict keys")
    f.push(DictValue(dict(zip(keys, f.pop_many(i.arg or 0), strict=True))))


@handler("BUILD_SLICE")
def _build_slice(f: Frame, i: dis.Instruction) -> None:
    parts = f.pop_many(i.arg or 0)
    f.push(SliceValue(parts[0], parts[1], parts[2] if len(parts) == 3 else Constant(None)))


@handler("BUILD_STRING")
def _build_string(f: Frame, i: dis.Instruction) -> None:
    f.push(f.tx.fold(lambda *parts: "".join(parts), f.pop_many(i.arg or 0), {}))


@handler("FORMAT_VALUE")
def _format_value(f: Frame, i: dis.Instruction) -> None:
    flags = i.arg or 0
    spec = f.pop() if flags & 4 else Constant("")
    convert = {0: None, 1: str, 2: repr, 3: ascii}[flags & 3]
    value = f.pop()
    if convert is not None:
        value = f.tx.fold(convert, [value], {})
    f.push(f.tx.fold(format, [value, spec], {}))


@handler("CONVERT_VALUE")
def _convert_value(f: Frame, i: dis.Instruction) -> None:
    convert: Any = {1: str, 2: repr, 3: ascii}[i.arg or 1]
    f.push(f.tx.fold(convert, [f.pop()], {}))


@handler("FORMAT_SIMPLE")
def _format_simple(f: Frame, i: dis.Instruction) -> None:
    f.push(f.tx.fold(format, [f.pop()], {}))


@handler("FORMAT_WITH_SPEC")
def _format_with_spec(f: Frame, i: dis.Instruction) -> None:
    f.push(f.tx.fold(format, f.pop_many(2), {}))


@handler("LIST_EXTEND")
def _list_extend(f: Frame, i: dis.Instruction) -> None:
    values = f.pop()
    f.stack[-(i.arg or 0)].method(f.tx, "extend", [values], {})


@handler("LIST_APPEND")
def _list_append(f: Frame, i: dis.Instruction) -> None:
    value = f.pop()
    f.stack[-(i.arg or 0)].method(f.tx, "append", [value], {})


@handler("MAP_ADD")
def _map_add(f: Frame, i: dis.Instruction) -> None:
    key, value = f.pop_many(2)
    f.stack[-(i.arg or 0)].store_item(f.tx, key, value)


@handler("DICT_UPDATE", "DICT_MERGE")
def _dict_update(f: Frame, i: dis.Instruction) -> None:
    other = f.pop()
    target = f.stack[-(i.arg or 0)]
    if not isinstance(other, DictValue) or not isinstance(target, DictValue):
        raise CannotCapture("unsupported-object", f"{other.describe()} is unpacked into a dict.")
    if i.opname == "DICT_MERGE" and set(other.items) & set(target.items):
        raise CannotCapture("operation-raises", "multiple values for a keyword argument")
    target.method(f.tx, "update", [other], {})


@handler("LIST_TO_TUPLE")
def _list_to_tuple(f: Frame, i: dis.Instruction) -> None:
    value = f.pop()
    assert isinstance(value, SequenceValue)
    f.push(SequenceValue(value.items, tuple))


@handler("CALL_INTRINSIC_1")
def _call_intrinsic(f: Frame, i: dis.Instruction) -> None:
    if i.argrepr == "INTRINSIC_UNARY_POSITIVE":
        _positive(f, i)
    elif i.argrepr == "INTRINSIC_LIST_TO_TUPLE":
        _list_to_tuple(f, i)
    else:
        raise CannotCapture("unsupported-instruction", i.argrepr)


@handler("UNPACK_SEQUENCE")
def _unpack_sequence(f: Frame, i: dis.Instruction) -> None:
    values = list(f.pop().iterate(f.tx))
    if len(values) != (i.arg or 0):
        raise CannotCapture("operation-raises", f"{len(values)} values to unpack, expected {i.arg}")
    f.stack.extend(reversed(values))


@handler("UNPACK_EX")
def _unpack_ex(f: Frame, i: dis.Instruction) -> None:
    before, after = (i.arg or 0) & 0xFF, (i.arg or 0) >> 8
    values = list(f.pop().iterate(f.tx))
    if len(values) < before + after:
        raise CannotCapture("operation-raises", f"{len(values)} values to unpack, expected {before + after} or more")
    middle = SequenceValue(values[before : len(values) - after], list)
    f.stack.extend(reversed([*values[:before], middle, *values[len(values) - after :]]))


# -- control ----------------------------------------------------------------------------------------------------------


@handler("GET_ITER")
def _get_iter(f: Frame, i: dis.Instruction) -> None:
    f.push(IteratorValue(f.pop().iterate(f.tx)))


@handler("FOR_ITER")
def _for_iter(f: Frame, i: dis.Instruction) -> None:
    iterator = f.stack[-1]
    assert isinstance(iterator, IteratorValue)
    value = next(iterator.values, None)
    if value is not None:
        f.push(value)
        return
    f.pop()
    f.jump(i)
    # 3.12 and later name END_FOR (3.13: and the POP_TOP after it) as target; they clean up what is gone already.
    if f.decoded.instructions[f.at].opname == "END_FOR":
        f.at += 1
        if _END_FOR_POPS:
            f.at += 1


_END_FOR_POPS = "CALL_KW" in dis.opmap  # 3.13 and later


@handler("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(f: Frame, i: dis.Instruction) -> None:
    f.jump(i)


@handler(
    "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE",
    "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE",
)  # fmt: skip
def _pop_jump(f: Frame, i: dis.Instruction) -> None:
    if f.pop().truth(f.tx) == i.opname.endswith("TRUE"):
        f.jump(i)


@handler(
    "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE",
    "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE",
)  # fmt: skip
def _pop_jump_none(f: Frame, i: dis.Instruction) -> None:
    if identical(f.tx, f.pop(), Constant(None)) != i.opname.endswith("NOT_NONE"):
        f.jump(i)


@handler("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(f: Frame, i: dis.Instruction) -> None:
    value = f.pop()
    if value.truth(f.tx) == (i.opname == "JUMP_IF_TRUE_OR_POP"):
        f.push(value)
        f.jump(i)


@handler("RAISE_VARARGS", "RERAISE", "PUSH_EXC_INFO", "LOAD_ASSERTION_ERROR")
def _raise(f: Frame, i: dis.Instruction) -> None:
    raise CannotCapture("raises", f"`{f.tx.current_text()}`")


@handler("BEFORE_WITH", "BEFORE_ASYNC_WITH")
def _with(f: Frame, i: dis.Instruction) -> None:
    raise CannotCapture("with-statement", f"`{f.tx.current_text()}`")


# -- functions --------------------------------------------------------------------------------------------------------


@handler("MAKE_FUNCTION")
def _make_function(f: Frame, i: dis.Instruction) -> None:
    code = constant_of(f.pop(), "code")
    flags = (i.arg or 0) if _MAKE_FUNCTION_FLAGS else 0
    closure = _closure(f.pop()) if flags & 8 else []
    if flags & 4:
        f.pop()  # annotations
    kwdefaults = f.pop() if flags & 2 else None
    defaults = f.pop() if flags & 1 else None
    f.push(
        FunctionValue(
            code, f.function.globals, f.function.home, closure,
            _defaults(defaults) if isinstance(defaults, SequenceValue) else (),
            _kwdefaults(kwdefaults) if isinstance(kwdefaults, DictValue) else None,
        )
    )  # fmt: skip


def _defaults(values: SequenceValue) -> list[Callable[[], Value]]:
    return [(lambda value: lambda: value)(item) for item in values.items]


def _kwdefaults(values: DictValue) -> dict[str, Callable[[], Value]]:
    return {name: (lambda value: lambda: value)(item) for name, item in values.items.items()}


_MAKE_FUNCTION_FLAGS = "SET_FUNCTION_ATTRIBUTE" not in dis.opmap  # before 3.13


def _closure(cells: Value) -> list[Cell]:
    assert isinstance(cells, SequenceValue)
    return [cell.cell for cell in cells.items if isinstance(cell, CellReference)]


@handler("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(f: Frame, i: dis.Instruction) -> None:
    function = f.pop()
    value = f.pop()
    assert isinstance(function, FunctionValue)
    if i.arg == 8:
        function.closure = tuple(_closure(value))
    elif i.arg == 1 and isinstance(value, SequenceValue):
        function.defaults = tuple(_defaults(value))
    elif i.arg == 2 and isinstance(value, DictValue):
        function.kwdefaults = _kwdefaults(value)
    f.push(function)


@handler("KW_NAMES")
def _kw_names(f: Frame, i: dis.Instruction) -> None:
    f.keyword_names = f.code.co_consts[i.arg or 0]


@handler("CALL")
def _call(f: Frame, i: dis.Instruction) -> None:
    names, f.keyword_names = f.keyword_names, ()
    _finish_call(f, i.arg or 0, names)


@handler("CALL_KW")
def _call_kw(f: Frame, i: dis.Instruction) -> None:
    names = constant_of(f.pop(), "keyword names")
    _finish_call(f, i.arg or 0, names)


def _finish_call(f: Frame, count: int, names: tuple[str, ...]) -> None:
    args = f.stack[len(f.stack) - count :]
    del f.stack[len(f.stack) - count :]
    second, first = f.pop(), f.pop()
    if isinstance(first, Null):
        function = second
    elif isinstance(second, Null):
        function = first
    else:  # a decorator or comprehension call: the slot holds the first argument
        function = first
        args = [second, *args]
    followed = function.function if type(function) is MethodValue else function
    if type(followed) is not FunctionValue:  # which reads its arguments where it uses them
        args = [settled(f.tx, arg) for arg in args]
    positional = len(args) - len(names)
    try:
        f.push(function.call(f.tx, args[:positional], dict(zip(names, args[positional:], strict=True))))
    except CannotCapture as stopped:
        opens_block = f.decoded.instructions[f.at].opname in ("BEFORE_WITH", "BEFORE_ASYNC_WITH")
        if opens_block and stopped.reason == "unknown-function" and f.tx.frames[-1] is f:
            raise CannotCapture("with-statement", f"`{f.tx.current_text()}`") from stopped
        raise


@handler("CALL_FUNCTION_EX")
def _call_function_ex(f: Frame, i: dis.Instruction) -> None:
    keywords = f.pop() if (i.arg or 0) & 1 else DictValue({})
    args = list(f.pop().iterate(f.tx))
    first, second = f.pop_many(2)
    function = second if isinstance(first, Null) else first
    if not isinstance(keywords, DictValue):
        raise CannotCapture("unsupported-object", f"{keywords.describe()} is unpacked into keyword arguments.")
    f.push(function.call(f.tx, args, keywords.items))


@handler("LOAD_SUPER_ATTR")
def _load_super_attr(f: Frame, i: dis.Instruction) -> None:
    raise CannotCapture("unsupported-instruction", "super()")


__all__ = ["Frame", "decode", "has_blocks"]
