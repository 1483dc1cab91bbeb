"""What a report says of the time of a slow cell, by samples of its run."""

from __future__ import annotations

import threading

import pytest
from tcompile_jupyter import spent

MIME = "application/vnd.tcompile.report+json"


def report(ran):
    """The data of a cell's report, its text and its HTML."""
    (found,) = (one.data for one in ran.displayed if MIME in one.data)
    return found[MIME], found["text/plain"], found["text/html"]


SLOW = """%%tcompile
def work(x):
    y = np.sin(x) * 2
    print("on")
    words = sorted(map(str, x.tolist()))
    return y + len(words)

z = work(np.linspace(0, 1, 300_000))"""


def test_lines_in_plain_python_are_ranked(notebook):
    data, text, html = report(notebook(SLOW))
    found = data["spent"]
    assert found["ms"] > found["plain_ms"] > 40
    parts = [found[key] for key in ("plain_ms", "compiled_ms", "compiling_ms", "loading_ms")]
    assert min(parts) >= 0 and sum(parts) <= 1.001 * found["ms"]
    line = next(cause for cause in found["causes"] if cause["kind"] == "plain")
    assert line["code"] == "words = sorted(map(str, x.tolist()))" and line["text"].startswith("runs in plain Python: ")
    assert [cause["ms"] for cause in found["causes"]] == sorted((one["ms"] for one in found["causes"]), reverse=True)
    for form in (text, html):
        assert "why not faster?" in form and "plain Python" in form.partition("took ")[2]


@pytest.mark.parametrize("cell", ["%%tcompile\ny = np.ones(3) + 1", "%%tcompile --quiet\ny = np.ones(3) + 1"])
def test_quick_cells_have_no_such_list(notebook, cell):
    for output in notebook(cell).displayed:
        assert MIME not in output.data or output.data[MIME]["spent"] is None
        assert "took" not in output.data["text/plain"]


def test_threads_end_with_the_cell(notebook):
    notebook("%%tcompile\nimport time\ntime.sleep(0.05)\n1 / 0", fails=True)
    notebook("%%tcompile\ntime.sleep(0.05)")
    assert not [thread for thread in threading.enumerate() if thread.name == "tcompile profile"]


def test_a_wait_counts_for_its_line(notebook, monkeypatch):
    monkeypatch.setattr(spent, "SLOW_MS", 50.0)
    data, *_ = report(notebook("%%tcompile\nimport time\nw = 1\ntime.sleep(0.4)\nw = np.ones(5) + 1"))
    cause = next(one for one in data["spent"]["causes"] if one["kind"] == "plain")
    assert cause["code"] == "time.sleep(0.4)" and cause["ms"] > 200
