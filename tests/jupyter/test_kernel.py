"""The magics in a real kernel, driven as a front end drives it."""

from __future__ import annotations

import re

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tcompile_jupyter.progress import METADATA

CELLS = [
    "%load_ext tcompile\nimport numpy as np\nimport matplotlib.pyplot as plt",
    "%%tcompile\ndef f(x):\n    return np.maximum(x + 1, 0) * 2\n\nplt.plot([1, 2])\nprint('printed')\nf(np.ones(3))",
    "f(np.ones(4))[0];",
    "%%tcompile\ny = np.ones(2)\n\ndef g(x):\n    return f(x) + np.ones(5)\n\ng(y)\nz = 1",
    "never = True",
]


@pytest.fixture(scope="module")
def executed() -> nbformat.NotebookNode:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", extra_arguments=["--log-level=ERROR"])
    with pytest.raises(CellExecutionError):
        client.execute()
    for cell in notebook.cells:  # a busy machine compiles slowly, and says so
        cell.outputs = [output for output in cell.get("outputs", []) if output.get("metadata") != METADATA]
    return notebook


def test_outputs_come_in_order(executed):
    kinds = [(output.output_type, sorted(output.get("data", {}))) for output in executed.cells[1].outputs]
    assert [kind for kind, _ in kinds] == ["stream", "execute_result", "display_data", "display_data"]
    assert "image/png" in kinds[2][1]  # the plot
    assert "tcompile-report" in executed.cells[1].outputs[3].data["text/html"]
    assert executed.cells[1].outputs[1].data["text/plain"] == "array([4., 4., 4.])"
    assert executed.cells[1].outputs[1].execution_count == executed.cells[1].execution_count == 2


def test_an_error_stops_the_run_at_the_users_line(executed):
    (error,) = [output for output in executed.cells[3].outputs if output.output_type == "error"]
    assert error.ename == "ValueError"
    text = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    assert "Cell In[4], line 7" in text and "Cell In[4], line 5, in g(x)" in text
    assert "tcompile_jupyter" not in text and "interactiveshell" not in text
    assert executed.cells[4].execution_count is None
