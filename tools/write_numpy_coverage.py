"""Writes docs/numpy_coverage.md: how every public name of NumPy is treated.

Input: the tables of the NumPy frontend.
Output: the page.
Why: the page cannot disagree with the code: a test fails if it is outdated.

    python tools/write_numpy_coverage.py
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tcompile.frontends.numpy import coverage
from tcompile.frontends.numpy.coverage import SECTIONS, CoverageRow
from tcompile.numpy_versions import VERSION
from tcompile.versions import dotted

PAGE = Path(__file__).resolve().parent.parent / "docs" / "numpy_coverage.md"
TITLES = {
    "numpy": "The main namespace", "numpy.linalg": "`numpy.linalg`", "numpy.fft": "`numpy.fft`",
    "numpy.random": "`numpy.random`", "numpy.ndarray": "Methods and attributes of arrays",
}  # fmt: skip
INTRODUCTION = """# What becomes of NumPy's functions

Every public name of NumPy is one of three things in a compiled function.

- **fused**: it becomes operations of the graph, which kernels compute together with what is around them, or it is
  known without running anything (shapes, dtypes, views).
- **call**: it stays one call of NumPy's own function inside the compiled code, and what is around it is fused. The
  results are NumPy's, bit for bit.
- **break**: the graph ends here, for the reason that is stated, and the call runs in plain Python
  (see [graph breaks](graph_breaks.md)).

A fused name whose arguments the kernels do not cover (complex numbers, `where=`, `initial=`, an unusual memory order)
becomes a call. The dtype, shape and memory order of a call's result are known when the function is captured, and are
compared with what NumPy gave whenever it runs; where they differ, and where a call raises or warns, the function runs
in plain Python. Arrays of native booleans, integers, floats and complex numbers are captured; `longdouble`, dates,
texts, objects and structures stay in plain Python. What `nonzero`, `flatnonzero` and `where` of a mask alone find is
fused where it is an index or is reduced; anywhere else the graph ends, since the size is unknown.

This page is written by `tools/write_numpy_coverage.py` from the tables of the frontend.
"""


def version() -> str:
    """The version of NumPy whose names the page lists."""
    return dotted(VERSION)


def page() -> str:
    """The text of the page for this NumPy."""
    rows = coverage()
    return "\n".join([INTRODUCTION, *_counts(rows), *(line for s in SECTIONS for line in _section(s, rows))])


def _counts(rows: list[CoverageRow]) -> Iterator[str]:
    yield f"| NumPy {version()} | fused | call | break |"
    yield "|---|---|---|---|"
    for section in SECTIONS:
        mine = [row.state for row in rows if row.section == section]
        yield f"| {TITLES[section]} | {mine.count('fused')} | {mine.count('call')} | {mine.count('break')} |"
    yield ""


def _section(section: str, rows: list[CoverageRow]) -> Iterator[str]:
    yield f"## {TITLES[section]}\n"
    mine = [row for row in rows if row.section == section]
    for state in ("fused", "call"):
        names = [row.name for row in mine if row.state == state]
        if names:
            yield f"**{state}**: {_names(names)}\n"
    why: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in mine:
        if row.state == "break":
            why[row.reason, row.detail].append(row.name)
    if why:
        yield "| break | why |"
        yield "|---|---|"
        for (reason, detail), names in sorted(why.items()):
            yield f"| {_names(names)} | {detail} ([`{reason}`](graph_breaks.md#{reason})) |"
        yield ""


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
