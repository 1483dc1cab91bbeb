"""The handlers of bytecode instructions, in one file for each theme.

Input: instructions of CPython 3.11 to 3.13.
Output: a handler for each that capture follows, in ``frame.HANDLERS``. An instruction without a handler is a graph
break.
Why: one file for all handlers would be too long. Handlers of instructions at which loops begin are in ``loops.enter``.
Importing this package registers all of its handlers.
"""

from tcompile.capture.interpreter.opcodes import building, calls, control, items, matching, names, operators

__all__ = ["building", "calls", "control", "items", "matching", "names", "operators"]
