"""Rewritten code objects: where a frame can be taken apart and resumed, and the code that does so.

Enters: a ``types.CodeType``. Leaves: an `Analysis` of its resumable points, and a `Host`, the same code with gates
through which regions take over and give back. Imports nothing of tcompile, and knows nothing of arrays.
"""

from tcompile.bytecode.analysis import Analysis, Point, analyse
from tcompile.bytecode.decode import NotResumable
from tcompile.bytecode.host import KEEP, UNBOUND, Gate, Host, build

__all__ = ["KEEP", "UNBOUND", "Analysis", "Gate", "Host", "NotResumable", "Point", "analyse", "build"]
