"""Built-in functions take the arguments that Python takes, and ask of the user's objects what Python asks, no more."""

from __future__ import annotations

import itertools
import types

import numpy as np
import pytest
from differential import Run, assert_same, assert_same_run

import tcompile

from .helpers import X

WRONG = {
    "bool": lambda: bool(x=1),
    "int": lambda: int(1, base=10),
    "float": lambda: float(x=1.5),
    "zip": lambda: zip([1], foo=True),
    "sum": lambda: sum([1], 2, start=3),
    "enumerate": lambda: enumerate([1], 2, start=3),
    "list": lambda: list(sequence=[1]),
    "len": lambda: len([1], foo=2),
    "accumulate": lambda: itertools.accumulate([1], None, func=None),
    "from_iterable": lambda: itertools.chain.from_iterable(5),
    "unpack": lambda: (lambda a, b: a)(*[1], 2, *[3]),
    "super": lambda: super(Counted, Asked([])),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_python_refuses_is_refused(name):
    def f(x):
        WRONG[name]()
        return x + 1

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(2):
        want, got = Run(f, (X,)), Run(compiled, (X,))
        assert want.error is not None
        assert_same_run(got, want)


class Asked:
    """Writes down what it is asked."""

    def __init__(self, log):
        self.log = log

    def __iter__(self):
        self.log.append("iter")
        return iter([1, 2])

    def keys(self):
        self.log.append("keys")
        return ["a"]

    def __getitem__(self, key):
        self.log.append(key)
        return 1


class Counted(Asked):
    def __len__(self):
        self.log.append("len")
        return 2


class Hinted(Asked):
    def __length_hint__(self):
        self.log.append("hint")
        return NotImplemented


TAKEN = {
    "list": list, "tuple": tuple, "sorted": sorted, "set": set, "sum": sum, "dict": dict, "zip": lambda o: [*zip(o)],
    "display": lambda o: [0, *o], "call": lambda o: max(*o), "product": lambda o: [*itertools.product(o)],
    "extend": lambda o: [0].extend(o), "unpack": lambda o: (lambda a, b: b)(*o), "slice": lambda o: put([1, 2], o),
}  # fmt: skip


def put(values, more):
    values[:1] = more
    a, b, c = values
    a, *b = more
    return a, b, c


@pytest.mark.parametrize("cls", [Asked, Counted, Hinted])
@pytest.mark.parametrize("name", TAKEN)
def test_how_many_there_are_is_asked_where_python_asks(name, cls):
    def f(x, log):
        return TAKEN[name](cls(log)), x + 1

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(2):
        want, got = [], []
        assert_same(compiled(X, got), f(X, want))
        assert got == want


def test_an_endless_iterator_is_unpacked():
    def f(x):
        try:
            a, _ = itertools.count()
        except ValueError as error:
            return x + 1, str(error)
        return a

    assert_same(tcompile.compile(f, backend="eager")(X), f(X))


def test_metaclasses_and_modules_that_answer_in_python_are_not_asked():
    asked = []

    class Meta(type):
        def __getattribute__(cls, name):
            asked.append(name)
            return type.__getattribute__(cls, name)

        def __eq__(cls, other):
            asked.append("==")
            return cls is other

        __hash__ = type.__hash__

    class Strange(metaclass=Meta):
        pass

    class Module(types.ModuleType):
        def __getattribute__(self, name):
            asked.append(name)
            return types.ModuleType.__getattribute__(self, name)

    def f(x, thing):
        held = [thing, {thing: 1}, type(thing)]
        return np.sqrt(x) + 1, held, thing is None, thing.__doc__, hasattr(thing, "nothing")

    y = np.abs(X)
    with tcompile.config.patch(stress_capture=True):
        for thing in (Strange, Strange(), Module("m")):
            compiled = tcompile.compile(f, backend="eager")
            for _ in range(2):
                asked.clear()
                f(y, thing)
                want = asked[:]
                asked.clear()
                compiled(y, thing)
                assert asked == want


def test_attributes_under_names_that_are_no_strings():
    class Name:
        def __hash__(self):
            return hash("rate")

        def __eq__(self, other):
            Thing.rate = 3
            return False

    class Thing:
        rate = 2

    def f(x, thing):
        return x * thing.rate

    compiled = tcompile.compile(f, backend="eager")
    found = []
    for function in (f, compiled):
        Thing.rate, thing = 2, Thing()
        vars(thing)[Name()] = 0
        found.append(function(X, thing))
    assert_same(found[1], found[0])
