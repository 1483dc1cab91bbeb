"""Loops over elements: random numbers, drawn by the functions of NumPy's library.

Enters: the array with a generator's state, and what is drawn. Leaves: instructions. Exists because NumPy's functions
want a ``bitgen_t``: the address of a state as the bit generator keeps it, and that of its functions. The state lies on
the stack while the loop runs and is written back where it ends; where plain Python has to take over, nothing has
happened.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcompile.backends.llvm.text import Writer
from tcompile.graph.ops.draws import BOUNDED, DRAWS, NEXT, addresses, family_named

_ALIGNED = 16  # what the inner part of a state is at multiples of


class Generator:
    """One generator's state in a function, whose array lies at ``array``."""

    def __init__(self, w: Writer, family: str, array: str) -> None:
        found = family_named(family)
        assert found is not None
        self.w, self.family, self.array = w, found, array
        self.functions = addresses(family)
        # The inner part begins at a multiple of 16, so the whole may have to begin 8 behind one.
        shift = 8 * found.inner % _ALIGNED
        room = w.slot("i8", str(8 * found.words + shift), align=_ALIGNED)
        self.state = w.at_entry(f"getelementptr i8, ptr {room}, i64 {shift}")
        self.bits = w.slot("ptr", str(1 + len(NEXT)), align=8)
        self._copy(self.state, array, at_entry=True)
        entry = [self._store(self.state, self.bits)]
        for place, name in enumerate(NEXT, 1):
            at = w.at_entry(f"getelementptr ptr, ptr {self.bits}, i64 {place}")
            entry.append(self._store(self._function(f"{family}_{name}", "i64 {}(ptr)"), at))
        if found.inner:
            entry.append(self._store(w.at_entry(f"getelementptr i64, ptr {self.state}, i64 {found.inner}"), self.state))
        w.entry += entry

    def draw(self, name: str, given: Sequence[str]) -> str:
        """The register of a number: ``given`` are two words for whole numbers, and floats for all others."""
        w, row = self.w, DRAWS[name]
        if name == "random":
            function = self._function(f"{self.family.name}_next_double", "double {}(ptr)")
            return w.get(f"call double {function}(ptr {self.state})")
        if name in ("integers", "randint"):
            low, high = given
            to = w.slot("i64", align=8)
            function = self._function(BOUNDED, "void {}(ptr, i64, i64, i64, i1 zeroext, ptr)")
            most = w.get(f"sub i64 {w.get(f'sub i64 {high}, {low}')}, 1")
            masked = "true" if name == "randint" else "false"
            w.do(f"call void {function}(ptr {self.bits}, i64 {low}, i64 {most}, i64 1, i1 zeroext {masked}, ptr {to})")
            return w.get(f"load i64, ptr {to}")
        type = "double" if row.kind == "float" else "i64"
        function = self._function(row.function, f"{type} {{}}({', '.join(['ptr', *['double'] * len(given)])})")
        return w.get(f"call {type} {function}({', '.join([f'ptr {self.bits}', *(f'double {v}' for v in given)])})")

    def keep(self) -> None:
        """Writes the state back."""
        self._copy(self.array, self.state, first=1 if self.family.inner else 0)

    def _copy(self, to: str, of: str, first: int = 0, at_entry: bool = False) -> None:
        w = self.w
        w.module.declare("@llvm.memcpy.p0.p0.i64", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        if first:
            to, of = (w.get(f"getelementptr i64, ptr {at}, i64 {first}") for at in (to, of))
        size = 8 * (self.family.words - first)
        text = f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, i64 {size}, i1 false)"
        if at_entry:
            w.entry.append(f"  {text}")
        else:
            w.do(text)

    @staticmethod
    def _store(value: str, at: str) -> str:
        return f"  store ptr {value}, ptr {at}"

    def _function(self, name: str, signature: str) -> str:
        """A function of NumPy's."""
        return self.w.module.external(f"numpy_{name}", signature, self.functions[name])


__all__ = ["Generator"]
