"""``vmap`` beside a loop over the examples: each operation, trees, axes, loops, effects, bad input."""

from __future__ import annotations

import collections
import warnings

import numpy as np
import pytest

import tcompile
from tcompile.errors import InvalidArgument, InvalidType
from tcompile.graph import ops
from tcompile.graph.op import OPS
from tcompile.transforms.batching import EACH, RULES

from .test_rules import CASES

N = 5


def examples(arg, seed):
    """``N`` arrays like ``arg``, the first of which it is."""
    random = np.random.default_rng(seed)
    return np.stack([arg, *(arg * random.uniform(0.8, 1.2, np.shape(arg)) for _ in range(N - 1))])


def one_by_one(function, args, axes):
    """The results of a plain loop."""
    taken = [np.moveaxis(arg, axis, 0) if axis is not None else [arg] * N for arg, axis in zip(args, axes, strict=True)]
    return np.stack([function(*given) for given in zip(*taken, strict=True)])


def compare(function, *args, axes=None, exact=False):
    axes = axes or (0,) * len(args)
    want = one_by_one(function, args, axes)
    got = tcompile.vmap(function, axes)(*args)
    assert got.dtype == want.dtype and got.shape == want.shape and got.flags.c_contiguous and got.flags.writeable
    if exact:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype == np.float32 else 1e-12, atol=1e-12)


def compiled_whole(function):
    """Whether a function was captured as a whole."""
    (entry,) = function.entries
    return "graph break" not in str(entry)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["llvm", "eager", "plain"])
def test_each_operation(name, backend):
    function, *args = CASES[name]
    batches = [examples(arg, seed) for seed, arg in enumerate(args)]
    if backend == "plain":
        with tcompile.set_stance("force_eager"):
            compare(function, *batches, exact=True)
        return
    with tcompile.set_stance("default", force_backend=backend):
        compare(function, *batches)
        for alone in range(len(args)) if len(args) > 1 else ():
            given = [batch if i == alone else arg for i, (arg, batch) in enumerate(zip(args, batches, strict=True))]
            compare(function, *given, axes=tuple(0 if i == alone else None for i in range(len(args))))


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_each_operation(name):
    """Gradients of one example, for all examples, and gradients through all examples."""
    function, *args = CASES[name]
    batches = [examples(arg, seed) for seed, arg in enumerate(args)]
    numbers = tuple(range(len(args)))

    def total(*given):
        return np.sum(np.sin(function(*given)))

    gradient = tcompile.grad(total, numbers)
    want = [
        np.stack(column) for column in zip(*(gradient(*given) for given in zip(*batches, strict=True)), strict=True)
    ]
    inside = tcompile.vmap(gradient)(*batches)
    around = tcompile.grad(lambda *given: np.sum(tcompile.vmap(total)(*given)), numbers)(*batches)
    for found in (inside, around):
        for one, expected in zip(found, want, strict=True):
            np.testing.assert_allclose(one, expected, rtol=1e-9, atol=1e-9)


def test_every_operation_has_a_rule_or_a_reason():
    handled = {*RULES, *EACH, ops.GET, ops.FORI_LOOP}
    assert [op.name for op in OPS.values() if op not in handled] == []
    assert [op.name for op in RULES if op in EACH] == []


# -- arguments and results ---------------------------------------------------------------------------------------------
X = np.random.default_rng(0).standard_normal((N, 4))
M = np.random.default_rng(1).standard_normal((N, 4, 3))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_axes_of_arguments_and_results(axis):
    moved = np.moveaxis(M, 0, axis)
    got = tcompile.vmap(lambda m: m * 2 + m[::-1], axis, axis)(moved)
    np.testing.assert_array_equal(got, np.moveaxis(M * 2 + M[:, ::-1], 0, axis))
    assert got.flags.c_contiguous


def test_results_share_no_memory():
    first, second, third = tcompile.vmap(lambda x: (lambda y: (y, y, y[::-1]))(x * 2))(X)
    first[:] = 9
    np.testing.assert_array_equal(second, 2 * X)
    np.testing.assert_array_equal(third, 2 * X[:, ::-1])


def test_arguments_by_name_have_the_axis_0():
    square = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(tcompile.vmap(lambda x: x * 2, 1)(x=square), square * 2)
    np.testing.assert_array_equal(tcompile.vmap(lambda x: x * 2, 1)(square), square.T * 2)
    np.testing.assert_array_equal(tcompile.vmap(lambda x, y: x * y, (1,))(square, y=square), square.T * square)
    np.testing.assert_array_equal(tcompile.vmap(lambda x, n=3: x * n)(square), square * 3)


Pair = collections.namedtuple("Pair", "first second")


@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_trees(stance):
    def function(p, shared, *, scale):
        total = p["w"] @ p["b"][0] + shared
        return {"total": total * scale, "pair": Pair(p["w"] + 1, (total, 3))}

    data = {"w": X, "b": [X * 2]}
    with tcompile.set_stance(stance):
        got = tcompile.vmap(function, (0, None))(data, 0.5, scale=np.arange(5.0))
        other = tcompile.vmap(function, ({"w": 0, "b": [1]}, None), {"total": 0, "pair": 0})(
            {"w": X, "b": [X.T * 2]}, 0.5, scale=np.arange(5.0)
        )
    for found in (got, other):
        assert type(found["pair"]) is Pair
        total = np.sum(X * X * 2, axis=1) + 0.5
        np.testing.assert_allclose(found["total"], total * np.arange(5.0))
        np.testing.assert_array_equal(found["pair"].first, X + 1)
        np.testing.assert_allclose(found["pair"].second[0], total)
        np.testing.assert_array_equal(found["pair"].second[1], np.full(5, 3))


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "bool", "complex128", "uint8"])
def test_dtypes(dtype):
    batch = np.abs(X * 3).astype(dtype)
    compare(lambda x: x + x, batch, exact=True)
    compare(lambda x: x[0] * x[1], batch[:, :2].copy(), exact=True)
    compare(lambda x: np.sum(x), batch)
    compare(lambda x: (x > 0) if dtype != "complex128" else abs(x), batch, exact=True)


def test_numbers_are_scalars_and_integers_overflow_as_they_do():
    batch = np.array([100, 120, 127, 3, 4], np.int8)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        got = tcompile.vmap(lambda x: x + np.int8(20))(batch)
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        want = np.stack([x + np.int8(20) for x in batch])
    np.testing.assert_array_equal(got, want)
    assert {str(w.message) for w in seen} == {str(w.message) for w in expected}
    compare(lambda x: x**2 + (x is not None), np.arange(5.0))


def test_a_result_that_is_the_same_for_all():
    np.testing.assert_array_equal(tcompile.vmap(lambda x: np.arange(3) * 2)(X), np.tile(np.arange(3) * 2, (N, 1)))
    np.testing.assert_array_equal(tcompile.vmap(lambda x: 2.5)(X), np.full(N, 2.5))
    got = tcompile.vmap(lambda x: x)(X)
    assert not np.shares_memory(got, X)
    np.testing.assert_array_equal(got, X)


@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_no_examples(stance):
    with tcompile.set_stance(stance):
        got = tcompile.vmap(lambda x: (x[:2] * 2, np.sum(x)))(np.empty((0, 4), np.float32))
    assert [(part.shape, part.dtype) for part in got] == [((0, 2), np.float32), ((0,), np.float32)]


@pytest.mark.parametrize("size", [1, 2, 5, 7])
def test_chunks(size):
    got = tcompile.vmap(lambda x, y: (np.cumsum(x) + y, x[0]), (0, None), (1, 0), chunk_size=size)(X, 1.0)
    np.testing.assert_allclose(got[0], np.cumsum(X, axis=1).T + 1)
    np.testing.assert_array_equal(got[1], X[:, 0])


def test_nested():
    distances = tcompile.vmap(tcompile.vmap(lambda a, b: np.sum((a - b) ** 2), (None, 0)), (0, None))
    np.testing.assert_allclose(distances(X, X), np.sum((X[:, None] - X) ** 2, axis=-1))
    assert compiled_whole(distances)


def test_inside_of_a_compiled_function():
    @tcompile.compile(fullgraph=True)
    def step(w, batch):
        return w - 0.1 * tcompile.vmap(lambda x: np.tanh(x @ w))(batch).sum()

    np.testing.assert_allclose(step(np.ones(4), X), 1 - 0.1 * np.tanh(X.sum(axis=1)).sum())


def test_a_number_of_examples_that_varies():
    function = tcompile.vmap(lambda x: x / np.sum(x * x))
    for count in (5, 7, 9, 11, 13):
        batch = np.random.default_rng(count).standard_normal((count, 3))
        np.testing.assert_allclose(function(batch), batch / np.sum(batch * batch, axis=1, keepdims=True))
    assert len(function.entries) <= 2


# -- loops, branches, writes -------------------------------------------------------------------------------------------
def relaxed(x):
    x = x.copy()
    for i in range(20):
        x[1:-1] += 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])
        x[i % 4] *= 0.99
    return x


def carried(x, w):
    h = np.zeros(3)
    for _ in range(10):
        h = np.tanh(x @ w + h)
    return h


def halved(x):
    n = 0
    while x > 1:
        x = x / 2
        n += 1
    return x + n


def newton(a):
    x = a
    for _ in range(50):
        step = (x * x - a) / (2 * x)
        x = x - step
        if abs(step) < 1e-12:
            break
    return x


def signed(x):
    if x.sum() > 0:
        return x * 2
    return -x


def clipped(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        if x[i] > 0.3:
            out[i] = 0.3
        elif x[i] < -0.3:
            out[i] = -0.3 * i
        else:
            out[i] = x[i]
    return out


def matrix_of(x):
    out = np.zeros((4, 4))
    for i in range(4):
        for j in range(i):
            out[i, j] = x[i] * x[j]
    return out


@pytest.mark.parametrize(("function", "args", "axes"), [
    (relaxed, (X,), None), (carried, (X, M[0]), (0, None)), (carried, (X[0], M), (None, 0)), (carried, (X, M), None),
    (halved, (np.abs(X[:, 0]) * 100,), None), (newton, (np.abs(X[:, 0]) + 1,), None), (signed, (X,), None),
    (clipped, (X,), None), (matrix_of, (X,), None),
])  # fmt: skip
@pytest.mark.parametrize("backend", ["llvm", "eager"])
def test_loops_and_branches(function, args, axes, backend):
    with tcompile.set_stance("default", force_backend=backend):
        compare(function, *args, axes=axes)


@pytest.mark.parametrize("function", [relaxed, carried, matrix_of])
def test_counted_loops_are_one_graph(function):
    mapped = tcompile.vmap(function, (0, None) if function is carried else 0)
    mapped(*((X, M[0]) if function is carried else (X,)))
    assert compiled_whole(mapped)


# -- effects and errors ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_effects_happen_for_each_example(stance, capsys):
    seen = []

    def function(x):
        print("called", len(seen))
        seen.append(float(x[0]))
        return x * 2

    with tcompile.set_stance(stance):
        np.testing.assert_array_equal(tcompile.vmap(function)(X), X * 2)
    assert seen == X[:, 0].tolist()
    assert capsys.readouterr().out == "".join(f"called {i}\n" for i in range(N))


def test_writes_to_the_argument_reach_it():
    batch = X.copy()

    def function(x):
        x[0] = 7.0
        return x.sum()

    np.testing.assert_allclose(tcompile.vmap(function)(batch), X[:, 1:].sum(axis=1) + 7)
    assert (batch[:, 0] == 7).all()


def test_a_counter_outside():
    count = np.zeros(1)

    def function(x):
        count[0] += 1
        return x * count[0]

    np.testing.assert_array_equal(tcompile.vmap(function)(X), X * np.arange(1.0, N + 1)[:, None])
    assert count[0] == N


def test_draws_differ_between_examples():
    def function(x, random):
        return x + random.standard_normal(4)

    got = tcompile.vmap(function, (0, None))(X, np.random.default_rng(3))
    random = np.random.default_rng(3)
    np.testing.assert_array_equal(got, np.stack([x + random.standard_normal(4) for x in X]))


def test_the_functions_own_exception():
    with pytest.raises(ValueError, match="matmul"):
        tcompile.vmap(lambda x: x @ np.ones((3, 3)))(X)
    with pytest.raises(IndexError):
        tcompile.vmap(lambda x, i: x[i])(X, np.array([0, 1, 9, 0, 0]))
    with pytest.raises(np.linalg.LinAlgError):
        tcompile.vmap(np.linalg.inv)(np.zeros((N, 2, 2)))


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: tcompile.vmap(3), InvalidType, "fun must be callable, got int 3"),
    (lambda: tcompile.vmap(np.sin, 0.5), InvalidType, r"in_axes must hold ints or None, got 0\.5"),
    (lambda: tcompile.vmap(np.sin, 0, None), InvalidType, "out_axes must hold ints, got None"),
    (lambda: tcompile.vmap(np.sin, chunk_size=0), InvalidArgument, "chunk_size must be a positive int or None, got 0"),
    (lambda: tcompile.vmap(np.add)(X, X[:3]), InvalidArgument, "argument 1 has 3 examples .*, and argument 0 has 5"),
    (lambda: tcompile.vmap(np.sin)(3.0), InvalidArgument, r"argument 0 has the shape \(\), and no axis 0"),
    (lambda: tcompile.vmap(np.sin, 2)(X), InvalidArgument, r"argument 0 has the shape \(5, 4\), and no axis 2"),
    (lambda: tcompile.vmap(np.sin, None)(X), InvalidArgument, "no argument has an axis of examples"),
    (lambda: tcompile.vmap(np.add, (0,))(X, X), InvalidArgument, "in_axes has 1 axes, and the call passes 2"),
    (lambda: tcompile.vmap(lambda p: p[0], ((0, 0, 0),))((X, X)), InvalidArgument, "has 2 items, and in_axes 3 axes"),
    (lambda: tcompile.vmap(lambda p: p, ((0, 0),))(X), InvalidArgument, "argument 0 is one array, and in_axes"),
    (lambda: tcompile.vmap(lambda p: p["a"], ({"b": 0},))({"a": X}), InvalidArgument, "argument 0 has the keys"),
    (lambda: tcompile.vmap(lambda a: a, 0, 5)(X), InvalidArgument, "out_axes has 5, and a result has 2 axes"),
])  # fmt: skip
@pytest.mark.parametrize("stance", ["default", "force_eager"])
def test_bad_input(call, error, text, stance):
    with tcompile.set_stance(stance), pytest.raises(error, match=text):
        call()
