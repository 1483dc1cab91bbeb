"""Functions of tcompile that a user may call inside a compiled function: what they do in plain Python.

Enters: a user's call. Leaves: its plain result. ``special`` beside this file says what the same calls mean to capture;
they are apart so that importing tcompile does not load capture.
"""

from __future__ import annotations


def is_compiling() -> bool:
    """True inside compiled code, False in plain Python (also where a compiled function runs plainly)."""
    return False


def graph_break(reason: str = "") -> None:
    """Ends the graph here. In plain Python it does nothing. ``reason`` is shown in the report."""
