"""Each use of set_stance around compiled functions, inside them, and in cells."""

import contextlib
import threading

import numpy as np
import pytest

import tcompile
from tcompile.api import run_cell
from tcompile.errors import RecompileError, StanceError

X = np.zeros(3)


@pytest.fixture(autouse=True)
def _default():
    tcompile.set_stance("default")
    yield
    tcompile.set_stance("default")


@tcompile.compile
def which(x):
    return x + 1 if tcompile.is_compiling() else x - 1


def kind():
    """How a compiled function runs here and now."""
    return {1: "compiled", -1: "plain"}[int(which(X)[0])]


def elsewhere(function=kind):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def test_blocks():
    for _ in range(3):
        assert kind() == "compiled"
        with tcompile.set_stance("force_eager"):
            assert kind() == "plain" and elsewhere() == "compiled"
            with pytest.raises(ZeroDivisionError), tcompile.set_stance("default"):
                assert kind() == "compiled"
                raise ZeroDivisionError
            assert kind() == "plain"
        assert kind() == elsewhere() == "compiled"


def test_an_object_made_before():
    for _ in range(3):
        s = tcompile.set_stance("force_eager")
        assert kind() == elsewhere() == "plain"
        for _ in range(2):
            with s:
                assert kind() == "plain" and elsewhere() == "compiled"
            assert kind() == elsewhere() == "compiled"
        f = s(kind)
        assert f() == elsewhere(f) == "plain"
        assert kind() == "compiled"


def test_generators():
    @tcompile.set_stance("force_eager")
    def f():
        yield kind()
        yield kind()

    for _ in range(3):
        assert [(each, kind()) for each in f()] == [("plain", "compiled")] * 2


def test_calls_that_nothing_was_compiled_for():
    @tcompile.compile
    def new(x):
        return x * 2

    with pytest.raises(RecompileError), tcompile.set_stance("fail_on_recompile"):
        new(X)
    assert kind() == elsewhere() == "compiled"
    assert new(X).tolist() == [0, 0, 0]


STANCE = tcompile.set_stance.block("force_eager")


def of_a_call(x):
    with tcompile.set_stance("force_eager"):
        return x + 1


def in_a_list(x):
    made = [tcompile.set_stance(name) for name in ("force_eager", "default")]
    return x + len(made)


def in_a_condition(x):
    return tcompile.set_stance("force_eager") and x + 1


@pytest.mark.parametrize("function", [of_a_call, in_a_list, in_a_condition])
def test_a_call_inside_a_compiled_function_is_refused(function):
    compiled = tcompile.compile(function)
    for _ in range(3):
        with pytest.raises(StanceError, match="a call of set_stance"):
            compiled(X)
        assert kind() == elsewhere() == "compiled"


def of_an_object(x):
    with STANCE:
        y = x + 1
        inside = tcompile.stance.current().name
    return y, inside, tcompile.stance.current().name


def of_an_object_in_a_loop(x):
    seen = []
    for i in range(3):
        with contextlib.suppress(ValueError), STANCE:
            x = x + i
            seen.append(tcompile.stance.current().name)
            raise ValueError(x)
    return x, seen, tcompile.stance.current().name


@pytest.mark.parametrize("function", [of_an_object, of_an_object_in_a_loop])
def test_a_block_of_an_object_inside_a_compiled_function_is_plain_python(function):
    compiled = tcompile.compile(function)
    for _ in range(3):
        assert repr(compiled(X)) == repr(function(X))
        assert kind() == elsewhere() == "compiled"


CELLS = {
    "import tcompile\ntcompile.set_stance('force_eager')": "force_eager",
    "s = tcompile.set_stance('force_eager')": "force_eager",
    "stances = [tcompile.set_stance(name) for name in ('default', 'force_eager')]": "force_eager",
    "y = tcompile.set_stance('force_eager') and x + 1": "force_eager",
    "for i in range(3):\n    with tcompile.set_stance('force_eager'):\n        y = x + i": "default",
    "s = tcompile.set_stance('force_eager')\nwith s:\n    y = x + 1\nz = y * 2": "default",
    "@tcompile.set_stance('force_eager')\ndef f(x):\n    return x + 1\ny = f(x)": "default",
    "with tcompile.set_stance('force_eager'):\n    s = tcompile.set_stance('fail_on_recompile')\n"
    "    with s:\n        y = x * 2\nz = y + 1": "default",
}


@pytest.mark.parametrize("cell", CELLS)
def test_cells(cell):
    for _ in range(2):
        tcompile.set_stance("default")
        run_cell(compile(cell, "<cell>", "exec"), {"tcompile": tcompile, "x": X})
        now = lambda: tcompile.stance.current().name
        assert now() == elsewhere(now) == CELLS[cell]
