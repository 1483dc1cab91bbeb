"""What NumPy computes faster is left to it, unless it would cost more elsewhere."""

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm import compile_graph, native, supports
from tcompile.backends.llvm.kernels import choice
from tests.backends.llvm_cases import graph_of


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """A processor with AVX-512, and two threads."""
    monkeypatch.setattr(native, "has_symbol", lambda name: True)
    monkeypatch.setattr(native, "num_threads", lambda: 2)


def left(build, size, dtype):
    graph = graph_of(build, np.ones(size, dtype))
    return {node.op.name for node in choice.left_to_numpy(graph, supports)}


def test_by_size_and_dtype():
    for size, found in ((100, set()), (10_000, {"tanh"}), (5_000_000, set())):
        assert left(lambda op, x: op("tanh", x), size, "float32") == found
    assert left(lambda op, x: op("sin", x), 10_000, "float64") == set()


def test_neighbours_in_a_kernel_count():
    def chain(op, x):
        return op("add", op("tanh", op("multiply", x, 2.0)), 1.0)

    assert left(chain, 10_000, "float32") == set()
    assert left(lambda op, x: op("add", op("pow", op("multiply", x, 2.0), 1.7), 1.0), 10_000, "float64") == {"pow"}


def test_powers_of_a_few_operations_are_never_left():
    assert left(lambda op, x: op("pow", x, 1.5), 10_000, "float64") == set()


def test_no_choice_without_such_a_processor(monkeypatch):
    monkeypatch.setattr(native, "has_symbol", lambda name: False)
    assert left(lambda op, x: op("pow", x, 1.7), 10_000, "float64") == set()


def test_fewer_are_left_without_avx512(monkeypatch):
    monkeypatch.setattr(native, "has_symbol", lambda name: name.startswith("_ZGVd"))
    assert left(lambda op, x: op("tanh", x), 10_000, "float32") == set()
    assert left(lambda op, x: op("nextafter", x, 1.0), 10_000, "float32") == {"nextafter"}


def test_any_and_all_of_what_is_in_memory_stop_early():
    def either(op, x):
        return op("any", x, axis=(0,), keepdims=False)

    assert left(either, 1_000_000, "bool") == {"any"}
    assert left(either, 1000, "bool") == set()
    assert left(lambda op, x: either(op, op("greater", x, 0.0)), 1_000_000, "float64") == set()
    x = np.zeros(100_000, bool)
    for value in (False, True):
        x[-1] = value
        got = compile_graph(graph_of(either, x))(x)[0]
        assert got == value and np.asarray(got).dtype == bool and np.ndim(got) == 0


def test_the_result_is_numpys():
    x = np.linspace(0.1, 5, 4096)
    graph = graph_of(lambda op, x: op("pow", x, 1.7), x)
    np.testing.assert_array_equal(compile_graph(graph)(x)[0], x**1.7)


def test_a_number_beside_a_loop_over_elements_is_no_kernel():
    def mean(a, n):
        total = np.float64(0)
        for i in range(len(a)):
            total += a[i]
        return total / n

    def scaled(a, n):
        total = np.float64(0)
        for i in range(len(a)):
            total += a[i]
        return a / total

    x = np.arange(1.0, 1001.0)
    for function, kernels in ((mean, 1), (scaled, 2)):
        compiled = tcompile.compile(function)
        np.testing.assert_array_equal(compiled(x, 4.0), function(x, 4.0))
        assert len(compiled.entries[0].kernels) == kernels
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in scalar divide"):
        assert tcompile.compile(mean)(x, 0.0) == np.inf
