"""Writes to computed places in Triton kernels: `x[i] = y`, `np.add.at`."""

import numpy as np
import pytest

pytest.importorskip("triton")

import tcompile
from tcompile.backends import triton
from tcompile.backends.replay import Replay
from tcompile.config import config
from tests.backends.fake_cupy import FakeArray
from tests.backends.llvm_cases import graph_of, sample
from tests.backends.triton_cases import check, compile_all, on_interpreter

PLACES = np.random.default_rng(0).integers(-20, 20, 300)


def scatter(*axes):
    return lambda op, x, *others: op("scatter", x, *others, axes=axes, path=())


def one(dtype):
    def build(op, x, i):
        return scatter(0)(op, x, op("full", shape=(), fill_value=True, dtype=np.dtype(dtype)), i)

    return build


def forms(made):
    return [step.node.op.name if step.kernel is None else step.kernel.form for step in made.schedule.steps]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_one_number_goes_to_places(dtype):
    made = check(one(dtype), np.zeros(20, dtype), PLACES, kernels=1)
    assert forms(made) == ["scatter"] and compile_all(made) == 3


def test_an_axis_of_one_element():
    """Its places are all the same, and there are as many pointers as places."""
    made = check(one("float32"), np.zeros(1, "f4"), np.array([0, -1]), kernels=1)
    assert compile_all(made) == 3
    picked = lambda op, x, i: op("add", op("gather", x, i, axes=(0,)), 1.0)
    made = check(picked, np.ones(1), np.array([0, -1]), kernels=1)
    assert compile_all(made) == 3


def test_what_is_written_is_computed_in_the_kernel():
    def build(op, x, i, s):
        return op("scatter", x, op("add", op("sqrt", s), 1.0), op("bitwise_and", i, 7), axes=(0,), path=())

    made = check(build, sample("float64", 20), PLACES, np.array(2.0), ulp=1)
    assert "scatter over 300: scatter" in [kernel.description for kernel in made.kernels]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_go_to_places(axis):
    x = np.zeros((20, 20, 20))
    y = sample("float64", [20, 20])
    check(lambda op, x, y, i: op("scatter", x, y, i, axes=(axis,), path=()), x, y, PLACES[:9], kernels=1)


def test_several_axes():
    x, i, j = np.zeros((20, 21), "f4"), PLACES[:12].reshape(3, 4), PLACES[12:16]
    check(scatter(0, 1), x, np.float32([[5]]), i, j, kernels=1)
    turned = np.zeros((20, 3, 20), "f4").transpose(2, 1, 0)
    check(scatter(0, 2), turned, sample("float32", 3), i, i, kernels=1)


@pytest.mark.parametrize("name", ["add", "maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_whole_numbers_are_combined(name, dtype):
    y = np.random.default_rng(1).integers(0, 2**31 - 1, 300).astype(dtype)

    def build(op, x, y, i):
        return op("combine", x, op("bitwise_right_shift", y, 1), i, axes=(0,), path=(), ufunc=name)

    made = check(build, np.full(20, 2**30, dtype), y, PLACES, kernels=1)
    assert compile_all(made) == 3


def test_a_bare_number_is_combined():
    def build(op, x, i):
        return op("combine", x, 1, i, axes=(0,), path=(), ufunc="add")

    check(build, np.zeros(20, "int64"), PLACES, kernels=1)


def ordered_values(op, x, y, i):
    return op("scatter", x, y, i, axes=(0,), path=())


def sums_of_floats(op, x, y, i):
    return op("combine", x, y, i, axes=(0,), path=(), ufunc="add")


def products(op, x, y, i):
    return op("combine", op("astype", x, dtype=np.dtype("int64")), 3, i, axes=(0,), path=(), ufunc="multiply")


def the_places_themselves(op, x, y, i):
    return op("scatter", op("astype", x, dtype=i.tensor.dtype), i, i, axes=(0,), path=())


@pytest.mark.parametrize("build", [ordered_values, sums_of_floats, products, the_places_themselves])
def test_what_needs_numpys_order_is_numpys(build):
    made = check(build, sample("float64", 20), sample("float64", 300), PLACES)
    assert {"scatter", "combine"} & set(forms(made))


def test_places_out_of_range_are_numpys_to_tell():
    far = np.array([0, 20])
    for build in (one("int64"), lambda op, x, i: op("combine", x, 1, i, axes=(0,), path=(), ufunc="add")):
        x = np.zeros(20, "int64")
        with pytest.raises(Replay):
            on_interpreter(graph_of(build, x, far))(x, far)


def test_no_places():
    check(one("float64"), np.zeros(20), PLACES[:0])
    check(one("float64"), np.zeros(0), PLACES[:0])


def test_writes_to_an_array_that_was_made_here_need_no_copy():
    def build(op, x, i):
        made = op("multiply", x, 2)
        first = op("combine", made, 1, i, axes=(0,), path=(), ufunc="add")
        return op("combine", first, 5, op("bitwise_and", i, 3), axes=(0,), path=(), ufunc="maximum")

    made = check(build, np.arange(20), PLACES, kernels=3)
    assert "copy" not in made.source


def test_an_array_that_is_still_read_is_copied():
    def build(op, x, i):
        made = op("multiply", x, 2)
        written = op("combine", made, 1, i, axes=(0,), path=(), ufunc="add")
        return made, written, op("add", written, made)

    assert "copy" in check(build, np.arange(20), PLACES).source


def test_programs():
    def histogram(x, w):
        found = np.zeros(8, np.int64)
        np.add.at(found, (x * 8).astype(np.int64), w * 2)
        return found, found.sum()

    def marked(x, w):
        x[w % 5] = 0.5
        return x * 2

    with config.patch(triton_interpret=True):
        for function in (histogram, marked):
            one, other = [[np.linspace(0, 0.99, 40), np.arange(40)] for _ in range(2)]
            got, want = tcompile.compile(function, backend="triton")(*one), function(*other)
            for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
                np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(one[0], other[0])


# -- CuPy's arrays, whose order is nobody's --------------------------------------------------------------------


def on_gpu(x):
    return FakeArray(None, host=x)


def apart(x, y, at):
    x[at] = y * 2
    return x + 1


def read_and_written(x, y, at):
    x[at] = x[at] * 2 + y
    return x


def in_a_new_array(x, y, at):
    z = x * 0
    z[at, 1:] = y[:, 1:]
    return z


@pytest.mark.parametrize("function", [apart, read_and_written, in_a_new_array])
def test_cupys_arrays(gpu, monkeypatch, function):
    gpu()
    seen = []
    make = triton._make
    monkeypatch.setattr(triton, "_make", lambda *given: seen.append(make(*given)) or seen[-1])
    x, y, at = sample("float32", (6, 4)), sample("float32", (6, 4)), np.array([3, -1, 0, 2, 4, 1])
    mine, plain = on_gpu(x.copy()), on_gpu(x.copy())
    got = tcompile.compile(function, fullgraph=True)(mine, on_gpu(y), on_gpu(at))
    want = function(plain, on_gpu(y), on_gpu(at))
    np.testing.assert_array_equal(got.host, want.host)
    np.testing.assert_array_equal(mine.host, plain.host)
    assert {step.kind for step in seen[-1].schedule.steps} <= {"kernel", "view"}, seen[-1].source
