# ruff: noqa: C416, F507, UP031, UP032
"""Texts, keys and lists that are others in each call: they are moved around without a look at what they are.

What needs the text itself, or the key, still gets it; what only hands it on is compiled once for all of them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import tcompile
from tests.differential import Run, assert_same_run

X = np.arange(12.0).reshape(4, 3)
NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"]
LABEL = ""
LOG = []


class Model:
    def __init__(self, name, size):
        self.name = name
        self.size = size

    def describe(self, x):
        return f"{self.name}[{self.size}] {np.tanh(x).sum() * 0:.1f}"


def series(function, calls, backend="eager"):
    """Runs all calls plainly and compiled; how many entries that took. ``calls`` makes the arguments of each anew."""
    tcompile.reset()
    compiled = tcompile.compile(function, backend=backend)
    for plain, ours in zip(calls(), calls(), strict=True):
        assert_same_run(Run(compiled, ours), Run(function, plain))
    return len(compiled.entries)


TEXTS = {
    "an f-string": lambda x, n, name: f"{name}: {n} {x.sum() * n:.2f}",
    "conversions": lambda x, n, name: f"{name!r} {n!s:>6} {x.max()!r} {name!a}",
    "specs": lambda x, n, name: f"{n:05d} {n:x} {n:+,} {x.sum():e} {name:^9}|",
    "a remainder": lambda x, n, name: "%s %d %.3f" % (name, n, x.mean()),
    "a remainder of one": lambda x, n, name: ("%5d" % n, "%s" % name, "%g" % x.sum()),
    "format": lambda x, n, name: "{} {:>4} {n:.1f}".format(name, n, n=x.sum()),
    "str and repr": lambda x, n, name: (str(n), repr(name), str(x.sum()), repr(x.max()), format(n, "b")),
    "numbers of Python's": lambda x, n, name: f"{n / 4:.3f} {float(x.sum()):.1f} {int(n)} {bool(x.sum() > 1)}",
    "many numbers": lambda x, n, name: f"{n * n + 3 * n} {n**3} {-n} {n // 2}",
    "texts of texts": lambda x, n, name: f"[{f'{name}-{n}':>12}] {str(n)!r}",
    "in containers": lambda x, n, name: ([f"{n}", name], {"n": f"{n}", "name": name}, (name, (f"{x.sum()}",))),
    "comprehensions": lambda x, n, name: [f"{name}{i}{n}" for i in range(3)],
    "beside arrays": lambda x, n, name: (x * n, f"{n}", np.sin(x) * 0),
    "in a call": lambda x, n, name: Model(name, f"{n}").describe(x),
    "a class": lambda x, n, name: vars(Model(name, n)),
}


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("what", TEXTS)
def test_texts_are_compiled_once(what, backend):
    def calls():
        return [(X + i, i + 2, name) for i, name in enumerate(NAMES)]

    assert series(TEXTS[what], calls, backend) <= 2  # with the first int, and with all


ASKED = {
    "equal": lambda x, n, name: x * 2 if f"{n}" == "3" else x,
    "ordered": lambda x, n, name: x * 2 if f"{n}" < "4" else x,
    "truth": lambda x, n, name: x + 1 if "%s" % name else x,
    "length": lambda x, n, name: x * len(f"{n:{n}d}"),
    "methods": lambda x, n, name: (x, f"{name}{n}".upper(), f"{n}".zfill(4)),
    "characters": lambda x, n, name: (x, [c for c in f"{n}{n}"], f"{name}"[1:], f"{n}"[0]),
    "sums": lambda x, n, name: (x, "n" + f"{n}", f"{n}" * 2, name + f"{n}"),
    "keys": lambda x, n, name: {f"{n}": x, name: x + 1},
    "found": lambda x, n, name: {"2": x, "3": x + 1}.get(f"{n}", x * 0),
    "in": lambda x, n, name: (f"{n}" in "1234", "3" in f"{n}3", f"{n}" in ["2", "3"]),
    "joined": lambda x, n, name: (x, ", ".join([f"{n}", name, f"{n + 1}"])),
    "back to ints": lambda x, n, name: x * int(f"{n}"),
    "a dtype": lambda x, n, name: x.astype(f"f{4 + 4 * (n % 2)}"),
    "attributes": lambda x, n, name: (x, getattr(Model("a", 3), f"{'size' if n % 2 else 'name'}")),
    "sorted": lambda x, n, name: (x, sorted([f"{n}", "3", name]), max(f"{n}", "3")),
    "the same": lambda x, n, name: (name is name, f"{n}" is None),
    "compared items": lambda x, n, name: ([f"{n}", name] == ["3", "beta"], (f"{n}", 1) == (f"{n}", 1)),
    "unpacked": lambda x, n, name: [a + b for a, b in [(f"{n}", name), (name, f"{n}")]],
    "sets": lambda x, n, name: {f"{n}", name, "x"} == {name, f"{n}", "x"},
}


@pytest.mark.parametrize("what", ASKED)
def test_texts_that_are_asked_for(what):
    series(ASKED[what], lambda: [(X + i, i + 2, name) for i, name in enumerate(NAMES[:4])])


RAISING = {
    "a character": lambda x, n: f"{n:c}",
    "an int of infinity": lambda x, n: "%d" % (x[0, 0] / (n - 4)),
    "not enough": lambda x, n: "%d %d" % n,
    "too many": lambda x, n: "%d" % (n, n),
    "an unknown spec": lambda x, n: f"{n:q}",
    "a spec for ints": lambda x, n: f"{x.sum():d}",
    "a width": lambda x, n: f"{n:{n * 10}}",
    "a huge int": lambda x, n: f"{n**4 * 10**300:f}",
}


@pytest.mark.parametrize("backend", ["eager", "llvm"])
@pytest.mark.parametrize("what", RAISING)
def test_texts_that_raise_leave_arrays_alone(what, backend):
    make = RAISING[what]

    def function(x, n):
        x += 1
        text = make(x, n)
        return x * 2, text

    numbers = (2, 3, 65, 4, 0, 1 << 20, -1, 1 << 61)
    with np.errstate(all="ignore"):
        series(function, lambda: [(X.copy(), n) for n in numbers], backend)


def test_texts_of_arrays_are_made_where_they_stand():
    def function(x):
        before = f"{x}"
        x += 1
        return before, f"{x[0]}", f"{x[0, 0]}"

    series(function, lambda: [(X + i,) for i in range(4)])


def printing(w, x, y):
    for step in range(40):
        r = x @ w - y
        w = w - 0.1 * (x.T @ r / len(y))
        print(f"step {step}: {(r**2).mean():.4f}")
        print("step %d: %.4f" % (step, np.abs(r).max()))
    return w


def test_what_each_iteration_prints_is_compiled_once():
    def calls():
        yield np.zeros(3), X / 12, np.ones(4)

    assert series(printing, calls, "llvm") <= 6


def stopping(x):
    errors, texts = [], []
    for i in range(30):
        x = x * 0.5 + 1
        errors.append(np.abs(x - 2).max())
        texts.append(f"{i}: {errors[-1]:.6f}")
        print(i, len(errors))
        if i > 2 and errors[-1] > 0.9 * errors[-2] - 1e-3:
            break
    return x, errors, texts


def test_lists_that_grow_are_read_from_their_end():
    assert series(stopping, lambda: [(X,), (X * 2,)]) <= 9


def stored(x):
    global LABEL
    for i in range(12):
        y = np.tanh(x) * i
        LABEL = f"{i} {y.sum() * 0}"
        LOG.append(LABEL)
        print(LABEL)
    return y * 0


def test_texts_are_stored():
    def calls():
        global LABEL
        LABEL = ""
        LOG.clear()
        return [(X,)]

    assert series(stored, calls) <= 6
    assert LOG[-1] == LABEL == "11 0.0"


def test_closures_hold_texts():
    def function(x, n):
        label = f"{n}"

        def told():
            nonlocal label
            label = f"<{label}>"
            return label

        return x * 2, told(), told(), label

    assert series(function, lambda: [(X, n) for n in range(2, 10)]) <= 2


# -- keys ----------------------------------------------------------------------------------------------------------


def put(x, table, key):
    table[key] = x.sum() * 0.5
    return x + 1


def put_and_ask(x, table, key):
    table[key] = x.sum()
    table[key] += 1
    return x + len(table), key in table, list(table)


def put_twice(x, table, key):
    table[key], table["last"] = x.sum(), key
    table[key] = x.max()
    return x


def put_pairs(x, table, key):
    table[key, "twice"] = x.sum() * 2
    table[(key, key)] = f"{x.sum()}"
    return x


def put_computed(x, table, key):
    table[int(x.argmax())] = x.sum()
    table[x.astype("i8").max()] = x.min()
    return x


def put_and_raise(x, table, key):
    table[key] = x.sum()
    return x + table["missing"]


KEYS = {"texts": NAMES, "ints": list(range(2, 11)), "floats": [0.5 + i for i in range(9)], "bools": [True, False] * 3}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("function", [put, put_and_ask, put_twice, put_pairs, put_computed, put_and_raise])
@pytest.mark.recompile_limit(20)
def test_items_are_put_under_keys_that_vary(function, kind):
    def calls():
        table = {"alpha": 0.0, 3: 1.0}
        return [(X + i, table, key) for i, key in enumerate(KEYS[kind])]

    count = series(function, calls)
    if function in (put, put_twice, put_computed) and kind != "bools":
        assert count <= 3


def put_twice_and_count(x, table, key):
    table[key] = x.sum()
    table[key] = x.max()
    table[float(x[0, 0])] = 1
    table[x[0, 0]] = 2
    return x


def test_a_nan_is_one_key():
    nan = math.nan
    tcompile.reset()
    compiled = tcompile.compile(put_twice_and_count, backend="eager")
    ours, theirs = {}, {}
    for key in (0.5, nan, 1.5, nan, float("nan"), 2.5):
        compiled(X + key, ours, key)
        put_twice_and_count(X + key, theirs, key)
        assert [(type(k), str(k)) for k in ours] == [(type(k), str(k)) for k in theirs]


LOOKED_UP = {
    "an item": lambda x, table, key: x + table[key],
    "twice": lambda x, table, key: table[key] * table[key].sum() + x,
    "with others": lambda x, table, key: x + table[key] + table["beta"],
    "of a new dict": lambda x, table, key: x + dict(table)[key],
    "after a change": lambda x, table, key: (table.update(beta=x), x + table[key])[1],
    "got": lambda x, table, key: x + table.get(key, 0),
    "in": lambda x, table, key: x if key in table else x * 2,
}


@pytest.mark.parametrize("what", LOOKED_UP)
@pytest.mark.recompile_limit(20)
def test_items_are_looked_up_under_texts(what):
    def calls():
        table = {name: X * (i + 1) for i, name in enumerate(NAMES)}
        return [(X, table, name) for name in (*NAMES, "missing", "beta")]

    count = series(LOOKED_UP[what], calls)
    if what in ("an item", "twice"):
        assert count <= 3  # one of them for what is missing


def write(table, key, value):
    table[key] *= value
    table[key][0] += 1
    return table[key].sum()


def test_arrays_are_written_where_they_are_looked_up():
    def calls():
        shared = np.ones(3)
        table = {"a": np.ones(3), "b": np.ones(3), "c": shared, "d": shared, "e": shared[1:], 7: np.ones(3)}
        return [(table, key, 2.0) for key in ("a", "b", "c", "d", "e", 7, "a")]

    series(write, calls, "llvm")


def write_both(table, one, two):
    table[one] += 1
    table[two] *= 2
    return table[one].sum() + table[two].sum()


def test_two_keys_of_one_array():
    def calls():
        shared = np.ones(4)
        table = {"a": np.ones(4), "b": np.ones(4), "c": shared, "d": shared, "e": shared[1:]}
        pairs = [("a", "b"), ("b", "a"), ("a", "a"), ("c", "d"), ("c", "e"), ("a", "c"), ("e", "d")]
        return [(table, *pair) for pair in pairs]

    series(write_both, calls, "llvm")


def changed_tables(table, key, x):
    table["seen"] = x.sum()
    found = table[key]
    del table[key]
    table[key] = found
    return list(table), x + found


def test_dicts_that_are_changed_around_a_look():
    def calls():
        table = {name: i + 0.5 for i, name in enumerate(NAMES)}
        return [(table, name, X) for name in NAMES[:4]]

    series(changed_tables, calls)


def growing(cache, n, x):
    found = cache["base"] + n
    if "extra" in cache:
        found = found + cache["extra"]
    cache[f"k{n}"] = x.sum()
    return found


def test_dicts_that_grow_are_compiled_twice():
    def calls():
        cache = {"base": 1.0, "extra": 2.0}
        return [(cache, n, X) for n in range(2, 12)]

    assert series(growing, calls) <= 3


# -- lists -----------------------------------------------------------------------------------------------------------


AT = {
    "an item": lambda rows, i, x: rows[i] + x,
    "two items": lambda rows, i, x: rows[i] + rows[i - 1] + x,
    "from the end": lambda rows, i, x: rows[-i] + x,
    "twice": lambda rows, i, x: rows[i] * rows[i].sum() + x,
    "with the first": lambda rows, i, x: rows[0] + rows[i],
    "of a slice": lambda rows, i, x: rows[:][i] + x,
    "of another list": lambda rows, i, x: [x, x + 1, x + 2][i % 3],
    "after an append": lambda rows, i, x: (rows.append(x), rows[i] + rows[-1])[1],
    "after a store": lambda rows, i, x: (rows.__setitem__(0, x), rows[i] + rows[0])[1],
    "stored": lambda rows, i, x: (rows.__setitem__(i, x), rows[i] * 2)[1],
}


@pytest.mark.parametrize("what", AT)
@pytest.mark.recompile_limit(20)
def test_items_at_an_index_that_varies(what):
    def calls():
        rows = [X * i for i in range(8)]
        return [(rows, i, X) for i in (2, 3, 4, 7, 0, 1, -1, -8, 8, -9, 100)]

    count = series(AT[what], calls)
    if what in ("an item", "two items", "twice"):
        assert count <= 5


def test_tuples_and_ints_at_an_index_that_varies():
    def function(rows, i, x):
        return x * rows[i], x[rows[i] % 2]

    series(function, lambda: [(tuple(range(3, 12)), i, X) for i in range(2, 9)])


def test_lists_of_lists_are_appended_to():
    def function(rows, i, j, x):
        rows[i].append((j, x.sum()))
        return x * 2

    def calls():
        rows = [[] for _ in range(6)]
        return [(rows, i, j, X) for i in range(2, 6) for j in range(3)]

    assert series(function, calls) <= 4


ENDS = {
    "the last": lambda rows, x: rows[-1] + x,
    "the last two": lambda rows, x: rows[-1] - rows[-2] + x,
    "first and last": lambda rows, x: rows[0] + rows[-1] + x,
    "appended": lambda rows, x: (rows.append(x * 0.5), rows[-1] - rows[-2])[1],
    "appended twice": lambda rows, x: (rows.append(x), rows.append(x + 1), rows[-1] + rows[-3] + len(rows))[2],
    "popped": lambda rows, x: (rows.append(x), rows.pop(0), rows[-1] + rows[-2])[2],
    "written": lambda rows, x: (rows[-1].__iadd__(1), rows[0] + rows[-1])[1],
    "all": lambda rows, x: (rows[-1], sum(rows))[1],
}


@pytest.mark.parametrize("what", ENDS)
def test_ends_of_lists_of_any_length(what):
    def calls():
        found = []
        for count in (3, 4, 2, 6, 1, 0, 5):
            rows = [X * i for i in range(count)]
            found.append((rows, X))
        one = X.copy()
        found.append(([one, one, one], X))
        found.append(([one[1:], one, one[1:]], X[1:]))
        return found

    count = series(ENDS[what], calls, "llvm")
    if what in ("the last", "the last two"):
        assert count <= 7


def keep(out, x):
    add = out.append
    y = np.tanh(x)
    print("in between")
    add(y.sum() * 0)
    return y * 0


def test_a_method_of_a_list_that_grows():
    out, want = [], []
    tcompile.reset()
    compiled = tcompile.compile(keep, backend="eager")
    for _ in range(12):
        compiled(out, X)
        keep(want, X)
    assert out == want
    assert len(compiled.entries) <= 3


def test_ints_of_a_list_vary_with_one_another():
    def function(x, numbers):
        return x * numbers[0] + numbers[1] - numbers[2] * numbers[-1]

    lists = [[3, 5, 7, 9], [4, 5, 7, 9], [4, 6, 8, 10], [4, 6, 7, 11]]
    assert series(function, lambda: [(X, list(numbers)) for numbers in lists]) == 2


def visited(parent, u, v, x):
    new = v not in parent
    if new:
        parent[v] = u
    return x * (2 if new else 3)


def test_whether_a_key_that_varies_is_there_is_asked_in_each_call():
    def calls():
        parent = {0: None, "a": 1}
        return [(parent, i // 2, i * 7 % 5, X) for i in range(2, 16)] + [(parent, 3, name, X) for name in NAMES]

    assert series(visited, calls) <= 7  # for ints and for texts: whether there or not, and the first ones


def words_at(words, i, out):
    out.append(words[i])
    out.append(words[-1])
    return len(words[i]), f"{words[i]}!", words[i] == "beta"


def test_texts_of_lists_wait():
    def calls():
        out = []
        return [(list(NAMES), i, out) for i in (2, 3, 4, 1, 5, 6)]

    series(words_at, calls)
