"""Functions of tcompile that a user may call inside a compiled function: what they do in plain Python.

Input: a user's call. Output: its plain result. ``capture.semantics.special`` says what the same calls mean to capture;
they are apart so that importing tcompile does not load capture.
"""

from __future__ import annotations

from typing import TypeVar

from tcompile.errors import InvalidType

T = TypeVar("T")


def is_compiling() -> bool:
    """True inside compiled code, False in plain Python (also where a compiled function runs plainly)."""
    return False


def graph_break(msg: str = "") -> None:
    """Ends the graph here. In plain Python it does nothing. ``msg`` is shown in the report.

    Raises InvalidType where ``msg`` is no string.
    """
    if not isinstance(msg, str):
        raise InvalidType(f"graph_break: msg must be str, got {type(msg).__name__} {msg!r}")


def cudagraph_mark_step_begin() -> None:
    """Does nothing, for programs that say where a step begins, since other compilers' CUDA graphs write over what the
    step before has returned. What tcompile's give is the caller's, as without them: no call writes over it.

    >>> cudagraph_mark_step_begin()
    """


def unroll(values: T) -> T:
    """``values`` as they are. A compiled ``for`` over ``unroll(range(n))`` is unrolled and no node of the graph.

    >>> list(unroll(range(3)))
    [0, 1, 2]
    """
    return values
