"""A notebook with all of tcompile's displays, and checks for every front end.

Input: nothing.
Output: the notebook's cells, their outputs from a real kernel, and faults of HTML.
Why: the same displays are checked with a browser (``tests/ui``) and without one (``tests/jupyter``).
"""

from __future__ import annotations

import functools
import re
from typing import Any

import nbclient
import nbformat

SETUP = "import numpy as np, tcompile\nimport tcompile_jupyter as tj\n%load_ext tcompile"
CELLS = [
    SETUP,
    """%%tcompile --graph
def steps(x):
    y = np.sqrt(np.abs(x)) + 1
    if y.mean() > 1:
        y = y * 2
    return y.sum(axis=0)

steps(np.ones((300, 4)))""",
    "steps",
    "steps.graphs[0]",
    "steps.entries[0].kernels[0]",
    "steps.breaks[0]",
    "tcompile.explain(steps)(np.ones((30, 4)))",
    "tj.Comparisons([tj.compare(steps, np.ones((n, 40)), budget=0, name=f'{n} rows') for n in (10, 1000)])",
    "%tcompile",
    "tj.dashboard()",
]
MORE = [
    "tcompile.diagnose(steps)(np.ones((30, 4)))",
    "tcompile.config",
    "tcompile.memory",
    "tj.StanceToggle()",
    "tj.LiveGraph(steps)",
    "tj.RecompileTimeline()",
    "plot = tj.SpeedupPlot(steps, np.ones((1000, 4)), budget=0.1).wait()\nplot",
    "with tcompile.CompileProfiler() as profiler: steps(np.ones((7, 7)))\nprofiler",
]
"""Cells for displays that look alike everywhere."""


@functools.cache
def outputs() -> tuple[tuple[str, dict[str, Any]], ...]:
    """The MIME bundles that the cells have shown, each with its cell's text."""
    cells = [nbformat.v4.new_code_cell(cell) for cell in (*CELLS, *MORE)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return tuple(
        (cell.source, output["data"])
        for cell in notebook.cells
        for output in cell.outputs
        if output.output_type in ("display_data", "execute_result")
    )


def shown() -> list[tuple[str, dict[str, Any]]]:
    """Those of them that are tcompile's own: not arrays, and not live widgets, which stand before their pictures."""
    return [
        (cell, data)
        for cell, data in outputs()
        if "text/html" in data and "application/vnd.jupyter.widget-view+json" not in data
    ]


_OUTSIDE = re.compile(
    r"""(?:src|href|srcset|action|data|poster) \s*=\s* ["']? (?!data:|\#) [^"'\s>]+
    | url\((?!["']?(?:data:|\#)) | @import""",
    re.VERBOSE,
)
_SCRIPT = re.compile(r"<script|<iframe|<object|<embed|<link|javascript:|\son\w+\s*=")
_VARIABLE = re.compile(r"var\(--[\w-]+\s*\)")


def needs(html: str) -> list[str]:
    """What HTML needs that a front end may not give: files, scripts, and colours that are the page's alone."""
    own = set(re.findall(r"(--[\w-]+)\s*:", html))
    alone = [found for found in _VARIABLE.findall(html) if found[4:-1].strip() not in own]
    return [*_OUTSIDE.findall(html), *_SCRIPT.findall(html), *alone]
