"""Helpers for tests of the JupyterLab extension: cells, and queries of the page.

Input: pages.
Output: the marks, badges and panel in them.
Why: tests need no selectors.
"""

from __future__ import annotations

SETUP = "%load_ext tcompile\nimport numpy as np\nimport tcompile"
FUNCTION = """@tcompile.compile
def f(x, n):
    y = np.sin(x) * 2
    print("step")
    z = y.reshape(-1)
    return (z / z.sum()).max() + n

f(np.ones(5), 1)"""


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


def activate(page, number):
    """Makes a cell the active one."""
    page.evaluate("n => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = n; }", number)


def unmarked(page):
    """Waits until cells show nothing of the extension."""
    page.wait_for_function("() => !document.querySelector('.tc-gutter .tc-bar, .tc-badge')")


def fresh(page, cells):
    """Resets the page: one notebook with these cells, run in a kernel that has just started."""
    page.errors.clear()  # the previous test's events have arrived
    page.evaluate(
        """async cells => {
            const { shell } = window.jupyterapp;
            const [first, ...others] = [...shell.widgets('main')];
            others.forEach(other => other.close());
            shell.activateById(first.id);
            const shared = first.content.model.sharedModel;
            shared.deleteCellRange(0, shared.cells.length);
            shared.insertCells(0, cells.map(source => ({ cell_type: 'code', source, metadata: {}, outputs: [] })));
            const kernel = first.sessionContext.session.kernel;
            await kernel.restart();
            // What is asked of a kernel before it says that it restarts is forgotten.
            for (let quiet = 0; quiet < 3; quiet = kernel.status === 'idle' ? quiet + 1 : 0)
                await new Promise(done => setTimeout(done, 50));
        }""",
        cells,
    )
    if page.locator(".tc-panel").is_visible():
        page.command("application:toggle-right-area")
    page.run()
    marked(page)
    page.sent.clear()
