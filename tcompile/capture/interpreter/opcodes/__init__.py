"""The meaning of each bytecode instruction, one file a theme. Importing this package registers them all.

Input: instructions of CPython 3.11 to 3.13. Output: a handler for each that capture follows. An instruction without a
handler is a graph break.
"""

from tcompile.capture.interpreter.opcodes import building, calls, control, items, matching, names, operators
from tcompile.capture.interpreter.opcodes.control import at_header
from tcompile.capture.interpreter.opcodes.registry import HANDLERS, Handler, Returned, Yielded

__all__ = [
    "HANDLERS",
    "Handler",
    "Returned",
    "Yielded",
    "at_header",
    "building",
    "calls",
    "control",
    "items",
    "matching",
    "names",
    "operators",
]
