"""The JupyterLab extension beside kernels that come, go and say odd things, and beside other notebooks and consoles."""

from __future__ import annotations

import nbformat

from tests.ui.extension import FUNCTION, SETUP, activate, edit, marked, panel, unmarked
from tests.ui.lab import Page

PAGE = """
import gc
import tcompile_jupyter.panel as panel
page = next(one for one in gc.get_objects() if type(one) is panel.Page)
"""
ODD = """
for bad in ({}, {"type": "news", "events": 3}, {"type": "new"}, {"type": "answer", "question": 99}):
    page.comm.send(bad)
lists = dict.fromkeys(("code", "settings", "recompiles"), [])
view = {"name": "odd", "where": {}, "entries": [], "breaks": [{}], **lists}
page.comm.send({
    "type": "news", "protocol": panel.PROTOCOL, "schema": 99, "alive": [10 ** 6],
    "events": [{"kind": "novelty", "id": 10**9}, 7, {"kind": "recompile_started", "id": 10**9 + 1, "cell": "gone"}],
    "functions": [3, {"number": 10 ** 6, "view": view, "marks": [{"file": 3, "line": "x", "text": None}]}],
})
"""
LARGE = """
large = "x" * 50_000_000
event = {"kind": "graph_broke", "id": 10 ** 9, "cell": "gone", "function": "f", "headline": large}
versions = {"protocol": panel.PROTOCOL, "schema": panel.SCHEMA_VERSION}
page.comm.send({"type": "news", **versions, "alive": [], "events": [event]})
page.listen()
"""
LARGE_GRAPH = """
mime = "application/vnd.tcompile.graph+json"
display({mime: {"nodes": [{"name": "x" * 500}] * 100_000, "inputs": []}}, raw=True)
"""
SEEN = "() => window.jupyterapp.shell.currentWidget.node.querySelectorAll('.tc-gutter .tc-bar').length"
LOAD = SETUP.replace("%load_ext tcompile", "get_ipython().run_line_magic('load_ext', 'tcompile')")


def in_front(page, title):
    page.wait_for_function("title => window.jupyterapp.shell.currentWidget.title.label === title", arg=title)
    page.wait_for_function("() => window.jupyterapp.shell.currentWidget.sessionContext?.session?.kernel")


def start(page, code):
    """Has the kernel run code, and does not wait for it."""
    page.evaluate(
        """code => { window.jupyterapp.shell.currentWidget.sessionContext.session.kernel
            .requestExecute({ code }).done.catch(() => {}); }""",
        code,
    )


# -- kernels that go and come ------------------------------------------------------------------------


def test_restart_and_late_pages(page):
    page.save()
    page.page.reload()
    page.ready()
    marked(page)  # a page that comes late is told what was
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    unmarked(page)
    panel(page)
    page.wait_for_selector("text=has not loaded tcompile")
    page.run()
    marked(page)


def test_a_kernel_that_dies_while_it_speaks(page):
    panel(page)
    page.python(PAGE)
    start(
        page,
        "import os, threading\nthreading.Timer(0.2, os._exit, (1,)).start()\n"
        "while True:\n    page.comm.send({'type': 'news', 'protocol': 1, 'events': ['x' * 100_000]})",
    )
    page.wait_for_selector("text=has not loaded tcompile")
    unmarked(page)
    page.locator(".jp-Dialog-button.jp-mod-accept").click()  # JupyterLab's word that the kernel has died
    page.run()
    marked(page)


def test_a_connection_that_is_lost(page):
    """What is compiled in the meantime is seen when the connection is there again."""
    panel(page)
    page.python(
        "import threading, time\n"
        "def later():\n    for n in range(1, 5):\n        time.sleep(0.3)\n        f(np.ones((n,) * n), 1)\n"
        "threading.Thread(target=later).start()"
    )
    page.sent.clear()
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel._ws.close()")
    page.click("#tc-tab-history")
    page.wait_for_function("() => document.querySelectorAll('.tc-step').length >= 6")
    marked(page)
    assert any(b'"listen"' in frame for frame in page.sent)


def test_kernels_apart(page):
    """A second notebook, its kernel without tcompile at first; its cells have the ids of the first one's."""
    nbformat.write(page.save(), page.server.folder / "twin.ipynb")
    page.evaluate("() => { window.jupyterapp.commands.execute('docmanager:open', { path: 'twin.ipynb' }); }")
    in_front(page, "twin.ipynb")
    page.page.wait_for_timeout(500)
    assert page.evaluate(SEEN) == 0  # what is known is of another kernel
    comms = """async () => {
        const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
        return Object.keys((await kernel.requestCommInfo({})).content.comms).length;
    }"""
    assert page.evaluate(comms) == 0  # it has no tcompile, and is left alone
    panel(page)
    page.wait_for_selector("text=has not loaded tcompile")
    page.python(LOAD)
    page.wait_for_function(f"async () => (await ({comms})()) === 2")
    page.wait_for_selector("text=Nothing has been compiled yet")
    page.python("tcompile.set_stance('force_eager')")
    page.wait_for_selector(".tc-stance-box[data-stance=force_eager]")
    page.evaluate(
        """() => {
            const { shell } = window.jupyterapp;
            shell.activateById([...shell.widgets('main')].find(one => one.title.label === 'kept.ipynb').id);
        }"""
    )
    page.wait_for_selector(".tc-panel .tc-cell")  # the panel follows what is before
    page.wait_for_selector(".tc-panel .tc-stance-box[data-stance=default]")


# -- one kernel, several places ----------------------------------------------------------------------


def test_one_notebook_in_two_tabs(page):
    """Of JupyterLab, and of the browser."""
    page.command("docmanager:clone")
    page.wait_for_function("() => [...window.jupyterapp.shell.widgets('main')].length === 2")
    page.wait_for_function("() => document.querySelectorAll('.tc-gutter .tc-bar').length === 8")
    page.wait_for_function("() => document.querySelectorAll('.tc-badge').length === 2")
    page.save()
    other = Page(page.page.context.new_page(), page.server, page.name, page.pictures)
    other.page.goto(page.page.url)
    try:
        other.ready()
        marked(other)
        page.python("f(np.ones((9, 9)), 1)")
        for one in (page, other):
            panel(one, "history")
            one.wait_for_function("() => /\\(9, 9\\)/.test(document.querySelector('.tc-panel').innerText)")
        other.python("tcompile.set_stance('force_eager')")
        page.wait_for_selector(".tc-panel .tc-stance-box[data-stance=force_eager]")
    finally:
        other.page.close()
    page.python("f(np.ones((8, 8)), 1)")  # one page has gone; the other goes on
    marked(page)


def test_consoles(page):
    """One on the notebook's kernel, and one with a kernel of its own."""
    own = "{ name: 'c', path: 'c', kernelPreference: { name: 'python3', autoStartDefault: true } }"
    shared = "{ name: 'n', path: window.jupyterapp.shell.currentWidget.context.path }"
    for options, cells in ((shared, [FUNCTION]), (own, [SETUP, FUNCTION])):
        page.evaluate(f"() => {{ window.jupyterapp.commands.execute('console:create', {options}); }}")
        page.wait_for_function(
            """() => {
                const { console, sessionContext } = window.jupyterapp.shell.currentWidget;
                return console?.promptCell && sessionContext.session?.kernel;
            }"""
        )
        for code in cells:
            page.evaluate(
                """async code => {
                    const { console } = window.jupyterapp.shell.currentWidget;
                    console.promptCell.model.sharedModel.setSource(code);
                    await console.execute(true);
                }""",
                code,
            )
        page.wait_for_function(f"() => ({SEEN})() === 4")
        page.wait_for_selector(".jp-CodeConsole-content .tc-badge")
        page.evaluate("() => { window.jupyterapp.shell.currentWidget.close(); }")
        in_front(page, page.name)
    panel(page)
    page.wait_for_selector(".tc-panel .tc-cell")  # the notebook's again


# -- silence -----------------------------------------------------------------------------------------


def test_nothing_is_sent_while_nothing_is_shown(page):
    page.python("from tcompile.observe import bus\nassert bus.active()")
    try:
        for name in ("marks", "badges", "stance"):
            page.command(f"tcompile:toggle-{name}")
        unmarked(page)
        page.page.wait_for_timeout(300)
        page.python("assert not bus.active()")
        page.sent.clear()
        page.updates.clear()
        page.python("f(np.ones((2, 2)), 1)")
        page.page.wait_for_timeout(500)
        assert not [frame for frame in page.sent if b"comm_" in frame]
    finally:  # the settings are those of all tests
        for name in ("marks", "badges", "stance"):
            page.command(f"tcompile:toggle-{name}")
    marked(page)


def test_nothing_is_sent_to_a_page_in_the_background(page):
    see = """state => {
        Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(see, "hidden")
    page.page.wait_for_timeout(300)
    page.python("from tcompile.observe import bus\nassert not bus.active()")
    page.python("f(np.ones((2, 2)), 1)")
    page.evaluate(see, "visible")
    panel(page, "history")
    page.wait_for_selector(".tc-step")  # what happened meanwhile
    page.python("assert bus.active()")


# -- messages that nobody expects --------------------------------------------------------------------


def test_malformed_and_unknown_messages(page):
    panel(page)
    page.python(PAGE)
    page.logged.clear()
    for n in range(3):
        page.python(ODD)
        page.wait_for_selector("text=events are of version 99")
        if n == 0:  # it stays unfolded
            page.click(".tc-panel summary:has-text('odd')")
        page.wait_for_selector("text=This cannot be shown")
        page.click("#tc-tab-history")
        page.wait_for_selector(":is(.tc-step, .tc-note)")
        page.click("#tc-tab-functions")
        page.python("page.listen()")
        page.wait_for_function("() => !document.querySelector('.tc-panel').innerText.includes('version 99')")
    marked(page)
    dropped = [line for line in page.logged if "tcompile: dropped" in line]
    assert dropped and len(dropped) == len(set(dropped))  # each is said once


def test_fifty_megabytes(page):
    """In a message, and in a graph of a notebook."""
    panel(page)
    page.python(PAGE)
    page.python(LARGE)
    marked(page)
    page.click("#tc-tab-graph")
    page.wait_for_selector(".tc-panel .tc-box")
    edit(page, 1, LARGE_GRAPH)
    activate(page, 1)
    page.command("notebook:run-cell")
    page.wait_for_selector("text=it has 100000 operations, more than 5000")
