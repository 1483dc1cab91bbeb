"""Front ends other than JupyterLab: nbclassic, marimo, and pages that take HTML alone.

Input: notebooks.
Output: pages in which they have run, and texts of low contrast.
Why: each starts, runs and displays in its own way.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.ui.served import Served

LEAST = 2.6
"""The minimum contrast of text with its background, intentionally dimmed text included."""

# The visible colours of each text and its background. A colour may have any CSS form, and be transparent.
_FAINT = """least => {
    const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const parts = colour => {
        pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, under) => top.slice(0, 3).map((one, n) => one * top[3] + under[n] * (1 - top[3]));
    const light = rgb => rgb.map(one => one / 255)
        .map(one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
        .reduce((sum, one, n) => sum + one * [0.2126, 0.7152, 0.0722][n], 0);
    const faint = [];
    for (const root of document.querySelectorAll('div.tcompile, [class^=tc-saved], .tcw-panel')) {
        const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const at = node.parentElement;
            if (!node.data.trim() || !at.checkVisibility() || at.closest('svg, style, .tcw-tools, .tcd-zoom')) continue;
            const chain = [];
            for (let one = at; one; one = one.parentElement) chain.push(getComputedStyle(one));
            let ground = [255, 255, 255];
            for (const style of [...chain].reverse()) ground = over(parts(style.backgroundColor), ground);
            const ink = parts(chain[0].color);
            ink[3] *= chain.reduce((product, style) => product * Number(style.opacity), 1);
            const [a, b] = [light(over(ink, ground)), light(ground)].sort((x, y) => y - x);
            const contrast = (a + 0.05) / (b + 0.05);
            if (contrast < least) faint.push(`${contrast.toFixed(2)}: ${node.data.trim().slice(0, 60)}`);
        }
    }
    return faint;
}"""


def faint(page: Any) -> list[str]:
    """Returns tcompile's texts of low contrast, with their contrast."""
    found: list[str] = page.evaluate(_FAINT, LEAST)
    return found


def drawings(page: Any) -> int:
    """Returns the number of visible graphs."""
    count: int = page.evaluate(
        """() => [...document.querySelectorAll('svg, img')]
            .filter(one => (one.matches('.tc-graph, .tc-svg, img[alt^=graph]'))
                && one.checkVisibility() && one.getBoundingClientRect().height > 100).length"""
    )
    return count


def watched(context: Any) -> tuple[Any, list[str]]:
    """Returns a page, and the list of its requests to other machines."""
    page, outside = context.new_page(), []
    local = re.compile(r"(https?|wss?)://(127\.0\.0\.1|localhost)[:/]|data:|blob:|about:")
    page.on("request", lambda request: None if local.match(request.url) else outside.append(request.url))
    return page, outside


class Marimo(Served):
    """Runs a marimo server with one notebook; its theme is the browser's."""

    def __init__(self, folder: Path, cells: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"http://127.0.0.1:{free.getsockname()[1]}"
        notebook = folder / "notebook.py"
        notebook.write_text(_as_marimo(cells), encoding="utf-8")
        settings = folder / ".config" / "marimo" / "marimo.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text('[display]\ntheme = "system"\n[runtime]\nauto_instantiate = true\n', encoding="utf-8")
        env = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / ".config")}
        command = [
            sys.executable, "-m", "marimo", "--quiet", "edit", "--headless", "--no-token", "--skip-update-check",
            "--host", "127.0.0.1", "--port", self.address.rpartition(":")[2], str(notebook),
        ]  # fmt: skip
        super().__init__(command, env, folder, f"{self.address}/health")


def _as_marimo(cells: list[str]) -> str:
    """Returns the notebook as marimo's file; cells share the names of the first two."""
    names = ("np", "tcompile", "tj", "steps")
    parts = ["import marimo\n\napp = marimo.App()\n"]
    for number, cell in enumerate(cells):
        gives = names[:3] if number == 0 else names[3:] if number == 1 else ()
        takes = [name for name in names if name not in gives and re.search(rf"\b{name}\b", cell)]
        body = cell.replace("\n", "\n    ")
        returned = "".join(f"{name}, " for name in gives)
        parts.append(f"@app.cell\ndef _({', '.join(takes)}):\n    {body}\n    return {returned}\n")
    return "\n\n".join(parts)


@contextlib.contextmanager
def classic(browser: Any, address: str) -> Iterator[tuple[Any, list[str]]]:
    """Returns a page of nbclassic in which all cells have run, and its requests to other machines."""
    context = browser.new_context(viewport={"width": 1100, "height": 4000})
    context.set_default_timeout(60_000)
    page, outside = watched(context)
    try:
        page.goto(address)
        page.wait_for_function(
            "() => window.Jupyter?.notebook?._fully_loaded && Jupyter.notebook.kernel?.is_connected()"
        )
        # nbclassic may lose a widget that the kernel makes before the manager of widgets has asked for those there.
        page.wait_for_function("() => Jupyter.notebook.kernel.widget_manager")
        page.evaluate("() => Jupyter.notebook.kernel.widget_manager._loadFromKernel().then(() => true)")
        page.evaluate("() => Jupyter.notebook.execute_all_cells()")
        page.wait_for_function("() => Jupyter.notebook.get_cells().every(cell => Number(cell.input_prompt_number))")
        yield page, outside
    finally:
        with contextlib.suppress(Exception):
            page.evaluate("() => Jupyter.notebook.session.delete()")
        context.close()
