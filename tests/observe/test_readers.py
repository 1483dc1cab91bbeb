"""Recorder, history, explain and the layout of user lines."""

import json
import linecache
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from tcompile.graph import Graph, TensorType
from tcompile.graph.ops import apply
from tcompile.observe import bus, source_location
from tcompile.observe.events import CallTimed, CompileFinished, Event, FellBack, GraphBroke, GraphCaptured
from tcompile.observe.explain import BreakReason, ExplainOutput
from tcompile.observe.history import LIMIT, history
from tcompile.observe.recorder import Recorder
from tcompile.observe.source_location import UserLine, format_line, format_stack


def test_recorder_is_bounded_reusable_and_nests():
    with Recorder(3) as seen:
        with seen:
            for i in range(4):
                bus.emit(Event(function=str(i)))
        bus.emit(FellBack(function="4"))
    bus.emit(Event(function="outside"))
    assert [e.function for e in seen.events] == ["2", "3", "4"] and seen.dropped == 2
    assert [e.function for e in seen.of(FellBack)] == ["4"]
    assert repr(seen) == "<Recorder: 3 events, 2 dropped before them>"
    seen.clear()
    assert not seen.events and not seen.dropped
    with seen:
        bus.emit(Event(function="again"))
    assert len(seen) == 1


def test_recorder_of_one_thread():
    with Recorder(this_thread=True) as seen, Recorder() as every:
        thread = threading.Thread(target=lambda: bus.emit(Event(function="other")))
        thread.start()
        thread.join()
        bus.emit(Event(function="mine"))
    assert [e.function for e in seen.events] == ["mine"] and len(every) == 2


def test_history_is_always_on_bounded_and_free_on_the_call_path():
    history.clear()
    assert not bus.active()
    for i in range(LIMIT + 5):
        bus.emit(Event(function=str(i)))
        bus.emit(CallTimed())
    assert len(history) == LIMIT and history.dropped == 5
    assert history.events[-1].function == str(LIMIT + 4)
    history.clear()


def test_a_failing_listener_never_reaches_the_user(capsys):
    with bus.listening(lambda event: 1 / 0):
        bus.emit(Event())
    assert "ZeroDivisionError" in capsys.readouterr().err


# -- explain


OTHER = SimpleNamespace(readable=lambda: "graph graph_1: <1> op", code="", nodes=())


def example():
    g = Graph("graph_0")
    g.outputs = [apply(g, "add", apply(g, "sin", g.input("x", TensorType(np.dtype("float32"), (3,)))), 1)]
    line = UserLine(file="<cell>", line=3, column=7, end_column=14, function="toy<T>", text="    if b.sum() < 0:")
    return (
        [
            GraphCaptured(
                function="toy<T>",
                graph="graph_0",
                ops=2,
                guards=("x.ndim == 1",),
                get_graph=lambda: g,
            ),
            GraphBroke(headline="A <branch>", explanation="Why.", hints=("Do & don't.",), where=line, stack=(line,)),
            CompileFinished(ms=3.0, phases={"capture": 1.0, "llvm": 2.0}),
            GraphCaptured(
                function="toy<T>",
                graph="graph_1",
                ops=1,
                guards=("x.ndim == 1", "b.ndim == 1"),
                get_graph=lambda: OTHER,
            ),
            FellBack(reason="limit", detail="reached"),
            CompileFinished(ms=1.5, phases={"capture": 1.5}),
        ],
        g,
        line,
    )


def test_explain_fields():
    events, g, line = example()
    out = ExplainOutput.of(events)
    assert out.function == "toy<T>"
    assert (out.graph_count, out.graph_break_count, out.op_count) == (2, 1, 3)
    assert out.graphs == (g, OTHER)
    assert out.ops_per_graph == (("sin", "add"), ())
    assert out.break_reasons == (BreakReason("A <branch>", (line,), "Why.", ("Do & don't.",)),)
    assert out.out_guards == ("x.ndim == 1", "b.ndim == 1")
    assert out.compile_times == {"capture": 2.5, "llvm": 2.0, "total": 4.5}
    assert out.fell_back == ("limit: reached",)


def test_explain_text():
    out = ExplainOutput.of(example()[0], "toy")
    assert repr(out) == "<ExplainOutput of toy: 2 graphs, 1 graph break, 3 ops>"
    assert (
        str(out)
        == """\
toy: 2 graphs, 1 graph break, 3 ops

Graph 1
    graph graph_0: 2 ops
      x    f32[3]  input
      sin  f32[3]  sin(x)
      add  f32[3]  add(sin, 1)
      return add

Graph 2
    graph graph_1: <1> op

Graph break 1: A <branch>
      File "<cell>", line 3, in toy<T>
        if b.sum() < 0:
           ^^^^^^^
    Why.
    Hint: Do & don't.

Ran in plain Python
    limit: reached

Guards (2)
    x.ndim == 1
    b.ndim == 1

Compile times, ms
    capture     2.50
    llvm        2.00
    total       4.50"""
    )


def test_explain_in_a_notebook():
    bundle = ExplainOutput.of(example()[0])._repr_mimebundle_()
    assert bundle["text/plain"].startswith("toy<T>: 2 graphs")
    text = bundle["text/html"]
    assert "toy&lt;T&gt;" in text and "toy<T>" not in text
    assert "A &lt;branch&gt;" in text and "&lt;1&gt; op" in text and "Do &amp; don&#x27;t." in text
    assert "<svg" in text  # the first graph draws itself
    assert "<script" not in text


def test_explain_of_nothing():
    out = ExplainOutput.of([], "f")
    assert str(out) == "f: 0 graphs, 0 graph breaks, 0 ops"
    assert out._repr_mimebundle_()["text/html"]


def test_events_are_json():
    for event in example()[0]:
        json.dumps(event.as_dict())


# -- user lines


@pytest.mark.parametrize(
    "text, column, end, shown",
    [
        ("    return f(x)", 11, 15, "           ^^^^"[4:]),
        ("    return f(x)", 0, 15, "^^^^^^^^^^^"),
        ("    return f(x,", 11, 3, "           ^^^^"[4:]),  # ends on a later line
        ("    return f(x)", 11, None, "           ^^^^"[4:]),
        ("    é = f(x)", 9, 13, "    ^^^^"),  # columns count bytes
        ("    漢 = f(x)", 10, 14, "     ^^^^"),  # and wide characters take two places
        ("\tx = f(x)", 5, 9, "    ^^^^"),
        ("    x\t= f(x)", 8, 12, " \t  ^^^^"),
    ],
)
def test_caret(text, column, end, shown):
    line = UserLine(file="nowhere", line=1, column=column, end_column=end, text=text)
    assert format_line(line).splitlines()[-1] == "    " + shown


def test_no_caret_under_a_comment():
    line = UserLine(file="nowhere", line=1, column=4, text="    f('#', [  # why")
    assert format_line(line).splitlines()[-1] == "    ^^^^^^^^"


BLOCK = """\
def f(x):
    if True:
        y = g(x,  # the first
            h(x),

            x, 1)
    return y
"""


@pytest.mark.parametrize("most, shown", [
    (6, ["y = g(x,  # the first", "    ^^^^", "    h(x),", "    ^^^^^", "    x, 1)", "    ^^^^^"]),
    (3, ["y = g(x,  # the first", "    ^^^^", "    h(x),", "    ^^^^^", "...", "    x, 1)", "    ^^^^^"]),
])  # fmt: skip
def test_carets_under_an_expression_of_several_lines(tmp_path, monkeypatch, most, shown):
    path = tmp_path / "m.py"
    path.write_text(BLOCK)
    monkeypatch.setattr(source_location, "_MAX_BLOCK", most)
    line = UserLine(file=str(path), line=3, end_line=6, column=12, end_column=17, text="y = g(x,  # the first")
    assert format_line(line).splitlines()[1:] == [f"    {row}" for row in shown]
    assert format_line(line, caret=False).splitlines()[1:] == ["    y = g(x,  # the first"]
    path.write_text(BLOCK.replace("h(x),", "h(x)," * 2).replace("# the first", "# another"))
    linecache.checkcache(str(path))
    assert format_line(line).splitlines()[1:] == ["    y = g(x,  # the first"]


@pytest.mark.parametrize("column, end", [(None, None), (99, 104)])
def test_no_caret(column, end):
    line = UserLine(file="nowhere", line=1, column=column, end_column=end, text="x = 1")
    assert format_line(line) == '  File "nowhere", line 1\n    x = 1'


def test_no_caret_under_text_that_lost_its_indentation():
    line = UserLine(file="nowhere", line=1, column=11, end_column=15, text="return f(x)")
    assert format_line(line).splitlines()[1:] == ["    return f(x)"]


def test_text_from_the_file_where_it_still_is_the_same(tmp_path):
    path = tmp_path / "m.py"
    path.write_text("def f():\n    return g(x)\n")
    line = UserLine(file=str(path), line=2, column=11, end_column=15, function="f")
    assert format_line(line).splitlines()[1:] == ["    return g(x)", "           ^^^^"]
    stripped = UserLine(file=str(path), line=2, column=11, end_column=15, text="return g(x)")
    assert format_line(stripped).splitlines()[1:] == ["    return g(x)", "           ^^^^"]
    changed = UserLine(file=str(path), line=2, text="    other()")
    assert source_location.source_text(changed) == "    other()"
    unknown = UserLine(file="nowhere", line=2, function="f")
    assert format_stack([unknown]) == 'from user code:\n  File "nowhere", line 2, in f'
