"""Short runs of what tools/leak_check.py, interrupt_check.py and threads_check.py do at length."""

import gc
import signal
import sys
import threading
import weakref

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile.observe.history import history

X = np.linspace(-1.0, 1.0, 24).reshape(4, 6)


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()
    yield
    tcompile.reset()


@pytest.mark.parametrize("kind", ["whole", "broken"])
@pytest.mark.parametrize("name", ["reset", "redefine"])
def test_memory_stays_flat(load_tool, name, kind):
    """Blocks, not bytes: what is left behind by each cycle shows at once, and the machine's own memory does not."""
    cycles = 150
    run = load_tool("leak_check").cycle(name, "eager", kind)
    for number in range(1, 20):
        run(number)

    def blocks():
        tcompile.reset()
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks()
    for number in range(20, 20 + cycles):
        run(number)
    assert blocks() - before < 10 * cycles  # one code object alone is more


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_a_deleted_function_and_its_graphs_are_freed(backend, broken):
    def make():
        return lambda x: np.maximum(x * 2, 0) + (1 if not broken or tcompile.graph_break() is None else 0)

    function = make()
    code = function.__code__.replace(co_name="deleted")  # or this test keeps it
    function.__code__ = code
    compiled = tcompile.compile(function, backend=backend)
    assert_same(compiled(X), np.maximum(X * 2, 0) + 1)
    watched = [weakref.ref(thing) for thing in (function, code, compiled, *compiled.graphs)]
    assert len(watched) == 4 + broken
    del function, code, compiled
    history.clear()  # which keeps the last events for reports
    gc.collect()
    assert [ref() for ref in watched] == [None] * len(watched)


@pytest.fixture
def no_callbacks_of_the_collector():
    """An interrupt in one has no caller to go to, and other tests leave some behind: hypothesis, for one."""
    left = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = left


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers that interrupt")
@pytest.mark.usefixtures("no_callbacks_of_the_collector")
def test_interrupts_at_random_moments(load_tool):
    result = load_tool("interrupt_check").run(tries=32, seed=7)
    assert not result["failures"], result["failures"]
    assert result["interrupted"] > 5


@pytest.mark.parametrize("backend", ["eager", "llvm"])
def test_eight_threads_compile_and_call_the_same_and_different_functions(load_tool, backend):
    tool = load_tool("interrupt_check")
    functions = [tool.fresh(name, number) for name in tool.PROGRAMS for number in range(2)]
    inputs = [X, X[:2].copy(), X.astype("f4"), np.ones((3, 5, 2))]
    wanted = [[f(x) for x in inputs] for f in functions]
    compiled = [tcompile.compile(f, backend=backend) for f in functions]
    start, failures = threading.Barrier(8), []

    def work(me):
        try:
            start.wait()
            for round in range(12):
                f = (me + round) % len(functions) if me % 2 else round % len(functions)  # half of them in step
                x = (round * 3 + me) % len(inputs)
                got, want = compiled[f](inputs[x]), wanted[f][x]
                assert type(got) is type(want) and got.dtype == want.dtype and got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(me,), daemon=True) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert not failures, failures[0]


@pytest.mark.parametrize("name, reset_every", [("whole", 0.0), ("whole", 0.2), ("broken", 0.0)])
def test_threads_with_arrays_of_different_sizes(load_tool, name, reset_every):
    found = load_tool("threads_check").measure(name, threads=8, seconds=0.5, reset_every=reset_every)
    assert found["wrong"] == [] and found["calls"] >= 8 * 10
