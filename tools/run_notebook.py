"""Runs a notebook from top to bottom without a screen.

Input: a notebook and a folder.
Output: in the folder, the notebook with its outputs, also as an HTML page. On the terminal, a line for each cell while
it runs, and at the end the text of the cells tagged ``summary``. The exit status is 1 if a cell failed; the results so
far are still written.
Why: the demo needs no browser.

    python tools/run_notebook.py notebooks/quickstart.ipynb build
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter

os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # the kernel of this environment
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Run a notebook, write it and its HTML page into a folder.")
    parser.add_argument("notebook", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one cell may take")
    options = parser.parse_args(arguments)

    notebook = nbformat.read(options.notebook, as_version=4)
    start = time.perf_counter()
    failure = run(notebook, options.notebook.parent, options.timeout)
    print(f"ran {options.notebook} in {time.perf_counter() - start:.1f} s")

    options.folder.mkdir(parents=True, exist_ok=True)
    written = options.folder / options.notebook.name
    nbformat.write(notebook, written)
    page = written.with_suffix(".html")
    page.write_text(html(notebook, options.notebook.stem), encoding="utf-8")
    print(f"wrote {written} and {page}")

    if failure is not None:
        print(failure, file=sys.stderr)
        return 1
    for text in summaries(notebook):
        print(f"\n{text}")
    return 0


def run(notebook: nbformat.NotebookNode, folder: Path, timeout: float) -> CellExecutionError | None:
    """Runs all cells in ``folder``, and prints a line for each. Returns the failure, if any."""
    code = [index for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    titles = dict(zip(code, _titles(notebook), strict=True))
    started: dict[int, float] = {}

    def on_start(cell: Any, cell_index: int) -> None:
        if cell_index in titles:
            started[cell_index] = time.perf_counter()
            print(f"[{code.index(cell_index) + 1:2}/{len(code)}] {titles[cell_index]}", end="", flush=True)

    def on_end(cell: Any, cell_index: int, execute_reply: Any) -> None:
        if cell_index in titles:
            print(f"  {time.perf_counter() - started[cell_index]:.1f} s", flush=True)

    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        on_cell_start=on_start,
        on_cell_executed=on_end,
        extra_arguments=["--log-level=ERROR"],
    )
    try:
        client.execute()
    except CellExecutionError as error:
        return error
    return None


def html(notebook: nbformat.NotebookNode, title: str) -> str:
    """Returns the notebook as one HTML page."""
    exporter = HTMLExporter()
    page: str = exporter.from_notebook_node(notebook, {"metadata": {"name": title}})[0]
    return page


def summaries(notebook: nbformat.NotebookNode) -> list[str]:
    """Returns the results, as text, of the cells tagged ``summary``."""
    found = []
    for cell in notebook.cells:
        if "summary" in cell.metadata.get("tags", ()):
            found += [o.data["text/plain"] for o in cell.outputs if o.output_type == "execute_result"]
    return found


def _titles(notebook: nbformat.NotebookNode) -> list[str]:
    """Returns, for each code cell, the last heading above it, and its own first line."""
    titles, heading = [], ""
    for cell in notebook.cells:
        lines = [line for line in cell.source.splitlines() if line.strip() and not line.startswith("%%")]
        if cell.cell_type == "markdown":
            heading = next((line.lstrip("# ") for line in reversed(lines) if line.startswith("#")), heading)
        elif cell.cell_type == "code":
            first = lines[0] if lines else ""
            titles.append(f"{heading[:36]:36}  {first[:44]:44}")
    return titles


if __name__ == "__main__":
    sys.exit(main())
