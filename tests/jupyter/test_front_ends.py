"""Displays need nothing of a front end but HTML: no scripts, no files, no messages from the kernel, no colours."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from front_ends import CELLS, MORE, needs, outputs, shown

import tcompile
from tcompile.observe.html_form import html_form
from tcompile.observe.source_location import file_label

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize(
    ("html", "asked"),
    [
        ("<p style='color:var(--x,red)'>", 0),
        ("<style>a{--x:red;color:var(--x)}</style>", 0),
        ("<img src='data:image/png;base64,AA'>", 0),
        ("<p style='color:var(--x)'>", 1),
        ("<img src=https://example.org/a.png>", 1),
        ("<style>@import 'a.css'</style>", 1),
        ("<p style='background:url(a.png)'>", 1),
        ("<script>1</script>", 1),
        ("<p onclick='1'>", 1),
    ],
)
def test_what_html_needs_is_seen(html, asked):
    assert len(needs(html)) == asked


def test_every_display_is_html_and_text_alone():
    displays = shown()
    cells = [cell for cell, _ in displays]
    assert all(cell in cells for cell in (*CELLS[1:], *MORE))
    for cell, data in displays:
        assert not needs(data["text/html"]), cell
        assert data["text/plain"].strip() and "<div" not in data["text/plain"], cell


def test_under_each_widget_stands_a_picture():
    views = [n for n, (_, data) in enumerate(outputs()) if "application/vnd.jupyter.widget-view+json" in data]
    assert len(views) >= 5
    for n in views:
        cell, under = outputs()[n + 1]
        assert cell == outputs()[n][0] and "tc-saved-" in under["text/html"]


def test_pages_that_take_no_bundle_take_html():
    f = tcompile.compile(lambda x: np.exp(x) + 1, backend="llvm")
    f(np.ones(4))
    for one in (f, f.graphs[0], f.entries[0].kernels[0], tcompile.explain(f)(np.ones(4))):
        assert one._repr_html_() == html_form(one)
        assert "<style>" in one._repr_html_() and " hidden=" not in one._repr_html_()
    assert " hidden=" in f.graphs[0]._repr_mimebundle_()["text/html"]


def test_whatever_class_has_a_bundle_has_an_html_form():
    for path in (*ROOT.glob("tcompile/**/*.py"), *ROOT.glob("jupyter_ext/**/*.py")):
        text = path.read_text(encoding="utf-8")
        bundled = len(re.findall(r"^    def _repr_mimebundle_\(.*:$", text, flags=re.MULTILINE))
        assert bundled == text.count("    _repr_html_ = html_form\n"), path


def test_a_cell_of_marimo_is_named_as_a_cell():
    assert file_label("/tmp/marimo_24395/__marimo__cell_MJUe_.py") == "cell MJUe"
    assert file_label("/tmp/__marimo__cell.py") == "/tmp/__marimo__cell.py"


def test_marimo_gets_the_picture_of_a_widget():
    pytest.importorskip("anywidget")
    import tcompile_jupyter as tj

    f = tcompile.compile(lambda x: np.exp(x) + 1)
    f(np.ones(4))
    made = tj.SpeedupPlot(f, np.ones(100), budget=0)
    try:
        html = made._display_()._repr_html_()
        assert ", compiled " in html and "marimo shows no Jupyter widgets" in html and not needs(html)
    finally:
        made.close()
    assert "marimo" not in sys.modules
