"""Events name the cell that runs and the cell that defined the function."""

import tcompile
from tcompile.observe import bus
from tcompile.observe.events import CompileStarted
from tcompile.observe.recorder import Recorder


def test_events_name_both_cells(notebook):
    count = notebook.shell.execution_count
    notebook("import tcompile\n@tcompile.compile\ndef f(x):\n    return x + 1")
    with Recorder() as seen:
        notebook("f(np.ones(3))")
        notebook("f(np.ones((3, 3)))")
    cells = [(event.defined_in, event.cell) for event in seen.of(CompileStarted)]
    assert cells == [(f"In[{count}]", f"In[{count + 1}]"), (f"In[{count}]", f"In[{count + 2}]")]
    assert bus.current_cell.get() is None


def test_the_front_ends_id_goes_before_the_count(notebook):
    shell = notebook.shell
    with Recorder() as seen:
        shell.run_cell("import tcompile\n@tcompile.compile\ndef g(x):\n    return x * 2", True, cell_id="abc-1")
        shell.run_cell("a = g(np.ones(3))\nget_ipython().run_cell('1 + 1')\nb = g(np.ones(4, int))", cell_id="abc-2")
    assert {(event.defined_in, event.cell) for event in seen.of(CompileStarted)} == {("abc-1", "abc-2")}


def test_code_of_magics_that_have_no_file(notebook):
    count = notebook.shell.execution_count
    notebook("%%time\nimport tcompile\n@tcompile.compile\ndef f(x):\n    return x + 1")
    with Recorder() as seen:
        notebook("f(np.ones(3))")
    (started,) = seen.of(CompileStarted)
    assert started.where.file.startswith("<") and started.defined_in == f"In[{count}]"


def test_unloading_stops_the_naming(notebook):
    notebook("%unload_ext tcompile")
    try:
        notebook("import tcompile\n@tcompile.compile\ndef h(x):\n    return x - 1")
        with Recorder() as seen:
            notebook("h(np.ones(3))")
    finally:
        notebook("%load_ext tcompile")
    (started,) = seen.of(CompileStarted)
    assert started.cell is None and started.defined_in is None and tcompile


def test_loading_in_a_silent_cell(notebook):
    """As front ends load it: such a cell does not say how IPython counts."""
    shell = notebook.shell
    notebook("%unload_ext tcompile")
    shell.run_cell("%load_ext tcompile", store_history=False, silent=True)
    with Recorder() as seen:
        code = "import tcompile\n@tcompile.compile\ndef k(x):\n    return x * 3\nk(np.ones(3))"
        shell.run_cell(code, True, cell_id="abc-3")
    assert {(event.defined_in, event.cell) for event in seen.of(CompileStarted)} == {("abc-3", "abc-3")}
