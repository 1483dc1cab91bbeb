"""Functions whose resume points are all open, with regions that only pass the frame through the protocol.

Input: code objects.
Output: rewritten code objects.
Why: rewriting must be invisible, without capture.
"""

from __future__ import annotations

import inspect
import random
import types

from tcompile.bytecode.analysis import analyse
from tcompile.bytecode.decode import NotResumable
from tcompile.bytecode.rewritten import KEEP, UNBOUND, build

# A region's answer: continue; continue here with the given values; one of these; continue here with all other locals
# unbound.
MODES = ("on", "same", "mixed", "forget")


class Passing:
    """Rewrites code objects, nested ones too, with open resume points."""

    def __init__(self, mode, every, strict=True, seed=0):
        self.mode = mode
        self.every = every
        self.strict = strict
        self.choose = random.Random(seed)
        self.passes = 0
        self.rewrittens = []
        self.seen = {}
        self.before = None  # called with (point, values) on each pass

    def __call__(self, function):
        made = types.FunctionType(
            self.code(function.__code__), function.__globals__, function.__name__, function.__defaults__,
            function.__closure__,
        )  # fmt: skip
        made.__kwdefaults__ = function.__kwdefaults__
        made.__qualname__ = function.__qualname__
        return made

    def code(self, code):
        if code in self.seen:
            return self.seen[code]
        consts = (self.code(const) if isinstance(const, types.CodeType) else const for const in code.co_consts)
        inner = code.replace(co_consts=tuple(consts))
        try:
            analysis = analyse(inner)
            rewritten = build(
                analysis, lambda offset: self.region(analysis, offset, lambda: rewritten), every=self.every
            )
        except NotResumable:
            if self.strict and code.co_flags & inspect.CO_OPTIMIZED:  # class bodies need not be
                raise
            return self.seen.setdefault(code, inner)
        for resume_point in rewritten.resume_points.values():
            resume_point.append(True)
        self.rewrittens.append(rewritten)
        return self.seen.setdefault(code, rewritten.code)

    def region(self, analysis, offset, rewritten):
        point, cells = analysis.points[offset], len(analysis.cells)
        count = len(point.live) + sum(point.slots)
        extras = tuple(
            UNBOUND if self.mode == "forget" and name not in point.live else KEEP for name in analysis.extras
        )
        answers = None

        def region(*values):
            nonlocal answers
            self.passes += 1
            assert len(values) == cells + count
            assert all(type(cell) is types.CellType for cell in values[:cells])
            if self.before is not None:
                self.before(point, values)
            if self.mode == "on" or (self.mode == "mixed" and self.choose.random() < 0.5):
                return None
            if answers is None:
                answers = rewritten().route(offset)
            given = extras if self.mode == "forget" or self.choose.random() < 0.5 else None
            return (given, *answers, values[cells:])

        return region


def functions_of(module):
    """Returns the code objects of all functions in a module's source, nested ones included."""
    with open(module.__file__, encoding="utf-8") as file:
        waiting = [compile(file.read(), module.__file__, "exec")]
    while waiting:
        code = waiting.pop()
        waiting += [const for const in code.co_consts if isinstance(const, types.CodeType)]
        if code.co_flags & inspect.CO_OPTIMIZED:
            yield code
