"""Tuples in scalar loops: stored in rows, unpacked from rows, gone through; and the largest of some numbers."""

from __future__ import annotations

import numpy as np
import pytest
from differential import check

import tcompile
from tests.capture.test_scalar_loops import ops


def walk(x, g):
    a = b = 0
    at = np.zeros((len(x), 2), np.int64)
    for i in range(len(x)):
        if x[i] < 0.3:
            a += 1
        elif x[i] < 0.6:
            b -= 1
        at[i] = a, b
    return at


def rows_of_lists(x, g):
    made = np.zeros((len(x), 3), np.float32)
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        made[i] = [s, i, x[i] * 3]
    return made


def flood(x, g):
    n, m = g.shape
    far = -np.ones((n, m), np.int64)
    waiting = np.zeros((n * m, 2), np.int64)
    head, tail, far[0, 0] = 0, 1, 0
    while head < tail:
        i, j = waiting[head]
        head += 1
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            a, b = i + di, j + dj
            if 0 <= a < n and 0 <= b < m and g[a, b] < 5 and far[a, b] < 0:
                far[a, b] = far[i, j] + 1
                waiting[tail] = a, b
                tail += 1
    return far, tail


def neighbours(x, g):
    made = np.zeros_like(g)
    for i in range(1, g.shape[0] - 1):
        for j in range(1, g.shape[1] - 1):
            for a, b in ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)):
                if g[i + a, j + b] > g[i, j]:
                    made[i, j] += 1
                elif g[i + a, j + b] == 0:
                    break
            else:
                made[i, j] = -made[i, j]
    return made


def aligned(x, g):
    h = np.zeros((len(x) + 1, len(x) + 1))
    best = 0.0
    for i in range(1, len(x) + 1):
        for j in range(1, len(x) + 1):
            s = 2.0 if g[i % 5, 0] == g[j % 7, 1] else -1.0
            h[i, j] = max(0.0, h[i - 1, j - 1] + s, h[i - 1, j] - 1, h[i, j - 1] - 1)
            if h[i, j] > best:
                best = h[i, j]
    return best, h


def of_three_kinds(x, g):
    made, low = np.zeros(len(x)), 0
    for i in range(len(x)):
        low = min(g[i % 5, 1], 2, x[i] * 4, 2.0)
        made[i] = max(1, x[i], 0.5, g[0, i % 5]) + low
    return made, low


FUNCTIONS = [walk, rows_of_lists, flood, neighbours, aligned, of_three_kinds]


def arguments():
    random = np.random.default_rng(3)
    return random.random(40), random.integers(0, 8, (9, 8))


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_scalar_code(f):
    compiled = check(f, arguments, ulp=0)[-1]
    made = [node.op.name for graph in compiled.graphs for node in graph.nodes]
    assert "scalar_loop" in made or f is of_three_kinds  # of which the last value of a variable may be of three kinds


NUMBERS = (
    (1, 2, 3), (1.5, 2.5, -0.5), (1, 2.5, True), (2**53 + 1, 1, 0.5), (np.nan, 1.0, 2.0), (300, 1, 2),
    (np.int64(2**53 + 1), 0.5, 1), (np.float32(0.1), 0.1, 2**40), (np.int64(300), np.float64(1.5), False),
)  # fmt: skip


def test_rows_of_other_dtypes():
    """NumPy stores each number as if it came alone: an int next to a float keeps all its digits."""

    def stored(x, a, b, c):
        for i in range(len(x)):
            x[i] = a, b * i, c
        return x

    for dtype in ("float64", "float32", "int64", "int32", "int8", "bool"):
        for numbers in NUMBERS:
            compiled = check(stored, lambda d=dtype, n=numbers: (np.zeros((9, 3), d), *n), ulp=0)[-1]
            made = [node.op.name for graph in compiled.graphs for node in graph.nodes]
            assert "scalar_loop" in made or dtype == "bool"


def test_lists_are_no_tuples_where_they_are_keys():
    """``y[[0, 1]]`` is rows, ``y[0, 1]`` an element."""
    rows, place = [0, 1], (0, 1)

    def one_kind(y, n):
        for i in range(n):
            y[[0, 1]] = i

    def others(y, n):
        for i in range(n):
            y[[i % 4, 0]] = i
            y[rows] = y[2, 2] + 1
            y[place] = i
            y[[1, 2], 0] = -i
            y[[1, i][0]] = y[[0, 0]][0, 1]

    for f in (one_kind, others):
        for shape in ((4, 4), (5, 16)):
            check(f, lambda shape=shape: (np.arange(float(np.prod(shape))).reshape(shape), 9), ulp=0)


def test_what_does_not_fit():
    def too_few(x, g):
        for i in range(len(x)):
            g[i] = i, i
        return g

    def too_many(x, g):
        s = 0
        for i in range(len(x)):
            a, b = g[i]
            s += a - b
        return s

    def beyond(x, g):
        for i in range(len(x)):
            g[i, :2] = i, i
            g[i] = i, 1, 2, 3, 4, 5, 6, 7
        return g

    for f in (too_few, too_many, beyond):
        check(f, arguments)


def test_a_list_that_is_kept_is_a_list():
    def f(x, g):
        made = np.zeros((len(x), 2))
        for i in range(len(x)):
            pair = [i, x[i]]
            made[i] = pair
            pair[0] = 7
        return made, pair

    check(f, arguments, ulp=0)
    assert tcompile.compile(f)(*arguments())[1][0] == 7


def test_a_list_that_is_kept_is_returned_as_one():
    def f(x, g):
        made = np.zeros((len(x), 2))
        for i in range(len(x)):
            pair = [i, x[i]]
            made[i] = pair
        return made, pair

    check(f, arguments, ulp=0)


MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]
WEIGHTS = (0.25, 0.5, 0.125)


def walks(d):
    steps, x, y, total = [3, 1, 2, 5], 0, 0, 0.0
    seen = np.zeros((8, 8))
    for i in range(len(d)):
        dx, dy = MOVES[d[i]]
        x, y = (x + dx) % 8, (y + dy) % 8
        seen[x, y] += WEIGHTS[i % 3] * steps[-d[i]]
        total += WEIGHTS[-1] + (2.0, x * 0.5)[1]
    return seen, total, steps, x


def kept_in_a_tuple(d, a, b):
    table = (a, b, a + b)
    found = 0.0
    for i in range(len(d)):
        found += table[d[i] % 3]
    return found


def of_flags(d):
    flags, found = [True, False, True, True], None
    for i in range(len(d)):
        found = flags[d[i]]
    return found


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.uint8, np.bool_, float, bool])
def test_items_keep_their_kinds(kind):
    items = (kind(1), kind(0))

    def f(x):
        found = None
        for i in range(len(x)):
            found = items[i % 2]
            x[i] = found
        return found, x

    compiled = tcompile.compile(f)
    for n in (30, 31):
        assert repr(compiled(np.zeros(n))) == repr(f(np.zeros(n)))
    assert ("scalar_loop" in ops(compiled)) == (kind not in (np.int32, np.uint8, np.bool_))  # constants of NumPy's


@pytest.mark.parametrize("function", [walks, lambda d: kept_in_a_tuple(d, 1.5, 2.0), of_flags])
def test_items_of_tuples_and_lists_by_an_index_that_varies(function):
    (compiled,) = check(function, lambda: [np.arange(40) * 7 % 4], ulp=0, backends=["llvm"])
    assert "scalar_loop" in ops(compiled)


def test_lists_that_others_change_between_calls(monkeypatch):
    compiled, d = tcompile.compile(walks), np.arange(40) * 3 % 4
    for moves in (MOVES, [(1, 1), *MOVES[1:]], [*MOVES, (5, 5)], [(3, 1), *MOVES]):
        monkeypatch.setitem(globals(), "MOVES", moves)
        assert repr(compiled(d)) == repr(walks(d))
    MOVES[0] = (2, 3)
    assert repr(compiled(d)) == repr(walks(d))


@pytest.mark.parametrize("text", [
    "t[i]", "t[i - 5]", "(1, 2, 3)[i]", "(x[i], 2.0)[i % 2]", "(1, 2.0)[i % 2]", "((1, 2), (3.0, 4))[i % 2]",
    "[1, 2][i % 2]", "t[x[i]]", "len(t) + t[0]",
])  # fmt: skip
def test_items_that_are_not_there_or_differ(text):
    def outcome(function):
        try:
            return repr(function(np.arange(9) * 0.5))
        except (IndexError, TypeError) as error:
            return repr(error)

    names = {}
    lines = ["def f(x):", "    t = [3, 1, 2, 5]", "    s = 0", "    for i in range(len(x)):", f"        r = {text}",
             "        s = s + (r if not isinstance(r, tuple) else r[1])", "    return s, r, t"]  # fmt: skip
    exec("\n".join(lines), names)
    assert outcome(tcompile.compile(names["f"])) == outcome(names["f"])


def test_a_list_that_is_read_and_grows():
    def grows(d):
        t, s = [3, 1, 2, 5], 0
        for i in range(len(d)):
            s += t[d[i]]
            if s > 20:
                t.append(s)
        return s, t

    check(grows, lambda: [np.arange(40) % 4], ulp=0, backends=["llvm"])
