"""What is seen in Notebook 7, nbclassic, marimo, and in pages that take HTML alone, as VS Code and Colab do."""

from __future__ import annotations

import importlib.util
import os

import nbformat
import pytest
from front_ends import CELLS, MORE, shown

from tests.ui.conftest import PICTURES
from tests.ui.extension import bars, marked
from tests.ui.front_ends import Marimo, classic, drawings, faint, watched


def installed(package):
    """Skips where the front end is not installed, except where the tests in the browser may not be skipped."""
    if importlib.util.find_spec(package) is None:
        lacking = pytest.fail if os.environ.get("TCOMPILE_UI") else pytest.skip
        lacking(f"the package {package} is not installed: pip install 'tcompile[ui]'")


@pytest.fixture
def pictures():
    PICTURES.mkdir(parents=True, exist_ok=True)
    return PICTURES


# -- Notebook 7: JupyterLab's parts, the extension among them ------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_notebook_7(lab, theme, extension, pictures):
    installed("notebook")
    with lab(CELLS, theme=theme, height=5000, at="notebooks") as page:
        page.run()
        marked(page, count=5)  # of the function, and of the call below it
        assert bars(page, 1) == ["captured", "broken", "captured", "captured", "captured"]
        page.wait_for_selector(".tc-badge")
        assert "1 break" in page.locator(".tc-badge").first.inner_text().replace("\n", " ")
        page.wait_for_selector(".tcw-panel [data-node=sum]")
        assert page.locator(".tc-stance").first.is_visible()
        assert drawings(page) >= 4
        assert faint(page) == []
        page.picture(f"notebook7-{theme}")
        page.command("tcompile:panel")
        page.wait_for_selector(".tc-panel .tc-tabs")
        part = {"x": 0, "y": 0, "width": 1100, "height": 900}
        page.page.screenshot(path=str(pictures / f"notebook7-panel-{theme}.png"), clip=part)


# -- nbclassic: HTML and widgets; it has one theme -----------------------------------------------------------


def test_nbclassic(browser, server, pictures):
    installed("nbclassic")
    cells = [nbformat.v4.new_code_cell(cell) for cell in (*CELLS[:-1], "tj.StanceToggle()", CELLS[-1])]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "python3"}}
    with classic(browser, server.write(notebook, "classic.ipynb", "nbclassic/notebooks")) as (page, outside):
        # A board of many widgets is sometimes not drawn on a busy machine; its picture then stands there.
        page.wait_for_function("() => document.querySelectorAll('.tcw-panel, img[alt^=graph]').length")
        text = page.locator("#notebook-container").inner_text()
        assert "A branch depends on an array's value" in text and "as captured, as a listing" in text
        assert drawings(page) >= 3
        fold = page.locator("div.tcompile summary").first
        assert fold.evaluate("one => getComputedStyle(one).display") == "list-item"  # its triangle is seen
        assert faint(page) == []
        page.locator("button", has_text="force_eager").first.click()
        page.wait_for_selector("button.mod-active >> text=force_eager")
        page.locator("#notebook-container").screenshot(path=str(pictures / "nbclassic.png"))
        assert outside == []


# -- marimo: no magics and no Jupyter widgets; displays and pictures -----------------------------------------

SETUP = "import numpy as np\nimport tcompile\nimport tcompile_jupyter as tj"
FUNCTION = CELLS[1].replace("%%tcompile --graph\n", "@tcompile.compile\n")


@pytest.fixture(scope="module")
def marimo(tmp_path_factory):
    installed("marimo")
    cells = [SETUP, FUNCTION, *CELLS[2:8], MORE[1], MORE[3], MORE[5], CELLS[-1]]
    made = Marimo(tmp_path_factory.mktemp("marimo"), cells)
    try:
        made.wait(180)
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_marimo(browser, marimo, theme, pictures):
    context = browser.new_context(viewport={"width": 1100, "height": 6000}, color_scheme=theme)
    context.set_default_timeout(180_000)  # the page is heavy: on a busy machine it takes a minute
    page, outside = watched(context)
    try:
        page.goto(marimo.address)
        page.wait_for_function("() => document.querySelectorAll('.output-area div.tcompile').length >= 7")
        page.wait_for_selector("text=marimo shows no Jupyter widgets >> nth=2")
        page.wait_for_timeout(300)
        text = page.locator("body").inner_text()
        assert "A branch depends on an array's value" in text and "compiled steps cell " in text
        assert "not supported in marimo" not in text
        assert drawings(page) >= 3
        assert faint(page) == []
        ground = page.locator(".tc-graph .bg").first.evaluate("one => getComputedStyle(one).fill")
        assert ground == ("rgb(255, 255, 255)" if theme == "light" else "rgb(17, 20, 24)")
        page.screenshot(path=str(pictures / f"marimo-{theme}.png"))
        top = page.locator(".marimo-cell", has_text="compiled steps").first.bounding_box()["y"]
        part = {"x": 190, "y": top - 20, "width": 750, "height": 1080}
        page.screenshot(path=str(pictures / f"marimo-part-{theme}.png"), clip=part)
        assert not [url for url in outside if "marimo" not in url]
    finally:
        context.close()


# -- pages that take HTML alone, and let it load and run nothing ---------------------------------------------

# As VS Code has it, its colours given as variables; as Colab has it, in a frame of one scheme; and a bare page.
STYLES = {
    "vscode-light": "body { --vscode-editor-background: #fff; --vscode-editor-foreground: #3b3b3b;"
                    " background: #fff; color: #3b3b3b; font: 13px sans-serif }",
    "vscode-dark": "body { --vscode-editor-background: #1f1f1f; --vscode-editor-foreground: #ccc;"
                   " background: #1f1f1f; color: #ccc; font: 13px sans-serif }",
    "colab-light": "html { color-scheme: light }"
                   " body { background: #fff; color: #212121; font: 14px Roboto, sans-serif }",
    "colab-dark": "html { color-scheme: dark }"
                  " body { background: #383838; color: #d5d5d5; font: 14px Roboto, sans-serif }",
    "bare": "body { background: #fff }",
}  # fmt: skip
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@pytest.mark.parametrize("style", STYLES)
def test_html_alone(browser, style, pictures):
    context = browser.new_context(viewport={"width": 900, "height": 6000}, color_scheme="dark")
    page, outside = watched(context)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    body = "".join(f"<div>{data['text/html']}</div>" for _, data in shown())
    try:
        page.set_content(
            f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            f"<style>{STYLES[style]}</style>{body}"
        )
        assert "A branch depends on an array's value" in page.locator("body").inner_text()
        assert drawings(page) >= 5
        assert faint(page) == []
        page.screenshot(path=str(pictures / f"html-{style}.png"), full_page=True)
        assert outside == said == []
    finally:
        context.close()


def test_what_can_hardly_be_read_is_found(browser):
    context = browser.new_context()
    page = context.new_page()
    try:
        page.set_content(
            '<div style="background:#222">'
            '<div class="tcompile">dark on dark <b style="color:#888">grey on dark</b></div>'
            '<div class="tcompile" style="opacity:.2;color:#fff">pale</div>'
            '<div class="tcompile" style="background:#ffffffe0">dark on light</div></div>'
        )
        found = faint(page)
        assert [line.partition(": ")[2] for line in found] == ["dark on dark", "pale"]
    finally:
        context.close()
