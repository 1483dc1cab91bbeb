"""The kernels of a loop's body are among those that are reported."""

import numpy as np

import tcompile


def test_kernels_of_regions_are_reported():
    def f(x):
        for i in range(30):
            x = np.sin(x) * 2 + i
        return x + 1

    compiled = tcompile.compile(f, backend="llvm")
    x = np.ones(3)
    np.testing.assert_allclose(compiled(x), f(x))
    (entry,) = compiled.entries
    (graph,) = compiled.graphs
    assert "fori_loop" in [node.op for node in graph.nodes]
    own, inner = entry.kernels
    assert [node.op for node in own.computed] == ["add"] and "sin" in [node.op for node in inner.computed]
    assert list(graph.view().kernels) == [own.name]  # only these hold nodes that are drawn outside of the loop
    for kernel in entry.kernels:
        assert kernel.view().ir.startswith("define") and kernel.view().assembly
