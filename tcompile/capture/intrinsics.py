"""Functions of tcompile that a user may call inside a compiled function: what they do in plain Python.

Enters: a user's call. Leaves: its plain result. ``special`` beside this file says what the same calls mean to capture;
they are apart so that importing tcompile does not load capture.
"""

from __future__ import annotations

from tcompile.errors import InvalidType


def is_compiling() -> bool:
    """True inside compiled code, False in plain Python (also where a compiled function runs plainly)."""
    return False


def graph_break(msg: str = "") -> None:
    """Ends the graph here. In plain Python it does nothing. ``msg`` is shown in the report.

    Raises InvalidType where ``msg`` is no string.
    """
    if not isinstance(msg, str):
        raise InvalidType(f"graph_break: msg must be str, got {type(msg).__name__} {msg!r}")
