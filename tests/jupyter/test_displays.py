"""Every display: three forms that agree, JSON of the schema, well-formed HTML without scripts, and hostile text."""

from __future__ import annotations

import gc
import json
import linecache
import re
import xml.etree.ElementTree as ElementTree

import jsonschema
import numpy as np
import pytest
from tcompile_jupyter import Comparisons, compare
from tcompile_jupyter.displays import PATH, VIEWS, ComparisonRow, ComparisonView, ReportView, schema
from tcompile_jupyter.record import Record
from tcompile_jupyter.report import CellReport, Line

import tcompile
from tcompile.graph import ops
from tcompile.observe.display import html
from tcompile.observe.display.functions import EntryView, FunctionView
from tcompile.observe.display.graphs import GraphView, NodeView
from tcompile.observe.display.kernels import KernelView
from tcompile.observe.display.places import GraphBreakView, GuardFailureView
from tcompile.observe.events import FellBack, GraphBroke, GraphCaptured, GuardFailed, RecompileStarted
from tcompile.observe.recorder import Recorder
from tcompile.observe.source_location import UserLine

TEXT = """def step(u, k):
    lap = u[:-2] - 2 * u[1:-1] + u[2:]
    print("half way", end="")
    v = np.tanh(u[1:-1] + k * lap)
    return (v - v.mean()) / v.std()
"""


def written(text, name, file):
    """A function whose source can be read, as a cell's can."""
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names = {"np": np}
    exec(compile(text, file, "exec"), names)
    return names[name]


@pytest.fixture
def shown():
    """An object of every kind that displays itself."""
    f = tcompile.compile(written(TEXT, "step", "<displays>"), backend="llvm")
    with Recorder() as seen:
        for size in (10, 20):
            f(np.linspace(0, 1, size) ** 3, 0.1)
    g = tcompile.compile(lambda x: np.exp(x) + 1, backend="llvm")
    g(np.ones(4))
    return {
        "function": f,
        "not called yet": tcompile.compile(lambda x: x),
        "graph": g.graphs[0],
        "kernel": f.entries[0].kernels[0],
        "break": f.breaks[0],
        "break event": seen.of(GraphBroke)[0],
        "guard": seen.of(GuardFailed)[0],
        "explain": tcompile.explain(f)(np.linspace(0, 1, 5) ** 3, 0.1),
        "break reason": tcompile.explain(f)(np.linspace(0, 1, 5) ** 3, 0.1).break_reasons[0],
        "comparison": compare(g, np.ones(4), budget=0),
        "comparisons": Comparisons([compare(g, np.ones(4), budget=0)]),
    }


KINDS = (
    "function",
    "not called yet",
    "graph",
    "kernel",
    "break",
    "break event",
    "guard",
    "explain",
    "break reason",
    "comparison",
    "comparisons",
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_bundle_has_three_forms(shown, kind):
    bundle = shown[kind]._repr_mimebundle_()
    (mime,) = (name for name in bundle if name.startswith("application/"))
    assert re.fullmatch(r"application/vnd\.tcompile\.[a-z-]+\+json", mime)
    jsonschema.Draft202012Validator(schema()).validate(json.loads(json.dumps(bundle[mime], allow_nan=False)))
    ElementTree.fromstring(bundle["text/html"])
    assert "<script" not in bundle["text/html"] and not re.search(r"\son\w+=", bundle["text/html"])
    assert bundle["text/plain"].strip() and "<div" not in bundle["text/plain"]


def test_the_schema_file_is_the_classes_own(load_tool):
    assert PATH.read_text(encoding="utf-8") == load_tool("write_display_schema").text(), (
        "run: python tools/write_display_schema.py"
    )
    assert len({view.mime() for view in VIEWS}) == len(VIEWS)


def visible(html):
    """The text of HTML without the drawings and the stylesheet."""
    return " ".join(ElementTree.fromstring(re.sub(r"<(style|svg).*?</\1>", "", html, flags=re.S)).itertext())


def test_a_function_tells_its_state(shown):
    bundle = shown["function"]._repr_mimebundle_()
    data = bundle["application/vnd.tcompile.function+json"]
    assert data["name"] == "step" and data["backend"] == "llvm" and len(data["entries"]) == 4
    assert [(e["starts"], e["ends"]) for e in data["entries"][:2]] == [("start", "line 3"), ("line 4", "return")]
    assert all(entry["phases"]["capture"] > 0 and entry["kernels"] for entry in data["entries"])
    assert data["breaks"][0]["stack"][-1]["line"] == 3 and len(data["recompiles"]) == 2
    assert data["compiled_lines"] == [2, 4, 5]
    text = visible(bundle["text/html"])
    assert "Input or output in the middle of the function" in text and "u.shape == (10,), got (20,)" in text
    assert "○" in text and "graph break: line 3" in bundle["text/plain"]
    assert "nothing is compiled yet" in shown["not called yet"]._repr_mimebundle_()["text/html"]


def test_a_graph_shows_operations_types_lines_and_kernels(shown):
    graph = shown["graph"]
    bundle = graph._repr_mimebundle_()
    data = bundle["application/vnd.tcompile.graph+json"]
    exp, add = data["nodes"]
    assert (exp["op"], exp["dtype"], exp["shape"], exp["inputs"]) == ("exp", "float64", ["4"], ["x"])
    assert exp["where"]["line"] and exp["kernel"] == add["kernel"] == data["kernels"][0] != ""
    svg = bundle["image/svg+xml"]
    assert data["kernels"][0] in svg and f"f64[4] · line {exp['where']['line']}" in svg
    html = bundle["text/html"]
    assert html.count("<svg") == 1 and "data:image/svg+xml;base64," in html  # the drawing, and the still one
    assert 'value="fit"' in html and graph.readable() == bundle["text/plain"]


def test_a_graph_whose_code_is_gone_shows_itself_as_captured():
    f = tcompile.compile(lambda x: np.exp(x) + 1, backend="llvm")
    f(np.ones(3))
    (graph,) = f.graphs
    assert graph.fused() is not None
    tcompile.reset()
    del f
    gc.collect()
    assert graph.fused() is None and not graph.view().kernels


def test_what_a_backend_of_the_users_returns_is_not_looked_into():
    class Made:
        __slots__ = ("graph", "kernels", "schedule")

        def __init__(self, graph):
            self.graph, self.schedule, self.kernels = graph, "mine", 3

        def __call__(self, *args):
            return self.graph(*args)

    f = tcompile.compile(lambda x: np.exp(x) + 1, backend=lambda graph, inputs: Made(graph))
    f(np.ones(3))
    assert not f.graphs[0].view().kernels and f._repr_mimebundle_()["text/html"]


def test_a_kernel_shows_lines_operations_and_code_side_by_side(shown):
    kernel = shown["kernel"]
    bundle = kernel._repr_mimebundle_()
    data = bundle["application/vnd.tcompile.kernel+json"]
    assert {node["op"] for node in data["nodes"]} >= {"multiply", "subtract", "add"}
    assert data["ir"].startswith("define ") and data["ir"].count("define ") == len(kernel.functions)
    assert data["assembly"].startswith(f"{kernel.name}:") and ".p2align" not in data["assembly"]
    text = visible(bundle["text/html"])
    for part in ("your lines", "operations", "LLVM IR", "assembly", "lap = u[:-2] - 2 * u[1:-1] + u[2:]"):
        assert part in text
    assert "line 2" in bundle["text/plain"] and "define" not in bundle["text/plain"]


def test_a_guard_failure_says_what_was_expected_and_seen(shown):
    data = shown["guard"]._repr_mimebundle_()["application/vnd.tcompile.guard-failure+json"]
    assert (data["guard"], data["expected"], data["seen"]) == ("u.shape == (10,)", "(10,)", "(20,)")


def test_a_break_underlines_what_is_meant(shown):
    html = shown["break"]._repr_mimebundle_()["text/html"]
    assert '<u>print("half way", end="")</u>' in html.replace("&quot;", '"')
    assert "input-output" in html


def test_what_is_shown_without_a_stylesheet(shown):
    """A front end that does not trust the notebook drops style and svg, and leaves hidden parts hidden."""
    html = shown["graph"]._repr_mimebundle_()["text/html"]
    tree = ElementTree.fromstring(html)
    (live,) = (element for element in tree.iter("div") if element.get("class") == "tcd-live")
    assert live.get("hidden") and live.find(".//{http://www.w3.org/2000/svg}svg") is not None
    (still,) = tree.iter("img")
    assert still.get("src").startswith("data:image/svg+xml;base64,") and still.get("alt")
    for element in tree.iter():  # no text of the drawing stands outside of what is hidden
        assert not (element.tag.endswith("text") and "svg" in element.tag) or element in set(live.iter())


EVIL = [
    "<script>alert(1)</script>",
    "</style></pre></svg><img src=x onerror=alert(1)>",
    "'\" onload='alert(1)' x=\"",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07\x00\x07\u202e",
    "`<b>`&amp;]]>-->",
    "name" * 2500,
]


@pytest.mark.parametrize("evil", EVIL, ids=["script", "closing", "quotes", "ansi", "marks", "long"])
def test_hostile_text_does_no_harm(evil):
    where = UserLine(file=evil, line=3, column=0, end_column=5, function=evil, text=evil)
    node = NodeView(name=evil, op=evil, type=evil, dtype=evil, shape=(evil,), call=evil, where=where, kernel=evil)
    graph = GraphView(name=evil, nodes=(node,), outputs=(evil,), kernels=(evil,), listing=evil)
    broke = GraphBreakView(
        function=evil, reason=evil, headline=evil, explanation=evil, hints=(evil,), stack=(where, where)
    )
    entry = EntryView(starts=evil, ends=evil, kernels=(evil,), guards=(evil,), phases={evil: 1.0}, graph=graph)
    views = [
        graph,
        broke,
        GuardFailureView(function=evil, source=evil, guard=evil, expected=evil, seen=evil, hint=evil, cell=evil),
        KernelView(name=evil, description=evil, nodes=(node,), ir=evil, assembly=evil),
        FunctionView(
            name=evil,
            where=where,
            backend=evil,
            settings=(evil,),
            stance=evil,
            calls=f"in Python: {evil}",
            entries=(entry,),
            breaks=(broke,),
            recompiles=((evil,),),
            code=(where,),
        ),
        ComparisonView(what=evil, rows=(ComparisonRow(name=evil, equal=False, difference=evil),), draw_text=evil),
    ]
    for view in views:
        html = view.html()
        tree = ElementTree.fromstring(html)
        names = {element.tag for element in tree.iter()}
        assert not names & {"script", "img", "svg"}
        assert not any(name.startswith("on") for element in tree.iter() for name in element.attrib)
        assert len(visible(html)) < 60_000
        for form in (html, str(view)):
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", form)
        json.dumps(view.data())


@pytest.mark.parametrize("evil", EVIL, ids=["script", "closing", "quotes", "ansi", "marks", "long"])
def test_hostile_text_in_a_report_does_no_harm(evil):
    record = Record()
    where = UserLine(file=evil, line=3, text=evil, function=evil)
    record(GraphCaptured(function=evil, guards=(evil,), ops=1))
    record(GraphBroke(function=evil, reason=evil, headline=evil, explanation=evil, hints=(evil,), where=where))
    record(RecompileStarted(function=evil, reasons=(evil,)))
    record(FellBack(function=evil + "2", reason=evil, detail=evil))
    report = CellReport(record, stance=evil, waiting=(evil,), explain=True, profile=tcompile.CompileProfiler())
    assert len(report.line()) < 2_000
    for shown in (report, CellReport(record, stance=evil, waiting=(evil,), draw=True), Line(report)):
        bundle = shown._repr_mimebundle_()
        tree = ElementTree.fromstring(bundle["text/html"])
        assert not {element.tag for element in tree.iter()} & {"script", "img", "svg"}
        assert not any(name.startswith("on") for element in tree.iter() for name in element.attrib)
        for form in ("text/html", "text/plain"):
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", bundle[form])
        jsonschema.Draft202012Validator(schema()).validate(json.loads(json.dumps(bundle[ReportView.mime()])))


def test_names_of_real_functions_do_no_harm():
    for evil in EVIL:
        f = tcompile.compile(written("def f(x):\n    return x + 1\n", "f", "<evil>"), backend="llvm")
        f.function.__qualname__ = evil
        f(np.ones(2))
        for value in (f, f.graphs[0], f.entries[0].kernels[0], tcompile.explain(f)(np.ones(2))):
            bundle = value._repr_mimebundle_()
            ElementTree.fromstring(bundle["text/html"])
            assert "<script" not in bundle["text/html"] and "\x1b" not in bundle["text/plain"]


@pytest.mark.parametrize(
    ("text", "expected"), [("a\x1b[1;31mb\x1b[0m", "ab"), ("\x1b]8;;http://x\x07y", "y"), ("a\x00\rb", "a��b")]
)
def test_terminal_codes_are_taken_out(text, expected):
    assert html.printable(text) == expected


def test_large_graphs_are_not_drawn():
    graph = tcompile.graph.Graph("g")
    x = graph.input("x", tcompile.graph.TensorType(np.dtype("f8"), (2,)))
    last = x
    for _ in range(2100):
        last = graph.append(ops.ADD, (last, 1.0), {}, x.type)
    graph.outputs = [last]
    bundle = graph._repr_mimebundle_()
    data = bundle["application/vnd.tcompile.graph+json"]
    assert "not drawn here" in bundle["text/html"] and "image/svg+xml" not in bundle
    assert data["ops"] == 2100 and len(data["nodes"]) == 2000
