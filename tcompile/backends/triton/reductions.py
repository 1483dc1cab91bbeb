"""Reductions in blocks: how each accumulates, merges and finishes.

Input: names of blocks of elements.
Output: text of the accumulators, and of their final value.
Why: all forms of kernels accumulate alike.

A reduction is a list of accumulators. Sums of float32 are carried in float64, as in the llvm backend, except for a few
elements, which are added in NumPy's order. Sums of float64 carry the rounding error of every addition beside the sum,
except those of a row that is one block, and ``narrow`` ones, whose result has the precision of float32. Small integers
are carried in 32 bits, since overflow there is overflow in fewer bits, too. ``Moments`` of a block are reduced before
they are merged, so that there is one set of accumulators for a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcompile.backends.schedule import KernelValue
from tcompile.backends.schedule.kernel import identity_element
from tcompile.backends.triton.names import full, type_of
from tcompile.graph.dtypes import DType

FLOAT32, FLOAT64, INT32 = np.dtype("float32"), np.dtype("float64"), np.dtype("int32")
_ALONG = {"sum": "sum_of", "product": "product_of", "max": "max_of", "min": "min_of", "bits": "bits_of"}
_MERGED = {
    "sum": "{a} + {b}", "product": "{a} * {b}", "max": "highest({a}, {b})", "min": "lowest({a}, {b})",
    "bits": "{a} | {b}",
}  # fmt: skip


@dataclass(frozen=True)
class Accumulator:
    """One accumulator: its name's suffix, its dtype, its merge operation, and its initial value."""

    suffix: str
    dtype: DType
    how: str
    start: bool | int | float

    @property
    def is_rounding(self) -> bool:
        """Whether it is the rounding errors of another one."""
        return self.suffix == "_error"


class BlockReduction:
    """The reduction of a value. ``signals``: whether status bits are wanted; ``in_order``: whether the elements are
    few, and added one after the other, as NumPy adds them: then neither float64 accumulators nor rounding errors are
    used.
    """

    def __init__(self, value: KernelValue, signals: bool, in_order: bool = False) -> None:
        self.op: str = value.attrs["op"]
        self.dtype = value.dtype
        self.first: float | None = value.attrs.get("start")
        is_float = self.dtype.kind == "f"
        self.signals = signals and is_float and self.op in ("sum", "prod")
        is_wide = self.op == "sum" and self.dtype == FLOAT64 and not value.attrs.get("narrow")
        self.is_compensated = is_wide and not in_order
        how = {"sum": "sum", "prod": "product", "any": "max", "all": "min"}.get(self.op, self.op)
        carried = INT32 if self.dtype.itemsize < 4 else self.dtype
        if is_float and self.op == "sum" and not (in_order and self.dtype == FLOAT32):
            carried = FLOAT64
        self.parts = [Accumulator("", carried, how, self._start())]
        if self.is_compensated:
            self.parts.append(Accumulator("_error", FLOAT64, "sum", 0.0))
        if self.signals:
            self.parts.append(Accumulator("_kinds", INT32, "bits", 0))

    def _start(self) -> bool | int | float:
        """The identity element."""
        if self.first is not None:
            return self.first
        return identity_element(self.op, self.dtype)

    def lift(self, element: str, inside: str = "") -> list[str]:
        """The accumulators of one block of elements; elements that are not ``inside``, if that is given, are replaced
        by the identity.
        """
        number = f"tl.where({inside}, {element}, {full(self._start(), self.dtype)})" if inside else element
        carried = self.parts[0].dtype
        texts = [number if carried == self.dtype else f"{number}.to({type_of(carried)})"]
        if self.is_compensated:
            texts.append("")  # no rounding error yet
        if self.signals:
            texts.append(f"kinds({number})")
        return texts

    def merge(self, name: str, texts: list[str]) -> list[str]:
        """Lines that merge accumulators, as ``texts``, into those called ``name``."""
        lines = []
        for part, text in zip(self.parts, texts, strict=True):
            held = f"{name}{part.suffix}"
            if self.is_compensated and not part.suffix:
                rounded = f"lost_in_sum({name}, {name}_next, {name}_total)"
                lines += [f"{name}_next = {text}", f"{name}_total = {name} + {name}_next"]
                lines += [f"{name}_error = {name}_error + {rounded}", f"{name} = {name}_total"]
            elif text:
                lines.append(f"{held} = " + _MERGED[part.how].format(a=held, b=text))
        return lines

    def across(self, name: str, texts: list[str] | None = None) -> list[str]:
        """Lines that make the accumulators (or ``texts``) one for each row."""
        lines, given = [], zip(self.parts, texts or [f"{name}{part.suffix}" for part in self.parts], strict=True)
        if self.is_compensated and texts is None:
            lines.append(f"{name}, {name}_error = sums_of({next(given)[1]}, {next(given)[1]})")
        return lines + [f"{name}{part.suffix} = {_ALONG[part.how]}({text})" for part, text in given if text]

    def finish(self, name: str, errors: bool) -> str:
        """The result's text; ``errors``: whether rounding errors have been carried."""
        if self.is_compensated:
            return f"with_error({name}, {name}_error)" if errors else name
        if self.dtype.kind == "b":
            return f"{name} != 0"
        return f"{name}.to({type_of(self.dtype)})" if self.parts[0].dtype != self.dtype else name

    def flags(self, name: str, result: str) -> str:
        """The text of the status bits of a result, "" where there are none."""
        function = "flags_total" if self.op == "sum" else "flags_all_multiplied"
        return f"{function}({result}, {name}_kinds)" if self.signals else ""


class Moments(BlockReduction):
    """The mean of float64 elements, and the sum of their squared distances from it, both as results.

    Each block's are merged into those of the blocks before it, so there is one set of accumulators for a row in any
    case. Nothing is reported.
    """

    def __init__(self, value: KernelValue) -> None:
        super().__init__(value, signals=False)
        self.parts = [Accumulator(suffix, FLOAT64, "moments", 0.0) for suffix in ("_count", "_mean", "_squares")]

    def lift(self, element: str, inside: str = "") -> list[str]:
        """A block of elements: the mask, and the elements."""
        return [inside, element, ""]

    def merge(self, name: str, texts: list[str]) -> list[str]:
        """Lines that merge a block of elements or of accumulators into those called ``name``."""
        held, further = ", ".join(self._names(name)), ", ".join(self._names(f"{name}_next"))
        return [*self.across(f"{name}_next", texts), f"{held} = moments_together({held}, {further})"]

    def across(self, name: str, texts: list[str] | None = None) -> list[str]:
        """Lines that reduce a block to one per row; merged accumulators already are."""
        if texts is None:
            return []
        names = self._names(name)
        if not texts[-1]:
            return [f"{', '.join(names)} = moments_of({', '.join(texts[:-1])})"]
        lines = [f"{held} = {text}" for held, text in zip(names, texts, strict=True)]
        return [*lines, f"{', '.join(names)} = moments_of_all({', '.join(names)})"]

    def results(self, name: str) -> tuple[str, str]:
        """The names of both results."""
        return f"{name}_mean", f"{name}_squares"

    def _names(self, name: str) -> list[str]:
        return [f"{name}{part.suffix}" for part in self.parts]


def reduction_of(value: KernelValue, signals: bool) -> BlockReduction:
    """The reduction of a value."""
    return Moments(value) if value.attrs["op"] == "moments" else BlockReduction(value, signals)


__all__ = ["Accumulator", "BlockReduction", "Moments", "reduction_of"]
