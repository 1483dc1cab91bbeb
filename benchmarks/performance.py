"""Generation of docs/performance.md and the README's table from the newest results.

Input: the JSON files in benchmarks/results.
Output: the page, whose only fixed text stands here, and the README with the figures of that page.
Why: every figure in a page comes from a result.

    python -m benchmarks.performance
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import against_report, gpu_report, report

HERE = Path(__file__).resolve().parent
Data = dict[str, Any]


def newest(folder: Path, suite: str) -> Path | None:
    """The newest JSON file of a suite: ``peers``, ``programs``, ``small``, or ``gpu-*-float32`` of any GPU."""
    return max(folder.glob(f"????-??-??-{suite}.json"), default=None)


def page(peers: Data | None, programs: Data | None, small: Data | None, gpu: Data | None = None) -> str:
    """The page's text; a suite that is None is left out."""
    lines = [
        "# Performance: what was measured",
        "",
        "Written by `python -m benchmarks.performance` from the newest files in `benchmarks/results`, which have every",
        "run's figures, pictures, and what is computed. [benchmarks/README.md](../benchmarks/README.md) says how it",
        "is measured and what the columns mean; `make bench` measures again.",
    ]
    if peers is not None:
        lines += ["", report.heading(peers) + ".", "", *report.body(peers)]
        if peers["about"].get("noise"):
            lines += ["", f"**{peers['about']['noise']}**"]
    for title, data in (("Whole programs", programs), ("Small functions", small)):
        if data is not None:
            headings, rows = against_report.table(data)
            lines += ["", f"## {title}, beside NumPy", "", "| " + " | ".join(headings) + " |"]
            lines += ["|---|" + "---:|" * (len(headings) - 1), *("| " + " | ".join(row) + " |" for row in rows)]
            lines += ["", *against_report.closing(data)]
    if gpu is not None:
        headings, rows = gpu_report.table(gpu)
        lines += ["", f"## On a GPU: {gpu['about']['device']}", "", "| " + " | ".join(headings) + " |"]
        lines += ["|---|" + "---:|" * (len(headings) - 1)]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        lines += [part for line in gpu_report.closing(gpu) for part in ("", line)]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes both pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.performance", description=main.__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder with the JSON files")
    parser.add_argument("--root", type=Path, default=HERE.parent, help="folder with README.md and docs")
    options = parser.parse_args(arguments)
    found = [newest(options.results, suite) for suite in ("peers", "programs", "small", "gpu-*-float32")]
    data = [None if path is None else json.loads(path.read_text(encoding="utf-8")) for path in found]
    readme, written = options.root / "README.md", options.root / "docs" / "performance.md"
    written.write_text(page(*data), encoding="utf-8")
    if data[0] is not None:
        readme.write_text(report.inserted(data[0], readme.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {written} and the figures of {readme}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
