"""The minifier finds planted faults in large graphs, and its scripts show them."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tcompile.debug.isolated import Worker, load, save
from tcompile.debug.judge import Column, Verdict, compare, judge, random_inputs
from tcompile.debug.minify import minify
from tcompile.debug.script import graph_in, write_minified, write_script
from tcompile.errors import InvalidArgument
from tcompile.graph import Graph, ScalarType, ShapeEnv, SymInt, TensorType
from tcompile.graph.ops import apply
from tests.debug import faults

HERE = Path(__file__).resolve().parent.parent.parent


def column(name, **more):
    return Column(f"tests.debug.faults:{name}", **more)


@pytest.fixture(autouse=True)
def _found_by_others(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))


FAULTS = [
    ("wrong_expm1", "tanh", "wrong", 1, False),
    ("refuses_expm1", "tanh", "compile error", 1, False),
    ("fails_on_expm1_after_sin", "sin", "wrong", 2, False),
    ("drifting_tanh", None, "wrong", 1, False),
    ("crashes_on_expm1", "tanh", "crash", 1, True),
    ("aborts_compiling_expm1", "tanh", "crash", 1, True),
]


@pytest.mark.parametrize("name, after, kind, most, isolate", FAULTS, ids=[fault[0] for fault in FAULTS])
def test_planted_faults_are_reduced_to_a_few_operations(name, after, kind, most, isolate, tmp_path):
    graph = faults.chain(200)
    if after is not None:
        graph = faults.planted(graph, "expm1", after)
    assert graph.op_count >= 200
    started = time.monotonic()
    done = minify(graph, faults.inputs_of(graph), column(name), isolate=isolate)
    assert time.monotonic() - started < 60
    assert done.verdict.kind == done.first.kind == kind and done.graph.op_count <= most
    assert {node.op.name for node in done.graph.nodes} <= {"expm1", "sin", "tanh"}
    assert max(value.size for value in done.inputs) == 1  # arrays shrink too
    assert f"{graph.op_count} operations reduced to {most}" in str(done)
    path = write_minified(tmp_path / "small.py", done)
    assert len(path.read_text().splitlines()) < 40
    assert run(path).startswith(f"tests.debug.faults:{name}: {kind}")


def run(path, *options, status=1):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, path, *options], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def test_a_script_minifies_itself(tmp_path):
    graph = faults.planted(faults.chain(60), "expm1")
    path = tmp_path / "large.py"
    write_script(path, graph, faults.inputs_of(graph), "A crash.", "backend='tests.debug.faults:crashes_on_expm1'")
    assert path.with_suffix(".npz").exists() is False  # 64 elements are written out
    out = run(path, "--minify")
    assert "crash: died of SIGSEGV" in out and "reduced to 1" in out
    small = tmp_path / "large_small.py"
    assert graph_in(small.read_text()).op_count == 1
    assert "crash" in run(small)


def test_large_inputs_stand_beside_the_script(tmp_path):
    graph = Graph("g")
    kind = TensorType(np.dtype("float32"), (40, 30))
    x, n = graph.input("x", kind), graph.input("n", ScalarType("float"))
    graph.outputs = [apply(graph, "multiply", x, n)]
    values = [np.asfortranarray(np.arange(1200, dtype="float32").reshape(40, 30)).copy(order="C"), 0.1]
    write_script(tmp_path / "g.py", graph, values, 'With """quotes""" and \\ in it.', "")
    again = load(tmp_path / "g.npz")
    assert again[1] == 0.1 and np.array_equal(again[0], values[0])
    assert run(tmp_path / "g.py", status=0).splitlines() == [
        "eager: the same as NumPy", "aot_eager: the same as NumPy", "llvm: the same as NumPy"
    ]  # fmt: skip
    assert "llvm: the same" in run(tmp_path / "g.py", "--backend", "llvm", "--here", "--after", "transforms", status=0)


def test_memory_order_and_kinds_of_inputs_survive_saving(tmp_path):
    values = [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0),
        np.array(2, np.float32), np.array([True]), 3, 2.5, np.zeros((0, 3)),
    ]  # fmt: skip
    save(tmp_path / "x.npz", values)
    again = load(tmp_path / "x.npz")
    for one, other in zip(values, again, strict=True):
        assert type(one) is type(other)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype and np.array_equal(one, other)
            assert one.strides == other.strides or not one.size


def test_open_sizes_are_closed():
    env = ShapeEnv()
    env.hints["s0"] = 5
    env.minimum["s0"] = None
    size = SymInt(env, {("s0",): 1})
    graph = Graph("g", env)
    x = graph.input("x", TensorType(np.dtype("float64"), (size, 3)))
    y = apply(graph, "sin", x)
    graph.outputs = [apply(graph, "multiply", apply(graph, "expm1", y), 2.0)]
    done = minify(graph, random_inputs(graph), column("wrong_expm1"))
    assert done.graph.op_count == 1 and done.graph.inputs[0].tensor.shape == (1, 1)


def test_several_results_and_regions():
    """What states its sizes, or has several results, is cut around and never into."""
    import tcompile

    def f(x):
        total = tcompile.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + np.sin(s)), (np.int64(0), x))[1]
        return np.expm1(total) * 2 + x.mean()

    compiled = tcompile.compile(f, backend="eager")
    x = np.linspace(0, 1, 12)
    compiled(x)
    (graph,) = compiled.graphs

    def backend(graph, inputs):
        spoilt = any(node.op.name == "expm1" for node in graph.nodes)
        return lambda *args: tuple(value + spoilt for value in graph(*args))

    done = minify(graph, [x] if len(graph.inputs) == 1 else random_inputs(graph), Column(backend))
    assert [node.op.name for node in done.graph.nodes] == ["expm1"]


def test_nothing_to_minify():
    graph = faults.chain(10)
    with pytest.raises(InvalidArgument, match="nothing to minify: the result is same"):
        minify(graph, faults.inputs_of(graph), Column("llvm"))


def test_when_time_is_up_the_best_so_far_is_the_result():
    graph = faults.planted(faults.chain(100), "expm1")
    done = minify(graph, faults.inputs_of(graph), column("wrong_expm1"), seconds=0.0)
    assert done.graph is graph and done.checks == 1 and done.verdict.kind == "wrong"


# -- verdicts


def test_a_hang_is_told():
    graph = faults.planted(faults.chain(20), "expm1")
    with Worker(column("hangs_on_expm1"), patience=1.0) as worker:
        assert worker.judge(graph, faults.inputs_of(graph), 1e-3).kind == "hang"
        assert worker.judge(faults.chain(5), faults.inputs_of(faults.chain(5)), 1e-3).kind == "same"


def test_a_backend_that_nobody_else_finds():
    with pytest.raises(InvalidArgument, match="another process cannot find"):
        Worker(Column(lambda graph, inputs: graph))
    assert Column(faults.wrong_expm1).name() is None
    assert Column(faults.refuses_expm1).name() == "tests.debug.faults:refuses_expm1"
    assert Column("llvm").name() == "llvm"
    with pytest.raises(InvalidArgument, match="Stages: capture, transforms"):
        Column(after="nowhere")


@pytest.mark.parametrize(
    "got, text",
    [
        ([np.zeros(3), np.zeros(3)], "2 results where NumPy has 1"),
        ([np.zeros(3, "f4")], "output 0: dtype float32 where NumPy has float64"),
        ([np.zeros((3, 1))], "output 0: shape (3, 1) where NumPy has (3,)"),
        (3, "returns int, not its results"),
        ([np.array([1, np.nan, 3])], "output 0: 1 of 3 elements differ, at (1,) nan where NumPy has 2.0"),
        ([np.array([1, 2, np.inf])], "output 0: 1 of 3 elements differ, at (2,) inf where NumPy has 3.0"),
        ([np.array([1, 2, 3.1])], "output 0: 1 of 3 elements differ, at (2,) 3.1 where NumPy has 3.0"),
    ],
)
def test_what_differs_is_said(got, text):
    assert compare([np.array([1.0, 2.0, 3.0])], got, 1e-3) == Verdict("wrong", text, pytest.approx(0, abs=np.inf))


def test_what_is_the_same():
    nans = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0])
    assert not compare([nans], [nans.copy()], None).failed
    assert not compare([np.array([1.0])], [np.array([1.0 + 1e-4])], 1e-3).failed
    assert compare([np.array([1.0])], [np.array([1.0 + 1e-4])], None).failed
    assert compare([np.array([1])], [np.array([2])], 10.0).failed  # integers are never nearly right
    assert not compare([], [], 1e-3).failed


def test_a_failing_reference_is_no_fault():
    graph = faults.chain(5)
    assert judge(graph, [np.ones(3)], Column()).kind == "invalid"
    error = judge(graph, faults.inputs_of(graph), Column(lambda graph, inputs: lambda *args: 1 / 0))
    assert str(error) == "run error: ZeroDivisionError: division by zero"
    assert not error.like(Verdict("run error", "ValueError: no")) and error.failed


def test_single_operations_are_within_their_bounds():
    """What the drift search asks of single operations holds for the llvm backend."""
    graph = Graph("ops")
    x = graph.input("x", TensorType(np.dtype("float32"), (64, 32)))
    for op in ("sin", "exp", "tanh", "sqrt", "log1p"):
        graph.outputs.append(apply(graph, op, x))
    graph.outputs.append(apply(graph, "sum", x, axis=(1,), keepdims=False))
    graph.outputs.append(apply(graph, "matmul", apply(graph, "permute_dims", x, axes=(1, 0)), x))
    assert judge(graph, random_inputs(graph), Column("llvm"), None).kind == "same"
    assert re.match("same", str(judge(graph, random_inputs(graph), Column("llvm", exact=True), None)))
