"""Lazy imports (PEP 810): modules are imported where plain Python imports them, and names hold what they stand for."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 15), reason="there are no lazy imports")

PROGRAM = """
lazy import numpy as np
lazy import first_of_ours
lazy import second_of_ours as second
lazy from third_of_ours import shifted
lazy from numpy import cos
import sys

def f(x, far):
    y = np.sin(x) * 2 + cos(x)
    print("before")
    if far:
        y = first_of_ours.shifted(y)
    print("between")
    y = shifted(y) + second.shifted(x)
    return y * 2

if len(sys.argv) > 1:
    import tcompile
    f = tcompile.compile(f, backend="eager")
for far in (False, False, True, True, False):
    print(f(np.ones(2), far).tolist(), type(globals()["first_of_ours"]).__name__, type(globals()["shifted"]).__name__)
if len(sys.argv) > 1:
    assert any(graph.op_count for graph in f.graphs)
"""
MODULE = "print('import of', __name__)\ndef shifted(x): return x + 1\n"


def test_modules_are_imported_where_python_imports_them(tmp_path):
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}_of_ours.py").write_text(MODULE)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    told = []
    for more in ([], ["compiled"]):
        done = subprocess.run([sys.executable, program, *more], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout)
    assert told[0] == told[1] and told[0].count("import of") == 3
