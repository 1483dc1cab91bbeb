"""``config.reorderable_functions``: calls that wait for the graph."""

from __future__ import annotations

import logging
import sys
import warnings

import numpy as np
import pytest

import tcompile

from .helpers import X, check, x

LINES: list = []


def note(*args, **kwargs):
    LINES.append((args, kwargs))


@pytest.fixture(autouse=True)
def _reorderable():
    LINES.clear()
    with tcompile.config.patch(reorderable_functions={print, note, warnings.warn, logging.Logger.info}):
        yield


def prints(a):
    print("first", a.shape, 3, sep="-")
    b = a * 2
    print("sum", b.sum(), float(b.max()), end="!\n")
    c = b + 1
    c += 1
    print(c[0, 0], (c.min(), ["list", {"k": c.max()}]))
    print(file=sys.stdout)
    return c


def prints_and_changes(a, items):
    items.append(1)
    new = [1, a.sum()]
    print(new)
    new.append(2)
    b = a + 1
    print(b)
    b += 1
    return b, new


def fails_between(a):
    print("before")
    b = a * 2
    return b.reshape(5, 5)


def breaks_between(a):
    print("one", a.max())
    b = a * 2
    tcompile.graph_break()
    print("two", b.max())
    return b


def warns(a):
    warnings.warn("careful", UserWarning, stacklevel=2)
    return a * 2


@pytest.mark.parametrize("f", [prints, warns])
def test_the_graph_is_not_broken(f):
    for backend in ("eager", "llvm"):
        (compiled,) = check(f, x, backends=(backend,), fullgraph=True)
        assert len(compiled.graphs) == 1 and not compiled.breaks


def test_order_and_values_are_kept():
    check(prints_and_changes, lambda: (X.copy(), [0]))
    check(fails_between, x)
    check(breaks_between, x)


def test_what_has_changed_already_is_not_deferred():
    def f(a, items):
        items.append(a.sum())
        print(items)
        items.append(2)
        print(len(items))
        return a * 2

    check(f, lambda: (X.copy(), [0]))

    def g(a, items):
        print(items)
        items.append(2)
        return a * 2

    (compiled,) = check(g, lambda: (X.copy(), [0]), backends=("eager",), fullgraph=True)
    assert not compiled.breaks


def test_functions_of_ones_own():
    def f(a):
        note("start", a.sum(), k=[a.max()])
        return a + 1

    compiled = tcompile.compile(f, fullgraph=True)
    compiled(X)
    compiled(X)
    assert len(LINES) == 2
    (args, kwargs) = LINES[1]
    assert args == ("start", X.sum()) and kwargs == {"k": [X.max()]}


def test_logging(caplog):
    logger = logging.getLogger("tcompile.test")

    def f(a):
        logger.info("sum %s", a.sum())
        b = a * 2
        logger.info("done")
        return b

    with caplog.at_level(logging.INFO, "tcompile.test"):
        compiled = tcompile.compile(f, fullgraph=True)
        compiled(X)
        compiled(X)
    assert [r.getMessage() for r in caplog.records] == [f"sum {X.sum()}", "done"] * 2


def test_a_branch_of_cond_may_not_print():
    def f(a):
        def up(v):
            print("up")
            return v + 1

        return tcompile.cond(a.sum() > 0, up, lambda v: v - 1, (a,))

    check(f, x)
    check(f, lambda: (-X,))


def test_the_setting_is_a_set():
    default = tcompile.config.__class__()
    default.reorderable_functions.add(print)
    assert default.reorderable_functions == {print}
    del default.reorderable_functions
    assert default.reorderable_functions == set()
    with pytest.raises(tcompile.errors.InvalidType, match="must be set, got list"):
        default.reorderable_functions = [print]


def test_without_the_setting_it_breaks():
    with tcompile.config.patch(reorderable_functions=set()):
        (compiled,) = check(prints, x, backends=("eager",))
        assert compiled.breaks[0].reason.id == "input-output"
    assert np.ndim(X) == 2
