"""Writes the pictures of the widgets in docs/pictures, as JupyterLab shows them, in both themes.

Input: the cells below.
Output: a PNG for each widget, light and dark.
Why: the pictures show the actual widgets; run it when a widget has changed. Needs the extra ``ui`` and a Chromium on
the machine.

    python tools/write_widget_pictures.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.ui.lab import THEMES, Server, browser_path, opened  # noqa: E402

SETUP = """%load_ext tcompile
import numpy as np, tcompile, tcompile_jupyter as tj

@tcompile.compile
def blend(x, y, weight):
    return weight * x + (1 - weight) * y

@tcompile.compile
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

for n in (100, 200):
    softmax(np.ones((n, 50)))
    blend(np.ones(n), np.ones(n), 0.5)
blend(np.ones((2, 2)), np.ones((2, 2)), 0.5)
softmax(np.ones((10, 50), np.float32))
board = tj.dashboard()"""
PLOT = """plot = tj.SpeedupPlot(softmax, make=lambda n: np.ones((n, 50)), sizes=(2, 10, 100, 1000), budget=2)
plot"""


def main() -> None:
    """The command."""
    server = Server(Path(tempfile.mkdtemp()))
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu"])
            server.wait()
            for theme in THEMES:
                server.theme(theme)
                write(browser, server, theme)
    finally:
        server.close()


def write(browser: Any, server: Server, theme: str) -> None:
    """The pictures in one theme."""
    cells = [SETUP, "board", PLOT, "plot.wait();"]
    with opened(browser, server, cells, f"{theme}.ipynb", ROOT / "docs" / "pictures", height=2600) as page:
        page.run()
        page.wait_for_selector("[data-node=max]")
        page.locator("[data-node=exp]").click()
        page.wait_for_selector("text=Measure again")
        page.page.wait_for_timeout(1000)
        for number, name in ((1, "dashboard"), (2, "speedup")):
            path = page.pictures / f"{name}-{theme}.png"
            page.locator(".jp-CodeCell").nth(number).locator(".jp-OutputArea-output").first.screenshot(path=str(path))
            print(path)


if __name__ == "__main__":
    main()
