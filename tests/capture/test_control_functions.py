"""``allow_in_graph``, ``disallow_in_graph``, ``assume_constant_result``, ``substitute_in_graph``,
``nested_compile_region``, ``run``, ``disable`` and ``graph_break``.
"""

from __future__ import annotations

import functools
import gc
import math
import operator
import weakref

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile.annotations import treatments
from tcompile.errors import InvalidArgument, InvalidType

from .helpers import X, check, whole, x, xy


def ops(compiled):
    return [node.op.name for node in compiled.graphs[0].nodes]


def broken_by(f, reason, detail="", make_args=x):
    """Checks that ``f`` breaks for ``reason`` and is right all the same."""
    (compiled,) = check(f, make_args, backends=("eager",))
    first = compiled.breaks[0]
    assert first.reason.id == reason and detail in first.detail, first.detail
    return compiled


# -- allow_in_graph --------------------------------------------------------------------------------------------------

calls = []


@tcompile.allow_in_graph
def ranks(v, *, up=True):
    """A function that capture could not follow."""
    calls.append(type(v))
    return np.array(sorted(range(len(v)), key=lambda i: v[i] if up else -v[i]))


@tcompile.allow_in_graph
def split(v, at):
    return v[:at].copy(), np.array(v[at:]), v.sum()


def one_call(a):
    return ranks(a[0] * 2) + a[1] * 3


def with_arguments(a):
    k = a.shape[0]
    left, right, total = split(a * 2, k - 1)
    return ranks(left[0], up=False) * total, right, k


def of_a_scalar(a):
    return kind(a.sum()) + kind(np.asarray(a.sum())) + a


@tcompile.allow_in_graph
def kind(v):
    return np.full(4, {np.float64: 1.0, np.ndarray: 2.0, float: 3.0, int: 4.0}[type(v)])


def numbers(a, k, f):
    return kind(k) + kind(f * 2) * a + kind(f)


@pytest.mark.parametrize("f", [one_call, with_arguments, of_a_scalar])
def test_an_allowed_call_is_one_operation(f):
    compiled = whole(f)
    assert "python_call" in ops(compiled)


def test_allowed_calls_with_numbers_that_vary():
    for backend in ("eager", "aot_eager", "llvm"):
        tcompile.reset()
        compiled = tcompile.compile(numbers, fullgraph=True, backend=backend)
        for k, f in ((2, 0.5), (3, 1.5), (5, -2.0), (9, 0.25)):
            assert_same(compiled(X, k, f), numbers(X, k, f))
        assert len(compiled.entries) == 2


def test_allowed_calls_with_sizes_that_vary():
    for backend in ("eager", "llvm"):
        tcompile.reset()
        compiled = tcompile.compile(one_call, fullgraph=True, backend=backend)
        for n in (3, 4, 5, 9):
            a = np.linspace(1, -2, 2 * n).reshape(2, n)
            assert_same(compiled(a), one_call(a))
        assert len(compiled.entries) == 2 and not any(entry.replays for entry in compiled.entries)


def test_arrays_are_real_when_an_allowed_function_is_called():
    calls.clear()
    compiled = tcompile.compile(one_call, backend="llvm", fullgraph=True)
    compiled(X)
    assert calls == [np.ndarray] * 2  # to see what it returns, and to compute it
    compiled(X)
    assert calls == [np.ndarray] * 3


def test_another_type_at_run_time_is_left_to_plain_python():
    @tcompile.allow_in_graph
    def positive(v):
        return v[v > 0]

    @tcompile.allow_in_graph
    def maybe_integer(v):
        return v.astype(int) if v[0, 0] > 0 else v * 2

    @tcompile.allow_in_graph
    def maybe_itself(v):
        return v if v[0, 0] > 0 else v * 2

    @tcompile.allow_in_graph
    def maybe_transposed(v):
        return v.T.copy().T if v[0, 0] > 0 else v * 2

    @tcompile.allow_in_graph
    def maybe_scalar(v):
        return v.sum() if v[0, 0] > 0 else np.asarray(v.sum())

    @tcompile.allow_in_graph
    def maybe_fails(v):
        if v[0, 0] > 0:
            raise ValueError("too large")
        return v * 2

    for g in (positive, maybe_integer, maybe_itself, maybe_transposed, maybe_scalar):

        def f(a, g=g):
            return g(a) * 2, g(a)

        for backend in ("eager", "llvm"):
            compiled = tcompile.compile(f, backend=backend, fullgraph=True)
            for a in (X, -X, X, X + 3):
                assert_same(compiled(a), f(a))

    compiled = tcompile.compile(lambda a: maybe_fails(a) + 1, fullgraph=True)
    assert_same(compiled(X), X * 2 + 1)
    with pytest.raises(ValueError, match="too large"):
        compiled(-X)


def test_results_of_allowed_calls_are_not_written_in_place():
    kept = []

    @tcompile.allow_in_graph
    def keeps(v):
        kept.append(v * 1)
        return kept[-1]

    def f(a):
        y = keeps(a)
        y += 1
        return y

    compiled = tcompile.compile(f, backend="eager")
    for _ in range(2):
        assert_same(compiled(X), X + 1)
        assert_same(kept[-1], X + 1)


def test_what_an_allowed_function_must_not_do():
    @tcompile.allow_in_graph
    def itself(v):
        return v

    @tcompile.allow_in_graph
    def a_view(v):
        return v[1:]

    @tcompile.allow_in_graph
    def a_number(v):
        return float(v.sum())

    @tcompile.allow_in_graph
    def fails(v):
        raise KeyError("no")

    broken_by(lambda a: itself(a) + 1, "unsupported-object", "an argument, or a view of one")
    broken_by(lambda a: a_view(a) + 1, "unsupported-object", "`test_what_an")
    broken_by(lambda a: a_number(a) + a, "unsupported-object", "an object of class float")
    broken_by(lambda a: fails(a), "operation-raises", "KeyError")
    broken_by(lambda a: ranks(a, up=[]), "unsupported-argument", "with list []")
    both = (lambda v: ranks(v[0]), lambda v: ranks(v[1]))
    broken_by(lambda a: tcompile.cond(a.sum() > 0, *both, (a,)), "loop-mismatch", "`ranks`")


def test_allowed_lists_of_functions_and_library_functions():
    def one(v):
        return np.array([sum(v[0])])

    assert tcompile.allow_in_graph([one, np.linalg.cond]) == [one, np.linalg.cond]
    try:
        whole(lambda a: one(a) + np.linalg.cond(a @ a.T + np.eye(3)))
    finally:
        treatments._table.pop(id(np.linalg.cond))


def test_a_graph_with_an_allowed_call_prints_and_runs():
    compiled = tcompile.compile(with_arguments, backend="eager", fullgraph=True)
    compiled(X)
    graph = compiled.graphs[0]
    assert "python_call" in graph.code and "python_call" in graph.readable() and graph.svg()
    from tcompile.graph.reader import from_code

    assert from_code(graph.code).code == graph.code


def test_functions_that_are_marked_can_die():
    compiled = tcompile.compile(lambda a, g: g(a) + 1, backend="eager")

    def made():
        @tcompile.allow_in_graph
        def twice(v):
            return v * 2

        return twice

    gc.collect()
    before = len(treatments._table)
    for _ in range(3):
        g = made()
        assert_same(compiled(X, g), X * 2 + 1)
        alive = weakref.ref(g)
    del g, compiled
    tcompile.reset()
    gc.collect()
    assert alive() is None and len(treatments._table) == before


# -- disallow_in_graph and disable -----------------------------------------------------------------------------------


@tcompile.disallow_in_graph
def slow(v):
    return v + 1


def test_disallowed_calls_break():
    broken_by(lambda a: slow(a * 2) * 3, "disabled-function", "`slow` is marked by disallow_in_graph")
    tcompile.disallow_in_graph([np.tanh])
    try:
        broken_by(lambda a: np.tanh(a) * 3, "disabled-function", "`tanh`")
    finally:
        treatments._table.pop(id(np.tanh))
    fast = tcompile.disallow_in_graph(tcompile.compile(lambda v: v + 1))
    broken_by(lambda a: fast(a) * 3, "disabled-function", "lambda")


def test_disabled_functions_break_and_keep_their_kind():
    @tcompile.compile
    def compiled(v):
        return (v + 1, tcompile.is_compiling())

    def calls(v):
        return compiled(v)

    off, here = tcompile.disable(calls, reason="of a test"), tcompile.disable(calls, recursive=False)
    assert off(X)[1] is False and here(X)[1] is True
    broken_by(lambda a: off(a)[0] * 3, "disabled-function", "of a test")

    @tcompile.disable
    def rows(v):
        for row in v:
            yield compiled(row)[1]

    assert list(rows(X)) == [False] * 3

    class Layer:
        @tcompile.disable
        @staticmethod
        def fixed(v):
            return v * 2

        @tcompile.disable(recursive=False)
        def own(self, v):
            return v * 3

    broken_by(lambda a: Layer.fixed(a) + 1, "disabled-function")
    layer = Layer()
    broken_by(lambda a: layer.own(a) + 1, "disabled-function")


def compiling(v, k=1):
    return np.cos(v) * k + 1, tcompile.is_compiling()


@tcompile.disable(recursive=False)
def own_frame(v, n):
    own = tcompile.is_compiling()
    w, once = compiling(v * 2)
    items, inside = [], set()
    for i in range(n):
        item, here = compiling(w + i, k=2)
        items.append(item)
        inside.add(here)
    given = {"k": 3}
    by_star = compiling(*(v,), **given)
    return sum(items) + by_star[0], own, {once, by_star[1], *inside}


def test_a_frame_by_itself_runs_plainly_and_what_it_calls_is_compiled():
    def f(v):
        w, *flags = own_frame(np.exp(v), 3)
        return w * 2, flags

    compiled = tcompile.compile(f)
    for _ in range(80):  # also once the rewritten code has only the resume points that are used
        made, flags = compiled(X)
        np.testing.assert_allclose(made, f(X)[0])
        assert flags == [False, {True}]
    assert [broke.reason.id for broke in compiled.breaks] == ["disabled-function"]
    assert ("cos", "multiply", "add") in tcompile.explain(f)(X).ops_per_graph
    with tcompile.set_stance("force_eager"):
        assert compiled(X)[1] == [False, {False}]
    assert f(X)[1] == [False, {False}]
    with pytest.raises(tcompile.errors.Unsupported):
        tcompile.compile(f, fullgraph=True)(X)
    made, *flags = tcompile.compile(own_frame)(X, 2)  # and so by itself
    np.testing.assert_allclose(made, own_frame(X, 2)[0])
    assert flags == [False, {True}]


def test_a_frame_by_itself_of_every_kind():
    class Layer:
        @tcompile.disable(recursive=False)
        def method(self, v):
            return (*compiling(v), tcompile.is_compiling())

        @tcompile.disable(recursive=False)
        @staticmethod
        def fixed(v):
            return (*compiling(v), tcompile.is_compiling())

    @tcompile.disable(recursive=False)
    def rows(v):
        for row in v:
            yield (*compiling(row), tcompile.is_compiling())

    @tcompile.disable(recursive=False)
    def raises(v):
        try:
            return compiling(None)
        except TypeError:
            return (*compiling(v), tcompile.is_compiling())

    def around(function):
        @functools.wraps(function)
        def wrapper(v):
            made, *flags = function(v)
            return made + 100, *flags

        return wrapper

    layer, wrapped = Layer(), around(Layer.fixed)
    whole = tcompile.disable(own_frame)
    for f in (lambda v: layer.method(v * 2), lambda v: Layer.fixed(v * 2), lambda v: raises(v * 2),
              lambda v: list(rows(v * 2)), lambda v: wrapped(v * 2), lambda v: whole(v, 2)):  # fmt: skip
        compiled = tcompile.compile(f)
        for _ in range(3):
            made, want = compiled(X), f(X)
            pairs = zip(made, want, strict=True) if isinstance(want, list) else [(made, want)]
            for got, expected in pairs:
                np.testing.assert_allclose(got[0], expected[0])
    assert tcompile.compile(lambda v: layer.method(v * 2))(X)[1:] == (True, False)
    assert tcompile.compile(lambda v: Layer.fixed(v * 2))(X)[1:] == (True, False)
    assert tcompile.compile(lambda v: raises(v * 2))(X)[1:] == (True, False)
    assert tcompile.compile(lambda v: whole(v * 2, 2))(X)[1:] == (False, {False})


def test_graph_break_says_why():
    def f(a):
        b = a * 2
        tcompile.graph_break("look here")
        return b + 1

    broken_by(f, "graph-break-call", "look here")


# -- assume_constant_result ------------------------------------------------------------------------------------------


class Settings:
    def __init__(self):
        self.order, self.read = 3, 0

    @tcompile.assume_constant_result
    def get(self, name, default=None):
        self.read += 1
        return getattr(self, name, default)


SETTINGS = Settings()


def test_constant_results_are_asked_for_once():
    def f(a):
        return a * SETTINGS.get("order") + SETTINGS.get("none", default=0.5)

    SETTINGS.read = 0
    compiled = tcompile.compile(f, fullgraph=True)
    for _ in range(3):
        assert_same(compiled(X), X * 3 + 0.5)
    assert SETTINGS.read == 2
    broken_by(lambda a: a * SETTINGS.get(a.sum()), "data-dependent-value", "whose result is to be constant")


def test_constant_results_are_kept_when_capture_stops_and_compiles_again():
    def f(a):
        k = SETTINGS.get("order")
        b = a * k
        tcompile.graph_break()
        return b + SETTINGS.get("order") + SETTINGS.get("other", default=1)

    SETTINGS.read = 0
    compiled = tcompile.compile(f)
    for a in (X, X[0], X.astype("f4")):
        assert_same(compiled(a), a * 3 + 3 + 1)
    assert SETTINGS.read == 2
    tcompile.reset()
    compiled(X)
    assert SETTINGS.read == 4


def test_constant_results_of_every_kind():
    table = np.arange(4.0)

    @tcompile.assume_constant_result
    def anything(which, v=None):
        return {"array": table, "shape": (3, 4), "function": np.exp, "list": [1.0, 2.0], "of": v is not None}[which]

    def f(a):
        total = a + anything("array") * anything("list")[1]
        return anything("function")(total).reshape(anything("shape")) * anything("of", a)

    whole(f)


# -- substitute_in_graph ---------------------------------------------------------------------------------------------


@pytest.fixture
def substituted():
    @tcompile.substitute_in_graph(math.hypot)
    def hypot(*parts):
        total = 0.0
        for part in parts:
            total = total + part * part
        return np.sqrt(total)

    @tcompile.substitute_in_graph(operator.length_hint, can_constant_fold_through=True)
    def length_hint(obj, default=0, /):
        return len(obj)

    yield
    treatments._table.pop(id(math.hypot))
    treatments._table.pop(id(operator.length_hint))


def test_a_substitute_is_followed(substituted):
    def f(a):
        return math.hypot(a.sum(), 2.0) * a + operator.length_hint(a)

    compiled = tcompile.compile(f, fullgraph=True)
    np.testing.assert_allclose(compiled(X), f(X))
    compiled = tcompile.compile(lambda a: a * operator.length_hint("four"), fullgraph=True)
    assert_same(compiled(X), X * 4)


def test_a_substitute_must_take_the_same_calls():
    with pytest.raises(InvalidArgument, match=r"cannot be called like dist\(p, q, /\)"):
        tcompile.substitute_in_graph(math.dist)(lambda p: p)
    with pytest.raises(InvalidArgument, match="cannot be called like"):
        tcompile.substitute_in_graph(math.dist)(lambda p, q, r: p)
    with pytest.raises(InvalidArgument, match="cannot be called like sorted"):
        tcompile.substitute_in_graph(sorted)(lambda iterable, /: iterable)


# -- nested_compile_region -------------------------------------------------------------------------------------------

SCALE = 2.0


@tcompile.nested_compile_region
def layer(v, w, k=1):
    return np.tanh(v * w * SCALE + k), v.sum()


def layers(a, b):
    total = 0.0
    for _ in range(3):
        a, s = layer(a, b)
        total = total + s
    return a, total


def kinds(a, b):
    return layer(a, b), layer(a, b, 2), layer(a[0], b[0]), layer(a, b), layer(a, a), layer(b, a)


def invoked(compiled):
    return [node.regions[0] for node in compiled.graphs[0].nodes if node.op.name == "invoke"]


def test_a_region_is_captured_once_for_each_kind_of_arguments():
    regions = invoked(whole(layers, xy))
    assert len(regions) == 3 and len(set(regions)) == 1
    regions = invoked(whole(kinds, xy))
    assert [regions.index(region) for region in regions] == [0, 1, 2, 0, 4, 0]
    graph = tcompile.compile(kinds, backend="eager", fullgraph=True)
    graph(*xy())
    code = graph.graphs[0].code
    assert code.count("def layer") == 4
    from tcompile.graph.reader import from_code

    assert from_code(code).code == code


def test_shared_regions_are_compiled_once():
    compiled = tcompile.compile(layers, backend="llvm", fullgraph=True)
    compiled(*xy())
    final = compiled.entries[0].compiled_graph.schedule.graph
    assert len({node.regions[0] for node in final.nodes if node.op.name == "invoke"}) == 1


@tcompile.nested_compile_region
def hands_back(v, pair):
    return {"same": v, "new": [v + pair[0], (pair[1], 3, "text", None)]}


def test_regions_hand_back_arguments_and_plain_values():
    def f(a, b):
        first = hands_back(a, (b, "s"))
        second = hands_back(b, (a, "s"))
        return first, second, first["same"] is a, second["same"] is b, second["new"][0] is first["new"][0]

    whole(f, xy)


def test_regions_with_sizes_that_vary():
    compiled = tcompile.compile(layers, fullgraph=True)
    for n in (3, 4, 5, 9):
        a, b = np.linspace(-1, 1, n), np.linspace(0, 1, n)
        assert_same(compiled(a, b), layers(a, b))
    assert len(compiled.entries) == 2


def test_regions_see_what_changed_between_calls():
    state = {"k": 1.0}

    @tcompile.nested_compile_region
    def reads(v):
        return v * state["k"]

    def f(a):
        before = reads(a)
        state["k"] = 5.0
        return before, reads(a), reads(a)

    def g(a):
        global SCALE
        SCALE = 1.0
        first = layer(a, a)
        SCALE = 4.0
        second = layer(a, a)
        SCALE = 2.0
        return first, second

    class Box:
        pass

    def h(a):
        parts = [a]

        @tcompile.disable
        def never():
            pass

        first = of_list(parts)
        parts.append(a * 2)
        return first, of_list(parts)

    @tcompile.nested_compile_region
    def of_list(parts):
        return parts[-1] + len(parts)

    for function in (f, g):

        def fresh(a, function=function):
            state["k"] = 1.0
            return function(a)

        check(fresh, x)
    check(h, x)


def test_regions_that_are_no_regions_break():
    @tcompile.nested_compile_region
    def a_view(v):
        return v[1:]

    log = []

    @tcompile.nested_compile_region
    def logs(v):
        log.append(1)
        return v + 1

    broken_by(lambda a: a_view(a) + 1, "loop-mismatch", "a view of an array")
    broken_by(lambda a: (logs(a), log.clear())[0], "loop-mismatch")


# -- run -------------------------------------------------------------------------------------------------------------


def test_run_compiles_nothing():
    def f(a):
        return a * 2, tcompile.is_compiling()

    compiled = tcompile.compile(f)
    frozen, plain = tcompile.run(compiled), tcompile.run(f)
    assert frozen(X)[1] is False and not compiled.entries
    compiled(X)
    assert frozen(X)[1] is True and plain(X)[1] is True
    assert frozen(X.astype("f4"))[1] is False and len(compiled.entries) == 1
    with tcompile.set_stance("force_eager"):
        assert frozen(X)[1] is False
    assert frozen.__name__ == "f"
    broken_by(lambda a: frozen(a)[0] + 1, "unknown-function")


# -- bad arguments ---------------------------------------------------------------------------------------------------


class Holder:
    def method(self):
        pass


@pytest.mark.parametrize(("call", "text"), [
    (lambda: tcompile.allow_in_graph(3), "allow_in_graph takes a function, got int 3"),
    (lambda: tcompile.allow_in_graph([len, "x"]), "got str 'x'"),
    (lambda: tcompile.allow_in_graph(Holder), "got type <class"),
    (lambda: tcompile.allow_in_graph(Holder().method), "a bound method: give Holder.method"),
    (lambda: tcompile.disallow_in_graph(None), "got NoneType None"),
    (lambda: tcompile.assume_constant_result([len]), "takes a function, got list"),
    (lambda: tcompile.nested_compile_region("f"), "nested_compile_region takes a function"),
    (lambda: tcompile.substitute_in_graph(1), "original must be a function, got int 1"),
    (lambda: tcompile.substitute_in_graph(len)(len), "decorates a Python function, got builtin_function"),
    (lambda: tcompile.substitute_in_graph(len, can_constant_fold_through=1), "must be bool, got int 1"),
    (lambda: tcompile.run(3), "run takes a function, got int 3"),
    (lambda: tcompile.run(int), "run takes a function, got type"),
    (lambda: tcompile.disable(3), "disable takes a function, got int 3"),
    (lambda: tcompile.disable(Holder), "disable takes a function, got type"),
    (lambda: tcompile.disable(recursive=1), "recursive must be bool, got int 1"),
    (lambda: tcompile.disable(reason=None), "reason must be str, got NoneType None"),
    (lambda: tcompile.graph_break(3), "msg must be str, got int 3"),
])  # fmt: skip
def test_bad_arguments(call, text):
    gc.collect()  # functions of other tests leave the table when they go
    before = dict(treatments._table)
    with pytest.raises(InvalidType, match=text):
        call()
    assert treatments._table == before


def test_where_a_step_begins_may_be_said():
    def f(v):
        tcompile.cudagraph_mark_step_begin()
        return v * 2 + 1

    np.testing.assert_array_equal(tcompile.compile(f, fullgraph=True)(X), f(X))
    broken_by(lambda a: tcompile.cudagraph_mark_step_begin(a) or a * 2, "operation-raises", "wrong arguments")
