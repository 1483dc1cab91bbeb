"""What objects answer when Python asks what they are or can do, and classes that get such methods later."""

from __future__ import annotations

import weakref
from unittest import mock

import numpy as np
import pytest
from differential import check

import tcompile

X = np.ones(2)


class Plain:
    pass


class Pretends:
    __class__ = property(lambda self: Plain)


class NotCallable:
    __call__ = None


class Answers:
    def __getattr__(self, name):
        return 5


class Counts:
    seen = 0

    def __eq__(self, other):
        Counts.seen += 1
        return True

    __hash__ = None


class NegatesNothing:
    def __neg__(self):
        return NotImplemented


PLAIN = Plain()


def which(o, x):
    match o:
        case Plain():
            return x * 2
    return x * 3 if isinstance(o, np.ndarray) else x


CASES = {
    "no unary minus": (lambda o, x: -o, PLAIN), "no unary plus": (lambda o, x: +o, PLAIN),
    "no inversion": (lambda o, x: ~o, PLAIN), "a minus that does not know": (lambda o, x: -o, NegatesNothing()),
    "isinstance of a proxy": (lambda o, x: x * isinstance(o, Plain), weakref.proxy(PLAIN)),
    "isinstance of a mock": (lambda o, x: x * isinstance(o, Plain), mock.Mock(spec=Plain)),
    "isinstance of one that pretends": (lambda o, x: x * isinstance(o, (int, Plain)), Pretends()),
    "a pattern and a proxy": (which, weakref.proxy(PLAIN)), "a pattern and one that pretends": (which, Pretends()),
    "a longer tuple": (lambda o, x: (x, 1) == (1,), None), "another tuple": (lambda o, x: (o, 1) != (2,), 1),
    "a longer list": (lambda o, x: [x, 1] == [1], None),
    "a tuple of one that counts": (lambda o, x: ((o, 1) == (0,), Counts.seen), Counts()),
    "what is looked up plainly": (lambda o, x: object.__getattribute__(o, "zz") * x, Answers()),
    "a method that is None": (lambda o, x: x * callable(o), NotCallable()),
    "callable": (lambda o, x: (callable(o), callable(x), callable(len), callable(which), callable([])), PLAIN),
    "an item with a list as its key": (lambda o, x: (([1], 2) in {1: 2}.items(), x * 2), None),
    "items": (lambda o, x: ((1, 2) in o.items(), (1, 3) in o.items(), (3, 2) in o.items(), (1, 2, 3) in o.items(),
                            [1, 2] in o.items(), x * 2), {1: 2}),
    "items and a number": (lambda o, x: (1 in o.items(), () in o.items(), x * 2), {1: 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_answers(name):
    f, o = CASES[name]

    def begin():
        Counts.seen = 0
        return o, X

    check(f, begin, backends=("llvm",), calls=3)


GAINED = {
    "__len__": (lambda self: 0, lambda o, x: x * 2 if o else x * 0),
    "__bool__": (lambda self: False, lambda o, x: x * (not o)),
    "__contains__": (lambda self, item: True, lambda o, x: x * (7 in o)),
    "__call__": (lambda self: 1, lambda o, x: x * callable(o)),
    "__neg__": (lambda self: 3, lambda o, x: x * -o),
}


@pytest.mark.parametrize("name", GAINED)
def test_a_class_may_get_the_method_later(name):
    class Late:
        def __iter__(self):
            return iter([1, 2])

    method, f = GAINED[name]
    compiled, late = tcompile.compile(f), Late()

    def both():
        for _ in range(3):
            try:
                want = f(late, X).tolist()
            except TypeError:
                with pytest.raises(TypeError):
                    compiled(late, X)
            else:
                assert compiled(late, X).tolist() == want

    both()
    setattr(Late, name, method)
    both()
    delattr(Late, name)
    both()


@pytest.mark.parametrize("f", [lambda a, b, x: (a in [b], x * 2), lambda a, b, x: ([a, 1] == [b, 1], x * 2)])
def test_a_nan_equals_itself_in_a_container(f):
    compiled, nan = tcompile.compile(f), float("nan")
    for a, b in ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (nan, nan), (nan, float("nan")), (7.0, 7.0), (nan, nan)):
        assert compiled(a, b, X)[0] is f(a, b, X)[0]


ASKED = []


class ShowsAnother:
    """Its ``__dict__`` is not where its attributes are."""

    @property
    def __dict__(self):
        ASKED.append("dict")
        return {"w": 5}


class OnlySlots:
    __slots__ = ("v",)

    def __getattr__(self, name):
        ASKED.append(name)
        raise AttributeError(name)


class AsksEveryTime:
    def __getattribute__(self, name):
        ASKED.append(name)
        return object.__getattribute__(self, name)


def stores(o, held, x):
    o.v = x
    held["k"] = x
    return x + 1


def stores_and_deletes(o, held, x):
    o.v = 2
    y = x + 1
    del o.v
    held["k"] = y
    return y


@pytest.mark.parametrize("cls", [ShowsAnother, OnlySlots, AsksEveryTime])
@pytest.mark.parametrize("f", [stores, stores_and_deletes])
def test_nobody_is_asked_for_a_dict(f, cls):
    compiled = tcompile.compile(f)
    for _ in range(3):
        told = []
        for function in (f, compiled):
            ASKED.clear()
            held = {}
            told.append((function(cls(), held, np.ones(2)).tolist(), held["k"].tolist(), list(ASKED)))
        assert told[0] == told[1]


ASKED = []


class Notes:
    def __getattr__(self, name):
        ASKED.append(name)
        raise KeyError(name)


class NotingGrid(np.ndarray):
    def __getattribute__(self, name):
        ASKED.append(name)
        return super().__getattribute__(name)


class NotingMeta(type):
    def __getattr__(cls, name):
        ASKED.append(name)
        return (1,)


class Described(metaclass=NotingMeta):
    pass


@pytest.mark.parametrize("stance", ["default", "eager_then_compile", "aot_eager_then_compile"])
@pytest.mark.parametrize("other", [Notes(), np.ones(3).view(NotingGrid), Described], ids=["object", "array", "class"])
def test_arguments_that_are_not_read_are_asked_for_nothing(stance, other):
    f = tcompile.compile(lambda x, other: x + 1)
    ASKED.clear()
    with tcompile.set_stance(stance):
        for size in (2, 3, 1, 2):
            f(np.zeros(size), other)
    assert ASKED == []


@pytest.mark.parametrize("classes", [(int, np.ndarray), np.ndarray | int, np.ndarray, (int,), int | str])
def test_isinstance_asks_an_array_for_its_class_where_python_does(classes):
    compiled = tcompile.compile(lambda o, x: x + isinstance(o, classes))
    for _ in range(3):
        o = np.ones(3).view(NotingGrid)
        ASKED.clear()
        want = X + isinstance(o, classes), list(ASKED)
        ASKED.clear()
        got = compiled(o, X), list(ASKED)
        assert got[0].tolist() == want[0].tolist() and got[1] == want[1]
