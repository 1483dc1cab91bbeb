"""Hosts behave as the code they are made of, whatever their gates do."""

import contextlib
import io
import traceback

import pytest

from bytecode.passing import MODES, Passing
from bytecode.programs import PROGRAMS


def outcome(function):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            result = repr(function())
        except Exception as error:
            frames = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.name != "region"]
            result = type(error), str(error), frames[1:]
    return result, out.getvalue()


@pytest.mark.parametrize("every", [False, True], ids=["default", "every"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(function, mode, every):
    passing = Passing(mode, every)
    gated = passing(function)
    want = outcome(function)
    for _ in range(3):
        assert outcome(gated) == want
    assert passing.passes
    for host in passing.hosts:  # closed again, nothing is called
        for gate in host.gates.values():
            gate.clear()
    passed = passing.passes
    assert outcome(gated) == want
    assert passing.passes == passed
