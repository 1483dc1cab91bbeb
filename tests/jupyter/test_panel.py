"""What the kernel tells pages of JupyterLab, and how it answers them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from jupyter_client.manager import KernelManager
from tcompile_jupyter.feed import feed
from tcompile_jupyter.panel import PAGES, PROTOCOL, TARGET, Pages

import tcompile
from tcompile.observe import bus
from tcompile.observe.context import current_cell
from tcompile.observe.events import SCHEMA_VERSION

FUNCTION = """
import tcompile
@tcompile.compile
def f(x, n):
    y = np.sin(x) * 2
    print("step")
    return (y + n).sum()
"""


class Comm:
    """The page's end of a comm."""

    def __init__(self) -> None:
        self.said = []

    def on_msg(self, hears):
        self.hears = hears

    def on_close(self, closes):
        self.closes = closes

    def send(self, data):
        self.said.append(json.loads(json.dumps(data, allow_nan=False)))

    def ask(self, ask, **more):
        """The answer to a question."""
        self.hears({"content": {"data": {"ask": ask, "question": 7, **more}}})
        (answer,) = [data for data in self.said if data["type"] == "answer"]
        self.said.remove(answer)
        assert answer["question"] == 7
        return answer

    def news(self):
        """What it was told since it was last asked."""
        told, self.said = [data for data in self.said if data["type"] == "news"], []
        return told


@pytest.fixture
def pages(notebook):
    made = Pages(notebook.shell.user_ns)
    yield made
    for page in tuple(made.open):
        made.drop(page)


@pytest.fixture
def page(pages):
    comm = Comm()
    pages.connect(comm, None)
    return comm


def test_a_page_is_told_what_was_and_what_happens(notebook, page):
    tcompile.reset()
    notebook.shell.run_cell(FUNCTION + "f(np.ones(5), 1)", True, cell_id="abc")
    assert page.ask("listen")["error"] == ""
    (first,) = page.news()
    assert (first["protocol"], first["schema"], first["whole"]) == (PROTOCOL, SCHEMA_VERSION, True)
    assert {"graph_captured", "graph_broke"} <= {event["kind"] for event in first["events"]}
    assert first["stance"] == "default" and "force_eager" in first["stances"]
    (state,) = first["functions"]
    assert first["alive"] == [state["number"]]
    marks = {mark["text"]: mark for mark in state["marks"]}
    assert {text: mark["state"] for text, mark in marks.items()} == {
        "y = np.sin(x) * 2": "captured", 'print("step")': "broken", "return (y + n).sum()": "captured",
    }  # fmt: skip
    assert first["cells"] == {marks["y = np.sin(x) * 2"]["file"]: "abc"}
    broken = marks['print("step")']
    assert broken["reason"] == "input-output" and broken["hints"] and broken["line"] == 5
    notebook.shell.run_cell("f(np.ones((5, 2)), 1)", True, cell_id="def")
    feed.flush()
    events = [event for told in page.news() for event in told["events"]]
    assert "guard_failed" in {event["kind"] for event in events}
    own = [event for event in events if event["function"] == "f"]
    assert {event["cell"] for event in own} == {"def"} and {event["defined_in"] for event in own} == {"abc"}


def test_guard_failures_are_remembered_for_pages_that_come_later(notebook, page):
    notebook(FUNCTION + "f(np.ones(5), 1)\nf(np.ones(6), 1)")
    page.ask("listen")
    (first,) = page.news()
    assert "guard_failed" in {event["kind"] for event in first["events"]}


def test_events_that_wait_for_other_readers_count_once(notebook, page):
    """They are in the history as well, when a page connects."""
    close = feed.open(lambda events: None)
    try:
        token = current_cell.set("c1")
        tcompile.compile(lambda x: np.sin(x) * 2 + 1)(np.ones(100))
        current_cell.reset(token)
        page.ask("listen")
        feed.flush()
    finally:
        close()
    summaries = [told["summaries"]["c1"] for told in page.news() if "c1" in told["summaries"]]
    assert summaries and all((one["graphs"], one["kernels"]) == (1, 1) for one in summaries)


def test_nothing_is_sent_while_nothing_is_shown(notebook, page):
    page.ask("listen")
    assert bus.active()
    page.ask("quiet")
    page.said.clear()
    assert not bus.active()
    notebook(FUNCTION + "f(np.ones(5), 1)")
    feed.flush()
    assert page.said == []


def test_marks_of_a_function_that_runs_in_plain_python(notebook, page):
    tcompile.reset()
    source = "@tcompile.compile\ndef plain(x):\n    x = str(x)\n    return open(x)"
    notebook(f"import tcompile\n{source}\ntry:\n    plain('nowhere')\nexcept OSError:\n    pass")
    page.ask("listen")
    (state,) = page.news()[0]["functions"]
    assert {mark["text"]: mark["state"] for mark in state["marks"]} == {
        "x = str(x)": "plain", "return open(x)": "broken",
    }  # fmt: skip


def test_functions_defined_again_take_the_place_of_the_old_ones(notebook, page):
    tcompile.reset()
    notebook(FUNCTION + "f(np.ones(5), 1)")
    notebook(FUNCTION.replace("sin", "cos") + "f(np.ones(5), 1)")
    page.ask("listen")
    (told,) = page.news()
    assert [state["number"] for state in told["functions"]] == told["alive"] and len(told["alive"]) == 1


def test_hits_graphs_and_kernels_are_asked_for(notebook, page):
    tcompile.reset()
    notebook(FUNCTION + "for _ in range(4):\n    f(np.ones(5), 1)")
    (state,) = page.ask("functions")["functions"]
    number, entry = state["number"], state["view"]["entries"][0]
    assert entry["hits"] >= 3 and entry["graph"] is None
    graph = page.ask("graph", number=number, entry=entry["number"])["graph"]
    assert [node["op"] for node in graph["nodes"]] == ["sin", "multiply"]
    kernel = page.ask("kernel", number=number, entry=entry["number"], kernel=entry["kernels"][0])["kernel"]
    assert "define" in kernel["ir"] and kernel["assembly"]
    assert page.ask("functions")["functions"] == []  # nobody has called it since
    notebook("f(np.ones(5), 1)")
    assert page.ask("functions")["functions"][0]["view"]["entries"][0]["hits"] == entry["hits"] + 1
    tcompile.reset()
    assert "no longer exists" in page.ask("graph", number=number, entry=entry["number"])["error"]
    assert "no longer exists" in page.ask("kernel", number=number, entry=0, kernel="k")["error"]


def test_the_stance_goes_both_ways(notebook, page):
    page.ask("listen")
    try:
        assert page.ask("stance", stance="force_eager")["error"] == ""
        assert tcompile.stance.current().name == "force_eager"
        assert page.news()[-1]["stance"] == "force_eager"
        notebook("import tcompile; tcompile.set_stance('eager_then_compile')")
        feed.flush()
        assert page.news()[-1]["stance"] == "eager_then_compile"
        assert "nonsense" in page.ask("stance", stance="nonsense")["error"]
    finally:
        tcompile.set_stance("default")


def test_questions_that_are_none(page):
    for data in (None, 3, {}, {"question": "x"}):
        page.hears({"content": {"data": data}})
    assert page.said == []
    assert page.ask("nonsense")["error"]
    assert page.ask("graph", number="x", entry=None)["error"]
    assert page.ask("graph")["error"]


def test_pages_that_were_closed_without_a_word_go(pages):
    comms = [Comm() for _ in range(PAGES + 3)]
    for comm in comms:
        pages.connect(comm, None)
        comm.ask("listen")
    assert len(pages.open) == PAGES
    comms[-1].closes(None)
    assert len(pages.open) == PAGES - 1


def test_events_are_of_bearable_length(notebook, page):
    name = "x" * 5000
    notebook(f"import tcompile\n@tcompile.compile\ndef {name}(x):\n    return x + 1\n{name}(np.ones(3))")
    page.ask("listen")
    (told,) = page.news()
    assert max(len(event["function"]) for event in told["events"]) == 2000


def test_a_real_kernel():
    """The kernel says that it is there, is found by who comes later, and answers."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(extra_arguments=["--log-level=ERROR"])
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)

        def send(kind, content):
            client.shell_channel.send(client.session.msg(kind, content))

        def next_of(kind, get=client.get_iopub_msg):
            while True:
                message = get(timeout=60)
                if message["msg_type"] == kind:
                    return message["content"]

        def comms():
            send("comm_info_request", {"target_name": TARGET})
            return next_of("comm_info_reply", client.get_shell_msg)["comms"]

        assert comms() == {}
        client.execute("%load_ext tcompile")
        assert next_of("comm_open")["target_name"] == TARGET
        assert len(comms()) == 1
        send("comm_open", {"comm_id": "page", "target_name": TARGET, "data": {}})
        send("comm_msg", {"comm_id": "page", "data": {"ask": "listen", "question": 1}})
        told = [next_of("comm_msg")["data"], next_of("comm_msg")["data"]]
        assert [data["type"] for data in told] == ["news", "answer"]
        client.execute("import numpy as np" + FUNCTION + "f(np.ones(3), 1)")
        assert next_of("comm_msg")["data"]["functions"][0]["marks"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
