"""The exception by which compiled code gives a call back to plain Python.

Enters: nothing. Leaves: ``Replay``. Exists because compiled code raises and warns nothing of its own:
whatever NumPy would report is reported by NumPy itself, from the user's own line, when the same stretch runs
again in plain Python.
"""

from __future__ import annotations

import contextlib

_MARK = "_tcompile_of_a_signal"


def mark(error: BaseException) -> BaseException:
    """Says of an exception that a signal's handler has raised it: it is the caller's, and no reason to run again."""
    with contextlib.suppress(Exception):
        setattr(error, _MARK, True)
    return error


def raise_if_marked(error: BaseException) -> None:
    """Raises what a signal's handler has raised while machine code ran."""
    if getattr(error, _MARK, False):
        raise error


class Replay(Exception):
    """The results of this run are void: run the same code in plain Python, which will raise, warn, or just work."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
