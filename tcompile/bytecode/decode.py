"""Decodes a code object into flat lists: opcodes, arguments, positions, jump targets.

Input: a ``types.CodeType``.
Output: a `Stream`.
Why: analysing and rewriting a function must take about a microsecond per instruction. So an instruction is an index
into parallel lists, not an object.

A *unit* is one 16-bit word of bytecode. An instruction here is its EXTENDED_ARG prefixes, its own unit and its inline
caches together; its offset is that of its first unit.
"""

from __future__ import annotations

import dis
import opcode
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tcompile.bytecode.dialect import same_as

OP: dict[str, int] = {name: number for name, number in opcode.opmap.items() if number < 256}
NAME: list[str] = [opcode.opname[number] for number in range(256)]
EXTENDED_ARG = OP["EXTENDED_ARG"]


class NotResumable(Exception):
    """The code cannot be given resume points; the text says why."""


def _caches() -> list[int]:
    table: Any = opcode._inline_cache_entries  # type: ignore[attr-defined]
    if isinstance(table, Mapping):  # by name from 3.13 on
        return [table.get(name, 0) for name in NAME]
    return [table[number] if number < len(table) else 0 for number in range(256)]


CACHES: list[int] = _caches()
_NAMES_A_PLACE = frozenset({"END_ASYNC_FOR"})  # the specialised forms that only monitoring tools cause
_RELATIVE = frozenset(op for op in dis.hasjrel if op < 256)
_BACKWARD = frozenset(op for op in _RELATIVE if "BACKWARD" in NAME[op] or NAME[op] in _NAMES_A_PLACE)
_FORWARD = _RELATIVE - _BACKWARD
JUMPS = frozenset(op for op in _RELATIVE if NAME[op] not in _NAMES_A_PLACE)


def numbers(*names: str) -> frozenset[int]:
    """Returns the opcodes of this Python with the meaning of one of these names."""
    return frozenset(number for name, number in OP.items() if same_as(name) in names)


class Stream:
    """The instructions of a code object, by index.

    Attributes:
        ops, args: opcode and full argument.
        begin, end: first unit, and the unit after the last cache.
        target: index of the instruction at a relative jump's target; -1 if there is none.
        index: instruction by the byte offset of its first unit.
    """

    __slots__ = ("args", "begin", "end", "index", "ops", "raw", "size", "target")

    def __init__(self, code: types.CodeType) -> None:
        raw = self.raw = code.co_code
        ops: list[int] = []
        args: list[int] = []
        begin: list[int] = []
        end: list[int] = []
        at, stop = 0, len(raw)
        while at < stop:
            begin.append(at >> 1)
            op, arg = raw[at], raw[at + 1]
            while op == EXTENDED_ARG:
                at += 2
                if at == stop:
                    raise NotResumable("the code ends with the prefix of an instruction")
                op, arg = raw[at], arg << 8 | raw[at + 1]
            at += 2 + 2 * CACHES[op]
            ops.append(op)
            args.append(arg)
            end.append(at >> 1)
        self.ops, self.args, self.begin, self.end = ops, args, begin, end
        self.size = len(ops)
        self.index = {unit * 2: i for i, unit in enumerate(begin)}
        self.target = [-1] * len(ops)
        for i, op in enumerate(ops):
            if op in _FORWARD:
                self.target[i] = self.at(end[i] + args[i])
            elif op in _BACKWARD:
                self.target[i] = self.at(end[i] - args[i])

    def at(self, unit: int) -> int:
        """Returns the index of the instruction that starts at ``unit``. Raises NotResumable."""
        found = self.index.get(unit * 2)
        if found is None:
            raise NotResumable(f"a jump into an instruction, at {unit * 2}")
        return found


_RESUME, _RETURN_GENERATOR = OP["RESUME"], OP["RETURN_GENERATOR"]


def end_of_prologue(ops: Sequence[int]) -> int:
    """Returns the position of the RESUME at which a function's body begins: before it, cells and generators are made.

    >>> end_of_prologue([OP["RETURN_GENERATOR"], OP["POP_TOP"], OP["RESUME"], OP["LOAD_CONST"]])
    2
    """
    start = ops.index(_RETURN_GENERATOR) if _RETURN_GENERATOR in ops else 0
    try:
        return ops.index(_RESUME, start)
    except ValueError:
        raise NotResumable("no prologue") from None


def is_backward(op: int) -> bool:
    """Whether the opcode's argument is a backward distance."""
    return op in _BACKWARD
