"""The widgets in JupyterLab: seen, clicked, saved, and opened again."""

from __future__ import annotations

import re

import pytest

SETUP = """
%load_ext tcompile
import numpy as np, tcompile
import tcompile_jupyter as tj

@tcompile.compile
def wave(x):
    y = np.sqrt(x) + 1
    return (y * 2 - x).sum(axis=0)

wave(np.ones((3, 4))); wave(np.ones((5, 4)))
"""
CELLS = [
    f"{SETUP}\ntj.StanceToggle()",
    "tj.StanceToggle()",
    "tj.BackendChooser()",
    "tj.ModeChooser()",
    "live = tj.LiveGraph(wave)\nlive",
    "tj.RecompileTimeline()",
    "sweep = tj.SpeedupPlot(wave, make=lambda n: np.ones((n, 4)), sizes=(10, 1000, 10_000), budget=0.2)\nsweep",
    "calls = tj.SpeedupPlot(wave, np.ones((1000, 4)), budget=0.2)\ncalls",
    "sweep.wait(), calls.wait()\nlive.redraw(now=True)",
]


def cell(page, number):
    return page.locator(".jp-CodeCell").nth(number)


def stance(page, name):
    """Waits until the toggles all show a stance."""
    page.wait_for_function(
        """name => {
            const on = [...document.querySelectorAll('.widget-toggle-button.mod-active')];
            return on.length > 1 && on.every(b => b.dataset.value === name);
        }""",
        arg=name,
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_widget(lab, theme):
    with lab(CELLS, theme=theme, height=3400) as page:
        page.run()
        page.wait_for_selector("text=/(same|x (faster|slower)), (medians|the times|not sure)/")
        page.wait_for_function("() => document.querySelectorAll('.js-plotly-plot .points path').length > 6")
        page.picture(f"widgets-{theme}")
        if theme == "dark":
            return

        # The stance: clicked in one copy, seen in the other and in the kernel; set in the kernel, seen in both.
        cell(page, 0).locator("text=force_eager").click()
        stance(page, "force_eager")
        page.python("assert tcompile.stance.current().name == 'force_eager'")
        page.python("tcompile.set_stance('fail_on_recompile')")
        stance(page, "fail_on_recompile")
        cell(page, 1).locator("button >> text=default").click()
        stance(page, "default")
        cell(page, 2).locator("select").select_option("eager")
        page.wait_for_selector("text=now default, force_backend='eager'")
        page.python("assert tcompile.stance.current().force_backend == 'eager'")
        cell(page, 2).locator("select").select_option("each function's own")

        # The graph: a click tells the line and the kernel, another entry may be looked at, a new one appears.
        graph = cell(page, 4)
        graph.locator("[data-node=sqrt]").click()
        side = graph.locator(".tcw-side")
        assert "y = np.sqrt(x) + 1" in side.inner_text() and "kernel_0" in side.inner_text()
        page.picture("live-graph-clicked", ".jp-CodeCell:nth-of-type(5)")
        graph.locator("[data-node=add]").focus()
        page.page.keyboard.press("Enter")
        assert "add(" in side.inner_text()
        before = graph.locator(".tcw-view svg").bounding_box()["width"]
        graph.locator("button >> text=+").click()
        assert graph.locator(".tcw-view svg").bounding_box()["width"] > before
        page.python("wave(np.ones((2, 2, 2)))")
        page.wait_for_selector("text=3 graphs")
        assert "f64[2, 2, 2]" in graph.locator(".tcw-view svg").inner_html()
        graph.locator("select").select_option(index=0)
        page.wait_for_function("() => document.querySelector('.tcw-panel svg').innerHTML.includes('f64[3, 4]')")

        # The timeline: a click tells why.
        line = cell(page, 5)
        line.locator("g[data-node]").last.click()
        assert "x.ndim" in line.locator(".tcw-side").inner_text()
        page.picture("timeline-clicked", ".jp-CodeCell:nth-of-type(6)")

        # The plot: it measures again when it is told to, and can be stopped.
        button = cell(page, 6).locator("button", has_text="Measure again")
        page.python("import tcompile_jupyter.measure; tcompile_jupyter.measure.REPEATS = range(6, 10**9)")
        page.python("sweep._budget = 600; sweep._tolerance = 0.0")
        button.click()
        cell(page, 6).locator("button", has_text="Stop").click()
        page.wait_for_selector("text=(stopped)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_dashboard(lab, theme):
    with lab([f"{SETUP}\nboard = tj.dashboard()\nboard"], theme=theme, height=1900) as page:
        page.run()
        page.wait_for_selector("[data-node=sqrt]")
        page.page.get_by_placeholder("a call to measure").fill("wave(np.ones((100, 4)))")
        page.page.get_by_placeholder("a call to measure").press("Enter")
        page.page.get_by_role("button", name="Measure").first.click()
        page.wait_for_selector("text=/(same|x (faster|slower)), (medians|the times|not sure)/")
        page.wait_for_selector("text=Measure again")
        page.picture(f"dashboard-{theme}")


SEEN = """[...document.querySelectorAll('.jp-OutputArea-output img')]
    .filter(i => i.checkVisibility() && i.naturalWidth > 50)"""


def pictures(page):
    """The pictures that are seen."""
    return page.evaluate(f"() => {SEEN}.map(i => i.alt)")


def test_what_is_saved_is_seen_without_a_kernel(lab):
    with lab(CELLS, height=2600) as page:
        page.run()
        page.wait_for_selector("text=/(same|x (faster|slower)), (medians|the times|not sure)/")
        assert pictures(page) == []  # the widgets stand before them
        saved = page.save()
        # The same user opens it again, and the kernel is another one.
        page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        page.page.reload()
        page.ready()
        page.wait_for_function(f"() => {SEEN}.length >= 4")
        page.wait_for_function("() => !document.body.innerText.includes('model not found')")
        page.picture("saved-trusted")
    with lab(notebook=saved, kernel="gone", height=2600) as page:  # somebody else's, without its kernel
        page.no_kernel()
        page.wait_for_function(f"() => {SEEN}.length >= 4")
        seen = pictures(page)
        assert any("graph of wave" in alt for alt in seen) and any(", compiled " in alt for alt in seen), seen
        assert page.locator(".jp-mod-untrusted, [data-icon='ui-components:not-trusted']").count()
        page.picture("saved-untrusted")


def test_hostile_names_do_no_harm(lab):
    cells = [
        """
import numpy as np, tcompile, tcompile_jupyter as tj
from tcompile.observe import bus
from tcompile.observe.events import CompileStarted, GraphBroke
from tcompile.observe.source_location import UserLine
name = "<img src=x onerror='window.harmed=1'><script>window.harmed=1</script>\\"'&\\x1b[31m" + "y" * 10_000
def f(x):
    return x + 1
f.__name__ = f.__qualname__ = name
f = tcompile.compile(f)
f(np.ones(3))
live, line, plot = tj.LiveGraph(f), tj.RecompileTimeline(), tj.SpeedupPlot(f, np.ones(3), budget=0)
bus.emit(CompileStarted(function=name, compile_id="7/7", reason=name, where=UserLine(file=name, line=1, text=name)))
bus.emit(GraphBroke(function=name, compile_id="7/7", headline=name))
plot.wait()
live""",
        "line",
        "plot",
        "tj.dashboard({name: f})",
    ]
    with lab(cells, height=2600) as page:
        page.run()
        page.wait_for_selector("text=/(same|x (faster|slower)), (medians|the times|not sure)/")
        for mark in page.locator("[data-node]").all()[:6]:
            mark.click(force=True)
        assert page.evaluate("() => window.harmed") is None
        assert page.evaluate("() => document.querySelector('.jp-Notebook').scrollWidth") < 1200
        page.picture("hostile-names")
        saved = page.save()
    with lab(notebook=saved, kernel="gone") as page:
        page.no_kernel()
        page.page.wait_for_timeout(500)
        assert page.evaluate("() => window.harmed") is None


def test_a_thousand_compiles_do_not_freeze_the_page(lab):
    """The kernel tells the page a few times a second, however much is compiled."""
    with lab([f"{SETUP}\nboard = tj.dashboard()\nboard"], height=1500) as page:
        page.run()
        page.wait_for_selector("[data-node=sqrt]")
        page.page.wait_for_timeout(1000)
        page.updates.clear()
        page.evaluate(
            "() => { window.longest = 0; let last = performance.now(); (function tick() { const now = "
            "performance.now(); window.longest = Math.max(window.longest, now - last); last = now; "
            "requestAnimationFrame(tick); })(); }"
        )
        page.python(
            """
import time
from tcompile.observe import bus
from tcompile.observe.events import CompileFinished, CompileStarted
for n in range(1000):
    bus.emit(CompileStarted(function=f"f{n % 20}", compile_id=f"50/{n}"))
    bus.emit(CompileFinished(function=f"f{n % 20}", compile_id=f"50/{n}", ms=1.0))
    time.sleep(0.004)
"""
        )
        page.wait_for_function("() => /1,?00[0-9] compiles|40[0-9] compiles/.test(document.body.innerText)")
        assert 2 <= len(page.updates) < 150, len(page.updates)
        assert page.evaluate("() => window.longest") < 2000
        assert re.search(r"and \d+ before", page.evaluate("() => document.body.innerText"))


def test_a_large_graph_fits(lab):
    """It begins where its first operation is, as any other that is chosen, and "fit" shows all of it."""
    cells = [
        f"""{SETUP}
text = "def steps(x):\\n" + "".join(f"    x = np.sin(x) * {{k}} - np.cos(x)\\n" for k in range(40)) + "    return x\\n"
exec(text)
steps = tcompile.compile(steps)
steps(np.ones(5)), steps(np.ones((5, 2, 3)))
live = tj.LiveGraph(steps)
live"""
    ]
    with lab(cells, height=1200) as page:
        page.run()
        page.wait_for_selector(".tcw-view svg [data-node]")
        begins = """() => {
            const view = document.querySelector('.tcw-view').getBoundingClientRect();
            const nodes = [...document.querySelectorAll('.tcw-view [data-node]')];
            const boxes = nodes.map(node => node.getBoundingClientRect());
            const top = boxes.reduce((one, two) => two.top < one.top ? two : one);
            return top.left >= view.left && top.right <= view.right && top.top >= view.top && top.bottom <= view.bottom;
        }"""
        for entry in (0, 1, 0):
            page.locator("select").first.select_option(index=entry)
            page.page.wait_for_timeout(700)
            assert page.evaluate(begins)
        page.locator(".tcw-tools button", has_text="fit").click()
        page.picture("large-graph-fits")
        fits = page.evaluate(
            """() => {
                const view = document.querySelector('.tcw-view').getBoundingClientRect();
                const drawn = document.querySelector('.tcw-view svg').getBoundingClientRect();
                return drawn.width <= view.width + 1 && drawn.height <= view.height + 1;
            }"""
        )
        assert fits
