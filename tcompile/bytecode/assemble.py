"""Assembles bytecode: single instructions with their prefixes and caches, and stack permutations.

Input: an opcode's name and an argument.
Output: bytes.
Why: jumps between pieces have a fixed width, so the size of a piece is known before its position.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tcompile.bytecode.decode import CACHES, EXTENDED_ARG, OP
from tcompile.bytecode.dialect import D

JUMP_IF_TRUE, JUMP_IF_NOT_NONE = D.jump_if_true, D.jump_if_not_none
JUMP_BACK = "JUMP_BACKWARD_NO_INTERRUPT"  # checks for no pending signal, so it cannot raise
JUMP_ON = "JUMP_FORWARD"


@functools.lru_cache(maxsize=4096)
def op(name: str, arg: int = 0) -> bytes:
    """Returns one instruction.

    >>> list(op("COPY", 1)) == [OP["COPY"], 1]
    True
    """
    return encode(OP[name], arg, 1)


def encode(number: int, arg: int, width: int) -> bytes:
    """Returns one instruction whose argument takes at least ``width`` bytes."""
    out = bytearray()
    while width < 4 and arg >> 8 * width:
        width += 1
    for byte in range(width - 1, 0, -1):
        out += bytes((EXTENDED_ARG, arg >> 8 * byte & 255))
    out += bytes((number, arg & 255))
    return bytes(out) + bytes(2 * CACHES[number])


def units(name: str, width: int) -> int:
    """Returns the units of an instruction whose argument takes ``width`` bytes."""
    return width + CACHES[OP[name]]


def arrange(now: Sequence[int], wanted: Sequence[int]) -> bytes:
    """Returns SWAPs that reorder the top of the stack from ``now`` (deepest first) to ``wanted``.

    >>> [byte for byte in arrange([1, 2, 3], [1, 2, 3])]
    []
    """
    stack = list(now)
    size = len(stack)
    parts: list[bytes] = []

    def swap(place: int) -> None:
        parts.append(op("SWAP", size - place))
        stack[-1], stack[place] = stack[place], stack[-1]

    while True:
        if stack[-1:] != list(wanted[-1:]):
            swap(wanted.index(stack[-1]))
            continue
        wrong = next((place for place in range(size - 1) if stack[place] != wanted[place]), None)
        if wrong is None:
            return b"".join(parts)
        swap(wrong)
