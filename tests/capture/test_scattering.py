"""Functions that write to places which arrays name."""

from __future__ import annotations

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm import compile_graph
from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tests.differential import Run, assert_same_run, check

LAYOUTS = {
    "c": lambda x: x, "fortran": np.asfortranarray, "cut": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "i4": lambda x: x.astype("i4"), "f4": lambda x: x.astype("f4"),
}  # fmt: skip


def arguments(layout="c"):
    return LAYOUTS[layout](np.arange(24.0).reshape(4, 6)), np.array([3, 0, -1, 3]), np.arange(4) * 2


def at(x, i, v):
    np.add.at(x, i, 1)
    np.add.at(x, (i, i), v)
    np.multiply.at(x, (slice(None), i), 2)
    np.subtract.at(x[1:], ([0, 0, 1], 2), [1, 2, 3])
    np.maximum.at(x, (0, i), v)
    np.add.at(v, 1, 5)


def diagonals(x, i, v):
    np.fill_diagonal(x, 7)
    np.fill_diagonal(x.T, v[1])


def along_axes(x, i, v):
    np.put_along_axis(x, np.argmax(x, axis=0, keepdims=True), -1, 0)
    np.put_along_axis(x, i[:, None], v[:, None], axis=1)


def under_masks(x, i, v):
    np.place(x, x > 20, 3)
    np.putmask(x, x < 3, 9)
    np.putmask(x, x > 5, x[::-1])
    np.place(v, v > 2, [8])


def partitions(x, i, v):
    x[0].partition(0)
    return x


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", [at, diagonals, along_axes, under_masks], ids=lambda f: f.__name__)
def test_functions(f, layout):
    compiled = check(f, lambda: arguments(layout))[-1]
    assert not compiled.breaks, [(str(b), b.detail) for b in compiled.breaks]


def test_put():
    def f(x, i, v):
        np.put(x, i, v)
        x.put([0, 1], 5)
        np.put(x, 7, v[1])

    assert not check(f, arguments)[-1].breaks
    check(f, lambda: arguments("fortran"))
    check(lambda x, i, v: np.put(x, i, [1, 2]), arguments)
    check(lambda x, i, v: np.put(x, i, v, mode="wrap"), arguments)
    check(lambda x, i, v: np.put(x, 100, v), arguments)


def test_partition():
    check(partitions, lambda: (np.array([[3.0, 1.0, 2.0]]), None, None))


def test_nan_to_num_in_place():
    def f(x):
        y = np.nan_to_num(x, copy=False, nan=5.0)
        return y is x, np.nan_to_num(x[0], copy=False)

    compiled = check(f, lambda: (np.array([[1.0, np.nan], [np.inf, 2.0]]),))[-1]
    assert not compiled.breaks


REFUSED = {
    "out of range": lambda x, i, v: np.add.at(x, i + 10, 1),
    "casting": lambda x, i, v: np.add.at(v, i, 1.5),
    "all of it": lambda x, i, v: np.add.at(x, ..., 1),
    "a slice of it": lambda x, i, v: np.add.at(v, slice(2), 1),
    "its only element": lambda x, i, v: np.add.at(x[0, 0, ...], (), 1),
    "too many values": lambda x, i, v: np.add.at(x, i, np.ones((1, 1, 4, 6))),
    "unary": lambda x, i, v: np.negative.at(x, i),
    "mask": lambda x, i, v: np.add.at(x, x > 3, 1),
    "several values": lambda x, i, v: np.place(x, x > 3, [1, 2]),
    "values in turn": lambda x, i, v: np.putmask(x, x > 3, [1, 2]),
    "integers": lambda x, i, v: np.putmask(v, v > 3, 1.5),
    "wrapped": lambda x, i, v: np.fill_diagonal(x.T, 3, wrap=True),
    "diagonal of a row": lambda x, i, v: np.fill_diagonal(v, 3),
    "many on a diagonal": lambda x, i, v: np.fill_diagonal(x, v),
}


@pytest.mark.parametrize("name", REFUSED)
def test_others_are_plain_pythons(name):
    def f(x, i, v):
        x += 1
        REFUSED[name](x, i, v)
        return x * 2

    check(f, arguments)


def test_a_scatter_overwrites_dead_elements():
    graph = Graph("scatter")
    x = graph.input("x", TensorType(np.dtype("float64"), (5,)))
    i = graph.input("i", TensorType(np.dtype("int64"), (2,)))
    zero = apply(graph, "full", shape=(), fill_value=0.0, dtype="float64")
    first = apply(graph, "scatter", apply(graph, "add", x, 1.0), zero, i, axes=(0,), path=())
    again = apply(graph, "combine", first, 2.0, i, axes=(0,), path=(), ufunc="add")
    graph.outputs = [again, apply(graph, "combine", x, 2.0, i, axes=(0,), path=(), ufunc="add")]
    compiled = compile_graph(graph)
    assert compiled.source.count("numpy_") == 0 and compiled.source.count("copy(") == 1
    array = np.arange(5.0)
    one, two = compiled(array, np.array([1, 1]))
    np.testing.assert_array_equal(array, np.arange(5.0))
    np.testing.assert_array_equal(one, [1, 4, 3, 4, 5])
    np.testing.assert_array_equal(two, [0, 5, 2, 3, 4])


def test_what_is_needed_is_not_written_over():
    def f(x, i, v):
        y = x + 1
        z = y[1:]
        old = y.copy()
        y[i] = 0
        w = y * 2
        y[:, 0] = 7
        np.add.at(y, (i, i), y[0, :4])
        y[i] = y[::-1][i]
        return old, y, z, w

    assert not check(f, arguments)[-1].breaks


def stored_at(h, b, v):
    h[b[0] % 3] = v[0]
    h[b[1],] = v[1] * 2
    h[b[2]] *= -v[1]
    h.reshape(2, 4)[b[1], b[1]] = v[2]
    return h.sum()


def stored_at_arrays(h, b, v):
    h[np.array(1)] = v[0]
    h[b[:2]] = v[1]
    h[np.array([b[1]])] = v[2]
    return h.sum()


def stored_in_rows(h, b, v):
    m = h.reshape(4, 2)
    m[b[1]] = v[0]
    m[:, b.argmax()] = v[1]
    m[b[1:2]] = v[1] * 3
    m[b[2], 1:] = v.sum()
    return h.sum()


@pytest.mark.parametrize("f", [stored_at, stored_at_arrays, stored_in_rows])
@pytest.mark.parametrize("dtype", ["i1", "i2", "u1", "u4", "i8", "u8", "f4", "?"])
def test_an_int_that_does_not_fit_where_no_array_names_the_elements(dtype, f):
    """NumPy makes a Python int of a scalar there, and raises, also where a row is named; what goes to elements that an
    array names is cast.
    """
    tcompile.reset()
    compiled = tcompile.compile(f, backend="llvm")
    for values in ([1, 2, 3], [186624, 1, 1], [1, -40000, 1], [1, 1, 1 << 40], [-1, -1, -1], [127, 63, 255]):

        def args():
            return np.arange(1, 9).astype(dtype), np.array([4, 1, 2]), np.array(values)

        with np.errstate(all="ignore"):
            assert_same_run(Run(compiled, args()), Run(f, args()))


SINGLE = ("b[0]", "int(b[0])", "np.array(2)", "b.argmax()", "(b[0],)", "(b[0], ...)", "(..., b[0])", "b[0] + 1")
SEQUENCES = ("y[:1]", "[9]", "[[9]]", "(5,)", "y[:1].reshape(1, 1)", "y[0]", "[y[0]]", "b[:1]", "np.array(5)", "b[0]")


@pytest.mark.parametrize("key", SINGLE)
def test_elements_take_no_sequences(key):
    for value in SEQUENCES:
        for sign in ("=", "+="):
            names = {"np": np}
            exec(f"def f(y, b):\n    y[{key}] {sign} {value}\n    return y\n", names)
            check(names["f"], lambda: (np.arange(6.0), np.array([1, 2, 3])), backends=("eager", "llvm"))


def test_ints_beyond_what_a_dtype_holds():
    """NumPy raises, or stores an infinity and warns."""

    def item(x):
        x[0] = 10**40

    def filled(x, n=10**300):
        x.fill(n)

    def masked(x):
        x[x > 0] = 2**70

    for f in (item, filled, masked):
        for dtype in ("float64", "float32", "float16", "complex64", "int64", "int8"):
            check(f, lambda dtype=dtype: (np.ones(3, dtype),))
