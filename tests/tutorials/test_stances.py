"""The story of switching stances, example by example: values, errors and their texts."""

import threading
import time

import numpy as np
import pytest

import tcompile
from tcompile.errors import InvalidArgument, RecompileError, StanceError


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()
    yield
    tcompile.set_stance("default")
    tcompile.reset()


@pytest.fixture(params=["eager", "aot_eager", "llvm"])
def backend(request):
    return request.param


def make_foo(backend):
    @tcompile.compile(backend=backend)
    def foo(x):
        if tcompile.is_compiling():
            return x + 1
        else:
            return x - 1

    return foo


def test_compiled_code_knows_that_it_is_compiled(backend):
    foo = make_foo(backend)
    assert foo(np.zeros(3)).tolist() == [1, 1, 1]
    assert tcompile.is_compiling() is False


def test_stance_as_decorator(backend):
    foo = make_foo(backend)

    @tcompile.set_stance("force_eager")
    def bar(x):
        return foo(x)

    assert foo(np.zeros(3)).tolist() == [1, 1, 1]
    assert bar(np.zeros(3)).tolist() == [-1, -1, -1]
    assert foo(np.zeros(3)).tolist() == [1, 1, 1]


def test_stance_as_context_manager(backend):
    foo = make_foo(backend)
    with tcompile.set_stance("force_eager"):
        assert foo(np.zeros(3)).tolist() == [-1, -1, -1]
    assert foo(np.zeros(3)).tolist() == [1, 1, 1]


def test_stance_as_plain_call(backend):
    foo = make_foo(backend)
    tcompile.set_stance("force_eager")
    assert foo(np.zeros(3)).tolist() == [-1, -1, -1]
    tcompile.set_stance("default")
    assert foo(np.zeros(3)).tolist() == [1, 1, 1]
    assert tcompile.compile.set_stance is tcompile.set_stance


def test_changing_the_stance_inside_a_compiled_function_is_an_error():
    @tcompile.compile
    def baz(x):
        with tcompile.set_stance("force_eager"):
            return x + 1

    with pytest.raises(StanceError) as error:
        baz(np.zeros(3))
    text = str(error.value)
    assert "set_stance" in text
    assert "from user code:" in text
    assert f'File "{__file__}", line ' in text and "in baz" in text
    assert 'with tcompile.set_stance("force_eager"):' in text
    assert "set_logs" in text and "tcompile.config.suppress_errors = True" in text
    assert tcompile.is_compiling() is False
    assert make_foo("eager")(np.zeros(1)).tolist() == [1]  # the stance is still the default one


def test_calling_a_decorated_function_inside_a_compiled_one_is_an_error():
    @tcompile.set_stance("force_eager")
    def inner(x):
        return x + 1

    @tcompile.compile
    def outer(x):
        return inner(x)

    with pytest.raises(StanceError) as error:
        outer(np.zeros(3))
    text = str(error.value)
    assert "inner" in text and "in outer" in text and "return inner(x)" in text


def test_the_error_can_be_suppressed():
    @tcompile.compile
    def baz(x):
        with tcompile.set_stance("force_eager"):
            return x + 1

    with tcompile.config.patch(suppress_errors=True), pytest.warns(UserWarning, match="plain Python"):
        assert baz(np.zeros(2)).tolist() == [1, 1]


def test_fail_on_recompile(backend):
    @tcompile.compile(backend=backend)
    def my_big_model(x):
        return np.maximum(x, 0)

    my_big_model(np.ones(3))
    with tcompile.set_stance("fail_on_recompile"):
        my_big_model(-np.ones(3))
        with pytest.raises(RecompileError) as error:
            my_big_model(np.ones(4))
    text = str(error.value)
    assert "fail_on_recompile" in text and "my_big_model" in text and __file__ in text
    assert "x.shape == (3,)" in text and "(4,)" in text
    my_big_model(np.ones(4))


def test_fail_on_recompile_fails_at_a_first_compile_too():
    @tcompile.compile
    def f(x):
        return x + 1

    with tcompile.set_stance("fail_on_recompile"), pytest.raises(RecompileError, match="not been compiled yet"):
        f(np.ones(3))


def test_fail_on_recompile_lets_functions_pass_that_run_plainly():
    @tcompile.compile
    def f(x):
        print(end="")
        return x

    f(np.ones(3))
    with tcompile.set_stance("fail_on_recompile"):
        assert f(np.ones(4)).shape == (4,)


def test_misspelt_stances_are_refused_at_once():
    with pytest.raises(InvalidArgument, match="Did you mean 'fail_on_recompile'"):
        tcompile.set_stance("fail_on_recompilation")


def test_eager_on_recompile(backend):
    @tcompile.compile(backend=backend)
    def my_huge_model(x):
        if tcompile.is_compiling():
            return x + 1
        else:
            return x - 1

    assert my_huge_model(np.zeros(3)).tolist() == [1] * 3
    with tcompile.set_stance("eager_on_recompile"):
        assert my_huge_model(np.zeros(3)).tolist() == [1] * 3
        assert my_huge_model(np.zeros(4)).tolist() == [-1] * 4
        assert my_huge_model(np.zeros(3)).tolist() == [1] * 3


def test_measuring_one_function_eager_and_compiled():
    @tcompile.compile
    def my_gigantic_model(x, y):
        x = x @ y
        x = x @ y
        x = x @ y
        return x

    x, y = np.random.default_rng(0).standard_normal((2, 5, 5))

    def timed(run):
        start = time.perf_counter()
        return run(), time.perf_counter() - start

    with tcompile.set_stance("force_eager"):
        want, eager = timed(lambda: my_gigantic_model(x, y))
    assert not my_gigantic_model.entries
    for _ in range(3):
        my_gigantic_model(x, y)
    got, compiled = timed(lambda: my_gigantic_model(x, y))
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert eager > 0 and compiled > 0 and len(my_gigantic_model.graphs) == 1


def test_crashing_sooner():
    @tcompile.compile
    def my_humongous_model(x):
        return np.sin(x, x, x)

    with pytest.raises(TypeError, match="sin"):
        with tcompile.set_stance("force_eager"):
            my_humongous_model(np.ones(3))
    assert not my_humongous_model.entries


@pytest.mark.parametrize("stance", ["eager_then_compile", "aot_eager_then_compile"])
def test_eager_then_compile_counts(stance):
    @tcompile.compile
    def f(x):
        return x * 2

    counts = []
    with tcompile.set_stance(stance):
        for size in (3, 4, 5, 6):
            assert f(np.ones(size)).tolist() == [2] * size
            counts.append(len(f.graphs))
    assert counts == [0, 1, 1, 1]
    tcompile.reset()
    with tcompile.set_stance(stance):
        f(np.ones(3))
        assert len(f.graphs) == 0  # reset forgets the first call too


def test_force_backend_replaces_the_functions_own():
    seen = []

    def spy(graph, example_inputs):
        seen.append(graph.op_count)
        return graph

    @tcompile.compile(backend="llvm")
    def f(x):
        return x + 1

    with tcompile.set_stance("default", force_backend=spy):
        assert f(np.zeros(2)).tolist() == [1, 1]
    assert seen == [1] and len(f.graphs) == 0
    with pytest.raises(InvalidArgument, match="force_backend"):
        tcompile.set_stance("force_eager", force_backend="eager")


def test_skipping_guards_unsafely_does_what_it_says():
    @tcompile.compile(dynamic=False)
    def f(x, k):
        return x * k

    x = np.ones(2)
    f(x, 2)
    with tcompile.set_stance("default", skip_guard_eval_unsafe=True):
        assert f(x, 5).tolist() == [2, 2]  # the only entry is taken unseen
    f(x, 3)
    with tcompile.set_stance("default", skip_guard_eval_unsafe=True):
        assert f(x, 2).tolist() == [2, 2]
        assert f(x, 3).tolist() == [3, 3]


def test_a_block_holds_for_its_own_thread_only():
    foo = make_foo("eager")
    foo(np.zeros(1))
    inside, done = threading.Event(), threading.Event()
    seen = []

    def other():
        inside.wait()
        seen.append(foo(np.zeros(1)).tolist())
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with tcompile.set_stance("force_eager"):
        inside.set()
        done.wait()
        assert foo(np.zeros(1)).tolist() == [-1]
    thread.join()
    assert seen == [[1]]


def test_a_plain_call_holds_for_every_thread():
    foo = make_foo("eager")
    tcompile.set_stance("force_eager")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(foo(np.zeros(1)).tolist()))
    thread.start()
    thread.join()
    assert seen == [[-1]]


def test_nested_blocks_and_exceptions_restore_the_stance():
    foo = make_foo("eager")
    with tcompile.set_stance("force_eager"):
        with tcompile.set_stance("default"):
            assert foo(np.zeros(1)).tolist() == [1]
        with pytest.raises(ZeroDivisionError), tcompile.set_stance("default"):
            raise ZeroDivisionError
        assert foo(np.zeros(1)).tolist() == [-1]
    assert foo(np.zeros(1)).tolist() == [1]
