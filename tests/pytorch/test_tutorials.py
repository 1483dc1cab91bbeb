"""What PyTorch's tutorials on ``torch.compile`` and its stances show, with tcompile in its place.

Input: functions of tensors like those of the tutorials.
Output: values, graph counts, breaks and errors.
Why: people come from these pages, and try what they know.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tcompile
from tcompile.errors import RecompileError, StanceError, Unsupported

ZEROS = torch.zeros(3)


def _stage(x: Any) -> Any:
    return x + 1 if torch.compiler.is_compiling() else x - 1


def test_stances_as_decorator_block_and_call() -> None:
    stage = tcompile.compile(_stage)
    assert stage(ZEROS)[0] == 1

    @tcompile.set_stance("force_eager")
    def plainly(x: Any) -> Any:
        return stage(x)

    assert plainly(ZEROS)[0] == -1
    with tcompile.set_stance("force_eager"):
        assert stage(ZEROS)[0] == -1
    tcompile.set_stance("force_eager")
    try:
        assert stage(ZEROS)[0] == -1
    finally:
        tcompile.set_stance("default")
    assert stage(ZEROS)[0] == 1


def test_a_stance_is_not_set_in_a_compiled_function() -> None:
    @tcompile.compile
    def block(x: Any) -> Any:
        with tcompile.set_stance("force_eager"):
            return x + 1

    @tcompile.set_stance("force_eager")
    def inner(x: Any) -> Any:
        return x + 1

    @tcompile.compile
    def outer(x: Any) -> Any:
        return inner(x)

    for function in (block, outer):
        with pytest.raises(StanceError):
            function(ZEROS)


def test_stances_on_recompiles() -> None:
    relu = tcompile.compile(lambda x: torch.relu(x))
    relu(torch.randn(3))
    with tcompile.set_stance("fail_on_recompile"):
        relu(torch.randn(3))
        with pytest.raises(RecompileError):
            relu(torch.randn(4))
    stage = tcompile.compile(_stage)
    assert stage(ZEROS)[0] == 1
    with tcompile.set_stance("eager_on_recompile"):
        assert [float(stage(torch.zeros(n))[0]) for n in (3, 4, 3)] == [1, -1, 1]


def test_nested_functions_are_one_graph() -> None:
    def inner(x: Any) -> Any:
        return torch.sin(x)

    @tcompile.compile
    def outer(x: Any, y: Any) -> Any:
        return inner(x) + torch.cos(y)

    x, y = torch.randn(3, 3), torch.randn(3, 3)
    torch.testing.assert_close(outer(x, y), torch.sin(x) + torch.cos(y))
    assert len(outer.graphs) == 1 and "sin" in outer.graphs[0].readable()


def test_the_parameters_of_a_module_have_their_names() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.lin(x))

    layer, x = Layer(), torch.randn(3, 3)
    torch.testing.assert_close(tcompile.compile(layer)(x), layer(x))
    (graph,) = tcompile.compile(Layer.forward).graphs
    assert [node.name for node in graph.inputs] == ["x", "self_lin_weight", "self_lin_bias"]


def test_branches_on_python_values_and_on_elements() -> None:
    def by_number(x: Any, y: Any) -> Any:
        return x if y > 0 else -x

    compiled = tcompile.compile(by_number)
    for y in (1, -1, 1):
        torch.testing.assert_close(compiled(ZEROS + 2, y), by_number(ZEROS + 2, y))

    def by_elements(a: Any, b: Any) -> Any:
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    compiled = tcompile.compile(by_elements)
    ones, others = torch.ones(10), torch.ones(10)
    for b in (others, -others, others):
        torch.testing.assert_close(compiled(ones, b), by_elements(ones, b))
    assert len(compiled.graphs) == 3  # before the branch, and on either side of it
    with pytest.raises(Unsupported, match="branch depends"):
        tcompile.compile(by_elements, fullgraph=True)(ones, ones)


def test_other_libraries_in_the_middle() -> None:
    def mixed(x: Any) -> Any:
        x = x * 2
        x = torch.from_numpy(np.fft.fft(x.numpy()).real.copy())
        return x + 1

    x = torch.randn(5)
    torch.testing.assert_close(tcompile.compile(mixed)(x), mixed(x))


def test_a_branch_that_is_one_operation() -> None:
    def choose(a: Any, b: Any) -> Any:
        x = a / (torch.abs(a) + 1)
        return x * torch.where(b.sum() < 0, -b, b)

    ones = torch.ones(10)
    compiled = tcompile.compile(choose, fullgraph=True)
    for b in (ones, -ones):
        torch.testing.assert_close(compiled(ones, b), choose(ones, b))
