"""``while`` loops, and loops that are left where the graph's own values say so."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile

from .loop_cases import each, grid, line, until_inside


def ops(compiled):
    def names(graph):
        return [op for node in graph.nodes for op in (node.op.name, *(op for r in node.regions for op in names(r)))]

    return [op for graph in compiled.graphs for op in names(graph)]


def matrix():
    a = np.random.default_rng(3).random((12, 12))
    return a @ a.T + 12 * np.eye(12)


# -- loops that become one node ----------------------------------------------------------------------------------------


def power_iteration(a, x, tol):
    value, change = 0.0, np.inf
    while change > tol:
        y = a @ x
        x = y / np.sqrt((y * y).sum())
        new = float((x * (a @ x)).sum())
        change = abs(new - value)
        value = new
    return x


def conjugate_gradient(a, b, tol, n):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for k in range(n):
        ap = a @ p
        alpha = rs / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        if np.sqrt(new) < tol:
            break
        p = r + (new / rs) * p
        rs = new
    return x, k


def newton(c, x, tol):
    k = 0
    while True:
        f = x * x * x - c
        if np.all(np.abs(f) < tol):
            break
        x = x - f / (3 * x * x)
        k += 1
    return x, k


def value_iteration(p, r, tol, n):
    v = np.zeros(r.shape[0])
    k = 0
    err = np.inf
    while err > tol and k < n:
        new = (r + 0.9 * (p @ v)).max(axis=1) if r.ndim > 1 else r + 0.9 * (p @ v)
        err = np.abs(new - v).max()
        v = new
        k += 1
    return v, k, err


def jacobi_until(u, tol):
    err = 1.0
    while err > tol:
        un = u.copy()
        u[1:-1, 1:-1] = 0.25 * (un[2:, 1:-1] + un[:-2, 1:-1] + un[1:-1, 2:] + un[1:-1, :-2])
        err = np.abs(u - un).max()
    return u, err


def counted(x, n):
    i = 0
    while i < n:
        x = 0.5 * np.sin(x) + i
        i += 2
    return x, i


def counted_down(x, n):
    while n >= 3:
        x = 0.5 * np.sin(x) + n
        n -= 1
    return x, n


def counts_in_the_middle(x, n):
    k = 0
    while True:
        x = 0.5 * np.sin(x) + k
        k += 1
        if k == n:
            break
        x = x + 1
    return x, k


def returns_early(x, n):
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1
        if x.sum() > 3:
            return x, i, True
    return x, -1, False


def sets_a_flag(x, n, tol):
    found = False
    for i in range(n):
        y = 0.5 * np.sin(x) + np.cos(x) * 0.1
        if np.abs(y - x).max() < tol:
            found = True
            break
        x = y
    return y, found, i


def with_else(x, n, tol):
    for i in range(n):
        x = x * 0.9
        if x.max() < tol:
            break
    else:
        x = x * 2
        i = -5
    return x, i


def raises_without(x, n, tol):
    for i in range(n):
        x = x * 0.9
        if x.max() < tol:
            break
    else:
        raise RuntimeError("no convergence")
    return x, i


def continues(x, n):
    total = np.zeros_like(x)
    for i in range(n):
        x = 0.9 * x + 0.01 * i
        if x.sum() > 3:
            continue
        total = total + x
    return x, total


def two_conditions(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() < 0.5 and x.min() > -0.1:
            break
        x = x + 0.001
    return x, i


def either(x, y):
    while x.max() > 0.1 or y.max() > 0.2:
        x = x * 0.9
        y = y * 0.8
    return x, y


def negated(x, tol):
    done = False
    while not done:
        x = x * 0.7
        done = bool(x.max() < tol)
    return x


def keeps_what_was(x, tol):
    old = x + 1
    steps = 0
    while np.abs(x - old).max() > tol:
        old = x
        x = 0.5 * np.sin(x) + 0.1
        steps += 1
    return x, old, steps


def writes_in_parts(u, n):
    w = np.zeros_like(u)
    for i in range(n):
        w[1:] = u[:-1] * 0.5
        v = w * 2
        v[0] = i
        if v.sum() > 30:
            break
        v[1] = 1
        u[:] = v * 0.9 + 0.3
        u[3] += i
    return u, w


NODES = [
    (power_iteration, lambda: (matrix(), np.ones(12), 1e-9)),
    (conjugate_gradient, lambda: (matrix(), line(), 1e-8, 50)),
    (newton, lambda: (line() + 3, line() + 4, 1e-9)),
    (value_iteration, lambda: (matrix() / matrix().sum(axis=1, keepdims=True), line(), 1e-6, 1000)),
    (value_iteration, lambda: (matrix() / matrix().sum(axis=1, keepdims=True), line(), 1e-6, 20)),
    (jacobi_until, lambda: (grid(), 1e-4)),
    (counts_in_the_middle, lambda: (line(), 33)),
    (returns_early, lambda: (line() + 1, 50)), (returns_early, lambda: (line() + 20, 50)),
    (sets_a_flag, lambda: (line(), 90, 1e-6)), (sets_a_flag, lambda: (line(), 9, 1e-16)),
    (with_else, lambda: (line(), 90, 0.1)), (with_else, lambda: (line(), 9, 0.1)),
    (raises_without, lambda: (line(), 90, 0.1)), (continues, lambda: (line(), 90)),
    (two_conditions, lambda: (line(), 90)), (two_conditions, lambda: (line(), 9)),
    (either, lambda: (line(), line() + 1)), (either, lambda: (line() * 0.01, line() * 0.01)),
    (negated, lambda: (line(), 0.01)), (until_inside, lambda: (line(), 30)),
    (keeps_what_was, lambda: (line(), 1e-8)), (writes_in_parts, lambda: (line(), 40)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "make"), NODES, ids=lambda f: f.__name__)
def test_a_loop_that_is_left_is_one_node(f, make):
    for compiled in each(f, make):
        assert "exit_loop" in ops(compiled), tcompile.explain(f)(*make())
        assert not compiled.breaks
        begins = f is not either or max(part.max() for part in make()) > 0.2
        assert not begins or not any(entry.replays for entry in compiled.entries)  # else it hands back its arguments


@pytest.mark.parametrize("f", [counted, counted_down])
def test_a_while_loop_that_counts(f, monkeypatch):
    monkeypatch.setattr("tcompile.capture.loops.trace_loop.FEW_OPERATIONS", 0)
    for n in (40, 41, 7, 1, 0, -3):
        for compiled in each(f, lambda n=n: (line(), n)):
            assert "fori_loop" in ops(compiled) or n < 40


def test_the_error_after_a_loop():
    check(raises_without, lambda: (line(), 9, 0.1), backends=("eager", "llvm"))


def writes_after_one_exit(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() < 0.1:
            return x, i
    x[0] = 0.0
    return x, n


def text_or_none(x, n):
    y = None
    for i in range(n):
        x = x * 0.9
        if x.max() < 0.1:
            y = "small"
            break
    return y, x


def argument_or_result(x, n):
    first = x
    while x.max() > 0.1:
        x = x * 0.9
        n -= 1
        if n == 0:
            return first
    return x


def flag_or_none(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() < 0.1:
            done = True
            break
    else:
        done = None
    return x + 1 if done else x


def pair_or_number(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() < 0.1:
            return i, x
    return -1


@pytest.mark.parametrize("f", [text_or_none, argument_or_result, pair_or_number])
def test_values_of_several_kinds(f):
    for compiled in each(f, lambda: (line(), 90)):
        assert "exit_loop" in ops(compiled)
        assert not compiled.breaks
        for n in (90, 5, 91, 4):
            x = line()
            got, want = compiled(x, n), f(x, n)
            np.testing.assert_equal(got, want)
            assert (got is x) == (want is x)


def test_a_test_of_a_value_of_several_kinds():
    for n in (90, 5):
        for compiled in each(flag_or_none, lambda n=n: (line(), n)):
            assert "exit_loop" in ops(compiled)
            assert [each.reason.id for each in compiled.breaks] == ["data-dependent-branch"]


def differs_after(x, n):
    for i in range(n):
        x = x * 0.9
        if x.max() < 0.1:
            return "small"
    return x


def grows_in_while(x, tol):
    while x.max() > tol:
        x = np.concatenate([x, x]) * 0.5
    return x


def both_in_one_iteration_only(x, n):
    y = x
    for i in range(n):
        y = x * 0.9
        if y.max() < 0.1:
            break
        x = y
    y[0] = 7
    return x, y


def finds(x, n):
    """The caller's own array comes back where no iteration is done, or the first one ends at once."""
    y = x
    while x.max() > n:
        y = x
        x = x * 0.5
    return x, y


def changes_places(a, b, n):
    i = 0
    while i < n:
        a[1:] = 0.5 * b[:-1]
        a, b = b, a
        i += 1
    return a, b, i


OTHERS = [
    (changes_places, lambda: (line(), line() + 1, 40)), (changes_places, lambda: (line(), line() + 1, 41)),
    (differs_after, lambda: (line(), 90)), (differs_after, lambda: (line(), 9)),
    (grows_in_while, lambda: (line(), 0.3)), (both_in_one_iteration_only, lambda: (line(), 90)),
    (both_in_one_iteration_only, lambda: (line(), 9)), (finds, lambda: (line(), 5.0)), (finds, lambda: (line(), 1.5)),
    (finds, lambda: (line(), 0.8)), (finds, lambda: (line(), 0.1)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "make"), OTHERS, ids=lambda f: f.__name__)
def test_what_cannot_be_one_node_is_done_all_the_same(f, make):
    for compiled in each(f, make):
        args = make()
        got, want = compiled(*args), f(*args)
        same = [value is args[0] for value in got] if isinstance(got, tuple) else got is args[0]
        assert same == ([value is args[0] for value in want] if isinstance(want, tuple) else want is args[0])


def two_names(a, n, tol):
    p = q = r = a + 1
    for _ in range(n):
        r = r * 0.5
        q = q + p
        if r.sum() < tol:
            break
        p = np.sin(p) + r
    return p, q, r


def asks_whether_they_are_one(a, n, tol):
    p = r = a + 1
    c = 0.0
    for _ in range(n):
        c = c + (1.0 if p is r else 2.0)
        r = r * 0.5
        if r.sum() < tol:
            break
        p = np.sin(p) + r
    return p, r, c


def writes_to_one_of_them(a, n, tol):
    p = r = a + 1
    for _ in range(n):
        r *= 0.5
        if r.sum() < tol:
            break
        p = np.sin(p) + r
    return p, r


@pytest.mark.parametrize("f", [two_names, asks_whether_they_are_one, writes_to_one_of_them])
def test_names_of_one_array_that_go_separate_ways(f):
    for n, tol in ((60, 1e-9), (60, 1e9), (60, -1.0), (0, 1.0), (1, 1.0)):
        for compiled in each(f, lambda n=n, tol=tol: (line(), n, tol)):
            got, want = compiled(line(), n, tol), f(line(), n, tol)
            assert (got[0] is got[1]) == (want[0] is want[1])
            if f is two_names and n == 60:
                assert ops(compiled).count("exit_loop") == 1
            tcompile.reset()


def keeps_the_first(a, limit):
    x = a * 1
    first = x
    while x.max() > limit:
        x = x * 0.5
    first[0] = -7
    return x, first


def keeps_a_view_of_the_first(a, limit):
    x = a * 1
    row = x[1:]
    while x.max() > limit:
        x = x * 0.5
    row[0] = -7
    return x, row


def keeps_the_first_in_a_list(a, limit):
    x = a * 1
    held = [x]
    while x.max() > limit:
        x = x * 0.5
    held[0][0] = -7
    return x, held[0]


def keeps_the_first_of_each_iteration(a, limit):
    x = a * 1
    for i in range(20):
        first = x
        while x.max() > limit:
            x = x * 0.5
        first[0] = i * 0.01
        x = x + 0.1
    return x, first


def halved(x, limit):
    while x.max() > limit:
        x = x * 0.5
    return x


def keeps_what_a_function_was_given(a, limit):
    x = a * 1
    y = halved(x, limit)
    x[0] = -7
    return y, x


@pytest.mark.parametrize(
    "f",
    [
        keeps_the_first, keeps_a_view_of_the_first, keeps_the_first_in_a_list, keeps_the_first_of_each_iteration,
        keeps_what_a_function_was_given,
    ],
)  # fmt: skip
def test_an_array_that_has_another_name_where_no_iteration_is_done(f):
    for limit in (1e9, 0.01):  # no iteration, and some
        for compiled in each(f, lambda limit=limit: (line() + 1, limit)):
            got, want = compiled(line() + 1, limit), f(line() + 1, limit)
            assert (got[0] is got[1]) == (want[0] is want[1])
            tcompile.reset()


def writes_after_one_way(a, b, n):
    held = [None, a]
    for i in range(n):
        k = 1
        print(end="")
        while np.any(b < 99):
            k += 1
            if k >= 6:
                break
            held[1] = b * 1
        else:
            held[1][1] = 1
    return held


def test_what_one_way_out_writes_is_not_written_after_the_others():
    for low in (0, 200):
        for n in (1, 3):
            check(writes_after_one_way, lambda low=low, n=n: (line(), line() + low, n), backends=("eager", "llvm"))


def told(f, *args):
    """Of each loop, the first thing that is said of it."""
    rows = [map(str.strip, text.splitlines()) for text in tcompile.explain(f)(*args).loops]
    return [next(row for row in lines if row.startswith("This ")) for lines in rows]


def test_explain_says_what_became_of_them():
    (until,) = told(newton, line() + 3, line() + 4, 1e-9)
    assert until == "This loop stays a loop: one node of the graph, any number of iterations."
    (limited,) = told(value_iteration, matrix() * 0.05, line(), 1e-6, 500)
    assert limited == "This loop stays a loop: one node of the graph, at most 500 iterations."
    result, *_ = told(writes_after_one_exit, line(), 90)
    assert result.endswith("the code after one of its exits has side effects.")


def test_an_exception_handler_that_jumps_back_makes_no_loop():
    def f(x):
        total = x.sum(axis=0)
        part = total[1]
        with np.errstate():
            pass
        part + 1

    for compiled in each(f, lambda: [np.ones((1, 17))]):
        assert "internal-error" not in {broke.reason.id for broke in compiled.breaks}


def test_a_loop_at_the_end_of_a_while_loop_of_two_tests():
    def f(a, b):
        c = a * 2 - b
        i = 0
        while np.all(c < 0) and 6 > i:
            i += 1
            for _ in range(6):
                c = c * 0.5 + a * 0.25
        return c, i

    for compiled in each(f, lambda: [line() - 20, line()]):
        assert "internal-error" not in {broke.reason.id for broke in compiled.breaks}


def made_half(x):
    x[0] = x[0] * 0.5
    return x[0]


def writes_before_the_limit(x, n):
    i = 0
    while made_half(x) and i < n:
        i += 1
        x[1:] = x[1:] + 0.25
    return x, i


@pytest.mark.parametrize("n", [0, 1, 5, 40])
def test_the_iteration_that_a_limit_ends_has_begun(n):
    """What its test has done before it comes to the limit is done."""
    for compiled in each(writes_before_the_limit, lambda: (line(), n)):
        assert compiled.entries


def exchanged(a, b, n, limit):
    for i in range(n):
        b, a = a, b * 1
        if b[2] > limit:
            break
        b = b + 1
    return b, a


def exchanged_inside(a, b, n, limit):
    for _ in range(20):
        for i in range(n):
            b, a = a, b * 1
            if b[2] > limit:
                break
            b = b + 1
        if b[0] < limit:
            break
    return b, a


def another_name(a, b, n, limit):
    """What is returned in the fourth iteration is the caller's array where the loop inside has no whole iteration."""
    for k in range(n):
        y = a
        for _ in range(30):
            if y[2] > limit:
                break
            y = y * 2 + 1
        if k == 3:
            return y, b
    return a, b


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("function", [exchanged, exchanged_inside, another_name])
def test_a_first_iteration_is_left_with_the_callers_own_array(function, backend):
    tcompile.reset()
    compiled = tcompile.compile(function, backend=backend)
    for limit in (0.5, 1.5, 2.5, 7.5, 99.0, 0.5):
        a, b = np.arange(8.0) % 5 - 1, np.arange(8.0)[::-1] * 0.5
        kept = a.copy(), b.copy()
        got, want = compiled(a, b, 60, limit), function(a, b, 60, limit)
        assert [x is a or x is b for x in got] == [x is a or x is b for x in want]
        for one, two in zip((*got, a, b), (*want, *kept), strict=True):
            np.testing.assert_array_equal(one, two)
