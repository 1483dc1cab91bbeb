"""Functions and numbers of libraries that are replaced, as ``unittest.mock.patch`` does, between calls."""

from __future__ import annotations

import builtins
import math
import operator
from unittest import mock

import numpy as np
import pytest

import tcompile
from tcompile.runtime.native import bindings, calls

from .native_calls import answered, settled

X = np.linspace(0, 1, 8)

CASES = {
    "numpy.sin": lambda x: np.sin(x) + np.cos(x),
    "numpy.linalg.norm": lambda x: np.linalg.norm(x) * x,
    "numpy.pi": lambda x: x * np.pi,
    "numpy.float32": lambda x: (x * 2, np.float32),
    "math.sqrt": lambda x: x * math.sqrt(4),
    "math.pi": lambda x: x + math.pi,
    "operator.add": lambda x: operator.add(x, 1),
    "numpy.newaxis": lambda x: x[: 2 if np.newaxis is None else 3],
}


def replaced(*_):
    return 7.0


def same(got, want):
    if isinstance(want, tuple):
        assert got[1] is want[1]
    np.testing.assert_allclose(*((a[0] if isinstance(a, tuple) else a) for a in (got, want)), rtol=1e-15)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_what_is_replaced_is_noticed(name, native):
    f = CASES[name]
    with tcompile.config.patch(native_calls=native):
        compiled = tcompile.compile(f)

        def both():
            for _ in range(4):
                same(compiled(X), f(X))

        both()
        with mock.patch(name, 3.0 if name.endswith("pi") else replaced):
            both()
        both()
        with mock.patch(name, 4.0 if name.endswith("pi") else replaced):
            other = tcompile.compile(f)
            same(other(X), f(X))
        same(other(X), f(X))
        both()


@pytest.mark.parametrize("native", [True, False])
def test_a_builtin(native, monkeypatch):
    with tcompile.config.patch(native_calls=native):
        compiled = tcompile.compile(lambda x: x * len(x))
        for _ in range(3):
            assert compiled(X)[-1] == 8
        monkeypatch.setattr(builtins, "len", lambda x: 5)
        found = compiled(X)
        monkeypatch.undo()
        assert found[-1] == 5 and compiled(X)[-1] == 8


def test_a_loop_of_draws():
    def f(n):
        total = 0.0
        for _ in range(n):
            total += np.random.rand()
        return total

    compiled = tcompile.compile(f)
    for _ in range(3):
        compiled(20)
    with mock.patch("numpy.random.rand", lambda: 0.5):
        assert compiled(20) == 10.0
    np.random.seed(3)
    got = compiled(20)
    np.random.seed(3)
    assert got == f(20)


def test_settings_that_others_keep_in_the_module(monkeypatch):
    monkeypatch.setattr(np, "setting", 1, raising=False)
    compiled = tcompile.compile(lambda x: x * np.setting)
    for setting in (1, 1, 2, 3, 3, 1):
        np.setting = setting
        assert compiled(X).tolist() == (X * setting).tolist()
    monkeypatch.undo()
    with pytest.raises(AttributeError, match="setting"):
        compiled(X)


@pytest.mark.parametrize("module", [np, builtins, math])
def test_other_changes_of_the_module_are_no_reason_to_miss(module, monkeypatch):
    compiled = settled(lambda x: np.sin(x) * len(x) + math.pi, X)
    monkeypatch.setattr(module, "new_name", 1, raising=False)
    assert [answered(compiled, X)[0] for _ in range(3)] == [1, 1, 1]
    monkeypatch.delattr(module, "new_name")
    assert [answered(compiled, X)[0] for _ in range(3)] == [1, 1, 1]


def test_changes_are_told_by_one_word():
    """On every CPython that the machine code of calls knows."""
    made = calls.machine()
    if isinstance(made, str):
        pytest.skip(made)
    for namespace in (vars(np), vars(math), {}):
        assert bindings.version_at(namespace, made.code["rebound"]) is not None


def test_names_are_looked_up_where_no_word_tells(monkeypatch):
    monkeypatch.setattr("tcompile.runtime.native.guards.version_at", lambda *_: None)
    compiled = settled(lambda x: np.sin(x) * len(x) + np.pi, X)
    with mock.patch("numpy.sin", replaced):
        assert compiled(X) == 7.0 * len(X) + np.pi
    assert answered(compiled, X)[0] == 1


def test_guards_name_a_module_once():
    report = tcompile.explain(lambda x: np.exp(x) + np.sin(x) * math.pi)(X)
    assert "\n    numpy: exp, sin are unchanged\n    math.pi is unchanged\n" in str(report)


class Tool:
    def method(self, x):
        return x * 2

    @staticmethod
    def static(x):
        return x * 3

    @classmethod
    def of_class(cls, x):
        return x * 4

    @property
    def number(self):
        return 5


USES = {
    "method": (lambda o, x: o.method(x) if o else x, lambda self, x: x * 20),
    "static": (lambda o, x: o.static(x), staticmethod(lambda x: x * 30)),
    "of_class": (lambda o, x: o.of_class(x), classmethod(lambda cls, x: x * 40)),
    "number": (lambda o, x: o.number * x, property(lambda self: 50)),
}


def has_calls_of_python(compiled):
    """Whether machine code calls Python for some guard."""
    return any(calls.machine().code["result_of"] in entry.plan.words for entry in compiled.entries)


@pytest.mark.parametrize("name", USES)
def test_what_classes_define_is_looked_up_in_machine_code(name, monkeypatch):
    f, other = USES[name]
    tool = Tool()
    compiled = settled(f, tool, X)
    # Python is asked whether the object has an attribute of that name itself, which would hide a method.
    assert has_calls_of_python(compiled) == (name != "number")
    monkeypatch.setattr(Tool, name, other)
    for _ in range(3):
        assert compiled(tool, X).tolist() == f(tool, X).tolist()
    assert answered(compiled, tool, X)[0] == 1
    monkeypatch.undo()
    assert compiled(tool, X).tolist() == f(tool, X).tolist()


def test_a_class_that_gets_a_length_and_a_global_that_hides_a_builtin(monkeypatch):
    def f(o, x):
        return x * len(x) if o else x

    class Late:
        pass

    late = Late()
    compiled = settled(f, late, X)
    assert not has_calls_of_python(compiled)
    monkeypatch.setitem(globals(), "len", lambda x: 3)
    assert compiled(late, X).tolist() == (X * 3).tolist()
    monkeypatch.undo()
    monkeypatch.setattr(Late, "__len__", lambda self: 0, raising=False)
    assert compiled(late, X) is X
    monkeypatch.undo()
    assert compiled(late, X).tolist() == (X * 8).tolist()
