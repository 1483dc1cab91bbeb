"""Module-level statements: effects in order, stretches between breaks, errors at the statements' own lines."""

import linecache
import types

import numpy as np
import pytest
from differential import assert_same

import tcompile
from tcompile.api import run_cell
from tcompile.errors import Unsupported
from tcompile.observe.events import CompileFinished, GraphBroke, GraphCaptured
from tcompile.observe.recorder import Recorder
from tcompile.runtime.cell import CELL


@pytest.fixture(autouse=True)
def _fresh():
    tcompile.reset()


def code_of(text, filename):
    return compile(text, filename, "exec", dont_inherit=True)


def run(text, namespace=None, **settings):
    """Runs ``text`` plainly and compiled in two namespaces, compares them, and returns the events."""
    filename = f"<cell {abs(hash(text))}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    plain = {"np": np, "tcompile": tcompile, **(namespace or {})}
    exec(compile(text, filename, "exec"), plain)
    compiled = {"np": np, "tcompile": tcompile, **(namespace or {})}
    with Recorder() as recorder:
        run_cell(code_of(text, filename), compiled, **settings)
    ours = {k: v for k, v in plain.items() if not k.startswith("__") and not callable(v) and v is not np}
    for name, value in ours.items():
        if name != "tcompile":
            assert_same(compiled[name], value, name)
    assert set(ours) == {k for k in compiled if k in ours}
    return recorder


def test_statements_become_one_graph():
    events = run("x = np.linspace(0, 1, 7)\ny = np.sin(x) * 2\nz = y.sum() + y\n")
    (graph,) = events.of(GraphCaptured)
    assert graph.function == CELL and graph.ops >= 4
    assert "sin(linspace)" in graph.readable


def test_breaks_are_stretched_around(capsys):
    events = run("a = np.ones(3)\nb = a * 2\nprint('b', b)\nc = b + a\nd = c * c\n")
    assert capsys.readouterr().out == "b [2. 2. 2.]\n" * 2
    assert len(events.of(GraphCaptured)) == 2
    assert {e.where.line for e in events.of(GraphBroke)} == {3}


def test_definitions_imports_and_loops():
    run(
        "import math as m\n"
        "def f(v):\n    return v * m.pi\n"
        "class C:\n    k = 3\n"
        "t = np.arange(4.0)\n"
        "for i in range(3):\n    t = t + f(t) * C.k * i\n"
        "n = i\n"
        "del i\n"
        "u = [t * j for j in range(2)]\n"
        "if n > 1:\n    w = u[1] - 1\n"
    )


def test_rebinding_and_augmented_assignment():
    run("a = np.arange(3.0)\nb = a\na += 1\nc = a is b\na = a * 2\nd = b + a\n")


def test_arrays_from_the_namespace_are_not_copied():
    data = np.arange(5.0)
    namespace = {"np": np, "data": data}
    run_cell(code_of("same = data\nview = data[1:]\nnew = data * 1", "<cell same>"), namespace)
    assert namespace["same"] is data
    assert namespace["view"].base is data and np.shares_memory(namespace["view"], data)
    assert not np.shares_memory(namespace["new"], data)


def test_errors_point_at_the_statement():
    text = "a = np.ones(3)\nb = a * 2\nc = b + np.ones(4)\nd = 1\n"
    namespace = {"np": np}
    with pytest.raises(ValueError, match="could not be broadcast") as error:
        run_cell(code_of(text, "<cell error>"), namespace)
    assert error.traceback[-1].lineno + 1 == 3
    assert "d" not in namespace and namespace["b"].tolist() == [2, 2, 2]


def test_a_compiled_function_keeps_its_own_graphs():
    @tcompile.compile
    def f(x):
        return x * 2 + 1

    events = run("x = np.ones(3)\ny = f(x)\nz = y * 3\n", {"f": f})
    assert len(f.graphs) == 1
    assert not events.of(GraphBroke)


def test_running_a_cell_again_finds_its_entries():
    text = "y = np.cos(x) + x\nz = y * y\n"
    namespace = {"np": np, "x": np.ones(3)}
    for round in range(3):
        with Recorder() as recorder:
            run_cell(code_of(text, "<cell again>"), namespace)
        assert len(recorder.of(CompileFinished)) == (round == 0)
    namespace["x"] = np.zeros(3)
    run_cell(code_of(text, "<cell again>"), namespace)
    assert_same(namespace["z"], np.ones(3))


def test_fullgraph_raises():
    with pytest.raises(Unsupported, match="print"):
        run_cell(code_of("a = np.ones(3)\nprint(a)\n", "<cell full>"), {"np": np}, fullgraph=True)


def test_names_deleted_and_missing():
    run("a = np.ones(2)\nb = a + 1\ndel a\nc = b * 2\n")
    with pytest.raises(NameError, match="nowhere"):
        run_cell(code_of("a = np.ones(2)\nb = nowhere + a\n", "<cell missing>"), {"np": np})


@pytest.mark.parametrize("text", [
    "x: int = 3\na: float = np.ones(4) * x",
    "x: int = 3\na: float = np.ones(4) * x\nprint(end='')\nb: 'int' = a + x",
    "if len(np.ones(2)) == 2:\n    a: float = np.ones(2)\nelse:\n    b: int = 2\na *= 2",
    "a = np.ones(2)\nfor i in range(3):\n    print(end='')\n    c: list = a + i",
])  # fmt: skip
def test_annotations(text):
    def annotations(execute):
        module = types.ModuleType("annotated")
        module.np = np
        execute(code_of(text, "<annotated>"), module.__dict__)
        return module.__annotations__

    run(text)
    expected = annotations(exec)
    assert expected
    assert annotations(run_cell) == annotations(run_cell) == expected
