"""The table of ATen operations and their lowerings.

Input: rows, added by the decorator ``lowering``.
Output: ``LOWERINGS``, and the ``Builder`` that rows are given.
Why: one table serves every way in, and a test runs each row against PyTorch.

A row is a function of the builder and of the operation's own arguments, where tensors are nodes and sizes are ints. It
returns a node, or a tuple of nodes for an operation with several results. It raises ``NoLowering`` for arguments that
it does not cover; the operation is then a call of PyTorch's kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

import numpy as np
import torch

from tcompile.frontends.torch.aten_calls import NoLowering, append_call, operation
from tcompile.frontends.torch.tensors import DTYPES, same_strides, type_of_tensor
from tcompile.graph import Graph, Location, Node, Operand, ops
from tcompile.graph.dtypes import BOOL, DType, kind_of
from tcompile.records import dataclass

Lowered: TypeAlias = "Node | tuple[Node, ...]"
Row: TypeAlias = Callable[..., Lowered]
FLOAT16, FLOAT32 = np.dtype("float16"), np.dtype("float32")
LOWERINGS: dict[str, Row] = {}  # by the operation's name, with its overload: "aten.add.Tensor"


def lowering(*names: str) -> Callable[[Row], Row]:
    """A decorator: the function is the row of the operations ``names``, each with its overload."""

    def add(row: Row) -> Row:
        for name in names:
            assert name not in LOWERINGS, f"{name} has two rows"
            LOWERINGS[name] = row
        return row

    return add


@dataclass
class Builder:
    """What rows build with.

    ``expected`` is the fake result (a tensor, or a tuple of tensors) and ``fakes`` are the fake tensors that nodes
    stand for, which know PyTorch's promotion.
    """

    graph: Graph
    expected: Any
    fakes: Mapping[Node, torch.Tensor]
    location: Location | None = None

    def op(self, name: str, *operands: Operand, **attrs: Any) -> Node:
        """Adds an operation. No floating-point condition is reported: PyTorch reports none."""
        node = ops.apply(self.graph, name, *operands, location=self.location, **attrs)
        node.silent = True
        return node

    def call(self, name: str, *operands: Node) -> Node:
        """Adds a call of PyTorch's own kernel for an operation on tensors alone."""
        fake = operation(name)(*(self.fake(node) for node in operands))
        made = append_call(self.graph, name, operands, {}, fake, self.location)
        assert isinstance(made, Node)
        return made

    def fake(self, node: Node) -> torch.Tensor:
        """The fake tensor of a node; an intermediate node of a row gets a contiguous one."""
        found = self.fakes.get(node)
        if found is None:
            dtype = next(dtype for dtype, own in DTYPES.items() if own == node.tensor.dtype)
            found = torch.empty(sizes(node), dtype=dtype, device="meta")
        return found

    @property
    def dtype(self) -> DType:
        """The dtype of the result."""
        return DTYPES[self.expected.dtype]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(self.expected.shape)

    def promoted(self, *values: Operand) -> DType:
        """The dtype in which PyTorch combines one or two tensors or numbers."""
        fakes = [self.fakes[value] if isinstance(value, Node) else value for value in values]
        return DTYPES[torch.result_type(fakes[0], fakes[-1])]

    def cast(self, value: Operand, dtype: DType) -> Operand:
        """A tensor or number in another dtype."""
        if not isinstance(value, Node):
            kind = kind_of(dtype)
            if kind == "c":
                return complex(value)  # type: ignore[arg-type]
            if isinstance(value, complex):
                raise NoLowering("a complex number beside real tensors")
            return bool(value) if kind == "b" else float(cast("Any", value)) if kind == "f" else int(cast("Any", value))
        if kind_of(value.tensor.dtype) == "c" and kind_of(dtype) != "c":
            raise NoLowering("complex numbers as real ones")
        return value if value.tensor.dtype == dtype else self.op("astype", value, dtype=str(dtype))

    def node(self, value: Operand, dtype: DType) -> Node:
        """The same as a node: a number becomes a tensor of rank 0."""
        made = self.cast(value, dtype)
        return made if isinstance(made, Node) else self.full((), made, dtype)

    def full(self, shape: tuple[int, ...], value: Any, dtype: DType) -> Node:
        """A tensor of one number."""
        return self.op("full", shape=tuple(shape), fill_value=value, dtype=str(dtype))

    def pointwise(self, name: str, *values: Operand, dtype: DType | None = None) -> Node:
        """A pointwise operation, computed in ``dtype`` (by default the promoted one), as the result's dtype."""
        common = self.promoted(*values) if dtype is None else dtype
        cast = [self.cast(value, common) for value in values]
        if not any(isinstance(value, Node) for value in cast):
            cast[0] = self.node(cast[0], common)
        return self.result(self.op(name, *cast))

    def ordered_as(self, node: Node, fake: torch.Tensor) -> Node:
        """A node in the memory order of PyTorch's result, where that is dense."""
        wanted = type_of_tensor(fake)
        if same_strides(node.tensor, wanted) or not wanted.layout.dense:
            return node
        return self.op("ordered", node, axes=wanted.layout.order)

    def result(self, node: Node) -> Node:
        """A node as the expected dtype, broadcast to the expected shape."""
        found = self.cast(node, self.dtype)
        assert isinstance(found, Node)
        if found.tensor.shape != self.shape:
            found = self.op("broadcast_to", found, shape=self.shape)
        return found


def sizes(x: Node) -> tuple[int, ...]:
    """The sizes of the axes, all of which are numbers here."""
    return cast("tuple[int, ...]", x.tensor.shape)


def floating(b: Builder) -> DType:
    """The dtype of the result, which must be a real float."""
    if kind_of(b.dtype) != "f":
        raise NoLowering("not a real float")
    return b.dtype


def computing(b: Builder) -> DType:
    """The dtype in which a formula of several steps is computed: float32 for half precision, as PyTorch does."""
    return FLOAT32 if floating(b) == FLOAT16 else b.dtype


__all__ = ["BOOL", "LOWERINGS", "Builder", "Lowered", "NoLowering", "computing", "floating", "lowering", "sizes"]
