"""``for`` over a range as one node: everything that Python does in a loop stays what it is."""

from __future__ import annotations

import _thread
import signal
import threading

import numpy as np
import pytest
from differential import assert_same, check

import tcompile

from .loop_cases import N, each, grid, line, ops

# -- loops that become one node ----------------------------------------------------------------------------------------


def jacobi(u, n):
    for _ in range(n):
        un = u.copy()
        u[1:-1, 1:-1] = 0.25 * (un[2:, 1:-1] + un[:-2, 1:-1] + un[1:-1, 2:] + un[1:-1, :-2])
    return u


def jacobi_rebound(u, n):
    for _ in range(n):
        v = u.copy()
        v[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        u = v
    return u


def two_buffers(u, n):
    v = u.copy()
    for _ in range(n):
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        u, v = v, u
    return u, v


def two_buffers_from_outside(u, v, n):
    for _ in range(n):
        v[1:-1] = 0.5 * (u[2:] + u[:-2]) - 0.1
        u, v = v, u
    return u


def three_buffers(u, n):
    a, b = u * 2, u * 3
    for _ in range(n):
        a[1:-1] = 2 * b[1:-1] - a[1:-1] + 0.1 * (b[2:] - 2 * b[1:-1] + b[:-2])
        a, b, u = b, u, a
    return a, b, u


def leapfrog(u, n):
    prev = u
    for _ in range(n):
        new = 0.5 * (u + np.roll(u, 1)) - 0.1 * prev
        prev = u
        u = new
    return u, prev


def counters(x, n):
    t, k, c = 0.0, 3, 10
    for i in range(n):
        x = 0.5 * np.sin(x) + t * 0.1 + i
        t += 0.25
        k += 2
        c -= i - i + 1
    return x, t, k, c, i


def with_start_and_step(x, n):
    for i in range(n, 2, -3):
        x = 0.01 * np.cos(x) * i + 0.5 * np.sin(x) / (i + 1)
    return x, i


def used_after(x, n):
    for i in range(n):
        y = x * 0.5 + i
        x = 0.5 * np.sin(y) + 0.1 * np.cos(y)
        top = y.max()
        j = 2 * i + 1
    return y, top, j, i


def view_used_after(u, n):
    for i in range(n):
        u[1:] = 0.25 * u[:-1] + 0.5 * u[1:] * i * 0.1
        part = u[2:5]
    part[0] = 7
    return part


def scalars(x, n):
    best, mean, flag = 0.0, np.float64(0), False
    for i in range(n):
        x = 0.5 * np.sin(x) + 0.1 * mean
        mean = x.mean()
        best = float(x.sum() > 0) + best * 0.5
        flag = i > -1
    return x, best, mean, flag


def tuples(x, n):
    state = (x, x * 2)
    for i in range(n):
        a, b = state
        state = (0.5 * np.sin(a) + b * 0.1, 0.2 * np.cos(b) - a * 0.5)
    return state


def starts_as_none(x, n):
    total = None
    for i in range(n):
        term = np.sin(x * i) + np.cos(x)
        total = term if total is None else total * 0.9 + term
    return total


def starts_as_int(x, n):
    s = 0
    for i in range(n):
        s = s * 0.5 + np.sin(x) * np.cos(x + i)
    return s


def becomes_float(n):
    x = np.arange(5)
    for i in range(n):
        x = x * 0.5 + i + np.sqrt(x * x + 1)
    return x


def first_iteration_differs(x, n):
    for i in range(n):
        if i == 0:
            x = x * 3
        else:
            x = 0.5 * np.sin(x) + np.cos(x) * 0.1 + 0.2 * np.sqrt(np.abs(x) + 1)
    return x


def reads_rows(a, n):
    s = np.zeros(a.shape[1])
    for i in range(n):
        s = 0.9 * s + a[i] * np.exp(-a[i] * a[i])
    return s


def writes_rows(a, n):
    for i in range(1, n):
        a[i] = 0.5 * a[i - 1] + np.sqrt(a[i]) * 0.1 + a[i] * 0.3
    return a


def writes_to_new_array(x, n):
    out = np.empty((n, x.shape[0]))
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.2
        out[i] = x
    return out


def shifting_slices(a, n):
    s = a[0:3, 0] * 0
    for i in range(n):
        s = s * 0.5 + np.sin(a[i : i + 3, 0]) + np.cos(a[i : i + 3, 1])
    return s


def shrinking_slices(a, n):
    for i in range(n):
        a[i + 1 :] -= a[i] * 0.01 + np.sqrt(np.abs(a[i + 1 :])) * 0.1
    return a


def views_taken_before(u, n):
    inner, left = u[1:-1], u[:-2]
    for _ in range(n):
        inner[...] = 0.5 * inner + 0.25 * left + 0.1 * np.sqrt(np.abs(u[2:])) - 0.01
    return inner, u


def aliases(u, n):
    w = u
    for _ in range(n):
        u[1:] = 0.3 * (w[:-1] + w[1:] * w[1:]) * 0.5 + 0.1
    return w is u, w


def rebinds_and_writes(u, n):
    for i in range(n):
        u = u + 0.1 * np.sin(u)
        u[0] = i
        u[-1] = 0
    return u


def nested(a, n):
    for i in range(n):
        for j in range(30):
            a = 0.5 * np.sin(a) + 0.01 * np.cos(a) * j
        a = a + i
    return a


def nested_in_place(a, n):
    for i in range(n):
        for j in range(i):
            a[1:] = 0.5 * a[:-1] + 0.1 * np.abs(a[1:]) * j * 0.1 - i
    return a


def integers(x, n):
    k = np.arange(12, dtype=np.int32)
    for i in range(n):
        k = (k * 3 + i) % 1001
        x = 0.5 * np.sin(x) + k
    return x, k


def with_else(x, n):
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1 + i
    else:
        x = x * 2
    return x


def skips_some(x, n, verbose=False):
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.2
        if verbose:
            continue
        x = x * 1.01
    return x


def step(x, i, dt=0.1):
    return 0.5 * x + dt * np.sin(x * 0.1 + i)


def calls(x, n):
    for i in range(n):
        x = step(x, i)
        x = step(x, i + 1, dt=i * 0.5)
    return x


def inlined(x, n):
    return calls(x, n) + jacobi(np.outer(x, x), n).sum()


def unused(x, n):
    for _ in range(n):
        np.sin(x) + np.cos(x) + np.sqrt(x * x)
    return x


def matmuls(x, n):
    m = np.outer(x, x) * 0.01 + np.eye(12)
    for _ in range(n):
        x = m @ x
        x = x / np.sqrt((x * x).sum())
    return x


def deletes(x, n):
    for i in range(n):
        y = np.sin(x) * 2
        z = 0.1 * np.cos(y)
        del y
        x = z + i
    return x


def scalar_chain(x, n):
    s = x[0]
    for i in range(n):
        s = 0.1 * np.reciprocal(s + 9) + s * 0.5 + i
    return s


NODES = [
    (jacobi, grid), (jacobi_rebound, grid), (two_buffers, line), (three_buffers, line), (leapfrog, line),
    (counters, line), (with_start_and_step, line), (used_after, line), (view_used_after, line), (scalars, line),
    (tuples, line), (starts_as_none, line), (starts_as_int, line), (first_iteration_differs, line),
    (writes_to_new_array, line), (views_taken_before, line), (aliases, line), (rebinds_and_writes, line),
    (nested, line), (nested_in_place, line), (integers, line), (with_else, line), (skips_some, line), (calls, line),
    (inlined, line), (unused, line), (matmuls, line), (deletes, line), (scalar_chain, line),
]  # fmt: skip


@pytest.mark.parametrize(("f", "make"), NODES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [N, N + 1])
def test_a_loop_is_one_node(f, make, n):
    for compiled in each(f, lambda: (make(), n)):
        assert "fori_loop" in ops(compiled)
        assert not compiled.breaks


def table():
    return np.random.default_rng(1).random((N + 3, 5)) + 0.5


@pytest.mark.parametrize("f", [reads_rows, writes_rows, shifting_slices])
def test_the_counter_selects_rows(f):
    for compiled in each(f, lambda: (table(), N)):
        assert "fori_loop" in ops(compiled)


def rows(a):
    s = np.zeros(a.shape[1])
    for row in a:
        s = 0.9 * s + row * np.exp(-row * row)
    return s, row


def numbered_rows(a):
    s = np.zeros(a.shape[1])
    for i, row in enumerate(a, 2):
        s = 0.9 * s + row * i
        row[1:] = s[:-1]
    return s, i, a


def rows_together(a):
    s = np.zeros(a.shape[1])
    for i, (x, y) in enumerate(zip(a, np.sqrt(a))):
        s = 0.9 * s + x * y - i
    return s


def rows_backwards(a):
    s = np.zeros(a.shape[1])
    for row in reversed(a):
        s = 0.5 * s + row
    for i in reversed(range(a.shape[0])):
        s = 0.5 * s + a[i] * i
    return s


def elements(a):
    s, most = 0.0, a[0, 0]
    for x in a[:, 1]:
        s = s * 0.5 + x
        most = max(most, x)
    return s, most


@pytest.mark.parametrize("f", [rows, numbered_rows, rows_together, rows_backwards, elements])
def test_loops_over_rows(f, monkeypatch):
    monkeypatch.setattr("tcompile.capture.loops.trace_loop.FEW_OPERATIONS", 0)
    for compiled in each(f, lambda: (table(),)):
        assert ("scalar_loop" if f is elements else "fori_loop") in ops(compiled)
        assert not compiled.breaks


def test_iterators_that_somebody_else_goes_along():
    def f(a):
        found = []
        items = iter(a)
        for i, x in enumerate(items):
            found.append(x * i)
            found.append(next(items))
        rows = enumerate(a)
        pairs = [(y, x) for x, y in zip(rows, rows)]
        return found, pairs, list(zip(a, a[2:])), list(zip(reversed(a), a)), [*reversed(range(5, 20, 4))]

    check(f, lambda: (np.arange(12.0).reshape(6, 2),), backends=("eager",))


def test_shapes_that_the_counter_gives():
    check(shrinking_slices, lambda: (np.linspace(0, 1, N + 2), N))


def test_no_arguments_but_a_number():
    for compiled in each(becomes_float, lambda: (N,)):
        assert "fori_loop" in ops(compiled)


@pytest.mark.parametrize("n", [N, N + 1])
def test_buffers_of_the_caller_change_places(n):
    def both():
        return line(), line() * 2, n

    for compiled in each(two_buffers_from_outside, both):
        assert "fori_loop" in ops(compiled)


@pytest.mark.parametrize(("f", "make"), NODES, ids=lambda f: f.__name__)
def test_the_number_of_iterations_varies(f, make):
    for backend in ("eager", "llvm"):
        tcompile.reset()
        compiled = tcompile.compile(f, backend=backend)
        for n in (N, N + 1, N + 20, N + 2, 7, 2, 1, 0, N + 5):
            try:
                want = f(make(), n)
            except UnboundLocalError as error:
                with pytest.raises(UnboundLocalError, match=str(error)):
                    compiled(make(), n)
                continue
            assert_same(compiled(make(), n), want, ulp=1e9)
        assert len(compiled.entries) < 8, compiled.recompiles


def test_compile_time_does_not_depend_on_the_number_of_iterations():
    compiled = tcompile.compile(jacobi, backend="eager")
    compiled(grid(), 1000)
    (graph,) = compiled.graphs
    assert graph.op_count < 40


# -- scalar loops -----------------------------------------------------------------------------------------------


def shortest_paths(d, n):
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


def gauss_seidel(u, n):
    for _ in range(n):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def thomas(a, n):
    b, c, d = a[0] + 4, a[1], a[2]
    for i in range(1, n):
        w = a[3, i] / b[i - 1]
        b[i] = b[i] - w * c[i - 1]
        d[i] = d[i] - w * d[i - 1]
    d[n - 1] = d[n - 1] / b[n - 1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]
    return d, b


def triangle(a, n):
    for i in range(n - 1):
        for j in range(i + 1):
            a[j + 1] = 0.5 * a[j] + 0.25 * a[j + 1] + i
    return a


def inner_products(a, n):
    s = low = a[0, 0]
    for i in range(n):
        row = 0.0
        for j in range(n):
            row += a[i, j] * a[j, i]
        s = max(s, row * 0.5)
        low = min(low, a[i, 0])
    return s, low


def counts(k, n):
    total = k[0]
    for i in range(n):
        total = total + k[i] * i
        k[i] = max(total, k[-1])
    return total, k


def matrix():
    return np.random.default_rng(5).random((12, 12))


@pytest.mark.parametrize(("f", "make", "n"), [
    (shortest_paths, matrix, 12), (gauss_seidel, matrix, 9), (thomas, matrix, 12), (triangle, lambda: matrix()[0], 12),
    (inner_products, matrix, 12), (counts, lambda: np.arange(40) - 17, 40),
])  # fmt: skip
def test_loops_over_elements(f, make, n, monkeypatch):
    monkeypatch.setattr("tcompile.capture.loops.trace_loop.FEW_OPERATIONS", 0)
    for compiled in each(f, lambda: (make(), n)):
        assert "scalar_loop" in ops(compiled)
        assert not compiled.breaks
    monkeypatch.setattr("tcompile.capture.loops.scalar.enter", lambda frame, header: False)
    for compiled in each(f, lambda: (make(), n)):  # operations on arrays of rank 0, in a loop
        assert "fori_loop" in ops(compiled)
        assert not compiled.breaks


def test_elements_out_of_range():
    check(shortest_paths, lambda: (matrix(), 13), backends=("eager", "llvm"))
    check(gauss_seidel, lambda: (matrix()[:2], 90), backends=("eager", "llvm"))


def test_calls_of_one_loop_share_nothing():
    def f(x, y, n):
        for i in range(n):
            x = 0.5 * x + y * i
            for j in range(n):
                x[0] = x[1] * y + j
        return x

    compiled = tcompile.compile(f, backend="llvm", dynamic=True)
    kept = []
    given = [(9, 0.5, 30), (9, 0.5, 30), (9, -0.0, 30), (9, 0.0, 30), (7, 0.5, 30), (9, 0.5, 31), (9, 0.5, 30)]
    for size, y, n in given:
        for start in (1.0, -2.0):
            made = compiled(np.arange(size) * start, y, n), f(np.arange(size) * start, y, n)
            assert_same(*made, exact=True)
            kept.append(made)
    for got, want in kept:
        assert_same(got, want, exact=True)


def test_numbers_of_more_than_64_bits():
    def f(x, n):
        k = 1
        for i in range(n):
            k += 10**18
            x = 0.5 * np.sin(x) + i * 10**18 + k
        return x, k

    check(f, lambda: (line(), N), backends=("eager", "llvm"))


def test_loops_in_machine_code_can_be_interrupted():
    """An interrupt comes between two stretches of iterations, and nothing of the loop is then seen."""
    compiled = tcompile.compile(gauss_seidel, backend="llvm")
    u = matrix()
    compiled(u, 100)
    before = u.copy()
    timer = threading.Timer(0.3, _thread.interrupt_main)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            compiled(u, 20_000_000)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    np.testing.assert_array_equal(u, before)


def test_a_float_of_pythons_begins_a_sum_over_pairs():
    """It is NumPy's from the first iteration on; the last iteration of the outer loop has none inside."""

    def energy(x, n):
        e = 0.0
        for i in range(n):
            for j in range(i + 1, n):
                d = x[i] - x[j]
                e -= np.sqrt(d @ d)
        return e

    for backend in ("eager", "llvm"):
        compiled = tcompile.compile(energy, backend=backend)
        x = np.arange(60.0).reshape(20, 3) % 7
        assert repr(compiled(x, 20)) == repr(energy(x, 20))
        (graph,) = compiled.graphs
        *_, nest = (node for node in graph.nodes if node.regions)  # after what the first iteration apart has
        assert "fori_loop" in [node.op.name for node in nest.regions[0].nodes] and not compiled.breaks
        for n in (7, 2, 1, 0):
            assert repr(compiled(x, n)) == repr(energy(x, n))
