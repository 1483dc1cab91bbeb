"""What the page of the compile function promises: caching by code object, limits, dynamic sizes, bad arguments."""

import functools
import pickle
import types
import warnings

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile.errors import BackendError, InvalidArgument, InvalidType, RecompileLimitError


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()


def double(x):
    return x * 2


compiled_here = tcompile.compile(lambda x: x)


@tcompile.compile
def triple(x):
    return x * 3


def test_copies_of_a_function_share_its_cache():
    copy = types.FunctionType(double.__code__, double.__globals__)
    one, two = tcompile.compile(double), tcompile.compile(copy)
    one(np.ones(3))
    assert two.entries == one.entries and len(two.entries) == 1
    three = tcompile.compile(double, backend="eager")
    assert not three.entries


@pytest.mark.at_recompile_limit
def test_recompile_limit_warns_once_and_keeps_old_entries():
    compiled = tcompile.compile(double, dynamic=False)
    for size in range(2, 10):
        compiled(np.ones(size))
    assert len(compiled.entries) == 8
    with pytest.warns(UserWarning, match=r"double was compiled 8 times.*x\.shape"):
        assert_same(compiled(np.ones(20)), np.ones(20) * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(compiled(np.ones(21)), np.ones(21) * 2)
        hits = sum(entry.hits for entry in compiled.entries)
        compiled(np.ones(3))
    assert len(compiled.entries) == 8 and sum(entry.hits for entry in compiled.entries) == hits + 1


@pytest.mark.at_recompile_limit
def test_recompile_limit_with_fullgraph_is_an_error():
    compiled = tcompile.compile(double, dynamic=False, fullgraph=True)
    with tcompile.config.patch(recompile_limit=2):
        compiled(np.ones(2))
        compiled(np.ones(3))
        with pytest.raises(RecompileLimitError, match="fullgraph"):
            compiled(np.ones(4))


def counts(dynamic, arguments):
    tcompile.reset()
    compiled = tcompile.compile(lambda x, k: x + k, dynamic=dynamic)
    found = []
    for x, k in arguments:
        assert_same(compiled(x, k), x + k)
        found.append(len(compiled.graphs))
    return found


def test_automatic_dynamic_sizes():
    sizes = [(np.ones(n), 2) for n in (5, 6, 7, 1, 0, 9)]
    assert counts(None, sizes) == [1, 2, 2, 3, 4, 4]
    assert counts(False, sizes) == [1, 2, 3, 4, 5, 6]
    assert counts(True, sizes[:3]) == [1, 1, 1]


def test_automatic_dynamic_numbers():
    x = np.ones(3)
    assert counts(None, [(x, k) for k in (2, 3, 4, 5, 1, 0)]) == [1, 2, 2, 2, 2, 2]
    assert counts(None, [(x, k) for k in (0.5, 1.5, -2.0, 1e300)]) == [1, 1, 1, 1]
    assert counts(None, [(x, k) for k in (True, False, True)]) == [1, 2, 2]


def test_recompiles_say_why():
    compiled = tcompile.compile(double)
    compiled(np.ones(3))
    compiled(np.ones(4, np.float32))
    ((reason,),) = compiled.recompiles
    assert "x.dtype == float64" in reason and "float32" in reason


def test_custom_backends():
    seen = []

    def mine(graph, example_inputs):
        seen.append((graph.op_count, [x.shape for x in example_inputs]))
        return graph

    assert_same(tcompile.compile(double, backend=mine)(np.ones(3)), np.ones(3) * 2)
    assert seen == [(1, [(3,)])]
    tcompile.register_backend(mine, name="mine")
    assert "mine" in tcompile.list_backends()
    assert_same(tcompile.compile(double, backend="mine")(np.ones(4)), np.ones(4) * 2)

    @tcompile.register_backend(name="run", tags=("debug",))
    def run(graph, example_inputs):
        return lambda *args: graph(*args)

    assert "run" not in tcompile.list_backends() and "run" in tcompile.list_backends(None)
    assert_same(tcompile.compile(double, backend="run")(np.ones(4)), np.ones(4) * 2)


def test_a_failing_backend_is_named():
    def bad(graph, example_inputs):
        raise ValueError("no")

    with pytest.raises(BackendError, match=r"backend='bad' raised ValueError: no"):
        tcompile.compile(double, backend=bad)(np.ones(3))
    with pytest.raises(BackendError, match="not a callable"):
        tcompile.compile(double, backend=lambda graph, inputs: 3)(np.ones(3))


def test_lists_of_backends_modes_and_options():
    assert tcompile.list_backends()[:2] == ["auto", "llvm"]
    assert set(tcompile.list_backends(None)) >= {"auto", "llvm", "eager", "aot_eager"}
    assert tcompile.list_mode_options()["default"] == {}
    assert all(set(options) <= set(tcompile.list_options()) for options in tcompile.list_mode_options().values())
    assert tcompile.list_mode_options("default") == {}
    assert isinstance(tcompile.list_options(), list)


def test_disable_is_a_no_op():
    assert tcompile.compile(double, disable=True) is double
    assert tcompile.compile(disable=True)(double) is double


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"backend": "llmv"}, InvalidArgument, "Did you mean 'llvm'.*Backends: auto, llvm, eager, aot_eager"),
        ({"backend": 3}, InvalidType, "backend must be a callable or a backend's name, got int 3"),
        ({"mode": "zzz"}, InvalidArgument, "there is no mode 'zzz'.*Modes: default"),
        ({"mode": "reduce-overhead", "backend": "llvm"}, InvalidArgument, "for tcompile's own backends auto, triton"),
        ({"mode": 3}, InvalidType, "mode must be str or None, got int 3"),
        ({"options": {"nope": 1}}, InvalidArgument, "there is no option 'nope'"),
        ({"options": {"triton.cudagraphs": 1}}, InvalidType, "option 'triton.cudagraphs' must be bool"),
        ({"options": {"epilogue_fusion": True}}, InvalidArgument, "says what 'max_autotune' may try: set that one"),
        ({"options": {"shape_padding": True}, "backend": "llvm"}, InvalidArgument, "own backends auto, triton"),
        ({"options": {"fallback_random": False}}, InvalidArgument, "always on: random numbers are drawn by NumPy"),
        ({"options": 3}, InvalidType, "options must be Mapping or None"),
        ({"mode": "default", "options": {}}, InvalidArgument, "mode or options, not both"),
        ({"fullgraph": 1}, InvalidType, "fullgraph must be bool, got int 1"),
        ({"dynamic": "yes"}, InvalidType, "dynamic must be bool or None, got str 'yes'"),
        ({"disable": 0}, InvalidType, "disable must be bool"),
        ({"nopython": True}, InvalidArgument, "use fullgraph"),
        ({"fulgraph": True}, InvalidArgument, "Did you mean 'fullgraph'"),
    ],
)
def test_bad_arguments_are_refused_at_once(settings, error, text):
    with pytest.raises(error, match=text):
        tcompile.compile(double, **settings)


@pytest.mark.parametrize("thing", [3, "f", None.__class__, int])
def test_things_that_cannot_be_compiled(thing):
    with pytest.raises(InvalidType, match="compile takes a function"):
        tcompile.compile(thing)


def test_functions_without_bytecode_pass_through():
    assert tcompile.compile(len) is len
    assert tcompile.compile(np.sin) is np.sin


def test_methods_partials_and_compiled_functions():
    import functools

    class Scale:
        k = 3

        def times(self, x):
            return x * self.k

        @tcompile.compile
        def own(self, x):
            return x * self.k

    scale = Scale()
    x = np.ones(3)
    assert_same(tcompile.compile(scale.times)(x), x * 3)
    assert_same(scale.own(x), x * 3)
    assert_same(tcompile.compile(functools.partial(double))(x), x * 2)
    again = tcompile.compile(tcompile.compile(double), backend="eager")
    assert_same(again(x), x * 2)


def test_wrong_calls_raise_pythons_own_errors():
    compiled = tcompile.compile(double)
    for args, kwargs in (((), {}), ((1, 2), {}), ((), {"y": 1})):
        with pytest.raises(TypeError) as want:
            double(*args, **kwargs)
        with pytest.raises(TypeError) as got:
            compiled(*args, **kwargs)
        assert str(got.value) == str(want.value)


def test_a_compiled_function_looks_like_the_function():
    import inspect

    def documented(x, y=2, *, z=3):
        """Says what it does."""
        return x + y + z

    compiled = tcompile.compile(documented)
    assert compiled.__doc__ == "Says what it does."
    assert inspect.signature(compiled) == inspect.signature(documented)
    assert_same(compiled(np.ones(2), z=1), np.ones(2) + 3)
    assert "documented" in repr(compiled)


def test_pickling():
    assert pickle.loads(pickle.dumps(triple)) is triple
    again = pickle.loads(pickle.dumps(tcompile.compile(double, backend="eager")))
    assert_same(again(np.ones(2)), np.ones(2) * 2)
    assert again.settings.backend == "eager"


def test_explain_leaves_other_caches_alone():
    compiled = tcompile.compile(double)
    compiled(np.ones(3))
    explained = tcompile.explain(compiled)(np.ones(5))
    assert explained.graph_count == 1 and explained.graph_break_count == 0 and explained.op_count == 1
    assert len(compiled.entries) == 1

    def broken(x):
        print(end="")
        return x + 1

    output = tcompile.explain(broken)(np.ones(3))
    assert output.graph_count == 1 and output.graph_break_count == 1
    assert "print" in str(output)
    assert tcompile.explain(double, np.ones(3)).graph_count == 1
    (reason,) = tcompile.explain(tcompile.compile(broken, fullgraph=True), np.ones(3)).break_reasons
    assert reason.graph_break and reason.user_stack[-1].function == "broken"


def test_explain_takes_whatever_compile_takes():
    class Scale:
        def __init__(self, by):
            self.by = by

        def times(self, x, *, plus=0):
            return x * self.by + plus

    for call in (Scale(2).times, functools.partial(Scale(2).times, plus=1), tcompile.compile(Scale(2).times)):
        assert tcompile.explain(call)(np.ones(3)).graph_count == 1
    partial = functools.partial(double, np.ones(3))
    assert tcompile.explain(partial)().op_count == 1
    with pytest.raises(InvalidType, match="explain takes a function with Python code"):
        tcompile.explain(abs)(np.ones(3))


def test_disable_excludes_a_function():
    @tcompile.disable(reason="it is slow to capture")
    def helper(x):
        return x + (1 if tcompile.is_compiling() else 2)

    @tcompile.compile
    def f(x):
        return helper(x) * 2

    assert f(np.zeros(1)).tolist() == [4]
    assert f.breaks[0].reason.id == "disabled-function" and "slow to capture" in f.breaks[0].explanation


def test_open_sizes_are_compared_with_fixed_ones():
    @tcompile.compile
    def f(x, y):
        return x + 1 if x.shape == y.shape else y - 1

    wide, tall = np.ones((1, 2)), np.ones((5, 2))
    for x, y in ((wide, wide), (np.array(1.0), tall), (tall, tall)):
        assert_same(f(x, y), f.__wrapped__(x, y))
        assert_same(f(x, y), f.__wrapped__(x, y))
