"""Reads and writes exception tables.

Input: ``co_exceptiontable``, or entries.
Output: entries, or a table. An entry holds a protected range, its handler, the stack depth there, and whether the
raising instruction's index is pushed.
Why: inserted code moves ranges and handlers. Numbers are big-endian in groups of six bits.
"""

from __future__ import annotations

from collections.abc import Iterable

# start, end, target: in units. depth: of the stack, in items. lasti: 1 if the raising instruction's index is pushed.
Entry = tuple[int, int, int, int, int]


def parse(table: bytes) -> list[Entry]:
    """Returns the entries of an exception table, in order.

    >>> parse(write([(2, 5, 300, 3, 1)]))
    [(2, 5, 300, 3, 1)]
    """
    found: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            found.append(value)
            value = 0
    return [
        (found[i], found[i] + found[i + 1], found[i + 2], found[i + 3] >> 1, found[i + 3] & 1)
        for i in range(0, len(found), 4)
    ]


def _number(value: int, first: int) -> bytes:
    if value < 64:
        return bytes((value | first,))
    groups = [value & 63]
    value >>= 6
    while value:
        groups.append(value & 63 | 64)
        value >>= 6
    groups[-1] |= first
    return bytes(reversed(groups))


def write(entries: Iterable[Entry]) -> bytes:
    """Returns an exception table of the entries, which must be ascending and disjoint."""
    parts: list[bytes] = []
    for start, end, target, depth, lasti in entries:
        if end > start:
            parts.append(_number(start, 128))
            parts.append(_number(end - start, 0))
            parts.append(_number(target, 0))
            parts.append(_number(depth << 1 | lasti, 0))
    return b"".join(parts)
