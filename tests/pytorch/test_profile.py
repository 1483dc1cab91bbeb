"""``tcompile.profile`` of functions of tensors: a graph is timed as a whole."""

from __future__ import annotations

import numpy as np
import torch

import tcompile


def test_a_graph_of_tensors():
    def f(x):
        y = torch.sin(x) * 2
        print(end="")
        return y.sum()

    found = tcompile.profile(f)(torch.randn(50_000))
    assert sum(line.fused for line in found.lines) > 0
    assert any("torch.sin" in line.text and line.fused for line in found.lines)


def test_tensors_and_arrays():
    def f(x):
        y = np.sort(x) + 1
        return torch.from_numpy(y) * 2

    found = tcompile.profile(f)(np.linspace(0, 1, 20_000))
    assert any("np.sort" in line.text for line in found.lines)
