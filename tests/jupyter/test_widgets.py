"""Widgets without a browser: what they show, what they set, and what they cost. tests/ui has them in one."""

from __future__ import annotations

import base64
import re
import sys
import threading
import time
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest

pytest.importorskip("ipywidgets")
pytest.importorskip("anywidget")
pytest.importorskip("plotly")

import plotly.graph_objects as go
import tcompile_jupyter as tj
from tcompile_jupyter import widgets
from tcompile_jupyter.chart import Series, chart
from tcompile_jupyter.displays import schema
from tcompile_jupyter.feed import MOST, Feed, feed
from tcompile_jupyter.measure import Measured, Sample
from tcompile_jupyter.widgets.controls import OWN
from tcompile_jupyter.widgets.speedup import SpeedupPoint
from tcompile_jupyter.widgets.timeline import MOST_COMPILES, MOST_LANES

import tcompile
from tcompile.debug.differences import Difference
from tcompile.errors import InvalidArgument, InvalidType
from tcompile.observe import bus
from tcompile.observe.events import CompileFinished, CompileStarted, Event, FellBack, GraphBroke
from tcompile.observe.source_location import UserLine
from tcompile.runtime import native

HOSTILE = "<script>alert('x')</script>\"&\x1b[31mred\x00" + "x" * 10_000


@pytest.fixture(autouse=True)
def _clean():
    tcompile.reset()
    yield
    tcompile.set_stance("default")
    assert not feed._readers and not bus.active()


@pytest.fixture
def opened():
    """Makes widgets that are closed at the end."""
    made = []

    def open(widget):
        made.append(widget)
        return widget

    yield open
    for widget in made:
        widget.close()


def settle():
    feed.flush()


def compiled(text="def f(x):\n    return np.sqrt(x) + 1\n", name="f"):
    space = {"np": np}
    exec(compile(text, "<cell>", "exec"), space)
    return tcompile.compile(space[name])


# -- the feed ----------------------------------------------------------------------------------------


def test_nobody_listens_while_nothing_is_open(opened):
    before = {*threading.enumerate()}  # of which others may end meanwhile
    assert not bus.active()
    one, other = tj.StanceToggle(), tj.RecompileTimeline()
    assert len(bus._listeners) == 1 and not bus.listened[0]
    one.close()
    assert bus.active()
    other.close()
    assert not bus.active()
    deadline = time.monotonic() + 5
    while {*threading.enumerate()} - before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not {*threading.enumerate()} - before


def test_calls_stay_in_machine_code(opened):
    opened(tj.RecompileTimeline())
    f = compiled()
    for _ in range(9):
        f(np.ones(3))
    if native.unavailable() is None:
        assert f.entries[0].plan is not None and f.entries[0].plan.hits


def test_events_come_in_batches(monkeypatch):
    monkeypatch.setattr("tcompile_jupyter.feed.PERIOD", 3600)  # this test says when they are told
    batches = []
    own = Feed()
    close = own.open(batches.append)
    try:
        for n in range(MOST + 10):
            bus.emit(Event(function=str(n)))
        own.flush()
        (batch,) = batches
        assert (len(batch), batch[0].function, batch[-1].function) == (MOST, "10", str(MOST + 9))
        own.flush()
        assert len(batches) == 1
    finally:
        close()


def test_a_batch_comes_by_itself(monkeypatch):
    monkeypatch.setattr("tcompile_jupyter.feed.PERIOD", 0.01)
    batches = []
    own = Feed()
    close = own.open(batches.append)
    try:
        bus.emit(Event(function="later"))
        deadline = time.monotonic() + 5
        while not batches and time.monotonic() < deadline:
            time.sleep(0.02)
        assert batches[0][0].function == "later"
    finally:
        close()


def test_a_widget_that_fails_disturbs_nobody(capsys):
    own, told = Feed(), []

    def fails(batch):
        raise ZeroDivisionError

    close = own.open(fails), own.open(told.append)
    bus.emit(Event())
    own.flush()
    for one in close:
        one()
    assert len(told) == 1 and "ZeroDivisionError" in capsys.readouterr().err


# -- stance, backend and mode ------------------------------------------------------------------------


def test_the_toggle_sets_and_follows_the_stance(opened):
    one, other = opened(tj.StanceToggle()), opened(tj.StanceToggle())
    assert list(one.chooser.options) == list(tcompile.stance.STANCES)
    for stance in tcompile.stance.STANCES:
        one.chooser.value = stance
        settle()
        assert tcompile.stance.current().name == other.value == other.chooser.value == stance
    tcompile.set_stance("fail_on_recompile")
    settle()
    assert one.value == other.value == "fail_on_recompile"
    assert "raise RecompileError" in one._meaning.value
    other.value = "default"
    settle()
    assert tcompile.stance.current().name == one.value == "default"


def test_a_block_is_not_the_process(opened):
    toggle = opened(tj.StanceToggle())
    with tcompile.set_stance("force_eager"):
        settle()
        assert toggle.value == "default"
        within = opened(tj.StanceToggle())
        assert within.value == "default"
    settle()
    assert toggle.value == "default"


def test_the_backend_is_forced_and_let_go(opened):
    chooser, toggle = opened(tj.BackendChooser()), opened(tj.StanceToggle())
    assert chooser.value is None and {"llvm", "eager"} < set(chooser.chooser.options)
    chooser.chooser.value = "eager"
    settle()
    assert tcompile.stance.current().force_backend == "eager"
    assert toggle.value == "default" and "eager" in toggle.title()
    tcompile.set_stance("force_eager")
    settle()
    assert chooser.value is None and chooser.chooser.value == OWN
    chooser.value = "llvm"
    assert str(tcompile.stance.current()) == "default, force_backend='llvm'"
    chooser.value = None
    assert tcompile.stance.current() == tcompile.stance.DEFAULT


def test_a_backend_of_the_users_own_is_named(opened):
    chooser = opened(tj.BackendChooser())

    def mine(graph, inputs):
        return graph

    tcompile.set_stance(force_backend=mine)
    settle()
    assert chooser.chooser.value == "mine"
    assert tcompile.stance.current().force_backend is mine


def test_modes(opened):
    chooser = opened(tj.ModeChooser())
    assert list(chooser.chooser.options) == list(tcompile.list_mode_options())
    assert chooser.value == "default" and "no options" in chooser.title()


# -- the live graph ----------------------------------------------------------------------------------


def test_the_graph_grows_with_what_is_captured(opened):
    f = compiled()
    live = opened(tj.LiveGraph(f))
    assert "nothing captured yet" in live._waits.value and not live._picture.html
    f(np.ones(3))
    settle()
    assert "1 graph<" in live._waits.value and "sqrt" in live._picture.html
    f(np.ones((2, 2)))
    settle()
    assert "2 graphs" in live._waits.value and live._chooser.value == 1 and "f64[2, 2]" in live._picture.html
    live._chooser.value = 0
    assert "f64[3]" in live._picture.html
    f(np.ones((2, 2, 2)))
    settle()
    assert live._chooser.value == 0 and len(live._chooser.options) == 3  # what was chosen stays


def test_a_click_tells_line_and_kernel(opened):
    f = compiled()
    f(np.ones(3))
    live = opened(tj.LiveGraph(f))
    rows = dict(live._picture.details["sqrt"])
    assert "np.sqrt" in rows["your line"] or "line 2" in rows["your line"]
    assert "kernel" in rows["kernel"] and rows["operation"] == "sqrt(x)"
    assert set(re.findall('data-node="([^"]*)"', live._picture.html)) == {"x", "sqrt", "add"}


def test_parts_inside_parts_have_both_names(opened):
    f = compiled("def f(x, n):\n    for i in range(n):\n        x = x * 0.5 + i\n    return x\n")
    for n in (40, 50):
        f(np.ones(3), n)
    live = opened(tj.LiveGraph(f))
    loop = next(node.name for node in f.graphs[-1].nodes if node.regions)
    rows = dict(live._picture.details[f"{loop}/multiply"])
    assert "kernel" in rows["kernel"] and "multiply" in rows["computed with it"]


def test_a_derivative_has_a_backward_part(opened):
    f = tcompile.compile(lambda x: tcompile.grad(lambda x: np.sum(np.tanh(x) * x))(x))
    live = opened(tj.LiveGraph(f))
    assert live._parts.layout.display == "none"
    f(np.ones(3))
    settle()
    assert live._parts.options == ("whole", "forward", "backward") and live._parts.layout.display == ""
    whole = live._picture.html
    live._parts.value = "backward"
    assert live._picture.html != whole and live.picture() != whole
    f(np.ones((2, 2)))
    settle()
    assert live._parts.value == "backward" and "f64[2, 2]" in live._picture.html


def test_what_is_no_compiled_function_is_refused():
    with pytest.raises(InvalidType, match="LiveGraph takes a compiled function"):
        tj.LiveGraph(len)


def test_large_graphs_are_listed(opened, monkeypatch):
    monkeypatch.setattr("tcompile_jupyter.widgets.live_graph.MOST", 1)
    f = compiled()
    f(np.ones(3))
    assert "too many to draw" in opened(tj.LiveGraph(f))._picture.html


# -- the gradient check ---------------------------------------------------------------------------------


def test_a_gradient_beside_finite_differences(opened):
    check = opened(tj.GradientCheck(lambda x, k: np.sum(np.sin(x) * k), np.linspace(0.0, 1.0, 4), 2.0))
    assert check.agrees and check.title().endswith("agrees with finite differences")
    before = check.view
    check.turn()
    assert check.view.rows[0].errors != before.rows[0].errors and check.view.rows[0].norm == before.rows[0].norm
    assert "data:image/svg+xml;base64," in check.picture() and "by x (4,)" in check.picture()
    with pytest.raises(InvalidType, match="no argument is a float"):
        tj.GradientCheck(lambda n: n, 1)


def test_arguments_of_any_name(opened):
    check = opened(tj.GradientCheck(lambda function, seed=1.0, budget=1.0: function * seed * budget, 1.0, seed=3.0))
    check.turn()
    assert [row.argument for row in check.view.rows] == ["function", "seed"] and check.view.value == 3.0


@pytest.mark.filterwarnings("ignore")
def test_a_gradient_that_is_not_finite(opened):
    view = opened(tj.GradientCheck(np.linalg.norm, np.zeros(2))).view
    assert view.rows[0].norm is None and "is NaN; tcompile.find_nan tells" in str(view)
    jsonschema.validate(view.data(), schema())
    check = opened(tj.GradientCheck(np.log, 0.0))
    assert check.view.value is None and "value not finite" in str(check.view) and "DIFFERS" not in check.title()
    jsonschema.validate(check.view.data(), schema())
    view = opened(tj.GradientCheck(lambda x: np.sum(1e200 * x), np.ones(2))).view
    assert view.rows[0].agrees and view.rows[0].norm > 1e200


def test_a_wrong_gradient_is_said_to_differ(opened):
    @tcompile.custom_vjp
    def f(x):
        return np.sum(x**2)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * x,))
    check = opened(tj.GradientCheck(f, np.ones(3)))
    assert not check.agrees and "that by x DIFFERS by" in check.title()


# -- the timeline ------------------------------------------------------------------------------------


def test_the_timeline_tells_why(opened):
    f = compiled()
    f(np.ones(3))
    line = opened(tj.RecompileTimeline())
    assert line.title().startswith("1 compile, 0 recompiles")
    f(np.ones((2, 2)))
    settle()
    first, again = line.compiles
    assert (first.kind, again.kind) == ("first", "again") and again.ms > 0
    rows = dict(line._picture.details[again.id])
    assert "x.ndim == 1" in rows["why"] or "shape" in rows["why"]
    assert "<b>f</b> entry 0" in line._picture.html


def test_a_thousand_compiles_are_bounded(opened):
    line = opened(tj.RecompileTimeline())
    sent = []
    line._picture.observe(sent.append, "html")
    for n in range(1000):
        bus.emit(CompileStarted(function=f"f{n % 50}", compile_id=f"9/{n}"))
        bus.emit(CompileFinished(function=f"f{n % 50}", compile_id=f"9/{n}", ms=1.0))
    settle()
    assert len(line.compiles) == MOST_COMPILES and "600 before" in line.title()
    assert len(line._lanes(line.compiles)) == MOST_LANES
    assert len(sent) <= 3 and len(line._picture.html) < 250_000


def test_breaks_and_plain_runs_are_told(opened):
    line = opened(tj.RecompileTimeline())
    bus.emit(CompileStarted(function="f", compile_id="9/0", where=UserLine(file="a.py", line=3)))
    bus.emit(GraphBroke(function="f", compile_id="9/0", headline="A print", where=UserLine(file="a.py", line=4)))
    bus.emit(FellBack(function="f", compile_id="9/0", reason="limit", detail="x"))
    settle()
    assert "stroke-dasharray" in line._picture.html  # it has not ended
    bus.emit(CompileFinished(function="f", compile_id="9/0", outcome="plain", ms=2.0))
    settle()
    assert line.compiles[0].kind == "plain" and "graph break" in line._picture.html
    assert ["graph break", "line 4: A print"] in line._picture.details["9/0"]


# -- the plot ----------------------------------------------------------------------------------------


def test_a_call_is_measured(opened):
    f = compiled()
    plot = opened(tj.SpeedupPlot(f, np.ones(100), budget=0)).wait(60)
    assert plot.status == "done" and plot.points[0].measured.difference.equal
    assert len(plot.plot.data[0]["x"]) == plot.points[0].measured.repeats >= 6
    go.Figure({"data": plot.plot.data, "layout": plot.plot.layout_of_plot})
    assert plot._go.description == "Measure again" and ", compiled " in plot._says.value
    ElementTree.fromstring(plot.svg())


def test_a_sweep_is_measured(opened):
    def f(x, y):
        return x * y + 1

    plot = opened(tj.SpeedupPlot(f, make=lambda n: (np.ones(n), np.ones(n)), sizes=(2, 50), budget=0)).wait(60)
    assert plot.status == "done" and plot.plot.data[1]["x"] == [2, 50]
    assert plot.table().count("<tr>") == 3
    ElementTree.fromstring(plot.svg())


def test_the_button_stops_it(opened):
    started = threading.Event()

    def slow(x):
        started.set()
        time.sleep(0.05)
        return x

    plot = opened(tj.SpeedupPlot(slow, np.ones(3), budget=60, tolerance=0.0))
    assert started.wait(30)
    assert (plot._go.layout.display, plot._halt.layout.display) == ("none", "")
    plot._halt.click()
    plot.wait(30)
    assert plot.status == "stopped" and not plot.measuring
    assert (plot._go.layout.display, plot._halt.layout.display) == ("", "none")
    plot._halt.click()  # it was on its way when the measuring ended
    assert not plot.measuring
    plot._go.click()
    assert plot.measuring
    plot.close()
    assert not plot.wait(30).measuring


def test_plots_share_their_library(opened):
    one, other = (opened(tj.SpeedupPlot(len, make=np.ones, start=False)) for _ in range(2))
    assert one.plot.library is other.plot.library and "plotly" in one.plot.library.code[:500]
    assert len(str(one.plot.get_state(["data", "layout_of_plot"]))) < 5000
    one.plot.library.close()
    assert opened(tj.SpeedupPlot(len, make=np.ones, start=False)).plot.library.comm is not None


def test_results_that_differ_are_not_timed(opened):
    def f(x):
        return x + 1 if tcompile.is_compiling() else (x + 1).astype(np.float32)

    plot = opened(tj.SpeedupPlot(f, np.ones(3), budget=0)).wait(60)
    assert "results differ" in plot.status and not plot.points and "float32" in plot._says.value


def test_an_error_is_shown(opened):
    plot = opened(tj.SpeedupPlot(lambda x: x[9], np.ones(3), budget=0)).wait(60)
    assert plot.status.startswith("IndexError")


def test_wrong_arguments_of_the_plot():
    with pytest.raises(InvalidArgument, match="not both"):
        tj.SpeedupPlot(len, 1, make=np.ones)
    with pytest.raises(InvalidArgument, match="missing"):
        tj.SpeedupPlot(len, sizes=(1, 2))


def known(eager, compiled):
    return Measured(Sample((eager,) * 6), Sample((compiled,) * 6), Difference(), done=True)


def test_the_crossover_is_marked(opened):
    plot = opened(tj.SpeedupPlot(len, make=np.ones, sizes=(1, 100), start=False))
    plot.points = (SpeedupPoint(1, known(1.0, 10.0)), SpeedupPoint(100, known(10.0, 1.0)))
    plot.status = "done"
    plot._draw()
    assert plot.crossings == [10.0] and "even at 10" in plot.svg()
    drawn = go.Figure({"data": plot.plot.data, "layout": plot.plot.layout_of_plot})  # which checks all names and values
    assert drawn.layout.shapes[0].x0 == 10.0 and drawn.layout.annotations[0].text == "even at 10"


@pytest.mark.parametrize("points", [[], [(1, 1, 1, 1)], [(0, 1, 1, 1), (5, float("nan"), 1, 1)], [(1, 2, 0, 3)] * 3])
@pytest.mark.parametrize("log", [True, False])
def test_any_points_make_a_chart(points, log):
    ElementTree.fromstring(chart([Series("a<b", "#000", points)], x="&", y="<y>", log_x=log, log_y=log))


# -- the dashboard -----------------------------------------------------------------------------------


def test_the_dashboard(opened):
    space = {"np": np, "_hidden": compiled()}
    board = opened(tj.dashboard(space))
    assert board.graph is None
    space["f"] = f = compiled()
    f(np.ones(3))
    settle()
    assert board.graph.function is f and "sqrt" in board.graph._picture.html
    board.measure("f(np.ones(5))")
    board.plot.wait(60)
    assert board.plot.status == "done"
    board.measure("nonsense(")
    assert "SyntaxError" in board._error.value
    board.measure("f(x=3)")
    assert "by position" in board._error.value
    settle()
    for part in ("stance", "2 compiles, 1 recompile", ", compiled "):
        assert part in board.picture()


# -- what is saved -----------------------------------------------------------------------------------


def pictures(html):
    return [base64.b64decode(code).decode() for code in re.findall('src="data:image/svg\\+xml;base64,([^"]*)"', html)]


def test_the_picture_is_saved_and_renewed(opened, notebook):
    notebook.shell.user_ns["tj"] = tj
    ran = notebook("import tcompile\nf = tcompile.compile(lambda x: np.sqrt(x) + 1)\nlive = tj.LiveGraph(f)\nlive")
    widget, saved = ran.displayed
    assert widget.data["application/vnd.jupyter.widget-view+json"]["model_id"] == notebook["live"].model_id
    assert "text/html" not in widget.data and "nothing captured yet" in saved.data["text/html"]
    notebook["live"]._drawn = 0.0
    later = notebook("f(np.ones(3));")
    (renewed,) = [output for output in later.displayed if "text/html" in output.data]
    assert renewed.update and renewed.transient == saved.transient
    (svg,) = pictures(renewed.data["text/html"])
    ElementTree.fromstring(svg)
    assert "sqrt" in svg
    notebook["live"].close()


def test_hostile_names_do_no_harm(opened):
    name = HOSTILE
    space = {"np": np}
    exec("def f(x):\n    return x + 1", space)
    space["f"].__name__ = space["f"].__qualname__ = name
    f = tcompile.compile(space["f"])
    f(np.ones(3))
    bus.emit(CompileStarted(function=name, compile_id=name, reason=name, where=UserLine(file=name, line=1, text=name)))
    live, line, plot = opened(tj.LiveGraph(f)), opened(tj.RecompileTimeline()), opened(tj.SpeedupPlot(f, np.ones(3)))
    bus.emit(CompileStarted(function=name, compile_id="8/8", reason=name))
    bus.emit(GraphBroke(function=name, compile_id="8/8", headline=name))
    settle()
    plot.wait(60)
    board = opened(tj.dashboard({name: f}))
    shown = [
        live._waits.value,
        live._picture.html,
        line._picture.html,
        plot._says.value,
        plot.picture(),
        live.picture(),
        line.picture(),
        board.picture(),
        *pictures(line.picture()),
    ]
    for html in shown:
        assert "<script" not in html and "\x1b" not in html and "\x00" not in html
        assert len(html) < 60_000
    for drawing in pictures(line.picture()) + pictures(live.picture()):
        ElementTree.fromstring(drawing)
    for widget in (live, line, plot, board):
        assert len(widget._saved()["text/plain"]) < 1000 and "\x1b" not in widget._saved()["text/plain"]
    assert all(len(text) < 5000 for rows in line._picture.details.values() for _, text in rows)


def test_nothing_comes_from_elsewhere():
    for name in ("picture.js", "picture.css", "plot.js"):
        assert "http" not in (Path(widgets.__path__[0]) / name).read_text(encoding="utf-8")


def test_without_ipywidgets_the_rest_works(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("tcompile_jupyter.widgets")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(tj, "widgets", raising=False)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert tj.compare(lambda x: x, 1, budget=0).difference.equal
    with pytest.raises(ImportError, match=r"pip install 'tcompile\[jupyter\]'"):
        tj.StanceToggle
    with pytest.raises(AttributeError):
        tj.nothing
