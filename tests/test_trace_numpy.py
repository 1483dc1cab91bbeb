"""``config.trace_numpy = False``: nothing of NumPy is captured, and answers are plain Python's."""

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile.errors import InvalidType, Unsupported

X = np.linspace(-2.0, 3.0, 7)


def whole(x):
    return np.sqrt(np.abs(x)) + x.sum()


def methods(x):
    return x.reshape(-1, 1).T.astype("f4").mean(axis=0) * 2


def writes(x):
    y = x.copy()
    y[1:-1] += 1
    y[y > 1] = 0
    return y, y.base is None


def loops(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * i
    return total


def breaks(x):
    y = helper(x) * 2
    print("half way", end="")
    return helper(y), [row + 1 for row in y]


def helper(x):
    return np.sqrt(x + 9) - 1


def raises(x):
    try:
        return x[100]
    except IndexError as error:
        return str(error), np.float64(3) / x.size


def numbers(x):
    total = 0
    for i in range(1000):
        total += i * i
    return total


def generates(x):
    return np.random.default_rng(3).normal(size=3) + x[:3]


FUNCTIONS = [whole, methods, writes, loops, breaks, raises, numbers, generates]


@pytest.fixture(autouse=True)
def _off():
    with tcompile.config.patch(trace_numpy=False):
        yield


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("stressed", [False, True])
def test_nothing_is_captured_and_answers_are_right(function, stressed, capsys):
    compiled = tcompile.compile(function)
    with tcompile.config.patch(stress_capture=stressed):
        for x in (X, X[::2], X.astype("f4"), np.arange(5)):
            for _ in range(4):
                assert_same(compiled(x), function(x))
                printed = capsys.readouterr().out
                assert printed in ("", "half wayhalf way")
    assert not [graph for graph in compiled.graphs if graph.nodes]


@pytest.mark.parametrize("function", [whole, loops, breaks], ids=lambda f: f.__name__)
def test_a_change_counts_at_once(function):
    compiled = tcompile.compile(function)

    def graphs():
        for _ in range(3):
            assert_same(compiled(X), function(X))
        return [graph for graph in compiled.graphs if graph.nodes]

    assert not graphs()
    tcompile.config.trace_numpy = True
    assert graphs()
    tcompile.config.trace_numpy = True  # no change: nothing is forgotten
    assert compiled.entries
    tcompile.config.trace_numpy = False
    assert not graphs()
    del tcompile.config.trace_numpy
    assert graphs()


def test_it_is_told_and_checked():
    out = tcompile.explain(whole)(X)
    assert out.graph_count == 0 and "config.trace_numpy" in str(out.fell_back)
    with pytest.raises(Unsupported, match="trace_numpy"):
        tcompile.compile(whole, fullgraph=True)(X)
    with pytest.raises(InvalidType):
        tcompile.config.trace_numpy = 1


def test_cells():
    space = {"np": np, "x": X}
    tcompile.api.run_cell(compile("y = np.sin(x) + 1\nz = y.sum()", "<a cell>", "exec"), space)
    assert_same(space["z"], (np.sin(X) + 1).sum())
