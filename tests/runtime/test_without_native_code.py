"""Where there is no native code, functions run in plain Python, and one notice says so."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

WITHOUT = {
    "missing": (
        "sys.modules['llvmlite'] = None",
        "llvmlite is not installed, which `pip install --upgrade 'llvmlite>=0.45'` mends",
    ),
    "broken": (
        """
        class Broken:
            def find_spec(self, name, path=None, target=None):
                if name == "llvmlite.binding":
                    raise OSError("no libllvmlite.so")
        sys.meta_path.insert(0, Broken())
        """,
        "llvmlite cannot be used (OSError: no libllvmlite.so), which `pip install --upgrade 'llvmlite>=0.45'` mends",
    ),
    "old": (
        "import llvmlite; llvmlite.__version__ = '0.44.0'",
        "llvmlite cannot be used (ImportError: llvmlite 0.44.0 is too old), which "
        "`pip install --upgrade 'llvmlite>=0.45'` mends",
    ),
    "unknown": (
        "import platform; platform.machine = lambda: 'riscv64'",
        "native code is not made for riscv64 processors",
    ),
}

SCRIPT = r"""
import io, warnings
from contextlib import redirect_stdout
import numpy as np, tcompile
from tcompile.observe.events import FellBack
from tcompile.observe.recorder import Recorder

@tcompile.compile
def f(x):
    for i in range(3):
        x = np.sqrt(x) + i
        print(end="")
    return x

@tcompile.compile
def g(x):
    yield x + 1
    yield x * 2

@tcompile.compile(fullgraph=True)
def h(x):
    return x + 1

class A:
    @tcompile.compile
    def m(self, x):
        return x - 1

x = np.arange(4.0)
with warnings.catch_warnings(record=True) as told, Recorder() as seen:
    warnings.simplefilter("always")
    for _ in range(4):
        np.testing.assert_array_equal(f(x), f.function(x))
        np.testing.assert_array_equal(list(g(x)), [x + 1, x * 2])
        np.testing.assert_array_equal(h(x), x + 1)
        np.testing.assert_array_equal(A().m(x), x - 1)
assert [str(w.message) for w in told] == [
    f"tcompile: nothing is compiled, functions run in plain Python: {reason}."
], told
assert told[0].filename == "<string>"
events = seen.of(FellBack)
assert {event.function for event in events} == {"f", "g", "h", "A.m"} and len(events) == 4
assert all(event.detail == reason for event in events)
assert not f.entries and not g.entries

calls = []
def count(frame, event, arg):
    if event == "call":
        calls.append(frame.f_code.co_name)
for function in f, h:  # straight to the plain function
    calls.clear()
    sys.setprofile(count)
    function(x)
    sys.setprofile(None)
    assert calls[-1] == function.__name__ and len(calls) <= 3, calls

assert reason in str(tcompile.explain(f)(x))
for backend in "eager", "aot_eager", lambda graph, inputs: graph:
    made = tcompile.compile(h.function, backend=backend)
    np.testing.assert_array_equal(made(x), x + 1)
    assert made.graphs
with tcompile.set_stance("default", force_backend="eager"):
    np.testing.assert_array_equal(h(x), x + 1)
with tcompile.set_stance("force_eager"):
    np.testing.assert_array_equal(h(x), x + 1)
try:
    tcompile.compile(h.function, backend="llvm")(x)
except tcompile.errors.BackendError as error:
    assert str(error) == (
        f"backend='llvm' cannot be used: {reason}. With backend='auto' it is plain Python."
    ), error
else:
    raise AssertionError("no error")

from tcompile_jupyter.status import StatusTable
status = StatusTable.of({"f": f})
line = f"no native code, so functions run in plain Python: {reason}"
assert line in str(status) and "no native code" in status.html()

from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.run_line_magic("load_ext", "tcompile")
with redirect_stdout(io.StringIO()) as printed:
    shell.run_cell("%%tcompile\nimport numpy as np\ndef k(x):\n    return x * 2\nk(np.ones(3))")
assert reason[:20] in printed.getvalue() and "no native code" in printed.getvalue(), printed.getvalue()
np.testing.assert_array_equal(shell.user_ns["k"](np.ones(3)), np.full(3, 2.0))
"""


@pytest.mark.parametrize("without", WITHOUT)
def test_functions_run_in_plain_python(without):
    before, reason = WITHOUT[without]
    program = f"import sys\n{textwrap.dedent(before)}\nreason = {reason!r}\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
