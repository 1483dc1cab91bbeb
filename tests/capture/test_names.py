"""Names of attributes and of keyword arguments are any texts, also those that Python's parser reads otherwise."""

from __future__ import annotations

import types

import numpy as np
import pytest

import tcompile
from tests.differential import BACKENDS, Picture, assert_same_picture, check

X = np.arange(4.0)
NAMES = ["\N{LATIN SMALL LIGATURE FI}", "\N{MICRO SIGN}m", "class", "None", "__debug__", "{}", "{0}", "a'b", "a\nb", ""]


class Thing:
    pass


def made(**names):
    thing = Thing()
    vars(thing).update(names)
    return thing


@pytest.mark.parametrize("name", NAMES)
def test_attributes(name):
    def f(x, old, bare):
        new = made(fi=3.0, **{name: x})
        found = getattr(old, name) * x + old.fi, getattr(new, name), hasattr(bare, name), getattr(bare, name, 1)
        values = [value * x for value in vars(old).values()]
        setattr(old, name, x * 2)
        setattr(bare, name, x * 3)
        return found, values, new, list(vars(old))

    def run(function):
        old, bare = made(fi=1.0, **{name: 2.0}), made(fi=X)
        return Picture([function(X, old, bare), old, bare])

    for backend in BACKENDS:
        compiled = tcompile.compile(f, backend=backend, fullgraph=True)
        for _ in range(2):
            with tcompile.config.patch(verify=True):
                assert_same_picture(run(compiled), run(f))


@pytest.mark.parametrize("name", NAMES)
def test_attributes_of_new_objects(name):
    def f(x):
        return made(fi=x, **{name: x * 2})

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    with tcompile.config.patch(verify=True):
        assert_same_picture(Picture(compiled(X)), Picture(f(X)))


@pytest.mark.parametrize("name", NAMES)
def test_attributes_that_come_and_go(name):
    class Local:
        pass

    module, local = types.ModuleType("settings"), Local()

    def f(x):
        found = hasattr(local, name), hasattr(Local, name), hasattr(module, name)
        return found, getattr(local, name, lambda x: x)(x)

    compiled = tcompile.compile(f, backend="eager", fullgraph=True)
    for step in (
        lambda: None,
        lambda: setattr(local, name, lambda x: x + 1),
        lambda: delattr(local, name),
        lambda: setattr(Local, name, lambda self, x: x + 2),
        lambda: setattr(Local, name, lambda self, x: x + 3),
        lambda: setattr(module, name, 1),
    ):
        step()
        want, got = f(X), compiled(X)
        assert got[0] == want[0]
        np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize("name", [*NAMES, "z=print('executed'), w"])
def test_keywords_of_format(name):
    def f(x, n):
        return "{m} {class}".format(**{"m": n, "class": x.sum(), name: n}), x * n

    compiled = check(f, lambda: (X, 2), backends=("eager",))
    for n in (3, 4):
        assert compiled[0](X, n)[0] == f(X, n)[0]
