"""NumPy's bit generators in scalar loops: 64 bits, 32 bits, or a float.

Input: the address of a generator's state.
Output: instructions.
Why: PCG64 and SFC64 are inlined where ``draws.is_plain`` has verified their steps; others are calls of NumPy's
functions.
"""

from __future__ import annotations

from collections.abc import Callable

from tcompile.backends.llvm.vector.text import Writer
from tcompile.graph.ops.draws import HALVES, PCG64_MULTIPLIER, Family, is_plain

_STEP = "0x3CA0000000000000"  # 2 ** -53
_LOW = (1 << 32) - 1


class Bits:
    """A bit generator in the function that ``w`` writes; ``call`` declares one of NumPy's functions, by its name."""

    def __init__(self, w: Writer, family: Family, state: str, call: Callable[[str, str], str]) -> None:
        self.w, self.family, self.state, self.call = w, family, state, call
        self.is_plain = is_plain(family.name)

    def next_64(self) -> str:
        """The next 64 bits."""
        w = self.w
        if not self.is_plain:
            function = self.call(f"{self.family.name}_next_uint64", "i64 {}(ptr)")
            return w.get(f"call i64 {function}(ptr {self.state})")
        w.module.declare("@llvm.fshl.i64", "declare i64 @llvm.fshl.i64(i64, i64, i64)")
        return self._pcg64() if self.family.name == "PCG64" else self._sfc64()

    def next_float(self) -> str:
        """A float from 0 to 1, of 53 bits."""
        w = self.w
        if not self.is_plain:
            function = self.call(f"{self.family.name}_next_double", "double {}(ptr)")
            return w.get(f"call double {function}(ptr {self.state})")
        number = w.get(f"sitofp i64 {w.get(f'lshr i64 {self.next_64()}, 11')} to double")
        return w.get(f"fmul double {number}, {_STEP}")

    def bounded(self, low: str, most: str, other: Callable[[], str]) -> str:
        """A number from ``low`` on that is at most ``most`` more; ``other`` draws it where 32 bits are not enough, or
        none are needed.
        """
        w = self.w
        small, wide, drawn = w.label("small"), w.label("wide"), w.label("drawn")
        w.branch(w.get(f"icmp ult i64 {w.get(f'sub i64 {most}, 1')}, {_LOW - 1}"), small, wide)
        w.place(small)
        count = w.get(f"add i64 {most}, 1")
        product = w.get(f"mul i64 {self._next_32()}, {count}")
        first, again, fine = w.block, w.label("again"), w.label("fine")
        w.branch(w.get(f"icmp ult i64 {w.get(f'and i64 {product}, {_LOW}')}, {count}"), again, fine)
        w.place(again)
        helper = w.module.helper(f"@again_{self.family.name}", self._again)
        fair = w.get(f"call i64 {helper}(ptr {self.state}, i64 {product}, i64 {count})")
        w.jump(fine)
        w.place(fine)
        chosen = w.select_phi("i64", [(product, first), (fair, again)])
        narrow = w.get(f"add i64 {low}, {w.get(f'lshr i64 {chosen}, 32')}")
        w.jump(drawn)
        w.place(wide)
        found = other()
        origin = w.block
        w.jump(drawn)
        w.place(drawn)
        return w.select_phi("i64", [(narrow, fine), (found, origin)])

    def _again(self) -> str:
        """A function that draws again as long as the low half of the product is below the rejection limit."""
        w = Writer(self.w.module)
        bits = Bits(w, self.family, "%state", self.call)
        rest = w.get("urem i64 4294967296, %count")
        head, redo, out = w.label("head"), w.label("redo"), w.label("out")
        w.jump(head)
        w.place(head)
        product = w.phi("i64", "%product", "entry")
        low = w.get(f"and i64 {product.name}, {_LOW}")
        w.branch(w.get(f"icmp ult i64 {low}, {rest}"), redo, out)
        w.place(redo)
        product.close(w.get(f"mul i64 {bits._next_32()}, %count"), w.block)
        w.jump(head)
        w.place(out)
        w.do(f"ret i64 {product.name}")
        return w.text(f"internal i64 @again_{self.family.name}(ptr %state, i64 %product, i64 %count)", "nounwind cold")

    def _next_32(self) -> str:
        """The next 32 bits; every other call uses the remaining half of 64."""
        w = self.w
        at = w.at_entry(f"getelementptr i64, ptr {self.state}, i64 {HALVES[self.family.name]}")
        word = w.get(f"load i64, ptr {at}")
        left, new, on = w.label("left"), w.label("new"), w.label("on")
        w.branch(w.get(f"icmp ne i64 {w.get(f'and i64 {word}, {_LOW}')}, 0"), left, new)
        w.place(left)
        w.do(f"store i64 {w.get(f'and i64 {word}, {_LOW << 32}')}, ptr {at}")
        kept = w.get(f"lshr i64 {word}, 32")
        w.jump(on)
        w.place(new)
        bits = self.next_64()
        high = w.get(f"and i64 {bits}, {_LOW << 32}")
        w.do(f"store i64 {w.get(f'or i64 {high}, 1')}, ptr {at}")
        first = w.get(f"and i64 {bits}, {_LOW}")
        origin = w.block
        w.jump(on)
        w.place(on)
        return w.select_phi("i64", [(kept, left), (first, origin)])

    def _pcg64(self) -> str:
        w = self.w
        at, more = self._word(0), self._word(2)
        state, increment = (w.get(f"load i128, ptr {place}, align 8") for place in (at, more))
        new = w.get(f"add i128 {w.get(f'mul i128 {state}, {PCG64_MULTIPLIER}')}, {increment}")
        w.do(f"store i128 {new}, ptr {at}, align 8")
        high, low = w.get(f"trunc i128 {w.get(f'lshr i128 {new}, 64')} to i64"), w.get(f"trunc i128 {new} to i64")
        turn = w.get(f"sub i64 0, {w.get(f'lshr i64 {high}, 58')}")  # the shift is taken modulo 64
        return self._rotated(w.get(f"xor i64 {high}, {low}"), turn)

    def _sfc64(self) -> str:
        w = self.w
        places = [self._word(n) for n in range(4)]
        a, b, c, count = (w.get(f"load i64, ptr {place}") for place in places)
        found = w.get(f"add i64 {w.get(f'add i64 {a}, {b}')}, {count}")
        new = (
            w.get(f"xor i64 {b}, {w.get(f'lshr i64 {b}, 11')}"), w.get(f"mul i64 {c}, 9"),
            w.get(f"add i64 {self._rotated(c, '24')}, {found}"), w.get(f"add i64 {count}, 1"),
        )  # fmt: skip
        for value, place in zip(new, places, strict=True):
            w.do(f"store i64 {value}, ptr {place}")
        return found

    def _word(self, number: int) -> str:
        """The address of a word of the state, or of its inner part."""
        return self.w.at_entry(f"getelementptr i64, ptr {self.state}, i64 {self.family.inner + number}")

    def _rotated(self, word: str, left: str) -> str:
        return self.w.get(f"call i64 @llvm.fshl.i64(i64 {word}, i64 {word}, i64 {left})")


__all__ = ["Bits"]
