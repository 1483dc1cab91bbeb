"""The notebooks in git hold no outputs, and run from top to bottom."""

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


SAYS = {
    "stances": ["[-1. -1. -1.]", "a call of set_stance", "failed guard of entry 0: x.shape == (3,), got (4,)"],
    "graph_breaks": ["data-dependent-branch", "fori_loop", "one graph", "talks to the laboratory"],
    "recompiles": ["x.dtype == float64, got float32", "1 compile: ['x.shape[0] >= 2']", "recompiles, "],
    "kernels": ["rows over 2000 x 300r", "matmul", "x faster, "],
    "gradients": ["100% on the right side", "loop_3_backward", "misfit 15.14 -> "],
    "pytorch": [
        "1 graph · 1 kernel",
        "force_eager: tensor([-1., -1., -1.])",
        "losses agree: True",
        "of 100 sums are right",
    ],
    "wrong_results": ["at fault is the backend careless", "12 operations reduced to 1", "RESULTS DIFFER"],
}
"""What the outputs of each notebook hold among other things."""


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS if path.stem != "quickstart"])
def test_the_others_run(runner, tmp_path, name, capsys):
    if name == "pytorch":
        pytest.importorskip("torch")  # make test-torch installs it
    assert runner.main([str(ROOT / "notebooks" / f"{name}.ipynb"), str(tmp_path)]) == 0, capsys.readouterr().err
    cells = [c for c in nbformat.read(tmp_path / f"{name}.ipynb", as_version=4).cells if c.cell_type == "code"]
    texts = [o.get("text") or o.data.get("text/html", "") + o.data["text/plain"] for c in cells for o in c.outputs]
    for said in SAYS[name]:
        assert any(said in text for text in texts), said
    assert not any("<script" in text or "measuring" in text for text in texts)  # what was measured is in the picture
    assert cells[-1].outputs  # ends with something to see


def test_a_notebook_that_fails_is_written_and_reported(runner, tmp_path, capsys):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in ("x = 1", "1/0", "y = 2")])
    nbformat.write(notebook, tmp_path / "failing.ipynb")
    assert runner.main([str(tmp_path / "failing.ipynb"), str(tmp_path / "build")]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    written = nbformat.read(tmp_path / "build" / "failing.ipynb", as_version=4)
    assert written.cells[1].outputs[0].output_type == "error"
    assert (tmp_path / "build" / "failing.html").exists()
