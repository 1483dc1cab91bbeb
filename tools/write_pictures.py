"""Writes the pictures in docs/pictures: cells of a notebook with their displays, in both themes.

Input: the cells below.
Output: a PNG for each that has a name, light and dark.
Why: the pictures show the actual displays; run it when a display has changed. Needs playwright and a Chromium on the
machine.

    python tools/write_pictures.py

The pictures of front ends are those of the browser tests: ``make test-ui`` first.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from tcompile_jupyter.progress import METADATA

os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # the kernel of this environment
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH = 940
KEPT = FOLDER.parent.parent / "build" / "screenshots"
COPIED = {"jupyterlab": "labextension-graph", "notebook7": "notebook7-panel", "marimo": "marimo-part"}

CELLS: tuple[tuple[str, str], ...] = (
    (
        "",
        """%load_ext tcompile
import numpy as np
import tcompile
rng = np.random.default_rng(0)
image = rng.random((1500, 1500))""",
    ),
    (
        "report",
        """%%tcompile --compare
def step(u, rate):
    change = u[:-2] - 2 * u[1:-1] + u[2:]
    print("largest change", np.abs(change).max().round(3))
    u = np.tanh(u[1:-1] + rate * change)
    return (u - u.mean()) / u.std()

u = step(rng.random(1_000_000), 0.1)""",
    ),
    ("function", "u = step(rng.random(500_000), 0.1)\nstep"),
    ("", "%tcompile watch"),
    (
        "line",
        """@tcompile.compile
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

p = softmax(rng.random((2000, 1000)))""",
    ),
    ("graph", "softmax.graphs[0]"),
    ("kernel", "softmax.entries[0].kernels[0]"),
    (
        "each",
        """%%tcompile --each
bright = np.clip(image * 1.3 - 0.1, 0, 1) ** 2.2
edges = np.hypot(bright[1:, 1:] - bright[:-1, 1:], bright[1:, 1:] - bright[1:, :-1])
edges = np.sqrt(edges / edges.max())
edges.mean()""",
    ),
    ("", "signal = rng.random(200_000)"),
    (
        "time",
        """%%tcompile --time
smooth = signal
for _ in range(4):
    smooth = (smooth + np.roll(smooth, 1)) * 0.5
level = np.median(smooth)
bright = np.tanh(smooth - level) ** 2
names = " ".join([str(n) for n in range(3000)])
bright.mean(), len(names)""",
    ),
)


def executed(cells: tuple[tuple[str, str], ...] = CELLS) -> nbformat.NotebookNode:
    """The notebook, run."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for _, text in cells])
    NotebookClient(notebook, timeout=300, kernel_name="python3", extra_arguments=["--log-level=ERROR"]).execute()
    for cell in notebook.cells:  # the pictures must not show the long compiles of a busy machine
        cell.outputs = [output for output in cell.outputs if output.get("metadata") != METADATA]
    return notebook


def main() -> int:
    """The command; returns its exit status."""
    browser_path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        browser_path = None
    if browser_path is None:
        print("this needs playwright (pip install playwright) and a Chromium", file=sys.stderr)
        return 1
    notebook = executed()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        for name, test in COPIED.items():
            if (kept := KEPT / f"{test}-{theme}.png").exists():
                shutil.copy(kept, FOLDER / f"{name}-{theme}.png")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            text, _ = HTMLExporter(theme=theme).from_notebook_node(notebook)
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme=theme)
            # resources that the exporter would fetch are not needed
            page.route("http*://**", lambda route: route.abort())
            page.set_content(text, wait_until="domcontentloaded")
            page.add_style_tag(content="body{padding:0 8px!important}.jp-Cell{padding:6px 0 2px!important}")
            for (name, _), cell in zip(CELLS, page.locator(".jp-CodeCell").all(), strict=True):
                if name:
                    cell.screenshot(path=str(FOLDER / f"{name}-{theme}.png"))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
