"""What the JupyterLab extension costs a page, measured in the browser.

Enters: nothing. Leaves: ``build/labextension.json`` with milliseconds from the end of a cell's run to its marks and its
badge; the longest frame and the growth of the page's memory while 1,000 compiles a minute go by; the first drawing of
graphs of 50 and of 2,000 operations. Needs the extra ``ui`` and a Chromium; a minute and a half.

    python -m benchmarks.labextension
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.ui.lab import Server, browser_path, opened

OUT = Path(__file__).resolve().parent.parent / "build" / "labextension.json"
SETUP = "%load_ext tcompile\nimport numpy as np, time, tcompile"
FUNCTION = "@tcompile.compile\ndef f(x):\n    y = np.sin(x)\n    print('step')\n    return y * 2\n\nf(np.ones(5))"
MANY = """
def once(n):
    names = {"np": np}
    exec(f"def f{n}(x):\\n    y = x * {n}\\n    return (y + 1).sum()", names)
    tcompile.compile(names[f"f{n}"])(np.ones(5))

for n in range(1000):
    start = time.perf_counter()
    once(n)
    time.sleep(max(0, 0.06 - (time.perf_counter() - start)))
"""
GRAPH = """
from tcompile.observe.display.graphs import GraphView, NodeView
nodes = [NodeView(name=f"n{{i}}", op="add", sort="pointwise", type="f64[5]", kernel=f"k{{i // 40}}",
                  inputs=(f"n{{i - 1}}", f"n{{i * 7 // 11}}") if i else ()) for i in range({count})]
GraphView(name="made", ops={count}, nodes=tuple(nodes), outputs=("n{last}",),
          kernels=tuple(dict.fromkeys(node.kernel for node in nodes)))
"""
# From the message that says that the kernel is idle after the cell, to the first frame with marks and badge.
_MARKS = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    const seen = () => document.querySelectorAll('.tc-gutter .tc-bar').length && document.querySelector('.tc-badge');
    panel.content.activeCellIndex = 1;
    await window.jupyterapp.commands.execute('notebook:run-cell');
    const end = performance.now();
    while (!seen()) { await new Promise(requestAnimationFrame); }
    return performance.now() - end;
}"""
_FRAMES = """async () => {
    const panel = window.jupyterapp.shell.currentWidget;
    panel.content.activeCellIndex = 2;
    let over = false, longest = 0, last = performance.now(), frames = 0;
    const before = performance.memory.usedJSHeapSize;
    window.jupyterapp.commands.execute('notebook:run-cell').then(() => { over = true; });
    while (!over) {
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        frames += 1;
    }
    return { longest_frame_ms: longest, frames, grown_mb: (performance.memory.usedJSHeapSize - before) / 1e6 };
}"""
_DRAWN = """async number => {
    const panel = window.jupyterapp.shell.currentWidget;
    panel.content.activeCellIndex = number;
    const count = document.querySelectorAll('.tc-rendered .tc-picture').length;
    let came = 0;
    const output = panel.content.widgets[number].outputArea.model;
    output.changed.connect(() => { if (output.length) { came ||= performance.now(); } });
    await window.jupyterapp.commands.execute('notebook:run-cell');
    while (document.querySelectorAll('.tc-rendered .tc-picture .tc-box').length === 0
           || document.querySelectorAll('.tc-rendered .tc-picture').length === count) {
        await new Promise(requestAnimationFrame);
    }
    return performance.now() - came;
}"""


def main() -> None:
    """Measures, prints and writes."""
    cells = [SETUP, FUNCTION, MANY, GRAPH.format(count=50, last=49), GRAPH.format(count=2000, last=1999)]
    server = Server(Path(tempfile.mkdtemp()))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"]
        )
        server.wait()
        with opened(browser, server, cells, "measured.ipynb", OUT.parent, height=1400) as page:
            page.wait_for_function("() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel")
            page.python(SETUP.replace("%load_ext tcompile", "get_ipython().run_line_magic('load_ext', 'tcompile')"))
            page.wait_for_timeout(3000)
            page.command("tcompile:panel")
            found = {"marks_ms": page.evaluate(_MARKS), "compiles": page.evaluate(_FRAMES)}
            found["graph_50_ms"] = page.evaluate(_DRAWN, 3)
            found["graph_2000_ms"] = page.evaluate(_DRAWN, 4)
        browser.close()
    server.close()
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
