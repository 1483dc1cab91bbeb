"""Types of graph values.

Input: dtypes, shapes and memory layouts.
Output: immutable ``TensorType`` and ``ScalarType`` values.
Why: every later stage knows, without running anything, a value's dtype, shape, device and memory order (which NumPy's
users can see, so it is part of the type).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, TypeAlias

from tcompile.graph.dtypes import DType, short_name
from tcompile.graph.sizes import Size, is_one, may_be_empty, may_be_one, product
from tcompile.records import dataclass


@dataclass(frozen=True)
class Layout:
    """The memory order of an array, as far as the compiler relies on it.

    ``ranks[i]`` orders the strides: a larger rank is a larger absolute stride, 0 is stride zero (a broadcast axis).
    Axes of size one carry no information whatever their rank. ``dense`` says that the strides follow from the shape and
    the ranks; otherwise they are known at run time only. The ranks of axes whose strides are multiples of one stride,
    as those of windows are, share their integer part: ``k`` times the stride of rank ``r`` has the rank ``r + 1 -
    1/k``.
    """

    ranks: tuple[float, ...]
    dense: bool = True

    @staticmethod
    def c(ndim: int) -> Layout:
        """C order: the last axis is innermost."""
        return Layout(tuple(range(ndim, 0, -1)))

    @staticmethod
    def of_order(order: tuple[int, ...], dense: bool = True) -> Layout:
        """The layout whose axes, outermost first, are ``order``."""
        ranks = [0] * len(order)
        for position, axis in enumerate(order):
            ranks[axis] = len(order) - position
        return Layout(tuple(ranks), dense)

    @property
    def order(self) -> tuple[int, ...]:
        """The axes, outermost first; ties keep C order."""
        return tuple(sorted(range(len(self.ranks)), key=lambda axis: -self.ranks[axis]))


@dataclass(frozen=True)
class TensorType:
    """An array value: dtype, shape (ints or symbolic sizes), memory layout and device.

    >>> from tcompile.graph.dtypes import named
    >>> print(TensorType(named("float32"), (3, 4)))
    f32[3, 4]
    """

    dtype: DType
    shape: tuple[Size, ...]
    layout: Layout = None  # type: ignore[assignment]  # filled in below: C order
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.layout is None or not self.shape:  # one element has no gaps, also in a view
            object.__setattr__(self, "layout", Layout.c(len(self.shape)))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """The number of elements."""
        return product(self.shape)

    @property
    def c_contiguous(self) -> bool:
        """Whether the value is dense in C order (axes of size one do not count)."""
        return self.layout.dense and self.in_c_order

    @property
    def in_c_order(self) -> bool:
        """Whether strides decrease from axis to axis, gaps or not; axes of size one and broadcast ones do not count."""
        ranks = [r for r, n in zip(self.layout.ranks, self.shape, strict=True) if r and not is_one(n)]
        return all(a > b for a, b in pairwise(ranks))

    @property
    def never_c_contiguous(self) -> bool:
        """Whether no value of this type is in C order; a symbolic size may equal one, and then some are."""
        if not self.layout.dense or may_be_empty(self.shape):
            return False
        ranks = [r for r, n in zip(self.layout.ranks, self.shape, strict=True) if not may_be_one(n)]
        return any(a < b for a, b in pairwise(ranks))

    def strides(self) -> tuple[Size, ...] | None:
        """The strides in elements, outermost axis first in C order; None where only run time knows them."""
        if not self.layout.dense:
            return None
        strides: list[Size] = [0] * self.ndim
        step: Size = 1
        for axis in reversed(self.layout.order):
            strides[axis] = step
            step = step * self.shape[axis]
        return tuple(strides)

    def __str__(self) -> str:
        text = f"{short_name(self.dtype)}[{', '.join(map(str, self.shape))}]"
        if not self.layout.dense:
            text += f"{{strided {','.join(map(str, self.layout.ranks))}}}"
        elif not self.c_contiguous:
            text += f"{{order {','.join(map(str, self.layout.order))}}}"
        return text if self.device in ("cpu", "torch") else f"{text} {self.device}"  # the latter of tensors on the CPU


@dataclass(frozen=True)
class ScalarType:
    """A Python number that enters a graph at run time.

    An ``int`` binds the symbol of the size expression ``symbol``; a ``float`` is used as a weakly typed operand.
    """

    kind: Literal["int", "float"]
    symbol: Size | None = None

    def __str__(self) -> str:
        return self.kind if self.symbol is None else f"int {self.symbol}"


Type: TypeAlias = TensorType | ScalarType


def on_device(type: Type, device: str) -> Type:
    """The type of the same value on another device; a number has none."""
    return TensorType(type.dtype, type.shape, type.layout, device) if isinstance(type, TensorType) else type
