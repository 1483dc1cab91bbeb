"""The exceptions by which compiled code gives a call back to plain Python.

Input: a reason. Output: ``Replay`` and ``Interrupted``. Why: compiled code raises and warns nothing of its
own: whatever NumPy would report is reported by NumPy itself, from the user's own line, when the same stretch runs again
in plain Python.
"""

from __future__ import annotations

from tcompile.callers import MARK


class Replay(Exception):
    """The results of this run are void: run the same code in plain Python, which will raise, warn, or just work."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Interrupted(Replay):
    """A signal's handler has raised ``error`` in the middle of a loop: plain Python goes there, and raises it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__("a signal's handler has raised an exception")
        self.error = error


setattr(Replay, MARK, False)  # it is ours, whatever runs in the frames above
