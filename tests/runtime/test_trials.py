"""Functions whose compiled calls take longer than plain Python rest; whatever the clock says, results are the same."""

import itertools
import math

import numpy as np
import pytest
from differential import Run, assert_same_run

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import FellBack
from tcompile.runtime import run as runs
from tcompile.runtime import trials


@pytest.fixture(autouse=True)
def _on(monkeypatch):
    tcompile.reset()
    with tcompile.config.patch(rest_when_slower=True):
        yield


@pytest.fixture
def told():
    events = []
    stop = bus.subscribe(events.append, calls=False)
    yield events
    stop()


def slower(monkeypatch):
    """Has every trial find that plain Python takes less time, and no call end a rest."""
    monkeypatch.setattr(trials, "GAIN", math.inf)
    monkeypatch.setattr(trials, "LONGEST", math.inf)
    monkeypatch.setattr(trials, "LONGEST_WITH_LOOPS", math.inf)
    monkeypatch.setattr(trials, "LONGEST_IN_PYTHON", math.inf)
    monkeypatch.setattr(trials, "NOISE", math.inf)


def secant(x0, x1):
    f0, f1 = x0 * x0 - 2, x1 * x1 - 2
    for _ in range(20):
        if abs(f1) < 1e-12:
            break
        x2 = x1 - f1 * (x1 - x0) / (f1 - f0)
        x0, x1, f0, f1 = x1, x2, f1, x2 * x2 - 2
    return x1


def in_turn(x, seen):
    y = x * 2 + 1
    print(end="")
    seen.append(len(seen))
    y[0] = len(seen)
    return y.argmax(), y


def fails_at_times(x, seen):
    y = x + 1
    print(end="")
    seen.append(int(y[0]))
    if len(seen) % 5 == 0:
        raise ValueError(f"at {len(seen)}")
    return y


def recursive(n, x):
    if n < 1:
        return x
    print(end="")
    return recursive(n - 1, x + 1) if n % 2 else recursive(n - 2, x - 1)


def sorted_iterations(x):
    """Python runs the iterations: nothing else sorts rows."""
    total = 0.0
    for k in range(x.shape[0]):
        total = total + np.sort(x[k])[2]
    return total


ARGUMENTS = {
    secant: lambda: (1.0, 2.0),
    in_turn: lambda: (np.arange(4.0), []),
    fails_at_times: lambda: (np.arange(3), [0] * 3),
    recursive: lambda: (5, np.zeros(2)),
    sorted_iterations: lambda: (np.arange(140.0).reshape(20, 7) * -1,),
}


@pytest.mark.parametrize("gain", [0, math.inf, 0.9])
@pytest.mark.parametrize("function", ARGUMENTS)
def test_every_call_gives_the_same(function, gain, monkeypatch):
    slower(monkeypatch)
    monkeypatch.setattr(trials, "GAIN", gain)
    compiled = tcompile.compile(function)
    kept, kept_plain = ARGUMENTS[function](), ARGUMENTS[function]()
    for _ in range(30):
        assert_same_run(Run(compiled, ARGUMENTS[function]()), Run(function, ARGUMENTS[function]()))
        assert_same_run(Run(compiled, kept), Run(function, kept_plain))


@pytest.mark.parametrize("function", [secant, in_turn, sorted_iterations])
def test_the_slower_rest(function, monkeypatch, told):
    slower(monkeypatch)
    compiled = tcompile.compile(function)
    for _ in range(8 + 2 * trials.SAMPLES):
        compiled(*ARGUMENTS[function]())
    assert compiled.cache.trial.limit
    hits = [entry.hits for entry in compiled.entries]
    for _ in range(5):
        compiled(*ARGUMENTS[function]())
    assert hits == [entry.hits for entry in compiled.entries]
    reasons = [event.reason for event in told if isinstance(event, FellBack)]
    assert reasons == ["plain Python takes less time"]


@pytest.mark.parametrize("function", [secant, in_turn, sorted_iterations])
def test_the_faster_go_on(function, monkeypatch, told):
    slower(monkeypatch)
    monkeypatch.setattr(trials, "GAIN", 0)
    compiled = tcompile.compile(function)
    for _ in range(8 + 2 * trials.SAMPLES):
        compiled(*ARGUMENTS[function]())
    assert compiled.cache.trial is None
    hits = sum(entry.hits for entry in compiled.entries)
    compiled(*ARGUMENTS[function]())
    assert sum(entry.hits for entry in compiled.entries) > hits
    assert not [event for event in told if isinstance(event, FellBack)]


def iterations_in_other_ways(x):
    print(end="")
    return np.exp(x).sum()


def zeros_of_both_signs(x):
    print(end="")
    return (x + 0).max()


def generator(x):
    for i in range(3):
        print(end="")
        yield x * i


def arrays(x, n):
    for i in range(n):
        x[i % 4] = x[i % 4] * 2 % 7
    return x


@pytest.mark.parametrize(
    ("function", "arguments", "settings"),
    [
        (generator, (np.ones(3),), {}),
        (arrays, (np.arange(4), 100), {}),
        (secant, (1.0, 2.0), {"fullgraph": True}),
        (secant, (1.0, 2.0), {"options": {"exact": True}}),
        (secant, (1.0, 2.0), {"backend": "eager"}),
    ],
)
def test_no_others_are_on_trial(function, arguments, settings, monkeypatch):
    slower(monkeypatch)
    compiled = tcompile.compile(function, **settings)
    for _ in range(20):
        result = compiled(*arguments)
        if function is generator:
            list(result)
        assert compiled.cache.trial is None


@pytest.mark.parametrize("gain", [0, math.inf])
@pytest.mark.parametrize("function", [iterations_in_other_ways, zeros_of_both_signs])
def test_other_bits_are_tried_once_and_the_verdict_stays(function, gain, monkeypatch):
    slower(monkeypatch)
    monkeypatch.setattr(trials, "GAIN", gain)
    compiled, x = tcompile.compile(function), np.linspace(0.1, 2, 50)
    for _ in range(8 + 2 * trials.SAMPLES):
        compiled(x)
    rests = compiled.cache.trial is not None
    assert rests == bool(gain)
    for size in (50, 5000, 7):  # other sizes change nothing
        x = np.linspace(0.1, 2, size)
        assert len({compiled(x).tobytes() for _ in range(20)}) == 1
        assert (compiled.cache.trial is not None) == rests


def test_other_bits_are_compiled_for_good_after_a_rest(monkeypatch):
    slower(monkeypatch)
    compiled, x = tcompile.compile(iterations_in_other_ways), np.linspace(0.1, 2, 50)
    for _ in range(8 + 2 * trials.SAMPLES):
        compiled(x)
    rest = compiled.cache.trial
    rest.limit = rest.excess = 0.0
    monkeypatch.setattr(trials, "PATIENCE", -1.0)  # as after calls that take long
    compiled(x)
    for _ in range(30):
        compiled(x)
        assert compiled.cache.trial is None


def test_machine_code_calls_what_rests_until_calls_take_much_longer(monkeypatch):
    slower(monkeypatch)
    monkeypatch.setattr(trials, "NOISE", 1e-4)
    called = []

    def runs_plainly(x):
        called.append(len(x))
        print(end="")
        return x + 1

    compiled = tcompile.compile(runs_plainly)
    for _ in range(10 + 2 * trials.SAMPLES):
        compiled(np.ones(4))
    trial = compiled.cache.trial
    assert trial.resting_plan is not None
    before, hits = len(called), trial.resting_plan.hits
    for _ in range(50):
        np.testing.assert_array_equal(compiled(x=np.ones(4)), [2, 2, 2, 2])
    with pytest.raises(TypeError, match="unexpected keyword"):
        compiled(y=1)
    assert trial.resting_plan.hits == hits + 50
    assert len(called) == before + 50
    with tcompile.config.patch(rest_when_slower=False):
        compiled(np.ones(4))
        assert trial.resting_plan.hits == hits + 50


def halves(x):
    print(end="")
    return x if len(x) < 2 else np.concatenate([halves(x[::2]), halves(x[1::2])])


def test_the_calls_inside_a_recursion_are_no_samples(monkeypatch):
    slower(monkeypatch)
    call, samples, record = [0], [], trials.Trial.record

    def recorded(trial, *sample):
        samples.append(call[0])
        record(trial, *sample)

    monkeypatch.setattr(trials.Trial, "record", recorded)
    compiled = tcompile.compile(halves)
    monkeypatch.setitem(globals(), "halves", compiled)
    for call[0] in range(20):
        compiled(np.arange(16.0))
    assert samples
    assert len(samples) == len(set(samples))  # one in each call of ours


def nodes_by_python(x, p):
    """Python runs the outer iterations, and machine code the inner ones."""
    total = 0.0
    for k in range(x.shape[0]):
        row = np.sort(x[k])
        for i in range(x.shape[1]):
            total += row[i] * p[i]
    return total


def test_long_calls_that_enter_machine_code_often_are_compared(monkeypatch):
    x, p = np.random.default_rng(0).random((400, 3)), np.ones(3)
    compiled = tcompile.compile(nodes_by_python)
    for _ in range(30):
        assert compiled(x, p) == nodes_by_python(x, p)
    clock, cache = Clock(monkeypatch), compiled.cache
    cache.trial = trials.Trial(cache, alone=True)
    entry = cache.entries[0]

    def enters():
        clock.now += 5e-2
        entry.calls += 5000

    plain = clock.taking([1e-2] * 3)
    for _ in range(6):
        call_on_trial(cache.trial, plain, enters)
    assert cache.trial.limit


def test_the_setting_turns_trials_off(monkeypatch):
    slower(monkeypatch)
    with tcompile.config.patch(rest_when_slower=False):
        compiled = tcompile.compile(secant)
        for _ in range(20):
            compiled(1.0, 2.0)
            assert compiled.cache.trial is None


class Clock:
    """Time that passes only while functions run."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(trials, "perf_counter", lambda: self.now)

    def taking(self, seconds):
        """A function that takes each of these seconds in turn."""
        left = iter(seconds)

        def function():
            self.now += next(left)

        return function


def call_on_trial(trial, plain, compiled, *args):
    return runs.carry_out(trial.choose(runs.Run(plain), runs.Run(plain), compiled), args, {})


def on_trial(cache_of=secant, alone=False):
    cache = tcompile.compile(cache_of).cache
    cache.trial = trials.Trial(cache, alone)
    return cache


def test_the_shortest_calls_are_compared(monkeypatch):
    clock, cache = Clock(monkeypatch), on_trial()
    compiled, plain = clock.taking([9e-4, 1e-4, 5e-4]), clock.taking([7e-5, 9e-5, 9e-5])
    for _ in range(6):
        call_on_trial(cache.trial, plain, compiled)
    assert cache.trial.limit == pytest.approx(trials.LARGER * 9e-5 + trials.NOISE)


@pytest.mark.parametrize("short", [0, 3])
def test_a_rest_ends_where_calls_take_much_longer_also_now_and_then(short, monkeypatch):
    clock, cache = Clock(monkeypatch), on_trial()
    rest = cache.trial
    compiled, plain = clock.taking([1e-3] * 3), clock.taking([7e-5] * 3)
    for _ in range(6):
        call_on_trial(rest, plain, compiled)
    plain = clock.taking(itertools.cycle([1e-5] * short + [rest.limit + trials.PATIENCE]))
    for _ in range(2 * (short + 1)):
        assert cache.trial is rest
        call_on_trial(rest, plain, compiled)
    for _ in range(short + 1):
        call_on_trial(cache.trial, plain, compiled) if cache.trial is rest else None
    assert cache.trial is not rest
    assert not cache.trial.limit
    assert cache.trial.trial_number == 2


def test_a_long_call_is_worth_it_without_a_plain_one(monkeypatch):
    clock, cache = Clock(monkeypatch), on_trial()
    compiled = clock.taking([1, 1, 1, 1])
    for _ in range(4):
        call_on_trial(cache.trial, None, compiled)
    assert cache.trial is None


def test_one_plain_call_is_enough_where_it_takes_much_longer(monkeypatch):
    clock, cache = Clock(monkeypatch), on_trial()
    compiled, plain = clock.taking([1e-4] * 3), clock.taking([1e-2])
    for _ in range(4):
        call_on_trial(cache.trial, plain, compiled)
    assert cache.trial is None


def test_machine_code_would_not_need_the_trials_own_steps(monkeypatch):
    clock = Clock(monkeypatch)
    for alone, over in ((True, True), (False, False)):
        cache = on_trial(alone=alone)
        compiled, plain = clock.taking([3e-6] * 3), clock.taking([1e-6] * 3)
        for _ in range(6):
            call_on_trial(cache.trial, plain, compiled)
        assert (cache.trial is None) is over


def test_calls_inside_of_a_call_are_like_it(monkeypatch):
    cache = on_trial()
    seen = []

    def call(kind, depth):
        seen.append((kind, depth))
        if depth and (kind == "plain" or not cache.trial.inside):
            call_on_trial(cache.trial, lambda d: call("plain", d), lambda d: call("compiled", d), depth - 1)

    for kind in ("compiled", "plain"):
        seen.clear()
        for _ in range(trials.SAMPLES):
            monkeypatch.setattr(
                trials, "perf_counter", itertools.count(step=1e-5 if kind == "plain" else 1e-4).__next__
            )
            call_on_trial(cache.trial, lambda d: call("plain", d), lambda d: call("compiled", d), 2)
        assert {found for found, _ in seen} == {kind}
    assert len(cache.trial.plain) == trials.SAMPLES
    assert cache.trial.limit


def test_trials_come_to_an_end(monkeypatch):
    clock, cache = Clock(monkeypatch), on_trial()
    compiled = clock.taking(itertools.repeat(1e-4))
    for count in itertools.count(1):
        plain = clock.taking([1e-5] * trials.SAMPLES + [100.0])
        for _ in range(2 * trials.SAMPLES + 1):
            call_on_trial(cache.trial, plain, compiled)
        if cache.trial is None:
            break
    assert count == trials.MOST


def other_bits_after_a_test(x, flag):
    print(end="")
    return np.exp(x) * np.sin(x) if flag else x + 1


def sees_it(x, _):
    print(end="")
    return x + 1, tcompile.is_compiling()


def loops_after_a_test(x, n):
    print(end="")
    total = 0.0
    for i in range(n):
        total = total + x[i % 4] * i
    return total


def test_what_is_compiled_later_is_looked_at(monkeypatch):
    slower(monkeypatch)
    compiled, x = tcompile.compile(other_bits_after_a_test), np.linspace(0.1, 2, 50)
    for _ in range(10):
        compiled(x, False)
    trial = compiled.cache.trial
    assert trial.compiled
    assert not trial.limit
    for _ in range(10):
        compiled(x, True)
    assert compiled.cache.is_decided
    assert len({compiled(x, True).tobytes() for _ in range(30)}) == 1


def calls_what_has_other_bits(x):
    print(end="")
    return has_other_bits(x)


def has_other_bits(x):
    print(end="")
    return np.exp(x) * np.sin(x)


def test_functions_that_are_called_are_looked_at(monkeypatch):
    slower(monkeypatch)
    compiled, x = tcompile.compile(calls_what_has_other_bits), np.linspace(0.1, 2, 50)
    for _ in range(40):
        compiled(x)
    assert compiled.cache.is_decided
    assert len({compiled(x).tobytes() for _ in range(40)}) == 1
    assert compiled.cache.trial is not None


def test_what_may_be_told_apart_is_not_on_trial(monkeypatch):
    slower(monkeypatch)
    compiled, x = tcompile.compile(lambda x: sees_it(x, 0)), np.array([-0.0, 0.0])
    for _ in range(30):
        compiled(x)
        assert compiled.cache.trial is None


def test_a_loop_that_is_compiled_later_shortens_what_is_done_plainly(monkeypatch):
    compiled, x = tcompile.compile(loops_after_a_test), np.arange(4.0)
    monkeypatch.setattr(trials, "SAMPLES", 100)
    for _ in range(10):
        compiled(x, 0)
    assert trials._longest(compiled.cache) == trials.LONGEST
    assert compiled.cache.trial.compiled
    compiled(x, 1000)
    assert trials._longest(compiled.cache) == trials.LONGEST_WITH_LOOPS
    assert not compiled.cache.trial.compiled


def test_only_what_has_been_called_says_how_long_plain_calls_may_take(monkeypatch):
    slower(monkeypatch)
    monkeypatch.setattr(trials, "LONGEST", 1e-9)  # which a call with few iterations has: they are unrolled
    compiled = tcompile.compile(sorted_iterations)
    for rows in (2, 2, *[20] * (2 + 2 * trials.SAMPLES)):
        compiled(np.arange(7.0 * rows).reshape(rows, 7))
    assert compiled.cache.trial.limit


def test_a_rest_ends_with_its_setting(monkeypatch):
    slower(monkeypatch)
    compiled = tcompile.compile(secant)
    for _ in range(2 * trials.SAMPLES + 2):
        compiled(1.0, 2.0)
    assert compiled.cache.trial.limit
    with tcompile.config.patch(rest_when_slower=False):
        compiled(1.0, 2.0)
        assert compiled.cache.trial is None


def test_another_thread_may_end_a_call_in_the_meantime(monkeypatch):
    cache = on_trial()
    trial = cache.trial

    def raises():
        trial.inside = None  # as where another thread's call has ended
        return 1

    assert call_on_trial(trial, None, raises) == 1
    trial.compiled.clear()
    trial._ran_plainly(1.0)
    assert not trial.plain


def test_calls_that_compile_or_raise_tell_nothing(monkeypatch):
    clock, cache = Clock(monkeypatch), on_trial()

    def compiles():
        trials.note_compile()

    def raises():
        raise ValueError

    call_on_trial(cache.trial, None, compiles)
    with pytest.raises(ValueError):
        call_on_trial(cache.trial, None, raises)
    assert not cache.trial.compiled
    assert cache.trial.inside is None
    assert clock.now == 0


def test_a_plain_call_that_compiles_what_it_calls_is_no_sample(monkeypatch):
    """It takes long, but the next one does not."""
    clock, cache = Clock(monkeypatch), on_trial()
    compiled, plain = clock.taking(itertools.repeat(1e-4)), clock.taking(itertools.chain([1.0], itertools.repeat(1e-5)))
    first = iter([trials.note_compile])

    def call():
        next(first, lambda: None)()
        return plain()

    for _ in range(2 * trials.SAMPLES + 1):
        call_on_trial(cache.trial, call, compiled)
    assert cache.trial.limit


def test_one_short_call_that_takes_longer_is_not_enough(monkeypatch):
    """Another process may have had the processor."""
    clock, cache = Clock(monkeypatch), on_trial()
    compiled = clock.taking(itertools.repeat(1e-5))
    plain = clock.taking(itertools.chain([9e-4], itertools.repeat(1e-6)))
    for _ in range(2 * trials.SAMPLES):
        call_on_trial(cache.trial, plain, compiled)
    assert cache.trial.limit
