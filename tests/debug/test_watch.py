"""TCOMPILE_REPRO_AFTER: graphs that fail in a running program are left behind as scripts."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tcompile
from tcompile import compiler
from tcompile.debug.script import graph_in
from tcompile.debug.watch import Watcher, watching
from tcompile.errors import BackendError, InvalidArgument
from tcompile.observe.events import PassFinished
from tcompile.observe.recorder import Recorder
from tests.debug import faults

ROOT = Path(__file__).resolve().parent.parent.parent
X = np.linspace(0.5, 1.5, 12)


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()


def f(x):
    for _ in range(8):
        x = np.sin(x) + 0.5
    y = np.expm1(x) * 0.1
    return np.tanh(y) - x


def scripts(folder):
    return sorted(folder.glob("*.py"))


def test_an_error_of_a_backend_is_made_small(tmp_path, capsys):
    with watching(folder=tmp_path) as watcher, pytest.raises(BackendError):
        tcompile.compile(f, backend=faults.refuses_expm1)(X)
    assert compiler.watcher is None
    (path,) = scripts(tmp_path)
    assert watcher.written == [path]
    assert [node.op.name for node in graph_in(path.read_text()).nodes] == ["expm1"]
    told = capsys.readouterr().err
    assert "compile error: KeyError" in told and "reduced to 1" in told and str(path) in told


@pytest.mark.parametrize("level, count, ops", [(1, 1, 21), (2, 1, 1), (3, 2, 21), (4, 1, 1)])
def test_levels(tmp_path, level, count, ops):
    with watching(level=level, folder=tmp_path):
        tcompile.compile(lambda x: x + 1)(X)
        with pytest.raises(BackendError):
            tcompile.compile(f, backend=faults.refuses_expm1)(X)
    assert len(scripts(tmp_path)) == count
    assert graph_in(scripts(tmp_path)[-1].read_text()).op_count == pytest.approx(ops, abs=3 if ops > 1 else 0)


@pytest.mark.parametrize("level", [2, 4])
def test_wrong_results_are_looked_for_at_level_4_alone(tmp_path, level):
    with watching(level=level, folder=tmp_path):
        np.testing.assert_raises(AssertionError, np.testing.assert_allclose, compiled_wrongly()(X), f(X))
    assert len(scripts(tmp_path)) == (level == 4)


def compiled_wrongly():
    return tcompile.compile(f, backend=faults.wrong_expm1)


def test_an_error_while_running(tmp_path):
    def backend(graph, inputs):
        return lambda *args: 1 / 0

    with watching(folder=tmp_path) as watcher:
        np.testing.assert_array_equal(tcompile.compile(f, backend=backend)(X), f(X))  # replayed in plain Python
    assert len(watcher.written) == 1


def test_after_the_transforms_only_the_backend_is_looked_at(tmp_path, monkeypatch):
    def broken(graph):
        raise KeyError("a pass")

    monkeypatch.setattr("tcompile.transforms.PIPELINE", (("broken", broken),))
    for after, count in (("capture", 1), ("transforms", 1)):
        with watching(after, folder=tmp_path / after), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tcompile.reset()
            tcompile.compile(f)(X)
        assert len(scripts(tmp_path / after)) == count


def test_tries_belong_to_no_compile(tmp_path):
    with watching(folder=tmp_path), Recorder() as seen, pytest.raises(BackendError):
        tcompile.compile(f, backend=faults.refuses_expm1)(X)
    assert {event.compile_id for event in seen.of(PassFinished)} <= {""}


def test_what_is_right_leaves_nothing(tmp_path):
    big = np.zeros(1000)
    with watching(level=4, folder=tmp_path):
        for backend in ("eager", "aot_eager", "llvm"):
            g = tcompile.compile(lambda x: np.sqrt(x) + 1, backend=backend)
            np.testing.assert_array_equal(g(big), np.ones(1000))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("after, level, text", [
    ("dynamo", 2, "Did you mean 'capture'"), ("aot", 2, "Did you mean 'transforms'"), ("x", 2, "Stages: capture"),
    ("capture", 5, "Levels: 1 to 4"),
])  # fmt: skip
def test_wrong_arguments(after, level, text):
    with pytest.raises(InvalidArgument, match=text):
        Watcher(after, level)


PROGRAM = """
import numpy as np, tcompile
from tests.debug import faults
tcompile.compile(lambda x: np.expm1(np.sin(x)) * 2, backend=faults.crashes_on_expm1)(np.ones(3))
"""


def process(folder, *command, **variables):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]), **variables}
    return subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_a_crash_leaves_the_graph_which_can_then_be_made_small(tmp_path):
    done = process(tmp_path, "-c", PROGRAM, TCOMPILE_REPRO_AFTER="capture")
    assert done.returncode < 0 and "--minify" in done.stderr
    (path,) = scripts(tmp_path / "tcompile_repro")
    assert graph_in(path.read_text()).op_count == 3
    done = process(tmp_path, path, "--minify")
    assert done.returncode == 1 and "crash: died of" in done.stdout and "reduced to 1" in done.stdout


@pytest.mark.parametrize("variables, text", [
    ({"TCOMPILE_REPRO_AFTER": "dynamo"}, "Did you mean 'capture'"),
    ({"TCOMPILE_REPRO_AFTER": "capture", "TCOMPILE_REPRO_LEVEL": "much"}, "from 1 to 4"),
])  # fmt: skip
def test_a_wrong_variable_keeps_nobody_from_working(tmp_path, variables, text):
    done = process(tmp_path, "-c", "import tcompile; print('there')", **variables)
    assert done.stdout == "there\n" and text in done.stderr and "is ignored" in done.stderr
