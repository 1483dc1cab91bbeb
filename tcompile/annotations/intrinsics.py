"""Functions that users call inside compiled functions, as they behave in plain Python.

Input: a user's call.
Output: its plain result.
Why: importing tcompile must not load capture. ``capture.semantics.special`` defines the same calls in captured code.
"""

from __future__ import annotations

from typing import TypeVar

from tcompile.errors import InvalidType

T = TypeVar("T")


def is_compiling() -> bool:
    """Returns True inside compiled code, False in plain Python (also if a compiled function runs plainly)."""
    return False


def graph_break(msg: str = "") -> None:
    """Ends the graph here; in plain Python it does nothing. ``msg`` is shown in the report.

    Raises InvalidType if ``msg`` is not a string.
    """
    if not isinstance(msg, str):
        raise InvalidType(f"graph_break: msg must be str, got {type(msg).__name__} {msg!r}")


def cudagraph_mark_step_begin() -> None:
    """Does nothing; accepted for programs written for compilers whose CUDA graphs reuse the memory of results.

    tcompile's CUDA graphs never overwrite results: they belong to the caller.

    >>> cudagraph_mark_step_begin()
    """


def unroll(values: T) -> T:
    """Returns ``values`` unchanged. A compiled ``for`` over ``unroll(range(n))`` is unrolled, not a node of the graph.

    >>> list(unroll(range(3)))
    [0, 1, 2]
    """
    return values
