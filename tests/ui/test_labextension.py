"""The JupyterLab extension in JupyterLab: what is seen in cells and in the panel, and what becomes of it."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

SETUP = "%load_ext tcompile\nimport numpy as np\nimport tcompile"
FUNCTION = """@tcompile.compile
def f(x, n):
    y = np.sin(x) * 2
    print("step")
    z = y.reshape(-1)
    return (z / z.sum()).max() + n

f(np.ones(5), 1)"""
AGAIN = "f(np.ones(7), 1)\nf(np.ones((7, 2), 'f4'), 1)"
GRAPH = """@tcompile.compile
def g(x):
    return np.where(x > 0, np.sqrt(np.abs(x)), x) * 3

g(np.ones(1000))
g.graphs[0]"""


@pytest.fixture(autouse=True)
def _installed(server):
    """The extension that JupyterLab finds must be the one of this checkout."""
    from jupyter_core.paths import jupyter_path

    built = Path(__file__).resolve().parent.parent.parent / "labextension" / "prebuilt" / "sources.json"
    found = [Path(folder) / "tcompile" / "sources.json" for folder in jupyter_path("labextensions")]
    held = next((path for path in found if path.exists()), None)
    if held is None or held.read_text() != built.read_text():
        pytest.fail("JupyterLab has another build of the extension, or none: pip install --editable .")


def cell(page, number):
    return page.locator(".jp-CodeCell").nth(number)


def bars(page, number):
    """The marks of a cell's lines, from top to bottom."""
    classes = cell(page, number).locator(".tc-gutter .tc-bar").evaluate_all("all => all.map(one => one.className)")
    return [names.split("tc-")[-1] for names in classes]


def marked(page, number=1, count=4):
    page.wait_for_function(
        """([n, count]) => {
            const cell = document.querySelectorAll('.jp-CodeCell')[n];
            return cell?.querySelectorAll('.tc-gutter .tc-bar').length === count;
        }""",
        arg=[number, count],
    )


def edit(page, number, text):
    """Replaces the text of a cell, as a person would who selects part of it and types."""
    page.evaluate(
        """([n, text]) => window.jupyterapp.shell.currentWidget.content.widgets[n].model.sharedModel.setSource(text)""",
        [number, text],
    )


def stance(page, name):
    """Waits until every chooser shows a stance."""
    page.wait_for_function(
        """name => {
            const all = [...document.querySelectorAll('.tc-stance')].filter(one => one.offsetParent);
            return all.length > 1 && all.every(one => one.value === name);
        }""",
        arg=name,
    )


def panel(page, tab="functions"):
    if not page.locator(".tc-panel").is_visible():
        page.command("tcompile:panel")
        page.wait_for_selector(".tc-panel .tc-tabs")
    page.click(f"#tc-tab-{tab}")


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
        page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 2; }")
        page.command("notebook:run-cell")
        page.wait_for_function(f"before => Number(({hits})()) > before + 900", arg=before)


def test_marks_follow_edits(lab):
    with lab([SETUP, FUNCTION]) as page:
        page.run()
        marked(page)
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
        page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1; }")
        page.command("notebook:move-cell-up")
        marked(page, 0)
        page.command("notebook:duplicate-below")
        page.wait_for_function("() => document.querySelectorAll('.jp-CodeCell').length === 3")
        assert bars(page, 0) and not bars(page, 1)
        page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0; }")
        page.command("notebook:delete-cell")
        page.wait_for_function("() => document.querySelectorAll('.tc-gutter .tc-bar').length === 0")
        page.python("f(np.ones((3, 3, 3)), 1)")  # of a cell that is no more
        panel(page)
        page.wait_for_selector("text=A cell that is gone")


def test_the_stance_goes_both_ways(lab):
    with lab([SETUP, FUNCTION]) as page:
        page.run()
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


def test_breaks_by_keyboard(lab):
    with lab([SETUP, FUNCTION]) as page:
        page.run()
        marked(page)
        cell(page, 1).locator(".cm-line").first.click()
        page.keyboard.press("Alt+Shift+B")
        page.wait_for_selector(".tc-hover")
        page.keyboard.press("ArrowDown")
        page.wait_for_selector(".tc-hover", state="detached")


def test_restart_and_late_pages(lab):
    with lab([SETUP, FUNCTION]) as page:
        page.run()
        marked(page)
        page.page.reload()
        page.ready()
        marked(page)  # a page that comes late is told what was
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
        page.wait_for_function("() => document.querySelectorAll('.tc-gutter .tc-bar, .tc-badge').length === 0")
        panel(page)
        page.wait_for_selector("text=has not loaded tcompile")
        page.run()
        marked(page)
        # JupyterLab's own word on a restart while it makes ready for comms.
        page.errors[:] = [error for error in page.errors if "create_subshell_request" not in error]


def test_kernels_apart(lab, server):
    """Two notebooks with two kernels, the second without tcompile, then with the same cells; and two tabs of one."""
    with lab([SETUP, FUNCTION]) as page:
        page.run()
        marked(page)
        source = page.save()
        nbformat.write(source, server.folder / "twin.ipynb")  # the same cells by their ids
        page.evaluate("() => window.jupyterapp.commands.execute('docmanager:open', { path: 'twin.ipynb' })")
        page.wait_for_function("() => window.jupyterapp.shell.currentWidget.title.label === 'twin.ipynb'")
        page.wait_for_function("() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel")
        page.wait_for_timeout(500)
        seen = "() => window.jupyterapp.shell.currentWidget.node.querySelectorAll('.tc-gutter .tc-bar').length"
        assert page.evaluate(seen) == 0  # what it says is of another kernel
        comms = """async () => {
            const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
            return Object.keys((await kernel.requestCommInfo({})).content.comms).length;
        }"""
        assert page.evaluate(comms) == 0  # it has no tcompile, and is left alone
        page.python(SETUP.replace("%load_ext", "get_ipython().run_line_magic('load_ext', 'tcompile') #"))
        page.wait_for_function(f"async () => (await ({comms})()) === 2")


def test_nothing_is_sent_while_nothing_is_shown(lab):
    with lab([SETUP, FUNCTION]) as page:
        page.run()
        marked(page)
        page.python("from tcompile.observe import bus\nassert bus.active()")
        if page.locator(".tc-panel").is_visible():
            page.command("application:toggle-right-area")
        try:
            for name in ("marks", "badges", "stance"):
                page.command(f"tcompile:toggle-{name}")
            page.wait_for_function("() => !document.querySelector('.tc-gutter .tc-bar, .tc-badge')")
            page.wait_for_timeout(300)
            page.python("assert not bus.active()")
        finally:  # the settings are those of all tests
            for name in ("marks", "badges", "stance"):
                page.command(f"tcompile:toggle-{name}")
        marked(page)


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


def test_malformed_messages_do_no_harm(lab):
    code = """
import tcompile_jupyter.panel as panel, gc
page = next(one for one in gc.get_objects() if type(one) is panel.Page)
for bad in ({}, {"type": "news", "events": 3}, {"type": "new"}, {"type": "answer", "question": 99}):
    page.comm.send(bad)
page.comm.send({"type": "news", "protocol": 1, "schema": 99, "events": [{"kind": "novelty", "id": 10**9}]})
"""
    with lab([SETUP, FUNCTION]) as page:
        page.run()
        marked(page)
        panel(page)
        page.python(code)
        page.wait_for_selector("text=events are of version 99")
        page.python("page.listen()")
        page.wait_for_function("() => !document.querySelector('.tc-panel').innerText.includes('version 99')")
        marked(page)


def test_consoles(lab):
    with lab([SETUP]) as page:
        page.run()
        page.evaluate(
            """async () => {
                const { path } = window.jupyterapp.shell.currentWidget.context;
                await window.jupyterapp.commands.execute('console:create', { name: 'c', path });
            }"""
        )
        page.wait_for_selector(".jp-CodeConsole-promptCell")
        page.wait_for_function("() => window.jupyterapp.shell.currentWidget.sessionContext?.session?.kernel")
        for code in (SETUP, FUNCTION):
            page.evaluate(
                """async code => {
                    const { console } = window.jupyterapp.shell.currentWidget;
                    console.promptCell.model.sharedModel.setSource(code);
                    await console.execute(true);
                }""",
                code,
            )
        page.wait_for_function("() => document.querySelectorAll('.jp-CodeConsole .tc-gutter .tc-bar').length === 4")
        page.wait_for_selector(".jp-CodeConsole-content .tc-badge")


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
        page.pictures.mkdir(parents=True, exist_ok=True)
        (page.pictures / "labextension-large.json").write_text(json.dumps(took))
        page.picture("labextension-large")
