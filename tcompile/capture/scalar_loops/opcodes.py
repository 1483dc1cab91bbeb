"""Handlers of bytecode instructions and of Python's built-in functions in scalar code.

Input: a ``Translator`` at an instruction, its stack, and for calls the arguments.
Output: operations in the open block, or ``Refused``.
Why: the tables beside ``translator``, which goes from block to block.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from tcompile.bytecode.dialect import D
from tcompile.bytecode.instructions import Instruction
from tcompile.capture.scalar_loops import slices
from tcompile.capture.scalar_loops.builder import LETTER, NUMBERS, Refused, V, is_none, is_number, numbers_of
from tcompile.capture.scalar_loops.rng import Drawing, below, draw, in_order
from tcompile.capture.scalar_loops.translator import CALLS, METHODS, NONE, NULL, STEPS, Room, Translator
from tcompile.capture.values.object import ObjectValue
from tcompile.capture.values.random_generator import is_drawing
from tcompile.graph.ops import python_random
from tcompile.graph.ops.draws import DRAWS, method_of
from tcompile.graph.ops.scalar_loop import (
    ARITHMETIC,
    COMPARISONS,
    dtype_of,
    is_numpy,
)

_MOST_ITEMS = 16  # items of a tuple in a loop, each unrolled

# -- calls -------------------------------------------------------------------------------------------------------------


def _chosen(sign: str) -> Callable[[Translator, list[V]], V]:
    def run(t: Translator, arguments: list[V]) -> V:
        if len(arguments) == 1 and arguments[0].kind[0] == "tuple":
            arguments = t.items(arguments[0])
        if len(arguments) < 2 or not all(is_number(a) for a in arguments):
            raise Refused("min or max of something else")
        return choose(t, arguments[0], arguments[1:])

    def choose(t: Translator, best: V, others: Sequence[V]) -> V:
        for position, other in enumerate(others, 1):
            better = t.truth(t.binary(sign, other, best))
            if other.kind != best.kind:  # from here on the type depends on the path
                for block, found in zip(t.split(better), (other, best), strict=True):
                    t.block = block
                    t.hand_back(choose(t, found, others[position:]))
                return best
            best = t.add("select", best.kind, better.register, other.register, best.register)
        return best

    return run


def _abs(t: Translator, arguments: list[V]) -> V:
    (value,) = numbers_of(arguments)
    if value.kind in ("np.bool",) or (is_numpy(value.kind) and dtype_of(value.kind).kind == "u"):
        return value
    return t.add("abs", "int" if value.kind == "bool" else value.kind, value.register)


def _converted(kind: str) -> Callable[[Translator, list[V]], V]:
    def run(t: Translator, arguments: list[V]) -> V:
        (value,) = numbers_of(arguments)
        return value if value.kind == kind else t.add(kind, kind, value.register, known=None)

    return run


def _length(t: Translator, arguments: list[V]) -> V:
    (value,) = arguments
    if value.kind[0] == "tuple":
        return t.constant(len(value.kind[1]))
    if value.kind[0] == "list":
        cells = t.around.cells(value.kind[1], None)
        if cells is not None:
            return t.add("size", "int", cells.indexed, 0)
        length = t.around.length(value.kind[1])
        return t.constant(length) if isinstance(length, int) else _count(t, length)
    if slices.is_vector(value):
        return slices.length(t, value)
    value = t.text(value)
    if value.kind[0] == "text":
        return t.add("size", "int", value.kind[1], 0)
    if value.kind[0] not in ("array", "row"):
        raise Refused("len of something else than an array")
    return t.add("size", "int", value.kind[1], len(value.registers))


def _ordinal(t: Translator, arguments: list[V]) -> V:
    (value,) = arguments
    if value.kind != LETTER:
        raise Refused("ord of something else than a character")
    return V("int", value.registers)


def _draw(t: Translator, method: V, arguments: list[V]) -> V:
    block = t.block
    number = draw(t, Drawing(*method.kind[1:]), arguments)
    if t.block is not block:
        t.hand_back(number)
    return number


METHODS["draw"] = _draw


def _choice(t: Translator, method: V, arguments: list[V]) -> V:
    """Emits ``random.choice``: a drawn item."""
    (items,) = arguments
    count = _length(t, arguments)
    _, state, family = method.kind
    return _item_of(t, items, below(t, Drawing(state, family, "below"), count))


METHODS["choice"] = _choice


def _appended(t: Translator, method: V, arguments: list[V]) -> V:
    """Emits ``list.append``: stores into the arrays that hold the list's items."""
    if len(arguments) != 1:
        raise Refused("list.append with other arguments")
    _append(t, method.kind[1], arguments[0])
    return t.constant(None)


def _count(t: Translator, room: Room) -> V:
    """How many items a list has."""
    return V("int", t.as_ints(t.add("load", "np.int64", room.count, t.constant(0).register).registers))


def _leave_if_full(t: Translator, found: int, operands: Sequence[V]) -> None:
    """Leaves before an instruction that takes ``operands`` where a list has no room for another item."""
    limited = t.around.space(t, found)
    if limited is not None:
        room, space = limited
        t.leave_unless(t.add("<", "bool", _count(t, room).register, space.register), operands)


def _append(t: Translator, found: int, item: V) -> None:
    room = t.around.room(t, found, item)
    first, place = t.constant(0).register, _count(t, room).registers
    for array, register in zip(room.arrays, item.registers, strict=True):
        t.block.lines.append(("store", -1, array, register, *place))
    more = t.add("+", "int", *place, t.constant(1).register)
    t.block.lines.append(("store", -1, room.count, more.register, first))


METHODS["append"] = _appended


def _method_of(t: Translator, generator: V, name: str) -> V:
    """Emits a draw of random numbers."""
    _, state, family, cls, identity = generator.kind
    if name == "choice" and family == python_random.NAME:
        return V(("choice", state, family))
    row = method_of(cls, name)
    if row is None:
        raise Refused(f"a draw by {name}")
    spare = t.around.spare(t.objects[identity]) if DRAWS[row].keeps else ()
    return V(("draw", state, family, row, spare))


CALLS |= {
    id(min): _chosen("<"), id(max): _chosen(">"), id(abs): _abs, id(len): _length, id(ord): _ordinal,
    id(int): _converted("int"), id(float): _converted("float"), id(bool): _converted("bool"),
    id(range): lambda t, items: t.range(items),
}  # fmt: skip

# -- instructions ------------------------------------------------------------------------------------------------------

Step: TypeAlias = Callable[[Translator, Instruction], None]


def _step(*names: str) -> Callable[[Step], Step]:
    def register(step: Step) -> Step:
        STEPS.update(dict.fromkeys(names, step))
        return step

    return register


@_step("NOP", "RESUME", "PRECALL", "EXTENDED_ARG", "CACHE", "COPY_FREE_VARS")
def _nothing(t: Translator, i: Instruction) -> None:
    pass


@_step("LOAD_FAST", "LOAD_FAST_CHECK")
def _load(t: Translator, i: Instruction) -> None:
    t.load(i.argval)


@_step("LOAD_FAST_LOAD_FAST")
def _load_two(t: Translator, i: Instruction) -> None:
    for name in i.argval:
        t.load(name)


@_step("STORE_FAST")
def _store(t: Translator, i: Instruction) -> None:
    (t.env[i.argval],) = t.pop(1)


@_step("STORE_FAST_STORE_FAST")
def _store_two(t: Translator, i: Instruction) -> None:
    for name in i.argval:
        (t.env[name],) = t.pop(1)


@_step("STORE_FAST_LOAD_FAST")
def _store_load(t: Translator, i: Instruction) -> None:
    (t.env[i.argval[0]],) = t.pop(1)
    t.load(i.argval[1])


@_step("LOAD_CONST")
def _const(t: Translator, i: Instruction) -> None:
    t.stack.append(_constant(t, i.argval))


def _constant(t: Translator, value: Any) -> V:
    """A constant; from CPython 3.14 on, slices with constant bounds are some."""
    if type(value) is slice:
        if value.step is not None:
            raise Refused("a slice with a step")
        return slices.key_of(t, [t.constant(value.start), t.constant(value.stop)])
    if type(value) is tuple:
        return t.pack([_constant(t, item) for item in value])
    return t.constant(value)


@_step("LOAD_GLOBAL", "LOAD_DEREF")
def _global(t: Translator, i: Instruction) -> None:
    value = t.load_global(t, i)
    null = i.opname == "LOAD_GLOBAL" and (i.arg or 0) & 1
    t.stack += ([value, NULL] if D.null_above else [NULL, value]) if null else [value]


@_step("PUSH_NULL")
def _push_null(t: Translator, i: Instruction) -> None:
    t.stack.append(NULL)


@_step("LOAD_ATTR", "LOAD_METHOD")
def _attribute(t: Translator, i: Instruction) -> None:
    (owner,) = t.pop(1)
    method = i.opname == "LOAD_METHOD" or (D.attributes_load_methods and (i.arg or 0) & 1)
    block = t.block
    if owner.kind[0] == "list" and i.argval == "append":
        _leave_if_full(t, owner.kind[1], (owner,))
    value = _attribute_of(t, owner, i.argval)
    t.stack += ([value, NULL] if D.null_above else [NULL, value]) if method else [value]
    if t.block is not block and not t.block.end:
        t.jump(t.at + 1)


def _attribute_of(t: Translator, owner: V, name: str) -> V:
    if owner.kind[0] in ("array", "row") and name in ("shape", "ndim", "size"):
        axes = range(len(owner.registers), len(t.around.array_type(owner.kind[1]).shape))
        if name == "ndim":
            return t.constant(len(axes))
        sizes = [t.add("size", "int", owner.kind[1], axis) for axis in axes]
        if name == "shape":
            return t.pack(sizes)
        found = sizes[0]
        for size in sizes[1:]:
            found = t.binary("*", found, size)
        return found
    if slices.is_vector(owner):
        if name not in ("size", "shape"):
            return slices.method_of(owner, name)
        size = slices.length(t, owner)
        return size if name == "size" else t.pack([size])
    if owner.kind[0] == "list" and name == "append":
        return V(("append", owner.kind[1]))
    if owner.kind[0] == "generator":
        return _method_of(t, owner, name)
    if owner.kind[0] == "object" and type(owner.known) is types.ModuleType:
        found = t.around.attribute(owner.known, name)
        return _method_of(t, t.around.generator(t, found.__self__), name) if is_drawing(found) else t.constant(found)
    if owner.kind[0] == "object" and isinstance(owner.known, ObjectValue):
        value, gets = t.around.member(t, owner.known, name)
        return t.call(value, [owner], (owner,)) if gets else value
    raise Refused(f"the attribute {name}")


@_step("STORE_ATTR")
def _store_attribute(t: Translator, i: Instruction) -> None:
    value, owner = t.pop(2)
    if owner.kind[0] != "object" or not isinstance(owner.known, ObjectValue):
        raise Refused(f"the attribute {i.argval} is set")
    t.around.set_member(t, owner.known, i.argval, value)


@_step("POP_TOP", "END_FOR")
def _pop_top(t: Translator, i: Instruction) -> None:
    t.pop(1)


@_step("POP_ITER")
def _pop_iterator(t: Translator, i: Instruction) -> None:
    t.pop(D.iterator_items)


@_step("COPY")
def _copy(t: Translator, i: Instruction) -> None:
    t.hold(i.arg or 0)
    t.stack.append(t.stack[-(i.arg or 0)])


@_step("SWAP")
def _swap(t: Translator, i: Instruction) -> None:
    t.hold(i.arg or 0)
    other = -(i.arg or 0)
    t.stack[-1], t.stack[other] = t.stack[other], t.stack[-1]


@_step("BUILD_TUPLE")
def _build_tuple(t: Translator, i: Instruction) -> None:
    t.stack.append(t.pack(t.pop(i.arg or 0)))


@_step("BUILD_LIST")
def _build_list(t: Translator, i: Instruction) -> None:
    """Handles a list that is stored in a row at once: it behaves like a tuple. As a key it does not."""
    following = [j.opname for j in t.instructions[t.at + 1 :]]
    first = next((name for name in following if not name.startswith("LOAD_")), "")
    if first != "STORE_SUBSCR" or following[0] == "STORE_SUBSCR":
        raise Refused("a list is made")
    t.stack.append(t.pack(t.pop(i.arg or 0)))


@_step("LIST_APPEND")
def _list_append(t: Translator, i: Instruction) -> None:
    """Handles a comprehension, whose list is below the stretch's entry stack depth."""
    (item,) = t.pop(1)
    found = t.load_below((i.arg or 0) - len(t.stack))
    block = t.block
    _leave_if_full(t, found.kind[1], (item,))
    _append(t, found.kind[1], item)
    if t.block is not block:
        t.jump(t.at + 1)


@_step("UNPACK_SEQUENCE")
def _unpack(t: Translator, i: Instruction) -> None:
    (value,) = t.pop(1)
    if value.kind[0] in ("array", "row") and t.around.array_type(value.kind[1]).shape[len(value.registers) :] == (
        i.arg,
    ):
        t.stack += reversed([t.subscript(value, t.constant(place)) for place in range(i.arg or 0)])
        return
    if value.kind[0] != "tuple" or len(value.kind[1]) != i.arg:
        raise Refused("something else than a tuple is unpacked")
    t.stack += reversed(t.items(value))


@_step("BINARY_OP")
def _binary(t: Translator, i: Instruction) -> None:
    left, right = t.pop(2)
    sign = i.argrepr.removesuffix("=")
    if sign == "@" and slices.is_vector(left) and slices.is_vector(right):
        t.stack.append(slices.product(t, left, right))
        return
    if sign not in ARITHMETIC:
        raise Refused(sign)
    t.stack.append(t.binary(sign, left, right))


@_step("COMPARE_OP")
def _compare(t: Translator, i: Instruction) -> None:
    left, right = t.pop(2)
    sign = i.argval.removeprefix("bool(").removesuffix(")")
    if sign not in COMPARISONS:
        raise Refused(sign)
    found = t.binary(sign, left, right)
    t.stack.append(t.truth(found) if i.argrepr.startswith("bool(") else found)


def _is_whole(value: V) -> bool:
    """Whether it is an int or a bool. A float may be a NaN, which ``in`` finds by identity."""
    return is_number(value) and dtype_of(value.kind).kind in "biu"


@_step("CONTAINS_OP")
def _contains(t: Translator, i: Instruction) -> None:
    """Emits whether a character is in a known text, or a number is an item of a tuple."""
    item, container = t.pop(2)
    if item.kind == LETTER and type(container.known) is str:
        among = [t.object(letter) for letter in dict.fromkeys(container.known)]
    elif _is_whole(item) and container.kind[0] == "tuple" and all(map(is_number, t.items(container))):
        among = t.items(container)
    else:
        raise Refused("`in` of something else than an int and a tuple of numbers")
    found, true = t.constant(False), t.constant(True)
    for other in among[:_MOST_ITEMS]:
        equal = t.truth(t.binary("==", item, other))
        found = t.add("select", "bool", equal.register, true.register, found.register)
    if len(among) > _MOST_ITEMS:
        raise Refused("`in` of many items")
    t.stack.append(t.add("not", "bool", found.register) if i.arg else found)


@_step("UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_POSITIVE")
def _unary(t: Translator, i: Instruction) -> None:
    (value,) = t.pop(1)
    if not is_number(value) or value.kind in ("np.bool", "bool"):
        raise Refused("a sign before something else than a number")
    name = i.opname.removeprefix("UNARY_").lower()
    if is_numpy(value.kind) and dtype_of(value.kind).kind == "u" and name == "negative":
        raise Refused("the negative of an unsigned number")
    if name == "invert" and value.kind != "int" and dtype_of(value.kind).kind not in "iu":
        raise Refused("~ of a float")
    if name == "negative" and type(value.known) is int:
        t.stack.append(t.constant(-value.known))
        return
    t.stack.append(t.add(name, value.kind, value.register))


@_step("UNARY_NOT")
def _not(t: Translator, i: Instruction) -> None:
    (value,) = t.pop(1)
    t.stack.append(t.add("not", "bool", t.truth(value).register))


@_step("TO_BOOL")
def _to_bool(t: Translator, i: Instruction) -> None:
    (value,) = t.pop(1)
    t.stack.append(t.truth(value))


@_step("BINARY_SUBSCR")
def _subscript(t: Translator, i: Instruction) -> None:
    value, key = t.pop(2)
    t.stack.append(_item_of(t, value, key))


def _item_of(t: Translator, value: V, key: V) -> V:
    if value.kind[0] in ("slice", "taken", "product"):
        return slices.item(t, value, key)
    if value.kind[0] not in ("array", "row"):
        return t.subscript(value, key)
    if key.kind[0] == "tuple" and len(key.kind[1]) > 1 and key.kind[1][-1][0] == "key":
        *before, key = t.items(key)
        value = t.subscript(value, t.pack(before))
    if key.kind[0] == "key":
        return slices.cut(t, value, key)
    return slices.taken(t, value, key) if slices.is_vector(key) else t.subscript(value, key)


@_step("BUILD_SLICE")
def _build_slice(t: Translator, i: Instruction) -> None:
    if i.arg != 2:
        raise Refused("a slice with a step")
    t.stack.append(slices.key_of(t, t.pop(2)))


@_step("BINARY_SLICE")
def _binary_slice(t: Translator, i: Instruction) -> None:
    value, *bounds = t.pop(3)
    t.stack.append(_item_of(t, value, slices.key_of(t, bounds)))


@_step("STORE_SUBSCR")
def _store_subscript(t: Translator, i: Instruction) -> None:
    value, target, key = t.pop(3)
    if target.kind[0] == "list":
        _store_in_list(t, target.kind[1], key, value)
        return
    if target.kind[0] not in ("array", "row"):
        raise Refused("an item of something else than an array is stored")
    array = target.kind[1]
    found = t.indices(array, key, target.registers)
    type_ = t.around.array_type(array)
    if value.kind[0] == "tuple" and type_.shape[len(found) :] == (len(t.items(value)),):
        given = [(item, (*found, t.constant(place).register)) for place, item in enumerate(t.items(value))]
    elif len(found) == len(type_.shape):
        given = [(value, found)]
    else:
        raise Refused("a part of an array is stored")
    for item, places in given:  # NumPy also stores a tuple's items one by one
        if not is_number(item):
            raise Refused("something else than a number is stored")
        t.accesses += 1
        t.block.lines.append(("store", -1, array, item.register, *places))


def _store_in_list(t: Translator, number: int, key: V, value: V) -> None:
    kind = NONE if is_none(value) else value.kind
    cells = t.around.cells(number, kind) if isinstance(kind, str) else None
    if cells is None:
        raise Refused("an item of a list is replaced by something else than a number")
    t.accesses += 1
    t.store_cell(cells, t.indices(cells.indexed, key), value)


def _iterator(t: Translator, value: V) -> V:
    """``iter(value)``."""
    items = t.text(value)
    kind = items.kind
    if kind[0] in ("array", "text") and (kind[0] == "text" or len(t.around.array_type(kind[1]).shape) == 1):
        first, stop = t.constant(0), t.add("size", "int", kind[1], 0)
        return V(("rows" if kind[0] == "array" else "letters", kind[1]), (first.register, stop.register))
    if kind[0] == "slice" and not kind[2]:
        return V(("rows", kind[1]), items.registers)
    if kind[0] == "tuple" and len(kind[1]) <= _MOST_ITEMS:
        return V(("items", kind[1], 0), items.registers)
    if kind[0] == "list":
        cells = t.around.cells(kind[1], None)
        if cells is None or len(cells.kinds) > 1:
            raise Refused("a loop over a list of few items, or of others than numbers of one kind")
        return V(("listed", kind[1]), (t.constant(0).register, t.add("size", "int", cells.indexed, 0).register))
    if kind[0] not in ("range", "counted", "zipped"):
        raise Refused("a loop over something else than a range, a text, or the elements of an array")
    return items


def _zipped(t: Translator, arguments: list[V]) -> V:
    """``zip`` of ranges, arrays, texts and lists, with one position for all."""
    if t.instructions[t.at + 1].opname != "GET_ITER" and not any(v.known is enumerate for v in t.stack[-2:]):
        raise Refused("an iterator that is kept")
    kinds, starts, shortest = [], [], None
    for column in arguments:
        items = _iterator(t, column)
        if items.kind[0] not in ("rows", "letters", "listed") and items.kind != ("range", 1):
            raise Refused("zip of something else")
        kinds.append(items.kind)
        first, count = (V("int", (register,)) for register in items.registers)
        if items.kind[0] == "range":
            starts.append(first.register)
            count = t.binary("-", count, first)
        if shortest is not None:
            less = t.binary("<", count, shortest)
            count = t.add("select", "int", less.register, count.register, shortest.register)
        shortest = count
    if shortest is None:
        raise Refused("zip of nothing")
    return V(("zipped", tuple(kinds)), (t.constant(0).register, shortest.register, *starts))


def _counted(t: Translator, arguments: list[V]) -> V:
    """``enumerate`` of a range, a text, or an array."""
    if t.instructions[t.at + 1].opname != "GET_ITER":
        raise Refused("an iterator that is kept")
    items = _iterator(t, arguments[0])
    start = arguments[1] if len(arguments) == 2 else t.constant(0)
    if len(arguments) > 2 or start.kind != "int" or items.kind[0] in ("items", "counted"):
        raise Refused("enumerate of something else")
    return V(("counted", items.kind), (*items.registers, start.register))


CALLS |= {id(enumerate): _counted, id(zip): _zipped}


def _item_at(t: Translator, kind: Any, at: V, starts: Iterator[int]) -> V:
    """The item of an iterator at a position; ``starts`` are the first numbers of ranges."""
    if kind[0] == "zipped":
        return t.pack([_item_at(t, column, at, starts) for column in kind[1]])
    if kind[0] == "range":
        return t.binary("+", V("int", (next(starts),)), at)
    if kind[0] == "listed":
        return t.subscript(V(("list", kind[1])), at)
    return t.subscript(V(({"rows": "array", "letters": "text"}[kind[0]], kind[1])), at)


@_step("GET_ITER")
def _get_iter(t: Translator, i: Instruction) -> None:
    (value,) = t.pop(1)
    t.stack += [_iterator(t, value), NULL][: D.iterator_items]


@_step("FOR_ITER")
def _for_iter(t: Translator, i: Instruction) -> None:
    items, *empty = t.pop(D.iterator_items)
    if items.kind[0] == "items":  # the next item is part of the kind, so each iteration is a block of its own
        _, kinds, place = items.kind
        if place == len(kinds):
            t.jump(t.found.goes[t.at])
            return
        following, given = V(("items", kinds, place + 1), items.registers), V(("tuple", kinds), items.registers)
        t.stack += [following, *empty, t.items(given)[place]]
        t.jump(t.at + 1)
        return
    number = V("int", items.registers[-1:]) if items.kind[0] == "counted" else None
    inner = items if number is None else V(items.kind[1], items.registers[:-1])
    if inner.kind[0] not in ("range", "rows", "letters", "listed", "zipped"):
        raise Refused("a loop over something else than a range, a text, or the elements of an array")
    known = inner.kind[1] if inner.kind[0] == "range" else 1
    at, stop = (V("int", (r,)) for r in inner.registers[:2])
    step = V("int", inner.registers[2:]) if known is None else t.constant(known)
    more = t.add("more", "bool", at.register, stop.register, step.register)
    target = t.found.goes[t.at]
    done = t.goto(target, t.stack, t.env)
    body = t.new_block((-2, (), ()))
    t.block.end = ("branch", more.register, body.number, (), *done)
    t.block = body
    following = t.add("step", "int", at.register, step.register)
    item = at if inner.kind[0] == "range" else _item_at(t, inner.kind, at, iter(inner.registers[2:]))
    counts: tuple[int, ...] = ()
    if number is not None:
        item, counts = t.pack([number, item]), t.binary("+", number, t.constant(1)).registers
    t.stack += [V(items.kind, (following.register, *inner.registers[1:], *counts)), *empty, item]
    t.jump(t.at + 1)


@_step("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(t: Translator, i: Instruction) -> None:
    t.jump(t.found.goes[t.at], "jump" if i.opname == "JUMP_FORWARD" else "back")


@_step(
    "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE",
    "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE",
)  # fmt: skip
def _pop_jump(t: Translator, i: Instruction) -> None:
    (value,) = t.pop(1)
    value = t.truth(value) if is_none(value) else value
    ways = t.found.goes[t.at], t.at + 1
    if type(value.known) in NUMBERS and is_number(value):
        t.jump(ways[bool(value.known) != i.opname.endswith("TRUE")])
        return
    t.branch(t.truth(value), *(ways if i.opname.endswith("TRUE") else reversed(ways)))


@_step("IS_OP")
def _is(t: Translator, i: Instruction) -> None:
    left, right = t.pop(2)
    if not is_none(left) and not is_none(right):
        raise Refused("`is` of something else than None")
    t.stack.append(t.constant((is_none(left) and is_none(right)) != bool(i.arg)))


@_step(
    "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE",
    "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE",
)  # fmt: skip
def _pop_jump_none(t: Translator, i: Instruction) -> None:
    (value,) = t.pop(1)
    t.jump(t.found.goes[t.at] if is_none(value) != i.opname.endswith("NOT_NONE") else t.at + 1)


@_step("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(t: Translator, i: Instruction) -> None:
    t.hold(1)
    value = t.stack[-1]
    condition = t.truth(value)
    jumps = t.goto(t.found.goes[t.at], t.stack, t.env)
    t.pop(1)
    goes_on = t.goto(t.at + 1, t.stack, t.env)
    ways = (*jumps, *goes_on) if i.opname == "JUMP_IF_TRUE_OR_POP" else (*goes_on, *jumps)
    t.block.end = ("branch", condition.register, *ways)


@_step("RETURN_VALUE", "RETURN_CONST")
def _return(t: Translator, i: Instruction) -> None:
    (value,) = t.pop(1) if i.opname == "RETURN_VALUE" else [t.constant(i.argval)]
    t.leave(value)


@_step("KW_NAMES")
def _keywords(t: Translator, i: Instruction) -> None:
    t.keywords = t.found.code.co_consts[i.arg or 0]


@_step("CALL_KW")
def _call_with_keywords(t: Translator, i: Instruction) -> None:
    (names,) = t.pop(1)
    t.keywords = tuple(name.known for name in t.items(names))
    _call(t, i)


@_step("CALL")
def _call(t: Translator, i: Instruction) -> None:
    arguments = t.pop(i.arg or 0)
    names, t.keywords = t.keywords, ()
    one, two = t.pop(2)
    operands = (one, two, *arguments)
    if one.kind == NULL.kind:
        function = two
    elif two.kind == NULL.kind:
        function = one
    else:
        raise Refused("a method is called")
    if function.kind[0] == "drawing":
        _, generator, name = function.kind
        function = _method_of(t, V(generator), name)
    if function.kind[0] == "draw":
        row, count = DRAWS[function.kind[3]], len(arguments) - len(names)
        arguments = in_order(row, arguments[:count], dict(zip(names, arguments[count:], strict=True)), t.constant)
    elif names:
        raise Refused("a call with keywords")
    t.stack.append(t.call(function, arguments, operands))


@_step("CALL_INTRINSIC_1")
def _intrinsic(t: Translator, i: Instruction) -> None:
    t.hold(1)
    if i.argrepr != "INTRINSIC_UNARY_POSITIVE" or not is_number(t.stack[-1]) or t.stack[-1].kind in ("bool", "np.bool"):
        raise Refused(i.argrepr)


__all__: list[str] = []  # what others need is in the tables of the translator
