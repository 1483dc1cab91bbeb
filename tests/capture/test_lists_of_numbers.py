"""Lists of numbers in scalar loops: read and replaced by index, gone along, sliced; from inside and from outside."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
from differential import check

import tcompile
from tcompile.capture.guards.list_numbers import numbers_in, replace_numbers
from tests.capture.test_scalar_loops import ops

X = np.random.default_rng(3).random(60)
LONG = np.linspace(0.0, 1.0, 1500).tolist()


def convolved(n):
    a = [0.0] * (n + 1)
    a[0] = 1.0
    for k in range(1, n + 1):
        s = 0.0
        for j in range(k):
            s += a[k - 1 - j] * a[j]
        a[k] = s / 4
    return a


def knapsack(values, weights, n):
    best = [0] * (n + 1)
    for i in range(len(values)):
        for room in range(n, weights[i] - 1, -1):
            best[room] = max(best[room], best[room - weights[i]] + values[i])
    return best[n], best


def sieve(n):
    prime = [True] * (n + 1)
    prime[0] = prime[1] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
    return [i for i in range(n + 1) if prime[i]]


def filtered(x):
    for i in range(1, len(x)):
        x[i] = x[i - 1] * 0.5 + x[i]


def sorted_in_place(x):
    n = len(x)
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


def spread(x):
    low = high = x[0]
    for y in x:
        low, high = min(low, y), max(high, y)
    return high - low


def weighted(x, y, n):
    s = 0.0
    for i, (a, b, k) in enumerate(zip(x, y, range(2, n), strict=False)):
        s += a * b * k - i
    return s


def nearest(x, y):
    best = 1e9
    for a in x:
        for b in y:
            best = min(best, abs(a - b))
    return best


def two_rows(n):
    before, now = [0] * (n + 1), [1] * (n + 1)
    for _ in range(5):
        for j in range(1, n + 1):
            now[j] = before[j] + now[j - 1]
        before, now = now, before
    return before, now


def floats(*sizes):
    return [X[:size].tolist() for size in sizes]


def ints(*sizes):
    return [(X[:size] * 30).astype(int).tolist() for size in sizes]


PROGRAMS = {
    convolved: lambda n: [n], knapsack: lambda n: [*ints(n), [w + 1 for w in ints(n)[0]], 3 * n],
    sieve: lambda n: [9 * n],
    filtered: floats, sorted_in_place: ints, spread: ints, weighted: lambda n: [*floats(n, n - 5), 60],
    nearest: lambda n: floats(n, 20), two_rows: lambda n: [n],
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_loops_over_lists_are_scalar_loops_of_any_length(function, backend):
    sizes = iter([40, 40, 45, 45, 50, 50, 24, 24])
    (compiled,) = check(function, lambda: PROGRAMS[function](next(sizes)), calls=4, backends=[backend], ulp=0)
    assert "scalar_loop" in ops(compiled)
    assert len(compiled.graphs) <= 3


@pytest.mark.parametrize("function", [filtered, spread, nearest], ids=lambda function: function.__name__)
def test_long_lists(function):
    def args():
        size = next(sizes)
        values = (np.arange(size) * 37 % 101 * 0.5).tolist()
        return [values] if function is not nearest else [values, values[:30]]

    sizes = iter([1500, 1500, 1800, 1800, 40, 40, 2100, 2100])
    (compiled,) = check(function, args, calls=4, backends=["llvm"], ulp=0)
    assert "scalar_loop" in ops(compiled)
    assert len(compiled.graphs) == 2


def test_what_else_is_done_to_a_long_list():
    def f(x, values, what):
        y = np.sin(x)
        if what == "append":
            values.append(float(len(values)))
        elif what == "store":
            values[3] = 7.0
        elif what == "slice":
            return y, values[1490:], sum(values)
        elif what == "array":
            return y, np.array(values) * 2, np.sum(values)
        elif what == "items":
            return y, values[0], values[-1], len(values), values is LONG
        elif what == "loop":
            for k in values[:5]:
                y = y * k
            for k in values:
                y = y + k
        return y, values

    for what in ("append", "store", "slice", "array", "items", "loop"):
        check(f, lambda what=what: [np.ones(3), [*LONG, 2.5], what])
    check(f, lambda: [np.ones(3), LONG, "items"], ulp=0)


def test_a_loop_over_arrays_needs_no_array_of_a_list():
    def horner(x, factors):
        y = np.zeros_like(x)
        for k in factors:
            y = y * x + k
        return y

    (compiled,) = check(horner, lambda: [X, *floats(40)], backends=["llvm"])
    assert all("numbers_in" not in node.name for graph in compiled.graphs for node in graph.inputs)


# -- items of other kinds ----------------------------------------------------------------------------------------------
def doubled(x, fill):
    out = [fill] * len(x)
    for i in range(len(x)):
        if x[i] > 0.3:
            out[i] = x[i] * 2
    return out


def numbered(x, fill):
    out = [fill] * len(x)
    for i in range(len(x)):
        if x[i] > 0.3:
            out[i] = i
        elif x[i] > 0.2:
            out[i] = None
    return out


def distances(x, fill):
    seen, best = [fill] * 20, 0
    for i in range(len(x)):
        k = int(x[i] * 20)
        if seen[k] is not None and i - seen[k] > best:
            best = i - seen[k]
        seen[k] = i
    return best, seen


def as_array(x, fill):
    out = [fill] * len(x)
    for i in range(1, len(x)):
        out[i] = out[i - 1] * 0.5 + x[i]
    return np.array(out)


@pytest.mark.parametrize("fill", [0, 0.0, False, None])
@pytest.mark.parametrize("function", [doubled, numbered, distances, as_array])
def test_a_list_gets_items_of_several_kinds(function, fill):
    def outcome(x, fill):
        try:
            return function(x, fill)
        except TypeError as error:  # None + 0.5
            return repr(error)

    compiled = check(outcome, lambda: [X, fill], ulp=0)
    if function is doubled:
        assert "scalar_loop" in ops(compiled[-1])


def test_a_list_from_outside_gets_other_items_and_keeps_the_rest():
    def f(values, x):
        for i in range(len(values)):
            if x[i] > 0.7:
                values[i] = x[i]
            elif x[i] > 0.6:
                values[i] = i

    compiled = tcompile.compile(f)
    for size in (40, 50):
        values = floats(size)[0]
        before, want = list(values), list(values)
        f(want, X)
        compiled(values, X)
        assert repr(values) == repr(want)
        assert all(one is two for one, two, x in zip(values, before, X, strict=False) if x <= 0.6)


def test_a_list_from_outside_that_changes_several_times():
    def f(values, more):
        for i in range(len(values)):
            values[i] = values[i] * 2
        if more == 2:
            for i in range(len(values)):
                values[i] = values[i] + i
        if more == 3:
            values.append(3.0)
        if more == 4:
            values[3] = 7.0
        if more == 5:
            values[3] = None
        return len(values)

    for more in range(1, 6):
        check(f, lambda more=more: [*floats(30), more], ulp=0)


def test_a_copy_of_a_list_of_any_length():
    def f(values):
        s = 0.0
        for x in values:
            s += x
        return values[:], s

    compiled = tcompile.compile(f)
    for size in (30, 35, 40, 45):
        assert compiled(floats(size)[0]) == f(floats(size)[0])


@pytest.mark.parametrize("kind", [int, float])
def test_a_slice_has_the_same_objects(kind):
    def f(values):
        part, s = values[1:], 0
        for x in part:
            s += x
        return part, s

    values = [*floats(30)[0], float("nan")] if kind is float else [1000 * i for i in range(30)]
    part, s = tcompile.compile(f)(values)
    assert all(one is two for one, two in zip(part, values[1:], strict=True))
    assert repr(s) == repr(f(values)[1])


@pytest.mark.parametrize("dynamic", [None, True])
def test_slices_of_repeated_numbers(dynamic):
    def f(n, k):
        zeros, nothing, flags = [0] * n, [None] * n, [True] * n
        flags[1] = False
        later = zeros[2:][1:]
        for i in range(len(later)):
            later[i] = i
        return zeros[1:k], zeros[::-2], zeros[5:2], nothing[k:-1:3], flags[:k], flags[-3:], later

    sizes = iter([(20, 4), (20, 4), (25, 6), (25, 6), (30, 50), (30, 50), (40, -3), (40, -3)])
    check(f, lambda: next(sizes), calls=4, backends=["llvm"], dynamic=dynamic)


def test_none_replaces_none():
    def f(a, values):
        last = [None] * 20
        a *= 0.5
        for i, _ in zip(values, values):
            last[int(i)] = None
        return last

    check(f, lambda: [np.ones(8), *ints(20)])


# -- aliases, errors, other objects ------------------------------------------------------------------------------------
def test_two_names_of_a_list():
    def f(x, n):
        a = [0] * n
        b = a
        for i in range(n):
            a[i] = i
            b[i] += 1
            x[0][i] += x[1][i]
        return a, b, a is b

    def args():
        values = floats(30)[0]
        return [(values, values), 30]

    check(f, args, ulp=0)


def test_an_index_that_is_not_there():
    def f(x, n):
        try:
            for i in range(n):
                x[i] = x[i - 3] + 1.0
        except IndexError as error:
            return str(error)

    check(f, lambda: [*floats(30), 31])
    check(f, lambda: [*floats(30), 29])


def test_none_at_an_index_that_is_not_there():
    def f(n):
        a = [None] * 20
        for i in range(n):
            if a[i] is not None:
                return i
        return -1

    for n in (20, 21):
        try:
            want = f(n)
        except IndexError as error:
            want = str(error)
        try:
            got = tcompile.compile(f)(n)
        except IndexError as error:
            got = str(error)
        assert got == want


@pytest.mark.parametrize(
    "other", [1, True, 1 << 70, np.float64(0.5), None, "a"], ids=lambda other: type(other).__name__
)
def test_a_list_that_is_not_of_one_kind(other):
    def f(x):
        s = 0
        for i in range(len(x)):
            if i % 2 == 0:
                s = s + x[i]
        return s

    compiled = tcompile.compile(f)
    for values in (floats(40)[0], [*floats(39)[0], other], floats(44)[0], [], [*floats(39)[0][::-1], other]):
        assert repr(compiled(values)) == repr(f(values))


def test_lists_are_read_as_arrays():
    for values in ([1.5, -2.0] * 20, [3, -(1 << 62)] * 20, [True, False] * 20):
        assert numbers_in(values).tolist() == values
        for other in (1, 1.0, True, None, np.float64(1), 1 << 63):
            if type(other) is not type(values[0]) or other == 1 << 63:
                assert numbers_in([*values, other]) is None
    assert numbers_in([]) is None


def test_only_items_that_changed_are_replaced():
    items = [float(i) + 1000 for i in range(5)]
    before = list(items)
    replace_numbers(items, np.array(items), np.array([1000.0, 1001.0, -0.0, 1003.0, 2.0]))
    assert repr(items) == "[1000.0, 1001.0, -0.0, 1003.0, 2.0]"
    assert [one is two for one, two in zip(items, before, strict=True)] == [True, True, False, True, False]
    items = list(before)
    replace_numbers(items, np.array(items), np.array([1.0, 2.0, 1002.0, 3.0, 4.0]))  # most of them
    assert repr(items) == "[1.0, 2.0, 1002.0, 3.0, 4.0]"
    assert items[2] is before[2]


# -- changes by others ------------------------------------------------------------------------------------------------
LIMITS = [1e18] * 30


def until(x, n):
    k = 0
    for i in range(n):
        x[i % 30] += 1.0
        if x[i % 30] > LIMITS[i % 30]:
            k = i
            break
    return k


@pytest.mark.parametrize("place", [0, 29])
def test_a_handler_replaces_an_item(monkeypatch, place):
    monkeypatch.setitem(globals(), "LIMITS", [1e18] * 30)
    compiled = tcompile.compile(until)
    for n in (300, 400):
        compiled([0.0] * 30, n)

    def handler(*_):
        LIMITS[place] = 0.0

    before = signal.signal(signal.SIGALRM, handler)
    try:
        x = [0.0] * 30
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        began = time.perf_counter()
        k = compiled(x, 1 << 40)
        assert time.perf_counter() - began < 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert k % 30 == place
    assert k > 1000
    assert sum(x) == k + 1


def test_a_handler_replaces_another_item_of_the_list_that_is_written():
    def f(x, n):
        for i in range(n):
            x[i % 20] += 1.0
            if x[25] > 0.0:
                return i
        return -1

    compiled = tcompile.compile(f)
    for n in (300, 400):
        compiled([0.0] * 30, n)
    x = [0.0] * 30

    def handler(*_):
        x[25] = 5.0
        x[26] = 7.0

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        found = compiled(x, 1 << 40)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert found > 1000
    assert sum(x[:20]) == found + 1
    assert x[25:27] == [5.0, 7.0]


def test_items_that_an_inner_loop_replaces_while_the_list_is_iterated():
    def f(x, values):
        for _ in zip(x, values):
            pass
        for _ in values:
            for _ in range(5):
                values[1] = np.sqrt(1)
        return values

    compiled = tcompile.compile(f)
    for count in (19, 24, 24, 7):
        given = [list(range(count)), [float(n) for n in range(count)]]
        for values in given:
            assert repr(compiled(np.ones(8), [*values])) == repr(f(np.ones(8), [*values]))
