# ruff: noqa: E501
"""Changes of what came from outside: seen at once inside, done after the graph; and new objects that leave the function."""

from __future__ import annotations

import functools
import types

import numpy as np
import pytest

import tcompile

from .helpers import X, whole

LOG: list = []


def appends(a, items, table):
    items.append(a.ndim)
    items.append(a + 1)
    return items[-1] * 2, len(items)


def many_list_changes(a, items, table):
    items[0] = a * 2
    items.insert(1, "new")
    items.extend(items)
    del items[2]
    items.pop()
    items += (4, 5)
    items[1:3] = [a]
    items.reverse()
    return items, items[1]


def sorts(a, items, table):
    items[:] = [3, 1, 2]
    items.sort(key=lambda v: -v)
    items.remove(1)
    return a * items[0], items.index(2), items.count(3), sorted(items, reverse=True)


def shrinks(a, items, table):
    del items[1:]
    return a + 1


def many_dict_changes(a, items, table):
    table["b"] = a * 2
    table["c"] = 1
    del table["a"]
    table["a"] = 4
    table.update(d=5)
    table.setdefault("e", []).append(a)
    table.pop("d")
    return table["a"] + a, list(table), table.get("zz")


def clears(a, items, table):
    table.clear()
    table["k"] = a
    items.clear()
    items.append(table)
    return a + 1


def holds_itself(a, items, table):
    items.append(items)
    table["t"] = (table, items)
    return a + 1, items[-1] is items


def nested(a, items, table):
    table["a"] = items
    table["a"].append(a + 1)
    return items[-1]


@pytest.mark.parametrize("f", [appends, many_list_changes, sorts, shrinks, many_dict_changes, clears, nested])
def test_containers_from_outside(f):
    whole(f, lambda: (X.copy(), [1, 2.5, "s"], {"a": 1, "b": X.copy()}))


def test_outside_containers_that_come_to_hold_themselves():
    compiled = tcompile.compile(holds_itself, backend="eager", fullgraph=True)
    items, table = [1], {}
    assert compiled(X, items, table)[1] is True
    assert items == [1, items] and items[1] is items and table["t"][0] is table and table["t"][1] is items


def test_a_global_list():
    def f(a):
        LOG.append(a + 1)
        return a * 2

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for count in range(1, 4):
        compiled(X)
        assert len(LOG) == count
    np.testing.assert_array_equal(LOG[-1], X + 1)
    LOG.clear()


def test_untouched_items_are_not_guarded():
    def f(a, items):
        items.append(1)
        return a + 1

    compiled = whole(f, lambda: (X.copy(), [1, object, None]))
    assert compiled(X, [5, 6, 7]) is not None and len(compiled.entries) == 1


@pytest.mark.parametrize("order", [0, 1])
def test_one_object_in_two_places(order):
    def f(a, p, q):
        p.append(1)
        n = len(q)
        q.append(a + n)
        return len(p), len(q), p is q

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)

    def together():
        p = [0]
        return p, p

    def apart():
        return [0], [0]

    for make in [(together, apart, together), (apart, together, apart)][order]:
        want, got = make(), make()
        assert f(X, *want) == compiled(X, *got)
        assert [len(v) for v in got] == [len(v) for v in want]


def test_an_inner_place_of_the_same_object():
    def f(a, p, q):
        p.append(1)
        return a * len(q["k"])

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for same in (False, True, False):
        p = [0]
        np.testing.assert_array_equal(compiled(X, p, {"k": p if same else [0]}), X * (2 if same else 1))


def counter():
    n, late = 0, None

    def step(a):
        nonlocal n, late
        n += 1
        late = a * n
        return late

    def value():
        return n, late

    def forget(a):
        nonlocal late
        del late
        return a + 1

    return step, value, forget


def test_outer_variables():
    step, value, forget = counter()
    compiled = tcompile.compile(lambda a: (step(a), value()), backend="eager", fullgraph=True)
    for n in range(1, 5):
        got, (count, late) = compiled(X)
        assert count == n and late is got
        np.testing.assert_array_equal(got, X * n)
        assert value()[0] == n and value()[1] is got
    tcompile.compile(forget, backend="eager", fullgraph=True)(X)
    with pytest.raises(NameError):
        value()


def test_outer_variables_of_functions_that_come_as_arguments():
    def f(a, step, value):
        return step(a) + value()[0]

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    one, other = counter(), counter()
    for step, value in [(one[0], one[1]), (one[0], other[1]), (one[0], one[1]), (other[0], one[1])]:
        before = one[1]()[0], other[1]()[0]
        n = before[step is other[0]] + 1
        want = X * n + (before[value is other[1]] + ((step is one[0]) == (value is one[1])))
        np.testing.assert_array_equal(compiled(X, step, value), want)


def rebuilt(a):
    scale = 2.0

    def plain(v: float, w: int = 3, *, z: list = [a], **more) -> float:
        "Says what it does."
        return v * scale + w + len(z)

    def down(n):
        nonlocal scale
        scale += 1
        return a if n == 0 else down(n - 1) * 2

    class_method = types.MethodType(plain, a)
    part = functools.partial(plain, 1, w=a)
    both = [plain, plain]
    return plain, down, class_method, part, both, a.sum, [1].append, {"k": 1}.get, (lambda: plain)


def test_new_functions_leave():
    compiled = tcompile.compile(rebuilt, backend="eager", fullgraph=True)
    plain, down, method, part, both, array_method, append, get, deferred = compiled(X)
    want = rebuilt(X)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__defaults__", "__annotations__"):
        assert getattr(plain, name) == getattr(want[0], name)
    assert plain.__kwdefaults__["z"][0] is X and plain.__globals__ is globals()
    assert both[0] is both[1] is plain is method.__func__ is part.func is deferred()
    assert plain(1.0) == want[0](1.0)
    np.testing.assert_array_equal(down(2), want[1](2))
    assert plain(1.0) == want[0](1.0)  # which sees what down did to the variable
    np.testing.assert_array_equal(method(), want[2]())
    np.testing.assert_array_equal(part(), want[3]())
    assert array_method() == X.sum() and get("k") == 1 and append.__self__ == [1]


def test_new_containers_that_hold_themselves_leave():
    def f(a):
        items = [a]
        table = {"items": items}
        pair = (items, table)
        items.append(pair)
        return pair, items

    pair, items = tcompile.compile(f, backend="eager", fullgraph=True)(X)
    assert pair[0] is items and items[1] is pair and pair[1]["items"] is items and items[0] is X


def test_iterators_cannot_be_made_again():
    def f(a):
        return iter([a])

    compiled = tcompile.compile(f, backend="eager")
    assert next(compiled(X)) is X and compiled.breaks


def test_a_list_that_is_only_appended_to_may_grow():
    def f(a, history, names):
        history.append(a + 1)
        history.extend([1, 2])
        names.insert(0, "n")
        return a * 2

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    history: list = []
    for count in range(1, 6):
        compiled(X, history, [])
        assert len(history) == count * 3
    assert len(compiled.entries) == 1
    names = ["a"]
    compiled(X, history, names)
    assert names == ["n", "a"] and len(compiled.entries) == 2


def test_counts_that_are_kept_become_symbolic():
    class Model:
        calls = 0

    def f(m, a):
        m.calls += 1
        return a + m.calls

    compiled, model = tcompile.compile(f, backend="eager", fullgraph=True), Model()
    for count in range(1, 8):
        np.testing.assert_array_equal(compiled(model, X), X + count)
        assert model.calls == count and type(model.calls) is int
    assert len(compiled.entries) <= 3


def test_huge_containers_are_left_to_python():
    def f(a, n):
        return len([0] * n), len(list(range(n))), a + 1

    compiled = tcompile.compile(f, backend="eager")
    assert compiled(X, 50_000)[:2] == (50_000, 50_000)


def test_names_that_hold_something_empty():
    def f(a):
        v, w = [], {}
        p = [v + 1 for v in (1, 2)], {w: w for w in "ab"}

        def inner():
            yield 1
            return []

        def outer():
            got = yield from inner()
            yield got

        return v, w, p, list(outer()), a + 1

    whole(f)


def test_many_objects_that_change():
    class Particle:
        def __init__(self, v):
            self.v = v

    def f(a, particles):
        for p in particles:
            p.v = p.v + 1
        return a * particles[0].v

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    many = [Particle(2) for _ in range(100)]
    np.testing.assert_array_equal(compiled(X, many), X * 3)
    assert {p.v for p in many} == {3} and len(compiled.entries[0].guards) < 500
    same = [Particle(2) for _ in range(99)]
    same.append(same[0])
    np.testing.assert_array_equal(compiled(X, same), X * 4)
    assert [same[0].v, same[1].v] == [4, 3]


def test_a_dict_that_is_changed_key_by_key_may_hold_others():
    def f(a, table):
        table["sum"] = a.sum()
        table.setdefault("count", 0)
        table["count"] += 1
        if "stop" in table:
            del table["stop"]
        return a * 2

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for start in (
        {},
        {"count": 0},
        {"other": 5, "count": 0},
        {"x": 1, "stop": 2},
        {"count": 0, "x": 1},
        {"stop": 1, "z{}": 3},
    ):
        got, want = dict(start), dict(start)
        for _ in range(2):
            compiled(X, got), f(X, want)
            assert list(got.items()) == list(want.items())
    assert len(compiled.entries) <= 5


def test_the_order_of_new_keys():
    def f(a, table):
        table["p"] = 1
        table["q"] = 2
        table["p"] = 3
        return a + 1

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for start in ({"q": 0}, {}, {"p": 0}, {"q": 0, "p": 0}, {"r": 1}, {1: 2, "q": 3}):
        got, want = dict(start), dict(start)
        compiled(X, got), f(X, want)
        assert list(got.items()) == list(want.items())


def test_a_dict_that_is_asked_for_all_its_keys():
    def f(a, table):
        table["n"] = len(table)
        return a + sum(table.values())

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for start in ({}, {"a": 1}, {"n": 4}, {"a": 1, "b": 2}):
        got, want = dict(start), dict(start)
        np.testing.assert_array_equal(compiled(X, got), f(X, want))
        assert got == want


class Holder:
    def __init__(self, held):
        self.held = held


def _ones():
    yield 1


STATE = None


def test_a_local_that_cannot_be_made_again_leaves_nothing_half_made():
    def f(a):
        global STATE
        a.sum()
        STATE = Holder(_ones())
        kept = STATE  # noqa: F841  read by nobody: it may be dropped, the global may not
        return (1).nothing

    with pytest.raises(AttributeError, match="nothing"):
        tcompile.compile(f, backend="eager")(X)
    assert list(STATE.held) == [1]
