"""The options of %%tcompile and the commands of %tcompile."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import tcompile

F = "def f(x):\n    return x * 2 + 1\n"


def test_stance_is_the_cells_alone(notebook):
    notebook("import tcompile")
    ran = notebook(f"%%tcompile --stance force_eager\n{F}f(np.ones(3))\ntcompile.stance.current().name")
    assert ran.value == "force_eager"
    assert tcompile.stance.current().name == "default"
    assert not notebook["f"].entries
    assert "force_eager" in ran.text
    notebook("f(np.ones(3))")
    assert len(notebook["f"].entries) == 1


def test_options_may_be_quoted(notebook):
    ran = notebook(f"%%tcompile --stance 'force_eager' --backend=\"llvm\"\n{F}f(np.ones(3))")
    assert not notebook["f"].entries and "force_eager" in ran.text


def test_a_stance_statement_inside_a_cell(notebook):
    notebook("import tcompile")
    notebook("%%tcompile\ntcompile.set_stance('eager_on_recompile')")
    assert tcompile.stance.current().name == "eager_on_recompile"


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "llvm", "auto"])
def test_backends(notebook, backend):
    ran = notebook(f"%%tcompile --backend {backend}\n{F}f(np.arange(3.0))")
    np.testing.assert_array_equal(ran.value, [1, 3, 5])


def test_mode(notebook):
    ran = notebook(f"%%tcompile --mode default\n{F}f(np.arange(3.0))")
    np.testing.assert_array_equal(ran.value, [1, 3, 5])


@pytest.mark.parametrize(("dynamic", "entries"), [("true", 1), ("false", 3), ("auto", 2)])
def test_dynamic(notebook, dynamic, entries):
    notebook(f"%%tcompile --dynamic {dynamic}\n{F}r = [f(np.ones(n)) for n in (3, 4, 5)]")
    assert [len(array) for array in notebook["r"]] == [3, 4, 5]
    assert len(notebook["f"].entries) == entries


def test_fullgraph(notebook):
    text = "def g(x):\n    print('in g')\n    return x + 1\n"
    ran = notebook(f"%%tcompile\n{text}g(np.ones(2))")
    assert "in g" in ran.stdout
    ran = notebook(f"%%tcompile --fullgraph\n{text}g(np.ones(2))", fails=True)
    assert isinstance(ran.error, tcompile.errors.Unsupported)
    assert "line 5" in ran.stdout or "line 5" in ran.stdout.replace(", ", " ")
    notebook("%%tcompile --fullgraph\nprint('statements of the cell may break')")


def test_quiet(notebook):
    assert not notebook(f"%%tcompile --quiet\n{F}f(np.ones(3))").reports
    assert len(notebook(f"%%tcompile\n{F}f(np.ones(3))").reports) == 1


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ("--stance force_eagr", ["force_eagr", "Did you mean", "force_eager", "fail_on_recompile"]),
        ("--backend lvm", ["lvm", "llvm", "eager"]),
        ("--mode fastest", ["fastest", "default"]),
        ("--dynamic yes", ["yes", "true, false, auto"]),
        ("--grph", ["--grph"]),
        ("--stance", ["--stance"]),
        ("something", ["something"]),
        ("'unbalanced", ["'unbalanced: no closing quotation"]),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(notebook, options, texts):
    ran = notebook(f"%%tcompile {options}\nran = True", fails=True)
    assert "ran" not in notebook
    assert "Traceback" not in ran.stdout + ran.stderr
    for text in texts:
        assert text in ran.stderr


def test_help(notebook):
    for cell in ("%%tcompile --help\nx = 1", "%tcompile --help", "%tcompile -h", "%tcompile help"):
        ran = notebook(cell)
        assert "tcompile" in ran.stdout
        assert "x" not in notebook
    assert all(f"--{option}" in notebook("%%tcompile -h\n1").stdout for option in (
        "stance", "backend", "mode", "dynamic", "fullgraph", "compare", "graph", "quiet"
    ))  # fmt: skip


# -- the line magic --


def test_status(notebook):
    assert "no compiled functions" in str(notebook("%tcompile").value)
    notebook(f"%%tcompile\n{F}f(np.ones(3))")
    for cell in ("%tcompile", "%tcompile status"):
        status = notebook(cell).value
        assert status.stance == "default" and status.calls == "in machine code"
        assert "llvm" in status.backends
        assert status.functions == (("f", 1, 1, 0, 0),)
        assert "f" in str(status) and "<code>f</code>" in status.html()


def test_attributes_of_the_users_own(notebook):
    own = "\n\nf.entries, f.graphs, f.breaks = np.zeros(3), 3, 2"
    notebook(f"import tcompile\n@tcompile.compile\ndef f(x):\n    return x + 1{own}\ng = f")
    ran = notebook(f"%%tcompile\ndef f(x):\n    return x + 1{own}")
    assert "not called yet: f" in ran.text
    assert notebook("%tcompile").value.functions == (("f", 0, 0, 0, 0), ("g", 0, 0, 0, 0))
    assert notebook("%tcompile compare f(np.ones(3))").value.graphs == 1


def test_line_stance(notebook):
    assert notebook("%tcompile stance").stdout == "default\n"
    notebook("%tcompile stance force_eager")
    assert tcompile.stance.current().name == "force_eager"
    ran = notebook("%tcompile stance forced", fails=True)
    assert "force_eager" in ran.stderr
    assert tcompile.stance.current().name == "force_eager"
    notebook("%tcompile stance default")
    assert tcompile.stance.current().name == "default"


def test_explain(notebook):
    notebook(F)
    explained = notebook("%tcompile explain f(np.ones(3))").value
    assert "graph" in str(explained)
    notebook("%tcompile explain f(np.ones(3));")  # which shows nothing, as in IPython


def test_compare_call(notebook):
    notebook("a = np.arange(5.0)\nd = {'k': 2}\ndef h(x, *, k):\n    x += 1\n    return x * k")
    one = notebook("%tcompile compare h(a, **d)").value
    assert one.difference.equal and one.difference.largest == 0
    np.testing.assert_array_equal(notebook["a"], np.arange(5.0))
    assert "h(a, **d)" in str(one) and "h(a, **d)" in one._repr_mimebundle_()["text/html"]
    assert notebook("%tcompile compare h(*[a], k=1)").value.repeats >= 5


LOSS = "def loss(w, x):\n    return np.mean(np.tanh(x @ w) ** 2)\n"


def test_gradient_of_a_call(notebook):
    notebook(f"a = np.arange(6.0).reshape(2, 3)\nw = np.ones(3)\n{LOSS}")
    view = notebook("%tcompile grad loss(w, x=a)").value
    assert [(row.argument, row.shape, row.agrees) for row in view.rows] == [("w", "(3,)", True), ("x", "(2, 3)", True)]
    assert view.function_ms > 0 and view.gradient_ms > 0 and view.value == notebook("loss(w, a)").value
    assert "backward" in view.lines and view.graphs and "by w (3,): norm" in str(view)
    page = view._repr_mimebundle_()["text/html"]
    assert "agrees to" in page and page.count("<svg") >= 4  # the errors, and the whole graph and its two parts
    ran = notebook("%tcompile grad loss(1, np.ones((2, 1)).astype(int))", fails=True)
    assert "no argument is a float" in ran.stderr


def test_gradient_in_the_report(notebook):
    ran = notebook(
        f"%%tcompile --grad loss\nw, a = np.ones(3), np.ones((2, 3))\n{LOSS}for _ in range(2):\n    loss(w, a)"
    )
    (report,) = ran.reports
    assert "gradient of loss: value" in report.data["text/plain"] and "by w (3,)" in report.data["text/plain"]
    data = report.data["application/vnd.tcompile.report+json"]
    assert [row["argument"] for row in data["gradient"]["rows"]] == ["w", "x"]
    for cell, text in (
        ("los\nloss(w, a)", "no statement of this cell calls los"),
        (f"loss\n{LOSS}def g():\n    loss(w, a)", "no statement of this cell calls loss"),
        ("loss\nloss(np.ones(3), a)", "the argument np.ones(3) would be computed again"),
    ):
        assert text in notebook(f"%%tcompile --grad {cell}\nx = 1", fails=True).stderr
    assert "x" not in notebook
    ran = notebook("%%tcompile --grad abs\nabs(-3)")
    assert "the cell ran, but abs(-3) has no gradient" in ran.stdout


@pytest.mark.parametrize("text", ["", "f", "f(", "1 + 1", "f(x) + 1"])
@pytest.mark.parametrize("command", ["explain", "compare", "grad"])
def test_what_is_not_a_call_is_refused(notebook, command, text):
    ran = notebook(f"%tcompile {command} {text}", fails=True)
    assert "takes a call" in ran.stderr


def test_errors_of_the_call_itself(notebook):
    assert isinstance(notebook("%tcompile compare nothing(1)", fails=True).error, NameError)


def test_reset(notebook):
    notebook(f"%%tcompile\n{F}f(np.ones(3))")
    assert len(notebook["f"].entries) == 1
    notebook("%tcompile reset")
    assert len(notebook["f"].entries) == 0


def test_unknown_commands(notebook):
    ran = notebook("%tcompile stats", fails=True)
    assert (
        "status, stance, explain, compare, profile, grad, watch, reset" in ran.stderr
        and "Did you mean 'status'" in ran.stderr
    )
    assert "takes nothing" in notebook("%tcompile reset all", fails=True).stderr
    assert "takes nothing" in notebook("%tcompile status x", fails=True).stderr


def test_wrong_options_say_what_is_right(notebook):
    ran = notebook("%%tcompile --grph\n1", fails=True)
    assert "unknown option '--grph'" in ran.stderr and "Did you mean '--graph'?" in ran.stderr
    ran = notebook("%%tcompile --backend\n1", fails=True)
    assert "--backend takes one of: auto, llvm, eager, aot_eager" in ran.stderr


def test_help_names_what_options_take(notebook):
    text = notebook("%tcompile --help").stdout
    assert "%%tcompile [OPTIONS]" in text and "%tcompile watch" in text and "::" not in text
    for name in ("eager_on_recompile", "aot_eager", "true, false, auto", "--profile"):
        assert name in text
    assert max(map(len, text.splitlines())) <= 110


def test_errors_of_a_call_show_the_users_frames_alone(notebook):
    notebook("def raises(x):\n    raise KeyError('mine')\nafter = 0")
    ran = notebook("%tcompile explain raises(np.ones(2))\nafter = 1", fails=True)
    assert isinstance(ran.error, KeyError) and notebook["after"] == 0
    assert "raise KeyError('mine')" in ran.stdout and "tcompile_jupyter" not in ran.stdout
    assert "api.py" not in ran.stdout and "dispatch.py" not in ran.stdout
    ran = notebook("%tcompile compare 3(4)", fails=True)
    assert "UsageError: %tcompile compare: compile takes a function, got int 3" in ran.stderr
    ran = notebook("%tcompile explain nowhere(1)", fails=True)
    assert isinstance(ran.error, NameError) and "tcompile_jupyter" not in ran.stdout


def test_loading_the_extension_imports_no_compiler():
    """It is imported with the first compile."""
    heavy = "tcompile.compiler", "tcompile.backends.llvm", "tcompile.debug.profile", "llvmlite"
    script = f"import sys, tcompile_jupyter.magics; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
