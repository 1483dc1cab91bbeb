"""A %%tcompile cell behaves as the same cell without the magic."""

from __future__ import annotations

import _thread
import gc
import linecache
import threading
from pathlib import Path

import numpy as np
import pytest
from tcompile_jupyter.findings import function_state

import tcompile
from tcompile.observe import bus
from tcompile.runtime.cache import caches


def test_names_are_bound_in_the_notebook(notebook):
    notebook("%%tcompile\nx = np.arange(4.0)\ny, *z = x * 2, 1, 2\nx += 1")
    np.testing.assert_array_equal(notebook["x"], [1, 2, 3, 4])
    np.testing.assert_array_equal(notebook["y"], [0, 2, 4, 6])
    assert notebook["z"] == [1, 2]
    assert not [name for name in notebook.shell.user_ns if "tcompile" in name]


def test_names_of_other_cells_are_read_changed_and_deleted(notebook):
    notebook("a = np.ones(3)\nb = a\nc = 1")
    notebook("%%tcompile\na[1:] = 5\ndel c\nglobal d\nd = a.sum()")
    np.testing.assert_array_equal(notebook["b"], [1, 5, 5])
    assert "c" not in notebook
    assert notebook["d"] == 11


@pytest.mark.parametrize("end", ["x + 1", "x + 1  # a comment", "(x +\n 1)"])
def test_the_last_expression_is_displayed(notebook, end):
    ran = notebook(f"%%tcompile --quiet\nx = np.arange(3)\n{end}")
    np.testing.assert_array_equal(ran.value, [1, 2, 3])
    assert "array([1, 2, 3])" in ran.stdout


def test_history_of_results(notebook):
    count = notebook.shell.execution_count
    notebook("%%tcompile\n40 + 2")
    assert notebook["_"] == 42
    assert notebook["Out"][count] == 42
    assert notebook(f"_{count} + 1").value == 43
    notebook("%%tcompile\n_ * 2")
    assert notebook["_"] == 86
    assert notebook["__"] == 43


@pytest.mark.parametrize("end", ["7;", "7; # so", "None", "y = 7", "if True:\n    7"])
def test_what_a_plain_cell_does_not_display(notebook, end):
    ran = notebook(f"%%tcompile --quiet\n{end}")
    assert ran.value is None
    assert "7" not in ran.stdout


@pytest.mark.parametrize("interactivity", ["all", "last", "last_expr", "none", "last_expr_or_assign"])
@pytest.mark.parametrize("text", ["1\n2\nx = 3", "1\nfor i in range(2):\n    i\n", "x = 1\nx", "x: int = 4", "1;\n2;"])
def test_display_follows_the_shells_setting(notebook, interactivity, text):
    def displayed(cell):
        notebook.shell.reset(new_session=True)
        notebook.shell.ast_node_interactivity = interactivity
        return notebook(cell).stdout

    assert displayed(f"%%tcompile --quiet\n{text}") == displayed(text)


def test_a_function_is_compiled_and_called_compiled(notebook):
    ran = notebook("%%tcompile\ndef f(x):\n    'doc'\n    return x * 2\n\nf(np.arange(3.0))")
    np.testing.assert_array_equal(ran.value, [0, 2, 4])
    f = notebook["f"]
    assert len(f.entries) == len(f.graphs) == 1
    assert (f.__name__, f.__doc__, f.__wrapped__.__name__) == ("f", "doc", "f")


def test_functions_that_call_each_other(notebook):
    ran = notebook(
        "%%tcompile\ndef g(x):\n    return x + 1\n\ndef f(x):\n    return g(x) * 2\n\n"
        "def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)\n\nf(np.ones(2)), fact(5)"
    )
    np.testing.assert_array_equal(ran.value[0], [4, 4])
    assert ran.value[1] == 120


def test_what_is_not_a_plain_function_is_left_as_it_is(notebook):
    notebook(
        "%%tcompile\nimport functools\n"
        "def gen():\n    yield 1\n\n"
        "async def coro():\n    return 1\n\n"
        "@functools.lru_cache\ndef cached(x):\n    return x + 1\n\n"
        "@property\ndef p(self):\n    return 1\n\n"
        "class A:\n    def m(self):\n        return 1\n\n"
        "l = lambda x: x\n"
    )
    for name in ("gen", "coro", "cached", "p", "A", "l"):
        assert not hasattr(notebook[name], "entries"), name
    assert notebook["cached"](1) == 2
    assert type(notebook["A"]().m).__name__ == "method"


def test_a_function_that_is_compiled_already_keeps_its_settings(notebook):
    notebook("%%tcompile\nimport tcompile\n@tcompile.compile(backend='eager')\ndef f(x):\n    return x + 1\nf(1)")
    assert notebook["f"](np.float32(1)) == 2
    assert not hasattr(notebook["f"].__wrapped__, "entries")


def test_functions_that_look_at_their_caller_are_left_as_they_are(notebook):
    notebook("import inspect, warnings")
    ran = notebook("%%tcompile\ndef f():\n    return inspect.currentframe().f_back.f_lineno\n\nf()")
    assert ran.value == 5
    with pytest.warns(UserWarning, match="old") as warned:
        notebook("%%tcompile\ndef f(x):\n    warnings.warn('old', stacklevel=2)\n    return x + 1\n\nf(np.ones(2))")
    assert warned[0].lineno == 6 and warned[0].filename == notebook["f"].__code__.co_filename


def test_functions_that_stay_plain_are_announced(notebook):
    ran = notebook("%%tcompile\nimport inspect\ndef f():\n    return inspect.stack()[0]\n\ndef g():\n    yield 1\n")
    (report,) = ran.reports
    for text in report.data["text/plain"], report.data["text/html"]:
        assert "inspect.stack in line 4" in text and "it reads its caller" in text
        assert "@tcompile.compile" in text and "line 6" in text
    (cache,) = (cache for cache in caches() if cache.held() is notebook["f"].__code__)
    marks = function_state(cache)["marks"]
    assert [(mark["line"], mark["state"]) for mark in marks] == [(4, "plain")]
    assert "inspect.stack" in marks[0]["explanation"]


def test_functions_that_stack_are_compiled(notebook):
    ran = notebook("%%tcompile\ndef f(x):\n    return np.stack([x, x]) * 2\n\nf(np.ones(3))")
    np.testing.assert_array_equal(ran.value, np.full((2, 3), 2.0))
    assert "f: 1 graph" in ran.reports[0].data["text/plain"] and notebook["f"].graphs


# Since CPython 3.12 a process with threads is warned of what IPython does for `!`.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_ipython_syntax(notebook):
    ran = notebook(
        "%%tcompile --quiet\n%time t = 1 + 1\nfiles = !echo hello\n!echo shouted\nnames = %who_ls\nfiles[0] + str(t)"
    )
    assert ran.value == "hello2"
    assert "CPU times" in ran.stdout and "shouted" in ran.stdout
    assert "files" in notebook["names"]


def test_output_is_in_order(notebook):
    ran = notebook("%%tcompile\nfor i in range(3):\n    print('line', i)\nprint('last')")
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("line", "last"))]
    assert lines == ["line 0", "line 1", "line 2", "last"]


# -- errors --


def test_an_error_in_the_cell(notebook):
    ran = notebook("%%tcompile\nx = 1\nif x:\n    y = x / 0\nz = 2", fails=True)
    assert isinstance(ran.error, ZeroDivisionError)
    assert "line 4" in ran.stdout and "----> 4     y = x / 0" in ran.stdout
    assert ran.stdout.count("ZeroDivisionError: division by zero") == 1
    assert notebook["x"] == 1 and "z" not in notebook
    assert not notebook.shell.last_execution_succeeded


def test_an_error_in_a_function_shows_the_users_lines_alone(notebook):
    cell = "%%tcompile\n\ndef f(x):\n    return np.ones(2) + np.ones(x)\n\nf(3)"
    ran = notebook(cell, fails=True)
    assert isinstance(ran.error, ValueError)
    assert "line 6" in ran.stdout and "line 4, in f" in ran.stdout
    assert "/tcompile/" not in ran.stdout and "tcompile_jupyter" not in ran.stdout
    lines = []
    entry = ran.error.__traceback__
    while entry is not None:
        lines.append(entry.tb_lineno)
        entry = entry.tb_next
    assert lines == [6, 4]


def test_an_error_in_a_function_of_an_earlier_cell(notebook):
    notebook("%%tcompile\ndef f(x):\n    return x.nope")
    ran = notebook("%%tcompile\n1\nf(np.ones(3))", fails=True)
    assert isinstance(ran.error, AttributeError)
    assert "line 3" in ran.stdout and "return x.nope" in ran.stdout
    ran = notebook("f(np.ones(3))", fails=True)
    assert "return x.nope" in ran.stdout


@pytest.mark.parametrize(
    ("body", "line"), [("x = (1", 2), ("x = 1\nfor", 3), ("def f():\nreturn 1", 3), ("x = 1\n  y = 2", 3)]
)
def test_syntax_errors(notebook, body, line):
    ran = notebook(f"%%tcompile\n{body}", fails=True)
    assert isinstance(ran.error, SyntaxError)
    assert ran.error.lineno == line
    assert f"line {line}" in ran.stdout
    assert not [name for name in ("x", "f") if name in notebook]


def test_magic_lines_are_counted_from_the_top_of_the_cell(notebook):
    ran = notebook("\n\n%%tcompile --quiet\n\nraise KeyError('k')", fails=True)
    assert "----> 5 raise KeyError('k')" in ran.stdout


def test_asserts_and_bare_raises_and_custom_errors(notebook):
    ran = notebook("%%tcompile\nclass Mine(Exception):\n    pass\nraise Mine('so') from KeyError('k')", fails=True)
    assert type(ran.error).__name__ == "Mine" and isinstance(ran.error.__cause__, KeyError)
    assert "direct cause" in ran.stdout


def test_interrupts_and_exits(notebook):
    assert isinstance(notebook("%%tcompile\nraise KeyboardInterrupt", fails=True).error, KeyboardInterrupt)
    with pytest.warns(UserWarning, match="To exit"):
        assert isinstance(notebook("%%tcompile\nraise SystemExit(3)", fails=True).error, SystemExit)


@pytest.mark.parametrize("body", ["await x()", "async with a:\n    pass", "[y async for y in x]"])
def test_a_top_level_await_is_refused(notebook, body):
    ran = notebook(f"%%tcompile\n{body}", fails=True)
    assert "top-level await" in ran.stderr
    notebook("%%tcompile\nasync def f():\n    await x()")


def test_future_imports_are_refused(notebook):
    assert "plain cell" in notebook("%%tcompile\nfrom __future__ import annotations", fails=True).stderr


# -- the same text again --


def test_a_cell_run_again(notebook):
    cell = "%%tcompile\ndef f(x):\n    return x + k\n\nf(np.ones(2))"
    notebook("k = 1")
    np.testing.assert_array_equal(notebook(cell).value, [2, 2])
    notebook("k = 2")
    np.testing.assert_array_equal(notebook(cell).value, [3, 3])


def test_two_cells_with_the_same_text_name_the_newer_one(notebook):
    cell = "%%tcompile --quiet\ndef f(x):\n    return 1 / x\n\nf(z)"
    notebook("z = 1")
    notebook(cell)
    notebook("z = 0")
    count = notebook.shell.execution_count
    assert f"Cell In[{count}], line 3, in f" in notebook(cell, fails=True).stdout


def test_nothing_stays_after(notebook):
    registered = {name: len(found) for name, found in notebook.shell.events.callbacks.items()}
    notebook("%%tcompile\n1")
    notebook("%%tcompile\n1/0", fails=True)
    notebook("%%tcompile --stance nope\n1", fails=True)
    assert {name: len(found) for name, found in notebook.shell.events.callbacks.items()} == registered
    assert not bus.active()
    assert bus.current_cell.get() is None


def test_without_a_running_cell(notebook):
    notebook.shell.run_cell_magic("tcompile", "--quiet", "q = 1\n")
    assert notebook["q"] == 1
    with pytest.raises(ZeroDivisionError) as error:
        notebook.shell.run_cell_magic("tcompile", "", "q = 1\nq / 0\n")
    assert error.traceback[-1].lineno == 2  # 0-based


def test_under_other_magics(notebook):
    ran = notebook("%%capture out\n%%tcompile\nprint('hidden')\ns = 3")
    assert ran.stdout == ""
    assert notebook["s"] == 3 and "hidden" in notebook["out"].stdout
    assert "Wall time" in notebook("%%time\n%%tcompile --quiet\nu = 4").stdout
    assert notebook["u"] == 4


def test_unloading(notebook):
    notebook("%unload_ext tcompile")
    assert "not found" in notebook("%%tcompile\n1", fails=True).stderr
    notebook("%load_ext tcompile")
    assert notebook("%%tcompile\n1").value == 1


def test_the_cell_id_is_set_while_a_cell_runs(notebook):
    notebook("import tcompile.observe.bus as bus")
    count = notebook.shell.execution_count
    assert notebook("%%tcompile\nbus.current_cell.get()").value == f"In[{count}]"


def test_stances_return_when_a_cell_fails(notebook):
    notebook("%%tcompile --stance force_eager\n1/0", fails=True)
    assert tcompile.stance.current().name == "default"


OURS = "/tcompile/", "<tcompile", "tcompile_jupyter"


@pytest.mark.parametrize("last", ["return 5", "yield 5", "break", "continue", "nonlocal a"])
def test_what_stands_before_a_statement_that_python_refuses_has_run(notebook, last):
    plain, ran = (notebook(f"{first}\na = 1; print('hello')\n{last}", fails=True) for first in ("#", "%%tcompile"))
    assert isinstance(ran.error, SyntaxError) and ran.error.lineno == 3
    assert "hello" in ran.stdout and "Traceback" not in ran.stdout
    assert ran.stdout.replace(f"In[{ran.result.execution_count}]", "") == plain.stdout.replace(
        f"In[{plain.result.execution_count}]", ""
    )


def test_statements_that_python_takes_one_by_one_only(notebook):
    assert notebook("%%tcompile --compare\na = 1\nglobal a\na").value == 1


def test_a_warning_about_the_text_is_given_once(notebook):
    with pytest.warns(SyntaxWarning, match="literal") as warned:
        notebook("%%tcompile --quiet\nx = 5\nx is 5")
    assert [warning.lineno for warning in warned] == [3] and "<cell>" not in warned[0].filename


@pytest.mark.parametrize(
    ("cell", "error", "text"),
    [
        ("def f(x):\n    return x\n\nf(1, 2)", TypeError, "----> 5 f(1, 2)"),
        ("def f(x):\n    return f(x + 1)\n\nf(np.ones(3))", RecursionError, "----> 5 f(np.ones(3))"),
        ("get_ipython().run_cell('q = 5')\n1/0", ZeroDivisionError, "----> 3 1/0"),
        ("x = np.ones(10**16) + 1", MemoryError, "----> 2 x = "),
    ],
)
def test_errors_show_the_users_lines_alone(notebook, cell, error, text):
    ran = notebook(f"%%tcompile\n{cell}", fails=True)
    assert isinstance(ran.error, error) and text in ran.stdout
    assert not [ours for ours in OURS if ours in ran.stdout]


def test_errors_of_ours_are_shown_without_our_frames(notebook):
    ran = notebook("%%tcompile --stance fail_on_recompile\ny = np.ones(3) * 2.5", fails=True)
    assert isinstance(ran.error, tcompile.errors.RecompileError) and "has not been compiled yet" in ran.stdout
    assert not [ours for ours in OURS if ours in ran.stdout]


def test_an_interrupt_shows_no_frames_of_ours(notebook):
    interrupt = threading.Timer(0.5, _thread.interrupt_main)
    interrupt.start()
    ran = notebook("%%tcompile\ns = 0.0\nfor i in range(10**11):\n    s += i * 0.5", fails=True)
    assert isinstance(ran.error, KeyboardInterrupt) and "KeyboardInterrupt" in ran.stdout
    assert not [ours for ours in OURS if ours in ran.stdout]


def test_frames_of_ours_stay_where_we_have_failed(notebook, monkeypatch):
    monkeypatch.setattr("tcompile.api.run_statements", None)
    ran = notebook("%%tcompile\ny = np.ones(3)", fails=True)
    assert "'NoneType' object is not callable" in ran.stdout and "run_statements(" in ran.stdout


def test_a_users_file_beside_ours_is_the_users(notebook):
    text = "import json\n\ndef beside(text):\n    return json.loads(text)\n"
    file = str(Path(tcompile.__file__).parent) + "_mine.py"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    exec(compile(text, file, "exec"), notebook.shell.user_ns)
    assert "return json.loads(text)" in notebook("%%tcompile\nbeside('{')", fails=True).stdout


@pytest.mark.parametrize("named_by", ["text", "number"])
def test_a_cell_that_is_run_again_leaves_no_texts(notebook, monkeypatch, named_by):
    if named_by == "text":  # as in Jupyter's kernel; IPython by itself numbers its files
        name = lambda raw, transformed, number: f"<cell {hash(raw)}>"
        monkeypatch.setattr(notebook.shell.compile, "get_code_name", name)

    def files(ours):
        gc.collect()
        return [file for file in linecache.cache if file.startswith("<tcompile") == ours]

    def added(cell, count):
        """How many files further runs of a cell add: the cell's own, and those of tcompile."""
        for _ in range(3):
            notebook(cell)
        before = len(files(False)), len(files(True))
        for _ in range(count):
            notebook(cell)
        return len(files(False)) - before[0], len(files(True)) - before[1]

    others = set(files(True))
    notebook("x = np.ones(5)")
    statements = "y = np.sin(x) + 1\nz = y.sum()"
    function = "def f(x):\n    return x * 2\ny = f(x)\nprint(end='')\nz = f(y)"
    for cell, count in (statements, 1000), (function, 100):
        if named_by == "text":
            assert added(f"%%tcompile --quiet\n{cell}", count) == (0, 0)
        else:
            assert added(f"%%tcompile --quiet\n{cell}", 30)[0] == added(cell, 30)[0] == 30
    assert "return x * 2" in linecache.getline(notebook["f"].__code__.co_filename, 3 if named_by == "text" else 2)
    notebook("del f")
    tcompile.reset()
    assert set(files(True)) <= others
