# ruff: noqa: E501, F841, RUF043
"""Python numbers: ints that stay fixed or become symbolic, floats that vary, guards that tell kinds and signs apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from differential import Run, assert_same_run, check

import tcompile

from .helpers import X, guards


def same(f, calls, *, entries=None, graphs=None, backend="llvm", **settings):
    """Compares ``f`` plain and compiled on each of ``calls``, each made twice; returns the compiled callable."""
    compiled, warned = tcompile.compile(f, backend=backend, **settings), 0
    for args in calls:
        for _ in range(2):
            got, want = Run(compiled, args), Run(f, args)
            assert_same_run(got, want)
            warned += bool(want.warned)
    assert warned or not any(entry.replays for entry in compiled.entries)
    if entries is not None:
        assert len(compiled.entries) == entries, compiled.recompiles
    return compiled


def arithmetic(a, k):
    return a * k + k - 1.5, k * 2 - 1, (k + 1) / 3, k**2, -k, abs(k), k // 2, k % 3, 2.0 - k, 7 // (k + 0.5)


def test_floats_vary_in_one_graph():
    compiled = same(arithmetic, [(X, k) for k in (0.5, 2.0, -3.25, 1e-300, 0.0)], entries=1, fullgraph=True)
    assert "type(k) is float" in guards(compiled)


def test_special_floats():
    same(arithmetic, [(X, k) for k in (0.5, -0.0, 0.0, math.inf, -math.inf, math.nan)], fullgraph=True)

    def sign(a, k):
        return math.copysign(1.0, k) * a, a * k, k

    same(sign, [(X, k) for k in (0.0, -0.0, 0.0, math.nan, -1.0, math.nan)], fullgraph=True)


def test_floats_are_fixed_where_python_needs_them():
    def f(a, k):
        return f"{k:.2f}", a * k, int(k), round(k, 1), k.is_integer()

    compiled = same(f, [(X, k) for k in (0.5, 2.25, 0.5, -0.0, 0.0)], entries=4, fullgraph=True)
    assert compiled.graphs


def test_floats_that_are_not_to_blame_stay_open():
    def f(a, k):
        print(end="")
        return a * k

    same(f, [(X, k) for k in (0.5, 2.25, 3.0, 4.0)], entries=2)  # around print


def test_powers_of_negative_numbers():
    def f(a, k):
        return a * (-2.0) ** k, (-8.0) ** (1 / 3) if k > 100 else 0

    same(f, [(X, 2.0), (X, 3.0), (X, -1.0)])
    same(lambda a, k: (a + 1, (-2.0) ** k, k**0.5), [(X, 4.0), (X, 2.0), (X, 0.5), (X, -2.0)])


def test_branches_on_numbers():
    def f(a, k, n):
        if k > 1:
            a = a * k
        elif k:
            a = a + n
        return a if n != 3 else -a, k > n, k == n, not k

    calls = [(X, k, n) for k in (0.0, 0.5, 2.0, -1.0) for n in (1, 3)]
    same(f, calls)
    same(f, calls, dynamic=True)
    same(f, calls, dynamic=False)


def test_kinds_of_one():
    def f(a, k):
        return a * k, k, [k], k is True, isinstance(k, bool), isinstance(k, int), k == 1

    same(f, [(X, k) for k in (1, True, 1.0, np.True_, np.int64(1), np.float64(1), 1, True)])


def test_huge_ints():
    def f(a, k):
        return a * float(k % 1000), k + 1, k * k, -k

    for dynamic in (None, True, False):
        same(f, [(X, k) for k in (5, 2**62 - 1, 2**62, 2**63, 2**64 + 1, 10**30, -(2**63), 7)], dynamic=dynamic)
    same(lambda a, k: (a, k), [(X, 10**5000), (X, 3), (X, 10**5000)])
    tcompile.reset()
    same(lambda a, k: a + k, [(X.astype("int64"), k) for k in (2, 3, 2**61, -(2**61))])
    same(lambda a, k: a * (k * k) if k < 1 << 31 else a, [(X, k) for k in (2, 3, 2**30)])


def test_symbolic_ints_beyond_the_dtype():
    def f(a, k):
        return a + k * k

    compiled = tcompile.compile(f, backend="llvm")
    a = np.arange(3)
    for k in (2, 3, 5, 2**31):
        np.testing.assert_array_equal(compiled(a, k), f(a, k))
    for k in (2**40, 2**61):
        with pytest.raises(OverflowError) as plain:
            f(a, k)
        with pytest.raises(OverflowError) as caught:
            compiled(a, k)
        assert str(plain.value) == str(caught.value)


def symbolic(a, n):
    return (
        a * n + (n - 1), np.zeros((n, 2)), np.arange(n), a[:n], a.reshape(n, -1), n // 2 + n % 3, n * n - 1, len(range(n)), (n, [n]),
        {"n": n}, a.sum() / n, np.full(3, n), n > 100, n == 2,
    )  # fmt: skip


def test_ints_become_symbolic_when_they_change():
    a = np.arange(24.0)
    compiled = same(symbolic, [(a, n) for n in (2, 3, 4, 6, 12, 8)], fullgraph=True)
    assert len(compiled.entries) <= 5, compiled.recompiles
    tcompile.reset()
    compiled = same(lambda a, n: a * n + n**2, [(a, n) for n in (2, 3, 4, 6, -5, 0, 1)], entries=2, fullgraph=True)
    assert "type(n) is int" in guards(compiled)


def test_sizes_become_symbolic_when_they_change():
    def f(a, b):
        return (a + b) * a.shape[0], a.sum(axis=0) / len(a), a[:-1], a[1:] - b[:-1], np.concatenate([a, b]), a.size, a.T

    def make(n, m=4):
        return np.arange(n * m * 1.0).reshape(n, m), np.ones((n, m))

    compiled = same(f, [make(n) for n in (3, 5, 8, 1, 2, 0, 9)], fullgraph=True)
    assert len(compiled.entries) <= 5
    tcompile.reset()
    same(f, [make(n, m) for n, m in ((3, 4), (3, 5), (4, 5), (7, 7), (2, 3))], fullgraph=True)
    tcompile.reset()
    same(f, [make(n, m) for n, m in ((3, 4), (5, 5), (4, 3), (1, 6))], dynamic=True, fullgraph=True)
    tcompile.reset()
    assert len(same(f, [make(3), make(5)], dynamic=False, fullgraph=True).entries) == 2


def test_equal_sizes_that_part():
    def f(a, b):
        return a.sum() + b.sum(), a.shape[0] == b.shape[0]

    calls = [(np.ones(n), np.ones(m)) for n, m in ((3, 3), (4, 4), (5, 5), (4, 6), (6, 4), (3, 3))]
    same(f, calls)
    tcompile.reset()
    same(f, calls, dynamic=True)


def test_loops_over_sizes():
    def f(a, n):
        total = 0
        for i in range(n):
            total = total + a[i] * i
        for i in range(len(a)):
            total = total - a[i]
        return total

    same(f, [(np.arange(k * 2.0).reshape(k, 2), n) for k, n in ((3, 2), (4, 3), (5, 5), (3, 1))])


def test_more_kinds_of_argument():
    def f(a, v):
        return a * 2, v, [v]

    calls = [
        (X, v) for v in ("s", b"b", None, True, 3, 2.5, 1j, ..., int, np.float32, np.dtype("f4"), "other", 1j, -1j)
    ]
    for start in range(0, len(calls), 7):
        tcompile.reset()
        same(f, calls[start : start + 7])


def test_complex_numbers():
    def f(a, v):
        return a * v, v.real, v * 2

    compiled = same(f, [(X, v) for v in (1j, 1 + 2j, complex(0.0, -0.0), complex(0.0, 0.0), complex(-0.0, 0))])
    nan = tcompile.compile(lambda a, v: (a, v), backend="eager")
    for _ in range(3):
        nan(X, complex(math.nan, 0))
    assert len(nan.entries) == 1


def test_numpy_scalars():
    def f(a, v):
        return a * v, v + 1, v * v, v, -v if v.dtype != bool else v

    for dtype in ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"):
        tcompile.reset()
        same(f, [(X, np.dtype(dtype).type(v)) for v in (1, 3, 0)])


def test_numpy_ints_that_overflow_warn():
    def f(a, v):
        return a + 1, v + np.int8(100)

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="overflow"):
            f(X, np.int8(100))
        with pytest.warns(RuntimeWarning, match="overflow"):
            compiled(X, np.int8(100))


def test_math_functions():
    def f(a, k):
        return (
            a * math.sqrt(k),
            math.sin(k) + math.pi,
            math.floor(k),
            math.exp(1.0) * a,
            math.hypot(3, 4),
            math.isclose(1.0, 1.0),
        )

    same(f, [(X, 2.0), (X, 4.0), (X, 2)])
    compiled = tcompile.compile(lambda a, k: a * math.sqrt(k), backend="eager")
    np.testing.assert_array_equal(compiled(X, 4.0), X * 2)
    with pytest.raises(ValueError, match="math domain error|nonnegative"):
        compiled(X, -4.0)
    assert len(same(lambda a, k: a * math.sqrt(k), [(X, 2.0), (X, 9.0)], fullgraph=True).entries) == 1


def test_divisions_by_zero_are_python_s():
    def f(a, k):
        return a * (1 / k)

    for make in (float, int):
        tcompile.reset()
        compiled = tcompile.compile(f, backend="eager")
        np.testing.assert_array_equal(compiled(X, make(2)), X * 0.5)
        np.testing.assert_array_equal(compiled(X, make(4)), X * 0.25)
        with pytest.raises(ZeroDivisionError) as caught:
            compiled(X, make(0))
        assert "a * (1 / k)" in "".join(__import__("traceback").format_exception(caught.value))


def test_sums_of_floats():
    def f(a, k):
        return sum([0.1] * 10), sum([k, 1.0, 2]) * a, sum([k, 2, 3], 0.5), sum((1, 2), k)

    same(f, [(X, k) for k in (0.1, 0.3, 2.0)])


def test_functions_without_arrays():
    plain = tcompile.compile(lambda n, s: (n + 1, s * 2, [n] * 3), backend="llvm")
    for n in range(20):
        assert plain(n, "s") == (n + 1, "ss", [n] * 3)
    assert len(plain.entries) == 2  # n as seen, and n symbolic


def test_stress_capture_runs_what_was_captured_without_arrays():
    f = tcompile.compile(lambda n, s: (n + 1, s * 2, [n] * 3), backend="eager")
    with tcompile.config.patch(stress_capture=True):
        assert f(3, "s") == f(3, "s") == (4, "ss", [3] * 3)
    (entry,) = f.entries
    assert entry.graph is not None and entry.guards == ["n == 3", "s == 's'"]


@pytest.mark.parametrize("stance", ["default", "eager_then_compile", "aot_eager_then_compile"])
def test_under_stances(stance):
    with tcompile.set_stance(stance):
        same(arithmetic, [(X, k) for k in (0.5, 2.0, 3)])


def test_fill_values_that_do_not_fit():
    def f(a, k):
        return np.full_like(a, k), np.full(3, k, "uint8")

    for a in (np.arange(3, dtype="uint8"), np.arange(3)):
        same(f, [(a, k) for k in (1, 2, 3, -1, 300)])
        tcompile.reset()


def test_inverting_a_bool_warns():
    same(lambda a, v: (a + 1, ~v), [(X, True), (X, False), (X, 3)])


def test_ranges_of_ints_that_vary():
    def f(a, n):
        found = len(range(n)), len(range(-2, n)), len(range(n, 3)), [0][len(range(n)) :]
        match range(n):
            case [first, *_]:
                return a + first, found
        return a, found

    same(f, [(X.copy(), n) for n in (7, 3, 2, 0, -1, -4)])


def test_a_number_that_doubles_in_each_iteration():
    """Its expression would have 2**40 terms."""

    def f(x, s, n):
        for i in range(n):
            s = s * 0.25 + s
            if i % 3:
                s = s - 0.5 * s
        return x * s

    same(f, [(np.arange(3.0), 1.5, 40), (np.arange(3.0), 2.5, 40)], backend="eager", dynamic=True)


def distance(x, y):
    return math.sqrt(((x - y) ** 2).sum()) * 2


def unit(x):
    norm = math.sqrt(x @ x)
    return x / norm, norm, type(norm) is float


def roots(x):
    single, whole, truth = x.astype("float32"), x.astype("int64"), x > 0
    return math.sqrt(single.sum()), math.sqrt(whole.sum()), math.sqrt(x.max().item()), math.sqrt(truth.any())


def converged(x):
    y, iterations = x * 0, 0
    while math.sqrt(((x - y) ** 2).sum()) > 1e-3:
        y = y + (x - y) * 0.5
        iterations += 1
    return y, iterations


def columns(x):
    q = np.outer(x, x) * 0.1 + np.eye(len(x)) * 4
    for j in range(len(x)):
        for i in range(j):
            q[:, j] -= (q[:, i] @ q[:, j]) * q[:, i]
        q[:, j] /= math.sqrt(q[:, j] @ q[:, j])
    return q


def late(x):
    x[0] = 7.0
    return math.sqrt(x.sum() - 1000) + 1


@pytest.mark.parametrize("function", [unit, roots, converged, columns, late], ids=lambda function: function.__name__)
def test_roots_of_numbers_that_a_graph_computes(function):
    compiled = check(function, lambda: (np.array([0.5, -1.5, 2.0, 3.25]),), ulp=200)
    assert function is roots or not any(made.breaks for made in compiled)


@pytest.mark.parametrize("value", [0.0, -0.0, np.nan, np.inf, -np.inf, -1e-300, 1e-310, 4.0])
def test_the_root_of_any_float_is_pythons(value):
    check(lambda x: math.sqrt(x[0] * 1.0), lambda: (np.array([value, 1.0]),))
    check(lambda x: math.sqrt((x * 1.0).sum()), lambda: (np.array([value]),))
    with np.errstate(all="ignore"):
        check(lambda x: math.sqrt(x.max()), lambda: (np.array([value, value]),))


def test_a_distance_is_one_graph():
    x = np.array([1.0, 2.0, 3.5])
    (*_, compiled) = check(distance, lambda: (x, x[::-1]))
    (graph,) = compiled.graphs
    assert "python_sqrt" in [node.op.name for node in graph.nodes] and not compiled.breaks


def halves(x, k):
    for _ in tcompile.unroll(range(150)):
        k = k // 2 + 1
        x = x + k
    return x


def residues(x, k):
    for _ in tcompile.unroll(range(40)):
        k = k * k % 1000003
        x = x + k
    return x


@pytest.mark.parametrize("function", [halves, residues])
def test_ints_that_are_computed_from_ints_again_and_again(function):
    tcompile.reset()
    compiled = tcompile.compile(function)
    with tcompile.config.patch(verify=True):
        for k in (5, 6, 7, 8, -5):
            assert_same_run(Run(compiled, (np.ones(3), k)), Run(function, (np.ones(3), k)))


def by_group(x, group):
    scales = {k: k * 0.5 for k in range(10)}
    sums = []
    for k in np.unique(group):
        sums.append(x[group == k].sum(axis=0) * scales[int(k)])
    return sums


def test_values_that_are_needed_are_compiled_one_by_one_up_to_a_few():
    """After three of them what needs the value is Python's, and one entry is for all the others."""
    tcompile.reset()
    compiled = tcompile.compile(by_group)
    args = np.arange(60.0).reshape(20, 3), np.arange(20) % 10
    for _ in range(2):
        assert_same_run(Run(compiled, args), Run(by_group, args))
    sums = [entry for entry in compiled.entries if entry.kernels]
    assert len(sums) == 5  # 0, 1, 2 and 3; then all
    assert sums[0].hits > 5
    assert not compiled.breaks[-1].reason.silent


def powers_of_floats(x, p):
    return x * float(f"{p:.1f}")


@pytest.mark.parametrize("fullgraph", [False, True])
def test_floats_that_are_needed_are_fixed_until_the_last_entry(fullgraph):
    tcompile.reset()
    compiled = tcompile.compile(powers_of_floats, fullgraph=fullgraph)
    values = [0.5 + i for i in range(tcompile.config.recompile_limit)]
    for _ in range(2):
        for p in values:
            assert_same_run(Run(compiled, (np.ones(3), p)), Run(powers_of_floats, (np.ones(3), p)))
    if fullgraph:
        assert len(compiled.entries) == len(values)
        return
    for p in (100.5, 101.5, 102.5):
        assert_same_run(Run(compiled, (np.ones(3), p)), Run(powers_of_floats, (np.ones(3), p)))
    assert not compiled.cache.first.limit_warned


@pytest.mark.parametrize("dynamic", [None, True])
def test_ints_that_python_does_not_print(dynamic):
    def f(x, k):
        y = x + 1 if k == 1 << 64000 else x * 2
        for i in range(len(x)):
            if i * k > 1 << 64000:
                y[i] = 0.0
        return y, k % (1 << 64000)

    for k in (3, 4, 5, 1 << 64000):
        check(f, lambda k=k: (np.arange(4.0), k), dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [None, True])
def test_indices_that_python_does_not_print(dynamic):
    def bounds(x, k):
        y = x[: 1 << 64000] * k + x[-(1 << 64000) :]
        x[k - k : 1 << 64000] = k
        return y, x[:: 1 << 64000], x[:: -(1 << 64000)]

    def index(x, k):
        return x[1 << 64000] * k

    for f in (bounds, index):
        check(f, lambda: (np.arange(4.0), 3), dynamic=dynamic)


@pytest.mark.parametrize("function, mild, wild", [(math.sqrt, 1.0, -1.0), (math.log, 2.0, 0.0), (math.exp, 1.0, 1e4)])
def test_errors_of_math_that_nobody_reads(function, mild, wild):
    def f(a, b):
        function(b)
        return a + 1

    def caught(a, b):
        try:
            function(b)
        except (ValueError, OverflowError):
            return a - 1
        return a + 1

    for g in (f, caught):
        compiled = tcompile.compile(g)
        for b in (mild, wild, mild, wild):
            told = []
            for run in (g, compiled):
                try:
                    told.append(run(X, b).tolist())
                except Exception as error:
                    told.append(repr(error))
            assert told[0] == told[1], b
