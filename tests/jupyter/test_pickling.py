"""Functions of a notebook's cells go to other processes, as plain ones do and where plain ones cannot."""

import subprocess
import sys
import textwrap

import pytest
from picklers import pickler

CELLS = """
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance(colors="nocolor")
    shell.history_manager.enabled = False

    def cell(text):
        result = shell.run_cell(text)
        assert result.success, result

    cell("%load_ext tcompile")
    cell("import numpy as np, tcompile, pickle, sys\\nX = np.arange(4.0); k = 3.0")
    cell('''%%tcompile --dynamic true --quiet
    def inner(x):
        return x * k

    def outer(x):
        return inner(x) + 1

    def closure(c):
        def f(x):
            return outer(x) * c
        return tcompile.compile(f, backend="eager")

    def broken(x):
        y = outer(x)
        print(end="")
        return y - k

    by_lambda = tcompile.compile(lambda x: outer(x) - k)
    made = closure(2.0)
    ''')
    cell('''
    def plain(x):
        return outer(x) * 2

    class Layer:
        @tcompile.compile
        def method(self, x):
            return outer(x) + 5

    functions = {"outer": outer, "broken": broken, "by_lambda": by_lambda, "made": made}
    all_functions = {**functions, "plain": plain, "method": Layer().method}
    with tcompile.set_stance("force_eager"):
        results = {name: f(X) for name, f in all_functions.items()}

    def check(name, got):
        for one in got:
            np.testing.assert_array_equal(one, results[name])
    ''')
"""
POOL = """
    cell('''
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("METHOD")) as pool:
        for name, f in (all_functions if "METHOD" == "fork" else functions).items():
            check(name, pool.map(f, [X] * 3))
    ''')
"""
JOBLIB = """
    cell('''
    import joblib
    for name, f in all_functions.items():
        check(name, joblib.Parallel(n_jobs=2)(joblib.delayed(f)(X) for _ in range(3)))
    ''')
"""
COPY = """
    cell('''
    import LIBRARY as lib, subprocess, pickle
    there = "import LIBRARY, sys, pickle, numpy; f, x = LIBRARY.load(sys.stdin.buffer);" \\
            "r = [f(numpy.arange(4.0)) for _ in range(3)];" \\
            "sys.stdout.buffer.write(pickle.dumps((r, f.settings.dynamic, len(f.graphs))))"
    for name in functions:
        data = lib.dumps((functions[name], X))
        done = subprocess.run([sys.executable, "-c", there], input=data, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        got, dynamic, graphs = pickle.loads(done.stdout)
        check(name, got)
        assert dynamic == functions[name].settings.dynamic and graphs
    assert pickle.loads(pickle.dumps(outer)) is outer
    ''')
"""


def run(*texts):
    program = "".join(textwrap.dedent(text) for text in texts)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=300, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="the start methods of POSIX")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_process_pools(method):
    pytest.importorskip("cloudpickle")
    run(CELLS, POOL.replace("METHOD", method))


def test_joblib():
    pytest.importorskip("joblib")
    pytest.importorskip("cloudpickle")
    run(CELLS, JOBLIB)


@pytest.mark.parametrize("library", ["pickle", "cloudpickle", "dill"])
def test_copies_in_another_process(library):
    pickler(library)
    pytest.importorskip("cloudpickle")
    run(CELLS, COPY.replace("LIBRARY", library))
