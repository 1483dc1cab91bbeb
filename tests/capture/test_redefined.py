"""What is redefined in place between calls, as IPython does it for autoreload, and what looks like what was there."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
from differential import assert_same

import tcompile

from .helpers import X


def classes():
    """A class of which everything can be given other code, and an instance."""

    class Model:
        def __init__(self, w):
            self.w = w

        def method(self, x):
            return x * self.w

        @property
        def value(self):
            return self.w + 1

        @value.setter
        def value(self, w):
            self.w = w

        @staticmethod
        def static(x):
            return x + 1

        @classmethod
        def of_class(cls, x):
            return x - 1

        def __call__(self, x):
            return x + self.w

        def __add__(self, x):
            return x * 2

        def __getitem__(self, i):
            return i + 1

    return Model, Model(2.0)


def sets(m, M, x):
    m.value = 3.0
    return x * m.w


REDEFINED = {
    "method": (lambda m, M, x: m.method(x), lambda self, x: x * 9),
    "value": (lambda m, M, x: x * m.value, lambda self: 9),
    "value.fset": (sets, lambda self, w: vars(self).update(w=w + 1)),
    "static": (lambda m, M, x: (m.static(x), M.static(x)), lambda x: x * 9),
    "of_class": (lambda m, M, x: (m.of_class(x), M.of_class(x)), lambda cls, x: x * 9),
    "__init__": (lambda m, M, x: x * M(4.0).w, lambda self, w: vars(self).update(w=w + 1)),
    "__call__": (lambda m, M, x: m(x), lambda self, x: x * 9),
    "__add__": (lambda m, M, x: m + x, lambda self, x: x * 9),
    "__getitem__": (lambda m, M, x: x * m[1], lambda self, i: i + 9),
}


@pytest.mark.parametrize("name", REDEFINED)
@pytest.mark.parametrize("native", [True, False])
def test_the_code_of_what_a_class_defines(name, native):
    f, other = REDEFINED[name]
    Model, model = classes()
    with tcompile.config.patch(native_calls=native):
        compiled = tcompile.compile(lambda x: f(model, Model, x))
        for _ in range(3):
            assert_same(compiled(X), f(model, Model, X))
        held = vars(Model)[name.partition(".")[0]]
        function = getattr(held, "__func__", getattr(held, "fset" if "." in name else "fget", held))
        function.__code__ = other.__code__
        for _ in range(3):
            assert_same(compiled(X), f(model, Model, X))


def test_the_code_of_a_function_that_is_compiled_itself():
    def inner(x):
        return x + 1

    called = tcompile.compile(inner)
    compiled = tcompile.compile(lambda x: called(x) * 2)
    assert_same(compiled(X), (X + 1) * 2)
    inner.__code__ = (lambda x: x + 9).__code__
    assert_same(compiled(X), (X + 9) * 2)


class Asked:
    """A key that is equal to none, and says so."""

    asked = 0

    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        type(self).asked += 1
        return NotImplemented


@pytest.mark.parametrize(
    "f, make",
    [
        (lambda d, x: {k: v * x for k, v in d.items()}, lambda key: {key: 2.0}),
        (lambda d, x: [v * x for v in d.values()], lambda key: {key: 2.0}),
        (lambda s, x: (list(s), x + 1), lambda key: {key}),
        (lambda s, x: (len(s), x + 1), lambda key: frozenset([key])),
    ],
)
def test_keys_that_equal_strings_are_none(f, make):
    compiled = tcompile.compile(f)
    for key in ("a", np.str_("a"), "a"):
        got, want = compiled(make(key), X), f(make(key), X)
        assert repr(got) == repr(want)
    Asked.asked = 0
    compiled(make(Asked()), X)
    assert not Asked.asked


@pytest.mark.parametrize(
    "f",
    [
        lambda m, x: x * m.k, lambda m, x: x * hasattr(m, "k"), lambda m, x: x * getattr(m, "k", 3),
    ],
)  # fmt: skip
def test_a_module_that_answers_is_asked_as_often_as_in_python(f):
    def answer(name):
        asked.append(name)
        return float(len(asked))

    rows = []
    for g in (f, tcompile.compile(f)):
        asked = []
        module = types.ModuleType("answers")
        module.__getattr__ = answer
        rows.append(([g(module, X).tolist() for _ in range(4)], len(asked)))
    assert rows[0] == rows[1]


@pytest.mark.parametrize("legacy", ["1.25", "1.13"])
def test_texts_of_numbers_follow_the_print_options(legacy):
    def f(x):
        return repr(np.float64(2.5)), str(np.float64(1) / 3), f"{np.float64(0.1)}", x + 1

    compiled = tcompile.compile(f)
    assert_same(compiled(X), f(X))
    with np.printoptions(legacy=legacy):
        assert_same(compiled(X), f(X))


def test_texts_of_long_ints_follow_their_limit():
    def f(x, n):
        return len(str(10**n)), int("1" * n) % 7, x + 1

    before = sys.get_int_max_str_digits()
    compiled = tcompile.compile(f)
    assert_same(compiled(X, 4000), f(X, 4000))
    try:
        sys.set_int_max_str_digits(1000)
        with pytest.raises(ValueError, match="limit"):
            compiled(X, 4000)
    finally:
        sys.set_int_max_str_digits(before)
