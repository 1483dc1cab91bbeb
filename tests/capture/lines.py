"""The base class of generators of random programs.

Input: a source of random choices.
Output: indented lines of source.
Why: all generators build text in the same way.
"""

from __future__ import annotations

from random import Random


class Lines:
    """The lines of a program, the choices that it comes from, and the variables that count."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.counters: list[str] = []
        self.depth = 1

    def add(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def pick(self, *options):
        return self.random.choice(options)
