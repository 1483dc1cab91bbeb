"""Rewrites a function's code with resume points, where regions take over from plain Python and return control.

Input: an `Analysis`.
Output: a `Rewritten`: one code object with all original instructions, exception handlers and positions, followed by
out-of-line code for the resume points.
Why: after a graph break the rest of the function runs in the same frame.

    resume point  before an instruction: `if resume point: goto stub`. An empty list is a closed resume point.
    stub        calls the region with cells, live locals and stack items. On None it jumps back after the resume point.
    tails       pop the stack items of the point that was left, one piece for each shape of stack.
    dispatch    unpacks the answer `(extras, *bits, values)`, and walks a binary tree of jumps by the bits.
    leaves      of the tree: restore locals and stack items of one target, and jump to it, after its resume point.
    extras      stores into locals that are dead at the target but may be inspected.

No block is opened or closed here: loops, handlers, ``with`` and generators continue in the same frame. A stub's call is
covered by the handler of its point. The point's stack stays in place until the call has returned; after that nothing
can raise.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection
from inspect import CO_OPTIMIZED
from typing import Any

from tcompile.bytecode import exceptions, positions
from tcompile.bytecode.analysis import CONDITIONAL, METHOD, PLAIN, SINKS, Analysis, Point
from tcompile.bytecode.assemble import (
    JUMP_BACK,
    JUMP_IF_NOT_NONE,
    JUMP_IF_TRUE,
    JUMP_ON,
    arrange,
    encode,
    op,
    units,
)
from tcompile.bytecode.decode import CACHES, EXTENDED_ARG, NAME, OP, NotResumable, is_backward, numbers
from tcompile.bytecode.dialect import D, same_as

_HIDDEN = ".dropped"  # a local that is never bound: NULLs are stored in it
_LIMIT = 65_000  # units; CPython keeps the jump distance of a loop over a generator in 16 bits
_LIMITED = numbers("FOR_ITER", "SEND")

_CELL_OPS = numbers(
    "MAKE_CELL", "LOAD_CLOSURE", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLASSDEREF",
    "LOAD_FROM_DICT_OR_DEREF", "LOAD_FAST", "LOAD_FAST_CHECK", "STORE_FAST", "LOAD_FAST_AND_CLEAR", "DELETE_FAST",
)  # fmt: skip
_PAIRS = numbers("LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST")
_CALL_ONE = op("SWAP", 2) + op("PUSH_NULL") + op("SWAP", 2) + op("CALL", 1)  # the function, with the item below it
_LOAD_CHECKED = "LOAD_FAST_CHECK" if "LOAD_FAST_CHECK" in OP else "LOAD_FAST"
_LOAD_CELL = "LOAD_CLOSURE" if "LOAD_CLOSURE" in OP else "LOAD_FAST"
_NOPS = numbers("NOP")
_RETURNS = numbers("RETURN_VALUE", "RETURN_CONST", "RERAISE")
_CALLS = numbers("CALL", "CALL_KW")
_MOVES = PLAIN | numbers("KW_NAMES", "PRECALL")
_METHODS = numbers("LOAD_METHOD", "LOAD_ATTR", "LOAD_SUPER_ATTR", "LOAD_SPECIAL")
_SPECIAL = OP.get("LOAD_SPECIAL", -1)
_OPENS = tuple(OP.get(name, -1) for name in ("SWAP", "SWAP", "LOAD_SPECIAL", "CALL"))  # after the load of `__exit__`


class _Marker:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


UNBOUND: Any = _Marker("UNBOUND")
KEEP: Any = _Marker("KEEP")


class ResumeSlot(list[Any]):
    """The list that code tests before an instruction: empty is closed, any item opens it.

    >>> slot = ResumeSlot()
    >>> hash(slot) == hash(slot), slot == ResumeSlot()
    (True, False)
    """

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


class Rewritten:
    """A rewritten code object and its resume points; make it with `build`.

    Attributes:
        analysis: of the original code.
        code: the rewritten code.
        resume_points: by original offset.
        targets: original offsets that a region may resume at.
        returned: the bits that lead to a return.
        every: whether it was built with resume points at every point.
    """

    def __init__(
        self,
        analysis: Analysis,
        code: types.CodeType,
        resume_points: dict[int, ResumeSlot],
        routes: dict[int, tuple[bool, ...]],
        returned: tuple[bool, ...],
        every: bool,
    ) -> None:
        self.analysis = analysis
        self.code = code
        self.resume_points = resume_points
        self.targets = frozenset(routes)
        self.returned = returned
        self.every = every
        self._routes = routes

    def route(self, offset: int) -> tuple[bool, ...]:
        """Returns the bits that lead to the instruction at ``offset``; KeyError unless it is one of ``targets``."""
        return self._routes[offset]

    @property
    def first(self) -> int | None:
        """The first resume point, if the code does nothing before it; else None.

        A function that begins with ``try:`` has none at its very start.
        """
        stream = self.analysis.stream
        i = stream.index[self.analysis.start]
        while stream.begin[i] * 2 not in self.resume_points:
            if stream.ops[i] not in _NOPS:
                return None
            i += 1
        return stream.begin[i] * 2

    def following(self, offset: int) -> tuple[int, ...]:
        """Returns the first resume points on each path after the instruction at ``offset``.

        Paths into handlers are excluded: see `Point.handlers`.
        """
        found: dict[int, None] = {}
        seen = {offset}
        waiting = list(self.analysis.successors(offset))
        while waiting:
            at = waiting.pop(0)
            if at in self.resume_points:
                found[at] = None
            elif at not in seen:
                seen.add(at)
                waiting.extend(self.analysis.successors(at))
        return tuple(found)


def build(
    analysis: Analysis,
    call: Callable[[int], Callable[..., Any]],
    *,
    every: bool = False,
    only: Collection[int] | None = None,
) -> Rewritten:
    """Returns the rewritten code of a function.

    Args:
        analysis: of its code.
        call: gives, for a resume point's original offset, the callable that its stub calls. The arguments are the
            cells, the live locals (UNBOUND if unbound) and the values on the stack, deepest first. It returns None to
            continue plainly, or ``(extras, *bits, values)``: ``bits`` are ``rewritten.route(target)`` or
            ``rewritten.returned``. ``values`` holds the target's live locals, then its stack values, deepest first, or
            the one value to return. ``extras`` is None, or has KEEP, UNBOUND or a value for each fast local that is
            not a cell.
        every: resume points at every point, not only where capture has a reason to start.
        only: the subset of resume points at these offsets; the code is faster. Targets and routes are the same as
            without it, for the same ``every``.

    What ``call`` returns lives as long as the code. Code objects take no part in garbage collection, so it should not
    keep the rewritten code alive itself.

    Raises:
        NotResumable: the rewritten code would not fit.
    """
    return _Builder(analysis, call, every, only).rewritten()


class _Builder:
    resumable: list[int]
    targets: list[int]

    def __init__(
        self, analysis: Analysis, call: Callable[[int], Callable[..., Any]], every: bool, only: Collection[int] | None
    ) -> None:
        self.analysis = analysis
        self.stream = analysis.stream
        self.call = call
        self.every = every
        self.choose(every)
        points = analysis.points
        begin = self.stream.begin
        if only is not None:
            self.resumable = [i for i in self.resumable if begin[i] * 2 in only]
        self.resume_frames = [points[begin[i] * 2] for i in self.resumable]
        self.target_points = [points[begin[i] * 2] for i in self.targets]
        self.deepest = 0  # the maximum of stack items in out-of-line code
        self.plain_loads: set[int] = set()  # method loads that must leave a known NULL
        for i in {*self.resumable, *self.targets}:
            stack = analysis.stacks[i]
            assert stack is not None
            for kind in stack:
                if kind >= METHOD:
                    self.plain_loads.add((kind - METHOD) >> 1)
        special = any(self.stream.ops[i] == _SPECIAL for i in self.plain_loads)
        hidden = special or (not D.pops_null and any(False in point.slots for point in self.resume_frames))
        self.shift = 1 if hidden else 0  # of the cells' slots, when a local comes before them
        self.hidden = analysis.locals
        self.place = {name: i + self.shift if i >= analysis.locals else i for i, name in enumerate(analysis.names)}

    # -- where --

    def choose(self, every: bool) -> None:
        """Chooses the instructions with resume points, and the possible targets."""
        analysis, stream = self.analysis, self.stream
        points, begin, ops = analysis.points, stream.begin, stream.ops
        # Outside functions a hidden local could be seen, but only a local can store a NULL.
        nulls = D.pops_null or bool(analysis.code.co_flags & CO_OPTIMIZED)

        def allowed(i: int) -> bool:
            return analysis.callable_at(i) and (nulls or False not in points[begin[i] * 2].slots)

        if every:
            self.targets = [i for i in range(stream.size) if begin[i] * 2 in points]
            self.resumable = [i for i in self.targets if allowed(i)]
            return
        zones = self.zones()
        resumable: set[int] = set()
        targets: set[int] = set()

        def can_resume(i: int) -> bool:
            return i < stream.size and begin[i] * 2 in points and i not in zones

        def resume_point(i: int) -> None:
            """Returns the first possible place of a resume point from the instruction on."""
            while not (can_resume(i) and allowed(i)):
                if i >= stream.size or ops[i] not in PLAIN or ops[i] in _RETURNS or stream.target[i] >= 0:
                    return  # after any other instruction that falls through there is a resume point anyway
                i += 1
            while ops[i] in SINKS and can_resume(i + 1) and allowed(i + 1):
                i += 1
            if ops[i] not in CONDITIONAL and ops[i] not in _RETURNS:
                resumable.add(i)

        resume_point(analysis.first)
        for i, number in enumerate(ops):
            if i < analysis.first or number in PLAIN or analysis.stacks[i] is None:
                continue
            if can_resume(i):
                targets.add(i)
            for way in analysis.next_of(i):
                resume_point(way)
        self.resumable = sorted(resumable)
        self.targets = sorted(resumable | targets)

    def zones(self) -> set[int]:
        """Returns instructions between a method's load and its call that only move values.

        A point there would cost every such call its fast path, and a region can end at the load. The start of a
        ``with`` block is one step, too.
        """
        ops, args, stacks = self.stream.ops, self.stream.args, self.analysis.stacks
        found: set[int] = set()
        for i, number in enumerate(ops):
            if number not in _METHODS or stacks[i] is None:
                continue
            if number == _SPECIAL and tuple(ops[i + 1 : i + 5]) == _OPENS:
                found.update(range(i + 1, i + 5))
            j = i + 1
            while j < len(ops) and ops[j] in _MOVES and self.stream.target[j] < 0:
                j += 1
            if j < len(ops) and ops[j] in _CALLS:
                stack = stacks[j]
                at = -2 - args[j] - (NAME[ops[j]] == "CALL_KW")
                if stack is not None and len(stack) >= -at and stack[at] >= METHOD and (stack[at] - METHOD) >> 1 == i:
                    found.update(range(i + 1, j + 1))
        return found

    # -- the pieces out of line --

    def loads(self, point: Point) -> tuple[bytes, list[tuple[int, int, int, int]]]:
        """Pushes cells and live locals. Also returns ranges that may find a local unbound, with handler and items
        pushed.
        """
        analysis = self.analysis
        bit = analysis.fast_bit
        index = self.stream.index[point.offset]
        mask = analysis.live[index]
        key = mask, mask & analysis.unbound[index], mask & analysis.bound[index]
        found = self.load_cache.get(key)
        if found is not None:
            return found
        parts = [op(_LOAD_CELL, self.place[name]) for name in analysis.cells]
        ranges: list[tuple[int, int, int, int]] = []
        at = sum(map(len, parts)) >> 1
        missing = op("LOAD_CONST", self.unbound_const)
        for pushed, name in enumerate(point.live, len(analysis.cells)):
            if name not in point.maybe:
                piece = op("LOAD_FAST", bit[name])
            elif not key[2] >> bit[name] & 1:
                piece = missing
            else:
                load = op(_LOAD_CHECKED, bit[name])
                otherwise = op("POP_TOP") + missing
                over = op(JUMP_ON, len(otherwise) >> 1)
                middle = at + (len(load) >> 1)
                ranges.append((at, middle, middle + (len(over) >> 1), pushed))
                piece = load + over + otherwise
            parts.append(piece)
            at += len(piece) >> 1
        found = self.load_cache[key] = b"".join(parts), ranges
        return found

    def copies(self, point: Point) -> bytes:
        """Pushes the stack's values again, above the callable and ``len(live)`` locals."""
        key = point.slots, len(point.live)
        found = self.copy_cache.get(key)
        if found is None:
            above = 2 + len(self.analysis.cells) + len(point.live)
            parts = []
            for j, value in enumerate(point.slots):
                if value:
                    parts.append(op("COPY", point.depth + above - j))
                    above += 1
            found = self.copy_cache[key] = b"".join(parts)
        return found

    def put(self, local: int) -> bytes:
        """Stores the top of the stack, or unbinds the local if it is UNBOUND."""
        found = self.put_cache.get(local)
        if found is None:
            store, unbind = op("STORE_FAST", local), op("POP_TOP") + op("PUSH_NULL") + op("STORE_FAST", local)
            store += op(JUMP_ON, len(unbind) >> 1)
            found = self.put_cache[local] = (
                op("COPY", 1) + op("LOAD_CONST", self.unbound_const) + op("IS_OP")
                + op(JUMP_IF_TRUE, len(store) >> 1) + store + unbind
            )  # fmt: skip
        return found

    def restores(self, point: Point) -> bytes:
        """Unpacks the tuple of values on the stack into the target's locals and stack."""
        index = self.stream.index[point.offset]
        mask = self.analysis.live[index]
        key = mask, mask & self.analysis.unbound[index], point.slots
        found = self.restore_cache.get(key)
        if found is None:
            bit = self.analysis.fast_bit
            values = sum(point.slots)
            count = len(point.live) + values
            parts = [op("UNPACK_SEQUENCE", count) if count else op("POP_TOP")]
            for name in point.live:
                parts.append(self.put(bit[name]) if name in point.maybe else op("STORE_FAST", bit[name]))
            nulls = point.depth - values
            parts.append(op("PUSH_NULL") * nulls)
            # Unpacking leaves the deepest item on top; NULLs have negative names.
            given, empty = iter(range(values)), iter(range(-nulls, 0))
            wanted = [next(given) if value else next(empty) for value in point.slots]
            parts.append(arrange([*range(values - 1, -1, -1), *range(-nulls, 0)], wanted))
            found = self.restore_cache[key] = b"".join(parts)
            self.deepest = max(self.deepest, count + nulls + 3)
        return found

    def out_of_line(self, width: int) -> None:
        """Returns everything after the original code, as one run of bytes with jumps to patch.

        A jump out of a piece has ``width`` bytes of distance. ``fixes`` holds where each stands (unit) and its target:
        an instruction's index (back, after its resume point), or a place in this code (on).
        """
        self.load_cache: dict[tuple[int, int, int], tuple[bytes, list[tuple[int, int, int, int]]]] = {}
        self.copy_cache: dict[tuple[tuple[bool, ...], int], bytes] = {}
        self.restore_cache: dict[tuple[int, int, tuple[bool, ...]], bytes] = {}
        self.put_cache: dict[int, bytes] = {}
        analysis, stream = self.analysis, self.stream
        index = stream.index
        parts: list[bytes] = []
        backs: list[tuple[int, int]] = []  # unit, instruction
        ons: list[tuple[int, str, object]] = []  # unit, opcode, label
        labels: dict[object, int] = {}
        ranges: list[exceptions.Entry] = []  # targets relative to this code; those of points get their handler later
        handlers: list[int] = []  # for each range, its exception table entry, or -1
        rows: list[tuple[int, int]] = []  # the line of each piece, and its units
        shared = analysis.code.co_firstlineno  # the line of code that belongs to no single instruction
        self.stubs: list[int] = []
        at = 0
        back_units, on_units, test_units = units(JUMP_BACK, width), units(JUMP_ON, width), units(JUMP_IF_TRUE, width)
        none_units = units(JUMP_IF_NOT_NONE, width)
        null, top, copy = op("PUSH_NULL"), op("POP_TOP"), op("COPY", 1)
        away = top if D.pops_null else op("STORE_FAST", self.hidden)
        cells = len(analysis.cells)

        def hole(size: int) -> None:
            nonlocal at
            parts.append(bytes(2 * size))
            at += size

        def emit(piece: bytes) -> None:
            nonlocal at
            parts.append(piece)
            at += len(piece) >> 1

        shapes: dict[tuple[bool, ...], None] = {}
        for number, point in enumerate(self.resume_frames):
            start = at
            self.stubs.append(at)
            function = op("LOAD_CONST", self.call_const + number)
            emit(function + null if D.null_above else null + function)
            loads, checks = self.loads(point)
            for low, high, handler, pushed in checks:
                ranges.append((at + low, at + high, at + handler, point.depth + 2 + pushed, 0))
                handlers.append(-1)
            emit(loads)
            emit(self.copies(point))
            count = cells + len(point.live) + sum(point.slots)
            self.deepest = max(self.deepest, point.depth + 2 + count, point.depth + 3)
            covered = at - 1  # 3.13 searches one unit before a call for the handler of a Python function's exception
            if D.splits_calls:
                emit(op("PRECALL", count))
            emit(op("CALL", count))
            i = index[point.offset]
            entry = analysis.cover[i]
            if entry >= 0:
                ranges.append((covered, at, 0, analysis.table[entry][3], analysis.table[entry][4]))
                handlers.append(entry)
            emit(copy)
            ons.append((at, JUMP_IF_NOT_NONE, point.slots))
            hole(none_units)
            emit(top)
            backs.append((at, i))
            hole(back_units)
            shapes[point.slots] = None
            rows.append((point.line, at - start))
        start = at
        for slots in shapes:
            labels[slots] = at
            for value in reversed(slots):
                emit(op("SWAP", 2))
                emit(top if value else away)
            ons.append((at, JUMP_ON, "dispatch"))
            hole(on_units)
        # The tree: every route has the same number of bits; the first is the most significant of a leaf's number.
        leaves = len(self.target_points) + 1
        bits = (leaves - 1).bit_length()
        labels["dispatch"] = at
        emit(op("UNPACK_SEQUENCE", bits + 2))
        emit(copy)
        ons.append((at, JUMP_IF_NOT_NONE, "extras"))
        hole(none_units)
        emit(top)
        labels["tree"] = tree = at
        rows.append((shared, at - start))
        self.deepest = max(self.deepest, bits + 3 + len(analysis.extras) + 3)

        waiting = [(0, bits)]
        while waiting:
            low, left = waiting.pop()
            labels["tree", low, left] = start = at
            while left:
                left -= 1
                if low + (1 << left) < leaves:
                    ons.append((at, JUMP_IF_TRUE, ("tree", low + (1 << left), left)))
                    hole(test_units)
                    waiting.append((low + (1 << left), left))
                else:
                    emit(top)  # no leaf on that side: the bit is False
            if at > start:
                rows.append((shared, at - start))
            start = at
            if low:
                point = self.target_points[low - 1]
                emit(self.restores(point))
                backs.append((at, index[point.offset]))
                hole(back_units)
                rows.append((point.line, at - start))
            else:
                emit(op("UNPACK_SEQUENCE", 1) + op("RETURN_VALUE"))
                rows.append((analysis.return_line, at - start))
        start = at
        labels["extras"] = at
        emit(op("UNPACK_SEQUENCE", len(analysis.extras)) if analysis.extras else top)
        for name in analysis.extras:
            put = self.put(analysis.fast_bit[name])
            put += op(JUMP_ON, 1)
            emit(copy + op("LOAD_CONST", self.keep_const) + op("IS_OP") + op(JUMP_IF_TRUE, len(put) >> 1) + put + top)
        back = (at, tree)
        hole(back_units)
        rows.append((shared, at - start))

        self.bits = bits
        self.outside = bytearray(b"".join(parts))
        self.outside_units = at
        self.ranges, self.range_handlers, self.rows, self.backs = ranges, handlers, rows, backs
        for unit, name, label in ons:
            self.patch(unit, name, labels[label] - unit - units(name, width), width)
        self.patch(back[0], JUMP_BACK, at - back[1], width)

    def patch(self, unit: int, name: str, distance: int, width: int) -> None:
        at = 2 * unit  # its caches are zero already
        for byte in range(width - 1, 0, -1):
            self.outside[at] = EXTENDED_ARG
            self.outside[at + 1] = distance >> 8 * byte & 255
            at += 2
        self.outside[at] = OP[name]
        self.outside[at + 1] = distance & 255

    # -- the original code with resume points --

    def replaced(self) -> dict[int, bytes]:
        """Returns instructions that are changed, jumps excluded."""
        stream, analysis = self.stream, self.analysis
        found: dict[int, bytes] = {}
        for i in self.plain_loads:
            name, arg = NAME[stream.ops[i]], stream.args[i]
            if name == "GET_ITER":
                stack = analysis.stacks[i]
                assert stack is not None
                found[i] = op("LOAD_CONST", self.iter_const) + _CALL_ONE + op("PUSH_NULL")
                self.deepest = max(self.deepest, len(stack) + 2)
            elif name == "LOAD_SPECIAL":
                found[i] = op(name, arg) + self.bound_method(i, len(op(name, arg)) >> 1)
            else:
                piece = op("LOAD_ATTR", arg) if name == "LOAD_METHOD" else op(name, arg & ~1)
                found[i] = piece + op("PUSH_NULL") + (b"" if D.null_above else op("SWAP", 2))
        if self.shift:
            first = analysis.locals
            for i, number in enumerate(stream.ops):
                arg = stream.args[i]
                if number in _CELL_OPS:
                    if arg >= first:
                        found[i] = encode(number, arg + 1, 1)
                elif number in _PAIRS:
                    high, low = arg >> 4, arg & 15
                    if high >= first or low >= first:
                        found[i] = self.pair(number, high, low)
        return found

    def bound_method(self, i: int, at: int) -> bytes:
        """Turns (method, self) into (bound method, NULL), and keeps (attribute, NULL); ``at`` is the distance from
        ``i``.

        Only a load of a local can test for NULL: it raises, and ``inner`` has the handler.
        """
        put, load = op("STORE_FAST", self.hidden), op("LOAD_FAST_CHECK", self.hidden)
        start = at + (len(put) >> 1)
        bind = (
            op("PUSH_NULL") + op("STORE_FAST", self.hidden) + op("LOAD_CONST", self.method_const) + op("SWAP", 3)
            + op("PUSH_NULL") + op("SWAP", 3) + op("CALL", 2) + op(JUMP_ON, 1)
        )  # fmt: skip
        stack = self.analysis.stacks[i]
        assert stack is not None
        stop = start + (len(load) >> 1)
        self.inner[i] = start, stop, stop + (len(bind) >> 1), len(stack)
        self.deepest = max(self.deepest, len(stack) + 3)
        return put + load + bind + op("POP_TOP") + op("PUSH_NULL")

    def pair(self, number: int, high: int, low: int) -> bytes:
        """Returns a paired instruction whose slots move; two instructions if a slot no longer fits."""
        first = self.analysis.locals
        high, low = high + (high >= first), low + (low >= first)
        if high < 16 and low < 16:
            return encode(number, high << 4 | low, 1)
        one, two = same_as(NAME[number]).removesuffix("_FAST").split("_FAST_")
        return op(f"{one}_FAST", high) + op(f"{two}_FAST", low)

    def inline(self, width: int) -> bytes:
        """Returns the original instructions, each after its resume point; sets ``resume_at`` and ``body``, their
        positions.
        """
        stream = self.stream
        size, begin, end, target, ops = stream.size, stream.begin, stream.end, stream.target, stream.ops
        resume_size = [0] * size
        tests = op("TO_BOOL") if D.tests_are_bools else b""
        resume_points: dict[int, bytes] = {}
        jump = units(JUMP_IF_TRUE, width)
        for number, i in enumerate(self.resumable):
            resume_points[i] = op("LOAD_CONST", self.resume_const + number) + tests
            resume_size[i] = (len(resume_points[i]) >> 1) + jump
        replaced = self.replaced()
        length = [stop - start for start, stop in zip(begin, end, strict=True)]
        for i, piece in replaced.items():
            length[i] = len(piece) >> 1
        jumps = [i for i in range(size) if target[i] >= 0]
        prefix = {i: length[i] - CACHES[ops[i]] for i in jumps}  # bytes of the argument
        distance: dict[int, int] = {}
        resume_at = self.resume_at = [0] * (size + 1)
        body = self.body = [0] * size
        again = True
        while again:
            again = False
            at = 0
            for i in range(size):
                resume_at[i] = at
                at += resume_size[i]
                body[i] = at
                at += length[i]
            resume_at[size] = at
            for i in jumps:
                gap = resume_at[target[i]] - body[i] - length[i]
                gap = distance[i] = -gap if is_backward(ops[i]) else gap
                while gap >> 8 * prefix[i]:
                    prefix[i] += 1
                    length[i] += 1
                    again = True
        if any(distance[i] > _LIMIT for i in jumps if ops[i] in _LIMITED):
            raise NotResumable("a loop that is too long")
        total = resume_at[size]
        raw = stream.raw
        parts: list[bytes] = []
        start = 0  # of runs of units that can be copied unchanged
        for i in sorted({*resume_points, *replaced, *jumps}):
            if i in resume_points:
                parts.append(raw[2 * start : 2 * begin[i]])
                start = begin[i]
                parts.append(resume_points[i])
                stub = total + self.stubs[self.resume_number[i]]
                parts.append(encode(OP[JUMP_IF_TRUE], stub - body[i], width))
            if target[i] >= 0:
                piece = encode(ops[i], distance[i], prefix[i])
            elif i in replaced:
                piece = replaced[i]
            else:
                continue
            parts.append(raw[2 * start : 2 * begin[i]])
            parts.append(piece)
            start = end[i]
        parts.append(raw[2 * start :])
        return b"".join(parts)

    def rewritten(self) -> Rewritten:
        analysis, stream = self.analysis, self.stream
        code = analysis.code
        offsets = [stream.begin[i] * 2 for i in self.resumable]
        resume_points = {offset: ResumeSlot() for offset in offsets}
        self.resume_number = {i: number for number, i in enumerate(self.resumable)}
        self.resume_const = len(code.co_consts)
        self.call_const = self.resume_const + len(offsets)
        self.unbound_const = self.call_const + len(offsets)
        self.keep_const = self.unbound_const + 1
        self.iter_const = self.keep_const + 1
        self.method_const = self.iter_const + 1
        # For each load with a handler of its own: its first unit, the unit after it, the handler, and the stack depth
        # there. Units are counted from the instruction's own.
        self.inner: dict[int, tuple[int, int, int, int]] = {}
        calls = (self.call(offset) for offset in offsets)
        consts = (*code.co_consts, *resume_points.values(), *calls, UNBOUND, KEEP, iter, types.MethodType)
        for width in (2, 3):  # 1 would suffice for the smallest functions only, and fail for all others
            self.out_of_line(width)
            inside = self.inline(width)
            total = len(inside) >> 1
            if total + self.outside_units < 1 << 8 * width:
                break
        for unit, i in self.backs:
            self.patch(unit, JUMP_BACK, total + unit + units(JUMP_BACK, width) - self.body[i], width)
        names = code.co_varnames + (_HIDDEN,) * self.shift
        changed = code.replace(
            co_code=inside + bytes(self.outside),
            co_consts=consts,
            co_varnames=names,
            co_nlocals=len(names),
            co_stacksize=max(code.co_stacksize, self.deepest),
            co_linetable=self.line_table(),
            co_exceptiontable=self.exception_table(total),
        )
        routes = {point.offset: self.route(number) for number, point in enumerate(self.target_points, 1)}
        return Rewritten(analysis, changed, resume_points, routes, self.route(0), self.every)

    def route(self, leaf: int) -> tuple[bool, ...]:
        return tuple(bool(leaf >> bit & 1) for bit in range(self.bits - 1, -1, -1))

    def line_table(self) -> bytes:
        analysis = self.analysis
        place = self.unit_places()
        parts = positions.move(analysis.spans, place.__getitem__)
        line = analysis.last_line
        for wanted, count in self.rows:
            parts.append(positions.plain(wanted, line, count))
            line = wanted
        return b"".join(parts)

    def unit_places(self) -> list[int]:
        """Returns the new position of each original unit; a resume point belongs to the instruction after it."""
        stream = self.stream
        places: list[int] = []
        for i in range(stream.size):
            start, stop = self.resume_at[i], self.resume_at[i + 1]
            gap = stream.end[i] - stream.begin[i]
            if gap == 1:
                places.append(start)
            else:
                places.append(start)
                first = self.body[i]
                places += [min(first + k, stop) for k in range(1, gap)]
        places.append(self.resume_at[stream.size])
        return places

    def exception_table(self, total: int) -> bytes:
        analysis = self.analysis
        at, index = self.resume_at, self.stream.index
        size = self.stream.size

        def moved(unit: int) -> int:
            return at[index.get(unit * 2, size)]

        entries = [(moved(a), moved(b), moved(target), depth, lasti) for a, b, target, depth, lasti in analysis.table]
        inside = entries
        for i, (low, high, handler, depth) in self.inner.items():
            body = self.body[i]
            inside = _cut_out(inside, (body + low, body + high, body + handler, depth, 0))
        outside: list[exceptions.Entry] = []
        for (start, end, target, depth, lasti), entry in zip(self.ranges, self.range_handlers, strict=True):
            goes = entries[entry][2] if entry >= 0 else total + target
            outside.append((total + start, total + end, goes, depth, lasti))
        return exceptions.write(inside + outside)


def _cut_out(entries: list[exceptions.Entry], inner: exceptions.Entry) -> list[exceptions.Entry]:
    """Returns the sorted entries of an exception table, with ``inner`` replacing those in its range.

    >>> _cut_out([(0, 9, 20, 1, 0)], (3, 4, 7, 2, 0))
    [(0, 3, 20, 1, 0), (3, 4, 7, 2, 0), (4, 9, 20, 1, 0)]
    """
    low, high = inner[:2]
    parts = [inner]
    for start, end, target, depth, lasti in entries:
        parts += [(start, min(end, low), target, depth, lasti), (max(start, high), end, target, depth, lasti)]
    return sorted(part for part in parts if part[0] < part[1])
