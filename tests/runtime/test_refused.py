"""Interpreters that tcompile does not know run everything as it is, and say so once.

A fresh process is told that it is such an interpreter. Where the tests run in a free-threaded build, it is one.
"""

import subprocess
import sys
import textwrap

import pytest

from tcompile import interpreter

FREE_THREADED = "sys.version += ' free-threading build'"
UNLOCKED = "sys._is_gil_enabled = lambda: False"
# Its first two numbers say so, while other modules compare it as a whole: they are those of this version.
NEWER = """
class Version(tuple):
    major, minor, micro = sys.version_info[:3]

    def __getitem__(self, key):
        return (3, 99) if key == slice(None, 2) else super().__getitem__(key)

sys.version_info = Version(sys.version_info)
"""
OTHER = "sys.implementation.name = 'other'"

PROGRAM = """
import asyncio, pickle, sys, threading, warnings
import numpy as np
{pretence}
warnings.simplefilter("always")
seen = []
warnings.showwarning = lambda message, category, filename, line, *rest: seen.append((str(message), filename))

import tcompile
from tcompile.api import run_cell

@tcompile.compile(fullgraph=True)
def f(x, *, k=2):
    return x * k + 1

class Model:
    @tcompile.compile
    def scaled(self, x):
        return x * 3

@tcompile.compile
def iterations(n):
    for i in range(n):
        yield np.ones(2) * i

@tcompile.compile
async def waits(x):
    await asyncio.sleep(0)
    return x + 1

assert not seen  # nobody has asked for anything yet

def work():
    for _ in range(50):
        assert f(np.ones(3), k=4).tolist() == [5, 5, 5]
        assert Model().scaled(np.ones(2)).tolist() == [3, 3]

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert [r.tolist() for r in iterations(2)] == [[0, 0], [1, 1]]
assert asyncio.run(waits(np.ones(1))).tolist() == [2]
namespace = {{"np": np}}
run_cell(compile("y = np.ones(2) + 1", "<text>", "exec"), namespace)
assert namespace["y"].tolist() == [2, 2]
assert tcompile.run(f)(np.ones(1)).tolist() == [3]
assert tcompile.cond(True, lambda x: x + 1, lambda x: x, (np.zeros(1),)).tolist() == [1]
assert pickle.loads(pickle.dumps(f)) is f and f.entries == () and f.graphs == []
try:
    tcompile.compile(lambda: 1 / 0)()
except ZeroDivisionError as error:
    assert error.__traceback__.tb_next.tb_next.tb_lineno
print([module for module in sys.modules if module.startswith(("llvmlite", "tcompile.capture.entry.driver"))])
print(tcompile.explain(f, np.ones(2)).fell_back)
print(seen)
"""


def told(pretence):
    script = textwrap.dedent(PROGRAM.format(pretence=pretence))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded, fallbacks, warned = map(eval, done.stdout.splitlines())
    assert not loaded
    (fallback,), ((warning, file),) = fallbacks, warned
    assert file == "<string>"  # the line that calls
    assert warning.endswith(": everything runs in plain Python.")
    assert fallback == f"interpreter refused: {warning.removesuffix(': everything runs in plain Python.')}"
    return warning


@pytest.mark.parametrize("pretence", [FREE_THREADED, UNLOCKED])
def test_pretended_free_threaded_builds(pretence):
    assert "free-threaded" in told(pretence)


@pytest.mark.skipif(not interpreter.is_free_threaded(), reason="this is no free-threaded build")
@pytest.mark.parametrize("lock", ["0", "1"])
def test_free_threaded_builds(lock, monkeypatch):
    """The threads of the program run at the same time, and in turn where the build's lock is switched on."""
    monkeypatch.setenv("PYTHON_GIL", lock)
    assert "free-threaded" in told(f"assert sys._is_gil_enabled() is {lock == '1'}")


def test_versions_to_come():
    assert "CPython 3.11 to" in told(NEWER) and "this is 3.99" in told(NEWER)


def test_other_implementations():
    assert "this is other" in told(OTHER)


def test_machine_code_is_refused_for_the_same_reason():
    script = f"import sys, numpy; {FREE_THREADED}\nimport tcompile\n" + textwrap.dedent("""
        from tcompile.backends.llvm.native import abi
        from tcompile.runtime.native import layout
        print(layout.Base is object, layout.unsupported() == abi.unsupported(), abi.unsupported())
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("True True tcompile does not support the free-threaded build")


def test_this_interpreter_is_known():
    from tcompile.bytecode import dialect

    assert interpreter.refusal is None or interpreter.is_free_threaded()
    assert interpreter.OLDEST <= sys.version_info[:2] <= interpreter.NEWEST == dialect.NEWEST
