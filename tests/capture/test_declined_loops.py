"""``for`` over a range that stays Python's, errors on the way, and what ``explain`` says of loops."""

from __future__ import annotations

import numpy as np
import pytest
from differential import assert_same, check

import tcompile
from tcompile.capture.entry.root_frame import RootFrame

from .loop_cases import N, each, line, ops

# -- loops that do not -------------------------------------------------------------------------------------------------


def breaks_off(x, n):
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1
        if x.sum() > 5:
            break
    else:
        return x, "all"
    return x, i


def returns_early(x, n):
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1
        if i == 30:
            return x, i
    return x, -1


def appends(x, n):
    found = []
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1
        found.append(x)
    return found


def prints(x, n):
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1
        if i % 10 == 0:
            print(i)
    return x


def even_iterations(x, n):
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1
        if i % 2 == 0:
            x = x * 3
    return x


def grows(x, n):
    for i in range(n):
        x = np.concatenate([x, x[:1] + i])
    return x


def large_numbers(x, n):
    k = 1
    for i in range(1, n):
        k *= i
        x = 0.5 * np.sin(x) + np.cos(x) * 0.2
    return x, k


def collects(x, n):
    return [np.sin(x) + i for i in range(n)], sum(np.sqrt(x * x + i) for i in range(n)), {i: x * i for i in range(n)}


def generates(x, n):
    def values():
        for i in range(n):
            yield np.sin(x) + i

    return sum(values())


def takes_next(x, n):
    numbers = iter(range(3 * n))
    for i in numbers:
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1
        x = x + next(numbers)
    return x


def changes_a_list(x, n):
    state = [x, 0]
    for i in range(n):
        state[0] = 0.5 * np.sin(state[0]) + np.cos(state[0]) * 0.1
        state[1] += i
    return state


def in_a_closure(x, n):
    def add():
        nonlocal x
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1 + i

    for i in range(n):
        add()
    return x


def last_two(x, n):
    a = b = x
    for i in range(n):
        a = b
        b = 0.5 * np.sin(b) + np.cos(b) * 0.1
    return a, b, a is b


def one_object_twice(x, n):
    a, b = x, x * 2
    for i in range(n):
        a = 0.5 * np.sin(b) + np.cos(a) * 0.1
        b = a
    b[0] = 7
    return a, b, a is b


def keeps_the_best(x, n):
    best = x
    for i in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1
        if i < 5:
            best = x
    return best, best is x


def writes_before_rebinding(u, n):
    for i in range(n):
        u[0] = i
        u = 0.5 * np.sin(u) + np.cos(u) * 0.1
    return u


def shows_what_is_written_at_first(a, n):
    b = a
    for i in range(n):
        a[0] = i + 1
        b = b * 0.5 + i
    return a, b


def views_move_on(u, n):
    for i in range(n):
        u[1:] = 0.5 * u[:-1] + 0.25 * u[1:] * u[1:] * 0.1
        if u.shape[0] > 3:
            u = u[1:]
    return u


def transposes(a, n):
    for i in range(n):
        a = 0.5 * np.sin(a.T) + np.cos(a.T) * 0.1
    return a


def view_of_a_new_array(x, n):
    for _ in range(n):
        x = 0.5 * np.sin(x) + np.cos(x) * 0.1
        row = x[1:3]
    row[0] = 5
    return x, row


def reversed_view(a, n):
    for i in range(n):
        a = a[::-1]
    return a


OTHERS = [
    (breaks_off, line), (returns_early, line), (appends, line), (prints, line), (even_iterations, line), (grows, line),
    (large_numbers, line), (collects, line), (generates, line), (takes_next, line), (changes_a_list, line),
    (in_a_closure, line), (last_two, line), (one_object_twice, line), (keeps_the_best, line),
    (writes_before_rebinding, line), (views_move_on, line), (transposes, lambda: np.eye(5) + 0.5),
    (shows_what_is_written_at_first, line), (reversed_view, line), (view_of_a_new_array, line),
]  # fmt: skip


@pytest.mark.parametrize(("f", "make"), OTHERS, ids=lambda f: f.__name__)
def test_whatever_a_loop_does_is_done(f, make):
    for n in (0, 2, N):
        check(f, lambda n=n: (make(), n), backends=("eager", "llvm"), ulp=64)


class Model:
    """What simulations look like."""

    def __init__(self, u):
        self.u = u
        self.v = np.zeros_like(u)
        self.t = 0.0

    def advance(self, dt):
        self.v[1:-1] += dt * (self.u[2:] - 2 * self.u[1:-1] + self.u[:-2])
        self.u += dt * self.v
        self.t += dt


def simulates(u, n):
    model = Model(u)
    for _ in range(n):
        model.advance(0.1)
    return model.u, model.v, model.t


def test_attributes():
    check(simulates, lambda: (line(), N))

    def outside(model, n):
        for _ in range(n):
            model.advance(0.1)

    for backend in ("eager", "llvm"):
        got, want = Model(line()), Model(line())
        compiled = tcompile.compile(outside, backend=backend)
        for _ in range(3):
            compiled(got, N)
            outside(want, N)
            assert_same([got.u, got.v, got.t], [want.u, want.v, want.t])


# -- errors ------------------------------------------------------------------------------------------------------------


def runs_out(a, x, n):
    for i in range(n):
        x[0] = i
        x = np.sin(x) + np.cos(x) + a[i]
    return x


def divides(x, n):
    for i in range(n):
        x = np.sin(x) / (x - x[3] + (i < 1000)) + np.cos(x)
        x[1:] = x[:-1] / (30 - i)
    return x


def overflows(x, n):
    for _ in range(n):
        x = x * x + np.exp(x)
    return x


def test_an_error_comes_in_its_iteration():
    check(runs_out, lambda: (np.arange(30.0), line(), N))
    for how in ("ignore", "warn", "raise"):
        with np.errstate(all=how):
            check(divides, lambda: (line(), N))
            check(overflows, lambda: (line(), N))


def test_effects_before_and_after_a_loop():
    def f(x, n):
        print("start")
        for i in range(n):
            x = 0.5 * np.sin(x) + np.cos(x) * 0.1 + i
        print("end", i)
        for i in range(n):
            x = x * 0.5 + np.sqrt(x * x)
        return x

    for compiled in each(f, lambda: (line(), N)):
        assert ops(compiled).count("fori_loop") == 2


def told(f, *args):
    """Of each loop, the first thing that is said of it."""
    rows = [map(str.strip, text.splitlines()) for text in tcompile.explain(f)(*args).loops]
    return [next(row for row in lines if row.startswith("This loop")) for lines in rows]


def test_explain_says_what_became_of_each_loop():
    def f(x, n):
        for i in range(n):
            x = 0.5 * np.sin(x) + i
        for i in range(6):
            x = x * i
        for i in range(n):
            x = (np.sin, np.cos)[i % 2](x)
        for i in range(n):
            x = x + i
            print(end="")
        return x

    loop, few, odd, python = told(f, line(), 100)
    assert loop == "This loop stays a loop: one node of the graph, 100 iterations."
    assert few == "This loop is unrolled: 6 iterations of 1 operations are few."
    assert odd.startswith("This loop is unrolled: which way its body goes depends on the induction variable")
    assert python.startswith("This loop runs in Python, its body compiled where it can be: input or output")
    assert "for i in range(n):" in tcompile.explain(f)(line(), 50).loops[0]


def test_a_size_that_an_iteration_divides():
    def f(x, k, n):
        for i in range(n):
            i = k
            k //= 2
            1 == i
        return x + 1

    compiled = tcompile.compile(f, backend="eager", dynamic=True)
    with tcompile.config.patch(verify=True):
        for k, n in ((70, 9), (71, 9), (3, 8), (0, 7)):
            assert_same(compiled(line(), k, n), f(line(), k, n))


def test_unroll():
    def f(x, n):
        for i in tcompile.unroll(range(n)):
            x = 0.5 * np.sin(x) + i
        return x

    for compiled in each(f, lambda: (line(), N)):
        assert "fori_loop" not in ops(compiled)
        assert ops(compiled).count("sin") == N
    assert list(tcompile.unroll(values=range(3))) == [0, 1, 2]


@pytest.mark.parametrize("function", [sum, list, max, min, tuple], ids=lambda f: f.__name__)
def test_a_long_array_is_walked_through_by_python(function):
    compiled = tcompile.compile(lambda x: function(x * 2))
    for n in (4000, 4000, 5000):
        x = np.linspace(0, 1, n)
        assert compiled(x) == function(x * 2)
    assert {broke.reason.id for broke in compiled.breaks} == {"too-long"}
    assert sum(len(entry.graph.nodes) for entry in compiled.entries) < 10


def branches_in_unrolled_iterations(a, b, rng, n):
    s, t = 0.5, 1.0
    for _ in range(n):
        j = -1
        while 6 > j and (s > t or not rng.integers(3)):
            j += 1
            a = a * (0.5 - j)
            b, a = a, np.maximum(b, b) * 0.5
            s = rng.integers(-2, 3) * 0.5
        b[1:-1] = np.abs(b[:-2]) - 0.5
    return a, b, s


def test_capture_gives_up_branches_inside_of_branches_in_time(monkeypatch):
    """Each iteration of the inner loop is a side of the one before: 140,000 instructions were followed in 11 s."""
    followed, run = [], RootFrame.run

    def counted(self):
        try:
            return run(self)
        finally:
            followed.append(self.tx.instructions)

    monkeypatch.setattr(RootFrame, "run", counted)
    check(
        branches_in_unrolled_iterations, lambda: (line(), line() * 2, np.random.default_rng(1), 7), backends=("eager",)
    )
    assert sum(followed) < 40_000


def test_it_says_that_it_takes_too_long():
    told = str(tcompile.explain(branches_in_unrolled_iterations)(line(), line() * 2, np.random.default_rng(1), 7))
    assert "tracing branches in branches takes too long" in told
