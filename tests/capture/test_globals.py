# ruff: noqa: E501, F821
"""Globals: read under guards, stored and deleted after the graph, redefined between calls."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

import tcompile

from .helpers import X, broken, whole, x

K = 3
W = np.arange(4.0)
NAMES = {"k": 2.0}
STATE = None


def helper(a):
    return a * 2


def uses(a):
    return helper(a) * K + W + NAMES["k"]


def stores(a):
    global STATE
    STATE = a + 1
    return STATE * 2


def counts(a):
    global STATE
    STATE = 1 if STATE is None else STATE
    STATE += 1
    STATE = STATE * 10
    return a * STATE


def stores_through_a_helper(a):
    counts(a)
    return a + STATE


def deletes(a):
    global STATE
    STATE = 5
    del STATE
    return a + 1


def reads_deleted(a):
    global STATE
    STATE = a
    del STATE
    return STATE


@pytest.fixture(autouse=True)
def fresh():
    yield
    globals().update(K=3, W=np.arange(4.0), NAMES={"k": 2.0}, STATE=None, helper=ORIGINAL)


ORIGINAL = helper


def test_reads():
    assert whole(uses, x).graphs[0].op_count == 4


@pytest.mark.parametrize("change", [
    {"K": 4}, {"K": 2.5}, {"K": np.float32(2)}, {"K": W}, {"W": W * 2}, {"W": 5}, {"W": W.astype("float32")}, {"NAMES": {"k": 7}},
    {"helper": lambda a: a - 1}, {"helper": np.exp}, {"helper": lambda a, b=K: a * b},
])  # fmt: skip
def test_changes_are_seen(change):
    compiled = tcompile.compile(uses, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(X), uses(X))
    globals().update(change)
    for _ in range(2):
        np.testing.assert_array_equal(compiled(X), uses(X))


def test_redefining_a_helper_says_so():
    compiled = tcompile.compile(uses, backend="eager", fullgraph=True)
    compiled(X)
    globals()["helper"] = lambda a: a + 5
    np.testing.assert_array_equal(compiled(X), uses(X))
    assert "helper" in compiled.recompiles[0][0]


def test_a_builtin_that_is_shadowed():
    def f(a):
        return a * abs(-2)

    namespace = {}
    exec("def f(a):\n    return a * abs(-2)", namespace)
    compiled = tcompile.compile(namespace["f"], backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(X), X * 2)
    namespace["abs"] = lambda v: 7
    np.testing.assert_array_equal(compiled(X), X * 7)
    del namespace["abs"]
    np.testing.assert_array_equal(compiled(X), X * 2)


@pytest.mark.parametrize("f", [stores, counts, stores_through_a_helper, deletes])
def test_stores(f):
    for start in (None, 4, 2.5):
        globals()["STATE"] = start
        want, after = f(X), globals().get("STATE", "deleted")
        globals()["STATE"] = start
        compiled = tcompile.compile(f, backend="llvm", fullgraph=True)
        for _ in range(2):
            globals()["STATE"] = start
            got = compiled(X)
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(globals().get("STATE", "deleted"), after)
    globals()["STATE"] = None


def test_a_stored_array_is_the_one_returned():
    def f(a):
        global STATE
        STATE = a + 1
        return STATE, [STATE]

    exec_globals = tcompile.compile(f, backend="eager", fullgraph=True)
    value, (same,) = exec_globals(X)
    assert value is STATE and same is STATE


def test_stores_around_a_break():
    def f(a):
        global STATE
        STATE = "half"
        if a.sum() > 1e9:
            return 1
        STATE = "done"
        return a * 2

    compiled = tcompile.compile(f, backend="eager")
    np.testing.assert_array_equal(compiled(X), X * 2)
    assert STATE == "done" and len(compiled.graphs) == 2  # 3.13 compares and asks for the truth in one instruction


def test_nothing_is_stored_where_the_graph_raises():
    def f(a):
        global STATE
        STATE = "stored"
        return np.linalg.inv(a)

    compiled = tcompile.compile(f, backend="eager")
    with pytest.raises(np.linalg.LinAlgError):
        compiled(np.zeros((2, 2)))
    assert STATE == "stored"  # by plain Python, before it raises


def test_unknown_and_deleted_names():
    def f(a):
        return a + no_such_name

    broken(f, x, "operation-raises", "no_such_name")
    globals()["STATE"] = 1
    broken(reads_deleted, x, "operation-raises", "return STATE")


def test_globals_of_another_module():
    other = {"np": np, "K": 5}
    exec("def inner(a):\n    return a * K\ndef writes(a):\n    global K\n    K = 9\n    return a * K", other)
    inner, writes = other["inner"], other["writes"]
    compiled = tcompile.compile(lambda a: inner(a) * K, backend="eager", fullgraph=True)
    np.testing.assert_array_equal(compiled(X), X * 5 * 3)
    other["K"] = 7
    np.testing.assert_array_equal(compiled(X), X * 7 * 3)
    stores = tcompile.compile(lambda a: (writes(a) * K, inner(a)), backend="eager", fullgraph=True)
    for _ in range(2):
        result = stores(X)
        np.testing.assert_array_equal(result[0], X * 9 * 3)
        np.testing.assert_array_equal(result[1], X * 9)
        assert other.pop("K") == 9 and K == 3
        other["K"] = 1


def test_attributes_of_modules_are_stored():
    settings = types.ModuleType("settings")

    def f(a):
        settings.rate = 2
        settings.late = a * settings.rate
        del settings.old
        return a + settings.rate, hasattr(settings, "rate")

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for _ in range(2):
        settings.old, settings.rate = 1, 0
        np.testing.assert_array_equal(compiled(X)[0], X + 2)
        assert settings.rate == 2 and not hasattr(settings, "old")
        np.testing.assert_array_equal(settings.late, X * 2)
    with pytest.raises(AttributeError, match="old"):
        tcompile.compile(f, backend="eager")(X)


def test_a_global_that_is_made_and_deleted():
    space = {"np": np}
    exec("def f(a, k):\n    global N\n    if k:\n        N = a\n    del N\n    return a + 1", space)
    compiled = tcompile.compile(space["f"], backend="eager", fullgraph=True)
    for _ in range(2):
        compiled(X, True)
        assert "N" not in space
    space["N"] = 1
    loose = tcompile.compile(space["f"], backend="eager")
    loose(X, False)
    assert "N" not in space
    with pytest.raises(NameError):
        loose(X, False)


def test_imports_of_what_is_imported():
    def f(a):
        import math
        import os.path
        import xml as x
        from math import pi as p
        from math import tau

        return a * math.pi * p, tau, os.path.sep, x.__name__

    import xml  # noqa: F401

    compiled = whole(f, x)
    kept, sys.modules["math"] = sys.modules["math"], types.ModuleType("math")
    try:
        sys.modules["math"].pi, sys.modules["math"].tau = 3, 6
        assert compiled(X)[1] == 6
    finally:
        sys.modules["math"] = kept
    assert compiled(X)[1] == kept.tau


def test_imports_of_what_is_not_there():
    def f(a):
        from math import nothing

        return a + nothing

    with pytest.raises(ImportError, match="nothing"):
        tcompile.compile(f, backend="eager")(X)


def test_one_code_object_in_two_modules():
    source = compile("def f(a):\n    global N\n    N = 1\n    return g(a)\ndef g(a):\n    return a * K", "m", "exec")
    spaces = [{"K": 2}, {"K": 3}]
    for space in spaces:
        exec(source, space)
    for space in spaces * 2:
        f = tcompile.compile(space["f"], backend="eager", fullgraph=True)
        np.testing.assert_array_equal(f(X), X * space["K"])
        assert space.pop("N") == 1


def returns_global(a):
    return W


def test_a_function_that_returns_a_global_may_be_called_by_a_built_in():
    def f(a):
        return a[0] + [w * 2 for w in list(map(returns_global, [a, a]))][1]

    whole(f, x)


OPTION = 1


def asks_whether_there_is_one(x):
    try:
        OPTION
    except NameError:
        return x * 0
    return x * 2


def reads_it_for_nothing(x, flag=False):
    found = OPTION
    return found * x if flag else x * 2


@pytest.mark.parametrize("f", [asks_whether_there_is_one, reads_it_for_nothing])
def test_a_global_that_is_only_read_may_go(f, monkeypatch):
    compiled = tcompile.compile(f)
    for _ in range(3):
        assert compiled(np.ones(2)).tolist() == [2, 2]
    monkeypatch.delitem(globals(), "OPTION")
    try:
        want = f(np.ones(2)).tolist()
    except NameError:
        with pytest.raises(NameError, match="OPTION"):
            compiled(np.ones(2))
    else:
        assert compiled(np.ones(2)).tolist() == want
    monkeypatch.undo()
    assert compiled(np.ones(2)).tolist() == [2, 2]
