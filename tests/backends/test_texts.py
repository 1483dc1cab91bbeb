"""The texts of generated programs are found as long as the programs live."""

import gc
import linecache
import traceback

import numpy as np
import pytest

import tcompile
from tcompile.backends.texts import keep_text

FUNCTIONS = """
def with_breaks(x):
    for _ in range(3):
        x = np.sin(x) + 1
    print(end="")
    return x * 2

def whole(x):
    return np.sqrt(x) + 1
"""


def texts():
    gc.collect()
    return {file for file in linecache.cache if file.startswith(("<tcompile", "<triton"))}


@pytest.mark.parametrize("backend", ["llvm", "triton"])
def test_texts_go_with_their_functions(backend):
    if backend == "triton":
        pytest.importorskip("triton")
    tcompile.reset()
    before = texts()
    space = {"np": np}

    def use():
        exec(compile(FUNCTIONS, "<a cell>", "exec"), space)  # anew, as a cell that is run again
        functions = space["with_breaks"], space["whole"]
        with tcompile.config.patch(triton_interpret=True):
            compiled = [tcompile.compile(f, backend=backend) for f in functions]
            for size in (5, 6, 5):
                for f, g in zip(compiled, functions, strict=True):
                    np.testing.assert_allclose(f(np.ones(size)), g(np.ones(size)))

    use()
    count = len(texts() - before)
    assert count
    for _ in range(5):
        use()
        assert len(texts() - before) == count
    assert all("def " in linecache.getline(file, 1) for file in texts() - before)
    space.clear()
    tcompile.reset()
    assert all(file.startswith("<triton") for file in texts() - before)  # the interpreter may hold the last ones


def test_a_text_is_in_tracebacks():
    space = {}
    text = "def f():\n    raise ValueError\n"
    exec(compile(text, "<a text>", "exec"), space)
    function = space["f"]
    keep_text(function, "<a text>", text)
    with pytest.raises(ValueError) as caught:
        function()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "raise ValueError"
    del function, caught, space
    gc.collect()
    assert "<a text>" not in linecache.cache


def test_a_function_that_ends_while_linecache_checks_its_entries(monkeypatch):
    """As when the cycle collector runs there: the entry stays for the time, and goes with the next function."""

    def function():
        pass

    class Cache(dict):
        def keys(self):
            nonlocal function
            names = list(super().keys())
            function = None
            return names

        def copy(self):  # CPython 3.14 iterates over the names of a copy
            nonlocal function
            copied = dict(self)
            function = None
            return copied

    cache = Cache()
    monkeypatch.setattr(linecache, "cache", cache)
    keep_text(function, "<a text>", "def function(): pass")
    linecache.checkcache()
    assert function is None and "<a text>" in cache

    def another():
        pass

    keep_text(another, "<another text>", "def another(): pass")
    del another
    assert not cache
