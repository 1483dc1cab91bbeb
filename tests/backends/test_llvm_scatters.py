"""Writes to computed places in kernels of the llvm backend: `x[i] = y`, `np.add.at`."""

import numpy as np
import pytest

import tcompile
from tcompile.backends.llvm import compile_graph
from tcompile.backends.replay import Replay
from tests import differential
from tests.backends.llvm_cases import check, graph_of, sample

PLACES = np.random.default_rng(0).integers(-20, 20, 300)
ALL = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
COMBINED = {
    "int8": ["add", "subtract", "multiply", "maximum", "minimum", "bitwise_xor"], "uint64": ["add", "minimum"],
    "int64": ["add", "bitwise_and", "bitwise_or"], "float32": ["add", "subtract", "multiply"],
    "float64": ["add", "subtract", "multiply", "divide"],
}  # fmt: skip


def scatter(*axes, path=()):
    return lambda op, x, y, *places: op("scatter", x, y, *places, axes=axes or (0,), path=path)


def combine(name, *axes, path=()):
    return lambda op, x, y, *places: op("combine", x, y, *places, axes=axes or (0,), path=path, ufunc=name)


def numbers(dtype, shape):
    return np.random.default_rng(5).integers(0, 100, shape).astype(dtype)


def is_compiled(made):
    return all(step.kernel is not None or step.kind == "view" for step in made.schedule.steps)


@pytest.mark.parametrize("dtype", ALL)
def test_the_last_value_stays(dtype):
    assert is_compiled(check(scatter(), np.zeros(20, dtype), numbers(dtype, 300), PLACES))
    assert is_compiled(check(scatter(), np.zeros((20, 33), dtype), numbers(dtype, (300, 33)), PLACES))


@pytest.mark.parametrize("dtype, name", [(dtype, name) for dtype, names in COMBINED.items() for name in names])
def test_values_are_combined_one_by_one(dtype, name):
    few = 1 if dtype[0] == "f" else 0  # divided by
    assert is_compiled(check(combine(name), numbers(dtype, 20), numbers(dtype, 300) + few, PLACES))
    assert is_compiled(check(combine(name), numbers(dtype, (20, 21)), numbers(dtype, (300, 21)) + few, PLACES))


@pytest.mark.parametrize("index", ["int8", "int16", "uint8", "uint32", "int64"])
def test_indices_of_any_width(index):
    check(combine("add"), sample("float64", 20), sample("float64", 300), (PLACES % 20).astype(index))


@pytest.mark.parametrize("shape, axes", [((20,), (0,)), ((20, 20), (1,)), ((20, 9, 20), (0, 2)), ((20, 20, 7), (0, 1)),
                                         ((20, 20, 20), (0, 1, 2))])  # fmt: skip
def test_axes(shape, axes):
    x = sample("float64", shape)
    rest = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    for order in (x, np.asfortranarray(x), np.repeat(x, 2, -1)[..., ::2], x[::-1]):
        for values in ((30, *rest), rest, (30, *(1 for _ in rest))):
            places = [np.roll(PLACES, k)[:30] for k in range(len(axes))]
            check(combine("add", *axes), order, sample("float64", values), *places)
            check(scatter(*axes), order, sample("float64", values), *places)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32", "float64"])
def test_a_number_has_a_dtype_of_its_own(dtype):
    number = 0.1 if dtype[0] == "f" else 3
    x = np.full(20, -9).astype(dtype) if dtype[0] != "f" else sample(dtype, 20)
    made = check(lambda op, x, i: combine("add")(op, x, number, i), x, PLACES)
    assert is_compiled(made) == (dtype not in ("uint64", "float32"))


def test_places_of_places():
    two, one = PLACES[:12].reshape(3, 4), PLACES[12:16]
    check(combine("add", 0, 1), sample("float64", (20, 21)), sample("float64", (3, 4)), two, one)
    check(scatter(0), np.zeros(20), sample("float64", ()), np.array(-3))
    check(scatter(0), np.zeros((20, 3)), sample("float64", 3), np.array(7))
    check(combine("add"), np.zeros(20), 2.5, PLACES)


def test_places_that_the_array_itself_names():
    def f(x):
        np.add.at(x, x % 5 + x[::-1] % 7, 2)

    x = np.arange(3, 23)
    differential.check(f, lambda: [x.copy()])
    compiled = tcompile.compile(f)
    compiled(x)
    assert "copy" not in compile_graph(compiled.graphs[0]).source


def test_parts():
    part = (("index", (("key", (slice(1, -1, 2), slice(None))),)), ("permute_dims", (("axes", (1, 0)),)))
    x = sample("float64", (42, 20))
    assert is_compiled(check(combine("add", 0, path=part), x, sample("float64", (300, 20)), PLACES))
    assert is_compiled(check(scatter(1, path=part), x, sample("float64", 20), PLACES))


@pytest.mark.parametrize("turn", [lambda x: x.T, np.asfortranarray, lambda x: x[:, ::2]])
def test_what_numpy_walks_in_another_order_is_its_own(turn):
    places, values = turn(PLACES.reshape(15, 20)), turn(sample("float64", (15, 20)))
    assert not is_compiled(check(scatter(), np.zeros(20), values, places))
    assert not is_compiled(check(combine("add"), np.zeros(20), values, places))
    assert is_compiled(check(combine("add"), np.zeros(20, int), turn(numbers("int64", (15, 20))), places))


@pytest.mark.parametrize("far", [20, -21, 2**62, -(2**63)])
@pytest.mark.parametrize("shape", [(), (40,)])
def test_nothing_is_written_where_a_place_is_out_of_range(far, shape):
    places = np.arange(20)
    places[13] = far
    for build in (scatter(), combine("add")):
        x, y = np.zeros((20, *shape)), np.ones((20, *shape))
        graph = graph_of(build, x, y, places)
        graph.updates = {0: 0}
        made = compile_graph(graph)
        assert "copy" not in made.source
        with pytest.raises(Replay):
            made(x, y, places)
        assert not x.any()
        assert made(x, y, np.arange(20))[0] is x and x.all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name, values", [("add", ["huge", "huge"]), ("add", [np.inf, -np.inf]),
                                          ("subtract", [np.inf, -np.inf])])  # fmt: skip
def test_what_was_there_is_put_back_where_numpy_warns(dtype, name, values):
    values = [np.finfo(dtype).max if v == "huge" else v for v in values]
    for width in ((), (37,)):
        x, y = sample(dtype, (20, *width)), sample(dtype, (300, *width))
        y[[100, 200]] = np.reshape(values, (2, *(1 for _ in width)))
        places = PLACES.copy()
        places[[100, 200]] = 3
        graph, before = graph_of(combine(name), x, y, places), x.copy()
        graph.updates = {0: 0}
        with pytest.raises(Replay):
            compile_graph(graph)(x, y, places)
        np.testing.assert_array_equal(x, before)


def test_nans_are_quiet():
    x, y = sample("float64", 20), sample("float64", 300)
    x[3] = y[7] = np.nan
    assert is_compiled(check(combine("add"), x, y, PLACES))
    assert not is_compiled(check(combine("maximum"), x, y, PLACES))  # but not there


def test_an_array_that_is_still_read_is_copied():
    def build(op, x, y, i):
        made = op("multiply", x, 2.0)
        written = op("combine", made, y, i, axes=(0,), path=(), ufunc="add")
        return made, written, op("add", written, made)

    assert "copy" in check(build, sample("float64", 20), sample("float64", 300), PLACES).source


def test_a_copy_is_not_made_twice():
    def build(op, x, y, i):
        first = op("combine", op("multiply", x, 2.0), y, i, axes=(0,), path=(), ufunc="add")
        return op("combine", first, y, i, axes=(0,), path=(), ufunc="maximum")  # NumPy's, in the same memory

    assert "numpy_combine_into" in check(build, sample("float64", 20), sample("float64", 300), PLACES).source


def test_long_chains_are_looked_at_once():
    def build(op, x, y, i):
        for _ in range(60):  # each node twice an operand of the next one
            y = op("add", y, y)
        return op("scatter", x, y, i, axes=(0,), path=())

    check(build, np.zeros(20, int), np.ones(300, int), PLACES)


def test_what_is_read_from_the_array_itself():
    def build(op, x, i):
        read = op("gather", x, i, axes=(0,))
        return op("combine", op("scatter", x, read, i, axes=(0,), path=()), read, i, axes=(0,), path=(), ufunc="add")

    check(build, sample("float64", 20), PLACES)


# -- programs ----------------------------------------------------------------------------------------------------------


def histogram(x, i, w):
    found = np.zeros(20)
    np.add.at(found, i, w * 2)
    return found


def assembled(x, i, w):
    np.add.at(x, (i, i - 1), w)
    x[i, 3] = 7
    x[2:, ::2][i[:4] % 9] = w[:10]
    return x.sum()


def several_at_once(x, i, w):
    x[i] = 1.0
    w[i] *= 2
    np.subtract.at(x, i, 0.5)


def in_iterations(x, i, w):
    for k in range(5):
        x[i[k:]] += 1
        np.add.at(x, i, w[:, None] * k)


def out_of_range(x, i, w):
    w[:3] = 5
    x[i * 2] = 3
    w[3:] = 6


def overflows(x, i, w):
    np.add.at(x, i, np.where(w > 0, 1.7e308, 0.0)[:, None])
    x[0] = 1


@pytest.mark.parametrize("function", [histogram, assembled, several_at_once, in_iterations, out_of_range, overflows])
def test_programs(function):
    def arguments():
        return np.arange(400.0).reshape(20, 20), PLACES[:40].copy(), sample("float64", 40)

    differential.check(function, arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", ["abs", "hypot", "fmod", "remainder", "sin", "power", "arctan2"])
def test_functions_of_one_value_at_a_time(dtype, name):
    if dtype[0] == "c" and name not in ("abs", "sin", "power"):
        pytest.skip("NumPy's is real")
    function = getattr(np, name)

    def write(i, y):
        x = np.zeros(20, y.real.dtype if name == "abs" else y.dtype)
        x[i] = function(y) if name in ("abs", "sin") else function(y, y[::-1] + 0.5)
        return x

    def arguments():
        y = np.linspace(-3, 3, 9).astype(dtype)
        y[3:7] = 1e-30, 1e30, np.inf, np.nan
        return PLACES[:9].copy(), y

    with np.errstate(all="ignore"):
        differential.check(write, arguments, ulp=4)


@pytest.mark.parametrize("store", [np.subtract.at, lambda x, i, y: x.__setitem__(i, y)])
def test_no_places_after_a_write(store):
    """The write was made, and made again: a kernel without items was an error, for which all ran again in Python."""

    def f(x, i):
        np.negative(x, out=x)
        y = x + 1.0
        store(y, i, 1)
        return y

    compiled = differential.check(f, lambda: (np.arange(8), np.zeros(0, int)), backends=["llvm"])[0]
    assert not any(entry.replays for entry in compiled.entries)


def test_few_places_of_many_are_written_where_they_lie():
    def f(x, i, v):
        x[i] = v

    x = np.zeros(100_000)
    compiled = tcompile.compile(f)
    compiled(x, np.array([3, 5]), np.array([1.0, 2.0]))
    (graph,) = compiled.graphs
    assert compile_graph(graph).schedule.steps[0].onto == {graph.outputs[0]: "base"}
    assert x[3] == 1 and x[5] == 2 and x.sum() == 3
