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
    """True inside compiled code, False in plain Python (also where a compiled function runs plainly).

    Returns
    -------
    bool
        Whether this call is in compiled code.
    """
    return False


def graph_break(msg: str = "") -> None:
    """Ends the graph here. In plain Python it does nothing.

    Parameters
    ----------
    msg : str
        A text for the report.

    Raises
    ------
    InvalidType
        Where ``msg`` is no string.
    """
    if not isinstance(msg, str):
        raise InvalidType(f"graph_break: msg must be str, got {type(msg).__name__} {msg!r}")


def cudagraph_mark_step_begin() -> None:
    """Does nothing, for programs that say where a step begins.

    Other compilers' CUDA graphs write over the results of the step before. A result of tcompile's is the caller's: no
    call writes over it.

    Examples
    --------
    >>> cudagraph_mark_step_begin()
    """


def unroll(values: T) -> T:
    """Returns ``values`` unchanged. A compiled ``for`` over ``unroll(range(n))`` is unrolled, not a node of the graph.

    Parameters
    ----------
    values : iterable
        What the loop goes over.

    Returns
    -------
    iterable
        The same object.

    Examples
    --------
    >>> list(unroll(range(3)))
    [0, 1, 2]
    """
    return values
