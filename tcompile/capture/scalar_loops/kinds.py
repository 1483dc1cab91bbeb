"""Kinds of values in scalar code: which may be held, and which need the same words.

Input: kinds (``builder.V``).
Output: answers about them.
Why: exits, and iterations before which a loop may be left, hold variables of several kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcompile.graph.ops.scalar_loop import dtype_of


def is_kept(kind: Any) -> bool:
    """Whether a value of this kind consists of numbers, or is an object that the loop does not replace."""
    if isinstance(kind, str) or kind[0] in ("array", "list", "object", "text"):
        return True
    return kind[0] == "tuple" and all(map(is_kept, kind[1]))


def is_held(kind: Any) -> bool:
    """Whether a value of this kind can be made again of its numbers: one that is kept, an iterator, a character.

    >>> is_held(("counted", ("rows", 0))), is_held(("draw", 0))
    (True, False)
    """
    if is_kept(kind) or kind[0] in ("append", "letter", "letters", "listed", "null", "range", "rows", "zipped"):
        return True
    if kind[0] == "items":
        return all(map(is_held, kind[1]))
    return kind[0] == "counted" and is_held(kind[1])


def without_numbers(kind: Any) -> Any:
    """A kind in which all kinds of numbers are one.

    >>> without_numbers("int") == without_numbers("np.float64") != without_numbers(("object", 1))
    True
    """
    if isinstance(kind, str):
        return "number"
    return ("tuple", tuple(map(without_numbers, kind[1]))) if kind[0] == "tuple" else kind


def words_of_all(kinds: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The names of variables, and what words hold them."""
    return tuple((name, _words(kind)) for name, kind in kinds.items())


def _words(kind: Any) -> Any:
    """A kind without what the bits of its numbers do not tell.

    >>> _words("float") == _words("np.float64"), _words("float") == _words("int")
    (True, False)
    """
    if isinstance(kind, str):
        return dtype_of(kind).char
    return ("tuple", tuple(map(_words, kind[1]))) if kind[0] == "tuple" else kind


__all__ = ["is_held", "is_kept", "without_numbers", "words_of_all"]
