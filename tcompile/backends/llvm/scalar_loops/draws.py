"""Random numbers in scalar loops, drawn inline or by the functions of NumPy's library.

Input: the array with a generator's state, and the kind of draw.
Output: instructions.
Why: NumPy's functions take a ``bitgen_t``: the address of a state, and those of its functions.

The state lies on the stack while the loop runs and is written back where it ends; before a replay it is unchanged. The
most frequent draws are inlined: floats between 0 and 1, integers of a small range, and the common case of normal and
exponential numbers (``native.ziggurat``).
"""

from __future__ import annotations

import platform
from collections.abc import Sequence

from tcompile.backends.llvm.native import ziggurat
from tcompile.backends.llvm.scalar_loops.bit_generators import Bits
from tcompile.backends.llvm.scalar_loops.mersenne_twister import PythonGenerator
from tcompile.backends.llvm.vector.text import Writer
from tcompile.graph.ops.draws import BOUNDED, DRAWS, NEXT, Family, addresses, family_named

_ALIGNED = 16  # the alignment of a state's inner part
# Draws that are another draw, times their last parameter, plus the first of two.
_SCALED = {"normal": "standard_normal", "exponential": "standard_exponential", "uniform": "random"}
# Elsewhere C compilers may fuse a product and a sum, which gives other bits.
_IS_X86 = platform.machine() in ("x86_64", "AMD64")


def generator_of(w: Writer, family: str, array: str) -> Generator | PythonGenerator:
    """The generator of a family whose state is the array."""
    found = family_named(family)
    assert found is not None
    return PythonGenerator(w, array) if found.is_pythons else Generator(w, found, array)


class Generator:
    """One of NumPy's generators' state in a function, whose array lies at ``array``."""

    def __init__(self, w: Writer, found: Family, array: str) -> None:
        family = found.name
        self.w, self.family, self.array = w, found, array
        self.functions = addresses(family)
        # The inner part is aligned to 16 bytes, so the whole may have to begin 8 bytes later.
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
        self.next = Bits(w, found, self.state, self._function)

    def draw(self, name: str, given: Sequence[str]) -> str:
        """The register of a number: ``given`` are two words for integers, and floats for all others."""
        w, row = self.w, DRAWS[name]
        if name == "random":
            return self.next.next_float()
        if name in _SCALED and _IS_X86:
            number = self.draw(_SCALED[name], ())
            scaled = w.get(f"fmul double {given[-1]}, {number}")
            return w.get(f"fadd double {given[0]}, {scaled}") if len(given) > 1 else scaled
        if row.function in ziggurat.LAYOUTS:
            layers = ziggurat.table(row.function, self.functions[row.function])
            if layers is not None:
                return self._of_layers(row.function, layers.ctypes.data)
        if name in ("integers", "randint"):
            low, high = given
            most = w.get(f"sub i64 {w.get(f'sub i64 {high}, {low}')}, 1")
            if name == "integers" and self.next.is_plain:
                return self.next.bounded(low, most, lambda: self._bounded(low, most, "false"))
            return self._bounded(low, most, "true" if name == "randint" else "false")
        type = "double" if row.kind == "float" else "i64"
        function = self._function(row.function, f"{type} {{}}({', '.join(['ptr', *['double'] * len(given)])})")
        return w.get(f"call {type} {function}({', '.join([f'ptr {self.bits}', *(f'double {v}' for v in given)])})")

    def _bounded(self, low: str, most: str, masked: str) -> str:
        """A number from ``low`` on that is at most ``most`` more, by NumPy's function."""
        w = self.w
        to = w.slot("i64", align=8)
        function = self._function(BOUNDED, "void {}(ptr, i64, i64, i64, i1 zeroext, ptr)")
        w.do(f"call void {function}(ptr {self.bits}, i64 {low}, i64 {most}, i64 1, i1 zeroext {masked}, ptr {to})")
        return w.get(f"load i64, ptr {to}")

    def _of_layers(self, name: str, table: int) -> str:
        """A number of a ziggurat, by NumPy's function where 64 bits are not enough for it."""
        w, layout = self.w, ziggurat.LAYOUTS[name]
        symbol = f"numpy_{name}_layers"
        w.module.symbols[symbol] = table
        rows = w.module.declare(f"@{symbol}", f"@{symbol} = external constant [{ziggurat.LAYERS} x {{ i64, double }}]")
        bits = self.next.next_64()
        layer = w.get(f"and i64 {w.get(f'lshr i64 {bits}, {layout.layer}')}, {ziggurat.LAYERS - 1}")
        value = w.get(f"and i64 {w.get(f'lshr i64 {bits}, {layout.value}')}, {(1 << layout.bits) - 1}")
        limit_at = w.get(f"getelementptr {{ i64, double }}, ptr {rows}, i64 {layer}")
        step_at = w.get(f"getelementptr {{ i64, double }}, ptr {rows}, i64 {layer}, i32 1")
        number = w.get(f"fmul double {w.get(f'sitofp i64 {value} to double')}, {w.get(f'load double, ptr {step_at}')}")
        if layout.sign is not None:
            sign = w.get(f"shl i64 {w.get(f'lshr i64 {bits}, {layout.sign}')}, 63")
            signed = w.get(f"xor i64 {w.get(f'bitcast double {number} to i64')}, {sign}")
            number = w.get(f"bitcast i64 {signed} to double")
        below = w.get(f"icmp ult i64 {value}, {w.get(f'load i64, ptr {limit_at}')}")
        origin, rare, drawn = w.block, w.label("rare"), w.label("drawn")
        w.branch(below, drawn, rare)
        w.place(rare)
        redraw = w.module.external("tc_redraw", "double {}(ptr, ptr, i64)", ziggurat.redraw())
        function = self._function(name, "double {}(ptr)")
        other = w.get(f"call double {redraw}(ptr {function}, ptr {self.bits}, i64 {bits})")
        w.jump(drawn)
        w.place(drawn)
        return w.select_phi("double", [(number, origin), (other, rare)])

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


__all__ = ["Generator", "generator_of"]
