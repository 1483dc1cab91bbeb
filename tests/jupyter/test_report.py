"""The report under a cell, and comparisons."""

from __future__ import annotations

import gc
import html.parser
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from tcompile_jupyter import Comparisons, compare
from tcompile_jupyter.record import Record
from tcompile_jupyter.report import CellReport

import tcompile
from tcompile.debug import profile
from tcompile.debug.differences import difference
from tcompile.observe.events import CompileStarted, FellBack, GraphBroke, GraphCaptured, RecompileStarted
from tcompile.observe.recorder import Recorder
from tcompile.observe.source_location import UserLine

F = "def f(x):\n    return x * 2 + 1\n"


_VOID = ("br", "hr", "meta", "path", "rect", "line", "circle", "polygon", "img", "input")


class Balanced(html.parser.HTMLParser):
    """Fails when elements are not closed in order; collects the names of all elements."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in _VOID:
            return
        assert self.open and self.open.pop() == tag


def balanced(text: str) -> set[str]:
    parser = Balanced()
    parser.feed(text)
    assert not parser.open
    return parser.seen


def test_a_compiled_function(notebook):
    ran = notebook(f"%%tcompile\n{F}f(np.ones(3))")
    (report,) = ran.reports
    text = report.data["text/plain"]
    assert "f: 1 graph, 1 kernel" in text
    assert len([line for line in text.splitlines() if line.strip()]) <= 4
    assert "<details>" in report.data["text/html"] and "<svg" not in report.data["text/html"]
    balanced(report.data["text/html"])


def test_the_report_comes_after_what_the_cell_shows(notebook):
    ran = notebook(
        f"%%tcompile\nfrom IPython.display import display, HTML\n{F}f(np.ones(3))\ndisplay(HTML('<i>own</i>'))"
    )
    assert "own" in ran.displayed[0].data["text/html"]
    assert "tcompile-report" in ran.displayed[-1].data["text/html"]


def test_graph_draws(notebook):
    (report,) = notebook(f"%%tcompile --graph\n{F}f(np.ones(3))").reports
    assert "<svg" in report.data["text/html"] and '<details open="open">' in report.data["text/html"]
    assert "multiply" in report.data["text/plain"]
    balanced(report.data["text/html"])


def test_a_break_names_line_reason_and_hint(notebook):
    text = "def g(x):\n    y = x + 1\n    print(y.shape)\n    return y\n"
    (report,) = notebook(f"%%tcompile\n{text}g(np.ones(2))").reports
    plain = report.data["text/plain"]
    assert "break: line 4, `print(y.shape)`: " in plain
    assert "hint: " in plain
    assert "<code>print(y.shape)</code>" in report.data["text/html"]


def test_a_loop_that_prints_names_its_line_once(notebook):
    loop = "for i in range(9):\n    x = x * 0.5 + i\n    print(f'{i}: {x.sum():.1f}')\n"
    (report,) = notebook(f"%%tcompile\nimport numpy as np\nx = np.ones(50)\n{loop}").reports
    told = "1 statement of the cell in plain Python:\n    line 6, `print(f'{i}: {x.sum():.1f}')`: Input or output"
    assert told in report.data["text/plain"]
    assert "1 statement of the cell in plain Python" in report.data["text/html"]
    assert "Input or output" in report.data["text/html"] and "recompile" not in report.data["text/plain"]


def test_statements_in_plain_python_are_lines_of_the_cell(notebook):
    cell = "%%tcompile\nimport json\n\nx = np.ones(3) * 2\ntext = json.dumps({'a': 1})\ny = x + 1"
    (report,) = notebook(cell).reports
    told = report.data["text/plain"].partition("in plain Python:\n")[2]
    assert {line.split(",")[0].strip() for line in told.splitlines()} <= {"line 2", "line 5"}


def test_a_function_called_cell_is_a_function(notebook):
    cell = "%%tcompile\ndef cell(x):\n    print(end='')\n    return x + 1\n\nz = cell(np.ones(3))"
    (report,) = notebook(cell).reports
    assert "  cell: 1 graph" in report.data["text/plain"] and "break: line 3" in report.data["text/plain"]
    (report,) = notebook("%%tcompile\nz = np.ones(3) * 3").reports
    assert "  the cell: 1 graph" in report.data["text/plain"] and "&lt;cell" not in report.data["text/html"]


def test_a_cell_that_is_timed_is_reported_once(notebook):
    (report,) = notebook("%%timeit -n 3 -r 2\n%%tcompile\ny = np.ones(3) + 1").reports
    assert "the cell: 1 graph" in report.data["text/plain"]


def test_a_recompile_names_its_reason(notebook):
    notebook(f"%%tcompile\n{F}f(np.ones(3))")
    (report,) = notebook("%%tcompile\nf(np.ones(4))").reports
    plain = report.data["text/plain"]
    assert "recompile: " in plain and "x.shape" in plain
    assert "hint: " in plain and "Hint: " not in plain  # one word for it, once


def test_nothing_new(notebook):
    notebook(f"%%tcompile\n{F}f(np.ones(3))")
    ran = notebook("%%tcompile\npass")
    assert "nothing new to compile" in ran.text


def test_functions_that_wait_for_their_first_call(notebook):
    assert "not called yet: f" in notebook(f"%%tcompile\n{F}").text


def test_nothing_follows_an_error_but_what_was_compiled(notebook):
    assert not notebook("%%tcompile\nraise KeyError", fails=True).reports
    assert len(notebook(f"%%tcompile\n{F}f(np.ones(3))\nraise KeyError", fails=True).reports) == 1


def test_all_text_of_the_user_is_escaped():
    evil = "<script>alert('x')</script>&`<b>`"
    record = Record()
    where = UserLine(file=evil, line=3, text=evil, function=evil)
    graph = SimpleNamespace(readable=lambda: evil, code=evil)
    record(GraphCaptured(function=evil, guards=(evil,), ops=1, get_graph=lambda: graph))
    record(GraphBroke(function=evil, reason=evil, headline=evil, hints=(evil,), where=where))
    record(RecompileStarted(function=evil, reasons=(evil,)))
    record(FellBack(function=evil + "2", reason=evil, detail=evil))
    text = CellReport(record, stance=evil, waiting=(evil,)).html()
    assert "<script" not in text and "<b><" not in text
    assert balanced(text) <= {
        "div",
        "style",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "b",
        "span",
        "code",
        "details",
        "summary",
        "pre",
    }


def test_names_in_a_cell_are_escaped(notebook):
    notebook("%%tcompile\ndef f(x):\n    return x + 1\nf.__wrapped__.__qualname__ = '<script>f'")
    ran = notebook("%%tcompile\nf(np.ones(3))")
    assert "<script>" not in ran.html


# -- comparisons --


def test_a_compared_cell(notebook):
    ran = notebook("a = np.arange(6.0)\nruns = []\n") and notebook(
        f"%%tcompile --compare\n{F}a += 1\nruns.append(1)\nprint('once')\nb = f(a)\nb.sum()"
    )
    assert ran.value == 48
    assert ran.stdout.count("once") == 1
    np.testing.assert_array_equal(notebook["a"], np.arange(6.0) + 1)
    assert notebook["runs"] == [1]
    assert "the cell: plain" in ran.text and "largest difference 0" in ran.text


def test_a_compared_cell_with_random_numbers(notebook):
    ran = notebook(
        "%%tcompile --compare\nimport random\nrng = np.random.default_rng(1)\n"
        "x = rng.random(3) + np.random.random(3) + random.random()"
    )
    assert "largest difference 0" in ran.text


def test_a_compared_cell_that_fails(notebook):
    ran = notebook("%%tcompile --compare\n1/0", fails=True)
    assert "the cell: plain" not in ran.text


def test_a_cell_that_cannot_run_twice_says_so(notebook, tmp_path):
    notebook(f"path = {str(tmp_path / 'file')!r}")
    ran = notebook("%%tcompile --compare\nwith open(path, 'x'):\n    pass")
    assert "but not again" in ran.stdout and "FileExistsError" in ran.stdout


def test_compare_sees_what_differs():
    calls = []

    def counts(x):
        calls.append(1)
        return x + len(calls)

    one = compare(counts, np.zeros(2), budget=0)
    assert one.difference.largest >= 1
    table = Comparisons([one, one])
    assert repr(table).splitlines()[0].split()[0] == "function"
    assert len(table) == 2 and table[0] is one
    assert {"table", "thead", "tbody", "tr", "th", "td"} <= balanced(table.html())


@pytest.mark.parametrize(
    ("plain", "compiled", "text"),
    [
        (np.float32(1), np.array(1, "f4"), "numpy.float32 became numpy.ndarray"),
        (np.ones(2), np.ones(2, "f4"), "dtype float64 became float32"),
        (np.ones(2), np.ones((1, 2)), "shape (2,) became (1, 2)"),
        (np.array([1]), np.array([2]), "values of dtype int64 differ"),
        (np.array([np.nan]), np.array([1.0]), "infinities or NaNs differ"),
        ({"a": 1}, {"b": 1}, "keys"),
        ([1], [1, 2], "length 1 became 2"),
        ([1, (2, "a")], [1, (2, "b")], "the result[1][1]: 'a' became 'b'"),
        (1, True, "int became bool"),
    ],
)
def test_mismatches(plain, compiled, text):
    found = difference(plain, compiled)
    assert not found.equal and text in str(found)


@pytest.mark.parametrize(
    ("plain", "compiled", "largest"),
    [
        (np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf]), 0),
        (np.array([], "f4"), np.array([], "f4"), 0),
        (np.array([1 + 1j]), np.array([1 + 1.5j]), 0.5),
        ((1.0, {"a": 2.0}), (1.5, {"a": 2.25}), 0.5),
        (np.bool_(True), np.bool_(True), 0),
        (object(), object(), 0),
    ],
)
def test_distances(plain, compiled, largest):
    found = difference(plain, compiled)
    assert found.equal and found.largest == largest


def test_compare_takes_methods_partials_and_wrapped_functions():
    import functools

    class Scaled:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by

        def scale(self, x):
            return x * self.by

    def twice(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(function(x))

        return wrapper

    @twice
    def add_one(x):
        return x + 1

    x = np.arange(4.0)
    for function in (Scaled(3).scale, Scaled(3), functools.partial(Scaled.scale, Scaled(2)), add_one, np.sin):
        assert compare(function, x, budget=0).difference.equal
    assert compare(add_one, x, budget=0).name == "add_one"


@pytest.mark.at_recompile_limit  # each time it makes another class
def test_a_compared_cell_may_define_classes(notebook):
    ran = notebook("%%tcompile --compare\nclass C:\n    pass\nc = C()\nc.x = np.ones(3)")
    assert "largest difference 0" in ran.text


def test_each_statement_of_a_cell(notebook):
    notebook("a = np.arange(6.0)\nruns = []")
    ran = notebook(
        f"%%tcompile --each\nimport math\n{F}a += 1\nruns.append(1)\nb = f(a)\nif True:\n    c = b * 2\nb.sum()"
    )
    assert notebook["runs"] == [1] and ran.value == 48
    np.testing.assert_array_equal(notebook["a"], np.arange(6.0) + 1)
    (report,) = ran.reports
    text = report.data["text/plain"]
    for line in ("5: a += 1", "6: runs.append(1)", "7: b = f(a)", "8: if True:", "10: b.sum()"):
        assert line in text
    assert "def f" not in text and "import math" not in text  # definitions run, and are not timed
    assert "DIFFER" not in text
    rows = report.data["application/vnd.tcompile.report+json"]["statements"]["rows"]
    assert len(rows) == 5 and all(row["equal"] and row["repeats"] >= 6 for row in rows)
    balanced(report.data["text/html"])


def test_each_statement_says_what_differs(notebook):
    notebook("class Kept:\n    count = 0\ndef more():\n    Kept.count += 1\n    return Kept.count")
    (report,) = notebook("%%tcompile --each\nx = np.ones(2) + more()\ny = np.ones(2)").reports
    rows = report.data["application/vnd.tcompile.report+json"]["statements"]["rows"]
    assert rows[0]["difference"] != "0" and rows[1]["difference"] == "0"


@pytest.mark.parametrize("option", ["--compare", "--each"])
def test_comparisons_let_go_of_what_they_made(notebook, option):
    class Kept:
        copies = 0
        alive = weakref.WeakSet()

        def __deepcopy__(self, memo):
            Kept.copies += 1
            Kept.alive.add(made := Kept())
            return made

    notebook.shell.user_ns["kept"] = Kept()
    notebook(f"%%tcompile {option} --quiet\nboth = kept, np.ones(3) * 2")
    gc.collect()
    assert Kept.copies > 4 and not Kept.alive


# Since CPython 3.12 a process with threads is warned of what IPython does for `!`.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("option", ["--compare", "--each"])
def test_cells_with_magics_are_compared(notebook, option):
    notebook("x = np.ones(3)")
    ran = notebook(f"%%tcompile {option}\n!echo hello\n%time x = x + 1\nx = x * 2")
    assert "not again" not in ran.stdout and "DIFFER" not in ran.text and "compiled" in ran.text
    np.testing.assert_array_equal(notebook["x"], [4, 4, 4])
    assert notebook["get_ipython"]() is notebook.shell


def test_a_comparison_that_is_interrupted_leaves_the_report(notebook):
    notebook("class Runs:\n    count = 0")
    cell = "Runs.count += 1\nx = np.ones(3) + 1\nif Runs.count > 1:\n    raise KeyboardInterrupt"
    ran = notebook(f"%%tcompile --compare --each\n{cell}")
    assert "repeating it was interrupted" in ran.stdout and "the cell: 1 graph" in ran.text
    assert notebook["Runs"].count == 2


def test_explain_and_profile_in_the_report(notebook):
    text = "def g(x):\n    y = x + 1\n    print(end='')\n    return y * 2\n"
    (report,) = notebook(f"%%tcompile --explain --profile\n{text}z = g(np.ones(2)), g(np.ones(2))").reports
    plain, html = report.data["text/plain"], report.data["text/html"]
    assert "Graph break 1: Input or output" in plain and "Guards (" in plain
    assert "function  compiles" in plain and "<b>profile</b>" in html
    assert "explain g" in html and "<svg" in html
    balanced(html)


def test_help_needs_no_body(notebook):
    for cell in ("%%tcompile --help", "%%tcompile --help\n", "%%tcompile --quiet -h\n\n", "%tcompile --help"):
        ran = notebook(cell)
        assert "--each" in ran.stdout and "%tcompile watch" in ran.stdout
    assert "--each" in notebook("%%tcompile --help\nnever = True").stdout and "never" not in notebook


def test_what_was_compiled_is_kept_from_run_to_run(notebook):
    notebook("x = np.ones(50)")
    with Recorder() as seen:
        notebook("%%tcompile --compare\ndef f(x):\n    return x + 1\ny = f(x) * 2")
    assert len(seen.of(CompileStarted)) <= 8


def test_modules_and_functions_are_not_copied_into(notebook):
    import types

    from tcompile.debug.copying import copied

    module = types.ModuleType("module")
    module.array = np.ones(2)
    function = tcompile.compile(lambda x: x)
    function.array = module.array
    ours = copied({"m": module, "f": function, "a": [module.array]})
    assert ours["m"] is module and ours["a"][0] is not module.array
    assert module.array is function.array


def test_time_says_what_takes_it(notebook, monkeypatch):
    """Lines of the cell and of a function that an earlier cell has defined and compiled; nothing is left behind."""
    monkeypatch.setattr(profile, "SECONDS", 0.02)
    monkeypatch.setattr(profile, "_LEAST", 0.0)
    notebook(
        "%%tcompile\ndef smooth(x):\n    y = np.sin(x) * 2\n    return np.sort(y) + 1\n\nz = smooth(np.ones(50_000))"
    )
    entries = notebook["smooth"].entries
    defined = "def twice(x):\n    return x * 2\n\nz = twice(np.ones(9))"
    statements = "z = smooth(np.ones(50_000))\nz = z * 2 + np.median(z)\nprint(len(z))\nseen = [0]"
    ran = notebook(f"%%tcompile --time\n{defined}\n{statements}")
    (report,) = ran.reports
    assert ran.stdout == "50000\n" and "np.sort(y)" in report.data["text/html"]
    times = report.data["application/vnd.tcompile.report+json"]["times"]
    lines = {line["text"].strip(): line for line in times["lines"]}
    assert lines["y = np.sin(x) * 2"]["fused"] and lines["return np.sort(y) + 1"]["library"]
    assert lines["z = z * 2 + np.median(z)"]["why"] == "median"
    assert not any("tcompile_jupyter" in line["file"] or line["file"] == "<string>" for line in times["lines"])
    assert notebook["smooth"].entries == entries and notebook["seen"] == [0]


def test_compared_definitions_of_one_code_are_not_one_function(notebook):
    decorated = "def deco(f):\n    def w(x):\n        return f(x) + 1\n    return w\n"
    functions = "@deco\ndef a(x):\n    return x * 2\n\n@deco\ndef b(x):\n    return x * 3\n"
    cell = f"{functions}y = a(np.ones(50)).sum()\nz = b(np.ones(50)).sum()"
    (report,) = notebook(f"%%tcompile --compare --each\n{decorated}{cell}").reports
    data = report.data["application/vnd.tcompile.report+json"]
    rows = [*data["comparison"]["rows"], *data["statements"]["rows"]]
    assert rows and all(row["difference"] in ("0", "none") or float(row["difference"]) < 1e-9 for row in rows)
