"""Masks: what is computed under a mask is fused where it goes back, or is reduced; else the mask picks elements."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tcompile
from tcompile.observe.events import FellBack
from tcompile.observe.recorder import Recorder
from tests.differential import check

I = np.array([3, 0, -1, 3])


def sample(dtype="f8", layout="c"):
    x = np.linspace(-2, 3, 24).reshape(4, 6)
    x = (x + 1j * x[::-1]).astype(dtype) if np.dtype(dtype).kind == "c" else (x * 2).astype(dtype)
    return np.asfortranarray(x) if layout == "fortran" else x[:, ::-1] if layout == "reversed" else x


def arguments(dtype="f8", layout="c"):
    x = sample(dtype, layout)
    return x, np.array([True, False, True, False]), np.abs(x.real).astype(dtype) + x.dtype.type(1)


def assigns(x, m, c):
    x[x > 0] = 1
    x[m] = c[0]
    x[m, 0] = 5
    x[m, 1:3] = c[m, 1:3]
    x[~m] = x[1]
    c[c > 3] = 0
    m[m] = False


def updates(x, m, c):
    x[x > 0] *= 2
    x[m] += c[m]
    x[m] = x[m] ** 2 + c[m]
    x[c > 2] -= c[c > 2]
    return x


def through_names(x, m, c):
    w = x[m]
    v = w
    w += 1
    x[m] = v * c[m] - w
    y = x.T
    y[:, m] = 3
    y[y > 3] = -1
    return y


def old_masks(x, m, c):
    w = x[m] * 2
    old = m.copy()
    m[0] = False
    x[0] = 7
    x[old] = 1
    c[m] = 0
    return w.sum()


def picks_functions(x, m, c):
    x[m] = np.where(c[m] > 2, np.minimum(x[m], c[m]), abs(x[m]))
    x[m] = np.clip(-x[m], 0, 2).astype(x.dtype)


@pytest.mark.parametrize("layout", ["c", "fortran", "reversed"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2"])
@pytest.mark.parametrize("f", [assigns, updates, picks_functions], ids=lambda f: f.__name__)
def test_assignments(f, dtype, layout):
    compiled = check(f, lambda: arguments(dtype, layout))[-1]
    assert not compiled.breaks


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_names_and_views(dtype):
    compiled = check(through_names, lambda: arguments(dtype))[-1]
    assert not compiled.breaks
    check(old_masks, lambda: arguments(dtype))


def test_complex_iterations():
    def mandelbrot(z, c, n):
        for _ in range(6):
            m = abs(z) <= 2
            z[m] = z[m] ** 2 + c[m]
            n[m] += 1
        return n

    def plane():
        c = np.linspace(-2, 1, 20) + 1j * np.linspace(-1, 1, 12)[:, None]
        return np.zeros_like(c), c, np.zeros(c.shape, int)

    compiled = check(mandelbrot, plane)[-1]
    assert not compiled.breaks


def columns(x, m, c):
    """Masks after other axes; ``m`` is as long as an axis of x is."""
    x, c = x.T, c.T
    x[:, m] = 1
    x[1:4, m] *= 2
    x[..., m] += c[..., m]
    x[:, m] = c[:, m] ** 2 + x[:, :1]
    x[0, m] = c[0, m]
    x[None, :, m] = -x[None, :, m]
    x[::2, m] = np.arange(3)[:, None]
    return x


def blocks(x, m, c):
    """A mask of two axes between others."""
    a = np.stack([x, c, x * c])[..., None] * np.ones(2, x.dtype)
    a[:, x > 0] = 7
    a[:, x > 0] += c[0, 0]
    a[1:, c > 3, 0] = 5
    a[:, c > 3] = a[:, c > 3] * 2 + np.arange(2).astype(x.dtype)
    a[0, x > 0] = x.dtype.type(1)
    return a


AFTER = {
    "sums": lambda x, m, c: (x.T[:, m].sum(), x.T[:, m].sum(axis=1), c.T[..., m].prod(), c.T[:, m].prod(axis=-1)),
    "means": lambda x, m, c: (x.T[:, m].mean(axis=1), x.T[1:, m].mean(), (x.T[:, m] * c.T[:, m]).std(axis=1)),
    "extrema": lambda x, m, c: (x.T[:, m].max(axis=1), np.min(x.T[:, m]), (x.T[:, m] > 0).any(axis=1)),
    "others": lambda x, m, c: (x.T[:, m], x.T[:, m].shape, len(x.T[:, m]), x.T[:, m].ndim, x.T[:, m].sum(axis=0)),
    "lower": lambda x, m, c: (np.stack([x, c])[:, x > 0].sum(axis=1), np.stack([x, c])[:, x > 0].max()),
    "apart": lambda x, m, c: (np.stack([x, c])[0, :, np.arange(6) > 2], np.stack([x, c])[:, m, :, None].shape),
    "no rows": lambda x, m, c: (x.T[:0, m].mean(axis=1), x.T[:0, m].sum(axis=1), x.T[:, m & ~m].sum(axis=1)),
}


@pytest.mark.parametrize("layout", ["c", "fortran", "reversed"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
@pytest.mark.parametrize("f", [columns, blocks], ids=lambda f: f.__name__)
def test_assignments_after_other_axes(f, dtype, layout):
    compiled = check(f, lambda: arguments(dtype, layout))[-1]
    assert not compiled.breaks


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
@pytest.mark.parametrize("name", AFTER)
def test_reductions_after_other_axes(name, dtype):
    compiled = check(AFTER[name], lambda: arguments(dtype), ulp=16)[-1]
    assert name in ("others", "apart", "no rows") or not compiled.breaks


@pytest.mark.parametrize("key", [":, [True, False]", ":, m", "m, :, m", "0, m", ":, m, 0"])
def test_masks_after_axes_that_do_not_fit(key):
    space = {"np": np}
    exec(f"def f(x, m):\n    x[{key}] = 1\n    return x[{key}]", space)
    check(space["f"], lambda: (np.ones((2, 3, 4)), np.array([True, False, False, True])))


REDUCED = {
    "sum": lambda x, m, c: (x[m].sum(), np.sum(x[x > 0]), x[m].sum(axis=0), (x[m] * c[m]).sum()),
    "prod": lambda x, m, c: (c[m].prod(), np.prod(c[m], axis=0)),
    "mean": lambda x, m, c: (x[m].mean(), np.mean(x[x > 0] + 1), x[m].mean(axis=0)),
    "extrema": lambda x, m, c: (x[m].max(), np.min(x[x > 0]), x[m].min(axis=0), np.amax(x[m])),
    "logic": lambda x, m, c: (x[m].any(), (x[m] > 0).all(), np.all(x[x > 0]), x[m].any(axis=0), x[x > 9e9].any()),
    "spread": lambda x, m, c: (x[m].std(), np.var(x[x > 0]), x[m].var(axis=0), x[m].std(ddof=1)),
    "normalised": lambda x, m, c: (((x[m] - x[m].mean()) / x[m].std()) ** 2).sum(),
    "nothing": lambda x, m, c: (x[x > 255].sum(), x[x > 255].prod(), x[x > 255].all()),
    "sizes": lambda x, m, c: (len(x[m]), x[x > 0].size, x[m].shape, x[m].ndim, x[m].dtype, x[x > 255].size),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "u1", "bool"])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name, dtype):
    if dtype == "bool" and name == "normalised":
        pytest.skip("NumPy does not subtract booleans")
    compiled = check(REDUCED[name], lambda: arguments(dtype), ulp=16)[-1]
    assert not compiled.breaks


@pytest.mark.parametrize("name", ["max", "min", "mean", "std"])
def test_reductions_of_nothing(name):
    def f(x, m):
        x[0] = 1
        return getattr(x[m], name)()

    check(f, lambda: (np.arange(4.0), np.zeros(4, bool)))
    check(f, lambda: (np.arange(4.0), np.ones(4, bool)))


def test_nothing_is_heard_of_the_elements_outside():
    def f(x, y):
        inside = x > 0
        y[inside] = np.log(x[inside]) + 1 / x[inside] + np.sqrt(x[inside] - 0.25) + np.arctanh(x[inside] / 1000)
        y[~inside] = (x[~inside] * 1e300).astype("i8") * 0
        return (np.log(x[inside] + 0) - x[inside]).sum()

    def make():
        x = np.linspace(-5, 5, 40) + 0.3
        x[:4] = np.nan, np.inf, -np.inf, 1e308
        x[1] = -1e308
        return x[4:].copy(), np.zeros(36)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = check(f, make)[-1]
        assert not compiled.breaks

    def g(x, m):
        x[m] = x[m] * 1e300 - 1
        return (1 / x[m]).sum()

    poison = np.array([0.0, 1.0, 1e10, np.nan, np.inf, 3.0])
    compiled = tcompile.compile(g, fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(poison.copy(), np.array([0, 1, 0, 0, 0, 1], bool)) == 1 / 1e300 + 1 / 3e300
    check(g, lambda: (poison.copy(), np.array([1, 1, 1, 1, 1, 1], bool)))


def test_values_of_their_own_count():
    def f(x, v):
        x[x > 0] = v
        return x

    check(f, lambda: (sample(), np.arange(14.0)))
    check(f, lambda: (sample(), np.arange(3.0)))
    check(f, lambda: (sample(), np.ones(1)))
    check(f, lambda: (sample(), np.ones((1, 1))))
    check(lambda x, v: x[x[0] > 0] + v, lambda: (np.arange(9.0).reshape(3, 3), np.arange(3.0)))
    check(lambda x, v: x[x > 0] + [1, 2, 3, 4, 5], lambda: (np.array([-1.0, 1, 2, 3, 4, 5]), 0))
    check(lambda x, v: x[x > 2] + v, lambda: (np.arange(6.0), np.arange(3.0)))


def test_masks_that_do_not_fit():
    check(lambda x, m, c: x[m[:3]].sum(), arguments)
    check(lambda x, m, c: x[:, m].sum(), arguments)
    check(lambda x, m, c: x[m[:, None]].sum(), arguments)
    check(lambda x, m, c: (x[True].sum(), x[m[0]].sum(), x[m.all()]), arguments)
    check(lambda x, m, c: x[[True, False, True, False]].sum(), arguments)


def at_places(x, m, c):
    x[np.where(x > 2)] = 0
    rows = np.flatnonzero(m)
    x[rows] += c[rows]
    x[:, np.nonzero(c[0] > 3)[0]] = 4
    x[rows, 0] = rows * 2
    i, j = np.nonzero(c > 2)
    c[i, j] = c[i, j] ** 2 + j
    return x[(x > 1).nonzero()].sum(), len(rows), i.max(), (rows + 1).sum(), j.dtype


def a_list_beside(x, m, c):
    x[m, [0]] = 5
    c[m, [-1]] = x[m, [1]] * 2
    return x[m, [2]].sum()


@pytest.mark.parametrize("function", [at_places, a_list_beside])
@pytest.mark.parametrize("layout", ["c", "fortran", "reversed"])
def test_places_instead_of_a_mask(function, layout):
    compiled = check(function, lambda: arguments(layout=layout))[-1]
    assert not compiled.breaks


def test_places_in_a_loop():
    def f(x, n):
        for _ in range(n):
            x[np.where(x > 1)] *= 0.5
        return x

    assert not check(f, lambda: (sample(), 9))[-1].breaks


@pytest.mark.parametrize(
    "call",
    [
        lambda x, m, c: np.where(m), lambda x, m, c: np.nonzero(x)[1][0], lambda x, m, c: x[np.flatnonzero(m) + 1],
        lambda x, m, c: x[np.nonzero(x)[::-1]], lambda x, m, c: x[np.nonzero(x)[1] % 4].sum(),
        lambda x, m, c: x[np.nonzero(m[:3])].sum(), lambda x, m, c: x.take(np.flatnonzero(x)),
        lambda x, m, c: c[np.nonzero(m)[0], np.nonzero(~m)[0]].sum(), lambda x, m, c: np.nonzero(x[0, 0]),
        lambda x, m, c: np.where(m, x), lambda x, m, c: [x[i] for i in np.flatnonzero(m)],
        lambda x, m, c: x[np.nonzero(x > 99)].min(), lambda x, m, c: x[np.where(c > 1)[0]].sum(),
        lambda x, m, c: x.__setitem__((m, [0, 1]), 3), lambda x, m, c: x.__setitem__((m, [9]), 3),
        lambda x, m, c: x[m, [[0]]] + 1, lambda x, m, c: x[None][[0], :, m].sum(),
    ],
)  # fmt: skip
def test_places_that_have_to_be_known(call):
    check(call, arguments, backends=["llvm"])


ELSEWHERE = {
    "returned": lambda x, m, c: x[m] * 2,
    "sorted": lambda x, m, c: np.sort(x[x > 0]) + 1,
    "item": lambda x, m, c: x[x > 0][0] + c[0],
    "other mask": lambda x, m, c: x[m] - x[~m],
    "in a list": lambda x, m, c: [x[m], c[m] + 1],
    "median": lambda x, m, c: np.median(x[m]) + 1,
    "both": lambda x, m, c: (x[m].sum(), x[m]),
    "loop": lambda x, m, c: [float(v) for v in x[x > 0]],
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_mask_picks_elements_where_it_has_to(name):
    compiled = check(ELSEWHERE[name], arguments)[-1]
    assert compiled.breaks
    assert compiled.breaks[0].reason.id == "data-dependent-shape"


def test_work_after_a_mask_is_compiled_for_all_counts():
    def f(x, limit):
        y = x[x > limit]
        z = y * 2 + 1
        return z.sum() + len(y), z / 2

    compiled = tcompile.compile(f)
    x = np.random.default_rng(3).normal(size=1000)
    for limit in (0.0, 0.1, 0.2, 0.3, -0.5, 0.6):
        got, want = compiled(x, limit), f(x, limit)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-13)
        np.testing.assert_array_equal(got[1], want[1])
    assert len(compiled.breaks) == 1
    assert len(compiled.entries) <= 5


def test_a_size_that_varies_meets_one_that_does_not():
    def f(x, m, i):
        x[i] = x[i] * 2
        x[m, 1] = 7
        x[(i + 1) % 4] = x[:4][i]
        return x, x[m].sum()

    compiled = tcompile.compile(f)
    for rows, columns in ((4, 6), (5, 6), (7, 9), (4, 8), (4, 9)):
        want, got = (np.arange(rows * columns * 1.0).reshape(rows, columns) for _ in range(2))
        mask = np.arange(rows) % 2 == 0
        with tcompile.config.patch(verify=True):
            assert compiled(got, mask, I)[1] == f(want, mask, I)[1]
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("text", "values"), [("**= -1", [1, 1]), ("/= 0.0", [1.0, 2.0]), ("//= 0", [1, 2])])
def test_what_signals_of_any_element_is_not_asked_of_those_outside(text, values):
    """Where no element is selected NumPy does nothing, and a call that asks has to be made again."""
    space: dict = {}
    exec(f"def f(x):\n    x[x > 2] {text}\n    return x", space)
    compiled = tcompile.compile(space["f"], backend="eager")
    with Recorder() as recorder:
        assert compiled(np.array(values)).tolist() == values
    assert not recorder.of(FellBack)
    check(space["f"], lambda: [np.array(values) * 3])


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("text", [
    "x[x > 0] *= k", "x[x > 0] /= k", "x[x > 0] /= len(x)", "x[0] = (x[x > 0] / k).sum()",
])  # fmt: skip
def test_numbers_that_vary_are_no_reason_to_break(text, dynamic):
    space: dict = {}
    exec(f"def f(x, k):\n    {text}\n    return x", space)
    compiled = tcompile.compile(space["f"], fullgraph=True, dynamic=dynamic)
    for n in (5, 6, 9):
        for k in (n, n / 3):
            x = np.linspace(-1, 2, n)
            np.testing.assert_allclose(compiled(x.copy(), k), space["f"](x.copy(), k), rtol=1e-15)
