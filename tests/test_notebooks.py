"""The notebooks in git hold no outputs, and the quickstart runs from top to bottom."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_stripped(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs"), cell.source
        assert cell.get("execution_count") is None


@pytest.fixture
def runner(load_tool):
    return load_tool("run_notebook")


def test_the_quickstart_runs(runner, tmp_path, capsys):
    text = (ROOT / "notebooks" / "quickstart.ipynb").read_text(encoding="utf-8")
    small = tmp_path / "quickstart.ipynb"
    assert "(8, 8)" in text
    small.write_text(text.replace("(8, 8)", "(4, 4)"), encoding="utf-8")

    assert runner.main([str(small), str(tmp_path / "build")]) == 0

    page = (tmp_path / "build" / "quickstart.html").read_text(encoding="utf-8")
    assert "tcompile-report" in page and "Traceback" not in page
    printed = capsys.readouterr().out
    assert "[ 1/" in printed
    table = printed[printed.index("\nfunction") :].strip().splitlines()
    assert "eager ms" in table[0] and "largest difference from NumPy" in table[0]
    assert {line.split()[0] for line in table[2:]} >= {"tone", "edges", "softmax"}
    assert "DIFFER" not in printed


def test_a_notebook_that_fails_is_written_and_reported(runner, tmp_path, capsys):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(s) for s in ("x = 1", "1/0", "y = 2")]
    )
    nbformat.write(notebook, tmp_path / "failing.ipynb")
    assert runner.main([str(tmp_path / "failing.ipynb"), str(tmp_path / "build")]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    written = nbformat.read(tmp_path / "build" / "failing.ipynb", as_version=4)
    assert written.cells[1].outputs[0].output_type == "error"
    assert (tmp_path / "build" / "failing.html").exists()
