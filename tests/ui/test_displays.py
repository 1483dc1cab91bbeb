"""The reports and displays in JupyterLab: seen in both themes, and in a notebook that is saved and opened again."""

from __future__ import annotations

import pytest

CELLS = [
    "import numpy as np, tcompile\nimport tcompile_jupyter as tj\n%load_ext tcompile",
    """%%tcompile --compare
def steps(x):
    y = np.sqrt(np.abs(x)) + 1
    if y.mean() > 1:
        y = y * 2
    return y.sum(axis=0)

steps(np.ones((300, 40)))""",
    "%%tcompile --graph\nsteps(np.ones((200, 40)))",
    "%%tcompile --each\nx = np.linspace(0, 1, 1000)\ny = np.exp(x) * 2\ny.sum()",
    "steps",
    "steps.graphs[0]",
    "steps.entries[0].kernels[0]",
    "steps.breaks[0]",
    "tcompile.explain(steps)(np.ones((30, 4)))",
    "tj.Comparisons([tj.compare(steps, np.ones((n, 40)), budget=0, name=f'{n} rows') for n in (10, 1000)])",
    "%tcompile",
    "tcompile.diagnose(steps)(np.ones((30, 4)))",
]
SEEN = """[...document.querySelectorAll('.jp-OutputArea-output img, .jp-OutputArea-output svg')]
    .filter(i => i.checkVisibility() && i.getBoundingClientRect().width > 50)"""
HOSTILE = """
name = "<img src=x onerror='window.harmed=1'><script>window.harmed=1</script>\\"'&\\x1b[31m" + "y" * 10_000
def f(x):
    y = np.sqrt(x)
    print(end="")
    return y + 1
f.__name__ = f.__qualname__ = name
f = tcompile.compile(f)
f(np.ones(3))
globals()[name] = f
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_display(lab, theme):
    with lab(CELLS, theme=theme, height=7000) as page:
        page.run()
        page.page.wait_for_timeout(500)
        page.picture(f"displays-{theme}")
        outputs = page.locator(".jp-CodeCell").all()
        for number, cell in list(enumerate(outputs))[1:]:
            assert cell.locator(".jp-OutputArea-output").count(), CELLS[number]
        assert "Error" not in page.locator(".jp-Notebook").inner_text()
        assert page.evaluate(f"() => {SEEN}.length") >= 2
        wide = "() => Math.max(...[...document.querySelectorAll('.jp-OutputArea-output')].map(o => o.offsetWidth))"
        assert page.evaluate(wide) < 1100
        if theme == "dark":
            return
        saved = page.save()
    with lab(notebook=saved, kernel="gone", height=7000) as page:  # somebody else's, without its kernel
        page.no_kernel()
        page.wait_for_function(f"() => {SEEN}.length >= 2")
        text = page.locator(".jp-Notebook").inner_text()
        assert "A branch depends on an array's value" in text and "{" not in text.split("Graph break")[0][:200]
        # The stylesheet is gone there; long listings scroll all the same.
        heights = page.evaluate("() => [...document.querySelectorAll('pre')].map(one => one.offsetHeight)")
        assert max(heights) < 600
        page.picture("displays-untrusted")


def test_hostile_names_do_no_harm(lab):
    cells = [CELLS[0], HOSTILE, "f", "f.graphs[0]", "f.breaks[0]", "tcompile.explain(f)(np.ones(3))", "%tcompile",
             "tj.compare(f, np.ones(3), budget=0)", "%%tcompile\nf(np.ones((2, 2)))"]  # fmt: skip
    with lab(cells, height=5000) as page:
        page.run()
        page.page.wait_for_timeout(300)
        assert page.evaluate("() => window.harmed") is None
        assert page.evaluate("() => document.querySelector('.jp-Notebook').scrollWidth") < 1200
        page.picture("hostile-displays")


GRADIENTS = [
    CELLS[0],
    "w, x = np.linspace(0.1, 1.0, 3), np.linspace(-1.0, 1.0, 12).reshape(4, 3)",
    "%%tcompile --grad loss\ndef loss(w, x):\n    h = np.tanh(x @ w)\n    return np.mean(h * h)\n\nloss(w, x)",
    "tj.GradientCheck(loss, w, x)",
    "step = tcompile.compile(lambda w, x: w - 0.1 * tcompile.grad(loss)(w, x))\nstep(w, x);",
    "step.graphs[0]",
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_gradients(lab, theme):
    with lab(GRADIENTS, theme=theme, height=3600) as page:
        page.run()
        page.page.wait_for_timeout(500)
        text = page.locator(".jp-Notebook").inner_text()
        assert "Error" not in text and text.count("agrees to") >= 4 and "DIFFERS" not in text
        drawn = page.locator(".tc-picture, .tcd-tabs").last
        before = drawn.inner_text()
        drawn.get_by_text("backward", exact=False).first.click()
        page.page.wait_for_timeout(500)
        assert drawn.inner_text() != before
        page.get_by_role("button", name="Other directions").click()
        page.page.wait_for_timeout(1500)
        page.picture(f"gradients-{theme}")
