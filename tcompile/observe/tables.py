"""Tables as text.

Input: a head and rows of cells.
Output: lines with columns under their heads.
Why: all reports look alike.
"""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Formats columns two spaces apart: the first ``left`` are left-aligned, the others, which are numbers,
    right-aligned.

    >>> print(table(("phase", "ms"), [("capture", "1.5"), ("backend", "12.0")]))
    phase      ms
    capture   1.5
    backend  12.0
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        sized = enumerate(zip(row, widths, strict=True))
        cells = [cell.ljust(width) if n < left else cell.rjust(width) for n, (cell, width) in sized]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


__all__ = ["table"]
