"""Profilers and coverage tools in processes of their own find the lines of compiled functions."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tcompile

X = np.arange(4.0)


def run(folder, *command, **more):
    """Runs a tool in ``folder``: what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode and "ermission" in done.stderr:
        pytest.skip("looking into processes is not permitted here")
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def call(function, *args):
    return function(*args)


def loop(x):
    for i in range(3):
        x = np.sqrt(x) + i
        print(end="")
        x = x + 1
    return x * 2


COVERED = """
import numpy as np
import tcompile
from bytecode.programs import PROGRAMS


def helper(x):
    y = x * 2
    if y.ndim == 1:
        return y + 1
    return y - 1  # never


@tcompile.compile
def whole(x, flag):
    y = np.sin(x)
    if flag:
        z = helper(y)
    else:
        z = y * 3  # never
    return z


@tcompile.compile
def broken(x):
    y = np.cos(x)
    print(end="")
    z = y * 2
    for i in range(2):
        z = z + i
    return helper(z)


@tcompile.compile
def loops(n):
    total = 0
    for i in range(n):
        if i % 2:
            total += i
        else:
            total -= 1
    return total


def plain(x):
    return x + 1


x = np.ones(4)
for _ in range(3):
    whole(x, True)
    broken(x)
    loops(600)
    plain(x)
assert whole.entries[0].hits == 2
"""


@pytest.mark.parametrize("core", ["ctrace", "pytrace", *["sysmon"] * (sys.version_info >= (3, 12))])
@pytest.mark.parametrize("branch", [(), ("--branch",)], ids=["lines", "branches"])
def test_coverage_counts_captured_lines(core, branch, tmp_path):
    pytest.importorskip("coverage")
    if core == "sysmon" and branch and sys.version_info < (3, 14):
        pytest.skip("coverage measures no branches this way")
    (tmp_path / "covered.py").write_text(COVERED)
    for command in (["run", *branch, "--source=.", "covered.py"], ["json"]):
        run(tmp_path, sys.executable, "-m", "coverage", *command, COVERAGE_CORE=core)
    (found,) = json.loads((tmp_path / "coverage.json").read_text())["files"].values()
    never = [number for number, line in enumerate(COVERED.splitlines(), 1) if "# never" in line]
    assert found["missing_lines"] == never


def test_line_profilers_may_change_the_code():
    def f(x):
        return x + 1

    def g(x):
        return x + 2

    compiled = tcompile.compile(f)
    assert compiled(1) == 2
    compiled.__code__ = g.__code__
    assert (compiled(1), compiled.__code__) == (3, g.__code__)


def test_line_profiler():
    line_profiler = pytest.importorskip("line_profiler")
    compiled = tcompile.compile(loop)
    for _ in range(3):
        compiled(X)
    profiler = line_profiler.LineProfiler()
    profiler.add_function(call)
    assert np.array_equal(profiler.runcall(call, compiled, X), loop(X))
    (timings,) = profiler.get_stats().timings.values()
    assert [hits for _, hits, _ in timings] == [1]


BUSY = """
import time
import numpy as np
import tcompile


@tcompile.compile
def whole(x):
    return np.sin(x).sum()


@tcompile.compile
def busy(x):
    print(end="")
    end = time.process_time() + 1
    while time.process_time() < end:
        x = x + 1  # here
    return x


for _ in range(20):
    whole(np.ones(4))
print(whole.entries[0].hits > 9)
busy(0.0)
"""
HERE = [number for number, line in enumerate(BUSY.splitlines(), 1) if "while" in line or "# here" in line]


def test_py_spy(tmp_path):
    """It looks from outside, and finds the user's frames in the order of the calls."""
    tool = shutil.which("py-spy", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]))
    if tool is None:
        pytest.skip("py-spy is not installed")
    (tmp_path / "busy.py").write_text(BUSY)
    command = (tool, "record", "--format", "raw", "-o", "stacks.txt", "--", sys.executable, "busy.py")
    assert "True" in run(tmp_path, *command)
    stacks = [line.rpartition(" ")[0].split(";") for line in (tmp_path / "stacks.txt").read_text().splitlines()]
    inside = [stack for stack in stacks if any(f"busy (busy.py:{line})" in stack for line in HERE)]
    assert inside
    users = {tuple(frame.partition(":")[0] for frame in stack if "busy.py" in frame) for stack in inside}
    assert users == {("<module> (busy.py", "busy (busy.py")}


def test_scalene(tmp_path):
    """It samples with signals: the program behaves as without, and the lines of its plain stretches show their time."""
    pytest.importorskip("scalene")
    (tmp_path / "busy.py").write_text(BUSY)
    command = ("-m", "scalene", "run", "--cpu-only", "-o", "profile.json", "busy.py")
    assert "True" in run(tmp_path, sys.executable, *command)
    files = json.loads((tmp_path / "profile.json").read_text())["files"]
    # It lists code made by exec as well, where a sample falls into it.
    (lines,) = [found["lines"] for name, found in files.items() if name.endswith("busy.py")]
    seen = {line["lineno"]: line["n_cpu_percent_python"] + line["n_cpu_percent_c"] for line in lines}
    assert sum(seen.get(line, 0) for line in HERE) > 0


def test_line_profiler_of_a_function_that_is_compiled(tmp_path):
    """Its own code is counted where it runs; lines that were captured are not."""
    line_profiler = pytest.importorskip("line_profiler")
    compiled = tcompile.compile(loop)
    profiler = line_profiler.LineProfiler()
    profiler.add_function(loop)
    for _ in range(3):
        assert np.array_equal(profiler.runcall(call, compiled, X), loop(X))
    (timings,) = profiler.get_stats().timings.values()
    assert all(hits for _, hits, _ in timings)
