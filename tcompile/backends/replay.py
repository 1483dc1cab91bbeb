"""The exceptions by which compiled code gives a call back to plain Python.

Input: a reason. Output: ``Replay``, ``Interrupted`` and ``Paused``. Why: compiled code raises and warns nothing of its
own: whatever NumPy would report is reported by NumPy itself, from the user's own line, when the same stretch runs again
in plain Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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


class Paused(Replay):
    """Something that the code has read was changed by a signal handler or by another thread, in the middle of a loop.

    Attributes:
        loop: name of the loop's node, or "" where the loop was left in the middle of an iteration.
        iterations: number of iterations that are done, or the position of the loop's iterator for a scalar loop.
        results: what the node results in after that many iterations.
        variables: numbers that a scalar loop holds where its next iteration begins.
    """

    def __init__(
        self, loop: str = "", iterations: int = 0, results: Sequence[Any] = (), variables: Sequence[Any] = ()
    ) -> None:
        super().__init__("something that a loop reads has changed")
        self.loop, self.iterations, self.results, self.variables = loop, iterations, results, variables


setattr(Replay, MARK, False)  # it is ours, whatever runs in the frames above
