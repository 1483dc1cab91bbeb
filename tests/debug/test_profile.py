"""``tcompile.profile``: which lines have time of which kind, and what the profiled calls leave behind."""

from __future__ import annotations

import json
import sys
import threading

import numpy as np
import pytest

import tcompile
from benchmarks.programs import PROGRAMS
from tcompile import compiler
from tcompile.debug import causes, machine_limits
from tcompile.debug import profile as profiling
from tcompile.errors import InvalidType
from tcompile.observe.recorder import Recorder
from tcompile.runtime.cache import caches

X = np.linspace(0.1, 1, 20_000)


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(profiling, "SECONDS", 0.02)
    monkeypatch.setattr(profiling, "_LEAST", 0.0)


def kinds(found):
    """The kinds of time of each line, counted from the function's ``def``."""
    first = min(line.line for line in found.lines)
    return {
        line.line - first: {kind for kind in ("fused", "library", "plain") if getattr(line, kind)}
        for line in found.lines
    }


def mixed(x):
    y = np.sin(x) * 2
    z = np.sort(y)
    return z + 1


def test_kernels_and_library_calls():
    found = tcompile.profile(mixed)(X)
    assert {"fused"} <= kinds(found)[0] and "library" in kinds(found)[1] and "fused" in kinds(found)[2]
    assert [line.why for line in found.lines][1] == "sort"
    assert sum(line.ms for line in found.lines) + found.unknown_ms == pytest.approx(found.ms, rel=1e-6)
    assert sum(found.sums().values()) == pytest.approx(found.ms, rel=1e-6)
    assert found.function == "mixed" and found.calls >= 3 and found.compile_ms > 0 and found.plain_ms > 0


def test_plain_python_between_graphs(capsys):
    def f(x):
        y = np.exp(x) * 2
        text = ""
        for i in range(20_000):
            text = str(i)
        print(text)
        return y + len(text)

    found = tcompile.profile(f)(X)
    assert capsys.readouterr().out == "19999\n"
    loop = [line for line in found.lines if "text = str(i)" in line.text]
    assert loop and loop[0].plain > 0.1 * found.ms


@pytest.mark.parametrize("steps", [3, 40])
def test_loops_that_call_libraries(steps):
    def f(x):
        for i in range(steps):
            x = np.sort(x[::-1] * 0.5)
        return x

    found = tcompile.profile(f)(X)
    (line,) = (line for line in found.lines if "np.sort" in line.text)
    assert line.library > 0 < line.fused and "sort" in line.why


@pytest.mark.parametrize("size", [50, 5000])
def test_loops_in_machine_code(size):
    def f(x):
        y = np.zeros_like(x)
        total = 0.0
        for i in range(len(x)):
            total = total * 0.5 + x[i]
            y[i] = total
        while total > 1e-3:
            total *= 0.9
        for _ in range(20):
            y = y * 0.5 + x
        return y * total

    found = tcompile.profile(f)(X[:size].copy())
    assert sum(line.fused for line in found.lines) > 0
    assert any("for i in range" in line.text and line.fused for line in found.lines)


def test_branches_and_calls():
    def helper(x):
        return np.cumsum(x) * 2

    def f(x):
        if x.sum() > 0:
            return helper(x) - 1
        return x

    found = tcompile.profile(f)(X)
    assert any("np.cumsum" in line.text for line in found.lines)
    assert any("if x.sum()" in line.text for line in found.lines)


def test_arguments_are_copied_and_nothing_is_left_behind():
    def f(x, seen):
        x += 1
        seen.append(len(seen))
        return x

    x, seen, compiled = X.copy(), [], tcompile.compile(mixed)
    compiled(X)
    entries = compiled.entries
    tcompile.profile(f)(x, seen)
    tcompile.profile(compiled)(X)
    assert np.array_equal(x, X) and seen == []
    assert compiled.entries == entries and compiler.timer is None
    assert [cache for cache in caches() if cache.name == "mixed"] == [compiled.cache]
    assert not [thread for thread in threading.enumerate() if thread.name == "tcompile profile"]


def test_compiles_belong_to_no_cell():
    from tcompile.observe.context import current_cell

    token = current_cell.set("In[1]")
    try:
        with Recorder() as recorder:
            tcompile.profile(mixed)(X)
    finally:
        current_cell.reset(token)
    assert {event.cell for event in recorder.events} == {None}


def test_methods_and_keywords():
    class Model:
        scale = 2.0

        def run(self, x, *, shift=0.0):
            return np.sqrt(x) * self.scale + shift

    found = tcompile.profile(Model().run)(X, shift=1.0)
    assert found.lines and "np.sqrt" in found.lines[0].text


def test_errors_are_the_users_own():
    def f(x):
        x = x * 2
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        tcompile.profile(f)(X)
    assert compiler.timer is None

    def items(x):
        yield x + 1

    with pytest.raises(InvalidType, match="runs when it is called"):
        tcompile.profile(items)(X)
    with pytest.raises(InvalidType, match="profile takes a function"):
        tcompile.profile(3)


def test_forms():
    found = tcompile.profile(mixed)(X)
    text, page = str(found), found.html()
    assert text.startswith("mixed: ") and "library" in text and "np.sort(y)" in text
    assert "np.sort(y)" in page and "<script" not in page
    bundle = found._repr_mimebundle_()
    data = bundle["application/vnd.tcompile.profile+json"]
    assert data["lines"][1]["why"] == "sort" and data["ms"] == found.ms


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_whole_programs(name):
    program = PROGRAMS[name]
    found = tcompile.profile(program.function)(*program.inputs(24))
    assert sum(line.ms for line in found.lines) + found.unknown_ms == pytest.approx(found.ms, rel=1e-6)
    assert all(line.line and line.ms > 0 for line in found.lines)


def test_names_and_sizes():
    """An input named as what times the program, and products of symbolic sizes."""
    found = tcompile.profile(lambda lap: np.sin(lap) * 2)(X)
    assert found.lines[0].fused

    @tcompile.compile
    def product(a, v):
        return a @ v

    def f(a):
        total = 0.0
        for n in range(3, 12):
            print(end="")
            total += product(a[:n, :n], a[0, :n]).sum()
        return total

    found = tcompile.profile(f)(np.ones((20, 20)))
    assert sum(line.fused + line.library for line in found.lines) > 0


def test_threads_wait_for_one_another():
    import sys

    out, before = sys.stdout, [cache.number for cache in caches()]
    threads = [threading.Thread(target=lambda: tcompile.profile(mixed)(X)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.stdout is out and compiler.timer is None
    assert set(before) <= {cache.number for cache in caches()}


def _kinds_of_causes(found):
    return [cause.kind for cause in found.causes]


def test_a_library_call_is_a_cause():
    def f(x):
        for _ in range(3):
            x = np.sort(x) * 0.5
        return x

    found = tcompile.profile(f)(X)
    cause = next(cause for cause in found.causes if cause.kind == "library")
    assert cause.text == "`sort` runs in NumPy, 3 times"
    assert "np.partition" in cause.cure and cause.code == "x = np.sort(x) * 0.5"
    assert 0.3 * found.ms < cause.ms <= found.ms and cause.left_ms == 0
    assert "why not faster?" in str(found) and "at most" in str(found)
    assert "why not faster?" in found.html() and found.data()["causes"][0]["kind"]


def test_a_line_in_plain_python_is_a_cause():
    def f(x):
        y = np.exp(x) * 2
        print(*x.tolist())
        return y

    cause = next(cause for cause in tcompile.profile(f)(X).causes if cause.kind == "plain")
    assert cause.text.startswith("runs in plain Python: ")
    assert cause.cure and cause.code.startswith("print(")


def test_a_function_that_is_skipped_is_a_cause():
    def reads(x):
        caller = len(sys._getframe(1).f_locals)
        return caller + len(sorted(map(str, range(5_000))))

    def f(x):
        return np.exp(x) * reads(x)

    found = tcompile.profile(f)(X[:10])
    cause = next(cause for cause in found.causes if cause.kind == "plain")
    assert "reads` runs in plain Python: it reads its caller's frame" in cause.text and "sorted" in cause.code
    assert cause.ms > 0.5 * found.ms


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (lambda x: x * 2 + 1, "memory"),
        (lambda x: np.sin(np.exp(np.sin(np.exp(np.sin(x))))), "processor"),
        (lambda x: x[:10] + 1, "10 elements: starting it"),
    ],
)
def test_kernels_stand_beside_the_machines_limits(line, words, monkeypatch):
    monkeypatch.setattr(causes, "_LEAST", 0.01)
    monkeypatch.setattr(causes, "bytes_per_second", lambda nbytes: 2e10)
    monkeypatch.setattr(causes, "operations_per_second", lambda elements: 4e10)
    found = tcompile.profile(line)(np.linspace(0, 1, 2_000_000))
    (cause,) = (cause for cause in found.causes if cause.kind == "kernel")
    assert words in cause.text and 0 < cause.left_ms <= cause.ms


@pytest.mark.parametrize(("dtype", "helps"), [("f8", True), ("f4", False)])
def test_float32_is_a_cure_of_float64_alone(dtype, helps, monkeypatch):
    monkeypatch.setattr(causes, "bytes_per_second", lambda nbytes: 1.0)  # so memory is the limit
    found = tcompile.profile(lambda x: (x * 2 + 1) @ x)(np.ones((300, 300), dtype))
    cures = {cause.kind: "float32" in cause.cure for cause in found.causes if cause.kind in ("kernel", "library")}
    assert cures["library"] == helps and cures.get("kernel", helps) == helps


def test_compiling_and_recompiles_are_paid_once():
    def f(parts):
        total = 0.0
        for part in parts:
            print(len(parts))
            total += float((part * 2).sum())
        return total

    found = tcompile.profile(f)([X[:4], X[:4].reshape(2, 2), X[:4].reshape(1, 2, 2)])
    once = [cause for cause in found.causes if cause.once]
    assert {cause.kind for cause in once} == {"compile", "recompile"} and once == list(found.causes[-2:])
    again = next(cause for cause in once if cause.kind == "recompile")
    assert "part" in again.text and "once" in str(found)


def test_small_arrays_are_slower_or_spent_on_calls():
    kinds = _kinds_of_causes(tcompile.profile(lambda x: x + 1)(X[:4].copy()))
    assert {"overhead", "slower"} & set(kinds)


def test_the_machines_limits_are_of_the_right_size():
    assert machine_limits.bytes_per_second(1e5) > 1e8
    assert machine_limits.operations_per_second(1e6) > 1e8


def test_a_profile_is_saved_for_speedscope(tmp_path):
    found = tcompile.profile(mixed)(X)
    found.save(tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text())
    (profile,) = data["profiles"]
    names = [frame["name"] for frame in data["shared"]["frames"]]
    stacks = [[names[number] for number in stack] for stack in profile["samples"]]
    assert ["mixed", "z = np.sort(y)", "library"] in stacks and ["mixed", "guards, calls"] in stacks
    assert sum(profile["weights"]) == pytest.approx(profile["endValue"]) == pytest.approx(found.ms)
    assert data["$schema"].startswith("https://www.speedscope.app/")
    with pytest.raises(OSError, match="nowhere"):
        found.save(tmp_path / "nowhere" / "a.json")
