"""Breaks after every k-th instruction: a run of some seconds. tools/stress.py runs all differential tests so."""

from __future__ import annotations

import numpy as np
import pytest
from differential import assert_same, check

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import CompileStarted

from .helpers import X, x


@pytest.mark.parametrize("k", range(1, 21))
def test_generated_programs(k, load_tool):
    generated = load_tool("stress").generated
    for seed in range(100 * k, 100 * k + 4):
        generated(k, seed)


def test_closures_are_made_across_a_break():
    def f(a):
        n = 2

        def g(v, m: int = 1, *, k=3):
            nonlocal n
            n += m
            return v * n + k

        return g(a), g(a, 5, k=4), n, (lambda: a + n)()

    for k in range(1, 40):
        with tcompile.config.patch(stress_breaks=k):
            check(f, x, backends=("eager",))


def helper(a):
    b = a + 1
    c = b * b
    return c - a


def test_called_functions_that_are_longer_are_compiled_by_themselves():
    started = []
    with (
        tcompile.config.patch(stress_breaks=5),
        bus.listening(lambda event: started.append(event.function) if isinstance(event, CompileStarted) else None),
    ):
        f = tcompile.compile(lambda a: helper(a) + 1, backend="eager")
        assert_same(f(X), helper(X) + 1)
    assert "helper" in started


def test_a_break_that_was_asked_for_is_no_error():
    with tcompile.config.patch(stress_breaks=1):
        (f,) = check(lambda a: a * 2 + 1, x, backends=("eager",), fullgraph=True)
        with tcompile.error_on_graph_break(True):
            assert_same(f(X), X * 2 + 1)


def test_wrong_answers_and_crashes_are_told(load_tool, tmp_path, monkeypatch):
    stress = load_tool("stress")
    file = tmp_path / "test_it.py"
    file.write_text(
        "import os, numpy as np, tcompile\n"
        "from differential import assert_same\n"
        "def test_right(): assert_same(1, 1)\n"
        "def test_counts(): assert tcompile.config.stress_breaks == 0\n"
        "def test_wrong(): assert_same(np.ones(3), np.zeros(3))\n"
        "def test_crashes(): os._exit(7)\n"
    )
    options = stress.parser().parse_args([str(file), "--k", "3"])
    ended = {test.partition("::")[2]: outcome for _, test, outcome, _ in stress.rows(str(file), options)}
    assert ended == {"test_right": "right", "test_counts": "other", "test_wrong": "wrong", "test_crashes": "wrong"}
    try:
        np.zeros(3).reshape(2, 2)
    except ValueError as error:
        assert stress.verdict(error) == "other"
