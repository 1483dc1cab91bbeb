"""Functions with hundreds of steps, each of the one before: no stage goes down them step by step on Python's stack."""

import sys

import numpy as np
import pytest
from differential import Run, assert_same_run

import tcompile

LINES = {
    "operations": ("x = x * 0.999 + 1", 500),
    "views": ("x = x[::-1]", 900),
    "turned views": ("x = x.T[::-1]", 600),
    "views inside of views": ("x = np.flip(x, 0)[None][0]", 350),
    "reshapes": ("x = x.reshape(-1)[::-1].reshape(s)", 120),
    "Python's floats": ("k = k * 0.5 + 1; x = x + k", 300),
    "writes": ("x[0] += 1", 150),
    "reductions": ("x = x - x.max() * 0.5", 120),
    "gathers": ("x = x[np.arange(len(x))[::-1]] * 0.5", 120),
    "products": ("x = x @ x * 0.1", 120),
    "stored and computed again": ("y = x + 1; x = y * x * 0.5", 300),
}


@pytest.mark.parametrize("case", LINES)
def test_long_functions(case):
    line, count = LINES[case]
    names = {"np": np}
    source = "def f(x, k=1.0):\n    x = x.copy(); s = x.shape\n" + f"    {line}\n" * count + "    return x, k\n"
    exec(source, names)
    tcompile.reset()
    compiled = tcompile.compile(names["f"])
    args = (np.arange(16.0).reshape(4, 4) / 16,)
    with tcompile.config.patch(verify=True):
        for _ in range(2):
            assert_same_run(Run(compiled, args), Run(names["f"], args), ulp=1e4)
    assert compiled.graphs


def test_a_graph_too_deep_for_pythons_stack_is_left_to_python(monkeypatch):
    """And that is known from then on, where the caller has left enough of the stack."""

    def deep(*_):
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr("tcompile.transforms.run", deep)
    tcompile.reset()
    compiled = tcompile.compile(lambda x: x * 2 + 1)
    with pytest.warns(UserWarning, match="RecursionError"):
        assert compiled(np.ones(2)).tolist() == [3, 3]
    assert len(compiled.entries) == 1
    assert compiled(np.ones(2)).tolist() == [3, 3]
    assert len(compiled.entries) == 1

    other = tcompile.compile(lambda x: x * 3)

    def below(depth):
        return below(depth - 1) if depth else other(np.ones(2))

    assert below(sys.getrecursionlimit() // 2).tolist() == [3, 3]
    assert not other.entries
