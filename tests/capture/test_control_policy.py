"""``error_on_graph_break``: inside compiled functions, around their calls, and as a decorator."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from differential import assert_same

import tcompile
from tcompile import error_on_graph_break
from tcompile.annotations import treatments
from tcompile.annotations.policy import breaks_are_errors
from tcompile.errors import InvalidType, Unsupported

from .helpers import X, check, whole, x


def quiet(a):
    with error_on_graph_break(True):
        b = a * 2
        with error_on_graph_break(False):
            b = b + 1
    return b - a


def break_after(a):
    with error_on_graph_break(True):
        b = a * 2
    tcompile.graph_break("outside")
    return b - a


def break_inside(a):
    b = a * 2
    with error_on_graph_break(True):
        b = b + 1
        tcompile.graph_break("inside")
        b = b * 3
    return b - a


def allowed_inside(a):
    with error_on_graph_break(True):
        b = a * 2
        with error_on_graph_break(False):
            b = b + 1
            tcompile.graph_break("allowed")
            b = b * 3
        b = b - a
    return b * 2


@error_on_graph_break(True)
def strict(v):
    tcompile.graph_break("in a function")
    return v + 1


@error_on_graph_break(False)
def lenient(v):
    v = v * 2
    tcompile.graph_break("in a function")
    return v + 1


def calls_strict(a):
    return strict(a * 2) * 3


def calls_lenient(a):
    with error_on_graph_break(True):
        return lenient(a * 2) * 3


def test_blocks_without_breaks_are_part_of_the_graph():
    whole(quiet)


@pytest.mark.parametrize("f", [break_after, allowed_inside, calls_lenient])
def test_breaks_where_they_are_allowed(f):
    check(f, x)
    assert not breaks_are_errors()


@pytest.mark.parametrize(("f", "text"), [(break_inside, "inside"), (calls_strict, "in a function")])
def test_breaks_where_they_are_errors(f, text):
    for backend in ("eager", "llvm"):
        compiled = tcompile.compile(f, backend=backend)
        for _ in range(2):
            with pytest.raises(Unsupported, match=f"graph-break-call.*\n.*{text}"):
                compiled(X)
    assert not breaks_are_errors()
    check(f, x, backends=(), stances=("force_eager",))
    assert_same(f(X), tcompile.disable(f)(X))


def test_around_calls_and_threads():
    def f(a):
        tcompile.graph_break()
        return a + 1

    seen = []
    with error_on_graph_break(True):
        thread = threading.Thread(target=lambda: seen.append(tcompile.compile(f)(X)))
        thread.start()
        thread.join()
        with pytest.raises(Unsupported):
            tcompile.compile(f, backend="eager")(X)
        with error_on_graph_break(False):
            assert_same(tcompile.compile(f, backend="eager")(X), X + 1)
    assert_same(seen[0], X + 1)
    decorated = error_on_graph_break(True)(tcompile.compile(f, backend="aot_eager"))
    with pytest.raises(Unsupported):
        decorated(X)
    with pytest.raises(Unsupported):
        tcompile.compile(error_on_graph_break(True)(f))(X)


def test_an_error_inside_leaves_the_block():
    def f(a):
        with error_on_graph_break(True):
            return a.reshape(5, 5)

    compiled = tcompile.compile(f)
    for _ in range(2):
        with pytest.raises((Unsupported, ValueError)):
            compiled(X)
        assert not breaks_are_errors()


def test_decorated_functions_die():
    def make():
        @error_on_graph_break(True)
        def again(v):
            return again if v is None else v + 1

        return again

    before = len(treatments._table)
    alive = weakref.ref(make())
    gc.collect()
    assert alive() is None and len(treatments._table) <= before


def test_methods():
    class Model:
        @error_on_graph_break(True)
        def __call__(self, v):
            return self.inner(v) * 2

        @error_on_graph_break(False)
        def inner(self, v):
            tcompile.graph_break()
            return v + 1

        @error_on_graph_break(True)
        @staticmethod
        def fixed(v):
            return v - 1

    model = Model()
    check(lambda a: model(a) + Model.fixed(a), x)


@pytest.mark.parametrize("call", [
    lambda: error_on_graph_break(1), lambda: error_on_graph_break(True)(int), lambda: error_on_graph_break(False)(3),
    lambda: error_on_graph_break(True)(lambda: (yield)),
])  # fmt: skip
def test_bad_arguments(call):
    with pytest.raises(InvalidType, match="error_on_graph_break"):
        call()
