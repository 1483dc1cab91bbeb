"""The functions that one stretch of captured code goes through.

Input: code objects whose instructions capture follows, and the lines in their order.
Output: ``Followed``, one for each code object: the place of its source and, on request, the lines.
Why: debuggers stop at lines and coverage tools count them, also in functions that an entry has captured.
"""

from __future__ import annotations

import types
from dataclasses import field

from tcompile.records import dataclass

_MOST = 2000  # lines of one call that are noted in their order; later, only new lines are noted


@dataclass(eq=False)
class Followed:
    """A function's source, from its first to its last line, and for each followed call its lines."""

    file: str
    name: str
    first: int
    last: int
    calls: list[list[int]] = field(default_factory=list)

    @staticmethod
    def of(code: types.CodeType) -> Followed:
        """The record of a code object that has not been followed yet.

        >>> found = Followed.of(compile("a = 1\\nb = 2", "file.py", "exec"))
        >>> found.file, found.first, found.last
        ('file.py', 1, 2)
        """
        first = code.co_firstlineno
        last = max((line for _, _, line in code.co_lines() if line), default=first)
        return Followed(code.co_filename, code.co_name, first, last)


def note(lines: list[int], line: int) -> None:
    """Adds a line to those of a call, unless it is the last one again.

    >>> lines = [3]
    >>> note(lines, 3), note(lines, 4), lines
    (None, None, [3, 4])
    """
    if lines and lines[-1] == line:
        return
    if len(lines) < _MOST or line not in lines:
        lines.append(line)


__all__ = ["Followed", "note"]
