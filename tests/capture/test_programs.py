"""Random programs run plainly and compiled: nothing may tell the two apart."""

from __future__ import annotations

import traceback
from random import Random

from differential import BACKENDS, STANCES, Run, assert_same, assert_same_run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tcompile

from .programs import arguments, identities, namespace, plain, program, state


def raised_at(run: Run) -> list[tuple[str, int | None]]:
    """Function and line of the program at which a run ended."""
    if run.error is None:
        return []
    return [
        (frame.name, frame.lineno)
        for frame in traceback.extract_tb(run.error.__traceback__)
        if frame.filename.startswith("<p")
    ]


def compare(source: str, seed: int, backend: str, stance: str, dynamic: bool | None) -> None:
    """Calls the program's ``f`` with several kinds of arguments, plainly and compiled."""
    random = Random(seed)
    tcompile.reset()
    # One code object each, so that neither run sees what the other stored.
    want_space, got_space = namespace(source, "<p>"), namespace(source, "<p>")
    function = want_space["f"]
    compiled = tcompile.compile(got_space["f"], backend=backend, dynamic=dynamic)
    seeds = [random.randrange(1 << 30) for _ in range(3)]
    replays = compiles = 0
    counted = not tcompile.config.stress_breaks
    for number, call in enumerate((seeds[0], seeds[0], seeds[1], seeds[2], seeds[1], seeds[0])):
        want_args, got_args = arguments(call, want_space), arguments(call, got_space)
        want = Run(function, want_args)
        with tcompile.set_stance(stance):
            got = Run(compiled, got_args)
        want_all, got_all = (want.value, *state(want_args, want_space)), (got.value, *state(got_args, got_space))
        if (got.error is None) == (want.error is None):
            assert identities(got_all) == identities(want_all), (
                f"other objects are shared: {identities(got_all)} {identities(want_all)}"
            )
        for run in (got, want):
            run.value, run.args = plain(run.value), ()
        assert_same_run(got, want)
        assert_same(plain(got_all[1:]), plain(want_all[1:]), "state after the call")
        assert raised_at(got) == raised_at(want)
        cache = compiled.cache
        if counted and number == 1 and stance == "default" and "G_LIST.append" not in source and not cache.breaks:
            assert cache.compiles == compiles == 1, f"compiled again: {cache.recompiles}"
        before, replays, compiles = replays, sum(entry.replays for entry in cache.entries), cache.compiles
        if counted and backend == "eager" and want.error is None and not want.warned:
            assert replays == before, "replayed for nothing"
    for broke in compiled.breaks:
        assert broke.reason.id != "internal-error", broke.detail
        assert broke.where.line, broke.full_text()


def check(random: Random, backend: str | None = None) -> None:
    """One random program under random settings; failures show the program."""
    source = program(random, risky=random.choice([0.0, 0.0, 0.02, 0.1]))
    backend = backend or random.choice(BACKENDS)
    stance = random.choice(["default"] * 6 + list(STANCES))
    dynamic = random.choice([None, None, None, True, False])
    seed = random.randrange(1 << 30)
    try:
        with tcompile.config.patch(verify=True):
            compare(source, seed, backend, stance, dynamic)
    except BaseException as error:
        body = source[source.index("def f(") :]
        error.add_note(f"backend={backend!r} stance={stance!r} dynamic={dynamic} seed={seed}\n{body}")
        raise


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
@given(st.integers(0, 2**40))
def test_programs(seed):
    check(Random(seed))
