"""Counts the captures of a test module.

Input: the compiler's events.
Output: numbers of compiles and graph breaks, and of two faults: internal errors, and assertions that failed in capture
but passed in plain Python.
Why: a test that passes may still have hidden a fault.
"""

from __future__ import annotations

import collections
import unittest
from typing import Any


class Counting:
    """Counts what capture made of the calls, from the compiler's own events.

    ``assertions`` says that a failing one is told: not where tests wait for errors that arise when a graph is run.
    """

    def __init__(self, assertions: bool = True) -> None:
        self.assertions = assertions
        self.compiles = self.captured = 0
        self.breaks: collections.Counter[str] = collections.Counter()
        self.bugs: list[str] = []

    def __call__(self, event: Any) -> None:
        kind = type(event).__name__
        if kind == "CompileFinished":
            self.compiles += 1
            self.captured += event.outcome == "compiled"
        elif kind == "GraphBroke":
            self.breaks[event.reason] += 1
            if event.reason == "internal-error":
                self.bugs.append(f"{event.function}: {event.explanation}")
            failing = next((line for line in event.stack if line.file == unittest.case.__file__), None)
            raises = self.assertions and event.reason == "raises" and event.where.file == unittest.case.__file__
            if raises and failing is not None and event.where.function in ("fail", "_raiseFailure", "_baseAssertEqual"):
                # Capture followed an assertion and saw it fail. Plain Python then ran the test, so the outcome is right
                # either way; but what capture computed was not.
                line = event.stack[event.stack.index(failing) - 1]
                self.bugs.append(f"{event.function}: assertion fails under capture: line {line.line}: {line.text}")
