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
    assert "fori_loop" in [node.op.name for node in graph.nodes]
    own, inner = entry.kernels
    assert [node.op.name for node in own.computed] == ["add"] and "sin" in [node.op.name for node in inner.computed]
    view = graph.view()
    assert view.kernels == (own.name, inner.name)
    (loop,) = (node for node in view.nodes if node.op == "fori_loop")
    assert {node.kernel for node in loop.inside if node.op in ("sin", "multiply", "add")} == {inner.name}
    assert view.draw_svg.count(f">{inner.name}</text>") == 1 + (own.name == inner.name)
    for kernel in entry.kernels:
        assert kernel.view().ir.startswith("define") and kernel.view().assembly
