"""Every display of a cell shows the same numbers: report, watch line, badge, panel, ``explain``, status, events."""

from __future__ import annotations

import re

import pytest
from tcompile_jupyter.feed import feed
from tcompile_jupyter.panel import Pages

from tcompile.debug import profile
from tcompile.observe import bus
from tcompile.observe.events import CompileFinished, GraphBroke, GraphCaptured, RecompileStarted
from tcompile.runtime.cache import caches
from tests.jupyter.test_panel import Comm

WHOLE = "def f(x):\n    return np.sin(x) * 2 + 1\n"
BREAKS = "def f(x):\n    y = x * 2\n    print(end='')\n    return y + 1\n"
BRANCH = "def f(x):\n    if x.sum() > 0:\n        return x * 2\n    return x - 1\n"
CALLS = "def inner(x):\n    return x + 1\n\ndef f(x):\n    return inner(x) * 2\n"
TWICE = "def g(x):\n    print(end='')\n    return x - 1\n\ndef f(x):\n    return g(x) * 2 + g(x + 1)\n"
LIBRARY = "def f(x):\n    return np.linalg.svd(x.reshape(2, -1))[1].sum() + np.stack([x, x]).sum()\n"
LOOP = "def f(x):\n    for i in range(5):\n        x = x * 0.5 + i\n    return x\n"
PLAIN = "def f(x):\n    return str(x)\n"
GENERATOR = "def f(x):\n    yield x + 1\n"
CALL, SIZES = "y = f(np.ones(6))\n", "for n in 4, 5, 6, 7:\n    y = f(np.ones(n))\n"

CELLS = {
    "one graph": [WHOLE + CALL],
    "not called": [WHOLE],
    "called later": [WHOLE, CALL],
    "called twice": [WHOLE + CALL + CALL],
    "called in several cells": [WHOLE, CALL, "z = f(np.ones((2, 3)))", CALL, "w = f(np.ones(3, 'f4'))"],
    "run again": [WHOLE + CALL, WHOLE + CALL],
    "edited": [WHOLE + CALL, WHOLE.replace("sin", "cos") + CALL],
    "a break": [BREAKS + CALL],
    "a break, run again": [BREAKS + CALL, BREAKS + CALL],
    "a branch": [BRANCH + CALL + "z = f(-np.ones(6))\n"],
    "nested calls": [CALLS + CALL],
    "a called function that breaks": [TWICE + CALL],
    "library calls": [LIBRARY + CALL],
    "a loop": [LOOP + CALL],
    "plain Python": [PLAIN + CALL],
    "a generator": [GENERATOR + "y = list(f(np.ones(3)))"],
    "sizes": [WHOLE + SIZES],
    "sizes and a break": [BREAKS + SIZES],
    "statements": ["x = np.ones(4) * 2 + 1\n"],
    "statements that break": ["x = np.ones(4) * 2\nprint(end='')\ny = x + 1\nif y.sum() > 3:\n    z = y * 2\n"],
    "statements between functions": [f"a = np.ones(6) + 1\n{WHOLE}b = f(a) * 3\n", f"{CALLS}c = f(b) - a\n"],
    "an error in a function": ["def f(x):\n    y = x + 1\n    raise ValueError(y.sum())\n", CALL],
    "an error after a graph": [WHOLE + CALL + "1 / 0\n"],
    "no array work": ["import json\nx = json.dumps([1])\n"],
    "an expression": [WHOLE + "f(np.ones(3))"],
    "two functions": [WHOLE + BREAKS.replace("f(", "g(") + CALL + "z = g(y)\n"],
    "a class": ["class A:\n    def m(self, x):\n        return x + 1\n\ny = A().m(np.ones(3)) * 2\n"],
    "recompiles of several guards": [WHOLE + "y = f(np.ones(3)), f(np.ones((3, 2))), f(np.ones(3, 'f4'))\n"],
    "a loop that prints": ["x = np.ones(5)\nfor i in range(4):\n    x = x * 2 + i\n    print(end='')\n"],
    "a lambda": ["h = lambda x: x * 2\ny = h(np.ones(3)) + 1\n"],
}  # fmt: skip
OPTIONS = ["", "--compare", "--each", "--profile", "--explain", "--graph", "--time", "--quiet"]


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(profile, "SECONDS", 0.0)


@pytest.fixture
def page(notebook):
    pages = Pages(notebook.shell.user_ns)
    notebook.shell.events.register("pre_run_cell", pages.begins)
    comm = Comm()
    pages.connect(comm, None)
    comm.ask("listen")
    comm.news()
    yield comm
    notebook.shell.events.unregister("pre_run_cell", pages.begins)
    for one in tuple(pages.open):
        pages.drop(one)


def numbers():
    return {cache.number for cache in caches()}


def run(notebook, page, text):
    """Runs a cell; returns the counts of the events, the page's summaries and functions, and the output."""
    events, before = [], numbers()
    stop = bus.subscribe(events.append)
    ran = notebook(text, fails=None)
    stop()
    feed.flush()
    summaries, functions, alive = {}, {}, set()
    for news in page.news():
        summaries |= news["summaries"]
        functions |= {state["number"]: state for state in news["functions"]}
        alive = set(news["alive"])
        assert before & numbers() <= alive, "forgotten by the panel"
    functions = {number: state for number, state in functions.items() if number in alive}
    return counted(events), [one for one in summaries.values() if any(one[name] for name in NAMES)], functions, ran


NAMES = "graphs", "operations", "kernels", "breaks", "recompiles"


def counted(events):
    """The counts of the events of a cell, comparisons left out."""
    events = [event for event in events if event.cell is not None]
    graphs = [event for event in events if isinstance(event, GraphCaptured)]
    breaks = {
        (event.function, event.reason, event.where, event.headline)
        for event in events
        if isinstance(event, GraphBroke) and event.function != "<cell>"
    }
    kernels = sum(event.kernels for event in events if isinstance(event, CompileFinished))
    recompiles = sum(isinstance(event, RecompileStarted) for event in events)
    return dict(zip(NAMES, (len(graphs), sum(e.ops for e in graphs), kernels, len(breaks), recompiles), strict=True))


def number(text, word):
    """The number before a word in a text; 0 where the word is missing."""
    found = re.search(rf"(\d+) {word}s?\b(?! break)", text)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", CELLS)
def test_report_badge_and_panel(notebook, page, name, option):
    if name == "a class" and option in ("--compare", "--each", "--time"):
        pytest.skip("each repetition defines a new class, for which its callers are compiled anew")
    for text in CELLS[name]:
        counts, summaries, functions, ran = run(notebook, page, f"%%tcompile {option}\n{text}")
        assert [{name: one[name] for name in NAMES} for one in summaries] == ([counts] if any(counts.values()) else [])
        states = [state["view"] for state in functions.values()]
        compiled = [view["name"] for view in states]
        assert len(compiled) == len({(view["name"], view["where"]["line"]) for view in states}), "listed twice"
        if option != "--quiet" and ran.reports:
            (report,) = ran.reports
            data = report.data["application/vnd.tcompile.report+json"]
            agrees(data, report.data["text/plain"], counts)


def agrees(data, text, counts):
    """Checks a report against the counts."""
    sums = {
        "graphs": sum(len(function["graphs"]) for function in data["functions"]),
        "operations": sum(graph["ops"] for function in data["functions"] for graph in function["graphs"]),
        "kernels": sum(function["kernels"] for function in data["functions"]),
        "breaks": sum(len(function["breaks"]) for function in data["functions"]),
        "recompiles": sum(len(function["recompiles"]) for function in data["functions"]),
    }
    assert sums == counts
    headline = data["headline"]
    assert (number(headline, "graph"), number(headline, "kernel")) == (counts["graphs"], counts["kernels"])
    table = text.partition("\n\n")[0]  # what follows are the explanations
    lines = [line for line in table.splitlines()[1:] if re.match(r"  \S.*: \d+ graph", line)]
    for word in "graph", "kernel", "break", "recompile":
        assert sum(number(line.rpartition(": ")[2], word) for line in lines) == counts[f"{word}s"]
    explained = re.findall(r"^.+: (\d+) graphs?, (\d+) graph breaks?, (\d+) ops?$", text, re.MULTILINE)
    if explained:
        assert [sum(map(int, column)) for column in zip(*explained, strict=True)] == [
            counts["graphs"], counts["breaks"], counts["operations"],
        ]  # fmt: skip
    plain = data["plain_statements"]
    assert number(text, "statement") == len(plain) and all(broke["stack"][0]["line"] for broke in plain)


DECORATED = [
    [WHOLE + CALL],
    [BREAKS + CALL, "y = f(np.ones((2, 2)))"],
    [BRANCH + CALL, CALL + "z = f(-np.ones(6))\n"],
    [WHOLE + SIZES, SIZES],
    [WHOLE + "y = f(np.ones(3)), f(np.ones((3, 2))), f(np.ones(3, 'f4')), f(np.ones((3, 2, 1)))\n"],
    [PLAIN + CALL],
]


@pytest.mark.parametrize("cells", DECORATED)
def test_watch_line_badge_and_status(notebook, page, cells):
    notebook("import tcompile")
    notebook("%tcompile watch")
    try:
        graphs = recompiles = 0
        for text in cells:
            text = text.replace("def f", "@tcompile.compile\ndef f")
            counts, summaries, _, ran = run(notebook, page, text)
            assert [{name: one[name] for name in NAMES} for one in summaries] == (
                [counts] if any(counts.values()) else []
            )
            if counts["graphs"] or counts["breaks"]:
                line = ran.text
                shown = [number(line, word) for word in ("graph", "kernel", "graph break", "recompile")]
                assert shown == [counts[name] for name in ("graphs", "kernels", "breaks", "recompiles")]
            graphs, recompiles = graphs + counts["graphs"], recompiles + counts["recompiles"]
            row = next(line.split() for line in str(notebook("%tcompile").value).splitlines() if line.startswith("f "))
            assert [int(row[2]), int(row[4])] == [graphs, recompiles]
    finally:
        notebook("%tcompile watch off")
