"""Full reductions: blocks give partial results, which a second function combines in order.

Input: a kernel of form ``blocks``.
Output: its two functions.
Why: all threads share one reduction. Blocks are of one size, so the result depends neither on the number of threads nor
on which thread computed which block.
"""

from __future__ import annotations

from tcompile.backends.llvm.kernels.elements import VectorPosition
from tcompile.backends.llvm.kernels.nest import KernelFunction, Nest
from tcompile.backends.llvm.kernels.reductions import VectorReduction
from tcompile.backends.llvm.vector.text import scalar_type
from tcompile.backends.schedule import KernelValue
from tcompile.backends.schedule.kernel_ops import REDUCE
from tcompile.backends.schedule.stages import Stages
from tcompile.graph import Size
from tcompile.graph.dtypes import DType

BLOCK = 16384  # elements of a full reduction per item


class BlockNest(Nest):
    """A nest without kept axes."""

    def _parts(self) -> list[tuple[KernelValue, DType]]:
        return [
            (reduce, part)
            for reduce in self.kernel.values
            if reduce.op is REDUCE
            for part in VectorReduction(reduce.attrs["op"], reduce.dtype).parts
        ]

    def blocks(self) -> KernelFunction:
        """The function in which every item stores its accumulators in the array of partial results."""
        kernel, w = self.kernel, self.w
        axes = kernel.reduced
        stages = Stages(kernel, frozenset())
        words = len(self._parts())
        self.begin()
        self.prefetch_ahead(axes[-1])
        partials = self.parameters.named_pointer(w, "partials") if words else ""

        def item(number: str, _: list[str]) -> list[str]:
            known: dict[KernelValue, str] = {}
            if len(axes) == 1:
                counters: dict[int, str] = {}
                start = w.get(f"mul i64 {number}, {BLOCK}")
                limit = w.get(f"add i64 {start}, {BLOCK}")
                size = self.size(axes[0])
                over = w.get(f"icmp sgt i64 {limit}, {size}")
                stop: str | None = w.get(f"select i1 {over}, i64 {size}, i64 {limit}")
                inner = axes
            else:
                counters, start, stop, inner = {axes[0]: number}, "0", None, axes[1:]
            address = self.addresses(counters)
            if len(inner) == 1:  # else parts of a block may begin anywhere
                self.prepare_nontemporal(address)
            self.row_values(stages.row_values(0), VectorPosition(address, counters), known)
            totals = self.run_pass(stages, 0, inner, counters, address, known, {}, start, stop)
            at = 0
            for reduce, parts in totals.items():
                kind = VectorReduction(reduce.attrs["op"], reduce.dtype)
                for part, register in zip(kind.parts, kind.across(self.v, parts), strict=True):
                    one = w.get(f"extractelement {self.v.of(1).type(part)} {register}, i64 0")
                    place = w.get(f"add i64 {w.get(f'mul i64 {number}, {words}')}, {at}")
                    address_of = w.get(f"getelementptr i64, ptr {partials}, i64 {place}")
                    w.do(f"store {scalar_type(part)} {one}, ptr {address_of}, align 8")
                    at += 1
            return []

        w.loop("%begin", "%end", "1", [], item)
        sizes: tuple[Size, ...] = (kernel.axes[axes[0]].size,)
        return self.finish(kernel.name, sizes, BLOCK if len(axes) == 1 else 1, words)

    def combine(self) -> KernelFunction:
        """The function that merges the partial results in order, and computes the operations on the totals."""
        kernel, w, v = self.kernel, self.w, self.v.of(1)
        stages = Stages(kernel, frozenset())
        self.begin()
        parts = self._parts()
        partials = self.parameters.named_pointer(w, "partials")
        kinds = {r: VectorReduction(r.attrs["op"], r.dtype) for r in dict.fromkeys(r for r, _ in parts)}
        carried = [
            (v.type(part), first)
            for kind in kinds.values()
            for part, first in zip(kind.parts, kind.start(v), strict=True)
        ]

        def step(i: str, held: list[str]) -> list[str]:
            following: list[str] = []
            at = 0
            for kind in kinds.values():
                found: list[str] = []
                for part in kind.parts:
                    place = w.get(f"add i64 {w.get(f'mul i64 {i}, {len(parts)}')}, {at + len(found)}")
                    address_of = w.get(f"getelementptr i64, ptr {partials}, i64 {place}")
                    one = w.get(f"load {scalar_type(part)}, ptr {address_of}, align 8")
                    found.append(v.spread(scalar_type(part), one))
                following += kind.merge(v, held[at : at + len(found)], found)
                at += len(found)
            return following

        results = w.loop("%begin", "%end", "1", carried, step)
        known: dict[KernelValue, str] = {}
        at = 0
        for reduce, kind in kinds.items():
            known[reduce] = self.v.widened(kind.dtype, kind.finish(v, results[at : at + len(kind.parts)]))
            at += len(kind.parts)
        address = self.addresses({})
        place = VectorPosition(address, {})
        for number in range(2):
            self.row_values(stages.row_values(number), place, known)
            for store in stages.row_stores(number):
                self.elements.write(place, (), known, [store])
        return self.finish(f"{kernel.name}_combine", (1,), brief=True)
