"""Random numbers of Python's in scalar loops.

Input: the array with the state of a ``random.Random``, and the kind of draw.
Output: instructions.
Why: CPython exports no functions that draw from a state. The few that there are, are written here, in
``native/mersenne_twister.ll``; all others are made of them (``capture.scalar_loops.rng``).
"""

from __future__ import annotations

from collections.abc import Sequence

from tcompile.backends.llvm.native import target
from tcompile.backends.llvm.vector.text import Writer
from tcompile.graph.ops.python_random import WORDS


class PythonGenerator:
    """One generator's state in a function, whose array lies at ``array``. Meanwhile it lies on the stack."""

    def __init__(self, w: Writer, array: str) -> None:
        self.w, self.array = w, array
        w.module.helper("@mt", lambda: target.source("mersenne_twister.ll"))
        w.module.declare("@llvm.ctlz.i64", "declare i64 @llvm.ctlz.i64(i64, i1)")
        w.module.declare("@llvm.memcpy.p0.p0.i64", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        self.state = w.slot("i64", str(WORDS), align=8)
        w.entry.append(f"  {_copy(self.state, array)}")

    def draw(self, name: str, given: Sequence[str]) -> str:
        """The register of a number."""
        if name == "random":
            return self.w.get(f"call double @mt_random(ptr {self.state})")
        assert name == "below", name
        return self.w.get(f"call i64 @mt_below(ptr {self.state}, i64 {given[0]})")

    def keep(self) -> None:
        """Writes the state back."""
        self.w.do(_copy(self.array, self.state))


def _copy(to: str, of: str) -> str:
    return f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, i64 {8 * WORDS}, i1 false)"


__all__ = ["PythonGenerator"]
