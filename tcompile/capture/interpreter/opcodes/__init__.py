"""The meaning of each bytecode instruction, one file a theme. Importing this package registers them all.

Input: instructions of CPython 3.11 to 3.13. Output: a handler for each that capture follows, in ``frame.HANDLERS``. An
instruction without a handler is a graph break. Why: one file for all of them would be too long. Those at which loops
begin are in ``loops.enter``.
"""

from tcompile.capture.interpreter.opcodes import building, calls, control, items, matching, names, operators

__all__ = ["building", "calls", "control", "items", "matching", "names", "operators"]
