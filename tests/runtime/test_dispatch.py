"""Calls: threads, interrupts, errors, replays, recursion, caches and what dispatch leaves behind."""

import gc
import subprocess
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest
from differential import Run, assert_same, assert_same_run

import tcompile
from tcompile.backends.replay import Replay
from tcompile.observe import bus
from tcompile.observe.events import CallTimed, FellBack, GuardFailed, RecompileStarted
from tcompile.observe.recorder import Recorder


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()


def chain(x):
    return np.maximum(x * 2 + 1, 0) - x


def test_threads_compiling_and_calling_one_function():
    compiled = tcompile.compile(chain)
    inputs = [np.linspace(0, i + 1, 3 + i) for i in range(12)]
    wanted = [chain(x) for x in inputs]
    failures = []

    def work(offset):
        try:
            for round in range(60):
                at = (round * 5 + offset) % len(inputs)
                assert_same(compiled(inputs[at]), wanted[at])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert len(compiled.entries) <= 2 and compiled.graphs


def test_threads_on_large_arrays_and_different_functions():
    functions = [tcompile.compile(f) for f in (chain, lambda x: np.where(x > 0, x, -x), lambda x: x / (1 + x * x))]
    x = np.random.default_rng(0).standard_normal((700, 500))
    wanted = [f.__wrapped__(x) for f in functions]
    failures = []

    def work(at):
        try:
            for _ in range(10):
                assert_same(functions[at](x), wanted[at])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i % 3,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


@pytest.mark.parametrize("stage", ["capture", "backend"])
def test_an_interrupt_while_compiling_leaves_everything_usable(stage, monkeypatch):
    interrupted = []

    def backend(graph, inputs):
        if not interrupted:
            interrupted.append(1)
            raise KeyboardInterrupt
        return graph

    compiled = tcompile.compile(chain, backend=backend)
    x = np.ones(3)
    if stage == "capture":
        from tcompile.capture.interpreter.frame import Frame

        original = Frame.run
        monkeypatch.setattr(Frame, "run", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            compiled(x)
        monkeypatch.setattr(Frame, "run", original)
        interrupted.append(1)
    else:
        with pytest.raises(KeyboardInterrupt):
            compiled(x)
    assert not compiled.entries
    assert_same(compiled(x), chain(x))
    assert len(compiled.graphs) == 1


def test_errors_are_plain_pythons_with_the_users_line():
    def f(x, y):
        a = x * 2
        return a + y

    compiled = tcompile.compile(f)
    x, y = np.ones(3), np.ones(4)
    with pytest.raises(ValueError, match="could not be broadcast") as error:
        compiled(x, y)
    assert error.traceback[-1].name == "f" and str(error.traceback[-1].path) == __file__
    assert error.value.__cause__ is None and error.value.__context__ is None


def test_replay_gives_numpys_warnings_and_errors():
    def f(x):
        return np.log(x) / x

    compiled = tcompile.compile(f)
    good, bad = np.array([1.0, 2.0]), np.array([0.0, -1.0])
    compiled(good)
    for _ in range(2):
        assert_same_run(Run(compiled, [bad]), Run(f, [bad]))
    with np.errstate(all="raise"):
        with pytest.raises(FloatingPointError):
            compiled(bad)
        assert_same(compiled(good), f(good))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(compiled(bad), f(bad))


def test_replays_are_told_once():
    compiled = tcompile.compile(lambda x: 1 / x)
    with Recorder() as recorder, np.errstate(divide="raise"):
        for _ in range(3):
            with pytest.raises(FloatingPointError):
                compiled(np.zeros(2))
    (told,) = recorder.of(FellBack)
    assert "divide" in told.detail or "floating" in told.detail.lower()


def test_recursion_through_the_compiled_name():
    @tcompile.compile
    def power(x, n):
        return x if n == 1 else x * power(x, n - 1)

    x = np.array([2.0, 3.0])
    assert_same(power(x, 5), x**5)


def test_events_of_a_recompile_and_of_calls():
    compiled = tcompile.compile(chain)
    compiled(np.ones(3))
    with Recorder() as recorder:
        compiled(np.ones(4))
        compiled(np.ones(5))
    (failed,) = recorder.of(GuardFailed)
    assert failed.source == "x" and failed.seen == "(4,)" and failed.expected == "(3,)"
    assert "symbolic" in failed.hint
    (again,) = recorder.of(RecompileStarted)
    assert again.number == 1 and "x.shape" in again.reasons[0]
    (call,) = recorder.of(CallTimed)
    assert call.ms > 0 and call.path == "compiled"
    assert not bus.active()


def test_advice_is_given_once_however_many_entries_fail():
    compiled = tcompile.compile(chain, dynamic=False)
    for size in (3, 4, 5, 6):
        compiled(np.ones(size))
    last = compiled.recompiles[-1]
    assert len(last) == 3 and [reason.count("Hint:") for reason in last] == [1, 0, 0]
    assert all("x.shape" in reason for reason in last)


def test_generator_and_coroutine_functions_run_plainly():
    @tcompile.compile
    def count(x):
        yield x + 1
        yield x + 2

    @tcompile.compile
    async def later(x):
        return x + 1

    assert [v.tolist() for v in count(np.zeros(1))] == [[1], [2]]
    coroutine = later(np.zeros(1))
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    assert stop.value.value.tolist() == [1]


def test_weak_references_and_collection():
    def make():
        big = np.ones(1000)

        def f(x):
            return x + big

        return tcompile.compile(f), weakref.ref(big)

    compiled, big = make()
    compiled(np.ones(1000))
    seen = weakref.ref(compiled)
    del compiled
    gc.collect()
    assert seen() is None
    tcompile.reset()
    gc.collect()
    assert big() is None


def test_a_call_with_self_as_keyword():
    @tcompile.compile
    def f(self, fn, args, kwargs):
        return self + fn * args - kwargs

    x = np.ones(2)
    assert_same(f(self=x, fn=x, args=x, kwargs=x), x)


def test_reset_inside_a_call_is_harmless():
    @tcompile.disable
    def forget():
        tcompile.reset()

    @tcompile.compile
    def f(x):
        forget()
        return x + 1

    for _ in range(3):
        assert f(np.zeros(2)).tolist() == [1, 1]


def test_results_do_not_share_memory_between_calls():
    compiled = tcompile.compile(chain)
    x = np.random.default_rng(1).standard_normal((512, 512))
    first = compiled(x)
    copy = first.copy()
    second = compiled(x + 1)
    assert not np.shares_memory(first, second)
    assert_same(first, copy)
    del second
    compiled(x + 2)
    assert_same(first, copy)


def test_a_bug_of_ours_runs_the_function_plainly_and_says_so(monkeypatch):
    from tcompile import transforms

    def broken(graph, verify=None, on_pass=None):
        raise KeyError("planted")

    monkeypatch.setattr(transforms, "run", broken)
    compiled = tcompile.compile(chain)
    x = np.ones(3)
    with pytest.warns(UserWarning, match=r"tcompile failed on chain.*KeyError: 'planted'"):
        assert_same(compiled(x), chain(x))
    assert compiled.breaks[0].reason.id == "internal-error"
    assert_same(compiled(x), chain(x))
    tcompile.reset()
    with tcompile.config.patch(verify=True), pytest.raises(KeyError, match="planted"):
        compiled(x)


@pytest.mark.at_recompile_limit
def test_warnings_of_ours_are_never_raised(monkeypatch, capsys):
    def f(x):
        warnings.simplefilter("error")  # the program's own wish
        tcompile.graph_break()
        return x + 1

    compiled = tcompile.compile(f, dynamic=False, backend="eager")
    with warnings.catch_warnings():
        for size in range(2, 14):
            assert_same(compiled(np.ones(size)), np.ones(size) + 1)
    assert capsys.readouterr().err.count("f was compiled 8 times") == 1
    monkeypatch.setattr(sys, "stderr", None)
    tcompile.reset()
    with warnings.catch_warnings():
        for size in range(2, 14):
            assert_same(compiled(np.ones(size)), np.ones(size) + 1)


@pytest.mark.at_recompile_limit
def test_entries_from_before_a_size_was_open_leave_room_for_others(capsys):
    def f(x, kind):
        return x + 1 if kind == "a" else x * 2 if kind == "b" else x - 3

    compiled = tcompile.compile(f, backend="eager")
    with tcompile.config.patch(recompile_limit=3):
        for size, kinds in ((3, "ab"), (4, "abc"), (5, "abc"), (9, "bca")):
            for kind in kinds:
                assert_same(compiled(np.ones(size), kind), f(np.ones(size), kind))
        assert len(compiled.entries) == 5  # two for the first size, three for all others
        assert not capsys.readouterr().err
        compiled(np.ones(5, "f4"), "a")
        assert len(compiled.entries) == 5
    assert "f was compiled 5 times (config.recompile_limit: 3)" in capsys.readouterr().err


ENDS_LATE = """\
import gc, sys, tcompile
gc.disable()

@tcompile.compile
def steps(show):
    try:
        for i in range(3):
            yield i + 1
    finally:
        show("done")

held = steps(sys.stderr.write)
next(held), next(held)
cycle = [held]
cycle.append(cycle)
del held, cycle
"""


def test_a_generator_that_is_closed_as_python_ends_runs_plainly():
    ended = subprocess.run([sys.executable, "-c", ENDS_LATE], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stderr == "done"


CLOSES = """
import tcompile

class Closes:
    def __del__(self):
        print("closed")

held = Closes()
f = tcompile.compile(lambda x: x + 1)
"""


def test_finalizers_still_work_as_python_ends():
    ended = subprocess.run([sys.executable, "-c", CLOSES], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout == "closed\n", ended.stderr


def test_who_is_replayed_again_and_again_rests():
    """What plain Python does again each time is not done before; now and then it is tried, in case it helps."""
    ran = []

    def counted(graph, inputs):
        def run(*arrays):
            ran.append(len(ran))
            if not arrays[0].all():
                raise Replay("a zero")
            return graph(*arrays)

        return run

    compiled = tcompile.compile(lambda x: 1 / x, backend=counted)
    good, bad = np.ones(3), np.zeros(3)
    # Machine code would run it once more.
    with warnings.catch_warnings(), tcompile.config.patch(native_calls=False), Recorder() as recorder:
        warnings.simplefilter("ignore")
        for turn in range(20):  # some of them are no reason
            compiled(bad if turn % 2 else good)
        (entry,) = compiled.entries
        assert not entry.suspensions and len(ran) == 20
        for _ in range(200):
            assert_same(compiled(bad), 1 / bad)
        assert entry.suspensions == 3 and len(ran) == 20 + 7 + 2  # the last of the others was the first in turn
        for _ in range(100):
            assert_same(compiled(good), 1 / good)
        assert len(ran) == 29 + 67 and len(compiled.entries) == 1  # 33 calls were left of the rest
        compiled(np.ones((2, 2)))  # guards are asked all the time
        assert len(compiled.entries) == 2
    replayed, rests = recorder.of(FellBack)
    assert replayed.reason == "replayed in plain Python" and "the next 32 calls" in rests.reason
