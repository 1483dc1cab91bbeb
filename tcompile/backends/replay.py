"""Exceptions by which compiled code returns a call to plain Python.

Input: a reason.
Output: ``Replay`` and ``Interrupted``.
Why: compiled code reports no errors or warnings of its own. Plain Python runs the same stretch again, and NumPy reports
them from the user's own line.
"""

from __future__ import annotations

from tcompile.callers import MARK


class Replay(Exception):
    """The results of this run are void: run the same code in plain Python, which will raise, warn, or just work."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Interrupted(Replay):
    """A signal handler has raised ``error`` in the middle of a loop: plain Python resumes there, and raises it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("a signal's handler has raised an exception")
        self.error = error


setattr(Replay, MARK, False)  # it is ours, whatever runs in the frames above
