"""CompileProfiler and compile_times."""

import csv
import io

import numpy as np
import pytest

import tcompile
from tcompile.errors import InvalidArgument, InvalidType
from tcompile.observe import bus, times
from tcompile.observe.events import CompileFinished, FellBack
from tcompile.observe.profiler import CompileProfiler


def model(x):
    y = np.sin(x) + 1
    print(end="")
    return y * 2


def test_as_context_manager_and_backend():
    with CompileProfiler() as prof:
        f = tcompile.compile(model, backend=prof)
        for size in (3, 3, 4, 5, 6):
            np.testing.assert_array_equal(f(np.ones(size)), model(np.ones(size)))
    assert f.settings.backend_name == "CompileProfiler" and "CompileProfiler" in repr(f)
    about = prof.functions["model"]
    assert about.compiles >= 3 and about.kernels == 0 and about.ops >= 3 and about.calls >= 1
    assert about.breaks.total() == 1 and about.guard_failures.total() >= 1
    text = prof.report()
    assert text.splitlines()[0].startswith("1 function, ") and "1 graph break" in text
    assert "x.shape == (3,): seen (4,)" in text and text.count("Hint:") == len(set(about.hints.values()))
    assert "test_profiler.py, line " in text
    assert not bus.active()


def test_it_sees_other_backends_and_nests():
    prof = CompileProfiler()
    with prof, prof:
        g = tcompile.compile(lambda x: x / 2, backend="llvm")
        with np.errstate(all="ignore"):
            g(np.ones(3))
        bus.emit(FellBack(function="h<b>", reason="a limit", detail="reached"))
    assert not bus.active()
    assert prof.functions["h<b>"].fallbacks == {"a limit: reached": 1}
    bundle = prof._repr_mimebundle_()
    assert bundle["text/plain"] == prof.report() == str(prof) and "h&lt;b&gt;" in bundle["text/html"]
    assert repr(prof).startswith("<CompileProfiler: 2 functions")
    prof.clear()
    assert prof.report() == "nothing was compiled"


def test_loops_and_their_iterations():
    def f(x, n):
        for i in range(n):
            x = 0.5 * np.sin(x) + i
        while x.max() > 1:
            x = x * 0.5
        return x

    x = np.ones(50)
    told = tcompile.explain(f)(x, 100).loops
    assert all("It took " in text for text in told), told
    assert " ms for 100 iterations, " in told[0]
    compiled = tcompile.compile(f)
    with CompileProfiler() as prof:
        for _ in range(30):
            compiled(x, 100)
    first, second = prof.loops.values()
    assert first.iterations == 100 * first.runs and 16 <= first.runs <= 30 and first.ms > 0
    assert first.where.line + 2 == second.where.line and 0 < second.iterations < 20 * second.runs
    text = prof.report()
    assert "µs an iteration" in text and "for i in range(n):" in text and "µs an iteration" in prof.body()
    prof.clear()
    assert not prof.loops


def test_compile_times():
    tcompile.reset()
    f = tcompile.compile(model)
    f(np.ones(3))
    rows = list(csv.reader(io.StringIO(tcompile.compile_times("csv"))))
    assert rows[0][:2] == ["compile", "function"] and rows[0][-1] == "total" and "capture" in rows[0]
    assert rows[1][1] == "model" and float(rows[1][-1]) > 0
    total = {row[0]: row for row in csv.reader(io.StringIO(tcompile.compile_times("csv", aggregate=True)))}
    assert int(total["total"][1]) == len(rows) - 1
    assert float(total["total"][2]) == pytest.approx(sum(float(row[-1]) for row in rows[1:]), abs=0.01)
    head, *body = tcompile.compile_times().splitlines()
    assert head.split()[:2] == ["compile", "function"] and len(body) == len(rows) - 1
    tcompile.reset()
    assert len(tcompile.compile_times().splitlines()) == 1


def test_compile_times_are_bounded_and_the_totals_whole():
    times.clear()
    for _ in range(times.LIMIT + 5):
        bus.emit(CompileFinished(function="f", ms=2.0, phases={"capture": 1.0}))
    assert len(times.compile_times().splitlines()) == times.LIMIT + 1
    total = times.compile_times(aggregate=True).splitlines()[-1]
    assert total.split() == ["total", str(times.LIMIT + 5), f"{2 * times.LIMIT + 10}.000", "2.000"]
    times.clear()


def test_wrong_arguments():
    with pytest.raises(InvalidArgument, match="'str' or 'csv'"):
        tcompile.compile_times("json")
    with pytest.raises(InvalidType, match="aggregate"):
        tcompile.compile_times(aggregate="yes")
