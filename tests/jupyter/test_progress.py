"""A compile that takes longer than a moment says what it is at."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from tcompile_jupyter import progress

import tcompile
from tcompile.observe import context
from tcompile.observe.context import Work


class Seen:
    """A screen that keeps what it is shown."""

    def __init__(self):
        self.shown, self.ended = [], []

    def show(self, work, seconds):
        self.shown.append(progress.line(work, seconds))

    def end(self, work, seconds):
        self.ended.append((work.function, seconds))


@pytest.fixture
def screen(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setattr(progress, "_RENEWED", 0.02)
    seen = Seen()
    made = progress.Progress(seen)
    forget = context.follow(made.begins, made.ends)
    yield seen
    forget()
    made.close()


def until(true):
    end = time.monotonic() + 10
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    assert true()


def test_an_interrupt_as_a_compile_begins_leaves_nothing():
    def interrupt():
        raise KeyboardInterrupt

    before = context.running()
    forget = context.follow(interrupt, lambda work: None)
    with pytest.raises(KeyboardInterrupt), context.compiling("f", "0/0"):
        pass
    forget()
    assert context.running() == before and context.function() == ""


def test_a_slow_backend_is_told_of(screen):
    before = context.running()

    def slow(graph, example_inputs):
        until(lambda: len(screen.shown) >= 2)
        return graph

    def f(x):
        return np.sin(x) + 1

    tcompile.compile(f, backend=slow)(np.ones(3))
    assert screen.ended  # at once, before the cell goes on
    assert all("f: making machine code (4 of 5)" in line for line in screen.shown)
    assert screen.ended[0][0].endswith("f") and context.running() == before


def test_a_quick_compile_is_not(screen):
    with context.compiling("quick", "0/0"):
        pass
    time.sleep(0.2)
    assert not screen.shown and not screen.ended


def test_a_compile_that_fails_ends_too(screen):
    with pytest.raises(KeyError), context.compiling("broken", "0/0"):
        context.enter("capture", lambda: "7 instructions followed")
        until(lambda: screen.shown)
        raise KeyError
    assert screen.ended
    assert "following the bytecode (2 of 5), 7 instructions followed" in screen.shown[0]


def test_capture_counts_its_instructions():
    counts = []

    before = context.enter

    def enter(phase, count=None):
        if count is not None:
            counts.append(count)
        before(phase, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tcompile.capture.entry.driver.enter", enter)
        tcompile.compile(lambda x: x + 1, backend="eager")(np.ones(3))
    assert counts and counts[0]() == ""  # nothing of a capture is kept once it is done


def test_hostile_names():
    work = Work("<script>\x1b[31m" + "x" * 10_000, phase="<b>", count=lambda: "<i>")
    assert "\x1b" not in progress.line(work, 1.0) and len(progress.line(work, 1.0)) < 300
    ElementTree.fromstring(progress.as_html(work, 1.0))


def test_what_a_notebook_shows(notebook):
    from IPython.utils.capture import capture_output

    screen = progress.Notebook()
    with capture_output() as captured:
        screen.show(Work("f", phase="capture"), 0.7)
        screen.show(Work("f", phase="backend"), 0.9)
        screen.end(Work("f"), 1.2)
    first, *renewed, last = captured.outputs
    assert "following the bytecode" in first.data["text/plain"] and len(renewed) == 1
    assert last.data["text/plain"] == "compiled f in 1.2 s"
