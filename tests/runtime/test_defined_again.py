"""Functions that are defined once more, word for word, as where a notebook's cell is run again."""

import numpy as np

import tcompile

LEAF = "def leaf(x, k=2):\n    return np.exp(x).sum() * k\n"
CALLER = "def caller(x):\n    return leaf(x) + 1\n"
X = np.linspace(0, 1, 5)


def define(text, names, name, file="<cell>"):
    exec(compile(text, file, "exec"), names)
    names[name] = tcompile.compile(names[name])
    return names[name]


def test_its_entries_are_there():
    names = {"np": np}
    first = define(LEAF, names, "leaf")
    want = first(X)
    second = define(LEAF, names, "leaf")
    assert second is not first
    assert len(second.entries) == 1
    assert second(X) == want
    assert second.cache.compiles == 1


def test_what_the_definition_reads_is_its_own():
    names = {"np": np}
    want = define(LEAF, names, "leaf")(X)
    again = define("K = 3\n" + LEAF.replace("k=2", "k=K"), names, "leaf")
    assert np.isclose(again(X), want / 2 * 3)
    names["K"] = 5
    other = define("\n" + LEAF.replace("k=2", "k=K"), names, "leaf")
    assert np.isclose(other(X), want / 2 * 5)
    assert np.isclose(again(X), want / 2 * 3)


def test_another_text_or_place_is_another_function():
    names = {"np": np}
    define(LEAF, names, "leaf")(X)
    for text, file in ((LEAF.replace("exp", "sin"), "<cell>"), ("\n" + LEAF, "<cell>"), (LEAF, "<other cell>")):
        again = define(text, names, "leaf", file)
        assert not again.entries
        again(X)


def test_a_caller_of_a_function_that_was_defined_again_begins_anew():
    names = {"np": np}
    for _ in range(12):  # more often than config.recompile_limit
        define(LEAF, names, "leaf")
        caller = define(CALLER, names, "caller")
        assert np.isclose(caller(X), np.exp(X).sum() * 2 + 1)
        assert len(caller.entries) == 1
        assert caller.entries[0].graph is not None
    assert not caller.recompiles
    again = define(CALLER, names, "caller")  # alone
    assert len(again.entries) == 1


def test_old_and_new_live_side_by_side():
    names = {"np": np}
    old = define(LEAF, names, "leaf")
    want = old(X)
    new = define(LEAF, names, "leaf")
    new.function.__defaults__ = (4,)
    assert np.isclose(new(X), want * 2)
    assert np.isclose(old(X), want)
