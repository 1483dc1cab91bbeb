"""The JupyterLab extension in JupyterLab: what is seen in cells, in the panel and in saved notebooks."""

from __future__ import annotations

import json

import nbformat
import pytest

from tests.ui.extension import FUNCTION, SETUP, activate, bars, cell, edit, marked, panel, stance

pytestmark = pytest.mark.usefixtures("extension")

AGAIN = "f(np.ones(7), 1)\nf(np.ones((7, 2), 'f4'), 1)"
GRAPH = """@tcompile.compile
def g(x):
    return np.where(x > 0, np.sqrt(np.abs(x)), x) * 3

g(np.ones(1000))
g.graphs[0]"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_cells_and_panel(lab, theme):
    with lab([SETUP, FUNCTION, AGAIN, GRAPH], theme=theme) as page:
        page.run()
        marked(page)
        assert bars(page, 1) == ["captured", "broken", "captured", "captured"]
        badges = [text.replace("\n", " ") for text in page.locator(".tc-badge").all_inner_texts()]
        assert badges[0].startswith("2 graphs 1 break") and badges[2].startswith("1 graph")
        assert "recompiles" in badges[1]

        # The reason on hover, and what is written about it.
        page.locator(".tc-underline").first.hover()
        page.wait_for_selector(".tc-hover")
        hover = page.locator(".tc-hover").inner_text()
        assert "Graph break" in hover and "`" not in hover and "Move it before" in hover
        page.picture(f"labextension-hover-{theme}", "#main")
        page.click(".tc-hover a")
        page.wait_for_selector(".tc-page h3")
        page.wait_for_timeout(600)
        box = page.locator(".tc-page h3", has_text="input-output").bounding_box()
        assert 0 < box["y"] < 300
        page.picture(f"labextension-reasons-{theme}", "#main")
        page.evaluate("() => window.jupyterapp.shell.currentWidget.close()")

        # A badge opens the functions of its cell.
        page.locator(".tc-badge").first.click()
        page.wait_for_selector(".tc-cell-chosen")
        chosen = page.locator(".tc-cell-chosen")
        assert "Cell [2]" in chosen.inner_text() and "Input or output" in chosen.inner_text()
        chosen.locator("details details summary").first.click()
        assert "x.shape == (5,)" in chosen.inner_text()
        page.picture(f"labextension-functions-{theme}", "#main")

        # From a line to its operations, and from an operation to its line and its kernel.
        panel(page, "graph")
        page.wait_for_selector('.tc-panel [data-id="node where"]')
        cell(page, 3).locator(".cm-line", has_text="np.where").click()
        page.wait_for_selector('.tc-panel [data-id="node where"].tc-lit')
        page.locator('.tc-panel [data-id="node where"]').click()
        assert "where(greater, sqrt, x)" in page.locator(".tc-panel .tc-about").inner_text()
        page.picture(f"labextension-graph-{theme}", "#main")
        cell(page, 0).locator(".cm-line").first.click()
        page.locator(".tc-panel .tc-about .tc-link").first.click()
        page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex === 3"
            " && document.activeElement.closest('.jp-CodeCell')"
        )
        page.locator(".tc-panel .tc-about .tc-link").last.click()
        page.wait_for_selector(".tc-listing")
        assert "define" in page.locator(".tc-listing").first.inner_text()
        page.picture(f"labextension-kernel-{theme}", "#main")

        panel(page, "history")
        page.wait_for_selector(".tc-step")
        newest = page.locator(".tc-step").first
        assert "float32" in newest.inner_text()
        assert newest.locator(".tc-differs").count()
        page.picture(f"labextension-recompiles-{theme}", "#main")

        # A new call is counted when its cell has run.
        panel(page, "functions")
        hits = "() => /(\\d+) hits?/.exec(document.querySelector('.tc-panel').innerText)[1]"
        before = int(page.evaluate(hits))
        edit(page, 2, "for _ in range(1000): g(np.ones(1000))")
        activate(page, 2)
        page.command("notebook:run-cell")
        page.wait_for_function(f"before => Number(({hits})()) > before + 900", arg=before)


STATEMENTS = """%%tcompile --compare
def h(x):
    return np.sin(x) * 2

x = h(np.ones(50)) + 1
print(x.shape)
y = x * x - 3"""


def test_statements_of_a_cell(lab):
    """They have marks, a group in the panel, and the figures of the report, which stay after a reload."""
    with lab([SETUP, STATEMENTS]) as page:
        page.run()
        marked(page)
        assert bars(page, 1) == ["captured", "captured", "plain", "captured"]
        report = cell(page, 1).locator(".tcompile-report")
        rows = report.locator("table").first.locator("tr").all_inner_texts()[1:]
        graphs = sum(int(row.split("\t")[1]) for row in rows)
        assert "1 statement of the cell in plain Python" in report.inner_text()
        assert cell(page, 1).locator(".tc-badge").inner_text().replace("\n", " ").startswith(f"{graphs} graphs")
        panel(page)
        page.wait_for_selector(".tc-panel .tc-cell")
        shown = page.locator(".tc-panel .tc-section").first.inner_text()
        assert shown.count("the cell's statements from line 5") == 1 and "1 statement in plain Python" in shown
        assert shown.count("\nh ") == 1
        page.picture("labextension-statements", "#main")
        page.save()
        page.page.reload()
        page.ready()
        page.wait_for_selector(".tc-badge")
        badge = cell(page, 1).locator(".tc-badge").bounding_box()
        for part in ".jp-Cell-inputWrapper", ".jp-Cell-outputWrapper":
            box = cell(page, 1).locator(part).bounding_box()
            assert badge["y"] >= box["y"] + box["height"] - 1


def timed(page, number, count):
    """Waits for the bars of so many lines of a cell, and returns what they say."""
    page.wait_for_function(
        """([n, count]) => {
            const cell = document.querySelectorAll('.jp-CodeCell')[n];
            return cell?.querySelectorAll('.tc-time').length === count;
        }""",
        arg=[number, count],
    )
    return cell(page, number).locator(".tc-time").evaluate_all("all => all.map(one => one.title)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_where_the_time_of_a_cell_goes(lab, theme):
    """The causes stand below the cell without a click, and bars at the lines, in other cells, too."""
    slow = "%%tcompile --time\nx = np.linspace(0, 1, 100_000)\nz = smooth(x)\nz = z * 2 + np.median(z)"
    smooth = "%%tcompile\ndef smooth(x):\n    y = np.sin(x) * 2\n    return np.sort(y) + 1"
    with lab([SETUP, smooth, slow], theme=theme) as page:
        page.run()
        report = cell(page, 2).locator(".tcompile-report").inner_text()
        assert "return np.sort(y) + 1" in report and "sort" in report and "median" in report
        assert "why not faster?" in report and "runs in NumPy" in report
        marked(page, 1, 2)
        assert bars(page, 1) == ["captured", "captured"]
        first, second = timed(page, 1, 2)
        assert "of the cell" in first and "fused" in first and "library" in second
        cell(page, 1).locator(".cm-line", has_text="np.sort").hover(position={"x": 60, "y": 8})
        page.wait_for_selector(".tc-hover-ms")
        hover = page.locator(".tc-hover").inner_text()
        assert "library" in hover and "sort runs in NumPy" in hover
        page.picture(f"labextension-time-{theme}", "#main")
        edit(page, 1, smooth.replace("np.sort(y) + 1", "y"))  # the bar of a line that has changed goes
        assert timed(page, 1, 1) == [first]


CAUSES = {
    "runs in plain Python: ": "y = np.exp(x) * 2\nprint(*x.tolist()[:5_000])\nz = y + 1",
    "compiled again": "for n in range(3):\n    part = np.ones((2,) * (n + 1))\n    print(n, float((part * 2).sum()))",
    "sort runs in NumPy": "z = np.sort(x) * 2",
    "plain Python takes": "z = x[:3] + 1",
    "it reads its caller's frame": "import sys\ndef g(x):\n    n = len(sys._getframe(1).f_locals)\n"
    "    return len(sorted(map(str, x.tolist()))) + n\nz = g(x)",
    "waits for memory": "z = big * 2 + 1",
    "compiling": "z = np.sin(x) * 3",
}


def test_causes_stand_below_a_slow_cell(lab):
    """Why a cell is not faster is seen without a click: in text, with the line."""
    setup = f"{SETUP}\nx = np.linspace(0, 1, 10_000)\nbig = np.ones(20_000_000)"
    with lab([setup, *(f"%%tcompile --time\n{text}" for text in CAUSES.values())]) as page:
        page.run()
        for number, cause in enumerate(CAUSES, start=1):
            report = cell(page, number).locator(".tcompile-report").text_content()
            assert cause in report.partition("why not faster?")[2], report


def test_cells_are_timed_without_magics(lab):
    """Commands add the magic, and load the extension where the notebook does not."""
    with lab(
        ["import numpy as np\nx = np.linspace(0, 1, 100_000)", "y = np.sort(np.sin(x))\ny.sum()", "%%time\nx"]
    ) as page:
        page.run()
        activate(page, 1)
        page.command("tcompile:time-cell")
        page.wait_for_selector(".tcompile-report")
        assert "runs in NumPy" in cell(page, 1).locator(".tcompile-report").inner_text()
        source = "() => window.jupyterapp.shell.currentWidget.content.activeCell.model.sharedModel.source"
        assert page.evaluate(source).startswith("%%tcompile --time\ny = np.sort")
        assert timed(page, 1, 2)
        page.command("tcompile:explain-cell")
        page.wait_for_function(
            "() => document.querySelector('.tcompile-report')?.textContent.includes('explain the cell')"
        )
        assert page.evaluate(source).startswith("%%tcompile --time --explain\n")
        activate(page, 2)
        page.command("tcompile:compile-cell")
        assert page.evaluate(source) == "%%time\nx"


def test_marks_follow_edits(page):
    edit(page, 1, "# a line\n\n" + FUNCTION)
    marked(page)
    assert "".join(page.locator(".tc-underline").all_inner_texts()) == 'print("step")'
    edit(page, 1, FUNCTION.replace('print("step")', 'print("other")'))
    marked(page, 1, 3)
    assert page.locator(".tc-underline").count() == 0
    assert "tc-stale" in page.locator(".tc-badge").get_attribute("class")
    edit(page, 1, FUNCTION)
    marked(page)
    # Moved and copied cells: a mark goes with its cell, a copy has none until it runs.
    activate(page, 1)
    page.command("notebook:move-cell-up")
    marked(page, 0)
    page.command("notebook:duplicate-below")
    page.wait_for_function("() => document.querySelectorAll('.jp-CodeCell').length === 3")
    assert bars(page, 0) and not bars(page, 1)
    activate(page, 0)
    page.command("notebook:delete-cell")
    page.wait_for_function("() => document.querySelectorAll('.tc-gutter .tc-bar').length === 0")
    page.python("f(np.ones((3, 3, 3)), 1)")  # of a cell that is no more
    panel(page)
    page.wait_for_selector("text=A cell that is gone")


def test_the_stance_goes_both_ways(page):
    panel(page)
    stance(page, "default")
    page.locator(".jp-NotebookPanel-toolbar .tc-stance").select_option("force_eager")
    stance(page, "force_eager")
    page.python("assert tcompile.stance.current().name == 'force_eager'")
    page.python("tcompile.set_stance('eager_then_compile')")
    stance(page, "eager_then_compile")
    page.command("tcompile:stance-fail_on_recompile")
    stance(page, "fail_on_recompile")
    page.command("tcompile:toggle-eager")
    stance(page, "force_eager")
    page.command("tcompile:toggle-eager")
    stance(page, "default")


def test_breaks_by_keyboard(page):
    cell(page, 1).locator(".cm-line").first.click()
    page.keyboard.press("Alt+Shift+B")
    page.wait_for_selector(".tc-hover")
    said = page.evaluate("() => [...document.querySelectorAll('[role=status]')].map(one => one.textContent)")
    assert any(text.startswith("Graph break. Input or output") for text in said)
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".tc-hover", state="detached")


def test_saved_graphs_need_no_kernel(lab):
    hostile = "<img src=x onerror=window.harmed=1>"
    data = {
        "kind": "graph", "version": 1, "name": hostile, "ops": 1, "transformed": True, "outputs": ["a"], "kernels": [],
        "listing": hostile,
        "inputs": [{"name": hostile, "op": "input", "sort": '"><script>window.harmed=1</script>', "type": hostile}],
        "nodes": [{"name": "a", "op": hostile, "call": hostile, "inputs": [hostile], "kernel": hostile,
                   "where": {"file": "x", "line": 3, "text": hostile}}],
    }  # fmt: skip
    broken = ({"nodes": 7}, "x", {"nodes": [3] * 100_000, "inputs": []})
    mime = "application/vnd.tcompile.graph+json"
    outputs = [nbformat.v4.new_output("display_data", {mime: one, "text/plain": ""}) for one in (data, *broken)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("saved", outputs=outputs)])
    with lab(notebook=notebook, kernel="there-is-none") as page:
        page.wait_for_selector(".tc-rendered .tc-picture")
        page.locator(".jp-Dialog .jp-mod-reject").click()  # the choice of another kernel
        page.wait_for_selector(".jp-Dialog", state="detached")
        assert page.locator(".tc-rendered").count() == 4
        assert page.locator("text=This graph cannot be shown").count() == 3
        page.locator(".tc-rendered .tc-view").focus()
        for key in ("ArrowDown", "ArrowDown", "Enter", "+", "-", "0"):
            page.keyboard.press(key)
        assert hostile in page.locator(".tc-rendered .tc-about").inner_text()
        assert page.evaluate("() => window.harmed") is None
        page.picture("labextension-hostile")


def test_hostile_names_in_cells(lab):
    cells = [
        SETUP,
        "hostile = '<img src=x onerror=window.harmed=1>'\n"
        "namespace = {'np': np}\n"
        "exec(compile('def h(x):\\n    print(x)\\n    return x * 2', hostile, 'exec'), namespace)\n"
        "namespace['h'].__qualname__ = hostile\n"
        "h = tcompile.compile(namespace['h'])\nh(np.ones(2)); h(np.ones(3))",
    ]
    with lab(cells) as page:
        page.run()
        for tab in ("functions", "graph", "history", "kernels"):
            panel(page, tab)
            page.wait_for_timeout(300)
        assert "onerror" in page.locator(".tc-panel").inner_text()
        assert page.evaluate("() => window.harmed") is None


def test_large_graphs(lab):
    """Two thousand operations: folded by kernel at first, unfolded, moved and zoomed; what it took is kept."""
    cells = [
        SETUP,
        "from tcompile.observe.display.graphs import GraphView, NodeView\n"
        "nodes = [NodeView(name=f'n{i}', op='add', sort='pointwise', type='f64[5]', kernel=f'k{i // 40}',\n"
        "                  inputs=(f'n{i - 1}', f'n{i * 7 // 11}') if i else ()) for i in range(2000)]\n"
        "GraphView(name='large', ops=2000, nodes=tuple(nodes), outputs=('n1999',),\n"
        "          kernels=tuple(f'k{i}' for i in range(50)))",
    ]
    with lab(cells) as page:
        page.run()
        page.wait_for_selector(".tc-rendered .tc-box")
        assert page.locator(".tc-rendered .tc-open").count() == 0
        took = page.evaluate(
            """async () => {
                const frame = () => new Promise(requestAnimationFrame);
                const all = document.querySelector('.tc-rendered [title^="Fold"]');
                const view = document.querySelector('.tc-rendered .tc-view');
                let began = performance.now();
                all.click();
                await frame();
                const unfold = performance.now() - began;
                const frames = async step => {
                    const start = performance.now();
                    for (let n = 0; n < 40; n += 1) { step(n); await frame(); }
                    return 40_000 / (performance.now() - start);
                };
                const pan = await frames(n => view.scrollTo(n * 15, n * 60));
                const zoom = await frames(n => view.dispatchEvent(new WheelEvent('wheel',
                    { deltaY: n % 20 < 10 ? 20 : -20, ctrlKey: true, clientX: 300, clientY: 400, cancelable: true })));
                return { unfold_ms: unfold, pan_frames_a_second: pan, zoom_frames_a_second: zoom };
            }"""
        )
        assert page.locator(".tc-rendered .tc-open").count() > 0
        assert page.locator(".tc-rendered .tc-box").count() < 1000  # only what can be seen is in the page
        page.locator('.tc-rendered [title="Fit"]').click()
        page.page.wait_for_timeout(300)
        fits = page.evaluate(
            """() => {
                const view = document.querySelector('.tc-rendered .tc-view');
                const [w, h] = [view.scrollWidth - view.clientWidth, view.scrollHeight - view.clientHeight];
                return w <= 1 && h <= 1 ? true : [w, h, view.clientWidth, view.clientHeight];
            }"""
        )
        assert fits is True, fits
        page.pictures.mkdir(parents=True, exist_ok=True)
        (page.pictures / "labextension-large.json").write_text(json.dumps(took))
        page.picture("labextension-large")


def test_the_speed_up_stands_in_the_badge(page):
    edit(page, 1, "%%tcompile --compare\nx = np.linspace(0, 1, 100_000)\n(np.sin(x) + np.cos(x) * 2).sum()")
    activate(page, 1)
    page.command("notebook:run-cell")
    page.wait_for_function("() => /x (faster|slower)|same/.test(document.querySelector('.tc-badge')?.innerText)")


def test_everything_by_keyboard_and_by_name(page):
    """The panel without a mouse, and what a screen reader calls its parts."""
    page.python("f(np.ones(6), 1)")
    page.locator(".tc-badge").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".tc-cell-chosen")
    page.keyboard.press("Alt+Shift+T")
    page.locator("#tc-tab-functions").focus()
    for tab in ("functions", "graph", "history", "kernels"):
        assert page.evaluate("() => document.activeElement.id") == f"tc-tab-{tab}"
        page.wait_for_selector(".tc-place :is(.tc-cell, .tc-box, .tc-step, .tc-listing)")
        nameless = page.evaluate(
            """() => [...document.querySelectorAll(
                ':is(.tc-panel, .jp-Notebook, .jp-StatusBar-Widget) :is(button, select, summary, [tabindex], [role])')]
                .filter(one => one.closest('.tc-panel, .tc-badge-line, .tc-stance-box') && one.checkVisibility())
                .filter(one => !(one.getAttribute('aria-label') || one.title || one.textContent.trim()
                    || one.hasAttribute('aria-labelledby') || one.role === 'status'))
                .map(one => one.outerHTML.slice(0, 200))"""
        )
        assert nameless == []
        if tab == "graph":
            page.locator(".tc-panel .tc-view").focus()
            page.keyboard.press("ArrowDown")
            page.keyboard.press("ArrowDown")
            assert page.locator(".tc-panel .tc-picture .tc-sr").inner_text()
            page.locator("#tc-tab-graph").focus()
        page.keyboard.press("ArrowRight")


def test_settings_say_when_graphs_are_folded(lab, server):
    server._set("tcompile/plugin", {"foldFrom": 1})
    try:
        with lab([SETUP, GRAPH]) as page:
            page.run()
            page.wait_for_selector('.tc-rendered [data-id^="kernel"]')
            assert page.locator(".tc-rendered .tc-open").count() == 0
    finally:
        server._set("tcompile/plugin", {})
