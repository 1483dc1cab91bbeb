"""Costs of the JupyterLab extension for a page, measured in the browser.

Input: nothing.
Output: a JSON file with every figure, and the table in ``docs/jupyterlab.md``.
Why: the extension must not slow a page down. Needs the extra ``ui`` and a Chromium; a few minutes.

    python -m benchmarks.labextension --out benchmarks/results/2026-11-22-labextension.json
    python -m benchmarks.labextension --table benchmarks/results/2026-11-22-labextension.json   # the docs' table alone

- *page*: the files of the extension that a page loads before anything is shown, and those that come with a graph.
- *marks*: from the end of a cell's run to the first frame with its marks and its badge, median of several runs.
- *compiles*: a thousand compiles in a minute, the panel open: the longest time between two frames, and the longest time
  that the page's thread was busy at a stretch, on the clock and of the processor.
- *hour*: as many events as sixty minutes at a thousand a minute bring, one after the other; memory of page and kernel
  at intervals, after collecting garbage in both.
- *graphs*: from the arrival of a graph in the page to its first frame; panning and zooming.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "jupyterlab.md"
BEGIN, END = "<!-- figures: written from benchmarks/results -->", "<!-- end of figures -->"
SETUP = "%load_ext tcompile\nimport numpy as np, gc, time, tcompile\nfrom tcompile.observe import bus"
FUNCTION = """@tcompile.compile
def f{n}(x):
    y = np.sin(x)
    print('step')
    return y * {n}

f{n}(np.ones(5))"""
ONCE = """
def once(n):
    names = {"np": np}
    exec(f"def f{n}(x):\\n    y = x * {n}\\n    return (y + 1).sum()", names)
    made = tcompile.compile(names[f"f{n}"])
    made(np.ones(5))
    if n % 5 == 0:
        made(np.ones(6))
"""
MANY = """
for n in range(COUNT):
    start = time.perf_counter()
    once(n)
    time.sleep(max(0, 0.06 - (time.perf_counter() - start)))
"""
HOUR = """
seen = [0]
def count(event):
    seen[0] += 1
undo = bus.subscribe(count, calls=False)
def minute():
    seen[0], n = 0, 0
    while seen[0] < 1000:
        once(n + 1)
        n += 1
    gc.collect()
    with open("/proc/self/statm") as held:
        return int(held.read().split()[1]) * 4096 / 1e6
"""
GRAPH = """
from tcompile.observe.display.graphs import GraphView, NodeView
nodes = [NodeView(name=f"n{i}", op="add", sort="pointwise", type="f64[5]", kernel=f"k{i // 40}" if KERNELS else "",
                  inputs=(f"n{i - 1}", f"n{i * 7 // 11}") if i % 4 else (f"n{i * 5 // 6}",) if i else ())
         for i in range(COUNT)]
GraphView(name="made", ops=COUNT, nodes=tuple(nodes), outputs=(f"n{COUNT - 1}",),
          kernels=tuple(dict.fromkeys(node.kernel for node in nodes if node.kernel)))
"""
_LOADED = """() => performance.getEntriesByType('resource')
    .filter(one => one.name.includes('/extensions/tcompile/'))
    .map(one => [one.name.split('/').pop().split('?')[0], one.decodedBodySize])"""
# From the reply that says that the cell has run, to the first frame with its marks and its badge.
_MARKS = """async number => {
    const { content } = window.jupyterapp.shell.currentWidget;
    content.activeCellIndex = number;
    const cell = content.widgets[number].node;
    const seen = () => cell.querySelector('.tc-gutter .tc-bar') && cell.querySelector('.tc-badge');
    await window.jupyterapp.commands.execute('notebook:run-cell');
    const end = performance.now();
    while (!seen()) { await new Promise(requestAnimationFrame); }
    return performance.now() - end;
}"""
_FRAMES = """async number => {
    window.jupyterapp.shell.currentWidget.content.activeCellIndex = number;
    let over = false, longest = 0, last = performance.now(), frames = 0, busy = 0;
    const watch = new PerformanceObserver(list => {
        for (const { duration } of list.getEntries()) { busy = Math.max(busy, duration); }
    });
    watch.observe({ entryTypes: ['longtask'] });
    window.jupyterapp.commands.execute('notebook:run-cell').then(() => { over = true; });
    while (!over) {
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        frames += 1;
    }
    watch.disconnect();
    return { longest_frame_ms: longest, longest_task_ms: busy, frames };
}"""
_DRAWN = """async number => {
    const { content } = window.jupyterapp.shell.currentWidget;
    content.activeCellIndex = number;
    const widget = content.widgets[number];
    const output = widget.outputArea.model;
    let came = 0, longest = 0, last = 0;
    output.changed.connect(() => { if (output.length) { came ||= performance.now(); } });
    const over = window.jupyterapp.commands.execute('notebook:run-cell');
    while (!widget.node.querySelector('.tc-picture .tc-box') || widget.node.querySelector('.tc-picture[aria-busy]')) {
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        longest = came && last ? Math.max(longest, now - Math.max(last, came)) : 0;
        last = now;
    }
    const drawn = performance.now() - came;
    await over;
    return { drawn_ms: drawn, longest_frame_ms: longest };
}"""
_MOVED = """async number => {
    const { node } = window.jupyterapp.shell.currentWidget.content.widgets[number];
    const frame = () => new Promise(requestAnimationFrame);
    const view = node.querySelector('.tc-view');
    const wheel = (by, n) => { for (let k = 0; k < n; k += 1) view.dispatchEvent(new WheelEvent('wheel',
        { deltaY: by, ctrlKey: true, clientX: 400, clientY: 400, cancelable: true })); };
    const settled = async () => { for (let n = 0; n < 20; n += 1) { await frame(); } };
    const frames = async step => {
        await settled();
        const start = performance.now();
        for (let n = 0; n < 60; n += 1) { step(n); await frame(); }
        return 60_000 / (performance.now() - start);
    };
    const pan = await frames(n => view.scrollTo(n * 15, n * 60));
    const zoom = await frames(n => wheel(n % 30 < 15 ? 20 : -20, 1));
    wheel(100, 12); // far enough to see most of it
    const boxes = node.querySelectorAll('.tc-box').length;
    const far = await frames(n => wheel(n % 30 < 15 ? -20 : 20, 1));
    return { pan_fps: pan, zoom_fps: zoom, zoom_far_fps: far, boxes_far: boxes };
}"""


def start(page: Any) -> None:
    """Loads tcompile in the page's kernel."""
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel")
    page.python(SETUP.replace("%load_ext tcompile", "get_ipython().run_line_magic('load_ext', 'tcompile')") + ONCE)
    page.page.wait_for_timeout(2000)


def measure(page: Any, cdp: Any) -> dict[str, Any]:
    """The figures that take waiting, from a page whose cells are those of ``main``."""
    first = page.evaluate(_LOADED)
    found: dict[str, Any] = {"page": {"load_kb": sum(size for _, size in first) / 1e3}}
    start(page)
    marks = [page.evaluate(_MARKS, n) for n in range(1, 6)]
    found["marks_ms"] = {"median": statistics.median(marks), "largest": max(marks)}
    page.command("tcompile:panel")
    graphs = {"graph_50": 7, "graph_2000": 8, "graph_2000_no_kernels": 9}
    for name, number in graphs.items():
        found[name] = page.evaluate(_DRAWN, number)
    found["graph_2000_no_kernels"] |= page.evaluate(_MOVED, graphs["graph_2000_no_kernels"])
    known = dict(first)
    found["page"]["with_a_graph_kb"] = sum(size for name, size in page.evaluate(_LOADED) if name not in known) / 1e3
    with _traced(cdp, page) as tasks:
        found["compiles"] = page.evaluate(_FRAMES, 6)
    found["compiles"]["longest_task_cpu_ms"] = max(tasks)
    return found


def watch(page: Any, cdp: Any, minutes: int) -> dict[str, Any]:
    """Memory while events come."""
    start(page)
    page.command("tcompile:panel")
    page.python(HOUR)
    held = []
    for minute in range(minutes + 1):
        if minute % 10 == 0 or minute == minutes:
            held.append({"minutes": minute, **_memory(cdp, page)})
            print(held[-1], flush=True)
        if minute < minutes:
            page.python("held = minute()")
    return {"hour": {"events": minutes * 1000, "held": held}}


class _traced:
    """Processor milliseconds of each stretch of work of the page's thread."""

    def __init__(self, cdp: Any, page: Any) -> None:
        self.cdp, self.page, self.events, self.over, self.tasks = cdp, page, [], [], []
        cdp.on("Tracing.dataCollected", lambda data: self.events.extend(data["value"]))
        cdp.on("Tracing.tracingComplete", lambda _: self.over.append(True))

    def __enter__(self) -> list[float]:
        self.cdp.send("Tracing.start", {"transferMode": "ReportEvents", "categories": "-*,toplevel"})
        return self.tasks

    def __exit__(self, *_: object) -> None:
        self.cdp.send("Tracing.end")
        while not self.over:
            self.page.page.wait_for_timeout(50)
        names = [one for one in self.events if one["name"] == "thread_name"]
        own = {(one["pid"], one["tid"]) for one in names if one["args"]["name"] == "CrRendererMain"}
        self.tasks += [one["tdur"] / 1e3 for one in self.events if (one["pid"], one["tid"]) in own and "tdur" in one]


def _memory(cdp: Any, page: Any) -> dict[str, float]:
    page.page.wait_for_timeout(1500)  # for pending events to be sent and drawn
    cdp.send("HeapProfiler.collectGarbage")
    heap = cdp.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    counts = cdp.send("Memory.getDOMCounters")
    kernel = page.evaluate(
        """async () => {
            const { kernel } = window.jupyterapp.shell.currentWidget.sessionContext.session;
            const reply = await kernel.requestExecute({ code: 'gc.collect()', user_expressions: { held:
                "int(open('/proc/self/statm').read().split()[1]) * 4096 / 1e6" } }).done;
            return Number(reply.content.user_expressions.held.data['text/plain']);
        }"""
    )
    return {"page_mb": heap, "nodes": counts["nodes"], "listeners": counts["jsEventListeners"], "kernel_mb": kernel}


def table(found: dict[str, Any]) -> str:
    """The figures beside their limits, in Markdown."""
    held = found["hour"]["held"]
    minutes = ", ".join(str(one["minutes"]) for one in held[1:])
    whole, plain, compiles = found["graph_2000"], found["graph_2000_no_kernels"], found["compiles"]
    marks = found["marks_ms"]["median"]
    rows = [
        ("the page loads, before anything is shown", "under 300 kB", f"{found['page']['load_kb']:.0f} kB"),
        ("and the layout of graphs, with the first of them", "", f"{found['page']['with_a_graph_kb']:.0f} kB"),
        ("from the end of a cell's run to its marks and badge", "under 300 ms", f"{marks:.0f} ms"),
        ("a graph of 50 operations", "under 200 ms", f"{found['graph_50']['drawn_ms']:.0f} ms"),
        ("of 2,000, folded by kernel", "under 5 s", f"{whole['drawn_ms']:.0f} ms"),
        ("of 2,000 without kernels, all of them laid out", "under 5 s", f"{plain['drawn_ms']:.0f} ms"),
        ("the longest frame while they are", "", f"{plain['longest_frame_ms']:.0f} ms"),
        ("panning it, and zooming", "30 frames a second", f"{plain['pan_fps']:.0f}, {plain['zoom_fps']:.0f}"),
        (f"zooming with {plain['boxes_far']} boxes in view", "30 frames a second", f"{plain['zoom_far_fps']:.0f}"),
        ("1,000 compiles in a minute: the longest frame", "200 ms", f"{compiles['longest_frame_ms']:.0f} ms"),
        ("and the page's longest work at a stretch, processor time", "", f"{compiles['longest_task_cpu_ms']:.0f} ms"),
        (f"memory of the page after {minutes} minutes of 1,000 events", "flat",
         ", ".join(f"{one['page_mb']:.1f}" for one in held[1:]) + " MB"),
        ("elements in the page then", "flat", ", ".join(f"{one['nodes']:,}" for one in held[1:])),
        ("memory of the kernel then, with what it has compiled", "",
         ", ".join(f"{one['kernel_mb']:.0f}" for one in held[1:]) + " MB"),
    ]  # fmt: skip
    lines = [f"| {what} | {asked} | {got} |" for what, asked, got in rows]
    about = f"Measured {found['about']['date']} on {found['about']['machine']}:"
    return "\n".join([about, "", "| | asked | measured |", "|---|---|---|", *lines])


def written(text: str, found: dict[str, Any]) -> str:
    """The page of the docs with the table in its place."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(found)}\n\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "labextension.json")
    parser.add_argument("--only", choices=["times", "memory"], help="measure one of them; what the file has else stays")
    parser.add_argument("--minutes", type=int, default=60, help="of 1,000 events each, with memory watched")
    parser.add_argument("--compiles", type=int, default=1000, help="compiles while frames are watched, 60 ms each")
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("--machine", default=f"{os.cpu_count()} processors, Chromium without a graphics card")
    parser.add_argument("--table", type=Path, metavar="JSON", help="only write the docs' table, from this file")
    options = parser.parse_args()
    if options.table:
        found = json.loads(options.table.read_text(encoding="utf-8"))
        DOCS.write_text(written(DOCS.read_text(encoding="utf-8"), found), encoding="utf-8")
        return
    from playwright.sync_api import sync_playwright

    from tests.ui.lab import Server, browser_path, opened

    functions = [FUNCTION.format(n=n) for n in range(5)]
    graphs = [("50", "True"), ("2000", "True"), ("2000", "False")]
    drawn = [GRAPH.replace("COUNT", count).replace("KERNELS", kernels) for count, kernels in graphs]
    server = Server(Path(tempfile.mkdtemp()))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=browser_path(), args=["--no-sandbox", "--disable-gpu", "--enable-precise-memory-info"]
        )
        server.wait()
        cells = ["pass", *functions, MANY.replace("COUNT", str(options.compiles)), *drawn]
        found = json.loads(options.out.read_text(encoding="utf-8")) if options.only and options.out.exists() else {}
        for part in [options.only] if options.only else ["times", "memory"]:
            with opened(browser, server, cells, f"{part}.ipynb", options.out.parent, height=1400) as page:
                page.page.set_default_timeout(300_000)
                cdp = page.page.context.new_cdp_session(page.page)
                found |= measure(page, cdp) if part == "times" else watch(page, cdp, options.minutes)
        browser.close()
    server.close()
    command = "python -m benchmarks.labextension"
    found["about"] = {"date": options.date, "machine": options.machine, "command": command}
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
