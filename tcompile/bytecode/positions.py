"""Reads and rewrites line tables, so that positions stay exact when instructions move.

Input: ``co_linetable`` and the new place of every unit.
Output: the table of the rewritten code.
Why: tracebacks and debuggers must show the original positions. Entries are copied; only lengths change, and a line
difference that was split off is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tcompile.bytecode.decode import NotResumable

_SHORT_END, _ONE_LINE, _NO_COLUMNS, _LONG, _NONE = 10, 10, 13, 14, 15


def _signed(value: int) -> bytes:
    value = value << 1 if value >= 0 else -value << 1 | 1
    out = bytearray()
    while value >= 64:
        out.append(value & 63 | 64)
        value >>= 6
    out.append(value)
    return bytes(out)


# code, line difference, the bytes after the line difference, first unit, unit after the last
ListSlice = tuple[int, int, bytes, int, int]


def parse(table: bytes) -> list[ListSlice]:
    """Returns the entries of a line table."""
    spans: list[ListSlice] = []
    at, unit, stop = 0, 0, len(table)
    while at < stop:
        head = table[at]
        code, units = head >> 3 & 15, (head & 7) + 1
        at += 1
        delta = 0
        start = at
        if code < _SHORT_END:
            at += 1
        elif code < _NO_COLUMNS:
            delta = code - _ONE_LINE
            at += 2
        elif code != _NONE:
            shift = value = 0
            while table[at] & 64:
                value |= (table[at] & 63) << shift
                shift += 6
                at += 1
            value |= (table[at] & 63) << shift
            at += 1
            delta = -(value >> 1) if value & 1 else value >> 1
            start = at
            if code == _LONG:
                for _ in range(3):
                    while table[at] & 64:
                        at += 1
                    at += 1
        spans.append((code, delta, table[start:at], unit, unit + units))
        unit += units
    return spans


def lines(spans: Iterable[ListSlice], first: int) -> tuple[list[int | None], int]:
    """Returns the line of every unit (None if it has none), and the line after the last entry."""
    found: list[int | None] = []
    line = first
    for code, delta, _, start, end in spans:
        line += delta
        found += [None if code == _NONE else line] * (end - start)
    return found, line


def move(spans: Iterable[ListSlice], place: Callable[[int], int]) -> list[bytes]:
    """Returns the entries for units moved from ``u`` to ``place(u)``."""
    parts: list[bytes] = []
    for code, delta, payload, start, end in spans:
        left = place(end) - place(start)
        if left <= 0 and delta:  # only the second entry of one long instruction may vanish
            raise NotResumable("a line table that divides an instruction")
        while left > 0:
            size = left if left < 8 else 8
            if code >= _NO_COLUMNS and code != _NONE:
                parts.append(bytes((128 | code << 3 | size - 1,)) + _signed(delta) + payload)
            else:
                parts.append(bytes((128 | code << 3 | size - 1,)) + payload)
                if _SHORT_END <= code < _NO_COLUMNS:
                    code = _ONE_LINE
            delta = 0
            left -= size
    return parts


def plain(line: int, before: int, units: int) -> bytes:
    """Returns entries for ``units`` units of one line without columns; ``before`` is the line so far."""
    head = _signed(line - before)
    parts = []
    while units > 0:
        size = units if units < 8 else 8
        parts.append(bytes((128 | _NO_COLUMNS << 3 | size - 1,)) + head)
        head = b"\0"
        units -= size
    return b"".join(parts)
