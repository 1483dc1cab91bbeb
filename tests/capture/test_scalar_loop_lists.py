# ruff: noqa: E501
"""Lists that scalar loops append to in some iterations: machine code keeps the items, and the list gets them."""

import math

import numpy as np
import pytest

import tcompile
from benchmarks.everyday import peaks
from tcompile.capture.loops import scalar_lists
from tcompile.observe import bus
from tcompile.observe.events import FellBack

from .scalar_loop_check import late_loops
from .test_scalar_loops import BACKENDS, captured, check, ops, refused

X = np.random.default_rng(3).integers(-6, 9, 60) * 0.5


def x(n=60, dtype="float64"):
    return X[:n].astype(dtype)


def crossings(x):
    """Several lists, one of which each iteration appends to; items of several kinds."""
    places, values, signs, every = [], [0.0], [], []
    before = x[0]
    for i, value in enumerate(x):
        if before * value < 0:
            places.append((i, float(value), value))
            if value > 1:
                values.append(i * 0.5)
        else:
            signs.append(value == 0)
        every.append(value)
        before = value
    return places, values, signs, every


def pairs(x):
    close = []
    for i in range(len(x)):
        for j in range(i):
            if x[i] == x[j]:
                close.append((j, i))
    return close, len(close)


def first_few(x):
    found, k = [], 0
    while len(found) < 5:
        if x[k] > 0:
            found.append(k)
        k += 1
    return found, k


def until(x):
    """What ends the loop may come before or after what appends."""
    found = []
    for i in range(len(x)):
        if x[i] < -2:
            break
        found.append(i)
        if x[i] > 3.5:
            return found, i
    return found, -1


def two_names(x):
    found = []
    other = found
    for value in x:
        if value > 1:
            found.append(value)
        if value < -1:
            other.append(-value)
    other.append(7)
    return other is found, found, other


def by_a_function(x):
    found = []

    def keep(into, value):
        if value > 1:
            into.append(value * 2)

    for value in x:
        keep(found, value)
        if value < 0:
            keep(found, -value)
    return found


def twice(x):
    found = []
    for i in range(len(x)):
        if x[i] > 1:
            found.append(i)
    for i in range(len(x)):
        if x[i] < -1:
            found.append(-i)
    return found


def none(x):
    found = []
    for value in x:
        if value > 100:
            found.append(value)
    return found, len(found)


FUNCTIONS = [peaks, crossings, pairs, first_few, until, two_names, by_a_function, twice, none]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_items_are_those_of_plain_python(f, dtype):
    captured(f, lambda: (x(dtype=dtype),))
    for n in (60, 30, 45, 12):
        check(f, lambda n=n: (x(n, dtype),), backends=BACKENDS, ulp=0)


@pytest.mark.parametrize("f", [peaks, pairs, first_few])
def test_where_there_is_no_room_for_all_items_plain_python_goes_on(f, monkeypatch):
    monkeypatch.setattr(scalar_lists, "ROOM", 3)
    check(f, lambda: (x(),), backends=BACKENDS, calls=3)


def while_there_are_some(x):
    found, i = [], 0
    while i < len(x):
        if x[i] > 0:
            found.append((i, x[i] * 2))
        i += 1
    return found


def beside_older_items(x):
    found, i = [7], 0
    while i < len(x):
        if x[i] > 0:
            found.append(i)
        i += 1
    return found


def squares(x):
    return [v * v for v in x if v > 0]


def raises_in_an_argument(x):
    found, bad = [], 0
    for i in range(len(x)):
        try:
            found.append(root(x[i]))
        except ValueError:
            bad += i
    return found, bad


def root(v):
    if v < 0:
        raise ValueError
    return v * 0.5


LATE = [
    peaks, pairs, first_few, twice, by_a_function, while_there_are_some, squares, raises_in_an_argument, beside_older_items,
]  # fmt: skip


def test_a_list_with_older_items_may_be_filled_without_a_trip_count():
    captured(beside_older_items, lambda: (x(),))


@pytest.mark.parametrize("f", LATE)
def test_after_a_while_the_call_goes_on_where_a_list_is_full(f, monkeypatch):
    monkeypatch.setattr(scalar_lists, "ROOM", 3)
    monkeypatch.setattr(scalar_lists, "MOST_ROOM", 3)
    seen: list[object] = []
    compiled = tcompile.compile(f, dynamic=True)
    with late_loops(), bus.listening(seen.append):
        for n in (60, 45, 31, 60):
            assert repr(compiled(x(n))) == repr(f(x(n)))
    details = {event.detail for event in seen if isinstance(event, FellBack)}
    again = f in (twice, by_a_function)  # without a poll; the called function has appended before
    assert details == {"the call continues in plain Python in the middle of an iteration"} or again


def appends_in_an_inner_loop(x, n):
    found = []
    for i in range(n // 2 + 1):
        for v in x:
            if v > 0:
                found.append(v)
            found.append(i * v)
    return found


def test_an_iteration_may_append_any_number(monkeypatch):
    """There is room for more items than the outer loop has iterations, though their number is open."""
    seen: list[object] = []
    compiled = tcompile.compile(appends_in_an_inner_loop, dynamic=True)
    with bus.listening(seen.append):
        for n in (60, 600):
            assert compiled(x(30), n) == appends_in_an_inner_loop(x(30), n)
    assert not [event for event in seen if isinstance(event, FellBack)]
    monkeypatch.setattr(scalar_lists, "ROOM", 100)
    check(appends_in_an_inner_loop, lambda: (x(30), 60), backends=BACKENDS, calls=3)


def test_an_error_in_the_middle_is_pythons():
    def f(x):
        found = []
        for i in range(len(x)):
            if x[i + 1] > 0:
                found.append(i)
        return found

    check(f, lambda: (x(),), backends=BACKENDS)


@pytest.mark.parametrize(
    "use",
    [
        "np.array(found)", "found[-1]", "sum(found)", "[v * 2 for v in found]", "len(found), found", "bool(found)",
        "x[found]", "found + [1]", "(found, found)", "dict.fromkeys(found)", "np.mean(found) if found else 0.0",
        "sorted(found, reverse=True)", "found.pop(), found", "found == []", "max(found, default=3)", "tuple(found)",
        "[found], x * 2", "found.append(3) or found", "x.sum() + len(found)", "len(found + found)",
    ],
)  # fmt: skip
def test_what_reads_the_list_is_done_with_the_list(use):
    lines = "def f(x):\n    found = []\n    for i in range(len(x)):\n        if x[i] > 2: found.append(i)\n"
    names = {"np": np}
    exec(compile(f"{lines}    return {use}\n", "<lists>", "exec"), names)
    _, compiled = check(names["f"], lambda: (x(),), backends=BACKENDS, calls=3)
    assert "scalar_loop" in ops(compiled)


def test_each_iteration_that_appends_gives_rows_of_an_array():
    def f(x):
        found = []
        for i in range(len(x)):
            found.append(x[i] * 2)
        return np.array(found) + 1

    for compiled in check(f, lambda: (x(),), backends=BACKENDS, fullgraph=True):
        assert not compiled.breaks


COMPREHENSIONS = [
    "[v * 2 for v in x]", "[i for i in range(1, len(x) - 1) if x[i - 1] < x[i] > x[i + 1]]", "[(i, v) for i, v in enumerate(x)]",
    "np.array([math.sqrt(abs(v)) for v in x]) * 2", "np.array([v for v in x if v > 0])", "x * 2 + np.array([v + 1 for v in x])",
    "[i + j for i in range(len(x)) for j in range(i) if x[i] == x[j]]", "[[v for v in x if v > 1], [i for i in range(60) if x[i] < 0]]",
    "len([v for v in x if v > 1]), [float(v) for v in x]", "sum([abs(v) for v in x])", "[v if v > 0 else -v for v in x]",
    "max([x[i] - x[i - 1] for i in range(1, len(x))])", "[max(v, 1.0) for v in x]", "[v > 0 for v in x], [bool(v > 0) for v in x]",
    "np.array([[v, 2 * v] for v in x])", "[v for v in x if v > 100]", "(3, [int(v) for v in x], x[0])", "[x[i + 1] for i in range(len(x))]",
    "[x[i + 1] if i < 30 else x[i] for i in range(len(x)) if i % 2]", "[k for v in x if (k := int(v)) > 2]",
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize("text", COMPREHENSIONS)
def test_comprehensions_give_what_they_give_in_plain_python(text, dtype):
    names = {"np": np, "math": math}
    exec(compile(f"def f(x):\n    return {text}\n", "<comprehension>", "exec"), names)
    for _ in range(2):
        for n in (60, 45, 61):
            check(names["f"], lambda n=n: (np.resize(x(dtype=dtype), n),), backends=BACKENDS, calls=3)


@pytest.mark.parametrize(
    "text", ["[v * 2 for v in x]", "np.array([math.sqrt(v) for v in x]) + 1", "[v for v in x if v > 1]"]
)
def test_comprehensions_over_elements_are_machine_code(text):
    names = {"np": np, "math": math}
    exec(compile(f"def f(x):\n    return {text}\n", "<comprehension>", "exec"), names)
    captured(names["f"], lambda: (abs(x()),), fullgraph=True)


def test_few_iterations_that_append_are_followed_where_no_test_is_in_the_way():
    def each(x):
        return sum([v * v for v in x])

    def some(x):
        return [v for v in x if v > 1]

    few, many = (lambda: (x(16),)), (lambda: (x(17),))
    refused(each, few)
    refused(some, few)
    captured(some, few, fullgraph=True)
    captured(some, many)
    captured(each, many)


@pytest.mark.parametrize(
    "item", ["x", "[i]", "'a'", "(i, x)", "()", "(i, (i, i))", "i if x[i] > 3 else x[i]", "None", "found"]
)
def test_other_items_are_not_kept(item):
    lines = "def f(x):\n    found = []\n    for i in range(len(x)):\n        if x[i] > 2:\n"
    names = {}
    exec(compile(f"{lines}            found.append({item})\n    return len(found), x\n", "<lists>", "exec"), names)
    refused(names["f"], lambda: (x(),))


def test_lists_from_outside_are_pythons():
    kept = []

    def f(x, found):
        for i in range(len(x)):
            if x[i] > 2:
                found.append(i)
                kept.append(i)
        return len(found)

    def run(f):
        kept.clear()
        found = [1]
        return [(f(x(), found), list(found), list(kept)) for _ in range(3)]

    assert run(tcompile.compile(f)) == run(f)


def test_loops_around_are_loops_of_python():
    def f(x):
        found = []
        for k in range(40):
            y = np.sin(x + k)
            for i in range(len(x)):
                if y[i] > 0.9:
                    found.append((k, i))
        return found

    check(f, lambda: (x(),), backends=BACKENDS, ulp=0)
