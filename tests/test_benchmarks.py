"""The benchmark harness checks before it times, goes on without what is missing, and writes what it measured."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tcompile
from benchmarks import (
    against_numpy,
    against_report,
    forms,
    gpu,
    gpu_report,
    gradient_costs,
    gradients,
    harness,
    labextension,
    loops,
    memory,
    performance,
    report,
    run,
    versions,
)
from benchmarks.harness import Plan, Row
from benchmarks.kernels import KERNELS
from benchmarks.peers import PEERS, Contestant, NotApplicable, NumPy, Peer, TCompile, fresh
from tcompile.backends.llvm.kernels.variants import KernelVariant

ROOT = Path(__file__).resolve().parent.parent
TINY = Plan(((16, 16),), ("float32",), rounds=2, calls=2, seconds=60.0, overhead_rounds=2, import_runs=1, threads=2)


def measure(kernels, peers, told=None):
    lines = [] if told is None else told
    return harness.measure([KERNELS[name] for name in kernels], peers, TINY, lines.append, None)


class Broken(Peer):
    """A peer that answers with ``answer(correct result)``; on 8 elements it is correct."""

    name, title = "broken", "Broken"

    def __init__(self, answer):
        self.answer = answer

    def load(self, threads):
        pass

    def build(self, kernel, inputs):
        function = kernel.numpy if inputs[0].size == 8 else lambda *given: self.answer(kernel.numpy(*given))
        return Contestant(self, function, inputs)


class Missing(Broken):
    name, title = "missing", "Missing"

    def __init__(self):
        pass

    def load(self, threads):
        raise ImportError("No module named 'missing'")


# -- the command -------------------------------------------------------------------------------------------------------
def test_the_command_with_all_peers_but_torch(tmp_path):
    # torch.compile takes longer for its first compile than a test may.
    command = (
        "-m benchmarks.run --shapes 32x32,40x3 --dtypes float64 --rounds 1 --kernels softmax --peers jax,numba,numexpr "
        "--no-startup --out"
    )
    done = subprocess.run(
        [sys.executable, *command.split(), str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("*.json")
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["about"]["command"].startswith("python -m benchmarks.run --shapes 32x32,40x3 --dtypes float64")
    assert data["about"]["versions"]["numpy"] == np.__version__
    table, thin = data["tables"]
    assert (thin["shape"], thin["dtype"]) == ([40, 3], "float64")
    rows = {row["peer"]: row for row in table["rows"]}
    assert {"numpy", "tcompile", "copy"} <= rows.keys()
    for name in ("jax", "numba", "numexpr"):
        if importlib.util.find_spec(name):
            assert rows[name]["status"] == ("n/a" if name == "numexpr" else "ok"), rows[name]
        else:
            assert f"No module named '{name}'" in done.stdout
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    assert "row softmax" in page
    assert "np.exp(x - x.max(axis=1, keepdims=True))" in page
    picture = path.with_name(f"{path.stem}-32x32-float64.png")
    assert picture.exists() == ("the pictures are skipped" not in done.stdout)


@pytest.mark.parametrize("given", ["--kernels=relu,sofmax", "--peers=cython"])
def test_unknown_names_are_refused_with_the_valid_ones(given):
    done = subprocess.run([sys.executable, "-m", "benchmarks.run", given], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "valid: " in done.stderr


def test_processors_are_on_cores_of_their_own():
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0, 1}
    chosen = run.cores(allowed, 1)
    assert len(chosen) == 1
    assert chosen <= allowed
    assert run.cores(allowed, len(allowed)) == allowed


# -- what is computed --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_runs_compiled_and_passes(name):
    (table,) = measure([name], [NumPy(), TCompile()]).tables
    numpy, ours, copy = table.rows
    assert [row.status for row in table.rows] == ["ok"] * 3
    assert not ours.detail  # no note: it was not run in plain Python
    assert ours.compile_ms > 0
    assert "capture" in ours.phases
    assert len(ours.round_medians) == TINY.rounds
    assert ours.speedup == pytest.approx(numpy.median / ours.median)
    assert ours.to_copy == pytest.approx(ours.median / copy.median)
    assert ours.lower <= ours.median <= ours.upper


@pytest.mark.parametrize(("dtype", "finer"), [("float32", "float64"), ("float64", "longdouble")])
@pytest.mark.parametrize("name", KERNELS)
def test_tolerances_are_above_rounding_and_below_real_differences(name, dtype, finer):
    kernel = KERNELS[name]
    inputs = kernel.inputs((32, 64), dtype)
    expected = kernel.numpy(*inputs)
    exact = np.asarray(kernel.numpy(*(x.astype(finer) for x in inputs)), dtype=dtype)[()]
    row = Row("peer", "Peer", "ok")
    harness.check(row, kernel, exact, expected)
    assert (row.status == "ok") or kernel.rtol == kernel.atol == 0
    harness.check(row, kernel, exact * exact.dtype.type(1 + 32 * max(kernel.limits(dtype)[0], 1e-7)), expected)
    assert row.status == "differs"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_loops_by_hand_compute_what_numpy_computes(name, dtype):
    class Plain:  # Numba's names, without compiling
        prange = range

        @staticmethod
        def njit(**options):
            return lambda function: function

    kernel = KERNELS[name]
    inputs = kernel.inputs((9, 7), dtype)
    row = Row("numba", "Numba", "ok")
    with np.errstate(all="ignore"):
        harness.check(row, kernel, forms.NUMBA[name](Plain, inputs[0].dtype)(*inputs), kernel.numpy(*inputs))
    assert row.status == "ok", row.detail


# -- fairness ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda y: y * np.float32(1.01), "times the tolerance"),
        (lambda y: y * np.float32("nan"), "by nan"),
        (lambda y: y[:-1], "instead of NumPy's"),
    ],
)
def test_a_result_that_differs_is_not_timed(answer, said):
    told = []
    (table,) = measure(["gelu"], [NumPy(), Broken(answer)], told).tables
    row = table.rows[1]
    assert row.status == "differs"
    assert row.median is None
    assert said in row.detail
    assert any("differs" in line for line in told)


def test_of_tcompile_type_and_dtype_count():
    wanted = np.float32(2)
    for got, status in [(wanted, "ok"), (np.float64(2), "differs"), (np.array(2, np.float32), "differs")]:
        row = Row("tcompile", "tcompile", "ok")
        harness.check(row, KERNELS["sum_squares"], got, wanted)
        assert row.status == status


def test_a_failing_peer_is_a_row_and_the_others_go_on():
    def fail(result):
        raise ValueError("no kernel today\nmore of it")

    (table,) = measure(["relu"], [NumPy(), Broken(fail), TCompile("eager")]).tables
    assert [row.status for row in table.rows] == ["ok", "failed", "ok", "ok"]
    assert table.rows[1].detail == "ValueError: no kernel today"


def test_a_peer_for_large_arrays_only_is_measured_there():
    class Large(Broken):
        def build(self, kernel, inputs):
            if inputs[0].size == 8:
                raise NotApplicable("too small")
            return super().build(kernel, inputs)

    result = measure(["relu"], [NumPy(), Large(lambda y: y)])
    assert [row.status for row in result.tables[0].rows] == ["ok"] * 3
    assert [row.peer for row in result.overheads] == ["numpy"]
    assert not result.skipped


def test_a_missing_peer_is_skipped_and_said_to_be():
    told = []
    result = measure(["relu"], [NumPy(), Missing()], told)
    assert result.skipped == ["Missing is skipped: No module named 'missing'"]
    assert result.skipped[0] in told
    assert [row.peer for row in result.tables[0].rows] == ["numpy", "copy"]


def test_contestants_run_once_per_round_and_the_order_shifts():
    order = []
    runners = {name: (lambda name=name: order.append(name)) for name in "abc"}
    times = harness.rounds(runners, 3, 2)
    assert "".join(order) == "aaabbbccc" + "bbbcccaaa" + "cccaaabbb"
    assert [len(turn) for turn in times["a"]] == [2, 2, 2]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_copy_copies_everything(threads):
    x = np.arange(35.0).reshape(7, 5)
    with harness.Copier(x, threads) as copier:
        copier()
        np.testing.assert_array_equal(np.concatenate([target for target, _ in copier._parts]), x)


def test_a_fresh_function_is_another_to_every_cache():
    function = KERNELS["relu"].numpy
    assert fresh(function).__code__ is not function.__code__
    assert fresh(function)(np.float32(1)) == 4


# -- what is shown -----------------------------------------------------------------------------------------------------
def test_reports_show_figures_and_what_is_missing(tmp_path):
    peers = [NumPy(), TCompile("eager"), Broken(lambda y: y + 1), Missing()]
    result = measure(["relu", "sum_squares"], peers)
    result.about |= {"date": "2030-01-02", "command": "python -m benchmarks.run", "machine": run.machine()}
    data = json.loads(json.dumps(result.as_dict()))
    shown = report.terminal(data)
    assert re.search(r"Broken +differs: by 1\n", shown)
    assert "Missing is skipped" in shown
    page = report.markdown(data)
    assert "| `np.maximum(x + 1, 0) * 2` |" in page
    assert "Missing is skipped" in page
    text = report.inserted(data, f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "| `(x * x).sum()` |" in text
    with pytest.raises(ValueError, match="has no lines"):
        report.inserted(data, "no marks")


def test_the_pages_show_the_newest_results(tmp_path):
    pages = ["README.md", "docs/performance.md"]
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text((ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    assert performance.main(["--root", str(tmp_path)]) == 0
    for page in pages:
        assert (tmp_path / page).read_text(encoding="utf-8") == (ROOT / page).read_text(encoding="utf-8"), page


def test_the_page_of_all_figures(tmp_path):
    result = measure(["relu"], [NumPy(), TCompile(), Broken(lambda y: y)])
    result.about |= {"date": "2030-01-02", "command": "python -m benchmarks.run", "machine": run.machine()}
    (tmp_path / "2030-01-02-peers.json").write_text(json.dumps(result.as_dict()), encoding="utf-8")
    (tmp_path / "2029-01-02-peers.json").write_text("not read", encoding="utf-8")
    of_a_gpu = performance.newest(ROOT / "benchmarks" / "results", "gpu-*-float32")
    (tmp_path / "2030-01-02-gpu-any-float32.json").write_text(of_a_gpu.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(f"{report.BEGIN}\n{report.END}\n", encoding="utf-8")
    assert performance.main(["--results", str(tmp_path), "--root", str(tmp_path)]) == 0
    text = (tmp_path / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "## 16 x 16 float32, µs" in text
    assert re.search(r"tcompile is at [\d.]+ times the best peer, [\d.]+ times NumPy", text)
    assert "| `method: x * self.weight` |" in text
    assert "## On a GPU: NVIDIA" in text and "| `pairwise distances` |" in text


def test_a_gpus_figures_say_what_was_chosen(monkeypatch):
    """Which choice of ``max-autotune`` won is known from its first call, and said below the table."""
    monkeypatch.setattr("tcompile.backends.llvm.tuning.best", lambda *_: KernelVariant(unroll=2))
    x = np.linspace(0, 1, 64)
    result, told = gpu.first_run(lambda: tcompile.compile(lambda x: np.sqrt(x) + 1, mode="max-autotune")(x))
    assert (result == np.sqrt(x) + 1).all()
    assert told == [KernelVariant(unroll=2).text()]
    newest = performance.newest(ROOT / "benchmarks" / "results", "gpu-*-float32")
    data = json.loads(newest.read_text(encoding="utf-8"))
    for row in data["rows"]:
        row["tuned"] = told if row is data["rows"][0] else []
    said = [line for line in gpu_report.closing(data) if line.startswith("max-autotune chose")]
    assert said == [f"max-autotune chose for `{data['rows'][0]['title']}`: {told[0]}."]


def test_peak_memory_counts_results_and_temporaries():
    (row, _) = memory.measure(["relu"], (1024, 1024), "auto") or pytest.skip("only Linux tells")
    assert 3.5 < row["tcompile_mb"] < 5  # the result alone
    assert row["numpy_mb"] > 7


def test_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    result = measure(["relu"], [NumPy(), Broken(lambda y: y + 1)])
    result.about |= {"date": "2030-01-02", "machine": run.machine()}
    report.draw(result.as_dict(), "16 x 16 float32", tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "0"), (0.1234, "0.123"), (1.2, "1.20"), (12.34, "12.3"), (1234.5, "1234"), (4.2e-6, "4.2e-06"),
     (99.96, "100.0"), (float("inf"), "inf")],
)  # fmt: skip
def test_figures(value, text):
    assert report.figure(value) == text


# -- beside NumPy alone ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("suite", "names", "said"),
    [
        ("programs", "blur;monte_carlo", "Geometric mean"),
        ("draws", "normal;bootstrap", "Geometric mean"),
        ("everyday", "printed_steps;peaks;groups", "another size ms"),
        ("small", "add;max", "Allowed: NumPy's time, 5% more"),
    ],
)
def test_the_command_beside_numpy(suite, names, said, tmp_path):
    command = f"-m benchmarks.against_numpy {suite} --quick --rounds 1 --names {names} --out"
    done = subprocess.run(
        [sys.executable, *command.split(), str(tmp_path)], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("*.json")
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert {row["name"] for row in rows} == set(names.split(";"))
    assert all(row["status"] == "ok" and row["speedup"] > 0 and row["compile_ms"] > 0 for row in rows)
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    assert said in page
    assert said in done.stdout
    assert path.with_suffix(".png").exists() == ("the picture is skipped" not in done.stdout)


def test_losers_are_flagged():
    def row(size, ours, low, **more):
        times = {"numpy_ms": [1.0, 0.9, 1.1], "tcompile_ms": [ours, low, ours], "speedup": 1 / ours}
        return {"name": "f", "size": size, "status": "ok", "loses": ours > 1.06, "within_noise": low < 1.16} | times

    rows = [row(1, 1.0, 1), row(10, 2, 1), row(100, 2, 2)]
    data = {"suite": "small", "allowed": 1.05, "overhead_ms": 0.01, "rows": rows}
    assert against_report.table(data)[1] == [["f", "1.0", "2.0 ~", "2.0 <"]]
    assert "Losers: 1 of 3.\n- f, 100: 2000 µs instead of 1000 µs" in against_report.closing(data)[-1]


@pytest.mark.parametrize(
    ("got", "said"),
    [
        (np.float64(1), "float64 instead of ndarray"), (np.ones(2, "f4"), "float32[2] instead of float64[2]"),
        (np.ones(3), "float64[3] instead of float64[2]"), (np.array([1, 1 + 1e-12]), "by up to 1e-12"),
        (np.array([1, 1 + 1e-16]), ""), (np.array([1, np.nan]), "by up to nan"),
    ],
)  # fmt: skip
def test_what_counts_as_a_difference(got, said):
    assert against_numpy.differs(got, np.ones(2), 8) == said


def test_the_page_of_the_benchmarks_names_every_kernel_peer_and_file():
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in KERNELS)
    assert all(peer.title in text for peer in PEERS.values())
    assert all(f"({path.name})" in text for path in (ROOT / "benchmarks").glob("[a-z]*.py"))


def test_loops_are_checked_and_measured(tmp_path):
    few = ["--tiny", "--seconds", "0", "--only", "sieve,shortest_paths", "--json", str(tmp_path / "rows")]
    rows = loops.main([*few, "--out", str(tmp_path)])
    assert [row["name"] for row in rows] == ["shortest_paths", "sieve"]
    assert all(row["numpy, ms"] > 0 and row["tcompile, ms"] > 0 and not row["breaks"] for row in rows)
    assert all(row["compile, ms"]["cpu"] > 0 for row in rows)
    assert len(json.loads((tmp_path / "rows").read_text())) == 2
    (page,) = tmp_path.glob("*-loops.md")
    assert page.read_text(encoding="utf-8").count("| sieve |") == 1


def test_gradients_are_measured(tmp_path):
    rows = gradients.main(["--tiny", "--seconds", "0", "--only", "mlp,heat", "--out", str(tmp_path)])
    assert [row["name"] for row in rows] == ["mlp", "heat"]
    assert all(row["tcompile_ms"][0] > 0 and row["tcompile_first_ms"] > 0 for row in rows)
    assert all(row["difference"] < 1e-9 for row in rows if "jax_ms" in row)
    (page,) = tmp_path.glob("*-gradients.md")
    assert page.read_text(encoding="utf-8").count("| heat |") == 1


def test_what_gradients_cost_is_measured(tmp_path):
    rows = gradient_costs.main(["--tiny", "--seconds", "0", "--only", "heat,kmeans,life", "--out", str(tmp_path)])
    measured = [row for row in rows if "ratio" in row]
    assert {row["program"] for row in measured} == {"heat", "kmeans"} and all(row["ratio"] > 0 for row in measured)
    (page,) = tmp_path.glob("*-gradient-costs.md")
    text = page.read_text(encoding="utf-8")
    assert "| heat |" in text and "it has no float arguments" in text


@pytest.mark.parametrize("name", ["jacobi", "heat", "fdtd", "cavity"])
def test_the_loops_for_numba_compute_what_numpy_computes(name):
    pytest.importorskip("numba")
    form = getattr(importlib.import_module("benchmarks.loop_forms"), name)
    (case,) = (case for case in loops.CASES if case.function.__name__ == name)
    want, got = (function(case.array(case.tiny), 3) for function in (case.function, form))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_the_docs_have_the_newest_figures_of_the_labextension():
    newest = performance.newest(ROOT / "benchmarks" / "results", "labextension")
    found = json.loads(newest.read_text(encoding="utf-8"))
    page = labextension.DOCS.read_text(encoding="utf-8")
    assert labextension.written(page, found) == page, f"python -m benchmarks.labextension --table {newest}"


def test_versions_are_compared(monkeypatch, capsys):
    figures = {"one": 1.0, "same": 1.04, "slower": 1.06}
    monkeypatch.setattr(versions, "process", lambda python: {"call, µs: f": figures[python], "run, ms: k": 2.0})
    assert versions.main(["one", "same", "--turns", "3"]) == 0
    assert versions.main(["one", "slower", "--turns", "3"]) == 1
    assert "1.06 (1.060)" in capsys.readouterr().out


def test_versions_that_fail():
    with pytest.raises(RuntimeError, match="failed"):
        versions.process("false")
